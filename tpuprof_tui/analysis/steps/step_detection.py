"""Detection of a profile's steps, and the assignment of events to steps.

Steps are those that the source lists (``Profile.steps``); else those numbered by a column
(``Vocabulary.step_column``); else repetitions in the launch sequence. An event belongs to the step that its source
records, else to that of its launch, whenever it runs; without a launch, to the step that runs when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import INT_MISSING, Groups, Lane, Profile, Steps, StringsBuilder
from tpuprof_tui.model.columns import STEP
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.uniques import distinct, uniques
from tpuprof_tui.model.vocabulary import NAMES, Word

from ..result_cache import ResultCache
from ..selecting.session import Session
from .launch_sequence import LaunchSequence, launch_sequences
from .repetition import Level, find_level, levels_within, most_common, signatures

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: Key of the column with the step number of each event.
KEY: Final = STEP.key
#: Index that means no step.
NO_STEP: Final = -1
#: Step numbers are looked up in a dense table if it has fewer than this many entries per step.
_DENSE: Final = 4


class RepeatedSequence(Struct, frozen=True, eq=False):
    """A repeated launch sequence: the steps of a group, or repetitions nested within them. Arrays of one length."""

    group: int  #: Id of the group; -1: the whole profile
    depth: int  #: 0 for steps, 1 for repetitions within steps, and so on
    launches: int  #: Number of launches of the usual repetition
    #: first, last: Names of its first and last launch.
    first: str
    last: str
    #: start, end: int64 ns, of each repetition on one unit.
    start: Ints
    end: Ints
    usual: Mask  #: Whether the repetition's launches are the usual ones

    def __len__(self) -> int:
        return len(self.start)


class StepCut(Struct, frozen=True, eq=False):
    """How the launch sequence of a group is cut into steps."""

    group: int  #: Id of the group; -1: the whole profile
    unit: int  #: Id of the unit that the launch sequence is from
    level: Level  #: The steps
    longest: Level  #: The same steps, ``usual`` limited to the longest: those searched for nested repetitions


class StepSet(Struct, frozen=True, eq=False, dict=True):
    """Steps of one group, indexed by number and by start; ``index``: index into ``ProfileSteps.steps``."""

    index: Ints
    number: Ints
    index_by_start: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, steps: Steps, indexes: Ints) -> StepSet:
        """Builds the lookup of some steps, given by their indexes into ``steps``."""
        by_number = indexes[np.argsort(steps.number[indexes], kind="stable")]
        by_start = indexes[np.lexsort((steps.end[indexes], steps.start[indexes]))]
        return cls(by_number, steps.number[by_number], by_start, steps.start[by_start], steps.end[by_start])

    def numbered(self, numbers: Ints) -> Ints:
        """Index of the step with each number; -1: none."""
        first, last = int(self.number[0]), int(self.number[-1])
        if last - first < _DENSE * len(self.number):
            known = (numbers >= first) & (numbers <= last)
            return self._by_number[np.where(known, numbers - first, -1)]
        position = np.minimum(np.searchsorted(self.number, numbers), len(self.number) - 1)
        return np.where(self.number[position] == numbers, self.index[position], NO_STEP)

    def at(self, times: Ints) -> Ints:
        """Index of the step that runs at each time: the last to start, else the one with the latest end; -1: none."""
        last = np.searchsorted(self.start, times, side="right") - 1
        longest = self._longest[last]
        found = np.where(times < self.end[last], last, np.where(times < self.end[longest], longest, NO_STEP))
        return np.where((last >= 0) & (found >= 0), self.index_by_start[found], NO_STEP)

    @cached_property
    def _by_number(self) -> Ints:
        """Lookup table from (number - first number) to index; the extra last entry is ``NO_STEP``."""
        table = np.full(int(self.number[-1] - self.number[0]) + 2, NO_STEP, np.int64)
        table[self.number - self.number[0]] = self.index
        return table

    @cached_property
    def _longest(self) -> Ints:
        """For each step by start, the one up to it with the latest end."""
        ends = np.maximum.accumulate(self.end)
        return np.maximum.accumulate(np.where(self.end == ends, np.arange(len(ends)), 0))


class ProfileSteps(Struct, frozen=True, eq=False, dict=True):
    """The steps of a profile, and the assignment of events to them."""

    steps: Steps  #: The steps
    word: Word  #: The source's word for a step
    guessed: bool  #: Whether they were detected by repetition
    usual: Mask  #: By step, whether its launches are those of most steps of its group
    cuts: tuple[StepCut, ...]  #: How launch sequences are cut into the steps
    groups: Groups  #: Groups of the profile
    column: str  #: Key of the column that numbers steps; empty: none but ``step``
    by_scope: Ints  #: int64, index of the step of each scope by scope id; -1: none

    def __len__(self) -> int:
        return len(self.steps)

    def indexes(self, lane: Lane, rows: Rows = ALL) -> Ints:
        """Index into ``steps`` of each row's step, int64; -1: none."""
        column = lane.columns.get(KEY)
        if isinstance(column, StepColumn):
            return self.indexes(column.lane, rows)
        if column is not None:
            return self.numbered_rows(lane, rows, lane.take(KEY, rows))
        if self.column and self.column in lane:
            found = self.numbered_rows(lane, rows, lane.take(self.column, rows))
        else:
            found = np.full(len(lane.take("start", rows)), NO_STEP, np.int64)
        unknown = found < 0
        if not unknown.any():
            return found
        if "scope" in lane and len(self.by_scope):
            scope = lane.take("scope", rows)
            known = unknown & (scope >= 0) & (scope < len(self.by_scope))
            found[known] = self.by_scope[scope[known]]
            unknown = found < 0
        starts = lane.take("start", rows)
        for chosen, known_steps in self._sets(lane, rows):
            wanted = unknown if isinstance(chosen, slice) else unknown & chosen
            found[wanted] = known_steps.at(starts[wanted])
        return found

    def numbers(self, lane: Lane, rows: Rows = ALL) -> Ints:
        """Number of each row's step, int64; ``INT_MISSING``: none."""
        found = self.indexes(lane, rows)
        return np.where(found >= 0, self.steps.number[found] if len(self) else INT_MISSING, INT_MISSING)

    def numbered(self, number: int) -> Ints:
        """Indexes of the steps with a number: one per group that has it."""
        return np.flatnonzero(self.steps.number == number)

    def numbers_text(self, most: int) -> str:
        """The step numbers as text: ``0 to 39``, or the first ``most`` of them if there are gaps."""
        numbers = uniques(self.steps.number).tolist()
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")

    def label(self, index: int) -> str:
        """Label of a step."""
        return self.steps.labels[int(self.steps.label[index])]

    # groups

    @cached_property
    def _by_group(self) -> dict[int, StepSet]:
        groups = sorted(set(self.steps.group.tolist()))  # np.unique would import numpy.ma: 8 ms of startup
        return {group: StepSet.of(self.steps, np.flatnonzero(self.steps.group == group)) for group in groups}

    def set_of(self, group: int) -> StepSet | None:
        """Steps of a group, else of its nearest ancestor with steps, of a group under its root, or of the profile."""
        sets, groups = self._by_group, self.groups
        if len(sets) == 1 and (group < 0 or -1 in sets):
            return next(iter(sets.values()))
        above = group
        while above >= 0:
            if above in sets:
                return sets[above]
            above = groups[above].parent
        top = groups.top(group)
        return next((steps for each, steps in sets.items() if each >= 0 and groups.top(each) == top), sets.get(-1))

    def _sets(self, lane: Lane, rows: Rows) -> Sequence[tuple[Mask | slice, StepSet]]:
        """Pairs of (mask or slice over some rows, step set that applies to them)."""
        if "owner" not in lane or self.groups.unit_of(lane.group) >= 0:
            found = self.set_of(lane.group)
            return [] if found is None else [(ALL, found)]
        owners = lane.take("owner", rows)
        owners = np.where((owners >= 0) & (owners < len(self.groups)), owners, -1)
        of_owners = [(owners == owner, self.set_of(owner)) for owner in uniques(owners).tolist()]
        return [(chosen, found) for chosen, found in of_owners if found is not None]

    def numbered_rows(self, lane: Lane, rows: Rows, numbers: Ints) -> Ints:
        """Index of the step with each row's number; -1: none."""
        found = np.full(len(numbers), NO_STEP, np.int64)
        for chosen, steps in self._sets(lane, rows):
            found[chosen] = steps.numbered(numbers[chosen])
        return found


class StepColumn:
    """Lazy column of step numbers, for lanes whose source records none."""

    def __init__(self, lane: Lane, find: Callable[[], ProfileSteps]) -> None:
        self.lane = lane
        self.find = find

    def __call__(self, rows: Rows) -> Ints:
        """Step numbers of some rows."""
        return self.find().numbers(self.lane, rows)


def with_steps(profile: Profile) -> Profile:
    """The profile with a lazy column ``step`` in its lanes, if it can have steps."""
    lanes = profile.lanes
    if any(isinstance(lane.columns.get(KEY), StepColumn) for lane in lanes) or not _may_have_steps(profile):
        return profile
    find = partial(ResultCache().get, "steps", partial(_detect_steps, profile))
    columns = {number: StepColumn(lane, find) for number, lane in enumerate(lanes) if KEY not in lane}
    with_step = (
        lane.with_column(KEY, columns[number]) if number in columns else lane for number, lane in enumerate(lanes)
    )
    return replace(profile, lanes=tuple(with_step))


def steps_of(session: Session) -> ProfileSteps:
    """The steps of an unfiltered profile, cached; O(events) the first time if its source does not list them."""

    def find() -> ProfileSteps:
        columns = (lane.columns.get(KEY) for lane in session.profile.lanes)
        found = next((column.find for column in columns if isinstance(column, StepColumn)), None)
        return _detect_steps(session.profile) if found is None else found()

    return session.cache.get("steps", find)


def repeated_sequences(profile: Profile, steps: ProfileSteps) -> tuple[RepeatedSequence, ...]:
    """All repeated sequences: for each group its steps, then nested repetitions. O(launches log launches)."""
    sequences: list[RepeatedSequence] = []
    for cut in steps.cuts:
        # a filtered profile may lack the unit
        for launched in launch_sequences(profile, [cut.unit]):
            levels = (cut.level, *levels_within(launched.code, cut.longest))
            sequences += [_sequence(profile, launched, each, cut.group, depth) for depth, each in enumerate(levels)]
        profile.arrays.release_pages()
    return tuple(sequences)


def _may_have_steps(profile: Profile) -> bool:
    column = profile.vocabulary.step_column
    known = len(profile.steps) > 0 or any(column in lane for lane in profile.lanes)
    return profile.timed and (known or profile.has(NAMES))


def _detect_steps(profile: Profile) -> ProfileSteps:
    word = profile.vocabulary.step
    if len(profile.steps):
        return _with_scopes_and_cuts(profile, ProfileSteps(profile.steps, word, False, *_empty_fields(profile, KEY)))
    if not _may_have_steps(profile):
        return ProfileSteps(Steps(), word, False, *_empty_fields(profile, ""))
    column = profile.vocabulary.step_column
    numbered = _numbered_steps(profile, column, word) if column else Steps()
    if len(numbered):
        return _with_scopes_and_cuts(profile, ProfileSteps(numbered, word, False, *_empty_fields(profile, column)))
    return _detect_repetition(profile)


def _empty_fields(profile: Profile, column: str) -> tuple[Mask, tuple[StepCut, ...], Groups, str, Ints]:
    """Remaining fields of ``ProfileSteps`` for steps from a column, before ``_with_scopes_and_cuts`` fills them in."""
    return np.zeros(0, np.bool_), (), profile.groups, column, np.zeros(0, np.int64)


# steps recorded by the source


def _numbered_steps(profile: Profile, column: str, word: Word) -> Steps:
    """Steps of the whole profile: per number from the first start to the last end of the device's events."""
    parts: list[tuple[Ints, Ints, Ints]] = []
    for lane in profile.lanes:
        if column in lane and len(lane) and lane.in_sums:
            begins = _run_starts(lane[column])
            numbers, ends = lane.take(column, begins), np.maximum.reduceat(lane["end"], begins)
            known = numbers >= 0
            parts.append((numbers[known], lane.take("start", begins)[known], ends[known]))
    if not parts:
        return Steps()
    number, index = distinct(np.concatenate([part[0] for part in parts]))
    start = np.full(len(number), np.iinfo(np.int64).max, np.int64)
    end = np.full(len(number), np.iinfo(np.int64).min, np.int64)
    np.minimum.at(start, index, np.concatenate([part[1] for part in parts]))
    np.maximum.at(end, index, np.concatenate([part[2] for part in parts]))
    order = np.lexsort((number, start))
    return _build_steps(word, np.full(len(number), -1), number[order], start[order], end[order])


def _build_steps(word: Word, group: Ints, number: Ints, start: Ints, end: Ints) -> Steps:
    labels = StringsBuilder()
    codes = np.array([labels.code(f"{word.one} {each}") for each in number.tolist()], np.int32)
    return Steps(labels.build(), codes, group.astype(np.int32), start, end, number.astype(np.int64))


def _with_scopes_and_cuts(profile: Profile, found: ProfileSteps) -> ProfileSteps:
    """Adds scopes, usual launches and cuts to steps that a column of events records."""
    by_scope = np.full(len(profile.scopes), NO_STEP, np.int64)
    for lane in profile.lanes:
        if found.column in lane and "scope" in lane and len(lane) and len(by_scope):
            begins = _run_starts(lane["scope"])
            scope = lane.take("scope", begins)
            indexes = found.numbered_rows(lane, begins, lane.take(found.column, begins))
            new = (scope >= 0) & (scope < len(by_scope)) & (indexes >= 0)
            new[new] = by_scope[scope[new]] < 0
            by_scope[scope[new]] = indexes[new]
    found = replace(found, by_scope=by_scope)
    usual = np.ones(len(found), np.bool_)
    cuts: list[StepCut] = []
    for group, units in _workers(profile, found):
        launched = max(launch_sequences(profile, units), key=len, default=None)
        if launched is None:
            continue
        indexes = by_scope[launched.scope]
        if launched.lane is not None and launched.rows is not None:
            indexes = found.indexes(launched.lane, launched.rows)
        # steps are cuts of the launch sequence if the launches of each are contiguous
        begins = _run_starts(indexes)
        known = indexes[begins] >= 0
        count = int(np.count_nonzero(known))
        if not count or len(set(indexes[begins][known].tolist())) < count:
            continue
        start, stop = begins[known], np.append(begins[1:], len(indexes))[known]
        level = Level(start, stop, np.ones(count, np.bool_), np.full(count, -1, np.int64))
        usual_launches = most_common(signatures(launched.code, level.start, level.stop))
        if np.count_nonzero(usual_launches) > 1:
            level = replace(level, usual=usual_launches)
            usual[indexes[begins][known]] = level.usual
        length = stop - start
        longest = replace(level, usual=level.usual & (length == length[level.usual].max()))
        cuts.append(StepCut(group, launched.unit, level, longest))
        profile.arrays.release_pages()
    return replace(found, usual=usual, cuts=tuple(cuts))


def _workers(profile: Profile, found: ProfileSteps) -> list[tuple[int, list[int]]]:
    units: dict[int, list[int]] = {}
    for unit in profile.units:
        steps = found.set_of(unit)
        if steps is not None:
            units.setdefault(int(found.steps.group[steps.index[0]]), []).append(unit)
    return list(units.items())


# steps detected by repetition


def _detect_repetition(profile: Profile) -> ProfileSteps:
    """Detects steps by repetition: per root group over all its units, globally for root groups that are units."""
    word = Word("step")
    by_top: dict[int, list[int]] = {}
    for unit in profile.units:
        top = profile.groups.top(unit)
        by_top.setdefault(-1 if profile.groups[top].is_unit else top, []).append(unit)
    by_scope = np.full(len(profile.scopes), NO_STEP, np.int64)
    rows: list[tuple[Ints, Ints, Ints, Ints, Mask]] = []
    cuts: list[StepCut] = []
    first = 0
    for group, units in by_top.items():
        sequences = launch_sequences(profile, units)
        launched = max(sequences, key=len, default=None)
        level = find_level(launched.code) if launched is not None else None
        if launched is None or level is None:
            continue
        count = len(level)
        start, end = _times(launched, level)
        same = [each for each in sequences if np.array_equal(each.code, launched.code)]
        for each in same:
            begins, ends = _times(each, level)
            start, end = np.minimum(start, begins), np.maximum(end, ends)
        launch = np.arange(len(launched))
        index = np.searchsorted(level.start, launch, side="right") - 1
        index[(index >= 0) & (launch >= level.stop[index])] = NO_STEP
        for each in same:
            if len(each.scope):
                by_scope[each.scope] = np.where(index >= 0, index + first, NO_STEP)
        rows.append((np.full(count, group), np.arange(count), start, end, level.usual))
        cuts.append(StepCut(group, launched.unit, level, level))
        first += count
    if not rows:
        return ProfileSteps(Steps(), word, False, *_empty_fields(profile, ""))
    group_, number, start, end, usual = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    steps = _build_steps(word, group_, number, start, end)
    return ProfileSteps(steps, word, True, usual, tuple(cuts), profile.groups, "", by_scope)


def _times(launched: LaunchSequence, level: Level) -> tuple[Ints, Ints]:
    edges = np.stack((level.start, level.stop), axis=1).reshape(-1)
    ends = np.append(launched.end, np.iinfo(np.int64).min)
    return launched.start[level.start], np.maximum.reduceat(ends, edges)[::2]


def _sequence(profile: Profile, launched: LaunchSequence, level: Level, group: int, depth: int) -> RepeatedSequence:
    unit = level.unit
    first, last = (profile.text(launched.key, int(launched.code[place])) for place in (unit.start, unit.stop - 1))
    return RepeatedSequence(group, depth, unit.stop - unit.start, first, last, *_times(launched, level), level.usual)


def _run_starts(values: Ints) -> Ints:
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
