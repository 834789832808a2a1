"""Records of one engine, in the fewest columns that say everything.

What a record is comes from its row in the catalogue, where it belongs from its
launch; only the times are its own. Twenty-four bytes a record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Why a record is not part of the profiled work.
#: RUNTIME: of the runtime of a compiled model, around each launch; COPY_IN, COPY_OUT: its copies of inputs and outputs.
WORK, INIT, CLOSING, EDGE, CDMA_SYNC, ID_WRAP, RUNTIME, COPY_IN, COPY_OUT = range(9)
#: What became of a record.
PRESENT, LOST, OVERWRITTEN = range(3)


@dataclass
class Stream:
    """One engine of a core, or one CDMA port, in program order.

    ``start`` and ``end`` are ticks of the engine's own clock since the end of
    the core's handshake; ``offset`` is what the counter showed at that moment.
    """

    engine: int
    #: Rank of the core file, or the port.
    index: int
    mhz: int
    offset: int
    row: I32
    launch: I32
    start: I64
    end: I64
    #: Number of the core whose command this is: one for all, or one each.
    core: int | I16 = 0
    loss: I8 | None = None
    #: Order of the records in the dump, if not program order.
    dump: I64 | None = None

    def __len__(self) -> int:
        return len(self.row)

    def present(self) -> npt.NDArray[np.bool_]:
        if self.loss is None:
            return np.ones(len(self), dtype=np.bool_)
        return np.equal(self.loss, PRESENT)

    def lose(self, which: npt.NDArray[np.bool_], reason: int) -> None:
        if self.loss is None:
            self.loss = np.zeros(len(self), dtype=np.int8)
        self.loss[which & (self.loss == PRESENT)] = reason

    def dumped(self) -> I64 | slice:
        """Indices of the surviving records, in the order the hardware dumps them."""
        if self.loss is None and self.dump is None:
            return slice(None)
        order = np.arange(len(self), dtype=np.int64) if self.dump is None else self.dump
        return order if self.loss is None else order[self.loss[order] == PRESENT]

    def ns(self, ticks: I64) -> npt.NDArray[np.float64]:
        return ticks.astype(np.float64) * (1000.0 / self.mhz)


def ragged(counts: I64) -> tuple[I64, I64]:
    """For groups of the given sizes: the group of each member, and its place in it."""
    total = int(counts.sum())
    group = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    begin = np.cumsum(counts) - counts
    return group, np.arange(total, dtype=np.int64) - begin[group]
