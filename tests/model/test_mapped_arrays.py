"""Arrays that are kept in files hold the same values, and every figure made of them is the same."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import mapped_arrays
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.sources.torch.read import parallel_reading
from tpuprof_tui.views.as_json import answer_record
from tpuprof_tui.views.registry import answer, views_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
LARGE = np.arange(100_000)


class Columns(Struct, frozen=True):
    """Columns of one length."""

    start: np.ndarray
    name: str = ""


class Holder:
    """What computes arrays and keeps them."""

    def __init__(self):
        self.found = LARGE + 1
        self.rows = np.flatnonzero(LARGE > 50_000)
        self.columns = Columns(LARGE + 2, "x")
        self.both = (Columns(LARGE + 3), Columns(LARGE + 4))
        self.small = np.arange(3)


def lies_in_memory(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return not isinstance(array, memoryview)


def test_the_first_arrays_stay_in_memory_and_others_have_the_same_values_in_a_file():
    arrays = MappedArrays(LARGE.nbytes)
    assert not arrays.spills
    first = LARGE + 0
    assert arrays.stored(first) is first
    assert not arrays.spills
    arrays.allocate(LARGE.nbytes)
    kept = arrays.stored(LARGE * 2)
    assert arrays.spills
    assert not lies_in_memory(kept)
    assert kept.tolist() == (LARGE * 2).tolist()
    assert not kept.flags.writeable
    arrays.release_pages()
    assert kept.tolist() == (LARGE * 2).tolist()


def test_small_arrays_those_of_objects_and_parts_of_others_stay():
    arrays = MappedArrays(0)
    whole = LARGE.copy()
    for array in (np.arange(5), np.full(5_000, None), whole[10:90_000], whole[::2], np.zeros((0, 3))):
        assert arrays.stored(array) is array
    kept = arrays.stored(whole)
    assert arrays.stored(kept) is kept
    table = arrays.stored(np.arange(60_000).reshape(300, 200))
    assert table.shape == (300, 200)
    assert table[299, 199] == 59_999


def test_what_is_pickled_is_moved_with_its_arrays():
    moved = MappedArrays(0).with_stored_arrays({"columns": Columns(LARGE, "x"), "few": np.arange(3), "text": "y"})
    assert moved["columns"].name == "x"
    assert moved["columns"].start.tolist() == LARGE.tolist()
    assert moved["few"].tolist() == [0, 1, 2]
    assert not lies_in_memory(moved["columns"].start)


def test_attributes_are_put_away_where_there_is_more_than_what_stays():
    few = Holder()
    MappedArrays().spill(few)
    assert lies_in_memory(few.found)
    arrays, many = MappedArrays(0), Holder()
    arrays.allocate(1)
    arrays.spill(many)
    for put, offset in ((many.found, 1), (many.columns.start, 2), (many.both[0].start, 3), (many.both[1].start, 4)):
        assert not lies_in_memory(put)
        assert put.tolist() == (LARGE + offset).tolist()
    assert not lies_in_memory(many.rows)
    assert many.rows[0] == 50_001
    assert many.small.tolist() == [0, 1, 2]


def test_a_file_goes_with_the_last_of_its_arrays(monkeypatch):
    monkeypatch.setattr(mapped_arrays, "_FILE", LARGE.nbytes)
    arrays = MappedArrays(0)
    kept = [arrays.stored(LARGE + number) for number in range(3)]
    assert [each[1] for each in kept] == [1, 2, 3]
    files = [file for file in arrays._maps if file() is not None]
    assert len(files) == 3
    first = weakref.ref(files[0]())
    del kept[0]
    assert first() is None


@pytest.mark.parametrize("call", ["posix_fallocate", "open"])
def test_without_room_for_a_file_arrays_stay_in_memory(call, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "open":
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    else:
        monkeypatch.setattr(os, call, full)
    kept = MappedArrays(0).stored(LARGE + 5)
    assert kept.tolist() == (LARGE + 5).tolist()


@pytest.mark.parametrize("processes", [0, 1])
def test_every_view_of_many_traces_is_the_same_with_their_columns_in_files(processes, monkeypatch):
    folder = SAMPLES / "torch_cuda_synthetic"

    def told():
        session = Session(open_profile(folder))
        query = Query(session)
        found = {view.id: answer_record(answer(view, query)) for view in views_of(session.profile.vocabulary)}
        lanes = [str(lane[key].tolist()) for lane in session.profile.lanes for key in tuple(lane.columns)]
        return session, found, lanes, Query(session).headline.device_ns

    before = told()
    assert not before[0].profile.arrays.spills
    monkeypatch.setattr(MappedArrays.__init__, "__defaults__", (0,))
    monkeypatch.setattr(mapped_arrays, "_LARGE", 1)
    monkeypatch.setattr(mapped_arrays, "_MOST_MAPPED", 0)
    monkeypatch.setattr(parallel_reading, "_WORTH_IT", 1)
    monkeypatch.setattr(parallel_reading, "cpu_count", lambda: processes + 1)
    after = told()
    assert after[0].profile.arrays.spills
    assert after[1:] == before[1:]
