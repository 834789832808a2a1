"""Reads large traces in sections, all but the first in other processes: decoding holds the GIL, so threads do not help.

The text is cut at likely borders between two events. Each section but the last is read as if the list of events ended
there: only if it does, behind an event that can be decoded, is the border real; if one is not, a single process reads
the whole file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Union

import msgspec
from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern

from .chunks import NOTHING, EventChunks, decoded_alone

_MISSING: Final = {str: "", msgspec.Raw: NOTHING}


def event(phase: str, **fields: Any) -> Any:
    """Struct that events of a phase (``ph``) are decoded to: the types of their keys, or types and missing values."""
    pairs = [
        (key, *kind) if isinstance(kind, tuple) else (key, kind, _MISSING.get(kind)) for key, kind in fields.items()
    ]
    return msgspec.defstruct(f"Event{phase}", pairs, gc=False, tag_field="ph", tag=phase)


def complete_events(arguments: Any) -> Any:
    """Struct of events with a duration, whose arguments are decoded to a struct ``arguments``."""
    return event("X", cat=str, name=(str, "None"), pid=Any, tid=Any, ts=msgspec.Raw, dur=msgspec.Raw,
                 args=arguments | None)  # fmt: skip


class _NameArgs(msgspec.Struct, gc=False):
    name: Any = None
    labels: Any = None
    sort_index: Any = None


#: Names, labels or places of processes and threads; samples of counters; both ends of flows.
Metadata: Final = event("M", name=Any, pid=Any, tid=Any, args=_NameArgs | None)
Sample: Final = event("C", name=Any, pid=Any, ts=msgspec.Raw, args=Any)
FLOW: Final = {"cat": Any, "id": Any, "pid": Any, "tid": Any, "ts": msgspec.Raw}
FlowStart, FlowEnd = event("s", **FLOW), event("f", **FLOW)


class Phases:
    """What the events of each phase (``ph``) are decoded to.

    Args:
        methods: For each struct of events the method of a ``Collector`` that adds some; empty: none.
        skipped: Other phases that are known, whose events are left out.

    Attributes:
        any: Type of all events, also those of other phases.
        known: Values of ``ph`` in ``methods`` and ``skipped``.
        methods: By struct; of events of other phases ``add_unknown``.
    """

    def __init__(self, methods: dict[Any, str], skipped: str = "") -> None:
        structs = {kind.__struct_config__.tag: kind for kind in methods}
        self.known: Final = (*structs, *skipped)
        others = {phase: event(phase) for phase in ("", *"XiIMCsftBEnbe") if phase not in structs}
        self.methods = methods | {kind: "add_unknown" for phase, kind in others.items() if phase not in self.known}
        self._structs = structs | others
        self.any: Any = Union[tuple(self._structs.values())]  # noqa: UP007
        #: Keys of the fields of each phase, and whether they hold texts.
        self._fields = {phase: {field.encode_name: field.type is str for field in msgspec.structs.fields(kind)}
                        for phase, kind in self._structs.items()}  # fmt: skip

    def from_dict(self, event: dict[str, Any]) -> Any:
        """The struct of an event that was decoded alone; None if it does not fit."""
        phase = event.get("ph")
        phase = phase if isinstance(phase, str) and phase in self._structs else ""
        fields = {key: str(event[key]) if is_text else event[key] for key, is_text in self._fields[phase].items()
                  if event.get(key) is not None}  # fmt: skip
        if not isinstance(fields.get("args"), dict):
            fields.pop("args", None)
        return decoded_alone(fields | {"ph": phase}, self.any)


#: Size in bytes of the smallest section that pays, and what the first process reads while the others start up.
_SMALLEST: Final = 20 << 20
_STARTING: Final = 16 << 20
#: Most processes: more gain little, as the results are joined by one.
_MOST: Final = 8
#: Bytes in which a border is searched.
_NEAR: Final = 1 << 20
_BORDER: Final = lazy_pattern(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid)"\s*:)')


class Section(Struct, frozen=True):
    """A byte range of a file, from the begin of an event to the end of another."""

    begin: int  #: Offset of its first event; 0: the beginning of the file
    end: int  #: Offset behind its last event; -1: the end of the file


def section_count(size: int, processes: int) -> int:
    """Number of sections for a file of ``size`` bytes and at most ``processes``; below 2: one process reads it."""
    return min(processes, _MOST, size // _SMALLEST)


def sections_of(raw: BinaryIO, size: int, processes: int) -> list[Section]:
    """Sections of a file in order, at most ``processes``; a single one if the file is small."""
    count = section_count(size, processes)
    borders = set()
    for number in range(1, count):
        target = _STARTING + number * (size - _STARTING) // count
        raw.seek(target)
        if match := _BORDER.search(raw.read(_NEAR)):
            borders.add((target + match.start() + 1, target + match.end()))
    raw.seek(0)
    ends, begins = zip(*sorted(borders), strict=True) if borders else ((), ())
    return [Section(begin, end) for begin, end in zip((0, *begins), (*ends, -1), strict=True)]


def begins_with_object(raw: BinaryIO) -> bool:
    """Whether the text of a file begins with an object, which then holds the list of events."""
    return raw.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def state_of(file: int) -> tuple[int, int]:
    """Size in bytes and modification time in ns of an open file."""
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns


def memory_bytes() -> int:
    """Physical memory in bytes, or the cgroup's limit if that is lower; 0 if unknown."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        limit = ""
    return min(found, int(limit)) if limit.isdecimal() else found


class SectionText:
    """The text of a section, with a bracket added that ends the list of events there."""

    def __init__(self, raw: BinaryIO, section: Section) -> None:
        raw.seek(section.begin)
        self._raw, self._left, self._closing = raw, section.end - section.begin, b"]"
        self.read: Callable[[int], bytes] = raw.read if section.end < 0 else self._read

    def _read(self, count: int) -> bytes:
        data = self._raw.read(min(count, self._left))
        self._left -= len(data)
        if not data:
            data, self._closing = self._closing, b""
        return data


def ended_at_border(section: Section, chunks: EventChunks[Any]) -> bool:
    """Whether the list of events of a section ends exactly at its end, behind an event that could be decoded."""
    # + 1: the added bracket
    return section.end < 0 or (
        chunks.found and not chunks.truncated and chunks.ended_sound and chunks.list_end == section.end + 1
    )
