"""Writes instructions as JSON lines or CSV: one flat object or row each, streamed, with the reference's field names.

Rows are ordered by core, then TIU, GDMA, SDMA, then CDMA port, each in stream order. Where a value is unknown and the
reference writes a placeholder, the placeholder is written; otherwise the field is left out (JSON) or empty (CSV). The
row of a decoded command has its register fields (TIU: with the prefix ``des_``) instead of a condensed node's codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Final, Literal, cast

import numpy as np
from msgspec import Struct

from tpuprof_tui.analysis.index.ordering import unit_or_port
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.selection import RowPage, ordered_lanes
from tpuprof_tui.export.table import ByteSink, TableRows, write_lines
from tpuprof_tui.formats.escape import csv_text, json_text
from tpuprof_tui.formats.rendering import Field, rendered_rows
from tpuprof_tui.formats.xlsx.rows import Source
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows, row_count, row_numbers, row_part, row_parts
from tpuprof_tui.model.uniques import uniques

from ..schema import Column
from .fields import LaneFields, in_stream_order, text_field

Format = Literal["jsonl", "csv"]
_Formatter = Callable[[Rows, int], list[str]]

#: Rows rendered and written at a time.
SLICE: Final = 16_384
#: Codes of a condensed node; decoded commands have registers instead.
CONDENSED: Final = frozenset(
    ("node_type", "node_engine", "tiu_type", "tiu_function", "node_extra", "precision",
     "data_format", "dma_type", "dma_function")
)  # fmt: skip
#: Fields of transfers whose placeholder depends on chip and command; the same as in the register text.
_AS_REGISTER_TEXT: Final = ("Direction", "from_addr", "to_addr", "Data Type", "src_data_format")
#: Groups of columns of measured numbers, whose values differ in nearly every row.
_MEASURED: Final = ("time", "transfer", "operation")
_NUMBERING: Final = ("order", "command_id")


class RowSyntax(Struct, frozen=True):
    """Syntax of a row."""

    #: opening, closing: Text before and after a row; the engine's text follows the opening.
    opening: str
    closing: str
    lead: Callable[[str], str]  #: Text before a value, by field name; includes the separator from the previous field
    text: Callable[[str], str]
    quote: str  #: Quotation mark around a text that needs no escapes
    absent: str  #: Text of a field without a value
    every_field: bool  #: Whether each row has every field of the header


SYNTAXES: Final[dict[Format, RowSyntax]] = {
    "jsonl": RowSyntax('{"engine": ', "}\n", lambda name: f", {json_text(name)}: ", json_text, '"', "", False),
    "csv": RowSyntax("", "\n", lambda _: ",", csv_text, "", ",", True),
}


def write_instructions(
    query: Query, sink: ByteSink, *, form: Format = "jsonl", engine: str | None = None, page: RowPage | None = None
) -> int:
    """Writes the selected instructions of the device to a binary file or pipe.

    ``sink`` gets UTF-8, some megabytes at a time. Returns the number of instructions written.

    Args:
        form: ``jsonl`` or ``csv``; CSV starts with a line of field names.
        engine: Only this engine's; None for all.
        page: Range of these to write, by position; None for all.

    Raises:
        OSError: Writing to the sink failed.
    """
    syntax = SYNTAXES[form]
    profile = query.profile
    lanes = [(number, lane) for number, lane in ordered_lanes(profile)
             if not lane.on_host and engine in (None, lane.kind)]  # fmt: skip
    names, written = _write_header(profile, [lane for _, lane in lanes], syntax, sink), 0
    for number, lane in lanes:
        rows = in_stream_order(lane, query.rows(number))
        count = row_count(rows)
        chosen = slice(0, count) if page is None else page.take(count)
        lines = _row_formatter(profile, lane, syntax, names)
        for part, size in row_parts(row_part(rows, chosen.start, chosen.stop), SLICE):
            sink.write("".join(lines(part, size)).encode("utf-8"))
        written += chosen.stop - chosen.start
    return written


def write_in_order(rows: TableRows, sink: ByteSink, form: Format = "jsonl") -> int:
    """Writes all fields of some instructions like `write_instructions`, in the order of ``rows``."""
    syntax = SYNTAXES[form]
    lanes = {number: lane for number, lane in enumerate(rows.profile.lanes) if len(lane) and not lane.on_host}
    names = _write_header(rows.profile, lanes.values(), syntax, sink)
    formatters = {number: _row_formatter(rows.profile, lane, syntax, names) for number, lane in lanes.items()}
    return write_lines(rows, formatters, sink)


def written_columns(profile: Profile) -> tuple[Column, ...]:
    """Columns that are written, in order; the engine comes before them."""
    columns = cast("tuple[Column, ...]", profile.vocabulary.columns)
    return tuple(column for column in columns if column.file_name and column.key != "engine")


def _write_header(profile: Profile, lanes: Iterable[Lane], syntax: RowSyntax, sink: ByteSink) -> list[str]:
    """Writes the names of all fields where there is a header: those of the schema, then the registers that occur."""
    names = dict.fromkeys(("engine", *(column.file_name for column in written_columns(profile))))
    for lane in lanes:
        if lane.registers is not None:
            fields, operations = LaneFields(profile, lane), uniques(lane.registers.operations(slice(0, len(lane))))
            for operation in operations[operations >= 0].tolist():
                names |= dict.fromkeys(fields.registers(operation))
    if syntax.every_field:
        sink.write((",".join(map(csv_text, names)) + "\n").encode("utf-8"))
    return list(names)


def rows_as_text(
    lane: Lane, plan: Callable[[int], Sequence[Field | str]], opening: str, closing: str, rows: Rows, count: int
) -> list[str]:
    """Some rows of a lane as text, between ``opening`` and ``closing``.

    ``plan`` returns the fields of commands decoded as an operation; for -1, of condensed ones and of rows without a
    command.
    """
    if lane.registers is None:
        return rendered_rows(opening, plan(-1), closing, rows, count)
    operations, numbers = lane.registers.operations(rows), row_numbers(rows)
    lines = np.empty(count, dtype=object)
    for operation in uniques(operations).tolist():
        indices = np.flatnonzero(operations == operation)
        lines[indices] = rendered_rows(opening, plan(operation), closing, numbers[indices], len(indices))
    found: list[str] = lines.tolist()
    return found


def _row_formatter(profile: Profile, lane: Lane, syntax: RowSyntax, names: Sequence[str]) -> _Formatter:
    columns = written_columns(profile)
    fields = {column.file_name: _field(profile, lane, column, syntax) for column in columns}
    in_text = LaneFields(profile, lane)

    def plan(operation: int) -> list[Field | str]:
        own = fields
        if operation >= 0:
            own = {column.file_name: fields[column.file_name] for column in columns if column.key not in CONDENSED}
            own |= {name: _as_field(name, each, syntax) for name, each in in_text.registers(operation).items()}
        if lane.kind != "TIU":
            main = in_text.of(operation).main
            own = own | {name: _as_field(name, main[name], syntax) for name in _AS_REGISTER_TEXT if name in own}
        return [own.get(name, syntax.absent) for name in names[1:]] if syntax.every_field else list(own.values())

    return partial(rows_as_text, lane, cache(plan), syntax.opening + syntax.text(lane.kind), syntax.closing)


def _field(profile: Profile, lane: Lane, column: Column, syntax: RowSyntax) -> Field | str:
    """A column as a field; a string if it is the same in every row."""
    lead = syntax.lead(column.file_name)
    fixed = unit_or_port(profile, lane, column.key)
    if column.key not in lane and fixed >= 0:
        return f"{lead}{fixed}"
    applies = column.applies_to(lane.kind)
    absent = _absent(lead, column.placeholder if applies else None, syntax)
    if column.key not in lane or not applies:
        return absent
    values = partial(lane.take, column.key)
    if column.kind == "text":
        return Field(values, lead, absent, profile.strings[column.key], syntax.text)
    if column.kind == "percent":
        return Field(values, lead, absent, form=f"{syntax.quote}%.{column.decimals}f%%{syntax.quote}")
    span = 0 if column.group in _MEASURED or column.key in _NUMBERING else 4096
    return Field(values, lead, absent, decimals=column.decimals, span=span)


def _as_field(name: str, source: Source, syntax: RowSyntax) -> Field | str:
    """A field of the register text, an integer or a text, in this syntax."""
    lead = syntax.lead(name)
    return text_field(source, lead, _absent(lead, source.absent, syntax), syntax.text)


def _absent(lead: str, placeholder: str | float | None, syntax: RowSyntax) -> str:
    if placeholder is None:
        return syntax.absent
    return lead + (syntax.text(placeholder) if isinstance(placeholder, str) else str(placeholder))
