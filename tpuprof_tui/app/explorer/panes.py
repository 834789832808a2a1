"""The panes of the explorer: the state that they show, which are visible and how large; titles, focus; its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tpuprof_tui.analysis.events import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, Mask, masked_in_table, masked_in_time
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, LineUnit
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import EMPTY_CAPTURE

from ..overlays.overlay import JumpScreen
from ..panes.detail import DetailPane
from ..panes.problems import ProblemsPane
from ..panes.prompt import Hint, Prompt
from ..panes.summary.summary import SummaryPane
from ..panes.table import EventTable
from ..panes.timeline.timeline import TimelinePane
from ..panes.tree import GroupTree
from ..settings.actions import ActionTable
from ..shell.messages import Background

#: Result of a command: a fault, a function to call after the focus is back in the pane, or None (done).
CommandResult = Hint | Callable[[], object] | None
#: Command handlers by command id; each takes the argument text.
CommandTable = Mapping[str, Callable[[str], CommandResult]]
#: Message of actions that need a selection.
NOTHING_SELECTED = "Nothing selected: Enter in the timeline or a row of the table selects."


def fault(text: str, column: int = -1) -> Hint:
    """Hint that rejects the typed text; ``column`` is the offset of the fault in it, -1 if unknown."""
    return Hint(text, column, fault=True)


class Store:
    """Holds the session and the display state that all panes show.

    ``adjust`` returns the state to take, from the current and the requested one; ``changed`` gets the previous one.
    Changes after ``closed`` (late answers of overlays) are ignored.
    """

    def __init__(
        self, session: Session, state: DisplayState, adjust: Callable[[DisplayState, DisplayState], DisplayState],
        changed: Callable[[DisplayState], None],
    ) -> None:  # fmt: skip
        self.session = session
        self.state = state
        self.closed = False
        self._adjust = adjust
        self._changed = changed

    def change(self, state: DisplayState) -> None:
        """Sets the state and notifies, if it differs."""
        state = self._adjust(self.state, state)
        if state != self.state and not self.closed:
            old, self.state = self.state, state
            self._changed(old)


class ExplorerPart:
    """A part of the explorer."""

    def __init__(self, manager: PaneManager, background: Background) -> None:
        self.actions: ActionTable = {}  #: Handlers of key actions of the explorer, by the last part of their id
        self.requests: ActionTable = {}  #: Handlers of requests of panes, by name
        self.commands: CommandTable = {}  #: Handlers of commands of the command line, by command id
        self.manager, self.background = manager, background
        self.session, self.change = manager.store.session, manager.store.change
        self.prompt, self.say, self.open_overlay = manager.bar, manager.bar.say, manager.open_overlay

    @property
    def state(self) -> DisplayState:
        """The current display state."""
        return self.manager.store.state

    # where search and next/previous continue from: a row of the table if it is focused, else a time

    @property
    def in_table(self) -> bool:
        """Whether to go in the order of the table; else in order of time."""
        return self.manager.panes.table.display and self.prompt.behind is self.manager.panes.table

    @property
    def row(self) -> int:
        """Number of the event under the table's cursor; -1 if the table is empty."""
        rows = self.manager.panes.table.rows
        return rows.number if len(rows.order) else -1

    def hits_of(self) -> Callable[[Mask], Hits]:
        """Returns a thread-safe function from a mask by event number to its hits in the current order."""
        session, order = self.session, self.manager.panes.table.rows.order
        if self.in_table:
            return lambda mask: masked_in_table(mask, order)
        state = replace(self.state, in_window=False)
        return lambda mask: masked_in_time(session, mask, numbers_shown(session, state))

    def current(self) -> tuple[int, int]:
        """Current position: its sort key (row of the table, or time in ns) and event number (-1: none)."""
        state, session = self.state, self.session
        if self.in_table:
            return self.manager.panes.table.rows.position, self.row
        if state.selection.row < 0:
            return state.cursor, -1
        start, _ = session.span_of(state.selection.lane, state.selection.row)
        return start, session.number(state.selection.lane, state.selection.row)

    def pending_hint(self) -> Hint | None:
        """The hint to show until a result arrives: the last one, unless it is a fault of an older text."""
        hint = self.prompt.hint
        return None if hint is not None and hint.fault and not self.background.small else hint


#: Caption of the tree's figures; unlike timeline and summary they ignore window, range and filter.
TREE_FIGURES: Final = "util, busy, count of whole capture"
#: Caption of the tree's figures in a comparison.
BOTH_FIGURES: Final = "busy: base, this, difference"
TAB_TITLES: Final = {"summary": "3 Summary", "table": "2 Table", "problems": "4 Problems"}
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


#: Lanes and counters of one unit that a small screen has room for.
FEW_LANES: Final = 8


class PaneLayout(Struct):
    """The user's layout choices; kept when another capture is opened."""

    tab: str = "summary"  #: The active tab
    maximised: str = ""  #: The maximised pane; empty: none
    #: The maximised and the focused pane before one of ``OVERLAID_PANES`` was opened.
    opened_from: tuple[str, str] = ("", "")
    tree_wanted: bool = True  #: Whether the tree is shown if there is room
    #: Whether the detail is shown if there is room; None: only while something is selected.
    detail_wanted: bool | None = None
    rows_chosen: bool = False  #: Whether the user chose the rows of the timeline (lanes or units) with a key
    #: Rows to restore for the scope of all units, after one unit alone has shown its lanes.
    rows_of_all: LineUnit = "lanes"
    small: bool = False  #: Whether the screen is too small for panes side by side

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
        """Rows of the timeline: as chosen by the user, else units on a small screen in full scope, else lanes.

        ``lanes``: number of lanes and counters if there is one unit; few fit a small screen too.
        """
        if self.rows_chosen:
            return state.line_unit
        small = self.small and not self.maximised and (lanes is None or lanes > FEW_LANES)
        return "units" if small and state.scope.everything else "lanes"

    def adjust_rows(self, old: DisplayState, new: DisplayState) -> DisplayState:
        """Adjusts rows chosen by key when the scope changes: one unit shows lanes, all units what they had before."""
        if not self.rows_chosen or new.scope.everything == old.scope.everything:
            return new
        if new.scope.everything:
            return replace(new, line_unit=self.rows_of_all)
        self.rows_of_all = old.line_unit
        return replace(new, line_unit="lanes")


class Panes(Struct, frozen=True):
    """All panes; each field has the name of the widget's id."""

    tree: GroupTree
    timeline: TimelinePane
    summary: SummaryPane
    table: EventTable
    problems: ProblemsPane
    detail: DetailPane

    def named(self, name: str) -> Widget:
        """Returns the pane of that name."""
        pane: Widget = getattr(self, name)
        return pane


class PaneManager:
    """Applies the layout to the panes and their titles; its actions change the layout.

    ``boxes``: container of timeline, tabs and detail; container of tabs and detail.
    """

    def __init__(
        self, store: Store, layout: PaneLayout, panes: Panes, boxes: tuple[Widget, Widget], bar: Prompt,
        size: Callable[[], Size], focused: Callable[[], Widget | None], open_overlay: Callable[..., object],
    ) -> None:  # fmt: skip
        self.store = store
        self.layout = layout
        self.panes = panes
        self.bar = bar
        self._middle, self._lower = boxes
        self._size = size
        self._focused = focused
        self.open_overlay = open_overlay
        self._titles: dict[tuple[str, str], str] = {}
        self.actions: ActionTable = {
            **{name: partial(self.go, name) for name in ("timeline", *TABS)},
            "next-pane": partial(self._cycle, 1), "previous-pane": partial(self._cycle, -1),
            "tree": partial(self._toggle, "tree"), "detail": self._toggle_detail,
            "maximise": self._toggle_maximised, "jump": self._jump,
        }  # fmt: skip

        self.requests: ActionTable = {"titles": self.show_titles, "show-detail": self.show_detail}

    @property
    def focused(self) -> str:
        """Id of the focused widget; empty if nothing is focused or it has no id."""
        focused = self._focused()
        return "" if focused is None else focused.id or ""

    @property
    def _selected(self) -> bool:
        return self.store.state.selection.has_detail

    def all_attached(self) -> bool:
        """Whether all panes are attached; false if the screen was replaced or the app quit while they were mounted."""
        return all(pane.is_attached for pane in astuple(self.panes))

    # showing

    def place(self, size: Size) -> None:
        """Sets visibility and size of all panes for a screen of this size."""
        panes = self.panes
        sizes = self.layout.sizes(*size, panes.timeline.wanted_height())
        panes.timeline.styles.height = sizes.timeline
        panes.tree.styles.width = sizes.tree
        panes.detail.styles.width = sizes.detail
        shown = self.layout.shown(self._selected)
        for name, display in shown.items():
            self.panes.named(name).display = display
        self._middle.display = self.layout.maximised != "tree"
        self._lower.display = any(shown[name] for name in (*TABS, "detail"))

    def arrange(self, size: Size | None = None) -> None:
        """Lays the panes out again after a change of size, state or layout, and moves the focus off hidden panes."""
        panes, layout, state = self.panes, self.layout, self.store.state
        profile = self.store.session.profile
        lanes = len(profile.lanes) + len(profile.counters)
        rows = layout.rows_fitting(state, lanes if len(profile.groups.units) == 1 else None)
        if state.line_unit != rows:
            self.store.change(replace(state, line_unit=rows))
        self.place(size or self._size())
        panes.table.activate(panes.table.display)
        panes.summary.activate(panes.summary.display)
        self.show_titles()
        focused = self.focused
        if self._focused() is None or (focused in panes.__struct_fields__ and not panes.named(focused).display):
            self.focus(layout.maximised or "timeline")

    def show_detail(self) -> None:
        """Shows the detail of the selection; says so if nothing is selected."""
        session = self.store.session
        if not self._selected:
            text = "Nothing runs at the cursor: . and , go to the next and previous {event}."
            self.bar.say(session.say(text if session.profile.event_count else EMPTY_CAPTURE))
        elif self.layout.small:
            self.maximise("detail")
        else:
            self._set_detail(True)

    def _set_detail(self, visible: bool) -> None:
        self.layout.detail_wanted = visible
        self.arrange()

    def show_titles(self) -> None:
        """Sets the titles: the tabs with the visible one marked and its contents, the tree, and the detail."""
        panes, layout = self.panes, self.layout
        dim = "dim" if panes.table.palette.colour else ""
        contents = {"summary": panes.summary.title_text, "table": panes.table.title_text}.get(layout.tab, str)()
        tabs = Content("").join(self._tab(name, dim) for name in TABS)
        if layout.small and contents:
            tabs += Content.styled(f" {contents}", dim)
        self._put_title(layout.tab, "border_title", tabs)
        self._put_title(layout.tab, "border_subtitle", Content(contents))
        self.bar.position_text = panes.table.position_text() if panes.table.display else ""
        passing = f"  &{clean(panes.tree.filter)}" if panes.tree.filter else ""
        caption = BOTH_FIGURES if panes.tree.shows_both else TREE_FIGURES
        figures = f"  {caption}" if layout.small else ""
        self._put_title("tree", "border_title", Content(f"{self.store.session.say('{Units}')} (t){passing}{figures}"))
        self._put_title("tree", "border_subtitle", Content(caption))
        self._put_title("detail", "border_title", Content("Detail (i)"))

    def _tab(self, name: str, dim: str) -> Content:
        """Title of a tab; a click on it does the same as its key."""
        problems = len(self.store.session.profile.problems)
        title = TAB_TITLES[name] + (f" ({problems})" if name == "problems" and problems else "")
        chosen = name == self.layout.tab
        style = "bold" if chosen else dim
        return Content.styled(f"[{title}]" if chosen else f" {title} ", f"{style} @click=screen.do({name!r})".lstrip())

    def _put_title(self, pane: str, attribute: str, title: Content) -> None:
        """Sets a title if it has changed: each assignment repaints the whole pane."""
        if self._titles.get((pane, attribute)) != title.plain:
            self._titles[pane, attribute] = title.plain
            setattr(self.panes.named(pane), attribute, title)

    # focus

    def focus(self, name: str) -> None:
        """Focuses a pane; the message of another one disappears."""
        if name != self.focused:
            self.bar.leave_pane()
        self.panes.named(name).focus(scroll_visible=False)

    def go(self, name: str) -> None:
        """Shows and focuses a pane; on a small screen, or if another pane is maximised, it is maximised."""
        if name in TABS:
            self.layout.tab = name
        if self.layout.small or self.layout.maximised:
            self.maximise(name)
        else:
            self.arrange()
        self.focus(name)

    def maximise(self, name: str) -> None:
        """Maximises a pane; empty: restores the normal layout."""
        self.layout.maximise(name, self.focused)
        self.arrange()
        if name:
            self.focus(name)

    def restore(self) -> None:
        """Ends maximising; if tree or detail was opened over another maximised pane, returns to that pane."""
        pane, focused = self.layout.opened_from if self.layout.maximised in OVERLAID_PANES else ("", "")
        self.maximise(pane)
        if focused and self.panes.named(focused).display:
            self.focus(focused)

    def _cycle(self, step: int) -> None:
        if self.layout.maximised:
            self.go(_stepped(["timeline", "table", "summary", "problems"], self.layout.maximised, step))
            return
        order = ["tree", "timeline", self.layout.tab, "detail"]
        self.focus(_stepped([name for name in order if self.panes.named(name).display], self.focused, step))

    def _toggle_detail(self) -> None:
        if self.focused == "table" and not self.panes.detail.display:
            # show the row under the cursor, even if another event is selected
            self.panes.table.action_select()
            return
        if self._selected or self.panes.detail.display:
            self._toggle("detail")
            return
        self.panes.timeline.action_select()
        if not self.layout.small:
            self._set_detail(True)

    def _toggle(self, name: str) -> None:
        shown = self.panes.named(name).display
        if shown and self.layout.maximised:
            self.restore()
        elif self.layout.small or self.layout.maximised:
            self.maximise(name)
        else:
            if name == "tree":
                self.layout.tree_wanted = not shown
            else:
                self.layout.detail_wanted = not shown
            self.arrange()
            if not shown:
                self.focus(name)

    def _toggle_maximised(self) -> None:
        if self.layout.maximised:
            self.restore()
        elif self.focused:
            self.maximise(self.focused)

    def _jump(self) -> None:
        shown = [pane for pane in astuple(self.panes) if pane.display and pane.region.area]

        def chosen(name: str | None) -> None:
            if name:
                self.focus(name)

        self.open_overlay(JumpScreen(shown, self.panes.table.palette), chosen)


def _stepped(order: list[str], current: str, step: int) -> str:
    return order[(order.index(current) + step) % len(order) if current in order else 0]
