from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Texts, big_profile, make_lane, make_profile, selected_query, small_profile
from web_reading import page_of

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.export.web.lanes import ChosenLane, cut_time
from tpuprof_tui.export.web.page import write_web
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.formats.web_codec import scaled
from tpuprof_tui.model import Device, Role, Scopes, is_missing
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

SAMPLES = sorted(path for path in (Path(__file__).parents[2] / "samples").glob("ak*") if path.is_dir())
HOSTILE = ("</script><script>alert(1)</script>", "=HYPERLINK(\"http://evil.example\")", "<!--<script>", "a&amp;b\u202e",
           "https://evil.example/x.js", "'\"`${alert(1)}", "line\u2028two\nthree", "\ud800half")  # fmt: skip


def by_track(lane):
    """Rows of a lane in the order the page draws them."""
    return np.argsort(np.minimum(lane["sublane"], 7), kind="stable")


def as_integers(values, scale):
    return np.where(is_missing(values), -1, values) if scale is None else scaled(values, scale)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_every_instruction_comes_back_as_it_was(tmp_path, mode):
    profile = small_profile(mode)
    page = page_of(query_of(profile), tmp_path)
    written = [lane["title"] for lane in page.record["lanes"]]
    assert sorted(written) == sorted(profile.title_of(lane) for lane in profile.lanes if len(lane))
    for lane in profile.lanes:
        if not len(lane):
            continue
        order, found = by_track(lane), page.lane(profile.title_of(lane))
        columns = found["columns"]
        assert (columns["start"] == lane["start"][order]).all()
        assert (columns["duration"] == (lane["end"] - lane["start"])[order]).all()
        assert sum(found["subrows"]) == found["shown"] == found["count"] == len(lane)
        scales = {"uarch_rate": 100, "ddr_bandwidth": 10_000, "l2_bandwidth": 10_000}
        for key in ("uarch_rate", "ddr_bandwidth", "l2_bandwidth", "stall", "order", "command_id", "scope", "batch",
                    "bytes", "cycles"):  # fmt: skip
            expected = as_integers(lane[key][order], scales.get(key)) if key in lane else np.full(len(lane), -1)
            assert (columns.get(key, np.full(len(lane), -1)) == expected).all(), (profile.title_of(lane), key)
        for key in ("name", "type", "kernel", "direction", "dtype", "mode"):
            expected = profile.strings[key].texts(lane[key][order]) if key in lane else [""] * len(lane)
            assert page.texts(key, columns["kind"]) == expected
        assert [page.record["kinds"]["role"][kind] for kind in columns["kind"]] == lane["role"][order].tolist()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_samples_come_back(tmp_path, sample):
    profile = open_profile(sample)
    page = page_of(query_of(profile), tmp_path)
    for lane in (lane for lane in profile.lanes if len(lane)):
        found = page.lane(profile.title_of(lane))
        assert (found["columns"]["start"] == lane["start"][by_track(lane)]).all()
        assert page.texts("name", found["columns"]["kind"]) == profile.strings["name"].texts(
            lane["name"][by_track(lane)]
        )
        figures = lane_figures(build_index(lane), *page.record["window"])
        assert (found["busy"], found["wait"], found["sync"]) == (figures.busy, figures.wait, figures.sync)
        assert found["overview"]["busy"].sum() == figures.busy
        assert found["overview"]["still"].sum() == figures.wait + figures.sync
    assert page.record["problem_count"] == len(profile.problems)


def test_totals_of_kinds_are_those_of_all_rows(tmp_path):
    profile = small_profile(1)
    page = page_of(query_of(profile), tmp_path, most=100)
    for lane in (lane for lane in profile.lanes if len(lane)):
        found = page.lane(profile.title_of(lane))
        assert sum(count for _, count, _ in found["totals"]) == len(lane)
        for kind, count, ns in found["totals"]:
            text = page.texts("name", [kind])[0]
            role = page.record["kinds"]["role"][kind]
            kernel = page.texts("kernel", [kind])[0]
            others = [page.texts(key, [kind])[0] for key in ("direction", "dtype")]
            rows = lane["role"] == role
            for key, value in zip(("name", "kernel", "direction", "dtype"), (text, kernel, *others), strict=True):
                if key in lane:
                    rows &= np.array([each == value for each in profile.strings[key].texts(lane[key])])
            assert (count, ns) == (rows.sum(), (lane["end"] - lane["start"])[rows].sum())


def test_above_the_limit_every_lane_is_complete_up_to_one_time(tmp_path):
    profile = big_profile(3000, cores=3, ports=2, mode=2)
    page = page_of(query_of(profile), tmp_path, most=1000)
    until = page.record["until"]
    assert 900 <= page.record["shown"] <= 1000
    assert page.record["total"] == profile.event_count == 3000
    assert page.record["most"] == 1000
    for lane in profile.lanes:
        found = page.lane(profile.title_of(lane))
        rows = np.flatnonzero(lane["start"] < until)
        assert found["shown"] == len(rows)
        assert found["count"] == len(lane)
        assert sorted(found["columns"]["order"]) == sorted(lane["order"][rows])
        assert found["overview"]["busy"].sum() == build_index(lane).work.between(*page.record["window"])
        if "ddr_bandwidth" in lane:
            moved = (lane["ddr_bandwidth"] * (lane["end"] - lane["start"])).sum()
            assert found["overview"]["ddr"].sum() == pytest.approx(moved, rel=1e-3)
    named = [number for lane in page.record["lanes"] for number in (*lane["chunks"], lane["cells"])]
    assert sorted(page.chunks) == sorted(named + [each["chunk"] for each in page.record["launches"]])


def test_all_that_fits_is_written():
    lane = make_lane("TIU", 0, starts=[0, 5, 5, 9], ends=[1, 6, 7, 10])
    chosen = [ChosenLane(0, lane, slice(0, 4), 4)]
    assert cut_time(chosen, 4) is None
    assert cut_time(chosen, 3) == 9
    assert cut_time(chosen, 2) == 5  # the two that start together stay or go together
    assert cut_time(chosen, 1) == 5
    assert cut_time([ChosenLane(0, lane, np.array([1, 3]), 2)], 1) == 9
    # of contiguous rows, too, only these count
    part = ChosenLane(0, lane, slice(1, 3), 2)
    assert [part.before(int(lane["start"][row])) for row in range(4)] == [0, 0, 0, 2]
    assert len(part.index().lane) == 2


def test_a_selection_leaves_the_rest_out(tmp_path):
    profile = small_profile(1)
    page = page_of(selected_query(profile, units=frozenset((1,)), start=2000, end=20_000), tmp_path)
    assert page.record["selection"] == "Core 1; Range 2,000 ns to 20,000 ns"
    assert {lane["core"] for lane in page.record["lanes"]} <= {1, -1}
    lane = profile.lane("GDMA", 1)
    found = page.lane(profile.title_of(lane))
    expected = np.flatnonzero((lane["end"] > 2000) & (lane["start"] < 20_000))
    assert (found["columns"]["order"] == lane["order"][expected]).all()
    assert [row["core"] for row in page.record["summary"]["rows"]] == [1, None]


def test_a_filter_leaves_the_rest_out(tmp_path):
    profile = small_profile(1)
    page = page_of(selected_query(profile, filter="role=wait"), tmp_path)
    assert all(lane["busy"] == 0 for lane in page.record["lanes"])
    assert page.record["total"] == sum((lane["role"] == Role.WAIT).sum() for lane in profile.lanes) > 0


def test_slices_of_the_host_are_shown_but_not_counted(tmp_path):
    sample = next(path for path in SAMPLES if path.name == "aks_host_trace")
    device = open_profile(sample)
    profile = with_host_trace(device, sample / "host_trace.json")
    page, alone = page_of(query_of(profile), tmp_path), page_of(query_of(device), tmp_path)
    host = [lane for lane in profile.lanes if lane.kind == "HOST"]
    assert page.record["total"] - page.record["instructions"] == sum(map(len, host)) > 0
    assert page.record["instructions"] == device.event_count
    assert page.record["device"] == alone.record["window"] == [device.start_ns, device.end_ns]
    assert page.record["window"] == [profile.start_ns, profile.end_ns] != page.record["device"]
    assert page.record["summary"] == alone.record["summary"]
    assert page.record["figures"] == alone.record["figures"]
    assert page.record["host"] == "exact"
    for lane in host:
        found = page.lane(profile.title_of(lane))
        assert found["columns"]["start"].tolist() == lane["start"][by_track(lane)].tolist()
        assert page.texts("name", found["columns"]["kind"]) == profile.strings["name"].texts(
            lane["name"][by_track(lane)]
        )


def test_times_beyond_all_reason_do_no_harm(tmp_path):
    lane = make_lane("TIU", 0, starts=[-(1 << 55), 0, 1 << 60], ends=[-(1 << 55) + 7, 1, (1 << 60) + 5],
                     cycles=[8, 2, 6])  # fmt: skip
    backwards = make_lane("GDMA", 0, starts=[50], ends=[20], cycles=[1], bytes=[1], ddr_bandwidth=[np.inf])
    profile = make_profile([lane, backwards])
    page = page_of(query_of(profile), tmp_path, most=3)
    assert page.lane(profile.title_of(lane))["count"] == 3
    assert page.lane(profile.title_of(backwards))["columns"]["duration"].tolist() == [0]


def test_nothing_makes_a_page_too(tmp_path):
    page = page_of(query_of(make_profile([])), tmp_path)
    assert page.record["lanes"] == []
    assert page.record["window"] == [0, 1]
    lane = make_lane("TIU", 0, starts=[], ends=[])
    assert page_of(query_of(make_profile([lane])), tmp_path).record["total"] == 0


def hostile_profile():
    """A profile whose texts are all meant to break out."""
    texts = Texts()
    names = texts.codes("kernel", HOSTILE)
    starts = np.arange(8) * 10
    lane = make_lane("TIU", 0, starts=starts, ends=starts + 5, cycles=np.full(8, 6), kernel=names, scope=np.arange(8),
                     name=texts.codes("name", HOSTILE), type=texts.codes("type", HOSTILE))  # fmt: skip
    device = Device("<b>AKS</b>", parameters=tuple((text, text) for text in HOSTILE))
    profile = make_profile([lane], strings=texts.build(), device=device, scopes=Scopes(names, np.zeros(8, np.int32)))
    return replace(profile, name=HOSTILE[0])


def test_hostile_texts_are_texts(tmp_path):
    page = page_of(query_of(hostile_profile()), tmp_path)
    harmless = page_of(query_of(small_profile()), tmp_path)
    chunks = len(page.chunks) - len(harmless.chunks)
    assert page.tags.count("script") - harmless.tags.count("script") == chunks
    assert sorted(set(page.tags)) == sorted(set(harmless.tags))
    assert page.title == HOSTILE[0]
    assert page.record["name"] == HOSTILE[0]
    assert page.record["strings"]["kernel"][:2] == list(HOSTILE[:2])
    assert page.record["strings"]["kernel"][3] == "a&amp;b\\u202e"
    assert page.record["strings"]["kernel"][6:] == ["line\\u2028two\\x0athree", "\\ud800half"]
    assert "alert(1)</script>" not in page.text
    assert page.code == harmless.code


@pytest.mark.parametrize("profile", [hostile_profile(), small_profile(2)], ids=["hostile", "small"])
def test_no_address_anywhere(tmp_path, profile):
    page = page_of(query_of(profile), tmp_path)
    assert re.findall(r"(?i)\w+://|[\"'(=]//|\bsrcset\b", page.text) == []
    assert re.findall(r"@import|\burl\(", page.text) == []
    assert set(page.links) <= {"data:,"}
    for word in ("XMLHttpRequest", "fetch(", "WebSocket", "EventSource", "sendBeacon", "innerHTML", "eval("):
        assert word not in page.code
    assert "default-src 'none'" in page.text


def test_the_page_is_the_same_each_time(tmp_path):
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    write_web(query_of(small_profile(2)), first)
    write_web(query_of(small_profile(2)), second)
    assert first.read_bytes() == second.read_bytes()


def test_progress_rises_to_the_end(tmp_path):
    seen: list[float] = []
    write_web(query_of(small_profile()), tmp_path / "result.html", progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert 0 < seen[0] < 1


def test_a_failed_page_leaves_the_old_one(tmp_path):
    path = tmp_path / "result.html"
    path.write_text("old")

    def fail(_: float) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(WriteError, match="no space left"):
        write_web(query_of(small_profile()), path, progress=fail)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["result.html"]


def test_the_scripts_are_sound():
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    import subprocess

    from tpuprof_tui.export.web.page import SCRIPTS

    folder = Path(__file__).parents[2] / "tpuprof_tui" / "export" / "web" / "page_parts"
    assert {path.name for path in folder.glob("*.js")} == set(SCRIPTS)
    for name in SCRIPTS:
        done = subprocess.run([node, "--check", str(folder / name)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_what_a_source_says_of_its_own_is_on_the_page(tmp_path):
    profile = open_profile(Path(__file__).parents[2] / "samples" / "torch_cuda_synthetic")
    record = page_of(query_of(profile), tmp_path).record
    assert [view["title"] for view in record["views"]][:2] == ["Overview", "GPUs"]
    assert [table["title"] for table in record["views"][0]["tables"]][:2] == ["Overview, by worker (ms)", "What to do"]
    assert record["others_title"] == ""
    for figures, title in zip(record["figures"], ("GPU 0", "GPU 1"), strict=True):
        assert figures["title"] == title
        told = sum(figures[key] for key in ("compute", "exposed", "exposed_communication"))
        assert told == figures["busy"]
