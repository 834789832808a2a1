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
from tpuprof_tui.sources.ranks import rank_in_name

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


class Captured(Struct, frozen=True, eq=False):
    """One capture of a graph: its calls in order, in columns of one length.

    Attributes:
        size: Batch that it is for; -1 if not told.
        kernel: Names of kernels; empty if not told. ``*``: a copy or a set.
        operator, shape, module: Texts; empty if there is none.
    """

    size: int
    kernel: tuple[str, ...]
    operator: tuple[str, ...]
    shape: tuple[str, ...]
    module: tuple[str, ...]

    def of_kernels(self) -> Captured:
        """The capture without copies and sets."""
        which = [index for index, name in enumerate(self.kernel) if name != "*"]
        return Captured(self.size, *(tuple(each[index] for index in which) for each in
                                     (self.kernel, self.operator, self.shape, self.module)))  # fmt: skip


class Replayed(Struct, frozen=True, eq=False):
    """What launched the device work of replayed graphs, by index in ``Trace.work_rows``.

    Attributes:
        operator, shape, module: int32 codes into ``texts``; -1: unknown.
        replayed: Mask of the work of replayed graphs.
        matched: Mask of the work whose call in a capture is known.
        by_count: Whether captures fit by their number of calls alone, as they name no kernels.
        files: Names of the files that were read.
        lacking: What could not be read.
    """

    operator: I32
    shape: I32
    module: I32
    texts: tuple[str, ...]
    replayed: npt.NDArray[np.bool_]
    matched: npt.NDArray[np.bool_]
    by_count: bool
    files: tuple[str, ...]
    lacking: tuple[str, ...]


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


def replayed_of(trace: Trace, files: Sequence[Path]) -> Replayed | None:
    """What launched the work of a trace's replayed graphs; None if it has none, or no capture beside it.

    Reads the traces of the captures, one after the other.
    """
    call = trace.call
    graphs = trace.named(GRAPHS.match)
    replayed = (call >= 0) & (graphs[call] if len(trace) else False)
    if not replayed.any() or not files:
        return None
    captures: list[Captured] = []
    lacking, read = [], []
    for path in files[:_MOST_FILES]:
        try:
            captures += captures_in(_read(path))
            read.append(path.name)
        except UnreadableError as error:
            lacking.append(str(error))
    if len(files) > _MOST_FILES:
        lacking.append(f"There are {len(files):,} traces of captures: {_MOST_FILES} were read.")
    return _Matching(trace, replayed, captures, tuple(read), tuple(lacking)).result()


def _read(path: Path) -> Trace:
    from .reading import read_trace

    return read_trace(path)


def captures_in(trace: Trace) -> Iterator[Captured]:
    """The captures of graphs in a trace."""
    launches = trace.launchers.calls
    rows = launches[(trace.named(LAUNCHING.match) | trace.named(_SET.match))[launches]]
    ran = uniques(trace.call)
    rows = rows[~np.isin(rows, ran)]
    rows = rows[np.lexsort((trace.file_order[rows], trace.start[rows]))]
    columns = _columns_of(trace, rows)
    names = [trace.names[code] for code in trace.name[rows].tolist()]
    thread = trace.thread_of(rows)
    for low, high, of_thread, size in _windows(trace):
        inside = (trace.start[rows] >= low) & (trace.end[rows] <= high) & ((thread == of_thread) | (of_thread < 0))
        which = np.flatnonzero(inside).tolist()
        if which:
            operator, shape, module, kernel = ([column[index] for index in which] for column in columns)
            kernels = ("*" if _SET.match(names[index]) or _COPY.match(names[index]) else text
                       for index, text in zip(which, kernel, strict=True))  # fmt: skip
            yield Captured(size, tuple(kernels), tuple(operator), tuple(shape), tuple(module))


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


def _columns_of(trace: Trace, rows: I64) -> tuple[list[str], list[str], list[str], list[str]]:
    """Operator, shapes, module and kernel of each of some calls, as texts."""
    owner = trace.launchers.of_call[rows] if len(rows) else rows
    operator = ["" if row < 0 else trace.names[trace.name[row]] for row in owner.tolist()]
    owners = uniques(owner[owner >= 0])
    arguments, texts = trace.operator_arguments(owners)
    dims = {row: texts[code] if code >= 0 else "" for row, code in
            zip(owners.tolist(), arguments["shapes"].tolist(), strict=True)}  # fmt: skip
    shape = [dims.get(row, "") for row in owner.tolist()]
    modules = np.flatnonzero((trace.kind == Kind.FRAME) & trace.named(lambda name: name.startswith(MODULE)))
    around = trace.launchers.enclosing(modules, rows)
    module = ["" if row < 0 else trace.names[trace.name[row]][len(MODULE) :] for row in around.tolist()]
    (calls,), texts = trace.arguments_at((_CALLS, rows))
    names = ("", *texts)
    kernel = [names[code + 1] for code in calls["kernel"].tolist()]
    return operator, shape, module, kernel


class _Matching:
    def __init__(
        self, trace: Trace, replayed: npt.NDArray[np.bool_], captures: list[Captured], files: tuple[str, ...],
        lacking: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._trace, self._replayed, self._files, self._lacking = trace, replayed, files, lacking
        self._by_length: dict[int, list[Captured]] = {}
        for each in captures:
            for one in {id(each): each, id(only := each.of_kernels()): only}.values():
                self._by_length.setdefault(len(one.kernel), []).append(one)
        self._texts = Codes()
        self._by_count = False
        self._known: dict[tuple[Any, ...], list[npt.NDArray[np.int32]] | None] = {}

    def result(self) -> Replayed:
        trace = self._trace
        columns = [np.full(len(trace.work_rows), -1, np.int32) for _ in range(3)]
        matched = np.zeros(len(trace.work_rows), np.bool_)
        rows, told = executions(trace)
        index = np.flatnonzero(self._replayed)
        call = trace.call[index]
        execution = interval_at(trace.start[rows], trace.end[rows], trace.start[call])
        node = self._nodes(index)
        order = np.lexsort((trace.start[trace.work_rows[index]], node, call))
        index, call, execution = index[order], call[order], execution[order]
        borders = [0, *(np.flatnonzero(np.diff(call)) + 1).tolist(), len(index)]
        for low, high in pairwise(borders):
            own = index[low:high]
            of = told[int(execution[low])] if execution[low] >= 0 else Execution()
            for part in (own, own[trace.kind[trace.work_rows[own]] == Kind.KERNEL]):
                found = self._found(part, of.tokens or of.requests)
                if found is not None:
                    matched[part] = True
                    for column, values in zip(columns, found, strict=True):
                        column[part] = values
                    break
        operator, shape, module = columns
        return Replayed(operator, shape, module, tuple(self._texts), self._replayed, matched, self._by_count,
                        self._files, self._lacking)  # fmt: skip

    def _nodes(self, index: I64) -> I64:
        """The graph node id of some work; 0 where it is not told."""
        (found,), _ = self._trace.arguments_at((_NODES, self._trace.work_rows[index]))
        node: I64 = np.maximum(found["node"], 0)
        return node

    def _found(self, part: I64, batch: int | None) -> list[npt.NDArray[np.int32]] | None:
        """Codes of operator, shape and module of the nodes of a replay; None if no capture fits."""
        trace = self._trace
        rows = trace.work_rows[part]
        names = trace.name[rows]
        kernels = trace.kind[rows] == Kind.KERNEL
        key = (names.tobytes(), kernels.tobytes(), batch)
        if key not in self._known:
            wanted = [trace.names[code] if kernel else "*" for code, kernel in
                      zip(names.tolist(), kernels.tolist(), strict=True)]  # fmt: skip
            self._known[key] = self._fitting(wanted, batch)
        return self._known[key]

    def _fitting(self, wanted: list[str], batch: int | None) -> list[npt.NDArray[np.int32]] | None:
        fitting = [each for each in self._by_length.get(len(wanted), ())
                   if all(name in (other, "") for name, other in zip(each.kernel, wanted, strict=True))]  # fmt: skip
        sizes = sorted(each.size for each in fitting if batch is not None and each.size >= batch)
        fitting = [each for each in fitting if each.size == sizes[0]] if sizes else fitting
        if not fitting:
            return None
        self._by_count |= any("" in each.kernel for each in fitting)
        # where several captures fit, only what they agree on is known
        columns = []
        for of_one in zip(*((each.operator, each.shape, each.module) for each in fitting), strict=True):
            texts = (one if len({one, *others}) == 1 else "" for one, *others in zip(*of_one, strict=True))
            columns.append(np.array([self._texts[text] if text else -1 for text in texts], np.int32))
        return columns
