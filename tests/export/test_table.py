"""The explorer's table as a file: columns, order, what is not known; and the command that writes it."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from profiles import Texts, big_profile, make_lane, make_profile, selected_query, small_profile

from tpuprof_tui.analysis.index.ordering import lane_values
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export import table
from tpuprof_tui.export.table import (
    SHARE,
    Sort,
    known_columns,
    parse_columns,
    parse_sort,
    table_rows,
    write_table,
)
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.sophgo.schema import SCHEMA
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

SAMPLES = Path(__file__).parents[2] / "samples"


def text_of(rows, columns, form) -> str:
    sink = io.BytesIO()
    assert write_table(rows, columns, sink, form) == len(rows)
    return sink.getvalue().decode("utf-8")


def objects(rows, columns):
    return [json.loads(line) for line in text_of(rows, columns, "jsonl").split("\n")[:-1]]


def cells(rows, columns):
    return list(csv.DictReader(io.StringIO(text_of(rows, columns, "csv"), newline="")))


def plain(profile, lane, column, row):
    """One value, slowly; None where nothing is known."""
    if not column.applies_to(lane.kind):
        return None
    values = lane_values(profile, lane, column.key, np.array([row]))
    if values is None:
        return lane.kind if column.key == "engine" else None
    value = values[0].item()
    if column.kind == "text":
        return profile.strings[column.key][value] if value >= 0 else None
    if value == INT_MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


def spelled(column, value, form="jsonl"):
    """A value as text files have it."""
    if column.kind == "percent" and value is not None and form == "csv":
        return f"{value:.{column.decimals}f}%"
    return round(value, column.decimals) if isinstance(value, float) else value


def in_order(rows):
    """Lane and row of each instruction."""
    for number in rows.numbers.tolist():
        place = int(np.searchsorted(rows.offsets, number, side="right")) - 1
        yield rows.profile.lanes[place], number - int(rows.offsets[place])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("piece", [5, 16_384])
def test_every_column_of_every_instruction(mode, piece, monkeypatch):
    monkeypatch.setattr(table, "SLICE", piece)
    profile = small_profile(mode)
    columns = known_columns(profile)
    rows = table_rows(query_of(profile), sort=Sort("duration", down=True))

    def wanted(form):
        return [
            {column.key: spelled(column, plain(profile, lane, column, row), form) for column in columns}
            for lane, row in in_order(rows)
        ]

    assert len(rows) == profile.event_count
    assert objects(rows, columns) == wanted("jsonl")
    found = cells(rows, columns)
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in wanted("csv")]
    assert found == texts


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("group", [7, 65_536])
def test_parquet_holds_the_same_with_types(mode, group, monkeypatch, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(table, "GROUP", group)
    profile = small_profile(mode)
    columns = (*known_columns(profile), SHARE)
    rows = table_rows(query_of(profile), sort=Sort("name"))
    with (tmp_path / "table.parquet").open("wb") as sink:
        assert table.write_parquet(rows, columns, sink) == len(rows)
    found = parquet.read_table(tmp_path / "table.parquet")
    assert found.column_names == [column.key for column in columns]
    total = rows.total_ns
    for column, held in zip(columns, found.columns, strict=True):
        if column is SHARE:
            wanted = [100.0 * int(lane["end"][row] - lane["start"][row]) / total for lane, row in in_order(rows)]
        else:
            wanted = [plain(profile, lane, column, row) for lane, row in in_order(rows)]
        assert held.to_pylist() == wanted, column.key


def test_parquet_stores_any_text(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = Texts()
    names = ["\ud800", "=1+1", "a\x00b\x1b", "矩阵乘"]
    lane = make_lane(starts=[0, 1, 2, 3], ends=[1, 2, 3, 4], name=texts.codes("name", names))
    beyond = make_lane("GDMA", starts=[5], ends=[6], name=np.array([99], dtype=np.int32))
    rows = table_rows(query_of(make_profile([lane, beyond], strings=texts.build())))
    with (tmp_path / "table.parquet").open("wb") as sink:
        table.write_parquet(rows, parse_columns("engine,name", VOCABULARY), sink)
    found = parquet.read_table(tmp_path / "table.parquet")
    assert found["name"].to_pylist() == ["\\ud800", *names[1:], None]
    assert found["engine"].to_pylist() == ["TIU"] * 4 + ["GDMA"]


def test_without_pyarrow_parquet_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="needs the package pyarrow"):
        table.write_parquet(table_rows(query_of(small_profile())), parse_columns("name", VOCABULARY), io.BytesIO())


def test_shares_add_up_to_all():
    rows = table_rows(selected_query(small_profile(), start=1000, end=9000))
    shares = [float(row["share"].rstrip("%")) for row in cells(rows, parse_columns("name,share", VOCABULARY))]
    assert sum(shares) == pytest.approx(100, abs=0.0005 * len(shares))


def test_texts_are_safe_in_their_files():
    texts = Texts()
    names = ["%s 100%", 'q"c,', "a\nb", "\ud800", "=1+1", "-", "-3"]
    lane = make_lane(starts=range(7), ends=range(1, 8), name=texts.codes("name", names))
    rows = table_rows(query_of(make_profile([lane], strings=texts.build())))
    columns = parse_columns("name", VOCABULARY)
    assert [row["name"] for row in objects(rows, columns)] == names
    assert [row["name"] for row in cells(rows, columns)] == [*names[:3], "\\ud800", "'=1+1", "-", "-3"]


def test_columns_have_keys_aliases_and_names_in_files():
    assert parse_columns("dur, Asic Cycle ,kernel,DUR", VOCABULARY) == (
        SCHEMA["duration"],
        SCHEMA["cycles"],
        SCHEMA["kernel"],
    )
    for text in ("", ",", "nothing", "name,nothing"):
        with pytest.raises(UsageError, match="no column"):
            parse_columns(text, VOCABULARY)


def test_orders():
    assert parse_sort("dur", VOCABULARY) == parse_sort("duration:asc", VOCABULARY) == Sort("duration")
    assert parse_sort("Asic Cycle:desc", VOCABULARY) == Sort("cycles", down=True)
    for text in ("", "nothing", "dur:down", ":desc"):
        with pytest.raises(UsageError):
            parse_sort(text, VOCABULARY)


def test_a_range_has_what_runs_or_starts_in_it():
    lane = make_lane(starts=[0, 10, 20, 20, 30], ends=[10, 20, 20, 25, 35])
    rows = table_rows(selected_query(make_profile([lane]), start=10, end=20))
    assert rows.numbers.tolist() == [1]
    rows = table_rows(selected_query(make_profile([lane]), start=20, end=30))
    assert rows.numbers.tolist() == [2, 3]


def test_what_starts_at_the_very_end_is_in_a_range_up_to_it_as_in_figures():
    profile = make_profile([make_lane(starts=[0, 10, 20], ends=[10, 20, 20])])
    query = selected_query(profile, start=10)
    assert query.range == (10, 20)
    assert table_rows(query).numbers.tolist() == [1, 2] == query.events(("row",))["row"].tolist()


def test_a_core_has_what_it_submitted_and_a_lane_is_one():
    profile = small_profile()
    submitter = int(next(lane["core"][0] for lane in profile.lanes if lane.kind == "CDMA"))
    rows = table_rows(query_of(profile, scope=Scope(submitter)))
    assert {profile.unit_number(lane) for lane, _ in in_order(rows)} == {-1, submitter}
    assert all(plain(profile, lane, SCHEMA["core"], row) == submitter for lane, row in in_order(rows))
    port = next(number for number, lane in enumerate(profile.lanes) if lane.kind == "CDMA")
    assert {profile.title_of(lane) for lane, _ in in_order(table_rows(query_of(profile, scope=Scope(lane=port))))} == {
        profile.title_of(profile.lanes[port])
    }
    assert {lane.kind for lane, _ in in_order(table_rows(query_of(profile), kind="GDMA"))} == {"GDMA"}


def test_many_rows_go_out_in_pieces():
    sizes = []

    class Sink:
        def write(self, data):
            sizes.append(len(data))

    rows = table_rows(query_of(big_profile(50_000, cores=2)), sort=Sort("duration"))
    assert write_table(rows, parse_columns("name,dur", VOCABULARY), Sink(), "jsonl") == 50_000
    assert len(sizes) == 4


# -- the command ----------------------------------------------------------------


def tool(*words: object, **settings) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "tpuprof_tui", *map(str, words)], capture_output=True, check=False,
                          **settings)  # fmt: skip


def test_the_command_sorts_all_fields_too():
    sample = SAMPLES / "aks_decode_mode2"
    sorted_ones = tool("instructions", sample, "--sort", "cycles:desc", "--engine", "TIU").stdout.splitlines()
    plain_ones = tool("instructions", sample, "--engine", "TIU").stdout.splitlines()
    assert sorted(sorted_ones) == sorted(plain_ones)
    found = [json.loads(line)["Asic Cycle"] for line in sorted_ones]
    assert found == sorted(found, reverse=True)
    assert found != [json.loads(line)["Asic Cycle"] for line in plain_ones]


def test_the_command_writes_parquet_to_a_pipe():
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    done = tool("instructions", SAMPLES / "aks_host_trace", "--format", "parquet",
                "--trace_file", SAMPLES / "aks_host_trace" / "host_trace.json")  # fmt: skip
    assert done.returncode == 0
    engines = set(parquet.read_table(pyarrow.BufferReader(done.stdout))["engine"].to_pylist())
    assert {"TIU", "GDMA", "HOST"} <= engines


def test_parquet_never_goes_to_a_terminal():
    leader, follower = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tpuprof_tui", "instructions", SAMPLES / "aks_host_trace", "--format", "parquet"],
            stdout=follower, stderr=subprocess.PIPE, check=False, text=True,
        )  # fmt: skip
    finally:
        os.close(follower)
        os.close(leader)
    assert done.returncode == 2
    assert "Parquet cannot be printed to a terminal." in done.stderr


@pytest.mark.parametrize("words", [["--columns", "nothing"], ["--sort", "nothing"], ["--sort", "dur:up"]])
def test_wrong_words_are_one_sentence(words, capsys):
    assert main(["instructions", str(SAMPLES / "aks_host_trace"), *words]) == 2
    message = capsys.readouterr().err
    assert message.startswith("tpuprof: There is no column") or "is not a sort order" in message
    assert message.count("\n") == 1
