"""What took the time: work by kernel function, operation or family of operations."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import Profile

from .work_sums import COUNT, TOTAL, Grouping, WorkSums

#: Label of what a capture does not know.
UNKNOWN = "-"


class TopRow(Struct, frozen=True):
    """Work of one label, of the events that start in a window.

    Attributes:
        label: Text of the column, ``-`` where it is missing.
        code: Its code in ``Profile.strings``, -1 where it is missing.
        count: Instructions.
        total_ns: Sum of their durations.
        share: Of the total of all work in the window, 0 to 1.
        mean_ns, max_ns: Mean and largest duration.
    """

    label: str
    code: int
    count: int
    total_ns: int
    share: float
    mean_ns: float
    max_ns: int


def top_rows(profile: Profile, sums: WorkSums, by: Grouping, limit: int | None = 20) -> list[TopRow]:
    """Rows by falling total, from sums by label.

    Args:
        profile: Knows the labels.
        sums: Work by label.
        by: The column it was added up by.
        limit: Number of rows; None for all.

    Returns:
        The rows; none for labels without work.
    """
    counts, totals = sums.sums[COUNT].astype(np.int64), sums.sums[TOTAL].astype(np.int64)
    everything = int(totals.sum())
    ranked = np.argsort(-totals, kind="stable")
    return [
        TopRow(
            label=profile.strings[by][place - 1] if place else UNKNOWN,
            code=place - 1,
            count=int(counts[place]),
            total_ns=int(totals[place]),
            share=int(totals[place]) / everything if everything else 0.0,
            mean_ns=int(totals[place]) / int(counts[place]),
            max_ns=int(sums.longest[place]),
        )
        for place in ranked.tolist()
        if counts[place]
    ][:limit]
