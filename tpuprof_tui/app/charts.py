"""Charts as text: the one module that calls plotext, which keeps state of its own: never two calls at once.

Data is binned to the pane's width before it comes here; what is drawn is plain text, in ASCII where asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

from ..analysis.lane_index import rows_between
from ..model import Role, is_missing
from .axis import edges_of
from .filtering import shown_session
from .format import TimeUnit, clean, fit, time_number, time_unit
from .glyphs import ascii_text

if TYPE_CHECKING:
    from .session import Session
    from .state import Scope, ViewState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Bins of a curve; the chart draws them to the width it has.
BINS: Final = 240
#: Bounds of the histogram, ns: three to a decade.
BOUNDS: Final = np.array([*(step * 10**power for power in range(9) for step in (1, 2, 5)), 10**9], np.int64)
#: Lines and columns below which a chart tells nothing.
LOWEST, NARROWEST = 4, 24
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER: Final = re.compile(r" [\d.,e+-]+\Z")
#: The one thread that ever calls plotext; whoever wants a chart waits for it, and the event loop need not.
_DRAWER: Final = ThreadPoolExecutor(1, thread_name_prefix="charts")


@dataclass(frozen=True, eq=False)
class ChartData:
    """What the charts of a summary are drawn from.

    Attributes:
        start, end: The window, ns.
        bandwidth: By engine, GB/s in each of ``BINS`` equal parts of the window, float64.
        durations: Work instructions between neighbouring ``BOUNDS``, shorter ones first, longer ones last; int64.
    """

    start: int
    end: int
    bandwidth: dict[str, Floats]
    durations: Ints


def missing() -> str:
    """What to say where there can be no charts; empty: there can."""
    # looked up once: without it charts are asked for again with every frame
    return "" if _installed() else "Charts need the package plotext. Install it: pip install plotext."


@cache
def _installed() -> bool:
    return find_spec("plotext") is not None


def chart_data(session: Session, view: ViewState, scope: Scope) -> ChartData:
    """Bins for the charts of a window; O(instructions in the window), meant for a thread.

    Args:
        session: All instructions; the view's filter is applied.
        view: Window and filter.
        scope: What the summary is about.

    Returns:
        The data.
    """
    shown = shown_session(session, view.filter)
    edges = edges_of(view.start, view.end, BINS)
    moved: dict[str, Floats] = {}
    durations = np.zeros(len(BOUNDS) + 1, np.int64)
    for number in shown.lanes_in(scope):
        index = shown.indexes[number]
        rows = rows_between(index, view.start, view.end)
        chosen = index.lane.take("role", rows) == Role.WORK
        if scope.core >= 0 and scope.lane < 0 and index.lane.core != scope.core:
            chosen &= index.lane.take("core", rows) == scope.core
        starts, ends = index.lane.take("start", rows)[chosen], index.lane.take("end", rows)[chosen]
        durations += np.bincount(np.searchsorted(BOUNDS, ends - starts, side="right"), minlength=len(BOUNDS) + 1)
        if "bytes" in index.lane and index.lane.engine != "TIU":
            added = bytes_in_bins(starts, ends, index.lane.take("bytes", rows)[chosen], edges)
            moved[index.lane.engine] = moved.get(index.lane.engine, np.zeros(BINS)) + added
    widths = np.maximum(np.diff(edges), 1)
    return ChartData(view.start, view.end, {name: each / widths for name, each in moved.items()}, durations)


def bytes_in_bins(starts: Ints, ends: Ints, sizes: Ints, edges: Ints) -> Floats:
    """Bytes that fall into each bin when every move spreads its bytes evenly over its time; moves may overlap.

    Args:
        starts, ends: int64 ns, starts ascending.
        sizes: int64 bytes, or missing.
        edges: int64 ns, n + 1, ascending.

    Returns:
        float64, n.
    """
    known = ~is_missing(sizes)
    starts, sizes = starts[known], sizes[known]
    ends = np.maximum(ends[known], starts + 1)
    zero = edges[0]
    rates = sizes / (ends - starts)
    upto = _ramp(starts - zero, rates, edges - zero) - _ramp(ends - zero, rates, edges - zero)
    return np.maximum(np.diff(upto), 0.0)


def _ramp(times: Ints, rates: Floats, edges: Ints) -> Floats:
    """Sum over all times before an edge of rate x (edge - time)."""
    if not bool((times[1:] >= times[:-1]).all()):
        order = np.argsort(times, kind="stable")
        times, rates = times[order], rates[order]
    rate_sums, place_sums = np.zeros(len(times) + 1), np.zeros(len(times) + 1)
    np.cumsum(rates, out=rate_sums[1:])
    np.cumsum(rates * times, out=place_sums[1:])
    place = np.searchsorted(times, edges, side="left")
    return np.asarray(rate_sums[place] * edges - place_sums[place], dtype=np.float64)


def curve(values: Floats, start: int, end: int, width: int, height: int, *, ascii_only: bool) -> list[str]:
    """A filled curve over time, the unit of time below it.

    Args:
        values: One value for each equal part of the window.
        start, end: The window, ns.
        width, height: Cells.
        ascii_only: Draw with ASCII alone.

    Returns:
        Lines of text; none where there is no room or nothing to draw.
    """
    if width < NARROWEST or height < LOWEST or not len(values):
        return []
    unit = time_unit(max(end - start, 1))
    bins = max(width * (1 if ascii_only else 2), 2)
    shown = _resampled(values, bins)
    middles = start + (np.arange(bins) + 0.5) * (end - start) / bins
    ticks = [start + (end - start) * part // 4 for part in range(5)]

    def draw(plot: Any) -> None:
        # plotext leaves out what cannot be drawn: a curve of nothing is a line at the bottom
        plot.plot(middles.tolist(), shown.tolist(), marker="*" if ascii_only else "braille", fillx=True)
        plot.xticks(ticks, [_tick(time, unit, end - start) for time in ticks])
        plot.xlim(start, end)
        top = float(shown.max()) or 1.0
        plot.ylim(0, top)
        plot.yticks([0, top / 2, top], [f"{value:6.1f}" for value in (0, top / 2, top)])

    return _drawn(draw, width, height, ascii_only)


def _resampled(values: Floats, bins: int) -> Floats:
    """The values in another number of equal parts: means where there are fewer, repeated where there are more."""
    places = (np.arange(bins) * len(values)) // bins
    if bins >= len(values):
        return values[places]
    return np.asarray(np.add.reduceat(values, places) / np.diff(places, append=len(values)), dtype=np.float64)


def bars(labels: Sequence[str], values: Sequence[float], texts: Sequence[str], width: int, *,
         ascii_only: bool) -> list[str]:  # fmt: skip
    """Horizontal bars, one line each.

    Args:
        labels: Names; they may come from a capture.
        values: Not negative.
        texts: The values as they are told, beside the names.
        width: Cells.
        ascii_only: Draw with ASCII alone.

    Returns:
        Lines of text; none where there is no room or nothing to draw.
    """
    if width < NARROWEST or not labels:
        return []
    longest = max(map(cell_len, labels)), max(map(cell_len, texts))
    names = [
        f" {fit(clean(label), longest[0], right=True)} {fit(clean(text), longest[1], right=True)}"
        for label, text in zip(labels, texts, strict=True)
    ]

    def draw(plot: Any) -> None:
        plot.simple_bar(names, [float(value) for value in values], width=width, marker="#" if ascii_only else "█")

    # the number at the end is told beside the name already
    return [_NUMBER.sub("", line) for line in _drawn(draw, width + 12, len(names), ascii_only) if line.strip()]


def _tick(time: int, unit: TimeUnit, span: int) -> str:
    decimals = 0 if unit.ns == 1 or span >= 20 * unit.ns else 1 if span >= 2 * unit.ns else 2
    return f"{time_number(time, unit, decimals)}{unit.name}"


def _drawn(draw: Callable[[Any], None], width: int, height: int, ascii_only: bool) -> list[str]:
    """What ``draw`` draws, without colours, cut to the width."""
    if missing():
        return []
    return _DRAWER.submit(_built, draw, width, height, ascii_only).result()


def _built(draw: Callable[[Any], None], width: int, height: int, ascii_only: bool) -> list[str]:
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    # not cut to the terminal plotext found when it was imported
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


def histogram(durations: Ints) -> tuple[list[str], list[float]]:
    """Labels and counts of the durations that occur, from the first to the last that do."""
    used = np.flatnonzero(durations)
    if not len(used):
        return [], []
    names = [_bound(number) for number in range(len(durations))]
    places = range(int(used[0]), int(used[-1]) + 1)
    return [names[place] for place in places], [float(durations[place]) for place in places]


def _bound(number: int) -> str:
    if number >= len(BOUNDS):
        return "1 s and more"
    bound = int(BOUNDS[number])
    unit = time_unit(bound)
    return f"< {bound // unit.ns} {unit.name}"
