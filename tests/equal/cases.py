"""A profile with its selections and answers, for invariants: what is asked of the command line, each question once."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from contents import content
from recorder import Answers, single_selections, with_pairs

Record = dict[str, Any]


#: Tables with several rows about one thing, and the columns that tell which.
ONCE = {"modules.modules": ("name", "id")}


class Case:
    """A profile with its selections and answers; each is asked for once."""

    def __init__(self, answers: Answers, words: list[str], other: list[str] | None = None) -> None:
        answers.forget()
        self._answers, self.words, self.other = answers, words, other
        self._kept: dict[tuple[str, ...], Any] = {}
        self.singles = single_selections(answers, words)
        self.profile = answers.profile(words)
        self.selections = with_pairs(self.singles)

    def output(self, command: str, *options: str) -> bytes:
        """What a command prints."""
        status, told, body = self._answers.ask(command, *self.words, *options)
        assert status in (0, 1), f"{command} {options}: {status} {told}"
        return body

    def json(self, command: str, *options: str) -> Record:
        """The object that a command prints, kept."""
        key = (command, *options)
        if key not in self._kept:
            self._kept[key] = json.loads(self.output(command, *options, "--json"))
        return self._kept[key]

    def ask(self, *words: str) -> tuple[int | str, str, bytes]:
        """Status, messages and output of any command."""
        return self._answers.ask(*words)

    def page(self, *options: str) -> dict[tuple[str, ...], Any]:
        """What the web page of a selection holds, kept."""
        key = ("page", *options)
        if key not in self._kept:
            self._kept[key] = content("html", self.file("web", *options))
        return self._kept[key]

    def file(self, kind: str, *options: str) -> bytes:
        """The file that an export of one kind writes."""
        options = tuple("--cores" if word == "--core" else word for word in options)
        with tempfile.TemporaryDirectory() as folder:
            self.output("export", folder, "--only", kind, *options)
            return next(Path(folder).rglob({"xlsx": "*.xlsx", "web": "*.html"}[kind])).read_bytes()

    def data_set(self) -> dict[str, float]:
        """The figures of a data set of the profile."""
        import pyarrow.parquet as parquet

        with tempfile.TemporaryDirectory() as folder:
            assert self._answers.ask("dataset", "build", f"{folder}/data", self.words[0], "--jobs", "1")[0] in (0, 1)
            rows = [row for path in Path(folder, "data", "figures").rglob("*.parquet") for row in
                    parquet.ParquetFile(path).read().to_pylist()]  # fmt: skip
        return {row["figure"]: row["value"] for row in rows}

    def comparable_views(self) -> list[str]:
        """Views that a comparison has."""
        told = self._answers.ask("diff", self.words[0], *self.words, "no-such-view")[1]
        return told.rpartition("There are:")[2].strip().rstrip(".").split(", ")

    def report(self, *options: str) -> Report:
        """All views of a selection."""
        return Report(self.json("report", *options))

    @property
    def sessions(self) -> int:
        """Number of recordings with a time line of their own."""
        return len(self.profile.windows)

    @cached_property
    def whole(self) -> Report:
        """All views of the whole profile."""
        return self.report()

    @property
    def steps(self) -> int:
        """Number of steps."""
        return max((len(self.whole.table("steps", "steps", worker)) for worker in self.whole.views["steps"]), default=0)

    def asked(self) -> Iterator[tuple[str, Report]]:
        """The report of each selection, by its name."""
        for name, options in self.selections.items():
            yield name, self.report(*options)


class Report:
    """Access to a record of ``report --json``."""

    def __init__(self, record: Record) -> None:
        self.workers: dict[str, Record] = {worker["key"]: worker for worker in record["workers"]}
        self.views: dict[str, dict[str, Record]] = {
            view: found.get("workers", {"": found}) for view, found in record["views"].items()
        }

    def records(self) -> Iterator[tuple[str, str, Record]]:
        """View, worker ("": all together) and record."""
        for view, by_worker in self.views.items():
            for worker, record in by_worker.items():
                yield view, worker, record

    def record(self, view: str, worker: str) -> Record:
        """A record; an empty one if there is none."""
        return self.views.get(view, {}).get(worker, {"figures": {}, "tables": {}})

    def table(self, view: str, table: str, worker: str) -> list[Record]:
        """Rows of a table by key of the column; empty if there is none."""
        return rows_of(self.record(view, worker)["tables"].get(table))

    def sum(self, place: str, key: str) -> float | None:
        """Sum of a column over all rows and workers (or of a figure over the workers); None: there is none.

        Rows that are about one thing, as a module that several call, count once.
        """
        view, _, table = place.partition(".")
        values: list[float] = []
        known = False
        for record in self.views.get(view, {}).values():
            rows = rows_of(record["tables"].get(table)) if table else [record["figures"]]
            known |= any(column["key"] == key for column in record["tables"].get(table, {}).get("columns", ()))
            known |= not table and key in record["figures"]
            if place in ONCE:
                rows = [*{tuple(row[part] for part in ONCE[place]): row for row in rows}.values()]
            values += [row[key] for row in rows if row.get(key) is not None]
        return math.fsum(values) if known else None


def rows_of(table: Record | None) -> list[Record]:
    """Rows of a table's record by key of the column."""
    keys = [column["key"] for column in table["columns"]] if table else []
    return [dict(zip(keys, row, strict=True)) for row in table["rows"]] if table else []


def near(a: float | None, b: float | None, allowed: float = 0.0015) -> bool:
    """Whether two figures are one: us are exact to a ns."""
    return a is None or b is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=allowed)


def window_of(unit: Record) -> float:
    """Window of a row of units, us."""
    return unit["busy_us"] + unit["wait_us"] + unit["idle_us"]
