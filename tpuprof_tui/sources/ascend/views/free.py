"""Free view: every gap of the device with its cause and the host's activity; gaps between steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from ..recorded import COMMUNICATION, COMPUTING, RecordedRank
from .figures import CAUSES, RankFigures, figures_of
from .ranks import falling, lacks, moment, per_rank

_WHY: Final = {
    "host": "The host had not called it", "dispatch": "Called, not launched yet",
    "device": "Launched, the device waited", "unknown": "Not known why",
}  # fmt: skip


@per_rank
def free(query: Query, rank: RecordedRank) -> Answer:
    """The free view of one rank."""
    figures = figures_of(query, rank)
    if not rank.work_file:
        return Answer(missing=(lacks("gaps", "It is not known when the device was idle.", "a timeline or kernels",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    gaps = figures.gaps
    order = falling(gaps.length)
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
        return Target(time=(int(gaps.start[rows[row]]), int(gaps.end[rows[row]])), scope=Scope(rank.unit))

    texts = ([values[row] for row in rows] for values in (causes, before, after, host, device))
    listed = Table("gaps", "Gaps", columns, (gaps.begin[order], gaps.length[order], *texts), target=target, word="gap")
    times, total = figures.cause_times, int(gaps.length.sum())
    facts = (
        Fact("gaps", "Gaps", len(gaps)), Fact("free_us", "Free", total, "duration"),
        Fact("largest_us", "The longest", int(gaps.length.max(initial=0)), "duration"),
        *(Fact(f"{cause}_us", _WHY[cause], times[cause], "duration", share=times[cause] / total if total else None)
          for cause in CAUSES),
    )  # fmt: skip
    missing: tuple[Missing, ...] = ()
    if not rank.timeline:
        missing = (lacks("causes", "Why the device waited is not known.", "a timeline or a database with links",
                         "export trace_view.json (text) or the database (db)"),)  # fmt: skip
    return Answer(facts, (listed, _between_steps(query, figures)), missing=missing, source=rank.work_file)


def _between_steps(query: Query, figures: RankFigures) -> Table:
    rows = []
    low, high = query.range or (None, None)
    for one, other in pairwise(figures.every_step):
        if query.step not in (None, one.number):
            continue
        ends = [part.ends[-1] for kind in (COMPUTING, COMMUNICATION) if len(part := figures.used(kind, one))]
        starts = [part.starts[0] for kind in (COMPUTING, COMMUNICATION) if len(part := figures.used(kind, other))]
        known = ends and starts and one.low is not None and other.low is not None
        if known or (low is None and high is None):
            rows.append((one.label, other.label, int(min(starts) - max(ends)) if known else None))
    columns = (Column("from_step", "From step"), Column("to_step", "To step"),
               Column("gap_us", "Gap", "duration", bar=True))  # fmt: skip
    return Table.of_rows("step_gaps", "Between steps", columns, rows)
