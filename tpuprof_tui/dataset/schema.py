"""Schema of a data set: tables, columns, and partitions. Importing it needs neither numpy nor pyarrow."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui import __version__
from tpuprof_tui.errors import requires_package

#: Version of the tables: minor version for added columns, major version for changed or removed ones. Captures of other
#: versions are read again by the next build.
SCHEMA: Final = "1.0"
#: Partition columns (Hive folders), in the order of the folders.
FOLDERS: Final = ("source", "day", "device")
#: Hive's folder name for unknown values.
UNKNOWN: Final = "__HIVE_DEFAULT_PARTITION__"


class Field(Struct, frozen=True):
    """A column of the data set."""

    name: str  #: Name in query engines
    kind: str  #: ``text`` (dictionary-encoded), ``int`` (int64) or ``float`` (float64)
    help: str  #: One sentence


_CAPTURE: Final = Field("capture", "text", "Capture: hash of the content of its files and of the facts in its name.")
#: The columns of each table; events have additional ones of their source.
FIELDS: Final[dict[str, tuple[Field, ...]]] = {
    "captures": (
        _CAPTURE,
        Field("path", "text", "Its path when it was read."),
        Field("name", "text", "Its short name."),
        Field("chip", "text", "Chip, as named by the source."),
        Field("mode", "text", "How it was recorded."),
        Field("call", "int", "Call number in its name."),
        Field("changed_ns", "int", "Last change of its newest file, ns since 1970."),
        Field("epoch_ns", "int", "Origin of its time line, ns since 1970; null: its own start."),
        Field("duration_ns", "int", "From the first start to the last end; null without times."),
        Field("units", "int", "Units (cores, GPUs, NPUs)."),
        Field("lanes", "int", "Lanes with events."),
        Field("events", "int", "Events, as in the table events."),
        Field("problems", "int", "Problems, as in the table problems."),
        Field("errors", "int", "Problems that mean lost or unreadable data."),
        Field("bytes", "int", "Size of its files."),
        Field("tpuprof", "text", "Version of tpuprof that read it."),
    ),
    "events": (
        _CAPTURE,
        Field("lane", "int", "Place of the lane in the capture."),
        Field("engine", "text", "Kind of the lane."),
        Field("unit", "int", "Number of the unit it ran on."),
        Field("order", "int", "Place in the source's own order."),
        Field("start", "int", "Start on the capture's time line, ns."),
        Field("end", "int", "End on it, ns."),
        Field("duration", "int", "End minus start, ns."),
        Field("name", "text", "What ran."),
        Field("category", "text", "Family of what ran."),
        Field("activity", "text", "compute, transfer, communication or host."),
        Field("role", "text", "work, wait, sync or annotation."),
        Field("kernel", "text", "Kernel function whose launch issued it."),
        Field("step", "int", "Step it belongs to."),
        Field("scope", "int", "Launch it belongs to."),
        Field("bytes", "int", "Bytes moved."),
    ),
    "figures": (
        _CAPTURE,
        Field(
            "figure",
            "text",
            "kernel:NAME, operation:NAME, or VIEW.figure as report --json names them (of several ranks the largest); "
            "of the tables of units and lanes VIEW.ROW.column.",
        ),
        Field("kind", "text", "kernel, operation, or the view."),
        Field("name", "text", "What of that kind."),
        Field("value", "float", "The figure; of kernels and operations the sum of durations of their work, ns."),
        Field("count", "int", "Number of events summed; null for other figures."),
        Field("longest", "float", "The longest of these, ns; null for other figures."),
    ),
    "problems": (
        _CAPTURE,
        Field("path", "text", "The capture; also of those that could not be read, which are in no other table."),
        Field("severity", "text", "note, warning, error; fatal: nothing of the capture could be read."),
        Field("what", "text", "What happened."),
        Field("done", "text", "What was done about it."),
        Field("file", "text", "File inside the capture."),
        Field("offset", "int", "Byte offset in that file."),
        Field("unit", "int", "Number of the unit concerned."),
        Field("lane", "text", "Lane concerned."),
        Field("count", "int", "How many times it happened."),
        Field("lost", "int", "Number of records known to be lost."),
    ),
}


@lru_cache
def arrow_schema(table: str) -> Any:
    """Arrow schema of a table of `FIELDS`, with `origin` as metadata."""
    import pyarrow

    types = arrow_types()
    return pyarrow.schema([(each.name, types[each.kind]) for each in FIELDS[table]], metadata=origin(table))


def origin(table: str) -> dict[str, str]:
    """Metadata of all files of a table: its name, version of the schema, version of tpuprof."""
    return {"tpuprof.table": table, "tpuprof.schema": SCHEMA, "tpuprof.version": __version__}


def needs_pyarrow() -> None:
    """Checks that pyarrow is installed.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    with requires_package("A data set", "Or install all it needs: pip install 'tpuprof-tui[dataset]'."):
        import pyarrow  # noqa: F401


@lru_cache
def arrow_types() -> dict[str, Any]:
    """Arrow type of each kind of column."""
    import pyarrow

    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    return {"text": text, "int": pyarrow.int64(), "float": pyarrow.float64()}
