#!/usr/bin/env python3
"""What keys cost in the explorer at 160x48 and 256 colours, as figures: ``python tests/benchmarks/keys.py CAPTURE``.

For each kind of key, median and 95th percentile of

- the repaint: CPU of the event loop from the key to the last byte it sends before it rests, with what the figures and
  charts of the summary make it draw when they arrive;
- all: CPU of the whole process from the key to rest, with all threads (figures, sorting, sums), without the charts;
- charts: CPU of the threads that gather, find and draw what stands in the charts and "worth a look", which begin when
  keys rest;

and the bytes sent. Charts are also timed by the clock: from the last key to the last byte of the frame with them. CPU
time does not count other programs, but a busy machine slows it too, so each run begins with a baseline to compare with:
a bare Textual app of the same size that pages through as many columns of text. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ |= {"TEXTUAL_COLOR_SYSTEM": "256", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
for _name in ("NO_COLOR", "COLORTERM", "LC_ALL", "LC_CTYPE"):
    os.environ.pop(_name, None)

import numpy as np  # noqa: E402
from driving import QuietTerminal, Sent, ready, send_key  # noqa: E402
from rich.segment import Segment  # noqa: E402
from rich.style import Style  # noqa: E402
from textual.app import App, ComposeResult  # noqa: E402
from textual.geometry import Size  # noqa: E402
from textual.scroll_view import ScrollView  # noqa: E402
from textual.strip import Strip  # noqa: E402

from tpuprof_tui.analysis.query import Query  # noqa: E402
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter  # noqa: E402
from tpuprof_tui.analysis.selecting.search import hits_in_table  # noqa: E402
from tpuprof_tui.analysis.selecting.session import ordered  # noqa: E402
from tpuprof_tui.analysis.selecting.state import Sort  # noqa: E402
from tpuprof_tui.app.explorer.screen import ExplorerScreen  # noqa: E402
from tpuprof_tui.app.panes.summary import summary  # noqa: E402
from tpuprof_tui.app.shell.application import TpuprofApp  # noqa: E402
from tpuprof_tui.views.summary_views import quick_views  # noqa: E402

SIZE = (160, 48)
#: Nothing is sent for so long: the key has been dealt with, s.
QUIET = 0.12
#: Threads that a key starts, by what they make.
GROUPS = ("table", "summary", "charts", "lanes")
#: Windows whose figures are computed, and keys after which charts are waited for.
WINDOWS, ZOOMS = 24, "w w d w a s s d s w"
#: Kind of key, what leads to the place where it is pressed, and the keys that are measured.
KINDS = (
    ("cursor in the timeline", "1 0", "l l l l l l l l l l h h h h h h h h h h"),
    ("lane down and up", "", "j j j j j j j j j j k k k k k k k k k k"),
    ("zoom", "", "w w w w w w w w w w s s s s s s s s s s"),
    ("pan", "w w w w", "d d d d d d a a a a a a D D D A A A"),
    ("step", "", "full_stop full_stop full_stop full_stop full_stop full_stop comma comma comma comma comma comma"),
    ("timeline alone: zoom", "0 Z", "w w w w w w s s s s s s"),
    ("timeline alone: step", "", "full_stop full_stop full_stop full_stop full_stop full_stop comma comma comma comma"),
    ("table: row down", "Z 0 2", "j j j j j j j j j j k k k k k k"),
    ("table: page down", "", " ".join(["pagedown"] * 16)),
    ("table: first, last", "", "G g G g G g"),
    ("table alone: page down", "Z", " ".join(["pagedown"] * 16)),
    ("table: sort", "Z", "greater_than_sign s s greater_than_sign s s"),
    ("focus", "", "tab tab tab tab tab tab tab tab"),
    ("views", "", "1 2 3 4 1 2 3 4 1 2 3 4"),
    ("prompt opens, closes", "2", "slash escape ampersand escape slash escape ampersand escape"),
    ("detail hides, shows", "1 full_stop", "i i i i i i"),
    ("help opens, closes", "1", "question_mark escape question_mark escape question_mark escape"),
)


@dataclass(frozen=True)
class Cost:
    """What one key costs.

    Attributes:
        cpu: CPU of the event loop to the last byte, s.
        all: CPU of all threads to rest, s, without that of the charts.
        charts: CPU of what makes the charts, s.
        bytes: What is sent.
        drawn: From the key to the last byte by the clock, s.
    """

    cpu: float
    all: float
    charts: float
    bytes: int
    drawn: float


class Meter:
    """CPU time of the charts' threads."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on(self, owner: object, name: str) -> None:
        """Measures a function from now on."""
        function = getattr(owner, name)

        @wraps(function)
        def measured(*args: Any, **named: Any) -> Any:
            begin = time.thread_time()
            try:
                return function(*args, **named)
            finally:
                self.seconds += time.thread_time() - begin

        setattr(owner, name, measured)


CHARTS = Meter()


class Bare(App[int]):
    """The baseline: lines of ten columns and nothing else."""

    CSS = "ScrollView { height: 1fr; }"
    driver_class = QuietTerminal

    def compose(self) -> ComposeResult:
        yield Lines()


class Lines(ScrollView, can_focus=True):
    """A million lines made when they are shown."""

    def on_mount(self) -> None:
        self.virtual_size = Size(SIZE[0], 1_000_000)
        self.focus()

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        texts = [Segment(f"{number * factor:>14,} ", _STYLES[factor % 2]) for factor in range(1, 11)]
        return Strip(texts).crop_extend(0, self.size.width, Style.null())


_STYLES = (Style.parse("#d7dde8 on #10141b"), Style.parse("#8593a8 on #10141b"))


async def cost_of(app: App[int], key: str) -> Cost:
    """What one key costs."""
    sent: list[Sent] = []
    terminal = app._driver
    assert isinstance(terminal, QuietTerminal)
    terminal.taken = lambda data: sent.append(Sent(data))
    begin, begun, charts, pressed = time.thread_time(), time.process_time(), CHARTS.seconds, time.perf_counter()
    send_key(app, key)  # type: ignore[arg-type]
    known = -1
    while len(sent) != known or any(worker.is_running for worker in app.workers if worker.group in GROUPS):
        known = len(sent)
        await asyncio.sleep(QUIET)
    spent, charts = time.process_time() - begun, CHARTS.seconds - charts
    # what only tells the terminal that an update begins or ends is no update
    drawn = [each for each in sent if each.bytes > 60]
    cpu, last = (drawn[-1].cpu - begin, drawn[-1].wall - pressed) if drawn else (0.0, 0.0)
    return Cost(cpu, spent - charts, charts, sum(each.bytes for each in sent), last)


def quantile(values: Sequence[float], part: float) -> float:
    """The value at a part of the sorted values."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)]


def line(title: str, costs: Sequence[Cost], baseline: float) -> str:
    """Figures of a kind of key."""
    texts = [f"{title:32}"]
    for times in ([each.cpu for each in costs], [each.all for each in costs], [each.charts for each in costs]):
        texts += [f"{quantile(times, part) * 1e3:8.1f}" for part in (0.5, 0.95)]
    ratio = quantile([each.cpu for each in costs], 0.5) * 1e3 / baseline if baseline else 1.0
    sent = [each.bytes / 1e3 for each in costs]
    return " ".join([*texts, f"{ratio:8.2f}", f"{quantile(sent, 0.5):9.2f}", f"{max(sent):9.2f}"])


async def bare_costs() -> list[Cost]:
    """Pages of the bare app."""
    app = Bare()
    app.animation_level = "none"
    costs: list[Cost] = []

    async def script() -> None:
        await asyncio.sleep(0.5)
        costs.extend([await cost_of(app, "pagedown") for _ in range(20)])

    await run(app, script)
    return costs


async def run(app: App[int], script: Callable[[], Awaitable[None]]) -> None:
    """Runs an app with a script; what goes wrong is raised."""
    errors: list[BaseException] = []

    async def pilot(_: object) -> None:
        try:
            await script()
        except BaseException as error:
            errors.append(error)
        finally:
            app.exit(0)

    app.driver_class = QuietTerminal
    await app.run_async(size=SIZE, auto_pilot=pilot)
    if errors:
        raise errors[0]


async def explorer_costs(path: str, only: str, baseline: float) -> tuple[list[str], dict[str, float]]:
    """Figures of each kind of key, and of what it takes to sort, filter and search all rows: as lines, and by name."""
    app = TpuprofApp(path)
    told: list[str] = []
    figures: dict[str, float] = {}
    every: list[Cost] = []

    async def script() -> None:
        await ready(app)
        # until garbage has been collected once, and the first figures are there
        await asyncio.sleep(2.5)
        charts = [each for each in [await cost_of(app, key) for key in ZOOMS.split()] if each.charts]
        for title, before, keys in KINDS:
            for key in before.split():
                await cost_of(app, key)
            if only not in title:
                continue
            # a table of many rows is put in order in a thread
            await app.workers.wait_for_complete()
            await asyncio.sleep(QUIET)
            costs = [await cost_of(app, key) for key in keys.split()]
            # at an end a key changes nothing
            costs = [each for each in costs if each.bytes] or costs
            every.extend(costs)
            told.append(line(title, costs, baseline))
            if title == "table alone: page down":
                figures["page_kb"] = max(each.bytes for each in costs) / 1e3
        told.append(line("all keys above", every, baseline))
        for name, times in (("", [each.cpu for each in every]), ("all_", [each.all for each in every])):
            figures[f"{name}median"], figures[f"{name}p95"] = (quantile(times, part) * 1e3 for part in (0.5, 0.95))
        figures["ratio"] = figures["median"] / baseline
        screen = app.screen
        assert isinstance(screen, ExplorerScreen)
        figures["charts"] = quantile([each.drawn for each in charts], 0.5) * 1e3
        shown = f"{figures['charts']:8.1f} {'':8} {figures['charts'] / 100:8.2f} of 100 ms"
        told.append(f"{'charts drawn after a key, clock':32} {shown}")
        for title, most, took in rows_figures(screen):
            told.append(f"{title:32} {took:8.1f} {'':8} {took / most:8.2f} of {most} ms")
            kind = title.partition(" ")[0]
            figures[kind] = max(took, figures.get(kind, 0.0))

    await run(app, script)
    return told, figures


def rows_figures(screen: ExplorerScreen) -> list[tuple[str, int, float]]:
    """What it takes to sort, filter and search all instructions: title, target and CPU, ms."""
    session = screen.session
    numbers = np.arange(session.profile.event_count, dtype=np.int64)

    def best(work: Callable[[int], object]) -> float:
        found = []
        for turn in range(5):
            begin = time.thread_time()
            work(turn)
            found.append(time.thread_time() - begin)
        return min(found) * 1e3

    keys = ("duration", "name", "bytes", "kernel", "start")
    figures = [
        (f"sort by {key}", 250, best(lambda _, key=key: ordered(session, numbers, Sort(key, True)))) for key in keys
    ]
    # another number each time: filters are remembered
    figures += [
        ("filter dur>N", 100, best(lambda turn: apply_filter(session, f"dur>{1000 + turn}ns"))),
        ("filter name and engine", 100, best(lambda turn: apply_filter(session, f"name=*m* engine=GDMA dur>{turn}ns"))),
        ("search", 50, best(lambda turn: hits_in_table(session, "tensor"[: 3 + turn % 3], numbers))),
        ("summary of a new window, median", 20, windows_figure(screen)),
    ]
    return figures


def windows_figure(screen: ExplorerScreen) -> float:
    """CPU of the figures of the summary for one of many windows, each of another length and place; median, ms."""
    whole = screen.state
    length = whole.full_end - whole.full_start
    found = []
    for number in range(1, WINDOWS + 1):
        span = length * number // (WINDOWS + 1)
        start = whole.full_start + (length - span) * (number * 7 % WINDOWS) // WINDOWS
        begin = time.thread_time()
        quick_views(Query(screen.session, range=(start, start + span)))
        found.append(time.thread_time() - begin)
    return quantile(found, 0.5) * 1e3


def main() -> None:
    """Prints one line for each kind of key."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture")
    parser.add_argument("--only", default="", help="kinds of keys whose title contains this")
    parser.add_argument("--json", action="store_true", help="the figures that have targets, by name")
    options = parser.parse_args()
    path = str(Path(options.capture).resolve())
    CHARTS.on(summary, "draw_curves")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {"XDG_CONFIG_HOME": f"{scratch}/config", "XDG_STATE_HOME": f"{scratch}/state"}
        bare = asyncio.run(bare_costs())
        baseline = quantile([each.cpu for each in bare], 0.5) * 1e3
        if options.json:
            _, figures = asyncio.run(explorer_costs(path, options.only, baseline))
            print(json.dumps(figures))
            return
        heads = ("repaint", "p95", "all", "p95", "charts", "p95", "/bare")
        print(f"{'CPU ms from key to rest':32}" + "".join(f" {head:>8}" for head in heads), f"{'kB':>9} {'most kB':>9}")
        print(line("bare app: page down", bare, baseline), flush=True)
        print("\n".join(asyncio.run(explorer_costs(path, options.only, baseline))[0]))


if __name__ == "__main__":
    main()
