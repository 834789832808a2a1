"""Tables of a rank (`records`): what its files hold beside events: statistics, memory, steps, communication.

`CSV` declares which columns of which csv files are which. Times are ns, those of day since 1970; missing
numbers are NaN or ``INT_MISSING``, missing texts -1. Times of communication are rounded to a picosecond, as further
digits are the exporter's float noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from tpuprof_tui.formats.decimals import reals, wholes
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import INT_MISSING, Column
from tpuprof_tui.model.lane import Rows
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table, TableColumns

from ..records import ASYNC_NPU, HOST_TO_DEVICE, KERNEL_TEXTS, METRICS, OTHER, OTHERS, STEP_COLUMNS, STEP_KEYS
from .csv_table import DEVICES, CellType, CsvTable, Texts, texts_of
from .database import Database, memory_columns
from .files import Files, rounded_times
from .kernels import Details, Kernels, no_texts
from .steps import device_steps, host_steps
from .timeline import Timeline

if TYPE_CHECKING:
    from .rank import Rank

I64 = npt.NDArray[np.int64]
KERNEL_TABLES: Final = ("kernel_details.csv", "op_summary.csv")
DATABASES: Final = ("ascend_pytorch_profiler.db", "ascend_mindspore_profiler.db", "msprof.db")
ANALYSIS: Final = "analysis.db"
CLUSTER_STEPS: Final = "cluster_step_trace_time.csv"


class CsvFile(Struct, frozen=True):
    """A csv file whose rows are a table."""

    role: str
    needs: tuple[str, ...]  #: Keys of the columns without which it is none
    #: By key: kind and possible titles. Kinds: ``text``, ``number``, ``MB`` (KB if titled so), ``time`` (us),
    #: ``moment`` (us, a time of day), ``ns``, ``exact`` (us, fractions of ns are kept).
    columns: Mapping[str, tuple[str, ...]]
    keeps_others: bool = True  #: Whether columns of other titles are kept, as texts under `OTHER` and their title


_STEP_TIMES: Final[dict[str, tuple[str, ...]]] = {key: ("exact", title) for title, _, key in STEP_COLUMNS}
_OPERATOR_TIMES: Final[dict[str, tuple[str, ...]]] = {
    f"{side}_{what}{key}": ("time", f"{side.capitalize()} {what.capitalize()} Duration{title}(us)")
    for side, kinds in (("host", ("",)), ("device", ("", "_aicore"))) for what in ("self", "total")
    for key in kinds for title in (" With AICore" if key else "",)
}  # fmt: skip
CSV: Final = {
    "statistic": CsvFile("op_statistic.csv", ("type", "total", "count"), {
        "type": ("text", "OP Type", "Op Type"), "core": ("text", "Core Type"), "count": ("number", "Count"),
        "total": ("time", "Total Time(us)"), "least": ("time", "Min Time(us)"), "mean": ("time", "Avg Time(us)"),
        "most": ("time", "Max Time(us)")}),
    "operators": CsvFile("operator_details.csv", ("name",), {
        "name": ("text", "Name"), "shapes": ("text", "Input Shapes"), **_OPERATOR_TIMES}, keeps_others=False),
    "apis": CsvFile("api_statistic.csv", ("name", "total"), {
        "level": ("text", "Level"), "name": ("text", "API Name", "Name"), "total": ("time", "Time(us)"),
        "count": ("number", "Count"), "mean": ("time", "Avg(us)"), "least": ("time", "Min(us)"),
        "most": ("time", "Max(us)"), "variance": ("number", "Variance")}),
    # CANN 5 to 6.3
    "acl": CsvFile("acl_statistic.csv", ("name",), {
        "name": ("text", "Name"), "count": ("number", "Count"), "total": ("time", "Time(us)"),
        "mean": ("time", "Avg(us)"), "least": ("time", "Min(us)"), "most": ("time", "Max(us)")}, keeps_others=False),
    "runtime": CsvFile("runtime_api.csv", ("name",), {
        "name": ("text", "Name"), "count": ("number", "Calls"), "total": ("ns", "Time(ns)"), "mean": ("ns", "Avg(ns)"),
        "least": ("ns", "Min(ns)"), "most": ("ns", "Max(ns)")}, keeps_others=False),
    "memory": CsvFile("memory_record.csv", ("component",), {
        "component": ("text", "Component"), "time": ("moment", "Timestamp(us)"),
        "allocated": ("MB", "Total Allocated(MB)", "Total Allocated(KB)"),
        "reserved": ("MB", "Total Reserved(MB)", "Total Reserved(KB)"), "active": ("MB", "Total Active(MB)"),
        "device": ("text", "Device Type", "Device")}),
    "allocations": CsvFile("operator_memory.csv", ("name", "size"), {
        "name": ("text", "Name"), "size": ("number", "Size(KB)"), "allocated": ("moment", "Allocation Time(us)"),
        "released": ("moment", "Release Time(us)"), "duration": ("time", "Duration(us)")}),
    "modules": CsvFile("npu_module_mem.csv", ("component", "reserved"), {
        "component": ("text", "Component"), "reserved": ("MB", "Total Reserved(MB)", "Total Reserved(KB)"),
        "time": ("moment", "Timestamp(us)")}, keeps_others=False),
    "recorded_steps": CsvFile("step_trace_time.csv", ("computing_us",), {
        "label": ("text", "Step"), **_STEP_TIMES}, keeps_others=False),
    "iterations": CsvFile("step_trace.csv", ("number", "end"), {
        "number": ("text", "Iteration ID"), "model": ("text", "Model ID"),
        "begin": ("time", "FP Start(us)", "FP Start"),
        "end": ("time", "Iteration End(us)", "Iteration End"), "length": ("time", "Iteration Time(us)")}),
    "cluster_steps": CsvFile(CLUSTER_STEPS, (), {
        "kind": ("text", "Type"), "index": ("text", "Index"), "step": ("text", "Step"), **_STEP_TIMES},
        keeps_others=False),
}  # fmt: skip
#: What `CsvTable` reads for a kind that it does not know.
_READ_AS: Final[dict[str, CellType]] = {"moment": "time", "MB": "number", "ns": "number", "exact": "text"}
#: Known columns that no view uses.
_UNUSED: Final = frozenset((
    *DEVICES, "Ratio(%)", "Time(%)", "Call Stack", "Model Name", "Stream Ptr", "Active Release Time(us)",
    "Active Duration(us)",
    *(f"{when} Total {what}({unit})" for when in ("Allocation", "Release")
      for what in ("Allocated", "Reserved", "Active") for unit in ("MB", "KB")),
))  # fmt: skip
#: Tables of communication: types of their columns by key.
_OPERATOR: Final = {"step": str, "kind": str, "op": str}
_TIME_KEYS: Final = ("elapse", "transit", "wait", "synchronization", "idle")
_LINK: Final = {"size_mb": float, "transit": float, "bandwidth": float}
COMMUNICATION: Final[dict[str, dict[str, type]]] = {
    "operations": {**_OPERATOR, "rank": str, "start": int, **dict.fromkeys(_TIME_KEYS, float),
                   "wait_ratio": float, "synchronization_ratio": float},
    "transfers": {**_OPERATOR, "rank": str, "link": str, **_LINK, "large_packets": float},
    "packets": {**_OPERATOR, "link": str, "packet_mb": float, "count": float, "total": float},
    "pairs": {**_OPERATOR, "src": str, "dst": str, "link": str, **_LINK, "op_name": str},
}  # fmt: skip
#: Prefixes of table names: databases of a rank, of a cluster, and of a cluster with simplified tables.
_PREFIXES: Final = ("CommAnalyzer", "ClusterCommAnalyzer", "ClusterCommunication")
_OF: Final = ("step", "type", "rank_set", "hccl_op_name", "group_name")
_PICO: Final = Decimal("0.001")
_MEGA: Final = 1 << 20


class Records(Struct, frozen=True, eq=False):
    """Rows of a file: its name, and columns of one length by key, arrays or texts."""

    file: str
    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def of_rows(types: Mapping[str, type], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Columns of rows of plain values, by key and type; None: missing."""
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    convert: dict[type, Any] = {str: texts_of, int: wholes, float: reals}
    return {key: convert[kind](values) for (key, kind), values in zip(types.items(), columns, strict=True)}


def records_of(files: Files, timeline: Timeline) -> dict[str, Records]:
    """All tables of a rank, by name (`records`)."""
    found = {name: of_csv(files, name) for name in ("statistic", "operators", "apis", "memory", "allocations",
                                                    "modules", "recorded_steps")}  # fmt: skip
    database, analysis = files.database(*DATABASES), files.database(ANALYSIS)
    if found["memory"] is None:
        found["memory"] = _memory(database) if "MEMORY_RECORD" in database.tables else _memory_counters(timeline)
    if found["allocations"] is None and "OP_MEMORY" in database.tables:
        name, size, *times = database.columns("OP_MEMORY", "name", "size", "allocationTime", "releaseTime", "duration")
        begin, end, duration = map(wholes, times)
        columns = {"name": database.texts(name), "size": reals(size) / 1024}
        found["allocations"] = Records(
            database.name, {**columns, "allocated": begin, "released": end, "duration": duration}
        )
    if found["modules"] is None and "NPU_MODULE_MEM" in database.tables:
        component, reserved, time = database.columns("NPU_MODULE_MEM", "moduleId", "totalReserved", "timestampNs")
        names = dict(database.rows("ENUM_MODULE", "id", "name"))
        found["modules"] = Records(database.name, {
            "component": texts_of([str(names.get(each, each)) for each in component]),
            "reserved": reals(reserved) / _MEGA, "time": wholes(time)})  # fmt: skip
    if found["recorded_steps"] is None and "StepTraceTime" in analysis.tables:
        found["recorded_steps"] = _steps_of_database(analysis, "StepTraceTime", label="step")
    found |= _communication_of_json(files, "communication.json", "communication_matrix.json", of_cluster=False) or (
        _communication_of_database(analysis))  # fmt: skip
    found["apis"] = _old_apis(files) if found["apis"] is None else found["apis"]
    _check_allocations(files, found["allocations"])
    return {name: records for name, records in found.items() if records is not None}


def cluster_records(files: Files) -> dict[str, Records]:
    """The tables of msprof-analyze's files about all ranks, which are without ``step`` and ``kind`` of their own."""
    steps = of_csv(files, "cluster_steps") if CLUSTER_STEPS in files.paths.exports else None
    found = _communication_of_json(
        files, "cluster_communication.json", "cluster_communication_matrix.json", of_cluster=True
    )
    if steps is None or not found:
        database = files.database("cluster_analysis.db")
        if steps is None:
            steps = _steps_of_database(database, "ClusterStepTraceTime", kind="type", index="index", step="step")
        found = found or _communication_of_database(database)
    if not len(steps):
        return found
    for key, text in (("kind", "rank"), ("index", "")):
        column: Texts = steps.columns[key]
        codes = np.where(column.codes < 0, len(column.texts), column.codes).astype(np.int32)
        steps.columns[key] = Texts(codes, (*column.texts, text))
    return {"cluster_steps": steps, **found}


# -- csv files


def of_csv(files: Files, name: str) -> Records | None:
    """Rows of a file of `CSV`; None if it is absent or (told) lacks a column. Other absent columns are missing."""
    spec = CSV[name]
    table = files.table(spec.role)
    if table is None:
        return None
    titles = {key: table.first(*names) for key, (_, *names) in spec.columns.items()}
    absent = [" or ".join(spec.columns[key][1:]) for key in spec.needs if not titles[key]]
    if absent:
        files.warn(f"There is no column {', '.join(absent)}.", "The table is not used.", table.name)
        return None
    known = _known_titles(spec)
    others: list[str] = [title for title in table.columns if title not in known] if spec.keeps_others else []
    kinds = {key: kind for key, (kind, *_) in spec.columns.items()}
    read = table.read({title: _READ_AS.get(kinds[key], kinds[key]) for key, title in titles.items() if title}
                      | dict.fromkeys(others, "text"))  # type: ignore[arg-type]  # fmt: skip
    columns = {key: _converted(kinds[key], title, read.get(title), table.rows) for key, title in titles.items()}
    moment = next((key for key, title in titles.items() if title and kinds[key] == "moment"), "")
    if moment:
        rounded_times(table, columns[moment], titles[moment])
    if name == "allocations" and not titles["released"]:
        # msprof writes the duration alone
        begin, duration = columns["allocated"], columns["duration"]
        known_end = (begin != INT_MISSING) & (duration != INT_MISSING)
        columns["released"] = np.where(known_end, begin + np.where(known_end, duration, 0), INT_MISSING)
    return Records(table.name, columns | {OTHER + title: read[title] for title in others})


def _known_titles(spec: CsvFile) -> frozenset[str]:
    return _UNUSED.union(*(titles for _, *titles in spec.columns.values()))


def holds_all(spec: CsvFile, titles: Iterable[str]) -> bool:
    """Whether a table of a file has all of its columns."""
    return spec.keeps_others or _known_titles(spec).issuperset(titles)


def _converted(kind: str, title: str, values: Any, count: int) -> Any:
    if values is None:
        if kind == "text":
            return no_texts(count)
        return np.full(count, np.nan if kind in ("number", "MB", "exact") else INT_MISSING)
    if kind == "exact":
        return reals(_ns_of(values.values()))
    if kind == "ns":
        return np.where(np.isnan(values), INT_MISSING, np.rint(np.nan_to_num(values)).astype(np.int64))
    return values / 1024 if kind == "MB" and "(KB)" in title else values


def _old_apis(files: Files) -> Records | None:
    """Calls as CANN 5 to 6.3 count them, in a file for each level."""
    found = [(level, records) for level in ("acl", "runtime") if (records := of_csv(files, level)) is not None]
    if not found:
        return None
    columns: dict[str, Any] = {"level": texts_of([level for level, records in found for _ in range(len(records))])}
    columns["name"] = texts_of([text for _, records in found for text in records.columns["name"].values()])
    for key in ("count", "total", "mean", "least", "most"):
        columns[key] = np.concatenate([records.columns[key] for _, records in found])
    return Records(found[0][1].file, columns | {"variance": np.full(len(columns["level"]), np.nan)})


def _check_allocations(files: Files, found: Records | None) -> None:
    if found is None:
        return
    size, begin, end = (found.columns[key] for key in ("size", "allocated", "released"))
    odd = int((size < 0).sum() + ((end != INT_MISSING) & (begin != INT_MISSING) & (end < begin)).sum())
    if odd:
        files.warn("Allocations of negative size, or released too early.", "They are shown as written by the exporter.",
                   found.file, count=odd)  # fmt: skip


# -- databases and counters


def _steps_of_database(database: Database, table: str, **names: str) -> Records:
    """Steps of a table: text columns by key and name, and the times of steps."""
    rows = [(*(None if text in (None, "") else str(text) for text in row[: len(names)]), *_ns_of(row[len(names) :]))
            for row in database.rows(table, *names.values(), *(name for _, name, _ in STEP_COLUMNS))]  # fmt: skip
    return Records(database.name, of_rows({**dict.fromkeys(names, str), **dict.fromkeys(STEP_KEYS, float)}, rows))


def _memory(database: Database) -> Records:
    """Memory over time from MEMORY_RECORD, and from the process (app) rows of NPU_MEM."""
    names = ("component", "timestamp", "totalAllocated", "totalReserved", "totalActive", "deviceId")
    component, time, allocated, reserved, active, device = database.columns("MEMORY_RECORD", *names)
    parts = memory_columns(database)
    rows = [row for row in database.rows("NPU_MEM", "type", "timestampNs", "deviceId", *parts)
            if database.strings.get(row[0], "").lower() == "app"]  # fmt: skip
    used = sum((reals([row[3 + index] for row in rows]) for index in range(len(parts))), np.zeros(len(rows)))
    more = [np.nan] * len(rows)
    return Records(database.name, {
        "component": texts_of([database.strings.get(each, "") for each in component] + ["APP"] * len(rows)),
        "time": wholes([*time, *(row[1] for row in rows)]), "allocated": reals([*allocated, *more]) / _MEGA,
        "reserved": np.append(reals(reserved), used) / _MEGA, "active": reals([*active, *more]) / _MEGA,
        "device": texts_of([f"NPU:{each}" for each in [*device, *(row[2] for row in rows)]]),
    })  # fmt: skip


def _memory_counters(timeline: Timeline) -> Records | None:
    counters = [counter for counter in timeline.counters if counter.process == "NPU MEM"]
    if not counters:
        return None
    codes = np.repeat(np.arange(len(counters), dtype=np.int32), [len(counter.times) for counter in counters])
    values = np.concatenate([counter.values / (1024 if counter.unit == "KB" else 1) for counter in counters])
    nothing = np.full(len(values), np.nan)
    return Records(timeline.file, {
        "component": Texts(codes, tuple(counter.name for counter in counters)),
        "time": np.concatenate([counter.times for counter in counters]), "reserved": values, "allocated": nothing,
        "active": nothing, "device": no_texts(len(values)),
    })  # fmt: skip


# -- communication


def _communication_of_json(files: Files, role: str, matrix_role: str, *, of_cluster: bool) -> dict[str, Records]:
    """Tables of ``communication.json`` and its matrix; of a cluster ``kind`` is the group of ranks."""
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("operations", "transfers", "packets")}
    operators, matrix = files.json(role), files.json(matrix_role)
    for of, record in _entries(operators[1], of_cluster=of_cluster) if operators is not None else ():
        for rank, of_rank in _objects(record) if of_cluster else (("", record),):
            _add_operator(rows, of, rank, of_rank)
    if matrix is not None:
        rows["pairs"] = [
            (*of, *pair.partition("-")[::2], _text(each.get("Transport Type")), _float(each.get("Transit Size(MB)")),
             _ns(each.get("Transit Time(ms)")), _float(each.get("Bandwidth(GB/s)")), _text(each.get("Op Name")))
            for of, record in _entries(matrix[1], of_cluster=of_cluster) for pair, each in _objects(record)
            if isinstance(each, Mapping)
        ]  # fmt: skip
    first = operators or matrix
    return {} if first is None else _tables(first[0], rows)


def _tables(file: str, rows: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, Records]:
    return {name: Records(file, of_rows(COMMUNICATION[name], of_table)) for name, of_table in rows.items()}


def _entries(value: Any, *, of_cluster: bool) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Values three levels deep in nested objects, with step, kind and operator; kind is first in files of a cluster."""
    for outer_key, inner in _objects(value):
        for inner_key, operations in _objects(inner):
            step, kind = (inner_key, outer_key) if of_cluster else (outer_key, inner_key)
            for op, record in _objects(operations):
                yield (step, kind, op), record


def _add_operator(rows: dict[str, list[tuple[Any, ...]]], of: tuple[str, str, str], rank: str, record: Any) -> None:
    """Adds an operator (``of``: step, kind, operator) of a rank: its times, and what went over each link."""
    times, links = (record.get(f"Communication {what} Info") if isinstance(record, Mapping) else None
                    for what in ("Time", "Bandwidth"))  # fmt: skip
    if isinstance(times, Mapping):
        parts = (_ns(times.get(f"{key.capitalize()} Time(ms)")) for key in _TIME_KEYS)
        ratios = (_float(times.get(f"{key} Time Ratio")) for key in ("Wait", "Synchronization"))
        rows["operations"].append((*of, rank, _start(times.get("Start Timestamp(us)")), *parts, *ratios))
    for link, bandwidth in _objects(links):
        size = _float(bandwidth.get("Transit Size(MB)")) if isinstance(bandwidth, Mapping) else None
        if not size:
            continue
        speed, large = (_float(bandwidth.get(key)) for key in ("Bandwidth(GB/s)", "Large Packet Ratio"))
        rows["transfers"].append((*of, rank, link, size, _ns(bandwidth.get("Transit Time(ms)")), speed, large))
        for packet, pair in _objects(bandwidth.get("Size Distribution")):
            mega = _float(packet)
            if isinstance(pair, list) and len(pair) == 2 and mega is not None:
                rows["packets"].append((*of, link, mega, _float(pair[0]) or 0, _ns(pair[1])))


def _communication_of_database(database: Database) -> dict[str, Records]:
    """The CommAnalyzer* tables of ``analysis.db``, or those of a cluster; empty if there are none.

    Ratios are computed, as databases have none. For a cluster, ``kind`` is the group of ranks.
    """
    prefix = next((each for each in _PREFIXES if f"{each}Time" in database.tables), "")
    if not prefix:
        return {}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("operations", "transfers", "packets")}
    groups = {group: "p2p" if kind == "p2p" else ranks for group, kind, ranks in database.rows(
        "CommunicationGroupMapping", "group_name", "type", "rank_set")}  # fmt: skip

    def of(step: Any, kind: Any, ranks: Any, op: Any, group: Any) -> tuple[str, str, str]:
        return str(step), str(kind or ranks or groups.get(group, group)), utf8_text(f"{op}@{group}")

    for row in database.rows(
        f"{prefix}Time", *_OF, "rank_id", "start_timestamp", "elapsed_time", *(f"{key}_time" for key in _TIME_KEYS)
    ):  # fmt: skip
        operator, (rank_id, start, elapsed, elapse, *others) = row[: len(_OF)], row[len(_OF) :]
        spent = [_ns(part) for part in (elapsed if elapse is None else elapse, *others)]
        ratios = (_ratio(part, spent[1]) for part in spent[2:4])
        rows["operations"].append(
            (*of(*operator), "" if rank_id is None else str(rank_id), _start(start), *spent, *ratios)
        )
    read_links = set()
    for *op, rank, link, band, size, transit, bandwidth, large, packet, count, total in database.rows(
        f"{prefix}Bandwidth", *_OF, "rank_id", "transport_type", "band_type", "transit_size", "transit_time",
        "bandwidth", "large_packet_ratio", "package_size", "count", "total_duration",
    ):  # fmt: skip
        key = (*of(*op), "" if rank is None else str(rank), str(link or band))
        size_mb, packets = _float(size), _float(count)
        if size_mb and key not in read_links:
            read_links.add(key)
            rows["transfers"].append((*key, size_mb, _ns(transit), _float(bandwidth), _float(large)))
        if packets:
            rows["packets"].append((*key[:3], key[4], _float(packet) or 0.0, packets, _ns(total)))
    if f"{prefix}Matrix" in database.tables:
        rows["pairs"] = [
            (*of(*op), str(src), str(dst), _text(link), _float(size), _ns(transit), _float(speed), _text(name))
            for *op, src, dst, link, size, transit, speed, name in database.rows(
                f"{prefix}Matrix", *_OF, "src_rank", "dst_rank", "transport_type", "transit_size", "transit_time",
                "bandwidth", "op_name")
        ]  # fmt: skip
    return _tables(database.name, rows)


def _ratio(part: float | None, transit: float | None) -> float | None:
    """The share of a wait in wait + transit, to four decimals as in the files; 0 if both are 0."""
    if part is None or transit is None:
        return None
    return round(part / (part + transit), 4) if part + transit else 0.0


def _objects(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield utf8_text(str(key)), each


# -- values


def number(value: Any) -> Decimal | None:
    """A number from a file or database as a decimal; None if it is no finite number."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = value if isinstance(value, Decimal) else Decimal(str(value).strip()[:64])
    except InvalidOperation:
        return None
    return found if found.is_finite() and abs(found.adjusted()) < 30 else None


def _ns(value: Any) -> float | None:
    """Converts ms to ns."""
    found = number(value)
    return None if found is None else float((found * 1_000_000).quantize(_PICO) if abs(found) < 10**12 else found)


def _ns_of(values: Sequence[Any]) -> list[float | None]:
    found = map(number, values)
    return [None if us is None else float(us * 1000) for us in found]


def _start(value: Any) -> int | None:
    found = number(value)
    return None if found is None else int(found * 1000)


def _float(value: Any) -> float | None:
    found = number(value)
    return None if found is None else float(found)


def _text(value: Any) -> str | None:
    return utf8_text(value) if isinstance(value, str) and value else None


# -- as tables of the profile

#: Columns of records that are times of day, the first of which tells the host's step.
_MOMENTS: Final = {"memory": ("time",), "modules": ("time",), "allocations": ("allocated", "released"),
                   "operations": ("start",)}  # fmt: skip


def _on_line(times: I64, zero: int) -> I64:
    """Times since 1970 on a time line with that zero; missing ones stay missing."""
    return np.where(times == INT_MISSING, INT_MISSING, times - zero)


def tables_of(rank: Rank, group: int, zero: int, first: int, events: I64) -> Iterator[Table]:
    """The tables of a rank.

    Args:
        rank: Its files.
        group: Id of its group.
        zero: Reading of its clock at the zero of the profile's time line, ns.
        first: Number of the first of its events in the profile.
        events: Number of the event of each kernel in the profile; -1: none.
    """
    if rank.kernels.file:
        yield _kernels(rank, rank.kernels, group, zero, events)
    for name, records in rank.records.items():
        yield table_of(name, group, records, rank, zero)
    yield Table("steps", group, rank.steps_file, lambda: _steps(rank, zero))
    if len(rank.timeline):
        yield Table("launches", group, rank.timeline.file, lambda: _launches(rank, zero, first))
    specs, held = {spec.role: spec for spec in CSV.values()}, {records.file for records in rank.records.values()}
    for role, file in rank.files.tables():
        if role not in KERNEL_TABLES and not (file.name in held and holds_all(specs[role], file.columns)):
            yield _file(role, file, group)


def table_of(name: str, group: int, records: Records, rank: Rank | None = None, zero: int = 0) -> Table:
    """A table of records; ``rank``: None if they have no times of day."""
    columns = records.columns
    arrays: dict[str, Any] = {key: column.codes if isinstance(column, Texts) else column
                              for key, column in columns.items()}  # fmt: skip
    texts = {key: column.texts for key, column in columns.items() if isinstance(column, Texts)}
    for number, key in enumerate(_MOMENTS.get(name, ()) if rank is not None else ()):
        recorded = arrays[key]
        if number == 0 and rank is not None and name != "operations":
            arrays["step_number"] = lambda rows, of=rank, times=recorded: host_steps(of.steps, times[rows])
        arrays[key] = _on_line(recorded, zero)
    schema = tuple(Column(key, key.removeprefix(OTHER), kind="text", group=OTHERS)
                   for key in columns if key.startswith(OTHER))  # fmt: skip
    return Table(name, group, records.file, lambda: (arrays, texts), schema)


# -- of the timeline and the kernels


def _steps(rank: Rank, zero: int) -> TableColumns:
    types = {"label": str, "number": int, "low": int, "high": int, "start": int, "end": int, "known": int}
    columns = of_rows(types, [astuple(step)[: len(types)] for step in rank.steps])
    times = {key: _on_line(columns[key], zero) for key in ("low", "high", "start", "end")}
    label, computed = columns["label"], np.full(len(rank.steps), rank.steps_are_computed)
    return {**columns, **times, "label": label.codes, "computed": computed}, {"label": label.texts}


def _launches(rank: Rank, zero: int, first: int) -> TableColumns:
    flows = rank.timeline.flows
    links = np.sort(np.concatenate([flows.of(ASYNC_NPU), flows.of(HOST_TO_DEVICE)]))
    starts, callers, tasks = flows.to_time[links], flows.from_row[links], flows.to_row[links]
    return {
        "category": flows.category[links].astype(np.int32), "called": _on_line(flows.from_time[links], zero),
        "start": _on_line(starts, zero), "step_number": lambda rows: device_steps(rank.steps, starts[rows]),
        "caller_event": np.where(callers >= 0, callers + first, -1), "event": np.where(tasks >= 0, tasks + first, -1),
    }, {"category": flows.categories}  # fmt: skip


def _kernels(rank: Rank, kernels: Kernels, group: int, zero: int, events: I64) -> Table:
    details = kernels.details
    # a key of its own for columns of the file, whose names could be those of ours
    unknown = {OTHER + key: key for key in details.texts if key not in ("step", "blocks", *KERNEL_TEXTS)}

    def of_rows(take: Callable[[I64], Any]) -> Callable[[Rows], Any]:
        return lambda rows: take(np.arange(len(kernels))[rows])

    def read() -> TableColumns:
        held = {"name": kernels.name, "type": kernels.type, "core": kernels.core,
                **{key: details.whole(key) for key in ("step", "blocks")}}  # fmt: skip
        texts: dict[str, Any] = {key: column.texts for key, column in held.items()} | {"bound": details.pipes}
        columns: dict[str, Any] = {
            **{key: column.codes for key, column in held.items()}, "start": _on_line(kernels.start, zero),
            "end": _on_line(kernels.end, zero), "duration": kernels.duration, "wait": kernels.wait,
            "timed": kernels.timed, "communicates": kernels.communicates, "event": events,
            "step_number": lambda rows: device_steps(rank.steps, kernels.start[rows]),
            "bound": of_rows(lambda rows: details.bound(rows, together=True)[0]),
            "bound_ratio": of_rows(lambda rows: details.bound(rows, together=True)[1]),
        }  # fmt: skip
        for key, name in ({key: key for key in details.texts if key in KERNEL_TEXTS} | unknown).items():
            texts[key] = StringsOnDemand()
            columns[key] = of_rows(partial(codes_of, texts[key], details, name, str))
        for name in details.metrics:
            columns[OTHER + name] = of_rows(partial(details.take, name, together=True))
        return columns, texts

    schema = (*(Column(key, name, kind="text", group=OTHERS) for key, name in unknown.items()),
              *(Column(OTHER + name, name, kind="float", group=METRICS) for name in details.metrics))  # fmt: skip
    return Table("kernels", group, kernels.file, read, schema)


def codes_of(
    strings: StringsOnDemand, details: Details, key: str, change: Callable[[str], str], rows: I64
) -> npt.NDArray[np.int32]:  # fmt: skip
    """A text column of some kernels as codes of strings."""
    return codes_in(strings, details.take(key, rows), change)


def codes_in(strings: StringsOnDemand, column: Texts, change: Callable[[str], str] = str) -> npt.NDArray[np.int32]:
    """A text column as codes of strings; only texts in use get one, changed ones."""
    codes = np.full(len(column.texts) + 1, -1, np.int32)
    for code in np.flatnonzero(np.bincount(column.codes[column.codes >= 0])).tolist():
        codes[code] = strings.code(change(column.texts[code]))
    return codes[column.codes]


def _file(role: str, file: CsvTable, group: int) -> Table:
    def read() -> TableColumns:
        columns = file.read(dict.fromkeys(file.columns, "text"))
        return ({OTHER + name: column.codes for name, column in columns.items()},
                {OTHER + name: column.texts for name, column in columns.items()})  # fmt: skip

    schema = tuple(Column(OTHER + name, name, kind="text", group=OTHERS) for name in file.columns)
    return Table(role, group, file.name, read, schema)
