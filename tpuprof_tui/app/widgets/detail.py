"""All that is known of the selected instruction, by group, with units and what they mean."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from rich.segment import Segment
from textual import work

from ...analysis.dependencies import Links
from ...model import COLUMNS, Column, Lane
from ..alike import alike, neighbours
from ..celltext import column_texts
from ..format import MISSING, clean, exact_time, fit, time_text, wrap
from ..links import known_links, links_of
from ..painter import text_of
from ..session import Session
from ..state import Selection, ViewState
from ..theme import Palette
from .lines import Line, LinesView

#: From this width on every value has its explanation beside it.
HELP_BESIDE = 84
LABEL = 15
_MOST_LINKS = 4
#: Columns that every lane can answer, whether the source names them or not.
_OF_EVERY_LANE = ("engine", "core", "duration")
_REGISTER_GROUPS = ("shape", "addresses", "options", "reserved")
#: Groups of the schema, in its order.
_GROUPS = {group: place for place, group in enumerate(dict.fromkeys(column.group for column in COLUMNS))}


class DetailPane(LinesView):
    """The selected instruction; the line under the cursor is explained."""

    def __init__(self, session: Session, palette: Palette) -> None:
        super().__init__(palette, "detail")
        self.session = session
        self.selection = Selection()
        self._looked_for_links = not any(lane.registers is not None for lane in session.profile.lanes)

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
        lines: list[Line] = [*self._heading(lane, width), *self._told(lane, width), *self._missing_lines(lane, width)]
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
        """What the lane knows, and what another mode would know of it: that is shown as missing."""
        if column.key in lane or column.key in _OF_EVERY_LANE:
            return True
        return lane.port >= 0 if column.key == "port" else bool(column.needs)

    def _heading(self, lane: Lane, width: int) -> list[Line]:
        profile, row = self.session.profile, self.selection.row
        start, end = self.session.span_of(self.selection.lane, row)
        name = text_of(profile, lane, "name", row) or "instruction"
        role = ("", "wait, ", "sync, ")[int(lane.take("role", slice(row, row + 1))[0]) % 3]
        guess = "~" if role and lane.role_guessed else ""
        where = f"{clean(lane.title)}, {guess}{role}{time_text(end - start)} at {exact_time(start)}"
        lines: list[Line] = [[Segment(f" {line}", self.palette.strong)] for line in wrap(name, width - 2)]
        return lines + [[Segment(f" {line}", self.palette.text)] for line in wrap(where, width - 2)]

    def _told(self, lane: Lane, width: int) -> list[Line]:
        """What it did in one line, what it waited for, how it compares, what runs beside it."""
        number, row = self.selection.lane, self.selection.row
        sentences = [(lane.reading(row), self.palette.text)]
        sentences += [(text, self.palette.text) for text in self._links(number, row)]
        sentences.append((self._compared(lane, row), self.palette.quiet))
        for word, near in zip(("Before", "After"), neighbours(self.session, number, row), strict=True):
            if near is not None:
                name = text_of(self.session.profile, lane, "name", near.row) or "instruction"
                gap = f"{time_text(near.gap_ns)} apart" if near.gap_ns >= 0 else f"{time_text(-near.gap_ns)} together"
                sentences.append((f"{word}: {name}, {gap}", self.palette.quiet))
        lines: list[Line] = []
        for text, style in sentences:
            lines += [[Segment(f" {part}", style)] for part in (wrap(clean(text), width - 2) if text else [])]
        return lines

    def _compared(self, lane: Lane, row: int) -> str:
        if "name" not in lane:
            return ""
        name = int(lane.take("name", slice(row, row + 1))[0])
        found = alike(self.session, lane.engine, name) if name >= 0 else None
        if found is None or found.count < 2 or not found.median_ns:
            return ""
        start, end = self.session.span_of(self.selection.lane, row)
        times = (end - start) / found.median_ns
        return f"{times:.1f}x the median {time_text(round(found.median_ns))} of {found.count:,} alike"

    def _links(self, number: int, row: int) -> list[str]:
        """Who released it and whom it released, once that is known."""
        links = known_links(self.session)
        if links is None:
            if not self._looked_for_links:
                self._looked_for_links = True
                self._look_for_links()
            return []
        texts = []
        for link in links.waits_for(number, row)[:_MOST_LINKS]:
            texts.append(f"Waited for {self._place(*link.releaser)}, which ended {time_text(link.slack_ns)} before")
        for link in links.releases(number, row)[:_MOST_LINKS]:
            texts.append(f"Released {self._place(*link.waiter)} {time_text(link.slack_ns)} later")
        return texts

    def _place(self, number: int, row: int) -> str:
        lane = self.session.profile.lanes[number]
        name = text_of(self.session.profile, lane, "name", row) or "instruction"
        order = int(lane.take("order", slice(row, row + 1))[0])
        return f"{name} {order} of {lane.title}"

    @work(thread=True, exclusive=True, group="links", exit_on_error=False)
    def _look_for_links(self) -> None:
        """Links of a large capture take a moment: found once, beside the event loop."""
        self.app.call_from_thread(self._take_links, links_of(self.session))

    def _take_links(self, links: Links) -> None:
        if len(links) and self.size.width:
            self.rebuild()

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
            return self._raw_lines(lane.registers.raw(self.selection.row), width)
        names = lane.registers.field_names(operation)
        lines: list[Line] = []
        label = max((len(name) for name in names), default=0)
        group = ""
        for name in sorted(names, key=lambda name: _REGISTER_GROUPS.index(_register_group(name))):
            if _register_group(name) != group:
                group = _register_group(name)
                lines.append([Segment(f" registers: {group}", self.palette.title)])
            value = int(lane.registers.field(operation, name, rows)[0])
            text = f"{value:,}" if -1024 < value < 1024 else f"{value:,} 0x{value & (1 << 64) - 1:x}"
            room = min(label, max(width // 2, 8))
            label_part = Segment(f"  {fit(clean(name), room)} ", self.palette.quiet)
            lines.append([label_part, Segment(text, self.palette.text)])
        return lines

    def _raw_lines(self, raw: bytes, width: int) -> list[Line]:
        """A command that cannot be decoded, as it was captured."""
        if not raw:
            return []
        per_line = max((width - 10) // 3, 4)
        lines: list[Line] = [[Segment(" registers: not decoded, as captured", self.palette.caution)]]
        for first in range(0, len(raw), per_line):
            text = f"  {first:4x}  {raw[first : first + per_line].hex(' ')}"
            lines.append([Segment(text, self.palette.text)])
        return lines


def _register_group(name: str) -> str:
    """What a register field is about, by its name."""
    lower = name.lower()
    if lower.startswith(("rsvd", "reserved")) or lower == "reserve":
        return "reserved"
    if "addr" in lower or "mask" in lower:
        return "addresses"
    if lower.endswith(("size", "stride", "str", "_n", "_c", "_h", "_w", "length", "pad")):
        return "shape"
    return "options"


def _group_place(column: Column) -> int:
    return _GROUPS[column.group]
