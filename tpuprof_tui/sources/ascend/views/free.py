"""Free view: every gap of the device with its cause and the host's activity; gaps between steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target
from tpuprof_tui.views.query import Query

from ..recorded import COMMUNICATION, COMPUTING, RecordedRank
from .figures import CAUSES, RankFigures, figures_of
from .ranks import in_range, lacks, moment, per_rank

_WHY: Final = {
    "host": "The host had not called it", "dispatch": "Called, not launched yet",
    "device": "Launched, the device waited", "unknown": "Not known why",
}  # fmt: skip


@per_rank(filtered=False)
def free(query: Query, rank: RecordedRank) -> Answer:
    """The free view of one rank."""
    figures, table = figures_of(query, rank), query.profile.table("coverage", rank.group)
    if table is None:
        return Answer(missing=(lacks("gaps", "It is not known when the device was idle.", "a timeline or kernels",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    gaps = figures.gaps
    chosen = in_range(query, gaps.start)
    if query.step is not None:
        chosen &= np.any([np.zeros(len(gaps), np.bool_), *(step.contains(gaps.start) for step in figures.steps
                                                           if step.number == query.step)], axis=0)  # fmt: skip
    kept = np.flatnonzero(chosen)
    order = kept[np.argsort(-gaps.length[kept], kind="stable")]
    before, after = figures.neighbours()
    host, device = figures.host_of_gaps(), figures.device_of_gaps()
    causes = [CAUSES[code] for code in figures.causes.tolist()]
    columns = (
        moment(rank, "start_us", "Start"), Column("duration_us", "Length", "duration", bar=True),
        Column("cause", "Cause"), Column("before", "After", spare=2), Column("after", "Before", spare=1),
        Column("host", "Meanwhile on the host"), Column("device", "Meanwhile on the device", spare=3),
    )  # fmt: skip
    rows = order.tolist()

    def target(row: int) -> Target:
        return Target(time=(int(gaps.start[rows[row]]), int(gaps.end[rows[row]])))

    texts = ([values[row] for row in rows] for values in (causes, before, after, host, device))
    listed = Table("gaps", "Gaps", columns, (gaps.start[order], gaps.length[order], *texts), target=target, word="gap")
    lengths = gaps.length[kept]
    times = {cause: int(lengths[figures.causes[kept] == code].sum()) for code, cause in enumerate(CAUSES)}
    total = int(lengths.sum())
    facts = (
        Fact("gaps", "Gaps", len(kept)), Fact("free_us", "Free", total, "duration"),
        Fact("largest_us", "The longest", int(lengths.max()) if len(lengths) else 0, "duration"),
        *(Fact(f"{cause}_us", _WHY[cause], times[cause], "duration", share=times[cause] / total if total else None)
          for cause in CAUSES),
    )  # fmt: skip
    missing: tuple[Missing, ...] = ()
    if not rank.timeline:
        missing = (lacks("causes", "Why the device waited is not known.", "a timeline or a database with links",
                         "export trace_view.json (text) or the database (db)"),)  # fmt: skip
    return Answer(facts, (listed, _between_steps(figures)), missing=missing, source=table.file)


def _between_steps(figures: RankFigures) -> Table:
    """Gaps from the last work of a step to the first of the next."""
    rows = []
    for one, other in pairwise(figures.steps):
        gap = None
        if figures.coverage is not None and one.low is not None and other.low is not None:
            ends = [figures.coverage[kind].within(one.low, one.high).end for kind in (COMPUTING, COMMUNICATION)]
            last = max((int(end.max()) for end in ends if len(end)), default=None)
            gap = None if last is None else other.low - last
        rows.append((one.label, other.label, gap))
    columns = (Column("from_step", "From step"), Column("to_step", "To step"),
               Column("gap_us", "Gap", "duration", bar=True))  # fmt: skip
    return Table.of_rows("step_gaps", "Between steps", columns, rows)
