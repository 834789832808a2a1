"""The critical path of a whole profile as a lane over time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Role

from .critical_path import CriticalPath, Part, critical_path
from .index.lane_index import LaneIndex, build_index
from .links.session_dependencies import dependencies_of, may_have_dependencies
from .selecting.session import Session

_KEY = "critical path over time"


def path_lane(session: Session) -> LaneIndex:
    """Events and ends of waits of the path, without its gaps; columns ``kernel`` and ``name`` where they are known.

    O(n log n) the first time: meant for a thread.
    """

    def made() -> LaneIndex:
        known = dependencies_of(session) if may_have_dependencies(session) else None
        profile = session.profile
        return build_index(_lane(session, critical_path(profile, known, profile.start_ns, profile.end_ns)))

    found: LaneIndex = session.derived.get(_KEY, made)
    return found


def known_path_lane(session: Session) -> LaneIndex | None:
    """The same where it has been found; None before."""
    found: LaneIndex | None = session.derived.known(_KEY)
    return found


def _lane(session: Session, path: CriticalPath) -> Lane:
    kept = np.flatnonzero((path.part != Part.GAP) & (path.lane >= 0))
    lanes, rows = path.lane[kept], path.row[kept]
    count = len(kept)
    texts: dict[str, npt.NDArray[np.int32]] = {}
    for key in ("kernel", "name"):
        if key in session.profile.strings:
            texts[key] = np.full(count, -1, np.int32)
            for number in np.unique(lanes).tolist():
                lane, mine = session.profile.lanes[number], np.flatnonzero(lanes == number)
                if key in lane:
                    texts[key][mine] = lane.take(key, rows[mine])
    return Lane(
        kind="path", group=-1, label="Critical path",
        columns={"start": path.start[kept], "end": path.end[kept], "order": np.arange(count, dtype=np.int64),
                 "role": np.where(path.part[kept] == Part.WAIT, Role.WAIT, Role.WORK).astype(np.int8),
                 "sublane": np.zeros(count, np.int16), **texts},
    )  # fmt: skip
