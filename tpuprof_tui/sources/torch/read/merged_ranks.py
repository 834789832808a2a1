"""Separates the ranks of a file that several traces were merged into.

A trace of PyTorch has one host process. Mergers mark whose an event is in its process: SGLang writes
``[TP00-DP00-PP00-EP00] 83``, others ``rank0_83``; or they rename processes, ``RANK 0 - GPU``, or events, ``[R0] mm``.
Correlation and External ids are those of each rank, and equal ones of several ranks mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Problem, Severity
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.sources.chrome.nesting import CounterSeries

from ..categories import DEVICE_WORK, STEP, Kind
from .implausible_times import without_implausible
from .trace import Trace, numeric_sort_key

#: Process ids with a label before them, ranks in names of processes, and before names of events.
_PROCESS: Final = lazy_pattern(
    r"\[(?P<label>[A-Z]{2,4}\d{1,7}(?:-[A-Z]{2,4}\d{1,7})*)\] ?(?P<pid>.*)"
    r"|\[?(?i:rank)[ _-]?(?P<rank>\d{1,7})\]?(?:[ _:-]+(?:pid)?[ _:-]?(?P<own>.*))?",
    re.DOTALL,
)
_NAMED: Final = lazy_pattern(r"\W{0,2}rank[ _-]?(\d{1,7})(?!\d)", re.IGNORECASE)
_EVENT: Final = lazy_pattern(r"\[R(?:ank ?)?(\d{1,7})\] ", re.IGNORECASE)
#: Name of memory instants.
MEMORY: Final = "[memory]"
_OPEN: Final = "Open the files that were merged."
_MARKS: Final = (Kind.OPERATOR, Kind.ANNOTATION)
_MOST_RANKS: Final = 4096
#: Most processes without a label whose ids are compared.
_MOST_PROCESSES: Final = 256
#: Kinds of events that are those of a rank.
_OF_RANK: Final = np.isin(np.arange(len(Kind)), (Kind.OPERATOR, Kind.CALL, Kind.WAIT, Kind.MARK, *DEVICE_WORK))


def own_name(name: str) -> str:
    """The name of an event without a rank that a merger put before it."""
    match = _EVENT.match(name) if name.startswith("[") else None
    return name if match is None else name[match.end() :]


def is_merged(trace: Trace) -> bool:
    """Whether a trace holds the events of several processes, or of processes with labels of ranks."""
    return _Separation(trace).is_merged


def ranks_of(trace: Trace) -> tuple[Trace, ...]:
    """The traces that were merged into one; usually itself alone. Columns of events are shared where possible.

    Raises:
        UnreadableError: What belongs to which rank cannot be told.
    """
    found: tuple[Trace, ...] | None = vars(trace).get("ranks")
    if found is None:
        separation = _Separation(trace)
        found = separation.ranks() if separation.is_merged else (trace,)
        vars(trace)["ranks"] = found
    return found


class _Separation:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: Processes of hosts, and of any events of a rank; in order.
        self._hosts: dict[str, None] = {}
        self._ranked: dict[str, None] = {}
        for thread, low, high in trace.by_thread():
            pid, kinds = trace.threads[thread][0], trace.kind[low:high]
            if pid not in self._ranked and _OF_RANK[kinds].any():
                self._ranked[pid] = None
            if pid not in self._hosts and (kinds == Kind.OPERATOR).any():
                self._hosts[pid] = None

        self._labels = self._known_labels()

    @property
    def is_merged(self) -> bool:
        return bool(self._labels) or len(self._hosts) > 1 or self._is_doubled()

    def _is_doubled(self) -> bool:
        """Whether one process has steps, and ids of operators, twice: those of several ranks with equal process ids."""
        trace = self._trace
        marks = np.flatnonzero(np.isin(trace.kind, _MARKS) & trace.named(lambda name: name.startswith(STEP)))
        names = trace.name[marks]
        if int(np.bincount(names).max(initial=0)) < 2:
            return False
        ids = trace.external[(trace.kind == Kind.OPERATOR) & (trace.external != INT_MISSING)]
        _, counts = np.unique(ids, return_counts=True)
        return 2 * int((counts > 1).sum()) > len(counts)

    def ranks(self) -> tuple[Trace, ...]:
        trace, labels = self._trace, self._labels
        if not labels and len(self._hosts) < 2:
            raise UnreadableError(f"{trace.path} holds the merged traces of several processes that have the same "
                                  "process id, and nothing tells whose an event is.", _OPEN)  # fmt: skip
        if not labels or not self._ranked.keys() <= labels.keys():
            labels = self._labels_by_ids()
        order = sorted(set(labels.values()), key=_natural)
        if len(order) > _MOST_RANKS:
            raise UnreadableError(f"{trace.path} holds merged traces of more than {_MOST_RANKS:,} ranks.")
        # what belongs to no rank is shown with the first
        number = {label: place for place, label in enumerate(order)}
        of_thread = np.array([number.get(labels.get(pid, ""), 0) for pid, _ in trace.threads], np.int64)
        texts = tuple(map(_own_id, trace.texts))
        parts = [self._part(np.flatnonzero(of_thread == place), texts, "" if len(order) == 1 else label)
                 for place, label in enumerate(order)]  # fmt: skip
        said = [Problem(Severity.NOTE, f"The traces of {len(order)} ranks were merged into this file.",
                        "They are shown as those of several files.", file=trace.path.name)]  # fmt: skip
        parts[0] = replace(parts[0], problems=(*trace.problems, *(said if len(order) > 1 else [])))
        # each rank has a clock of its own
        return tuple(without_implausible(part)[0] for part in parts)

    def _known_labels(self) -> dict[str, str]:
        """Label of each process that has one: before its id, or a rank in its name, or before those of its events."""
        trace = self._trace
        processes = dict.fromkeys(pid for pid, _ in trace.threads)
        found = {pid: match["label"] or f"Rank {int(match['rank'])}" for pid in processes
                 if (match := _PROCESS.fullmatch(pid)) is not None}  # fmt: skip
        if self._ranked.keys() <= found.keys():
            return found
        named = {pid: f"Rank {int(match[1])}" for pid in processes
                 if (match := _NAMED.match(trace.process_names.get(pid, ""))) is not None}  # fmt: skip
        if not self._ranked.keys() <= named.keys() and any(name.startswith("[R") for name in trace.names):
            named = self._labels_of_events()
        # one rank alone is that of the trace
        return named if len(set(named.values())) > 1 else found

    def _labels_of_events(self) -> dict[str, str]:
        trace = self._trace
        said = [
            match[1] if name.startswith("[") and (match := _EVENT.match(name)) is not None else ""
            for name in trace.names
        ]
        found: dict[str, set[str]] = {}
        for thread, low, high in trace.by_thread():
            pid = trace.threads[thread][0]
            found.setdefault(pid, set()).update(said[code] for code in uniques(trace.name[low:high]).tolist())
        return {pid: f"Rank {int(ranks.pop())}" for pid, ranks in found.items() if len(ranks) == 1 and "" not in ranks}

    def _labels_by_ids(self) -> dict[str, str]:
        """Labels of processes without any: each host process has the devices whose work it alone launched."""
        trace, hosts = self._trace, list(self._hosts)
        labels = {pid: f"process {pid}" for pid in hosts}
        known = trace.correlation != INT_MISSING
        calls = known & (trace.kind == Kind.CALL)
        ids_of: dict[str, list[I64]] = {}
        for thread, low, high in trace.by_thread():
            if (pid := trace.threads[thread][0]) in self._ranked:
                which = (calls if pid in labels else known)[low:high]
                ids_of.setdefault(pid, []).append(trace.correlation[low:high][which])
        others = [pid for pid in self._ranked if pid not in labels]
        few = max(len(hosts), len(others)) <= _MOST_PROCESSES
        for pid in others:
            ids = np.concatenate(ids_of[pid])
            launched = [host for host in hosts if few and np.isin(ids, np.concatenate(ids_of[host])).any()]
            if len(launched) != 1:
                names = ", ".join(hosts[:4]) + (", ..." if len(hosts) > 4 else "")
                raise UnreadableError(
                    f"{trace.path} holds the merged traces of several processes ({names}), and nothing tells whose the "
                    f"events of process {pid} are.", _OPEN,
                )  # fmt: skip
            labels[pid] = labels[launched[0]]
        return labels

    def _part(self, own: I64, texts: tuple[str, ...], label: str) -> Trace:
        """The trace of one rank: the events of some threads (indices, ascending), with the texts of the columns."""
        trace = self._trace
        lengths = np.diff(trace.first)[own]
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        low, high = int(trace.first[own[0]]), int(trace.first[own[-1] + 1])
        rows: I64 | slice = slice(low, high)
        work: I64 | slice = slice(*np.searchsorted(trace.work_rows, (low, high)).tolist())
        work_rows = trace.work_rows[work] - low
        if len(own) < own[-1] - own[0] + 1:
            # other ranks lie between its threads
            moved = np.full(len(trace.threads), -1, np.int64)
            moved[own] = first[:-1]
            rows = np.repeat(trace.first[own] - first[:-1], lengths) + np.arange(first[-1])
            thread = trace.thread_of(trace.work_rows)
            work = np.flatnonzero(moved[thread] >= 0)
            work_rows = (trace.work_rows - trace.first[thread] + moved[thread])[work]
        inside = np.isin(trace.memory["thread"], own)
        memory = {key: values[inside] for key, values in trace.memory.items()}
        memory["thread"] = np.searchsorted(own, memory["thread"]).astype(np.int32)
        start, end = trace.start[rows], trace.end[rows]
        earliest = [*([int(start.min())] if len(start) else []), *memory["time"][:1].tolist()]
        delta = min(earliest, default=0)
        names, codes = _names(trace.names, trace.name[rows])
        columns = {key: values[work] for key, values in trace.work.items()}
        file_threads = tuple(trace.threads[index] for index in own.tolist())
        device = columns.get("device", np.zeros(0, np.int32))
        devices = {texts[code] for code in uniques(device).tolist()}
        pids = _process_ids(file_threads, first, work_rows, device, texts)
        threads = tuple((pid, tid) for pid, (_, tid) in zip(pids, file_threads, strict=True))
        per_slice = {key: getattr(trace, key)[rows] for key in Trace.per_slice}
        per_slice |= {"start": start - delta, "end": end - delta, "name": codes}
        return replace(
            trace, **per_slice, first=first, zero_ns=trace.zero_ns + delta, names=names, threads=threads,
            file_threads=file_threads, metadata=_metadata(trace.metadata, devices, alone=not label),
            work_rows=work_rows, work=columns, texts=texts, memory={**memory, "time": memory["time"] - delta},
            counters=tuple(_counters(trace, {pid for pid, _ in file_threads}, delta)),
            process_names={pid: trace.process_names[raw] for (pid, _), (raw, _) in
                           zip(threads, file_threads, strict=True) if raw in trace.process_names},
            thread_names={own_pair: trace.thread_names[raw] for own_pair, raw in
                          zip(threads, file_threads, strict=True) if raw in trace.thread_names},
            problems=(), part=label,
        )  # fmt: skip


def _natural(label: str) -> list[tuple[bool, int, str]]:
    return [numeric_sort_key(part) for part in re.split(r"(\d+)", label)]


def _own_id(pid: str) -> str:
    """A process id without the label before it."""
    match = _PROCESS.fullmatch(pid)
    return pid if match is None else match["pid"] or match["own"] or pid


def _process_ids(
    threads: Sequence[tuple[str, str]], first: I64, work_rows: I64, device: npt.NDArray[np.int32], texts: Sequence[str]
) -> list[str]:  # fmt: skip
    """Process id of each thread before merging: without its label; of device work, the device if it is stated."""
    found = [_own_id(pid) for pid, _ in threads]
    borders = np.searchsorted(work_rows, first).tolist()
    for index in range(len(threads)):
        devices = uniques(device[borders[index] : borders[index + 1]])
        if len(devices) == 1 and texts[int(devices[0])].isdecimal():
            found[index] = texts[int(devices[0])]
    return found


def _names(names: tuple[str, ...], codes: npt.NDArray[np.int32]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The names that are used, without a rank before them, and the codes into them."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    table = np.full(len(names), -1, np.int32)
    table[used] = np.arange(len(used))
    return tuple(own_name(names[code]) for code in used.tolist()), table[codes]


def _metadata(metadata: dict[str, Any], devices: set[str], *, alone: bool) -> dict[str, Any]:
    """Metadata of a rank: those of the first file, without its rank; of all devices the rank's, each once."""
    found = dict(metadata)
    stated, cards = found.get("distributedInfo"), found.get("deviceProperties")
    if isinstance(stated, dict) and not alone:
        found["distributedInfo"] = {key: value for key, value in stated.items() if key != "rank"}
    if isinstance(cards, list):
        own = [each for each in cards if isinstance(each, dict) and str(each.get("id")) in devices] or cards
        found["deviceProperties"] = list({repr(each): each for each in own}.values())
    return found


def _counters(trace: Trace, processes: set[str], delta: int) -> list[CounterSeries]:
    return [replace(each, process=_own_id(each.process), times=each.times - delta) for each in trace.counters
            if each.process in processes]  # fmt: skip
