"""A place in a profile as a command line names it: what to look at, which part of the time, and which event."""

from __future__ import annotations

import shlex
from dataclasses import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.parsing import range_text, range_typed
from tpuprof_tui.model import Groups, Profile

from .filters import compile_filter
from .navigation import selected
from .session import Session
from .state import Place, Scope, ViewState
from .time_scale import base_of


def at_place(session: Session, view: ViewState, place: Place) -> ViewState:
    """A state that shows a place.

    Raises:
        UsageError: There is none such in the profile.
    """
    profile = session.profile
    scope = scope_named(profile, place.core, place.group)
    if place.filter:
        compile_filter(place.filter, profile)
        view = replace(view, filter=place.filter)
    view = replace(view, scope=scope, selection=replace(view.selection, group=scope.group))
    if place.select:
        view = selected(session, view, *_event_named(profile, place.select))
    if place.range:
        first, last = range_typed(place.range, base_of(profile))
        start = max(view.full_start if first is None else first, view.full_start)
        end = min(view.full_end if last is None else last, view.full_end)
        if end <= start:
            raise UsageError(f"Nothing of the capture lies in {place.range}.")
        cursor = view.cursor
        view = replace(view.windowed(start, end - start), range=(start, end))
        view = view.at(cursor) if place.select and start <= cursor < end else view
    return view


def place_of(session: Session, view: ViewState) -> Place:
    """The place that a state shows: its range, else its window."""
    profile, scope = session.profile, view.scope
    group = scope.group
    core = profile.groups[group].number if group >= 0 and group in profile.units else -1
    named = "" if group < 0 or core >= 0 else "/".join(profile.groups.path(group))
    shown = range_text(*view.figures_window) if view.range is not None or not view.fits_all else ""
    select = ""
    if view.selection.row >= 0:
        lane = profile.lanes[view.selection.lane]
        title = profile.title_of(lane)
        alone = [profile.title_of(each) for each in profile.lanes].count(title) == 1
        select = f"{title if alone else view.selection.lane}:{view.selection.row}"
    return Place(shown, core if core >= 0 else None, named, view.filter, select)


def place_words(path: str, place: Place, notes: str = "") -> str:
    """The command line that opens a place, for a shell."""
    words = ["tpuprof", path]
    for flag, value in (
        ("--range", place.range), ("--core", "" if place.core is None else str(place.core)), ("--group", place.group),
        ("--filter", place.filter), ("--select", place.select), ("--notes", notes),
    ):  # fmt: skip
        words += [flag, value] if value and not value.startswith("-") else [f"{flag}={value}"] if value else []
    return shlex.join(words)


def scope_named(profile: Profile, core: int | None, group: str | None) -> Scope:
    """The scope of a unit's number or a group's name; all of the profile where neither is given.

    Raises:
        UsageError: There is none, or several.
    """
    groups = profile.groups
    if core is not None:
        found = groups.numbered(core)
        if found < 0:
            known = ", ".join(map(str, groups.numbers)) or "none"
            raise UsageError(f"The capture has no {profile.vocabulary.unit.one} {core}.", f"There are: {known}.")
        return Scope(found)
    if not group:
        return Scope()
    asked = group.casefold()
    named = [place for place in range(len(groups)) if asked in (groups[place].label.casefold(), _path(groups, place))]
    if not named and asked.isdecimal():
        named = [groups.numbered(int(asked))]
    if not named or named[0] < 0:
        raise UsageError(f"There is no group {group!r}.",
                         f"There are: {', '.join(dict.fromkeys(group.label for group in groups))}.")  # fmt: skip
    if len(named) > 1:
        raise UsageError(f"Several groups are called {group!r}.",
                         f"Write one of: {', '.join(_path(groups, place) for place in named)}.")  # fmt: skip
    return Scope(named[0])


def _path(groups: Groups, place: int) -> str:
    return "/".join(groups.path(place)).casefold()


def _event_named(profile: Profile, text: str) -> tuple[int, int]:
    """Lane and row of ``LANE:ROW``."""
    title, _, row = text.rpartition(":")
    titles = [profile.title_of(lane).casefold() for lane in profile.lanes]
    lane = titles.index(title.casefold()) if title.casefold() in titles else -1
    if lane < 0 and title.isdecimal() and len(title) < 10 and int(title) < len(titles):
        lane = int(title)
    if lane < 0:
        raise UsageError(f"There is no lane {title!r} to select an event of.", "Write LANE:ROW as :place tells it.")
    if not row.isdecimal() or len(row) > 18 or int(row) >= len(profile.lanes[lane]):
        raise UsageError(f"{text!r} is no event: {title} has {len(profile.lanes[lane]):,}, from 0 on.")
    return lane, int(row)
