"""Workbooks of what is hostile, too large or too long, and what becomes of one that cannot be written."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import openpyxl
import pytest
from profiles import Texts, big_profile, make_lane, make_profile, small_profile
from workbook_reading import header_row, parts_of, table_of, written

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.formats.xlsx import book as workbook_book
from tpuprof_tui.model import Scopes
from tpuprof_tui.sources.sophgo.files import workbook
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook


def test_long_lanes_go_on_in_numbered_sheets(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "SHEET_ROWS", 60)
    profile = small_profile(1, event_count=1000)
    book = written(profile, tmp_path)
    lane = profile.lane("GDMA", 0)
    titles = [name for name in book.sheetnames if name.startswith("GDMA_0")]
    assert titles == ["GDMA_0", "GDMA_0 (2)", "GDMA_0 (3)"]
    tables = [table_of(book[title]) for title in titles]
    assert all(book[title].max_row <= 60 for title in titles)
    assert [row[2] for _, rows in tables for row in rows] == lane["order"].tolist()
    assert tables[0][0] == tables[2][0]
    # totals are over the whole lane on each of them
    assert len({book[title]["C2"].value for title in titles}) == 1


HOSTILE = [
    "=HYPERLINK(\"http://example.invalid\",\"x\")", "+1+1", "-2+3", "@SUM(A1)", "</t></si><script>alert(1)</script>",
    "a&b<c>\"d'", "nul\x00bell\x07escape\x1b[31m", "line\nend\r\ttab", "half \ud800 pair", "no \ufffe\uffff character",
    "_x0041_", "  spaces around  ", "注意力\u202eevil", "x" * 40_000, "'quoted", "",
]  # fmt: skip


def hostile_profile():
    texts = Texts()
    count = len(HOSTILE)
    codes = {key: texts.codes(key, HOSTILE) for key in ("name", "type", "kernel")}
    lane = make_lane(
        "TIU", 0, starts=np.arange(count) * 10, ends=np.arange(count) * 10 + 5, **codes,
        cycles=np.full(count, 6), command_id=np.arange(1, count + 1), scope=np.arange(count),
        engine_id=np.zeros(count, np.int64),
    )  # fmt: skip
    scopes = Scopes(codes["kernel"], np.zeros(count, np.int32))
    return make_profile([lane], strings=texts.build(), scopes=scopes)


def test_names_of_sheets_are_those_of_series_without_their_control_characters(tmp_path):
    trace = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]
    trace += [{"ph": "C", "name": "=\x1b[1m\ufffe/x", "pid": 0, "ts": time, "args": {"a": time}} for time in (1, 2)]
    path = tmp_path / "counters.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": trace}))
    assert main(["export", str(path), str(tmp_path / "out"), "--only", "xlsx"]) == 0
    (file,) = (tmp_path / "out").glob("*.xlsx")
    assert any("1m" in title for title in openpyxl.load_workbook(file).sheetnames)


def test_texts_of_a_capture_stay_texts(tmp_path):
    book = written(hostile_profile(), tmp_path)
    for sheet in book:
        for row in sheet.iter_rows():
            assert all(cell.data_type in ("n", "s", "b", "inlineStr") for cell in row)
    names, rows = table_of(book["TIU_0"])
    shown = [row[names.index("Function Name")] for row in rows]
    assert shown[:6] == HOSTILE[:6]
    assert shown[6] == "nul\\x00bell\\x07escape\\x1b[31m"
    assert shown[7] == "line\\x0aend\\x0d\\x09tab"
    assert shown[8] == "half \\ud800 pair"
    assert shown[9] == "no \ufffd\ufffd character"
    assert shown[10] in ("_x0041_", "_x005F_x0041_")  # openpyxl does not read the escape of an underscore back
    assert shown[11] == "  spaces around  "
    assert "\u202e" not in shown[12]
    assert len(shown[13]) == 32_767
    assert shown[15] is None
    first = header_row(book["TIU_0"]) + 1
    quoted = [book["TIU_0"].cell(first + place, 8).quotePrefix for place in range(6)]
    assert [bool(mark) for mark in quoted] == [True] * 4 + [False] * 2
    assert "_x005F_x0041_" in parts_of(tmp_path / "book.xlsx")["xl/worksheets/sheet2.xml"].decode()


def test_hostile_kernels_have_their_rows_among_the_statistics(tmp_path):
    kernels = written(hostile_profile(), tmp_path)["Kernel functions by launch"]
    assert {kernels.cell(row, 1).value for row in range(2, kernels.max_row + 1)} >= set(HOSTILE[:6])


def test_numbers_that_no_spreadsheet_holds_exactly_are_texts(tmp_path):
    large = [1, 2**53, 2**53 + 1, 2**63 - 1, -(2**53) - 1]
    lane = make_lane("GDMA", 0, starts=np.arange(5), ends=np.arange(5) + 1, bytes=np.array(large), stall=np.zeros(5),
                     cycles=np.ones(5, np.int64), command_id=np.arange(1, 6))  # fmt: skip
    names, rows = table_of(written(make_profile([lane]), tmp_path)["GDMA_0"])
    assert [row[names.index("DMA data size(B)")] for row in rows] == [1, 2**53, *map(str, large[2:])]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_no_row_is_longer_than_was_reckoned_with(mode, tmp_path, monkeypatch):
    reckoned = []
    real = workbook._longest_row
    monkeypatch.setattr(workbook, "_longest_row", lambda *known: reckoned.append(real(*known)) or reckoned[-1])
    write_workbook(query_of(small_profile(mode)), tmp_path / "book.xlsx")
    parts = parts_of(tmp_path / "book.xlsx")
    for number, most in enumerate(reckoned, 2):
        rows = parts[f"xl/worksheets/sheet{number}.xml"].split(b"<row ")
        # the number of a last row has six digits more, in every cell
        lengths = [len(row) + 6 * row.count(b"<c ") for row in rows[-20:]]
        assert 0 < max(lengths) <= most


def test_sheets_beyond_the_limit_of_plain_zip_are_readable(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook_book, "_LARGE", 1000)
    profile = small_profile(1)
    assert table_of(written(profile, tmp_path)["GDMA_0"])[1][0][2] == 0


def test_progress_rises_to_the_end(tmp_path):
    seen = []
    count = write_workbook(query_of(small_profile(1)), tmp_path / "book.xlsx", progress=seen.append)
    assert count == small_profile(1).event_count
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) > 5


def test_the_file_is_the_same_each_time(tmp_path):
    write_workbook(query_of(small_profile(2)), tmp_path / "one.xlsx")
    write_workbook(query_of(small_profile(2)), tmp_path / "two.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workbook, "cell_field", full)
    with pytest.raises(WriteError, match="no space left"):
        write_workbook(query_of(small_profile(1)), tmp_path / "book.xlsx")
    assert os.listdir(tmp_path) == []


def test_the_file_can_be_read_by_others(tmp_path):
    write_workbook(query_of(small_profile(1)), tmp_path / "book.xlsx")
    assert stat.S_IMODE((tmp_path / "book.xlsx").stat().st_mode) & 0o400


def test_many_rows_take_no_more_memory_than_a_slice(tmp_path, monkeypatch):
    import tracemalloc

    # sheets of views are bounded by their own number of rows
    monkeypatch.setattr(workbook._Workbook, "_views", lambda self: None)

    profile = big_profile(70_000, cores=1, engines=("GDMA",))
    tracemalloc.start()
    write_workbook(query_of(profile), tmp_path / "book.xlsx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = sum(len(part) for part in parts_of(tmp_path / "book.xlsx").values())
    assert size > 90_000_000
    assert peak < size / 3
