"""Captures at addresses of other file systems: found, read from copies, tried again where that fails by chance."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

import fsspec
from pyarrow import parquet

from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset import captures
from tpuprof_tui.dataset.manifest import LOG, Manifest
from tpuprof_tui.sources.catalog import Catalog

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def store(monkeypatch):
    """Two captures and two traces in memory, as an object store holds them."""
    monkeypatch.setattr(captures, "_PAUSES", (0.0, 0.0))
    system = fsspec.filesystem("memory")
    system.rm("/", recursive=True) if system.find("/") else None
    for name, where in (("aks_bmodel", "a/aks_bmodel"), ("aks_damaged", "b/deep/aks_damaged"),
                        ("torch_cuda_synthetic", "runs/one")):  # fmt: skip
        for file in (SAMPLES / name).iterdir():
            system.pipe_file(f"/bucket/{where}/{file.name}", file.read_bytes())
    system.pipe_file("/bucket/b/readme.txt", b"nothing")
    yield system
    system.rm("/", recursive=True)


def built(out, *words):
    return building.build(out, words, building.local(1))


def rows(out, table):
    return [row for file in Manifest.read(out).of_table(table)
            for row in parquet.read_table(file, partitioning=None).to_pylist()]  # fmt: skip


def test_an_address_is_read_as_a_folder_is(store, tmp_path):
    out = tmp_path / "out"
    found = built(out, "memory://bucket")
    names = sorted(path.rpartition("/")[2] for path in found.written)
    assert names == ["aks_bmodel", "aks_damaged", "one"]
    assert all(path.startswith("memory://") for path in found.written)
    assert built(out, "memory://bucket").unchanged == 3
    # the same captures of this machine are the same captures
    folder = tmp_path / "here"
    shutil.copytree(SAMPLES / "aks_bmodel", folder / "aks_bmodel")
    assert built(out, str(folder)).same == [str(folder / "aks_bmodel")]
    assert sorted(row["path"].rpartition("/")[2] for row in rows(out, "captures")) == names
    # one that changes is replaced, one that goes is told
    trace = next(path for path in store.find("/bucket/runs") if path.endswith((".json.gz", ".json")))
    store.pipe_file(trace, store.cat_file(trace) + b"\n")
    store.rm("/bucket/b", recursive=True)
    again = built(out, "memory://bucket/runs/*", "memory://bucket/a/aks_bmodel/global.profile", "memory://bucket/none")
    assert len(again.replaced) == 1
    assert again.unchanged == 1
    assert again.missing == ["memory://bucket/none"]
    assert [path.rpartition("/")[2] for path in again.deleted] == ["aks_damaged"]


def test_what_fails_by_chance_is_tried_again_and_what_fails_for_good_costs_one_capture(store, tmp_path, monkeypatch):
    out = tmp_path / "out"
    fetch = type(store).get_file
    failed: dict[str, int] = {}

    def once(self, path, *words, **more):
        failed[path] = failed.get(path, 0) + 1
        if failed[path] == 1:
            raise ConnectionError("reset")
        return fetch(self, path, *words, **more)

    monkeypatch.setattr(type(store), "get_file", once)
    assert len(built(out, "memory://bucket/a").written) == 1
    assert set(failed.values()) == {2}

    def never(self, path, *words, **more):
        if "aks" in path:
            raise ConnectionError("\x1b[31mno\nroute")
        return fetch(self, path, *words, **more)

    monkeypatch.setattr(type(store), "get_file", never)
    for file in store.find("/bucket/a"):
        store.pipe_file(file, store.cat_file(file))
    log = (out / LOG).read_bytes()
    found = built(out, "memory://bucket")
    assert len(found.unreadable) == 2
    assert sorted(path.rpartition("/")[2] for path in found.written) == ["aks_damaged", "one"]
    # what was read before stays; what never was is a row of problems, and is tried again by the next build
    assert {row["path"].rpartition("/")[2] for row in rows(out, "captures")} == {"aks_bmodel", "one"}
    fatal = [row for row in rows(out, "problems") if row["severity"] == "fatal"]
    assert [row["path"].rpartition("/")[2] for row in fatal] == ["aks_damaged"]
    assert "could not be fetched" in fatal[0]["what"]
    assert json.loads(log.splitlines()[0])["path"] in Manifest.read(out).entries
    monkeypatch.undo()
    found = built(out, "memory://bucket")
    assert found.unreadable == []
    assert {row["path"].rpartition("/")[2] for row in rows(out, "captures")} == {"aks_bmodel", "aks_damaged", "one"}
    assert not [row for row in rows(out, "problems") if row["severity"] == "fatal"]
    assert {str(Path(folder, file).relative_to(out)) for folder, _, files in os.walk(out) for file in files
            if file.endswith(".parquet")} == Manifest.read(out).files  # fmt: skip


def test_names_that_lead_out_of_the_copy_are_left_out(store, tmp_path, monkeypatch):
    listed = type(store).find

    def hostile(self, path, **more):
        found = listed(self, path, **more)
        return {**found, f"{path}/../../escaped": {"size": 1}} if isinstance(found, dict) else found

    monkeypatch.setattr(type(store), "find", hostile)
    with captures.local_copy("memory://bucket/a/aks_bmodel") as copy:
        assert Catalog().source_of(copy) is not None
        assert "escaped" not in os.listdir(Path(copy).parent.parent)
    assert not os.path.exists(copy)
