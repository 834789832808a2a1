"""How instructions are drawn in a browser: height, stall, colours and what the legend says of them."""

from __future__ import annotations

import numpy as np
import pytest
from profiles import Texts, make_lane, make_profile
from web_browser import Page
from web_driver import needs_chromium, opened, written_page

from tpuprof_tui.model import Profile, Role, Scopes

pytestmark = [pytest.mark.browser, needs_chromium]

STARTS = np.arange(4) * 1000


def few_boxes() -> Profile:
    """Four TIU commands of rates 100, 50, 10 and 100, and four transfers at parts of the peak, two of which stalled."""
    texts = Texts()
    names = texts.codes("name", ["mm2", "add", "mul", "mm2"])
    kernels = texts.codes("kernel", ["first", "first", "second", "second"])
    tiu = make_lane("TIU", 0, starts=STARTS, ends=STARTS + 900, uarch_rate=[100.0, 50.0, 10.0, 100.0], name=names,
                    kernel=kernels, scope=[0, 0, 1, 1], cycles=np.full(4, 900))  # fmt: skip
    bandwidth = np.array([1.0, 0.5, 0.25, 1.0]) * 68.25
    moves = make_lane("GDMA", 0, starts=STARTS, ends=STARTS + 900, ddr_bandwidth=bandwidth, stall=[0, 450, 900, 0],
                      bytes=(900 * bandwidth).astype(np.int64), cycles=np.full(4, 900),
                      name=texts.codes("name", ["load", "load", "store", "wait"]),
                      roles=[Role.WORK, Role.WORK, Role.WORK, Role.WAIT])  # fmt: skip
    scopes = Scopes(texts.codes("kernel", ["first", "second"]), np.zeros(2, np.int32))
    return make_profile([tiu, moves], strings=texts.build(), scopes=scopes, mode=2)


@pytest.fixture
def boxes(browser, tmp_path) -> Page:
    page = opened(browser, written_page(tmp_path, few_boxes()), "#timeline")
    page.run("document.getElementById('names').click(); tpuprof.setWindow(-100, 4000)")
    page.frame()
    return page


def column(page: Page, lane: str, time: int) -> list[int]:
    """Colours of a line of pixels at a time, from the top of the lane's row to its bottom."""
    found = page.run(f"""(() => {{
        const canvas = document.getElementById('timeline'), t = tpuprof.timeline;
        const row = t.rows.find((each) => each.kind === 'track' && each.lane.title === '{lane}');
        const x = Math.round(t.xOf({time})), y = Math.round(row.y - t.scroll);
        const image = canvas.getContext('2d').getImageData(x, y, 1, Math.round(row.h));
        return [...new Uint32Array(image.data.buffer)];
    }})()""")
    return [int(each) for each in found]


def height(page: Page, lane: str, time: int) -> int:
    """How many pixels at a time are not the row's own colour."""
    back = column(page, lane, 950)[len(column(page, lane, 950)) // 2]
    return sum(each != back for each in column(page, lane, time))


def rgb(colour: int) -> str:
    """A pixel as style sheets spell it."""
    return f"rgb({colour & 255}, {colour >> 8 & 255}, {colour >> 16 & 255})"


def swatches(page: Page) -> dict[str, str]:
    """Colours of the legend by their text."""
    return dict(page.run("[...document.querySelectorAll('#legend .legend-entry')].map((e) => "
                         "[e.textContent, getComputedStyle(e.querySelector('.swatch')).backgroundColor])"))  # fmt: skip


def test_boxes_are_as_high_as_rate_and_bandwidth(boxes):
    whole = height(boxes, "Core 0 TIU", 450)
    assert whole > 20
    assert [height(boxes, "Core 0 TIU", 450 + at) / whole for at in (0, 1000, 2000)] == pytest.approx(
        [1, 0.5, 0.1], abs=0.06
    )
    tall = height(boxes, "Core 0 GDMA", 300)
    assert tall == pytest.approx(whole, abs=2)
    assert [height(boxes, "Core 0 GDMA", 850 + at) / tall for at in (0, 1000, 2000)] == pytest.approx(
        [1, 0.5, 0.25], abs=0.06
    )
    boxes.run("document.getElementById('heights').click()")
    boxes.frame()
    assert {height(boxes, "Core 0 TIU", 450 + at) for at in (0, 1000, 2000)} == {height(boxes, "Core 0 TIU", 450)}


def test_the_stalled_part_is_shaded_at_the_start(boxes):
    def colours_at(time: int) -> set[int]:
        return set(column(boxes, "Core 0 GDMA", time)[-8:])

    plain = colours_at(300)
    assert len(plain) == 1, "not stalled"
    assert colours_at(1100) != plain
    assert colours_at(1440) != plain, "half of it stalled"
    assert colours_at(1480) == colours_at(1800) == plain
    assert plain.isdisjoint(colours_at(2100) | colours_at(2880)), "stalled all the time"
    boxes.run("document.getElementById('stalls').click()")
    boxes.frame()
    assert colours_at(1100) == plain
    assert "stall" in swatches(boxes)


def test_colours_are_those_of_the_legend(boxes):
    def bottom(lane: str, time: int) -> str:
        return rgb(column(boxes, lane, time)[-4])

    legend = swatches(boxes)
    assert {"mm2", "add", "mul", "load", "store", "waits and syncs", "stall"} <= set(legend)
    assert len({legend[name] for name in ("mm2", "add", "mul", "load", "store")}) == 5
    assert bottom("Core 0 TIU", 450) == bottom("Core 0 TIU", 3450) == legend["mm2"]
    assert bottom("Core 0 TIU", 1450) == legend["add"]
    assert bottom("Core 0 GDMA", 450) == legend["load"]
    assert bottom("Core 0 GDMA", 3450) not in legend.values(), "waits are striped"
    boxes.run("(() => { const s = document.getElementById('colour-by'); s.value = [...s.options].find((o) => "
              "/kernel/i.test(o.textContent)).value; s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    boxes.frame()
    legend = swatches(boxes)
    assert bottom("Core 0 TIU", 450) == bottom("Core 0 TIU", 1450) == legend["first"]
    assert bottom("Core 0 TIU", 2450) == bottom("Core 0 TIU", 3450) == legend["second"]


def test_a_click_in_the_legend_hides_and_a_double_click_shows_alone(boxes):
    entry = "[...document.querySelectorAll('#legend .legend-entry')].find((e) => e.textContent === 'mm2')"
    boxes.run(f"{entry}.click()")
    boxes.frame()
    assert [height(boxes, "Core 0 TIU", time) > 0 for time in (450, 1450, 2450, 3450)] == [False, True, True, False]
    boxes.run(f"{entry}.click()")
    boxes.run(f"{entry}.dispatchEvent(new MouseEvent('dblclick', {{ bubbles: true }}))")
    boxes.frame()
    assert [height(boxes, "Core 0 TIU", time) > 0 for time in (450, 1450, 2450, 3450)] == [True, False, False, True]


def test_shares_are_a_pie_or_bars(boxes):
    boxes.run("tpuprof.showPanel('shares')")
    boxes.frame()
    drawn = "[...document.querySelectorAll('#panel-content svg path, #panel-content canvas')].length"
    text = "document.getElementById('panel-content').textContent"
    assert boxes.run(drawn) > 0
    assert all(name in boxes.run(text) for name in ("mm2", "add", "load", "store"))
    boxes.run("(() => { const s = [...document.querySelectorAll('#panel-tools select')][0]; s.value = [...s.options]"
              ".find((o) => /bar/i.test(o.textContent)).value; s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    boxes.frame()
    assert boxes.run(drawn) == 0
    assert all(name in boxes.run(text) for name in ("mm2", "add", "load", "store"))
    assert boxes.complaints == []
