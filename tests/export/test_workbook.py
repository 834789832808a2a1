from __future__ import annotations

import numpy as np
import openpyxl
import pandas
import pytest
from converter import converted, needs_converter
from kept import kept_profile, unpacked
from profiles import make_lane, make_profile, small_profile
from workbook_reading import expected, header_row, stream_order, table_of, written

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.model import INT_MISSING, Role, Severity
from tpuprof_tui.sources.sophgo.files import lane_rows as workbook_lanes
from tpuprof_tui.sources.sophgo.files import workbook
from tpuprof_tui.sources.sophgo.files.lane_rows import DMA_COLUMNS, TIU_COLUMNS
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook


def sheet_name(profile, lane):
    return f"{lane.kind}_{profile.number_of(lane)}"


def check_rows(profile, book):
    cells = 0
    for lane in profile.lanes:
        names, rows = table_of(book[sheet_name(profile, lane)])
        assert len(rows) == len(lane)
        for place, (row, held) in enumerate(zip(stream_order(lane), rows, strict=True)):
            for name, value in zip(names, held, strict=True):
                wanted = expected(profile, lane, name, row, place)
                assert value == wanted, (profile.title_of(lane), name, place)
                assert isinstance(value, str) == isinstance(wanted, str), (profile.title_of(lane), name, place)
                cells += value is not None
    return cells


@pytest.fixture(scope="module")
def small():
    return small_profile(1)


@pytest.fixture(scope="module")
def small_path(small, tmp_path_factory):
    """The workbook of the small profile as a file."""
    folder = tmp_path_factory.mktemp("small")
    written(small, folder)
    return folder / "book.xlsx"


@pytest.fixture(scope="module")
def small_book(small_path):
    """The workbook of the small profile, read by openpyxl; no test changes it."""
    return openpyxl.load_workbook(small_path)


def skimmed(profile, folder):
    """The workbook of a profile, of which only the sheets that are asked for are read: values, no looks."""
    write_workbook(query_of(profile), folder / "book.xlsx")
    return openpyxl.load_workbook(folder / "book.xlsx", read_only=True)


@pytest.mark.parametrize("mode", [0, 2])
def test_every_cell_holds_what_the_model_holds(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "SLICE", 70)
    monkeypatch.setattr(workbook_lanes, "SLICE", 50)
    profile = small_profile(mode)
    assert check_rows(profile, written(profile, tmp_path)) > 9_000


def test_every_cell_of_mode_1_holds_what_the_model_holds(small, small_book):
    assert check_rows(small, small_book) > 9_000


@pytest.mark.parametrize("name", ["aks_zoo_mode2", "aks_des_kv", "aksv_rvt"])
def test_every_cell_of_a_capture_holds_what_the_model_holds(name, tmp_path):
    profile = kept_profile(name, tmp_path)
    few = profile.lanes[:3] if name == "aks_zoo_mode2" else profile.lanes[:2]
    profile = make_profile(few, strings=profile.strings, mode=profile.source_data["mode"], scopes=profile.scopes)
    assert check_rows(profile, written(profile, tmp_path)) > 5_000


def test_sheets_are_those_of_the_reference_and_then_ours(small_book):
    assert small_book.sheetnames == [
        "Engine Summary", "TIU_0", "GDMA_0", "SDMA_0", "TIU_1", "GDMA_1", "SDMA_1", "CDMA_0", "CDMA_1",
        "Charts", "Overview", "Notes", "Cores", "Engines", "Kinds of engines, sums", "Batches",
        "What repeats", "Operations", "Call paths", "Kernel functions by launch", "Findings",
        "Kernel functions on the path", "Operations on the path",
        "Engines of the path", "Longest instructions not on the", "Parts of the path", "Durations of work", "Problems",
    ]  # fmt: skip


def test_columns_are_those_of_the_reference_and_then_what_it_drops(small_book):
    names, rows = table_of(small_book["TIU_0"])
    assert names[:90] == list(TIU_COLUMNS)
    assert names[90:] == ["kernel_func", "func_scope_id", "batch_launch", "mode", "type", "engine", "extra_info"]
    assert [row[2] for row in rows] == list(range(len(rows)))  # global idx in column C
    names, _ = table_of(small_book["CDMA_0"])
    assert names[:55] == list(DMA_COLUMNS)
    assert names[55:] == ["kernel_func", "func_scope_id", "batch_launch", "mode", "Port", "from_addr", "to_addr",
                          "gmem_xact_cnt"]  # fmt: skip


def test_blocks_lie_where_the_reference_has_them(tmp_path, small_book):
    profile = kept_profile("aks_mode1", tmp_path)
    book = skimmed(profile, tmp_path)
    tiu, gdma, summary = book["TIU_0"], book["GDMA_0"], book["Engine Summary"]
    assert (tiu["A1"].value, tiu["A2"].value, tiu["A6"].value) == ("Performance", "Summary", "Statistics")
    assert [cell.value for cell in tiu[1]][1:7] == [
        "totalTiuCycle", "totalAlgCycle", "algTotalOps", "totalUArchOps", "uArchURate", "waitMsgTotalTime"]  # fmt: skip
    assert [cell.value for cell in tiu[2]][1:7] == [92071, 0, 405, 405, 1, 88497]
    assert (tiu["O1"].value, tiu["P1"].value, tiu["Z1"].value) == ("Detail Spec", "Platform", "TPU Lmem Size(MiB)")
    assert [cell.value for cell in tiu[2]][15:26] == [
        "ASIC", "AKS", "8", "64", "64", "4", "64", "1000", "1000", "8533", "16"]  # fmt: skip
    assert (tiu["O4"].value, tiu["P4"].value, tiu["Q4"].value) == ("Description", "Field", "Description")
    assert {str(cells) for cells in small_book["TIU_0"].merged_cells.ranges} == {"Q5:AD5", "Q6:AD6", "Q7:AD7"}
    assert [cell.value for cell in tiu[7]][1:12] == [
        "arith/SEG", 162, 162, 0.4, 0, 0, 162, 1, 0.4, 6041, 0.0656]  # fmt: skip
    assert [cell.value for cell in tiu[15]][1:12] == ["Overall", 405, 405, 1, 0, 1, 405, 1, 1, 92071, 1]
    assert header_row(tiu) == 9 + 8
    assert [cell.value for cell in gdma[2]][2:11] == [
        576571, 576571, 27366, 0.0418, 28172800, 245760, 49.27, 57.27, 78540]  # fmt: skip
    assert header_row(gdma) == 6
    assert summary["A1"].value == "Platform: AKS"
    assert [cell.value for cell in summary[6]][:5] == [0, 0.1323, 0.9608, -0.2967, 695.956]
    assert [cell.value for cell in summary[14]] == [
        "Overall", 0.1423, 1.0468, 0.3289, 695.956, 99.021, 0, 3080, 3080, 1, 629.503, 212.94, 1.88, 46.98, 54.15,
        0, 0, 0, 0, 0, 0, 0, 0]  # fmt: skip
    assert (summary["A18"].value, summary["A25"].value) == ("Field", "uArch Urate")


def test_cdma_counts_for_the_core_that_submitted_it(tmp_path):
    profile = kept_profile("aks_cdma", tmp_path)
    summary = skimmed(profile, tmp_path)["Engine Summary"]
    ports = [lane for lane in profile.lanes if lane.kind == "CDMA"]
    for row in range(6, 14):
        core = summary.cell(row, 1).value
        cycles = sum(int(lane["cycles"][(lane["core"] == core) & (lane["role"] != Role.WAIT)].sum()) for lane in ports)
        assert summary.cell(row, 19).value == cycles
    assert sum(summary.cell(row, 20).value for row in range(6, 14)) == sum(
        int(lane["bytes"][lane["role"] == Role.WORK].sum()) for lane in ports
    )
    assert summary.cell(14, 20).value == pytest.approx(2.53)


def test_pandas_reads_the_rows(small, small_path):
    profile = small
    lane = profile.lane("GDMA", 1)
    table = pandas.read_excel(small_path, sheet_name="GDMA_1", header=5)
    assert table["Start Time(ns)"].tolist() == lane["start"].tolist()
    assert table["DMA data size(B)"].tolist() == lane["bytes"].tolist()
    assert table["kernel_func"].tolist() == profile.strings["kernel"].texts(lane["kernel"])


def test_headers_are_frozen_and_filtered(tmp_path):
    profile = small_profile(2, event_count=150)
    book = written(profile, tmp_path)
    for lane in profile.lanes:
        sheet = book[sheet_name(profile, lane)]
        first = header_row(sheet)
        last = openpyxl.utils.get_column_letter(sheet.max_column)
        assert sheet.freeze_panes == f"A{first + 1}"
        assert sheet.auto_filter.ref == f"A{first}:{last}{first + len(lane)}"
    tabs = {"TIU_0": "008000", "GDMA_0": "FFA500", "SDMA_0": "D0CECE", "CDMA_0": "C0504D", "Engine Summary": "FFC7CE"}
    assert {name: book[name].sheet_properties.tabColor.rgb for name in tabs} == {
        name: f"FF{tab}" for name, tab in tabs.items()
    }


def test_cells_look_as_in_the_reference(small_book):
    book = small_book
    sheet = book["GDMA_0"]
    looks = [(sheet["C1"], "548235", "FFFFFF", "Calibri"), (sheet["A6"], "305496", "FFFFFF", "Calibri"),
             (sheet["A7"], "FCE4D6", "000000", "等线"), (sheet["R7"], "FCE4D6", "000000", "等线")]  # fmt: skip
    for cell, fill, colour, font in looks:
        assert (cell.fill.fgColor.rgb, cell.font.color.rgb, cell.font.name) == (f"FF{fill}", f"FF{colour}", font)
        assert cell.font.b
        assert cell.font.sz == 10
    assert sheet["A7"].border.left.style == "thin"
    assert sheet["J7"].number_format == "#,##0"
    assert sheet["F2"].number_format == "0.00%"
    assert book["TIU_0"].cell(header_row(book["TIU_0"]) + 1, 16).number_format == "0.0%"
    widths = {letter: sheet.column_dimensions[letter].width for letter in "AGI"}
    assert all(7 <= width <= 90 for width in widths.values())
    assert widths["I"] > len("DMA data size(B)")


@pytest.mark.parametrize(("title", "shown", "least"), [("TIU_0", 30, 50), ("GDMA_0", 20, 30)])
def test_columns_without_values_fold_away(small_book, title, shown, least):
    book = small_book
    names, rows = table_of(book[title])
    hidden = []
    for dimension in book[title].column_dimensions.values():
        if dimension.hidden:
            hidden += range(dimension.min, dimension.max + 1)
            assert dimension.outlineLevel == 1
    empty = [place for place in range(shown + 1, len(names) + 1) if all(row[place - 1] is None for row in rows)]
    assert sorted(hidden) == empty
    assert len(empty) >= least
    assert not any(dimension.hidden for dimension in book["Engine Summary"].column_dimensions.values())


def test_idle_cores_have_no_sheets(tmp_path):
    profile = kept_profile("aks_idle_core", tmp_path)
    book = skimmed(profile, tmp_path)
    busy = {profile.unit_number(lane) for lane in profile.lanes if len(lane)}
    assert busy < set(profile.groups.numbers)
    assert {int(name.split("_")[1]) for name in book.sheetnames if "_" in name} == busy
    assert [book["Engine Summary"].cell(row, 1).value for row in range(6, 7 + len(busy))] == [*sorted(busy), "Overall"]


def test_what_is_chosen_is_what_is_written_and_added_up(tmp_path):
    profile = small_profile(1)
    middle = (profile.start_ns + profile.end_ns) // 2
    book = written(profile, tmp_path, units=frozenset({1}), start=middle)
    assert [name for name in book.sheetnames if "_" in name] == ["TIU_1", "GDMA_1", "SDMA_1"]
    lane = profile.lane("TIU", 1)
    chosen = lane["start"] >= middle
    names, rows = table_of(book["TIU_1"])
    assert [row[2] for row in rows] == lane["order"][chosen].tolist()
    assert book["TIU_1"]["B2"].value == int(lane["cycles"][chosen & (lane["role"] != Role.WAIT)].sum())
    # the mean of recent commands is that of the stream, not of what is chosen
    first = stream_order(lane).index(int(np.flatnonzero(chosen)[0]))
    wanted = expected(profile, lane, "Avg Cycle Last 200", int(np.flatnonzero(chosen)[0]), first)
    assert rows[0][names.index("Avg Cycle Last 200")] == wanted


def test_rows_come_in_the_order_of_the_stream(tmp_path):
    order = np.array([2, 0, 3, 1])
    lane = make_lane("GDMA", 0, starts=np.arange(4) * 10, ends=np.arange(4) * 10 + 3, order=order,
                     cycles=np.full(4, 4), command_id=order + 1, bytes=np.full(4, 64))  # fmt: skip
    names, rows = table_of(written(make_profile([lane]), tmp_path)["GDMA_0"])
    assert [row[2] for row in rows] == [0, 1, 2, 3]
    assert [row[names.index("Start Time(ns)")] for row in rows] == [10, 30, 0, 20]


def test_kernel_functions_are_added_up_over_their_launches(small, small_book):
    profile = small
    sheet = small_book["Kernel functions by launch"]
    names = [cell.value for cell in sheet[1]]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in sheet.iter_rows(min_row=2, values_only=True)}
    for code, kernel in enumerate(profile.strings["kernel"]):
        count = tiu = size = 0
        spans = {}
        for lane in profile.lanes:
            for row in np.flatnonzero(lane["kernel"] == code).tolist():
                start, end, works = int(lane["start"][row]), int(lane["end"][row]), lane["role"][row] == Role.WORK
                count += 1
                tiu += (end - start) * works * (lane.kind == "TIU")
                size += int(lane["bytes"][row]) * works if "bytes" in lane else 0
                scope = int(lane["scope"][row])
                known = spans.get(scope, (start, end))
                spans[scope] = (min(known[0], start), max(known[1], end))
        if not count:
            assert kernel not in rows
            continue
        lengths = [end - start for start, end in spans.values()]
        held = rows[kernel]
        assert (held["Instructions"], held["Launches"], held["Moved (B)"]) == (count, len(lengths), size)
        assert held["TIU (us)"] == pytest.approx(tiu / 1000)
        assert held["Total (us)"] == pytest.approx(sum(lengths) / 1000)
        assert held["Min (us)"] == pytest.approx(min(lengths) / 1000)
        assert held["Max (us)"] == pytest.approx(max(lengths) / 1000)
    totals = [row["Total (us)"] for row in rows.values()]
    assert totals == sorted(totals, reverse=True)


def test_without_kernel_functions_there_is_no_sheet_of_them(tmp_path):
    profile = small_profile(0, event_count=60)
    assert "Kernel functions by launch" not in skimmed(profile, tmp_path).sheetnames


def test_problems_are_listed(small, small_book):
    profile = small
    sheet = small_book["Problems"]
    rows = list(sheet.iter_rows(min_row=2, values_only=True))
    ranked = sorted(profile.problems, key=lambda problem: -problem.severity)
    assert [row[0] for row in rows] == [problem.severity.word for problem in ranked]
    assert [row[5] for row in rows] == [problem.what for problem in ranked]
    assert rows[0][1:5] == ("cdmlib_1.profile", 77, "Core 1 GDMA", 3)
    assert {Severity.NOTE.word, Severity.ERROR.word} < {row[0] for row in rows}


def test_a_profile_without_instructions_is_a_workbook_too(tmp_path):
    book = written(make_profile([], cores=[0, 1]), tmp_path)
    assert book.sheetnames == ["Engine Summary", "Overview", "Notes", "Cores", "Problems"]


def test_unknown_submitters_are_empty_and_count_over_all(tmp_path):
    lane = make_lane("CDMA", 2, starts=[0, 10], ends=[5, 30], core=np.array([INT_MISSING, 0]),
                     cycles=np.array([6, 21]), bytes=np.array([100, 200]), command_id=np.array([1, 2]))  # fmt: skip
    book = written(make_profile([lane], cores=[0]), tmp_path)
    assert [row[1] for row in table_of(book["CDMA_2"])[1]] == [None, 0]
    summary = book["Engine Summary"]
    assert [summary.cell(row, 20).value for row in (6, 7)] == [200, pytest.approx(300 / 2**20, abs=0.01)]
    assert summary.cell(6, 19).value == 21


def plain(value):
    """A cell of the reference as a number where it shows one."""
    if not isinstance(value, str):
        return value
    shown = value.removesuffix("(us)").removesuffix("MiB")
    try:
        return round(float(shown[:-1]) / 100, 6) if shown.endswith("%") else float(shown)
    except ValueError:
        return value


@pytest.mark.reference
@needs_converter
@pytest.mark.parametrize("name", ["aks_mode1", "aks_mode2", "aks_sdma", "aks_cdma"])
def test_cells_are_those_of_the_reference(name, tmp_path):
    capture = unpacked(name, tmp_path)
    converted(capture, tmp_path / "out", "--enable_doc")
    write_workbook(query_of(open_profile(capture)), tmp_path / "book.xlsx")
    ours = openpyxl.load_workbook(tmp_path / "book.xlsx")
    theirs = openpyxl.load_workbook(tmp_path / "out" / "PerfDoc" / "out.xlsx")
    cdma = any(title.startswith("CDMA") for title in theirs.sheetnames)
    assert ours.sheetnames[: len(theirs.sheetnames)] == theirs.sheetnames
    compared = 0
    for sheet in theirs:
        for row in sheet.iter_rows():
            for cell in row:
                # explanations are in our own words
                text = isinstance(cell.value, str) and len(cell.value) > 45
                # they count the first port alone, for the last core
                if cell.value is None or text or (cdma and sheet.title == "Engine Summary" and cell.column >= 19):
                    continue
                held = ours[sheet.title][cell.coordinate].value
                assert plain(held) == pytest.approx(plain(cell.value)), (sheet.title, cell.coordinate)
                compared += 1
    assert compared > 90_000


def test_charts_show_figures_of_the_sheets(small, small_book):
    profile = small
    sheet = small_book["Charts"]
    assert len(sheet._charts) == 3
    headers = [cell.value for cell in sheet[1]]
    first = headers.index("Core") + 1
    assert headers[first - 1 : first + 4] == ["Core", "TIU (us)", "GDMA (us)", "SDMA (us)", "CDMA (us)"]
    lane = profile.lane("TIU", 0)
    works = lane["role"] == Role.WORK
    assert sheet.cell(2, first + 1).value == pytest.approx((lane["end"] - lane["start"])[works].sum() / 1000)


def test_sheets_lead_to_one_another_and_print_on_a_page_s_width(small, small_book):
    book = small_book
    assert book["Engine Summary"]["A6"].hyperlink.location == "'TIU_0'!A1"
    assert book["GDMA_1"]["A1"].hyperlink.location == "'Engine Summary'!A1"
    sheet = book["TIU_0"]
    first = header_row(sheet)
    assert (sheet.page_setup.orientation, sheet.print_title_cols) == ("landscape", "$A:$D")
    assert sheet.print_title_rows == f"${first}:${first}"
    marked = {str(cells.sqref): rule[0].type for cells, rule in sheet.conditional_formatting._cf_rules.items()}
    last = first + len(small.lane("TIU", 0))
    assert marked == {f"J{first + 1}:J{last}": "dataBar", f"P{first + 1}:P{last}": "colorScale"}


def test_long_tables_of_views_hold_the_same_as_short_ones(tmp_path, monkeypatch):
    from tpuprof_tui.formats.xlsx import book as xlsx

    profile = small_profile(1, event_count=150)
    short = written(profile, tmp_path)
    monkeypatch.setattr(xlsx, "_STREAMED_FROM", 1)
    long = written(profile, tmp_path)
    for name in short.sheetnames[short.sheetnames.index("Overview") :]:
        one, other = (list(book[name].iter_rows(values_only=True)) for book in (short, long))
        for row, same in zip(one, other, strict=True):
            assert same == pytest.approx(row, abs=1e-4), name
            assert [type(cell) is bool for cell in same] == [type(cell) is bool for cell in row], name
        assert long[name].auto_filter.ref == short[name].auto_filter.ref
