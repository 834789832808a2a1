"""Colours and attributes of a few views, as SVG; ``UPDATE_FRAMES=1`` writes them anew for review.

What text frames cannot see. Rich and Textual draw SVG a little otherwise in each version: others than those that drew
what lies here are passed over.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from profiles import small_profile
from screen import opened, press, settled

FOLDER = Path(__file__).parent / "snapshots"
DRAWN_WITH = {"textual": "8.2.8", "rich": "15.0.0"}
FOUND = {name: version(name) for name in DRAWN_WITH}
#: Keys that lead to a view, and variables of the terminal.
VIEWS = {
    "zoomed": ("w w w w w w j j full_stop", {}),
    "table": ("2 ampersand d u r greater_than_sign 1 0 0 enter j j space", {}),
    "light": ("T L", {}),
    "safe": ("T T j full_stop", {}),
    "no-color": ("j full_stop 2 j", {"NO_COLOR": "1"}),
}

pytestmark = pytest.mark.skipif(FOUND != DRAWN_WITH, reason=f"drawn with {DRAWN_WITH}, here are {FOUND}")


def kept(svg: str) -> str:
    """An SVG without what changes from run to run, and without addresses of fonts."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


@pytest.mark.parametrize("view", VIEWS)
async def test_views_are_drawn_as_recorded(view, monkeypatch):
    keys, environment = VIEWS[view]
    path = FOLDER / f"{view}.svg"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with opened(small_profile(1, event_count=600), (120, 30)) as pilot:
        await press(pilot, keys)
        # a passing message may be there or be gone already
        pilot.app.screen.prompt._silence()
        recording = bool(os.environ.get("UPDATE_FRAMES"))
        wanted = "" if recording else path.read_text(encoding="utf-8")
        svg = ""
        # what threads draw comes when it comes: the picture is looked at until it is the one, or stays another
        for _ in range(40):
            await pilot.pause(0.2)
            await settled(pilot)
            svg, before = kept(pilot.app.export_screenshot(title="tpuprof", simplify=True)), svg
            if svg == wanted or (recording and svg == before):
                break
    if recording:
        FOLDER.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    else:
        assert svg == wanted
