"""Names by which the timeline can be coloured: operators and nn.Modules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.selecting.session import Session

I32 = npt.NDArray[np.int32]


def by_operator(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by operator: of device work its launching operator; of thread events the operator they belong to."""
    return _by_column(session, "operator")


def by_module(session: Session) -> tuple[list[str], list[I32]]:
    """Colours by the innermost nn.Module around an event, or around what launched it."""
    return _by_column(session, "module")


def _by_column(session: Session, key: str) -> tuple[list[str], list[I32]]:
    """Names by falling device time, then thread time; and for each lane the name's index for each row, -1: none."""
    profile = session.profile
    texts = profile.strings[key]
    times = np.zeros((2, len(texts)))
    columns = []
    for lane in profile.lanes:
        codes = lane[key] if key in lane else np.full(len(lane), -1, np.int32)
        known = codes >= 0
        length = (lane["end"] - lane["start"])[known]
        times[int(lane.on_host)] += np.bincount(codes[known], length, len(texts))
        columns.append(profile.arrays.stored(codes))
        profile.arrays.release_pages()
    used = np.flatnonzero(times.any(axis=0))
    order = used[np.lexsort(-times[::-1, used])]
    rank = np.full(len(texts) + 1, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return [texts[code] for code in order.tolist()], [profile.arrays.stored(rank[codes]) for codes in columns]
