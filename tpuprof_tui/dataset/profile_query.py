"""Queries one profile with DuckDB: its events with the columns of a data set, and what else it holds, by Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import Links, Profile, is_missing
from tpuprof_tui.model.table import Table

from .query import Queried, connected, quoted
from .schema import Field, arrow_schema, needs_pyarrow
from .tables import event_batches, event_schema, figure_rows, problem_rows, rows_to_arrow

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]
#: Values of a column, and the texts that they are codes of; None: they are the values.
Columnar = tuple[Array, "Sequence[str] | None"]
NO_LINKS: Final = np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(0, np.int64)
#: Schema, of DuckDB, of the tables that the source recorded.
RECORDED: Final = "recorded"
#: Tables of a profile beside the recorded ones. Events have the columns of a data set's, and the number of the event.
FIELDS: Final[Mapping[str, tuple[Field, ...]]] = {
    "lanes": (
        Field("lane", "int", "Place of the lane, as in events."), Field("engine", "text", "Kind of the lane."),
        Field("label", "text", "Its name in its group."), Field("group", "text", "Its group."),
        Field("unit", "int", "Number of its unit."), Field("events", "int", "Events."),
    ),
    "counters": (
        Field("counter", "text", "What was measured."), Field("unit_of_value", "text", "Unit of the values."),
        Field("group", "text", "The group it was measured for."), Field("unit", "int", "Number of its unit."),
        Field("time", "int", "Time, ns."), Field("value", "float", "The value."),
    ),
    "steps": (
        Field("step", "int", "Number, as in events."), Field("label", "text", "Its label."),
        Field("group", "text", "The group that ran it."), Field("unit", "int", "Number of its unit."),
        Field("start", "int", "Start, ns."), Field("end", "int", "End, ns."),
    ),
    "links": (
        Field("kind", "text", "launch or another kind of link."), Field("from_event", "int", "Event that causes."),
        Field("to_event", "int", "Event that is caused."), Field("guessed", "int", "1: a guess, 0: recorded."),
    ),
}  # fmt: skip
#: Tables with the rows of a data set.
_SHARED: Final = ("events", "figures", "problems")


class ProfileTables(Queried):
    """The tables of a profile; events have only the columns whose names are in the SQL, all if it has a ``*``."""

    names = (*_SHARED, *FIELDS)
    hint = "tpuprof query PATH --schema names tables and columns."

    def __init__(self, connection: Any, profile: Profile) -> None:
        super().__init__(connection)
        self._query = query_of(profile)
        self._profile = self._query.profile
        self._made: set[str] = set()
        self.recorded: dict[str, list[Table]] = {}
        for table in profile.tables:
            self.recorded.setdefault(table.name, []).append(table)

    def make_views(self, sql: str = "") -> bool:
        """Makes the tables that a query names, events with its columns; without a query all of all."""
        words = set(re.findall(r"\w+", sql.lower()))
        # count(*) needs no column
        every = "select" not in words or "columns" in words or "*" in re.sub(r"(?i)count\s*\(\s*\*\s*\)", "", sql)
        known = {*self.names, *self.recorded}
        due = {name for name in known if not sql or name.lower() in words} - self._made
        for name in sorted(due):
            if name in self.names:
                self.connection.register(name, self.arrow(name, None if every else words))
            if name in self.recorded:
                self.connection.register(f"{RECORDED} {name}", self.recorded_arrow(name))
                self.connection.execute(f"create schema if not exists {RECORDED}")
                source = quoted(f"{RECORDED} {name}")
                self.connection.execute(f"create view {RECORDED}.{quoted(name)} as from {source}")
        self._made |= due if every else due - {"events"}
        return bool(due)

    def arrow(self, name: str, columns: set[str] | None = None) -> Any:
        """A table as Arrow; of events only the named columns, or if there are none one of them."""
        import pyarrow

        if name == "events":
            count = self._profile.event_count
            chosen = None if columns is None else columns | {"lane"}
            batches = event_batches(self._profile, self._profile.name, chosen)
            table = batches.read_all()
            return table.append_column("event", pyarrow.array(np.arange(count)))
        if name == "figures":
            return rows_to_arrow(name, [{"capture": self._profile.name, **row} for row in figure_rows(self._query)])
        if name == "problems":
            about = {"capture": self._profile.name, "path": str(self._profile.path)}
            return rows_to_arrow(name, [{**about, **row} for row in problem_rows(self._profile)])
        found: Mapping[str, Columnar] = getattr(self, f"_{name}")()
        return pyarrow.table({field.name: _column(*found[field.name]) for field in FIELDS[name]})

    def schema(self) -> dict[str, list[tuple[str, str]]]:
        """Names and DuckDB types of the columns of each table; computes no event."""
        known = {"events": event_schema(self._profile), "figures": arrow_schema("figures"),
                 "problems": arrow_schema("problems")}  # fmt: skip
        types = {"int64": "BIGINT", "double": "DOUBLE"}
        found = {name: [(field.name, types.get(str(field.type), "VARCHAR")) for field in fields]
                 for name, fields in known.items()}  # fmt: skip
        found["events"].append(("event", "BIGINT"))
        kinds = {"text": "VARCHAR", "int": "BIGINT", "float": "DOUBLE"}
        found |= {name: [(field.name, kinds[field.kind]) for field in fields] for name, fields in FIELDS.items()}
        for name in self.recorded:
            table = self.recorded_arrow(name)
            found[f"{RECORDED}.{name}"] = [
                (field.name, types.get(str(field.type), "VARCHAR")) for field in table.schema
            ]
        return found

    def recorded_arrow(self, name: str) -> Any:
        """The recorded tables of a name, of all groups, as one with the column ``group``."""
        import pyarrow

        parts = []
        for table in self.recorded[name]:
            columns = {key: _column(table[key], table.texts.get(key)) for key in table.keys()}  # noqa: SIM118
            group = self._profile.groups.title(table.group) if table.group >= 0 else None
            parts.append(pyarrow.table({"group": pyarrow.array([group] * len(table), pyarrow.string()), **columns}))
        return pyarrow.concat_tables(parts, promote_options="permissive")

    def _place(self, groups: Sequence[int] | I64) -> dict[str, Columnar]:
        """The columns ``group`` and ``unit`` of ids of groups; -1: none."""
        known = self._profile.groups
        ids = np.asarray(groups, np.int64)
        return {"group": (ids, list(map(known.title, range(len(known))))), "unit": (known.unit_numbers(ids), None)}

    def _lanes(self) -> dict[str, Columnar]:
        lanes = self._profile.lanes
        places = np.arange(len(lanes))
        return {"lane": (places, None), "engine": (places, [lane.kind for lane in lanes]),
                "label": (places, [lane.label for lane in lanes]),
                "events": (np.array([len(lane) for lane in lanes], np.int64), None),
                **self._place([lane.group for lane in lanes])}  # fmt: skip

    def _counters(self) -> dict[str, Columnar]:
        counters = self._profile.counters
        places = np.repeat(np.arange(len(counters)), [len(counter) for counter in counters])
        none = np.zeros(0, np.int64)
        return {"counter": (places, [counter.name for counter in counters]),
                "unit_of_value": (places, [counter.unit for counter in counters]),
                "time": (np.concatenate([none, *(counter.times for counter in counters)]), None),
                "value": (np.concatenate([none * 1.0, *(counter.values for counter in counters)]), None),
                **self._place(np.array([counter.group for counter in counters], np.int64)[places])}  # fmt: skip

    def _steps(self) -> dict[str, Columnar]:
        steps = self._query.steps.steps
        return {"step": (steps.number, None), "label": (steps.label, list(steps.labels)), "start": (steps.start, None),
                "end": (steps.end, None), **self._place(steps.group.astype(np.int64))}  # fmt: skip

    def _links(self) -> dict[str, Columnar]:
        links = self._profile.links() if self._profile.links is not None else Links((), *NO_LINKS)
        return {"kind": (links.kind, list(links.kinds)), "from_event": (links.from_row, None),
                "to_event": (links.to_row, None),
                "guessed": (np.isin(links.kind, list(links.guessed)).astype(np.int64), None)}  # fmt: skip


@contextmanager
def opened(profile: Profile, memory: int) -> Iterator[ProfileTables]:
    """Opens a profile in DuckDB, which reads and writes no file and takes at most ``memory`` bytes.

    Raises:
        MissingPackageError: DuckDB or pyarrow is not installed.
    """
    needs_pyarrow()
    with connected("Querying a profile", memory=memory) as connection:
        yield ProfileTables(connection, profile)


def _column(values: Array, texts: Sequence[str] | None) -> Any:
    """An Arrow array of values, or of the texts that they are codes of; missing ones are null."""
    import pyarrow

    missing = is_missing(values) if values.dtype != np.bool_ else np.zeros(len(values), np.bool_)
    if texts is None:
        return pyarrow.array(values if values.dtype.kind in "fb" else values.astype(np.int64, copy=False), mask=missing)
    codes = pyarrow.array(values.astype(np.int32), mask=missing | (values < 0))
    return pyarrow.DictionaryArray.from_arrays(
        codes, pyarrow.array([utf8_text(text) for text in texts], pyarrow.string())
    )
