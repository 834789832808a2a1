"""Where the time went in the visible window: what took it, and how cores and engines spent it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.message import Message
from textual.worker import Worker, get_current_worker

from ...analysis.top import TopRow
from ..charts import ChartData, chart_data
from ..figures import EngineRow, Figures, figures_of, summary_scope
from ..format import (
    GUESS,
    TimeUnit,
    bytes_text,
    clean,
    fit,
    percent_text,
    time_decimals,
    time_number,
    time_text,
    time_unit,
)
from ..glyphs import Glyphs, bar
from ..messages import tell_failure
from ..session import Session
from ..state import Scope, ViewState
from ..theme import Palette
from .lines import Line, LinesView
from .summary_more import SummaryCharts, balance_lines, reference_lines

#: From this width on lists and tables stand beside one another.
BESIDE = 118
#: Up to this many instructions figures are computed at once; more in a thread.
AT_ONCE = 20_000
#: Keys may come faster than figures: a thread starts when they rest.
REST_SECONDS = 0.04


class SummaryPane(LinesView):
    """Figures that follow the visible window and the selected core."""

    # lines are built for a width: it must not change when the scroll bar comes and goes
    DEFAULT_CSS = "SummaryPane { scrollbar-gutter: stable; }"

    class Ready(Message):
        """A thread has computed figures."""

        def __init__(self, figures: Figures) -> None:
            super().__init__()
            self.figures = figures

    class Binned(Message):
        """A thread has made the data of the charts."""

        def __init__(self, data: ChartData, view: ViewState, width: int, lines: list[Line]) -> None:
            super().__init__()
            self.data = data
            self.view = view
            self.width = width
            self.lines = lines

    class Retitled(Message):
        """The summary is about something else."""

    def __init__(self, session: Session, view: ViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "summary")
        self.session = session
        self.glyphs = glyphs
        self.view = view
        self.figures: Figures | None = None
        self._wanted: tuple[int, int, Scope, str] | None = None
        self._active = False
        self.paused = False
        self.charts = SummaryCharts(palette, glyphs)
        self._about = self._about_of(view)

    def show(self, view: ViewState) -> None:
        """Shows the figures of a state, at once or as soon as they are there."""
        self.view = view
        if self._active and not self.paused:
            self._figure_out()

    def activate(self, active: bool) -> None:
        """Says whether the summary is visible: it is computed only then."""
        self._active = active
        if active and not (self.paused and self.figures is not None):
            self._figure_out()

    def pause(self, paused: bool) -> None:
        """Keeps the figures as they are, or follows the view again."""
        self.paused = paused
        if not paused and self._active:
            self._figure_out()
        self.rebuild()
        self.post_message(self.Retitled())

    def _wanted_by(self, view: ViewState) -> tuple[int, int, Scope, str]:
        return view.start, view.end, summary_scope(view), view.filter

    def _figure_out(self) -> None:
        wanted = self._wanted_by(self.view)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._about = self._about_of(self.view)
        self._bin(self.view)
        if self.session.profile.instructions <= AT_ONCE:
            self._take(figures_of(self.session, self.view))
        else:
            self._compute(self.view)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    @work(thread=True, exclusive=True, group="summary", exit_on_error=False)
    def _compute(self, view: ViewState) -> None:
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if worker.is_cancelled:
            return
        figures = figures_of(self.session, view)
        if not worker.is_cancelled:
            self.post_message(self.Ready(figures))

    @work(thread=True, exclusive=True, group="charts", exit_on_error=False)
    def _bin(self, view: ViewState) -> None:
        worker = get_current_worker()
        time.sleep(REST_SECONDS)
        if worker.is_cancelled:
            return
        data = chart_data(self.session, view, summary_scope(view))
        if not worker.is_cancelled:
            width = max(self.scrollable_content_region.width, 1)
            self.post_message(self.Binned(data, view, width, self.charts.drawn(data, width)))

    def on_summary_pane_binned(self, message: Binned) -> None:
        """Takes charts, unless others are wanted by now."""
        message.stop()
        if self._wanted_by(message.view) == self._wanted:
            self.charts.take(message.data, message.width, message.lines)
            if self.size.width:
                self.rebuild()

    def on_summary_pane_ready(self, message: Ready) -> None:
        """Takes figures, unless others are wanted by now."""
        message.stop()
        figures = message.figures
        if (figures.start, figures.end, figures.scope, figures.filter) == self._wanted:
            self._take(message.figures)

    def _take(self, figures: Figures) -> None:
        self.figures = figures
        if self.size.width:
            self.rebuild()
        self.post_message(self.Retitled())

    def title_text(self) -> str:
        """What the figures are about."""
        return f"PAUSED (p): {self._about}" if self.paused else self._about

    def _about_of(self, view: ViewState) -> str:
        scope = self.session.scope_title(summary_scope(view))
        kind = "window" if view.range is None else "range"
        window = "whole capture" if view.fits_all else f"{kind} of {time_text(view.span)}"
        told = f"{clean(scope)}, {window}"
        return f"filter {clean(view.filter)}: {told}" if view.filter else told

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Lists of what took the time, tables of cores and engines: side by side where there is room."""
        figures = self.figures
        if figures is None:
            return [[Segment(" computing ...", self.palette.quiet)]], []
        if not self.session.profile.instructions:
            text = "This capture holds no instructions. 4 shows the problems, O opens another capture."
            return [[Segment(f" {text}", self.palette.quiet)]], []
        told = [self._paused_line(width)] if self.paused else []
        rest = [[], *reference_lines(figures, width, self._heading, self.palette), *self.charts.lines(figures, width)]
        if width >= BESIDE:
            left = min(width // 2, 96)
            beside = _beside(self._lists(figures, left - 1, 0), self._tables(figures, width - left), left)
            return [*told, *beside, *rest], []
        first = max(5, self.size.height // 2 - 3)
        return [*told, *self._lists(figures, width, first), [], *self._tables(figures, width), *rest], []

    def _paused_line(self, width: int) -> Line:
        return [Segment(fit(f" Paused: {self._about}. p follows the view again.", width), self.palette.caution)]

    def _lists(self, figures: Figures, width: int, most: int) -> list[Line]:
        """What took the time; ``most`` rows of kernel functions (0: all)."""
        lines: list[Line] = []
        kernels = figures.kernels[:most] if most else figures.kernels[:12]
        if kernels:
            lines += self._top("Kernel functions", kernels, width, len(figures.kernels))
            lines.append([])
        if figures.operations:
            lines += self._top("Operations", figures.operations, width, len(figures.operations))
        if not lines:
            lines = self._engine_list(figures, width)
        return lines

    def _engine_list(self, figures: Figures, width: int) -> list[Line]:
        """What took the time where no operation is known."""
        lines = [self._heading("Engines", width, "names need mode 1")]
        total = sum(row.busy for row in figures.engines) or 1
        for row in sorted(figures.engines, key=lambda row: -row.busy):
            lines.append(self._bar_line(row.label, row.busy / total, f"{self._guess(row)}{time_text(row.busy)}",
                                        f"{row.count:,} x", width, self.palette.engine(row.engine)))  # fmt: skip
        return lines

    def _guess(self, row: EngineRow) -> str:
        return GUESS if row.guessed else ""

    def _heading(self, text: str, width: int, note: str = "") -> Line:
        shown = f" {text} "
        room = max(width - len(shown) - len(note) - 3, 0)
        line = [Segment(shown, self.palette.title), Segment(self.glyphs.rule * room, self.palette.rule)]
        return [*line, Segment(f" {note} " if note else "", self.palette.quiet)]

    def _top(self, title: str, rows: Sequence[TopRow], width: int, total: int) -> list[Line]:
        more = f"top {len(rows)} of {total}" if len(rows) < total else ""
        note = more or ("share, total, count, mean, longest" if width >= 84 else "share, total, count")
        unit = time_unit(max(row.total_ns for row in rows))
        means = time_unit(max(int(row.mean_ns) for row in rows))
        lines = [self._heading(title, width, note)]
        for row in rows:
            label = clean(row.label) if row.code >= 0 else "unknown"
            totals = f"{_number(row.total_ns, unit)} {unit.name}"
            count = f"{row.count:,} x"
            if width >= 84:
                count += f"{_number(int(row.mean_ns), means):>10} {means.name}{time_text(row.max_ns):>11}"
            lines.append(self._bar_line(label, row.share, totals, count, width, self.palette.compute, rows[0].share))
        return lines

    def _bar_line(
        self, label: str, share: float, total: str, count: str, width: int, style: Style, full: float = 1.0
    ) -> Line:
        """A line whose bar is full where the share is ``full``: that of the longest."""
        count_width = 35 if width >= 84 else 11 if width >= 46 else 0
        name_width = min(max(width - count_width - 34, 10), 34)
        bar_width = max(min(width - name_width - count_width - 24, 40), 0)
        count_width += max(width - name_width - count_width - 24 - bar_width, 0) if count_width else 0
        return [
            Segment(f" {fit(label, name_width)} ", self.palette.text),
            Segment(bar(share / full if full else 0.0, bar_width, self.glyphs), style),
            Segment(f"{percent_text(share):>7}", self.palette.strong),
            Segment(f"{fit(total, 13, right=True)}", self.palette.text),
            Segment(f"{fit(count, count_width, right=True)} ", self.palette.quiet),
        ]

    def _tables(self, figures: Figures, width: int) -> list[Line]:
        lines: list[Line] = []
        if figures.cores:
            lines += self._cores(figures, width)
            lines += balance_lines(figures, width, self.palette)
            lines.append([])
        return lines + self._engines(figures, width)

    def _cores(self, figures: Figures, width: int) -> list[Line]:
        unit = time_unit(max(max(core.compute, core.transfer, core.idle) for core in figures.cores))
        lines = [self._heading("Cores", width, f"times in {unit.name}")]
        names: tuple[str, ...] = ("compute", "transfer", "exposed", "idle", "overlap")
        longest = max(max(core.compute, core.transfer, core.idle) for core in figures.cores)
        bar_width, column, fitting = _room(width, 14, len(names), longest, unit)
        names = names[:fitting]
        lines.append(self._header(fit(" core", 6) + " " * bar_width + f"{'busy':>8}", names, column))
        for core in figures.cores:
            style = self.palette.strong if core.core == self.view.selection.core else self.palette.text
            line = [Segment(fit(f" {core.core}", 6), style)]
            line.append(Segment(bar(core.utilisation, bar_width, self.glyphs), self.palette.compute))
            line.append(Segment(f"{percent_text(core.utilisation, guessed=core.guessed):>8}", self.palette.strong))
            for name in names:
                own = self.palette.exposed if name == "exposed" and core.exposed else style
                line.append(Segment(_cell(getattr(core, name), unit, core.guessed, column), own))
            lines.append(line)
        return lines

    def _header(self, first: str, names: Sequence[str], column: int) -> Line:
        return [Segment(first + "".join(f"{name:>{column}}" for name in names), self.palette.quiet)]

    def _engines(self, figures: Figures, width: int) -> list[Line]:
        if not figures.engines:
            return []
        unit = time_unit(max(max(row.busy, row.wait, row.sync, row.idle) for row in figures.engines))
        several = figures.scope.everything and len(self.session.profile.cores) > 1
        note = f"sums over {len(figures.cores)} cores, {unit.name}" if several else f"times in {unit.name}"
        lines = [self._heading("Engines", width, note)]
        names: tuple[str, ...] = ("busy", "wait", "sync", "idle", "count", "bytes")
        label = max(8, *(len(row.label) + 2 for row in figures.engines))
        longest = max(max(row.busy, row.wait, row.sync, row.idle) for row in figures.engines)
        bar_width, column, fitting = _room(width, label + 8, len(names), longest, unit)
        names = names[:fitting]
        lines.append(self._header(fit(" engine", label) + " " * bar_width + f"{'util':>8}", names, column))
        for row in figures.engines:
            texts = {name: _cell(getattr(row, name), unit, row.guessed, column) for name in ("busy", "wait", "sync")}
            texts |= {"idle": _cell(row.idle, unit, False, column), "count": f"{row.count:>{column},}"}
            texts["bytes"] = f"{bytes_text(row.bytes):>{column}}"
            line = [Segment(fit(f" {clean(row.label)}", label), self.palette.text)]
            line.append(Segment(bar(row.utilisation, bar_width, self.glyphs), self.palette.engine(row.engine)))
            line.append(Segment(f"{percent_text(row.utilisation, guessed=row.guessed):>8}", self.palette.strong))
            line.append(Segment("".join(texts[name] for name in names), self.palette.text))
            lines.append(line)
        return lines


def _number(ns: int, unit: TimeUnit) -> str:
    return time_number(ns, unit, min(time_decimals(unit, max(unit.ns // 1000, 1)), 3))


def _cell(ns: int, unit: TimeUnit, guessed: bool, width: int) -> str:
    text = f"{GUESS if guessed and ns else ''}{_number(ns, unit)}"
    return f"{text:>{width}}"


def _room(width: int, fixed: int, columns: int, longest_ns: int, unit: TimeUnit) -> tuple[int, int, int]:
    """Width of the bar, width of a column, and how many columns fit beside ``fixed`` cells."""
    column = max(len(_number(longest_ns, unit)) + 3, 10)
    fitting = min(max((width - fixed - 1) // column, 0), columns)
    return max(min(width - fixed - fitting * column - 2, 30), 0), column, fitting


def _beside(left: list[Line], right: list[Line], width: int) -> list[Line]:
    """Two columns of lines, the second from cell ``width`` on."""
    from textual.strip import Strip

    lines = []
    for number in range(max(len(left), len(right))):
        first = Strip(left[number] if number < len(left) else []).adjust_cell_length(width, Style.null())
        lines.append([*first, *(right[number] if number < len(right) else [])])
    return lines
