"""What a comparison of answers finds: each planted difference at its place, in every form, and nothing else."""

from __future__ import annotations

import io
import json
import zipfile

import pyarrow
import pyarrow.parquet
import pytest
from contents import content, differences
from equal import compared, figure_of

REPORT = {"views": {"units": {"workers": {"a.b": {"figures": {"load": 0.5}, "tables": {"units": {
    "columns": [{"key": "unit", "title": "Core"}, {"key": "busy_us", "title": "Busy", "unit": "us"}],
    "rows": [["Core 0", 1], ["Core 1", None]], "total_rows": 2}}}}}}}  # fmt: skip


def parquet(**columns) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()


def found(form: str, before: bytes, after: bytes) -> list:
    return list(differences(content(form, before), content(form, after), lines=form == "txt"))


def test_a_cell_of_a_table_of_json():
    changed = json.loads(json.dumps(REPORT))
    changed["views"]["units"]["workers"]["a.b"]["tables"]["units"]["rows"][1][1] = 0
    ((place, old, new, differing, of),) = found("json", json.dumps(REPORT).encode(), json.dumps(changed).encode())
    assert figure_of(place) == "units.units.busy_us"
    assert (old, new, differing, of) == ("row 1: None", "row 1: 0", 1, 2)


@pytest.mark.parametrize(
    ("form", "before", "after", "place", "old", "new"),
    [
        ("json", b'{"a": {"b": 1}}', b'{"a": {"b": true}}', ("a", "b"), "1", "True"),
        ("json", b'{"a": 1}', b'{"c": 1}', ("a",), "1", "'(none)'"),
        ("jsonl", b'{"a": 1}\n{"a": 2}', b'{"a": 1}', ("a",), "row 1: 2", "(none)"),
        ("csv", b"a,b\n1,2\n", b"a,b\n1,3\n", ("b",), "row 0: '2'", "row 0: '3'"),
        ("parquet", parquet(a=[1, None]), parquet(a=[1, 0]), ("a (int64)",), "row 1: None", "row 1: 0"),
        ("txt", b"# Units: a\nx\ny\n", b"# Units: a\nnew\nx\nz\n", ("Units",), "y", "new"),
    ],
)
def test_each_form(form, before, after, place, old, new):
    first = found(form, before, after)[0]
    assert (first[0], first[1], first[2]) == (place, old, new)
    assert not found(form, before, before)


def test_zero_is_zero_and_nan_is_nan():
    assert not found("json", b'{"a": 0, "b": NaN}', b'{"a": 0.0, "b": NaN}')


def test_recordings_differ_by_command_and_selection(tmp_path):
    for name, value in (("base", 1), ("tree", 2)):
        with zipfile.ZipFile(tmp_path / name, "w") as package:
            package.writestr("report --json|whole|json", json.dumps({"same": 1}))
            package.writestr("report --json|range|json", json.dumps({"views": {"a": {"figures": {"b_us": value}}}}))
            package.writestr("selections.json", str(value))
            if name == "tree":
                package.writestr("info|whole|txt", "new")
            else:
                package.writestr("export|whole|xlsx", "no workbook")
    seen = list(compared(tmp_path / "base", tmp_path / "tree"))
    assert [(command, selection, figure_of(place)) for command, selection, place, *_ in seen] == [
        ("report --json", "range", "a.b_us"), ("export", "whole", "(all)"), ("info", "whole", "(all)"),
    ]  # fmt: skip
    assert seen[0][3:] == ("1", "2", 1, 1)
