"""Charts as plain text (or ASCII), drawn by plotext in a single thread, because plotext has global state.

Callers bin the data to the pane's width.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.counter_lines import CounterCurve
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.formats.units import TimeUnit, bytes_text, short_text, time_number, time_unit
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.views.answer import Series

from .glyphs import ascii_text

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Least height in lines and width in columns of a chart.
LOWEST, NARROWEST = 4, 24
#: A chart of less than one in so many parts of its height would be too flat to read.
_FLAT: Final = 4
_ESCAPES: Final = lazy_pattern(r"\x1b\[[0-9;]*m")
#: The only thread that calls plotext. Callers block on it, so they must be worker threads.
_DRAWER: Final = ThreadPoolExecutor(1, thread_name_prefix="charts")


#: Message if plotext is not installed, else empty. Computed once, as it is needed for every frame.
MISSING: Final = "" if find_spec("plotext") else "Charts need the package plotext. Install it: pip install plotext."


def series_curve(series: Series, start: int, end: int, width: int, height: int, *, ascii_only: bool) -> list[str]:
    """Chart of a series over a window (ns): means of the known values, each valid until the next."""
    edges = edges_of(start, end, max(2 * width, 2))
    # a series of means has one more time than values: the end of the last part
    last = max(end, int(series.times[-1])) if len(series.times) else end
    means = CounterCurve.of(series.times[: len(series.values)], series.values, last).means(edges)
    return curve(np.nan_to_num(means), start, end, width, height, ascii_only=ascii_only, unit=series.unit,
                 peak=series.peak)  # fmt: skip


def curve(
    values: Floats, start: int, end: int, width: int, height: int, *, ascii_only: bool, unit: str = "",
    peak: float = 0.0,
) -> list[str]:  # fmt: skip
    """Lines of a filled chart with a time axis below; empty if there is no room or no data.

    Args:
        values: One for each equal part of the window from ``start`` to ``end`` (ns), in ``unit``.
        peak: Where a dashed line is drawn, unless it would flatten the chart; 0: nowhere.
    """
    if width < NARROWEST or height < LOWEST or not len(values):
        return []
    of_time = time_unit(max(end - start, 1))
    bins = max(width * (1 if ascii_only else 2), 2)
    shown = _resampled(values, bins)
    middles = start + (np.arange(bins) + 0.5) * (end - start) / bins
    ticks = [start + (end - start) * part // 4 for part in range(5)]
    top = float(shown.max()) or 1.0
    peak = peak if peak <= _FLAT * top else 0.0
    top = max(top, peak)
    levels = [0, top / 2, top]
    # fixed width aligns the digits of small numbers
    labels = [bytes_text(round(value)) if unit == "B" else f"{value:6.1f}" if top < 1e4 else short_text(value, unit)
              for value in levels]  # fmt: skip
    labels = [label.rjust(max(map(len, labels))) for label in labels]
    # the room left by the labels of both axes
    columns, lines = width - max(map(len, labels)), height - 1
    dots = (columns, lines) if ascii_only else (columns * 2, lines * 4)
    reached = _reached(_places(middles, start, end, dots[0]), _places(shown, 0, top, dots[1]), dots[0])
    cells = _marks(reached, columns, lines, ascii_only=ascii_only)
    if peak:
        at = round(peak / top * (lines - 1))
        taken = {column for column, line, _ in cells if line == at}
        cells += [(column, at, "-") for column in range(0, columns, 2) if column not in taken]

    def draw(plot: Any) -> None:
        # one point per filled cell: plotext's own fill needs one per dot
        plot.scatter(
            [start + (end - start) * column / (columns - 1) for column, _, _ in cells],
            [top * line / (lines - 1) for _, line, _ in cells],
            marker=[mark for _, _, mark in cells],
        )
        plot.xticks(ticks, [_tick(time, of_time, end - start) for time in ticks])
        plot.xlim(start, end)
        plot.ylim(0, top)
        plot.yticks(levels, labels)

    return [] if MISSING else _DRAWER.submit(_built, draw, width, height, ascii_only).result()


def _places(values: Floats, low: float, high: float, dots: int) -> Ints:
    """Dot index (int64) of each value on an axis from ``low`` to ``high``, rounded as plotext does."""
    return np.floor(np.round(0.5 + (dots - 1) * (values - low) / (high - low), 8)).astype(np.int64)


def _reached(across: Ints, up: Ints, dots: int) -> Ints:
    """Rasterises the polyline: highest dot in each of ``dots`` columns; int64, -1: none."""
    left, right, low, high = across[:-1], across[1:], up[:-1], up[1:]
    counts = np.maximum(np.abs(right - left), np.abs(high - low)) + 1
    segment = np.repeat(np.arange(len(counts)), counts)
    step = positions_in_runs(counts)
    parts = np.maximum(counts - 1, 1)
    columns = (left[segment] + step * ((right - left) / parts)[segment]).astype(np.int64)
    heights = (low[segment] + step * ((high - low) / parts)[segment]).astype(np.int64)
    reached = np.full(dots, -1, np.int64)
    inside = (columns >= 0) & (columns < dots)
    np.maximum.at(reached, columns[inside], heights[inside])
    return reached


#: Bit of each dot of a Braille character, lowest row first; in ASCII a cell is one dot.
_BRAILLE: Final = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]])
_ASCII: Final = np.array([[1]])


def _marks(reached: Ints, columns: int, lines: int, *, ascii_only: bool) -> list[tuple[int, int, str]]:
    """(column, line from the bottom, character) of each cell with a dot below the curve."""
    bits = _ASCII if ascii_only else _BRAILLE
    high, wide = bits.shape
    filled = np.arange(lines * high)[:, np.newaxis] <= reached[np.newaxis, :]
    codes = (filled.reshape(lines, high, columns, wide) * bits[:, np.newaxis, :]).sum(axis=(1, 3))
    return [
        (column, line, "*" if ascii_only else chr(0x2800 + codes[line, column]))
        for line, column in np.argwhere(codes).tolist()
    ]


def _resampled(values: Floats, bins: int) -> Floats:
    """Resamples values to ``bins`` equal parts: means if there are fewer bins, repetition if there are more."""
    places = (np.arange(bins) * len(values)) // bins
    if bins >= len(values):
        return values[places]
    return np.asarray(np.add.reduceat(values, places) / np.diff(places, append=len(values)), dtype=np.float64)


def _tick(time: int, unit: TimeUnit, span: int) -> str:
    decimals = 0 if unit.ns == 1 or span >= 20 * unit.ns else 1 if span >= 2 * unit.ns else 2
    return f"{time_number(time, unit, decimals)}{unit.name}"


def _built(draw: Callable[[Any], None], width: int, height: int, ascii_only: bool) -> list[str]:
    """Lines of the figure that ``draw`` makes, without colours, cut to the width."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    # by default plotext limits the size to the terminal found at import
    plotext.limit_size(False, False)
    plotext.plotsize(width, height)
    plotext.frame(False)
    try:
        draw(plotext)
        text = str(plotext.build())
    finally:
        plotext.clear_figure()
    lines = [_ESCAPES.sub("", line).rstrip()[:width] for line in text.rstrip("\n").split("\n")]
    return [ascii_text(line) for line in lines] if ascii_only else lines
