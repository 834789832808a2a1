"""The tracks of a trace, and the threads of a Chrome trace that they become."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from .state import as_json
from .wire import last, signed, text

#: Most tracks above one that are followed.
_DEEPEST: Final = 32
_GLOBAL: Final = "Global tracks"
_UNITS: Final = {1: "ns", 3: "B"}


class Track(Struct):
    """A track as its descriptor says.

    Attributes:
        parent: Uuid of the track above it; 0: none.
        process, thread: Process that it is, and process and thread that it is; None: none.
        owner: Name of that process or thread.
        incremental, factor, unit: Of a counter: whether its values count from the one before, and what they mean.
    """

    name: str = ""
    parent: int = 0
    process: int | None = None
    thread: tuple[int, int] | None = None
    owner: str = ""
    incremental: bool = False
    factor: int = 1
    unit: str = ""


def track_of(found: dict[int, Any]) -> Track:
    """What a descriptor says (TrackDescriptor)."""
    name = next((text(found[number]) for number in (2, 10, 13) if number in found), "")
    track = Track(name, found.get(5, 0))
    if 3 in found:
        process = last(found[3])
        track.process, track.owner = signed(process.get(1, 0)), text(process.get(6) or process.get(2, b"")) or name
    if 4 in found:
        thread = last(found[4])
        track.thread, track.owner = (
            (signed(thread.get(1, 0)), signed(thread.get(2, 0))),
            text(thread.get(5, b"")) or name,
        )
    counter = last(found.get(8))
    track.incremental, track.factor = bool(counter.get(5)), signed(counter.get(4, 1)) or 1
    track.unit = text(counter.get(6, b"")) or _UNITS.get(counter.get(3, 0), "")
    return track


class Lane(Struct, frozen=True):
    """Process and thread, numbers or titles, that the events of a track are shown at."""

    process: int | str
    thread: int | str

    @property
    def json(self) -> str:
        """Both as members of a JSON object."""
        return f'"pid":{as_json(self.process)},"tid":{as_json(self.thread)}'


class Tracks:
    """The tracks of a trace by uuid.

    A track below a process or a thread becomes a thread of the process, any other one of the tracks above it.
    """

    def __init__(self) -> None:
        self._tracks: dict[int, Track] = {}
        self._lanes: dict[int, Lane] = {}
        self._used: dict[Lane, int] = {}

    def add(self, uuid: int, track: Track) -> None:
        """Adds a track, or what a later descriptor says of it."""
        self._tracks[uuid] = track

    def __getitem__(self, uuid: int) -> Track:
        return self._tracks.get(uuid) or Track()

    def lane(self, uuid: int) -> Lane:
        """Where the events of a track are shown; of its own but for a thread."""
        found = self._lanes.get(uuid)
        if found is None:
            found = wanted = self._lane(uuid)
            while found in self._used and self[uuid].thread is None:
                self._used[wanted] += 1
                found = Lane(wanted.process, f"{wanted.thread} ({self._used[wanted]})")
            self._used.setdefault(found, 1)
            self._lanes[uuid] = found
        return found

    def _lane(self, uuid: int) -> Lane:
        names: list[str] = []
        above = uuid
        while above in self._tracks and len(names) <= _DEEPEST:
            track = self._tracks[above]
            if track.thread is not None:
                process, thread = track.thread
                return Lane(process, " / ".join([str(thread), *reversed(names)]) if names else thread)
            if track.process is not None:
                return Lane(track.process, " / ".join(reversed(names)) or track.name or "process")
            names.append(track.name or f"track {above}")
            above = track.parent
        leaf, *parents = names or [f"track {uuid}"]
        return Lane(": ".join(reversed(parents)) or _GLOBAL, leaf)
