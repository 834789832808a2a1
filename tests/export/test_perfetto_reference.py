"""The reference's own trace beside ours: every track of its, slice by slice and sample by sample."""

from __future__ import annotations

import io

import pytest
from converter import converted, needs_converter
from kept import HOST_TRACE, SAMPLES, unpacked
from trace_reading import ReadTrack, TraceReader

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.sophgo.files.perfetto import write_perfetto
from tpuprof_tui.sources.sophgo.read.host_trace import with_host_trace

pytestmark = [pytest.mark.reference, needs_converter]

CAPTURES = ["aks_mode1", "aks_mode2", "aks_sdma", "aks_des_kv", "aks_bmodel", "aksv_mode1", "aksv_mode2", "aksv_rvt"]


def told(track: ReadTrack) -> tuple:
    slices = [
        (each.start, each.end, each.name, each.category, each.end_category,
         [(name, list(value.items()) if isinstance(value, dict) else value, type(value)) for name, value in each.notes])
        for each in track.slices
    ]  # fmt: skip
    return track.rank, track.ordered, track.counter, track.unit, track.samples, slices


def both(folder, capture, *options) -> tuple[dict[str, ReadTrack], dict[str, ReadTrack]]:
    converted(capture, folder / "out", *options)
    theirs = TraceReader((folder / "out" / "perfetto.pftrace").read_bytes()).by_path
    profile = open_profile(capture)
    if options:
        profile = with_host_trace(profile, options[1])
    stream = io.BytesIO()
    write_perfetto(query_of(profile), stream)
    return theirs, TraceReader(stream.getvalue()).by_path


@pytest.mark.parametrize("name", CAPTURES)
def test_all_that_the_reference_writes_is_there(name, tmp_path):
    theirs, ours = both(tmp_path, unpacked(name, tmp_path))
    assert list(theirs) == [path for path in ours if path in theirs]
    for path, track in theirs.items():
        assert told(ours[path]) == told(track), path


@pytest.mark.parametrize("name", ["aks_decode_mode1", "aks_decode_mode2"])
def test_the_same_of_samples(name, tmp_path):
    theirs, ours = both(tmp_path, SAMPLES / name)
    for path, track in theirs.items():
        assert told(ours[path]) == told(track), path


def test_cdma_has_all_of_it_and_more_kernel_functions(tmp_path):
    theirs, ours = both(tmp_path, unpacked("aks_cdma", tmp_path))
    for path, track in theirs.items():
        if path.startswith("Core") and path.endswith("Kernel Function"):
            shown = [each.name for each in ours[path].slices]
            assert [name for name in shown if name != "all_reduce_multi_core"] == [each.name for each in track.slices]
        else:
            assert told(ours[path]) == told(track), path


def test_the_device_lies_where_the_reference_lays_it(tmp_path):
    theirs, ours = both(tmp_path, unpacked("aks_host_trace", tmp_path), "--trace_file", str(HOST_TRACE))
    for path, track in theirs.items():
        if path.startswith("Core"):
            assert told(ours[path]) == told(track), path
    # its times pass through floats
    launches = [(each.start, each.name) for each in theirs["tpudnn op"].slices]
    assert [(each.start, each.name) for each in ours["tpudnn op"].slices] == launches
