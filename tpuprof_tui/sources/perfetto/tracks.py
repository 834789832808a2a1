"""The tracks of a trace, and the threads of a Chrome trace that they become."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from .wire import last, signed, text

#: Most tracks above one that are followed, and longest names.
_DEEPEST, _LONGEST = 32, 1 << 10
_UNITS: Final = {1: "ns", 3: "B"}


class Track(Struct):
    """A track as its descriptor says.

    Attributes:
        parent: Uuid of the track above it; 0: none.
        process, thread: Process that it is, and process and thread that it is; None: none.
        owner: Name of that process or thread.
        incremental, factor, unit: Of a counter: whether its values count from the one before, and what they mean.
    """

    name: str
    parent: int = 0
    process: int | None = None
    thread: tuple[int, int] | None = None
    owner: str = ""
    incremental: bool = False
    factor: int = 1
    unit: str = ""


def track_of(found: dict[int, Any]) -> Track:
    """What a descriptor says (fields of TrackDescriptor)."""
    name = next((text(found[number])[:_LONGEST] for number in (2, 10, 13) if number in found), "")
    process, thread, counter = (last(found.get(number)) for number in (3, 4, 8))
    ids = signed(thread.get(1, 0)), signed(thread.get(2, 0))
    return Track(
        name, found.get(5, 0), signed(process.get(1, 0)) if 3 in found else None, ids if 4 in found else None,
        text(process.get(6) or process.get(2) or thread.get(5) or name), bool(counter.get(5)),
        signed(counter.get(4, 1)) or 1, text(counter.get(6, b"")) or _UNITS.get(counter.get(3, 0), ""),
    )  # fmt: skip


class Tracks(dict[int, Track]):
    """The tracks of a trace by uuid.

    A track below a process or a thread becomes a thread of the process, any other one of the tracks above it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._used: dict[tuple[int | str, int | str], int] = {}

    def lane(self, uuid: int) -> tuple[int | str, int | str]:
        """Process and thread of a track, numbers or titles; a thread's alone are shared."""
        found = wanted = self._lane(uuid)
        while found in self._used and not (uuid in self and self[uuid].thread):
            self._used[wanted] += 1
            found = wanted[0], f"{wanted[1]} ({self._used[wanted]})"
        self._used.setdefault(found, 1)
        return found

    def _lane(self, uuid: int) -> tuple[int | str, int | str]:
        names: list[str] = []
        above = uuid
        while (track := self.get(above)) is not None and len(names) <= _DEEPEST:
            below = " / ".join(reversed(names))[:_LONGEST]
            if track.thread is not None:
                return track.thread[0], f"{track.thread[1]} / {below}" if names else track.thread[1]
            if track.process is not None:
                return track.process, below or track.name or "process"
            names.append(track.name or f"track {above}")
            above = track.parent
        leaf, *parents = names or [f"track {uuid}"]
        stream = leaf.removeprefix("stream ")
        place: int | str = int(stream) if stream != leaf and stream.isdecimal() and len(stream) < 10 else leaf
        return ": ".join(reversed(parents))[:_LONGEST] or "Global tracks", place
