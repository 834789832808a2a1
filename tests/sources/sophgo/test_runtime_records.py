"""What surrounds a compiled model on hardware: unmarked pairs, copies of inputs and outputs, ends; and what is lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import raw_bytes as raw
from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS
from compiled_captures import RECORDED, compiled
from hypothesis import given
from hypothesis import strategies as st
from truth_tables import Leave, Truth, differences, read_truth

from tpuprof_tui.analysis.events import numbers_shown
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.filter_masks import filtered_session
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.app.panes.tree import nodes_of
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Activity, Profile, Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.chips.chip import chip_by_name
from tpuprof_tui.sources.sophgo.files.perfetto import Trace
from tpuprof_tui.sources.sophgo.read.problems import Problems
from tpuprof_tui.sources.sophgo.read.records import runtime_records
from tpuprof_tui.sources.sophgo.read.records.monitor import read_stream
from tpuprof_tui.views.text_pages import info_report

_CHIP = chip_by_name("aks")
assert _CHIP is not None
_WORDS = {raw.MONITOR_TIU: 4, raw.MONITOR_GDMA: 16, raw.MONITOR_SDMA: 16}
_TIU, _GDMA, _SDMA = raw.MONITOR_TIU, raw.MONITOR_GDMA, raw.MONITOR_SDMA
Records = dict[int, np.ndarray]


def _written(kind: str, parent: Path, **changes: Any) -> tuple[Path, Truth]:
    written = write_capture(dataclasses.replace(KINDS[kind], **changes), parent)
    return written.path, read_truth(parent / f"{kind}.truth.json")


def _edited(path: Path, edit: Callable[[Records], None]) -> Path:
    """The capture with the records of its first core changed; engines that are taken out lose their block."""
    file = path / "cdmlib0_0.profile"
    blocks = raw.blocks_of(file.read_bytes())
    records = {kind: np.frombuffer(payload, "<u4").reshape(-1, _WORDS[kind]).copy()
               for kind, payload in blocks if kind in _WORDS}  # fmt: skip
    edit(records)
    file.write_bytes(b"".join(
        raw.block(kind, records[kind].tobytes() if kind in records else payload)
        for kind, payload in blocks if kind not in _WORDS or kind in records
    ))  # fmt: skip
    (path / "global.profile").write_text("arch=5\nbmodel\n")
    return path


def _said(profile: Profile) -> list[str]:
    return [problem.what for problem in profile.problems if problem.severity > Severity.NOTE]


_CHANGES: tuple[dict[str, Any], ...] = (
    {"seed": 3}, {"batches": 4, "lost": 0.03}, {"wrap_at": 0.5, "batches": 3}, {"tpu_freq": 800},
    {"clock_base": (1 << 32) - 5000}, {"pause_ms": 2500, "batches": 2}, {"markers": 2}, {"crossed_pairs": True},
    {"hardware": False}, {"monitor_blocks": 3}, {"lost_ends": (1, 0)}, {"lost_ends": (2, 0)}, {"lost_ends": (3, 0)},
    {"lost_ends": (4, 0)}, {"lost_ends": (8, 0)}, {"lost_ends": (0, 5)},
)  # fmt: skip


@pytest.mark.parametrize("kind", ["measured", "measured_cores", "measured_announced", "measured_dynamic"])
@pytest.mark.parametrize("changes", _CHANGES, ids=str)
def test_the_model_s_instructions_are_shown_and_no_others(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    path, truth = _written(kind, tmp_path, **changes)
    shift = ("core",) if kind == "measured_cores" and "lost_ends" in changes else ()
    assert differences(open_profile(path), truth, Leave(shift=shift)) == []


def test_a_capture_as_hardware_writes_it_has_no_problem(tmp_path: Path) -> None:
    for kind in ("measured", "measured_cores", "measured_announced"):
        path, _ = _written(kind, tmp_path)
        assert open_profile(path).problems == ()


# -- copies -------------------------------------------------------------------


def test_copies_are_host_transfers_outside_the_total(tmp_path: Path) -> None:
    path, truth = _written("measured", tmp_path, batches=2)
    profile = open_profile(path)
    (copies,) = (lane for lane in profile.lanes if lane.kind == "COPY")
    device = profile.device_part
    spans = [(columns["start_ns"].min(), columns["end_ns"].max()) for columns in truth.lanes.values()]
    assert copies.activity is Activity.HOST
    assert profile.unit_of(copies) >= 0
    assert (device.start_ns, device.end_ns) == (0, max(end for _, end in spans))
    assert copies["start"][0] < 0 < device.end_ns < copies["end"][-1]
    names = profile.strings["name"].texts(copies["name"])
    assert names == ["input copy", "output copy", "output copy"] * 2
    assert copies.description(0) == "input copy by GDMA, 192.0 KiB"
    assert copies["ddr_bandwidth"][0] == pytest.approx(copies["bytes"][0] / copies["duration"][0], abs=1e-4)


def test_copies_are_filtered_like_instructions(tmp_path: Path) -> None:
    profile = open_profile(_written("measured", tmp_path)[0])
    for text, count in (("engine=COPY", 3), ("name=input*", 1), ("output", 2), ("engine=COPY bytes>100KiB", 1)):
        shown = filtered_session(Session(profile), text).profile
        assert {lane.kind: len(lane) for lane in shown.lanes if len(lane)} == {"COPY": count}


def test_copies_are_in_tree_table_info_and_trace(tmp_path: Path) -> None:
    path, _ = _written("measured_cores", tmp_path)
    profile = open_profile(path)
    session = Session(profile)
    copies = [number for number, lane in enumerate(profile.lanes) if lane.kind == "COPY"]
    nodes = nodes_of(session)
    shown = {node.scope.lane: nodes[node.parent].label for node in nodes if node.scope and node.scope.lane in copies}
    assert list(shown.values()) == ["Core 0", "Core 1"]
    assert len(numbers_shown(session, DisplayState.of(profile.start_ns, profile.end_ns))) == sum(
        map(len, profile.lanes)
    )
    device = sum(len(lane) for lane in profile.lanes if lane.kind != "COPY")
    assert f"Instructions  {device} on the device, 18 on the host" in info_report(profile).lines
    tracks = [job.track for job in Trace(query_of(profile)).jobs]
    assert [track.parent.name for track in tracks if track.name == "copies" and track.parent] == ["Core 0", "Core 1"]


def test_between_launches_without_a_pair_the_nearer_launch_has_the_copy(tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        for kind, table in records.items():
            restarts = np.flatnonzero(np.diff(table[:, 2].astype(int)) <= 0) + 1
            pairs = [row for row, after in zip(restarts, [*restarts[1:], len(table)], strict=True) if after - row == 2]
            own = [row for row in pairs if kind == _TIU or not table[row, 5:].any()][1:-1]
            records[kind] = np.delete(table, [*own, *(row + 1 for row in own)], 0)

    path, _ = _written("measured", tmp_path, batches=3)
    profile = open_profile(_edited(path, edit))
    (copies,) = (lane for lane in profile.lanes if lane.kind == "COPY")
    assert profile.strings["name"].texts(copies["name"]) == ["input copy", "output copy", "output copy"] * 3
    assert profile.problems == ()


# -- altered records ----------------------------------------------------------


def _without(kind: int, *rows: int) -> Callable[[Records], None]:
    def edit(records: Records) -> None:
        records[kind] = np.delete(records[kind], rows, 0)

    return edit


def _marked(value: int, *rows: int) -> Callable[[Records], None]:
    return lambda records: records[_TIU].__setitem__((list(rows), 3), value)


def _more_copies(*, restart: bool) -> Callable[[Records], None]:
    """Three inputs and five outputs, as one section of ids or each its own."""

    def edit(records: Records) -> None:
        table = records[_GDMA]
        parts = []
        for row, count in ((4, 3), (len(table) - 4, 5)):
            copies = np.repeat(table[[row]], count, 0)
            copies[:, 2] = 0 if restart else np.arange(count)
            copies[:, :2] += np.arange(count, dtype=np.uint32)[:, None] * 40
            copies[:, 1] = copies[:, 0] + 30
            parts.append(copies)
        records[_GDMA] = np.concatenate([table[:4], parts[0], table[5:-4], parts[1], table[-2:]])

    return edit


#: Rows 2 and 3 of each engine are the model's own pair, row 4 of GDMA is the input; two outputs are before the closing
#: pair.
_EDITS: dict[str, tuple[Callable[[Records], None], tuple[int, int, int]]] = {
    "no sdma": (lambda records: records.pop(_SDMA), (0, 0, 3)),
    "tiu lost its opening send": (_without(_TIU, 0), (0, 0, 3)),
    "tiu lost its opening pair": (_without(_TIU, 0, 1), (0, 0, 3)),
    "tiu lost its own send": (_without(_TIU, 2), (0, 0, 3)),
    "tiu lost its own wait": (_without(_TIU, 3), (0, 0, 3)),
    "tiu lost its closing pair": (_without(_TIU, -1, -2), (0, 0, 3)),
    "gdma lost its opening pair": (_without(_GDMA, 0, 1), (0, 0, 3)),
    "gdma lost its own wait": (_without(_GDMA, 3), (0, 0, 3)),
    "gdma lost its own pair": (_without(_GDMA, 2, 3), (0, 0, 3)),
    "gdma lost the input": (_without(_GDMA, 4), (0, 0, 2)),
    "gdma lost an output": (_without(_GDMA, -4), (0, 0, 2)),
    "gdma lost its closing pair": (_without(_GDMA, -1, -2), (0, 0, 3)),
    "the model lost its first gdma commands": (_without(_GDMA, 5, 6), (0, 2, 3)),
    "the model lost its first tiu commands": (_without(_TIU, 4, 5), (2, 0, 3)),
    "wait and first command lost": (_without(_TIU, 3, 4), (1, 0, 3)),
    "pairs marked": (_marked(2, 0, 1, 2, 3, -2, -1), (0, 0, 3)),
    "one pair marked": (_marked(2, 0, 1), (0, 0, 3)),
    "other words": (_marked(60, 0, 1, 2, 3, -2, -1), (0, 0, 3)),
    "inputs and outputs in one section": (_more_copies(restart=False), (0, 0, 8)),
    "each of them its own section": (_more_copies(restart=True), (0, 0, 8)),
}


@pytest.mark.parametrize("name", _EDITS)
def test_altered_and_lost_records_of_pairs_and_copies(name: str, tmp_path: Path) -> None:
    path, truth = _written("measured", tmp_path)
    edit, (tiu, gdma, copies) = _EDITS[name]
    profile = open_profile(_edited(path, edit))
    seen = {lane.kind: lane for lane in profile.lanes}
    assert set(seen) == {"TIU", "GDMA", "COPY"}
    for engine, lost in (("TIU", tiu), ("GDMA", gdma)):
        wanted = truth.lanes[engine, 0]
        assert seen[engine]["cycles"].tolist() == wanted["cycles"][lost:].tolist()
        assert seen[engine]["command_id"].tolist() == (wanted["cmd_id"][lost:] + 1).tolist()
        texts = profile.strings["name"].texts(seen[engine]["name"])
        assert None not in texts
    assert len(seen["COPY"]) == copies
    assert not [what for what in _said(profile) if "without a command" in what]
    spans = [truth.lanes[engine, 0][key] for engine in ("TIU", "GDMA") for key in ("start_ns", "end_ns")]
    if not tiu and not gdma:
        device = profile.device_part
        assert device.end_ns - device.start_ns == max(map(max, spans)) - min(map(min, spans))


@pytest.mark.parametrize("name", RECORDED)
def test_the_first_pair_may_restart_where_its_nodes_do_not_say_so(name: str, tmp_path: Path) -> None:
    def restart(records: Records) -> None:
        for table in records.values():
            table[2:4, 2] = 0, 1

    whole = open_profile(compiled(name, tmp_path))
    path = compiled(name, tmp_path, "altered")
    settings = (path / "global.profile").read_text()
    _edited(path, restart)
    (path / "global.profile").write_text(settings)
    profile = open_profile(path)
    assert profile.problems == ()
    assert len(profile.lanes) == len(whole.lanes)
    for mine, theirs in zip(profile.lanes, whole.lanes, strict=True):
        for key in ("start", "end", "name", "mode"):
            assert mine[key].tolist() == theirs[key].tolist()


# -- sections and streams -----------------------------------------------------


def _stream(text: str) -> runtime_records._Launch:
    """A stream of commands: s system, c copy between memories of the bus, . any other."""
    marks = np.array(list(text))
    return runtime_records._Launch(marks == "s", marks == "c")


def _foreign(sections: str, streams: str) -> str:
    """For sections of GDMA records (s idle, c copy, . other) whether each is foreign to the streams: x or -."""
    records = []
    for section in sections.split():
        for number, mark in enumerate(section):
            at = 1000 * len(records)
            record = np.frombuffer(raw.dma_record(at, at + 500, number, 64, mark == "."), "<u4").copy()
            if mark == "s":
                record[3:] = 0
            records.append(record.tobytes())
    stream = read_stream([np.frombuffer(b"".join(records), np.uint8)], [0], _CHIP, "GDMA", Problems())
    known = [_stream(each) for each in streams.split()]
    found = runtime_records._sections(stream, _CHIP, (), known)
    return "".join("x" if each else "-" for each in runtime_records._foreign(found, known, "GDMA"))


@pytest.mark.parametrize(
    ("sections", "streams", "foreign"),
    [
        ("ss c ...s cc ss c ...s cc", "...s ...s", "xx-xxx-x"),
        ("ss ss", "ss", "x-"),  # a model of nothing but synchronisation: its pair is before it
        ("ss ss ss ss", "ss ss", "x-x-"),
        ("ss ss", "ss ss", "--"),
        ("c cs c", "cs", "x-x"),  # a model that copies
        ("c ccs", "ccs", "x-"),
        ("ss ...s", "...s ...s", "x-"),  # one launch left no record
        ("s ...s", "...s", "x-"),  # half of a pair
        ("...s ...s", "...s", "--"),  # not the runtime's
    ],
)
def test_sections_that_belong_to_no_stream(sections: str, streams: str, foreign: str) -> None:
    assert _foreign(sections, streams) == foreign


@pytest.mark.parametrize(
    ("sections", "streams", "foreign"),
    [("ss c.....s", "......s", "xx-"), ("ss.....s", ".......s", "x-"), ("ss....s", "ss....s", "-")],
)
def test_a_launch_that_lost_its_first_records_goes_on_from_the_runtime_s(
    sections: str, streams: str, foreign: str
) -> None:
    assert _foreign(sections, streams) == foreign


# -- hostile ------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A capture that is written over and over, and the records of its first core as they were."""
    path, _ = _written("measured", tmp_path_factory.mktemp("measured"))
    return path, (path / "cdmlib0_0.profile").read_bytes()


@raw.FIXED
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=30))
def test_random_bytes_among_the_records_do_no_harm(
    measured: tuple[Path, bytes], changes: list[tuple[int, int]]
) -> None:
    path, sound = measured
    data = bytearray(sound)
    for place, value in changes:
        data[place % len(data)] = value
    (path / "cdmlib0_0.profile").write_bytes(bytes(data))
    try:
        profile = open_profile(path)
    except UnreadableError:
        return
    assert profile.event_count >= 0


def test_many_sections_of_one_record_are_read(tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        for kind, table in records.items():
            many = np.zeros((60_000, table.shape[1]), "<u4")
            many[:, 0] = np.arange(len(many)) * 20
            many[:, 1] = many[:, 0] + 5
            records[kind] = np.concatenate([table, many])

    path, _ = _written("measured", tmp_path)
    profile = open_profile(_edited(path, edit))
    assert profile.lane("TIU", 0) is not None


def test_blocks_of_another_layout_are_no_copies(tmp_path: Path) -> None:
    path, _ = _written("bm1688_bmodel", tmp_path)
    assert {lane.kind for lane in open_profile(path).lanes} == {"TIU", "GDMA"}


def test_a_model_whose_streams_are_not_in_the_file_is_told(tmp_path: Path) -> None:
    path, truth = _written("measured", tmp_path)
    file = path / "cdmlib0_0.profile"
    file.write_bytes(b"".join(raw.block(*each) for each in raw.blocks_of(file.read_bytes()) if each[0] < 13))
    profile = open_profile(path)
    assert _said(profile) == ["The capture is of a compiled model, but the file has no commands of it."]
    assert {lane.kind: len(lane) for lane in profile.lanes} == {
        "TIU": len(truth.lanes["TIU", 0]["op"]), "GDMA": len(truth.lanes["GDMA", 0]["op"]), "COPY": 3
    }  # fmt: skip


def test_three_losses_do_not_pass_for_a_lapped_ring(tmp_path: Path) -> None:
    """The dump then begins with id 1, ends with id 0, and ids skip once in between."""
    path, truth = _written("measured", tmp_path)
    profile = open_profile(_edited(path, _without(_GDMA, 0, 6, -1)))
    assert _said(profile) == ["GDMA commands without a record: the hardware did not keep it."]
    (lane,) = (lane for lane in profile.lanes if lane.kind == "GDMA")
    assert lane["cycles"].tolist() == np.delete(truth.lanes["GDMA", 0]["cycles"], 1).tolist()
