"""All programs of a capture, their rows flattened into columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .chips import CDMA
from .program import Program

Ints = npt.NDArray[np.int64]

_COLUMNS = ("engine", "bytes", "src", "dst", "dtype", "k", "alg_ops", "count", "slot", "id")


@dataclass
class Catalogue:
    """Programs by number; ``first[p]`` is the catalogue row of program p's first command."""

    programs: list[Program] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)
    _rows: int = 0

    def number(self, key: object, build: object) -> int:
        """Number of the program known as ``key``, built on first use."""
        if key not in self._known:
            assert callable(build)
            self._known[key] = self.append(build())
        return self._known[key]

    def append(self, program: Program) -> int:
        self.programs.append(program)
        self.first.append(self._rows)
        self._rows += len(program.rows)
        return len(self.programs) - 1

    def columns(self) -> dict[str, Ints]:
        """One entry per catalogue row: what the truth and the encoders need."""
        rows = [row for program in self.programs for row in program.rows]
        out: dict[str, Ints] = {
            name: np.array([getattr(row, name) for row in rows], dtype=np.int64) for name in _COLUMNS
        }
        out["op"] = np.array([row.op.number for row in rows], dtype=np.int64)
        out["system"] = np.array([row.op.system for row in rows], dtype=np.int64)
        for axis in range(4):
            out[f"d{axis}"] = np.array([row.shape[axis] for row in rows], dtype=np.int64)
        sizes = [len(program.rows) for program in self.programs]
        out["program"] = np.repeat(np.arange(len(sizes)), sizes)
        own = np.array([row.infra for row in rows], dtype=np.int64)
        out["mode"] = np.where(own != 0, 0, np.repeat([program.mode for program in self.programs], sizes))
        out["infra"] = np.where(own != 0, own, np.repeat([program.infra for program in self.programs], sizes))
        out["function_key"] = np.array([row.op.function for row in rows], dtype=np.int64)
        out["type"] = np.array([row.op.type for row in rows], dtype=np.int64)
        return out

    def engine_rows(self, program: int, engine: int, slot: int = 0) -> Ints:
        """Rows (within the program) of one engine, in order; of one port's slot for CDMA."""
        rows = self.programs[program].rows
        return np.array(
            [n for n, r in enumerate(rows) if r.engine == engine and (engine != CDMA or r.slot == slot)],
            dtype=np.int64,
        )
