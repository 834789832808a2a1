"""Lanes drawn in cells: characters and styles from exact occupancy, at any zoom.

A frame costs O(cells x log events) per lane: nothing here looks at the events between two edges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tpuprof_tui.analysis.index.lane_index import Cells, LaneIndex, cells
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.state import Colouring
from tpuprof_tui.analysis.totals.figures import UnitIndex
from tpuprof_tui.app.drawing.colouring import cell_categories, event_categories, is_share, shares_of
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import percent_text
from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.vocabulary import Category

from .colouring import OTHER, lane_shades
from .glyphs import Glyphs
from .theme import Palette

Ints = npt.NDArray[np.int64]

#: Cells an event must fill to carry its name.
NAMED_CELLS = 4
#: More than this that run beside an event are not counted.
_BESIDE = 99


class Painted(Struct, dict=True):
    """A lane drawn: a character and a style per cell, its share of work in the window, which cells hold anything."""

    chars: list[str]
    styles: list[Style]
    utilisation: float
    held: npt.NDArray[np.bool_]

    @cached_property
    def runs(self) -> tuple[list[Segment], list[int]]:
        """Runs of equal style as one segment each, and the cells where they begin; at the end the number of cells."""
        begins = [
            place for place in range(len(self.chars)) if not place or self.styles[place] is not self.styles[place - 1]
        ]
        return merged(self.chars, self.styles), [*begins, len(self.chars)]

    def replaced(self, cell: int, char: str, style: Style) -> list[Segment]:
        """The segments with another character and style in one cell."""
        segments, begins = self.runs
        run = bisect_right(begins, cell) - 1
        before, after = self.chars[begins[run] : cell], self.chars[cell + 1 : begins[run + 1]]
        own = self.styles[cell]
        parts = [
            Segment("".join(chars), each) for chars, each in ((before, own), ([char], style), (after, own)) if chars
        ]
        return [*segments[:run], *parts, *segments[run + 1 :]]


def merged(chars: Sequence[str], styles: Sequence[Style]) -> list[Segment]:
    """Segments of cells, one for each run of one style."""
    segments: list[Segment] = []
    begin = 0
    for place in range(1, len(chars) + 1):
        if place == len(chars) or styles[place] is not styles[begin]:
            segments.append(Segment("".join(chars[begin:place]), styles[begin]))
            begin = place
    return segments


def joined(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbours of one style as one segment each."""
    result: list[Segment] = []
    for segment in segments:
        if result and result[-1].style is segment.style:
            result[-1] = Segment(result[-1].text + segment.text, segment.style)
        else:
            result.append(segment)
    return result


def levels_of(part: Ints, span: Ints) -> npt.NDArray[np.int64]:
    """Eighths of each cell that ``part`` fills: 0 only where it is nothing, 8 only where it is nearly all."""
    safe = np.maximum(span, 1)
    eighths = (part * 8 + safe // 2) // safe
    return np.where(part > 0, np.clip(eighths, 1, 8), 0)


def paint_lane(
    profile: Profile, index: LaneIndex, edges: Ints, palette: Palette, glyphs: Glyphs,
    colouring: Colouring = "operation", *, pending: bool = False, kernels: Ints | None = None,
) -> Painted:  # fmt: skip
    """A lane in the cells between ``edges`` (int64 ns, cells + 1).

    ``pending``: the sums that colours rest on are still being made; until then cells have none.
    ``kernels``: as in ``event_categories``.
    """
    held = cells(index, edges)
    span = np.diff(edges)
    window = int(edges[-1] - edges[0])
    utilisation = int(held.busy.sum()) / window if window else 0.0
    chars, styles = _empty(len(span), palette)
    if not held.count.any():
        return Painted(chars, styles, utilisation, held.count > 0)
    found = {} if pending else cell_categories(profile, index, held, edges, colouring, kernels)
    # where a letter is all that tells a share or a kernel function, it stands in every cell
    letters = glyphs.letters or palette.lettered or not palette.colour
    lettered = held.count > 0 if colouring != "operation" else held.count == 1
    if pending or not (glyphs.letters or palette.lettered if colouring == "operation" else letters):
        lettered = np.zeros(len(span), np.bool_)
    # an engine's colour would be taken for a share or a kernel function
    unknown = palette.shaded(
        lane_shades(profile.vocabulary, index.lane.kind) if colouring == "operation" else OTHER.shades
    )
    unknown = palette.quiet if pending else unknown
    _paint_cells(index.lane, held, span, chars, styles, palette, glyphs, found, lettered, unknown)
    _paint_names(profile, index.lane, held, span, chars, styles, palette, glyphs, colouring, kernels)
    return Painted(chars, styles, utilisation, held.count > 0)


def paint_passing(whole: Painted, passing: Painted, palette: Palette, glyphs: Glyphs) -> Painted:
    """Events that pass a filter as they are, the others as dim dots; utilisation is that of those that pass.

    Names of hidden events stay.
    """
    chars, styles = list(whole.chars), list(whole.styles)
    for place in np.flatnonzero(whole.held & ~passing.held).tolist():
        style = styles[place]
        if style.bgcolor is not None or style.reverse:
            # a bar has no ground of its own any more: dots say how far it goes
            chars[place] = glyphs.hidden if chars[place] == " " else chars[place]
        else:
            chars[place] = glyphs.hidden
        styles[place] = palette.hidden
    for place in np.flatnonzero(passing.held).tolist():
        chars[place], styles[place] = passing.chars[place], passing.styles[place]
    _mend(chars)
    return Painted(chars, styles, passing.utilisation, whole.held | passing.held)


def _mend(chars: list[str]) -> None:
    """Puts blanks where one half of a wide character was overwritten."""
    for place, char in enumerate(chars):
        if char.isascii() and char:
            continue
        wide = char != "" and cell_len(char) > 1
        torn = wide and (place + 1 == len(chars) or chars[place + 1] != "")
        if torn or (char == "" and (place == 0 or cell_len(chars[place - 1]) < 2)):
            chars[place] = " "


def _empty(count: int, palette: Palette) -> tuple[list[str], list[Style]]:
    return [" "] * count, [palette.text] * count


def _paint_cells(
    lane: Lane, held: Cells, span: Ints, chars: list[str], styles: list[Style], palette: Palette, glyphs: Glyphs,
    categories: dict[int, Category], lettered: npt.NDArray[np.bool_], unknown: Style,
) -> None:  # fmt: skip
    levels = levels_of(held.busy, span)
    waits = held.wait > held.sync
    _mark_instants(lane, held, levels, waits)
    filled = held.count > 0
    busy = filled & (levels > 0)
    characters = glyphs.levels
    chars[:] = [characters[level] for level in np.where(busy, levels, 0).tolist()]
    looks = np.full(len(chars), palette.text, dtype=object)
    looks[busy] = unknown
    styles[:] = looks.tolist()
    for place in np.flatnonzero(filled & ~busy).tolist():
        quiet = bool(waits[place])
        chars[place] = glyphs.wait if quiet else glyphs.sync
        styles[place] = palette.wait if quiet else palette.sync
    for place, category in categories.items():
        if busy[place]:
            chars[place] = category.letter if lettered[place] else chars[place]
            styles[place] = unknown if category is OTHER else palette.shaded(category.shades)
    for place in np.flatnonzero(busy & (held.wait * 2 > span - held.busy) & (levels < 8)).tolist():
        styles[place] = palette.tinted(styles[place])


def _mark_instants(lane: Lane, held: Cells, levels: npt.NDArray[np.int64], waits: npt.NDArray[np.bool_]) -> None:
    """Draws events without a duration, which fill no cell, by their role."""
    instants = np.flatnonzero((held.count > 0) & (held.busy + held.wait + held.sync == 0) & (held.first >= 0))
    if len(instants):
        roles = lane.take("role", held.first[instants])
        levels[instants[(roles == Role.WORK) | (roles == Role.ANNOTATION)]] = 1
        waits[instants[roles == Role.WAIT]] = True


def _annotated(lane: Lane, held: Cells) -> npt.NDArray[np.bool_]:
    """Cells in which an annotation runs and nothing that counts."""
    found = np.zeros(len(held.count), np.bool_)
    places = np.flatnonzero((held.count > 0) & (held.busy + held.wait + held.sync == 0) & (held.first >= 0))
    if len(places):
        found[places] = lane.take("role", held.first[places]) == Role.ANNOTATION
    return found


def _paint_names(
    profile: Profile, lane: Lane, held: Cells, span: Ints, chars: list[str], styles: list[Style], palette: Palette,
    glyphs: Glyphs, colouring: Colouring, kernels: Ints | None,
) -> None:  # fmt: skip
    """Events that fill several whole cells become one bar, or one line of waiting, with their name in it.

    Where others run beside one their number follows its name.
    """
    notes = _annotated(lane, held)
    whole = (held.first >= 0) & ((held.busy + held.wait + held.sync >= span) | notes)
    # neighbours belong together where the first is the same, and as many run beside it
    beside = np.minimum(held.count - 1, _BESIDE)
    for begin, end in runs_of(np.where(whole, held.first * (_BESIDE + 1) + beside, -1)):
        if end - begin < NAMED_CELLS:
            continue
        row = int(held.first[begin])
        name = text_of(profile, lane, "name" if "name" in lane else "kernel", row)
        width, more = end - begin, f" +{beside[begin]}" if beside[begin] else ""
        if held.busy[begin] > 0 or notes[begin]:
            category = event_categories(profile, lane, np.array([row]), colouring, kernels)[0]
            own = lane_shades(profile.vocabulary, lane.kind) if colouring == "operation" else OTHER.shades
            style = palette.filled(category.shades if category is not None else own)
            letter = f"{category.letter} " if category is not None and colouring == "kernel" and "name" in lane else ""
            label = f"{letter}{_share_text(profile, lane, row, colouring)}{name}"
            text = glyphs.edge + fit(_cut(label, width - 1, more), width - 1)
        else:
            style = styles[begin]
            glyph = chars[begin]
            shown = f" {_cut(name, width - 6, more)} " if name and width - 6 >= NAMED_CELLS else ""
            text = f"{glyph * 2}{shown}" + glyph * (width - 2 - cell_len(shown))
        _put(chars, begin, end, text)
        styles[begin:end] = [style] * width


def _cut(name: str, room: int, more: str) -> str:
    """A name and what follows it, the name cut so that both have room; the name alone where they have none."""
    if cell_len(name) + len(more) <= room:
        return name + more
    return fit(name, room - len(more)) + more if more and room - len(more) >= 2 else fit(name, room)


def _share_text(profile: Profile, lane: Lane, row: int, colouring: Colouring) -> str:
    """What a share is in figures, before the name; empty where colours mean no share."""
    if not is_share(colouring):
        return ""
    share = float(shares_of(profile, lane, colouring, slice(row, row + 1))[0])
    return f"{percent_text(share)} " if share == share else ""


def _put(chars: list[str], begin: int, end: int, text: str) -> None:
    """Puts ``text``, which is as wide as the cells, into them: a wide character and an empty string after it."""
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
    """[begin, end) of each run of one value that is not negative."""
    bounds = np.flatnonzero(np.diff(values)) + 1
    begins = np.concatenate(([0], bounds)).tolist()
    ends = np.concatenate((bounds, [len(values)])).tolist()
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if values[begin] >= 0]


def paint_gaps(painted: Painted, edges: Ints, palette: Palette, glyphs: Glyphs) -> None:
    """Marks the cells that have no time of this side."""
    for place in np.flatnonzero(edges[1:] == edges[:-1]).tolist():
        painted.chars[place], painted.styles[place] = glyphs.gap, palette.hidden


def paint_counters(shares: npt.NDArray[np.float64], palette: Palette, glyphs: Glyphs) -> Painted:
    """Counters, each cell as high as its share (0 to 1) of what fills it; what is 0 is quiet, what is unknown empty."""
    known = np.isfinite(shares)
    eighths = np.rint(np.where(known, shares, 0.0) * 8).astype(np.int64)
    # sums of floats leave a little where all is 0
    zero = known & (shares < 1e-9)
    lowest = "0" if glyphs.letters else glyphs.levels[1]
    chars = [glyphs.levels[level] for level in np.where(known, np.clip(eighths, 1, 8), 0).tolist()]
    styles = [palette.transfer] * len(chars)
    for place in np.flatnonzero(zero).tolist():
        chars[place], styles[place] = lowest, palette.quiet
    return Painted(chars, styles, 0.0, known)


def paint_unit(index: UnitIndex, edges: Ints, palette: Palette, glyphs: Glyphs) -> Painted:
    """A whole unit: blocks where it computed, shades where it only moved data (exposed transfer)."""
    span = np.diff(edges)
    window = int(edges[-1] - edges[0])
    compute = np.diff(index.compute.covered(edges))
    busy = np.diff(index.either.covered(edges))
    chars, styles = _empty(len(span), palette)
    levels = levels_of(busy, span)
    exposed = busy - compute > compute
    shades = " ttttTTTT" if glyphs.letters else " ░░░▒▒▒▓▓"
    for place in np.flatnonzero(levels).tolist():
        level = int(levels[place])
        chars[place] = shades[level] if exposed[place] else glyphs.levels[level]
        styles[place] = palette.exposed if exposed[place] else palette.compute
    return Painted(chars, styles, int(busy.sum()) / window if window else 0.0, levels > 0)
