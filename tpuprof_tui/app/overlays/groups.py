"""Overlay that groups the table's rows by the values of a column, with count and times of each group."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

import numpy as np
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType
from textual.content import Content

from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.analysis.selecting.filter_masks import with_condition
from tpuprof_tui.analysis.selecting.grouping import GROUPINGS, GroupTable, group_table
from tpuprof_tui.analysis.selecting.session import Ints, Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import column_unit, percent_text, plural, time_decimals, time_number, time_text
from tpuprof_tui.views.query import Query

from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView, paragraph
from ..panes.table_rows import AT_ONCE
from ..settings.actions import bindings
from ..shell.background import background_of
from ..shell.messages import CopyText
from .overlay import Close

#: Most groups listed: more than anyone reads.
MAX_LISTED: Final = 1_000
#: Width, in cells, of all columns but the first and the bar.
_FIXED: Final = 57
#: Columns of the list. In a comparison the last two differ. All but the first sort in descending order at first.
COLUMNS: Final = ("value", "count", "total", "mean", "longest")
COMPARISON_COLUMNS: Final = (*COLUMNS[:3], "base", "delta")


class GroupList(LinesView):
    """The list of groups; closes with the filter that keeps only the group under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "groups")]

    def __init__(
        self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs, key: str, *, work_only: bool
    ) -> None:
        super().__init__(palette, "groups")
        self.session = session
        self.state = state
        self.glyphs = glyphs
        self.key = key
        self.work_only = work_only
        self.base = _state_of_base(session, state)
        self.columns = COLUMNS if self.base is None else COMPARISON_COLUMNS
        self.sort = 4 if self.base is not None else 2 if work_only else 1
        self.down = True
        self._background = background_of(self, "groups", small=session.profile.instructions <= AT_ONCE)
        self.table: GroupTable | None = None
        self.order: Ints = np.zeros(0, np.int64)

    def on_mount(self) -> None:
        """Computes the groups: at once for a small profile, else in the background."""
        if not self._background.small:
            self.table = None
            self._show()
        group = partial(group_table, self.session, self.state, self.key, work_only=self.work_only,
                        base=self.base)  # fmt: skip
        self._background.compute("groups", group, self._take)

    def _take(self, table: GroupTable) -> None:
        self.table = table
        self.cursor = 0
        self._order()

    def _order(self) -> None:
        """Sorts the groups by the chosen column; ties by descending total."""
        table = self.table
        if table is None:
            return
        groups = table.groups
        name = self.columns[self.sort]
        if name == "value":
            text = table.column.kind == "text"
            labels = np.array([label.casefold() for label in table.labels], dtype=object)
            keys = np.argsort(np.argsort(labels, kind="stable")) if text else np.arange(len(groups))
        elif name == "base" and table.base is not None:
            keys = table.base
        else:
            # largest change first, whether slower or faster
            keys = np.abs(table.delta) if name == "delta" else getattr(groups, name)
        self.order = np.lexsort((-groups.total, -keys if self.down else keys))
        self._show()

    def _show(self) -> None:
        self.rebuild(keep_scroll=False)
        self.border_title = Content(self._title())
        sort = self.columns[self.sort]
        more = "" if len(self.order) <= MAX_LISTED else f"first {MAX_LISTED:,} of {len(self.order):,}, "
        self.border_subtitle = Content(
            self.session.say("{more}by {sort}; Enter shows a group's {events}, Esc closes", more=more, sort=sort)
        )

    def _title(self) -> str:
        table, state = self.table, self.state
        if table is None:
            return "Grouping ..."
        kind = "work" if table.work_only else "all"
        filtered = f", filter {clean(state.filter)}" if state.filter else ""
        where = f", in the {'window' if state.range is None else 'range'}" if state.in_window else ""
        events = self.session.profile.vocabulary.event.of(table.rows)
        return (
            f"{table.column.title}: {plural(len(table.groups), 'group')} of {events} "
            f"({kind}), {self.session.scope_title(state.scope)}{where}{filtered}"
        )

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a header and a line for each group."""
        table = self.table
        if table is None:
            return [[Segment(" counting ...", self.palette.quiet)]], []
        if not len(table.groups):
            waits = "no work here, w counts waits too" if self.work_only else self.session.say("no {event} here")
            text = f"Nothing to group: {waits}; Esc closes, & then changes the filter."
            return paragraph(text, width, self.palette.quiet), []
        rows = self.order[:MAX_LISTED].tolist()
        label = min(max(cell_len(table.labels[index]) for index in rows), max(width - _FIXED, 14), 60)
        label = max(label, len(self._header_text(0)) + 2)
        bar_width = min(max(width - label - _FIXED, 0), 40)
        lines = [self._header(label, bar_width)]
        full = float(table.groups.share.max()) or 1.0
        lines += [self._line(table, index, label, bar_width, full) for index in rows]
        return lines, [-1, *range(len(rows))]

    def _header_text(self, index: int) -> str:
        name = self.columns[index]
        if index == 0 and self.table is not None:
            name = header_text(self.table.column.title, self.table.column.unit)
        arrow = f" {self.glyphs.down if self.down else self.glyphs.up}" if index == self.sort else ""
        return name + arrow

    def _header(self, label: int, bar_width: int) -> Line:
        widths = (label, 10, 13, 11, 11)
        line = [Segment(" ", self.palette.header)]
        for index, width in enumerate(widths):
            style = self.palette.chosen if index == self.sort else self.palette.header
            line.append(Segment(fit(self._header_text(index), width, right=index > 0), style))
        return [*line, Segment(fit("share", 8, right=True) + " " * (bar_width + 1), self.palette.header)]

    def _line(self, table: GroupTable, index: int, label: int, bar_width: int, full: float) -> Line:
        groups = table.groups
        count, total, longest = (int(values[index]) for values in (groups.count, groups.total, groups.longest))
        unit = column_unit(max(int(groups.total.max()), 0 if table.base is None else int(table.base.max())))
        decimals = min(time_decimals(unit, max(unit.ns // 1000, 1)), 3)
        total_text = f"{time_number(total, unit, decimals)} {unit.name}"
        share = float(groups.share[index])
        style = self.palette.quiet if table.labels[index] == "-" else self.palette.text
        if table.base is None:
            more = time_text(round(float(groups.mean[index]))), time_text(longest)
        else:
            delta = int(table.delta[index])
            more = (time_number(int(table.base[index]), unit, decimals),
                    f"{'+' if delta > 0 else ''}{time_number(delta, unit, decimals)}")  # fmt: skip
        return [
            Segment(f" {fit(table.labels[index], label)}", style),
            Segment(f"{count:>10,}{total_text:>13}", self.palette.text),
            Segment(f"{more[0]:>11}{more[1]:>11}", self.palette.quiet),
            Segment(f"{percent_text(share):>8} ", self.palette.strong),
            Segment(bar(share / full, bar_width, self.glyphs), self.palette.compute),
        ]

    def as_text(self) -> str:
        """The list as tab-separated text, times in ns."""
        table = self.table
        if table is None:
            return ""
        title = header_text(table.column.title, table.column.unit)
        compared = ("base ns", "delta ns") if table.base is not None else ()
        lines = ["\t".join((title, "count", "total ns", "mean ns", "longest ns", "share %", *compared))]
        groups = table.groups
        for index in self.order.tolist():
            numbers = (
                f"{int(groups.count[index])}", f"{int(groups.total[index])}", f"{round(float(groups.mean[index]))}",
                f"{int(groups.longest[index])}", f"{100 * float(groups.share[index]):.2f}",
            )  # fmt: skip
            sides = () if table.base is None else (f"{int(table.base[index])}", f"{int(table.delta[index])}")
            lines.append("\t".join((table.labels[index], *numbers, *sides)))
        return "\n".join(lines)

    def action_drill(self) -> None:
        """Closes with a filter for the events of the group."""
        if self.table is not None and len(self.order):
            condition = self.table.conditions[int(self.order[self.cursor])]
            if condition:
                self.post_message(Close(with_condition(self.state.filter, condition)))

    def action_next_grouping(self) -> None:
        """Groups by the next column."""
        keys = [key for key in GROUPINGS if any(column.key == key for column in self.session.columns)]
        index = keys.index(self.key) if self.key in keys else -1
        self.key = keys[(index + 1) % len(keys)]
        self.on_mount()

    def action_work_only(self) -> None:
        """Toggles between work only and all events."""
        self.work_only = not self.work_only
        self.on_mount()

    def action_scroll_columns(self, columns: int) -> None:
        """Sorts by the column ``columns`` places to the right (all columns fit, so there is nothing to scroll)."""
        self.sort = (self.sort + columns) % len(self.columns)
        self.down = self.sort > 0
        self._order()

    def action_reverse(self) -> None:
        """Reverses the order."""
        self.down = not self.down
        self._order()

    def action_copy(self) -> None:
        """Copies the list."""
        self.post_message(CopyText(self.as_text(), "the groups"))


def _state_of_base(session: Session, state: DisplayState) -> DisplayState | None:
    """State of the baseline with the matching scope; None without a baseline, or for a part of the time."""
    whole = replace(state, start=state.full_start, end=state.full_end)
    baseline = Query.of_state(session, whole, state.scope).baseline if not state.in_window else None
    return None if baseline is None else replace(state, scope=baseline.scope)
