"""What is odd about the registers of a lane's commands: one entry per thing, whatever the number of commands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.sources.sophgo.chips.commands import command_table

from .details import Detail

#: Operations that one sentence names.
_MOST_NAMED = 5


class RegisterProblem(Struct, frozen=True):
    """Something odd about some rows.

    Attributes:
        rows: The rows it concerns, at least one.
        harmless: Whether nothing is lost by it.
        lost: Whether something that was recorded cannot be read.
    """

    what: str
    done: str
    rows: npt.NDArray[np.int64]
    harmless: bool = False
    lost: bool = False


def register_problems(detail: Detail) -> Iterator[RegisterProblem]:
    """What cannot be decoded, what only in part, and bytes that belong to no command."""
    table = command_table(detail.chip, detail.engine)
    counts = np.bincount(detail.operation.astype(np.int64) + 1, minlength=1)
    if counts[0]:
        lost = np.flatnonzero((detail.operation < 0) & (detail.offset >= 0))
        if len(lost):
            yield RegisterProblem(
                "Commands whose registers cannot be decoded.", "Their bytes are shown as they are.", lost, lost=True
            )
    if len(detail.unlike):
        yield RegisterProblem(
            "Detail records (DYN_EXTRA) of another command than their nodes.", "What the records say is shown.",
            detail.unlike, lost=True,
        )  # fmt: skip
    if len(detail.odd_format):
        yield RegisterProblem(
            f"Commands with a data type that {detail.chip.name} does not know.", "It is shown by its code.",
            detail.odd_format, lost=True,
        )  # fmt: skip
    sure = table.sizes.copy()
    for index in np.flatnonzero(counts[1:]).tolist():
        if table.operations[index].partial:
            sure[index] = np.iinfo(np.int64).max
            yield RegisterProblem(
                f"The registers of {table.operations[index].name} are not known.",
                "What all such commands of the chip share is decoded; the rest is shown as bytes.",
                np.flatnonzero(detail.operation == index),
            )
    assumed = [index for index in np.flatnonzero(counts[1:]).tolist() if table.operations[index].assumed]
    if assumed:
        names = ", ".join(table.operations[index].name for index in assumed[:_MOST_NAMED])
        more = len(assumed) - _MOST_NAMED
        yield RegisterProblem(
            f"The registers of {names}{f' and {more} more' if more > 0 else ''} are described for a sibling chip only.",
            "Its layout is taken for theirs: headers agree, fields may not.",
            np.flatnonzero(np.isin(detail.operation, assumed)),
            harmless=True,
        )
    sure[-1] = np.iinfo(np.int64).max
    longer = np.flatnonzero(detail.room > sure[detail.operation])
    if len(longer):
        yield RegisterProblem(
            "Bytes behind the command in its detail record (DYN_EXTRA).", "Ignored.", longer, harmless=True
        )
