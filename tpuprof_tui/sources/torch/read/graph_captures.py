"""What launched the kernels of replayed graphs, from the traces of the graphs' capture beside a run.

A replay records kernels and one call, the capture records the calls that became them, with operators, shapes and
modules, but runs nothing. vLLM writes traces of the captures to ``capture_traces/``. The k-th node of a replay is the
k-th call of the capture whose kernels have the same names (ROCm tells them), or that has as many calls; of several
captures that fit the one of the smallest batch that the execution fits into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model.intervals import interval_at
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I32, I64, INTEGER, TEXT, ArgumentColumns, Codes
from tpuprof_tui.sources.rank_names import rank_in_name

from ..categories import MODULE, Kind
from ..source import CAPTURES
from .launchers import GRAPHS, LAUNCHING
from .steps import Execution, executions
from .trace import Trace

_TRACE: Final = lazy_pattern(r".*\.json(?:\.gz|\.zst|\.bz2|\.xz)?")
_MOST_FILES: Final = 512
_BEGIN: Final = lazy_pattern(r"(?:cuda|cu|hip)StreamBeginCapture")
_END: Final = lazy_pattern(r"(?:cuda|cu|hip)StreamEndCapture")
_SET: Final = lazy_pattern(r"(?:cuda|cu|hip)Memset")
_COPY: Final = lazy_pattern(r"(?:cuda|cu|hip)Memcpy")
#: Annotation around a capture, with its batch: capture_32_FULL, capture_128_decode.
_ANNOTATION: Final = lazy_pattern(r"capture_(\d{1,9})(?!\d)")


#: Arguments of calls: the name of the kernel (ROCm).
_CALLS: Final = ArgumentColumns(kernel=(TEXT, "kernel"))
#: Arguments of device work in graphs: ids ascend in the order of the capture.
_NODES: Final = ArgumentColumns(node=(INTEGER, "graph node id"))


#: A call of a capture: its kernel (empty if not told, ``*``: a copy or a set), operator, shapes and module, as texts.
Call = tuple[str, ...]


class ReplayedWork(Struct, frozen=True, eq=False):
    """What launched the device work of replayed graphs, by index in ``Trace.work_rows``."""

    #: operator, shape, module: int32 codes into ``texts``; -1: unknown.
    operator: I32
    shape: I32
    module: I32
    texts: tuple[str, ...]
    replayed: npt.NDArray[np.bool_]  #: Mask of the work of replayed graphs
    matched: npt.NDArray[np.bool_]  #: Mask of the work whose call in a capture is known
    by_count: bool  #: Whether captures fit by their number of calls alone, as they name no kernels
    files: int  #: Number of the files that were read
    lacking: tuple[str, ...]  #: What could not be read


def capture_files(path: Path, rank: int | None) -> list[Path]:
    """The traces of captures beside a file: of its rank, else of the first rank there is; by name."""
    folder = path.parent / CAPTURES
    try:
        found = sorted(each for each in folder.iterdir() if _TRACE.fullmatch(each.name) and each.is_file())
    except OSError:
        return []
    ranks = [rank_in_name(each.name).rank for each in found]
    wanted = rank if rank in ranks else min((each for each in ranks if each is not None), default=None)
    return [each for each, own in zip(found, ranks, strict=True) if own in (None, wanted)]


def replayed_of(trace: Trace, files: Sequence[Path]) -> ReplayedWork | None:
    """What launched the work of a trace's replayed graphs; None if it has none, or no capture beside it.

    Reads the traces of the captures, one after the other.
    """
    call = trace.call
    graphs = trace.named(GRAPHS.match)
    replayed = (call >= 0) & (graphs[call] if len(trace) else False)
    if not replayed.any() or not files:
        return None
    from .trace_reader import read_trace

    captures: list[tuple[int, Sequence[Call]]] = []
    lacking, read = [], []
    for path in files[:_MOST_FILES]:
        try:
            captures += captures_in(read_trace(path))
            read.append(path.name)
        except UnreadableError as error:
            lacking.append(str(error))
    if len(files) > _MOST_FILES:
        lacking.append(f"There are {len(files):,} traces of captures: {_MOST_FILES} were read.")
    matching = _Matching(trace, replayed, captures)
    (operator, shape, module), matched = matching.columns()
    return ReplayedWork(operator, shape, module, tuple(matching.texts), replayed, matched, matching.by_count, len(read),
                    tuple(lacking))  # fmt: skip


def captures_in(trace: Trace) -> Iterator[tuple[int, Sequence[Call]]]:
    """The captures of graphs in a trace: the batch that each is for (-1 if not told), and its calls in order."""
    launches = trace.launchers.calls
    rows = launches[(trace.named(LAUNCHING.match) | trace.named(_SET.match))[launches]]
    rows = rows[~np.isin(rows, uniques(trace.call))]
    rows = rows[np.lexsort((trace.file_order[rows], trace.start[rows]))]
    calls, thread = _calls(trace, rows), trace.thread_of(rows)
    for low, high, of_thread, size in _windows(trace):
        inside = (trace.start[rows] >= low) & (trace.end[rows] <= high) & ((thread == of_thread) | (of_thread < 0))
        if inside.any():
            yield size, [calls[index] for index in np.flatnonzero(inside).tolist()]


def _windows(trace: Trace) -> Iterator[tuple[int, int, int, int]]:
    """Start, end, thread (-1: any) and batch (-1: unknown) of each capture."""
    marks = np.flatnonzero((trace.kind == Kind.ANNOTATION) & trace.named(_ANNOTATION.match))
    marked = [
        (int(trace.start[row]), int(trace.end[row]), _size(trace.names[trace.name[row]])) for row in marks.tolist()
    ]
    calls = trace.launchers.calls
    begins, ends = (calls[trace.named(pattern.match)[calls]] for pattern in (_BEGIN, _END))
    if not len(begins):
        yield from ((low, high, -1, size) for low, high, size in marked)
    for row in begins[np.argsort(trace.start[begins])].tolist():
        thread = int(trace.thread_of(np.array([row]))[0])
        after = ends[(trace.start[ends] >= trace.end[row]) & (trace.thread_of(ends) == thread)]
        if len(after):
            low, high = int(trace.start[row]), int(trace.end[after].min())
            yield low, high, thread, next((size for begin, end, size in marked if begin <= low and high <= end), -1)


def _size(name: str) -> int:
    match = _ANNOTATION.match(name)
    return int(match[1]) if match else -1


def _calls(trace: Trace, rows: I64) -> list[Call]:
    owner = trace.launchers.of_call[rows] if len(rows) else rows
    owners = uniques(owner[owner >= 0])
    arguments, texts = trace.details("operators", owners)
    shapes = dict(zip(owners.tolist(), arguments["shapes"].tolist(), strict=True))
    modules = np.flatnonzero((trace.kind == Kind.FRAME) & trace.named(lambda name: name.startswith(MODULE)))
    around = trace.launchers.enclosing(modules, rows)
    (told,), kernels = trace.arguments_at((_CALLS, rows))
    found: list[Call] = []
    for row, operator, module, kernel in zip(rows.tolist(), owner.tolist(), around.tolist(), told["kernel"].tolist(),
                                             strict=True):  # fmt: skip
        name, shape = trace.names[trace.name[row]], shapes.get(operator, -1)
        found.append((
            "*" if _SET.match(name) or _COPY.match(name) else kernels[kernel] if kernel >= 0 else "",
            "" if operator < 0 else trace.names[trace.name[operator]], texts[shape] if shape >= 0 else "",
            "" if module < 0 else trace.names[trace.name[module]][len(MODULE) :],
        ))  # fmt: skip
    return found


class _Matching:
    def __init__(
        self, trace: Trace, replayed: npt.NDArray[np.bool_], captures: Sequence[tuple[int, Sequence[Call]]]
    ) -> None:  # fmt: skip
        self._trace, self._replayed, self.texts, self.by_count = trace, replayed, Codes(), False
        self._by_length: dict[int, list[tuple[int, Sequence[Call]]]] = {}
        for size, calls in captures:
            kernels = [call for call in calls if call[0] != "*"]
            for some in (calls, kernels) if len(kernels) < len(calls) else (calls,):
                self._by_length.setdefault(len(some), []).append((size, some))
        self._known: dict[tuple[Any, ...], Sequence[I32] | None] = {}

    def columns(self) -> tuple[list[I32], npt.NDArray[np.bool_]]:
        """Codes of operator, shapes and module of the device work, and the mask of what is found."""
        trace = self._trace
        columns = [np.full(len(trace.work_rows), -1, np.int32) for _ in range(3)]
        matched = np.zeros(len(trace.work_rows), np.bool_)
        rows, told = executions(trace)
        index = np.flatnonzero(self._replayed)
        call = trace.call[index]
        execution = interval_at(trace.start[rows], trace.end[rows], trace.start[call])
        (nodes,), _ = trace.arguments_at((_NODES, trace.work_rows[index]))
        # 0 where the node is not told
        order = np.lexsort((trace.start[trace.work_rows[index]], np.maximum(nodes["node"], 0), call))
        index, call, execution = index[order], call[order], execution[order]
        for low, high in pairwise([0, *(np.flatnonzero(np.diff(call)) + 1).tolist(), len(index)]):
            own = index[low:high]
            of = told[int(execution[low])] if execution[low] >= 0 else Execution()
            for part in (own, own[trace.kind[trace.work_rows[own]] == Kind.KERNEL]):
                found = self._found(part, of.tokens or of.requests)
                if found is not None:
                    matched[part] = True
                    for column, values in zip(columns, found, strict=True):
                        column[part] = values
                    break
        return columns, matched

    def _found(self, part: I64, batch: int | None) -> Sequence[I32] | None:
        """Codes of operator, shapes and module of the nodes of a replay; None if no capture fits."""
        trace, rows = self._trace, self._trace.work_rows[part]
        names, kernels = trace.name[rows], trace.kind[rows] == Kind.KERNEL
        key = (names.tobytes(), kernels.tobytes(), batch)
        if key not in self._known:
            wanted = [trace.names[code] if kernel else "*" for code, kernel in
                      zip(names.tolist(), kernels.tolist(), strict=True)]  # fmt: skip
            self._known[key] = self._fitting(wanted, batch)
        return self._known[key]

    def _fitting(self, wanted: Sequence[str], batch: int | None) -> Sequence[I32] | None:
        fitting = [(size, calls) for size, calls in self._by_length.get(len(wanted), ())
                   if all(call[0] in (name, "") for name, call in zip(wanted, calls, strict=True))]  # fmt: skip
        sizes = sorted(size for size, _ in fitting if batch is not None and size >= batch)
        chosen = [calls for size, calls in fitting if not sizes or size == sizes[0]]
        if not chosen:
            return None
        self.by_count |= any(not kernel for calls in chosen for kernel, *_ in calls)
        # where several captures fit, only what they agree on is known
        agreed = [[one if len({one, *others}) == 1 else "" for one, *others in zip(*same, strict=True)]
                  for same in zip(*chosen, strict=True)]  # fmt: skip
        codes = np.array([[self.texts[text] if text else -1 for text in texts[1:]] for texts in agreed], np.int32)
        return list(codes.reshape(-1, 3).T)
