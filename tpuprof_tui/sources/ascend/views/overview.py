"""Overview: computing, communication and free time of each step, recomputed and as recorded."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target

from ..read.rank import STEP_COLUMNS
from .run import Run
from .tables import STEP_HEADS, STEP_NOTE, STEP_TIMES, ViewSelection, lacks, per_worker

#: Columns not compared with the recorded table: the exporter computed them as binary floats of 1.7e15 us.
COARSE: Final = ("stage_us", "preparing_us")
_FACTS: Final = tuple(key for *_, key in STEP_COLUMNS if key != "preparing_us")
#: Columns shown only if there are receive operators (pipeline parallelism).
_RECEIVED: Final = ("bubble_us", "communication_not_overlapped_exclude_receive_us")
_KEYS: Final = tuple(key for *_, key in STEP_COLUMNS)
_COLUMNS: Final = (Column("step", "Step"), *STEP_TIMES)


def difference(run: Run) -> float | None:
    """Largest difference of a step's values from the recorded ones, ns; None if no step is in both or recomputed."""
    _, steps, computed = run.steps
    recorded = run.rank.recorded_steps
    of_label = dict(recorded[1]) if recorded is not None and computed else {}
    largest = None
    for each in steps:
        other = of_label.get(each.label)
        for key, computed_value, recorded_value in zip(_KEYS, each.values, other or (), strict=False):
            if key not in COARSE and computed_value is not None and recorded_value is not None:
                largest = max(largest or 0, abs(computed_value - recorded_value))
    return largest


@per_worker(filtered=False)
def overview(selection: ViewSelection) -> Answer:
    """The overview of one worker."""
    run = selection.run
    file = run.steps[0]
    steps = selection.steps
    recorded = run.rank.recorded_steps
    rows = [(each.label, *each.values) for each in steps]
    sums = {key: _sum([each.values[index] for each in steps]) for index, key in enumerate(_KEYS)}
    stage = sums["stage_us"]
    facts = [
        Fact(key, title, sums[key], "duration", share=_share(sums[key], stage),
             head=STEP_HEADS.get(key, ("", 0))[0], shown=bool(sums["bubble_us"]) or key not in _RECEIVED)
        for title, _, key in STEP_COLUMNS if key in _FACTS and rows
    ]  # fmt: skip
    if rows:
        facts.append(Fact("difference_us", "Recorded table differs by", difference(run), "duration"))
    tables = [Table.of_rows("steps", "Steps", _COLUMNS, rows, target=lambda row: Target(step=steps[row].number),
                            notes=(STEP_NOTE,), one_unit=True, longest="stage_us")]  # fmt: skip
    if recorded is not None:
        tables.append(Table.of_rows("recorded_steps", f"Steps as recorded ({recorded[0].rpartition('/')[2]})", _COLUMNS,
                                    [(label, *values) for label, values in recorded[1]], one_unit=True))  # fmt: skip
    missing = []
    coverage = run.coverage
    if coverage is not None and run.timeline is not None:
        kinds = [(kind, len(found), found.total) for kind, found in coverage.kinds() if len(found)]
        columns = (Column("kind", "Kind"), Column("slices", "Slices", "count"),
                   Column("total_us", "Total", "duration", bar=True))  # fmt: skip
        tables.append(Table.of_rows("overlap", "Overlap Analysis", columns, kinds))
    else:
        missing.append(lacks("overlap", "How computing and communication overlap is not known.", "a timeline or a "
                             "database", "export trace_view.json (text) or the database (db)"))  # fmt: skip
    if not rows:
        missing.append(lacks("steps", "It is not known how the steps spent their time.", "kernels, a timeline or "
                             "step_trace_time.csv", "profiler_level=Level1, or msprof --task-time=on"))  # fmt: skip
    return Answer(tuple(facts), tuple(tables), notes=_notes(selection), missing=tuple(missing), source=file)


def _notes(selection: ViewSelection) -> tuple[str, ...]:
    notes = []
    if selection.window is not None:
        notes.append("Steps are shown whole: they do not follow the range.")
    run = selection.run
    if run.timeline is not None and not len(run.timeline.steps):
        notes.append("No step was marked: call prof.step() after each.")
    return tuple(notes)


def _share(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
