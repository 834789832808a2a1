"""Problems pane: the problems found in the capture, with consequence and location."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from msgspec.structs import replace
from rich.segment import Segment
from textual.binding import BindingType

from tpuprof_tui.analysis.evidence.problem_rows import by_severity, damages, lane_of, severity_word
from tpuprof_tui.analysis.selecting.moves import select_event
from tpuprof_tui.analysis.selecting.session import Ints, Session
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import in_sentence, wrap
from tpuprof_tui.formats.units import plural
from tpuprof_tui.model import Groups, Problem

from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import ChangeState, ShowMessage
from .lines import Line, LinesView, paragraph

#: Most units of which it is told above the problems what these mean.
_MOST_DAMAGES: Final = 8
NO_PROBLEMS: Final = "No problems: the whole capture could be used."


class ProblemsPane(LinesView):
    """List of problems, the most severe first."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("problems")]

    def __init__(self, session: Session, palette: Palette) -> None:
        super().__init__(palette, "problems")
        self.session = session
        self._last_shown = -1
        self.problems = by_severity(session)
        self.copied_as = ("problem", plural(len(self.problems), "problem"))

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the lines of all problems; each problem is an item."""
        if not self.problems:
            return paragraph(NO_PROBLEMS, width, self.palette.good), []
        lines: list[Line] = []
        profile, damaged = self.session.profile, damages(self.session)
        texts = [f"{profile.groups.title(damage.group)}: {damage.text(profile.vocabulary.event)}" for damage in damaged]
        more = [f"{len(texts) - _MOST_DAMAGES:,} more: :view problems."] if len(texts) > _MOST_DAMAGES else []
        for text in (*texts[:_MOST_DAMAGES], *more):
            lines += paragraph(text, width, self.palette.text)
        items = [-1] * len(lines)
        for number, problem in enumerate(self.problems):
            added = self._problem_lines(problem, width)
            lines += added
            items += [number] * len(added)
        return lines, items

    def _problem_lines(self, problem: Problem, width: int) -> list[Line]:
        times = f" (x{problem.count:,})" if problem.count != 1 else ""
        indent = 10
        room = max(width - indent - 1, 10)
        first, *rest = wrap(clean(problem.what) + times, room)
        style = self.palette.severity(int(problem.severity))
        lines: list[Line] = [[Segment(f" {severity_word(problem):<8} ", style), Segment(first, self.palette.text)]]
        lines += [[Segment(" " * indent + line, self.palette.text)] for line in rest]
        info = "  ".join(part for part in (clean(problem.done), _where(problem, self.session.profile.groups)) if part)
        return lines + [[Segment(" " * indent + line, self.palette.quiet)] for line in wrap(info, room) if line]

    def text_of_all(self) -> str:
        """Text to copy of all problems; empty if there are none."""
        return super().text_of_all() if self.problems else ""

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Rebuilds the lines; keeps the problem under the cursor in view."""
        super().rebuild(keep_scroll=keep_scroll)
        self._bring_into_view()

    def on_focus(self) -> None:
        """Scrolls to the current problem, which may have been set while the pane was hidden."""
        super().on_focus()
        self._bring_into_view()

    def _bring_into_view(self) -> None:
        if self.items and self.cursor:
            self.go_to(self.cursor)

    def step(self, steps: int) -> None:
        """Goes ``steps`` problems on, cyclic, shows it as a message and selects what it concerns; works in any pane."""
        if not self.problems:
            self.post_message(ShowMessage(NO_PROBLEMS))
            return
        # the first step from another pane goes to the first problem
        self.put((self.cursor + steps if self.has_focus or self._last_shown >= 0 else 0) % len(self.problems))
        self._select(show_message=False)
        problem = self.problems[self.cursor]
        where = _where(problem, self.session.profile.groups)
        text = f"{self.cursor + 1}/{len(self.problems)} {severity_word(problem)}: {problem.what}"
        self.post_message(ShowMessage(f"{text} {where}" if where else text))

    def action_select(self) -> None:
        """Selects the event, lane or unit of the problem under the cursor."""
        if not self.problems:
            return
        if not self._select():
            self.post_message(ShowMessage(self.session.say("This problem concerns the whole capture, not one {unit}.")))

    def _select(self, *, show_message: bool = True) -> bool:
        """Selects the event, lane or group that the problem concerns; returns False if it concerns none."""
        problem = self.problems[self.cursor]
        lanes = self.session.profile.lanes
        lane = lane_of(self.session, problem)
        group = self.session.unit_of(lane) if lane >= 0 else problem.group
        if lane < 0 and (group < 0 or not self.session.profile.groups.units_within(group)):
            return False

        if problem.rows is not None and lane >= 0:
            self._select_row(lane, problem.rows, show_message)
            return True
        self.post_message(ChangeState(lambda state: replace(state, selection=SelectedItem(group, lane))))
        if show_message:
            profile = self.session.profile
            title = profile.title_of(lanes[lane]) if lane >= 0 else in_sentence(profile.groups.title(group))
            self.post_message(ShowMessage(f"Selected {title}: 1 shows its timeline."))
        return True

    def _select_row(self, lane: int, rows: Ints, show_message: bool) -> None:
        """Selects the first event of a problem, or the next one if one of them is selected already."""

        def chosen(state: DisplayState) -> DisplayState:
            current = state.selection.row if state.selection.lane == lane else -1
            index = int(np.searchsorted(rows, current))
            on_one = index < len(rows) and int(rows[index]) == current
            index = (index + 1) % len(rows) if on_one else 0
            title = self.session.title_of(lane)
            if show_message:
                self.post_message(
                    ShowMessage(f"Selected {index + 1:,}/{len(rows):,} on {title}: 1 and 2 show it, Enter the next.")
                )
            return select_event(self.session, state, lane, int(rows[index]))

        self.post_message(ChangeState(chosen))

    def put(self, item: int) -> None:
        """Puts the cursor on a problem that is shown as a message."""
        self.cursor = self._last_shown = item
        self.go_to(item)


def _where(problem: Problem, groups: Groups) -> str:
    """Location of a problem in brackets: file, offset, group, lane; empty if none is known."""
    parts = []
    if problem.file:
        offset = f" at byte {problem.offset:,}" if problem.offset >= 0 else ""
        parts.append(f"{clean(problem.file)}{offset}")
    if problem.group >= 0:
        parts.append(in_sentence(groups.title(problem.group)))
    if problem.lane:
        parts.append(clean(problem.lane))
    return f"[{', '.join(parts)}]" if parts else ""
