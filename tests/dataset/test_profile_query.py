"""SQL on one profile: its tables against the profile, and what a query must not do."""

from __future__ import annotations

import csv
import io
import json
import os
import sys

import numpy as np
import pytest
from command_line import SAMPLES

from tpuprof_tui.__main__ import main
from tpuprof_tui.cli.json_schema import schema_text
from tpuprof_tui.errors import UsageError
from tpuprof_tui.sources.catalog import open_profile

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from tpuprof_tui.dataset import profile_query, query  # noqa: E402

NAMES = ("aks_decode_mode2", "torch_cuda_synthetic", "ascend_synthetic", "memory_snapshot_synthetic.pickle.gz")
TORCH = str(SAMPLES / "torch_cuda_synthetic")


def asked(profile, sql: str, count: int = 1_000_000) -> list[tuple]:
    with profile_query.opened(profile, 1 << 30) as data:
        return list(query.first_rows(data, sql, count).rows)


@pytest.fixture(scope="module", params=NAMES)
def profile(request):
    return open_profile(SAMPLES / request.param)


def test_events_are_those_of_the_profile(profile):
    rows = asked(profile, 'select event, lane, "start", "end", name from events order by event')
    number = 0
    for place, lane in enumerate(profile.lanes):
        texts = profile.strings["name"].texts(lane["name"]) if "name" in lane else [""] * len(lane)
        for start, end, name in zip(lane["start"].tolist(), lane["end"].tolist(), texts, strict=True):
            assert rows[number] == (number, place, start, end, name or None)
            number += 1
    assert number == len(rows)


def test_events_have_the_columns_of_a_data_set(profile, tmp_path):
    assert main(["dataset", "build", str(tmp_path / "data"), str(profile.path), "--jobs", "1"]) in (0, 1)
    with query.opened(tmp_path / "data") as data:
        there = query.run_sql(data, "select * exclude (source, day, device) from events order by all")
        wanted = [name for name, _ in there.columns]
        rows = list(there.rows)
    ours = asked(profile, "select * exclude (event) from events order by all")
    with profile_query.opened(profile, 1 << 30) as data:
        assert [name for name, _ in data.schema()["events"]] == [*wanted, "event"]
    # the capture is a hash there, a name here
    assert sorted(repr(row[1:]) for row in rows) == sorted(repr(row[1:]) for row in ours)


def test_the_schema_is_what_the_tables_have(profile):
    with profile_query.opened(profile, 1 << 30) as data:
        for table, columns in data.schema().items():
            schema, _, name = table.rpartition(".")
            found = query.first_rows(data, f'select * from {schema + "." if schema else ""}"{name}"', 1)
            assert [each for each, _ in found.columns] == [each for each, _ in columns]
            list(found.rows)


def test_counters_lanes_steps_and_links_are_those_of_the_profile(profile):
    counters = asked(profile, "select counter, count(*), sum(value) from counters group by all order by all")
    sums: dict[str, list[float]] = {}
    for counter in profile.counters:
        total = sums.setdefault(counter.name, [0, 0.0])
        total[0] += len(counter)
        total[1] += float(np.nansum(counter.values))
    assert [(name, count) for name, count, _ in counters] == [
        (name, sums[name][0]) for name in sorted(sums) if sums[name][0]
    ]
    assert [row[2] or 0 for row in counters] == pytest.approx([sums[row[0]][1] for row in counters])
    assert asked(profile, "select events from lanes order by lane") == [(len(lane),) for lane in profile.lanes]
    links = profile.links() if profile.links is not None else None
    assert asked(profile, "select count(*) from links") == [(0 if links is None else len(links),)]
    if links is not None and len(links):
        kinds = np.bincount(links.kind, minlength=len(links.kinds)).tolist()
        found = dict(asked(profile, "select kind, count(*) from links group by all"))
        assert found == {kind: count for kind, count in zip(links.kinds, kinds, strict=True) if count}


def test_recorded_tables_have_all_groups(profile):
    for name in {table.name for table in profile.tables}:
        rows = sum(len(table) for table in profile.tables if table.name == name)
        assert asked(profile, f'select count(*) from recorded."{name}"') == [(rows,)]


def test_only_named_columns_are_made():
    with profile_query.opened(open_profile(TORCH), 1 << 30) as data:
        data.make_views("select count(*), max(duration) from events where name like 'x'")
        made = data.connection.execute("from events limit 0").description
    assert {name for name, *_ in made} == {"lane", "name", "duration", "event"}


@pytest.mark.parametrize("sql", [
    "select * from read_csv('{file}')", "select * from '{file}'", "select * from read_text('{file}')",
    "select * from glob('{file}')", "select * from read_parquet('{file}')", "select * from read_json('{file}')",
    "copy (select 1) to '{new}'", "copy events to '{new}'", "export database '{new}'", "attach '{new}' as other",
    "install httpfs", "load httpfs", "set enable_external_access = true", "set memory_limit = '1TB'", "reset all",
    "create table x as select 1", "create view x as select 1", "delete from events", "drop table events",
    "select 1; select 2", "select 1) union all (select 2", "pragma database_list", "call pragma_version()",
    "select * from sqlite_scan('{file}', 't')", "select * from secret_rows", "select getenv('HOME')",
    "explain select 1",
    "select * from query('copy (select 1) to ''{new}''')", "select", "", "select 'x", "select nothing from events",
    "select * from nothing", "select * from read_blob('/proc/self/environ')", "checkpoint", "begin",
])  # fmt: skip
def test_a_query_reads_and_writes_nothing_else(sql, tmp_path):
    secret_rows = __import__("pyarrow").table({"a": [1]})
    assert len(secret_rows) == 1
    file = tmp_path / "file.csv"
    file.write_text("a\nsecret\n")
    profile = open_profile(SAMPLES / "aks_decode_mode0")
    with pytest.raises(UsageError) as raised:
        asked(profile, sql.format(file=file, new=tmp_path / "new"))
    assert "secret\n" not in str(raised.value)
    assert os.listdir(tmp_path) == ["file.csv"]


def test_what_is_cut_is_said(capsys):
    assert main(["query", TORCH, "select event from events"]) == 0
    assert "There are more: --limit N shows them" in capsys.readouterr().out
    assert main(["query", TORCH, "select event from events", "--csv", "--limit", "3"]) == 0
    out, told = capsys.readouterr()
    assert len(list(csv.reader(io.StringIO(out)))) == 4
    assert told == "tpuprof: only the first 3 rows (--limit, --offset).\n"
    assert main(["query", TORCH, "select event from events order by 1", "--json", "--limit", "3", "--offset", "2"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["rows"], record["total_rows"], record["truncated"]) == ([[2], [3], [4]], None, True)
    assert main(["query", TORCH, "select event from events order by 1 limit 2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["total_rows"], record["truncated"]) == (2, False)


def test_its_json_has_the_form_that_is_documented(capsys):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schema_text("query"))
    for words in (["select * from events", "--limit", "2"], ["--schema"], ["select 0.5 as a, null as b"]):
        assert main(["query", TORCH, *words, "--json"]) == 0
        jsonschema.Draft202012Validator(schema).validate(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(("more", "told"), [
    (("--seconds", "1"), "takes too long"), (("--memory", "100", "--seconds", "60"), "needs more memory"),
])  # fmt: skip
def test_time_and_memory_are_limited(capsys, more, told):
    sql = {"takes too long": 'select sum(a."start" * b.lane + c.lane) from events a, events b, events c',
           "needs more memory": "select string_agg(name, '') from events, range(1000000)"}[told]  # fmt: skip
    assert main(["query", TORCH, sql, *more]) == 2
    assert told in capsys.readouterr().err


def test_a_data_set_is_asked_in_the_same_way(tmp_path, capsys):
    assert main(["dataset", "build", str(tmp_path / "data"), TORCH, "--jobs", "1"]) in (0, 1)
    capsys.readouterr()
    for path in (str(tmp_path / "data"), TORCH):
        assert main(["query", path, "select count(*) from events where role = 'work'", "--csv"]) == 0
    one, other = capsys.readouterr().out.splitlines()[1::2]
    assert one == other
    assert main(["query", str(tmp_path / "data"), "--schema", "--json"]) == 0
    assert "captures" in json.loads(capsys.readouterr().out)["tables"]


def test_without_sql_it_is_asked_for(capsys):
    assert main(["query", TORCH]) == 2
    assert "Give the SQL" in capsys.readouterr().err
    assert main(["query", TORCH, "select 1", "--csv", "--json"]) == 2


def test_without_duckdb_a_sentence_says_how_to_install_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["query", TORCH, "select 1"]) != 0
    assert "duckdb" in capsys.readouterr().err
