"""A slow reader of what torch_npu writes on Ascend, for tests alone: whether what such folders hold fits the model.

Every file is read at once with ``json`` and ``csv``, numbers as exact decimals. A rank holds its layers on the host,
Python and CANN, whose lanes are threads, and one NPU, the unit. Lanes of the NPU are its streams, which mix kernels,
copies and waits, and what the collectives did: one lane of operators for each group of ranks, and the planes with the
tasks of these. The streams of the collectives and the planes tell the operators in parts, so they are not counted.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import (
    INT_MISSING,
    Activity,
    Column,
    Counter,
    Device,
    Group,
    Groups,
    Lane,
    Links,
    Profile,
    Role,
    Scopes,
    Steps,
    StringsBuilder,
)
from tpuprof_tui.model.profile import RecordingMode
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.vocabulary import NAMES, Capability, GroupKind, LaneKind, Vocabulary, Word
from tpuprof_tui.sources.source import ProgressCallback, Recognition, Source

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
COLUMNS: Final = (
    Column("engine", "Lane", kind="text", width=13, shown=True),
    Column("core", "NPU", shown=True),
    Column("name", "Name", kind="text", width=40, shown=True),
    Column("type", "Type", kind="text", width=16, shown=True),
    Column("start", "Start", unit="ns", shown=True),
    Column("end", "End", unit="ns"),
    Column("duration", "Duration", unit="ns", shown=True),
    Column("accelerator", "Accelerator core", kind="text", lanes=("stream",)),
    Column("blocks", "Blocks", lanes=("stream",)),
    Column("waited", "Waited", unit="ns", lanes=("stream", "communication"),
           help="Idle time before it, as the file says."),
    Column("bytes", "Bytes", unit="B", lanes=("plane",)),
    Column("step", "Step"),
    Column("depth", "Depth", lanes=("python", "cann")),
)  # fmt: skip
WORDS: Final = Vocabulary(
    source="slow ascend",
    title="Ascend profile",
    unit=Word("NPU"),
    event=Word("task"),
    scope=Word("operator"),
    lane_kinds=(
        LaneKind("stream", "Stream", Activity.COMPUTE, 0),
        LaneKind("communication", "Communication", Activity.COMMUNICATION, 1),
        LaneKind("plane", "Plane", Activity.COMMUNICATION, 2),
        LaneKind("python", "Python thread", Activity.HOST, 3),
        LaneKind("cann", "CANN thread", Activity.HOST, 4),
    ),
    group_kinds=(GroupKind("rank", "Ranks", Word("rank")), GroupKind("layer", "Layers", Word("layer")),
                 GroupKind("npu", "NPUs", Word("NPU"))),
    capabilities=(Capability(NAMES, "names", "any profile"),),
    columns_entry=f"{__name__}:COLUMNS",
)  # fmt: skip

#: Task types of kernels and of copies; what else a stream holds waits or does no work.
_KERNELS: Final = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "DSA_SQE")
_COPIES: Final = ("PCIE_DMA_SQE", "SDMA_SQE", "SDMA", "Memcpy", "Reduce_Inline")
_WAITS: Final = ("EVENT_WAIT_SQE", "Notify Wait", "Notify_Wait")
_STEP: Final = re.compile(r"ProfilerStep#\d+")


class SlowAscend(Source):
    """Folders of one rank, or of several beside each other."""

    id = "slow_ascend"
    title = "an Ascend profile"
    expected = f"a folder with {OUTPUT} in it, or of such folders"

    def recognises(self, path: Path) -> Recognition:
        """By the folder inside."""
        found = len(rank_folders(path))
        return Recognition("name", f"{found} with {OUTPUT}") if found else Recognition("", f"no {OUTPUT} in it")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """All ranks of the folder."""
        del options, progress
        return read_ranks(path)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder of a rank, or the one that holds folders of ranks."""
        return [folder] if OUTPUT in names or any(name.endswith("_ascend_pt") for name in names) else []

    def files(self, path: Path) -> Sequence[Path]:
        """The files of every rank."""
        return [file for folder in rank_folders(path) for file in sorted(folder.rglob("*")) if file.is_file()]


SOURCE: Final = SlowAscend()


def rank_folders(path: Path) -> list[Path]:
    """The folders of ranks that a path names: its own, or those in it."""
    if not os.path.isdir(path):
        return []
    return [each for each in (path, *sorted(path.iterdir())) if (each / OUTPUT).is_dir()]


def read_ranks(path: Path) -> Profile:
    """A profile of all ranks; zero is their first event.

    Raises:
        UnreadableError: A file is not what its name says.
    """
    try:
        ranks = [_Rank(folder) for folder in rank_folders(path)]
    except (ValueError, ArithmeticError, LookupError, TypeError) as error:
        raise UnreadableError(f"{path} holds files that are not Ascend's ({type(error).__name__}: {error}).") from None
    return _Maker(path, ranks).profile()


class _Event(NamedTuple):
    """A slice of a timeline.

    Attributes:
        start, end: ns since 1970.
        name: Its name.
        args: What else is known of it.
        category: ``cat``; empty without one.
    """

    start: int
    end: int
    name: str
    args: Mapping[str, Any]
    category: str


#: Process and thread of an event.
_Track = tuple[str, int]


class _Rank:
    """The files of one rank.

    Attributes:
        number: The rank; -1 where no file says so.
        tracks: Slices by process and thread, ordered by start, outer ones first.
        labels: Names of threads.
        flows: Category, time and track of the start, time and track of an end.
        samples: Values of counters by process, name and key: (ns, value).
        level: How much was recorded.
        steps: The steps that the profiler marked on the host.
        lanes: Kinds of the lanes and their tracks, in their order.
        collectives: Connections of the operators of collectives, by which their tasks name them.
    """

    def __init__(self, folder: Path) -> None:
        found = [re.fullmatch(r"profiler_info_(\d+)\.json", name) for name in sorted(os.listdir(folder))]
        self.folder = folder
        self.number = next((int(match[1]) for match in found if match), -1)
        self.level = next((_level(folder / match[0]) for match in found if match), "")
        self.tracks: dict[_Track, list[_Event]] = {}
        self.labels: dict[_Track, str] = {}
        self.flows: list[tuple[str, tuple[int, _Track], tuple[int, _Track]]] = []
        self.samples: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        with (folder / OUTPUT / "trace_view.json").open(encoding="utf-8") as stream:
            self._take(json.load(stream, parse_float=Decimal))
        self._kernels = {(row["Name"], _ns(row["Start Time(us)"])): row
                         for row in read_csv(folder / OUTPUT / "kernel_details.csv")}  # fmt: skip
        marked = [each for track, events in self.tracks.items() if track[0] == "Python"
                  for each in events if _STEP.fullmatch(each.name)]  # fmt: skip
        self.steps = sorted(marked, key=lambda each: each.start)
        order = [kind.key for kind in WORDS.lane_kinds]
        kinds = [(self._kind(track), track) for track in self.tracks]
        self.lanes = sorted((each for each in kinds if each[0]), key=lambda each: (order.index(each[0]), each[1]))
        self.collectives = {each.args["connection_id"] for kind, track in self.lanes if kind == "communication"
                            for each in self.tracks[track]}  # fmt: skip

    def kernel(self, event: _Event) -> Mapping[str, str] | None:
        """The row of ``kernel_details.csv`` about an event: starts of collectives are cut there, and rounded here."""
        return self._kernels.get((event.name, event.start)) or self._kernels.get((event.name, event.start - 1))

    def _take(self, events: Sequence[Mapping[str, Any]]) -> None:
        processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
        starts: dict[tuple[str, str], tuple[int, _Track]] = {}
        for each in events:
            track, args = (processes[each["pid"]], each["tid"]), each.get("args", {})
            if each["ph"] == "X":
                end = _ns(Decimal(each["ts"]) + Decimal(each["dur"]))
                event = _Event(_ns(each["ts"]), end, each["name"], args, each.get("cat", ""))
                self.tracks.setdefault(track, []).append(event)
            elif each["ph"] == "C":
                name = f"{each['name']} {args.get('acc_id', '')}".rstrip()
                for key in args.keys() - {"acc_id"}:
                    self.samples.setdefault((track[0], name, key), []).append((_ns(each["ts"]), float(args[key])))
            elif each["ph"] == "s":
                starts[each["cat"], str(each["id"])] = _ns(each["ts"]), track
            elif each["name"] == "thread_name":
                self.labels[track] = args["name"]
        for each in events:
            start = starts.get((each.get("cat", ""), str(each.get("id")))) if each["ph"] == "f" else None
            if start is not None:
                self.flows.append((each["cat"], start, (_ns(each["ts"]), (processes[each["pid"]], each["tid"]))))
        for found in self.tracks.values():
            found.sort(key=lambda event: (event.start, -event.end))

    def _kind(self, track: _Track) -> str:
        """The kind of lane that a track is; empty where it is none, but a table of the exporter's drawn as slices."""
        process, parts = track[0], self.labels.get(track, "").startswith("Plane")
        collective = "plane" if parts else "communication"
        return {"Python": "python", "CANN": "cann", "Ascend Hardware": "stream", "HCCL": collective,
                "Communication": collective}.get(process, "")  # fmt: skip


class _Maker:
    """A profile of ranks."""

    def __init__(self, path: Path, ranks: Sequence[_Rank]) -> None:
        self._path, self._ranks = path, ranks
        self._texts = {key: StringsBuilder() for key in ("name", "type", "accelerator")}
        self._zero = min((rank.tracks[track][0].start for rank in ranks for _, track in rank.lanes), default=0)
        # of each lane its rank and track, in the order of lanes
        self._places: list[tuple[int, _Track]] = []

    def profile(self) -> Profile:
        """The whole."""
        groups: list[Group] = []
        lanes: list[Lane] = []
        units: list[int] = []
        for place, rank in enumerate(self._ranks):
            top, number = len(groups), rank.number if rank.number >= 0 else place
            groups += [Group(f"Rank {number}" if rank.number >= 0 else rank.folder.name, "rank", number=number),
                       Group(f"NPU {number}", "npu", top, number, is_unit=True),
                       Group("Python", "layer", top), Group("CANN", "layer", top)]  # fmt: skip
            units.append(top + 1)
            ids = {"python": top + 2, "cann": top + 3}
            launched = {end: self._step_at(rank, start[0])
                        for category, start, end in rank.flows if category == "async_npu"}  # fmt: skip
            for kind, track in rank.lanes:
                self._places.append((place, track))
                lanes.append(self._lane(rank, kind, track, ids.get(kind, top + 1), launched))
        return Profile(
            path=str(self._path), name=self._path.name, vocabulary=WORDS, device=Device("Ascend"),
            recording=self._recording(), capabilities=frozenset((NAMES,)), source_data={},
            groups=Groups(groups), lanes=tuple(lanes), scopes=Scopes(), problems=(),
            strings={key: builder.build() for key, builder in self._texts.items()}, steps=self._steps(),
            counters=tuple(self._counters(units)), links=lambda: self._links(lanes),
        )  # fmt: skip

    def _recording(self) -> RecordingMode:
        levels = ", ".join(dict.fromkeys(rank.level for rank in self._ranks if rank.level))
        return RecordingMode(levels or "a profile", levels, "torch_npu")

    def _steps(self) -> Steps:
        """Steps of all ranks."""
        labels = StringsBuilder()
        rows = [(labels.code(each.name), 4 * place, each.start - self._zero, each.end - self._zero, _step_number(each))
                for place, rank in enumerate(self._ranks) for each in rank.steps]  # fmt: skip
        label, group, *times = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        return Steps(labels.build(), np.array(label, np.int32), np.array(group, np.int32),
                     *(np.array(column, np.int64) for column in times))  # fmt: skip

    @staticmethod
    def _step_at(rank: _Rank, time: int) -> int:
        """Number of the step in which something was called; missing where there is none."""
        found = (_step_number(each) for each in rank.steps if each.start <= time < each.end)
        return next(found, INT_MISSING)

    def _lane(
        self, rank: _Rank, kind: str, track: _Track, group: int, launched: Mapping[tuple[int, _Track], int]
    ) -> Lane:
        events = rank.tracks[track]
        start, end = (np.array([each[place] - self._zero for each in events], np.int64) for place in (0, 1))
        sublane, _ = split_overlaps(start, end)
        columns: dict[str, Any] = {
            "start": start, "end": end, "order": np.arange(len(events)),
            "sublane": np.zeros(len(events), np.int16) if sublane is None else sublane,
            "role": np.full(len(events), Role.WORK, np.int8),
            "name": self._codes("name", [each.name for each in events]),
        }  # fmt: skip
        on_host = kind in ("python", "cann")
        columns |= self._of_host(rank, events) if on_host else self._of_device(rank, kind, track, launched)
        if on_host:
            columns["parent"], columns["depth"] = _nesting(start, end)
        # streams of collectives hold their tasks, as the planes do
        parts = kind == "plane" or (
            kind == "stream" and any(each.args["connection_id"] in rank.collectives for each in events)
        )
        return Lane(kind=kind, group=group, label=rank.labels.get(track, str(track[1])), number=track[1],
                    activity=Activity.HOST if on_host else Activity.COMMUNICATION, counted=not parts,
                    columns=columns)  # fmt: skip

    def _of_host(self, rank: _Rank, events: Sequence[_Event]) -> dict[str, Any]:
        steps = [self._step_at(rank, each.start) for each in events]
        types = self._codes("type", [each.category or each.args.get("level", "") for each in events])
        return {"step": np.array(steps, np.int64), "type": types}

    def _of_device(
        self, rank: _Rank, kind: str, track: _Track, launched: Mapping[tuple[int, _Track], int]
    ) -> dict[str, Any]:
        events = rank.tracks[track]
        rows = [rank.kernel(each) for each in events]
        tasks = [str(each.args.get("Task Type", each.args.get("task type", ""))) for each in events]
        found = {
            "step": np.array([launched.get((each.start, track), INT_MISSING) for each in events], np.int64),
            "type": self._codes("type", [row["Type"] if row else task for row, task in zip(rows, tasks, strict=True)]),
        }
        if kind == "plane":
            found["bytes"] = np.array([each.args["size(Byte)"] for each in events], np.int64)
        else:
            found["waited"] = np.array([_ns(row["Wait Time(us)"]) if row else INT_MISSING for row in rows], np.int64)
        if kind != "communication":
            found["role"] = np.array([_role(task) for task in tasks], np.int8)
        if kind == "stream":
            collective = [each.args["connection_id"] in rank.collectives for each in events]
            found["activity"] = np.array([_activity(*each) for each in zip(tasks, collective, strict=True)], np.int8)
            found["accelerator"] = self._codes("accelerator", [row["Accelerator Core"] if row else "" for row in rows])
            found["blocks"] = np.array([int(row["Block Dim"]) if row else INT_MISSING for row in rows], np.int64)
        return found

    def _codes(self, key: str, texts: Iterable[str]) -> Any:
        return np.array([self._texts[key].code(text) if text else -1 for text in texts], np.int32)

    def _counters(self, units: Sequence[int]) -> Iterable[Counter]:
        for unit, rank in zip(units, self._ranks, strict=True):
            for (process, name, key), samples in sorted(rank.samples.items()):
                samples.sort()
                unit_text = re.search(r"\((.+)\)$", key)
                told = unit_text[1] if unit_text else key if key in ("MHz", "KB") else ""
                times = np.array([time - self._zero for time, _ in samples], np.int64)
                yield Counter(unit, f"{process}: {name}", told, times, np.array([value for _, value in samples]))

    def _links(self, lanes: Sequence[Lane]) -> Links:
        """From operators and from calls of CANN to what they launched: the innermost one at the start of each flow."""
        first = np.concatenate([[0], np.cumsum([len(lane) for lane in lanes])]).tolist()
        numbers = {place: first[number] for number, place in enumerate(self._places)}
        kinds = {"async_npu": 0, "HostToDevice": 1}
        rows = []
        for place, rank in enumerate(self._ranks):
            for category, (time, track), (then, ended) in rank.flows:
                if category not in kinds or (place, track) not in numbers or (place, ended) not in numbers:
                    continue
                above = [row for row, each in enumerate(rank.tracks[track])
                         if each.start <= time <= each.end and each.category in ("", "cpu_op")]  # fmt: skip
                below = [row for row, each in enumerate(rank.tracks[ended]) if each.start == then]
                if above and below:
                    rows.append((kinds[category], numbers[place, track] + above[-1], numbers[place, ended] + below[0]))
        columns = np.array(rows, np.int64).reshape(-1, 3)
        return Links(("operator", "launch"), columns[:, 0].astype(np.int8), columns[:, 1].copy(), columns[:, 2].copy())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows by column; no cell keeps the tab that times end with."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return [{key: (value or "").strip() for key, value in row.items()} for row in csv.DictReader(stream)]


def _level(file: Path) -> str:
    """How much was recorded, as the file of the profiler's settings says it; empty where it does not."""
    config = json.loads(file.read_bytes()).get("config", {})
    return str(config.get("experimental_config", {}).get("_profiler_level", ""))


def _step_number(event: _Event) -> int:
    return int(event.name.partition("#")[2])


def _ns(us: Any) -> int:
    return round(Decimal(us) * 1000)


def _role(task: str) -> Role:
    if task in _WAITS:
        return Role.WAIT
    return Role.WORK if task in (*_KERNELS, *_COPIES) else Role.SYNC


def _activity(task: str, of_collective: bool) -> Activity:
    if of_collective:
        return Activity.COMMUNICATION
    return Activity.TRANSFER if task in _COPIES else Activity.COMPUTE


def _nesting(start: Any, end: Any) -> tuple[Any, Any]:
    """The row that each event lies in, and how many it lies in."""
    parent, depth, above = [], [], []
    for row, (begin, until) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while above and (above[-1][1] <= begin or above[-1][1] < until):
            above.pop()
        parent.append(above[-1][0] if above else -1)
        depth.append(len(above))
        above.append((row, until))
    return np.array(parent, np.int64), np.array(depth, np.int64)
