"""A data set on another file system: built, built again, asked and compacted as one in a folder is, whatever fails."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

import fsspec

from tpuprof_tui.cli.main import main
from tpuprof_tui.dataset import LOG, query
from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset import captures as finding
from tpuprof_tui.dataset import store as storing
from tpuprof_tui.dataset.listing import LIST, Listing
from tpuprof_tui.dataset.manifest import Manifest
from tpuprof_tui.dataset.schema import FIELDS
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.formats.files import WriteError

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def system(monkeypatch):
    """A file system each of whose requests fails when it is made for the first time."""
    monkeypatch.setattr(finding, "_PAUSES", (0.0,) * 5)
    system = fsspec.filesystem("file")
    failed = set()
    for name in ("pipe_file", "put_file", "cat_file", "find", "rm_file", "open", "exists"):
        asked = getattr(type(system), name)

        def once(self, path, *words, asked=asked, name=name, **more):
            place = words[0] if name == "put_file" else path
            if (name, place) not in failed:
                failed.add((name, place))
                raise ConnectionError("reset")
            return asked(self, path, *words, **more)

        monkeypatch.setattr(type(system), name, once)
    return system


@pytest.fixture
def place(tmp_path):
    return tmp_path / "sets" / "fleet=1"


@pytest.fixture
def captures(tmp_path):
    folder = tmp_path / "captures"
    for name in ("aks_bmodel", "aks_damaged", "aksv_cdma"):
        shutil.copytree(SAMPLES / name, folder / name)
    (folder / "nothing.profile").write_bytes(b"")
    return folder


def built(out, *words, **more):
    return building.build(out, list(map(str, words)), building.local(1), **more)


def address(place: Path) -> str:
    return f"file://{place}"


def names(place: Path) -> set[str]:
    return {str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()}


def everything(out) -> dict[str, list]:
    found = {}
    with query.opened(out) as data:
        for table in FIELDS:
            wanted = "capture, name, day, count(*), sum(start), max(sophgo_command_id)" if table == "events" else "*"
            rows = query.run_sql(data, f"select {wanted} from {table} {'group by all' if table == 'events' else ''}")
            names = [name for name, _ in rows.columns]
            found[table] = sorted(repr(sorted(zip(names, row, strict=True))) for row in rows.rows)
        found["top"] = list(query.top(data).rows)
        found["outliers"] = list(query.outliers(data).rows)
        found["counted"] = list(query.run_sql(data, "with x as (select 1) select min(day) from captures, x").rows)
    return found


def test_it_is_what_a_folder_is(system, place, captures, tmp_path, capsys):
    out = address(place)
    assert len(built(out, captures).written) == 3
    built(tmp_path / "here", captures)
    assert everything(out) == everything(tmp_path / "here")
    assert Listing.read(out) == Listing.read(tmp_path / "here")
    assert built(out, captures).unchanged == 3
    # one changes, one goes: what was written of them goes too
    changed = captures / "aks_bmodel" / "global.profile"
    changed.write_bytes(changed.read_bytes() + b"\n# more")
    shutil.rmtree(captures / "aks_damaged")
    again = built(out, captures, prune=True)
    assert (len(again.replaced), len(again.deleted), again.unchanged) == (1, 1, 1)
    fresh = tmp_path / "fresh"
    built(fresh, captures)
    assert everything(out) == everything(fresh)
    assert names(place) == {*Manifest.read(out).files, LOG, LIST}
    # the command line, and what is no data set
    assert main(["dataset", "query", out, "select count(*) from captures", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2"
    assert main(["dataset", "top", f"{out}/none"]) == 2
    assert "is not a data set" in capsys.readouterr().err
    with pytest.raises(UsageError, match="not empty"):
        built(address(captures), captures)
    # a file that was deleted by hand
    file = Manifest.read(out).of_table("figures")[0].removeprefix("file://")
    os.unlink(file)
    assert main(["dataset", "top", out]) == 2
    assert f"{file} is lost. Write it again: tpuprof dataset build {out} {captures}/" in capsys.readouterr().err
    assert len(built(out, captures).replaced) == 1
    assert everything(out) == everything(fresh)
    # captures of one day and source share files
    shutil.copytree(captures / "aks_bmodel", captures / "aks_again")
    for file in captures.glob("aks*/*"):
        os.utime(file, (1.8e9, 1.8e9))
    (captures / "aks_again" / "global.profile").write_bytes(changed.read_bytes() + b"\n")
    built(out, captures)
    before, files = everything(out), len(names(place))
    assert building.compact(out)[1] < files - 1
    assert everything(out) == before


@pytest.mark.parametrize("after", [0, 3])
def test_a_file_that_cannot_be_read_ends_a_query_with_its_error(system, place, captures, monkeypatch, capsys, after):
    """Without waiting: pyarrow's threads may block each other after an exception in Python."""
    out = address(place)
    built(out, captures)
    given, opened = storing.with_retries, storing._ArrowFileSystem.open
    calls = []

    def failing(where, action):
        calls.append(where)
        if len(calls) > after:
            raise UnreadableError(f"{where} could not be fetched: reset by peer.")
        return given(where, action)

    def begin(*words, **more):
        monkeypatch.setattr(storing, "with_retries", failing)
        return opened(*words, **more)

    monkeypatch.setattr(storing._ArrowFileSystem, "open", begin)
    assert main(["dataset", "query", out, "select sum(duration) from events"]) == 2
    assert "could not be fetched: reset by peer." in capsys.readouterr().err


def test_a_build_that_is_killed_loses_and_doubles_nothing(system, place, captures, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    out = address(place)
    take, count = building._record, [0]

    def killed(manifest, entry, result):
        count[0] += 1
        if count[0] == 3:
            raise Killed
        take(manifest, entry, result)

    with monkeypatch.context() as patched:
        patched.setattr(storing, "_FLUSH_INTERVAL", -1.0)
        patched.setattr(building, "_record", killed)
        with pytest.raises(Killed):
            built(out, captures)
    # two are in parts of the log, the files of the third are nobody's; a lock that is forgotten is no hindrance
    assert len(Manifest.read(out).entries) == 2
    lock = {"host": "elsewhere", "process": 1, "token": "x", "time": time.time()}
    (place / "_tpuprof.lock").write_text(json.dumps(lock))
    with pytest.raises(UsageError, match=r"another process \(process 1 of elsewhere\)"):
        built(out, captures)
    for gone in ({**lock, "time": time.time() - 3600}, {**lock, "host": socket.gethostname(), "process": 2**22 + 1}):
        (place / "_tpuprof.lock").write_text(json.dumps(gone))
        result = built(out, captures)
    assert result.unchanged == 3
    built(tmp_path / "here", captures)
    assert everything(out) == everything(tmp_path / "here")
    assert names(place) == {*Manifest.read(out).files, LOG, LIST}

    def full(self, *words, **more):
        raise OSError("quota")

    # what can not be written ends the build; nothing is counted that is not there
    monkeypatch.setattr(type(system), "put_file", full)
    changed = captures / "aks_bmodel" / "global.profile"
    changed.write_bytes(changed.read_bytes() + b"\n# more")
    with pytest.raises(WriteError, match="quota"):
        built(out, captures)
    assert everything(out) == everything(tmp_path / "here")
