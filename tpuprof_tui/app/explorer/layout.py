"""Which panes show and how large they are: decided by what was chosen and by the size of the screen."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState, LineUnit

#: From this size on tree, timeline, tabs and detail stand beside one another.
WIDE, HIGH = 120, 30
TREE_WIDTH = 40
DETAIL_WIDTH = 42
TABS: Final = ("summary", "table", "problems")
#: Panes that lie over others where one fills the screen: Esc closes them first.
OVER: Final = ("tree", "detail")
#: A width or height as Textual takes it: cells, or a share of what is left.
Length = int | str


class Sizes(Struct, frozen=True):
    """Height of the timeline, widths of tree and detail."""

    timeline: Length
    tree: Length
    detail: Length


class Layout(Struct):
    """What was chosen to show; goes on with the next capture.

    Attributes:
        tab: The tab that shows.
        maximised: The pane that fills the screen; empty: none.
        opened_from: What filled the screen, and what had the keys, before one of ``OVER`` was opened.
        tree_wanted: Whether the tree shows where there is room.
        detail_wanted: Whether the detail does; None: while something is selected.
        rows_chosen: Whether a key chose what a line of the timeline is.
        rows_of_all: What it is of all units, where one unit alone shows its engines.
        small: Whether the screen has no room for panes beside one another.
    """

    tab: str = "summary"
    maximised: str = ""
    opened_from: tuple[str, str] = ("", "")
    tree_wanted: bool = True
    detail_wanted: bool | None = None
    rows_chosen: bool = False
    rows_of_all: LineUnit = "engines"
    small: bool = False

    def fit(self, width: int, height: int) -> bool:
        """Takes the size of the screen; whether panes now stand otherwise."""
        small = width < WIDE or height < HIGH
        changed, self.small = small != self.small, small
        return changed

    def shown(self, selected: bool) -> dict[str, bool]:
        """Which panes show, by name; ``selected``: whether there is something to tell in detail."""
        if self.maximised:
            return {name: name == self.maximised for name in ("tree", "timeline", "detail", *TABS)}
        room = not self.small
        detail = selected if self.detail_wanted is None else self.detail_wanted
        return {
            "tree": room and self.tree_wanted, "timeline": True, "detail": room and detail,
            **{name: name == self.tab for name in TABS},
        }  # fmt: skip

    def sizes(self, width: int, height: int, timeline: int) -> Sizes:
        """How large panes are on a screen of some size; ``timeline``: lines that it would fill."""
        if self.maximised:
            return Sizes("1fr", "1fr", "1fr")
        frame = 1 if self.small else 2
        body = height - 2
        share = body - 8 if self.small else body * 55 // 100
        return Sizes(
            max(min(timeline + frame, share), 3 + frame) if body > 8 else "1fr",
            TREE_WIDTH,
            min(max(DETAIL_WIDTH, (width - TREE_WIDTH) * 38 // 100), 64),
        )

    def maximise(self, name: str, focused: str) -> None:
        """Lets a pane fill the screen (empty: none), opened from where the keys are."""
        if name in OVER and self.maximised not in OVER:
            self.opened_from = self.maximised, focused
        self.maximised = name
        if name in TABS:
            self.tab = name

    # what a line of the timeline is

    def rows_fitting(self, state: DisplayState) -> LineUnit:
        """Engines, or cores where all of them are to fit beside other panes; once a key chose as that said."""
        if self.rows_chosen:
            return state.line_unit
        return "cores" if self.small and not self.maximised and state.scope.everything else "engines"

    def rows_scoped(self, old: DisplayState, new: DisplayState) -> DisplayState:
        """One core shows its engines; all cores again show what they did, as far as that was chosen by a key."""
        if not self.rows_chosen or new.scope.everything == old.scope.everything:
            return new
        if new.scope.everything:
            return replace(new, line_unit=self.rows_of_all)
        self.rows_of_all = old.line_unit
        return replace(new, line_unit="engines")
