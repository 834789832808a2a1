"""What explains a pause: the work around it, what the host did meanwhile, and what was waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.text import in_sentence
from tpuprof_tui.formats.units import GUESS, percent_text
from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.model.lane import row_numbers
from tpuprof_tui.model.uniques import distinct, uniques

from ..index.lane_index import rows_between
from ..links.dependencies import Dependency, dependencies_of, may_have_dependencies
from ..selecting.cell_texts import text_of
from ..selecting.session import Session
from ..selecting.state import Scope
from ..totals.call_stacks import nearest, parents_of

Ints = npt.NDArray[np.int64]
#: Why the work after a pause did not begin earlier: the host called it only in the pause; it had called, yet not
#: launched it; it had been launched, and waited on the device; empty: not known.
Cause = Literal["host", "dispatch", "device", ""]
CAUSE_TEXTS: Final[dict[Cause, str]] = {
    "host": "the host called late", "dispatch": "it was called, but not launched yet",
    "device": "it was launched, and waited on the device", "": "",
}  # fmt: skip
#: Names of each type of host events, and waits that are looked at.
_MOST: Final = 3
#: Least share of a pause that a sentence names, and most characters of a name in it.
_TOLD: Final = 0.01
_LONGEST: Final = 60
#: Rows that are searched at a time for work next to a pause.
_CHUNK: Final = 256


class HostTime(Struct, frozen=True):
    """What the host did in a pause."""

    #: lane, row: Its lane, and the event of the name that took most.
    lane: int
    row: int
    type: str  #: Type of the events: the source's word for operators, frames, calls; empty without types
    name: str  #: Their name
    ns: int  #: Time in the pause, without what other events of the type did within
    share: float  #: The time as a share of the pause, 0 to 1


class PauseStory(Struct, frozen=True):
    """What explains a pause [start, end) of a unit or lane, ns."""

    start: int
    end: int
    #: before, after: Lane and row of the work that ended last before it, and that began first after it; None: none.
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    cause: Cause  #: Why the work after it did not begin earlier
    #: Of the threads that launched it (else of the busiest thread), what took most of the pause, by time.
    host: tuple[HostTime, ...]
    #: The dependency that was fulfilled last, of the work after it or of a wait in it; None: unknown.
    waited_for: Dependency | None

    def texts(self, session: Session) -> tuple[str, str]:
        """What is known, as the end of a sentence without its full stop, in full and in brief; may be empty."""
        first = {each.type: each for each in reversed(self.host) if each.share >= _TOLD}
        host = [f"{line_text(each.name, _LONGEST)} {percent_text(each.share)}"
                for each in sorted(first.values(), key=lambda it: -it.ns)]  # fmt: skip
        waited = ""
        if self.waited_for is not None:
            lane, row = self.waited_for.releaser
            guess = GUESS if self.waited_for.guessed else ""
            where = in_sentence(session.title_of(lane))
            waited = f"waited for {guess}{_name(session, (lane, row))} of {where} ({self.waited_for.kind})"
        around = ", ".join(f"{word} {_name(session, event)}" for word, event in (("after", self.before),
                           ("before", self.after)) if event is not None)  # fmt: skip
        full, brief = (": ".join(filter(None, (CAUSE_TEXTS[self.cause], f"host in {', '.join(told)}" if told else "")))
                       for told in (host, host[:1]))  # fmt: skip
        return "; ".join(filter(None, (full, waited, around))), brief or waited


def pause_story(session: Session, scope: Scope, start: int, end: int) -> PauseStory:
    """Explains a pause of a unit or lane, or any stretch of it without work.

    O(log events + events of the host in the pause); where the device waited, or nothing says when its work was
    launched, all dependencies of the profile are found the first time: call it from a worker thread.

    Args:
        session: The profile, filtered or not.
        scope: The unit or lane; everything is taken for one unit.
        start, end: The pause, ns.
    """
    lanes = [number for number in session.lanes_in(scope)
             if number == scope.lane or session.profile.lanes[number].in_sums]  # fmt: skip
    before, after = _work_around(session, lanes, (start + end) // 2)
    calls = list(_calls(session, after)) if after is not None else []
    times = [session.span_of(*call)[0] for call in calls]
    cause: Cause = (
        "" if not calls else "host" if min(times) > start else "device" if max(times) <= start else "dispatch"
    )
    threads = dict.fromkeys(lane for lane, _ in calls) or _busiest_thread(session, lanes, start, end)
    host = sorted((each for lane in threads for each in _host_times(session, lane, start, end)), key=lambda it: -it.ns)
    waited = None if cause in ("host", "dispatch") else _waited_for(session, lanes, after, start, end)
    return PauseStory(start, end, before, after, cause, tuple(host), waited)


def _name(session: Session, event: tuple[int, int]) -> str:
    lane, row = event
    profile = session.profile
    name = text_of(profile, profile.lanes[lane], "name", row, readable=True)
    return line_text(name, _LONGEST) if name else profile.vocabulary.event.one


def _work_around(
    session: Session, lanes: Iterable[int], time: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Lane and row of the work that began before a time and ended last, and of the first that began from then on."""
    ended, begun = [], []
    for number in lanes:
        lane, starts = session.profile.lanes[number], session.indexes[number].starts
        middle = int(np.searchsorted(starts, time))
        for first in range(middle - _CHUNK, -_CHUNK, -_CHUNK):
            rows = max(first, 0) + np.flatnonzero(lane.take("role", slice(max(first, 0), first + _CHUNK)) == Role.WORK)
            if len(rows):
                ends = lane.take("end", rows)
                ended.append((int(ends.max()), number, int(rows[ends.argmax()])))
                break
        for first in range(middle, len(lane), _CHUNK):
            rows = first + np.flatnonzero(lane.take("role", slice(first, first + _CHUNK)) == Role.WORK)
            if len(rows):
                begun.append((int(starts[rows[0]]), number, int(rows[0])))
                break
    before, after = max(ended, default=None), min(begun, default=None)
    return before and before[1:], after and after[1:]


def _calls(session: Session, event: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Lane and row of the host events that launched an event."""
    number, row = event
    lane = session.profile.lanes[number]
    if "call_start" in lane:
        # links of launches alone would cost all links
        time = int(lane.take("call_start", np.array([row]))[0])
        for host in _host_lanes(session, number) if time != INT_MISSING else ():
            starts = session.indexes[host].starts
            rows = np.arange(*np.searchsorted(starts, (time, time + 1)))
            if len(rows):
                yield host, int(rows[-1])
    elif may_have_dependencies(session):
        found = dependencies_of(session).waits_for(number, row)
        yield from (each.releaser for each in found if each.launched)


def _host_lanes(session: Session, lane: int) -> list[int]:
    """Lanes of the host of a lane's rank; of all hosts if they belong to no rank."""
    profile = session.profile
    top = profile.groups.top(profile.lanes[lane].group)
    hosts = [number for number, each in enumerate(profile.lanes) if each.on_host and len(each) and not each.is_aside]
    return [number for number in hosts if profile.groups.top(profile.lanes[number].group) == top] or hosts


def _busiest_thread(session: Session, lanes: list[int], start: int, end: int) -> list[int]:
    """The host lane with most work in an interval, alone; none if the host did nothing."""
    busy = {number: session.indexes[number].work.between(start, end)
            for number in (_host_lanes(session, lanes[0]) if lanes else ())}  # fmt: skip
    most = max(busy, key=busy.__getitem__, default=-1)
    return [most] if busy.get(most) else []


def _host_times(session: Session, number: int, start: int, end: int) -> Iterator[HostTime]:
    """The names that took most of an interval on a thread, of each type of events; those of steps are left out."""
    profile, steps = session.profile, session.profile.steps
    lane, rows = profile.lanes[number], row_numbers(rows_between(session.indexes[number], start, end))
    rows = rows[~(np.isin(lane.take("start", rows), steps.start) & np.isin(lane.take("end", rows), steps.end))]
    if not len(rows) or "name" not in lane:
        return
    part = lane.select_rows(rows)
    parent = parents_of(part)
    took = np.minimum(part["end"], end) - np.maximum(part["start"], start)
    types = part["type"] if "type" in part else np.full(len(part), -1)
    for code in uniques(types).tolist():
        chosen = np.flatnonzero(types == code)
        above = nearest(parent, types == code)[parent[chosen]]
        own = np.append(np.where(types == code, took, 0), 0)
        np.subtract.at(own, above, took[chosen])
        _, which = distinct(part["name"][chosen])
        times = np.bincount(which, weights=own[chosen])
        for index in np.argsort(-times, kind="stable")[:_MOST].tolist():
            ns = int(times[index])
            if ns > 0:
                called = chosen[which == index]
                most = int(called[own[called].argmax()])
                name = text_of(profile, part, "name", most, readable=True)
                kind = profile.strings["type"][code] if code >= 0 else ""
                yield HostTime(
                    number, int(rows[most]), kind, name or profile.vocabulary.event.one, ns, ns / max(end - start, 1)
                )


def _waited_for(
    session: Session, lanes: list[int], after: tuple[int, int] | None, start: int, end: int
) -> Dependency | None:
    """The dependency of the work after a pause, or of a wait in it, that was fulfilled last."""
    if not may_have_dependencies(session):
        return None
    known = dependencies_of(session)
    found = [each for each in known.waits_for(*after) if not each.launched] if after is not None else []
    for number in lanes:
        lane = session.profile.lanes[number]
        rows = row_numbers(rows_between(session.indexes[number], start, end))
        waits = rows[lane.take("role", rows) == Role.WAIT]
        found += [each for row in waits[-_MOST:].tolist() for each in known.waits_for(number, row)]
    return max(found, key=lambda each: session.span_of(*each.releaser)[1], default=None)
