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
from tpuprof_tui.model.vocabulary import NAMES

from ..operation_names import renamed_operations
from ..steps.launch_sequence import launch_lane

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_OTHER_FACTOR: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class Work(Struct, frozen=True, eq=False):
    """Device events that do work, by launch, then lane, then as issued (`_as_issued`); arrays of one length.

    Attributes:
        lane, row: int32 index in ``Profile.lanes``, and int64 row of that lane.
        length: Duration, int64 ns.
        label: int64, joint code of the operation, the same on both sides.
        kernel: int64, joint code of the kernel; -1: none.
        command: uint64, hash of operation and operands.
        launch: int64, index in ``launches``.
        launches: The launches.
    """

    lane: npt.NDArray[np.int32]
    row: Ints
    length: Ints
    label: Ints
    kernel: Ints
    command: Hashes
    launch: Ints
    launches: Launches

    def __len__(self) -> int:
        return len(self.length)


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
    """The work of two profiles of one source; ``pairs`` as in ``Comparison``. O(n log n)."""
    renamed = renamed_operations(base, other)
    operations, operation_codes = _joint_codes(base, other, "name", renamed)
    kernels, kernel_codes = _joint_codes(base, other, "kernel", {})
    units, unit_of = paired_units(base, other, pairs or [(-1, -1)])
    alike = base.vocabulary.source == other.vocabulary.source
    launches_known = alike and len(base.scopes) > 0 and len(other.scopes) > 0
    operands = _shared_operands(base, other)
    sequences: dict[Any, int] = {}
    shapes: dict[Any, int] | None = None
    together = False
    # compared with itself, a profile is computed once
    sides = (base,) if base is other else (base, other)
    restarts: list[dict[int, _Restarts]] = [{} for _ in sides]
    if not launches_known and alike and base.vocabulary.restarts and not (base.has(NAMES) and other.has(NAMES)):
        restarts = [_restarts(profile) for profile in sides]
        # if all lanes of each unit have equally many launches, the n-th of each lane are one launch
        counts = {(side, profile.unit_of(profile.lanes[number]), len(each.first))
                  for side, profile in enumerate(sides) for number, each in restarts[side].items()}  # fmt: skip
        launches_known, shapes, together = True, {}, len(counts) == len({each[:2] for each in counts})
    hashes = hash_texts(operations), hash_texts(kernels)
    works = [
        _work(profile, operation_codes[side], kernel_codes[side], unit_of[side], operands, launches_known, sequences,
              shapes, together, restarts[side], *hashes)
        for side, profile in enumerate(sides)
    ]  # fmt: skip
    if shapes is not None:
        texts = (" and ".join(f"{count:,} {kind}" for kind, count in shape) for shape in shapes)
        kernels = tuple(f"{each} {base.vocabulary.event.plural}" for each in texts)
    return JointWork(works[0], works[-1], operations, kernels if launches_known else operations, units, renamed)


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


def _work(
    profile: Profile, operation_codes: Ints, kernel_codes: Ints, unit_of: Mapping[int, int],
    operands: Mapping[str, tuple[str, ...]], launches_known: bool, sequences: dict[Any, int],
    shapes: dict[Any, int] | None, together: bool, restarts: Mapping[int, _Restarts], of_operations: Hashes,
    of_kernels: Hashes,
) -> Work:  # fmt: skip
    parts: list[list[Any]] = [[] for _ in range(8)]
    lanes_seen: dict[tuple[int, str], int] = {}
    hashes: dict[str, Hashes] = {}
    kinds = {lane.kind: hash_rows(np.repeat(hash_texts([lane.kind])[:1], len(of_operations)), of_operations)
             for lane in profile.lanes}  # fmt: skip
    for place_of_lane, lane, rows in _lane_parts(profile):
        name = lane.take("name", rows) if "name" in lane else np.full(len(rows), -1, np.int32)
        label = operation_codes[np.where((name >= 0) & (name < len(operation_codes) - 1), name, -1)]
        operand_values = [_operand(profile, lane, key, rows, hashes) for key in operands.get(lane.kind, ())]
        unit = profile.unit_of(lane)
        scope = lane.take("scope", rows) if "scope" in lane else np.full(len(rows), -1, np.int64)
        scope = np.where((scope >= 0) & (scope < len(profile.scopes)), scope, -1).astype(np.int64)
        kernel = np.full(len(rows), -1, np.int64)
        if "kernel" in lane:
            code = lane.take("kernel", rows)
            kernel = kernel_codes[np.where((code >= 0) & (code < len(kernel_codes) - 1), code, -1)]
        unit_pair = unit_of.get(unit, -1)
        lane_in_unit = lanes_seen.get((unit_pair, lane.kind), 0)
        lanes_seen[unit_pair, lane.kind] = lane_in_unit + 1
        numbered = sequences.setdefault(("lane", unit_pair, lane.kind, lane_in_unit), len(sequences))
        for column, values in zip(parts, (
            np.full(len(rows), place_of_lane, np.int32), rows, lane.take("end", rows) - lane.take("start", rows), label,
            kernel, hash_rows(kinds[lane.kind][label], *operand_values), scope, np.full(len(rows), numbered, np.int32),
        ), strict=True):  # fmt: skip
            column.append(values)
    types = (np.int32, np.int64, np.int64, np.int64, np.int64, np.uint64, np.int64, np.int32)
    columns = [
        np.concatenate(column) if column else np.zeros(0, kind) for column, kind in zip(parts, types, strict=True)
    ]
    if not launches_known:
        lane_number, row, length, label, _, command, _, sequence = columns
        # events are launches, operations are kernels
        count = len(length)
        unit_by_lane = np.array([unit_of.get(profile.unit_of(lane), -1) for lane in profile.lanes] or [0], np.int32)
        start, end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for number, rows_of_lane in rows_by_lane(lane_number):
            for times, key in ((start, "start"), (end, "end")):
                times[rows_of_lane] = profile.lanes[number].take(key, row[rows_of_lane])
        order = np.argsort(sequence, kind="stable")
        launches = Launches(sequence[order], unit_by_lane[lane_number[order]], label[order], command[order],
                            start[order], end[order], length[order], np.arange(count + 1, dtype=np.int64),
                            False)  # fmt: skip
        return Work(lane_number[order], row[order], length[order], label[order], label[order], command[order],
                    np.arange(count, dtype=np.int64), launches)  # fmt: skip
    if shapes is not None:
        return _work_by_restarts(profile, unit_of, sequences, shapes, together, restarts, columns)
    return _work_by_scopes(profile, kernel_codes, unit_of, sequences, of_kernels, columns)


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


def _restarts(profile: Profile) -> dict[int, _Restarts]:
    """Unnamed launches of each lane with work: one starts where the event numbers restart."""
    column, found = profile.vocabulary.restarts, {}
    for number, lane, _ in _lane_parts(profile):
        rows = _as_issued(profile, lane)
        ids = lane[column][rows] if column in lane else rows
        first = np.append(0, np.flatnonzero(np.diff(ids) <= 0) + 1)
        found[number] = _Restarts(rows, first, ids[np.append(first[1:], len(ids)) - 1])
    return found


def _work_by_restarts(
    profile: Profile, unit_of: Mapping[int, int], sequences: dict[Any, int], shapes: dict[Any, int], together: bool,
    restarts: Mapping[int, _Restarts], columns: Sequence[Any],
) -> Work:  # fmt: skip
    """Work by unnamed launches; kernels are the numbers of events on each lane.

    ``together``: a launch comprises all lanes of a unit; else one lane.
    """
    lane_number, row, _, _, kernel, _, launch, sequence = columns
    parts: dict[int, list[int]] = {}
    for number in restarts:
        parts.setdefault(profile.unit_of(profile.lanes[number]) if together else number, []).append(number)
    launch_columns: list[list[Any]] = [[np.zeros(0, np.int64)] for _ in range(5)]
    count = 0
    for numbers in parts.values():
        lanes, found = [profile.lanes[number] for number in numbers], [restarts[number] for number in numbers]
        unit_pair = unit_of.get(profile.unit_of(lanes[0]), -1)
        shapes_of_launches = [
            tuple(zip((lane.kind for lane in lanes), counts, strict=True))
            for counts in zip(*(each.count.tolist() for each in found), strict=True)
        ]
        shape = np.array([shapes.setdefault(each, len(shapes)) for each in shapes_of_launches])
        for number, each in zip(numbers, found, strict=True):
            rows_of_lane = np.flatnonzero(lane_number == number)
            place = np.argsort(each.rows)[row[rows_of_lane]]
            number_in_lane = np.searchsorted(each.first, place, side="right") - 1
            launch[rows_of_lane], kernel[rows_of_lane] = count + number_in_lane, shape[number_in_lane]
        own = sequences.setdefault(("unit", unit_pair), len(sequences)) if together else int(sequence[rows_of_lane[0]])
        starts = [
            np.minimum.reduceat(lane["start"][each.rows], each.first) for lane, each in zip(lanes, found, strict=True)
        ]
        ends = [
            np.maximum.reduceat(lane["end"][each.rows], each.first) for lane, each in zip(lanes, found, strict=True)
        ]
        for values, one in zip(launch_columns, (
            np.full(len(shape), own), np.full(len(shape), unit_pair), shape, np.minimum.reduce(starts),
            np.maximum.reduce(ends),
        ), strict=True):  # fmt: skip
            values.append(one)
        count += len(shape)
    return _by_launch(columns, *map(np.concatenate, launch_columns))


def _work_by_scopes(
    profile: Profile, kernel_codes: Ints, unit_of: Mapping[int, int], sequences: dict[Any, int], of_kernels: Hashes,
    columns: Sequence[Any],
) -> Work:  # fmt: skip
    """Work by launch: the launches of each unit by start, then one launch for all work that none issued."""
    scope = columns[6]
    units, kernels, starts, ends = [], [], [], []
    launch_of_scope = np.full(len(profile.scopes) + 1, -1, np.int64)
    count = 0
    for unit in profile.units:
        lane = launch_lane(profile, unit)
        size = len(lane)
        units.append(np.full(size, unit_of.get(unit, -1), np.int32))
        code = lane["kernel"].astype(np.int64)
        kernels.append(kernel_codes[np.where((code >= 0) & (code < len(kernel_codes) - 1), code, -1)])
        starts.append(lane["start"])
        ends.append(lane["end"])
        launch_of_scope[lane["scope"]] = np.arange(count, count + size)
        count += size
    # work that no launch issued becomes one launch at the end
    launch = launch_of_scope[scope]
    if bool((launch < 0).any()):
        launch[launch < 0] = count
        count += 1
        units.append(np.full(1, -1, np.int32))
        for column in (kernels, starts, ends):
            column.append(np.full(1, -1, np.int64))
    of_unit = np.concatenate([np.zeros(0, np.int32), *units])
    sequence_of_unit = [
        sequences.setdefault(("unit", each), len(sequences)) for each in range(-1, int(of_unit.max(initial=-1)) + 1)
    ]
    launch_columns = (np.concatenate([np.zeros(0, np.int64), *each]) for each in (kernels, starts, ends))
    with_launch = (*columns[:6], launch)
    return _by_launch(
        with_launch, np.array(sequence_of_unit, np.int32)[of_unit + 1], of_unit, *launch_columns, kernels=of_kernels
    )


def _by_launch(
    columns: Sequence[Any], sequence: Ints, unit: Ints, kernel_of: Ints, start: Ints, end: Ints,
    *, kernels: Hashes | None = None,
) -> Work:  # fmt: skip
    """Orders events by launch and builds the launches; ``kernels``: hashes of the kernels' names, None: unnamed."""
    lane_number, row, launch = columns[0], columns[1], columns[6]
    order = np.lexsort((lane_number, launch))  # stable: within a lane as issued
    lane_number, row, length, label, kernel, command, launch = (column[order] for column in columns[:7])
    first = np.searchsorted(launch, np.arange(len(kernel_of) + 1))
    sums = np.concatenate([[0], np.cumsum(length)])
    launches = Launches(
        sequence=sequence.astype(np.int32), unit=unit.astype(np.int32), kernel=kernel_of,
        signature=_signatures(kernel_of if kernels is None else kernels[kernel_of], command, first),
        start=start, end=end, work=sums[first[1:]] - sums[first[:-1]], first=first, known=True,
        named=kernels is not None,
    )  # fmt: skip
    return Work(lane_number, row, length, label, kernel, command, launch, launches)


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
