"""When a trace was recorded, by the events at both ends of its file: an estimate for lists that read no file whole."""

from __future__ import annotations

from typing import Final

import numpy as np

from tpuprof_tui.lazy_names import lazy_pattern

from .impossible_times import I64, judged

_NUMBER: Final = rb'"%s"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)"?'
_TIME, _DURATION = (_NUMBER % key for key in (b"ts", b"dur"))
#: Times and durations are neighbours in events, in either order.
_EVENT: Final = lazy_pattern(rb"(?:%s\s*,\s*)?%s(?:\s*,\s*%s)?" % (_DURATION, _TIME, _DURATION))
#: Latest time in ns that is looked at.
_LATEST: Final = 1 << 61


def extent(head: bytes, tail: bytes) -> tuple[int, int] | None:
    """First start and last end of the events in the first and last bytes of a trace, without impossible ones.

    Returns:
        ns on the clock of the file; None if there is no event.
    """
    starts, ends = (np.concatenate(each) for each in zip(_times(head), _times(tail), strict=True))
    if not len(starts):
        return None
    found = judged(starts, ends)
    return found.low, found.high


def _times(text: bytes) -> tuple[I64, I64]:
    """Starts and ends in ns: of events with a duration if there are any, else of all."""
    every = [(_ns(match[2]), match[1] or match[3]) for match in _EVENT.finditer(text)]
    # a time of 0 is that of an event without one
    every = [each for each in every if 0 < each[0] < _LATEST]
    chosen = [each for each in every if each[1]] or every
    durations = [min(_ns(duration or b"0"), _LATEST) for _, duration in chosen]
    starts = np.array([start for start, _ in chosen], np.int64)
    return starts, starts + np.array(durations, np.int64)


def _ns(us: bytes) -> int:
    whole, _, part = us.partition(b".")
    return int(whole) * 1000 + int(part[:3].ljust(3, b"0"))
