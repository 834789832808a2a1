"""Layout model: visibility and size of the panes, from the user's choices and the screen size."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState, LineUnit

#: Least screen size, in cells, for the layout with tree, timeline, tabs and detail side by side.
WIDE, HIGH = 120, 30
TREE_WIDTH = 40
DETAIL_WIDTH = 42
TABS: Final = ("summary", "table", "problems")
#: Panes that open over a maximised pane; Esc closes them first.
OVERLAID_PANES: Final = ("tree", "detail")
#: Lines above the panes: the figures of the selection, and the sentence.
HEADLINE: Final = 2
#: A Textual width or height: cells, or a fraction (``1fr``) of the space left.
Length = int | str


class Sizes(Struct, frozen=True):
    """Height of the timeline, and widths of tree and detail."""

    timeline: Length
    tree: Length
    detail: Length


#: Lanes and counters of one core that a small screen has room for.
FEW_LANES: Final = 8


class Layout(Struct):
    """The user's layout choices; kept when another capture is opened.

    Attributes:
        tab: The active tab.
        maximised: The maximised pane; empty: none.
        opened_from: The maximised and the focused pane before one of ``OVERLAID_PANES`` was opened.
        tree_wanted: Whether the tree is shown if there is room.
        detail_wanted: Whether the detail is shown if there is room; None: only while something is selected.
        rows_chosen: Whether the user chose the rows of the timeline (engines or cores) with a key.
        rows_of_all: Rows to restore for the scope of all units, after one unit alone has shown its engines.
        small: Whether the screen is too small for panes side by side.
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
        """Sets ``small`` from the screen size in cells; returns whether it changed."""
        small = width < WIDE or height < HIGH
        changed, self.small = small != self.small, small
        return changed

    def shown(self, selected: bool) -> dict[str, bool]:
        """Visibility of each pane, by name; ``selected``: whether something is selected."""
        if self.maximised:
            return {name: name == self.maximised for name in ("tree", "timeline", "detail", *TABS)}
        room = not self.small
        detail = selected if self.detail_wanted is None else self.detail_wanted
        return {
            "tree": room and self.tree_wanted, "timeline": True, "detail": room and detail,
            **{name: name == self.tab for name in TABS},
        }  # fmt: skip

    def sizes(self, width: int, height: int, timeline: int) -> Sizes:
        """Sizes of the panes on a screen of ``width`` x ``height`` cells; ``timeline``: lines the timeline wants."""
        if self.maximised:
            return Sizes("1fr", "1fr", "1fr")
        frame = 1 if self.small else 2
        body = height - HEADLINE - 1
        share = body - 8 if self.small else body * 55 // 100
        return Sizes(
            max(min(timeline + frame, share), 3 + frame) if body > 8 else "1fr",
            min(max(TREE_WIDTH, width // 5), 64),
            min(max(DETAIL_WIDTH, (width - TREE_WIDTH) * 38 // 100), 64),
        )

    def maximise(self, name: str, focused: str) -> None:
        """Maximises a pane (empty: none); ``focused`` is the pane to return to if it is one of ``OVERLAID_PANES``."""
        if name in OVERLAID_PANES and self.maximised not in OVERLAID_PANES:
            self.opened_from = self.maximised, focused
        self.maximised = name
        if name in TABS:
            self.tab = name

    # rows of the timeline

    def rows_fitting(self, state: DisplayState, lanes: int | None) -> LineUnit:
        """Rows of the timeline: as chosen by the user, else cores on a small screen in full scope, else engines.

        ``lanes``: number of lanes and counters if there is one core; few fit a small screen too.
        """
        if self.rows_chosen:
            return state.line_unit
        small = self.small and not self.maximised and (lanes is None or lanes > FEW_LANES)
        return "cores" if small and state.scope.everything else "engines"

    def adjust_rows(self, old: DisplayState, new: DisplayState) -> DisplayState:
        """Adjusts rows chosen by key when the scope changes: one core shows engines, all cores what they had before."""
        if not self.rows_chosen or new.scope.everything == old.scope.everything:
            return new
        if new.scope.everything:
            return replace(new, line_unit=self.rows_of_all)
        self.rows_of_all = old.line_unit
        return replace(new, line_unit="engines")
