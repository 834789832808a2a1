from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from kept import SAMPLES
from profiles import Texts, big_profile, make_lane, make_profile, small_profile
from web_driver import GUTTER, colours, facts, lane_number, needs_chromium, opened, point_of, show, window, written_page

from tpuprof_tui.formats.units import percent_text
from tpuprof_tui.model import Profile, Role, Scopes
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.text_pages import title_line

pytestmark = [pytest.mark.browser, needs_chromium]


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
        "Idx": f"{value('order'):,}",
    }
    if lane.kind == "TIU":
        said["uArch rate"] = f"{value('uarch_rate'):.2f}%"
        return said
    share = min(value("stall") * 1000 / profile.device.clock("DMA"), end - start) / (end - start)
    return said | {
        "DDR bandwidth": f"{value('ddr_bandwidth'):.2f} GB/s",
        "Data type": profile.text("dtype", int(value("dtype"))),
        "Direction": profile.text("direction", int(value("direction"))),
        "Stall": f"{value('stall'):,} cycles ({percent_text(share)})",
    }


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
@pytest.mark.parametrize("panel", ["bandwidth", "rate", "shares", "memory", "table"])
def test_every_chart_draws_every_mode(browser, tmp_path, mode, panel):
    page = opened(browser, written_page(tmp_path, small_profile(mode)), "#timeline")
    page.run(f"tpuprof.showPanel('{panel}')")
    page.frame()
    page.frame()
    assert page.complaints == []
    if panel in ("shares", "table"):
        assert len(page.run("document.getElementById('panel-content').textContent")) > 40
    else:
        notes = (panel == "rate" or panel == "memory") and mode < 2
        assert colours(page, "panel-canvas", GUTTER) > (2 if notes or panel != "bandwidth" else 4)


def test_a_page_of_nothing_opens(browser, tmp_path):
    page = opened(browser, written_page(tmp_path, make_profile([])), "#timeline")
    for panel in ("bandwidth", "rate", "shares", "memory", "table"):
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
        number = lane_number(page, profile.title_of(lane))
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
    lane = next(each for each in profile.lanes if profile.title_of(each) == title)
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
    lane = next(each for each in profile.lanes if profile.title_of(each) == "Core 0 SDMA")
    number = lane_number(page, profile.title_of(lane))
    show(page, number, 0)
    page.mouse("mouseMoved", *point_of(page, number, 0))
    assert page.run("document.getElementById('card').hidden") is False
    before = page.run(f"tpuprof.timeline.xOf({int(lane['start'][0])} - 4000)")
    _, y = point_of(page, number, 0)
    page.mouse("mouseMoved", before, y)
    assert page.run("document.getElementById('card').hidden") is True


def test_a_click_selects_and_keys_walk_on(page, profile):
    lane = next(each for each in profile.lanes if profile.title_of(each) == "Core 1 GDMA")
    number = lane_number(page, profile.title_of(lane))
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
    lane = next(each for each in profile.lanes if each.kind == "CDMA")
    page = opened(browser, written_page(tmp_path, profile), "#timeline")
    number = lane_number(page, profile.title_of(lane))
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
    lanes = [lane for lane in profile.lanes if profile.unit_number(lane) == 1 and len(lane)]
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


# -- links and copies ----------------------------------------------------------


def test_a_link_shows_the_same(browser, written):
    browser.resize(1280, 700)
    try:
        page = opened(
            browser, written, "#timeline&unit=0&unit=3&search=mm2&panel=table&without=SDMA&from=40000&to=90000"
        )
        assert window(page) == (40_000, 90_000)
        page.run("""(() => {
            const key = new KeyboardEvent('keydown', { key: 'n', bubbles: true });
            do document.body.dispatchEvent(key); while (tpuprof.state.selected.lane.title !== 'Core 3 TIU');
        })()""")
        page.frame()
        shown = """(() => {
            const { state, timeline: t, table } = tpuprof, { lane, row } = state.selected;
            const lines = [...document.querySelectorAll('.table-row.selected')].map((r) => r.children[0].innerText);
            const at = t.rowOfInstruction(lane, row), y = at.y - t.scroll;
            return [lane.title, row, [...state.cores], [...state.engines], y >= 24 && y + at.h <= t.box.clientHeight,
                table.lane.title, lines, state.from, state.to, document.getElementById('search').value];
        })()"""
        page.run("tpuprof.setWindow(tpuprof.state.from - 1000, tpuprof.state.to + 500); tpuprof.drawNow()")
        before = page.run(shown)
        # what is found lies below the fold: it is scrolled to, and the table is that of its lane
        assert before[0] == before[5] == "Core 3 TIU"
        assert before[2:5] == [[0, 3], ["TIU", "GDMA"], True]
        assert before[6] == [page.run("`${tpuprof.state.selected.lane.detail('order', tpuprof.state.selected.row)}`")]
        link = page.wait("location.hash.includes(`from=${tpuprof.state.from}`) && location.hash")
        page = opened(browser, written, link)
        assert page.run(shown) == before
        page.run("location.hash = 'timeline&unit=1'")
        page.wait("tpuprof.state.cores.size === 1")
        assert page.run("[tpuprof.state.selected, tpuprof.search.matches.length]") == [None, 0]
        nonsense = "#from=x&to=1e999&unit=77&event=9999.1&type=%3Cb%3E&colour=__proto__&panel=no&search=%3Cimg%3E"
        page = opened(browser, written, nonsense)
        assert page.run("tpuprof.state.cores.size") == 4
        assert page.complaints == []
    finally:
        browser.resize(1440, 900)


def test_rows_are_copied_as_a_spreadsheet_takes_them(browser, tmp_path):
    texts = Texts()
    names = texts.codes("name", ["mm", "=1+1", "a\tb"])
    lane = make_lane("TIU", 0, starts=[0, 100, 200], ends=[50, 150, 250], cycles=[51, 51, 51], name=names)
    path = written_page(tmp_path, make_profile([lane], strings=texts.build()))
    page = opened(browser, path, "#timeline&panel=table")
    page.run("""addEventListener('copy', (event) => {
        window.copied = event.clipboardData.getData('text') || event.target.value;
    })""")
    copy = "document.dispatchEvent(new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true }))"
    page.run("tpuprof.table.mark(0, 0, false); tpuprof.drawNow(); tpuprof.table.mark(1, 1, true)")
    page.run(copy)
    header, *rows = page.run("window.copied").split("\n")
    assert header.split("\t")[1:5] == ["Start (ns)", "End (ns)", "Duration (ns)", "Function"]
    assert [row.split("\t")[1:5] for row in rows] == [["0", "50", "50", "mm"], ["100", "150", "50", "'=1+1"]]
    page.run("tpuprof.showPanel('shares')")
    page.run(copy)
    assert "Duration\t50 ns" in page.run("window.copied")
    page.run("tpuprof.showPanel('table'); tpuprof.select(null)")
    page.frame()
    box = page.run("""(() => {
        const { x, y } = tpuprof.table.copier.getBoundingClientRect();
        return [x + 5, y + 5];
    })()""")
    page.click(*box)
    assert page.run("window.copied").count("\n") == 3
    assert page.complaints == []


def test_an_overview_has_no_heading_without_anything_below(browser, tmp_path):
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Free\n1,rank,0,10,2\n1,rank,1,12,3\n"
    )
    page = opened(browser, written_page(tmp_path, open_profile(tmp_path / "cluster_step_trace_time.csv")))
    headings = page.run("[...document.querySelectorAll('#overview h2')].map((each) => each.textContent).join()")
    assert headings == "Cluster,Parameters"
    tiles = page.run("document.querySelector('#overview .tiles').textContent")
    assert "Computing" not in tiles
    assert tiles.startswith("Total time-no times of tasks")
    assert page.run("document.getElementById('subtitle').textContent").endswith("msprof-analyze")


@pytest.mark.parametrize("name", ["torch_cpu_recorded", "torch_cuda_synthetic", "aksv_cdma"])
def test_events_of_device_and_host_are_counted_as_info_does(name, browser, tmp_path):
    profile = open_profile(SAMPLES / name)
    page = opened(browser, written_page(tmp_path, profile))
    count = title_line(profile).split(f"({profile.recording.meaning}), ")[1]
    assert page.run("document.getElementById('subtitle').textContent").endswith(f" · {count}")
    if "host" in count:
        sides = count.split(f" {profile.vocabulary.event.plural} ")[1]
        assert sides in page.run("document.querySelector('#overview .tiles').textContent")


def test_a_single_event_of_no_duration_lasts_0_ns(browser, tmp_path):
    trace, event = (
        tmp_path / "one.pt.trace.json",
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "ts": 5, "dur": 0},
    )
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    page = opened(browser, written_page(tmp_path, open_profile(trace)))
    assert page.run("document.querySelector('#overview .tiles').textContent").startswith("Total time0 ns0 ns")
    assert page.complaints == []


def test_the_head_of_a_page_of_a_selection_says_which_one_as_text(browser, tmp_path):
    selection = {"units": frozenset((1,)), "start": 2000, "filter": "!<img/src=x>|" + "|".join(["name=x"] * 200)}
    page = opened(browser, written_page(tmp_path, small_profile(1), **selection))
    said = page.run("document.getElementById('subtitle').textContent")
    assert said.endswith(page.run("document.getElementById('subtitle').title"))
    assert "Core 1; Range 2,000 ns to the end; Filter !<img/src=x>|name=x" in said
    assert page.run("document.querySelectorAll('header img').length") == 0
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.complaints == []


#: Width beyond the page's and heights of the rows of each table of the overview, CSS pixels.
SIZES = """[...document.querySelectorAll('#overview .scroll-x')].map((box) => [
    box.scrollWidth - box.clientWidth, ...[...box.querySelectorAll('tr')].map((row) => row.offsetHeight)])"""


@pytest.mark.parametrize("name", ["torch_cuda_synthetic", "ascend_synthetic"])
def test_short_texts_leave_room_for_the_numbers_beside_them(browser, tmp_path, name):
    page = opened(browser, written_page(tmp_path, open_profile(SAMPLES / name)))
    wider = sorted(width for width, *_ in page.run(SIZES))
    assert wider[len(wider) // 2] == 0
    assert wider[-2] < 500


def test_a_long_name_is_not_wider_than_the_page(browser, tmp_path):
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": 5, "args": {"stream": 7}}
        for at, name in ((10, "L" * 40_000), (20, "short"))
    ]  # fmt: skip
    path = tmp_path / "long.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    sizes = opened(browser, written_page(tmp_path, open_profile(path))).run(SIZES)
    assert max(width for width, *_ in sizes) < 400
    assert 60 < max(max(heights, default=0) for _, *heights in sizes) < 150


def test_bars_of_a_column_begin_in_one_place(browser, tmp_path):
    page = opened(browser, written_page(tmp_path, open_profile(SAMPLES / "torch_cuda_synthetic")))
    places = page.run("""[...document.querySelectorAll('#overview tbody')].map((rows) => {
        const cells = [...rows.rows].map((row) => [...row.cells].filter((cell) => cell.querySelector('.bar-room')));
        const left = (cell) => cell.querySelector('.bar-room').getBoundingClientRect().left;
        const right = (cell) => cell.querySelector('.bar-room').getBoundingClientRect().right;
        return cells.map((each) => each.map((cell) => [left(cell), right(cell) - cell.getBoundingClientRect().right]));
    }).filter((rows) => rows.length > 1 && rows[0].length)""")
    assert len(places) > 5
    for rows in places:
        for column in zip(*rows, strict=True):
            assert len({round(left) for left, _ in column}) == 1
            assert max(beyond for _, beyond in column) < -20
