"""Device work of two profiles in joint codes: operations, operands and launches, comparable between both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.model.lane import ALL, Rows, row_count
from tpuprof_tui.model.vocabulary import NAMES

from ..operation_names import renamed_operations
from ..steps.launch_sequence import launch_lane

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_OTHER_FACTOR: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class _Columns(Struct, frozen=True, eq=False):
    """Columns of device events that do work; arrays of one length.

    Attributes:
        lane, row: int32 index in ``Profile.lanes``, and int64 row of that lane.
        length: Duration, int64 ns.
        label: int64, joint code of the operation, the same on both sides.
        kernel: int64, joint code of the kernel; -1: none.
        command: uint64, hash of operation and operands.
    """

    lane: npt.NDArray[np.int32]
    row: Ints
    length: Ints
    label: Ints
    kernel: Ints
    command: Hashes

    def __len__(self) -> int:
        return len(self.length)


class Work(_Columns, frozen=True, eq=False):
    """Device events that do work, by launch, then lane, then as issued (`_as_issued`).

    Attributes:
        launch: int64, index in ``launches``.
        launches: The launches.
    """

    launch: Ints
    launches: Launches


class Launches(Struct, frozen=True, eq=False):
    """Launches, by sequence, then by start (events: as issued); arrays of one length.

    A sequence is a unit. In recordings that do not name launches (``Vocabulary.restarts``) a launch is what one lane,
    or all lanes of a unit together, executed of it, and a sequence is that lane or unit. If launches are unknown, each
    event is a launch and a sequence is a lane.

    Attributes:
        sequence: int32, id of the sequence, the same on both sides; below 0: of a unit or lane of one side only.
        unit: int32, index of the pair of units; -1 for the launch that holds all work that no launch issued.
        kernel: int64, as in ``Work``.
        signature: uint64, hash of kernel and commands.
        start, end: int64 ns.
        work: int64 ns, sum of its work events.
        first: int64, index of its first event in ``Work``; one more element at the end.
        known: Whether launches are known; else they are events.
        named: Whether kernels have names; else a kernel is the number of events on each lane.
    """

    sequence: npt.NDArray[np.int32]
    unit: npt.NDArray[np.int32]
    kernel: Ints
    signature: Hashes
    start: Ints
    end: Ints
    work: Ints
    first: Ints
    known: bool
    named: bool = True

    def __len__(self) -> int:
        return len(self.kernel)


class JointWork(Struct, frozen=True, eq=False):
    """The work of two profiles in joint codes.

    Attributes:
        base, other: Work of each side.
        operations, kernels: Texts of the joint codes.
        units: Label of each pair of units.
        renamed: Joint names of operations in ``operations``, by their own names where these differ.
    """

    base: Work
    other: Work
    operations: tuple[str, ...]
    kernels: tuple[str, ...]
    units: tuple[str, ...]
    renamed: Mapping[str, str]


def joint_work(base: Profile, other: Profile, pairs: Sequence[tuple[int, int]] | None = None) -> JointWork:
    """The work of two profiles; ``pairs`` as in ``Comparison``. O(n log n)."""
    joint = _Joint(base, other, pairs or [(-1, -1)])
    ours = joint.work(0)
    theirs = ours if base is other else joint.work(1)  # compared with itself, a profile is computed once
    return JointWork(ours, theirs, joint.operations, joint.kernel_texts, joint.units, joint.renamed)


# joint codes


def _joint_codes(
    base: Profile, other: Profile, key: str, renamed: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[Ints, Ints]]:
    """A joint table of texts, and for each side the joint code of each own code, with -1 appended for missing."""
    texts: dict[str, int] = {}
    codes: list[Ints] = []
    for side in (base, other):
        own = [texts.setdefault(renamed.get(str(text), str(text)), len(texts)) for text in side.strings.get(key, ())]
        codes.append(np.array([*own, -1], np.int64))
    return tuple(texts), (codes[0], codes[1])


def paired_units(
    base: Profile, other: Profile, workers: Sequence[tuple[int, int]]
) -> tuple[tuple[str, ...], tuple[dict[int, int], dict[int, int]]]:
    """Labels of the pairs of units, and for each side the index of the pair by unit id."""
    labels: list[str] = []
    found: tuple[dict[int, int], dict[int, int]] = ({}, {})
    no_number_in_common = set(base.groups.numbers).isdisjoint(other.groups.numbers)
    renumbered = len(workers) > 1 or (no_number_in_common and len(base.units) == len(other.units))
    for ours, theirs in workers:
        pair_of: dict[object, int] = {}
        for side, (profile, top) in enumerate(((base, ours), (other, theirs))):
            units = profile.groups.units_within(top) if top > -2 else ()
            for turn, unit in enumerate(units):
                # ranks of a run number their devices consecutively: pair the units of a worker by order
                key: object = turn if renumbered else profile.groups[unit].number
                if key not in pair_of:
                    pair_of[key] = len(labels)
                    labels.append(profile.groups.title(unit))
                found[side][unit] = pair_of[key]
    return tuple(labels), found


def _shared_operands(base: Profile, other: Profile) -> dict[str, tuple[str, ...]]:
    """By kind of lane, the operand columns that lanes of this kind have on both sides."""
    keys_by_kind: list[dict[str, set[str]]] = [{}, {}]
    for side, profile in enumerate((base, other)):
        for lane in profile.lanes:
            keys_by_kind[side].setdefault(lane.kind, set()).update(lane.keys())
    return {
        kind: tuple(key for key in base.vocabulary.operands if key in keys and key in keys_by_kind[1].get(kind, ()))
        for kind, keys in keys_by_kind[0].items()
    }


def recorded_operands(profile: Profile) -> tuple[str, ...]:
    """Operands included in the commands of a profile, as ``kind of lane.column``, ascending."""
    by_kind = _shared_operands(profile, profile)
    return tuple(sorted(f"{kind}.{key}" for kind, keys in by_kind.items() for key in keys))


def hash_rows(*parts: npt.NDArray[Any]) -> Hashes:
    """uint64 hash of each row of some columns."""
    found = np.full(len(parts[0]), 1, np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            bits = part.view(np.uint64) if part.dtype == np.float64 else part.astype(np.uint64)
            found = (found ^ bits) * _FACTOR
            found ^= found >> np.uint64(31)
            found *= _OTHER_FACTOR
            found ^= found >> np.uint64(29)
    return found


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Stable uint64 hash of each text, with 0 appended for missing."""
    from hashlib import blake2b

    own = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.array([*(int.from_bytes(each, "little") for each in own), 0], np.uint64)


def rows_by_lane(lane: npt.NDArray[np.int32]) -> Iterator[tuple[int, Ints]]:
    """Yields each lane number and the indexes of its elements, ascending."""
    order = np.argsort(lane, kind="stable")
    ordered = lane[order]
    edges = [*np.flatnonzero(np.diff(ordered, prepend=-1)).tolist(), len(ordered)]
    for first, last in pairwise(edges):
        yield int(ordered[first]), order[first:last]


# one side


class _Restarts(Struct, frozen=True, eq=False):
    """Unnamed launches of a lane.

    Attributes:
        rows: Rows of the lane as issued.
        first: Index in ``rows`` of the first event of each launch.
        count: Number (id) of the last event of each launch.
    """

    rows: Ints
    first: Ints
    count: Ints


class _Events(_Columns, frozen=True, eq=False):
    """Work by lane, then as issued; ``scope``: -1: none, ``sequence``: of its lane."""

    scope: Ints
    sequence: npt.NDArray[np.int32]

    def take(self, order: Ints) -> _Events:
        return _Events(*(getattr(self, key)[order] for key in self.__struct_fields__))


class _Joint:
    """Codes that two profiles share, and the work of each in these.

    Launches are those of scopes, if both sides have them; else, where nothing names them, what a lane executed between
    restarts of its numbers, or all lanes of a unit if each of them executed equally many; else events.
    """

    def __init__(self, base: Profile, other: Profile, pairs: Sequence[tuple[int, int]]) -> None:
        self.profiles = base, other
        self.renamed = renamed_operations(base, other)
        self.operations, self._operation_codes = _joint_codes(base, other, "name", self.renamed)
        self._kernels, self._kernel_codes = _joint_codes(base, other, "kernel", {})
        self._hashes, self._kernel_hashes = hash_texts(self.operations), hash_texts(self._kernels)
        self.units, self._unit_of = paired_units(base, other, pairs)
        self._operands = _shared_operands(base, other)
        self._sequences: dict[Any, int] = {}
        self._shapes: dict[Any, int] = {}
        alike = base.vocabulary.source == other.vocabulary.source
        self._scoped = alike and len(base.scopes) > 0 and len(other.scopes) > 0
        named = base.has(NAMES) and other.has(NAMES)
        self._restarts: list[dict[int, _Restarts]] = []
        if alike and not self._scoped and not named and base.vocabulary.restarts:
            self._restarts = [_restarts(base), _restarts(other)]
        counts = {(side, profile.unit_of(profile.lanes[number]), len(each.first))
                  for side, (profile, restarts) in enumerate(zip(self.profiles, self._restarts, strict=False))
                  for number, each in restarts.items()}  # fmt: skip
        self._together = len(counts) == len({each[:2] for each in counts})

    @property
    def kernel_texts(self) -> tuple[str, ...]:
        """Texts of the codes of kernels, after the work of both sides was built."""
        if not self._restarts:
            return self._kernels if self._scoped else self.operations
        texts = (" and ".join(f"{count:,} {kind}" for kind, count in shape) for shape in self._shapes)
        return tuple(f"{each} {self.profiles[0].vocabulary.event.plural}" for each in texts)

    def work(self, side: int) -> Work:
        """The work of a side."""
        events = self._events(side)
        if self._scoped:
            return self._by_scopes(side, events)
        return self._by_restarts(side, events) if self._restarts else self._by_events(side, events)

    def _sequence(self, *key: Any) -> int:
        return self._sequences.setdefault(key, len(self._sequences))

    def _events(self, side: int) -> _Events:
        profile = self.profiles[side]
        operation_codes, kernel_codes = self._operation_codes[side], self._kernel_codes[side]
        parts: list[list[Any]] = [[] for _ in _Events.__struct_fields__]
        lanes_seen: dict[tuple[int, str], int] = {}
        hashes: dict[str, Hashes] = {}
        kinds = {lane.kind: hash_rows(np.repeat(hash_texts([lane.kind])[:1], len(self._hashes)), self._hashes)
                 for lane in profile.lanes}  # fmt: skip
        for number, lane, rows in _lane_parts(profile):
            label = operation_codes[_codes_of(lane, "name", rows, len(operation_codes) - 1)]
            operands = [_operand(profile, lane, key, rows, hashes) for key in self._operands.get(lane.kind, ())]
            pair = self._unit_of[side].get(profile.unit_of(lane), -1)
            lane_in_unit = lanes_seen.get((pair, lane.kind), 0)
            lanes_seen[pair, lane.kind] = lane_in_unit + 1
            sequence = self._sequence("lane", pair, lane.kind, lane_in_unit)
            for column, values in zip(parts, (
                np.full(len(rows), number, np.int32), rows, lane.take("end", rows) - lane.take("start", rows), label,
                kernel_codes[_codes_of(lane, "kernel", rows, len(kernel_codes) - 1)],
                hash_rows(kinds[lane.kind][label], *operands), _codes_of(lane, "scope", rows, len(profile.scopes)),
                np.full(len(rows), sequence, np.int32),
            ), strict=True):  # fmt: skip
                column.append(values)
        types = (np.int32, np.int64, np.int64, np.int64, np.int64, np.uint64, np.int64, np.int32)
        return _Events(*(np.concatenate([np.zeros(0, kind), *column])
                         for column, kind in zip(parts, types, strict=True)))  # fmt: skip

    def _by_events(self, side: int, events: _Events) -> Work:
        """Work whose launches are unknown: events are launches, operations are kernels."""
        profile, count = self.profiles[side], len(events.row)
        units = [self._unit_of[side].get(profile.unit_of(lane), -1) for lane in profile.lanes]
        start, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for number, rows in rows_by_lane(events.lane):
            for times, key in ((start, "start"), (end, "end")):
                times[rows] = profile.lanes[number].take(key, events.row[rows])
        order = np.argsort(events.sequence, kind="stable")
        events = events.take(order)
        launches = Launches(
            events.sequence, np.array(units or [0], np.int32)[events.lane], events.label, events.command, start[order],
            end[order], events.length, np.arange(count + 1, dtype=np.int64), False,
        )  # fmt: skip
        return Work(events.lane, events.row, events.length, events.label, events.label, events.command,
                    np.arange(count, dtype=np.int64), launches)  # fmt: skip

    def _by_restarts(self, side: int, events: _Events) -> Work:
        """Work by unnamed launches; kernels are the numbers of events on each lane."""
        profile, restarts = self.profiles[side], self._restarts[side]
        launch, kernel = np.full(len(events.row), -1, np.int64), events.kernel
        parts: dict[int, list[int]] = {}
        for number in restarts:
            parts.setdefault(profile.unit_of(profile.lanes[number]) if self._together else number, []).append(number)
        rows_of = dict(rows_by_lane(events.lane))
        columns: list[list[Any]] = [[np.zeros(0, np.int64)] for _ in range(5)]
        count = 0
        for numbers in parts.values():
            lanes, found = [profile.lanes[number] for number in numbers], [restarts[number] for number in numbers]
            pair = self._unit_of[side].get(profile.unit_of(lanes[0]), -1)
            shape = np.array([
                self._shapes.setdefault(tuple(zip((lane.kind for lane in lanes), counts, strict=True)),
                                        len(self._shapes))
                for counts in zip(*(each.count.tolist() for each in found), strict=True)
            ])  # fmt: skip
            for number, each in zip(numbers, found, strict=True):
                rows = rows_of[number]
                number_in_lane = np.searchsorted(each.first, np.argsort(each.rows)[events.row[rows]], side="right") - 1
                launch[rows], kernel[rows] = count + number_in_lane, shape[number_in_lane]
            sequence = self._sequence("unit", pair) if self._together else int(events.sequence[rows[0]])
            edges = [np.array([ufunc.reduceat(lane[key][each.rows], each.first)
                               for lane, each in zip(lanes, found, strict=True)])
                     for key, ufunc in (("start", np.minimum), ("end", np.maximum))]  # fmt: skip
            for values, one in zip(columns, (
                np.full(len(shape), sequence), np.full(len(shape), pair), shape, edges[0].min(axis=0),
                edges[1].max(axis=0),
            ), strict=True):  # fmt: skip
                values.append(one)
            count += len(shape)
        return _by_launch(events, launch, *map(np.concatenate, columns))

    def _by_scopes(self, side: int, events: _Events) -> Work:
        """Work by launch: the launches of each unit by start, then one launch for all work that none issued."""
        profile, kernel_codes = self.profiles[side], self._kernel_codes[side]
        columns: list[list[Any]] = [[np.zeros(0, np.int64)] for _ in range(4)]
        launch_of_scope = np.full(len(profile.scopes) + 1, -1, np.int64)
        count = 0
        for unit in profile.units:
            lane = launch_lane(profile, unit)
            pair = np.full(len(lane), self._unit_of[side].get(unit, -1), np.int64)
            kernel = kernel_codes[_codes_of(lane, "kernel", ALL, len(kernel_codes) - 1)]
            for column, values in zip(columns, (pair, kernel, lane["start"], lane["end"]), strict=True):
                column.append(values)
            launch_of_scope[lane["scope"]] = np.arange(count, count + len(lane))
            count += len(lane)
        launch = launch_of_scope[events.scope]
        if bool((launch < 0).any()):
            # work that no launch issued becomes one launch at the end
            launch[launch < 0] = count
            for column in columns:
                column.append(np.full(1, -1, np.int64))
        unit_of, kernel_of, start, end = map(np.concatenate, columns)
        pairs = range(-1, int(unit_of.max(initial=-1)) + 1)
        sequence = np.array([self._sequence("unit", pair) for pair in pairs])[unit_of + 1]
        return _by_launch(events, launch, sequence, unit_of, kernel_of, start, end, kernels=self._kernel_hashes)


def _as_issued(profile: Profile, lane: Lane) -> Ints:
    """Rows of a lane in the order in which they were issued.

    A port sends and receives at once, so which of two neighbours starts first differs between runs of one program. In
    recordings that number the events of a launch the source's own order is that of these numbers; else by start.
    """
    if profile.vocabulary.restarts in lane:
        return np.argsort(lane["order"], kind="stable")
    return np.arange(len(lane))


def _lane_parts(profile: Profile) -> Iterator[tuple[int, Lane, Ints]]:
    """Lanes with work in sums, and the rows that are work, as issued."""
    for number, lane in enumerate(profile.lanes):
        if lane.in_sums and len(lane):
            rows = _as_issued(profile, lane)
            rows = rows[lane["role"][rows] == Role.WORK]
            if len(rows):
                yield number, lane, rows


def _restarts(profile: Profile) -> dict[int, _Restarts]:
    """Unnamed launches of each lane with work: one starts where the event numbers restart."""
    column, found = profile.vocabulary.restarts, {}
    for number, lane, _ in _lane_parts(profile):
        rows = _as_issued(profile, lane)
        ids = lane[column][rows] if column in lane else rows
        first = np.append(0, np.flatnonzero(np.diff(ids) <= 0) + 1)
        found[number] = _Restarts(rows, first, ids[np.append(first[1:], len(ids)) - 1])
    return found


def _by_launch(
    events: _Events, launch: Ints, sequence: Ints, unit: Ints, kernel_of: Ints, start: Ints, end: Ints,
    *, kernels: Hashes | None = None,
) -> Work:  # fmt: skip
    """Orders events by launch and builds the launches; ``kernels``: hashes of the kernels' names, None: unnamed."""
    order = np.lexsort((events.lane, launch))  # stable: within a lane as issued
    events, launch = events.take(order), launch[order]
    first = np.searchsorted(launch, np.arange(len(kernel_of) + 1))
    sums = np.concatenate([[0], np.cumsum(events.length)])
    launches = Launches(
        sequence=sequence.astype(np.int32), unit=unit.astype(np.int32), kernel=kernel_of,
        signature=_signatures(kernel_of if kernels is None else kernels[kernel_of], events.command, first),
        start=start, end=end, work=sums[first[1:]] - sums[first[:-1]], first=first, known=True,
        named=kernels is not None,
    )  # fmt: skip
    return Work(events.lane, events.row, events.length, events.label, events.kernel, events.command, launch, launches)


def _codes_of(lane: Lane, key: str, rows: Rows, count: int) -> Ints:
    """Codes of a column below ``count``; -1 for others, and where the lane lacks it."""
    codes = lane.take(key, rows) if key in lane else np.full(row_count(rows), -1, np.int64)
    return np.where((codes >= 0) & (codes < count), codes, -1).astype(np.int64)


def _operand(profile: Profile, lane: Lane, key: str, rows: Ints, hashes: dict[str, Hashes]) -> npt.NDArray[Any]:
    """Values of an operand column, comparable between profiles; 0 where a damaged lane lacks it."""
    if key not in lane:
        return np.zeros(len(rows), np.int64)
    values = lane.take(key, rows)
    if profile.vocabulary.is_text(key):
        if key not in hashes:
            hashes[key] = hash_texts(map(str, profile.strings[key]))
        return hashes[key][np.where((values >= 0) & (values < len(hashes[key]) - 1), values, -1)]
    if values.dtype.kind == "f":
        return np.where(is_missing(values), -1.0, values)
    return values


def _signatures(kernel: npt.NDArray[Any], command: Hashes, first: Ints) -> Hashes:
    """Hash of each launch: its kernel, and its commands, lane by lane as issued."""
    size = np.diff(first)
    turn = positions_in_runs(size)
    with np.errstate(over="ignore"):
        every = hash_rows(command, turn)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(every, dtype=np.uint64)])
        return hash_rows(kernel, size, sums[first[1:]] - sums[first[:-1]])
