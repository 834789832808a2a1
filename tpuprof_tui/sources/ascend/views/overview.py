"""Overview: computing, communication and free time of each step, recomputed and as recorded."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target

from ..recorded import COVERAGE, STEP_COLUMNS, STEP_KEYS, RecordedRank, Step
from .figures import figures_of
from .ranks import STEP_HEADS, STEP_NOTE, STEP_TIMES, lacks, not_narrowed, per_rank

_FACTS: Final = tuple(key for *_, key in STEP_COLUMNS if key != "preparing_us")
#: Columns shown only if there are receive operators (pipeline parallelism).
_RECEIVED: Final = ("bubble_us", "communication_not_overlapped_exclude_receive_us")
_COLUMNS: Final = (Column("step", "Step"), *STEP_TIMES)
_WHOLE: Final = Step("", -1)


_SELECTED: Final = "Steps as recorded: of all events, so they are left out beside a range or filter."


@per_rank
def overview(query: Query, rank: RecordedRank) -> Answer:
    """The overview of one rank."""
    figures = figures_of(query, rank)
    steps, narrowed = figures.steps, query.range is not None or bool(query.filter)
    recorded = query.profile.table("recorded_steps", rank.group)
    rows = [(step.label, *step.times) for step in steps]
    sums = {key: figures.sum(key) for key in STEP_KEYS}
    stage = sums["stage_us"]
    facts = [
        Fact(key, title, sums[key], "duration", share=_share(sums[key], stage),
             head=STEP_HEADS.get(key, ("", 0))[0], shown=bool(sums["bubble_us"]) or key not in _RECEIVED)
        for title, _, key in STEP_COLUMNS if key in _FACTS and rows
    ]  # fmt: skip
    if rows:
        facts.append(Fact("difference_us", "Recorded table differs by", figures.difference, "duration"))
    tables = [Table.of_rows("steps", "Steps", _COLUMNS, rows, target=lambda row: Target(step=steps[row].number),
                            notes=(STEP_NOTE,), one_unit=True, longest="stage_us")]  # fmt: skip
    if recorded is not None and not narrowed:
        title = f"Steps as recorded ({recorded.file.rpartition('/')[2]})"
        listed = [(label, *values) for label, values in figures.recorded_steps]
        tables.append(Table.of_rows("recorded_steps", title, _COLUMNS, listed, one_unit=True))
    missing = []
    if figures.coverage is not None and rank.timeline:
        step_parts = steps if query.step is not None else (_WHOLE,)
        kinds = []
        for kind in COVERAGE:
            parts = [figures.used(kind, step) for step in step_parts]
            kinds += [(kind, sum(map(len, parts)), sum(part.total for part in parts))] if any(map(len, parts)) else []
        columns = (Column("kind", "Kind"), Column("slices", "Slices", "count"),
                   Column("total_us", "Total", "duration", bar=True))  # fmt: skip
        tables.append(Table.of_rows("overlap", "Overlap Analysis", columns, kinds))
    else:
        missing.append(lacks("overlap", "How computing and communication overlap is not known.", "a timeline or a "
                             "database", "export trace_view.json (text) or the database (db)"))  # fmt: skip
    if not rows:
        missing.append(lacks("steps", "It is not known how the steps spent their time.", "kernels, a timeline or "
                             "step_trace_time.csv", "profiler_level=Level1, or msprof --task-time=on"))  # fmt: skip
    notes = list(not_narrowed(query, "Steps", ("range", "filter")) if rows and not figures.steps_are_computed else ())
    if narrowed and recorded is not None and figures.steps_are_computed:
        notes.append(_SELECTED)
    if rank.timeline and not any(step.end is not None for step in figures.every_step):
        notes.append("No step was marked: call prof.step() after each.")
    return Answer(tuple(facts), tuple(tables), notes=tuple(notes), missing=tuple(missing), source=figures.steps_file)


def _share(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None
