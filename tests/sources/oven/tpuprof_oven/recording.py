"""The file format: one JSON object for each bakery.

    {"oven": 1, "bakery": 0, "bakeries": 2, "tick_ns": 125,
     "ovens": [{"number": 3, "watts": 2500.0}, ...],
     "lanes": [{"kind": "tray" or "baker", "oven": 3 (a baker: -1), "number": 0, "events": [[...], ...]}, ...],
     "calls": [[lane, event, lane, event, "puts" or "hands on"], ...],
     "meters": [{"oven": 3, "name": "heat", "unit": "K", "ticks": [...], "values": [...]}, ...],
     "rounds": [{"label": "rye 1", "oven": 3, "from": tick, "until": tick}, ...]}

An event is [from, until, does, what, recipe, grams, inside, round, put_by]: ticks; what a tray does (``bake``,
``carry``, ``pass``, ``rest``) or a baker (``work``, ``wait``); a name; the recipe it belongs to; grams moved; the event
of the lane that encloses it, the round and the baker that put it there (-1: none). Events of a lane are in the order of
their beginning.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpuprof_tui.errors import UnreadableError

VERSION: Final = 1
LARGEST_FILE: Final = 1 << 26
LARGEST_TICK: Final = 1 << 40
KINDS: Final = ("tray", "baker")
DOES: Final = {"tray": ("bake", "carry", "pass", "rest"), "baker": ("work", "wait")}


class Event(NamedTuple):
    """Something that a tray or a baker did; see the module."""

    start: int
    end: int
    does: str
    what: str
    recipe: str = ""
    grams: int = 0
    inside: int = -1
    round: int = -1
    put_by: int = -1


@dataclass
class RecordedLane:
    """A tray or a baker, and what it did."""

    kind: str
    oven: int
    number: int
    events: list[Event]


@dataclass
class Recording:
    """One file.

    Attributes:
        doubts: What of the file could not be used, and how often.
    """

    bakery: int = 0
    bakeries: int = 1
    tick_ns: int = 125
    ovens: list[dict[str, Any]] = field(default_factory=list)
    lanes: list[RecordedLane] = field(default_factory=list)
    calls: list[list[Any]] = field(default_factory=list)
    meters: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    doubts: dict[str, int] = field(default_factory=dict)


def write_recording(recording: Recording, path: Path) -> None:
    """Writes a file."""
    lanes = [
        {"kind": lane.kind, "oven": lane.oven, "number": lane.number, "events": [list(each) for each in lane.events]}
        for lane in recording.lanes
    ]
    record = {"oven": VERSION, "bakery": recording.bakery, "bakeries": recording.bakeries, "tick_ns": recording.tick_ns,
              "ovens": recording.ovens, "lanes": lanes, "calls": recording.calls, "meters": recording.meters,
              "rounds": recording.rounds}  # fmt: skip
    path.write_text(json.dumps(record), encoding="utf-8")


def read_recording(path: Path) -> Recording:
    """Reads a file; what of it cannot be used is counted among the doubts.

    Raises:
        UnreadableError: It is too large, no JSON, or of another version.
    """
    if os.path.getsize(path) > LARGEST_FILE:
        raise UnreadableError(f"{path} is larger than any oven records.")
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise UnreadableError(f"{path} is no JSON.") from None
    if not isinstance(record, dict) or record.get("oven") != VERSION:
        raise UnreadableError(f"{path} is no recording of an oven of version {VERSION}.")
    result = Recording(doubts={})
    for name, least, most in (("bakery", 0, 4095), ("bakeries", 1, 4096), ("tick_ns", 1, 1_000_000)):
        value = record.get(name)
        if _whole(value, least, most):
            setattr(result, name, value)
        else:
            _doubt(result, f"{name} is no number from {least} to {most}")
    for name in ("ovens", "calls", "meters", "rounds", "lanes"):
        found = record.get(name, [])
        if not isinstance(found, list):
            _doubt(result, f"{name} is no list")
            continue
        kind = list if name == "calls" else dict
        sound = [each for each in found if isinstance(each, kind)]
        _doubt(result, f"something among {name} is no {'list' if kind is list else 'object'}", len(found) - len(sound))
        if name != "lanes":
            setattr(result, name, sound)
            continue
        for each in sound:
            _add_lane(result, each)
    return result


def _add_lane(result: Recording, lane: dict[str, Any]) -> None:
    kind, oven, number, events = (lane.get(key) for key in ("kind", "oven", "number", "events"))
    if kind not in KINDS or not _whole(oven, -1, 4095) or not _whole(number, 0, 4095) or not isinstance(events, list):
        _doubt(result, "a lane without kind, oven, number or events")
        return
    sound = [Event(*each) for each in events if _is_event(kind, each)]
    _doubt(result, "an event that is none", len(events) - len(sound))
    sound.sort(key=lambda event: (event.start, -event.end))
    result.lanes.append(RecordedLane(kind, oven, number, sound))


def _is_event(kind: str, event: Any) -> bool:
    return (
        isinstance(event, list) and len(event) == len(Event._fields)
        and _whole(event[0], 0, LARGEST_TICK) and _whole(event[1], event[0], LARGEST_TICK)
        and event[2] in DOES[kind] and isinstance(event[3], str) and isinstance(event[4], str)
        and _whole(event[5], 0, 1 << 40) and all(_whole(value, -1, 1 << 40) for value in event[6:])
    )  # fmt: skip


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _doubt(result: Recording, what: str, count: int = 1) -> None:
    if count:
        result.doubts[what] = result.doubts.get(what, 0) + count
