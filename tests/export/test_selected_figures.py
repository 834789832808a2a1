"""Figures of views in exported files: those of ``tpuprof report`` for the same selection."""

from __future__ import annotations

from functools import cache

import openpyxl
import pytest
from kept import SAMPLES
from profiles import big_profile, selected_query
from web_reading import page_of

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.export.job import Job, run_export
from tpuprof_tui.export.selection import rows_by_lane, selected_profile
from tpuprof_tui.formats.xlsx import book as book_module
from tpuprof_tui.model.lane import row_count
from tpuprof_tui.views import as_sheet
from tpuprof_tui.views.redacting import redacted
from tpuprof_tui.views.registry import answer, ask, view_of
from tpuprof_tui.views.report import of_worker, workers_of

TRACES = ("torch_cuda_synthetic", "ascend_synthetic")


def selections(profile):
    """Selections, and the same as fields of a query."""
    middle = (profile.start_ns + profile.end_ns) // 2
    longest = "dur>40us"
    unit = profile.units[1]
    return {
        "range": ({"start": middle}, {"range": (middle, profile.end_ns)}),
        "filter": ({"filter": longest}, {"filter": longest}),
        "step": ({"filter": "step=1"}, {"step": 1}),
        "unit": ({"units": frozenset((unit,))}, {"scope": Scope(profile.groups.top(unit))}),
    }


@pytest.fixture(scope="module")
def charts(tmp_path_factory):
    """Rows of the sheet of charts of a sample's workbook."""

    @cache
    def of(name):
        (written,) = run_export(
            Job(tmp_path_factory.mktemp(name), frozenset(("xlsx",)), query_of(open_profile(SAMPLES / name)))
        )
        return [*openpyxl.load_workbook(written.path)["Charts"].iter_rows(values_only=True)]

    return of


def rows_of(table):
    return [list(row) for row in table.rows()]


# each selection once, each sample twice: the invariants hold for the others
@pytest.mark.parametrize(("name", "which"), [*zip(TRACES * 2, ("range", "filter", "step", "unit"), strict=True)])
def test_a_workbook_of_a_selection_holds_its_kernels_alone(name, which, tmp_path):
    profile = open_profile(SAMPLES / name)
    selection, fields = selections(profile)[which]
    (written,) = run_export(Job(tmp_path, frozenset(("xlsx",)), selected_query(profile, **selection)))
    book = openpyxl.load_workbook(written.path)
    (sheet,) = (each for each in book if each.title in ("By name", "Kernels, by name"))
    header, *rows = sheet.iter_rows(values_only=True)
    place = next(index for index, title in enumerate(header) if title in ("Total (us)", "Total Time (us)"))
    table = ask(profile, "kernels", **fields).table("by_name")
    expected = [total / 1000 for total in table.column("total_us")]
    assert [row[place] for row in rows] == pytest.approx(expected)
    everything = ask(profile, "kernels").table("by_name")
    assert sum(expected) < sum(everything.column("total_us")) / 1000


@pytest.mark.parametrize("which", ["filter", "step"])
def test_views_in_the_workbook_of_a_capture_are_those_of_the_selection(which, tmp_path):
    profile = open_profile(SAMPLES / "aksv_cdma")
    selection, fields = selections(profile)[which]
    run_export(Job(tmp_path, frozenset(("xlsx",)), selected_query(profile, **selection)))
    header, *rows = openpyxl.load_workbook(tmp_path / "PerfDoc/PerfAI_output.xlsx")["Cores"].iter_rows(values_only=True)
    table = ask(profile, "units", **fields).table("units")
    for title, key in (("Busy (us)", "busy_us"), ("Idle (us)", "idle_us"), ("Overlap (us)", "overlap_us")):
        expected = [value / 1000 for value in table.column(key)]
        assert [row[header.index(title)] for row in rows] == pytest.approx(expected)


@pytest.mark.parametrize("which", ["range", "filter", "step", "unit"])
@pytest.mark.parametrize("name", TRACES)
def test_a_page_of_a_selection_holds_its_figures_alone(name, which, tmp_path):
    profile = open_profile(SAMPLES / name)
    selection, fields = selections(profile)[which]
    page = page_of(selected_query(profile, **selection), tmp_path)
    query = query_of(profile, **fields)
    for view in ("kernels", "units"):
        found = answer(view_of(profile.vocabulary, view), query)
        (record,) = (each for each in page.record["views"] if each["id"] == view)
        for table in record["tables"]:
            for column in table["columns"]:
                if column["key"] in ("total_us", "busy_us"):
                    assert column["values"] == list(found.table(table["key"]).merged().column(column["key"]))
    units = answer(view_of(profile.vocabulary, "units"), query).table("units")
    assert [each["busy"] for each in page.record["figures"]] == list(units.column("busy_us"))


@pytest.mark.parametrize("name", ["torch_cuda_synthetic", "aksv_cdma"])
def test_files_of_a_selection_say_which_one_they_hold(name, tmp_path):
    profile = open_profile(SAMPLES / name)
    unit, hostile = profile.units[1], '=HYPERLINK("http://x")</script><b>\u202e'
    expression = f'step=0 !"{hostile}"'.replace('("http://x")', "")
    selection = {"units": frozenset((unit,)), "start": 1000, "filter": expression}
    job = Job(tmp_path, frozenset(("xlsx", "web")), selected_query(profile, **selection))
    (book,) = (each.path for each in run_export(job) if each.path.suffix == ".xlsx")
    cells = [list(row) for row in openpyxl.load_workbook(book)["Overview"].iter_rows(min_row=2, max_row=5)]
    assert {row[0].value for row in cells} == {"Selection"}
    rank = " (Rank 1)" if name.startswith("torch") else ""
    shown = {row[1].value: row[3].value for row in cells}
    assert shown == {
        profile.vocabulary.say("{Unit}"): f"1{rank}",
        "Range": "1,000 ns to the end",
        "Step": "0",
        "Filter": '!"=HYPERLINK</script><b>\\u202e"',
    }
    page = page_of(selected_query(profile, **selection), tmp_path)
    assert page.record["selection"] == "; ".join(f"{title} {value}" for title, value in shown.items())
    assert "<b>" not in page.text
    assert page_of(query_of(profile), tmp_path).record["selection"] == ""


def test_a_redacted_page_of_a_filter_does_not_repeat_what_is_redacted(tmp_path):
    profile = open_profile(SAMPLES / "torch_cuda_synthetic")
    selection = {"filter": f'"{profile.name}" | dur>0'}
    assert profile.name in page_of(selected_query(profile, **selection), tmp_path).record["selection"]
    said = page_of(selected_query(redacted(profile), **selection), tmp_path).record["selection"]
    assert said.startswith("Filter ")
    assert said.endswith(" | dur>0")
    assert profile.name not in said


def test_a_filter_like_a_formula_is_a_text_in_the_sheet(tmp_path):
    profile = open_profile(SAMPLES / "torch_cuda_synthetic")
    selection = {"filter": "=1+1"}
    (written,) = run_export(Job(tmp_path, frozenset(("xlsx",)), selected_query(profile, **selection)))
    cell = openpyxl.load_workbook(written.path)["Overview"]["D2"]
    assert (cell.value, cell.data_type, cell.quotePrefix) == ("=1+1", "s", True)


def test_some_of_several_units_are_those_of_the_page(tmp_path):
    profile = big_profile(600, cores=3, ports=2, mode=2)
    chosen = frozenset((profile.units[0], profile.units[2]))
    page = page_of(selected_query(profile, units=chosen), tmp_path)
    assert [each["core"] for each in page.record["figures"]] == [0, 2]
    query = selected_query(profile, units=chosen, filter="step=1 dur>1us")
    assert query.step == 1
    assert query.condition == "(core=0 | core=2) (dur>1us)"
    found = answer(view_of(profile.vocabulary, "operations"), selected_query(profile, units=chosen))
    expected = ask(profile, "operations", filter="core=0 | core=2")
    assert rows_of(found.tables[0]) == rows_of(expected.tables[0])


def test_a_rank_without_communication_has_none_rather_than_0_as_in_the_report(tmp_path):
    profile = open_profile(SAMPLES / "ascend_synthetic")
    length = profile.end_ns - profile.start_ns
    selection = {"start": profile.start_ns + length * 3 // 10, "end": profile.start_ns + length * 4 // 10}
    query = selected_query(profile, **selection)
    reported = [answer(view_of(profile.vocabulary, "units"), of_worker(query, worker)).table("units")
                for worker in workers_of(profile)]  # fmt: skip
    for key in ("communication_us", "exposed_communication_us"):
        expected = [table.column(key)[0] if table.column_index(key) >= 0 else None for table in reported]
        assert expected == [150_500, None]
        page = page_of(selected_query(profile, **selection), tmp_path)
        (units,) = (view["tables"][0] for view in page.record["views"] if view["id"] == "units")
        assert next(column["values"] for column in units["columns"] if column["key"] == key) == expected
    assert [each["exposed_communication"] for each in page.record["figures"]] == [150_500, None]


@pytest.mark.parametrize("view", ["waits", "critical_path"])
@pytest.mark.parametrize("name", ["aksv_cdma", "aks_decode_mode2"])
def test_waits_of_some_of_several_units_are_those_of_the_report(name, view):
    profile = open_profile(SAMPLES / name)
    chosen = frozenset((profile.units[1], profile.units[3]))
    query = selected_query(profile, units=chosen)
    found, expected = answer(view_of(profile.vocabulary, view), query), ask(profile, view, filter="core=1|core=3")
    assert [rows_of(table) for table in found.tables] == [rows_of(table) for table in expected.tables]
    assert [fact.value for fact in found.facts] == [fact.value for fact in expected.facts]
    if (name, view) == ("aks_decode_mode2", "waits"):
        # whoever released the waits, as for one core alone
        assert found.table("makers").row(0)[0] == "Core 0"
    assert query.units == tuple(sorted(chosen))


def test_files_of_a_rank_s_unit_have_the_calls_of_its_own_host():
    profile = open_profile(SAMPLES / "torch_cuda_synthetic")
    query = selected_query(profile, profile.units[1:])
    ranks = {profile.groups.top(profile.lanes[number].group)
             for number, rows in enumerate(rows_by_lane(query)) if row_count(rows)}  # fmt: skip
    assert ranks == {profile.groups.top(profile.units[1])}
    assert any(lane.on_host and lane.group not in profile.groups.within(profile.units[1])
               for lane in selected_profile(query).lanes)  # fmt: skip


@pytest.mark.parametrize("name", [*TRACES, "aksv_cdma"])
def test_no_unit_is_no_figure(name, tmp_path):
    profile = open_profile(SAMPLES / name)
    job = Job(tmp_path, frozenset(("xlsx", "web")), query_of(profile), document_units=frozenset())
    assert all(file.size for file in run_export(job))
    page = page_of(job.document_query, tmp_path)
    assert page.record["figures"] == []
    assert not answer(view_of(profile.vocabulary, "operations"), job.document_query).tables


def test_a_page_without_device_has_the_lanes_and_names_of_the_host(tmp_path):
    page = page_of(query_of(open_profile(SAMPLES / "torch_cpu_recorded")), tmp_path)
    assert {"lanes", "operations"} <= {each["id"] for each in page.record["views"]}


@pytest.mark.parametrize("name", TRACES)
def test_the_chart_of_several_workers_has_each_name_once_with_the_work_of_all(name, charts):
    header, *rows = charts(name)
    place = header.index("Work (us)")
    bars = [row[place - 1 : place + 1] for row in rows if row[place] is not None]
    table = ask(open_profile(SAMPLES / name), "kernels").table("by_name")
    sums: dict[str, int] = {}
    for kernel, total in zip(table.column("name"), table.column("total_us"), strict=True):
        sums[kernel] = sums.get(kernel, 0) + total
    assert len(sums) < len(table)
    assert dict(bars) == pytest.approx({kernel: total / 1000 for kernel, total in sums.items()})
    assert len(bars) == len(sums)
    assert header[place - 1] == "Name"


def test_the_chart_of_busy_time_stacks_no_lanes_that_describe_others(charts):
    header, row, *_ = charts("ascend_synthetic")
    place = header.index("NPU")
    assert header[place : place + 4] == ("NPU", "Stream (us)", "Communication (us)", None)
    busy = ask(open_profile(SAMPLES / "ascend_synthetic"), "units").table("units").column("busy_us")[0] / 1000
    assert sum(row[place + 1 : place + 3]) == pytest.approx(busy)


@pytest.mark.parametrize(
    ("name", "word"), [("torch_cpu_recorded", "Process"), ("torch_cuda_synthetic", "GPU"), ("ascend_synthetic", "NPU")]
)
def test_the_chart_of_busy_time_names_what_its_rows_are(name, word, charts):
    assert next(filter(None, charts(name)[0])) == word


@pytest.mark.parametrize(
    ("name", "file", "streamed"),
    [("torch_cuda_synthetic", "profile.xlsx", True), ("aksv_cdma", "PerfDoc/PerfAI_output.xlsx", False)],
)
def test_a_sheet_of_too_many_rows_says_how_many_are_left_out(name, file, streamed, tmp_path, monkeypatch):
    monkeypatch.setattr(as_sheet, "MOST_SHOWN", 50)
    monkeypatch.setattr(book_module, "_STREAMED_FROM", 10 if streamed else 2000)
    profile = open_profile(SAMPLES / name)
    run_export(Job(tmp_path, frozenset(("xlsx",)), query_of(profile)))
    sheet = openpyxl.load_workbook(tmp_path / file)["Parts of the path"]
    rows = list(sheet.iter_rows(min_row=2, values_only=True))
    table = next(each for each in ask(profile, "critical_path").tables if each.title == "Parts of the path")
    assert len(rows) == 51
    assert rows[-1][0] == f"{len(table) - 50:,} more rows are not in this sheet, but in tpuprof report."
    assert not any(rows[-1][1:])
    assert isinstance(rows[49][0], float | int)


def test_all_files_of_a_range_have_one_total_and_the_rows_that_reports_count(tmp_path):
    profile = open_profile(SAMPLES / "aks_decode_mode2")
    length = profile.end_ns - profile.start_ns
    start, end = profile.start_ns + length // 4, profile.start_ns + length * 3 // 5
    selection, query = {"start": start, "end": end}, query_of(profile, range=(start, end))
    run_export(Job(tmp_path, frozenset(("xlsx", "summary")), selected_query(profile, **selection)))
    page = page_of(selected_query(profile, **selection), tmp_path).record
    total = end - start
    assert ask(profile, "overview", range=(start, end)).figure("total_us") == total
    assert set(ask(profile, "published", range=(start, end)).table("published").column("total_us")) == {total}
    assert page["length"] == total
    assert {row["cells"][2] for row in page["summary"]["rows"]} == {f"{total / 1000:.3f}"}
    text = (tmp_path / "summary.txt").read_text()
    header, *rows = [line.split("|") for line in text.splitlines()[3:] if "|" in line]
    place = [cell.strip() for cell in header].index("totalTime(us)")
    assert rows[0][place].strip() == f"{total / 1000:.3f}"
    lanes = answer(view_of(profile.vocabulary, "lanes"), query).table("lanes")
    assert page["total"] == sum(lanes.column("count"))
    busy = dict(zip(lanes.column("lane"), lanes.column("busy_us"), strict=True))
    assert {lane["title"]: lane["busy"] for lane in page["lanes"]} == {
        title: time for title, time in busy.items() if title in {lane["title"] for lane in page["lanes"]}
    }


def test_a_workbook_of_some_cores_lists_no_others(tmp_path):
    profile = open_profile(SAMPLES / "aksv_cdma")
    units = frozenset(profile.units[:2])
    run_export(Job(tmp_path, frozenset(("xlsx",)), selected_query(profile, units=units)))
    sheet = openpyxl.load_workbook(tmp_path / "PerfDoc/PerfAI_output.xlsx")["Engines"]
    header, *rows = sheet.iter_rows(values_only=True)
    titles = {profile.groups.title(unit) for unit in profile.units} - {profile.groups.title(unit) for unit in units}
    assert rows
    assert not [row for row in rows if any(str(row[0]).startswith(title) for title in titles)]
    # what the ports count is what these cores submitted, in rows and in figures
    total = sum(map(row_count, rows_by_lane(selected_query(profile, units))))
    assert sum(row[header.index("Count")] for row in rows) == total
