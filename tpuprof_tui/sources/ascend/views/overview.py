"""Overview: computing, communication and free time of each step, recomputed and as recorded."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target
from tpuprof_tui.views.query import Query

from ..recorded import STEP_COLUMNS, STEP_KEYS, RecordedRank
from .figures import RankFigures, figures_of
from .ranks import STEP_HEADS, STEP_NOTE, STEP_TIMES, lacks, per_rank

#: Columns not compared with the recorded table: the exporter computed them as binary floats of 1.7e15 us.
COARSE: Final = ("stage_us", "preparing_us")
_FACTS: Final = tuple(key for *_, key in STEP_COLUMNS if key != "preparing_us")
#: Columns shown only if there are receive operators (pipeline parallelism).
_RECEIVED: Final = ("bubble_us", "communication_not_overlapped_exclude_receive_us")
_COLUMNS: Final = (Column("step", "Step"), *STEP_TIMES)


def difference(figures: RankFigures) -> float | None:
    """Largest difference of a step's values from the recorded ones, ns; None if no step is in both or recomputed."""
    recorded = dict(figures.recorded_steps)
    largest = None
    for step in figures.steps if figures.steps_are_computed else ():
        for key, computed_value, recorded_value in zip(
            STEP_KEYS, step.values, recorded.get(step.label, ()), strict=False
        ):
            if key not in COARSE and computed_value is not None and recorded_value is not None:
                largest = max(largest or 0, abs(computed_value - recorded_value))
    return largest


@per_rank(filtered=False)
def overview(query: Query, rank: RecordedRank) -> Answer:
    """The overview of one rank."""
    figures = figures_of(query, rank)
    steps = [step for step in figures.steps if query.step is None or step.number == query.step]
    recorded = query.profile.table("recorded_steps", rank.group)
    rows = [(step.label, *step.values) for step in steps]
    sums = {key: _sum([step.values[index] for step in steps]) for index, key in enumerate(STEP_KEYS)}
    stage = sums["stage_us"]
    facts = [
        Fact(key, title, sums[key], "duration", share=_share(sums[key], stage),
             head=STEP_HEADS.get(key, ("", 0))[0], shown=bool(sums["bubble_us"]) or key not in _RECEIVED)
        for title, _, key in STEP_COLUMNS if key in _FACTS and rows
    ]  # fmt: skip
    if rows:
        facts.append(Fact("difference_us", "Recorded table differs by", difference(figures), "duration"))
    tables = [Table.of_rows("steps", "Steps", _COLUMNS, rows, target=lambda row: Target(step=steps[row].number),
                            notes=(STEP_NOTE,), one_unit=True, longest="stage_us")]  # fmt: skip
    if recorded is not None:
        title = f"Steps as recorded ({recorded.file.rpartition('/')[2]})"
        listed = [(label, *values) for label, values in figures.recorded_steps]
        tables.append(Table.of_rows("recorded_steps", title, _COLUMNS, listed, one_unit=True))
    missing = []
    if figures.coverage is not None and rank.timeline:
        kinds = [
            (kind, len(intervals), intervals.total) for kind, intervals in figures.coverage.items() if len(intervals)
        ]
        columns = (Column("kind", "Kind"), Column("slices", "Slices", "count"),
                   Column("total_us", "Total", "duration", bar=True))  # fmt: skip
        tables.append(Table.of_rows("overlap", "Overlap Analysis", columns, kinds))
    else:
        missing.append(lacks("overlap", "How computing and communication overlap is not known.", "a timeline or a "
                             "database", "export trace_view.json (text) or the database (db)"))  # fmt: skip
    if not rows:
        missing.append(lacks("steps", "It is not known how the steps spent their time.", "kernels, a timeline or "
                             "step_trace_time.csv", "profiler_level=Level1, or msprof --task-time=on"))  # fmt: skip
    return Answer(
        tuple(facts), tuple(tables), notes=_notes(query, rank), missing=tuple(missing), source=figures.steps_file
    )


def _notes(query: Query, rank: RecordedRank) -> tuple[str, ...]:
    notes = []
    if query.range is not None:
        notes.append("Steps are shown whole: they do not follow the range.")
    if rank.timeline and not any(step.end is not None for step in figures_of(query, rank).steps):
        notes.append("No step was marked: call prof.step() after each.")
    return tuple(notes)


def _share(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
