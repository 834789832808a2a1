"""All that is known of the selected instruction, by group, with units and what they mean."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from rich.segment import Segment

from ...model import COLUMNS, Column, Lane
from ..celltext import column_texts
from ..format import MISSING, clean, exact_time, fit, time_text, wrap
from ..painter import text_of
from ..session import Session
from ..state import Selection, ViewState
from ..theme import Palette
from .lines import Line, LinesView

#: From this width on every value has its explanation beside it.
HELP_BESIDE = 84
LABEL = 15
#: Groups of the schema, in its order.
_GROUPS = {group: place for place, group in enumerate(dict.fromkeys(column.group for column in COLUMNS))}


class DetailPane(LinesView):
    """The selected instruction; the line under the cursor is explained."""

    def __init__(self, session: Session, palette: Palette) -> None:
        super().__init__(palette, "detail")
        self.session = session
        self.selection = Selection()

    def show(self, view: ViewState) -> None:
        """Shows the selected instruction of a state."""
        if view.selection != self.selection:
            self.selection = view.selection
            if self.size.width:
                self.rebuild()

    def cursor_changed(self) -> None:
        """The explanation moves with the cursor."""
        self.rebuild()

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Lines of the instruction, an item for each value."""
        if self.selection.row < 0:
            text = "No instruction selected: Enter in the timeline or a row of the table selects one."
            return [[Segment(f" {line}", self.palette.quiet)] for line in wrap(text, width - 2)], []
        lane = self.session.profile.lanes[self.selection.lane]
        lines: list[Line] = [*self._heading(lane, width), *self._missing_lines(lane, width)]
        items = [-1] * len(lines)
        shown = [column for column in COLUMNS if column.applies_to(lane.engine) and self._known(lane, column)]
        number = 0
        for group, columns in groupby(sorted(shown, key=_group_place), key=lambda column: column.group):
            lines.append([Segment(f" {group}", self.palette.title)])
            items.append(-1)
            for column in columns:
                added = self._value_lines(lane, column, width, number)
                lines += added
                items += [number] * len(added)
                number += 1
        registers = self._register_lines(lane, width)
        return lines + registers, items + [-1] * len(registers)

    def _known(self, lane: Lane, column: Column) -> bool:
        """Ports of lanes without ports say nothing; all else is shown, be it missing."""
        return column.key != "port" or lane.port >= 0

    def _heading(self, lane: Lane, width: int) -> list[Line]:
        profile, row = self.session.profile, self.selection.row
        start, end = self.session.span_of(self.selection.lane, row)
        name = text_of(profile, lane, "name", row) or "instruction"
        role = ("", "wait, ", "sync, ")[int(lane.take("role", slice(row, row + 1))[0]) % 3]
        guess = "~" if role and lane.role_guessed else ""
        where = f"{clean(lane.title)}, {guess}{role}{time_text(end - start)} at {exact_time(start)}"
        lines: list[Line] = [[Segment(f" {line}", self.palette.strong)] for line in wrap(name, width - 2)]
        return lines + [[Segment(f" {line}", self.palette.text)] for line in wrap(where, width - 2)]

    def _value_lines(self, lane: Lane, column: Column, width: int, number: int) -> list[Line]:
        rows = np.array([self.selection.row], dtype=np.int64)
        text = column_texts(self.session, lane, column, rows)[0]
        missing = text == MISSING
        if not missing and column.unit and column.kind != "percent":
            text = f"{text} {column.unit}"
        label = Segment(f"  {fit(column.title, LABEL)} ", self.palette.quiet)
        style = self.palette.quiet if missing else self.palette.text
        if width >= HELP_BESIDE:
            return [[label, Segment(fit(text, 30), style), Segment(f" {column.help}", self.palette.quiet)]]
        room = max(width - LABEL - 4, 6)
        parts = wrap(text, room)
        lines: list[Line] = [[label, Segment(parts[0], style)]]
        lines += [[Segment(" " * (LABEL + 3) + part, style)] for part in parts[1:]]
        if number == self.cursor:
            lines += [[Segment(f"    {part}", self.palette.quiet)] for part in wrap(column.help, width - 5)]
        return lines

    def _missing_lines(self, lane: Lane, width: int) -> list[Line]:
        """One line for each kind of capture that would know what is missing here."""
        mode = self.session.profile.mode
        lines: list[Line] = []
        needs = sorted({column.needs for column in COLUMNS if column.needs and column.applies_to(lane.engine)})
        for need in needs:
            if need.removeprefix("mode ").isdigit() and int(need.removeprefix("mode ")) > mode:
                text = f"{MISSING} needs {need}: this capture is mode {mode}"
                lines += [[Segment(f" {part}", self.palette.caution)] for part in wrap(text, width - 2)]
        return lines

    def _register_lines(self, lane: Lane, width: int) -> list[Line]:
        if lane.registers is None:
            return []
        rows = np.array([self.selection.row], dtype=np.int64)
        operation = int(lane.registers.operations(rows)[0])
        if operation < 0:
            return []
        names = lane.registers.field_names(operation)
        lines: list[Line] = [[Segment(" registers", self.palette.title)]]
        label = max((len(name) for name in names), default=0)
        for name in names:
            value = int(lane.registers.field(operation, name, rows)[0])
            text = f"{value:,}" if -1024 < value < 1024 else f"{value:,} 0x{value & (1 << 64) - 1:x}"
            room = min(label, max(width // 2, 8))
            label_part = Segment(f"  {fit(clean(name), room)} ", self.palette.quiet)
            lines.append([label_part, Segment(text, self.palette.text)])
        return lines


def _group_place(column: Column) -> int:
    return _GROUPS[column.group]
