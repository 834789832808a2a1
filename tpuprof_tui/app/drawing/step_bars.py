"""Draws the lane of steps: a bar for each with its number; where several share a cell, how much of it they fill."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.lane_index import LaneIndex, cells
from tpuprof_tui.formats.text import fit

from .glyphs import Glyphs
from .painter import Painted, levels_of, runs_of
from .theme import Palette


def paint_steps(
    index: LaneIndex, word: str, chosen: int | None, edges: npt.NDArray[np.int64], palette: Palette, glyphs: Glyphs
) -> Painted:
    """The steps in the cells between ``edges`` (int64 ns, cells + 1).

    Args:
        index: Lane of the steps.
        word: What one is called.
        chosen: Number of the one that all panes are about; None: none.
        edges: Edges of the cells.
        palette: Colours.
        glyphs: Characters.
    """
    held = cells(index, edges)
    levels = levels_of(held.busy, np.diff(edges))
    window = int(edges[-1] - edges[0])
    count = len(edges) - 1
    chars = [glyphs.levels[level] for level in levels.tolist()]
    styles = [palette.quiet] * count
    # a cell is of the last step that begins in it, so that each wide enough begins with its number
    last = np.searchsorted(index.starts, edges[1:], side="left") - 1
    row = np.where(held.count > 0, last, -1)
    narrow = held.count > 2
    runs = runs_of(np.where(narrow, -1, row))
    first = {int(row[begin]): begin for begin, _ in reversed(runs)}
    # of one that a gap of the axis divides the widest part says its name
    widest = {int(row[begin]): begin for begin, end in sorted(runs, key=lambda run: run[1] - run[0])}
    for begin, end in runs:
        place = int(row[begin])
        number = int(index.lane.take("number", slice(place, place + 1))[0])
        width = end - begin
        label = next((text for text in (f"{word} {number}", f"{number}") if len(text) < width), "")
        edge = glyphs.edge if first[place] == begin else " "
        chars[begin:end] = list(edge + fit(label if widest[place] == begin else "", width - 1))
        styles[begin:end] = [palette.chosen if number == chosen else palette.bar] * width
    return Painted(chars, styles, int(held.busy.sum()) / window if window else 0.0, held.count > 0)
