"""``tpuprof help schema``: JSON Schemas of the JSON output of commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tpuprof_tui.errors import UsageError

_FOLDER: Final = Path(__file__).with_name("schemas")
#: The command whose schema is generated from the columns of the sources; each output line is a row.
_ROWS: Final = "instructions"
#: JSON types by kind of column; under the published converter's names, percentages are strings.
_TYPES: Final = {"int": ["integer", "null"], "hex": ["integer", "null"], "text": ["string", "null"],
                 "float": ["number", "null"], "percent": ["number", "string", "null"]}  # fmt: skip


def commands() -> tuple[str, ...]:
    """Commands that print JSON, in alphabetical order."""
    return tuple(sorted((_ROWS, *(path.stem for path in _FOLDER.glob("*.json")))))


def schema_text(command: str | None) -> str:
    """JSON Schema of a command's output; without a command, the commands that have one, a line each.

    Raises:
        UsageError: The command does not exist or prints no JSON.
    """
    known = commands()
    if command is None:
        return "".join(f"{name}\n" for name in known)
    if command not in known:
        raise UsageError(f"There is no schema of {command}.", f"Commands that print JSON: {', '.join(known)}.")
    if command == _ROWS:
        return f"{json.dumps(_schema_of_rows(), indent=2)}\n"
    return (_FOLDER / f"{command}.json").read_text(encoding="utf-8")


def _schema_of_rows() -> dict[str, Any]:
    from tpuprof_tui.sources.catalog import vocabularies

    columns: dict[str, dict[str, Any]] = {}
    for column in (column for vocabulary in vocabularies() for column in vocabulary.columns):
        unit = f" [{column.unit}]" if column.unit else ""
        about = {"type": _TYPES[column.kind], "description": f"{column.help}{unit}"}
        columns.setdefault(column.key, about)
        if column.file_name:
            columns.setdefault(column.file_name, about)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tpuprof instructions PATH: a line",
        "description": "One row. Names are those of the published converter, or with --columns keys of columns; fields "
        "of registers and columns of other sources are added. null: not known.",
        "type": "object",
        "properties": columns,
        "additionalProperties": {"type": ["integer", "number", "string", "null"]},
    }
