"""A written page in a browser: opening it, finding things in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from profiles import selected_query
from web_browser import Page, chromium

from tpuprof_tui.export.web.page import MOST_INSTRUCTIONS, write_web
from tpuprof_tui.model import Profile

needs_chromium = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")
#: Width of the names at the left of the timeline, CSS pixels.
GUTTER = 168


def opened(browser: Page, path: Path, fragment: str = "") -> Page:
    browser.complaints.clear()
    browser.requests.clear()
    browser.mouse("mouseMoved", 1, 1)
    browser.open(path, fragment)
    return browser


def written_page(tmp_path: Path, profile: Profile, most: int = MOST_INSTRUCTIONS, **selection: Any) -> Path:
    path = tmp_path / "result.html"
    write_web(selected_query(profile, **selection), path, most=most)
    return path


def window(page: Page) -> tuple[float, float]:
    page.frame()
    start, end = page.run("document.documentElement.dataset.window").split(",")
    return float(start), float(end)


def lane_number(page: Page, title: str) -> int:
    return int(page.run(f"tpuprof.lanes.findIndex((lane) => lane.title === {json.dumps(title)})"))


def point_of(page: Page, lane: int, row: int) -> tuple[float, float]:
    """Where the middle of an instruction stands on the screen."""
    place = page.run(f"""(() => {{
        const lane = tpuprof.lanes[{lane}], t = tpuprof.timeline, box = document.getElementById('timeline-box');
        const at = t.rowOfInstruction(lane, {row}), frame = document.getElementById('timeline').getBoundingClientRect();
        const middle = (lane.columns.start[{row}] + lane.ends[{row}]) / 2;
        return [frame.left + t.xOf(middle), frame.top + at.y - t.scroll + at.h / 2];
    }})()""")
    return place[0], place[1]


def show(page: Page, lane: int, row: int) -> None:
    """Brings an instruction into view, twenty times its length around it."""
    page.run(f"""(() => {{
        const lane = tpuprof.lanes[{lane}], a = lane.columns.start[{row}], b = lane.ends[{row}], far = (b - a + 1) * 20;
        tpuprof.chooseCores([lane.key]);
        tpuprof.setWindow(a - far, b + far);
    }})()""")
    page.frame()


def facts(page: Page, element: str) -> dict[str, str]:
    script = "[...document.querySelectorAll('%s dt')].map((each) => [each.textContent, each.nextSibling.textContent])"
    return dict(page.run(script % element))


def colours(page: Page, canvas: str, left: int = 0, top: int = 0, bottom: int = 1 << 14) -> int:
    """How many colours a part of a canvas has."""
    return int(
        page.run(f"""(() => {{
        const canvas = document.getElementById('{canvas}'), height = Math.min(canvas.height, {bottom}) - {top};
        const image = canvas.getContext('2d').getImageData({left}, {top}, canvas.width - {left}, height);
        return new Set(new Uint32Array(image.data.buffer)).size;
    }})()""")
    )
