"""Navigation: focus the selection, isolate a core, step back, and commands for times, cores and views."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.navigation import go_to, parse_time, parse_window, selected_span
from tpuprof_tui.analysis.selecting.state import Scope, Selection
from tpuprof_tui.formats.parsing import TypedError

from ..panes.lines import LinesView
from ..panes.prompt import Hint
from ..panes.table import InstructionTable
from ..panes.timeline.timeline import Timeline
from ..settings.actions import ActionTable
from ..settings.commands import listed, views_named
from .command_line import MAX_DIGITS, CommandResult, CommandTable, fault
from .jumps import NOTHING_SELECTED
from .layout import OVERLAID_PANES
from .services import Services


class Navigation:
    """Actions and commands that change the window, the scope or the view."""

    def __init__(self, services: Services) -> None:
        self.store, self.manager, self.say = services.store, services.manager, services.say
        self.prompting = services.prompting
        self.actions: ActionTable = {
            "fit": self._fit, "focus-selection": self._focus_selection, "isolate": self._isolate, "pause": self._pause
        }  # fmt: skip
        self.commands: CommandTable = {
            "go": self._go, "window": self._window, "core": self._core, "view": self._view, "move": self._move
        }  # fmt: skip

    # actions

    def _fit(self) -> None:
        """Shows the whole time, without a range."""
        self.store.change(self.store.state.fitted())

    def _focus_selection(self) -> None:
        """Scrolls the selection into view (restoring the timeline if it is hidden); if it already is, zooms to it.

        Without a selection, zooms to the range.
        """
        state, timeline = self.store.state, self.manager.panes.timeline
        cells = timeline.lanes.cells
        span = selected_span(state, self.store.session)
        if state.range is not None and span is None:
            start, end = state.range
            self.store.change(state.windowed(start, max(end - start, cells)))
            return
        if span is None:
            self.say(NOTHING_SELECTED)
            return
        if not timeline.display:
            self.manager.maximise("")
        start, end = span
        state = self.store.state
        new_state = state.showing(start, end).at(start)
        if new_state == state:
            room = max((end - start) * 2, cells)
            new_state = state.windowed((start + end) // 2 - room // 2, room).at((start + end) // 2)
        self.store.change(new_state)

    def _isolate(self) -> None:
        """Toggles the scope between the selected core and all; in the summary, narrows to the line at the cursor."""
        state, selection = self.store.state, self.store.state.selection
        summary = self.manager.panes.summary
        if summary.has_focus and summary.has_cursor:
            summary.narrow()
        elif not state.scope.everything:
            self.store.change(replace(state, scope=Scope()))
        elif selection.group >= 0:
            self.store.change(replace(state, scope=Scope(selection.group)))
        elif selection.lane >= 0:
            self.store.change(replace(state, scope=Scope(-1, selection.lane)))
        else:
            message = "No {unit} selected: j and k in the timeline or the tree (t) select one."
            self.say(self.store.session.say(message))

    def _pause(self) -> None:
        """Freezes the figures of the summary, or lets them follow the window again."""
        summary = self.manager.panes.summary
        summary.pause(not summary.paused)

    def back(self) -> bool:
        """Undoes one thing (search, filter, range, selection, scope ...); returns False if nothing is left."""
        state, manager = self.store.state, self.manager
        tree, summary = manager.panes.tree, manager.panes.summary
        if summary.answers.chosen and summary.has_focus:
            summary.choose("")
        elif tree.filter and tree.has_focus:
            tree.set_filter("")
        elif manager.layout.maximised in OVERLAID_PANES:
            manager.restore()
        elif state.search or state.filter:
            # the search first: it is made within the filter
            self.store.change(replace(state, search="") if state.search else replace(state, filter=""))
        elif state.range is not None or state.anchor is not None:
            self.store.change(replace(state, range=None, anchor=None))
        elif manager.layout.maximised:
            manager.maximise("")
            manager.focus("timeline")
        elif state.selection.row >= 0:
            manager.layout.detail_wanted = None
            self.store.change(replace(state, selection=replace(state.selection, row=-1)))
        elif not state.scope.everything:
            self.store.change(replace(state, scope=Scope()))
        elif state.selection != Selection():
            self.store.change(replace(state, selection=Selection()))
        else:
            return False
        return True

    # commands

    def _go(self, text: str) -> CommandResult:
        state = self.store.state
        try:
            self.store.change(go_to(state, parse_time(text, state, self.store.session.profile.device)))
        except TypedError as error:
            return fault(str(error))
        return None

    def _window(self, text: str) -> CommandResult:
        try:
            start, end = parse_window(text, self.store.state, self.store.session.profile.device)
        except TypedError as error:
            return fault(str(error))
        self.store.change(self.store.state.windowed(start, end - start))
        return None

    def _core(self, text: str) -> CommandResult:
        state, session = self.store.state, self.store.session
        figures = Query(session).headline
        ends = {"least": figures.idlest, "most": figures.busiest}
        if text in ("", "all"):
            self.store.change(replace(state, selection=Selection(), scope=Scope()))
            return None
        chosen = ends.get(text)
        groups = session.profile.groups
        unit = chosen.unit if chosen is not None else groups.numbered(int(text)) if text.isdecimal() else -1
        if unit < 0:
            numbers = listed(map(str, groups.numbers), 16)
            return fault(session.profile.vocabulary.say("{units} are {known}, least, most", known=numbers))
        scope = Scope() if state.scope.everything else Scope(unit)
        self.store.change(replace(state, selection=Selection(unit), scope=scope))
        return None

    def show_view(self, name: str) -> None:
        """Fills the summary with a view, or says why not."""
        found = self._view(name)
        if isinstance(found, Hint):
            self.say(found.text)

    def _view(self, text: str) -> CommandResult:
        hint = self.view_hint(text)
        if hint.fault:
            return hint
        found = self._views_named(text)
        if len(found) > 1:
            return fault(f"several: {listed(found, len(found))}")
        self.manager.panes.summary.choose("".join(found))
        self.manager.go("summary")
        return None

    def view_hint(self, text: str) -> Hint:
        """Lists the views that complete a text (all for an empty text); a fault if none does."""
        names = [view.id for view in self.manager.panes.summary.answers.views]
        found = self._views_named(text) if text else names
        text = listed(found or names, len(names))
        return Hint(text, in_full=True) if found else fault(f"views are {text}")

    def _views_named(self, text: str) -> list[str]:
        answers = self.manager.panes.summary.answers
        return views_named(text, (view.id for view in answers.views), answers.session.profile.vocabulary)

    def _move(self, text: str) -> CommandResult:
        lines = text.replace(",", "")
        if not lines.lstrip("+-").isdecimal() or len(lines) > MAX_DIGITS:
            return fault("number of lines: move 10, move -10")
        return partial(self._move_lines, int(lines))

    def _move_lines(self, lines: int) -> None:
        """Moves the cursor of the pane focused before the prompt, as a count before j or k does in other tools."""
        pane = self.prompting.previous_focus
        if isinstance(pane, InstructionTable):
            pane.go_to(pane.rows.position + lines)
        elif isinstance(pane, Timeline):
            pane.step_instructions(lines)
        elif isinstance(pane, LinesView):
            pane.move(lines)
