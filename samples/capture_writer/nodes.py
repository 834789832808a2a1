"""DYN_DATA: the words firmware logs while it issues commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .chips import CDMA, GDMA, SDMA, TIU, Chip
from .descriptors import block_key
from .generator import generator_index
from .program import DES, RVT, STATIC, TDI, Program, Row
from .streams import EDGE, ID_WRAP, INIT, ragged

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

_FUNC, _SET, _RESET, _RVT_SET, _BATCH, _FUNC_END = 0, 1, 12, 13, 14, 15
_DES = {TIU: 8, GDMA: 9, SDMA: 10, CDMA: 11}
#: Engine code of AKS that has no monitor.
HAU_ENGINE = 2
#: NODE_WAIT, GDE, SORT, NMS, CUSTOM and UNKNOWN nodes with some payload bits.
_PASSED_OVER = (2 | 5 << 7, 4 | 1 << 20, 5, 6 | 77 << 10, 100 | 0x1FF << 7, 127)
#: A word before all nodes, and what a DES node claims of SDMA whatever its stream holds: compiled models.
_START, _SDMA_CLAIM = 0xFFFFFFFF, 42
#: Marks in the side table of a program's words.
_NOT_PATCHED, _BATCH_WORD = -1, -2
_CHUNK_LAUNCHES = 4096


@dataclass(frozen=True)
class Words:
    """Node words of a program; ``patch`` says which change with the launch.

    A patch value of 0 or more is the CDMA slot whose port goes into the word
    (bits 28-31), -2 the batch index, -1 nothing.
    """

    words: U32
    patch: I64


def func_words(name: str) -> list[int]:
    """A kernel scope opens: length of the name, then its bytes padded to words."""
    text = name.encode("utf-8")
    padded = text + bytes(-len(text) % 4)
    return [_FUNC | len(text) << 7, *np.frombuffer(padded, "<u4").tolist()]


def node_word(row: Row, chip: Chip, mode: int, vsdma: bool = False) -> int:
    """NODE_SET or RVT_NODE_SET of one command."""
    typ, function = row.op.type, row.op.function
    if mode == RVT and chip.generator:
        typ, variant = generator_index(row)
        function, extra = variant & 31, variant >> 5
    elif row.op.system:
        extra = row.count
    elif row.engine == TIU:
        extra = row.dtype
    else:
        extra = row.dtype | row.src << 4 | row.dst << 6
    engine = chip.vsdma if vsdma else chip.node_engine[row.engine]
    kind = _RVT_SET if mode == RVT else _SET
    return kind | engine << 7 | typ << 10 | function << 15 | (extra & 0xFFF) << 20


def program_words(number: int, program: Program, noise: bool = False, announced: bool = False) -> Words:
    """All words of one launch of program ``number``; with ``noise``, words to be passed over between them.

    ``announced``: as the runtime of compiled models logs them.
    """
    chip = program.chip
    words: list[int] = []
    patch: list[int] = []

    def put(word: int, mark: int = _NOT_PATCHED) -> None:
        words.append(word)
        patch.append(mark)

    if announced and program.infra == INIT:
        put(_START)
    if program.name:
        put(_BATCH, _BATCH_WORD)
        for word in func_words(program.name):
            put(word)
    if program.infra != INIT and not program.first_id[TIU]:
        for engine in program.engines:
            put(_RESET | chip.node_engine[engine] << 7)
        for slot in range(program.slots):
            put(_RESET | chip.node_engine[CDMA] << 7, slot)
    if noise and has_idle_command(program):
        put(_SET | HAU_ENGINE << 7)
    for place, row in enumerate(program.rows):
        if noise and place % 5 == 4:
            put(_PASSED_OVER[place // 5 % len(_PASSED_OVER)])
        if program.mode in (DES, STATIC) or row.infra in (ID_WRAP, EDGE):
            continue
        # after its pair, the handshake's SDMA commands release the CDMA ports
        release = program.infra == INIT and row.engine == SDMA and row.id >= 2
        put(node_word(row, chip, program.mode, release), row.slot if row.engine == CDMA else _NOT_PATCHED)
    if program.mode == DES:
        for engine in program.engines:
            put(_DES[engine] | block_key(number, engine) << 7)
            put(sum(row.engine == engine for row in program.rows))
        for slot in range(program.slots):
            put(_DES[CDMA] | block_key(number, CDMA, slot) << 7)
            put(sum(row.engine == CDMA and row.slot == slot for row in program.rows), slot)
    if program.mode == STATIC:
        for engine in program.engines:
            put(_DES[engine] | block_key(number, engine) << 7)
            put(_SDMA_CLAIM if engine == SDMA else sum(row.engine == engine for row in program.rows))
    if program.name:
        put(_FUNC_END)
    return Words(np.array(words, dtype=np.uint32), np.array(patch, dtype=np.int64))


def has_idle_command(program: Program) -> bool:
    """Whether noise in a program includes a command of the engine that no one profiles (AKS: HAU)."""
    return bool(program.name) and program.mode == TDI and HAU_ENGINE not in program.chip.node_engine


def no_words() -> Words:
    """A program firmware does not log."""
    return Words(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class NodeStream:
    """The node words of one core: program after program."""

    table: list[Words]
    #: Program, batch and first port of each launch, in issue order.
    program: I64
    batch: I64
    first_port: I64
    #: Distance of the core's ports, by launch.
    port_step: I64

    @property
    def size(self) -> int:
        """Bytes."""
        lengths = np.array([len(entry.words) for entry in self.table], dtype=np.int64)
        return 4 * int(lengths[self.program].sum()) if len(self.program) else 0

    def part(self, number: int, parts: int) -> NodeStream:
        """One of several runs of launches."""
        cut = np.linspace(0, len(self.program), parts + 1).astype(np.int64)
        run = slice(int(cut[number]), int(cut[number + 1]))
        return NodeStream(self.table, self.program[run], self.batch[run], self.first_port[run], self.port_step[run])

    def chunks(self) -> Iterator[bytes]:
        lengths = np.array([len(entry.words) for entry in self.table], dtype=np.int64)
        begin = np.cumsum(lengths) - lengths
        words = np.concatenate([entry.words for entry in self.table])
        patch = np.concatenate([entry.patch for entry in self.table])
        for first in range(0, len(self.program), _CHUNK_LAUNCHES):
            chunk = slice(first, first + _CHUNK_LAUNCHES)
            program = self.program[chunk]
            group, place = ragged(lengths[program])
            source = begin[program][group] + place
            out = words[source].astype(np.int64)
            mark = patch[source]
            out |= np.where(mark == _BATCH_WORD, self.batch[chunk][group] << 7, 0)
            port = self.first_port[chunk][group] + mark * self.port_step[chunk][group]
            out |= np.where(mark >= 0, port << 28, 0)
            yield out.astype("<u4").tobytes()
