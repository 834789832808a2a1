"""A source on a page: tables of times as CSV files ``*.times.csv`` with the columns lane, name, start_us, end_us.

In a package of your own an entry point makes tpuprof find it: ``[project.entry-points."tpuprof.sources"]`` with
``times = "my_package.source:SOURCE"``. All of screen, text, files and comparison then apply. What else a profile can
hold (units, steps, links, counters, problems) is in ``tests/sources/oven``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Column, Device, Group, Groups, Lane, Profile, Scopes, StringsBuilder
from tpuprof_tui.model.activity import Activity
from tpuprof_tui.model.profile import RecordingMode
from tpuprof_tui.model.vocabulary import NAMES, Capability, GroupKind, LaneKind, Vocabulary, Word
from tpuprof_tui.sources.source import ProgressCallback, Recognition, Source, first_bytes

HEADER = b"lane,name,start_us,end_us"
COLUMNS = (
    Column("engine", "Lane", kind="text", shown=True, help="The lane it ran on."),
    Column("name", "Task", kind="text", width=18, shown=True, needs=NAMES, help="What was done."),
    Column("start", "Start", unit="ns", width=13, shown=True, help="When it began."),
    Column("duration", "Duration", unit="ns", width=11, shown=True, aliases=("dur",), help="End minus start."),
)
VOCABULARY = Vocabulary(
    source="times", title="a table of times", unit=Word("machine"), event=Word("task"),
    lane_kinds=(LaneKind("lane", "Lane", Activity.COMPUTE, 0),),
    group_kinds=(GroupKind("machine", "Machines", Word("machine")),),
    capabilities=(Capability(NAMES, "names", "a table with names"),), columns_entry=f"{__name__}:COLUMNS",
)  # fmt: skip


class TimesSource(Source):
    """Tables of times."""

    id, title, expected = "times", "a table of times", "a file *.times.csv"

    def recognises(self, path: Path) -> Recognition:
        """By the name, else by the first line."""
        if path.name.endswith(".times.csv"):
            return Recognition("name", "it ends in .times.csv")
        return Recognition("content" if first_bytes(path, 64).startswith(HEADER) else "", "its first line")

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The tables in a folder, for lists of captures."""
        return [folder / name for name in names if name.endswith(".times.csv")]

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a file: a lane for each text in the column ``lane``, ordered by start."""
        names, lanes = StringsBuilder(), dict[str, list[tuple[int, int, int]]]()
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                try:
                    start, end = (round(float(row[key]) * 1000) for key in ("start_us", "end_us"))
                    lanes.setdefault(row["lane"], []).append((start, max(start, end), names.code(row["name"])))
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    raise UnreadableError(f"{path}: line {number} is no row of times ({error}).") from None
        return Profile(
            path=str(path), name=path.name, vocabulary=VOCABULARY, device=Device("machine"),
            recording=RecordingMode("a table"), capabilities=frozenset((NAMES,)), source_data={},
            groups=Groups([Group("Machine", "machine", number=0, is_unit=True)]),
            lanes=tuple(_lane(label, place, sorted(rows)) for place, (label, rows) in enumerate(lanes.items())),
            strings={"name": names.build()}, scopes=Scopes(), problems=(),
        )  # fmt: skip


def _lane(label: str, number: int, rows: list[tuple[int, int, int]]) -> Lane:
    start, end, name = np.array(rows, np.int64).T
    columns = {"start": start, "end": end, "name": name.astype(np.int32), "role": np.zeros(len(rows), np.int8),
               "duration": lambda some: end[some] - start[some]}  # fmt: skip
    return Lane(kind="lane", group=0, label=label, number=number, activity=Activity.COMPUTE, columns=columns)


SOURCE = TimesSource()
