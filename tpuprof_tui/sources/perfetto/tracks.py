"""The tracks of a trace, and the threads of a Chrome trace that they become."""

from __future__ import annotations

from typing import Any, Final

from .wire import last, signed, text

#: Most tracks above one that are followed, and longest names.
_DEEPEST, _LONGEST = 32, 1 << 10
# fields of descriptors (TrackDescriptor)
UUID, PROCESS, THREAD, _PARENT, COUNTER, _NAMES = 1, 3, 4, 5, 8, (2, 10, 13)
_UNITS: Final = {1: "ns", 3: "B"}
#: Process and thread, numbers or titles.
Place = tuple[int | str, int | str]


def name_of(fields: dict[int, Any]) -> str:
    """Name of a track."""
    return next((text(fields[number])[:_LONGEST] for number in _NAMES if number in fields), "")


def owner_of(fields: dict[int, Any]) -> tuple[tuple[int, ...], str]:
    """Ids and name of the process or thread that a track is; no ids if it is neither."""
    process, thread = last(fields.get(PROCESS)), last(fields.get(THREAD))
    if THREAD in fields:
        return (signed(thread.get(1, 0)), signed(thread.get(2, 0))), text(thread.get(5) or name_of(fields))
    if PROCESS in fields:
        return (signed(process.get(1, 0)),), text(process.get(6) or process.get(2) or name_of(fields))
    return (), ""


def counter_of(fields: dict[int, Any]) -> tuple[bool, int, str]:
    """Whether values of a counter count from the one before, the factor of them, and their unit."""
    counter = last(fields.get(COUNTER))
    unit = text(counter.get(6, b"")) or _UNITS.get(counter.get(3, 0), "")
    return bool(counter.get(5)), signed(counter.get(4, 1)) or 1, unit


class Tracks(dict[int, dict[int, Any]]):
    """The fields of the descriptors of tracks by uuid.

    A track below a process or a thread becomes a thread of the process, any other one of the tracks above it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._used: dict[Place, int] = {}

    def lane(self, uuid: int) -> Place:
        """Where the events of a track are shown; the place of a thread alone is that of several tracks."""
        found = wanted = self._place(uuid)
        while found in self._used and THREAD not in self.get(uuid, ()):
            self._used[wanted] += 1
            found = wanted[0], f"{wanted[1]} ({self._used[wanted]})"
        self._used.setdefault(found, 1)
        return found

    def _place(self, uuid: int) -> Place:
        names: list[str] = []
        above = uuid
        while (track := self.get(above)) is not None and len(names) <= _DEEPEST:
            below, (ids, _) = " / ".join(reversed(names))[:_LONGEST], owner_of(track)
            if len(ids) > 1:
                return ids[0], f"{ids[1]} / {below}" if names else ids[1]
            if ids:
                return ids[0], below or name_of(track) or "process"
            names.append(name_of(track) or f"track {above}")
            above = track.get(_PARENT, 0)
        leaf, *parents = names or [f"track {uuid}"]
        stream = leaf.removeprefix("stream ")
        place: int | str = int(stream) if stream != leaf and stream.isdecimal() and len(stream) < 10 else leaf
        return ": ".join(reversed(parents))[:_LONGEST] or "Global tracks", place
