"""The captures of a data set as a table of figures: columns, filter, order, and each figure over days."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from tpuprof_tui.errors import needed_for

from .manifest import Manifest
from .scan import as_arrow
from .schema import FIELDS

Kind = Literal["us", "ns", "share", "number"]
#: Figures that are shown where captures have them: title and kind. Of those with one title a capture has the first.
_FIGURES: Final[Mapping[str, tuple[str, Kind]]] = {
    "overview.total_us": ("total", "us"), "overview.step_us": ("step", "us"), "steps.median_us": ("step", "us"),
    "units.mean_utilisation": ("mean util", "share"), "overview.imbalance": ("imbalance", "number"),
    "overview.exposed_transfer_us": ("exposed", "us"), "streams.exposed_communication_us": ("exposed comm", "us"),
}  # fmt: skip
#: Columns of figures at most, those of the longest kernels among them, and captures.
_MOST_FIGURES: Final = 6
_KERNELS: Final = 2
_MOST: Final = 10_000


class Figure(Struct, frozen=True):
    """A column.

    Attributes:
        title: What people call it.
        kind: ``us``, ``ns``, ``share`` or ``number``.
    """

    title: str
    kind: Kind


class Row(Struct, frozen=True):
    """A capture.

    Attributes:
        path: Where it lay.
        words: What a filter looks in: path, source, chip, device, day.
        day: As text; empty: not known.
        device: As text; empty: not known.
        problems: How many it has.
        values: One for each figure; None: not known.
    """

    path: str
    words: str
    day: str
    device: str
    problems: int
    values: tuple[float | None, ...]


class Listing(Struct, frozen=True):
    """The captures of a data set, by day and path.

    Attributes:
        figures: The columns.
        rows: The captures.
        more: How many are not here.
    """

    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    more: int = 0

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> Listing:
        """The captures of a data set.

        Raises:
            UnreadableError: There is no data set.
            MissingPackageError: pyarrow is not installed.
        """
        manifest = Manifest.read(out)
        with needed_for("A data set", "Or install all it needs: pip install 'tpuprof-tui[dataset]'."):
            from pyarrow import compute

        measured = _table(manifest, "figures", ["capture", "figure", "kind", "value"])
        names = set(compute.unique(measured["figure"]).to_pylist())
        kernels = (
            measured.filter(compute.equal(measured["kind"], "kernel")).group_by("figure").aggregate([("value", "sum")])
        )
        longest = kernels.sort_by([("value_sum", "descending"), ("figure", "ascending")])["figure"].to_pylist()[
            :_KERNELS
        ]
        asked = [(key, Figure(title, kind)) for key, (title, kind) in _FIGURES.items() if key in names]
        asked += [(name, Figure(name.partition(":")[2], "ns")) for name in longest]
        known: dict[Figure, dict[str, float]] = {}
        for key, figure in asked:
            found = measured.filter(compute.equal(measured["figure"], key))
            own = dict(zip(found["capture"].to_pylist(), found["value"].to_pylist(), strict=True))
            known[figure] = own | known.get(figure, {})
        figures: list[Figure] = []
        columns: list[dict[str, float]] = []
        room = _MOST_FIGURES - len(longest)
        for figure, column in known.items():
            # what is the same everywhere, or the same as another, tells captures from one another no better
            differs = (len(set(column.values())) > 1 or len(column) == 1) and column not in columns
            if differs and (figure.kind == "ns" or len(figures) < room):
                figures.append(figure)
                columns.append(column)
        keys = ("capture", "path", "source", "chip", "device", "day", "problems")
        captures = _table(manifest, "captures", keys).sort_by([("day", "ascending"), ("path", "ascending")])
        rows = tuple(
            Row(path, " ".join(str(each) for each in (path, source, chip, device, day) if each is not None),
                day or "", device or "", problems or 0, tuple(column.get(capture) for column in columns))
            for capture, path, source, chip, device, day, problems in
            zip(*(captures[key].to_pylist()[:_MOST] for key in keys), strict=True)
        )  # fmt: skip
        return cls(tuple(figures), rows, captures.num_rows - len(rows))

    def shown(self, words: str = "", column: int = -1, *, down: bool = True) -> list[Row]:
        """The captures that hold all words, in the order of a figure; those that do not know it come last.

        Args:
            words: What to look for, in any case; empty: all pass.
            column: The figure; -1: by day and path.
            down: Largest (newest) first.
        """
        wanted = words.casefold().split()
        rows = [row for row in self.rows if all(word in row.words.casefold() for word in wanted)]
        if column < 0:
            return rows[::-1] if down else rows
        known = [row for row in rows if row.values[column] is not None]
        known.sort(key=lambda row: row.values[column] or 0.0, reverse=down)
        return [*known, *(row for row in rows if row.values[column] is None)]


def over_days(rows: Sequence[Row], column: int) -> list[float]:
    """The median of a figure on each day that has some, in the order of days."""
    days: dict[str, list[float]] = {}
    for row in rows:
        value = row.values[column]
        if value is not None and row.day:
            days.setdefault(row.day, []).append(value)
    return [statistics.median(days[day]) for day in sorted(days)]


def spark_line(values: Sequence[float], width: int, levels: str) -> str:
    """A line of ``width`` cells: each cell the level of the values there, from the least to the most.

    Args:
        values: In their order.
        width: Cells; fewer where there are fewer values.
        levels: Characters from nothing to full; the first, a blank, stands for no value.
    """
    if not values or width < 1:
        return ""
    least, most = min(values), max(values)
    span = (most - least) or 1.0
    return "".join(levels[1 + round((value - least) / span * (len(levels) - 2))] for value in _binned(values, width))


def _binned(values: Sequence[float], width: int) -> Iterator[float]:
    """Means of as many neighbours as give ``width`` of them."""
    count = min(width, len(values))
    for place in range(count):
        part = values[place * len(values) // count : (place + 1) * len(values) // count]
        yield sum(part) / len(part)


def _table(manifest: Manifest, table: str, columns: Sequence[str]) -> Any:
    """Columns of a table of a data set as plain Arrow columns, those that are folders too."""
    import pyarrow

    kinds = {field.name: {"text": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64()}[field.kind]
             for field in FIELDS[table]}  # fmt: skip
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in columns])
    return as_arrow(manifest, table).to_table(columns=list(columns)).cast(schema)
