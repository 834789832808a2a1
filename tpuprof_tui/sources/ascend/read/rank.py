"""`Rank`: reads the files of one worker into columns, each once; an unreadable file becomes a Problem."""

from __future__ import annotations

import json
import os.path
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.model import INT_MISSING, Severity
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.sources.chrome.times import Judgement, time_words
from tpuprof_tui.sources.column_cache import read_or_kept

from ..records import Step
from .csv_table import DEVICES, CsvTable, device_number
from .database import Database, kernels_of_database, timeline_of_database
from .files import ROUNDED_NS, Files, read_json, rounded_times
from .folders import WorkerFiles, export_command
from .implausible_times import without_implausible, without_implausible_kernels
from .kernels import START_NAMES, Kernels, kernels_of_table, kernels_of_timeline
from .steps import Iterations, steps_of, work_starts
from .tables import DATABASES, KERNEL_TABLES, Records, number, of_csv, records_of
from .timeline import Layer, Timeline
from .trace_view import read_trace_view

#: Timelines that CANN 5 to 6.3 writes in addition to or instead of ``msprof*.json``.
_PARTS: Final = (
    "thread_group.json", "task_time.json", "acl.json", "runtime_api.json", "ge.json", "ge_op_execute.json",
    "step_trace.json", "msprof_tx.json", "task_queue.json",
)  # fmt: skip
#: Sums of time that differ by more than this, in ns, are of different sets of kernels.
_APART_NS: Final = 1000
#: Most devices that files are split into.
_MOST_DEVICES: Final = 128
_NO_AVERAGE: Final = "They are in the table, and in no sum and no average."


class Rank:
    """The recording of one worker; its properties read files on first use.

    ``timelines``: cache of the timelines of files that several workers share.

    Attributes:
        files: Its files, with the defects of all that were read so far.
        named_rank: The rank that names of folders and files suggest; None if they suggest none.
    """

    def __init__(
        self, paths: WorkerFiles, opened: Path, progress: Callable[[int, int], None] | None = None,
        timelines: dict[tuple[Path, ...], Timeline] | None = None,
    ) -> None:  # fmt: skip
        self.paths, self.files = paths, Files(paths, opened)
        self._timelines = {} if timelines is None else timelines
        self.named_rank: int | None = None
        self._opened, self._progress = opened, progress

    def of_devices(self) -> list[Rank]:
        """A worker for each device that its files hold the work of; itself if there is one."""
        return [Rank(self.paths.of_device(device), self._opened, self._progress, self._timelines)
                for device in self.devices] or [self]  # fmt: skip

    @cached_property
    def extent(self) -> tuple[int, int] | None:
        """First start and last end of its slices, else of its kernels, ns since 1970; None if it has neither."""
        timeline, kernels = self.timeline, self.kernels
        if len(timeline):
            return int(timeline.start.min()), int(timeline.end.max())
        if kernels.timed.any():
            return int(kernels.start[kernels.timed].min()), int(kernels.end[kernels.timed].max())
        return None

    @property
    def is_empty(self) -> bool:
        """Whether it has nothing to show."""
        return not (self.timeline.file or self.kernels.file or self.records or self.rules or any(self.files.tables()))

    # -- events

    @cached_property
    def timeline(self) -> Timeline:
        """The slices, from the JSON files, else from the database; of no file if there are neither."""
        role = self.paths.timeline_role
        paths, parts = self.paths.paths(role), tuple(path for part in _PARTS for path in self.paths.paths(part))
        if files := (*paths, *parts):
            if files not in self._timelines:
                self._timelines[files] = self._plausible_timeline(self.files.tried(files[0], lambda name: read_or_kept(
                    files, lambda: read_trace_view(paths, name, self._progress, parts), what=name)))  # fmt: skip
            found = self._timelines[files]
            device = self.files.device_of(role or next(part for part in _PARTS if part in self.paths.exports))
            if not found.file or device < 0:
                return found if found.file else self._of_database()
            if all(track.device < 0 for track in found.tracks):
                self.files.warn("The timeline does not distinguish its devices.", "Each device shows all of it.",
                                found.file)  # fmt: skip
            return found.of_device(device)
        return self._of_database()

    def _of_database(self) -> Timeline:
        database = self.files.database(*DATABASES)
        paths = [database.path] if database.path else []
        return self._plausible_timeline(read_or_kept(paths, lambda: timeline_of_database(database),
                                             lambda made: None if database.problems else made,
                                             what=f"{database.name} {database.device}"))  # fmt: skip

    def _plausible_timeline(self, timeline: Timeline | None) -> Timeline:
        found = without_implausible(timeline_of_database(Database()) if timeline is None else timeline)
        self.files.problems.extend(found.problems)
        return found

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels, from the csv file, else the database, else the timeline; of no file if there are none."""
        for role in KERNEL_TABLES:
            table = self.files.table(role)
            if table is None:
                continue
            found = kernels_of_table(table) if table.first("Name", "Op Name") else None
            if found is None:
                self.files.warn("There is no column Name or Op Name.", "The table is not used.", table.name)
            elif not len(found) and len(self.timeline.work):
                self.files.warn("The table has no rows.", "Kernels are those of the timeline.", table.name)
            else:
                unplaced = rounded_times(table, found.start, table.first(*START_NAMES))
                return self._sound(replace(found, unplaced=unplaced), table)
        database = self.files.database(*DATABASES)
        if {"COMPUTE_TASK_INFO", "COMMUNICATION_OP"} & set(database.tables):
            return self._sound(kernels_of_database(database))
        return kernels_of_timeline(self.timeline)

    def _sound(self, found: Kernels, table: CsvTable | None = None) -> Kernels:
        """The kernels, negative durations as missing; reports kernels whose times are missing or cannot be."""
        negative = (found.duration < 0) & (found.duration != INT_MISSING)
        if negative.any():
            found = replace(found, duration=np.where(negative, INT_MISSING, found.duration))
        for mask, what, done in (
            (found.start == INT_MISSING, "Kernels without a start.", "They are not in sums over time."),
            ((found.duration == INT_MISSING) & ~negative, "Kernels without a duration (N/A or empty).", _NO_AVERAGE),
            (negative, "Kernels of negative duration.", _NO_AVERAGE),
        ):  # fmt: skip
            rows = np.flatnonzero(mask)
            if len(rows):
                offset = int(table.begin[rows[0]]) if table is not None and len(table.paths) == 1 else -1
                self.files.warn(what, done, found.file, offset=offset, count=len(rows))
        found, problems = without_implausible_kernels(found, self.timeline)
        self.files.problems.extend(problems)
        return found

    # -- what is not events

    @cached_property
    def records(self) -> dict[str, Records]:
        """Tables by name (`records`), beside kernels and steps."""
        return records_of(self.files, self.timeline)

    @cached_property
    def rules(self) -> tuple[tuple[str, Any], ...]:
        """``prof_rule_*.json``: the vendor's advice, unchanged, with the name of each file."""
        found = [self.files.tried(path, lambda name, path=path: (name, read_json(path, name, whatever=True)))  # type: ignore[misc]
                 for path in self.paths.paths("prof_rule.json")]  # fmt: skip
        return tuple(rule for rule in found if rule is not None)

    @cached_property
    def iterations(self) -> Iterations | None:
        """Iterations of a graph (``step_trace_*.csv``): labels, starts and ends (ns); None: none timed."""
        found = of_csv(self.files, "iterations")
        if found is None:
            return None
        begin, end, length = (found.columns[key] for key in ("begin", "end", "length"))
        begin = np.where((length > 0) & (end != INT_MISSING), end - np.maximum(length, 0), begin)
        rows = np.flatnonzero((begin != INT_MISSING) & (end >= begin))
        if lost := len(found) - len(rows):
            self.files.warn("Iterations without a time.", "They are left out.", found.file, count=lost)
        rows = rows[np.argsort(begin[rows], kind="stable")]
        if len(rows) and self.extent is not None and not Judgement(*self.extent).near(begin[rows]).any():
            self._report_clock(found.file, begin[rows], "They are no steps.")
            return None
        names, models = (found.columns[key].values(rows) for key in ("number", "model"))
        if len(set(models)) > 1:
            names = [f"{name} of model {model}" for name, model in zip(names, models, strict=True)]
        return Iterations([name or "?" for name in names], begin[rows], end[rows]) if len(rows) else None

    @cached_property
    def work_file(self) -> str:
        """Name of the file that tells the use of the device; empty if none does."""
        if self.timeline.derived or len(self.timeline.work):
            return self.timeline.file
        return self.kernels.file if self.kernels.timed.any() else ""

    @property
    def steps_are_computed(self) -> bool:
        """Whether the times of its steps follow from the use of the device, rather than from a table."""
        return bool(self.work_file) and (len(self.timeline) > 0 or not len(self.records.get("recorded_steps", ())))

    @property
    def steps_file(self) -> str:
        """Name of the file that tells the times of its steps; empty if none does."""
        recorded = self.records.get("recorded_steps")
        return self.work_file if self.steps_are_computed or recorded is None else recorded.file

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Its steps."""
        recorded = self.records.get("recorded_steps")
        labels = [] if recorded is None else recorded.columns["label"].values()
        work = work_starts(self.timeline, self.kernels) if self.work_file else None
        return steps_of(self.timeline, self.kernels, work, self.iterations, labels)

    # -- problems

    def read(self) -> None:
        """Reads everything that views use, so that all problems are known."""
        _ = self.timeline, self.kernels, self.records, self.iterations, self.rules
        self._check_kernels()
        self._check_files()
        self._check_analysis()
        self._check_clocks()
        self.files.report()
        iterations = () if self.iterations is None else self.iterations.labels
        tables = (self.timeline, self.kernels, iterations, self.rules, *self.records.values())
        if not any(map(len, tables)):
            self.files.warn("None of its files holds an event, or a row of a known table.", "There is nothing to show.",
                            self.paths.name, Severity.ERROR)  # fmt: skip

    def _check_files(self) -> None:
        exports = self.paths.exports
        for role, slices in ((role, export.lacking) for role, export in exports.items() if export.lacking):
            numbers = ", ".join(map(str, slices[:8])) + (", ..." if len(slices) > 8 else "")
            which = f"number {numbers} is" if len(slices) == 1 else f"numbers {numbers} are"
            self.files.warn(f"Of the slices of {role} {which} missing.", "The others are shown.", role, Severity.ERROR,
                            count=len(slices))  # fmt: skip
        for role in sorted(role for role in exports if exports[role].by_content and role.endswith(".db")):
            name = self.files.name(exports[role].paths[0])
            self.files.warn(f"{name} is not named as the exporters name a database.", f"It is read as {role}.",
                            name, Severity.NOTE)  # fmt: skip
        for role, table in sorted(self.files.tables()):
            if exports[role].shared and not table.first(*DEVICES):
                self.files.warn(f"{role} does not distinguish its devices.", "Each device shows all of it.", table.name)

    def _check_analysis(self) -> None:
        """Reports the folder of a rank whose analysis ended before the work of the device was written."""
        root, activities = self.paths.root, self.setting("config", "common_config", "activities")
        host_alone = isinstance(activities, list) and activities and not any("NPU" in str(each) for each in activities)
        if not self.paths.is_rank_folder or host_alone or self.level == "Level_none" or not self.timeline.file:
            return
        if len(self.kernels) or {"statistic", "recorded_steps"} & set(self.records):
            return
        if any(track.layer not in (Layer.PYTHON, Layer.OTHER) for track in self.timeline.tracks):
            return
        there = any(each.name == "FRAMEWORK" or each.name.startswith("PROF_") for each in root.iterdir())
        where = "" if there else " where its FRAMEWORK and PROF_* are"
        what = "The analysis was not finished: only what the host did is here, nothing of the device."
        done = f"Repeat the export{where}: {export_command(root)}"
        self.files.warn(what, done, self.timeline.file, Severity.ERROR)

    def _check_kernels(self) -> None:
        """Reports a kernel table that has only a part of the kernels that other tables count."""
        kernels, recorded, statistic = self.kernels, self.records.get("recorded_steps"), self.records.get("statistic")
        if not kernels.file or kernels.file.endswith((".db", ".json")):
            return
        parts = []
        if recorded is not None and not len(self.timeline) and kernels.timed.any():
            for mask, key in ((~kernels.communicates, "computing_us"), (kernels.communicates, "communication_us")):
                rows = np.flatnonzero(kernels.timed & mask)
                computed = Intervals.union(kernels.start[rows], kernels.end[rows]).total
                parts += [recorded.file] if abs(computed - np.nansum(recorded.columns[key])) > _APART_NS else []
        table = self.files.table("op_statistic.csv")
        several = table is not None and table.device >= 0 and not table.first(*DEVICES)
        counted = int((~kernels.communicates).sum())
        if statistic is not None and len(kernels) and not several:
            parts += ["op_statistic"] if counted != int(np.nansum(statistic.columns["count"])) else []
        for other in dict.fromkeys(parts):
            self.files.warn(f"The kernels here are only a part of those in {other}.", f"Totals are those of {other}.",
                            kernels.file)  # fmt: skip

    def _check_clocks(self) -> None:
        for name, key in (("memory", "time"), ("allocations", "allocated")):
            if name in self.records and self.extent is not None:
                times = self.records[name].columns[key]
                times = times[(times != INT_MISSING) & (times % ROUNDED_NS != 0)]
                if len(times) and not Judgement(*self.extent).near(times).any():
                    self._report_clock(self.records[name].file, times, "They are shown as recorded.")

    def _report_clock(self, file: str, times: I64, done: str) -> None:
        apart = abs(int(times.min()) - (self.extent or (0, 0))[0])
        self.files.warn(f"The times of {file} are {time_words(apart)} from those of the work on the device: it has "
                        "another clock.", done, file, count=len(times))  # fmt: skip

    # -- about the run

    @cached_property
    def _info(self) -> dict[str, Any]:
        path = next((path for path in self.paths.info if path.name.startswith("profiler_info")), None)
        return (None if path is None else self.files.tried(path, lambda name: read_json(path, name))) or {}

    def setting(self, *keys: str) -> Any:
        """A profiler setting (``profiler_info*.json``) by its path of keys; None if absent."""
        found: Any = self._info
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    @property
    def level(self) -> str:
        """Profiler level, such as ``Level1``; empty if unknown."""
        found = str(self.setting("config", "experimental_config", "_profiler_level") or "")
        return found.removeprefix("ProfilerLevel.")

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
        info = () if self.paths.several else (self.setting("rank_id"),)
        return next(filter(_is_number, (self.paths.rank_of_file, *info, *self._mapped("rankId"))), None)

    @cached_property
    def device(self) -> int:
        """Device number; -1 if unknown."""
        devices = self._stated_devices[0] or self._stated_devices[1]
        stated, named = (*self._mapped("deviceId"), *(devices if len(devices) == 1 else ())), (self.paths.device,)
        found = (*named, *stated) if self.paths.several else (*stated, *named)
        return next(filter(_is_number, found), -1)

    def _mapped(self, column: str) -> list[Any]:
        """A column of the database's ranks and devices, if it has one row, or one of the worker's device."""
        database = self.files.database(*DATABASES)
        rows = database.rows("RANK_DEVICE_MAP", column, "deviceId")
        own = [value for value, device in rows if device == self.paths.device and self.paths.device >= 0]
        return own or ([value for value, _ in rows] if len(rows) == 1 else [])

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices that its files hold the work of, ascending, if there are several in one of them; else empty."""
        found = next((found for found in self._stated_devices if len(found) > 1), [])
        if len(found) > _MOST_DEVICES:
            self.files.warn(f"{len(found):,} numbers of devices in one folder.", "They are shown as one NPU.",
                            count=len(found))  # fmt: skip
            return ()
        return tuple(found)

    @cached_property
    def _stated_devices(self) -> tuple[list[int], list[int]]:
        """The devices that the kernels state, and that the timeline states for work."""
        of_kernels, timeline = self.kernels.details.whole("device"), self.timeline
        used, working = set(of_kernels.codes.tolist()), set(timeline.track[timeline.work].tolist())
        return (sorted({device_number(text) for code, text in enumerate(of_kernels.texts) if code in used} - {-1}),
                sorted(filter(_is_number, {timeline.tracks[track].device for track in working})))  # fmt: skip

    @cached_property
    def chip(self) -> str:
        """Name of its device; empty if unknown."""
        rows = self.files.database(*DATABASES).rows("NPU_INFO", "name")
        return next((str(name) for (name,) in rows if name), "")

    @cached_property
    def parallel(self) -> dict[str, tuple[str, str]]:
        """Name and ranks of groups that communicate: profiler_metadata.json, else META_DATA (`RecordedRank`)."""
        path, key = self.paths.root / "profiler_metadata.json", "parallel_group_info"
        told = self.files.tried(path, lambda name: read_json(path, name)) if os.path.isfile(path) else None
        rows = dict(self.files.database(*DATABASES).rows("META_DATA", "name", "value")) if told is None else {}
        with suppress(ValueError, RecursionError):
            told = {key: json.loads(str(rows.get(key, "{}")))} if told is None else told
        groups = told.get(key) if told is not None else None
        found = {}
        for group, info in groups.items() if isinstance(groups, dict) else ():
            ranks = info.get("global_ranks") if isinstance(info, dict) else None
            if isinstance(ranks, list):
                found[_hash_of_group(group)] = utf8_text(str(info.get("group_name"))), ", ".join(map(str, ranks))
        return found

    @property
    def clock(self) -> float | None:
        """Offset of the monotonic clock of its host from its cycle counter, ns; None if unknown."""
        monotonic, cycles, megahertz = (number(self.setting("start_info", key))
                                        for key in ("start_monotonic", "start_cnt", "freq"))  # fmt: skip
        if monotonic is None or cycles is None or not megahertz:
            return None
        return float(monotonic - cycles * 1000 / megahertz)


def _hash_of_group(name: str) -> str:
    """What names of communication operators have of their group: two hashes of 32 bits, of HCCL."""
    halves = [0, 0]
    for letter in map(ord, name):
        halves = [(half * prime + letter) & 0xFFFFFFFF for half, prime in zip(halves, (29, 131), strict=True)]
    return str(halves[0] << 32 | halves[1])


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31
