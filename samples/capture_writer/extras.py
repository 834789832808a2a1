"""DYN_EXTRA: the full registers of every NODE_SET, in the order of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .nodes import has_idle_command
from .program import TDI, Program
from .registers import command_bytes
from .streams import EDGE, ragged

I64 = npt.NDArray[np.int64]
_BINARY = 1
_CHUNK_LAUNCHES = 512


@dataclass(frozen=True)
class Blob:
    """Records of one launch as words; ``heads`` marks the profile id of each."""

    words: npt.NDArray[np.uint32]
    heads: npt.NDArray[np.bool_]


def program_blob(program: Program, logged: bool = True, noise: bool = False) -> Blob:
    """Only NODE_SET commands own a record; RVT and DES commands do not."""
    words: list[int] = []
    heads: list[bool] = []
    if program.mode == TDI and logged:
        contents = [command_bytes(program, number) for number, row in enumerate(program.rows) if row.infra != EDGE]
        if noise and has_idle_command(program):
            contents.insert(0, bytes(16))
        for content in contents:
            words += [0, _BINARY, len(content), *np.frombuffer(content, "<u4").tolist()]
            heads += [True] + [False] * (2 + len(content) // 4)
    return Blob(np.array(words, dtype=np.uint32), np.array(heads, dtype=np.bool_))


@dataclass(frozen=True)
class ExtraStream:
    """The records of one core, launch after launch."""

    table: list[Blob]
    program: I64

    @property
    def size(self) -> int:
        """Bytes."""
        return 4 * int(self._lengths()[self.program].sum())

    def _lengths(self) -> I64:
        return np.array([len(blob.words) for blob in self.table], dtype=np.int64)

    def chunks(self) -> Iterator[bytes]:
        lengths = self._lengths()
        begin = np.cumsum(lengths) - lengths
        words = np.concatenate([blob.words for blob in self.table])
        heads = np.concatenate([blob.heads for blob in self.table])
        done = 0
        for first in range(0, len(self.program), _CHUNK_LAUNCHES):
            program = self.program[first : first + _CHUNK_LAUNCHES]
            group, place = ragged(lengths[program])
            source = begin[program][group] + place
            out = words[source]
            where = np.flatnonzero(heads[source])
            out[where] = np.arange(done, done + len(where), dtype=np.uint32)
            done += len(where)
            yield out.astype("<u4").tobytes()
