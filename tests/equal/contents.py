"""What recorded answers hold, by place, and what differs between two of them: by values and cells, not by bytes.

A place is a tuple of texts: the keys of JSON down to a value, a table and its column, a sheet and its column, a track,
a heading of a text. What is at a place is a plain value, or a list of the values of a column.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Place = tuple[str, ...]
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_ABSENT = "(none)"


def content(form: str, body: bytes) -> dict[Place, Any]:
    """What an answer holds, by place."""
    if not body:
        return {}
    return {
        "json": lambda: dict(_json_places((), json.loads(body))),
        "jsonl": lambda: dict(_record_places((), [json.loads(line) for line in body.splitlines()])),
        "csv": lambda: _csv(body), "parquet": lambda: _parquet(body), "xlsx": lambda: _workbook(body),
        "html": lambda: _page(body), "pftrace": lambda: _trace(body), "txt": lambda: _text(body),
    }[form]()  # fmt: skip


def differences(
    before: dict[Place, Any], after: dict[Place, Any], *, lines: bool = False
) -> Iterator[tuple[Place, str, str, int, int]]:
    """Yields places that differ: the place, an example of both values, and how many of how many values differ.

    With ``lines`` columns are lines of text: one that is new does not make the lines below it differ.
    """
    for place in dict.fromkeys((*before, *after)):
        old, new = before.get(place, _ABSENT), after.get(place, _ABSENT)
        if not (isinstance(old, list) and isinstance(new, list)):
            if not _same(old, new):
                shown = (f"{len(each)} values" if isinstance(each, list) else repr(each) for each in (old, new))
                yield place, *shown, 1, 1
        elif lines:
            more, less = (list((Counter(a) - Counter(b)).elements()) for a, b in ((old, new), (new, old)))
            if more or less:
                yield (
                    place,
                    *(each[0] if each else _ABSENT for each in (more, less)),
                    max(len(more), len(less)),
                    len(old),
                )
        elif rows := [row for row, (a, b) in enumerate(zip_longest(old, new, fillvalue=_ABSENT)) if not _same(a, b)]:
            row = rows[0]
            shown = (f"row {row}: {column[row]!r}" if row < len(column) else _ABSENT for column in (old, new))
            yield place, *shown, len(rows), max(len(old), len(new))


def _same(a: Any, b: Any) -> bool:
    # 0 and 0.0 are written differently, but are one number; NaN is itself; true is not 1
    return isinstance(a, bool) == isinstance(b, bool) and (a == b or (a != a and b != b))


def _json_places(place: Place, value: Any) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict):
        columns, rows = value.get("columns"), value.get("rows")
        if isinstance(columns, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
            yield from _table_places(place, value)
            return
        for key, each in value.items():
            yield from _json_places((*place, key), each)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield from _record_places(place, value)
    else:
        yield place, value


def _table_places(place: Place, table: dict[str, Any]) -> Iterator[tuple[Place, Any]]:
    for number, column in enumerate(table["columns"]):
        key, *more = column.values() if isinstance(column, dict) else (column,)
        yield (*place, str(key)), [row[number] for row in table["rows"]]
        yield (*place, str(key), "title, unit"), more
    yield from (((*place, key), value) for key, value in table.items() if key not in ("columns", "rows"))


def _record_places(place: Place, records: list[dict[str, Any]]) -> Iterator[tuple[Place, Any]]:
    for key in dict.fromkeys(key for record in records for key in record):
        yield (*place, key), [record.get(key, _ABSENT) for record in records]


def _csv(body: bytes) -> dict[Place, Any]:
    names, *rows = csv.reader(io.StringIO(body.decode(), newline=""))
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {(name,): list(column) for name, column in zip(names, columns, strict=True)}


def _parquet(body: bytes) -> dict[Place, Any]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(body))
    return {(f"{name} ({table.schema.field(name).type})",): table[name].to_pylist() for name in table.column_names}


def _workbook(body: bytes) -> dict[Place, Any]:
    """Cells by sheet and column, from the parts of the package: texts, and numbers with their written digits."""
    found: dict[Place, Any] = {}
    with zipfile.ZipFile(io.BytesIO(body)) as package:
        parts = set(package.namelist())
        shared = [] if "xl/sharedStrings.xml" not in parts else [
            "".join(text.text or "" for text in item.iter(f"{_MAIN}t"))
            for item in ElementTree.fromstring(package.read("xl/sharedStrings.xml"))
        ]  # fmt: skip
        names = [sheet.get("name", "") for sheet in ElementTree.fromstring(package.read("xl/workbook.xml")).iter(
            f"{_MAIN}sheet")]  # fmt: skip
        found["sheets",] = names
        for number, name in enumerate(names, 1):
            columns: dict[str, list[str]] = {}
            for cell in ElementTree.fromstring(package.read(f"xl/worksheets/sheet{number}.xml")).iter(f"{_MAIN}c"):
                value = cell.find(f"{_MAIN}v")
                text = (
                    "".join(each.text or "" for each in cell.iter(f"{_MAIN}t")) if value is None else value.text or ""
                )
                if cell.get("t") == "s":
                    text = shared[int(text)]
                letters = re.match(r"[A-Z]+", cell.get("r", "?"))
                columns.setdefault(letters[0] if letters else "?", []).append(f"{cell.get('r')} {text}")
            found |= {(name, column): cells for column, cells in columns.items()}
    return found


def _page(body: bytes) -> dict[Place, Any]:
    """The record of the page and its columns, as its scripts read them, and its text without them."""
    from web_reading import WrittenPage

    with tempfile.NamedTemporaryFile(suffix=".html") as file:
        Path(file.name).write_bytes(body)
        page = WrittenPage(Path(file.name))
    views = page.record.pop("views", [])
    found = dict(_json_places(("record",), page.record))
    for view in views:
        for table in view["tables"]:
            for column in table["columns"]:
                found["views", view["id"], table["key"], column["key"]] = column["values"]
            found["views", view["id"], table["key"], "texts"] = table["rows"]
        found["views", view["id"], "others"] = [view["title"], view["facts"], view["notes"]]
    found |= {(f"chunk {number}", key): values.tolist() for number, columns in page.chunks.items()
              for key, values in columns.items()}  # fmt: skip
    found["code",] = page.code
    shown = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page.text)
    found["elements",] = [text for text in re.split(r"\s*<[^>]*>\s*", shown) if text]
    return found


def _trace(body: bytes) -> dict[Place, Any]:
    """Slices and samples of each track."""
    from trace_reading import TraceReader

    found: dict[Place, Any] = {}
    for track in TraceReader(body).tracks.values():
        for key in ("start", "end", "name", "category", "notes", "depth", "flows", "ending_flows", "flows_at_end"):
            found[track.path, key] = [getattr(each, key) for each in track.slices]
        found[track.path, "samples"] = track.samples
        found[track.path, "described as"] = [track.rank, track.ordered, track.counter, track.unit, track.description]
    return found


def _text(body: bytes) -> dict[Place, Any]:
    """Lines below each heading."""
    found: dict[Place, Any] = {}
    heading = ""
    for line in body.decode(errors="backslashreplace").splitlines():
        if line.startswith("#"):
            # without the step and the worker: the same figures
            heading = re.sub(r"^#+ |, \w+ \d+ only|: .*$", "", line)
        found.setdefault((heading,), []).append(line)
    return found


sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "export")]
