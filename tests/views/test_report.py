"""``tpuprof report``: the envelope, and that screen, command line and Python give the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Texts, make_lane, make_profile, session_of, small_profile

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.filters import with_step
from tpuprof_tui.analysis.selecting.moves import scope_named
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.analysis.steps.step_figures import step_span
from tpuprof_tui.cli.main import main
from tpuprof_tui.formats.answers import SCHEMA
from tpuprof_tui.model import Problem, Role, Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.answer import Column, Table
from tpuprof_tui.views.as_json import answer_record, table_record
from tpuprof_tui.views.as_text import text_table
from tpuprof_tui.views.registry import answer, view_of, views_of
from tpuprof_tui.views.report import exact_us, report_record, workers_of

SAMPLES = Path(__file__).parents[2] / "samples"
SOUND, DAMAGED = SAMPLES / "aks_decode_mode2", SAMPLES / "aks_damaged"

#: Filters, ranges and scopes that every view is asked with.
ASKED = [
    ("", None, None), ("engine=GDMA", None, None), ("", (100_000, 300_000), None), ("dur>1us", (0, 450_000), None),
    ("", None, 3), ("name=mm2* | wait", (50_000, 700_000), 1), ("dur<0", None, None), ("", (899_000, 899_001), 2),
]  # fmt: skip
#: The same of traces, whose steps are asked for too: sample, filter, range, unit, step. Each kind of selection is asked
#: of one of them, several at once and steps of both.
ASKED_OF_STEPS = [
    ("torch_cuda_synthetic", "", None, None, None),
    ("ascend_synthetic", "dur>2us", (100_000, 900_000), None, None),
    ("torch_cuda_synthetic", "", (50_000, 1_200_000), "GPU 1", None), ("torch_cuda_synthetic", "", None, None, 1),
    ("ascend_synthetic", "", None, None, 1), ("torch_cuda_synthetic", "dur>2us", (100_000, 900_000), None, 1),
    ("ascend_synthetic", "dur>2us", None, "NPU 1", 1),
]  # fmt: skip


def told(capsys, *words: object) -> tuple[int, dict]:
    status = main(["report", *map(str, words), "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_envelope_of_a_capture(capsys):
    status, record = told(capsys, SOUND)
    assert status == 0
    assert (record["schema"], record["source"], record["problems"]) == (SCHEMA, "sophgo", [])
    (worker,) = record["workers"]
    assert worker["key"] == "aks_decode_mode2"
    assert worker["rank"] is None
    assert (worker["start"], worker["events"], worker["lanes"], worker["duration_us"]) == ("0", 1855, 12, 899.688)
    assert worker["devices"][0]["name"] == "AKS"
    assert "global.profile" in worker["files"]
    assert list(record["views"]) == [view.id for view in views_of(open_profile(SOUND).vocabulary)]
    for view in record["views"].values():
        for data in view["workers"].values():
            for table in data["tables"].values():
                assert {len(row) for row in table["rows"]} <= {len(table["columns"])}
                assert (table["total_rows"], table["truncated"]) == (len(table["rows"]), False)
                assert all({"key", "title", "unit"} == set(column) for column in table["columns"])


def test_losses_are_an_exit_status_and_problems(capsys):
    status, record = told(capsys, DAMAGED, "overview")
    assert status == 1
    first = record["problems"][0]
    assert (first["severity"], first["file"], first["offset"]) == ("error", "cdmlib0_1.profile", 14776)
    assert first["what"]
    assert first["done"]
    assert list(record["views"]) == ["overview"]


def test_what_cannot_be_read_is_one_sentence(capsys, tmp_path):
    assert main(["report", str(tmp_path)]) == 2
    assert main(["report", str(SOUND), "nothing"]) == 2
    assert "There is no view 'nothing'" in capsys.readouterr().err
    assert main(["report", str(SOUND), "--group", "core 9"]) == 2
    assert main(["report", str(SOUND), "--rank", "1"]) == 2
    assert main(["report", str(SOUND), "--filter", "nothing=1"]) == 2
    assert capsys.readouterr().out == ""


def test_a_group_belongs_to_one_rank(capsys):
    trace = SAMPLES / "torch_cuda_synthetic"
    _, record = told(capsys, trace, "units", "--group", "GPU 1")
    (key,) = record["views"]["units"]["workers"]
    assert [worker["key"] for worker in record["workers"]] == [key] == ["Rank 1"]
    assert main(["report", str(trace), "--group", "GPU 1", "--rank", "0"]) == 2
    assert "There is no GPU 1 of rank 0." in capsys.readouterr().err


def test_rows_of_several_ranks_lead_where_those_of_each_do():
    profile = open_profile(SAMPLES / "ascend_synthetic")
    view = view_of(profile.vocabulary, "free")
    both = answer(view, query_of(profile)).table("gaps")
    each = [answer(view, query_of(profile, scope=Scope(worker.group))).table("gaps") for worker in workers_of(profile)]
    led = [table.target_of(row) for table in each for row in range(len(table))]
    assert [both.target_of(row) for row in range(len(both))] == led
    assert None not in led


def test_figures_of_a_cluster_alone_have_no_workers(capsys, tmp_path):
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing\n,rank,0,10,1,2,3,4,15,0,1,5\n"
    )
    status, record = told(capsys, tmp_path)
    assert (status, record["workers"]) == (0, [])
    assert record["views"]["cluster"]["tables"]["steps"]["rows"]


def test_the_list_of_views_names_each_in_a_line(capsys):
    assert main(["report", str(SOUND), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [view.id for view in views_of(open_profile(SOUND).vocabulary)]
    assert not any("{" in line for line in lines)


def test_limit_and_offset_say_what_is_left_out(capsys):
    _, whole = told(capsys, SOUND, "operations")
    _, part = told(capsys, SOUND, "operations", "--limit", 3, "--offset", 2)
    every, some = (
        each["views"]["operations"]["workers"]["aks_decode_mode2"]["tables"]["by_name"] for each in (whole, part)
    )
    assert some["rows"] == every["rows"][2:5]
    assert (some["total_rows"], some["truncated"]) == (len(every["rows"]), True)
    assert main(["report", str(SOUND), "operations", "--limit", "2"]) == 0
    text = capsys.readouterr().out
    assert f"{len(every['rows']) - 2} more; --limit shows them." in text


@pytest.mark.parametrize(("filter_text", "window", "core"), ASKED)
def test_screen_command_line_and_python_tell_the_same(capsys, filter_text, window, core):
    group = None if core is None else f"core {core}"
    check_parity(capsys, SOUND, filter_text, window, group, None)


@pytest.mark.parametrize(("name", "filter_text", "window", "group", "step"), ASKED_OF_STEPS)
def test_they_do_of_traces_and_steps(capsys, name, filter_text, window, group, step):
    check_parity(capsys, SAMPLES / name, filter_text, window, group, step)


def check_parity(capsys, path, filter_text, window, group, step):
    words: list[object] = [path]
    words += ["--filter", filter_text] if filter_text else []
    words += ["--range", f"{window[0]}ns..{window[1]}ns"] if window else []
    words += ["--group", group] if group else []
    words += [] if step is None else ["--step", step]
    _, by_command = told(capsys, *words)
    profile = open_profile(path)
    scope = Scope() if group is None else scope_named(profile, None, group)
    session = session_of(profile)
    state = DisplayState.of(profile.start_ns, profile.end_ns)
    state = replace(state, filter=with_step(filter_text, step), scope=scope)
    if window is not None:
        state = replace(state, start=window[0], end=window[1])
    elif step is not None:
        start, end = step_span(session, step)
        state = state.windowed(start, end - start)
    top = profile.groups.top(scope.group)
    workers = [each for each in workers_of(profile) if each.group < 0 or top in (-1, each.group)]
    assert len(by_command["workers"]) == len(workers)
    for view in views_of(profile.vocabulary):
        for worker in [None] if view.all_workers else workers:
            where = scope if worker is None or group else Scope(worker.group)
            in_python = query_of(profile, scope=where, range=window, filter=filter_text, step=step)
            on_screen = Query.of_state(session, replace(state, scope=where), where)
            zero = profile.start_ns if worker is None or worker.window is None else worker.window[0]
            records = [json.loads(json.dumps(answer_record(answer(view, query), zero)))
                       for query in (in_python, on_screen)]  # fmt: skip
            found = by_command["views"][view.id]
            records.append(found if worker is None else found["workers"][worker.key])
            assert records[0] == records[1] == records[2], view.id


def test_a_window_counts_what_starts_in_it_and_cuts_unions():
    texts = Texts()
    lane = make_lane(starts=[0, 40, 90], ends=[30, 120, 100], name=texts.codes("name", ["a", "b", "a"]), cycles=[1] * 3)
    query = query_of(make_profile([lane], strings=texts.build()), range=(20, 60))
    kernels = answer(view_of(query.vocabulary, "operations"), replace(query, filter=""))
    by_name = kernels.table("by_name")
    assert by_name.column("name") == ["b"]
    assert by_name.column("total_us") == [80]  # all of it, ns
    units = answer(view_of(query.vocabulary, "units"), query)
    assert units.table("units").column("busy_us") == [10 + 20]
    lanes = answer(view_of(query.vocabulary, "lanes"), query)
    assert lanes.table("lanes").column("count") == [1]


def test_sums_close():
    query = query_of(open_profile(SOUND))
    kernels, operations = (answer(view_of(query.vocabulary, name), query).table("by_name")
                           for name in ("kernels", "operations"))  # fmt: skip
    work = sum(
        int((lane["end"] - lane["start"])[lane["role"] == Role.WORK].sum()) for lane in query.profile.device_part.lanes
    )
    assert sum(kernels.column("total_us")) == sum(operations.column("total_us")) == work
    assert sum(kernels.column("share")) == pytest.approx(1)
    units = answer(view_of(query.vocabulary, "units"), query).table("units")
    for row in range(len(units)):
        told = dict(zip((column.key for column in units.columns), units.row(row), strict=True))
        assert told["busy_us"] == told["compute_us"] + told["exposed_us"]
        assert told["busy_us"] + told["wait_us"] + told["idle_us"] == query.span


def test_findings_have_their_columns_and_never_win_more_than_the_window():
    query = query_of(open_profile(SOUND), range=(100_000, 130_000))
    table = answer(view_of(query.vocabulary, "findings"), query).table("findings")
    assert [column.key for column in table.columns] == [
        "severity", "rule", "worker", "group", "gain_us", "text", "evidence", "advice", "source",
        "confidence",
    ]  # fmt: skip
    gains = table.column("gain_us")
    assert gains == sorted(gains, key=lambda gain: -(gain or 0))
    assert all(0 <= gain <= 30_000 for gain in gains if gain is not None)
    for row in range(len(table)):
        assert table.target_of(row) is not None
    for evidence in table.column("evidence"):
        assert {"group", "lane", "start_us", "duration_us", "name"} <= set(evidence[0])


def test_views_of_a_profile_without_times_say_so():
    profile = replace(small_profile(2), timed=False)
    query = query_of(profile)
    for view in views_of(profile.vocabulary):
        found = answer(view, query)
        assert found.missing or view.id == "problems"


def test_names_need_a_mode_and_the_sentence_says_which():
    query = query_of(small_profile(0))
    (missing,) = answer(view_of(query.vocabulary, "kernels"), query).missing
    assert missing.sentence == "Kernel functions are not known here. It needs a profile of mode 1."


def test_hostile_names_steer_nothing(capsys, monkeypatch):
    texts = Texts()
    evil = "\x1b]0;owned\x07=1+1</script>"
    lane = make_lane(starts=[0], ends=[10], name=texts.codes("name", [evil]), cycles=[11])
    profile = make_profile([lane], strings=texts.build(), problems=[Problem(Severity.ERROR, "Bad \x1b[2J name.")])
    record = report_record(query_of(profile), views_of(profile.vocabulary), workers_of(profile))
    text = json.dumps(record)
    assert "\x1b" not in text
    assert json.loads(text)["views"]["operations"]["workers"]["synthetic"]["tables"]["by_name"]["rows"][0][-1] == evil
    table = answer(view_of(profile.vocabulary, "operations"), query_of(profile)).table("by_name")
    assert "</script>" not in table._repr_html_()


def test_times_are_exact():
    assert exact_us(1736408883704643212) == "1736408883704643.212"
    assert exact_us(0) == "0"
    assert exact_us(-1500) == "-1.5"


def test_a_source_of_another_package_has_a_report_in_its_words(capsys, tmp_path):
    from installed_sources import OVEN, installed

    with installed(OVEN):
        from tpuprof_oven.example import bakery
        from tpuprof_oven.recording import write_recording

        path = tmp_path / "x.oven.json"
        write_recording(bakery(), path)
        status, record = told(capsys, path)
        assert status == 0
        assert record["source"] == "oven"
        units = record["views"]["units"]["workers"]["x.oven.json"]["tables"]["units"]
        assert [row[0] for row in units["rows"]] == ["Oven 10", "Oven 11"]
        assert units["rows"][0][2] == 371.25
        heat = record["views"]["counters"]["workers"]["x.oven.json"]["tables"]
        assert {len(table["rows"]) for table in heat.values()} == {12}
        assert main(["report", str(path)]) == 0
        text = capsys.readouterr().out.lower()
        assert not any(word in text for word in ("core", "tiu", "gdma", "kernel function", "instruction"))


def test_tables_hold_arrays_as_they_are():
    from tpuprof_tui.views.answer import Column, Table

    values = np.array([1.0, np.nan])
    table = Table("t", "T", (Column("a", "A", "number"),), (values,))
    assert table.rows() == [(1.0,), (None,)]
    assert len(table) == 2
    with pytest.raises(ValueError, match="lengths"):
        Table("t", "T", (Column("a", "A"), Column("b", "B")), ([1], [1, 2]))


#: Tables whose rows are of no time, group or event of the profile: what files of it sum up, advice, what is published.
LEAD_NOWHERE = {
    "communication.matrix", "cluster.matrix", "communication.totals", "memory.modules", "memory.peaks",
    "free.step_gaps", "overview.overlap", "overview.recorded_steps", "overview.recommendations",
    "overview.devices", "names.names", "tables.files", "tables.l2_cache", "tables.task_time", "lanes.lanes",
    "problems.problems",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "part"),
    [("torch_cuda_synthetic", ("--range", "20%..60%")), ("ascend_synthetic", ("--filter", "dur>5us")),
     ("ascend_synthetic", ("--step", "1"))],
)  # fmt: skip
def test_a_part_of_a_trace_is_written_with_all_views(name, part, tmp_path):
    words = ["export", str(SAMPLES / name), str(tmp_path / "out"), "--only", "xlsx,web,pftrace", *part]
    assert main(words) in (0, 1)
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.suffix for path in written} >= {".html", ".pftrace", ".xlsx"}


@pytest.mark.parametrize("name", ["aks_decode_mode2", "aks_bmodel", "torch_cuda_synthetic", "ascend_synthetic"])
def test_rows_lead_to_what_is_there(name):
    profile = open_profile(SAMPLES / name)
    query = query_of(profile)
    for view in views_of(profile.vocabulary):
        for table in answer(view, query).tables:
            leads = [table.target_of(row) for row in range(min(len(table), 12))]
            if table.shown and len(table) > 1 and f"{view.id}.{table.key}" not in LEAD_NOWHERE:
                assert any(leads), (view.id, table.key)
            for target in filter(None, leads):
                if target.condition:
                    narrowed = replace(query, filter=target.condition, scope=target.scope or query.scope)
                    assert narrowed.longest_work() is not None, (view.id, table.key, target)
                if target.time is not None:
                    start, end = target.time
                    assert profile.start_ns <= start < end <= profile.end_ns + 1, (view.id, table.key, target)
                if target.event is not None:
                    lane, row = target.event
                    assert 0 <= row < len(profile.lanes[lane])


def test_figures_of_several_ranks_are_rows_of_one_table():
    profile = open_profile(SAMPLES / "ascend_synthetic")
    table = answer(view_of(profile.vocabulary, "free"), query_of(profile)).table("workers")
    assert table.column("worker") == ["Rank 0", "Rank 1"]
    assert len(table.columns) > 1
    assert [table.target_of(row).scope for row in range(2)] == [Scope(worker.group) for worker in workers_of(profile)]


def test_of_columns_that_may_be_left_out_those_of_nothing_but_0_are_first():
    columns = (Column("name", "Name"), Column("a_us", "Stays", "duration"),
               Column("b_us", "Zero", "duration", drop_first=1),
               Column("c", "Share", "share"), Column("d", "Spare", "count", drop_first=2))  # fmt: skip
    told = text_table(Table.of_rows("t", "T", columns, [("x", 0, 0, 0.0, 3), ("y", None, None, 0.0, 4)]))
    for width, left in ((told.width, "Name Stays Zero Share Spare"), (told.width - 1, "Name Stays Share Spare"),
                        (20, "Name Stays Share")):  # fmt: skip
        assert [[each.header for each in part] for part in told.parts(width)] == [left.split()]


def test_a_0_that_is_not_known_is_told_so_to_people_alone():
    table = Table.of_rows("t", "T", (Column("n", "N"), Column("bytes", "Bytes", "bytes", zero_unknown=True)),
                          [("x", 0), ("y", 4)])  # fmt: skip
    assert text_table(table).rows == (("x", "-"), ("y", "4 B"))
    assert table_record(table)["rows"] == [["x", 0], ["y", 4]]


def test_a_time_of_a_worker_plus_its_offset_is_the_time_for_a_range(tmp_path, capsys):
    """Two ranks that begin one after the other: both say 50 us on their own clocks."""
    for rank in range(2):
        events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1000 + 100 * rank + start,
                   "dur": 20} for start, name in ((0, "aten::mm"), (50, f"of {rank}"))]  # fmt: skip
        events[1] |= {"cat": "user_annotation", "name": f"ProfilerStep#{rank}"}
        record = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(json.dumps(record))
    assert main(["report", str(tmp_path), "steps", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    first, second = (worker["offset_us"] for worker in found["workers"])
    assert first == 0 < second
    for number, worker in enumerate(found["workers"]):
        table = found["views"]["steps"]["workers"][worker["key"]]["tables"]["steps"]
        place = [column["key"] for column in table["columns"]].index("host_start_us")
        (row,) = table["rows"]
        assert row[place] == 50
        begin = worker["offset_us"] + row[place]
        assert main(["instructions", str(tmp_path), "--range", f"{begin}us..{begin + 1}us", "--columns", "name"]) == 0
        assert f"ProfilerStep#{number}" in capsys.readouterr().out
