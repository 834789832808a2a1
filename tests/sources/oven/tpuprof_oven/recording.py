"""The file format: one JSON object for each bakery.

    {"oven": 1, "bakery": 0, "bakeries": 2, "tick_ns": 125,
     "ovens": [{"number": 3, "watts": 2500.0}, ...],
     "lanes": [{"kind": "tray", "cart" or "baker", "oven": 3 (of a tray; others: -1), "number": 0,
                "events": [[...], ...]}, ...],
     "calls": [[lane, event, lane, event, "puts" or "hands on"], ...],
     "meters": [{"oven": 3, "name": "heat", "unit": "K", "ticks": [...], "values": [...]}, ...],
     "rounds": [{"label": "rye 1", "oven": 3, "from": tick, "until": tick}, ...]}

An event is [from, until, does, what, recipe, grams, inside, round, carried_for]: ticks; what a tray does (``bake``,
``carry``, ``pass``, ``rest``), a cart (``carry``) or a baker (``work``, ``wait``); a name; the recipe it belongs to;
grams moved; the event of the lane that encloses it, the round (counted for each oven), and the oven that a cart carried
it for (-1: none). Events of a lane are in the order of their beginning.
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
DOES: Final = {"tray": ("bake", "carry", "pass", "rest"), "cart": ("carry",), "baker": ("work", "wait")}


class Event(NamedTuple):
    """Something that a tray, a cart or a baker did; see the module."""

    start: int
    end: int
    does: str
    what: str
    recipe: str = ""
    grams: int = 0
    inside: int = -1
    round: int = -1
    carried_for: int = -1


@dataclass
class RecordedLane:
    """A tray, a cart or a baker, and what it did."""

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
        places = {place: moved for place, each in enumerate(found) if (moved := _add_lane(result, each)) is not None}
        result.calls = _calls(result, places)
    return result


#: A lane of the file: its place among those that are kept, and the row of each of its events.
_Moved = tuple[int, dict[int, int]]


def _add_lane(result: Recording, lane: Any) -> _Moved | None:
    if not isinstance(lane, dict):
        return None
    kind, oven, number, events = (lane.get(key) for key in ("kind", "oven", "number", "events"))
    least = 0 if kind == "tray" else -1
    if (
        not isinstance(kind, str)
        or kind not in DOES
        or not _whole(oven, least, 4095)
        or not _whole(number, 0, 4095)
        or not isinstance(events, list)
    ):
        _doubt(result, "a lane without kind, oven, number or events")
        return None
    sound = [(Event(*each), place) for place, each in enumerate(events) if _is_event(kind, each)]
    _doubt(result, "an event that is none", len(events) - len(sound))
    sound.sort(key=lambda found: (found[0].start, -found[0].end))
    rows = {place: row for row, (_, place) in enumerate(sound)}
    kept = [event._replace(inside=_enclosing(event, row, rows)) for row, (event, _) in enumerate(sound)]
    result.lanes.append(RecordedLane(kind, oven if kind == "tray" else -1, number, kept))
    return len(result.lanes) - 1, rows


def _enclosing(event: Event, row: int, rows: dict[int, int]) -> int:
    """The row of the event that encloses one; -1 where it is gone or comes later."""
    found = rows.get(event.inside, -1)
    return found if found < row else -1


def _calls(result: Recording, places: dict[int, _Moved]) -> list[list[Any]]:
    """The calls between events that are kept, by their places and rows."""
    kept = []
    for call in result.calls:
        if len(call) == 5 and isinstance(call[4], str) and all(_whole(value, 0, 1 << 40) for value in call[:4]):
            (one, rows), (other, others) = (places.get(lane, (-1, {})) for lane in (call[0], call[2]))
            if call[1] in rows and call[3] in others:
                kept.append([one, rows[call[1]], other, others[call[3]], call[4]])
    _doubt(result, "a call between events that are none", len(result.calls) - len(kept))
    return kept


def _is_event(kind: str, event: Any) -> bool:
    return (
        isinstance(event, list) and len(event) == len(Event._fields)
        and _whole(event[0], 0, LARGEST_TICK) and _whole(event[1], event[0], LARGEST_TICK)
        and all(isinstance(value, str) for value in event[2:5]) and event[2] in DOES[kind]
        and _whole(event[5], 0, 1 << 40) and all(_whole(value, -1, 1 << 40) for value in event[6:])
    )  # fmt: skip


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _doubt(result: Recording, what: str, count: int = 1) -> None:
    if count:
        result.doubts[what] = result.doubts.get(what, 0) + count
