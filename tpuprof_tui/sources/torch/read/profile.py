"""Builds a Profile from traces: a rank for each file, its GPUs and processes below, streams and threads as lanes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import (
    INT_MISSING,
    Counter,
    Device,
    Group,
    Groups,
    Lane,
    Problem,
    Profile,
    Scopes,
    Severity,
    Steps,
    StringsBuilder,
)
from tpuprof_tui.model.group import Worker, free_number
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.model.profile import RecordingMode, time_of_day
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.model.vocabulary import NAMES, Word
from tpuprof_tui.sources.chrome.inflate import FORMAT
from tpuprof_tui.sources.chrome.times import aside_problem

from ...runs import RecordingPlace, UnplacedRecording, places_of, problems_of
from ..categories import DEVICE_WORK, MODULE, ON_DEVICE, ON_HOST, OTHER_CARDS, Kind
from ..records import GPU_TYPES, Captures, RecordedTrace, device_name, device_properties, distributed_info, given_id
from ..vocabulary import DEVICE, MEMORY, MODULES, VOCABULARY
from .columns import LaneColumns, TextTables
from .dependencies import links_of, shifts
from .identities import Identity, begun_ns, host_of, identities, in_order, job_of
from .implausible_times import aside_lanes, is_fragmentary
from .launchers import overlap_problems, unrecorded_problems
from .steps import marked_steps
from .tables import TraceTables
from .trace import Trace, numeric_sort_key

I64 = npt.NDArray[np.int64]
#: Titles of devices in exported traces, below those of their ranks.
_TITLE: Final = lazy_pattern(r"(?:.*: )?([A-Z]PU (\d{1,7}))")
#: Properties of a device that are shown, and their names; all are the card's own.
_SHOWN: Final = {"id": "id", "name": "name", "totalGlobalMem": "memory_bytes", "numSms": "multiprocessors",
                 "warpSize": "warp_size"}  # fmt: skip


class PlacedTrace(Struct, frozen=True, eq=False):
    """A trace with the places of its events in the profile."""

    trace: Trace
    rank: int | None  #: Its rank, stated or guessed; None if unknown
    session: int  #: Number of its session; those of one session share a clock
    shift: int  #: Offset from its times to those of the profile, ns
    rows: dict[int, I64 | slice]  #: Rows of the events of each lane, by index of the lane in the profile

    def numbers(self, lanes: Sequence[Lane]) -> I64:
        """Number of the event in each row across all lanes of the profile; -1 if it is in none, and at the end."""
        offsets = np.concatenate([[0], np.cumsum([len(lane) for lane in lanes])]).astype(np.int64)
        found = np.full(len(self.trace) + 1, -1, np.int64)
        for lane, rows in self.rows.items():
            found[rows] = offsets[lane] + np.arange(len(lanes[lane]))
        return found


def profile_of(
    path: Path, traces: Sequence[Trace], problems: Sequence[Problem] = (), arrays: MappedArrays | None = None,
    *, more_follows: bool = False,
) -> Profile:  # fmt: skip
    """One profile of all traces; zero is the earliest start. ``arrays`` holds its columns."""
    return _Run(path, traces, problems, arrays or MappedArrays(), more_follows=more_follows).profile()


class _Run:
    def __init__(
        self, path: Path, traces: Sequence[Trace], problems: Sequence[Problem], arrays: MappedArrays,
        *, more_follows: bool,
    ) -> None:  # fmt: skip
        self._path, self._arrays, self._more_follows = path, arrays, more_follows
        self._traces = in_order(traces)
        self._problems = list(problems)
        self._texts = TextTables()
        self._groups: list[Group] = []
        #: Number of each device, by its owner and process.
        self._devices: dict[tuple[tuple[Any, ...], str], int] = {}
        self._lanes: list[Lane] = []
        #: Rows of the events of each lane of the last worker.
        self._rows: dict[int, I64 | slice] = {}
        #: Lanes of set aside events: behind all others, so that these keep their numbers where they are left out.
        self._aside: list[Lane] = []
        self._steps: list[tuple[str, int, int, int, int]] = []
        self._counters: list[Counter] = []

    def profile(self) -> Profile:
        clocks = [begun_ns(trace) for trace in self._traces]
        whose = identities(self._traces, clocks)
        moved = self._set_on_one_clock(clocks, whose)
        zero = min(clocks, default=0)
        recordings = [
            UnplacedRecording(str(each.owner), clock, clock + trace.length_ns, each.rank, _job(trace), _card(trace),
                     number in moved, each.stage)
            for number, (trace, clock, each) in enumerate(zip(self._traces, clocks, whose, strict=True))
        ]  # fmt: skip
        places = places_of(recordings)
        self._problems += [] if self._more_follows else problems_of(recordings, places)
        workers, events = [], []
        for number, trace in enumerate(self._traces):
            shift = clocks[number] + places[number].shift
            workers.append(self._worker(trace, whose[number], places[number], shift, guessed=number in moved))
            events.append(PlacedTrace(trace, whose[number].rank, places[number].session, shift, self._rows))
        ranks = [worker.rank for worker in workers if worker.rank is not None]
        one_run = len({each.run for each in places}) == 1
        self._problems += self._missing_ranks(set(ranks)) if one_run and not self._more_follows else []
        capabilities = {NAMES}
        for trace in self._traces:
            # calls of its runtime prove that the device's activity was recorded
            present = ((DEVICE, len(trace.work_rows) or (trace.kind == Kind.CALL).any()),
                       (MEMORY, len(trace.memory["time"])),
                       (MODULES, any(name.startswith(MODULE) for name in trace.names)))  # fmt: skip
            capabilities |= {capability for capability, there in present if there}
        cards = list(dict.fromkeys(filter(None, map(_card, self._traces))))
        card = ", ".join(cards[:2]) or ("GPU" if DEVICE in capabilities else "CPU")
        labels = StringsBuilder()
        label, group, start, end, number_of = zip(*self._steps, strict=True) if self._steps else ((),) * 5
        lanes = (*self._lanes, *self._aside)
        tables = [
            table for worker, each in zip(workers, events, strict=True)
            for table in TraceTables(each.trace, worker.group, each.shift, partial(each.numbers, lanes)).all()
        ]  # fmt: skip
        recording, meaning, vocabulary = "a PyTorch trace", "PyTorch Profiler", VOCABULARY
        if writer := next((trace.writer for trace in self._traces), ""):
            recording, meaning = f"a trace of {writer}", writer
            words = {title.partition(" ")[0] for trace in self._traces for title in trace.device_titles.values()}
            # advice of PyTorch's rules is for PyTorch
            entries = {key: entry for key, entry in VOCABULARY.entries.items() if key != "rules"}
            needs = tuple(replace(each, needs=f"another recording of {writer}") for each in VOCABULARY.capabilities)
            vocabulary = replace(VOCABULARY, title=f"{writer} trace", unit=Word(min(words, default="GPU")),
                                 entries=entries, capabilities=needs)  # fmt: skip
        elif all(trace.metadata.get("format") == FORMAT and not np.isin(trace.kind, ON_HOST).any()
                 for trace in self._traces):  # fmt: skip
            recording, meaning = f"a {FORMAT} trace", "track events"
            vocabulary = replace(VOCABULARY, title=f"{FORMAT} trace")
        return Profile(
            path=str(self._path), name=self._path.name, vocabulary=vocabulary, device=Device(card),
            recording=RecordingMode(recording, meaning=meaning), capabilities=frozenset(capabilities),
            source_data={}, more_follows=self._more_follows, groups=Groups(self._groups), lanes=lanes, scopes=Scopes(),
            strings=self._texts.build(), problems=tuple(self._problems),
            steps=Steps(label=np.array(list(map(labels.code, label)), np.int32), labels=labels.build(),
                        group=np.array(group, np.int32), start=np.array(start, np.int64), end=np.array(end, np.int64),
                        number=np.array(number_of, np.int64)),
            counters=tuple(self._counters), epoch_ns=min((trace.zero_ns for trace in self._traces), default=0),
            wall_ns=None if len({each.session for each in places}) > 1 else time_of_day(zero),
            links=lambda: links_of(events, lanes), tables=tuple(tables), workers=tuple(workers),
            identities=_identities(self._traces), arrays=self._arrays,
        )  # fmt: skip

    def _set_on_one_clock(self, clocks: list[int], whose: Sequence[Identity]) -> set[int]:
        """Corrects the clocks of each session by the times of its collectives; the indices of those that were moved."""
        jobs: dict[tuple[int, str], dict[int, list[int]]] = {}
        for number, (trace, each) in enumerate(zip(self._traces, whose, strict=True)):
            size, (stage, session) = distributed_info(trace.metadata).get("world_size"), each.session
            if type(size) is int and size > 1:
                jobs.setdefault((size, stage), {}).setdefault(session, []).append(number)
        moved: set[int] = set()
        for sessions in jobs.values():
            # if a rank lacks some recording, it is not known which
            if len(set(map(len, sessions.values()))) > 1:
                continue
            for members in sessions.values():
                added = shifts([self._traces[number] for number in members], [clocks[number] for number in members])
                for number, shift in zip(members, added, strict=True):
                    if shift:
                        moved.add(number)
                        clocks[number] += shift
                        self._problems.append(Problem(
                            Severity.WARNING, "Its collectives were at another time than those of the first rank.",
                            f"Its times were moved by ~{shift / 1000:,.3f} us, the median difference.",
                            file=self._traces[number].path.name))  # fmt: skip
        return moved

    def _missing_ranks(self, present: set[int]) -> list[Problem]:
        sizes = {_int_or_zero(distributed_info(trace.metadata).get("world_size")) for trace in self._traces}
        # opening the file of a single rank is deliberate
        if len(sizes) != 1 or (len(self._traces) < 2 and not self._path.is_dir()):
            return []
        size = sizes.pop()
        lacking = [rank for rank in range(size) if rank not in present] if 0 < size <= 1 << 16 else []
        if not lacking or not present:
            return []
        text = ", ".join(map(str, lacking[:20])) + (", ..." if len(lacking) > 20 else "")
        return [Problem(Severity.WARNING, f"Ranks of the run that are not here: {text}.",
                        "Figures are of those that are.", count=len(lacking))]  # fmt: skip

    def _worker(
        self, trace: Trace, identity: Identity, place: RecordingPlace, shift: int, *, guessed: bool = False
    ) -> Worker:  # fmt: skip
        rank, top = identity.rank, len(self._groups)
        label = f"{identity.key.removesuffix(' ~')} ~" if guessed or identity.guessed else identity.key
        self._groups.append(Group(label, "rank", number=-1 if rank is None else rank, host=host_of(trace),
                                  run=place.run, session=place.session))  # fmt: skip
        self._problems += (*trace.problems, *unrecorded_problems(trace))
        marks, labels, numbers, told = marked_steps(trace)
        starts, ends, stages = trace.start[marks], trace.end[marks], [each.stage for each in told]
        self._steps += zip(labels, [top] * len(labels), (starts + shift).tolist(), (ends + shift).tolist(),
                           numbers.tolist(), strict=True)  # fmt: skip
        columns = LaneColumns(trace, self._texts, shift, (starts, ends, numbers), stages if any(stages) else (),
                              -1 if rank is None else rank, self._arrays)  # fmt: skip
        self._rows = {}
        on_device = np.isin(trace.kind, ON_DEVICE)
        parts = []
        for thread, low, high in trace.by_thread():
            pid, kinds, where = trace.threads[thread][0], trace.kind[low:high], on_device[low:high]
            for kind, mask in (("stream", where & np.isin(kinds, DEVICE_WORK)), ("annotation", kinds == Kind.MARK),
                               ("wait", kinds == Kind.WAIT), ("thread", ~where)):  # fmt: skip
                if mask.any():
                    rows: I64 | slice = slice(low, high) if mask.all() else low + np.flatnonzero(mask)
                    parts.append((kind, pid, thread, rows))
        groups: dict[tuple[bool, str], int] = {}
        wanted = {(kind != "thread", pid) for kind, pid, _, _ in parts}
        for device, pid in sorted(wanted, key=lambda each: (not each[0], numeric_sort_key(each[1]))):
            groups[device, pid] = len(self._groups)
            number = int(pid[:9]) if pid.isdecimal() else -1
            if device:
                number = _device_of(trace, pid) if number < 0 else number
                title = f"GPU {number}" if number >= 0 else f"GPU {given_id(pid) or ''}".rstrip()
                title = trace.device_titles.get(pid, title)
                if (exported := _TITLE.fullmatch(pid)) is not None:
                    title, number = exported[1], int(exported[2])
                # another recording of the same device has its number
                if (identity.owner, pid) not in self._devices:
                    self._devices[identity.owner, pid] = free_number(self._groups, number)
                number = self._devices[identity.owner, pid]
                self._groups.append(Group(title, "gpu", top, number, is_unit=True))
            else:
                title = trace.process_names.get(pid, "")
                label = title if title == pid else f"{title or 'Process'} {pid}".strip()
                self._groups.append(Group(label, "process", top, number))
        order = ("stream", "annotation", "wait", "thread")
        for kind, pid, thread, rows in sorted(parts, key=lambda each: (groups[each[0] != "thread", each[1]],
                                                                    order.index(each[0]))):  # fmt: skip
            self._rows[len(self._lanes)] = rows
            self._lanes.append(columns.lane(kind, thread, rows, groups[kind != "thread", pid],
                                            trace.thread_names.get(trace.threads[thread], "")))  # fmt: skip
            if kind == "stream" and len(trace.overlaps.first):
                self._problems += overlap_problems(trace, rows, self._groups, self._lanes[-1])
        for title, aside_rows in aside_lanes(trace):
            self._aside.append(columns.aside_lane(title, aside_rows, top))
            self._problems.append(_aside_problem(trace, aside_rows, title, self._aside[-1].label, top))
        self._add_counters(trace, top, groups, shift)
        self._arrays.release_pages()
        devices = tuple(
            {"name": ""} | {name: device[key] for key, name in _SHOWN.items()
                            if isinstance(device.get(key), str if key == "name" else (int, str))}
            for device in device_properties(trace.metadata)
        )  # fmt: skip
        return Worker(
            identity.key, top, identity.rank, identity.name, identity.span, (trace.path.name,), devices,
            window=(shift, shift + trace.length_ns), epoch_ns=trace.zero_ns - shift,
            begun_ns=time_of_day(begun_ns(trace)), rank_guessed=identity.guessed, stage=identity.stage,
            recorded=_recorded(trace, identity, annotated=len(marks) > len(told)),
            release=partial(_release, self._arrays, trace),
        )  # fmt: skip

    def _add_counters(self, trace: Trace, top: int, groups: dict[tuple[bool, str], int], shift: int) -> None:
        def add(group: int, title: str, unit: str, times: I64, values: npt.NDArray[np.float64]) -> None:
            self._counters.append(Counter(group, title, unit, self._arrays.stored(times), self._arrays.stored(values)))

        for each in trace.counters:
            group = groups.get((True, each.process), groups.get((False, each.process), top))
            add(group, each.name, each.unit, each.times + shift, each.values)
        memory = trace.memory
        types, ids = memory["device_type"], memory["device_id"]
        for kind, number in sorted({*zip(types.tolist(), ids.tolist(), strict=True)}):
            of_device = (types == kind) & (ids == number)
            group = groups.get((True, str(number)), top) if kind in GPU_TYPES else top
            for title in ("allocated", "reserved"):
                present = of_device & (memory[title] != INT_MISSING)
                if present.any():
                    add(group, f"{device_name(kind, number)} {title}", "B", memory["time"][present] + shift,
                        memory[title][present].astype(np.float64))  # fmt: skip


def _aside_problem(trace: Trace, rows: slice, title: str, label: str, group: int) -> Problem:
    aside = trace.aside
    assert aside is not None
    return aside_problem(
        title, aside.start[rows], aside.end[rows], aside.away[rows], file=trace.path.name,
        offset=trace.arguments.offset_of_number(int(aside.file_order[rows.start])), group=group, lane=label,
        fragmentary=is_fragmentary(trace),
    )  # fmt: skip


def _device_of(trace: Trace, pid: str) -> int:
    """Number of the device whose work is in a process that has no number; -1 if its events tell none."""
    of_process = np.array([process == pid for process, _ in trace.threads], np.bool_)
    found = uniques(trace.work["device"][of_process[trace.thread_of(trace.work_rows)]])
    text = trace.texts[int(found[0])] if len(found) == 1 else ""
    return int(text[:9]) if text.isascii() and text.isdecimal() else -1


def _recorded(trace: Trace, identity: Identity, *, annotated: bool) -> RecordedTrace:
    cards = [str(each.get("name") or "") for each in device_properties(trace.metadata)]
    others = (
        bool(trace.writer) or any(map(OTHER_CARDS.search, cards)) or any(name.startswith("hip") for name in trace.names)
    )
    kernels = bool(trace.launchers.kernels.any())
    fragmentary = is_fragmentary(trace) or any(each.fragmentary for each in unrecorded_problems(trace))
    return RecordedTrace(
        trace.metadata, *identity.session, annotated=annotated, has_kernels=kernels,
        tensor_cores_known=kernels and not others,
        captures_graphs=any(name.endswith("StreamBeginCapture") for name in trace.names),
        data_parallel="DataParallel.forward" in trace.names, fragmentary=fragmentary,
        unrecorded=tuple(text for text, *_ in trace.launchers.unrecorded),
        overlap_ns=trace.overlaps.sum_ns, overlaps_explained=bool(trace.overlaps.explained.all()),
        captures=partial(_captures, trace, identity.rank),
    )  # fmt: skip


def _captures(trace: Trace, rank: int | None) -> Captures | None:
    found = trace.replayed(rank)
    if found is None:
        return None
    return Captures(found.files if found.matched.any() else 0, found.by_count, found.lacking)


def _release(arrays: MappedArrays, trace: Trace) -> None:
    """Moves what was computed of a trace to files, if memory is short."""
    arrays.spill(*([trace.tree, trace.tree.nesting] if "tree" in vars(trace) else []), trace, trace.launchers)


def _identities(traces: Sequence[Trace]) -> dict[str, str]:
    """Host and user names in traces, with their kind (host or user)."""
    keys = (("host_name", "host"), ("hostname", "host"), ("username", "user"))
    values = ((trace.metadata.get(key), kind) for trace in traces for key, kind in keys)
    return {word: kind for word, kind in values if isinstance(word, str)}


def _job(trace: Trace) -> str:
    stated = distributed_info(trace.metadata)
    return job_of(*map(stated.get, ("world_size", "backend", "pg_count")))


def _card(trace: Trace) -> str:
    names = (each.get("name") for each in device_properties(trace.metadata))
    return next((name for name in names if isinstance(name, str) and name), "")


def _int_or_zero(value: Any) -> int:
    return value if type(value) is int and abs(value) < 1 << 62 else 0
