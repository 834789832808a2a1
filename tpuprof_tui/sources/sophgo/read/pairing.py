"""Binds each record to its command.

Within a launch a record belongs to the command with its id, so only the launch has to be found: record ids restart at
every id reset as command ids do, and the restarts split an undamaged stream exactly like the commands. Where records
are lost, sections vanish or merge; then the launches of all engines of a core are matched together (they follow one
another in time), by ids, system flags and transfer directions.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter

import numpy as np
from msgspec import Struct

from .arrays import F64, I8, I64, Bools, id_sections

#: Kind of a record or command, as far as known; see `contradicts`.
UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS, WORK = 0, 1, 2, 3, 4


class EngineItems(Struct):
    """Records or commands of one engine, reduced to the columns that pairing compares."""

    id: I64  #: Ids, restarting at resets
    key: I64  #: Sort key across engines: start in ns for records, node index for commands
    kind: I8  #: UNKNOWN, SYSTEM, TO_LOCAL, TO_BUS or WORK
    end: I64 | None = None  #: End of each record, ns; None for commands, or where it is not needed


def contradicts(recorded: I8, issued: I8) -> Bools:
    """Mask of the pairs of a record and a command, element by element, whose kinds cannot both be true.

    One is a system command and the other is not, or they move data in different directions.
    """
    differ = (recorded != UNKNOWN) & (issued != UNKNOWN) & (recorded != issued)
    result: Bools = differ & ((recorded == SYSTEM) | (issued == SYSTEM) | ((recorded != WORK) & (issued != WORK)))
    return result


# Bindings in doubt. Where an engine lost the first commands of a launch, its ids continue without a restart, so that
# the launch is detected only when ids of another engine restart: the records before that may belong to either launch.
# And where whole launches are lost, the few remaining records of their neighbours may fit several launches. Such runs
# are moved at pauses, and marked as ambiguous. Bindings out of order are removed; unbound records are bound as their
# neighbours imply.

#: A run is certain with at least the share `_CERTAIN_COVERAGE` of its launch's commands, if it has `_ENOUGH_RECORDS`
#: records or the `_NEIGHBOUR_RUNS` runs around it have a mean share of `_COMPLETE_COVERAGE`.
_CERTAIN_COVERAGE, _ENOUGH_RECORDS = 0.6, 8
_COMPLETE_COVERAGE, _NEIGHBOUR_RUNS = 0.9, 11
#: Most lost launches between two runs that are considered.
_MOST_BETWEEN = 8
#: Limits of the search for alternatives: lost launches in one stretch, and pairs of run and launch in total.
_MOST_SLACK, _MOST_TRIED = 64, 20_000


def split_runs(runs: Matcher) -> tuple[list[I64], list[Bools]]:
    """Launch of each record and mask of the ambiguous records, by engine; ``runs`` must have been aligned."""
    ambiguous = [np.zeros(len(records.id), np.bool_) for records in runs.records]
    if not len(runs.launch):
        return [np.full(len(records.id), -1) for records in runs.records], ambiguous
    launches = [np.repeat(runs.launch, np.diff(start)) for start in runs.run_start]
    for run in np.flatnonzero(_open_end_mask(runs)).tolist():
        _split(runs, run, launches, ambiguous)
    for first, last in _stretches(runs):
        for engine in (each for each, is_clean in enumerate(runs.is_clean) if not is_clean):
            ambiguous[engine][runs.rows(engine, first).start : runs.rows(engine, last).stop] = True
    return launches, ambiguous


def _open_end_mask(runs: Matcher) -> Bools:
    """Mask of the runs whose last records of an engine may belong to the next run: ids keep growing, or it has none."""
    result = np.zeros(len(runs.launch), np.bool_)
    for records, start, is_clean in zip(runs.records, runs.run_start, runs.is_clean, strict=True):
        count = np.diff(start)
        if is_clean or len(count) < 2 or not len(records.id):
            continue
        last, after = np.maximum(start[1:-1] - 1, 0), np.minimum(start[1:-1], len(records.id) - 1)
        result[:-1] |= (count[:-1] > 0) & ((count[1:] == 0) | (records.id[after] > records.id[last]))
    result[:-1] &= (runs.launch[:-1] >= 0) & (runs.launch[1:] >= 0)
    return result


def _items_and_pauses(runs: Matcher, run: int) -> tuple[list[tuple[int, int, int]], I64]:
    """Records of a run in time order, as (start, engine, row); pauses (ns) before each and before the next run."""
    items = sorted(
        (int(records.key[row]), engine, row)
        for engine, records in enumerate(runs.records)
        for row in range(*runs.run_start[engine][run : run + 2].tolist())
    )
    ends = [records.key if records.end is None else records.end for records in runs.records]
    latest_end = np.maximum.accumulate([int(ends[engine][row]) for _, engine, row in items])
    following = (runs.rows(engine, run + 1) for engine in range(len(runs.records)))
    heads = [
        int(each.key[rows.start]) for each, rows in zip(runs.records, following, strict=True) if len(each.key[rows])
    ]
    begin = min(heads, default=items[-1][0] if items else 0)
    starts = np.array([*(item[0] for item in items[1:]), begin])
    return items, np.concatenate([[0], starts - latest_end])


def _split(runs: Matcher, run: int, launches: list[I64], ambiguous: list[Bools]) -> None:
    """Move the last records of a run to the next launch, or to a launch between, from the longest pause on."""
    here, there = int(runs.launch[run]), int(runs.launch[run + 1])
    items, pauses = _items_and_pauses(runs, run)
    left = len(items)
    for target in range(there, max(here, there - _MOST_BETWEEN), -1):
        first = _movable(runs, run, items[:left], target, next_too=target == there)
        if not 0 < first < left:
            continue  # no record can move, or all of them can
        cut = first + int(np.argmax(pauses[first : left + (target == there)]))
        for _, engine, row in items[first:left]:
            ambiguous[engine][row] = True
        if target != there and pauses[cut] < pauses[:left].max():
            continue  # more likely, that launch was lost entirely
        for _, engine, row in items[cut:left]:
            launches[engine][row] = target
        left = cut


def _movable(runs: Matcher, run: int, items: list[tuple[int, int, int]], target: int, *, next_too: bool) -> int:
    """First of the trailing items that can all be of ``target``, with ``next_too`` ahead of the next run's."""
    movable: set[tuple[int, int]] = set()  # engine and row
    for engine, records in enumerate(runs.records):
        rows, following = runs.rows(engine, run), runs.rows(engine, run + 1)
        if not runs.is_clean[engine] and rows.start < rows.stop:
            fits = runs.fits(engine, rows, target)
            if next_too and following.start < following.stop:
                fits = fits & (records.id[rows] < records.id[following.start])
            movable.update((engine, row) for row in (rows.start + np.flatnonzero(fits)).tolist())
    at = len(items)
    while at and items[at - 1][1:] in movable:
        at -= 1
    return at


def _stretches(runs: Matcher) -> list[tuple[int, int]]:
    """First and last run of each stretch next to lost launches in which a run fits more than one launch."""
    count = len(runs.launch)
    mean = np.convolve(np.minimum(runs.coverage, 1.0), np.ones(_NEIGHBOUR_RUNS), "same")
    mean /= np.convolve(np.ones(count), np.ones(_NEIGHBOUR_RUNS), "same")
    supported = (runs.records_in >= _ENOUGH_RECORDS) | (mean[:count] >= _COMPLETE_COVERAGE)
    covered = (runs.coverage >= _CERTAIN_COVERAGE) & supported
    covered[[0, -1]] = True
    certain = np.flatnonzero(covered & (runs.launch >= 0))
    result: list[tuple[int, int]] = []
    tried = 0
    for before, after in zip(certain[:-1].tolist(), certain[1:].tolist(), strict=True):
        slack = int(runs.launch[after] - runs.launch[before]) - (after - before)
        if after - before < 2 or slack < 1:
            continue
        tried += (after - before) * (slack + 1)
        if slack > _MOST_SLACK or tried > _MOST_TRIED:
            result.append((before + 1, after - 1))
            continue
        result += _ambiguous_runs(runs, before, after, slack)
    return result


def _ambiguous_runs(runs: Matcher, before: int, after: int, slack: int) -> list[tuple[int, int]]:
    """Runs between two certain ones that fit several launches, as (run, run)."""
    inside = range(before + 1, after)
    lowest = int(runs.launch[before]) + 1
    possible = [[lowest + number + more for more in range(slack + 1) if _run_fits(runs, run, lowest + number + more)]
                for number, run in enumerate(inside)]  # fmt: skip
    early, late, low, high = list[int](), list[int](), lowest - 1, int(runs.launch[after])
    for launches in possible:
        low = min((each for each in launches if each > low), default=low)
        early.append(low)
    for launches in reversed(possible):
        high = max((each for each in launches if each < high), default=high)
        late.insert(0, high)
    found = zip(inside, possible, early, late, strict=True)
    return [(run, run) for run, launches, first, last in found if first != last and launches]


def _run_fits(runs: Matcher, run: int, launch: int) -> bool:
    """Whether a launch has a matching command for every record of a run."""
    return all(bool(runs.fits(engine, runs.rows(engine, run), launch).all()) for engine in range(len(runs.records)))


def ordered(bindings: I64) -> I64:
    """Bindings without those that are out of order or repeated (changed in place); the first of two is kept."""
    bound = np.flatnonzero(bindings >= 0)
    value = bindings[bound]
    bindings[bound[1:][value[1:] <= np.maximum.accumulate(value)[:-1]]] = -1
    return bindings


def repaired(bindings: I64, records: EngineItems, commands: EngineItems) -> I64:
    """Bind unbound records to commands between those of their bound neighbours (changes ``bindings``).

    A record stays unbound when no command in between has its id and a kind that does not contradict it.
    """
    loose = np.flatnonzero(bindings < 0)
    if not len(loose) or len(loose) > 200_000:
        return bindings
    bound = np.flatnonzero(bindings >= 0)
    before = np.searchsorted(bound, loose) - 1
    last_bound = -1  # last command bound here; earlier ones are no longer available
    for number, row in enumerate(loose.tolist()):
        low = max(last_bound, int(bindings[bound[before[number]]]) if before[number] >= 0 else -1)
        after = before[number] + 1
        high = int(bindings[bound[after]]) if after < len(bound) else len(commands.id)
        if not 1 < high - low <= 4096:
            continue
        window = slice(low + 1, high)
        same = commands.id[window] == records.id[row]
        same &= ~contradicts(records.kind[row], commands.kind[window])
        hits = low + 1 + np.flatnonzero(same)
        if len(hits):
            neighbours = [int(bound[at]) for at in (after - 1, after) if 0 <= at < len(bound)]
            bindings[row] = last_bound = _likeliest(hits, row, neighbours, bindings, records.id)
    return bindings


def _likeliest(hits: I64, row: int, neighbours: list[int], bindings: I64, ids: I64) -> int:
    """The candidate in the same launch as a neighbour's command, as the ids of both records imply; else the first."""
    for near in sorted(neighbours, key=lambda other: abs(int(ids[other] - ids[row]))):
        expected = int(bindings[near] + ids[row] - ids[near])
        if (ids[row] - ids[near]) * (row - near) > 0 and expected in hits:
            return expected
    return int(hits[0])


def clean_binding(records: I64, commands: I64) -> I64 | None:
    """Command of each record if the restarts split both lists alike, else None.

    Args:
        records, commands: Ids in order.

    Returns:
        Index of the command of each record (-1: its section has fewer commands than its id requires); None when the
        numbers of sections or their spans (last id - first id + 1) differ.
    """
    if len(records) == len(commands) and np.array_equal(records, commands):
        return np.arange(len(records), dtype=np.int64)
    if not len(records) or not len(commands):
        return None
    (begin, end), (first, last) = id_sections(records), id_sections(commands)
    if not np.array_equal(records[end - 1] - records[begin], commands[last - 1] - commands[first]):
        return None
    binding: I64 = records - np.repeat(records[begin] - first, end - begin)
    binding[binding >= np.repeat(last, end - begin)] = -1
    return binding


def _uncontradicted(records: EngineItems, commands: EngineItems) -> I64 | None:
    """The clean binding, unless the kinds of the records contradict it: losses may leave equal spans by chance."""
    if not len(records.id) or not len(commands.id):
        return np.full(len(records.id), -1)
    binding = clean_binding(records.id, commands.id)
    if binding is None or len(records.id) == len(commands.id):
        return binding
    against = (binding >= 0) & contradicts(records.kind, commands.kind[np.maximum(binding, 0)])
    return None if against.any() else binding


def launch_start_keys(engines: list[EngineItems]) -> I64:
    """Keys at which a new launch begins: where an engine with items since the last beginning restarts its ids."""
    found: list[tuple[int, int]] = []  # key of each restart, and of the item before it
    for items in engines:
        starts = id_sections(items.id)[0]
        before = [np.iinfo(np.int64).min, *items.key[starts[1:] - 1].tolist()]
        found.extend(zip(items.key[starts].tolist(), before, strict=False))
    result: list[int] = []
    for key, last in sorted(found, key=itemgetter(0)):
        if not result or last >= result[-1]:
            result.append(key)
    return np.array(result, dtype=np.int64)


def paired(records: list[EngineItems], commands: list[EngineItems], *, lapped: bool) -> list[tuple[I64, Bools]]:
    """Commands of the records of all engines of a core.

    Args:
        records, commands: One per engine, in the same order of engines.
        lapped: Whether the oldest records were overwritten, so that the ends rather than the beginnings correspond.

    Returns:
        For each engine the index of each record's command, -1 where none was found, and a mask of the records that may
        as well belong to another launch. No command is bound twice, and the commands of one engine keep their order.
    """
    clean = [_uncontradicted(recorded, issued) for recorded, issued in zip(records, commands, strict=True)]
    if all(binding is not None for binding in clean):
        return [(binding, np.zeros(len(binding), np.bool_)) for binding in clean if binding is not None]
    # damaged times may step back; runs are split in stream order
    in_order = [EngineItems(each.id, np.maximum.accumulate(each.key), each.kind, each.end) for each in records]
    matcher = Matcher(in_order, commands, clean, lapped=lapped)
    matcher.align()
    return matcher.pairings()


#: Scores of a record in a launch: kind agrees, kind contradicts, launch lacks its id, known to be of another launch.
_AGREES, _CONTRADICTS, _NO_SUCH_ID, _OTHER_LAUNCH = 1.0, -2.0, -3.0, -10.0
#: Score of each command of a launch that would have no record.
_LOST = -0.25
_LOOKAHEAD = 12
_MARGIN = 2.0
_BLOCK = 2048
_SMALLEST_BLOCK = 64
_NEAR_OFFSETS = (-1, 1, 2, 3)
_WIDE_OFFSETS = 256


class Matcher:
    """Matches runs of records (split at id restarts, over all engines) with launches of commands."""

    def __init__(
        self, records: list[EngineItems], commands: list[EngineItems], clean: list[I64 | None], *, lapped: bool
    ) -> None:
        self.records = records
        self.commands = commands
        self.clean = clean
        self.is_clean = [binding is not None for binding in clean]
        runs = launch_start_keys(records)
        launches = launch_start_keys(commands)
        self.lapped = lapped
        self.runs = len(runs)
        self.launches = len(launches)
        #: run of each record, launch of each command, and where launches and runs begin in each engine's list
        self.run_of = [np.searchsorted(runs, each.key, side="right") - 1 for each in records]
        self.launch_of = [np.searchsorted(launches, each.key, side="right") - 1 for each in commands]
        self.launch_start = [np.searchsorted(launch, np.arange(self.launches + 1)) for launch in self.launch_of]
        self.run_start = [np.searchsorted(run, np.arange(self.runs + 1)) for run in self.run_of]
        self.commands_in = sum((np.diff(start) for start in self.launch_start), np.zeros(self.launches, np.int64))
        self.records_in = sum((np.diff(start) for start in self.run_start), np.zeros(self.runs, np.int64))
        first = np.full(self.runs, np.iinfo(np.int64).max)
        last = np.full(self.runs, np.iinfo(np.int64).min)
        for recorded, run in zip(records, self.run_of, strict=True):
            if len(recorded.key):
                np.minimum.at(first, run, recorded.key)
                np.maximum.at(last, run, recorded.key)
        self.gap_before = np.concatenate([[0], first[1:] - last[:-1]]) if self.runs else np.zeros(0, np.int64)
        self.launch = np.full(self.runs, -1, np.int64)

    def _locate(self, engine: int, rows: slice, launch: I64) -> tuple[I64, Bools]:
        """Index of each record's command in the given launch, and a mask of the records whose id the launch has."""
        starts = self.launch_start[engine]
        inside = (launch >= 0) & (launch < self.launches)
        valid = np.where(inside, launch, 0)
        low, high = starts[valid], starts[valid + 1]
        ids = self.commands[engine].id
        command = low + self.records[engine].id[rows] - ids[np.minimum(low, len(ids) - 1)]
        fits = inside & (command >= low) & (command < high)
        return np.where(fits, command, 0), fits

    def _scores(self, begin: int, end: int, offset: int) -> F64:
        """Score of each run in ``begin`` to ``end`` if run i belongs to launch i + offset."""
        total = np.zeros(end - begin)
        for engine, (recorded, issued) in enumerate(zip(self.records, self.commands, strict=True)):
            rows = slice(int(self.run_start[engine][begin]), int(self.run_start[engine][end]))
            if rows.start == rows.stop or not len(issued.id):
                continue
            run = self.run_of[engine][rows]
            launch = run + offset
            command, fits = self._locate(engine, rows, launch)
            against = contradicts(recorded.kind[rows], issued.kind[command])
            score = np.where(fits, np.where(against, _CONTRADICTS, _AGREES), _NO_SUCH_ID)
            clean = self.clean[engine]
            if clean is not None:
                bound = clean[rows]
                score[(bound >= 0) & (self.launch_of[engine][bound] != launch)] = _OTHER_LAUNCH
            total += np.bincount(run - begin, weights=score, minlength=end - begin)
        launches = np.arange(begin, end) + offset
        inside = (launches >= 0) & (launches < self.launches)
        expected = self.commands_in[np.where(inside, launches, 0)]
        lost = np.maximum(expected - self.records_in[begin:end], 0)
        if begin == 0 and self.lapped:
            lost[:1] = 0  # an unknown number of records of the oldest launch was overwritten
        total[inside] += _LOST * lost[inside]
        return total

    def align(self) -> None:
        """Find the launch of each run: keep the current offset until another one explains the next runs better."""
        if not self.runs or not self.launches:
            return
        offset = self._first_offset()
        at = 0
        stuck = False  # whether the last switch assigned no run: two offsets must not alternate forever
        block = _BLOCK
        search_from = fruitless = 0  # back-off of the wide search for records that fit nowhere
        while at < self.runs:
            end = min(self.runs, at + block)
            offsets = [offset, *(offset + step for step in _NEAR_OFFSETS)]
            totals = np.stack([np.concatenate([[0.0], np.cumsum(self._scores(at, end, value))]) for value in offsets])
            ahead = np.minimum(np.arange(end - at) + _LOOKAHEAD, end - at)
            scores = totals[:, ahead] - totals[:, : end - at]
            possible = np.cumsum(np.concatenate([[0], self.records_in[at:end]]))
            weak = scores[0] < 0.25 * (possible[ahead] - possible[: end - at])
            weak[: max(0, search_from - at)] = False
            better = (scores[1:].max(axis=0) > scores[0] + _MARGIN) | weak
            if end < self.runs:
                better[-_LOOKAHEAD:] = False
            hits = np.flatnonzero(better)
            if not len(hits):
                at = self._assign(at, end if end == self.runs else end - _LOOKAHEAD, offset)
                block = min(_BLOCK, 2 * block)
                continue
            hit = int(hits[0])
            block = min(_BLOCK, max(_SMALLEST_BLOCK, 4 * hit))
            choice = int(scores[1:, hit].argmax()) + 1
            new = offsets[choice]
            if weak[hit] and scores[choice, hit] < 0.6 * (possible[ahead[hit]] - possible[hit]):
                new = self._wide_offset(at + self._misfit(totals[0], at, hit), offset)
                fruitless = 0 if new != offset else fruitless + 1
                search_from = at + hit + (1 << min(max(0, fruitless - _LOOKAHEAD), 11))
            if new == offset:
                at = self._assign(at, at + hit + 1, offset)
                continue
            cut = self._switch(at, hit, offset, new)
            if cut == at and stuck:
                cut = self._assign(at, at + 1, new)
            stuck = cut == at
            at, offset = cut, new
        self.launch[self.launch >= self.launches] = -1
        np.maximum(self.launch, -1, out=self.launch)

    def _misfit(self, total: F64, at: int, hit: int) -> int:
        """Index, from ``hit`` on, of the first run that does not fit; runs that fit do not favour another offset."""
        scores = np.diff(total[hit : hit + _LOOKAHEAD + 1])
        return hit + int((scores < 0.25 * self.records_in[at + hit :][: len(scores)]).argmax())

    def _switch(self, at: int, hit: int, old: int, new: int) -> int:
        """Assign runs up to where the new offset takes over; returns the first run of the new offset."""
        low, high = max(at, at + hit - _LOOKAHEAD), min(self.runs, at + hit + _LOOKAHEAD)
        before = np.concatenate([[0.0], np.cumsum(self._scores(low, high, old))])
        after = np.concatenate([[0.0], np.cumsum(self._scores(low, high, new))])
        value = before + (after[-1] - after)
        best = np.flatnonzero(value >= value.max() - 1e-9)
        best = best[best < high - low] if best[0] < high - low else best
        gaps = np.concatenate([self.gap_before, [0]])[low + best]
        return self._assign(at, low + int(best[gaps.argmax()]), old)

    def _assign(self, at: int, stop: int, offset: int) -> int:
        self.launch[at:stop] = np.arange(at, stop) + offset
        return stop

    def _wide_offset(self, run: int, offset: int) -> int:
        """Offset at which the next runs fit best, searched over a wide range; the old one if none is convincing."""
        end = min(self.runs, run + _LOOKAHEAD)
        low = max(int(self.launch[:run].max(initial=-1)) + 1 - run, -run)
        best, best_score = offset, float(self._scores(run, end, offset).sum()) + _MARGIN
        for value in (*range(offset - 16, offset + _WIDE_OFFSETS), *self._candidates(run, end)):
            score = float(self._scores(run, end, value).sum()) if value >= low else best_score
            if score > best_score:
                best, best_score = value, score
        return best

    def _candidates(self, begin: int, end: int) -> list[int]:
        """Offsets at which some of the runs have the same counts per engine as launches, most frequent first."""
        runs = self._signatures(self.run_start, begin, end)
        launches = self._signatures(self.launch_start, 0, self.launches)
        launches_of: dict[int, list[int]] = {}
        for launch, value in enumerate(launches.tolist()):
            launches_of.setdefault(value, []).append(launch)
        votes = Counter(
            launch - begin - number
            for number, value in enumerate(runs.tolist())
            for launch in launches_of.get(value, [])[:4096]
        )
        return [offset for offset, _ in votes.most_common(32)]

    @staticmethod
    def _signatures(starts: list[I64], begin: int, end: int) -> I64:
        """A hash per run or launch of its counts per engine."""
        result = np.zeros(end - begin, np.int64)
        for start in starts:
            result = result * 1_000_003 + np.diff(start[begin : end + 1])
        return result

    def _first_offset(self) -> int:
        """Offset of the first run in the best alignment of the first runs; it may change soon after.

        In a lapped ring the first runs are incomplete, so the one offset that explains most of them is taken.
        """
        end = min(self.runs, 2 * _LOOKAHEAD)
        last = self.launches - self.runs
        likely = [last, 0] if self.lapped else [0, last, *range(1, _LOOKAHEAD)]
        offsets = list(dict.fromkeys([*likely, *self._candidates(0, end)]))
        scores = np.stack([self._scores(0, end, value) for value in offsets], axis=1)
        value = scores.sum(axis=0)
        if not self.lapped:
            value = scores[-1]
            for score in scores[-2::-1]:
                value = score + np.maximum(value, value.max() - _MARGIN)
        return offsets[int(value.argmax())]

    def pairings(self) -> list[tuple[I64, Bools]]:
        """Index of the command of each record and mask of the doubtful ones, by engine."""
        result: list[tuple[I64, Bools]] = []
        #: records of each run per command of its launch
        self.coverage = self.records_in / np.maximum(self.commands_in[np.maximum(self.launch, 0)], 1)
        launches, ambiguous = split_runs(self)
        for engine, (recorded, issued, clean) in enumerate(zip(self.records, self.commands, self.clean, strict=True)):
            if clean is not None:
                result.append((clean, np.zeros(len(clean), np.bool_)))
                continue
            command, fits = self._locate(engine, slice(0, len(recorded.id)), launches[engine])
            command[~fits | contradicts(recorded.kind, issued.kind[command])] = -1
            command = ordered(command)
            # a record that fits nowhere casts doubt on the launch of its whole run
            misfits = np.bincount(self.run_of[engine], weights=command < 0, minlength=self.runs)
            ambiguous[engine] |= (misfits > 0)[self.run_of[engine]]
            bound = repaired(command, recorded, issued)
            result.append((bound, ambiguous[engine] & (bound >= 0)))
        return result

    def rows(self, engine: int, run: int) -> slice:
        """Slice of an engine's records in a run."""
        return slice(int(self.run_start[engine][run]), int(self.run_start[engine][run + 1]))

    def fits(self, engine: int, rows: slice, launch: int) -> Bools:
        """Mask of the records with a command of their id in a launch whose kind does not contradict theirs."""
        if not len(self.commands[engine].id):
            return np.zeros(rows.stop - rows.start, np.bool_)
        command, fits = self._locate(engine, rows, np.full(rows.stop - rows.start, launch, np.int64))
        return fits & ~contradicts(self.records[engine].kind[rows], self.commands[engine].kind[command])
