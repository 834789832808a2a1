"""Further parts of the summary: how evenly cores are loaded, the reference's figures, charts."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style

from tpuprof_tui.analysis.totals.chart_data import ChartData
from tpuprof_tui.analysis.totals.window_figures import Figures
from tpuprof_tui.app.drawing.charts import MISSING, bars, curve, histogram
from tpuprof_tui.app.drawing.colouring import lane_shades
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.text import clean, in_sentence
from tpuprof_tui.formats.units import GUESS, percent_text
from tpuprof_tui.model import Vocabulary

from ..lines import Line, paragraph

#: Lines of a curve, its times below included.
CURVE_HEIGHT = 8
#: Charts are no wider than this: wider ones tell no more.
WIDEST = 120

#: Makes a line that heads a section: text, width, note.
Heading = Callable[[str, int, str], Line]


def balance_lines(figures: Figures, width: int, palette: Palette) -> list[Line]:
    """How evenly the cores are loaded, in a sentence; nothing about a single core."""
    units = figures.units
    mean = sum(unit.utilisation for unit in units) / len(units) if units else 0.0
    if len(units) < 2 or not mean:
        return []
    most, least = max(units, key=lambda unit: unit.busy), min(units, key=lambda unit: unit.busy)
    guess = GUESS if any(unit.guessed for unit in units) else ""
    text = (
        f"Load: mean {percent_text(mean)}, most {in_sentence(most.label)} {percent_text(most.utilisation)} "
        f"({guess}{most.utilisation / mean:.2f} x mean), "
        f"least {in_sentence(least.label)} {percent_text(least.utilisation)}"
    )
    return paragraph(text, width, palette.text)


def reference_lines(figures: Figures, width: int, heading: Heading, palette: Palette) -> list[Line]:
    """Figures of the source's own tool under its own names; columns that do not fit go below, with the core again."""
    table = figures.published
    if not table.rows:
        return []
    lines = [heading(table.title, width, table.note)]
    widths = [max(len(title), *(len(row[place]) for row in table.rows)) for place, title in enumerate(table.titles)]
    for places in _chunks(widths, width - 1):
        shown = [0, *places]
        lines.append([Segment(_cells(table.titles, widths, shown), palette.quiet)])
        for number, row in enumerate(table.rows):
            style = palette.strong if number == len(table.rows) - 1 else palette.text
            lines.append([Segment(_cells(row, widths, shown), style)])
    return lines


def _chunks(widths: list[int], width: int) -> list[list[int]]:
    """Places of the columns beside the first, in groups that fit."""
    chunks: list[list[int]] = [[]]
    used = widths[0] + 1
    for place, each in enumerate(widths[1:], 1):
        if chunks[-1] and used + each + 2 > width:
            chunks.append([])
            used = widths[0] + 1
        chunks[-1].append(place)
        used += each + 2
    return chunks


def _cells(texts: tuple[str, ...], widths: list[int], places: list[int]) -> str:
    return " " + "  ".join(f"{texts[place]:>{widths[place]}}" for place in places)


class SummaryCharts:
    """The charts of a summary; drawn anew when data or width change.

    Attributes:
        data: What they are drawn from; None: not there yet.
    """

    def __init__(self, vocabulary: Vocabulary, palette: Palette, glyphs: Glyphs) -> None:
        self.vocabulary = vocabulary
        self.palette = palette
        self.glyphs = glyphs
        self.data: ChartData | None = None
        self._drawn: tuple[object, ...] = ()
        self._lines: list[Line] = []
        self._load_of: tuple[object, ...] = ()
        self._load: list[Line] = []

    def lines(self, figures: Figures, width: int) -> list[Line]:
        """Bandwidth over time by engine, durations, load of the cores; as last drawn where they are ``stale``."""
        if self.data is None:
            return []
        # charts come after the figures: what these alone decide is not drawn again for them
        if self._load_of != (figures.units, width):
            self.take_load(figures, width, self.load_drawn(figures, width))
        return [*self._lines, *self._load]

    def stale(self, width: int) -> bool:
        """Whether bandwidth and durations are to be drawn anew: for another width, or in other colours."""
        return self.data is not None and self._drawn != (self.data, width)

    def drawn(self, data: ChartData, width: int) -> list[Line]:
        """Bandwidth and durations; takes longer than a frame: meant for a thread."""
        if MISSING:
            told = paragraph(MISSING, width, self.palette.quiet)
            return [[], self._heading("Charts", width), *told]
        return [*self._curves(data, width), *self._durations(data, width)]

    def take(self, data: ChartData, width: int, lines: list[Line]) -> None:
        """Shows what was drawn from ``data`` for a width."""
        self.data, self._drawn, self._lines = data, (data, width), lines

    def take_load(self, figures: Figures, width: int, lines: list[Line]) -> None:
        """Shows what was drawn of the load of the cores for a width."""
        self._load_of, self._load = (figures.units, width), lines

    def repaint(self, palette: Palette) -> None:
        """Uses other colours."""
        self.palette = palette
        self._drawn = self._load_of = ()

    def _heading(self, text: str, width: int, note: str = "") -> Line:
        rule = self.glyphs.rule * max(width - len(text) - len(note) - 5, 0)
        return [Segment(f" {text} ", self.palette.title), Segment(rule, self.palette.rule),
                Segment(f" {note} ", self.palette.quiet)]  # fmt: skip

    def _curves(self, data: ChartData, width: int) -> list[Line]:
        lines: list[Line] = []
        for engine, values in data.bandwidth.items():
            drawn = curve(
                values, data.start, data.end, min(width - 2, WIDEST), CURVE_HEIGHT, ascii_only=self.glyphs.letters
            )
            if drawn and values.max() > 0:
                note = f"GB/s, mean {values.mean():.1f}, most {values.max():.1f}"
                lines += [[], self._heading(f"Bandwidth of {clean(engine)}", width, note)]
                lines += self._styled(drawn, self.palette.shaded(lane_shades(self.vocabulary, engine)))
        return lines

    def _durations(self, data: ChartData, width: int) -> list[Line]:
        labels, counts = histogram(data.durations)
        texts = [f"{count:,.0f} x" for count in counts]
        drawn = bars(labels, counts, texts, min(width - 2, WIDEST), ascii_only=self.glyphs.letters) if labels else []
        if not drawn:
            return []
        return [[], self._heading("Durations", width, "instructions of work"),
                *self._styled(drawn, self.palette.compute)]  # fmt: skip

    def load_drawn(self, figures: Figures, width: int) -> list[Line]:
        """Load of the cores; nothing about a single one."""
        units = figures.units
        if len(units) < 2:
            return []
        drawn = bars(
            [in_sentence(unit.label) for unit in units],
            [unit.utilisation * 100 for unit in units],
            [percent_text(unit.utilisation, guessed=unit.guessed) for unit in units],
            min(width - 2, WIDEST), ascii_only=self.glyphs.letters,
        )  # fmt: skip
        if not drawn:
            return []
        return [[], self._heading("Load of the cores", width, "busy"), *self._styled(drawn, self.palette.transfer)]

    def _styled(self, texts: list[str], style: Style) -> list[Line]:
        return [[Segment(f" {text}", style)] for text in texts]
