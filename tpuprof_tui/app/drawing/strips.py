"""Strips below the lanes of the timeline, and the legends of its colours and cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.segment import Segment

from tpuprof_tui.analysis.index.lane_index import LaneIndex
from tpuprof_tui.analysis.selecting.state import Colouring, StripKind
from tpuprof_tui.app.drawing.colouring import legend, share_flows, title_of
from tpuprof_tui.formats.text import fit
from tpuprof_tui.model import Profile, Vocabulary

from .glyphs import Glyphs
from .painter import Painted
from .theme import Palette

Ints = npt.NDArray[np.int64]

#: Lines a legend may take.
LEGEND_LINES = 3


def paint_strip(
    profile: Profile, index: LaneIndex, edges: Ints, kind: StripKind, palette: Palette, glyphs: Glyphs, *,
    pending: bool = False,
) -> Painted:  # fmt: skip
    """Share of the peak bandwidth, or of the time with work, of each cell; idle time counts as 0.

    O(cells x log events), after the lane's sums were made once; ``pending`` while that is being done.
    """
    span = np.diff(edges)
    if pending:
        words = fit("computing ...", len(span)) if len(span) > 1 else " "
        return Painted(list(words), [palette.quiet] * len(span), 0.0, np.zeros(len(span), np.bool_))
    if kind == "bandwidth":
        amounts = share_flows(profile, index, "bandwidth")[0].between(edges)
    else:
        amounts = np.diff(index.work.covered(edges)).astype(np.float64)
    shares = np.clip(amounts / np.maximum(span, 1), 0.0, 1.0)
    levels = np.where(amounts > 1e-6, np.clip(np.rint(shares * 8), 1, 8), 0).astype(np.int64)
    window = int(edges[-1] - edges[0])
    style = palette.transfer if kind == "bandwidth" else palette.compute
    chars = [glyphs.levels[level] for level in levels.tolist()]
    return Painted(chars, [style] * len(span), float(amounts.sum()) / window if window else 0.0, levels > 0)


def legend_lines(
    profile: Profile, colouring: Colouring, width: int, palette: Palette, glyphs: Glyphs
) -> list[list[Segment]]:
    """The colours, each with its letter and meaning, in lines of ``width`` cells; what has no room is counted."""
    if width < 24:
        return []
    categories = legend(profile, colouring)
    lines: list[list[Segment]] = [[Segment(f" {title_of(profile.vocabulary, colouring)}: ", palette.title)]]
    used = cell_len(lines[0][0].text)
    block = "" if glyphs.letters else glyphs.levels[8]
    for place, category in enumerate(categories):
        text = f"{block}{category.letter} {fit(category.name, min(cell_len(category.name), 28, width - 14))}  "
        if used + cell_len(text) + (8 if len(lines) == LEGEND_LINES else 0) > width:
            if len(lines) == LEGEND_LINES:
                lines[-1].append(Segment(f"+{len(categories) - place}", palette.quiet))
                break
            lines.append([Segment(" ", palette.text)])
            used = 1
        lines[-1] += [Segment(text[:2], palette.shaded(category.shades)), Segment(text[2:], palette.text)]
        used += cell_len(text)
    if not categories:
        lines[0].append(Segment("nothing is known of it here", palette.quiet))
    return lines


def unit_legend(vocabulary: Vocabulary, width: int, palette: Palette, glyphs: Glyphs) -> list[Segment]:
    """What the cells of a whole unit mean, in a line of at most ``width`` cells."""
    computes, moves = ("1-8", "t T") if glyphs.letters else (glyphs.levels[8], "░▒▓")
    parts = [
        (vocabulary.say(" {units}: "), palette.title), (computes, palette.compute), (" computes  ", palette.text),
        (moves, palette.exposed), (" only moves data (exposed transfer)", palette.text),
        ("; the fuller, the more of the time", palette.quiet),
    ]  # fmt: skip
    room, line = width, []
    for text, style in parts:
        if cell_len(text) > room:
            break
        line.append(Segment(text, style))
        room -= cell_len(text)
    return line
