"""Places in a profile as given on a command line: scope, time range, filter and selected event."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.parsing import range_text, range_typed
from tpuprof_tui.model import Groups, Lane, Profile

from .filters import compile_filter
from .navigation import select_event
from .session import Session
from .state import DisplayState, Place, Scope
from .time_scale import base_of


def at_place(session: Session, state: DisplayState, place: Place) -> DisplayState:
    """The state that shows a place; UsageError if the profile has no such place."""
    profile = session.profile
    scope = scope_named(profile, place.core, place.group)
    if place.filter:
        compile_filter(place.filter, profile)
        state = replace(state, filter=place.filter)
    state = replace(state, scope=scope, selection=replace(state.selection, group=scope.group))
    if place.select:
        state = select_event(session, state, *_event_named(profile, place.select))
    if place.range:
        first, last = range_typed(place.range, base_of(profile))
        start = max(state.full_start if first is None else first, state.full_start)
        end = min(state.full_end if last is None else last, state.full_end)
        if end <= start:
            raise UsageError(f"The capture has nothing in {place.range}.")
        cursor = state.cursor
        state = replace(state.windowed(start, end - start), range=(start, end))
        state = state.at(cursor) if place.select and start <= cursor < end else state
    return state


def place_of(session: Session, state: DisplayState, times: tuple[int, int] | None, view: str = "") -> Place:
    """The place that a state shows; ``times``: the range that its figures are of, None: the whole."""
    profile, scope = session.profile, state.scope
    group = scope.group
    core = profile.groups[group].number if group >= 0 and group in profile.units else -1
    core = core if [profile.groups[unit].number for unit in profile.units].count(core) == 1 else -1
    named = "" if group < 0 or core >= 0 else "/".join(profile.groups.path(group))
    if scope.lane >= 0:
        named = _lane_path(profile, profile.lanes[scope.lane])
    shown = "" if times is None else range_text(*times)
    select = ""
    if state.selection.row >= 0:
        lane = profile.lanes[state.selection.lane]
        title = profile.title_of(lane)
        alone = [profile.title_of(each) for each in profile.lanes].count(title) == 1
        select = f"{title if alone else state.selection.lane}:{state.selection.row}"
    return Place(shown, core if core >= 0 else None, named, state.filter, select, view)


def place_words(path: str, place: Place, notes: str = "", against: str = "") -> str:
    """The shell command line that opens a place; ``against``: path of the baseline, if any."""
    return _command(["tpuprof", path], place, ("--select", place.select), ("--view", place.view), ("--notes", notes),
                    ("--against", against))  # fmt: skip


def report_words(path: str, place: Place) -> str:
    """The shell command line that prints the figures of a place."""
    return _command(["tpuprof", "report", path, *([place.view] if place.view else [])], place)


def _command(words: list[str], place: Place, *more: tuple[str, str]) -> str:
    for flag, value in (
        ("--range", place.range), ("--core", "" if place.core is None else str(place.core)), ("--group", place.group),
        ("--filter", place.filter), *more,
    ):  # fmt: skip
        words += [flag, value] if value and not value.startswith("-") else [f"{flag}={value}"] if value else []
    return shlex.join(words)


def scope_named(profile: Profile, core: int | None, group: str | None) -> Scope:
    """The scope of a unit's number, or of a group's or lane's name, else of all.

    Raises:
        UsageError: There is none, or there are several.
    """
    groups = profile.groups
    if core is not None:
        word, found = profile.vocabulary.unit.one, [unit for unit in groups.units if groups[unit].number == core]
        if not found:
            known = ", ".join(map(str, groups.numbers)) or "none"
            raise UsageError(f"The capture has no {word} {core}.", f"There are: {known}.")
        if len(found) > 1:
            raise UsageError(f"There are {len(found)} recordings of {word} {core}.",
                             f"Name one with --group: {', '.join(_path(groups, each) for each in found)}.")  # fmt: skip
        return Scope(found[0])
    if not group:
        return Scope()
    name = group.casefold()
    # a rank that is guessed is marked, but has its name without the mark too
    named = [each for each in range(len(groups)) if name in (
        label := groups[each].label.casefold(), label.removesuffix(" ~"), _path(groups, each))]  # fmt: skip
    lanes = [number for number, lane in enumerate(profile.lanes)
             if name in (profile.title_of(lane).casefold(), _lane_path(profile, lane).casefold())]  # fmt: skip
    if not named and len(lanes) == 1:
        return Scope(lane=lanes[0])
    if not named and name.isdecimal():
        named = [groups.numbered(int(name))]
    if not named or named[0] < 0:
        raise UsageError(
            f"There is no group {group!r}.", f"There are: {', '.join(dict.fromkeys(group.label for group in groups))}."
        )
    if len(named) > 1:
        raise UsageError(f"Several groups are called {group!r}.",
                         f"Write one of: {', '.join(_path(groups, each) for each in named)}.")  # fmt: skip
    return Scope(named[0])


def _lane_path(profile: Profile, lane: Lane) -> str:
    return "/".join((*profile.groups.path(lane.group), lane.label))


def _path(groups: Groups, index: int) -> str:
    return "/".join(groups.path(index)).casefold()


def _event_named(profile: Profile, text: str) -> tuple[int, int]:
    title, _, row = text.rpartition(":")
    titles = [profile.title_of(lane).casefold() for lane in profile.lanes]
    lane = titles.index(title.casefold()) if title.casefold() in titles else -1
    if lane < 0 and title.isdecimal() and len(title) < 10 and int(title) < len(titles):
        lane = int(title)
    if lane < 0:
        raise UsageError(f"There is no lane {title!r} to select an event of.", "Write LANE:ROW as :place prints it.")
    if not row.isdecimal() or len(row) > 18 or int(row) >= len(profile.lanes[lane]):
        raise UsageError(f"{text!r} is not an event: {title} has {len(profile.lanes[lane]):,}, numbered from 0.")
    return lane, int(row)
