"""`Rank`: reads the files of one worker into columns, each once; an unreadable file becomes a Problem."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.decimals import reals, wholes
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.sources.chrome.impossible_times import Judgement, time_words

from ..recorded import OTHER, STEP_COLUMNS
from .believable import believable, believable_kernels
from .categories import Layer
from .communication import CommunicationData, add_matrix, number, of_database, of_json, read_json
from .coverage import Coverage, coverage_of
from .csv_table import DEVICES, CsvTable, Kind, device_number, line_with
from .database import Database, kernels_of_database, memory_columns, timeline_of_database
from .kernels import START_NAMES, Kernels, kernels_of_table, kernels_of_timeline, no_texts
from .places import WorkerFiles, export_command, relative
from .steps import RecordedStep, Step, steps_of
from .timeline import Timeline
from .trace_view import read_trace_view

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Timelines that CANN 5 to 6.3 writes in addition to or instead of ``msprof*.json``.
PARTS: Final = (
    "thread_group.json", "task_time.json", "acl.json", "runtime_api.json", "ge.json", "ge_op_execute.json",
    "step_trace.json", "msprof_tx.json", "task_queue.json",
)  # fmt: skip
DATABASES: Final = ("ascend_pytorch_profiler.db", "ascend_mindspore_profiler.db", "msprof.db")
#: Times in us that are rounded to six digits are multiples of this, in ns.
_ROUNDED_NS: Final = 10_000_000_000
#: Sums of time that differ by more than this, in ns, are of different sets of kernels.
_APART_NS: Final = 1000
#: Most devices that files are split into.
_MOST_DEVICES: Final = 128
_NO_AVERAGE: Final = "They are in the table, and in no sum and no average."
Result = TypeVar("Result")
#: Known columns that no view uses.
_UNUSED: Final = frozenset((
    "Device_id", "Device Type", "Device", "Ratio(%)", "Call Stack", "Model Name", "Stream Ptr",
    "Active Release Time(us)", "Active Duration(us)",
    *(f"{when} Total {what}({unit})" for when in ("Allocation", "Release")
      for what in ("Allocated", "Reserved", "Active") for unit in ("MB", "KB")),
))  # fmt: skip


class Rank:
    """The recording of one worker; its properties read files on first use.

    Args:
        paths: Its files.
        opened: The opened path, which names of files are relative to.
        progress: Called with the bytes read and the size of a file.
        timelines: Cache of the timelines of files that several workers share.

    Attributes:
        problems: Defects of all files read so far.
        named_rank: The rank that names of folders and files suggest; None if they suggest none.
    """

    def __init__(
        self, paths: WorkerFiles, opened: Path, progress: Callable[[int, int], None] | None = None,
        timelines: dict[tuple[Path, ...], Timeline | None] | None = None,
    ) -> None:  # fmt: skip
        self.paths = paths
        self._timelines = {} if timelines is None else timelines
        self.problems: list[Problem] = []
        self.named_rank: int | None = None
        self._opened = opened
        self._progress = progress
        self._tables: dict[str, CsvTable | None] = {}

    def of_devices(self) -> list[Rank]:
        """A worker for each device that its files hold the work of; itself if there is one."""
        return [Rank(self.paths.of_device(device), self._opened, self._progress, self._timelines)
                for device in self.devices] or [self]  # fmt: skip

    @cached_property
    def extent(self) -> tuple[int, int] | None:
        """First start and last end of its slices, else of its kernels, ns since 1970; None if it has neither."""
        timeline, kernels = self.timeline, self.kernels
        if timeline is not None and len(timeline):
            return int(timeline.start.min()), int(timeline.end.max())
        if kernels is not None and kernels.timed.any():
            return int(kernels.start[kernels.timed].min()), int(kernels.end[kernels.timed].max())
        return None

    def read(self) -> None:
        """Reads everything that views use, so that all problems are known."""
        _ = (self.timeline, self.kernels, self.statistic, self.operators, self.apis, self.memory, self.allocations,
             self.modules, self.recorded_steps, self.iterations, self.communication, self.rules,
             self.old_apis)  # fmt: skip
        self._check_kernels()
        self._check_files()
        self._check_analysis()
        self._check_clocks()
        for role in self.paths.by_role:
            # tables that are not needed yet are scanned for damage
            table = self.table(role) if role.endswith(".csv") else None
            if table is not None and not table.rows:
                table.read({})
        for table in self._tables.values():
            self.problems += table.problems if table is not None else []
        for database in (self.database, self.analysis):
            self.problems += database.problems if database is not None else []

    def _check_files(self) -> None:
        """Reports files that are missing, are named otherwise, or contain more devices than they tell apart."""
        for role, slices in self.paths.lacking.items():
            numbers = ", ".join(map(str, slices[:8])) + (", ..." if len(slices) > 8 else "")
            what = f"Of the slices of {role} number {numbers} is missing." if len(slices) == 1 else (
                f"Of the slices of {role} numbers {numbers} are missing.")  # fmt: skip
            self.problems.append(Problem(Severity.ERROR, what, "The others are shown.", role, count=len(slices)))
        for role in sorted(self.paths.renamed):
            if role.endswith(".db"):
                name = self._name(self.paths.by_role[role][0])
                what, done = f"{name} is not named as the exporters name a database.", f"It is read as {role}."
                self.problems.append(Problem(Severity.NOTE, what, done, name))
        for role in sorted(self.paths.shared):
            table = self.table(role) if role.endswith(".csv") else None
            if table is not None and not table.first(*DEVICES):
                self.problems.append(Problem(Severity.WARNING, f"{role} does not distinguish its devices.",
                                             "Each device shows all of it.", table.name))  # fmt: skip

    def _check_analysis(self) -> None:
        """Reports the folder of a rank whose analysis ended before the work of the device was written."""
        root, activities = self.paths.root, self.setting("config", "common_config", "activities")
        host_alone = isinstance(activities, list) and activities and not any("NPU" in str(each) for each in activities)
        if not self.paths.is_rank_folder or host_alone or self.level == "Level_none" or self.timeline is None:
            return
        if len(self.kernels or ()) or self.statistic is not None or self.recorded_steps:
            return
        if any(track.layer not in (Layer.PYTHON, Layer.OTHER) for track in self.timeline.tracks):
            return
        there = any(each.name == "FRAMEWORK" or each.name.startswith("PROF_") for each in root.iterdir())
        where = "" if there else " where its FRAMEWORK and PROF_* are"
        self.problems.append(Problem(
            Severity.ERROR, "The analysis was not finished: only what the host did is here, nothing of the device.",
            f"Repeat the export{where}: {export_command(root)}", self.timeline.file,
        ))  # fmt: skip

    def _check_kernels(self) -> None:
        """Reports a kernel table that has only a part of the kernels that other tables count."""
        kernels, recorded, statistic = self.kernels, self.recorded_steps, self.statistic
        if kernels is None or kernels.file.endswith((".db", ".json")):
            return
        if recorded is not None and not (self.timeline is not None and len(self.timeline)):
            coverage = coverage_of(None, kernels)
            sums = [sum(values[index] or 0 for _, values in recorded[1]) for index in (0, 1)]
            if coverage is not None and any(
                abs(computed.total - recorded_total) > _APART_NS
                for computed, recorded_total in zip((coverage.computing, coverage.communication), sums, strict=True)
            ):
                self._report_partial(kernels.file, recorded[0])
        table = self.table("op_statistic.csv")
        several = table is not None and table.device >= 0 and not table.first(*DEVICES)
        if statistic is not None and len(kernels) and not several:
            computed = int((~kernels.communicates).sum())
            if computed != int(np.nansum(statistic["count"])):
                self._report_partial(kernels.file, "op_statistic")

    def _report_partial(self, file: str, other: str) -> None:
        self.problems.append(Problem(Severity.WARNING, f"The kernels here are only a part of those in {other}.",
                                     f"Totals are those of {other}.", file))  # fmt: skip

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Names of its files, relative to the opened path."""
        return tuple(relative(self.paths.every_file(), self._opened))

    def _name(self, path: Path) -> str:
        return next(relative([path], self._opened))

    def _read_or_report(self, read: Callable[[], Result], file: str) -> Result | None:
        try:
            return read()
        except UnreadableError as error:
            self.problems.append(Problem(Severity.ERROR, str(error), "It is left out.", file=file))
            return None

    def table(self, role: str) -> CsvTable | None:
        """The csv table with a role; None if there is none."""
        paths = self.paths.by_role.get(role)
        if role not in self._tables:
            found = None
            if paths:
                name = self._name(paths[0])
                found = self._read_or_report(lambda: CsvTable.opened(paths, name, self._device_of(role)), name)
            self._tables[role] = found
        return self._tables[role]

    def columns(self, role: str, needs: Container[str], **kinds: tuple[Kind, Sequence[str]]) -> dict[str, Any] | None:
        """Columns of a csv table by key, given by kind and possible names; None if one in ``needs`` is absent.

        Other absent columns are filled with missing values. Unknown columns are returned as texts, under ``OTHER`` +
        their names.
        """
        table = self.table(role)
        if table is None:
            return None
        names = {key: table.first(*each) for key, (_, each) in kinds.items()}
        if any(key in needs and not name for key, name in names.items()):
            return None
        known = _UNUSED.union(*(each for _, each in kinds.values()))
        others: dict[str, Kind] = {name: "text" for name in table.columns if name not in known}
        read = table.read({name: kinds[key][0] for key, name in names.items() if name} | others)
        nothing: dict[Kind, Any] = {"time": np.full(table.rows, INT_MISSING), "number": np.full(table.rows, np.nan),
                                    "text": no_texts(table.rows)}  # fmt: skip
        found = {key: read[name] if name else nothing[kinds[key][0]] for key, name in names.items()}
        return found | {OTHER + name: read[name] for name in others}

    # -- recorded data

    @cached_property
    def database(self) -> Database | None:
        """The profiler's database."""
        return self._database(*DATABASES)

    @cached_property
    def analysis(self) -> Database | None:
        """``analysis.db``."""
        return self._database("analysis.db")

    def _database(self, *roles: str) -> Database | None:
        role = next((role for role in roles if role in self.paths.by_role), "")
        if not role:
            return None
        path = self.paths.by_role[role][0]
        name = self._name(path)
        return self._read_or_report(lambda: Database(path, name, self._device_of(role)), name)

    def _device_of(self, role: str) -> int:
        """The only device to read from files of a role, because they are shared; -1: all."""
        return self.paths.device if role in self.paths.shared else -1

    @cached_property
    def timeline(self) -> Timeline | None:
        """The slices, from the JSON files, else from the database; None if there are neither."""
        role = self.paths.timeline_role
        paths = self.paths.by_role.get(role, ())
        parts = tuple(path for part in PARTS for path in self.paths.by_role.get(part, ()))
        files = (*paths, *parts)
        if files:
            name = self._name(files[0])
            if files not in self._timelines:
                found = self._read_or_report(
                    lambda: believable(read_trace_view(paths, name, self._progress, parts)), name
                )
                self.problems += found.problems if found is not None else ()
                self._timelines[files] = found
            found = self._timelines[files]
            if found is not None:
                device = self._device_of(role or next(part for part in PARTS if part in self.paths.by_role))
                if device < 0:
                    return found
                if all(track.device < 0 for track in found.tracks):
                    self.problems.append(Problem(Severity.WARNING, "The timeline does not distinguish its devices.",
                                                 "Each device shows all of it.", name))  # fmt: skip
                return found.of_device(device)
        found = timeline_of_database(self.database) if self.database is not None else None
        if found is not None:
            found = believable(found)
            self.problems += found.problems
        return found

    @cached_property
    def kernels(self) -> Kernels | None:
        """The kernels, from the csv file, else the database, else the timeline; None if there are none."""
        for role in ("kernel_details.csv", "op_summary.csv"):
            table = self.table(role)
            if table is not None and table.first("Name", "Op Name"):
                found = kernels_of_table(table)
                unplaced = _rounded_times(table, found.start, *START_NAMES)
                return self._sound(replace(found, unplaced=unplaced), table)
        database = self.database
        if database is not None and {"COMPUTE_TASK_INFO", "COMMUNICATION_OP"} & set(database.tables):
            return self._sound(kernels_of_database(database))
        timeline = self.timeline
        return kernels_of_timeline(timeline) if timeline is not None and len(timeline.work) else None

    def _sound(self, found: Kernels, table: CsvTable | None = None) -> Kernels:
        """The kernels, negative durations as missing; reports kernels whose times are missing or cannot be."""
        negative = (found.duration < 0) & (found.duration != INT_MISSING)
        if negative.any():
            found = replace(found, duration=np.where(negative, INT_MISSING, found.duration))
        for rows, what, done in (
            (found.start == INT_MISSING, "Kernels without a start.", "They are not in sums over time."),
            ((found.duration == INT_MISSING) & ~negative, "Kernels without a duration (N/A or empty).", _NO_AVERAGE),
            (negative, "Kernels of negative duration.", _NO_AVERAGE),
        ):  # fmt: skip
            self._report_kernels(found, rows, what, done, table)
        found, problems = believable_kernels(found, self.timeline)
        self.problems += problems
        return found

    def _report_kernels(self, found: Kernels, mask: Mask, what: str, done: str, table: CsvTable | None) -> None:
        rows = np.flatnonzero(mask)
        if len(rows):
            offset = int(table.begin[rows[0]]) if table is not None and len(table.paths) == 1 else -1
            self.problems.append(Problem(Severity.WARNING, what, done, found.file, offset, count=len(rows)))

    @cached_property
    def statistic(self) -> dict[str, Any] | None:
        """``op_statistic.csv``: time by type of operator."""
        return self.columns(
            "op_statistic.csv", ("type", "total", "count"),
            type=("text", ("OP Type", "Op Type")), core=("text", ("Core Type",)),
            count=("number", ("Count",)), total=("time", ("Total Time(us)",)), least=("time", ("Min Time(us)",)),
            mean=("time", ("Avg Time(us)",)), most=("time", ("Max Time(us)",)),
        )  # fmt: skip

    @cached_property
    def operators(self) -> dict[str, Any] | None:
        """``operator_details.csv``: a row for each call of a framework operator."""
        return self.columns(
            "operator_details.csv", ("name",), name=("text", ("Name",)), shapes=("text", ("Input Shapes",)),
            host_self=("time", ("Host Self Duration(us)",)), host_total=("time", ("Host Total Duration(us)",)),
            device_self=("time", ("Device Self Duration(us)",)),
            device_total=("time", ("Device Total Duration(us)",)),
            device_self_aicore=("time", ("Device Self Duration With AICore(us)",)),
            device_total_aicore=("time", ("Device Total Duration With AICore(us)",)),
        )  # fmt: skip

    @cached_property
    def apis(self) -> dict[str, Any] | None:
        """``api_statistic.csv``: CANN calls by name."""
        return self.columns(
            "api_statistic.csv", ("name", "total"), level=("text", ("Level",)), name=("text", ("API Name", "Name")),
            total=("time", ("Time(us)",)), count=("number", ("Count",)), mean=("time", ("Avg(us)",)),
            least=("time", ("Min(us)",)), most=("time", ("Max(us)",)), variance=("number", ("Variance",)),
        )  # fmt: skip

    @cached_property
    def old_apis(self) -> tuple[str, list[tuple[str, str | None, float, float, float, float, float]]] | None:
        """``acl_statistic``, ``runtime_api`` of CANN 5 to 6.3: level, name, count; total, mean, min, max in ns."""
        rows: list[tuple[str, str | None, float, float, float, float, float]] = []
        file = ""
        for role, level, unit, count in (("acl_statistic.csv", "acl", "us", "Count"),
                                         ("runtime_api.csv", "runtime", "ns", "Calls")):  # fmt: skip
            table = self.table(role)
            if table is None or "Name" not in table:
                continue
            times = [f"{name}({unit})" for name in ("Time", "Avg", "Min", "Max")]
            kinds: dict[str, Kind] = {"Name": "text", count: "number", **dict.fromkeys(times, "number")}
            read = table.read(kinds)
            nothing = np.full(table.rows, np.nan)
            scale = 1000 if unit == "us" else 1
            columns = [read.get(count, nothing), *(read.get(name, nothing) * scale for name in times)]
            for name, *values in zip(read["Name"].values(), *(each.tolist() for each in columns), strict=True):
                rows.append((level, name, *values))
            file = file or table.name
        return (file, rows) if file else None

    @cached_property
    def recorded_steps(self) -> tuple[str, tuple[RecordedStep, ...]] | None:
        """``step_trace_time.csv`` or StepTraceTime: file name, and steps with values in ns."""
        table = self.table("step_trace_time.csv")
        if table is not None and "Computing" in table:
            read = table.text(["Step", *(name for name, _, _ in STEP_COLUMNS if name in table)])
            nothing = [None] * table.rows
            columns = [ns_of(read.get(name, nothing)) for name, _, _ in STEP_COLUMNS]
            return table.name, tuple(zip(read.get("Step", nothing), zip(*columns, strict=True), strict=True))
        database = self.analysis
        if database is not None and "StepTraceTime" in database.tables:
            rows = database.rows("StepTraceTime", "step", *(name for _, name, _ in STEP_COLUMNS))
            return database.name, tuple((None if row[0] in (None, "") else str(row[0]), tuple(ns_of(row[1:])))
                                        for row in rows)  # fmt: skip
        return None

    @cached_property
    def iterations(self) -> tuple[str, list[str], I64, I64] | None:
        """Iterations of a graph (``step_trace_*.csv``): file name, labels, starts and ends (ns); None: none timed."""
        found = self.columns(
            "step_trace.csv", ("number", "end"), number=("text", ("Iteration ID",)), model=("text", ("Model ID",)),
            begin=("time", ("FP Start(us)", "FP Start")), end=("time", ("Iteration End(us)", "Iteration End")),
            length=("time", ("Iteration Time(us)",)),
        )  # fmt: skip
        table = self.table("step_trace.csv")
        if found is None or table is None:
            return None
        begin, end, length = found["begin"], found["end"], found["length"]
        begin = np.where((length > 0) & (end != INT_MISSING), end - np.maximum(length, 0), begin)
        rows = np.flatnonzero((begin != INT_MISSING) & (end >= begin))
        if len(rows) < table.rows:
            self.problems.append(Problem(Severity.WARNING, "Iterations without a time.", "They are left out.",
                                         table.name, count=table.rows - len(rows)))  # fmt: skip
        rows = rows[np.argsort(begin[rows], kind="stable")]
        if len(rows) and self.extent is not None and not Judgement(*self.extent).near(begin[rows]).any():
            self._report_clock(table.name, begin[rows], "They are no steps.")
            return None
        names = found["number"].values(rows)
        if len(set(found["model"].codes[rows].tolist())) > 1:
            names = [f"{name} of model {model}" for name, model in zip(names, found["model"].values(rows), strict=True)]
        return (table.name, [name or "?" for name in names], begin[rows], end[rows]) if len(rows) else None

    @property
    def _slices(self) -> Timeline | None:
        """Its timeline; None if that has no slices."""
        return self.timeline if self.timeline is not None and len(self.timeline) else None

    @cached_property
    def coverage_file(self) -> str:
        """Name of the file that tells the use of the device; empty if none does."""
        timeline, kernels = self._slices, self.kernels
        if timeline is not None and (timeline.derived or len(timeline.work)):
            return timeline.file
        return kernels.file if kernels is not None and kernels.timed.any() else ""

    @cached_property
    def coverage(self) -> Coverage | None:
        """Use of the device over time; None if unknown."""
        return coverage_of(self._slices, self.kernels)

    @property
    def steps_are_computed(self) -> bool:
        """Whether the times of its steps follow from the use of the device, rather than from a table."""
        return bool(self.coverage_file) and (self._slices is not None or not self.recorded_steps)

    @property
    def steps_file(self) -> str:
        """Name of the file that tells the times of its steps; empty if none does."""
        recorded = self.recorded_steps[0] if self.recorded_steps is not None else ""
        return self.coverage_file if self.steps_are_computed else recorded

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Its steps."""
        recorded = self.recorded_steps[1] if self.recorded_steps is not None else ()
        iterations = self.iterations[1:] if self.iterations is not None else None
        return steps_of(self._slices, self.kernels, self.coverage, iterations, recorded)

    @cached_property
    def memory(self) -> tuple[str, dict[str, Any]] | None:
        """Memory curves: file name, and component, time (ns), allocated, reserved, active (MB), device."""
        found = self.columns(
            "memory_record.csv", ("component",), component=("text", ("Component",)), time=("time", ("Timestamp(us)",)),
            allocated=("number", ("Total Allocated(MB)", "Total Allocated(KB)")),
            reserved=("number", ("Total Reserved(MB)", "Total Reserved(KB)")),
            active=("number", ("Total Active(MB)",)), device=("text", ("Device Type", "Device")),
        )  # fmt: skip
        table = self.table("memory_record.csv")
        if found is not None and table is not None:
            for key, name in (("allocated", "Total Allocated(KB)"), ("reserved", "Total Reserved(KB)")):
                if name in table:
                    found[key] = found[key] / 1024
            _rounded_times(table, found["time"], "Timestamp(us)")
            return table.name, found
        database = self.database
        return _memory_of(database) if database is not None and "MEMORY_RECORD" in database.tables else None

    @cached_property
    def allocations(self) -> tuple[str, dict[str, Any]] | None:
        """Allocations: file name, and name, size (KB), times of allocation and release, duration (ns)."""
        found = self.columns(
            "operator_memory.csv", ("name", "size"), name=("text", ("Name",)), size=("number", ("Size(KB)",)),
            allocated=("time", ("Allocation Time(us)",)), released=("time", ("Release Time(us)",)),
            duration=("time", ("Duration(us)",)),
        )  # fmt: skip
        table = self.table("operator_memory.csv")
        file = ""
        if found is not None and table is not None:
            file = table.name
            _rounded_times(table, found["allocated"], "Allocation Time(us)")
            if "Release Time(us)" not in table:
                # msprof writes the duration alone
                begin, duration = found["allocated"], found["duration"]
                known = (begin != INT_MISSING) & (duration != INT_MISSING)
                found["released"] = np.where(known, begin + np.where(known, duration, 0), INT_MISSING)
        elif self.database is not None and "OP_MEMORY" in self.database.tables:
            database = self.database
            name, size, begin, end, duration = database.columns(
                "OP_MEMORY", "name", "size", "allocationTime", "releaseTime", "duration")  # fmt: skip
            found = {"name": database.texts(name), "size": reals(size) / 1024, "allocated": wholes(begin),
                     "released": wholes(end), "duration": wholes(duration)}  # fmt: skip
            file = database.name
        if not file or found is None:
            return None
        timed = (found["released"] != INT_MISSING) & (found["allocated"] != INT_MISSING)
        odd = int((found["size"] < 0).sum() + (timed & (found["released"] < found["allocated"])).sum())
        if odd:
            self.problems.append(Problem(Severity.WARNING, "Allocations of negative size, or released too early.",
                                         "They are shown as written by the exporter.", file, count=odd))  # fmt: skip
        return file, found

    def _check_clocks(self) -> None:
        """Reports tables of memory whose times are on another clock than the work of the device."""
        for found, key in ((self.memory, "time"), (self.allocations, "allocated")):
            if found is None or self.extent is None:
                continue
            times = found[1][key]
            times = times[(times != INT_MISSING) & (times % _ROUNDED_NS != 0)]
            if len(times) and not Judgement(*self.extent).near(times).any():
                self._report_clock(found[0], times, "They are shown as recorded.")

    def _report_clock(self, file: str, times: I64, done: str) -> None:
        apart = abs(int(times.min()) - (self.extent or (0, 0))[0])
        self.problems.append(Problem(
            Severity.WARNING, f"The times of {file} are {time_words(apart)} from those of the work on the device: it "
            "has another clock.", done, file, count=len(times),
        ))  # fmt: skip

    @cached_property
    def modules(self) -> tuple[str, dict[str, Any]] | None:
        """Memory by CANN component: file name, and component, reserved (MB)."""
        table = self.table("npu_module_mem.csv")
        if table is not None and "Component" in table:
            column = table.first("Total Reserved(MB)", "Total Reserved(KB)")
            read = table.read({"Component": "text", **({column: "number"} if column else {})})
            if column:
                return table.name, {"component": read["Component"],
                                    "reserved": read[column] / (1024 if "KB" in column else 1)}  # fmt: skip
        database = self.database
        if database is not None and "NPU_MODULE_MEM" in database.tables:
            component, reserved = database.columns("NPU_MODULE_MEM", "moduleId", "totalReserved")
            names = dict(database.rows("ENUM_MODULE", "id", "name"))
            return database.name, {"component": _texts([str(names.get(each, each)) for each in component]),
                                   "reserved": reals(reserved) / (1 << 20)}  # fmt: skip
        return None

    @cached_property
    def communication(self) -> CommunicationData | None:
        """Communication data, from the JSON files, else from ``analysis.db``; None if there are neither."""
        paths, matrix = (self.paths.by_role.get(f"{key}.json", ()) for key in ("communication", "communication_matrix"))
        found = None
        if paths:
            name = self._name(paths[0])
            found = self._read_or_report(lambda: of_json(paths[0], name), name)
        if matrix:
            name = self._name(matrix[0])
            data = found or CommunicationData(name)
            self._read_or_report(lambda: add_matrix(data, matrix[0], name), name)
            found = data if data.matrix else found
        if found is None and self.analysis is not None:
            found = of_database(self.analysis)
        return found

    @cached_property
    def rules(self) -> tuple[tuple[str, Any], ...]:
        """``prof_rule_*.json``: the vendor's advice, unchanged, with the name of each file."""
        found = []
        for path in self.paths.by_role.get("prof_rule.json", ()):
            name = self._name(path)
            content = self._read_or_report(lambda path=path, name=name: read_json(path, name, whatever=True), name)  # type: ignore[misc]
            if content is not None:
                found.append((name, content))
        return tuple(found)

    # -- about the run

    @cached_property
    def info(self) -> dict[str, Any]:
        """The profiler's settings (``profiler_info*.json``); empty if there are none."""
        path = next((path for path in self.paths.info if path.name.startswith("profiler_info")), None)
        if path is None:
            return {}
        name = self._name(path)
        found = self._read_or_report(lambda: read_json(path, name), name)
        return found or {}

    @property
    def rank(self) -> int | None:
        """Its rank as stated, else as names suggest it; None if unknown."""
        return self.named_rank if self.stated_rank is None else self.stated_rank

    @property
    def rank_guessed(self) -> bool:
        """Whether its rank is only what names suggest."""
        return self.stated_rank is None and self.named_rank is not None

    @cached_property
    def stated_rank(self) -> int | None:
        """Its rank, from the profiler's files, else the database; None if they do not state it."""
        # the rank of a folder with several devices is not that of each
        info = () if self.paths.several else (self.info.get("rank_id"),)
        for value in (self.paths.rank_of_file, *info, *self._mapped("rankId")):
            if type(value) is int and 0 <= value < 1 << 31:
                return value
        return None

    @cached_property
    def device(self) -> int:
        """Device number; -1 if unknown."""
        devices = self._kernel_devices or self._timeline_devices
        stated, named = (*self._mapped("deviceId"), *(devices if len(devices) == 1 else ())), (self.paths.device,)
        found = (*named, *stated) if self.paths.several else (*stated, *named)
        return next((value for value in found if type(value) is int and 0 <= value < 1 << 31), -1)

    def _mapped(self, column: str) -> list[Any]:
        """A column of the database's ranks and devices, if it has one row, or one of the worker's device."""
        rows = self.database.rows("RANK_DEVICE_MAP", column, "deviceId") if self.database is not None else []
        own = [value for value, device in rows if device == self.paths.device and self.paths.device >= 0]
        return own or ([value for value, _ in rows] if len(rows) == 1 else [])

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices that its files hold the work of, ascending, if there are several in one of them; else empty."""
        found = next((found for found in (self._kernel_devices, self._timeline_devices) if len(found) > 1), ())
        if len(found) > _MOST_DEVICES:
            self.problems.append(Problem(Severity.WARNING, f"{len(found):,} numbers of devices in one folder.",
                                         "They are shown as one NPU.", count=len(found)))  # fmt: skip
            return ()
        return found

    @cached_property
    def _timeline_devices(self) -> tuple[int, ...]:
        """The devices that the timeline states for work."""
        timeline = self.timeline
        if timeline is None:
            return ()
        working = np.flatnonzero(np.bincount(timeline.track[timeline.work])).tolist()
        found = {timeline.tracks[track].device for track in working}
        return tuple(sorted(device for device in found if 0 <= device < 1 << 31))

    @cached_property
    def _kernel_devices(self) -> tuple[int, ...]:
        """The devices that the kernels state."""
        if self.kernels is None:
            return ()
        column = self.kernels.other("device")
        present = np.flatnonzero(np.bincount(column.codes[column.codes >= 0])).tolist()
        return tuple(sorted({device_number(column.texts[code]) for code in present} - {-1}))

    @cached_property
    def chip(self) -> str:
        """Name of its device; empty if unknown."""
        rows = self.database.rows("NPU_INFO", "name") if self.database is not None else []
        return next((str(name) for (name,) in rows if name), "")

    @property
    def clock(self) -> float | None:
        """Offset of the monotonic clock of its host from its cycle counter, ns; None if unknown."""
        values = (number(self.setting("start_info", key)) for key in ("start_monotonic", "start_cnt", "freq"))
        monotonic, cycles, megahertz = values
        if monotonic is None or cycles is None or not megahertz:
            return None
        return float(monotonic - cycles * 1000 / megahertz)

    def setting(self, *keys: str) -> Any:
        """A profiler setting by its path of keys; None if absent."""
        found: Any = self.info
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    @property
    def level(self) -> str:
        """Profiler level, such as ``Level1``; empty if unknown."""
        return str(self.setting("config", "experimental_config", "_profiler_level") or "").removeprefix(
            "ProfilerLevel."
        )


def _rounded_times(table: CsvTable, times: I64, *columns: str) -> npt.NDArray[np.bool_] | None:
    """Reports times that a spreadsheet rounded (``1.73641E+15``): mask of them; None if there are none."""
    # by value first, since times are not read as text
    found = np.asarray((times > 0) & (times % _ROUNDED_NS == 0))
    rows, column = np.flatnonzero(found)[:1], table.first(*columns)
    (text,) = table.read_rows(rows, {column: "text"})[column].values() if len(rows) else (None,)
    if text is None or "E" not in text.upper():
        return None
    line = line_with(table.paths, text)
    table.problems.append(Problem(
        Severity.WARNING, f"Times that a spreadsheet has rounded, line {line:,}.",
        "The rows stand as they are written, nothing over time uses them.", table.name, count=int(found.sum()),
    ))  # fmt: skip
    return found


def ns_of(values: Sequence[Any]) -> list[float | None]:
    """Converts us to ns; whole values become integers."""
    found: list[float | None] = []
    for value in values:
        us = number(value)
        ns = None if us is None else us * 1000
        found.append(None if ns is None else int(ns) if ns == int(ns) else float(ns))
    return found


def _texts(values: Sequence[str]) -> Any:
    from .csv_table import Texts

    known: dict[str, int] = {}
    return Texts(np.array([known.setdefault(each, len(known)) for each in values], np.int32), tuple(known))


def _memory_of(database: Database) -> tuple[str, dict[str, Any]]:
    """Memory curves from MEMORY_RECORD, and from the process (app) rows of NPU_MEM."""
    names = ("component", "timestamp", "totalAllocated", "totalReserved", "totalActive", "deviceId")
    component, time, allocated, reserved, active, device = database.columns("MEMORY_RECORD", *names)
    parts = memory_columns(database)
    rows = [row for row in database.rows("NPU_MEM", "type", "timestampNs", "deviceId", *parts)
            if database.strings.get(row[0], "").lower() == "app"]  # fmt: skip
    used = sum((reals([row[3 + index] for row in rows]) for index in range(len(parts))), np.zeros(len(rows)))
    components = [database.strings.get(each, "") for each in component] + ["APP"] * len(rows)
    more = [np.nan] * len(rows)
    mega = 1 << 20
    return database.name, {
        "component": _texts(components), "time": wholes([*time, *(row[1] for row in rows)]),
        "allocated": reals([*allocated, *more]) / mega,
        "reserved": np.append(reals(reserved), used) / mega,
        "active": reals([*active, *more]) / mega,
        "device": _texts([f"NPU:{each}" for each in [*device, *(row[2] for row in rows)]]),
    }  # fmt: skip
