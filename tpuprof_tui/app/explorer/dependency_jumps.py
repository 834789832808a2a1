"""From the selection to what released it, and to those that waited for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from tpuprof_tui.analysis.critical_path import path_lane
from tpuprof_tui.analysis.links.dependencies import Dependencies, Dependency, dependencies_of, known_dependencies
from tpuprof_tui.analysis.links.releases import barrier_of
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import GUESS, time_text
from tpuprof_tui.model.vocabulary import DETAIL

from ..settings.actions import ActionTable
from ..shell.background import Background
from .command_line import CommandTable, Done, fault
from .store import Store

#: What is said where nothing is selected.
NOTHING_SELECTED = "Nothing selected: Enter in the timeline or a row of the table selects."


class DependencyJumps:
    """Follows dependencies."""

    def __init__(self, store: Store, background: Background, say: Callable[[str], None]) -> None:
        self.store = store
        self.background = background
        self.say = say
        self.commands: CommandTable = {"path": self._path}
        self.actions: ActionTable = {"released-by": self.released_by, "releases": self.releases}

    def _path(self, text: str) -> Done:
        """The critical path as a lane, or no more."""
        state, session = self.store.state, self.store.session
        if state.path:
            self.store.change(replace(state, path=False))
            return None
        if not session.profile.timed:
            return fault(session.say("there are no times of {events}"))
        self.background.compute(
            "path", lambda: path_lane(session), lambda _: self.store.change(replace(self.store.state, path=True))
        )
        return None

    def released_by(self) -> None:
        """To what the selected instruction waited for."""
        self._follow(Dependencies.waits_for, lambda each: each.releaser, "Nothing is known that released")

    def releases(self) -> None:
        """To what waited for the selected instruction."""
        self._follow(Dependencies.releases, lambda each: each.waiter, "Nothing is known to have waited for")

    def _follow(
        self,
        find: Callable[[Dependencies, int, int], tuple[Dependency, ...]],
        end: Callable[[Dependency], tuple[int, int]],
        nothing: str,
    ) -> None:
        session, selection = self.store.session, self.store.state.selection
        lane, row = selection.lane, selection.row
        if row < 0:
            self.say(NOTHING_SELECTED)
            return

        def take(dependencies: Dependencies) -> None:
            found = find(dependencies, lane, row)
            if not len(dependencies):
                profile = session.profile
                needs = "" if profile.has(DETAIL) else f" (that needs {profile.vocabulary.needs(DETAIL)})"
                told = profile.vocabulary.phrase("no_links", "Of this profile it is not known what waited for what")
                self.say(f"{told}{needs}.")
            elif not found:
                self.say(f"{nothing} {self._named(lane, row)}.")
            elif self.store.state.selection == selection:
                # what held it up, or was released, without delay comes first
                dependency = min(found, key=lambda each: each.slack_ns)
                self.store.change(selected(session, self.store.state, *end(dependency)))
                self.say(self._told(dependency, len(found)))

        known = known_dependencies(session) is not None
        self.background.compute("dependencies", partial(dependencies_of, session), take, at_once=known)

    def _told(self, dependency: Dependency, count: int) -> str:
        more = f"; the closest of {count:,}" if count > 1 else ""
        waiter, releaser = self._named(*dependency.waiter), self._named(*dependency.releaser)
        guess = GUESS if dependency.guessed else ""
        barrier = barrier_of(self.store.session, dependency.releaser) if dependency.ends else None
        late = f"; it came {guess}{time_text(int(barrier.late_ns[0]))} after the others" if barrier else ""
        between = time_text(dependency.slack_ns)
        return f"{guess}{waiter} waited for {releaser} by {dependency.kind}, {between} between{late}{more}"

    def _named(self, lane_number: int, row: int) -> str:
        session = self.store.session
        lane = session.profile.lanes[lane_number]
        name = text_of(session.profile, lane, "name", row) or session.say("{event} {row:,}", row=row)
        return f"{name} ({clean(session.profile.title_of(lane))})"
