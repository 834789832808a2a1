from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profiles import Texts, big_profile, make_lane, make_profile, small_profile
from web_browser import Page, chromium, open_page

from tpuprof_tui import open_profile
from tpuprof_tui.export.web import write_web
from tpuprof_tui.model import Profile, Role, Scopes

pytestmark = [pytest.mark.browser, pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")]

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"
GUTTER = 168
HEAD = "[...document.querySelectorAll('.table-head button')].find((b) => %s).click()"


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Page]:
    with open_page(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="module")
def profile() -> Profile:
    return open_profile(SAMPLE)


@pytest.fixture(scope="module")
def written(tmp_path_factory, profile) -> Path:
    path = tmp_path_factory.mktemp("page") / "result.html"
    write_web(profile, path)
    return path


@pytest.fixture
def page(browser, written) -> Page:
    return opened(browser, written, "#timeline")


def opened(browser: Page, path: Path, fragment: str = "") -> Page:
    browser.complaints.clear()
    browser.requests.clear()
    browser.mouse("mouseMoved", 1, 1)
    browser.open(path, fragment)
    return browser


def written_page(tmp_path: Path, profile: Profile, **options: Any) -> Path:
    path = tmp_path / "result.html"
    write_web(profile, path, **options)
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


def expected_facts(profile: Profile, lane: Any, row: int) -> dict[str, str]:
    """What the card must say of an instruction, from the model alone."""

    def value(key: str) -> Any:
        return lane.take(key, np.array([row]))[0]

    start, end = int(value("start")), int(value("end"))
    said = {
        "Type": profile.text("type", int(value("type"))),
        "Function": profile.text("name", int(value("name"))),
        "Kernel function": profile.text("kernel", int(value("kernel"))),
        "Start": f"{start:,} ns",
        "End": f"{end:,} ns",
        "global_idx": f"{value('order'):,}",
    }
    if lane.engine == "TIU":
        said["uArch rate"] = f"{value('uarch_rate'):.2f} %"
        return said
    share = min(value("stall") * 1000 / profile.device.dma_mhz, end - start) / (end - start)
    return said | {
        "DDR bandwidth": f"{value('ddr_bandwidth'):.2f} GB/s",
        "Data type": profile.text("dtype", int(value("dtype"))),
        "Direction": profile.text("direction", int(value("direction"))),
        "Stall": f"{value('stall'):,} cycles ({share * 100:.1f} %)",
    }


def colours(page: Page, canvas: str, left: int = 0, top: int = 0, bottom: int = 1 << 14) -> int:
    """How many colours a part of a canvas has."""
    return int(
        page.run(f"""(() => {{
        const canvas = document.getElementById('{canvas}'), height = Math.min(canvas.height, {bottom}) - {top};
        const image = canvas.getContext('2d').getImageData({left}, {top}, canvas.width - {left}, height);
        return new Set(new Uint32Array(image.data.buffer)).size;
    }})()""")
    )


# -- opening -------------------------------------------------------------------


@pytest.mark.parametrize("fragment", ["", "#timeline", "#core2", "#core99"])
def test_it_opens_without_errors_and_asks_for_nothing(browser, written, fragment):
    page = opened(browser, written, fragment)
    assert page.complaints == []
    own = [each for each in page.requests if not each.startswith(written.as_uri()) and not each.startswith("data:")]
    assert own == []
    assert page.run("document.title") == "aks_decode_mode2"
    assert page.run("document.getElementById('timeline-view').hidden") == (fragment in ("", "#core99"))


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("panel", ["bandwidth", "uarch", "shares", "memory", "table"])
def test_every_chart_draws_every_mode(browser, tmp_path, mode, panel):
    page = opened(browser, written_page(tmp_path, small_profile(mode)), "#timeline")
    page.run(f"tpuprof.showPanel('{panel}')")
    page.frame()
    page.frame()
    assert page.complaints == []
    if panel in ("shares", "table"):
        assert len(page.run("document.getElementById('panel-content').textContent")) > 40
    else:
        notes = (panel == "uarch" or panel == "memory") and mode < 2
        assert colours(page, "panel-canvas", GUTTER) > (2 if notes or panel != "bandwidth" else 4)


def test_a_page_of_nothing_opens(browser, tmp_path):
    page = opened(browser, written_page(tmp_path, make_profile([])), "#timeline")
    for panel in ("bandwidth", "uarch", "shares", "memory", "table"):
        page.run(f"tpuprof.showPanel('{panel}')")
        page.frame()
    assert page.complaints == []


def test_the_timeline_is_not_blank(page):
    assert colours(page, "timeline", GUTTER, 24) > 40
    assert colours(page, "minimap", GUTTER) > 3


def test_the_scripts_read_what_was_written(page, profile):
    for lane in profile.lanes:
        if not len(lane):
            continue
        number = lane_number(page, lane.title)
        script = f"[...tpuprof.lanes[{number}].columns.start].map((s, i) => [s, tpuprof.lanes[{number}].ends[i]])"
        assert page.run(script) == np.stack([lane["start"], lane["end"]], axis=1).tolist()
        names = page.run(f"[...tpuprof.lanes[{number}].columns.kind].map((k) => tpuprof.kinds.text('name', k))")
        assert names == profile.strings["name"].texts(lane["name"])


@pytest.mark.parametrize("most", [2_000_000, 900])
def test_browsers_without_decompression_read_the_same(browser, tmp_path, most):
    path = written_page(tmp_path, big_profile(2000, cores=2, mode=2), most=most)
    script = """JSON.stringify(tpuprof.lanes.map((lane) => [lane.title,
        ...[lane.columns, lane.details].map((each) => Object.entries(each).map(([key, values]) => [key, [...values]])),
        Object.entries(lane.overview.sums).map(([key, values]) => [key, [...values]])]))"""
    expected = opened(browser, path).run(script)
    removal = "delete window.DecompressionStream; delete Uint8Array.fromBase64"
    identifier = browser.call("Page.addScriptToEvaluateOnNewDocument", source=removal)["identifier"]
    try:
        page = opened(browser, path)
        assert page.run("typeof DecompressionStream") == "undefined"
        assert page.run(script) == expected
        assert page.complaints == []
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)


def test_a_page_that_was_cut_off_says_so(browser, tmp_path, written):
    path = tmp_path / "cut.html"
    text = written.read_text()
    at = text.index('id="chunk2"')
    data = text.index('">', at) + 2
    path.write_text(text[: data + 20] + text[text.index("</script>", data) :])
    browser.call("Page.navigate", url=path.as_uri())
    assert "could not be read" in browser.wait("document.getElementById('failure')?.textContent")


def test_hostile_names_are_shown_as_text(browser, tmp_path):
    hostile = "</script><script>alert(1)</script>"
    formula = '=HYPERLINK("http://evil.example","x")'
    image = "<img src=x onerror=alert(2)>"
    texts = Texts()
    kernel = texts.codes("kernel", [hostile])
    lane = make_lane("TIU", 0, starts=[0], ends=[1000], cycles=[1001], kernel=kernel, scope=[0],
                     name=texts.codes("name", [formula]), type=texts.codes("type", [image]))  # fmt: skip
    profile = make_profile([lane], strings=texts.build(), scopes=Scopes(kernel, np.zeros(1, np.int32)))
    page = opened(browser, written_page(tmp_path, profile), "#timeline")
    page.run("window.alert = () => { window.alerted = true }")
    page.mouse("mouseMoved", *point_of(page, 0, 0))
    said = facts(page, "#card")
    assert (said["Kernel function"], said["Function"], said["Type"]) == (
        hostile,
        formula,
        "<img src=x onerror=alert(2)>",
    )
    page.click(*point_of(page, 0, 0))
    assert facts(page, "#details")["Kernel function"] == hostile
    for panel in ("shares", "table"):
        page.run(f"tpuprof.showPanel('{panel}')")
        page.frame()
        assert formula in page.run("document.getElementById('panel-content').textContent")
    page.key("1")
    assert formula in page.run("document.getElementById('overview').textContent")
    assert page.run("document.images.length") == 0
    assert page.run("Boolean(window.alerted)") is False
    assert page.complaints == []


# -- pointing and choosing -----------------------------------------------------


@pytest.mark.parametrize("title", ["Core 0 TIU", "Core 2 GDMA", "Core 3 SDMA"])
def test_hover_shows_the_right_instruction(page, profile, title):
    lane = next(each for each in profile.lanes if each.title == title)
    number = lane_number(page, title)
    rows = [row for row in range(0, len(lane), max(1, len(lane) // 6)) if lane["role"][row] == Role.WORK]
    assert len(rows) > 2
    for row in rows:
        show(page, number, row)
        page.mouse("mouseMoved", *point_of(page, number, row))
        assert page.run("document.getElementById('card').hidden") is False
        said = facts(page, "#card")
        expected = expected_facts(profile, lane, row)
        assert {key: said.get(key) for key in expected} == expected


def test_hover_over_nothing_shows_nothing(page, profile):
    lane = next(each for each in profile.lanes if each.title == "Core 0 SDMA")
    number = lane_number(page, lane.title)
    show(page, number, 0)
    page.mouse("mouseMoved", *point_of(page, number, 0))
    assert page.run("document.getElementById('card').hidden") is False
    before = page.run(f"tpuprof.timeline.xOf({int(lane['start'][0])} - 4000)")
    _, y = point_of(page, number, 0)
    page.mouse("mouseMoved", before, y)
    assert page.run("document.getElementById('card').hidden") is True


def test_a_click_selects_and_keys_walk_on(page, profile):
    lane = next(each for each in profile.lanes if each.title == "Core 1 GDMA")
    number = lane_number(page, lane.title)
    show(page, number, 40)
    page.click(*point_of(page, number, 40))
    assert page.run("document.documentElement.dataset.selected") == f"{number},40"
    expected = expected_facts(profile, lane, 40)
    assert {key: facts(page, "#details").get(key) for key in expected} == expected
    page.key("f")
    start, end = window(page)
    length = int(lane["end"][40] - lane["start"][40])
    assert (start, end) == (lane["start"][40] - length / 2, lane["end"][40] + length / 2)
    page.key(".")
    assert page.run("document.documentElement.dataset.selected") == f"{number},41"
    page.key(",")
    page.key(",")
    assert page.run("document.documentElement.dataset.selected") == f"{number},39"
    page.key("Escape")
    assert page.run("document.documentElement.dataset.selected") == ""
    assert page.run("document.getElementById('details').hidden") is True


def test_overlapping_instructions_lie_in_rows_of_their_own(browser, tmp_path):
    profile = small_profile(1)
    lane = next(each for each in profile.lanes if each.engine == "CDMA")
    page = opened(browser, written_page(tmp_path, profile), "#timeline")
    number = lane_number(page, lane.title)
    orders = page.run(f"[...tpuprof.lanes[{number}].details.order]")
    subrows = page.run(f"tpuprof.lanes[{number}].subrows")
    assert len(subrows) > 1
    for row in (0, subrows[0], subrows[0] + 3):
        show(page, number, row)
        page.mouse("mouseMoved", *point_of(page, number, row))
        at = int(np.flatnonzero(lane["order"] == orders[row])[0])
        assert facts(page, "#card")["Start"] == f"{lane['start'][at]:,} ns"
        assert facts(page, "#card")["End"] == f"{lane['end'][at]:,} ns"


def test_launches_show_their_kernel_function(page, profile):
    page.run("tpuprof.chooseCores([1])")
    page.frame()
    found = page.run("""(() => {
        const row = tpuprof.timeline.rows.find((each) => each.kind === 'launches'), { track } = row.launches;
        const lengths = Array.from(track.end, (end, i) => end - track.start[i]);
        const place = lengths.indexOf(Math.max(...lengths));
        const box = document.getElementById('timeline').getBoundingClientRect();
        const x = tpuprof.timeline.xOf((track.start[place] + track.end[place]) / 2);
        return [box.left + x, box.top + row.y + row.h / 2, track.start[place], track.end[place]];
    })()""")
    lanes = [lane for lane in profile.lanes if lane.core == 1 and len(lane)]
    bounds = {}
    for lane in lanes:
        for scope, start, end in zip(lane["scope"].tolist(), lane["start"].tolist(), lane["end"].tolist(), strict=True):
            first, last = bounds.get(scope, (start, end))
            bounds[scope] = (min(first, start), max(last, end))
    scope = max((each for each in bounds if each >= 0), key=lambda each: bounds[each][1] - bounds[each][0])
    assert (found[2], found[3]) == bounds[scope]
    page.mouse("mouseMoved", found[0], found[1])
    kernel = profile.text("kernel", int(profile.scopes.kernel[scope]))
    assert facts(page, "#card")["Kernel function"] == kernel
    page.click(found[0], found[1])
    first, last = bounds[scope]
    span = min(2 * (last - first), profile.end_ns - profile.start_ns)
    start = min(max((first + last - span) / 2, profile.start_ns), profile.end_ns - span)
    assert window(page) == pytest.approx((start, start + span))


def test_times_beyond_all_reason_open(browser, tmp_path):
    lane = make_lane("TIU", 0, starts=[-(1 << 55), 0, 1 << 60], ends=[-(1 << 55) + 7, 1, (1 << 60) + 5],
                     cycles=[8, 2, 6])  # fmt: skip
    page = opened(browser, written_page(tmp_path, make_profile([lane])), "#timeline")
    page.key("w")
    assert page.complaints == []


# -- moving --------------------------------------------------------------------


def test_the_wheel_zooms_about_the_pointer(page):
    x, y = 700, 400
    first = window(page)
    before = page.run(f"tpuprof.timeline.timeAt({x})")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    second = window(page)
    assert (second[1] - second[0]) < 0.9 * (first[1] - first[0])
    assert page.run(f"tpuprof.timeline.timeAt({x})") == pytest.approx(before, rel=1e-6)
    for _ in range(40):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    third = window(page)
    assert third[1] - third[0] == pytest.approx(10)
    for _ in range(60):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=240)
    assert window(page) == first


def test_dragging_moves_and_shift_chooses(page):
    page.run("tpuprof.setWindow(100000, 300000)")
    page.frame()
    plot = page.run("tpuprof.timeline.plot")
    page.mouse("mousePressed", 800, 400, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", 700, 400, button="left", buttons=1)
    page.mouse("mouseReleased", 700, 400, button="left", clickCount=1)
    shift = 100 / plot * 200_000
    assert window(page) == pytest.approx((100_000 + shift, 300_000 + shift))
    expected = page.run("[tpuprof.timeline.timeAt(600), tpuprof.timeline.timeAt(900)]")
    page.mouse("mousePressed", 600, 400, button="left", buttons=1, clickCount=1, modifiers=8)
    page.mouse("mouseMoved", 900, 400, button="left", buttons=1, modifiers=8)
    page.mouse("mouseReleased", 900, 400, button="left", clickCount=1, modifiers=8)
    assert window(page) == pytest.approx(tuple(expected))


def test_the_slider_moves_the_window(page):
    start, end = window(page)
    top = page.run("document.getElementById('minimap').getBoundingClientRect().top") + 25
    quarter, half, right = page.run("[0.25, 0.5, 1].map((s) => tpuprof.minimap.xOf(tpuprof.profile.window[0] + s * "
                                    "(tpuprof.profile.window[1] - tpuprof.profile.window[0])))")  # fmt: skip
    page.mouse("mousePressed", right, top, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", half, top, button="left", buttons=1)
    page.mouse("mouseReleased", half, top, button="left", clickCount=1)
    pixel = (end - start) / 1000
    assert window(page) == pytest.approx((start, (start + end) / 2), abs=2 * pixel)
    page.mouse("mousePressed", quarter, top, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", half, top, button="left", buttons=1)
    page.mouse("mouseReleased", half, top, button="left", clickCount=1)
    moved = window(page)
    assert moved == pytest.approx((start + (end - start) / 4, start + (end - start) * 3 / 4), abs=2 * pixel)


def test_keys_move_and_remember(page):
    whole = window(page)
    page.key("w")
    near = window(page)
    assert near[1] - near[0] == pytest.approx(0.7 * (whole[1] - whole[0]))
    page.key("d")
    assert window(page)[0] == pytest.approx(near[0] + 0.15 * (near[1] - near[0]))
    page.key("a")
    assert window(page) == pytest.approx(near)
    page.key("m")
    page.key("0")
    assert window(page) == whole
    page.key("b")
    assert window(page) == pytest.approx(near)
    page.key("s")
    assert window(page) == pytest.approx(whole)
    assert page.run("document.getElementById('return').disabled") is False


def test_typing_in_the_search_moves_nothing(page):
    before = window(page)
    page.run("document.getElementById('search').focus()")
    for key in "wasd":
        page.key(key)
    assert window(page) == before
    assert page.run("document.getElementById('search').value") == "wasd"


# -- cores, filters, search ----------------------------------------------------


def test_cores_are_shown_alone_or_together(page):
    def shown() -> list[str]:
        page.frame()
        return page.run("[...new Set(tpuprof.timeline.rows.filter((r) => r.kind === 'core').map((r) => r.lane.group))]")

    button = "[...document.querySelectorAll('#cores button')].find((b) => b.textContent === '%s')"
    assert shown() == ["Core 0", "Core 1", "Core 2", "Core 3"]
    page.run(f"{button % '2'}.click()")
    assert shown() == ["Core 2"]
    page.run(f"{button % '0'}.dispatchEvent(new MouseEvent('click', {{ ctrlKey: true, bubbles: true }}))")
    assert shown() == ["Core 0", "Core 2"]
    page.key("]")
    assert len(shown()) == 1
    page.run(f"{button % 'All'}.click()")
    assert len(shown()) == 4


def test_search_counts_walks_and_finds_global_idx(page, profile):
    page.run("document.getElementById('search').focus()")
    for key in "mm2":
        page.key(key)
    names = profile.strings["name"]
    expected = sum("mm2" in text for lane in profile.lanes for text in names.texts(lane["name"]))
    assert page.run("document.getElementById('matches').textContent") == f"{expected:,} found"
    page.key("Enter")
    assert page.run("document.getElementById('matches').textContent") == f"1 / {expected:,}"
    lane, row = map(int, page.run("document.documentElement.dataset.selected").split(","))
    assert "mm2" in page.run(f"tpuprof.kinds.text('name', tpuprof.lanes[{lane}].columns.kind[{row}])")
    page.run("document.getElementById('search').value = '#17'")
    page.run("document.getElementById('search').dispatchEvent(new Event('input'))")
    expected = sum(int((lane["order"] == 17).sum()) for lane in profile.lanes)
    assert page.run("tpuprof.search.matches.length") == expected


def test_search_is_exact_where_a_capital_is_typed(page):
    for query, found in (("tensorld", 1), ("tensorLd", 1), ("TensorLd", 0), ("TENSORLD", 0)):
        page.run(f"document.getElementById('search').value = '{query}'")
        page.run("document.getElementById('search').dispatchEvent(new Event('input'))")
        assert bool(page.run("tpuprof.search.matches.length")) == bool(found), query


def test_filters_leave_what_was_asked_for(page, profile):
    page.run("""(() => {
        const all = [...document.querySelectorAll('#filters select')];
        const select = all.find((each) => each.textContent.startsWith('Direction'));
        select.value = [...select.options].find((o) => o.textContent === 'DDR->LMEM').value;
        select.dispatchEvent(new Event('change'));
    })()""")
    page.frame()
    directions = profile.strings["direction"]
    for lane in profile.lanes:
        shown = page.run(f"tpuprof.lanes[{lane_number(page, lane.title)}].tracks.reduce((sum, t) => sum + t.n, 0)")
        texts = directions.texts(lane["direction"]) if "direction" in lane else []
        assert shown == sum(text == "DDR->LMEM" for text in texts)
    page.run("tpuprof.showPanel('table')")
    page.frame()
    assert " of " in page.run("document.querySelector('.table-tools').textContent")
    page.key("Escape")
    first = next(lane for lane in profile.lanes if len(lane))
    assert page.run(f"tpuprof.lanes[{lane_number(page, first.title)}].tracks[0].n") == len(first)


# -- figures -------------------------------------------------------------------


def moved(profile: Profile, key: str, start: float, end: float, core: int | None = None) -> float:
    total = 0.0
    for lane in profile.lanes:
        if key not in lane or (core is not None and lane.core != core):
            continue
        inside = np.maximum(np.minimum(lane["end"], end) - np.maximum(lane["start"], start), 0)
        total += float(np.nansum(inside * lane[key]))
    return total


def test_bandwidth_is_what_was_moved(page, profile):
    page.run("tpuprof.setWindow(100000, 200000)")
    page.frame()
    cells = page.run("""(() => {
        const { edges, frames } = tpuprof.bandwidth.cells;
        return { edges, frames: frames.map((f) => [f.memory, [...f.totals]]) };
    })()""")
    assert [name for name, _ in cells["frames"]] == ["ddr", "l2"]
    for name, totals in cells["frames"]:
        expected = [
            moved(profile, f"{name}_bandwidth", start, end) / (end - start)
            for start, end in zip(cells["edges"][:-1], cells["edges"][1:], strict=True)
        ]
        assert max(expected) > 0 or name == "l2"
        assert totals == pytest.approx(expected, abs=1e-3)


def test_segments_of_bandwidth_have_the_length_that_was_asked_for(page):
    page.run("""(() => {
        const input = document.querySelector('#panel-tools input');
        input.value = 5000;
        input.dispatchEvent(new Event('change'));
    })()""")
    page.frame()
    edges = np.array(page.run("tpuprof.bandwidth.cells.edges"))
    assert np.diff(edges) == pytest.approx(5000)


@pytest.mark.parametrize("most", [2_000_000, 1500])
def test_bandwidth_of_a_cut_page_is_that_of_all(browser, tmp_path, most):
    profile = big_profile(4000, cores=2, ports=1, mode=1)
    page = opened(browser, written_page(tmp_path, profile, most=most), "#timeline")
    assert page.run("document.getElementById('omitted').hidden") == (most > 4000)
    page.frame()
    edges, totals = page.run("[tpuprof.bandwidth.cells.edges, [...tpuprof.bandwidth.cells.frames[0].totals]]")
    found = float(np.sum(np.array(totals) * np.diff(edges)))
    assert found == pytest.approx(moved(profile, "ddr_bandwidth", profile.start_ns, profile.end_ns), rel=2e-3)
    page.key("1")
    text = page.run("document.getElementById('overview').textContent")
    assert ("A page holds at most 1,500 instructions" in text) == (most == 1500)


def test_shares_are_those_of_the_window(page, profile):
    page.run("tpuprof.showPanel('shares'); tpuprof.setWindow(150000, 250000)")
    page.frame()
    found = page.run("tpuprof.shares.measure()")
    for engine in found:
        total, by_name = 0, {}
        for lane in (each for each in profile.lanes if each.engine == engine["engine"]):
            inside = np.maximum(np.minimum(lane["end"], 250_000) - np.maximum(lane["start"], 150_000), 0)
            inside = np.where(lane["role"] == Role.WORK, inside, 0)
            total += int(inside.sum())
            for name, ns in zip(profile.strings["name"].texts(lane["name"]), inside.tolist(), strict=True):
                by_name[name] = by_name.get(name, 0) + ns
        assert engine["total"] == total
        shown: dict[str, float] = {}
        for kind in engine["types"]:
            for name in kind["names"]:
                shown[name["text"]] = shown.get(name["text"], 0) + name["ns"]
        assert shown == {name: ns for name, ns in by_name.items() if ns}
    assert {engine["engine"] for engine in found} >= {"TIU", "GDMA"}


def test_the_scatter_finds_the_command_under_the_pointer(page, profile):
    page.run("tpuprof.chooseCores([0]); tpuprof.showPanel('uarch'); tpuprof.setWindow(30000, 60000)")
    page.frame()
    lane = next(each for each in profile.lanes if each.title == "Core 0 TIU")
    inside = (lane["start"] > 31_000) & (lane["start"] < 59_000) & (lane["role"] == Role.WORK)
    row = int(np.flatnonzero(inside)[0])
    rate = float(lane["uarch_rate"][row])
    x, y = page.run(f"""(() => {{
        const box = document.getElementById('panel-canvas').getBoundingClientRect();
        const {{ y0, y1 }} = tpuprof.scatter.frame;
        return [box.left + tpuprof.timeline.xOf({int(lane["start"][row])}), box.top + y1 - (y1 - y0) * {rate} / 100];
    }})()""")
    page.mouse("mouseMoved", x, y)
    assert facts(page, "#card")["Start"] == f"{lane['start'][row]:,} ns"
    page.click(x, y)
    assert page.run("document.documentElement.dataset.selected").split(",")[1] == str(row)
    start, end = window(page)
    assert start < lane["start"][row] < lane["end"][row] < end


def test_the_memory_chart_finds_the_command_under_the_pointer(page, profile):
    page.run("tpuprof.chooseCores([0]); tpuprof.showPanel('memory')")
    page.wait("tpuprof.memory.loaded.size > 0")
    page.run("tpuprof.setWindow(400000, 900000)")
    page.frame()
    page.frame()
    lane = next(each for each in profile.lanes if each.title == "Core 0 GDMA")
    loads = (lane["start"] > 405_000) & (lane["end"] < 890_000) & (lane["bytes"] > 1 << 20)
    row = int(np.flatnonzero(loads)[0])
    address = int(lane["dst_addr"][row]) & 0x3FFFF
    x, y = page.run(f"""(() => {{
        const frame = document.getElementById('panel-canvas').getBoundingClientRect(), f = tpuprof.memory.frame;
        const x = tpuprof.memory.timeX({int(lane["start"][row] + lane["end"][row]) // 2}, f);
        return [frame.left + x, frame.top + f.y0 + (f.y1 - f.y0) * ({address} + 2000) / (1 << 18)];
    }})()""")
    page.mouse("mouseMoved", x, y)
    said = facts(page, "#card")
    assert (said["Lane"], said["Address"], said["global_idx"]) == (
        "Core 0 GDMA", f"0x{address:X}", f"{lane['order'][row]:,}",
    )  # fmt: skip
    page.click(x, y)
    assert page.run("document.documentElement.dataset.selected") == f"{lane_number(page, lane.title)},{row}"


# -- table and summary ---------------------------------------------------------


def rows_of_table(page: Page) -> list[list[str]]:
    page.frame()
    return page.run(
        "[...document.querySelectorAll('.table-row')].map((r) => [...r.children].map((c) => c.textContent))"
    )


def test_the_table_sorts_scrolls_and_leads_to_the_timeline(page, profile):
    page.run("tpuprof.chooseCores([0]); tpuprof.showPanel('table')")
    lane = next(each for each in profile.lanes if each.title == "Core 0 TIU")
    assert [row[1] for row in rows_of_table(page)[:5]] == [f"{each:,}" for each in lane["start"][:5]]
    for _ in range(2):
        page.run(HEAD % "b.textContent.startsWith('Duration')")
        page.frame()
    durations = np.sort(lane["end"] - lane["start"])[::-1]
    assert [row[3] for row in rows_of_table(page)[:8]] == [f"{each:,}" for each in durations[:8]]
    page.run("document.querySelector('.table-scroll').scrollTop = 1e9")
    page.frame()
    assert rows_of_table(page)[-1][3] == f"{durations[-1]:,}"
    page.run("document.querySelector('.table-scroll').scrollTop = 0")
    page.frame()
    page.run("document.querySelector('.table-row').click()")
    row = int(page.run("document.documentElement.dataset.selected").split(",")[1])
    assert lane["end"][row] - lane["start"][row] == durations[0]
    start, end = window(page)
    assert start <= lane["start"][row] < lane["end"][row] <= end
    page.run(HEAD % "b.textContent === 'Function'")
    names = [row[4] for row in rows_of_table(page)]
    assert names == sorted(names)
    assert names[0] == min(profile.strings["name"].texts(lane["name"]))


def test_the_table_shows_the_last_of_very_many_rows(browser, tmp_path):
    starts = np.arange(500_000) * 10
    lane = make_lane("TIU", 0, starts=starts, ends=starts + 5, cycles=np.full(len(starts), 6))
    page = opened(browser, written_page(tmp_path, make_profile([lane])), "#timeline")
    page.run("tpuprof.showPanel('table')")
    page.frame()
    page.run("document.querySelector('.table-scroll').scrollTop = 1e9")
    page.frame()
    assert rows_of_table(page)[-1][1] == f"{starts[-1]:,}"


def test_the_summary_sorts_and_keeps_the_overall_row_last(browser, written):
    page = opened(browser, written)
    script = "[...document.querySelectorAll('.summary tbody tr')].map((r) => r.cells[%d].textContent)"
    button = "[...document.querySelectorAll('.summary th button')].find((b) => b.textContent.startsWith('%s')).click()"
    assert page.run(script % 0) == ["0", "1", "2", "3", "Overall"]
    page.run(button % "totalGdmaCycle")
    found = page.run(script % 6)
    assert [int(each) for each in found[:-1]] == sorted((int(each) for each in found[:-1]), reverse=True)
    assert page.run(script % 0)[-1] == "Overall"
    page.run(button % "totalGdmaCycle")
    assert page.run(script % 6)[:-1] == found[:-1][::-1]
    assert page.run("document.querySelectorAll('.summary td.doubtful').length") > 0
    page.run("document.querySelector('.summary tbody tr').click()")
    assert page.run("document.getElementById('timeline-view').hidden") is False
    assert page.run("tpuprof.state.cores.size") == 1


# -- looks ---------------------------------------------------------------------


def brightness(page: Page) -> list[int]:
    """Of the page, of the middle of the timeline's names, and of its lowest right corner."""
    return page.run("""(() => {
        const shade = ([r, g, b]) => Math.round((Number(r) + Number(g) + Number(b)) / 3);
        const canvas = document.getElementById('timeline'), context = canvas.getContext('2d');
        const at = (x, y) => shade(context.getImageData(x, y, 1, 1).data);
        const page = shade(getComputedStyle(document.body).backgroundColor.match(/\\d+/g));
        return [page, at(3, canvas.height / 2), at(canvas.width - 2, canvas.height - 2)];
    })()""")


def test_light_and_dark(browser, written):
    try:
        corners = {}
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            page = opened(browser, written, "#timeline")
            corners[scheme] = brightness(page)
        assert min(corners["light"]) > 230
        assert max(corners["dark"]) < 40
        page.key("t")
        assert brightness(page) == corners["light"]
    finally:
        browser.scheme("")


@pytest.mark.parametrize(("width", "height"), [(640, 480), (1024, 700), (1920, 1080), (2560, 1300)])
def test_every_size_shows_boxes_and_never_scrolls_sideways(browser, written, width, height):
    browser.resize(width, height)
    try:
        page = opened(browser, written, "#timeline")
        assert page.run(
            "document.documentElement.scrollWidth <= innerWidth && document.body.scrollHeight <= innerHeight"
        )
        box = page.run("(() => { const f = document.getElementById('timeline').getBoundingClientRect();"
                       "return [f.left, f.right, f.height] })()")  # fmt: skip
        assert box[:2] == pytest.approx((0, width), abs=20)
        assert box[2] >= 60
        assert colours(page, "timeline", GUTTER, 24) > 15
        page.key("1")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints == []
    finally:
        browser.resize(1440, 900)


def test_the_image_holds_timeline_and_chart(page, tmp_path):
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("document.getElementById('save').click()")
    for _ in range(200):
        if (tmp_path / "timeline.png").exists():
            break
        page.frame()
    data = base64.b64encode((tmp_path / "timeline.png").read_bytes()).decode()
    page.run(f"""new Promise((done, failed) => {{
        const image = new Image();
        image.onload = () => {{
            const canvas = document.createElement('canvas');
            canvas.id = 'saved';
            canvas.width = image.width;
            canvas.height = image.height;
            canvas.getContext('2d').drawImage(image, 0, 0);
            document.body.append(canvas);
            done(1);
        }};
        image.onerror = failed;
        image.src = 'data:image/png;base64,{data}';
    }})""")
    heights = page.run("['minimap', 'timeline', 'panel-canvas', 'saved'].map((n) => document.getElementById(n).height)")
    assert heights[3] == sum(heights[:3]) + 34
    top = 34 + heights[0]
    assert colours(page, "saved", GUTTER, top + 24, top + heights[1]) > 40
    assert colours(page, "saved", GUTTER, top + heights[1]) > 4
    assert colours(page, "saved", 0, 0, 34) > 2
