from __future__ import annotations

import base64

import numpy as np
import pytest
from profiles import big_profile, make_lane, make_profile
from web_browser import Page
from web_driver import GUTTER, colours, facts, lane_number, needs_chromium, opened, window, written_page

from tpuprof_tui.model import Profile, Role

pytestmark = [pytest.mark.browser, needs_chromium]

HEAD = "[...document.querySelectorAll('.table-head button')].find((b) => %s).click()"


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
        shown = page.run(
            f"tpuprof.lanes[{lane_number(page, profile.title_of(lane))}].tracks.reduce((sum, t) => sum + t.n, 0)"
        )
        texts = directions.texts(lane["direction"]) if "direction" in lane else []
        assert shown == sum(text == "DDR->LMEM" for text in texts)
    page.run("tpuprof.showPanel('table')")
    page.frame()
    assert " of " in page.run("document.querySelector('.table-tools').textContent")
    page.key("Escape")
    first = next(lane for lane in profile.lanes if len(lane))
    assert page.run(f"tpuprof.lanes[{lane_number(page, profile.title_of(first))}].tracks[0].n") == len(first)


# -- figures -------------------------------------------------------------------


def moved(profile: Profile, key: str, start: float, end: float, core: int | None = None) -> float:
    total = 0.0
    for lane in profile.lanes:
        if key not in lane or (core is not None and profile.unit_number(lane) != core):
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
    peaks = page.run("tpuprof.bandwidth.cells.frames.map((f) => [f.peak, f.peak <= f.top])")
    assert peaks[0] == [pytest.approx(4 * profile.device.peak("DDR")), True]
    legend = page.run("[...document.querySelectorAll('#panel-legend .swatch')].map((s) => s.style.background)")
    assert len(set(legend)) == 4


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
        for lane in (each for each in profile.lanes if each.kind == engine["engine"]):
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
    page.run("tpuprof.chooseCores([0]); tpuprof.showPanel('rate'); tpuprof.setWindow(30000, 60000)")
    page.frame()
    lane = next(each for each in profile.lanes if profile.title_of(each) == "Core 0 TIU")
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
    lane = next(each for each in profile.lanes if profile.title_of(each) == "Core 0 GDMA")
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
    assert (said["Lane"], said["Address"], said["Idx"]) == (
        "Core 0 GDMA", f"0x{address:X}", f"{lane['order'][row]:,}",
    )  # fmt: skip
    page.click(x, y)
    assert page.run("document.documentElement.dataset.selected") == f"{lane_number(page, profile.title_of(lane))},{row}"


# -- table and summary ---------------------------------------------------------


def rows_of_table(page: Page) -> list[list[str]]:
    page.frame()
    return page.run(
        "[...document.querySelectorAll('.table-row')].map((r) => [...r.children].map((c) => c.textContent))"
    )


def test_the_table_sorts_scrolls_and_leads_to_the_timeline(page, profile):
    page.run("tpuprof.chooseCores([0]); tpuprof.showPanel('table')")
    lane = next(each for each in profile.lanes if profile.title_of(each) == "Core 0 TIU")
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
    titles = page.run("[...document.querySelectorAll('.summary th')].map((r) => r.textContent)")
    column = titles.index("GdmaWorkCycle")
    page.run(button % "GdmaWorkCycle")
    found = page.run(script % column)
    assert [int(each) for each in found[:-1]] == sorted((int(each) for each in found[:-1]), reverse=True)
    assert page.run(script % 0)[-1] == "Overall"
    page.run(button % "GdmaWorkCycle")
    assert page.run(script % column)[:-1] == found[:-1][::-1]
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
