"""The overview of kernel functions: one slice per launch on each core, and on each CDMA port that it uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.perfetto.tracks import (
    CATEGORIES,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_NAMES,
    EVENT_TYPE,
    NOTE_INT,
    NOTE_TEXT,
    NOTE_TEXTS,
    SLICE_BEGIN,
    SLICE_END,
    PacketSequence,
    Shaped,
)
from tpuprof_tui.formats.perfetto.wire import Values, messages, varint_field
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import Rows, row_parts

I64 = npt.NDArray[np.int64]

#: Order in which modes are named; others follow.
MODES: Final = ("RVT", "TDI", "DES")
#: Rows of a lane that are looked at together.
_ROWS: Final = 262_144
_NONE: Final = -1


class Launches(Struct, frozen=True):
    """Launches of kernel functions on one track, ordered by (start, end); arrays of one length.

    Attributes:
        start, end: ns.
        kernel: Codes into ``Profile.strings["kernel"]``.
        scope: Launch number, -1 where there is none.
        first_batch, last_batch: Smallest and largest batch launch, -1 where there is none.
        modes: One bit per code of ``Profile.strings["mode"]``.
    """

    start: I64
    end: I64
    kernel: I64
    scope: I64
    first_batch: I64
    last_batch: I64
    modes: I64

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: npt.NDArray[Any]) -> Launches:
        """Some of them."""
        return Launches(*(getattr(self, name)[rows] for name in _FIELDS))


_FIELDS: Final = ("start", "end", "kernel", "scope", "first_batch", "last_batch", "modes")


def launches_of(profile: Profile, chosen: Iterable[tuple[Lane, Rows]]) -> Launches:
    """Launches that the given instructions belong to.

    The instructions of a launch number are one launch. Where there is no number, neighbours in time with the same
    kernel function and batch are one.

    Args:
        profile: The profile.
        chosen: Lanes of one track of the overview, with the rows that count.
    """
    named = np.array([bool(text) for text in profile.strings["kernel"]] + [False])
    runs = [part for lane, rows in chosen if "kernel" in lane for part in _lane_runs(lane, rows, named)]
    if not runs:
        empty = np.zeros(0, np.int64)
        return Launches(*(empty for _ in _FIELDS))
    whole = Launches(*(np.concatenate([getattr(run, name) for run in runs]) for name in _FIELDS))
    numbered = whole.scope >= 0
    parts = []
    if numbered.any():
        some = whole.take(np.flatnonzero(numbered))
        parts.append(_merged(some.take(np.argsort(some.scope, kind="stable")), by_scope=True))
    if not numbered.all():
        some = whole.take(np.flatnonzero(~numbered))
        parts.append(_merged(some.take(np.lexsort((some.end, some.start))), by_scope=False))
    joined = Launches(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))
    return joined.take(np.lexsort((joined.end, joined.start)))


def _lane_runs(lane: Lane, rows: Rows, named: npt.NDArray[np.bool_]) -> Iterable[Launches]:
    """A lane's instructions with a kernel function; neighbours of one numbered launch already are one."""
    for part, _ in row_parts(rows, _ROWS):
        kernel = lane.take("kernel", part).astype(np.int64)
        known = (kernel >= 0) & (kernel < len(named) - 1)
        known &= named[np.where(known, kernel, len(named) - 1)]
        places = np.flatnonzero(known)
        if not len(places):
            continue
        batch = _whole(lane, "batch", part, places)
        mode = _whole(lane, "mode", part, places)
        runs = Launches(
            start=lane.take("start", part)[places],
            end=lane.take("end", part)[places],
            kernel=kernel[places],
            scope=_whole(lane, "scope", part, places),
            first_batch=batch,
            last_batch=batch,
            modes=np.where((mode >= 0) & (mode < 63), np.left_shift(1, np.clip(mode, 0, 62)), 0),
        )
        yield _merged(runs, by_scope=True) if bool((runs.scope >= 0).all()) else runs


def _whole(lane: Lane, key: str, rows: Rows, places: npt.NDArray[np.intp]) -> I64:
    """An integer column; -1 where there is no value."""
    if key not in lane:
        return np.full(len(places), _NONE, np.int64)
    values = lane.take(key, rows)[places].astype(np.int64)
    return np.where((values == INT_MISSING) | (values < 0), _NONE, values)


def _merged(runs: Launches, *, by_scope: bool) -> Launches:
    """Neighbours of the same launch number (else: kernel function and batch) as one."""
    if by_scope:
        differs = runs.scope[1:] != runs.scope[:-1]
    else:
        differs = (runs.kernel[1:] != runs.kernel[:-1]) | (runs.first_batch[1:] != runs.first_batch[:-1])
    first = np.append(0, np.flatnonzero(differs) + 1)
    batch = np.where(runs.first_batch < 0, np.iinfo(np.int64).max, runs.first_batch)
    smallest = np.minimum.reduceat(batch, first)
    largest = np.maximum.reduceat(runs.last_batch, first)
    return Launches(
        start=np.minimum.reduceat(runs.start, first),
        end=np.maximum.reduceat(runs.end, first),
        kernel=runs.kernel[first],
        scope=runs.scope[first],
        first_batch=np.where(largest < 0, _NONE, smallest),
        last_batch=largest,
        modes=np.bitwise_or.reduceat(runs.modes, first),
    )


class LaunchEncoder:
    """Encodes launches for one track."""

    def __init__(self, profile: Profile, sequence: PacketSequence, base_ns: int) -> None:
        self._profile = profile
        self._sequence = sequence
        self._base = base_ns

    def encoded(self, launches: Launches) -> bytes:
        """The packets of launches that do not overlap, in the order of time."""
        shapes = (
            (launches.scope >= 0).astype(np.int64)
            | (launches.first_batch >= 0).astype(np.int64) << 1
            | (launches.first_batch != launches.last_batch).astype(np.int64) << 2
            | (launches.modes != 0).astype(np.int64) << 3
        )
        parts: list[Shaped] = []
        for shape in np.unique(shapes).tolist():
            places = np.flatnonzero(shapes == shape)
            parts.append((places, self._table(shape, launches.take(places))))
        return self._sequence.encoded(parts, len(launches))

    def _table(self, shape: int, some: Launches) -> npt.NDArray[np.uint8]:
        sequence, kernels = self._sequence, self._profile.strings["kernel"]
        modes = self._texts(CATEGORIES, some.modes, self._mode_text) if shape & 8 else 0
        category = varint_field(EVENT_CATEGORY, modes) if shape & 8 else []
        begin = [
            *varint_field(EVENT_TYPE, SLICE_BEGIN),
            *varint_field(EVENT_NAME, sequence.iids(EVENT_NAMES, "kernel", kernels, some.kernel)),
            *category,
            *sequence.annotation(
                "Kernel Function", varint_field(NOTE_TEXT, sequence.iids(NOTE_TEXTS, "kernel", kernels, some.kernel))
            ),
        ]
        if shape & 1:
            begin += sequence.annotation("Func Scope Id", varint_field(NOTE_INT, some.scope))
        if shape & 4:
            pairs = np.stack([some.first_batch, some.last_batch], axis=1)
            texts = [sequence.iid(NOTE_TEXTS, f"{first}/{last}") for first, last in pairs.tolist()]
            begin += sequence.annotation("Batch Launch", varint_field(NOTE_TEXT, np.array(texts, np.int64)))
        elif shape & 2:
            begin += sequence.annotation("Batch Launch", varint_field(NOTE_INT, some.first_batch))
        if shape & 8:
            named = self._texts(NOTE_TEXTS, some.modes, self._mode_text)
            begin += sequence.annotation("Mode", varint_field(NOTE_TEXT, named))
        end = [*varint_field(EVENT_TYPE, SLICE_END), *category]
        packets = [*sequence.packet(some.start + self._base, begin), *sequence.packet(some.end + self._base, end)]
        return messages(packets, len(some))

    def _texts(self, table: int, values: I64, text: Any) -> Values:
        """Numbers of the texts of few distinct values."""
        distinct, which = np.unique(values, return_inverse=True)
        numbers = [self._sequence.iid(table, text(value)) for value in distinct.tolist()]
        return np.array(numbers, dtype=np.int64)[which.reshape(-1)]

    def _mode_text(self, bits: int) -> str:
        """Names of modes, joined by slashes."""
        names = [text for code, text in enumerate(self._profile.strings["mode"]) if code < 63 and bits >> code & 1]
        ranked = [name for name in MODES if name in names]
        return "/".join([*ranked, *(name for name in names if name not in MODES)])
