"""Builds a Profile from ranks: a group per worker, with host layers and the NPU below; tracks become lanes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import (
    INT_MISSING,
    Activity,
    Counter,
    Device,
    Group,
    Groups,
    Lane,
    Links,
    Problem,
    Profile,
    Role,
    Scopes,
    Severity,
    Steps,
    StringsBuilder,
)
from tpuprof_tui.model.group import Worker, free_number
from tpuprof_tui.model.lane import LazyColumn, Rows, constant, row_numbers
from tpuprof_tui.model.profile import RecordingMode, time_of_day
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.table import Table
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.model.vocabulary import NAMES
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.sources.chrome.nesting import Nesting
from tpuprof_tui.sources.chrome.times import aside_lane, aside_problem, clock_difference, step_numbers
from tpuprof_tui.sources.source import ProgressCallback, chosen_names, file_size, progress_of_part

from ...rank_names import ranks_in_names
from ...runs import RecordingPlace, UnplacedRecording, places_of, problems_of
from ..records import ASYNC_NPU, HOST_TO_DEVICE, STEP, RecordedRank, Step, late_rank, records, waits_of
from ..vocabulary import DEVICE, METRICS, NUMBERS, TEXTS, VOCABULARY, columns_of_metrics, metric_key
from .content import unpack_command
from .csv_table import Texts
from .files import Files
from .folders import RECORDING, Export, WorkerFiles, export_command, profiles_at, relative
from .kernels import Details, Kernels, OperatorTimes, rows_of_work
from .rank import Rank
from .steps import device_steps, host_steps
from .tables import Records, cluster_records, codes_in, codes_of, table_of, tables_of
from .timeline import Layer, SliceClass, Timeline, Track

#: Columns that lanes of a kind alone have.
_OWN_COLUMNS: Final = {
    "python": ("thread", "shapes", "stack"), "cann": ("measured", "connection", "thread"),
    "stream": ("connection", "accelerator", "waited", "stream"), "plane": ("bytes",),
    "communication": ("connection", "accelerator", "waited"),
}  # fmt: skip
_ON_HOST: Final = (Layer.PYTHON, Layer.CANN, Layer.OTHER)
_LINKS: Final = {ASYNC_NPU: "operator", HOST_TO_DEVICE: "launch", "async_task_queue": "queue", "fwdbwd": "backward",
                 "MsTx": "mark"}  # fmt: skip


def open_profile(path: Path, progress: ProgressCallback | None = None, recordings: str = "") -> Profile:
    """Reads the profile at a path; of several folders those that ``recordings`` names, if it is not empty.

    Raises:
        UsageError: There is no such recording.
        UnreadableError: There is nothing to show; for raw output the hint is the command that exports it.
    """
    found = profiles_at(path)
    roots = list(dict.fromkeys(worker.root for worker in found.workers))
    if recordings and len(roots) > 1:
        names = set(chosen_names(recordings, [root.name for root in roots]))
        found = replace(found, workers=tuple(worker for worker in found.workers if worker.root.name in names))
    if not found.workers and not found.cluster:
        if found.raw:
            raw = found.raw[0]
            raise UnreadableError(f"{raw.folder} {raw.what}", raw.advice)
        if found.archives:
            archive = found.archives[0]
            raise UnreadableError(f"{archive} is an archive of an Ascend profile, which tpuprof does not unpack.",
                                  f"Unpack it and open the folder: {unpack_command(archive)}")  # fmt: skip
        raise UnreadableError(f"{path} holds no file of an Ascend profile.")
    sizes = [sum(map(file_size, worker.every_file())) for worker in found.workers]
    ranks: list[Rank] = []
    problems: list[Problem] = []
    timelines: dict[tuple[Path, ...], Timeline] = {}
    for number, worker in enumerate(found.workers):
        report = progress_of_part(progress, worker.name, sum(sizes[:number]), sum(sizes))
        report(0, 0)
        whole = Rank(worker, path, report, timelines if worker.shares else None)
        # a folder does not tell that its files hold several devices
        parts = [whole] if worker.shares else whole.of_devices()
        problems += whole.timeline.problems if whole not in parts else ()
        for rank in parts:
            rank.read()
            ranks += [] if rank.is_empty else [rank]
            problems += (each for each in rank.files.problems if each not in problems)
    for raw in found.raw:
        problems.append(Problem(Severity.WARNING, f"{raw.folder.name} {raw.what}", raw.advice))
    archived = f"Unpack: {unpack_command(found.archives[0])}" if found.archives else ""
    for files, severity, what, done in (
        (found.loose, Severity.NOTE, "beside folders of ranks, and of none of them", "Shown as one more NPU."),
        (found.others, Severity.NOTE, "of PyTorch, beside folders of Ascend", "Not shown here: open it by itself."),
        (found.archives, Severity.WARNING, "an archive of an Ascend profile, which is not read", archived),
    ):
        if files:
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            problems.append(Problem(severity, f"{files[0].name}{more}: {what}.", done, files[0].name, count=len(files)))
    exports = {role: Export((file,)) for role, file in found.cluster.items()}
    cluster_files = Files(WorkerFiles(path, path.name, exports), None)
    cluster = cluster_records(cluster_files)
    cluster_files.report()
    problems += cluster_files.problems
    if not ranks and not cluster and (problems or not found.cluster):
        message = problems[0].what if problems else f"{path} holds nothing that can be read."
        folder = next((worker.root for worker in found.workers if worker.root.is_dir() and worker.is_rank_folder), None)
        again = f"Its analysis may not have been finished. Repeat it: {export_command(folder)}" if folder else ""
        raise UnreadableError(message, again)
    return _ProfileBuilder(path, ranks, cluster, problems).profile()


class _ProfileBuilder:
    def __init__(
        self, path: Path, ranks: Sequence[Rank], cluster: Mapping[str, Records], problems: Sequence[Problem]
    ) -> None:  # fmt: skip
        self._path, self._ranks, self._cluster = path, ranks, cluster
        self._problems = list(problems)
        self._texts = {key: StringsBuilder() for key in ("name", "type", "accelerator", "bound", "stack")}
        self._read_texts = {key: StringsOnDemand() for key in ("shapes", *TEXTS)}
        self._groups: list[Group] = []
        self._lanes: list[Lane] = []
        #: Lanes of set aside slices: behind all others, so that these keep their numbers where they are left out.
        self._aside: list[Lane] = []
        self._counters: list[Counter] = []
        #: Label, group, start, end and number of each step.
        self._steps: list[tuple[str, int, int, int, int]] = []
        self._tables: list[Table] = []
        #: Each with the number of its first event.
        self._timelines: list[tuple[Timeline, int]] = []
        #: Reading of the clock of the worker that is being added at the zero of the time line, ns.
        self._zero = 0

    def profile(self) -> Profile:
        self._guess_ranks()
        if None not in (numbers := [rank.rank for rank in self._ranks]):
            order = sorted(range(len(numbers)), key=lambda index: numbers[index] or 0)
            self._ranks = [self._ranks[index] for index in order]
        spans, keys = self._spans(), self._keys()
        moved = _align(self._ranks, spans)
        # what ranks have in common: the opened folder, or one with several devices; empty: unknown
        jobs = ["ranks" if rank.rank is not None else str(rank.paths.root) if rank.paths.several else ""
                for rank in self._ranks]  # fmt: skip
        recordings = [
            UnplacedRecording(self._who(rank, key), low + shift, high + shift, rank.rank, job, rank.chip, shift != 0)
            for rank, key, job, (low, high), shift in zip(
                self._ranks, keys, jobs, _extents(self._ranks), moved, strict=True)
        ]  # fmt: skip
        places = places_of(recordings)
        for rank, shift in zip(self._ranks, moved, strict=True):
            if shift:
                self._problems.append(Problem(
                    Severity.WARNING, f"Its clock differs by {time_text(abs(shift))} from that of the first rank, as "
                    "its communication operators tell.", f"Its times were moved by ~{shift / 1e9:,.6f} s.",
                    rank.paths.name))  # fmt: skip
        self._problems += problems_of(recordings, places)
        workers = list(map(self._worker, self._ranks, keys, spans, places, moved))
        self._remark_late([worker.recorded for worker in workers])
        several = len({place.session for place in places}) > 1
        # events that are set aside have no times
        if not several and not self._aside:
            workers = [replace(worker, window=None) for worker in workers]
        first = min((rank.recorded.zero for rank in workers), default=0)
        labels = StringsBuilder()
        step_labels, *step_columns = zip(*self._steps, strict=True) if self._steps else [()] * 5
        groups, starts, ends, counts = (np.array(column, np.int64) for column in step_columns)
        device = any(len(rank.kernels) for rank in self._ranks)
        chip = next((rank.chip for rank in self._ranks if rank.chip), "") or ("Ascend" if self._ranks else "")
        levels = ", ".join(dict.fromkeys(rank.level for rank in self._ranks if rank.level))
        metrics = [name for rank in self._ranks for name in rank.kernels.details.metrics]
        return Profile(
            path=str(self._path), name=os.path.basename(os.path.abspath(self._path)),
            vocabulary=replace(VOCABULARY, more_columns=columns_of_metrics(metrics)),
            device=Device(chip),
            recording=RecordingMode(levels or ("an Ascend profile" if self._ranks else "msprof-analyze"), levels,
                                "CANN's profiler"),
            capabilities=frozenset((NAMES, DEVICE) if device else (NAMES,)),
            source_data={}, workers=tuple(workers), groups=Groups(self._groups),
            lanes=(*self._lanes, *self._aside), scopes=Scopes(),
            strings={**{key: builder.build() for key, builder in self._texts.items()}, **self._read_texts},
            problems=tuple(self._problems), counters=tuple(self._counters), epoch_ns=first,
            wall_ns=None if several else time_of_day(first),
            steps=Steps(label=np.array([*map(labels.code, step_labels)], np.int32), labels=labels.build(),
                        group=groups.astype(np.int32), start=starts, end=ends, number=counts),
            links=lambda: _links(self._timelines),
            tables=(*self._tables, *(table_of(name, -1, records) for name, records in self._cluster.items())),
        )  # fmt: skip

    def _remark_late(self, ranks: Sequence[RecordedRank]) -> None:
        operations = {table.group: table for table in self._tables if table.name == "operations"}
        ranks = [rank for rank in ranks if rank.group in operations]
        keys = ("step", "kind", "op", "start", "wait", "synchronization")
        last = late_rank([(rank.rank, rank.clock, waits_of(records(operations[rank.group], *keys), rank.zero))
                          for rank in ranks])  # fmt: skip
        for group in (ranks[last].group, ranks[last].unit) if last >= 0 else ():
            self._groups[group] = replace(self._groups[group], remark="late")

    def _guess_ranks(self) -> None:
        unknown = [rank for rank in self._ranks if rank.stated_rank is None and not rank.paths.several]
        for names in ([rank.paths.name for rank in unknown], [rank.paths.root.parent.name for rank in unknown]):
            for rank, named in zip(unknown, ranks_in_names(names), strict=True):
                rank.named_rank = named.rank if rank.named_rank is None else rank.named_rank

    def _spans(self) -> list[int]:
        """Number of each recording among those of its worker, in order of time from 1."""
        spans, counts = [1] * len(self._ranks), dict[str, int]()
        for index in sorted(range(len(spans)), key=lambda index: ((self._ranks[index].extent or (0, 0))[0], index)):
            who = self._who(self._ranks[index], str(index))
            counts[who] = spans[index] = counts.get(who, 0) + 1
        return spans

    @staticmethod
    def _who(rank: Rank, key: str) -> str:
        """The worker of a recording: its rank, else host and process of its folder, else its key."""
        if rank.rank is not None:
            return f"rank {rank.rank}"
        process = RECORDING.fullmatch(rank.paths.name)
        return process[1] if process and not rank.paths.several else key

    def _keys(self) -> list[str]:
        keys: list[str] = []
        for rank in self._ranks:
            key = rank.paths.name
            if key in keys:
                key = os.path.relpath(rank.paths.root, self._path).replace(os.sep, "/")
            while key in keys:
                key += "'"
            keys.append(key)
        return keys

    def _worker(self, rank: Rank, key: str, span: int, place: RecordingPlace, shift: int) -> Worker:
        """Adds a rank: its groups, lanes, steps, tables and counters."""
        self._zero = zero = -(place.shift + shift)
        label = key if rank.rank is None else f"Rank {rank.rank}" + (f" ({span})" if span > 1 else "")
        label += " ~" if rank.rank_guessed else ""
        if any(group.parent < 0 and group.label == label for group in self._groups):
            label = key
        top, timeline = len(self._groups), rank.timeline
        self._groups.append(Group(label, "rank", number=-1 if rank.rank is None else rank.rank, run=place.run,
                                  session=place.session))  # fmt: skip
        ids: dict[str, int] = {}
        for track in timeline.tracks:
            process = track.process or "Other"
            if track.layer in _ON_HOST and process not in ids:
                ids[process] = len(self._groups)
                self._groups.append(Group(process, "layer", top))
        unit = len(self._groups)
        own = rank.rank if rank.rank is not None else rank.device
        # a device that is recorded again keeps its number
        number = own if span > 1 and own >= 0 else free_number(self._groups, own)
        title = f"NPU {number if own < 0 else own}" + (f" ({span})" if span > 1 else "")
        self._groups.append(Group(title, "npu", top, number, is_unit=True))
        self._add_steps(rank, top)
        first, events = sum(map(len, self._lanes)), np.zeros(0, np.int64)
        if len(timeline):
            events = self._add_timeline(rank, timeline, ids, unit, top)
            self._timelines.append((timeline, first))
        elif rank.kernels.file:
            events = self._add_kernels(rank, rank.kernels, unit, top)
        self._tables += tables_of(rank, top, zero, first, np.where(events >= 0, events + first, -1))
        for each in timeline.counters:
            name = each.name if each.name.startswith(each.process) else f"{each.process} {each.name}"
            self._counters.append(Counter(unit, name, each.unit, each.times - zero, each.values.copy(), each.process))
        window = None if rank.extent is None else (rank.extent[0] - zero, rank.extent[1] - zero)
        file = timeline.file if len(timeline) else ""
        metrics = str(rank.setting("config", "experimental_config", "_aic_metrics") or "")
        recorded = RecordedRank(key, rank.rank, zero, top, unit, file, rank.work_file, rank.level, metrics, rank.clock,
                                rank.rules, rank.parallel)  # fmt: skip
        device = rank.device if rank.device >= 0 else None
        devices = ({"name": rank.chip or ("NPU" if device is None else f"NPU {device}"), "id": device},)
        files = tuple(relative(rank.paths.every_file(), self._path))
        return Worker(key, top, rank.rank, rank.paths.name, span, files, devices, recorded=recorded, window=window,
                      epoch_ns=zero, rank_guessed=rank.rank_guessed)  # fmt: skip

    def _add_steps(self, rank: Rank, top: int) -> None:
        """Adds the steps that were marked, else the iterations of a graph."""
        timeline, iterations = rank.timeline, rank.iterations
        if len(marks := timeline.steps):
            labels = [timeline.names[name] for name in timeline.name[marks].tolist()]
            numbers = [label.removeprefix(STEP) for label in labels]
            start, end = timeline.start[marks], timeline.end[marks]
        elif iterations is not None and (len(timeline) or rank.kernels.file):
            labels = [f"Iteration {label}" for label in iterations.labels]
            numbers, start, end = iterations.labels, iterations.start, iterations.end
        else:
            return
        self._steps += zip(labels, [top] * len(labels), (start - self._zero).tolist(), (end - self._zero).tolist(),
                           step_numbers(numbers).tolist(), strict=True)  # fmt: skip

    # -- lanes

    def _add_timeline(self, rank: Rank, timeline: Timeline, ids: Mapping[str, int], unit: int, top: int) -> I64:
        """Adds a lane for each track; the slice of each kernel, -1 if it is none."""
        columns = _Columns(self._texts, self._read_texts, rank, timeline, self._zero)
        for rows, track in _by_track(timeline):
            group = ids.get(track.process or "Other", unit) if track.layer in _ON_HOST else unit
            self._lanes.append(columns.lane(rows, track, group))
        if (aside := timeline.aside) is not None:
            names, kinds = (_codes(self._texts[key], texts)[codes] for key, texts, codes in (
                ("name", aside.names, aside.name), ("type", aside.kinds, aside.kind)))  # fmt: skip
            for rows, track in _by_track(aside):
                title = track.label if track.device < 0 else f"NPU {track.device} {track.label}"
                own = {"order": aside.file_order[rows], "name": names[rows], "type": kinds[rows]}
                start, end = aside.start[rows], aside.end[rows]
                self._aside.append(aside_lane(title, top, own, start, end))
                self._problems.append(aside_problem(title, start, end, aside.away[rows], file=aside.file, group=top,
                                                    lane=self._aside[-1].label))  # fmt: skip
        return columns.slice_of_kernel()

    def _add_kernels(self, rank: Rank, kernels: Kernels, unit: int, top: int) -> I64:
        """Adds lanes for kernels without a timeline: one for each stream, one for communication.

        Returns:
            Number of the event of each kernel among those of the rank; -1 if it is none.
        """
        events, added = np.full(len(kernels), -1, np.int64), 0
        timed, stream = np.flatnonzero(kernels.timed), kernels.details.whole("stream")
        keys = np.where(kernels.communicates[timed], len(stream.texts), stream.codes[timed])
        name, kind, core = (
            _codes(self._texts[key], column.texts)[column.codes]
            for key, column in (("name", kernels.name), ("type", kernels.type), ("accelerator", kernels.core))
        )
        details = _kernel_columns(kernels, self._texts["bound"], self._read_texts)
        for code in uniques(keys).tolist():
            rows = timed[keys == code]
            rows = rows[np.lexsort((-kernels.end[rows], kernels.start[rows]))]
            start, count = kernels.start[rows], len(rows)
            events[rows], added = np.arange(added, added + count), added + count
            columns: dict[str, Any] = {
                **_places(start - self._zero, kernels.end[rows] - self._zero), "order": rows,
                "role": constant(count, Role.WORK, np.int8), "name": name[rows], "type": kind[rows],
                "accelerator": core[rows], "waited": kernels.wait[rows],
            }  # fmt: skip
            if rank.iterations is not None:
                columns["step"] = partial(_steps_of_rows, device_steps, rank, start)
            if code == len(stream.texts):
                lane = Lane(kind="communication", group=unit, label="Communication", columns=columns,
                            activity=Activity.COMMUNICATION)  # fmt: skip
            else:
                text = stream.texts[code] if code >= 0 else ""
                number = int(text) if text.isdecimal() and len(text) < 9 else -1
                columns |= {
                    "stream": constant(count, number if number >= 0 else INT_MISSING, np.int64),
                    **details(rows),
                }
                lane = Lane(kind="stream", group=unit, label=f"Stream {text}" if text else "Kernels", number=number,
                            columns=columns, activity=Activity.COMPUTE)  # fmt: skip
            self._lanes.append(lane)
        if len(rows := kernels.aside):
            own, start = {"order": rows, "name": name[rows], "type": kind[rows]}, kernels.start[rows]
            self._aside.append(aside_lane("Kernels", top, own, start, start + kernels.duration[rows]))
        return events


def _by_track(timeline: Timeline) -> Iterator[tuple[slice, Track]]:
    for track, (first, last) in zip(timeline.tracks, pairwise(timeline.first.tolist()), strict=True):
        yield slice(first, last), track


def _codes(builder: StringsBuilder, texts: Iterable[str]) -> npt.NDArray[np.int32]:
    """Codes of a strings builder by code of texts; that of a missing one at the end."""
    return np.array([*map(builder.code, texts), -1], np.int32)


def _places(start: I64, end: I64, *, nested: bool = False) -> dict[str, Any]:
    if nested:
        lines = cache(lambda: Nesting(start, end).sublane)
        return {"start": start, "end": end, "sublane": lambda rows: lines()[rows]}
    sublane, _ = split_overlaps(start, end)
    return {"start": start, "end": end, "sublane": np.zeros(len(start), np.int16) if sublane is None else sublane}


def _kernel_columns(
    kernels: Kernels, bound: StringsBuilder, texts: Mapping[str, StringsOnDemand]
) -> Callable[[I64], dict[str, LazyColumn]]:  # fmt: skip
    """Columns of events by the index of the kernel of each (-1: none), most of which are read on demand."""
    details = kernels.details
    #: Missing value of each column, and a function from kernels to values.
    columns: dict[str, tuple[Any, Callable[[I64], npt.NDArray[Any]]]] = {}
    for key in ("shapes", *TEXTS):
        name = "input_shapes" if key == "shapes" else key
        if name in details.texts:
            read = partial(codes_of, texts[key], details, name, _on_one_line)
            texts[key].read_all.append(partial(read, np.arange(len(kernels))))
            columns[key] = np.int32(-1), read
    for key in ("blocks", *NUMBERS):
        if key in details.texts:
            columns[key] = INT_MISSING, partial(_numbers_of, details, key)
    names: dict[str, str] = {metric_key(name): name for name in METRICS if name in details.metrics}
    names |= {column.key: column.title for column in columns_of_metrics(details.metrics)}
    columns |= {key: (np.nan, partial(details.take, name)) for key, name in names.items()}
    if details.pipes:
        # the codes of all pipes are known before anything is read
        pipes = _codes(bound, details.pipes)
        columns["bound"] = np.int32(-1), lambda rows: pipes[details.bound(rows)[0]]
        columns["bound_ratio"] = np.nan, lambda rows: details.bound(rows)[1]

    def take(own: I64, nothing: Any, read: Callable[[I64], npt.NDArray[Any]], rows: Rows) -> npt.NDArray[Any]:
        chosen = own[rows]
        present = chosen >= 0
        found = np.full(len(chosen), nothing)
        found[present] = read(chosen[present])
        return found

    return lambda own: {key: partial(take, own, *column) for key, column in columns.items()}


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _numbers_of(details: Details, key: str, rows: I64) -> I64:
    column: Texts = details.take(key, rows)
    values = [int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else INT_MISSING
              for text in column.texts]  # fmt: skip
    return np.array([*values, INT_MISSING], np.int64)[column.codes]


class _Columns:
    def __init__(
        self, texts: Mapping[str, StringsBuilder], read_texts: Mapping[str, StringsOnDemand], rank: Rank,
        timeline: Timeline, zero: int,
    ) -> None:  # fmt: skip
        self._rank, self._timeline = rank, timeline
        self._start, self._end = timeline.start - zero, timeline.end - zero
        self._name = _codes(texts["name"], timeline.names)[timeline.name]
        self._type = np.array([*(texts["type"].code(kind) if kind else -1 for kind in timeline.kinds), -1],
                              np.int32)[timeline.kind]  # fmt: skip
        self._stacks = timeline.stacks
        if (timeline.stacks >= 0).any():
            self._stacks = _codes(texts["stack"], map(_on_one_line, timeline.texts))[timeline.stacks]
        count, kernels = len(timeline), rank.kernels
        self._kernel, self._accelerator = np.full(count, -1, np.int64), np.full(count, -1, np.int32)
        self._waited = np.full(count, INT_MISSING)
        self._operators = OperatorTimes(timeline, kernels)
        self._details = _kernel_columns(kernels, texts["bound"], read_texts)
        if len(timeline.work):
            found = rows_of_work(kernels, timeline, timeline.work)
            rows, found = timeline.work[found >= 0], found[found >= 0]
            typed = _codes(texts["type"], kernels.type.texts)[kernels.type.codes[found]]
            self._type[rows] = np.where(typed >= 0, typed, self._type[rows])
            self._accelerator[rows] = _codes(texts["accelerator"], kernels.core.texts)[kernels.core.codes[found]]
            self._waited[rows], self._kernel[rows] = kernels.wait[found], found
        shapes = Texts(timeline.shapes, timeline.texts)
        self._shapes = cache(lambda: codes_in(read_texts["shapes"], shapes, _on_one_line))
        read_texts["shapes"].read_all.append(self._shapes)
        roles = np.full(len(SliceClass), Role.WORK, np.int8)
        roles[[SliceClass.WAIT, SliceClass.SYNC, SliceClass.PARENT]] = (Role.WAIT, Role.SYNC, Role.ANNOTATION)
        self._role = roles[timeline.slice_class]
        # on planes, the waits of a collective's tasks can only be told by name
        waits = timeline.named(lambda name: "wait" in name.lower() and "notify" in name.lower())
        notes = timeline.named(lambda name: "record" in name.lower())
        parts = timeline.slice_class == SliceClass.COLLECTIVE_TASK
        self._role[parts & waits] = Role.WAIT
        self._role[parts & notes] = Role.SYNC

    def slice_of_kernel(self) -> I64:
        """Row of the slice of each kernel; -1 if it is none."""
        found = np.full(len(self._rank.kernels), -1, np.int64)
        rows = np.flatnonzero(self._kernel >= 0)
        found[self._kernel[rows]] = rows
        return found

    def lane(self, rows: slice, track: Track, group: int) -> Lane:
        timeline, kind, on_host = self._timeline, track.layer.name.lower(), track.layer in _ON_HOST
        count = rows.stop - rows.start
        columns: dict[str, Any] = {
            **_places(self._start[rows], self._end[rows], nested=on_host), "order": timeline.file_order[rows],
            "role": self._role[rows], "name": self._name[rows], "type": self._type[rows],
            "step": partial(_steps_of_rows, host_steps if on_host else device_steps, self._rank, timeline.start[rows]),
        }  # fmt: skip
        numbered = constant(count, track.number if track.number >= 0 else INT_MISSING, np.int64)
        own: dict[str, Any] = {
            "measured": lambda some: timeline.lengths(row_numbers(rows)[some]), "connection": timeline.connection[rows],
            "thread": numbered, "stream": numbered, "shapes": lambda some: self._shapes()[rows][some],
            "stack": self._stacks[rows], "accelerator": self._accelerator[rows], "waited": self._waited[rows],
            "bytes": timeline.size[rows],
        }  # fmt: skip
        columns |= {key: own[key] for key in _OWN_COLUMNS.get(kind, ())}
        columns |= self._operators.columns(rows) if kind in ("python", "other") else {}
        columns |= self._details(self._kernel[rows]) if kind == "stream" else {}
        activity: Activity | None = {"communication": Activity.COMMUNICATION, "plane": Activity.COMMUNICATION}.get(
            kind, Activity.HOST if on_host else Activity.COMPUTE)  # fmt: skip
        counted = kind not in ("plane", "overlap")
        if kind == "stream":
            classes, parts = timeline.slice_class[rows], timeline.in_collectives(rows)
            doing = np.full(count, Activity.COMPUTE, np.int8)
            doing[classes == SliceClass.COPY] = Activity.TRANSFER
            doing[parts & (classes != SliceClass.KERNEL)] = Activity.COMMUNICATION
            columns["activity"] = doing
            # a stream with only tasks of collectives repeats the planes: it does not count as busy
            work = self._role[rows] == Role.WORK
            counted = not (parts & work).any() or bool((work & (classes == SliceClass.KERNEL)).any())
        return Lane(kind=kind, group=group, label=track.label, number=track.number, columns=columns,
                    activity=activity, counted=counted)  # fmt: skip


def _steps_of_rows(numbers: Callable[[Sequence[Step], I64], I64], rank: Rank, starts: I64, rows: Rows) -> I64:
    return numbers(rank.steps, starts[rows])


def _extents(ranks: Sequence[Rank]) -> list[tuple[int, int]]:
    """First and last time of each worker, ns; devices of one folder have one clock, and so one extent."""
    known = [(rank.paths.root, rank.extent) for rank in ranks if rank.extent is not None]
    nowhere = (min((low for _, (low, _) in known), default=0),) * 2
    found = []
    for rank in ranks:
        same = [extent for root, extent in known if root == rank.paths.root] if rank.paths.several else []
        lows, highs = zip(*(same or [rank.extent or nowhere]), strict=True)
        found.append((min(lows), max(highs)))
    return found


def _links(timelines: Sequence[tuple[Timeline, int]]) -> Links:
    """Links from operators and calls to launched tasks, from enqueue to dequeue, from forward to backward operators.

    ``timelines``: each with the number of its first event.
    """
    kinds = tuple(_LINKS.values())
    parts: list[tuple[Any, I64, I64]] = [(np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for timeline, first in timelines:
        flows = timeline.flows
        linked = (flows.from_row >= 0) & (flows.to_row >= 0)
        for code, category in enumerate(flows.categories):
            rows = np.flatnonzero(linked & (flows.category == code))
            parts.append((np.full(len(rows), kinds.index(_LINKS[category]), np.int8), flows.from_row[rows] + first,
                          flows.to_row[rows] + first))  # fmt: skip
    kind, from_row, to_row = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    launching = frozenset(map(kinds.index, ("operator", "launch")))
    return Links(kinds, kind, from_row, to_row, launching=launching)


# Clocks of the ranks of a run are compared by their communication operators: the name of one
# (``hcom_allReduce__586_0_1``) has the group and a number, so it is the same on all ranks of the group.

#: Start and end of each operator of a rank, ns, by its name and its number among those of the name.
_Operators = dict[tuple[str | None, int], tuple[int, int]]


def _align(ranks: Sequence[Rank], spans: Sequence[int]) -> list[int]:
    """Offset in ns to add to the clock of each rank; 0 for clocks that agree with another's.

    Args:
        ranks: The recordings.
        spans: Number of each among those of its rank: only those of one number are compared.
    """
    found = [0] * len(ranks)
    known: dict[int, list[tuple[_Operators, set[str], int]]] = {}
    for number, (rank, span) in enumerate(zip(ranks, spans, strict=True)):
        if rank.rank is None:
            continue
        own, timeline = _operators(rank), rank.timeline
        steps = {timeline.names[code] for code in timeline.name[timeline.steps].tolist()}
        for other, other_steps, shift in known.get(span, ()):
            # what was recorded in other steps ran at another time
            common = own.keys() & other.keys() if steps & other_steps or not (steps and other_steps) else ()
            if common:
                one, two = (np.array([of[key] for key in common], np.int64).T for of in (other, own))
                found[number] = shift - clock_difference((one[0], one[1]), (two[0], two[1]))
                break
        if own:
            known.setdefault(span, []).append((own, steps, found[number]))
    return found


def _operators(rank: Rank) -> _Operators:
    timeline, kernels = rank.timeline, rank.kernels
    if len(rows := timeline.rows(SliceClass.COLLECTIVE)):
        start, end = timeline.start[rows], timeline.end[rows]
        names: list[str | None] = [timeline.names[code] for code in timeline.name[rows].tolist()]
    else:
        rows = np.flatnonzero(kernels.communicates & kernels.timed)
        start, end, names = kernels.start[rows], kernels.end[rows], kernels.name.values(rows)
    counts: dict[str | None, int] = {}
    found: _Operators = {}
    for row in np.argsort(start, kind="stable").tolist():
        count = counts[names[row]] = counts.get(names[row], -1) + 1
        found[names[row], count] = int(start[row]), int(end[row])
    return found
