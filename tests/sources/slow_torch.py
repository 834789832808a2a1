"""A slow reader of PyTorch traces, for tests alone: whether what such traces hold fits the model.

All of the file is read at once with ``json``, numbers as exact decimals. A rank holds its GPUs, which are the units,
and its processes; streams and threads are their lanes. Kernels and copies of one stream mix activities; what a GPU's
annotations span is a lane of its own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np

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
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.vocabulary import NAMES, Capability, GroupKind, LaneKind, Vocabulary, Word
from tpuprof_tui.sources.source import ProgressCallback, Source, Verdict

COLUMNS: Final = (
    Column("engine", "Lane", kind="text", shown=True),
    Column("core", "GPU", shown=True),
    Column("name", "Name", kind="text", shown=True),
    Column("type", "Category", kind="text", shown=True),
    Column("start", "Start", unit="ns", shown=True),
    Column("end", "End", unit="ns"),
    Column("duration", "Duration", unit="ns", shown=True),
    Column("bytes", "Bytes", unit="B", engines=("stream",)),
    Column("correlation", "Correlation"),
    Column("step", "Step"),
    Column("depth", "Depth", engines=("thread",)),
)
WORDS: Final = Vocabulary(
    source="slow torch",
    title="PyTorch trace",
    unit=Word("GPU"),
    event=Word("event"),
    scope=Word("operator"),
    lane_kinds=(
        LaneKind("stream", "Stream", Activity.COMPUTE, 0),
        LaneKind("annotations", "Annotations", Activity.COMPUTE, 1),
        LaneKind("thread", "Thread", Activity.HOST, 2),
    ),
    group_kinds=(GroupKind("rank", "Ranks", Word("rank")), GroupKind("gpu", "GPUs", Word("GPU")),
                 GroupKind("process", "Processes", Word("process", "processes"))),
    capabilities=(Capability(NAMES, "names", "any trace"),),
    columns_entry=f"{__name__}:COLUMNS",
)  # fmt: skip
#: Categories of what a GPU does.
_MOVES: Final = ("gpu_memcpy", "gpu_memset")
_DEVICE: Final = ("kernel", *_MOVES)
_LAUNCHES: Final = ("cuda_runtime", "cuda_driver")
_HOST: Final = ("cpu_op", "user_annotation", "python_function", *_LAUNCHES)


class SlowTorch(Source):
    """Files of one rank."""

    id = "slow_torch"
    title = "a PyTorch trace"
    expected = "a file *.pt.trace.json.gz"

    def recognises(self, path: Path) -> Verdict:
        """By its name."""
        known = path.name.endswith(".pt.trace.json.gz")
        return Verdict("name", "it ends in .pt.trace.json.gz") if known else Verdict("", "no *.pt.trace.json.gz")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """One rank."""
        del options, progress
        return read_trace(path)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """Each trace."""
        return [folder / name for name in names if name.endswith(".pt.trace.json.gz")]


SOURCE: Final = SlowTorch()


def read_trace(path: Path) -> Profile:
    """One rank."""
    with gzip.open(path) as stream:
        trace = json.load(stream, parse_float=Decimal)
    return _Trace(path, trace).profile()


class _Trace:
    def __init__(self, path: Path, trace: dict[str, Any]) -> None:
        self._path, self._trace = path, trace
        self._events = trace["traceEvents"]
        self._texts = {key: StringsBuilder() for key in ("name", "type")}
        complete = [each for each in self._events if each["ph"] == "X" and each["cat"] in (*_DEVICE, *_HOST)]
        self._zero = min(_ns(each["ts"]) for each in complete)
        self._by_lane: dict[tuple[str, int, Any], list[dict[str, Any]]] = {}
        for each in self._events:
            if each["ph"] != "X":
                continue
            if each["cat"] in _DEVICE:
                self._add("stream", each["args"]["device"], each["args"]["stream"], each)
            elif each["cat"] == "gpu_user_annotation":
                self._add("annotations", each["pid"], each["tid"], each)
            elif each["cat"] in _HOST:
                # some traces number the processes of their Python frames as GPUs
                self._add("thread", each["pid"], each["tid"], each)
        for events in self._by_lane.values():
            events.sort(key=lambda each: (_ns(each["ts"]), -_ns(each["dur"])))

    def _add(self, kind: str, owner: int, number: Any, event: dict[str, Any]) -> None:
        self._by_lane.setdefault((kind, owner, number), []).append(event)

    def profile(self) -> Profile:
        rank = self._trace.get("distributedInfo", {}).get("rank", 0)
        groups = [Group(f"Rank {rank}", "rank", number=rank)]
        ids: dict[tuple[bool, int], int] = {}
        for on_device, kind, title in ((True, "gpu", "GPU"), (False, "process", "Process")):
            for number in sorted({owner for lane, owner, _ in self._by_lane if (lane != "thread") is on_device}):
                ids[on_device, number] = len(groups)
                groups.append(Group(f"{title} {number}", kind, 0, number, is_unit=on_device))
        order = sorted(self._by_lane, key=lambda key: (ids[key[0] != "thread", key[1]], key[0] != "stream", key[2]))
        steps = self._steps(ids)
        launched = self._steps_of_launches(steps)
        lanes = [self._lane(key, ids[key[0] != "thread", key[1]], steps, launched) for key in order]
        return Profile(
            path=str(self._path), name=self._path.name, vocabulary=WORDS,
            device=Device(self._trace["deviceProperties"][0]["name"]), recording=_how(), own={},
            capabilities=frozenset((NAMES,)), groups=Groups(groups), lanes=tuple(lanes), scopes=Scopes(), problems=(),
            strings={key: builder.build() for key, builder in self._texts.items()}, steps=steps,
            counters=tuple(self._counters(ids)), links=lambda: _links(lanes, self._texts["type"]),
        )  # fmt: skip

    def _lane(self, key: tuple[str, int, Any], group: int, steps: Steps, launched: dict[int, int]) -> Lane:
        kind, _, number = key
        events = self._by_lane[key]
        start = np.array([_ns(each["ts"]) - self._zero for each in events], np.int64)
        end = start + np.array([_ns(each["dur"]) for each in events], np.int64)
        sublane, sublanes = split_overlaps(start, end)
        correlation = _whole(each["args"].get("correlation") for each in events)
        columns: dict[str, Any] = {
            "start": start, "end": end, "order": np.arange(len(events)), "correlation": correlation,
            "sublane": np.zeros(len(events), np.int16) if sublane is None else sublane,
            "role": np.full(len(events), Role.ANNOTATION if kind == "annotations" else Role.WORK, np.int8),
            "name": self._codes("name", [each["name"] for each in events]),
            "type": self._codes("type", [each["cat"] for each in events]),
        }  # fmt: skip
        if kind == "stream":
            columns["bytes"] = _whole(each["args"].get("bytes") for each in events)
            columns["activity"] = np.array([_activity(each) for each in events], np.int8)
            columns["step"] = _numbers(steps, _whole(launched.get(each, -1) for each in correlation.tolist()))
        elif kind == "thread":
            columns["parent"], columns["depth"] = _nesting(start, end)
            columns["step"] = _numbers(steps, _step_at(steps, start))
        activity = Activity.HOST if kind == "thread" else Activity.COMPUTE
        return Lane(kind=kind, group=group, label=f"{kind} {number}", number=int(number), activity=activity,
                    columns=columns, sublanes=sublanes)  # fmt: skip

    def _codes(self, key: str, texts: Sequence[str]) -> Any:
        return np.array([self._texts[key].code(text) for text in texts], np.int32)

    def _steps(self, ids: dict[tuple[bool, int], int]) -> Steps:
        found = [each for each in self._events
                 if each.get("cat") == "user_annotation" and each["name"].startswith("ProfilerStep#")]  # fmt: skip
        labels = StringsBuilder()
        start = np.array([_ns(each["ts"]) - self._zero for each in found], np.int64)
        return Steps(
            label=np.array([labels.code(each["name"]) for each in found], np.int32), labels=labels.build(),
            group=np.array([ids[False, each["pid"]] for each in found], np.int32), start=start,
            end=start + np.array([_ns(each["dur"]) for each in found], np.int64),
            number=np.array([int(each["name"].partition("#")[2]) for each in found], np.int64),
        )  # fmt: skip

    def _steps_of_launches(self, steps: Steps) -> dict[int, int]:
        """The step in which each launch began, by correlation: what it launched belongs there whenever it ran."""
        found = [each for each in self._events if each.get("cat") in _LAUNCHES and "correlation" in each["args"]]
        places = _step_at(steps, np.array([_ns(each["ts"]) - self._zero for each in found], np.int64))
        known = zip(found, places.tolist(), strict=True)
        return {each["args"]["correlation"]: place for each, place in known if place >= 0}

    def _counters(self, ids: dict[tuple[bool, int], int]) -> Iterable[Counter]:
        of_gpu = [each for each in self._events
                  if each.get("name") == "[memory]" and each["args"]["Device Type"] == 1]  # fmt: skip
        for device in sorted({each["args"]["Device Id"] for each in of_gpu}):
            own = sorted((each for each in of_gpu if each["args"]["Device Id"] == device), key=lambda each: each["ts"])
            times = np.array([_ns(each["ts"]) - self._zero for each in own], np.int64)
            for key in ("Total Allocated", "Total Reserved"):
                values = np.array([each["args"][key] for each in own], np.float64)
                yield Counter(ids[True, device], key, "B", times.copy(), values)


def _ns(value: Any) -> int:
    return int(Decimal(value) * 1000)


def _whole(values: Iterable[Any]) -> Any:
    return np.array([INT_MISSING if value is None else value for value in values], np.int64)


def _activity(event: dict[str, Any]) -> Activity:
    if event["cat"] in _MOVES:
        return Activity.TRANSFER
    return Activity.COMMUNICATION if event["name"].startswith("nccl") else Activity.COMPUTE


def _step_at(steps: Steps, times: Any) -> Any:
    """Place of the step at each time; -1 where there is none."""
    place = np.full(len(times), -1, np.int64)
    for step in range(len(steps)):
        place[(times >= steps.start[step]) & (times < steps.end[step])] = step
    return place


def _numbers(steps: Steps, places: Any) -> Any:
    return np.where(places >= 0, np.append(steps.number, INT_MISSING)[places], INT_MISSING)


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


def _links(lanes: Sequence[Lane], types: StringsBuilder) -> Links:
    """From each launch to what it launched, by correlation."""
    launches, work = {}, []
    first = 0
    for lane in lanes:
        for row, (correlation, code) in enumerate(
            zip(lane["correlation"].tolist(), lane["type"].tolist(), strict=True)
        ):
            if correlation != INT_MISSING and types.text(code) in _LAUNCHES:
                launches[correlation] = first + row
            elif correlation != INT_MISSING and lane.kind == "stream":
                work.append((correlation, first + row))
        first += len(lane)
    pairs = np.array([(launches[each], row) for each, row in work if each in launches], np.int64).reshape(-1, 2)
    return Links(("launch",), np.zeros(len(pairs), np.int8), pairs[:, 0].copy(), pairs[:, 1].copy())


def _how() -> Any:
    from tpuprof_tui.model.profile import Recording

    return Recording("a trace", meaning="PyTorch Profiler")
