"""Records and commands of one engine, reduced to the columns that pairing compares."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..arrays import I8, I64, Bools

#: Kind of a record or command, as far as known; see `contradicts`.
UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS, WORK = 0, 1, 2, 3, 4


class EngineItems(Struct):
    """Records or commands of one engine, reduced to the columns that pairing compares.

    Attributes:
        id: Ids, restarting at resets.
        key: Sort key across engines: start in ns for records, node index for commands.
        kind: UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS or WORK.
        end: End of each record, ns; None for commands, or where it is not needed.
    """

    id: I64
    key: I64
    kind: I8
    end: I64 | None = None

    def end_of(self, row: int) -> int:
        """End of a record, ns; its key where ends are not known."""
        return int(self.key[row] if self.end is None else self.end[row])

    def section_starts(self) -> I64:
        """Index of the first item of each run of growing ids."""
        if not len(self.id):
            return np.zeros(0, np.int64)
        return np.concatenate([[0], np.flatnonzero(self.id[1:] <= self.id[:-1]) + 1])


def contradicts(recorded: I8, issued: I8) -> Bools:
    """Mask of the pairs of a record and a command, element by element, whose kinds cannot both be true.

    One is a system command and the other is not, or they move data in different directions.
    """
    differ = (recorded != UNKNOWN) & (issued != UNKNOWN) & (recorded != issued)
    result: Bools = differ & ((recorded == SYSTEM) | (issued == SYSTEM) | ((recorded != WORK) & (issued != WORK)))
    return result
