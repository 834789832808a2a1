"""How much time work lost against the chip's peak: by kernel function, operation or family of operations.

An instruction's time at the peak is the column ``ideal``: algorithmic cycles at the clock of TIU for computations,
bytes over the peak bandwidth of the memory involved for transfers. What has no such figure (condensed computations,
moves within local memory, CDMA) is counted apart and takes part in no sum.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import Profile

from .top import UNKNOWN
from .work_sums import COUNT, IDEAL, KNOWN, KNOWN_NS, LOST, Grouping, WorkSums


class HeadroomRow(Struct, frozen=True):
    """Work of one label, of the events that start in a window.

    Attributes:
        label: Text of the column, ``-`` where it is missing.
        code: Its code in ``Profile.strings``, -1 where it is missing.
        count: Instructions whose time at the peak is known.
        unknown: Those whose time at the peak is not.
        total_ns: Time the known ones took.
        ideal_ns: Time they would have taken at the peak.
        lost_ns: Sum of what each took beyond its time at the peak; none gains back what another lost.
    """

    label: str
    code: int
    count: int
    unknown: int
    total_ns: float
    ideal_ns: float
    lost_ns: float

    @property
    def ratio(self) -> float:
        """Time at the peak over time taken; 0 where nothing is known."""
        return self.ideal_ns / self.total_ns if self.total_ns else 0.0


def headroom_rows(profile: Profile, sums: WorkSums, by: Grouping, limit: int | None = 20) -> list[HeadroomRow]:
    """Rows by falling lost time, from sums by label.

    Args:
        profile: Knows the labels.
        sums: Work by label.
        by: The column it was added up by.
        limit: Number of rows; None for all.

    Returns:
        The rows, those with nothing known last; none for labels without work.
    """
    count, known, total, ideal, lost = (sums.sums[number] for number in (COUNT, KNOWN, KNOWN_NS, IDEAL, LOST))
    ranked = np.lexsort((known - count, -total, -lost))
    rows = [
        HeadroomRow(
            label=profile.strings[by][place - 1] if place else UNKNOWN,
            code=place - 1,
            count=int(known[place]),
            unknown=int(count[place] - known[place]),
            total_ns=float(total[place]),
            ideal_ns=float(ideal[place]),
            lost_ns=float(lost[place]),
        )
        for place in ranked.tolist()
        if count[place]
    ]
    return rows[:limit]
