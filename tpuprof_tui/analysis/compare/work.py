"""Device work of two profiles in joint codes: operations, operands and launches, comparable between both sides."""

from __future__ import annotations

from collections import Counter
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
from ..pivot import Frame
from ..steps.launch_sequence import launch_lane

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_OTHER_FACTOR: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class Work(Struct, frozen=True, eq=False):
    """Device events that do work, by launch, then lane, then as issued (`_as_issued`); arrays of one length."""

    #: lane, row: int32 index in ``Profile.lanes``, and int64 row of that lane.
    lane: npt.NDArray[np.int32]
    row: Ints
    length: Ints  #: Duration, int64 ns
    label: Ints  #: int64, joint code of the operation, the same on both sides
    kernel: Ints  #: int64, joint code of the kernel; -1: none
    command: Hashes  #: uint64, hash of operation and operands
    launch: Ints  #: int64, index in ``launches``
    launches: Launches  #: The launches

    def __len__(self) -> int:
        return len(self.length)


class Launches(Struct, frozen=True, eq=False):
    """Launches, by sequence, then by start (events: as issued); arrays of one length.

    A sequence is a unit. In recordings that do not name launches (``Vocabulary.number_in_launch``) a launch is what
    one lane, or all lanes of a unit together, executed of it, and a sequence is that lane or unit. If launches are
    unknown, each event is a launch and a sequence is a lane.
    """

    #: int32, id of the sequence, the same on both sides; below 0: of a unit or lane of one side only.
    sequence: npt.NDArray[np.int32]
    #: int32, index of the pair of units; -1 for the launch that holds all work that no launch issued.
    unit: npt.NDArray[np.int32]
    kernel: Ints  #: int64, as in ``Work``
    signature: Hashes  #: uint64, hash of kernel and commands
    #: start, end: int64 ns.
    start: Ints
    end: Ints
    work: Ints  #: int64 ns, sum of its work events
    first: Ints  #: int64, index of its first event in ``Work``; one more element at the end
    known: bool  #: Whether launches are known; else they are events
    named: bool = True  #: Whether kernels have names; else a kernel is the number of events on each lane

    def __len__(self) -> int:
        return len(self.kernel)


# joint codes


def _joint_texts(
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


class _UnnamedLaunches(Struct, frozen=True, eq=False):
    """Unnamed launches of a lane."""

    rows: Ints  #: Rows of the lane as issued
    first: Ints  #: Index in ``rows`` of the first event of each launch
    count: Ints  #: Number (id) of the last event of each launch


class JointWork:
    """The work of two profiles in joint codes. O(n log n) to build.

    Launches are those of scopes, if both sides have them; else, where nothing names them, what a lane executed between
    restarts of its numbers, or all lanes of a unit if each of them executed equally many; else events.

    Attributes:
        base, other: Work of each side.
        operations, kernels: Texts of the joint codes.
        units: Label of each pair of units.
        unit_of: For each side, the index of the pair by unit id.
        renamed: Joint names of operations in ``operations``, by their own names where these differ.
    """

    def __init__(self, base: Profile, other: Profile, pairs: Sequence[tuple[int, int]] = ((-1, -1),)) -> None:
        self._profiles = base, other
        self.renamed = renamed_operations(base, other)
        self.operations, self._operation_codes = _joint_texts(base, other, "name", self.renamed)
        self.kernels, self._kernel_codes = _joint_texts(base, other, "kernel", {})
        self._hashes = hash_texts(self.operations)
        self.units, self.unit_of = paired_units(base, other, pairs)
        self._operands = _shared_operands(base, other)
        self._sequences: dict[Any, int] = {}
        self._shapes: dict[Any, int] = {}
        self._unnamed: list[dict[int, _UnnamedLaunches]] = []
        alike = base.vocabulary.source == other.vocabulary.source
        build = self._by_events
        if alike and len(base.scopes) > 0 and len(other.scopes) > 0:
            build = self._by_scopes
        elif alike and base.vocabulary.number_in_launch and not (base.has(NAMES) and other.has(NAMES)):
            build, self._unnamed = self._by_unnamed, [_unnamed_launches(base), _unnamed_launches(other)]
        counts = {(side, profile.unit_of(profile.lanes[number]), len(each.first))
                  for side, (profile, launches_of) in enumerate(zip(self._profiles, self._unnamed, strict=False))
                  for number, each in launches_of.items()}  # fmt: skip
        self._together = len(counts) == len({each[:2] for each in counts})
        self.base = build(0, self._events(0))
        # compared with itself, a profile is computed once
        self.other = self.base if base is other else build(1, self._events(1))
        if self._unnamed:
            texts = (" and ".join(f"{count:,} {kind}" for kind, count in shape) for shape in self._shapes)
            self.kernels = tuple(f"{each} {base.vocabulary.event.plural}" for each in texts)
        elif not self.base.launches.known:
            self.kernels = self.operations

    def _sequence(self, *key: Any) -> int:
        return self._sequences.setdefault(key, len(self._sequences))

    def _events(self, side: int) -> Frame:
        """Work by lane, then as issued; ``scope``: -1: none, ``sequence``: of its lane."""
        profile, hashes = self._profiles[side], dict[str, Hashes]()
        scopes = np.append(np.arange(len(profile.scopes)), -1)
        lanes_of: Counter[tuple[int, str]] = Counter()
        kinds = {lane.kind: hash_rows(np.repeat(hash_texts([lane.kind])[:1], len(self._hashes)), self._hashes)
                 for lane in profile.lanes}  # fmt: skip
        types = {"lane": np.int32, "command": np.uint64, "sequence": np.int32}
        columns: dict[str, list[Any]] = {
            key: [np.zeros(0, types.get(key, np.int64))]
            for key in ("lane", "row", "length", "label", "kernel", "command", "scope", "sequence")
        }
        for number, lane, rows in _lane_parts(profile):
            label = _joint_codes(lane, "name", rows, self._operation_codes[side])
            operands = [_operand(profile, lane, key, rows, hashes) for key in self._operands.get(lane.kind, ())]
            pair = self.unit_of[side].get(profile.unit_of(lane), -1)
            sequence = self._sequence("lane", pair, lane.kind, lanes_of[pair, lane.kind])
            lanes_of[pair, lane.kind] += 1
            for column, values in zip(columns.values(), (
                np.full(len(rows), number, np.int32), rows, lane.take("end", rows) - lane.take("start", rows), label,
                _joint_codes(lane, "kernel", rows, self._kernel_codes[side]),
                hash_rows(kinds[lane.kind][label], *operands), _joint_codes(lane, "scope", rows, scopes),
                np.full(len(rows), sequence, np.int32),
            ), strict=True):  # fmt: skip
                column.append(values)
        return Frame({key: np.concatenate(parts) for key, parts in columns.items()}, {})

    def _by_events(self, side: int, events: Frame) -> Work:
        """Work whose launches are unknown: events are launches, operations are kernels."""
        profile = self._profiles[side]
        events = events.take(np.argsort(events["sequence"], kind="stable"))
        units = np.array([self.unit_of[side].get(profile.unit_of(lane), -1) for lane in profile.lanes] or [0], np.int32)
        start, end = np.zeros((2, len(events)), np.int64)
        for number, rows in rows_by_lane(events["lane"]):
            for times, key in ((start, "start"), (end, "end")):
                times[rows] = profile.lanes[number].take(key, events["row"][rows])
        every, length, label = np.arange(len(events) + 1), events["length"], events["label"]
        launches = Launches(events["sequence"], units[events["lane"]], label, events["command"], start, end, length,
                            every, known=False)  # fmt: skip
        return Work(events["lane"], events["row"], length, label, label, events["command"], every[:-1], launches)

    def _by_unnamed(self, side: int, events: Frame) -> Work:
        """Work by unnamed launches; kernels are the numbers of events on each lane."""
        profile, launches_of = self._profiles[side], self._unnamed[side]
        launch, kernel = np.full(len(events), -1, np.int64), events["kernel"]
        parts: dict[int, list[int]] = {}
        for number in launches_of:
            parts.setdefault(profile.unit_of(profile.lanes[number]) if self._together else number, []).append(number)
        rows_of = dict(rows_by_lane(events["lane"]))
        columns: list[list[Any]] = [[np.zeros(0, np.int64)] for _ in range(5)]
        count = 0
        for numbers in parts.values():
            lanes, found = [profile.lanes[number] for number in numbers], [launches_of[number] for number in numbers]
            pair = self.unit_of[side].get(profile.unit_of(lanes[0]), -1)
            shape = np.array([
                self._shapes.setdefault(tuple(zip((lane.kind for lane in lanes), counts, strict=True)),
                                        len(self._shapes))
                for counts in zip(*(each.count.tolist() for each in found), strict=True)
            ])  # fmt: skip
            for number, each in zip(numbers, found, strict=True):
                rows = rows_of[number]
                turn = np.searchsorted(each.first, np.argsort(each.rows)[events["row"][rows]], side="right") - 1
                launch[rows], kernel[rows] = count + turn, shape[turn]
            sequence = self._sequence("unit", pair) if self._together else int(events["sequence"][rows[0]])
            edges = [np.array([ufunc.reduceat(lane[key][each.rows], each.first)
                               for lane, each in zip(lanes, found, strict=True)])
                     for key, ufunc in (("start", np.minimum), ("end", np.maximum))]  # fmt: skip
            for column, values in zip(columns, (
                np.full(len(shape), sequence), np.full(len(shape), pair), shape, edges[0].min(axis=0),
                edges[1].max(axis=0),
            ), strict=True):  # fmt: skip
                column.append(values)
            count += len(shape)
        return _by_launch(events, launch, *map(np.concatenate, columns))

    def _by_scopes(self, side: int, events: Frame) -> Work:
        """Work by launch: the launches of each unit by start, then one launch for all work that none issued."""
        profile, nothing = self._profiles[side], np.zeros(0, np.int64)
        lanes = [launch_lane(profile, unit) for unit in profile.units]
        pairs = (np.full(len(lane), self.unit_of[side].get(unit, -1))
                 for unit, lane in zip(profile.units, lanes, strict=True))  # fmt: skip
        kernels = (_joint_codes(lane, "kernel", ALL, self._kernel_codes[side]) for lane in lanes)
        columns = [np.concatenate([nothing, *parts]) for parts in
                   (pairs, kernels, *([lane[key] for lane in lanes] for key in ("start", "end", "scope")))]  # fmt: skip
        launch_of_scope = np.full(len(profile.scopes) + 1, -1, np.int64)
        launch_of_scope[columns.pop()] = np.arange(len(columns[0]))
        launch = launch_of_scope[events["scope"]]
        if bool((launch < 0).any()):
            # work that no launch issued becomes one launch at the end
            launch[launch < 0] = len(columns[0])
            columns = [np.append(column, -1) for column in columns]
        sequences = [self._sequence("unit", pair) for pair in range(-1, int(columns[0].max(initial=-1)) + 1)]
        return _by_launch(
            events, launch, np.array(sequences)[columns[0] + 1], *columns, kernels=hash_texts(self.kernels)
        )


def _as_issued(profile: Profile, lane: Lane) -> Ints:
    """Rows of a lane in the order in which they were issued.

    A port sends and receives at once, so which of two neighbours starts first differs between runs of one program. In
    recordings that number the events of a launch the source's own order is that of these numbers; else by start.
    """
    if profile.vocabulary.number_in_launch in lane:
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


def _unnamed_launches(profile: Profile) -> dict[int, _UnnamedLaunches]:
    """Unnamed launches of each lane with work: one starts where the event numbers restart."""
    column, found = profile.vocabulary.number_in_launch, {}
    for number, lane, _ in _lane_parts(profile):
        rows = _as_issued(profile, lane)
        ids = lane[column][rows] if column in lane else rows
        first = np.append(0, np.flatnonzero(np.diff(ids) <= 0) + 1)
        found[number] = _UnnamedLaunches(rows, first, ids[np.append(first[1:], len(ids)) - 1])
    return found


def _by_launch(
    events: Frame, launch: Ints, sequence: Ints, unit: Ints, kernel_of: Ints, start: Ints, end: Ints,
    *, kernels: Hashes | None = None,
) -> Work:  # fmt: skip
    """Orders events by launch and builds the launches; ``kernels``: hashes of the kernels' names, None: unnamed."""
    order = np.lexsort((events["lane"], launch))  # stable: within a lane as issued
    lane, row, length, label, kernel, command = (
        events[key][order] for key in ("lane", "row", "length", "label", "kernel", "command")
    )
    launch = launch[order]
    first = np.searchsorted(launch, np.arange(len(kernel_of) + 1))
    sums = np.concatenate([[0], np.cumsum(length)])
    launches = Launches(
        sequence=sequence.astype(np.int32), unit=unit.astype(np.int32), kernel=kernel_of,
        signature=_signatures(kernel_of if kernels is None else kernels[kernel_of], command, first),
        start=start, end=end, work=sums[first[1:]] - sums[first[:-1]], first=first, known=True,
        named=kernels is not None,
    )  # fmt: skip
    return Work(lane, row, length, label, kernel, command, launch, launches)


def _joint_codes(lane: Lane, key: str, rows: Rows, joint: Ints) -> Ints:
    """Joint codes of a column; -1 where the lane lacks it, and for codes without a joint one (the last is -1)."""
    codes = lane.take(key, rows) if key in lane else np.full(row_count(rows), -1, np.int64)
    return joint[np.where((codes >= 0) & (codes < len(joint) - 1), codes, -1)]


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
