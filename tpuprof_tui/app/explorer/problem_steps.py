"""Problems one after another: in the order of the table, in time, or as they are listed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tpuprof_tui.analysis.findings.problem_rows import problem_rows, problem_text
from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.analysis.selecting.search import Hits, marked_in_table, marked_in_time
from tpuprof_tui.analysis.selecting.session import Ints, Session
from tpuprof_tui.analysis.selecting.state import ViewState

from ..panes.keybar import KeyBar
from ..panes.problems import ProblemsPane
from .filter_search import Finding


class ProblemSteps(Finding):
    """Keys that go from problem to problem; the explorer owns the state."""

    def action_next_problem(self) -> None:
        """The next instruction that a problem is about; where there is none the next problem of the list."""
        self._step_problem(1)

    def action_previous_problem(self) -> None:
        """The same for the one before."""
        self._step_problem(-1)

    def _step_problem(self, steps: int) -> None:
        problems = self.query_one("#problems", ProblemsPane)
        if problems.has_focus or not len(problem_rows(self.session)):
            problems.step(steps)
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                # those there are lie outside the scope or the filter
                problems.step(steps)
                return
            key, number = self._from_here(steps)
            place, wrapped = hits.stepped(key, number, steps)
            self._go_to_problem(hits, place, wrapped, steps)

        if self._in_table():
            work_out = partial(_in_table, self.session, self.table.rows.order)
        else:
            work_out = partial(_over_time, self.session, self.view)
        self.compute("problems", work_out, take, at_once=self._is_small)

    def _from_here(self, steps: int) -> tuple[int, int]:
        """Where one is; without a selection before all that the window shows, or behind it."""
        view = self.view
        if self._in_table() or view.selection.row >= 0:
            return self._here()
        return (view.start, -1) if steps > 0 else (view.end, -1)

    def _go_to_problem(self, hits: Hits, place: int, wrapped: bool, steps: int) -> None:
        number = int(hits.numbers[place])
        self._set(selected(self.session, self.view, *self.session.place(number)))
        problems = self.query_one("#problems", ProblemsPane)
        found = problem_rows(self.session)
        problems.put(int(found.problem[found.place(number)]))
        told = problem_text(self.session, number)
        if wrapped:
            rest = sum(problem.rows is None for problem in problems.problems)
            told += f"  From the {'start' if steps > 0 else 'end'} again"
            told += (
                self.session.say("; {rest:,} more concern no single {event}: 4 lists them.", rest=rest) if rest else "."
            )
        self.query_one(KeyBar).say(f"{place + 1:,}/{len(hits):,}  {told}")


def _in_table(session: Session, order: Ints) -> Hits:
    found = problem_rows(session)
    return found.places_to_go(marked_in_table(found.mask(session.profile.instructions), order))


def _over_time(session: Session, view: ViewState) -> Hits:
    found = problem_rows(session)
    numbers = numbers_shown(session, replace(view, in_window=False))
    return found.places_to_go(marked_in_time(session, found.mask(session.profile.instructions), numbers))
