"""Ways to the selection, from it to what released it, and to those that waited for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tpuprof_tui.analysis.links.dependencies import Dependencies, Dependency
from tpuprof_tui.analysis.links.releases import barrier_of
from tpuprof_tui.analysis.links.session_dependencies import dependencies_of, known_dependencies
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.units import GUESS, time_text
from tpuprof_tui.model.vocabulary import DETAIL

from ..panes.keybar import KeyBar
from ..panes.timeline.timeline import Timeline
from .filter_search import Finding


class Following(Finding):
    """Keys that follow dependencies; the explorer owns the state."""

    def _maximise(self, name: str) -> None:
        raise NotImplementedError

    def action_released_by(self) -> None:
        """To what the selected instruction waited for."""
        self._follow(Dependencies.waits_for, lambda each: each.releaser, "Nothing is known that released")

    def action_releases(self) -> None:
        """To what waited for the selected instruction."""
        self._follow(Dependencies.releases, lambda each: each.waiter, "Nothing is known to have waited for")

    def action_focus_selection(self) -> None:
        """The selection into view, the timeline too where another pane filled the screen; again: fitted.

        Without a selection the range fills the window.
        """
        selection = self.view.selection
        cells = self.query_one("#timeline", Timeline).lanes.cells
        if self.view.range is not None and selection.row < 0:
            start, end = self.view.range
            self._set(self.view.windowed(start, max(end - start, cells)))
            return
        if selection.row < 0:
            self._tell("Nothing selected: Enter in the timeline or a row of the table selects.")
            return
        if not self.query_one("#timeline", Timeline).display:
            self._maximise("")
        start, end = self.session.span_of(selection.lane, selection.row)
        view = self.view
        shown = view.showing(start, max(end, start + 1)).at(start)
        if shown == view:
            span = max((end - start) * 2, cells)
            shown = view.windowed((start + end) // 2 - span // 2, span).at((start + end) // 2)
        self._set(shown)

    def _follow(
        self,
        find: Callable[[Dependencies, int, int], tuple[Dependency, ...]],
        end: Callable[[Dependency], tuple[int, int]],
        nothing: str,
    ) -> None:
        selection = self.view.selection
        lane, row = selection.lane, selection.row
        if row < 0:
            self._tell("Nothing selected: Enter in the timeline or a row of the table selects.")
            return

        def take(dependencies: Dependencies) -> None:
            found = find(dependencies, lane, row)
            if not len(dependencies):
                profile = self.session.profile
                needs = "" if profile.has(DETAIL) else f" (that needs {profile.vocabulary.needs(DETAIL)})"
                told = profile.vocabulary.phrase("no_links", "Of this profile it is not known what waited for what")
                self._tell(f"{told}{needs}.")
            elif not found:
                self._tell(f"{nothing} {self._named(lane, row)}.")
            elif self.view.selection == selection:
                # what held it up, or was released, without delay comes first
                dependency = min(found, key=lambda each: each.slack_ns)
                self._set(selected(self.session, self.view, *end(dependency)))
                self._tell(self._told(dependency, len(found)))

        known = self._is_small or known_dependencies(self.session) is not None
        self.compute("dependencies", partial(dependencies_of, self.session), take, at_once=known)

    def _told(self, dependency: Dependency, count: int) -> str:
        more = f"; the closest of {count:,}" if count > 1 else ""
        waiter, releaser = self._named(*dependency.waiter), self._named(*dependency.releaser)
        guess = GUESS if dependency.guessed else ""
        barrier = barrier_of(self.session, dependency.releaser) if dependency.ends else None
        late = f"; it came {guess}{time_text(int(barrier.late_ns[0]))} after the others" if barrier else ""
        between = time_text(dependency.slack_ns)
        return f"{guess}{waiter} waited for {releaser} by {dependency.kind}, {between} between{late}{more}"

    def _named(self, lane_number: int, row: int) -> str:
        lane = self.session.profile.lanes[lane_number]
        name = text_of(self.session.profile, lane, "name", row) or self.session.say("{event} {row:,}", row=row)
        return f"{name} ({clean(self.session.profile.title_of(lane))})"

    def _tell(self, text: str) -> None:
        self.query_one(KeyBar).say(text)
