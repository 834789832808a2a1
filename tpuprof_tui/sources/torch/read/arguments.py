"""Arguments of single events, read again from the file when they are asked for."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.chunks import NOTHING, EventChunks, raw_text
from tpuprof_tui.sources.chrome.inflate import Inflated, Place
from tpuprof_tui.sources.chrome.times import exact_ns


class _Complete(msgspec.Struct, gc=False):
    ph: str = ""
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    args: msgspec.Raw = NOTHING


@dataclass(frozen=True, eq=False)
class Arguments:
    """Where the text of each event stands.

    Attributes:
        path: The file.
        state: Its size and time of change when it was read; arguments of a file that has changed are not known.
        first: Number of the first complete event of each piece of text.
        offset: Where each piece begins, and where the last one ends.
        places: From where a packed file can be read; none of a plain one, None where it can only be read as a whole.
    """

    path: Path
    state: tuple[int, int]
    first: Sequence[int]
    offset: Sequence[int]
    places: Sequence[Place] | None

    def of(self, number: int) -> dict[str, Any]:
        """Arguments of the complete event of a number; none where they cannot be read any more."""
        piece = bisect_right(self.first, number) - 1
        try:
            text = self._text(self.offset[piece], self.offset[piece + 1])
        except OSError:
            return {}
        if text is None:
            return {}
        waiting = [text.rstrip(b", \t\r\n") + b"]"]
        chunks = EventChunks(lambda _: waiting.pop() if waiting else b"", _Complete, _loose)
        events = [each for part in chunks.inside() for each in part if each.ph == "X"]
        times = exact_ns([each.ts for each in events]), exact_ns([each.dur for each in events])
        sound = np.flatnonzero((times[0] != INT_MISSING) & (times[1] != INT_MISSING))
        place = number - self.first[piece]
        if place >= len(sound) or not events[int(sound[place])].args:
            return {}
        try:
            found = msgspec.json.decode(events[int(sound[place])].args)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return {}
        return found if isinstance(found, dict) else {}

    def _text(self, begin: int, end: int) -> bytes | None:
        with self.path.open("rb") as raw:
            if self.places is None or state_of(raw.fileno()) != self.state:
                return None
            if not self.places:
                raw.seek(begin)
                return raw.read(end - begin)
            place = self.places[bisect_right(self.places, begin, key=lambda each: each.text) - 1]
            source = Inflated.from_place(raw, place)
            source.read(begin - place.text)
            return source.read(end - begin)


def state_of(file: int) -> tuple[int, int]:
    """Size and time of the last change of an open file."""
    found = os.fstat(file)
    return found.st_size, found.st_mtime_ns


def _loose(event: dict[str, Any]) -> _Complete:
    """An event that was decoded alone; its numbers are texts."""
    args = NOTHING
    if isinstance(event.get("args"), dict):
        try:
            args = msgspec.Raw(msgspec.json.encode(event["args"], enc_hook=_number))
        except (ValueError, TypeError, RecursionError):
            args = NOTHING
    phase = "X" if event.get("ph") == "X" else ""
    return _Complete(ph=phase, ts=raw_text(event.get("ts")), dur=raw_text(event.get("dur")), args=args)


def _number(text: Any) -> Any:
    """The number that a text of one stands for."""
    return int(text) if text.lstrip("-").isdecimal() else float(text)
