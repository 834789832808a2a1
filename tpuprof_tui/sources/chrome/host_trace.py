"""Reads a Chrome-trace JSON file of a host: its slices, with times in integer ns of the host's clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Problem, Severity

from .collector import Collector, Phases, collected, event
from .columns import I32, I64, MOST_NS, exact_ns, printable

_LONGEST_NAME: Final = 4096
_UNNAMED: Final = "unknown"


class HostEvents(Struct, frozen=True, eq=False):
    """Slices in the order of the file; arrays of one length."""

    #: start, end: ns of the host's clock.
    start: I64
    end: I64
    #: name, category: Codes into ``HostTrace.texts``.
    name: I32
    category: I32
    thread: I32  #: Thread number of each slice

    def __len__(self) -> int:
        return len(self.start)


class HostMarks(Struct, frozen=True):
    """Slices of a host trace with a meaning for the source of the device's profile."""

    launches: str  #: Category of the slices that launch device work; all other slices are host activity
    closing: str = ""  #: Name of the launch that ends the recording
    left_out: frozenset[str] = frozenset()  #: Names of slices that are not shown: those of the profilers themselves


class HostTrace(Struct, frozen=True, eq=False):
    """The trace of a host."""

    path: str
    marks: HostMarks
    events: HostEvents  #: Its slices, without those of ``marks.left_out``
    texts: tuple[str, ...]  #: Names and categories, by code
    closing_ns: int | None  #: End of the last slice that ends the recording; None if there is none
    first_launch_ns: int | None  #: End of the first launch in the file; None if there is none
    problems: tuple[Problem, ...]  #: Defects of the file

    @property
    def launches(self) -> npt.NDArray[np.bool_]:
        """Mask of the slices that are launches."""
        code = self.texts.index(self.marks.launches) if self.marks.launches in self.texts else -1
        return np.asarray(self.events.category == code, dtype=np.bool_)


def read_host_trace(
    path: str | os.PathLike[str], marks: HostMarks, *, progress: Callable[[int, int], None] | None = None
) -> HostTrace:  # fmt: skip
    """Reads a host trace.

    Args:
        path: The JSON file; may be packed, whatever its name.
        marks: Meaning of its slices.
        progress: Called with the bytes read and the size of the file; an exception that it raises ends the reading.

    Returns:
        Its slices (events of phase ``X``). Of a damaged file, those that could be read, with Problems.

    Raises:
        UnreadableError: No such file, no regular one, or no list of events in it.
    """
    return collected(Path(path), partial(_HostSlices, marks), progress, alone=True).trace()


_Slice: Final = event("X", name=Any, cat=Any, pid=Any, tid=Any, ts=msgspec.Raw, dur=(msgspec.Raw, msgspec.Raw(b"0")))


class _HostSlices(Collector):
    phases: ClassVar = Phases({_Slice: "add_slices"})

    def __init__(self, marks: HostMarks) -> None:
        super().__init__()
        self._marks = marks

    def add_slices(self, slices: Sequence[Any]) -> None:
        """Adds slices."""
        names, categories, pids, tids, starts, lengths = zip(*map(astuple, slices), strict=True)
        self.count += len(slices)
        texts = self.codes["texts"]
        self.tables["events"].add(
            name=np.array([texts[_text(name, _UNNAMED)] for name in names], np.int32),
            category=np.array([texts[_text(category, "")] for category in categories], np.int32),
            thread=self.codes["threads"].of([(_text(pid, "")[:64], _text(tid, "")[:64])
                                             for pid, tid in zip(pids, tids, strict=True)]),
        )  # fmt: skip
        self.wait("events", "start", starts)
        self.wait("events", "end", lengths)

    def convert(self) -> None:
        """Converts the waiting times to columns."""
        super().convert()
        start, length = (exact_ns(self.waiting("events", key)) for key in ("start", "end"))
        possible = (start != INT_MISSING) & (length >= 0) & (start + np.maximum(length, 0) < MOST_NS)
        self.tables["events"].add(start=np.where(possible, start, INT_MISSING), end=start + np.maximum(length, 0))

    def trace(self) -> HostTrace:
        """The trace, without the slices that are left out.

        Raises:
            UnreadableError: There is no list of events.
        """
        if not self.chunks.found and self.fault is None:
            raise UnreadableError(f"{self.path} holds no traceEvents.",
                                  "A host trace is Chrome-trace JSON, as PyTorch's profiler writes it.")  # fmt: skip
        columns = {key: self.tables["events"].take(key, np.int64 if key in ("start", "end") else np.int32)
                   for key in HostEvents.__struct_fields__}  # fmt: skip
        self.end_begun(columns["end"])
        timed = columns["start"] != INT_MISSING
        untimed = int((~timed).sum())
        lost = Problem(Severity.ERROR, "Slices of the host trace without a possible time.", "They were left out.",
                       file=self.path.name, count=untimed)  # fmt: skip
        marks, code_of = self._marks, self.codes["texts"].get
        launches = timed & (columns["category"] == code_of(marks.launches, -1))
        closing = columns["end"][launches & (columns["name"] == code_of(marks.closing, -1))]
        kept = timed & ~np.isin(columns["name"], [code_of(name, -1) for name in marks.left_out])
        first = columns["end"][launches & kept][:1]
        return HostTrace(
            str(self.path), marks, HostEvents(**{key: values[kept] for key, values in columns.items()}),
            tuple(self.codes["texts"]), int(closing.max()) if len(closing) else None,
            int(first[0]) if len(first) else None,
            (*self.problems("host trace", self.path.name), *([lost] if untimed else [])),
        )  # fmt: skip


def _text(value: object, missing: str) -> str:
    """A text or number as text without characters that cannot be shown or written; ``missing`` for other values."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return missing
    return printable(str(value), _LONGEST_NAME)
