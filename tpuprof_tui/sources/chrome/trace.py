"""Reads a Chrome-trace JSON file of a host: its slices, with times in integer ns of the host's clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Problem, Severity

from .collector import Collector, Phases, collected, event
from .columns import I32, I64, MOST_NS, printable

_LONGEST_NAME: Final = 4096
#: Times are added up in femtoseconds.
_PER_NANOSECOND: Final = 10**6
_NUMBER: Final = lazy_pattern(r"-?\d{1,63}(?:\.\d{1,63})?(?:[eE][+-]?\d{1,3})?")
_EXACT: Final = Context(prec=200)
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
        #: Ends of the last slice that ends the recording, and of the first launch, fs.
        self._closing: int | None = None
        self._first_launch: int | None = None
        self._untimed = 0

    def add_slices(self, slices: Sequence[Any]) -> None:
        """Adds slices, but for those that are left out."""
        marks, texts, threads, rows = self._marks, self.codes["texts"], self.codes["threads"], []
        for each in slices:
            start, length = (femtoseconds(bytes(raw).decode("utf-8", "replace").strip('"'))
                             for raw in (each.ts, each.dur))  # fmt: skip
            if start is None or length is None or length < 0 or nanoseconds(start + length) >= MOST_NS:
                self._untimed += 1
                continue
            name, category, end = _text(each.name, _UNNAMED), _text(each.cat, ""), start + length
            if category == marks.launches and name == marks.closing:
                self._closing = end if self._closing is None else max(self._closing, end)
            if name in marks.left_out:
                continue
            if category == marks.launches and self._first_launch is None:
                self._first_launch = end
            thread = threads[_text(each.pid, "")[:64], _text(each.tid, "")[:64]]
            rows.append((nanoseconds(start), nanoseconds(end), texts[name], texts[category], thread))
        columns = np.array(rows, np.int64).reshape(-1, len(HostEvents.__struct_fields__)).T
        self.tables["events"].add(**dict(zip(HostEvents.__struct_fields__, columns, strict=True)))

    def trace(self) -> HostTrace:
        """The trace.

        Raises:
            UnreadableError: There is no list of events.
        """
        if not self.chunks.found and self.fault is None:
            raise UnreadableError(f"{self.path} holds no traceEvents.",
                                  "A host trace is Chrome-trace JSON, as PyTorch's profiler writes it.")  # fmt: skip
        events = self.tables["events"]
        columns: dict[str, Any] = {
            key: events.take(key).astype(np.int64 if key in ("start", "end") else np.int32)
            for key in HostEvents.__struct_fields__
        }
        closing, launch = (None if femto is None else nanoseconds(femto)
                           for femto in (self._closing, self._first_launch))  # fmt: skip
        return HostTrace(str(self.path), self._marks, HostEvents(**columns), tuple(self.codes["texts"]), closing,
                         launch, tuple(self._problems()))  # fmt: skip

    def _problems(self) -> Iterator[Problem]:
        yield from self.problems("host trace", self.path.name)
        if self._untimed:
            yield Problem(Severity.ERROR, "Slices of the host trace without a possible time.",
                          "They were left out.", file=self.path.name, count=self._untimed)  # fmt: skip


def femtoseconds(text: str) -> int | None:
    """A time in microseconds as whole fs, further digits cut off; None if it is not a valid time."""
    value = Decimal(text) if text.isascii() and _NUMBER.fullmatch(text) else Decimal(MOST_NS)
    # scaleb is exact: the exponent has at most three digits
    found = int(value.scaleb(9, _EXACT)) if value.adjusted() < 20 else MOST_NS * _PER_NANOSECOND
    return found if abs(found) < MOST_NS * _PER_NANOSECOND else None


def nanoseconds(femto: int) -> int:
    """A time in fs as whole ns, rounded towards zero."""
    return femto // _PER_NANOSECOND if femto >= 0 else -(-femto // _PER_NANOSECOND)


def _text(value: object, missing: str) -> str:
    """A text or number as text without characters that cannot be shown or written; ``missing`` for other values."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
        return missing
    return printable(str(value), _LONGEST_NAME)
