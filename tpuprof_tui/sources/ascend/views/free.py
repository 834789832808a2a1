"""Free view: every gap of the device with its cause and the host's activity; gaps between steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Table, Target

from .run import CAUSES, Run
from .tables import ViewSelection, lacks, per_worker


@per_worker(filtered=False)
def free(selection: ViewSelection) -> Answer:
    """The free view of one worker."""
    run = selection.run
    coverage = run.coverage
    if coverage is None:
        return Answer(missing=(lacks("gaps", "It is not known when the device was idle.", "a timeline or kernels",
                                     "activities with NPU, or msprof --task-time=on"),))  # fmt: skip
    gaps = run.gaps
    kept = np.flatnonzero(selection.work_mask(gaps.start))
    order = kept[np.argsort(-gaps.length[kept], kind="stable")]
    before, after = run.neighbours()
    host, device = run.host_of_gaps(), run.device_of_gaps()
    causes = [CAUSES[code] for code in run.causes.tolist()]
    columns = (
        selection.moment("start_us", "Start"), Column("duration_us", "Length", "duration", bar=True),
        Column("cause", "Cause"), Column("before", "After", spare=2), Column("after", "Before", spare=1),
        Column("host", "Meanwhile on the host"), Column("device", "Meanwhile on the device", spare=3),
    )  # fmt: skip
    rows = order.tolist()
    start, end = gaps.start - selection.zero, gaps.end - selection.zero

    def target(row: int) -> Target:
        return Target(time=(int(start[rows[row]]), int(end[rows[row]])))

    texts = ([each[row] for row in rows] for each in (causes, before, after, host, device))
    table = Table("gaps", "Gaps", columns, (start[order], gaps.length[order], *texts), target=target, word="gap")
    lengths = gaps.length[kept]
    times = {cause: int(lengths[run.causes[kept] == code].sum()) for code, cause in enumerate(CAUSES)}
    total = int(lengths.sum())
    facts = (
        Fact("gaps", "Gaps", len(kept)), Fact("free_us", "Free", total, "duration"),
        Fact("largest_us", "The longest", int(lengths.max()) if len(lengths) else 0, "duration"),
        *(Fact(f"{cause}_us", _WHY[cause], times[cause], "duration", share=times[cause] / total if total else None)
          for cause in CAUSES),
    )  # fmt: skip
    missing: tuple[Missing, ...] = ()
    if run.timeline is None:
        missing = (lacks("causes", "Why the device waited is not known.", "a timeline or a database with links",
                         "export trace_view.json (text) or the database (db)"),)  # fmt: skip
    return Answer(facts, (table, _between_steps(run)), missing=missing, source=coverage.file)


_WHY = {
    "host": "The host had not called it", "dispatch": "Called, not launched yet",
    "device": "Launched, the device waited", "unknown": "Not known why",
}  # fmt: skip


def _between_steps(run: Run) -> Table:
    """Gaps from the last work of a step to the first of the next."""
    coverage = run.coverage
    steps = run.steps[1]
    rows = []
    for one, other in pairwise(steps):
        gap = None
        if coverage is not None and one.low is not None and other.low is not None:
            ends = [each.within(one.low, one.high).end for each in (coverage.computing, coverage.communication)]
            last = max((int(each.max()) for each in ends if len(each)), default=INT_MISSING)
            gap = other.low - last if last != INT_MISSING else None
        rows.append((one.label, other.label, gap))
    columns = (Column("from_step", "From step"), Column("to_step", "To step"),
               Column("gap_us", "Gap", "duration", bar=True))  # fmt: skip
    return Table.of_rows("step_gaps", "Between steps", columns, rows)
