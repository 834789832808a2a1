"""Paints timeline lines in cells: characters and styles from exact occupancy at any zoom; and the legends.

A frame costs O(cells x log events) per lane: events between two cell edges are never iterated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tpuprof_tui.analysis.index.lane_index import LaneCells, LaneIndex, cells, rows_between
from tpuprof_tui.analysis.index.unit_index import UnitIndex
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.state import Colouring, StripKind
from tpuprof_tui.analysis.totals.work_sums import shares_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import percent_text
from tpuprof_tui.model import Profile, Role, Vocabulary
from tpuprof_tui.model.lane import row_count, row_numbers
from tpuprof_tui.model.vocabulary import Shades

from .colouring import (
    OTHER,
    cell_categories,
    event_categories,
    is_share,
    lane_shades,
    legend,
    share_flows,
    title_of,
)
from .glyphs import Glyphs
from .theme import Palette

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Least width, in cells, at which an event is labelled.
MIN_LABEL_CELLS = 4
#: Greatest number of concurrent events that is counted.
_MAX_CONCURRENT = 99
#: Most events of a window that are looked at for labels.
_MOST_LABELLED = 1 << 18
#: Most lines of a legend.
LEGEND_LINES = 3


class CellPaint(Struct):
    """A painted lane: character and style per cell, share of work in the window (0 to 1), mask of non-empty cells."""

    chars: list[str]
    styles: list[Style]
    utilisation: float
    non_empty: Bools


def merged(chars: Sequence[str], styles: Sequence[Style]) -> list[Segment]:
    """Merges cells into segments, one for each run of equal style."""
    segments: list[Segment] = []
    begin = 0
    for index in range(1, len(chars) + 1):
        if index == len(chars) or styles[index] is not styles[begin]:
            segments.append(Segment("".join(chars[begin:index]), styles[begin]))
            begin = index
    return segments


def levels_of(part: Ints, span: Ints) -> npt.NDArray[np.int64]:
    """Fill of each cell in eighths, rounded: 0 only if ``part`` is 0, else 1 to 8; int64."""
    safe = np.maximum(span, 1)
    eighths = (part * 8 + safe // 2) // safe
    return np.where(part > 0, np.clip(eighths, 1, 8), 0)


def paint_lane(
    profile: Profile, index: LaneIndex, edges: Ints, palette: Palette, glyphs: Glyphs,
    colouring: Colouring = "operation", *, pending: bool = False, colour_numbers: Ints | None = None,
) -> CellPaint:  # fmt: skip
    """Paints a lane in the cells between ``edges`` (int64 ns, cells + 1).

    ``pending``: the sums that determine colours are still being computed; until then cells have no colour.
    ``colour_numbers``: as in ``event_categories``.
    """
    per_cell, span = cells(index, edges), np.diff(edges)
    filled, window = per_cell.count > 0, int(edges[-1] - edges[0])
    utilisation = int(per_cell.busy.sum()) / window if window else 0.0
    if not filled.any():
        return CellPaint([" "] * len(span), [palette.text] * len(span), utilisation, filled)
    # shares, kernel functions and other names show their letter in every cell, operations only on lone events
    lettered = per_cell.count == 1 if colouring == "operation" else filled
    if pending or not (glyphs.letters or palette.lettered or (colouring != "operation" and not palette.colour)):
        lettered = np.zeros(len(span), np.bool_)
    # in other colourings the lane's colour could be mistaken for a share or a kernel function
    shades = lane_shades(profile.vocabulary, index.lane.kind) if colouring == "operation" else OTHER.shades
    unknown = palette.quiet if pending else palette.shaded(shades)
    # events without a duration occupy no time: draw them by role
    instants = np.flatnonzero(filled & (per_cell.busy + per_cell.wait + per_cell.sync == 0) & (per_cell.first >= 0))
    roles = index.lane.take("role", per_cell.first[instants])
    levels, waits = levels_of(per_cell.busy, span), per_cell.wait > per_cell.sync
    levels[instants[(roles == Role.WORK) | (roles == Role.ANNOTATION)]] = 1
    waits[instants[roles == Role.WAIT]] = True
    busy = filled & (levels > 0)
    chars = [glyphs.levels[level] for level in np.where(busy, levels, 0).tolist()]
    styles = [unknown if each else palette.text for each in busy.tolist()]
    for cell in np.flatnonzero(filled & ~busy).tolist():
        quiet = bool(waits[cell])
        chars[cell] = glyphs.wait if quiet else glyphs.sync
        styles[cell] = palette.wait if quiet else palette.sync
    for cell, category in (
        {} if pending else cell_categories(profile, index, per_cell, edges, colouring, colour_numbers)
    ).items():
        if busy[cell]:
            chars[cell] = category.letter if lettered[cell] else chars[cell]
            styles[cell] = unknown if category is OTHER else palette.shaded(category.shades)
    for cell in np.flatnonzero(busy & (per_cell.wait * 2 > span - per_cell.busy) & (levels < 8)).tolist():
        styles[cell] = palette.tinted(styles[cell])
    notes = np.zeros(len(span), np.bool_)
    notes[instants[roles == Role.ANNOTATION]] = True
    _paint_labels(profile, index, per_cell, edges, notes, chars, styles, palette, glyphs, colouring, colour_numbers)
    return CellPaint(chars, styles, utilisation, filled)


def paint_passing(full: CellPaint, passing: CellPaint, palette: Palette, glyphs: Glyphs) -> CellPaint:
    """Combines a lane with its filtered version: events that do not pass become dim dots.

    Names of hidden events stay. The utilisation is that of the events that pass.
    """
    chars, styles = list(full.chars), list(full.styles)
    for cell in np.flatnonzero(full.non_empty & ~passing.non_empty).tolist():
        style = styles[cell]
        if style.bgcolor is not None or style.reverse:
            # the bar loses its background: dots show its extent
            chars[cell] = glyphs.hidden if chars[cell] == " " else chars[cell]
        else:
            chars[cell] = glyphs.hidden
        styles[cell] = palette.hidden
    for cell in np.flatnonzero(passing.non_empty).tolist():
        chars[cell], styles[cell] = passing.chars[cell], passing.styles[cell]
    _blank_torn_chars(chars)
    return CellPaint(chars, styles, passing.utilisation, full.non_empty | passing.non_empty)


def _blank_torn_chars(chars: list[str]) -> None:
    """Blanks the remaining half of wide characters that were partly overwritten."""
    for index, char in enumerate(chars):
        if char.isascii() and char:
            continue
        wide = char != "" and cell_len(char) > 1
        torn = wide and (index + 1 == len(chars) or chars[index + 1] != "")
        if torn or (char == "" and (index == 0 or cell_len(chars[index - 1]) < 2)):
            chars[index] = " "


def _paint_labels(
    profile: Profile, index: LaneIndex, per_cell: LaneCells, edges: Ints, notes: Bools, chars: list[str],
    styles: list[Style], palette: Palette, glyphs: Glyphs, colouring: Colouring, colour_numbers: Ints | None,
) -> None:  # fmt: skip
    """Draws events that fill several whole cells as one labelled bar, or as a labelled line of waiting.

    The label is followed by the number of concurrent events (``+2``), if any; of nested events it is that of the
    innermost for which there is room.
    """
    lane, shows_share, span = index.lane, is_share(profile.vocabulary, colouring), np.diff(edges)
    filled = (per_cell.first >= 0) & ((per_cell.busy + per_cell.wait + per_cell.sync >= span) | notes)
    # adjacent cells form one bar if they have the same first event and the same number of concurrent ones
    concurrent = np.minimum(per_cell.count - 1, _MAX_CONCURRENT)
    first = np.where(filled, per_cell.first, -1)
    if "parent" in lane and (inner := _innermost(profile, index, edges)) is not None:
        first, concurrent = np.where(filled & (inner >= 0), inner, first), np.zeros(len(span), np.int64)
    for begin, end in runs_of(np.where(first >= 0, first * (_MAX_CONCURRENT + 1) + concurrent, -1)):
        if end - begin < MIN_LABEL_CELLS:
            continue
        row = int(first[begin])
        name = text_of(profile, lane, "name" if "name" in lane else "kernel", row, readable=True)
        width, more = end - begin, f" +{concurrent[begin]}" if concurrent[begin] else ""
        if per_cell.busy[begin] > 0 or notes[begin]:
            category = event_categories(profile, index, np.array([row]), colouring, colour_numbers)[0]
            own = lane_shades(profile.vocabulary, lane.kind) if colouring == "operation" else OTHER.shades
            style = palette.filled(category.shades if category is not None else own)
            lettered = category is not None and colouring != "operation" and not shows_share and "name" in lane
            letter = f"{category.letter} " if category is not None and lettered else ""
            share = shares_of(profile, lane, colouring, slice(row, row + 1))[0] if shows_share else np.nan
            label = f"{letter}{f'{percent_text(float(share))} ' if share == share else ''}{name}"
            text = glyphs.edge + fit(_cut(label, width - 1, more), width - 1)
        else:
            style = styles[begin]
            glyph = chars[begin]
            label_text = f" {_cut(name, width - 6, more)} " if name and width - 6 >= MIN_LABEL_CELLS else ""
            text = f"{glyph * 2}{label_text}" + glyph * (width - 2 - cell_len(label_text))
        _write(chars, begin, end, text)
        styles[begin:end] = [style] * width


def _innermost(profile: Profile, index: LaneIndex, edges: Ints) -> Ints | None:
    """For each cell the innermost event around it whose name has room; -1: none. None: too many to look at them."""
    rows = rows_between(index, int(edges[0]), int(edges[-1]))
    if row_count(rows) > _MOST_LABELLED:
        return None
    lane, least = index.lane, MIN_LABEL_CELLS * int(np.diff(edges).max(initial=0))
    starts, ends = index.starts[rows], lane.take("end", rows)
    wide = np.minimum(ends, edges[-1]) - np.maximum(starts, edges[0]) >= least
    numbers = row_numbers(rows)[wide]
    # the cells that each fills, those at the edges of the window too
    first = np.searchsorted(edges, np.maximum(starts[wide], edges[0]))
    stop = np.searchsorted(edges, np.minimum(ends[wide], edges[-1]), side="right") - 1
    found = np.full(len(edges) - 1, -1, np.int64)
    key = "name" if "name" in lane else "kernel"
    for row, low, high in zip(numbers.tolist(), first.tolist(), stop.tolist(), strict=True):
        # outer events come first
        if high - low > max(cell_len(text_of(profile, lane, key, row, readable=True)), MIN_LABEL_CELLS - 1):
            found[low:high] = row
    return found


def _cut(name: str, width: int, more: str) -> str:
    """Name followed by ``more``, the name cut to fit ``width`` cells; without ``more`` if there is no room for both."""
    if cell_len(name) + len(more) <= width:
        return name + more
    return fit(name, width - len(more)) + more if more and width - len(more) >= 2 else fit(name, width)


def _write(chars: list[str], begin: int, end: int, text: str) -> None:
    """Writes ``text``, as wide as the cells, into them; a wide character is followed by an empty string."""
    if len(text) == end - begin:
        chars[begin:end] = list(text)
        return
    spread: list[str] = []
    for char in text:
        width = cell_len(char)
        if width:
            spread += [char] + [""] * (width - 1)
        elif spread:
            spread[-1] += char
    chars[begin:end] = (spread + [" "] * (end - begin))[: end - begin]


def runs_of(values: Ints) -> list[tuple[int, int]]:
    """Half-open ranges [begin, end) of the runs of equal, non-negative values."""
    bounds = np.flatnonzero(np.diff(values)) + 1
    begins = np.concatenate(([0], bounds)).tolist()
    ends = np.concatenate((bounds, [len(values)])).tolist()
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if values[begin] >= 0]


def paint_counters(shares: npt.NDArray[np.float64], palette: Palette, glyphs: Glyphs) -> CellPaint:
    """Paints a counter line: each cell as high as its share (0 to 1) of full scale; 0 is dim, NaN is empty."""
    known = np.isfinite(shares)
    eighths = np.rint(np.where(known, shares, 0.0) * 8).astype(np.int64)
    zero = known & (shares < 1e-9)  # tolerance for rounding errors of float sums
    lowest = "0" if glyphs.letters else glyphs.levels[1]
    chars = [glyphs.levels[level] for level in np.where(known, np.clip(eighths, 1, 8), 0).tolist()]
    styles = [palette.transfer] * len(chars)
    for cell in np.flatnonzero(zero).tolist():
        chars[cell], styles[cell] = lowest, palette.quiet
    return CellPaint(chars, styles, 0.0, known)


def paint_unit(index: UnitIndex, edges: Ints, palette: Palette, glyphs: Glyphs) -> CellPaint:
    """Paints a whole unit: blocks where it computed, shades where it only moved data (exposed transfer)."""
    span = np.diff(edges)
    window = int(edges[-1] - edges[0])
    compute = np.diff(index.compute.covered(edges))
    busy = np.diff(index.busy.covered(edges))
    levels = levels_of(busy, span)
    exposed = (busy - compute > compute).tolist()
    shades = " ttttTTTT" if glyphs.letters else " ░░░▒▒▒▓▓"
    chars = [(shades if moves else glyphs.levels)[level] for level, moves in zip(levels.tolist(), exposed, strict=True)]
    styles = [palette.text if not level else palette.exposed if moves else palette.compute
              for level, moves in zip(levels.tolist(), exposed, strict=True)]  # fmt: skip
    return CellPaint(chars, styles, int(busy.sum()) / window if window else 0.0, levels > 0)


def paint_strip(
    profile: Profile, index: LaneIndex, edges: Ints, kind: StripKind, palette: Palette, glyphs: Glyphs, *,
    pending: bool = False,
) -> CellPaint:  # fmt: skip
    """Paints a strip: share of the peak bandwidth, or of the time with work, of each cell; idle time counts as 0.

    O(cells x log events) once the lane's sums are cached; ``pending``: they are still being computed.
    """
    span = np.diff(edges)
    if pending:
        words = fit("computing ...", len(span)) if len(span) > 1 else " "
        return CellPaint(list(words), [palette.quiet] * len(span), 0.0, np.zeros(len(span), np.bool_))
    if kind == "bandwidth":
        amounts = share_flows(profile, index, "bandwidth")[0].between(edges)
    else:
        amounts = np.diff(index.work.covered(edges)).astype(np.float64)
    shares = np.clip(amounts / np.maximum(span, 1), 0.0, 1.0)
    levels = np.where(amounts > 1e-6, np.clip(np.rint(shares * 8), 1, 8), 0).astype(np.int64)
    window = int(edges[-1] - edges[0])
    style = palette.transfer if kind == "bandwidth" else palette.compute
    chars = [glyphs.levels[level] for level in levels.tolist()]
    return CellPaint(chars, [style] * len(span), float(amounts.sum()) / window if window else 0.0, levels > 0)


def paint_steps(
    index: LaneIndex, word: str, chosen: int | None, edges: Ints, palette: Palette, glyphs: Glyphs
) -> CellPaint:
    """Paints a numbered bar for each step; cells shared by more than two steps show their occupancy.

    ``chosen``: number of the step that all panes are restricted to; None: none.
    """
    per_cell = cells(index, edges)
    levels = levels_of(per_cell.busy, np.diff(edges))
    window = int(edges[-1] - edges[0])
    count = len(edges) - 1
    chars = [glyphs.levels[level] for level in levels.tolist()]
    styles = [palette.quiet] * count
    # a cell belongs to the last step that starts in it, so that a wide step starts with its number
    last = np.searchsorted(index.starts, edges[1:], side="left") - 1
    row = np.where(per_cell.count > 0, last, -1)
    narrow = per_cell.count > 2
    runs = runs_of(np.where(narrow, -1, row))
    first = {int(row[begin]): begin for begin, _ in reversed(runs)}
    # if a gap of the axis splits a step, only its widest part is labelled
    widest = {int(row[begin]): begin for begin, end in sorted(runs, key=lambda run: run[1] - run[0])}
    for begin, end in runs:
        step_row = int(row[begin])
        number = int(index.lane.take("number", slice(step_row, step_row + 1))[0])
        width = end - begin
        label = next((text for text in (f"{word} {number}", f"{number}") if len(text) < width), "")
        edge = glyphs.edge if first[step_row] == begin else " "
        chars[begin:end] = list(edge + fit(label if widest[step_row] == begin else "", width - 1))
        styles[begin:end] = [palette.chosen if number == chosen else palette.bar] * width
    return CellPaint(chars, styles, int(per_cell.busy.sum()) / window if window else 0.0, per_cell.count > 0)


def legend_lines(
    profile: Profile, colouring: Colouring, width: int, palette: Palette, glyphs: Glyphs,
    names: Sequence[str] | None = (),
) -> list[list[Segment]]:  # fmt: skip
    """Lines of the legend: colour, letter and meaning of each category; ``+N`` counts those without room.

    ``names``: as in ``legend``; None: not known yet.
    """
    if width < 24:
        return []
    categories = legend(profile, colouring, names or ())
    lines: list[list[Segment]] = [[Segment(f" {title_of(profile.vocabulary, colouring)}: ", palette.title)]]
    used = cell_len(lines[0][0].text)
    block = "" if glyphs.letters else glyphs.levels[8]
    for index, category in enumerate(categories):
        text = f"{block}{category.letter} {fit(category.name, min(cell_len(category.name), 28, width - 14))}  "
        if used + cell_len(text) + (8 if len(lines) == LEGEND_LINES else 0) > width:
            if len(lines) == LEGEND_LINES:
                lines[-1].append(Segment(f"+{len(categories) - index}", palette.quiet))
                break
            lines.append([Segment(" ", palette.text)])
            used = 1
        lines[-1] += [Segment(text[:2], palette.shaded(category.shades)), Segment(text[2:], palette.text)]
        used += cell_len(text)
    if names is None:
        # reserve all lines, so that the pane keeps its height when the names arrive
        lines += [[Segment(" ", palette.text)] for _ in range(1, LEGEND_LINES)]
    elif not categories:
        lines[0].append(Segment("no values are known here", palette.quiet))
    return lines


def unit_legend(vocabulary: Vocabulary, width: int, palette: Palette, glyphs: Glyphs) -> list[Segment]:
    """Legend of the cells of a whole unit, in a line of at most ``width`` cells."""
    computes, moves = ("1-8", "t T") if glyphs.letters else (glyphs.levels[8], "░▒▓")
    return _in_line(width, (vocabulary.say(" {units}: "), palette.title), (computes, palette.compute),
                    (" computes  ", palette.text), (moves, palette.exposed),
                    (" only moves data (exposed transfer)", palette.text),
                    ("; fuller: more of the time", palette.quiet))  # fmt: skip


def other_legend(
    profile: Profile, colouring: Colouring | None, lane_kinds: Iterable[str], row_kinds: Collection[str], width: int,
    palette: Palette, glyphs: Glyphs,
) -> list[Segment]:  # fmt: skip
    """Legend of cells in the colour of no category, in a line of at most ``width`` cells; empty without any.

    These are many events of a kind of lane in a cell, or what a colouring does not know (None: no lanes are shown), and
    rows that are no lanes, by their kinds.
    """
    titles = {each.key: each.title for each in profile.vocabulary.lane_kinds}
    known, title, others = set[Shades](), " others: ", {"not known": OTHER.shades}
    if colouring == "operation":
        known, title = {each.shades for each in legend(profile, colouring)}, " many events: "
        others = {clean(titles.get(kind, kind)): lane_shades(profile.vocabulary, kind) for kind in lane_kinds}
    coloured = {name: palette.shaded(each) for name, each in others.items() if each not in known}
    styles = {"steps": palette.bar, "counters": palette.transfer, "bandwidth": palette.transfer,
              "utilisation": palette.compute}  # fmt: skip
    rows = {name: style for name, style in styles.items() if name in row_kinds}
    block = "#" if glyphs.letters else glyphs.levels[8]
    parts = []
    for heading, entries in ((title, coloured if colouring and palette.colour else {}), (" rows: ", rows)):
        parts += [(heading, palette.title)] if entries else []
        parts += [part for name, style in entries.items() for part in ((block, style), (f" {name}  ", palette.text))]
    return _in_line(width, *parts)


def _in_line(width: int, *parts: tuple[str, Style]) -> list[Segment]:
    room, line = width, []
    for text, style in parts:
        if cell_len(text) > room:
            break
        line.append(Segment(text, style))
        room -= cell_len(text)
    return line
