"""Overview of kernel functions: one slice per launch on each core, and on each CDMA port that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

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
    by_shape,
)
from tpuprof_tui.formats.perfetto.wire import Values, messages, varint_field
from tpuprof_tui.model import INT_MISSING, Lane, Profile
from tpuprof_tui.model.lane import Rows, row_parts, select_rows
from tpuprof_tui.sources.sophgo.read.arrays import map_texts

I64 = npt.NDArray[np.int64]

#: Order in which modes are listed; others follow.
MODES: Final = ("RVT", "TDI", "DES")
#: Rows of a lane processed at a time.
_ROWS: Final = 262_144
_NONE: Final = -1


def scope_title(profile: Profile) -> str:
    """Title of what issues instructions, as the reference writes it: kernel functions, or layers."""
    return profile.vocabulary.scope.one.title()


class Launches(Struct, frozen=True):
    """Launches of kernel functions on one track, ordered by (start, end); arrays of one length."""

    start: I64
    end: I64
    kernel: I64  #: Codes into ``Profile.strings["kernel"]``
    scope: I64  #: Launch number; -1 without one
    #: first_batch, last_batch: Smallest and largest batch launch; -1 without one.
    first_batch: I64
    last_batch: I64
    modes: I64  #: One bit per code of ``Profile.strings["mode"]``


def launches_of(profile: Profile, chosen: Iterable[tuple[Lane, Rows]]) -> Launches:
    """Launches that the given instructions belong to.

    Instructions with the same launch number are one launch. Without numbers, neighbours in time with the same kernel
    function and batch are one.
    """
    runs = [part for lane, rows in chosen if "kernel" in lane for part in _lane_runs(profile, lane, rows)]
    if not runs:
        return Launches(*[np.zeros(0, np.int64)] * len(Launches.__struct_fields__))
    all_runs = _concatenated(runs)
    numbered = all_runs.scope >= 0
    parts = []
    if numbered.any():
        some = select_rows(all_runs, np.flatnonzero(numbered))
        parts.append(_merged(select_rows(some, np.argsort(some.scope, kind="stable")), by_scope=True))
    if not numbered.all():
        some = select_rows(all_runs, np.flatnonzero(~numbered))
        parts.append(_merged(select_rows(some, np.lexsort((some.end, some.start))), by_scope=False))
    launches = _concatenated(parts)
    found: Launches = select_rows(launches, np.lexsort((launches.end, launches.start)))
    return found


def _concatenated(parts: Sequence[Launches]) -> Launches:
    return Launches(*(np.concatenate([getattr(part, name) for part in parts]) for name in Launches.__struct_fields__))


def _lane_runs(profile: Profile, lane: Lane, rows: Rows) -> Iterable[Launches]:
    """A lane's instructions with a kernel function; neighbours of one numbered launch are merged."""
    for part, _ in row_parts(rows, _ROWS):
        indices = np.flatnonzero(map_texts(profile, lane, "kernel", part, bool))
        if not len(indices):
            continue
        batch = _int_column(lane, "batch", part, indices)
        mode = _int_column(lane, "mode", part, indices)
        runs = Launches(
            start=lane.take("start", part)[indices],
            end=lane.take("end", part)[indices],
            kernel=lane.take("kernel", part)[indices].astype(np.int64),
            scope=_int_column(lane, "scope", part, indices),
            first_batch=batch,
            last_batch=batch,
            modes=np.where((mode >= 0) & (mode < 63), np.left_shift(1, np.clip(mode, 0, 62)), 0),
        )
        yield _merged(runs, by_scope=True) if bool((runs.scope >= 0).all()) else runs


def _int_column(lane: Lane, key: str, rows: Rows, indices: npt.NDArray[np.intp]) -> I64:
    """An integer column; -1 where missing."""
    if key not in lane:
        return np.full(len(indices), _NONE, np.int64)
    values = lane.take(key, rows)[indices].astype(np.int64)
    return np.where((values == INT_MISSING) | (values < 0), _NONE, values)


def _merged(runs: Launches, *, by_scope: bool) -> Launches:
    """Merges neighbours with the same launch number (else: kernel function and batch)."""
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


def encoded_launches(profile: Profile, sequence: PacketSequence, base_ns: int, launches: Launches) -> bytes:
    """Packets of launches that do not overlap, in time order."""
    first, last = launches.first_batch, launches.last_batch
    columns = [launches.modes > 0, first != last, first >= 0, launches.scope >= 0]
    parts: list[Shaped] = [
        (indices, _table(profile, sequence, base_ns, select_rows(launches, indices), shape))
        for shape, indices in by_shape([column.astype(np.int64) for column in columns])
    ]
    return sequence.encoded(parts, len(first))


def _table(
    profile: Profile, sequence: PacketSequence, base_ns: int, some: Launches, shape: Sequence[int]
) -> npt.NDArray[np.uint8]:
    has_mode, several, batched, numbered = shape
    kernels = profile.strings["kernel"]

    def modes(table: int) -> Values:
        """Interned ids of the names of modes, joined by slashes."""
        distinct, inverse = np.unique(some.modes, return_inverse=True)
        numbers = []
        for bits in distinct.tolist():
            names = [text for code, text in enumerate(profile.strings["mode"]) if code < 63 and bits >> code & 1]
            ranked = [name for name in MODES if name in names]
            numbers.append(sequence.iid(table, "/".join([*ranked, *(name for name in names if name not in MODES)])))
        return np.array(numbers, dtype=np.int64)[inverse.reshape(-1)]

    category = varint_field(EVENT_CATEGORY, modes(CATEGORIES)) if has_mode else []
    begin = [
        *varint_field(EVENT_TYPE, SLICE_BEGIN),
        *varint_field(EVENT_NAME, sequence.iids(EVENT_NAMES, "kernel", kernels, some.kernel)),
        *category,
        *sequence.annotation(
            scope_title(profile), varint_field(NOTE_TEXT, sequence.iids(NOTE_TEXTS, "kernel", kernels, some.kernel))
        ),
    ]
    if numbered:
        begin += sequence.annotation("Func Scope Id", varint_field(NOTE_INT, some.scope))
    if several:
        pairs = zip(some.first_batch.tolist(), some.last_batch.tolist(), strict=True)
        texts = [sequence.iid(NOTE_TEXTS, f"{first}/{last}") for first, last in pairs]
        begin += sequence.annotation("Batch Launch", varint_field(NOTE_TEXT, np.array(texts, np.int64)))
    elif batched:
        begin += sequence.annotation("Batch Launch", varint_field(NOTE_INT, some.first_batch))
    if has_mode:
        begin += sequence.annotation("Mode", varint_field(NOTE_TEXT, modes(NOTE_TEXTS)))
    end = [*varint_field(EVENT_TYPE, SLICE_END), *category]
    packets = [*sequence.packet(some.start + base_ns, begin), *sequence.packet(some.end + base_ns, end)]
    return messages(packets, len(some.start))
