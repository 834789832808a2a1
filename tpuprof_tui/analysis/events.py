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

from .index.ordering import column_values
from .pivot import Frame
from .selecting.filter_masks import apply_filter
from .selecting.session import Session

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
    masks = apply_filter(session, condition) if condition else None
    chosen: list[tuple[int, Lane, Rows]] = []
    for number in lanes:
        lane = profile.lanes[number]
        if lane.is_aside or not len(lane):
            continue
        rows: Rows = slice(0, len(lane)) if masks is None else np.flatnonzero(masks.lane(number))
        if window is not None:
            rows = row_numbers(rows)[_inside(lane, rows, window, profile.end_ns, reaching=reaching)]
        if owners and lane.group not in owners and "owner" in lane:
            rows = row_numbers(rows)[np.isin(lane.take("owner", rows), list(owners))]
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
            parts = [_inside(lane, rows, window, profile.end_ns) for _, lane, rows in chosen]
        elif key == "activity":
            parts = [lane.take(key, rows) if lane.activity is None else np.full(row_count(rows), lane.activity, np.int8)
                     for _, lane, rows in chosen]  # fmt: skip
        else:
            columns[key] = _column(profile, key, chosen)
            continue
        columns[key] = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    return Frame(columns, {key: profile.strings[key] for key in keys if key in profile.strings})


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


def _inside(
    lane: Lane, rows: Rows, window: tuple[int, int] | None, last: int, *, reaching: bool = False
) -> npt.NDArray[np.bool_]:
    """Mask of the events of a window; ``last``: end of the recording, at which an event may still start."""
    if window is None:
        return np.ones(row_count(rows), np.bool_)
    start = lane.take("start", rows)
    inside = (start >= window[0]) & ((start < window[1]) | (window[1] >= last))
    return inside | ((start < window[1]) & (lane.take("end", rows) > window[0])) if reaching else inside


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
        start = table[time]
        chosen &= (start >= window[0]) & ((start < window[1]) | (window[1] >= session.profile.end_ns))
    if step is not None:
        chosen &= table["step_number"] == step
    if condition and "event" in table:
        # -1, no event, selects the appended False
        chosen &= np.append(apply_filter(session, condition).mask, False)[table["event"]]
    return np.flatnonzero(chosen)
