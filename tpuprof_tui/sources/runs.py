"""Which recordings of a folder belong to one run, and where each lies on the profile's time line.

Recordings belong to one run if they are of the same job and overlap in time, or are recordings of one worker within an
hour. Recordings of a run that overlap are one *session* and share a clock; all others have a session of their own.
Sessions lie one after the other, without the time between them, in which nothing is known of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.model.profile import time_of_day

from .source import SessionEntry

#: Longest time between two recordings of one worker in one run, ns.
_BETWEEN_RECORDINGS: Final = 3_600 * 10**9
#: Largest difference of the clocks of two hosts of one job, ns.
_BETWEEN_HOSTS: Final = 600 * 10**9


class UnplacedRecording(Struct, frozen=True):
    """What is known of a recording before it is placed."""

    worker: str  #: Name of the worker, the same for all of its recordings
    #: start, end: Its first and last time, ns on its own clock.
    start: int
    end: int
    rank: int | None = None  #: Its rank; None: unknown
    job: str = ""  #: What all ranks of its job have in common (number of ranks, back end); empty: unknown
    device: str = ""  #: Name of its device; empty: unknown
    aligned: bool = False  #: Whether its clock was corrected by the collectives of another rank
    stage: str = ""  #: Word for the stage of a server that was recorded; empty: none. A session is of one stage.
    #: Whether its end is not known: it is then its start, and others of its run may follow within it.
    open_ended: bool = False

    @property
    def who(self) -> str:
        """The rank, if its job is known, else the worker."""
        return str(self.rank) if self.rank is not None and self.job else self.worker


class RecordingPlace(Struct, frozen=True):
    """Where a recording lies."""

    run: int  #: Number of its run, from 0, in order of start
    session: int  #: Number of its session, from 0, unique in the profile
    shift: int  #: Offset in ns from its own clock to the time line, whose zero is the earliest start


def places_of(recordings: Sequence[UnplacedRecording]) -> list[RecordingPlace]:
    """The place of each recording, in their order."""
    runs = _runs(recordings)
    order = sorted(range(len(recordings)), key=lambda number: recordings[number].start)
    numbers = {run: number for number, run in enumerate(dict.fromkeys(runs[each] for each in order))}
    sessions: list[list[int]] = []
    for run in numbers:
        members = [each for each in order if runs[each] == run]
        for stage in dict.fromkeys(recordings[each].stage for each in members):
            sessions += _sessions(recordings, [each for each in members if recordings[each].stage == stage])
    sessions.sort(key=lambda members: recordings[members[0]].start)
    found: list[RecordingPlace | None] = [None] * len(recordings)
    position = 0
    for session, members in enumerate(sessions):
        first = min(recordings[each].start for each in members)
        for each in members:
            found[each] = RecordingPlace(numbers[runs[each]], session, position - first)
        position += max(recordings[each].end for each in members) - first
    return [place for place in found if place is not None]


def problems_of(recordings: Sequence[UnplacedRecording], places: Sequence[RecordingPlace]) -> list[Problem]:
    """What a user must know of the places: several runs, several sessions, clocks of hosts that differ."""
    problems = []
    runs, sessions = {place.run for place in places}, {place.session for place in places}
    if len(runs) > 1:
        what = f"{len(recordings)} recordings that are not of one run."
        problems.append(Problem(Severity.NOTE, what, "Each has its own clock and window.", count=len(recordings)))
    for run in runs:
        members = [each for each, place in zip(recordings, places, strict=True) if place.run == run]
        once = len({each.who for each in members}) == len(members)
        of_run = {place.session for place in places if place.run == run}
        if once and len(of_run) > 1:
            starts = sorted(each.start for each in members)
            what = f"Clocks of the hosts differ: recordings of one run are {time_text(starts[-1] - starts[0])} apart."
            problems.append(Problem(Severity.WARNING, what, "Each counts in its own window; their order is not known.",
                                    count=len(of_run)))  # fmt: skip
    known = sorted((place.run, each.who, each.stage, each.start, each.end)
                   for each, place in zip(recordings, places, strict=True))  # fmt: skip
    again = sum(one[:3] == other[:3] and one[4] > other[3] for one, other in pairwise(known))
    if again:
        what = f"{again} of {len(recordings)} recordings are of a worker that another records at the same time."
        problems.append(Problem(Severity.WARNING, what, "They may be copies; all are counted.", count=again))
    elif len(runs) < len(sessions) and not problems:
        what = f"{len(sessions)} recordings of the run, one after the other."
        problems.append(Problem(Severity.NOTE, what, "The time between them is left out.", count=len(sessions)))
    return problems


def session_entries(
    recordings: Sequence[UnplacedRecording], names: Sequence[str], sizes: Sequence[int], guessed: Sequence[bool]
) -> list[SessionEntry]:  # fmt: skip
    """The sessions of recordings, for a list; empty if there is one, or all are ranks of one job, each once.

    Args:
        recordings: What is known of each.
        names: Name of each in the folder.
        sizes: Bytes on disk of each.
        guessed: Whether the rank of each is only that of a name.
    """
    whose = {(each.job, each.rank) for each in recordings}
    one_job = len({each.job for each in recordings}) < 2 and all(each.rank is not None for each in recordings)
    if one_job and len(whose) == len(recordings):
        return []
    sessions: dict[tuple[int, int], list[int]] = {}
    places = places_of(recordings)
    for number in sorted(range(len(recordings)), key=lambda number: recordings[number].start):
        sessions.setdefault((places[number].run, places[number].session), []).append(number)
    found = []
    for (run, _), numbers in sorted(sessions.items()):
        members = [recordings[number] for number in numbers]
        ranks = ", ".join(map(str, sorted({each.rank for each in members if each.rank is not None})))
        devices = dict.fromkeys(each.device for each in members if each.device)
        first, ended = min(each.start for each in members), not any(each.open_ended for each in members)
        found.append(SessionEntry(
            tuple(names[number] for number in numbers), run + 1,
            f"{ranks} ~" if ranks and any(guessed[number] for number in numbers) else ranks, ", ".join(devices),
            time_of_day(first), sum(sizes[number] for number in numbers),
            max(each.end for each in members) - first if ended else None,
        ))  # fmt: skip
    return found if len(found) > 1 else []


def _runs(recordings: Sequence[UnplacedRecording]) -> list[int]:
    """A number for each recording, equal for those of one run."""
    above = list(range(len(recordings)))

    def run_of(number: int) -> int:
        while above[number] != number:
            above[number] = number = above[above[number]]
        return number

    order = sorted(range(len(recordings)), key=lambda number: recordings[number].start)
    # the latest to end before each, of all recordings, of its job and of its worker: nothing nearer can be found
    latest: dict[tuple[str, ...], int] = {}
    for number in order:
        one = recordings[number]
        dated = "dated" if _dated(one) else ""
        keys: list[tuple[str, ...]] = [("worker", dated, one.who, one.job), ("all", dated)]
        keys += [("job", dated, one.job)] if one.job else []
        for key in keys:
            other = latest.get(key, -1)
            if other >= 0 and _together(key[0], one, recordings[other]):
                above[run_of(number)] = run_of(other)
            if other < 0 or recordings[other].end <= one.end:
                latest[key] = number
    return [run_of(number) for number in range(len(recordings))]


def _together(related: str, one: UnplacedRecording, earlier: UnplacedRecording) -> bool:
    """Whether two recordings, ``related`` by worker, job or time alone, are of one run."""
    apart = one.start - earlier.end
    if related == "worker":
        same_device = not one.device or not earlier.device or one.device == earlier.device
        return 0 <= apart <= _BETWEEN_RECORDINGS and same_device
    if related == "job":
        return one.aligned or earlier.aligned or apart <= _BETWEEN_HOSTS
    if one.who == earlier.who or (one.job and earlier.job and one.job != earlier.job):
        return False
    # clocks that start at boot, or at the recording, say nothing about two recordings
    ranks = {one.rank, earlier.rank}
    return apart < 0 and (_dated(one) or (len(ranks) == 2 and None not in ranks))


def _dated(recording: UnplacedRecording) -> bool:
    return time_of_day(recording.start) is not None


def _sessions(recordings: Sequence[UnplacedRecording], run: Sequence[int]) -> list[list[int]]:
    """The recordings of a run (in order of start) by session: those that overlap, each worker once."""
    sessions: list[list[int]] = []
    for number in run:
        one = recordings[number]
        last = sessions[-1] if sessions else []
        overlaps = any(recordings[each].open_ended or recordings[each].end >= one.start for each in last)
        if overlaps and all(recordings[each].who != one.who for each in last):
            last.append(number)
        else:
            sessions.append([number])
    return sessions
