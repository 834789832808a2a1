"""Problems one after another: in the order of the table, in time, or as they are listed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tpuprof_tui.analysis.findings.problem_rows import problem_rows, problem_text
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.analysis.selecting.search import Hits

from ..panes.problems import ProblemsPane
from ..settings.actions import ActionTable
from ..shell.background import Background
from .position import Position
from .store import Store


class ProblemSteps:
    """Goes to the next instruction that a problem is about; where there is none to the next problem of the list."""

    def __init__(
        self,
        store: Store,
        background: Background,
        position: Position,
        problems: ProblemsPane,
        say: Callable[[str], None],
    ) -> None:
        self.store = store
        self.background = background
        self.position = position
        self.problems = problems
        self.say = say
        self.actions: ActionTable = {"next-problem": partial(self.step, 1), "previous-problem": partial(self.step, -1)}

    def step(self, steps: int) -> None:
        """The next one, or the one before."""
        session, problems = self.store.session, self.problems
        if problems.has_focus or not len(problem_rows(session)):
            problems.step(steps)
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                # those there are lie outside the scope or the filter
                problems.step(steps)
                return
            place, wrapped = hits.stepped(*self._from_here(steps), steps)
            self._go_to(hits, place, wrapped, steps)

        marked = self.position.marked()

        def work() -> Hits:
            found = problem_rows(session)
            return found.places_to_go(marked(found.mask(session.profile.instructions)))

        self.background.compute("problems", work, take)

    def _from_here(self, steps: int) -> tuple[int, int]:
        """Where one is; without a selection before all that the window shows, or behind it."""
        state = self.store.state
        if self.position.in_table or state.selection.row >= 0:
            return self.position.here()
        return (state.start, -1) if steps > 0 else (state.end, -1)

    def _go_to(self, hits: Hits, place: int, wrapped: bool, steps: int) -> None:
        session, problems, number = self.store.session, self.problems, int(hits.numbers[place])
        self.store.change(selected(session, self.store.state, *session.place(number)))
        found = problem_rows(session)
        problems.put(int(found.problem[found.place(number)]))
        told = problem_text(session, number)
        if wrapped:
            rest = sum(problem.rows is None for problem in problems.problems)
            told += f"  From the {'start' if steps > 0 else 'end'} again"
            told += session.say("; {rest:,} more concern no single {event}: 4 lists them.", rest=rest) if rest else "."
        self.say(f"{place + 1:,}/{len(hits):,}  {told}")
