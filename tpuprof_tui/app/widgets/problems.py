"""What was odd in the capture: what happened, what was done, where."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType

from ...model import Problem
from ..actions import bindings
from ..format import clean, wrap
from ..messages import Change, Say
from ..session import Session
from ..state import Selection, ViewState
from ..theme import Palette
from .lines import Line, LinesView

#: Severity in letters, so that it is told without colour.
WORDS = ("note", "warning", "ERROR")


class ProblemsPane(LinesView):
    """Problems, the worst first."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("problems")]

    def __init__(self, session: Session, palette: Palette) -> None:
        super().__init__(palette, "problems")
        self.session = session
        self._told = -1
        self.problems = sorted(session.profile.problems, key=lambda problem: -int(problem.severity))

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Lines of all problems."""
        if not self.problems:
            return [[Segment(" No problems: the whole capture could be used.", self.palette.good)]], []
        lines: list[Line] = []
        items: list[int] = []
        for number, problem in enumerate(self.problems):
            added = self._problem_lines(problem, width)
            lines += added
            items += [number] * len(added)
        return lines, items

    def _problem_lines(self, problem: Problem, width: int) -> list[Line]:
        word = WORDS[min(max(int(problem.severity), 0), 2)]
        times = f" (x{problem.count:,})" if problem.count != 1 else ""
        indent = 10
        room = max(width - indent - 1, 10)
        first, *rest = wrap(clean(problem.what) + times, room)
        style = self.palette.severity(int(problem.severity))
        lines: list[Line] = [[Segment(f" {word:<8} ", style), Segment(first, self.palette.text)]]
        lines += [[Segment(" " * indent + line, self.palette.text)] for line in rest]
        told = "  ".join(part for part in (clean(problem.done), _place(problem)) if part)
        return lines + [[Segment(" " * indent + line, self.palette.quiet)] for line in wrap(told, room) if line]

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Builds the lines anew; the problem under the cursor stays in view."""
        super().rebuild(keep_scroll=keep_scroll)
        self._bring_into_view()

    def on_focus(self) -> None:
        """A problem that was told while the list was hidden is in view when one looks."""
        super().on_focus()
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        if self.items and self.cursor:
            self.go_to(self.cursor)

    def step(self, steps: int) -> None:
        """Goes on to another problem, from wherever the keys are: tells it and selects what it is about."""
        if not self.problems:
            self.post_message(Say("No problems: the whole capture could be used."))
            return
        # the first step tells the first problem, as long as none was told
        self._told = (self.cursor + steps if self.has_focus or self._told >= 0 else 0) % len(self.problems)
        self.cursor = self._told
        if self.items:
            self.go_to(self.cursor)
        self._select()
        problem = self.problems[self.cursor]
        place = _place(problem)
        word = WORDS[min(max(int(problem.severity), 0), 2)]
        text = f"{self.cursor + 1}/{len(self.problems)} {word}: {problem.what}{f' {place}' if place else ''}"
        self.post_message(Say(text))

    def action_select(self) -> None:
        """Selects the lane or core of the problem."""
        if not self.problems:
            return
        if not self._select():
            self.post_message(Say("This problem concerns the whole capture, not one core."))

    def _select(self) -> bool:
        """Selects what the problem under the cursor is about; False where that is no lane and no core."""
        problem = self.problems[self.cursor]
        lanes = self.session.profile.lanes
        fitting = [number for number, lane in enumerate(lanes)
                   if problem.lane and lane.label == problem.lane and problem.core in (-1, lane.core)]  # fmt: skip
        lane = fitting[0] if fitting else -1
        core = lanes[lane].core if lane >= 0 else problem.core
        if lane < 0 and core not in self.session.profile.cores:
            return False

        def selected(view: ViewState) -> ViewState:
            return replace(view, selection=Selection(core, lane))

        self.post_message(Change(selected))
        self.post_message(Say(f"Selected {lanes[lane].title if lane >= 0 else f'core {core}'}: 1 shows its timeline."))
        return True


def _place(problem: Problem) -> str:
    """Where a problem is: file, offset, core, lane."""
    parts = []
    if problem.file:
        offset = f" at byte {problem.offset:,}" if problem.offset >= 0 else ""
        parts.append(f"{clean(problem.file)}{offset}")
    if problem.core >= 0:
        parts.append(f"core {problem.core}")
    if problem.lane:
        parts.append(clean(problem.lane))
    return f"[{', '.join(parts)}]" if parts else ""
