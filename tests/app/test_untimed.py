"""The explorer on a capture without hardware records: what there is, and no made-up time."""

from __future__ import annotations

import tarfile
from pathlib import Path

from screen import explorer, frame, opened, press

from tpuprof_tui.sources.catalog import open_profile

_KEPT = Path(__file__).resolve().parents[1] / "data" / "compiled" / "bm1690_conv_int8_no_pmu.tar.xz"
#: What a missing time would look like as a number.
_MISSING = "9,223,372"


def _capture(path: Path) -> Path:
    with tarfile.open(_KEPT) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            assert content is not None
            (path / member.name).write_bytes(content.read())
    return path


async def test_commands_without_times_are_in_the_table_and_said_everywhere(tmp_path: Path) -> None:
    async with opened(open_profile(_capture(tmp_path))) as pilot:
        shown = frame(pilot.app)
        assert "no times" in shown
        assert "93 commands" in shown
        assert "the commands have no times" in shown
        await press(pilot, "2 down")
        shown = frame(pilot.app)
        assert "arith.cast" in shown
        assert "without times" in shown
        assert _MISSING not in shown
        for keys in ("enter", "b", "escape", "s", "v", "1", "plus", "g", "e", "C", "L", "4", "3"):
            await press(pilot, keys)
            assert _MISSING not in frame(pilot.app), keys
        assert explorer(pilot).session.profile.event_count == 93


async def test_what_has_no_times_is_neither_range_nor_span(tmp_path: Path) -> None:
    async with opened(open_profile(_capture(tmp_path))) as pilot:
        await press(pilot, "1 j j full_stop r")
        assert explorer(pilot).state.selection.row >= 0
        assert explorer(pilot).state.range is None
        assert "has no times" in frame(pilot.app)
        await press(pilot, "M a")
        assert [(start, end) for _, start, end in explorer(pilot).state.spans] == [(0, 1)]
        await press(pilot, "y")
        assert "no times" in pilot.app.clipboard
        assert "922337" not in pilot.app.clipboard
