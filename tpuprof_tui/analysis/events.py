"""Events of a selection as one frame, whatever their source: chosen columns of its lanes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

from .index.ordering import column_values
from .pivot import Frame
from .selecting.filter_masks import apply_filter
from .selecting.session import Session


def events(
    session: Session, lanes: Iterable[int], keys: Collection[str], window: tuple[int, int] | None = None,
    condition: str = "", owners: frozenset[int] = frozenset(), *, reaching: bool = False,
) -> Frame:  # fmt: skip
    """Columns of the events of some lanes that pass a filter, lane by lane.

    Args:
        session: The profile.
        lanes: Numbers of the lanes.
        keys: Columns of the schema; lanes without one have missing values.
        window: Start and end, ns: only events that start in it, those at the very end of the recording included.
        condition: Filter expression; empty: none.
        owners: Groups whose events count on lanes outside of them (`Lane` column ``owner``); empty: all.
        reaching: Whether events that begin earlier and reach into the window count too: unions are of these.

    Returns:
        A frame of the columns and of ``lane`` (number), ``row`` (of the lane), ``start``, ``end``, ``duration`` (ns);
        ``inside``: whether the event starts in the window.

    Raises:
        KeyError: No lane and no schema has such a column.
    """
    profile = session.profile
    masks = apply_filter(session, condition) if condition else None
    chosen, numbers = [], []
    for number in lanes:
        lane = profile.lanes[number]
        if lane.is_aside:
            continue
        rows = np.arange(len(lane)) if masks is None else np.flatnonzero(masks.lane(number))
        if window is not None:
            rows = rows[_inside(lane.take("start", rows), lane.take("end", rows), window, profile.end_ns,
                                reaching=reaching)]  # fmt: skip
        if owners and lane.group not in owners and "owner" in lane:
            rows = rows[np.isin(lane.take("owner", rows), list(owners))]
        if len(rows):
            chosen.append((lane, rows))
            numbers.append(number)
    unknown = {key for key in keys if key not in profile.vocabulary.schema} - {"activity"}
    for key in unknown if chosen else ():
        if not any(key in lane for lane, _ in chosen):
            raise KeyError(key)
    own = {key for key in keys if key not in ("lane", "row", "duration", "activity")}
    columns = {key: column_values(profile, key, chosen) for key in (*own, "start", "end")}
    columns["duration"] = columns["end"] - columns["start"]
    if "activity" in keys:
        columns["activity"] = np.concatenate([np.zeros(0, np.int8), *(
            lane.take("activity", rows) if lane.activity is None else np.full(len(rows), lane.activity, np.int8)
            for lane, rows in chosen)])  # fmt: skip
    columns["inside"] = np.ones(len(columns["start"]), np.bool_)
    if window is not None and reaching:
        columns["inside"] = _inside(columns["start"], columns["end"], window, profile.end_ns, reaching=False)
    columns["lane"] = np.repeat(np.array(numbers, np.int64), [len(rows) for _, rows in chosen])
    columns["row"] = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in chosen)])
    return Frame(columns, {key: profile.strings[key] for key in own if key in profile.strings})


def _inside(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], window: tuple[int, int], last: int, *, reaching: bool
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """Mask of the events of a window; ``last``: end of the recording, at which an event may still start."""
    inside = (start >= window[0]) & ((start < window[1]) | (window[1] >= last))
    return inside | ((start < window[1]) & (end > window[0])) if reaching else inside
