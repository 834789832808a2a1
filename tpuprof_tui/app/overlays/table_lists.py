"""Overlays of the table: which columns it shows, and its rows grouped by one or two columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from tpuprof_tui.analysis.totals.grouping import GroupTable, group_table, groupings
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, fit_apart, shared_beginnings
from tpuprof_tui.formats.units import MISSING, TimeUnit, bytes_text, column_unit, percent_text, plural, signed
from tpuprof_tui.model import INT_MISSING, Column, is_missing

from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView, paragraph
from ..panes.table_rows import AT_ONCE
from ..settings.actions import bindings
from ..shell.messages import Background, CopyText
from .overlay import Close


class ColumnList(LinesView):
    """All columns of the capture: first the visible ones in table order, then the hidden ones.

    Each change calls ``changed`` at once with the keys of the visible columns (empty: the default columns). The cursor
    starts on the column with the key ``cursor_key``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "columns")]

    def __init__(
        self, all_columns: tuple[Column, ...], chosen: tuple[str, ...], palette: Palette, cursor_key: str,
        changed: Callable[[tuple[str, ...]], None],
    ) -> None:  # fmt: skip
        super().__init__(palette, "columns")
        self.all_columns = all_columns
        self.changed = changed
        self.columns: list[Column] = []
        self.shown_keys: set[str] = set()
        self._take(chosen)
        self.cursor = next((index for index, column in enumerate(self.columns) if column.key == cursor_key), 0)

    def _take(self, chosen: tuple[str, ...]) -> None:
        by_key = {column.key: column for column in self.all_columns}
        visible = [by_key[key] for key in chosen if key in by_key] or list(self.all_columns)
        self.shown_keys = {column.key for column in visible}
        self.columns = [*visible, *(column for column in self.all_columns if column.key not in self.shown_keys)]

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a line for each column: checkbox, name and meaning."""
        names = [header_text(column.title, column.unit) for column in self.columns]
        room = min(max((cell_len(name) for name in names), default=8) + 2, max(width // 3, 12))
        lines: list[Line] = []
        for column, name in zip(self.columns, names, strict=True):
            visible = column.key in self.shown_keys
            lines.append([
                Segment(" [x] " if visible else " [ ] ", self.palette.key),
                Segment(fit(name, room), self.palette.text if visible else self.palette.quiet),
                Segment(fit(column.help, max(width - room - 5, 0)), self.palette.quiet),
            ])  # fmt: skip
        self.border_title = Content(f"Columns: {len(self.shown_keys)} of {len(self.columns)} shown")
        return lines, list(range(len(lines)))

    def _apply(self) -> None:
        self.rebuild()
        self.go_to(self.cursor)
        keys = tuple(column.key for column in self.columns if column.key in self.shown_keys)
        defaults = tuple(column.key for column in self.all_columns)
        self.changed(() if keys == defaults else keys)

    def action_show_hide(self) -> None:
        """Shows or hides the column; the last visible one cannot be hidden."""
        key = self.columns[self.cursor].key
        if self.shown_keys != {key}:
            self.shown_keys ^= {key}
            self.cursor = min(self.cursor + 1, len(self.columns) - 1)
            self._apply()

    def action_shift(self, steps: int) -> None:
        """Moves the column ``steps`` places to the right."""
        new = self.cursor + steps
        if 0 <= new < len(self.columns):
            old = self.cursor
            self.columns[old], self.columns[new] = self.columns[new], self.columns[old]
            self.cursor = new
            self._apply()

    def action_usual(self) -> None:
        """Restores the default columns."""
        self._take(())
        self._apply()


#: Most groups listed: more than anyone reads.
MAX_LISTED: Final = 1_000
#: Columns after the first, with their widths in cells, in the order in which they are left out, the last one first.
_WIDTHS: Final = {
    "share": 8, "total": 11, "delta": 11, "base": 11, "count": 9, "bytes": 11, "rate": 9, "peak": 9, "mean": 11,
    "longest": 13,
}  # fmt: skip
#: Columns in their order on the screen, with their titles. All but the first sort in descending order at first.
_TITLES: Final = {
    "value": "", "count": "count", "total": "total", "mean": "mean", "longest": "longest", "base": "base",
    "delta": "delta", "bytes": "bytes", "rate": "GB/s", "peak": "of peak", "share": "share",
}  # fmt: skip
#: Widths of all margins, and the least of the first column.
_MARGINS, _NARROWEST = 4, 10


class GroupList(LinesView):
    """The list of groups; closes with the filter that keeps only the group under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "wide", "groups")]

    def __init__(
        self, session: Session, state: DisplayState, palette: Palette, glyphs: Glyphs, keys: Sequence[str], *,
        work_only: bool,
    ) -> None:  # fmt: skip
        super().__init__(palette, "groups")
        self.session = session
        self.state = state
        self.glyphs = glyphs
        self.keys = tuple(keys)
        self.work_only = work_only
        self.base = _state_of_base(session, state)
        self.sort = "delta" if self.base is not None else "total" if work_only else "count"
        self.down = True
        self._background = Background(self, "groups", small=session.profile.event_count <= AT_ONCE)
        self.table: GroupTable | None = None
        self.order: Ints = np.zeros(0, np.int64)

    def on_mount(self) -> None:
        """Computes the groups: at once for a small profile, else in the background."""
        if not self._background.small:
            self.table = None
            self._show()
        group = partial(group_table, self.session, self.state, self.keys, work_only=self.work_only,
                        base=self.base)  # fmt: skip
        self._background.compute("groups", group, self._take)

    def _take(self, table: GroupTable) -> None:
        self.table = table
        self.cursor = 0
        self.sort = self.sort if self.sort in self.columns else "total"
        self._order()

    @property
    def columns(self) -> list[str]:
        """Columns that the table has, in their order on the screen; the list can be sorted by them."""
        if self.table is None:
            return []
        absent = ("base", "delta") if self.table.base is None else ("mean", "longest")
        return [name for name in _TITLES if name == "value" or (
            name not in absent and getattr(self.table, name) is not None)]  # fmt: skip

    def _order(self) -> None:
        table = self.table
        if table is None:
            return
        if self.sort == "value":
            texts = [tuple(part.casefold() if column.kind == "text" else "" for column, part in
                           zip(table.columns, parts, strict=True)) for parts in table.parts]  # fmt: skip
            places = sorted(range(len(table)), key=lambda index: texts[index])
            keys = np.argsort(places)
        else:
            # largest change first, whether slower or faster
            keys = getattr(table, self.sort)
            keys = np.where(is_missing(keys), -1, keys)
            keys = np.abs(keys) if self.sort == "delta" else keys
        self.order = np.lexsort((-table.total, -keys if self.down else keys))
        self._show()

    def _show(self) -> None:
        self.rebuild(keep_scroll=False)
        self.border_title = Content(self._title())
        sort = (_TITLES[self.sort] or "value") if self.table is not None else "..."
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
            f"{' and '.join(column.title for column in table.columns)}: {plural(len(table), 'group')} of {events} "
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
        labels = [table.labels[index] for index in rows]
        # compared columns have one unit
        longest_total = max(int(table.total.max()), 0 if table.base is None else int(table.base.max()))
        units = {**dict.fromkeys(("total", "base", "delta"), column_unit(longest_total)),
                 **dict.fromkeys(("mean", "longest"), column_unit(int(table.longest.max())))}  # fmt: skip
        longest = max(map(cell_len, labels))
        least = min(longest, max(width * 3 // 10, _NARROWEST))
        columns = self._fitting(table, width - least - _MARGINS, width - longest - _MARGINS)
        room = max(width - sum(_WIDTHS[each] for each in columns) - _MARGINS, 1)
        label = min(max(min(longest, 60), len(self._header_text("value", units)) + 2), room)
        bar_width = min(room - label, 40)
        lines = [self._header(label, columns, units, bar_width)]
        full = float(table.share.max()) or 1.0
        shared = shared_beginnings(labels, label)
        lines += [
            self._line(table, index, fit_apart(text, label, shared), columns, units, bar_width, full)
            for index, text in zip(rows, labels, strict=True)
        ]
        return lines, [-1, *range(len(rows))]

    def _fitting(self, table: GroupTable, room: int, beside: int) -> list[str]:
        """Columns after the first that fit ``room`` cells: that of the order always, then the most important ones.

        ``beside``: room beside whole labels, which columns do not cut that most of the time does not have.
        """
        known = [each for each in self.columns if each != "value"]
        columns: list[str] = []
        order = [each for each in _WIDTHS if each in known]
        whole = table.total.sum()
        # what most of the time does not have
        rare = {each for each in order if table.total[is_missing(getattr(table, each))].sum() * 2 > whole}
        order.sort(key=rare.__contains__)
        for each in dict.fromkeys((self.sort if self.sort != "value" else "total", *order)):
            limit = beside if each in rare else room
            if each in known and (not columns or sum(_WIDTHS[every] for every in (*columns, each)) <= limit):
                columns.append(each)
        return sorted(columns, key=known.index)

    def _header_text(self, name: str, units: Mapping[str, TimeUnit]) -> str:
        title = _TITLES[name] or (self.table.title if self.table is not None else "")
        title = header_text(title, units[name].name) if name in units else title
        arrow = f" {self.glyphs.down if self.down else self.glyphs.up}" if name == self.sort else ""
        return title + arrow

    def _header(self, label: int, columns: list[str], units: Mapping[str, TimeUnit], bar_width: int) -> Line:
        line = [Segment(" ", self.palette.header)]
        for name in ("value", *columns):
            style = self.palette.chosen if name == self.sort else self.palette.header
            line.append(
                Segment(fit(self._header_text(name, units), _WIDTHS.get(name, label), right=name != "value"), style)
            )
        return [*line, Segment(" " * (bar_width + 1), self.palette.header)]

    def _line(
        self, table: GroupTable, index: int, label: str, columns: list[str], units: Mapping[str, TimeUnit],
        bar_width: int, full: float,
    ) -> Line:  # fmt: skip
        palette = self.palette

        def text(name: str) -> str:
            value = getattr(table, name)[index]
            if value != value or value == INT_MISSING:
                return MISSING
            if name in ("share", "peak"):
                return percent_text(float(value))
            if name in units:
                number = units[name].number(float(value))
                return signed(number, value) if name == "delta" else number
            return f"{value:,.2f}" if name == "rate" else bytes_text(int(value)) if name == "bytes" else f"{value:,}"

        quiet = ("mean", "longest", "base", "delta", "peak")
        styles = {"share": palette.strong, **dict.fromkeys(quiet, palette.quiet)}
        missing = all(part == MISSING for part in table.parts[index])
        return [
            Segment(f" {label}", palette.quiet if missing else palette.text),
            *(Segment(f"{text(each):>{_WIDTHS[each]}}", styles.get(each, palette.text)) for each in columns),
            Segment(" " + bar(float(table.share[index]) / full, bar_width, self.glyphs), palette.compute),
        ]

    def as_text(self) -> str:
        """The list as tab-separated text, times in ns, shares in percent."""
        table = self.table
        if table is None:
            return ""
        titles = {"total": "total ns", "mean": "mean ns", "longest": "longest ns", "base": "base ns",
                  "delta": "delta ns", "share": "share %", "peak": "of peak %"}  # fmt: skip
        names = self.columns[1:]
        heads = [header_text(column.title, column.unit) for column in table.columns]
        lines = ["\t".join((*heads, *(titles.get(name, _TITLES[name]) for name in names)))]
        for index in self.order.tolist():
            values = {name: getattr(table, name)[index] for name in names}
            numbers = ["" if is_missing(np.array([value]))[0] else f"{value * 100:.2f}" if name in ("share", "peak")
                       else f"{value:.2f}" if name == "rate" else f"{round(float(value))}"
                       for name, value in values.items()]  # fmt: skip
            lines.append("\t".join((*table.parts[index], *numbers)))
        return "\n".join(lines)

    def action_drill(self) -> None:
        """Closes with a filter for the events of the group."""
        if self.table is not None and len(self.order):
            condition = self.table.conditions[int(self.order[self.cursor])]
            if condition:
                self.post_message(Close(with_condition(self.state.filter, condition)))

    def action_next_grouping(self) -> None:
        """Groups by the next column."""
        keys = groupings(self.session)
        index = keys.index(self.keys[0]) if self.keys[0] in keys else -1
        self.keys = (keys[(index + 1) % len(keys)],)
        self.on_mount()

    def action_work_only(self) -> None:
        """Toggles between work only and all events."""
        self.work_only = not self.work_only
        self.on_mount()

    def action_scroll_columns(self, columns: int) -> None:
        """Sorts by the column ``columns`` places to the right, which shows it."""
        known = self.columns
        if known:
            self.sort = known[(known.index(self.sort) + columns) % len(known)]
            self.down = self.sort != "value"
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
