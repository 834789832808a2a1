"""Work by kernel function, operation or family: count, time and ideal time at the chip's peak, in any window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role, Strings
from tpuprof_tui.model.lane import Rows, row_count

from ..index.lane_index import BLOCK, MIN_BLOCKS, LaneIndex, rows_starting

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Columns that work can be grouped by.
Grouping = Literal["kernel", "name", "type"]
_GROUPINGS: Final[tuple[Grouping, ...]] = ("kernel", "name", "type")
#: Row indexes of ``WorkSums.sums``.
COUNT, TOTAL, KNOWN, KNOWN_NS, IDEAL, LOST = range(6)


class WorkSums(Struct, frozen=True, eq=False):
    """Work of a window by label; index 0 is work without a label, index i + 1 that of code i."""

    #: float64 (6, labels + 1): events, their ns, events with a known ideal time (at the chip's peak), their
    #: ns, their ideal ns, ns lost (sum of max(duration - ideal, 0)). Exact below 2**53.
    sums: Floats
    longest: Ints  #: Longest event of each label, int64 ns

    @classmethod
    def empty(cls, labels: int) -> WorkSums:
        """Sums of no work, for ``labels`` codes."""
        return cls(np.zeros((6, labels + 1)), np.zeros(labels + 1, np.int64))

    def add(self, other: WorkSums) -> None:
        """Adds other sums in place."""
        self.sums[:] += other.sums
        np.maximum(self.longest, other.longest, out=self.longest)


def work_sums(
    indexes: Iterable[LaneIndex], strings: Mapping[str, Strings], start: int, end: int, by: Collection[Grouping]
) -> dict[Grouping, WorkSums]:
    """Work of the events of some lanes that start in [start, end), each at its full duration, by each of some columns.

    O(lanes x labels), after one pass over all rows for the first window of a profile.
    """
    labels = {key: len(strings.get(key, ())) for key in by}  # a source may lack the column
    found = {key: WorkSums.empty(count) for key, count in labels.items()}
    # blocks have more rows than there are labels, so that the sums take less memory than the rows
    block = max(BLOCK, *(8 * len(strings[key]) for key in _GROUPINGS if key in strings))
    for index in indexes:
        rows = rows_starting(index, start, end)
        if rows.stop > rows.start:
            for key, sums in _of_lane(index, rows, labels, block).items():
                found[key].add(sums)
    return found


def _of_lane(index: LaneIndex, rows: slice, labels: Mapping[Grouping, int], block: int) -> dict[Grouping, WorkSums]:
    lane, first, last = index.lane, -(-rows.start // block), rows.stop // block
    if rows == slice(0, len(lane)):
        return index.cache.get("work", partial(_scanned, lane, rows, labels), *labels)
    if len(lane) < MIN_BLOCKS * block or last <= first:
        return _scanned(lane, rows, labels)
    found = _scanned(lane, np.r_[rows.start : first * block, last * block : rows.stop], labels)
    for key, count in labels.items():
        blocks = index.cache.get("work of blocks", partial(_Blocks.of, lane, key, count, block), key)
        found[key].add(blocks.between(first, last))
    return found


def _scanned(lane: Lane, rows: Rows, labels: Mapping[Grouping, int]) -> dict[Grouping, WorkSums]:
    weights, durations, work = _weights(lane, rows)
    found = {key: WorkSums.empty(count) for key, count in labels.items()}
    for key, sums in found.items() if len(durations) else ():
        label = _labels(lane, rows, key, labels[key])[work]
        for number, values in enumerate(weights):
            sums.sums[number] = np.bincount(label, weights=values, minlength=labels[key] + 1)
        np.maximum.at(sums.longest, label, durations)
    return found


def shares_of(profile: Profile, lane: Lane, key: str, rows: Rows) -> Floats:
    """Share of a limit of the hardware that some events reach: bandwidth over the peak of the memory, or uArch rate.

    Returns:
        float64, 0 to 1 (a capture may claim more); NaN where unknown or not work.
    """
    shares = np.full(len(lane.take("role", rows)), np.nan)
    share = profile.vocabulary.share(key)
    # the first column with a value has priority, so it is applied last
    for column, name in reversed(share.columns) if share is not None else ():
        if column not in lane:
            continue
        values = np.asarray(lane.take(column, rows), np.float64)
        if not name:
            shares = values / 100.0
        elif profile.device.peak(name) > 0:
            shares = np.where(values > 0, values / profile.device.peak(name), shares)
    return np.where((lane.take("role", rows) == Role.WORK) & np.isfinite(shares), shares, np.nan)


class _Blocks(Struct, frozen=True, eq=False):
    """Prefix sums over blocks, float64 (blocks + 1, 6, labels), and each block's longest, int64 (blocks, labels)."""

    sums: Floats
    longest: Ints

    def between(self, first: int, last: int) -> WorkSums:
        """Sums over a range of blocks."""
        return WorkSums(self.sums[last] - self.sums[first], self.longest[first:last].max(axis=0))

    @classmethod
    def of(cls, lane: Lane, key: Grouping, labels: int, block: int) -> _Blocks:
        """Prefix sums over all whole blocks of a lane."""
        number, size = len(lane) // block, labels + 1
        rows = slice(0, number * block)
        weights, durations, work = _weights(lane, rows)
        label = (_labels(lane, rows, key, labels) + np.repeat(np.arange(number) * size, block))[work]
        sums = np.zeros((number + 1, 6, size))
        for place, values in enumerate(weights):
            found = np.bincount(label, weights=values, minlength=number * size)
            np.cumsum(found.reshape(number, size), axis=0, out=sums[1:, place])
        longest = np.zeros(number * size, np.int64)
        np.maximum.at(longest, label, durations)
        return cls(sums, longest.reshape(number, size))


def _labels(lane: Lane, rows: Rows, key: Grouping, labels: int) -> Ints:
    """Label of each row: its code + 1; 0 where that is missing or beyond the table."""
    if key not in lane:
        return np.zeros(row_count(rows), np.int64)
    codes = lane.take(key, rows).astype(np.int64)
    return np.where((codes >= 0) & (codes < labels), codes + 1, 0)


def _weights(lane: Lane, rows: Rows) -> tuple[list[Floats | None], Ints, Mask | slice]:
    """For each row of ``WorkSums.sums`` the weights of the work among some rows, its ns, and which rows it is."""
    durations = lane.take("end", rows) - lane.take("start", rows)
    ideal: Floats | None = lane.take("ideal", rows) if "ideal" in lane else None
    chosen = lane.take("role", rows) == Role.WORK
    work: Mask | slice = slice(None) if bool(chosen.all()) else chosen
    durations = durations[work]
    if ideal is None:
        return [None, durations.astype(np.float64)], durations, work
    ideal = ideal[work]
    known = ~np.isnan(ideal)
    expected = np.where(known, ideal, 0.0)
    lost = np.maximum(durations - expected, 0.0)
    weights = [None, durations.astype(np.float64), known.astype(np.float64), known * durations, expected, known * lost]
    return weights, durations, work
