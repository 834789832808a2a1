"""Jumps between events: along dependencies, to the next problem, to the next difference from the baseline."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from tpuprof_tui.analysis.compare.side_by_side import Differences
from tpuprof_tui.analysis.critical_path import path_lane
from tpuprof_tui.analysis.findings.problem_rows import problem_rows, problem_text
from tpuprof_tui.analysis.links.dependencies import (
    BY_TIME,
    Dependencies,
    Dependency,
    cached_dependencies,
    dependencies_of,
    likely_release,
)
from tpuprof_tui.analysis.links.waits import barrier_of
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.navigation import select_event
from tpuprof_tui.analysis.selecting.search import Hits
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import GUESS, gap_text, time_text
from tpuprof_tui.model.vocabulary import DETAIL
from tpuprof_tui.views.differences import cached_differences, difference_text, differences_of

from ..settings.actions import ActionTable
from .command_line import CommandResult, CommandTable, fault
from .services import Services

#: Message of actions that need a selection.
NOTHING_SELECTED = "Nothing selected: Enter in the timeline or a row of the table selects."


class Jumps:
    """Actions that select another event: releasers and waiters, problems, differences; and the critical path."""

    def __init__(self, services: Services) -> None:
        self.store, self.background, self.say = services.store, services.background, services.say
        self.position, self.problems = services.position, services.manager.panes.problems
        self.commands: CommandTable = {"path": self._path}
        self.actions: ActionTable = {
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
        """Toggles the lane of the critical path."""
        state, session = self.store.state, self.store.session
        if state.critical_path:
            self.store.change(replace(state, critical_path=False))
            return None
        if not session.profile.timed:
            return fault(session.say("there are no times of {events}"))
        self.background.compute(
            "path",
            lambda: path_lane(session),
            lambda _: self.store.change(replace(self.store.state, critical_path=True)),
        )
        return None

    def _follow(
        self, find: Callable[[Dependencies, int, int], tuple[Dependency, ...]],
        end: Callable[[Dependency], tuple[int, int]], nothing: str,
    ) -> None:  # fmt: skip
        """Selects the other end of the dependency with the least delay; ``nothing`` begins the message without one."""
        session, selection = self.store.session, self.store.state.selection
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
            elif self.store.state.selection == selection:
                # the dependency with the least slack is the one that held the waiter up
                dependency = min(found, key=lambda each: each.slack_ns)
                self.store.change(select_event(session, self.store.state, *end(dependency)))
                self.say(self._dependency_text(dependency, len(found)))

        known = cached_dependencies(session) is not None
        self.background.compute("dependencies", partial(dependencies_of, session), take, at_once=known)

    def _dependency_text(self, dependency: Dependency, count: int) -> str:
        more = f"; the closest of {count:,}" if count > 1 else ""
        waiter, releaser = self._event_name(*dependency.waiter), self._event_name(*dependency.releaser)
        guess = GUESS if dependency.guessed else ""
        barrier = barrier_of(self.store.session, dependency.releaser) if dependency.ends else None
        late = f"; it came {guess}{time_text(int(barrier.late_ns[0]))} after the others" if barrier else ""
        between = gap_text(dependency.slack_ns, "between")
        if dependency.kind == BY_TIME:
            return f"{guess}{releaser} ended last before {waiter}, {between}; what it waited for is not recorded"
        if dependency.launched:
            return f"{guess}{waiter} was launched by {releaser}, {between}{more}"
        return f"{guess}{waiter} waited for {releaser} by {dependency.kind}, {between}{late}{more}"

    def _event_name(self, lane_number: int, row: int) -> str:
        session = self.store.session
        lane = session.profile.lanes[lane_number]
        name = text_of(session.profile, lane, "name", row) or session.say("{event} {row:,}", row=row)
        return f"{name} ({clean(session.profile.title_of(lane))})"

    # problems

    def _step_problems(self, steps: int) -> None:
        """Selects the next event that a problem concerns; without any, moves to the next problem of the list."""
        session, problems = self.store.session, self.problems
        if problems.has_focus or not len(problem_rows(session)):
            problems.step(steps)
            return
        hits_of = self.position.hits_of()

        def find() -> Hits:
            found = problem_rows(session)
            return found.first_of_each_run(hits_of(found.mask(session.profile.instructions)))

        def take(hits: Hits) -> None:
            if not len(hits):
                # all of them are outside the scope or the filter
                problems.step(steps)
                return
            state, current = self.store.state, self.position.current()
            if not self.position.in_table and state.selection.row < 0:
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
        if self.store.session.baseline is None:
            self.say("Nothing to compare with: tpuprof OTHER --against BASE opens a comparison.")
        else:
            act()

    def _step_differences(self, steps: int) -> None:
        """Selects the next event that was added, has other operands, or whose duration differs beyond noise."""
        session = self.store.session

        def take(differences: Differences) -> None:
            hits = self.position.hits_of()(differences.differs)
            if not len(hits):
                self.say("No difference beyond noise in what is shown.")
                return
            number, position, note = self._select(hits, steps, self.position.current())
            self.say(f"{position}{difference_text(session, differences, number)}{note}")

        known = cached_differences(session) is not None
        self.background.compute("differences", partial(differences_of, session), take, at_once=known)

    def _select(self, hits: Hits, steps: int, current: tuple[int, int]) -> tuple[int, str, str]:
        """Selects the next hit from ``current``, with wraparound.

        Returns:
            Number of the event, its position as text (``3/17``), and a note if the search wrapped around, else empty.
        """
        session = self.store.session
        index, wrapped = hits.stepped(*current, steps)
        number = int(hits.numbers[index])
        self.store.change(select_event(session, self.store.state, *session.locate(number)))
        note = f"  From the {'start' if steps > 0 else 'end'} again." if wrapped else ""
        return number, f"{index + 1:,}/{len(hits):,}  ", note
