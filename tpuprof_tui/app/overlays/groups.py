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

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.analysis.selecting.filter_masks import with_condition
from tpuprof_tui.analysis.selecting.session import Ints, Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.totals.grouping import GROUPINGS, GroupTable, group_table
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, fit_apart, shared_beginnings
from tpuprof_tui.formats.units import column_unit, percent_text, plural, time_decimals, time_number, time_text

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
#: Widths in cells of the columns after the first, the last of which is the share; of all margins; least of the first.
_WIDTHS: Final = (0, 10, 13, 11, 11, 8)
_MARGINS, _NARROWEST = 4, 10
_SHARE: Final = 5
#: Columns of the list. In a comparison the last two differ. All but the first sort in descending order at first.
COLUMNS: Final = ("value", "count", "total", "mean", "longest")
COMPARISON_COLUMNS: Final = (*COLUMNS[:3], "base", "delta")


class GroupList(LinesView):
    """The list of groups; closes with the filter that keeps only the group under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "wide", "groups")]

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
        name = self.columns[self.sort]
        if name == "value":
            text = table.column.kind == "text"
            labels = np.array([label.casefold() for label in table.labels], dtype=object)
            keys = np.argsort(np.argsort(labels, kind="stable")) if text else np.arange(len(table))
        elif name == "base" and table.base is not None:
            keys = table.base
        else:
            # largest change first, whether slower or faster
            keys = np.abs(table.delta) if name == "delta" else getattr(table, name)
        self.order = np.lexsort((-table.total, -keys if self.down else keys))
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
        events = self.session.profile.vocabulary.event.of(int(table.count.sum()))
        return (
            f"{table.column.title}: {plural(len(table), 'group')} of {events} "
            f"({kind}), {self.session.scope_title(state.scope)}{where}{filtered}"
        )

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a header and a line for each group."""
        table = self.table
        if table is None:
            return [[Segment(" counting ...", self.palette.quiet)]], []
        if not len(table):
            waits = "no work here, w counts waits too" if self.work_only else self.session.say("no {event} here")
            text = f"Nothing to group: {waits}; Esc closes, & then changes the filter."
            return paragraph(text, width, self.palette.quiet), []
        rows = self.order[:MAX_LISTED].tolist()
        longest = max(cell_len(table.labels[index]) for index in rows)
        columns = self._fitting(width - min(longest, _NARROWEST) - _MARGINS)
        room = max(width - sum(_WIDTHS[each] for each in columns) - _MARGINS, 1)
        label = min(max(min(longest, 60), len(self._header_text(0)) + 2), room)
        bar_width = min(room - label, 40)
        lines = [self._header(label, columns, bar_width)]
        full = float(table.share.max()) or 1.0
        labels = [table.labels[index] for index in rows]
        shared = shared_beginnings(labels, label)
        lines += [
            self._line(table, index, fit_apart(text, label, shared), columns, bar_width, full)
            for index, text in zip(rows, labels, strict=True)
        ]
        return lines, [-1, *range(len(rows))]

    def _fitting(self, room: int) -> list[int]:
        """Columns after the first that fit ``room`` cells: that of the order always, then share, total and others."""
        others = (1, 3, 4) if self.base is None else (4, 3, 1)
        columns: list[int] = []
        for each in dict.fromkeys((self.sort or 2, _SHARE, 2, *others)):
            if not columns or sum(_WIDTHS[every] for every in columns) + _WIDTHS[each] <= room:
                columns.append(each)
        return sorted(columns)

    def _header_text(self, index: int) -> str:
        name = "share" if index == _SHARE else self.columns[index]
        if index == 0 and self.table is not None:
            name = header_text(self.table.column.title, self.table.column.unit)
        arrow = f" {self.glyphs.down if self.down else self.glyphs.up}" if index == self.sort else ""
        return name + arrow

    def _header(self, label: int, columns: list[int], bar_width: int) -> Line:
        line = [Segment(" ", self.palette.header)]
        for index in (0, *columns):
            style = self.palette.chosen if index == self.sort else self.palette.header
            line.append(Segment(fit(self._header_text(index), _WIDTHS[index] or label, right=index > 0), style))
        return [*line, Segment(" " * (bar_width + 1), self.palette.header)]

    def _line(self, table: GroupTable, index: int, label: str, columns: list[int], bar_width: int, full: float) -> Line:
        count, total, longest = (int(values[index]) for values in (table.count, table.total, table.longest))
        unit = column_unit(max(int(table.total.max()), 0 if table.base is None else int(table.base.max())))
        decimals = min(time_decimals(unit, max(unit.ns // 1000, 1)), 3)
        total_text = f"{time_number(total, unit, decimals)} {unit.name}"
        share = float(table.share[index])
        palette = self.palette
        style = palette.quiet if table.labels[index] == "-" else palette.text
        if table.base is None:
            more = time_text(round(float(table.mean[index]))), time_text(longest)
        else:
            delta = int(table.delta[index])
            more = (time_number(int(table.base[index]), unit, decimals),
                    f"{'+' if delta > 0 else ''}{time_number(delta, unit, decimals)}")  # fmt: skip
        texts = (label, f"{count:,}", total_text, *more, percent_text(share))
        styles = (style, palette.text, palette.text, palette.quiet, palette.quiet, palette.strong)
        return [
            Segment(f" {label}", style),
            *(Segment(f"{texts[each]:>{_WIDTHS[each]}}", styles[each]) for each in columns),
            Segment(" " + bar(share / full, bar_width, self.glyphs), palette.compute),
        ]

    def as_text(self) -> str:
        """The list as tab-separated text, times in ns."""
        table = self.table
        if table is None:
            return ""
        title = header_text(table.column.title, table.column.unit)
        compared = ("base ns", "delta ns") if table.base is not None else ()
        lines = ["\t".join((title, "count", "total ns", "mean ns", "longest ns", "share %", *compared))]
        for index in self.order.tolist():
            numbers = (
                f"{int(table.count[index])}", f"{int(table.total[index])}", f"{round(float(table.mean[index]))}",
                f"{int(table.longest[index])}", f"{100 * float(table.share[index]):.2f}",
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
        """Sorts by the column ``columns`` places to the right, which shows it."""
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
