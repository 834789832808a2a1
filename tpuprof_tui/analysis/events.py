"""Events of a selection as one frame, whatever their source: chosen columns of its lanes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile, Role
from tpuprof_tui.model.lane import ALL, Rows, row_count, row_numbers
from tpuprof_tui.model.table import Table

from .index.lane_index import begun_before
from .index.ordering import column_values
from .pivot import Frame
from .selecting.filter_masks import apply_filter
from .selecting.session import Session
from .selecting.state import DisplayState, Scope

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


def events(
    session: Session, lanes: Iterable[int], keys: Collection[str], window: tuple[int, int] | None = None,
    condition: str = "", owners: frozenset[int] = frozenset(), *, role: Role | None = None, reaching: bool = False,
) -> Frame:  # fmt: skip
    """Columns of the events of some lanes that pass a filter, lane by lane.

    Args:
        session: The profile.
        lanes: Numbers of the lanes.
        keys: Columns of lanes (lanes without one have missing values), ``lane`` (its number), ``unit`` (of the lane,
            -1: none), ``group`` (of the lane, or that submitted the event to a lane outside any unit), ``row`` (of the
            lane), ``inside`` (whether the event starts in the window).
        window: Start and end, ns: only events that start in it, those at the very end of the recording included.
        condition: Filter expression; empty: none.
        owners: Groups whose events count on lanes outside of them (`Lane` column ``owner``); empty: all.
        role: Only events of this role; None: all.
        reaching: Whether events that begin earlier and reach into the window count too: unions are of these.

    Raises:
        KeyError: No lane and no schema has such a column.
    """
    profile = session.profile
    chosen: list[tuple[int, Lane, Rows]] = []
    for number in lanes:
        lane = profile.lanes[number]
        if lane.is_aside or not len(lane):
            continue
        rows = selected_rows(session, number, window, condition, owners, reaching=reaching)
        if role is not None and not bool((of_role := lane.take("role", rows) == role).all()):
            rows = row_numbers(rows)[of_role]
        if row_count(rows):
            chosen.append((number, lane, rows))
    columns = {}
    for key in keys:
        if key == "lane":
            parts = [np.full(row_count(rows), number) for number, _, rows in chosen]
        elif key == "unit":
            parts = [np.full(row_count(rows), profile.unit_of(lane)) for _, lane, rows in chosen]
        elif key == "group":
            parts = [_groups(profile, lane, rows) for _, lane, rows in chosen]
        elif key == "row":
            parts = [row_numbers(rows) for _, _, rows in chosen]
        elif key == "inside":
            parts = [starting_in(lane.take("start", rows), window, profile.end_ns) if window else
                     np.ones(row_count(rows), np.bool_) for _, lane, rows in chosen]  # fmt: skip
        elif key == "activity":
            parts = [lane.take(key, rows) if lane.activity is None else np.full(row_count(rows), lane.activity, np.int8)
                     for _, lane, rows in chosen]  # fmt: skip
        else:
            columns[key] = _column(profile, key, chosen)
            continue
        columns[key] = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    return Frame(columns, {key: profile.strings[key] for key in keys if key in profile.strings})


def selected_rows(
    session: Session, number: int, window: tuple[int, int] | None = None, condition: str = "",
    owners: frozenset[int] = frozenset(), *, reaching: bool = False,
) -> Rows:  # fmt: skip
    """Selected rows of a lane, ascending; a slice if they are contiguous. Arguments as of `events`."""
    lane = session.profile.lanes[number]
    rows: Rows = slice(0, len(lane))
    if window is not None:
        rows = _rows_in(lane, window, session.profile.end_ns, reaching=reaching)
    if condition and not (passing := apply_filter(session, condition).lane(number)[rows]).all():
        rows = row_numbers(rows)[passing]
    if owners and lane.group not in owners and "owner" in lane:
        rows = row_numbers(rows)[np.isin(lane.take("owner", rows), list(owners))]
    return rows


def numbers_in(
    session: Session, scope: Scope, window: tuple[int, int] | None = None, condition: str = "",
    lanes: Collection[int] | None = None,
) -> Ints:  # fmt: skip
    """Numbers of the events of a scope that start in a window and pass a filter, of some lanes; int64, ascending."""
    if scope.everything and window is None and not condition and lanes is None:
        return np.arange(session.profile.event_count, dtype=np.int64)
    owners = session.profile.groups.within(scope.group) if scope.lane < 0 else frozenset[int]()
    parts = (row_numbers(selected_rows(session, number, window, condition, owners)) + session.offsets[number]
             for number in session.lanes_in(scope) if lanes is None or number in lanes)  # fmt: skip
    return np.concatenate([np.zeros(0, np.int64), *parts])


def numbers_shown(session: Session, state: DisplayState) -> Ints:
    """Numbers of the events in the table: in scope, passing the filter, and in the window if ``in_window``."""
    return numbers_in(session, state.scope, state.figures_window if state.in_window else None, state.filter)


def column_of(session: Session, events: Frame, key: str) -> Array:
    """A further column of events by ascending ``lane``, given that and ``row``; as `events` has it."""
    lanes = session.profile.lanes
    bounds = np.searchsorted(events["lane"], np.arange(len(lanes) + 1)).tolist()
    chosen: list[tuple[int, Lane, Rows]] = [
        (number, lane, events["row"][first:last])
        for number, (lane, (first, last)) in enumerate(zip(lanes, pairwise(bounds), strict=True)) if last > first
    ]  # fmt: skip
    return _column(session.profile, key, chosen)


def _column(profile: Profile, key: str, chosen: list[tuple[int, Lane, Rows]]) -> Array:
    if chosen and key not in profile.vocabulary.schema and not any(key in lane for _, lane, _ in chosen):
        raise KeyError(key)
    if len(chosen) == 1 and key in chosen[0][1]:
        return chosen[0][1].take(key, chosen[0][2])
    return column_values(profile, key, ((lane, rows) for _, lane, rows in chosen))


def _groups(profile: Profile, lane: Lane, rows: Rows) -> Array:
    own = np.full(row_count(rows), lane.group, np.int64)
    if profile.unit_of(lane) >= 0 or "owner" not in lane:
        return own
    owner = lane.take("owner", rows)
    return np.where((owner >= 0) & (owner < len(profile.groups)), owner, own)


def starting_in(times: Array, window: tuple[int, int], last: int) -> npt.NDArray[np.bool_]:
    """Mask of the times (ns) in a window; ``last``: end of the recording, at which an event may still start."""
    inside: npt.NDArray[np.bool_] = (times >= window[0]) & ((times < window[1]) | (window[1] >= last))
    return inside


def _rows_in(lane: Lane, window: tuple[int, int], last: int, *, reaching: bool) -> Rows:
    if lane.is_aside:
        return slice(0, 0)
    start = lane["start"]
    first = 0 if reaching else int(np.searchsorted(start, window[0]))
    rows = slice(first, max(first, begun_before(start, window[1], last)))
    return np.flatnonzero((start[rows] >= window[0]) | (lane.take("end", rows) > window[0])) if reaching else rows


def frame_of(table: Table, keys: Collection[str], rows: Rows = ALL) -> Frame:
    """Some columns and rows of a table."""
    return Frame(
        {key: table.take(key, rows) for key in keys}, {key: table.texts[key] for key in keys if key in table.texts}
    )


def rows_of_table(
    session: Session, table: Table, window: tuple[int, int] | None = None, condition: str = "",
    step: int | None = None, time: str = "start",
) -> Ints:  # fmt: skip
    """Rows of a table that start in a window and are of events that pass a filter, as `events` selects those.

    A row of no event passes no filter; tables without events or times are not narrowed by filter or window. With a
    ``step``, rows whose ``step_number`` that is; ``time``: column with their start.
    """
    chosen = np.ones(len(table), np.bool_)
    if window is not None and time in table:
        chosen &= starting_in(table[time], window, session.profile.end_ns)
    if step is not None:
        chosen &= table["step_number"] == step
    if condition and "event" in table:
        # -1, no event, selects the appended False
        chosen &= np.append(apply_filter(session, condition).mask, False)[table["event"]]
    return np.flatnonzero(chosen)
