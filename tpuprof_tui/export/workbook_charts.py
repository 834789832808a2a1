"""Charts sheet of a workbook: busy time of lanes, work by kernel or operation, bandwidth over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.xlsx.book import Book, Page, Value
from tpuprof_tui.formats.xlsx.rows import COLUMN_HEADER, COUNT, KEY_CELL
from tpuprof_tui.model.vocabulary import Vocabulary
from tpuprof_tui.views.answer import Answer
from tpuprof_tui.views.registry import answer, view_of

#: First column of the data of the charts, to their right.
_FIGURES: Final = 20
#: Maximum number of bars of a chart, so that they can be distinguished.
_MOST_BARS: Final = 25
_WIDTH: Final = 30
_HEIGHT: Final = 9
_US: Final = replace(KEY_CELL, form="#,##0.000")


def add_charts(book: Book, query: Query) -> None:
    """Adds the charts sheet, if there is any data."""
    blocks = [*_busy(query), *_work(query), *_bandwidth(query)]
    if not blocks:
        return
    page = book.page("Charts", "5B9BD5")
    page.sheet.print_area = f"A1:S{len(blocks) * (2 * _HEIGHT + 2)}"
    first, column = 1, _FIGURES
    for title, unit, header, rows in blocks:
        page.line(1, column, header, COLUMN_HEADER)
        for row, cells in enumerate(rows, 2):
            for place, value in enumerate(cells, column):
                page.put(row, place, value, KEY_CELL if isinstance(value, str) else _US)
        chart = _chart(page, title, unit, column, len(header), len(rows))
        page.sheet.add_chart(chart, f"A{first}")
        first += 2 * _HEIGHT + 2
        column += len(header) + 1


_Block = tuple[str, str, Sequence[str], list[tuple[Value, ...]]]


def _busy(query: Query) -> list[_Block]:
    """Chart data: busy time of each kind of lane, by unit; without lanes that describe others, as bars are stacked."""
    table = _answered(query, "lanes").tables[:1]
    sums: dict[str, dict[str, float]] = {}
    kinds: dict[str, str] = {each.key: each.title for each in query.vocabulary.lane_kinds}
    profile, groups = query.profile, set[int]()
    for row in range(len(table[0]) if table else 0):
        target = table[0].target_of(row)
        busy = dict(zip((each.key for each in table[0].columns), table[0].row(row), strict=True))["busy_us"]
        if target is None or target.scope is None or busy is None:
            continue
        lane = profile.lanes[target.scope.lane]
        if not lane.counted:
            continue
        groups.add(lane.group)
        by_kind = sums.setdefault(profile.groups.title(lane.group), {})
        by_kind[lane.kind] = by_kind.get(lane.kind, 0.0) + busy / 1000
    found = [kind for kind in kinds if any(kind in each for each in sums.values())]
    if not found:
        return []
    words = query.vocabulary
    rows: list[tuple[Value, ...]] = [(unit, *(each.get(kind) for kind in found)) for unit, each in sums.items()]
    unit = _group_word(query, groups)
    header = (f"{unit[:1].upper()}{unit[1:]}", *(f"{kinds[kind]} (us)" for kind in found))
    return [(words.say("Busy time of each {of} and {lane}", of=unit), "us", header, rows[: 4 * _MOST_BARS])]


def _group_word(query: Query, groups: set[int]) -> str:
    """What the groups of a chart are called: the word for units if there are any, else that of the first one's kind."""
    if min(groups) < 0 or not groups.isdisjoint(query.profile.units):
        return query.vocabulary.unit.one
    return query.vocabulary.word_of(query.profile.groups[min(groups)].kind).one


def _work(query: Query) -> list[_Block]:
    """Chart data: work by kernel, or by operation if there are no kernels; of several workers the sum."""
    for view in ("kernels", "operations"):
        for table in _answered(query, view).tables:
            columns = {column.key: column for column in table.columns}
            if "total_us" in columns and "name" in columns and len(table):
                sums: dict[str, float] = {}
                for name, total in zip(table.column("name"), table.column("total_us"), strict=True):
                    sums[str(name)] = sums.get(str(name), 0.0) + (total or 0) / 1000
                title = columns["name"].title if view == "kernels" else query.vocabulary.say("{Operation}")
                rows: list[tuple[Value, ...]] = [*sorted(sums.items(), key=lambda row: -row[1])]
                return [(f"Work by {in_sentence(title)}", "us", (title, "Work (us)"), rows[:_MOST_BARS])]
    return []


def _bandwidth(query: Query) -> list[_Block]:
    series = _answered(query, "bandwidth").series
    if not series:
        return []
    times = [(int(time) - query.profile.start_ns) / 1000 for time in series[0].times[: len(series[0].values)]]
    rows = list(zip(times, *(each.values.tolist() for each in series), strict=True))
    return [("Bandwidth", "GB/s", ("Time (us)", *(f"{each.title} ({each.unit})" for each in series)), rows)]


def _answered(query: Query, view: str) -> Answer:
    vocabulary: Vocabulary = query.vocabulary
    return answer(view_of(vocabulary, view), query)


def _chart(page: Page, title: str, unit: str, column: int, columns: int, rows: int) -> Any:
    from openpyxl.chart import BarChart, LineChart, Reference

    chart: Any = LineChart() if unit == "GB/s" else BarChart()
    chart.title = title
    chart.width, chart.height = _WIDTH, _HEIGHT
    chart.y_axis.title = unit
    chart.y_axis.number_format = COUNT
    chart.x_axis.delete = chart.y_axis.delete = False
    if unit != "GB/s":
        chart.grouping, chart.overlap = "stacked", 100
    else:
        chart.x_axis.title, chart.x_axis.number_format = "us", COUNT
        chart.x_axis.tickLblSkip = max(rows // 10, 1)
    if columns == 2:
        chart.legend = None
    figures = Reference(page.sheet, column + 1, 1, column + columns - 1, rows + 1)
    chart.add_data(figures, titles_from_data=True)
    chart.set_categories(Reference(page.sheet, column, 2, column, rows + 1))
    if unit == "GB/s":
        for line in chart.series:
            line.smooth = False
            line.graphicalProperties.line.width = 12_700
    return chart
