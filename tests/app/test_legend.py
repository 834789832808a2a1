"""Every colour of the timeline's rows is in its legend."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from command_line import SAMPLES
from rich.segment import Segment
from rich.style import Style
from screen import explorer, opened, press

from tpuprof_tui.sources.catalog import open_profile

#: What cells are filled with; other characters are names on bars.
FILLED = set("▁▂▃▄▅▆▇█░▒▓")


def _colours(strip: Iterable[Segment]) -> dict[str, str]:
    """Colours of blocks and bars, with a text that has them."""
    found: dict[str, str] = {}
    for text, style, _ in strip:
        if style is not None and style.bgcolor is not None:
            found[style.bgcolor.name] = text
        if style is not None and style.color is not None and FILLED & set(text):
            found[style.color.name] = text
    return found


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("sample", ["torch_cuda_synthetic", "aks_decode_mode2", "ascend_synthetic/rank0_ascend_pt"])
async def test_every_colour_is_explained(sample, units):
    async with opened(open_profile(SAMPLES / sample), (200, 60)) as pilot:
        screen = explorer(pilot)
        await press(pilot, f"1 Z L {'e' if units else ''} home")
        timeline = screen.timeline
        for _ in range(4):
            rows = len(timeline.lanes.rows)
            legend = timeline.painter.legend(timeline.size.width)
            explained = _colours(segment for line in legend for segment in line)
            label = timeline.lanes.label_width
            shown = {}
            for number in range(1, min(rows + 1, timeline.size.height - len(legend) - 1)):
                shown |= _colours(timeline.render_line(number).crop(label, label + timeline.lanes.cells))
            palette = timeline.painter._palette
            marks = _colours(Segment("█", Style.parse(style)) for style in (palette.cursor_cell, palette.cursor_filled))
            explained |= {**marks, palette.waiting_background: "a wait"}
            missing = {name: text for name, text in shown.items() if name not in explained}
            assert not missing, timeline.lanes.state.colouring
            await press(pilot, "C")
