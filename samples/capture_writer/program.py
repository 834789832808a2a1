"""One kernel as one core runs it: commands, what each waits for, how long it takes.

A program is a template. It is scheduled for many launches at once, so building
it row by row costs nothing that grows with the capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .chips import CDMA, DDR, ELEMENT_BYTES, FP16, GDMA, LMEM, SDMA, TIU, Chip
from .costs import algorithmic_ops, tiu_cycles, transfer_ns
from .ops import OPS, Op
from .streams import ID_WRAP

Shape = tuple[int, int, int, int]

#: How a command was dispatched, as the truth numbers it.
STATIC, TDI, RVT, DES = range(4)

#: ``Row.until``: the command ends when all cores have come so far.
BARRIER = -2
NOTHING = -1


@dataclass
class Row:
    """One command of a program."""

    op: Op
    engine: int
    base_ns: int
    jitter: float
    #: Rows that must have ended before this one starts.
    after: tuple[int, ...] = ()
    #: A wait ends when this row has ended (or BARRIER).
    until: int = NOTHING
    bytes: int = 0
    src: int = 0
    dst: int = 0
    dtype: int = 0
    shape: Shape = (0, 0, 0, 0)
    k: int = 0
    alg_ops: int = -1
    #: Message and count of a system command.
    message: int = 0
    count: int = 1
    #: Cmd Id of the other engine's command that must have retired; 0: none.
    dependency: int = 0
    #: Which of the core's CDMA ports (0, 1, ...) takes the command.
    slot: int = 0
    #: Command id, and bytes the engine moved before; filled by the program.
    id: int = 0
    moved_before: int = 0
    #: ID_WRAP for what firmware inserts; such a command has no node.
    infra: int = 0


@dataclass
class Program:
    """Commands of one core for one launch, in the order they are issued."""

    name: str
    chip: Chip
    mode: int = TDI
    rows: list[Row] = field(default_factory=list)
    #: First command id, by engine; CDMA monitor ids count from 1.
    first_id: tuple[int, int, int, int] = (0, 0, 0, 1)
    #: Without FUNC and id resets: what surrounds the kernels.
    bare: bool = False
    infra: int = 0
    #: Several kernels in one program: the last one's end is nobody's business but the owner's.
    open_end: bool = False
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)
    _moved: dict[int, int] = field(default_factory=dict)

    def add(self, row: Row) -> int:
        """Append a command; its row number, for others to wait for."""
        key = (row.engine, row.slot if row.engine == CDMA else 0)
        row.id = self.first_id[row.engine] + self._counts.get(key, 0)
        self._counts[key] = self._counts.get(key, 0) + 1
        row.moved_before = self._moved.get(row.engine, 0)
        self._moved[row.engine] = row.moved_before + row.bytes
        self.rows.append(row)
        number = len(self.rows) - 1
        limit = self.chip.rvt_id_limit
        if self.mode == RVT and limit and self._counts.get((TIU, 0), 0) == limit and not row.infra:
            self._restart_ids()
        return number

    def _restart_ids(self) -> None:
        """RVT firmware ends the id range of TIU and GDMA with a pair of its own."""
        for engine, key in ((TIU, "tiu_swr"), (GDMA, "dma_send")):
            self.add(Row(OPS[key], engine, 10, 0.5, alg_ops=1, infra=ID_WRAP))
        self._counts[TIU, 0] = self._counts[GDMA, 0] = 0

    # -- work -------------------------------------------------------------

    def tiu(self, key: str, shape: Shape, dtype: int = FP16, k: int = 0, after: Sequence[int] = ()) -> int:
        op = OPS[key]
        return self.add(
            Row(op, TIU, tiu_cycles(op, shape, k, dtype), 0.45, tuple(after), dtype=dtype, shape=shape,
                k=k, alg_ops=algorithmic_ops(op, shape, k))
        )  # fmt: skip

    def dma(
        self,
        key: str,
        shape: Shape,
        src: int = DDR,
        dst: int = LMEM,
        dtype: int = FP16,
        after: Sequence[int] = (),
        engine: int = GDMA,
    ) -> int:
        size = shape[0] * shape[1] * shape[2] * shape[3] * ELEMENT_BYTES[dtype]
        base = transfer_ns(engine, self.chip, size, src, dst)
        return self.add(
            Row(OPS[key], engine, base, 0.35, tuple(after), bytes=size, src=src, dst=dst, dtype=dtype,
                shape=shape)
        )  # fmt: skip

    def load(self, shape: Shape, dtype: int = FP16, after: Sequence[int] = (), key: str = "tensor") -> int:
        return self.dma(key, shape, DDR, LMEM, dtype, after)

    def store(self, shape: Shape, dtype: int = FP16, after: Sequence[int] = (), key: str = "tensor") -> int:
        return self.dma(key, shape, LMEM, DDR, dtype, after)

    def cdma(self, key: str, length: int, slot: int, after: Sequence[int] = (), dtype: int = FP16) -> int:
        size = length * ELEMENT_BYTES[dtype]
        base = transfer_ns(CDMA, self.chip, size, DDR, DDR)
        return self.add(
            Row(OPS[key], CDMA, base, 0.45, tuple(after), bytes=size, src=DDR, dst=DDR, dtype=dtype,
                shape=(1, 1, 1, length), slot=slot)
        )  # fmt: skip

    # -- synchronisation --------------------------------------------------

    def send(self, engine: int, message: int = 1, after: Sequence[int] = (), count: int = 1) -> int:
        op = OPS["tiu_send" if engine == TIU else "dma_send"]
        return self.add(Row(op, engine, 10, 0.15, tuple(after), alg_ops=1, message=message, count=count))

    def wait(self, engine: int, until: int, message: int = 1, count: int = 1) -> int:
        op = OPS["tiu_wait" if engine == TIU else "dma_wait"]
        return self.add(Row(op, engine, 10, 0.5, (), until, alg_ops=1, message=message, count=count))

    def nop(self, engine: int, key: str, slot: int = 0, until: int = NOTHING) -> int:
        """A system command that moves nothing."""
        return self.add(Row(OPS[key], engine, 10, 0.6, (), until, alg_ops=1, slot=slot))

    def handover(self, source: int, target: int, message: int, after: Sequence[int] = ()) -> int:
        """``source`` engine tells ``target`` to go on; the row of the wait."""
        sent = self.send(source, message, after)
        return self.wait(target, sent, message)

    def finish(self, cores: int, message: int = 6) -> None:
        """Engines tell each other that the core is done, then wait for all cores."""
        if self.open_end:
            return
        self.send(GDMA, message, count=cores)
        self.send(TIU, message, count=cores)
        self.wait(GDMA, BARRIER, message, cores)
        self.wait(TIU, BARRIER, message, cores)

    @property
    def engines(self) -> tuple[int, ...]:
        return tuple(e for e in (TIU, GDMA, SDMA) if any(row.engine == e for row in self.rows))

    @property
    def slots(self) -> int:
        """CDMA ports the program uses."""
        return max((row.slot + 1 for row in self.rows if row.engine == CDMA), default=0)
