"""The steps of a profile, found: the one place that answers what they are.

Steps are those that the source lists (``Profile.steps``); else those that a column numbers
(``Vocabulary.step_column``); else, where launches repeat, the repetitions. An event belongs to the step that its source
says, else to that of its launch, whenever it runs; what no launch is known of to the step that runs when it starts.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.model import Groups, Profile, Steps, StringsBuilder
from tpuprof_tui.model.vocabulary import NAMES, Word

from ..derived import Derived
from .launch_sequence import LaunchSequence, launch_sequences
from .profile_steps import KEY, NO_STEP, ProfileSteps, RepeatedSequence, StepColumn
from .repetition import Level, find_levels, levels_within, signatures
from .sequence_hash import commonest

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def with_steps(profile: Profile) -> Profile:
    """The profile, its lanes with a column ``step`` where there can be steps: computed when it is asked for."""
    lanes = profile.lanes
    if any(isinstance(lane.columns.get(KEY), StepColumn) for lane in lanes) or not _may_have_steps(profile):
        return profile
    find = partial(Derived().get, "steps", partial(_find, profile))
    columns = {number: StepColumn(lane, find) for number, lane in enumerate(lanes) if KEY not in lane}
    with_them = (lane.with_column(KEY, columns[number]) if number in columns else lane
                 for number, lane in enumerate(lanes))  # fmt: skip
    return replace(profile, lanes=tuple(with_them))


def steps_of(profile: Profile) -> ProfileSteps:
    """The steps of a profile. O(events) where its source does not list them.

    Of a profile of ``with_steps`` it is found once, and with the columns of its lanes.
    """
    for lane in profile.lanes:
        column = lane.columns.get(KEY)
        if isinstance(column, StepColumn):
            return column.find()
    return _find(profile)


def _may_have_steps(profile: Profile) -> bool:
    column = profile.vocabulary.step_column
    known = len(profile.steps) > 0 or any(column in lane for lane in profile.lanes)
    return profile.timed and (known or profile.has(NAMES))


def _find(profile: Profile) -> ProfileSteps:
    word = profile.vocabulary.step
    if len(profile.steps):
        return _told(profile, ProfileSteps(profile.steps, word, False, *_nothing(profile, KEY)))
    if not _may_have_steps(profile):
        return ProfileSteps(Steps(), word, False, *_nothing(profile, ""))
    column = profile.vocabulary.step_column
    numbered = _numbered_steps(profile, column, word) if column else Steps()
    if len(numbered):
        return _told(profile, ProfileSteps(numbered, word, False, *_nothing(profile, column)))
    return _repeated(profile)


def _nothing(profile: Profile, column: str) -> tuple[Mask, tuple[RepeatedSequence, ...], Groups, str, Ints]:
    """What is not known yet of steps that a column tells."""
    return np.zeros(0, np.bool_), (), profile.groups, column, np.zeros(0, np.int64)


# steps that the source tells


def _numbered_steps(profile: Profile, column: str, word: Word) -> Steps:
    """Steps of everything together, from the first start to the last end of the device's events with each number."""
    parts: list[tuple[Ints, Ints, Ints]] = []
    for lane in profile.lanes:
        if column in lane and len(lane) and lane.in_sums:
            begins = _runs(lane[column])
            numbers, ends = lane.take(column, begins), np.maximum.reduceat(lane["end"], begins)
            known = numbers >= 0
            parts.append((numbers[known], lane.take("start", begins)[known], ends[known]))
    if not parts:
        return Steps()
    number, which = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    start = np.full(len(number), np.iinfo(np.int64).max, np.int64)
    end = np.full(len(number), np.iinfo(np.int64).min, np.int64)
    np.minimum.at(start, which.reshape(-1), np.concatenate([part[1] for part in parts]))
    np.maximum.at(end, which.reshape(-1), np.concatenate([part[2] for part in parts]))
    order = np.lexsort((number, start))
    return _made(word, np.full(len(number), -1), number[order], start[order], end[order])


def _made(word: Word, group: Ints, number: Ints, start: Ints, end: Ints) -> Steps:
    labels = StringsBuilder()
    codes = np.array([labels.code(f"{word.one} {each}") for each in number.tolist()], np.int32)
    return Steps(labels.build(), codes, group.astype(np.int32), start, end, number.astype(np.int64))


def _told(profile: Profile, found: ProfileSteps) -> ProfileSteps:
    """Steps that a column of events tells, with the launches that belong to them and what repeats within."""
    by_scope = np.full(len(profile.scopes), NO_STEP, np.int64)
    for lane in profile.lanes:
        if found.column in lane and "scope" in lane and len(lane) and len(by_scope):
            begins = _runs(lane["scope"])
            scope = lane.take("scope", begins)
            places = found.numbered_rows(lane, begins, lane.take(found.column, begins))
            new = (scope >= 0) & (scope < len(by_scope)) & (places >= 0)
            new[new] = by_scope[scope[new]] < 0
            by_scope[scope[new]] = places[new]
    found = replace(found, by_scope=by_scope)
    usual = np.ones(len(found), np.bool_)
    sequences: list[RepeatedSequence] = []
    for group, units in _workers(profile, found):
        launched = max(launch_sequences(profile, units), key=len, default=None)
        if launched is None:
            continue
        places = by_scope[launched.scope]
        if launched.lane is not None and launched.rows is not None:
            places = found.places(launched.lane, launched.rows)
        begins = _runs(places)
        level = _as_level(places[begins], begins, len(places))
        if level is None:
            continue
        alike = commonest(signatures(launched.code, level.start, level.stop))
        if np.count_nonzero(alike) > 1:
            level = replace(level, usual=alike)
            usual[places[begins][places[begins] >= 0]] = level.usual
        longest = replace(level, usual=level.usual & (level.stop - level.start == _longest(level)))
        levels = (level, *levels_within(launched.code, longest))
        sequences += [_sequence(profile, launched, each, group, depth) for depth, each in enumerate(levels)]
        profile.arrays.give_back()
    return replace(found, usual=usual, sequences=tuple(sequences))


def _workers(profile: Profile, found: ProfileSteps) -> list[tuple[int, list[int]]]:
    """Groups of steps, and the units whose events belong to them."""
    units: dict[int, list[int]] = {}
    for unit in profile.units:
        steps = found.set_of(unit)
        if steps is not None:
            units.setdefault(int(found.steps.group[steps.place[0]]), []).append(unit)
    return list(units.items())


def _longest(level: Level) -> int:
    """Launches of the longest of the usual repetitions."""
    return int((level.stop - level.start)[level.usual].max())


def _as_level(places: Ints, begins: Ints, count: int) -> Level | None:
    """Launches of steps as repetitions; None where a step's launches are not one behind the other, or none is known."""
    known = places >= 0
    if not known.any() or len(np.unique(places[known])) < np.count_nonzero(known):
        return None
    start, stop = begins[known], np.append(begins[1:], count)[known]
    return Level(start, stop, np.ones(len(start), np.bool_), np.full(len(start), -1, np.int64))


# steps that repeat


def _repeated(profile: Profile) -> ProfileSteps:
    """Repetitions of what the units launch: those of units with one top together, if that is no unit itself."""
    word = Word("step")
    by_top: dict[int, list[int]] = {}
    for unit in profile.units:
        top = profile.groups.top(unit)
        by_top.setdefault(-1 if profile.groups[top].is_unit else top, []).append(unit)
    by_scope = np.full(len(profile.scopes), NO_STEP, np.int64)
    rows: list[tuple[Ints, Ints, Ints, Ints, Mask]] = []
    sequences: list[RepeatedSequence] = []
    first = 0
    for group, units in by_top.items():
        every = launch_sequences(profile, units)
        launched = max(every, key=len, default=None)
        levels = find_levels(launched.code) if launched is not None else ()
        if launched is None or not levels:
            continue
        level = levels[0]
        count = len(level)
        start, end = _times(launched, level)
        alike = [each for each in every if np.array_equal(each.code, launched.code)]
        for each in alike:
            begins, ends = _times(each, level)
            start, end = np.minimum(start, begins), np.maximum(end, ends)
        place = _inside(level, len(launched))
        for each in alike:
            if len(each.scope):
                by_scope[each.scope] = np.where(place >= 0, place + first, NO_STEP)
        rows.append((np.full(count, group), np.arange(count), start, end, level.usual))
        sequences += [_sequence(profile, launched, each, group, depth) for depth, each in enumerate(levels)]
        first += count
    if not rows:
        return ProfileSteps(Steps(), word, False, *_nothing(profile, ""))
    group_, number, start, end, usual = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    steps = _made(word, group_, number, start, end)
    return ProfileSteps(steps, word, True, usual, tuple(sequences), profile.groups, "", by_scope)


def _times(launched: LaunchSequence, level: Level) -> tuple[Ints, Ints]:
    """First start and last end of each repetition."""
    edges = np.stack((level.start, level.stop), axis=1).reshape(-1)
    ends = np.append(launched.end, np.iinfo(np.int64).min)
    return launched.start[level.start], np.maximum.reduceat(ends, edges)[::2]


def _inside(level: Level, count: int) -> Ints:
    """Place of the repetition that each launch belongs to; -1 where it belongs to none."""
    where = np.arange(count)
    found = np.searchsorted(level.start, where, side="right") - 1
    return np.where((found >= 0) & (where < level.stop[found]), found, NO_STEP)


def _sequence(profile: Profile, launched: LaunchSequence, level: Level, group: int, depth: int) -> RepeatedSequence:
    unit = level.unit
    first, last = (profile.text(launched.key, int(launched.code[place])) for place in (unit.start, unit.stop - 1))
    return RepeatedSequence(group, depth, unit.stop - unit.start, first, last, *_times(launched, level), level.usual)


def _runs(values: Ints) -> Ints:
    """Where another value begins."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])
