"""Problems with the registers of a lane's commands: one entry per kind, however many commands it concerns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof_tui.model import Severity
from tpuprof_tui.sources.sophgo.chips.commands import command_table

from ..arrays import I64
from .lane_registers import LaneRegisters

#: Most operations named in one sentence.
_MOST_NAMED = 5


def register_problems(registers: LaneRegisters) -> Iterator[tuple[Severity, str, str, I64]]:
    """Commands that cannot be decoded, or only in part, and bytes that belong to no command.

    Yields:
        Severity (notes lose nothing), problem, consequence, and the affected rows, at least one.
    """
    table = command_table(registers.chip, registers.engine)
    counts = np.bincount(registers.operation.astype(np.int64) + 1, minlength=1)
    unreadable = np.flatnonzero((registers.operation < 0) & (registers.offset >= 0))
    lost = (
        ("Commands whose registers cannot be decoded.", "Their bytes are shown as recorded.", unreadable),
        ("Detail records (DYN_EXTRA) of another command than their nodes.", "The records' content is shown.",
         registers.type_mismatches),
        (f"Commands with a data type that {registers.chip.name} does not know.", "It is shown by its code.",
         registers.unknown_formats),
    )  # fmt: skip
    for what, done, rows in lost:
        if len(rows):
            yield Severity.ERROR, what, done, rows
    sure = table.sizes.copy()
    used = np.flatnonzero(counts[1:]).tolist()
    for index in used:
        if table.operations[index].partial:
            sure[index] = np.iinfo(np.int64).max
            what = f"The registers of {table.operations[index].name} are not known."
            done = "What all such commands of the chip share is decoded; the rest is shown as bytes."
            yield Severity.WARNING, what, done, np.flatnonzero(registers.operation == index)
    assumed = [index for index in used if table.operations[index].assumed]
    if assumed:
        names = ", ".join(table.operations[index].name for index in assumed[:_MOST_NAMED])
        more = f" and {len(assumed) - _MOST_NAMED} more" if len(assumed) > _MOST_NAMED else ""
        what = f"The registers of {names}{more} are described for a sibling chip only."
        done = "Its layout is used: headers agree, fields may not."
        yield Severity.NOTE, what, done, np.flatnonzero(np.isin(registers.operation, assumed))
    sure[-1] = np.iinfo(np.int64).max
    longer = np.flatnonzero(registers.size > sure[registers.operation])
    if len(longer):
        yield Severity.NOTE, "Bytes after the command in its detail record (DYN_EXTRA).", "Ignored.", longer
