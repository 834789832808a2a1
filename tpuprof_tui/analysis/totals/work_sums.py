"""Work by kernel function, operation or family: count, time and ideal time at the chip's peak, in any window."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.lane import Rows

from ..index.lane_index import LaneIndex, rows_starting
from ..index.running_sums import BLOCK, MIN_BLOCKS
from ..index.unit_index import owners_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Columns that work can be grouped by.
Grouping = Literal["kernel", "name", "type"]
_GROUPINGS: Final[tuple[Grouping, ...]] = ("kernel", "name", "type")
#: Row indexes of ``WorkSums.sums``.
COUNT, TOTAL, KNOWN, KNOWN_NS, IDEAL, LOST = range(6)


class WorkSums(Struct, frozen=True, eq=False):
    """Work of a window by label; index 0 is work without a label, index i + 1 that of code i.

    Attributes:
        sums: float64 (6, labels + 1): instructions, their ns, instructions with a known ideal time (at the chip's
            peak), their ns, their ideal ns, ns lost (sum of max(duration - ideal, 0)). Exact below 2**53.
        longest: Longest instruction of each label, int64 ns.
    """

    sums: Floats
    longest: Ints

    @classmethod
    def empty(cls, labels: int) -> WorkSums:
        """Sums of no work, for ``labels`` codes."""
        return cls(np.zeros((6, labels + 1)), np.zeros(labels + 1, np.int64))

    def add(self, other: WorkSums) -> None:
        """Adds other sums in place."""
        self.sums[:] += other.sums
        np.maximum(self.longest, other.longest, out=self.longest)


def work_sums(
    profile: Profile,
    indexes: Sequence[LaneIndex],
    start: int,
    end: int,
    by: Collection[Grouping],
    *,
    units: Collection[int] | None = None,
    lanes: Collection[int] | None = None,
) -> dict[Grouping, WorkSums]:
    """Work of the events that start in [start, end), each at its full duration, grouped by each of some columns.

    O(lanes x labels), after one pass over all rows for the first window of a profile.

    Args:
        units: Ids of the groups to include, with what they submitted to lanes outside any unit; None: all.
        lanes: Indexes into ``profile.lanes`` to include; None: all of the device.
    """
    labels = {key: len(profile.strings.get(key, ())) for key in by}  # a source may lack the column
    found = {key: WorkSums.empty(count) for key, count in labels.items()}
    # blocks have more rows than there are labels, so that the sums take less memory than the rows
    block = max(BLOCK, *(8 * len(profile.strings[key]) for key in _GROUPINGS if key in profile.strings))
    within = None if units is None else frozenset[int]().union(*map(profile.groups.within, units))
    for index in chosen_lanes(profile, indexes, within, lanes):
        only = within if within is not None and index.lane.group not in within else None
        if only is not None:
            owners = owners_of(index)
            if owners.isdisjoint(only):
                continue
            # if all events come from these groups, no mask is needed
            only = None if owners.issubset(only) else only
        for key, part in _of_lane(index, start, end, labels, block, only).items():
            found[key].add(part)
    return found


def chosen_lanes(
    profile: Profile, indexes: Sequence[LaneIndex], within: Collection[int] | None, lanes: Collection[int] | None
) -> Iterator[LaneIndex]:
    """Indexes of the lanes that can hold work of these groups: the given ones, else all device lanes in sums."""
    for number, index in enumerate(indexes):
        lane = index.lane
        if number not in lanes if lanes is not None else not lane.in_sums:
            continue
        if within is None or profile.unit_of(lane) < 0 or lane.group in within:
            yield index


def chosen_work(lane: Lane, rows: Rows, owners: Collection[int] | None) -> npt.NDArray[np.bool_]:
    """Mask of the rows of a chosen lane that are work; if ``owners`` is given, only what these groups submitted."""
    chosen: npt.NDArray[np.bool_] = lane.take("role", rows) == Role.WORK
    if owners is not None:
        chosen &= np.isin(lane.take("owner", rows), list(owners)) if "owner" in lane else False
    return chosen


def label_indexes(lane: Lane, rows: Rows, by: Grouping, size: int) -> Ints:
    """Index of each row's label: its code + 1; 0 where it is missing or beyond the table."""
    if by not in lane:
        return np.zeros(len(lane.take("start", rows)), dtype=np.int64)
    indexes = np.maximum(lane.take(by, rows), -1).astype(np.int64) + 1
    return np.where(indexes < size, indexes, 0)


# one lane


class _Blocks(Struct, frozen=True, eq=False):
    """Prefix sums over blocks, float64 (blocks + 1, 6, labels), and each block's longest, int64 (blocks, labels)."""

    sums: Floats
    longest: Ints

    def between(self, first: int, last: int) -> WorkSums:
        """Sums over a range of blocks."""
        return WorkSums(self.sums[last] - self.sums[first], self.longest[first:last].max(axis=0))


def _of_lane(
    index: LaneIndex, start: int, end: int, labels: Mapping[Grouping, int], size: int, owners: Collection[int] | None
) -> dict[Grouping, WorkSums]:
    lane = index.lane
    started = rows_starting(index, start, end)
    low, high = started.start, started.stop
    if high <= low:
        return {}
    first, last = -(-low // size), high // size
    if low == 0 and high == len(lane) and owners is None:

        def all_of(key: Grouping) -> WorkSums:
            return _scanned_sums(lane, slice(0, high), {key: labels[key]}, None)[key]

        return {key: index.cache.get("work", partial(all_of, key), key) for key in labels}
    if owners is not None or len(lane) < MIN_BLOCKS * size or last <= first:
        return _scanned_sums(lane, slice(low, high), labels, owners)
    found = _scanned_sums(lane, np.r_[low : first * size, last * size : high], labels, None)
    for key, count in labels.items():
        blocks = index.cache.get("work of blocks", partial(_blocks, lane, key, count, size), key)
        found[key].add(blocks.between(first, last))
    return found


def _scanned_sums(
    lane: Lane, rows: Rows, labels: Mapping[Grouping, int], owners: Collection[int] | None
) -> dict[Grouping, WorkSums]:
    """Sums over some rows, by scanning them."""
    weights, durations, chosen = _weights(lane, rows, owners)
    found = {key: WorkSums.empty(count) for key, count in labels.items()}
    if not len(durations):
        return found
    for key, sums in found.items():
        size = len(sums.longest)
        label_of_row = label_indexes(lane, rows, key, size)
        label_of_row = label_of_row if chosen is None else label_of_row[chosen]
        for number, each in enumerate(weights):
            sums.sums[number] = np.bincount(label_of_row, weights=each, minlength=size)
        np.maximum.at(sums.longest, label_of_row, durations)
    return found


def _weights(
    lane: Lane, rows: Rows, owners: Collection[int] | None
) -> tuple[list[Floats | None], Ints, npt.NDArray[np.bool_] | None]:
    """Weights of the work rows for each row of ``sums``, their ns, and their mask (None: all rows are work)."""
    chosen = chosen_work(lane, rows, owners)
    durations = lane.take("end", rows) - lane.take("start", rows)
    ideal: Floats | None = lane.take("ideal", rows) if "ideal" in lane else None
    mask = None if bool(chosen.all()) else chosen
    if mask is not None:
        durations, ideal = durations[mask], ideal if ideal is None else ideal[mask]
    if ideal is None:
        return [None, durations.astype(np.float64)], durations, mask
    known = ~np.isnan(ideal)
    expected = np.where(known, ideal, 0.0)
    lost = np.maximum(durations - expected, 0.0)
    weights = [None, durations.astype(np.float64), known.astype(np.float64), known * durations, expected, known * lost]
    return weights, durations, mask


def _blocks(lane: Lane, key: Grouping, count: int, size: int) -> _Blocks:
    """Prefix sums over all whole blocks of a lane."""
    number = len(lane) // size
    rows = slice(0, number * size)
    weights, durations, chosen = _weights(lane, rows, None)
    bin_of_row = label_indexes(lane, rows, key, count + 1) + np.repeat(np.arange(number) * (count + 1), size)
    bin_of_row = bin_of_row if chosen is None else bin_of_row[chosen]
    sums = np.zeros((number + 1, 6, count + 1))
    for place, each in enumerate(weights):
        found = np.bincount(bin_of_row, weights=each, minlength=number * (count + 1))
        np.cumsum(found.reshape(number, count + 1), axis=0, out=sums[1:, place])
    longest = np.zeros(number * (count + 1), np.int64)
    np.maximum.at(longest, bin_of_row, durations)
    return _Blocks(sums, longest.reshape(number, count + 1))
