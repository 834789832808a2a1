"""Navigation: windows, scopes and views; jumps from one event to another; marks and notes; the command of a place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec.structs import replace
from textual import events

from tpuprof_tui.analysis.compare.side_by_side import Differences
from tpuprof_tui.analysis.critical_path import path_lane
from tpuprof_tui.analysis.evidence.problem_rows import problem_rows, problem_text
from tpuprof_tui.analysis.links.dependencies import (
    BY_TIME,
    Dependencies,
    Dependency,
    cached_dependencies,
    dependencies_of,
    likely_release,
)
from tpuprof_tui.analysis.links.waits import barrier_of
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.moves import (
    default_span,
    go_to,
    go_to_mark,
    marks_text,
    nearest_start,
    parse_time,
    parse_window,
    place_of,
    place_words,
    report_words,
    select_event,
    selected_span,
    toggle_mark,
    toggle_span,
)
from tpuprof_tui.analysis.selecting.notes import Notes, set_note_text, write_notes
from tpuprof_tui.analysis.selecting.search import Hits
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.analysis.selecting.time_scale import Measure, measure_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.formats.parsing import TypedError
from tpuprof_tui.formats.units import GUESS, gap_text, time_text
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.views.differences import cached_differences, difference_text, differences_of

from ..panes.lines import LinesView
from ..panes.prompt import Hint
from ..panes.table import EventTable
from ..panes.timeline.timeline import TimelinePane
from ..settings.actions import listed, views_named
from ..shell.messages import Background
from .panes import NOTHING_SELECTED, OVERLAID_PANES, CommandResult, ExplorerPart, PaneManager, fault

#: Longest number accepted, in digits: more than any number of events has.
MAX_DIGITS: Final = 12


class Navigation(ExplorerPart):
    """Actions and commands that change the window, the scope or the view."""

    def __init__(self, manager: PaneManager, background: Background) -> None:
        super().__init__(manager, background)
        self.actions = {
            "fit": self._fit, "focus-selection": self._focus_selection, "isolate": self._isolate,
            "pause": manager.panes.summary.toggle_pause,
        }  # fmt: skip
        self.commands = {
            "go": self._go, "window": self._window, "core": self._unit, "view": self._view, "move": self._move
        }  # fmt: skip

    # actions

    def _fit(self) -> None:
        self.change(self.state.fitted())

    def _focus_selection(self) -> None:
        """Scrolls the selection into view (restoring the timeline if it is hidden); if it already is, zooms to it.

        Without a selection, zooms to the range.
        """
        state, timeline = self.state, self.manager.panes.timeline
        cells = timeline.lanes.cells
        span = selected_span(state, self.session)
        if state.range is not None and span is None:
            start, end = state.range
            self.change(state.windowed(start, max(end - start, cells)))
            return
        if span is None:
            self.say(NOTHING_SELECTED)
            return
        if not timeline.display:
            self.manager.maximise("")
        start, end = span
        state = self.state
        new_state = state.showing(start, end).at(start)
        if new_state == state:
            room = max((end - start) * 2, cells)
            new_state = state.windowed((start + end) // 2 - room // 2, room).at((start + end) // 2)
        self.change(new_state)

    def _isolate(self) -> None:
        """Toggles the scope between the selected unit and all; in the summary, narrows to the line at the cursor."""
        state, selection = self.state, self.state.selection
        summary = self.manager.panes.summary
        if summary.has_focus and summary.has_cursor:
            summary.narrow()
        elif not state.scope.everything:
            self.change(replace(state, scope=Scope()))
        elif selection.group >= 0:
            self.change(replace(state, scope=Scope(selection.group)))
        elif selection.lane >= 0:
            self.change(replace(state, scope=Scope(-1, selection.lane)))
        else:
            message = "No {unit} selected: j and k in the timeline or the tree (t) select one."
            self.say(self.session.say(message))

    def back(self) -> bool:
        """Undoes one thing (search, filter, range, selection, scope ...); returns False if nothing is left."""
        state, manager = self.state, self.manager
        tree, summary = manager.panes.tree, manager.panes.summary
        if summary.answers.chosen and summary.has_focus:
            summary.choose("")
        elif tree.filter and tree.has_focus:
            tree.set_filter("")
        elif manager.layout.maximised in OVERLAID_PANES:
            manager.restore()
        elif state.search or state.filter:
            # the search first: it is made within the filter
            self.change(replace(state, search="") if state.search else replace(state, filter=""))
        elif state.range is not None or state.anchor is not None:
            self.change(replace(state, range=None, anchor=None))
        elif manager.layout.maximised:
            manager.maximise("")
            manager.focus("timeline")
        elif state.selection.row >= 0:
            manager.layout.detail_wanted = None
            self.change(replace(state, selection=replace(state.selection, row=-1)))
        elif not state.scope.everything:
            self.change(replace(state, scope=Scope()))
        elif state.selection != SelectedItem():
            self.change(replace(state, selection=SelectedItem()))
        else:
            return False
        return True

    # commands

    def _go(self, text: str) -> CommandResult:
        state = self.state
        try:
            self.change(go_to(state, parse_time(text, state, self.session.profile.device)))
        except TypedError as error:
            return fault(str(error))
        return None

    def _window(self, text: str) -> CommandResult:
        try:
            start, end = parse_window(text, self.state, self.session.profile.device)
        except TypedError as error:
            return fault(str(error))
        self.change(self.state.windowed(start, end - start))
        return None

    def _unit(self, text: str) -> CommandResult:
        state, session = self.state, self.session
        figures = Query(session).headline
        ends = {"least": figures.idlest, "most": figures.busiest}
        if text in ("", "all"):
            self.change(replace(state, selection=SelectedItem(), scope=Scope()))
            return None
        chosen = ends.get(text)
        groups = session.profile.groups
        unit = chosen.unit if chosen is not None else groups.numbered(int(text)) if text.isdecimal() else -1
        if unit < 0:
            numbers = listed(map(str, groups.numbers), 16)
            return fault(session.profile.vocabulary.say("{units} are {known}, least, most", known=numbers))
        scope = Scope() if state.scope.everything else Scope(unit)
        self.change(replace(state, selection=SelectedItem(unit), scope=scope))
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
        pane = self.prompt.previous_focus
        if isinstance(pane, EventTable):
            pane.go_to(pane.rows.position + lines)
        elif isinstance(pane, TimelinePane):
            pane.step_events(lines)
        elif isinstance(pane, LinesView):
            pane.move(lines)


class Jumps(ExplorerPart):
    """Actions that select another event: releasers and waiters, problems, differences; and the critical path."""

    def __init__(self, manager: PaneManager, background: Background) -> None:
        super().__init__(manager, background)
        self.commands = {"path": self._path}
        self.actions = {
            "released-by": partial(self._follow, Dependencies.waits_for, lambda each: each.releaser,
                                   "No event is known that released"),
            "releases": partial(self._follow, Dependencies.releases, lambda each: each.waiter,
                                "No event is known that waited for"),
            "next-problem": partial(self._step_problems, 1), "previous-problem": partial(self._step_problems, -1),
            "next-difference": partial(self.if_compared, partial(self._step_differences, 1)),
            "previous-difference": partial(self.if_compared, partial(self._step_differences, -1)),
        }  # fmt: skip

    # dependencies

    def _path(self, text: str) -> CommandResult:
        state, session = self.state, self.session
        if state.critical_path:
            self.change(replace(state, critical_path=False))
            return None
        if not session.profile.timed:
            return fault(session.say("there are no times of {events}"))
        self.background.compute(
            "path",
            lambda: path_lane(session),
            lambda _: self.change(replace(self.state, critical_path=True)),
        )
        return None

    def _follow(
        self, find: Callable[[Dependencies, int, int], tuple[Dependency, ...]],
        end: Callable[[Dependency], tuple[int, int]], nothing: str,
    ) -> None:  # fmt: skip
        """Selects the other end of the dependency with the least delay; ``nothing`` begins the message without one."""
        session, selection = self.session, self.state.selection
        lane, row = selection.lane, selection.row
        if row < 0:
            self.say(NOTHING_SELECTED)
            return

        def take(dependencies: Dependencies) -> None:
            found = find(dependencies, lane, row)
            if not found and find is Dependencies.releases:
                # an event nested in this one may have started something
                found = dependencies.started_in(session.profile.lanes, lane, row)[0]
            if not found and find is Dependencies.waits_for:
                likely = likely_release(session, lane, row)
                found = () if likely is None else (likely,)
            if not len(dependencies) and not found:
                profile = session.profile
                capability = profile.vocabulary.capability(DETAIL)
                needs = f" (that needs {capability.needs})" if capability and not profile.has(DETAIL) else ""
                message = profile.vocabulary.phrase("no_links", "This profile does not record what waited for what")
                self.say(f"{message}{needs}.")
            elif not found:
                self.say(f"{nothing} {self._event_name(lane, row)}.")
            elif self.state.selection == selection:
                # the dependency with the least slack is the one that held the waiter up
                dependency = min(found, key=lambda each: each.slack_ns)
                self.change(select_event(session, self.state, *end(dependency)))
                self.say(self._dependency_text(dependency, len(found)))

        known = cached_dependencies(session) is not None
        self.background.compute("dependencies", partial(dependencies_of, session), take, at_once=known)

    def _dependency_text(self, dependency: Dependency, count: int) -> str:
        more = f"; the closest of {count:,}" if count > 1 else ""
        waiter, releaser = self._event_name(*dependency.waiter), self._event_name(*dependency.releaser)
        guess = GUESS if dependency.guessed else ""
        barrier = barrier_of(self.session, dependency.releaser) if dependency.ends else None
        late = f"; it came {guess}{time_text(int(barrier.late_ns[0]))} after the others" if barrier else ""
        between = gap_text(dependency.slack_ns, "between")
        if dependency.kind == BY_TIME:
            return f"{guess}{releaser} ended last before {waiter}, {between}; what it waited for is not recorded"
        if dependency.launched:
            return f"{guess}{waiter} was launched by {releaser}, {between}{more}"
        return f"{guess}{waiter} waited for {releaser} by {dependency.kind}, {between}{late}{more}"

    def _event_name(self, lane_number: int, row: int) -> str:
        session = self.session
        lane = session.profile.lanes[lane_number]
        name = text_of(session.profile, lane, "name", row) or session.say("{event} {row:,}", row=row)
        return f"{name} ({clean(session.profile.title_of(lane))})"

    # problems

    def _step_problems(self, steps: int) -> None:
        session, problems = self.session, self.manager.panes.problems
        if problems.has_focus or not len(problem_rows(session)):
            problems.step(steps)
            return
        hits_of = self.hits_of()

        def find() -> Hits:
            found = problem_rows(session)
            return found.first_of_each_run(hits_of(found.mask(session.profile.event_count)))

        def take(hits: Hits) -> None:
            if not len(hits):
                # all of them are outside the scope or the filter
                problems.step(steps)
                return
            state, current = self.state, self.current()
            if not self.in_table and state.selection.row < 0:
                # without a selection, search from the edge of the visible window
                current = (state.start, -1) if steps > 0 else (state.end, -1)
            number, position, note = self._select(hits, steps, current)
            found = problem_rows(session)
            problems.put(int(found.problem[found.index(number)]))
            rest = sum(problem.rows is None for problem in problems.problems) if note else 0
            more = session.say("; {rest:,} more, about no single {event}: 4 lists them", rest=rest) if rest else ""
            self.say(f"{position}{problem_text(session, number)}{note.rstrip('.')}{more}{'.' if note else ''}")

        self.background.compute("problems", find, take)

    # differences

    def if_compared(self, act: Callable[[], object]) -> None:
        """Runs an action if a baseline is open; otherwise says how to open one."""
        if self.session.baseline is None:
            self.say("Nothing to compare with: tpuprof OTHER --against BASE opens a comparison.")
        else:
            act()

    def _step_differences(self, steps: int) -> None:
        session = self.session

        def take(differences: Differences) -> None:
            hits = self.hits_of()(differences.differs)
            if not len(hits):
                self.say("No difference beyond noise in what is shown.")
                return
            number, position, note = self._select(hits, steps, self.current())
            self.say(f"{position}{difference_text(session, differences, number)}{note}")

        known = cached_differences(session) is not None
        self.background.compute("differences", partial(differences_of, session), take, at_once=known)

    def _select(self, hits: Hits, steps: int, current: tuple[int, int]) -> tuple[int, str, str]:
        """Selects the next hit from ``current``, with wraparound.

        Returns:
            Number of the event, its position as text (``3/17``), and a note if the search wrapped around, else empty.
        """
        session = self.session
        index, wrapped = hits.stepped(*current, steps)
        number = int(hits.numbers[index])
        self.change(select_event(session, self.state, *session.locate(number)))
        note = f"  From the {'start' if steps > 0 else 'end'} again." if wrapped else ""
        return number, f"{index + 1:,}/{len(hits):,}  ", note


class Marks(ExplorerPart):
    """Sets marks and goes to them; the key after the action is the letter."""

    def __init__(self, manager: PaneManager, background: Background) -> None:
        super().__init__(manager, background)
        #: Handler of the next letter; None: keys have their usual meaning.
        self._letter_handler: Callable[[str], None] | None = None
        self.actions = {"mark": self.mark, "go-to-mark": self.go_to_mark, "keep-span": self.keep_span}

    def mark(self) -> None:
        """Marks the cursor's time, or removes that mark, with the next letter."""
        self._letter_handler = self._mark
        self.say("Mark with a letter ...")

    def go_to_mark(self) -> None:
        """Goes to the mark of the next letter."""
        state = self.state
        if not state.marks and not state.spans:
            self.say("No marks yet: m and a letter mark the cursor's time.")
            return
        self._letter_handler = self._go_to_mark
        self.say(f"Go to mark: {marks_text(state, self._measure)}")

    def keep_span(self) -> None:
        """Keeps the range, else the selection's span, else the window under the next letter."""
        self._letter_handler = self._keep_span
        start, end = default_span(self.state, self.session)
        self.say(f"Keep {self._span_text(start, end)} with a letter ...")

    def take(self, event: events.Key) -> None:
        """Takes a key as the letter if an action is waiting for one."""
        handler, self._letter_handler = self._letter_handler, None
        if handler is None:
            return
        event.stop()
        letter = event.character or ""
        if letter.isascii() and letter.isalnum():
            handler(letter)
        else:
            self.say("Marks are letters or digits.")

    def stop_waiting(self) -> None:
        """Stops waiting for a letter."""
        self._letter_handler = None

    @property
    def _measure(self) -> Measure:
        return measure_of(self.session.profile.device, self.state.scale)

    def _mark(self, letter: str) -> None:
        state, session = self.state, self.session
        if self.in_table and self.row >= 0:
            # the row at the cursor counts, whether it is selected or not
            state = state.at(session.span_of(*session.locate(self.row))[0])
        removed = (letter, state.cursor) in state.marks
        self.say(f"Mark {letter} {'removed' if removed else 'at ' + self._measure.exact(state.cursor)}")
        self.change(toggle_mark(state, letter))

    def _keep_span(self, letter: str) -> None:
        state = self.state
        start, end = default_span(state, self.session)
        removed = (letter, start, end) in state.spans
        self.say(f"Span {letter} {'removed' if removed else 'is ' + self._span_text(start, end)}")
        self.change(toggle_span(state, letter, start, end))

    def _span_text(self, start: int, end: int) -> str:
        return f"the span of {self._measure.length(end - start)} from {self._measure.exact(start)}"

    def _go_to_mark(self, letter: str) -> None:
        state = go_to_mark(self.state, letter)
        if state is None:
            self.say(f"No mark {letter}: there are {marks_text(self.state, self._measure)}.")
            return
        self.change(state)
        self.say(f"At mark {letter}, {self._measure.exact(state.cursor)}.")
        if self.in_table and self.row >= 0:
            # the table's cursor is always on a row: take the one that starts nearest
            session = self.session
            place = session.locate(nearest_start(session, self.manager.panes.table.rows.order, state.cursor))
            self.change(replace(select_event(session, state, *place), range=state.range))


class NoteSaver(ExplorerPart):
    """Writes notes to a file; without a path they are lost when the screen closes."""

    def __init__(
        self, manager: PaneManager, background: Background, copy: Callable[[str, str], object], path: Path | None
    ) -> None:
        super().__init__(manager, background)
        self.copy = copy
        self.path = path
        self._written = Notes.of(self.state)
        self._writing = Lock()
        self.commands = {"note": self._note, "place": self._place}
        self.actions = {"copy-command": self._copy_command}

    def changed(self, old: DisplayState) -> None:
        """Saves the notes if the state change affected them; a filter is saved only along with marks or spans."""
        notes = Notes.of(self.state)
        if self.path is not None and notes != Notes.of(old) and (notes.any or self._written.any):
            self._written = notes
            self.background.compute("notes", self._write, self._report_error)

    def _write(self) -> str:
        with self._writing:
            try:
                if self.path is not None:
                    write_notes(self.path, self._written)
            except WriteError as error:
                return error.message
        return ""

    def _report_error(self, reason: str) -> None:
        if reason:
            self.path = None
            self.say(f"Notes are kept until tpuprof ends: {reason} --notes FILE keeps them elsewhere.")

    def _note(self, text: str) -> CommandResult:
        letter, _, words = text.strip().partition(" ")
        state = self.state
        letters = sorted([*dict(state.marks), *(letter for letter, _, _ in state.spans)])
        if letter not in letters:
            return fault(f"the letter of a mark or span, then the text; there are {', '.join(letters) or 'none'}")
        self.change(set_note_text(state, letter, words.strip()))
        return lambda: self.say(f"Note of {letter}: {words.strip()}" if words.strip() else f"No note of {letter}.")

    def _place(self, text: str) -> CommandResult:
        return self._copy_command

    def _copy_command(self) -> None:
        session, state, summary = self.session, self.state, self.manager.panes.summary
        times = Query.of_state(session, state.figures_state, state.scope).range
        path, place = session.profile.path, place_of(session, state, times, summary.answers.chosen)
        against = session.baseline.profile.path if session.baseline is not None else ""
        of_figures = self.prompt.behind is summary
        words = report_words(path, place) if of_figures else place_words(path, place, session.profile.notes, against)
        self.copy(words, "command")
