"""Files of msprof-analyze about all ranks (text or database), read when a profile is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Problem, Severity

from ..recorded import STEP_COLUMNS
from .communication import CommunicationData, of_cluster, of_database
from .csv_table import CsvTable
from .database import Database
from .rank import ns_of

Result = TypeVar("Result")


class StepRow(Struct, frozen=True):
    """A step of a rank or of a stage: kind, rank(s), step, and values in ns in the order of ``STEP_COLUMNS``."""

    kind: str
    index: str
    step: str | None
    values: tuple[float | None, ...]


class Analysed(Struct, eq=False):
    """Data of these files.

    Attributes:
        steps: Steps of ranks and of stages.
        communication: Communication data of all ranks; None if there are none.
        sources: Names of the files.
        problems: Errors.
    """

    steps: list[StepRow] = field(default_factory=list)
    communication: CommunicationData | None = None
    sources: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_analysed(files: Mapping[str, Path]) -> Analysed:
    """Reads the files of msprof-analyze, given by name; files that cannot be read are problems."""
    analysed = Analysed()

    def tried(read: Callable[[], Result], name: str) -> Result | None:
        try:
            return read() if name in files else None
        except UnreadableError as error:
            analysed.problems.append(Problem(Severity.ERROR, str(error), "It is left out.", name))
            return None

    steps, communication, matrix, database = (
        "cluster_step_trace_time.csv", "cluster_communication.json", "cluster_communication_matrix.json",
        "cluster_analysis.db",
    )  # fmt: skip
    rows = tried(lambda: _recorded(files[steps], analysed.problems), steps)
    found = tried(lambda: of_cluster(files[communication], None), communication)
    pairs = tried(lambda: of_cluster(None, files[matrix]), matrix)
    if found is not None and pairs is not None:
        found.pairs, found.matrix = pairs.pairs, True
    found = found or pairs
    db = tried(lambda: Database(files[database], database), database) if rows is None or found is None else None
    if db is not None:
        if rows is None:
            columns = ("type", "index", "step", *(name for _, name, _ in STEP_COLUMNS))
            rows = [StepRow(str(kind or "rank"), str(index), None if step in (None, "") else str(step),
                            tuple(ns_of(values)))
                    for kind, index, step, *values in db.rows("ClusterStepTraceTime", *columns)]  # fmt: skip
        found = found or of_database(db)
        analysed.problems += db.problems
        db.close()
    analysed.steps, analysed.communication = rows or [], found
    analysed.sources = [steps if steps in files else database] if rows else []
    analysed.sources += [found.file] if found else []
    return analysed


def _recorded(path: Path, problems: list[Problem]) -> list[StepRow]:
    table = CsvTable.opened([path], path.name)
    read = table.text(["Step", "Type", "Index", *(name for name, _, _ in STEP_COLUMNS if name in table)])
    problems += table.problems
    nothing = [None] * table.rows
    values = zip(*(ns_of(read.get(name, nothing)) for name, _, _ in STEP_COLUMNS), strict=True)
    heads = (read.get(name, nothing) for name in ("Type", "Index", "Step"))
    return [StepRow(kind or "rank", index or "", step, each)
            for kind, index, step, each in zip(*heads, values, strict=True)]  # fmt: skip
