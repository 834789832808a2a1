"""Tables of the summary: how cores and engines spent their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich.segment import Segment

from tpuprof_tui.analysis.totals.window_figures import Figures
from tpuprof_tui.app.drawing.colouring import lane_shades
from tpuprof_tui.app.drawing.glyphs import Glyphs, bar
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.text import clean, fit
from tpuprof_tui.formats.units import GUESS, TimeUnit, bytes_text, percent_text, time_unit
from tpuprof_tui.model import Vocabulary

from ..lines import Line
from .more import balance_lines

#: Makes a line that heads a section: text, width, note.
Heading = Callable[[str, int, str], Line]

#: Times of a unit and their titles, those that room is found for first; those of communication where there is any.
_TIMES: Final = {
    "compute": "compute", "transfer": "transfer", "communication": "comm.", "exposed": "exposed",
    "exposed_communication": "exp.comm", "wait": "wait", "idle": "idle", "overlap": "overlap",
}  # fmt: skip


def tables(
    figures: Figures,
    vocabulary: Vocabulary,
    width: int,
    chosen: int,
    heading: Heading,
    palette: Palette,
    glyphs: Glyphs,
) -> list[Line]:
    """Units, how evenly they are loaded, kinds of lanes.

    Args:
        figures: What to show.
        vocabulary: What its source calls things.
        width: Cells.
        chosen: Id of the unit that is selected; -1: none.
        heading: Makes headings.
        palette: Colours.
        glyphs: Characters.
    """
    lines: list[Line] = []
    if figures.units:
        lines += _units(figures, width, chosen, heading, palette, glyphs)
        lines += balance_lines(figures, width, palette)
        lines.append([])
    return lines + _kinds(figures, vocabulary, width, heading, palette, glyphs)


def _units(figures: Figures, width: int, chosen: int, heading: Heading, palette: Palette, glyphs: Glyphs) -> list[Line]:
    longest = max(max(each.compute, each.transfer, each.communication, each.idle) for each in figures.units)
    unit = time_unit(longest)
    lines = [heading("Cores", width, f"times in {unit.name}")]
    communicates = any(each.communication for each in figures.units)
    titles = {name: title for name, title in _TIMES.items() if communicates or "communication" not in name}
    names = tuple(titles)
    bar_width, column, fitting = _room(width, 14, len(names), longest, unit)
    names = names[:fitting]
    told = [titles[name] for name in names]
    lines.append(_header(fit(" core", 6) + " " * bar_width + f"{'busy':>8}", told, column, palette))
    for each in figures.units:
        style = palette.strong if each.unit == chosen else palette.text
        line = [Segment(fit(f" {clean(each.name)}", 6), style)]
        line.append(Segment(bar(each.utilisation, bar_width, glyphs), palette.compute))
        line.append(Segment(f"{percent_text(each.utilisation, guessed=each.guessed):>8}", palette.strong))
        for name in names:
            own = palette.exposed if name.startswith("exposed") and getattr(each, name) else style
            line.append(Segment(_cell(getattr(each, name), unit, each.guessed, column), own))
        lines.append(line)
    return lines


def _kinds(
    figures: Figures, vocabulary: Vocabulary, width: int, heading: Heading, palette: Palette, glyphs: Glyphs
) -> list[Line]:
    if not figures.kinds:
        return []
    longest = max(max(each.busy, each.wait, each.sync, each.idle) for each in (row.figures for row in figures.kinds))
    unit = time_unit(longest)
    several = figures.scope.everything and len(figures.units) > 1
    note = f"sums over {len(figures.units)} cores, {unit.name}" if several else f"times in {unit.name}"
    lines = [heading("Engines", width, note)]
    names: tuple[str, ...] = ("busy", "wait", "sync", "idle", "count", "bytes")
    label = max(8, *(len(row.label) + 2 for row in figures.kinds))
    bar_width, column, fitting = _room(width, label + 8, len(names), longest, unit)
    names = names[:fitting]
    lines.append(_header(fit(" engine", label) + " " * bar_width + f"{'util':>8}", names, column, palette))
    for row in figures.kinds:
        each = row.figures
        texts = {name: _cell(getattr(each, name), unit, each.guessed, column) for name in ("busy", "wait", "sync")}
        texts |= {"idle": _cell(each.idle, unit, False, column), "count": f"{each.count:>{column},}"}
        texts["bytes"] = f"{bytes_text(each.bytes):>{column}}"
        line = [Segment(fit(f" {clean(row.label)}", label), palette.text)]
        line.append(
            Segment(bar(each.utilisation, bar_width, glyphs), palette.shaded(lane_shades(vocabulary, row.kind)))
        )
        line.append(Segment(f"{percent_text(each.utilisation, guessed=each.guessed):>8}", palette.strong))
        line.append(Segment("".join(texts[name] for name in names), palette.text))
        lines.append(line)
    return lines


def _header(first: str, names: Sequence[str], column: int, palette: Palette) -> Line:
    return [Segment(first + "".join(f"{name:>{column}}" for name in names), palette.quiet)]


def _cell(ns: int, unit: TimeUnit, guessed: bool, width: int) -> str:
    text = f"{GUESS if guessed and ns else ''}{unit.number(ns)}"
    return f"{text:>{width}}"


def _room(width: int, fixed: int, columns: int, longest_ns: int, unit: TimeUnit) -> tuple[int, int, int]:
    """Width of the bar, width of a column, and how many columns fit beside ``fixed`` cells."""
    column = max(len(unit.number(longest_ns)) + 3, 10)
    fitting = min(max((width - fixed - 1) // column, 0), columns)
    return max(min(width - fixed - fitting * column - 2, 30), 0), column, fitting
