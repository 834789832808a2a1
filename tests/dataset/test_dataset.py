"""``tpuprof dataset``: a fleet of captures as one data set, and what is asked of it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import jsonschema
import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import pyarrow
from command_line import without_powers
from pyarrow import dataset as arrow_dataset
from pyarrow import parquet

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.json_schema import schema_text
from tpuprof_tui.cli.main import main
from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset import query
from tpuprof_tui.dataset.listing import LIST, Listing
from tpuprof_tui.dataset.manifest import LOG, Manifest
from tpuprof_tui.dataset.query import level_changes
from tpuprof_tui.dataset.schema import FIELDS, SCHEMA
from tpuprof_tui.dataset.store import store_at
from tpuprof_tui.dataset.tables import partitions
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.answers import SCHEMA as ANSWER_SCHEMA
from tpuprof_tui.views.registry import answer as answer_of
from tpuprof_tui.views.registry import ask, view_of, views_of
from tpuprof_tui.views.report import of_worker, workers_of

SAMPLES = Path(__file__).parents[2] / "samples"

from capture_writer.capture import write_capture  # noqa: E402
from capture_writer.options import Options  # noqa: E402

DAYS, DEVICES, BAD = 4, 3, 2
#: From this day on a kernel takes longer.
DRIFT = 2
SLOW, DRIFTED = "kernel:llama_mlp_multi_core", "kernel:lm_head_matmul_multi_core"
CHECK = jsonschema.Draft202012Validator(json.loads(schema_text("dataset")))


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Twelve captures of three devices on four days, one device slow and one kernel drifting; and a damaged one."""
    folder = tmp_path_factory.mktemp("fleet [1]*'x")
    base = Options("", cores=(0,), batches=2)
    for day in range(DAYS):
        for device in range(DEVICES):
            slower = (*(("mlp:2",) if device == BAD else ()), *(("lm_head:1.3",) if day >= DRIFT else ()))
            name = f"cdm_profile_data_dev{device}-{day}"
            options = replace(base, name=name, run=1 + day * DEVICES + device, slower=slower)
            path = write_capture(options, folder / f"day{day}", truth=False).path
            noon = datetime(2026, 3, 1 + day, 12, tzinfo=timezone.utc).timestamp()
            for file in path.iterdir():
                os.utime(file, (noon, noon))
    damaged = folder / "cdm_profile_data_dev0-9"
    damaged.mkdir()
    (damaged / "global.profile").write_bytes(b"\xff\x00 nothing")
    (damaged / "cdmlib0_0.profile").write_bytes(b"")
    return folder


def tool(capfd, *words: object, status: int = 0) -> str:
    assert main(["dataset", *map(str, words)]) == status, capfd.readouterr()
    return capfd.readouterr().out


def answer(capfd, *words: object, status: int = 0) -> dict:
    found = json.loads(tool(capfd, *words, "--json", status=status))
    CHECK.validate(found)
    return found


def rows(capfd, *words: object) -> list[dict]:
    found = answer(capfd, *words)
    names = [column["name"] for column in found["columns"]]
    assert (found["total_rows"], found["truncated"]) == (len(found["rows"]), False)
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


@pytest.mark.parametrize(("limit", "offset"), [(2, None), (3, None), (1, 1), (5, 2), (5, 7)])
def test_rows_that_are_left_out_are_counted(built, capfd, limit, offset):
    more = () if offset is None else ("--offset", offset)
    found = answer(capfd, "query", built, "from range(3)", "--limit", limit, *more)
    kept = [[0], [1], [2]][offset or 0 :][:limit]
    assert found["rows"] == kept
    assert (found["total_rows"], found["truncated"]) == (3, len(kept) < 3)


def test_wide_rows_are_cut_to_the_first_columns(built, capfd):
    out = tool(capfd, "query", built, "select * from captures, events, problems")
    assert len(out.encode()) < 8192
    assert re.search(r"^\w{24}  .*\n", out, re.MULTILINE)
    assert re.search(r"^Columns left out: \d+\. Name those to show in the SQL, or --csv\.$", out, re.MULTILINE)
    many = ", ".join(f"{number} as column_{number}" for number in range(3_000))
    out = tool(capfd, "query", built, f"select {many}")
    assert "column_0  column_1" in out
    assert len(out.encode()) < 8192
    assert "column_2999" in tool(capfd, "query", built, f"select {many}", "--limit", 1)


@pytest.fixture(scope="module")
def built(captures, tmp_path_factory):
    """A data set of them, whose path is a pattern and a quotation to careless readers."""
    out = tmp_path_factory.mktemp("out") / "fleet [a]*'s"
    result = building.build(out, [str(captures)], building.local(1))
    assert (len(result.written), len(result.unreadable), result.unchanged) == (13, 1, 0)
    return out


@pytest.fixture
def copied(captures, built, tmp_path):
    """Captures and data set of its own for a test that changes them: two days of two devices."""
    folder, out = tmp_path / "captures", tmp_path / "out"
    for day in (0, 1):
        shutil.copytree(captures / f"day{day}", folder / f"day{day}", ignore=shutil.ignore_patterns("*dev2-*"))
    building.build(out, [str(folder)], building.local(1))
    return folder, out


def pair(captures: Path) -> list[str]:
    return [str(captures / "day0" / f"cdm_profile_data_dev{device}-0") for device in (0, 1)]


def everything(out: Path) -> dict[str, list]:
    """What the files of a data set say, whoever wrote them; read without DuckDB and without the log."""
    found = {}
    for table in FIELDS:
        folder = out / table
        held = parquet.read_table(folder).to_pylist() if folder.is_dir() else []
        skipped = {"path", "changed_ns"}
        found[table] = sorted(repr([(key, row[key]) for key in sorted(row) if key not in skipped]) for row in held)
    return found


def test_a_second_build_has_nothing_to_do(captures, built, capfd):
    before = {file: file.stat().st_mtime_ns for file in built.rglob("*.parquet")}
    found = answer(capfd, "build", built, captures, status=1)
    assert (found["unchanged"], found["written"], found["replaced"], found["deleted"]) == (13, [], [], [])
    # that it is not read again does not make it readable
    path = str(captures / "cdm_profile_data_dev0-9")
    assert found["unreadable"] == found["known_unreadable"] == [path]
    assert found["reasons"] == {path: f"{path}: global.profile names no chip. A line that is not UTF-8 text."}
    told = tool(capfd, "build", built, captures, status=1)
    assert f"1 known as unreadable, and unchanged since (see the table problems):\n  {path}: global" in told
    assert {file: file.stat().st_mtime_ns for file in built.rglob("*.parquet")} == before


def test_what_was_put_in_is_found(built, capfd):
    top = rows(capfd, "top", built)
    assert {row["captures"] for row in top} == {DAYS * DEVICES}
    assert [row["total_ms"] for row in top] == sorted((row["total_ms"] for row in top), reverse=True)
    truth = rows(capfd, "query", built, "select kernel, count(*) n, sum(duration) / 1e6 ms from events "
                 "where role = 'work' and activity <> 'host' and kernel is not null group by all")  # fmt: skip
    assert {row["kernel"]: (row["n"], round(row["ms"], 6)) for row in truth} == {
        row["name"]: (row["calls"], round(row["total_ms"], 6)) for row in top
    }
    assert sum(row["share"] for row in top) == pytest.approx(1)

    trend = rows(capfd, "trend", built, DRIFTED)
    assert [row["day"] for row in trend] == [f"2026-03-0{1 + day}" for day in range(DAYS)]
    assert [place for place, row in enumerate(trend) if row["change"] is not None] == [DRIFT]
    assert trend[DRIFT]["change"] / trend[0]["median"] == pytest.approx(0.3, abs=0.05)
    assert all(row["change"] is None for row in rows(capfd, "trend", built, "overview.units"))

    outliers = rows(capfd, "outliers", built)
    assert {row["device"] for row in outliers[:DAYS]} == {str(BAD)}
    slow = rows(capfd, "query", built, f"select device, min(value), max(value) from figures where figure = '{SLOW}' "
                "group by all order by 2 desc limit 1")  # fmt: skip
    assert slow[0]["device"] == str(BAD)
    assert "\nTrend of overview.units\n" in tool(capfd, "trend", built, "overview.units")
    assert f"\nTrend of {SLOW} (ns)\n" in tool(capfd, "trend", built, SLOW)
    assert main(["dataset", "trend", str(built), "kernel:llama_mlp_multi"]) == 2
    assert SLOW in capfd.readouterr().err

    damaged = rows(capfd, "query", built, "select path, severity, what from problems where severity = 'fatal'")
    assert len(damaged) == 1
    assert damaged[0]["path"].endswith("dev0-9")
    assert "\x1b" not in damaged[0]["what"]


def test_engines_agree(built, tmp_path, capfd, monkeypatch):
    asked = rows(
        capfd, "query", built, "select count(*) n, sum(duration)::bigint d, count(distinct capture) c from events"
    )
    folders = arrow_dataset.partitioning(flavor="hive")
    table = arrow_dataset.dataset(built / "events", partitioning=folders).to_table(["duration", "capture", "device"])
    assert asked == [{"n": table.num_rows, "d": sum(table["duration"].to_pylist()),
                      "c": len(set(table["capture"].to_pylist()))}]  # fmt: skip
    assert set(table["device"].to_pylist()) == set(range(DEVICES))
    file = tmp_path / "events.parquet"
    tool(capfd, "query", built, "select * from events", "--parquet", file)
    assert parquet.read_metadata(file).num_rows == table.num_rows
    text = tool(capfd, "query", built, "select capture, lane, duration from events", "--csv")
    assert sum(int(row["duration"]) for row in csv.DictReader(io.StringIO(text))) == asked[0]["d"]
    # polars sets it when it is imported
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "")
    polars = pytest.importorskip("polars")
    frame = polars.concat([polars.read_parquet(each, hive_partitioning=False, glob=False) for each in
                           Manifest.read(built).of_table("events")], how="diagonal_relaxed")  # fmt: skip
    assert (len(frame), frame["duration"].sum()) == (asked[0]["n"], asked[0]["d"])


def test_pyarrow_reads_and_prunes_folders_of_unknown_devices(tmp_path, capfd):
    answer(capfd, "build", tmp_path, SAMPLES / "aks_decode_mode1", SAMPLES / "torch_cuda_synthetic")
    types = pyarrow.schema([("source", "string"), ("day", "date32"), ("device", "string")])
    folders = arrow_dataset.partitioning(types, flavor="hive")
    found = arrow_dataset.dataset(tmp_path / "captures", partitioning=folders)
    assert set(found.to_table(["device"])["device"].to_pylist()) == {None}
    wanted = arrow_dataset.field("source") == "torch"
    assert len(list(found.get_fragments(wanted))) == 1
    assert found.to_table(filter=wanted)["source"].to_pylist() == ["torch"]


def test_files_say_what_they_are(built):
    for table in FIELDS:
        for file in Manifest.read(built).of_table(table):
            metadata = parquet.read_metadata(file)
            assert metadata.metadata[b"tpuprof.schema"] == SCHEMA.encode()
            assert metadata.metadata[b"tpuprof.table"] == table.encode()
            assert metadata.row_group(0).column(0).compression == "SNAPPY"
            assert parquet.read_schema(file).names[: len(FIELDS[table])] == [field.name for field in FIELDS[table]]


def test_many_rows_are_packed_the_most(built, tmp_path):
    file = Manifest.read(built).of_table("events")[0]
    part = parquet.read_table(file, partitioning=None)
    building.write_table(pyarrow.concat_tables([part] * (4_096 // len(part) + 1)), store_at(tmp_path), "many.parquet")
    assert parquet.read_metadata(tmp_path / "many.parquet").row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("when", ["between", "within", "logging"])
def test_a_build_that_is_killed_loses_and_doubles_nothing(when, captures, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    words = [*pair(captures), str(captures / "cdm_profile_data_dev0-9")]
    building.build(whole, words, building.local(1))

    class Killed(BaseException):
        pass

    count = {"between": 0, "within": 0}
    write_table, take = building.write_table, building._record

    def within(*words):
        count["within"] += 1
        if when == "within" and count["within"] == 5:
            raise Killed
        write_table(*words)

    def between(manifest, entry, result):
        count["between"] += 1
        if when == "between" and count["between"] == 2:
            raise Killed
        take(manifest, entry, result)

    monkeypatch.setattr(building, "write_table", within)
    monkeypatch.setattr(building, "_record", between)
    if when == "logging":
        building.build(out, words, building.local(1))
        log = (out / LOG).read_bytes()
        (out / LOG).write_bytes(log[: len(log) - 40])
    else:
        with pytest.raises(Killed):
            building.build(out, words, building.local(1))
    monkeypatch.undo()
    result = building.build(out, words, building.local(1))
    assert 0 < result.unchanged < 3
    assert result.unchanged + len(result.written) == 3
    assert everything(out) == everything(whole)
    assert building.build(out, words, building.local(1)).unchanged == 3


def test_changed_moved_doubled_and_deleted(copied, tmp_path, capfd):
    folder, out = copied
    count = "select count(*) n, count(distinct capture) c, sum(events)::bigint e from captures"
    events = "select count(*) n from events"
    assert rows(capfd, "query", out, count)[0]["n"] == 4
    first, gone, second, third = *sorted(folder.rglob("*dev0-*")), *sorted(folder.rglob("*dev1-*"))
    # twice the same, one moved, one of another content, one gone
    (folder / "again").mkdir()
    shutil.copytree(first, folder / "again" / first.name)
    (folder / "moved").mkdir()
    shutil.move(second, folder / "moved" / second.name)
    write_capture(Options(third.name, cores=(0,), batches=1, run=99), third.parent, truth=False)
    shutil.rmtree(gone)
    found = answer(capfd, "build", out, folder)
    assert found["same"] == [str(folder / "again" / first.name)]
    assert found["written"] == [str(folder / "moved" / second.name)]
    assert found["replaced"] == [str(third)]
    assert sorted(found["deleted"]) == sorted([str(second), str(gone)])
    told = rows(capfd, "query", out, count)[0]
    assert (told["n"], told["c"]) == (4, 4)
    assert rows(capfd, "query", out, events)[0]["n"] == told["e"]
    # the first of two with one content goes: the other stands for both
    shutil.rmtree(first)
    found = answer(capfd, "build", out, folder, "--prune")
    assert sorted(found["deleted"]) == sorted([str(gone), str(first)])
    paths = {row["path"] for row in rows(capfd, "query", out, "select path from captures")}
    assert str(folder / "again" / first.name) in paths
    assert len(paths) == 3
    fresh = tmp_path / "fresh"
    building.build(fresh, [str(folder)], building.local(1))
    assert everything(out) == everything(fresh)


def test_a_row_names_a_path_that_lies(copied, capfd):
    folder, out = copied
    first = min(folder.rglob("*dev0-*"))
    again = folder / "again" / first.name
    shutil.copytree(first, again)
    paths = "select path from captures where contains(path, 'dev0')"
    for build in ((), ("--prune",)):
        answer(capfd, "build", out, folder, *build)
        told = [row["path"] for row in rows(capfd, "query", out, paths)]
        assert len(told) == 2
        assert all(map(os.path.exists, told))
        shutil.rmtree(again, ignore_errors=True)
    # of the same name, and changed: a capture of its own
    shutil.copytree(first, again)
    answer(capfd, "build", out, folder)
    write_capture(Options(again.name, cores=(0,), batches=1, run=98), again.parent, truth=False)
    answer(capfd, "build", out, folder)
    told = [row["path"] for row in rows(capfd, "query", out, paths)]
    assert {str(first), str(again)} < set(told)
    assert len(set(told)) == len(told) == 3


def test_files_that_become_readable_are_read_though_unchanged(copied, capfd):
    folder, out = copied
    events = rows(capfd, "query", out, "select capture, events from captures order by all")
    core = min(folder.rglob("cdmlib*"))
    kept = core.with_suffix(".kept")
    # like a file without permission, it can be listed but not read; tests may run as root
    core.rename(kept)
    core.symlink_to(core)
    # what was read before is kept
    assert answer(capfd, "build", out, folder, status=1)["unreadable"] == [str(core.parent)]
    assert rows(capfd, "query", out, "select capture, events from captures order by all") == events
    fresh = out.with_name("fresh")
    answer(capfd, "build", fresh, folder)
    # it is tried again by each build
    found = answer(capfd, "build", fresh, folder)
    assert (found["replaced"], found["unchanged"]) == ([str(core.parent)], 3)
    core.unlink()
    kept.rename(core)
    answer(capfd, "build", fresh, folder)
    assert rows(capfd, "query", fresh, "select capture, events from captures order by all") == events
    assert answer(capfd, "build", fresh, folder)["unchanged"] == 4


def test_folders_that_may_not_be_listed_are_told_and_searched_when_they_may(tmp_path, capfd):
    folder, out = tmp_path / "in", tmp_path / "out"
    capture, outer = folder / "aks_bmodel", folder / "outer"
    inner = outer / "inner" / "aksv_cdma"
    shutil.copytree(SAMPLES / "aks_bmodel", capture)
    shutil.copytree(SAMPLES / "aksv_cdma", inner)
    told = "select path, what from problems where severity = 'fatal' order by path"

    def closed(*words):
        for path in (capture, outer):
            path.chmod(0)
        try:
            done = without_powers([sys.executable, "-m", "tpuprof_tui", "dataset", "build", str(out), str(folder),
                                   "--json", *words])  # fmt: skip
        finally:
            for path in (capture, outer):
                path.chmod(0o755)
        assert (done.returncode, done.stderr) == (1, "")
        found = json.loads(done.stdout)
        CHECK.validate(found)
        assert found["unreadable"] == [str(capture), str(outer)]
        assert found["reasons"] == {str(path): f"{path}: permission denied." for path in (capture, outer)}
        return found

    closed()
    closed()
    assert [row["path"] for row in rows(capfd, "query", out, told)] == [str(capture), str(outer)]
    # a build that does not search the folder keeps its row
    assert answer(capfd, "build", out, capture)["replaced"] == [str(capture)]
    assert [row["path"] for row in rows(capfd, "query", out, told)] == [str(outer)]
    assert answer(capfd, "build", out, folder)["written"] == [str(inner)]
    assert rows(capfd, "query", out, told) == []
    assert set(Manifest.read(out).entries) == {str(capture), str(inner)}
    # what was read before does not count as deleted
    before = rows(capfd, "query", out, "select capture, path, events from captures order by all")
    assert len(before) == 2
    assert closed("--prune")["deleted"] == []
    answer(capfd, "build", out, folder)
    assert rows(capfd, "query", out, "select capture, path, events from captures order by all") == before


def test_files_deleted_by_hand_are_named_and_written_again(copied, capfd):
    _, out = copied
    before = everything(out)
    first, second, *_ = sorted(Manifest.read(out).entries)
    for table in ("captures", "events", "figures"):
        (file,) = [each for each in Manifest.read(out).entries[first].files if each.startswith(table)]
        (out / file).unlink()
        (out / LIST).unlink()
        asked = [("query", out, f"select count(*) from {table}")]
        asked += [("top", out), ("outliers", out), ("trend", out, SLOW)] if table == "figures" else []
        asked += [("compact", out)]
        for words in asked:
            assert main(["dataset", *map(str, words)]) == 2
            told = f"tpuprof: {out / file} is lost. Write it again: tpuprof dataset build {out} {first}.\n"
            assert capfd.readouterr().err == told
        if table != "events":
            with pytest.raises(UnreadableError, match=r"is lost\. Write it again"):
                Listing.read(out)
        # also by a build of another capture
        found = answer(capfd, "build", out, second)
        assert (found["replaced"], found["unchanged"]) == ([first], 1)
        assert everything(out) == before
        assert len(Listing.read(out).rows) == 4
    # of a capture that does not exist any more nothing can be written again
    (out / file).unlink()
    (out / LIST).unlink()
    shutil.rmtree(first)
    assert answer(capfd, "build", out, second)["deleted"] == [first]
    assert main(["dataset", "top", str(out)]) == 2
    assert f"Its capture {first} no longer exists: build with --prune to remove it." in capfd.readouterr().err
    answer(capfd, "build", out, second, "--prune")
    assert "total_ms" in tool(capfd, "top", out)
    assert len(Listing.read(out).rows) == 3


def test_a_lost_file_of_many_captures_or_of_a_copy_is_written_again(copied, capfd):
    folder, out = copied
    for path in folder.rglob("*.profile"):
        os.utime(path, (1.8e9, 1.8e9))
    building.build(out, [str(folder)], building.local(1))
    before = everything(out)
    building.compact(out)
    (file,) = {each for each in Manifest.read(out).names_of("figures") if "device=0" in each}
    (out / file).unlink()
    paths = sorted(map(str, folder.rglob("*dev0-*")))
    assert sorted(answer(capfd, "build", out, folder)["replaced"]) == paths
    assert everything(out) == before
    # the capture that the files were written from is gone, a copy is there
    first = Path(paths[0])
    again = folder / "again" / first.name
    shutil.copytree(first, again)
    building.build(out, [str(folder)], building.local(1))
    manifest = Manifest.read(out)
    owner = manifest.owners[manifest.entries[str(first)].capture]
    (file,) = [each for each in manifest.entries[owner].files if each.startswith("figures")]
    (out / file).unlink()
    shutil.rmtree(owner)
    building.build(out, [str(folder)], building.local(1))
    assert everything(out) == before
    (kept,) = {str(first), str(again)} - {owner}
    assert kept in {row["path"] for row in rows(capfd, "query", out, "select path from captures")}


def test_a_query_during_a_build_says_so(copied, capfd):
    folder, out = copied
    first = min(folder.rglob("*dev0-*"))
    with query.opened(out) as data:
        write_capture(Options(first.name, cores=(0,), batches=1, run=97), first.parent, truth=False)
        building.build(out, [str(folder)], building.local(1))
        with pytest.raises(UnreadableError, match="was changed by a build while it was read"):
            query.run_sql(data, "select count(*) from events")


def test_what_is_no_regular_file_is_not_waited_for(copied, tmp_path, capfd):
    folder, _ = copied
    pipe = tmp_path / "x.pt.trace.json"
    os.mkfifo(pipe)
    tool(capfd, "build", tmp_path / "new", pipe, "/dev/zero", status=2)
    assert main(["dataset", "build", str(tmp_path / "new"), str(pipe)]) == 2
    assert f"No capture was found: {pipe} is a named pipe, which is read only once.\n" in capfd.readouterr().err
    assert main(["dataset", "build", str(tmp_path / "other"), str(folder), str(pipe)]) == 1
    assert f"missing, or not a capture:\n  {pipe} is a named pipe" in capfd.readouterr().out
    core = min(folder.rglob("cdmlib*"))
    core.unlink()
    core.symlink_to("/dev/zero")
    assert answer(capfd, "build", tmp_path / "new", core.parent)["written"] == [str(core.parent)]


def test_compacting_changes_nothing_but_files(copied, tmp_path, capfd):
    folder, out = copied
    assert answer(capfd, "compact", out) == {
        "schema": ANSWER_SCHEMA,
        "action": "compact",
        "files_before": 12,
        "files": 12,
    }
    assert main(["dataset", "compact", str(out)]) == 0
    assert capfd.readouterr().out == "12 files became 12: no folder (source, day, device) has two that can be joined\n"
    # captures of one device and one day share a file
    for path in folder.rglob("*.profile"):
        os.utime(path, (1.8e9, 1.8e9))
    building.build(out, [str(folder)], building.local(1))
    before = everything(out)
    found = answer(capfd, "compact", out)
    assert (found["files_before"], found["files"]) == (12, 6)
    assert everything(out) == before
    assert building.build(out, [str(folder)], building.local(1)).unchanged == 4
    # one of those that share goes, another changes
    paths = sorted(folder.rglob("cdm_profile_data*"))
    shutil.rmtree(paths[0])
    write_capture(Options(paths[1].name, cores=(0,), batches=1, run=99), paths[1].parent, truth=False)
    building.build(out, [str(folder)], building.local(1), prune=True)
    fresh = tmp_path / "fresh"
    building.build(fresh, [str(folder)], building.local(1))
    assert everything(out) == everything(fresh)


@pytest.mark.parametrize("when", ["write_table", "join", "delete"])
def test_a_killed_compacting_loses_and_doubles_nothing(when, copied, monkeypatch):
    folder, out = copied
    for path in folder.rglob("*.profile"):
        os.utime(path, (1.8e9, 1.8e9))
    building.build(out, [str(folder)], building.local(1))
    before = everything(out)
    count = 0
    owner = building if when == "write_table" else Manifest
    asked = getattr(owner, when)

    def killed(*words):
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        asked(*words)

    monkeypatch.setattr(owner, when, killed)
    with pytest.raises(KeyboardInterrupt):
        building.compact(out)
    monkeypatch.undo()
    assert b'"joined"' in (out / LOG).read_bytes()
    # what counts is whole already, and what does not goes
    read = [row for file in Manifest.read(out).of_table("captures") for row in parquet.read_table(file).to_pylist()]
    assert len(read) == 4
    assert building.build(out, [str(folder)], building.local(1)).unchanged == 4
    assert everything(out) == before
    assert building.compact(out)[1] == 6
    assert everything(out) == before
    assert b'"joined"' not in (out / LOG).read_bytes()


def test_processes_write_the_same_as_one(captures, tmp_path):
    words = pair(captures)
    building.build(tmp_path / "one", words, building.local(1))
    building.build(tmp_path / "two", words, building.local(2))
    assert everything(tmp_path / "one") == everything(tmp_path / "two")


def test_paths(captures, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(captures / "day0", tmp_path / "x")
    # as Windows writes it
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbfx/*dev0-*\r\n\r\n# some\r\nnowhere\r\n")
    found = answer(capfd, "build", "out", "@list.txt", "x/*dev1-0", status=1)
    assert [Path(path).name for path in found["written"]] == ["cdm_profile_data_dev0-0", "cdm_profile_data_dev1-0"]
    assert found["missing"] == ["nowhere"]
    for words in (("build", "out", "s3://bucket/x"), ("build", "out", "@nowhere"), ("build", "out", "nowhere"),
                  ("build", "x", "x"), ("query", "x", "select 1"), ("query", "out"), ("top", "out", "more"), ("build",),
                  ("top", "out", "--csv", "--json")):  # fmt: skip
        tool(capfd, *words, status=2)
    assert not (tmp_path / "x" / LOG).exists()


def test_a_path_has_one_name(captures, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(captures / "day0", tmp_path / "x" / "y")
    (tmp_path / "link").symlink_to("x/y")
    name = "cdm_profile_data_dev0-0"
    named = (f"x/y/{name}", f"x/../x/y/{name}", f"x/y/../y/./{name}/global.profile", f"{tmp_path}/x/y/..//y/*dev0*",
             f"link/../y/{name}", f"x/y/{name}/../../../x/y/{name}")  # fmt: skip
    assert answer(capfd, "build", "out", *named)["written"] == [f"{tmp_path}/x/y/{name}"]
    for each in named:
        found = answer(capfd, "build", "out", each)
        assert (found["unchanged"], found["same"]) == (1, []), each
    # a link is a name of its own, wherever it leads
    assert answer(capfd, "build", "out", f"x/../link/{name}")["same"] == [f"{tmp_path}/link/{name}"]
    assert set(Manifest.read("out").entries) == {f"{tmp_path}/{folder}/{name}" for folder in ("x/y", "link")}


def test_only_zero_is_shown_as_zero(built, capfd):
    values = "0.0, 1e-12, -0.0004, 0.0006, 1234.5678, 2.5e17, 5e-324, 0.0004::float"
    told = tool(capfd, "query", built, f"select unnest([{values}]) x").splitlines()
    assert [line.strip() for line in told[-8:]] == ["0.000", "1e-12", "-0.0004", "0.001", "1,234.568", "2.5e+17",
                                                   "4.94066e-324", "0.0004"]  # fmt: skip


def test_questions_read_nothing_else_and_write_nothing(built, tmp_path, capfd):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    files = sorted(built.rglob("*"))
    for sql in (f"select * from read_csv('{secret}')", f"select * from '{secret}'",
                f"copy captures to '{tmp_path}/x.csv'", f"attach '{tmp_path}/x.db'", "set threads = 1",
                "select 1; select 2", "create table captures as select 1", "drop view captures", "install httpfs",
                "", "selekt", ";",
                "explain analyze select 1", f"select * from glob('{tmp_path}/*')"):  # fmt: skip
        for more in ((), ("--parquet", tmp_path / "y.parquet"))[: 2 if "read_csv" in sql or "copy" in sql else 1]:
            assert main(["dataset", "query", str(built), sql, *map(str, more)]) == 2, sql
            told = capfd.readouterr()
            assert told.err.startswith("tpuprof: ")
            assert "Unexpected" not in told.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]
    assert sorted(built.rglob("*")) == files


@pytest.mark.parametrize("package", ["pyarrow", "duckdb"])
def test_a_package_that_is_missing_is_named(package, built, tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, package, None)
    words = ("build", tmp_path / "out", SAMPLES / "aks_bmodel") if package == "pyarrow" else ("top", built)
    assert main(["dataset", *map(str, words)]) == 2
    assert f"pip install {package}" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_hostile_names_are_texts(tmp_path, capfd):
    hostile = "\x1b[2J'\"|,=\n\u202e\udcff"
    folder = tmp_path / f"a{hostile}=b"
    rename = (("llama_mlp_multi_core", "'; drop\tview \x1b[31m"),)
    options = Options("cdm_profile_data_dev0-0", cores=(0,), batches=1, rename=rename)
    write_capture(options, folder, truth=False)
    tool(capfd, "build", tmp_path / hostile, folder)
    tool(capfd, "top", tmp_path / hostile, status=2)
    out = tmp_path / "x=1" / f"out{hostile[:-1]}"
    tool(capfd, "build", out, folder)
    assert answer(capfd, "build", out, folder)["unchanged"] == 1
    for words in (("query", out, "select path from captures"), ("top", out), ("query", out, "select 1 as \"\x1b\""),
                  ("outliers", out)):  # fmt: skip
        told = tool(capfd, *words)
        assert all(line.isprintable() for line in told.splitlines())
    assert len(rows(capfd, "query", out, "select * from captures")) == 1


def test_a_log_that_leads_elsewhere_is_refused(tmp_path, capfd):
    victim = tmp_path / "victim.parquet"
    victim.write_bytes(b"x")
    out = tmp_path / "out"
    out.mkdir()
    record = {"path": "p", "fingerprint": "", "capture": "c", "readable": True, "schema": SCHEMA}
    for line in (json.dumps({**record, "files": ["events/../../victim.parquet"]}), "[1]", '{"path": 1}', "\x00"):
        (out / LOG).write_text(f"{line}\n{json.dumps({**record, 'files': []})}\n")
        tool(capfd, "query", out, "select 1", status=2)
        tool(capfd, "build", out, SAMPLES / "aks_bmodel", "--prune", status=2)
    assert victim.exists()


def test_a_column_of_every_source(capfd):
    for name in ("aks_damaged", "torch_cuda_synthetic", "ascend_synthetic"):
        found = partitions(SAMPLES / name)
        assert found.readable
        events, capture = found.tables["events"], found.tables["captures"].to_pylist()[0]
        assert events.num_rows == capture["events"] > 0
        assert any(column.startswith(f"{found.folders[0]}_") for column in events.column_names)
        assert events["name"].null_count < events.num_rows
        assert capture["problems"] == (found.tables["problems"].num_rows if "problems" in found.tables else 0)
    assert partitions(SAMPLES / "README.md").tables.keys() == {"problems"}
    answer(capfd, "schema")


def test_the_schema_says_which_views_figures_are_of(capfd):
    told = tool(capfd, "schema")
    assert "select distinct source, figure from figures" in told
    assert re.search(r"of the views that diff compares\. Others, such as critical_path and memory", told)
    for name in ("aks_decode_mode2", "torch_cuda_synthetic"):
        profile = open_profile(SAMPLES / name)
        kinds = set(partitions(SAMPLES / name).tables["figures"]["kind"].to_pylist())
        views = {view.id: view for view in views_of(profile.vocabulary)}
        assert {kind for kind in kinds if kind in views and not views[kind].compared} == set()
        assert not views["critical_path"].compared
        # what it says gives them
        assert {fact.key for fact in ask(profile, "critical_path").facts} >= {"window_us", "gap_us"}


def test_a_view_that_fails_costs_its_own_figures_alone(monkeypatch):
    from tpuprof_tui.views import registry

    answer = registry.answer

    def failing(view, query):
        if view.id == "lanes":
            raise ZeroDivisionError
        return answer(view, query)

    monkeypatch.setattr(registry, "answer", failing)
    found = partitions(SAMPLES / "aks_bmodel")
    assert found.readable
    told = found.tables["problems"].to_pylist()[-1]["what"]
    assert told.startswith("The view lanes failed. Internal error of tpuprof: ZeroDivisionError in dataset/tables.py")
    assert "overview" in set(found.tables["figures"]["kind"].to_pylist())
    assert "lanes" not in set(found.tables["figures"]["kind"].to_pylist())


def test_an_error_of_the_package_is_no_bad_capture(captures, tmp_path, monkeypatch, capfd):
    from tpuprof_tui.sources.sophgo.source import SOURCE

    read = type(SOURCE).open

    def failing(self, path, *words):
        return {}["x"] if "dev1" in path.name else read(self, path, *words)

    monkeypatch.setattr(type(SOURCE), "open", failing)
    words = pair(captures)
    told = tool(capfd, "build", tmp_path / "out", *words, status=1)
    assert "1 with an internal error of tpuprof, to be reported:\n" in told
    assert "dev1-0: KeyError in sources/catalog.py, line" in told
    fatal = rows(capfd, "query", tmp_path / "out", "select what from problems where severity = 'fatal'")
    assert fatal[0]["what"].startswith("Internal error of tpuprof: KeyError in ")
    # what was our fault is tried again
    monkeypatch.undo()
    found = answer(capfd, "build", tmp_path / "out", *words)
    assert (found["unchanged"], len(found["replaced"]), found["internal_errors"]) == (1, 1, [])


def test_level_changes_are_where_the_level_moves():
    random = np.random.default_rng(5)
    noise = random.standard_normal(60)
    assert level_changes(100 + noise) == {}
    moved = 100 + noise + np.repeat([0, 10, 4], 20)
    assert list(level_changes(moved)) == [20, 40]
    assert [change.delta for change in level_changes(moved).values()] == pytest.approx([10, -6], abs=1.5)
    assert all(change.low < wanted < change.high
               for change, wanted in zip(level_changes(moved).values(), (10, -6), strict=True))  # fmt: skip
    assert level_changes([5.0] * 9) == {}
    assert level_changes([0.0] * 9) == {}
    assert level_changes([1.0, 9.0]) == {}
    # the newest value, and a single one, are levels of their own
    assert {place: change.delta for place, change in level_changes([100.0] * 6 + [150]).items()} == {6: 50}
    changes = level_changes([100.0] * 9 + [300] + [100] * 9)
    assert {place: change.delta for place, change in changes.items()} == {9: 200, 10: -200}
    false = sum(bool(level_changes(random.standard_normal(30) + 100)) for _ in range(200))
    assert false <= 10


def test_processes_of_a_killed_build_end_with_it(captures, tmp_path):
    """Nothing of a build that is killed from outside stays behind, and the next one has all of it."""
    first, *_ = pair(captures)
    for number in range(10):
        shutil.copytree(first, tmp_path / "in" / f"cdm_profile_data_dev0-{number}")
    out = tmp_path / "out"
    words = [sys.executable, "-m", "tpuprof_tui", "dataset", "build", str(out), str(tmp_path / "in"), "--jobs", "2"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while process.poll() is None and not list(out.rglob("*.parquet")):
        time.sleep(0.01)
    process.kill()
    # the pipe ends when the last process that has it does
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    building.build(out, [str(tmp_path / "in")], building.local(1))
    whole = tmp_path / "whole"
    building.build(whole, [str(tmp_path / "in")], building.local(1))
    assert everything(out) == everything(whole)


def test_ctrl_c_interrupts_a_running_query(built, monkeypatch):
    interrupted = []

    class Connection:
        """Of a query during which Ctrl+C is pressed."""

        def execute(self, *_):
            raise KeyboardInterrupt

        def interrupt(self):
            interrupted.append(True)

    with query.opened(str(built)) as data:
        monkeypatch.setattr(data, "connection", Connection())
        monkeypatch.setattr(data, "make_views", lambda *_: True)
        with pytest.raises(KeyboardInterrupt):
            query.run_sql(data, "select 1")
    assert interrupted


def test_of_several_ranks_the_largest_figure_counts():
    profile = open_profile(SAMPLES / "torch_cuda_synthetic")
    figures = partitions(profile.path).tables["figures"].to_pylist()
    told = {row["figure"]: row["value"] for row in figures}
    for view, key in (("overview", "dataloader_us"), ("overview", "communication_us"), ("streams", "idle_us")):
        found = [answer_of(view_of(profile.vocabulary, view), of_worker(query_of(profile), each)).figure(key)
                 for each in workers_of(profile)]  # fmt: skip
        assert found[0] != found[1]
        assert told[f"{view}.{key}"] == max(found) / 1000
