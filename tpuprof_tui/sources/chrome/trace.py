"""Reads a Chrome-trace JSON file of a host: its slices, with times in integer ns of the host's clock."""

from __future__ import annotations

import errno
import os
import re
import stat
from array import array
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import Problem, Severity

from .chunks import NOTHING, EventChunks, raw_text
from .inflate import ALWAYS_UNPACKED, MOST_UNPACKED, PackedText, text_of
from .times import MOST_NS

I64 = npt.NDArray[np.int64]

#: Limit of a trace's text, in bytes; the rest is not read.
MOST_BYTES: Final = 4 << 30
_LONGEST_NAME: Final = 4096
#: Times are added up in femtoseconds.
_PER_NANOSECOND: Final = 10**6
_NUMBER: Final = lazy_pattern(r"-?\d{1,63}(?:\.\d{1,63})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_EXACT: Final = Context(prec=200)
_UNNAMED: Final = "unknown"
#: A byte that is not UTF-8, as in events that were decoded alone.
_NO_UTF8: Final = lazy_pattern("[\udc80-\udcff]")


class _Event(Struct, gc=False):
    """The fields of an event that are used; times as raw text."""

    ph: Any = None
    name: Any = None
    cat: Any = None
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = msgspec.Raw(b"0")


class HostEvents(Struct, frozen=True, eq=False):
    """Slices in the order of the file; arrays of one length.

    Attributes:
        start, end: ns of the host's clock.
        name, category: Codes into ``HostTrace.texts``.
        thread: Thread number of each slice.
    """

    start: I64
    end: I64
    name: npt.NDArray[np.int32]
    category: npt.NDArray[np.int32]
    thread: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start)


class HostMarks(Struct, frozen=True):
    """Slices of a host trace with a meaning for the source of the device's profile.

    Attributes:
        launches: Category of the slices that launch device work; all other slices are host activity.
        closing: Name of the launch that ends the recording.
        left_out: Names of slices that are not shown: those of the profilers themselves.
    """

    launches: str
    closing: str = ""
    left_out: frozenset[str] = frozenset()


class HostTrace(Struct, frozen=True, eq=False):
    """The trace of a host.

    Attributes:
        path: Its file.
        marks: Meaning of its slices.
        events: Its slices, without those of ``marks.left_out``.
        texts: Names and categories, by code.
        closing_ns: End of the last slice that ends the recording; None if there is none.
        first_launch_ns: End of the first launch in the file; None if there is none.
        problems: Defects of the file.
    """

    path: str
    marks: HostMarks
    events: HostEvents
    texts: tuple[str, ...]
    closing_ns: int | None
    first_launch_ns: int | None
    problems: tuple[Problem, ...]

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
        path: The JSON file; may be gzip, whatever its name.
        marks: Meaning of its slices.
        progress: Called with the bytes read and the size of the file; an exception that it raises ends the reading.

    Returns:
        Its slices (events of phase ``X``). Of a damaged file, those that could be read, with Problems.

    Raises:
        UnreadableError: No such file, no regular one, or no list of events in it.
    """
    file = Path(path)
    try:
        with _opened(file) as raw:
            return _Collector(file, marks, raw, progress).trace()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise UnreadableError(f"{file}: {reason}.", "Give the JSON file that the host's profiler wrote.") from None


def _opened(path: Path) -> BinaryIO:
    """Opens a regular file; opening a pipe would block.

    Raises:
        OSError: No such file, or no regular one.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is a directory" if stat.S_ISDIR(mode) else "not a regular file")
    # O_NONBLOCK: the file may have been replaced by a pipe between the two calls
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)), "rb")


class _Collector:
    """Collects the slices of a trace in one pass over its events."""

    def __init__(
        self, path: Path, marks: HostMarks, raw: BinaryIO, progress: Callable[[int, int], None] | None
    ) -> None:  # fmt: skip
        self._path = path
        self._marks = marks
        self._stream = text_of(path, raw)
        self._raw = raw
        self._progress = progress
        self._size = os.fstat(raw.fileno()).st_size
        unpacked = ALWAYS_UNPACKED + MOST_UNPACKED * self._size
        self._most = min(MOST_BYTES, unpacked) if isinstance(self._stream, PackedText) else MOST_BYTES
        self._text_read = 0
        self._damage = ""
        self._codes: dict[str, int] = {}
        self._threads: dict[tuple[str, str], int] = {}
        self._times = (array("q"), array("q"))
        self._columns = (array("i"), array("i"), array("i"))
        self._closing: int | None = None
        self._first_launch: int | None = None
        self._untimed = 0

    def trace(self) -> HostTrace:
        events: EventChunks[_Event] = EventChunks(self._read, _Event, _event_from_dict)
        for chunk in events:
            for event in chunk:
                self._add(event)
        if not events.found and not self._damage:
            raise UnreadableError(
                f"{self._path} holds no traceEvents.",
                "A host trace is Chrome-trace JSON, as PyTorch's profiler writes it.",
            )
        start, end = (np.array(values, dtype=np.int64) for values in self._times)
        name, category, thread = (np.array(values, dtype=np.int32) for values in self._columns)
        closing, launch = (
            None if femto is None else nanoseconds(femto) for femto in (self._closing, self._first_launch)
        )
        return HostTrace(str(self._path), self._marks, HostEvents(start, end, name, category, thread),
                         tuple(self._codes), closing, launch, tuple(self._problems(events)))  # fmt: skip

    def _read(self, count: int) -> bytes:
        """The next bytes of the text; none at its end, at damage, or beyond the size limit."""
        if self._damage:
            return b""
        if self._text_read >= self._most:
            self._damage = f"The text is too long for such a file, over {self._most >> 20} MiB"
            return b""
        data = self._stream.read(count)
        self._text_read += len(data)
        if isinstance(self._stream, PackedText) and self._stream.damaged:
            self._damage = "The compressed data are damaged"
        if self._progress is not None:
            self._progress(min(self._raw.tell(), self._size), self._size)
        return data

    def _add(self, event: _Event) -> None:
        if event.ph != "X":
            return
        start, length = (
            femtoseconds(bytes(raw).decode("utf-8", "replace").strip('"')) for raw in (event.ts, event.dur)
        )
        if start is None or length is None or length < 0 or nanoseconds(start + length) >= MOST_NS:
            self._untimed += 1
            return
        name, category = _text(event.name, _UNNAMED), _text(event.cat, "")
        end = start + length
        marks = self._marks
        if category == marks.launches and name == marks.closing:
            self._closing = end if self._closing is None else max(self._closing, end)
        if name in marks.left_out:
            return
        if category == marks.launches and self._first_launch is None:
            self._first_launch = end
        thread = (_text(event.pid, "")[:64], _text(event.tid, "")[:64])
        self._times[0].append(nanoseconds(start))
        self._times[1].append(nanoseconds(end))
        self._columns[0].append(self._codes.setdefault(name, len(self._codes)))
        self._columns[1].append(self._codes.setdefault(category, len(self._codes)))
        self._columns[2].append(self._threads.setdefault(thread, len(self._threads)))

    def _problems(self, events: EventChunks[_Event]) -> Iterator[Problem]:
        name = self._path.name
        kept = "The slices before are shown."
        if self._damage:
            yield Problem(Severity.ERROR, f"{self._damage}.", kept, file=name, offset=self._text_read)
        elif isinstance(self._stream, PackedText) and self._stream.fault:
            yield Problem(Severity.ERROR, *self._stream.fault, file=name, offset=self._text_read)
        elif events.truncated:
            yield Problem(Severity.ERROR, "The host trace ends within its list of events.", kept, file=name)
        elif events.metadata_lost:
            yield Problem(Severity.WARNING, "The host trace ends after its list of events, in the middle of what "
                          "follows.", "All its slices are shown.", file=name)  # fmt: skip
        if events.trailing_text:
            yield Problem(Severity.ERROR, "There is text after the host trace, or a second list of events in it.",
                          "It was not read.", file=name)  # fmt: skip
        if events.malformed:
            yield Problem(Severity.ERROR, "Events of the host trace that cannot be decoded.", "They were left out.",
                          file=name, count=events.malformed.count)  # fmt: skip
        if self._untimed:
            yield Problem(Severity.ERROR, "Slices of the host trace without a possible time.",
                          "They were left out.", file=name, count=self._untimed)  # fmt: skip


def _event_from_dict(event: dict[str, Any]) -> _Event:
    """The struct of an event that was decoded alone; its numbers are texts."""
    fields = {key: event[key] for key in _Event.__struct_fields__ if key in event}
    return _Event(**fields | {key: raw_text(fields[key]) for key in ("ts", "dur") if key in fields})


def femtoseconds(text: str) -> int | None:
    """A time in microseconds as whole fs, further digits cut off; None if it is not a valid time."""
    value = Decimal(text) if _NUMBER.fullmatch(text) else Decimal(MOST_NS)
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
    return utf8_text(_NO_UTF8.sub("\ufffd", str(value)[:_LONGEST_NAME]))
