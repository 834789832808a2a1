"""Reads the traces of a run in several processes: decoding holds the GIL, so threads do not help."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.child_process import cpu_count
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model.mapped_arrays import MappedArrays
from tpuprof_tui.sources.chrome.collector import section_count
from tpuprof_tui.sources.chrome.inflate import text_of
from tpuprof_tui.sources.chrome.processes import ChildProcess, child_processes
from tpuprof_tui.sources.column_cache import read_or_kept
from tpuprof_tui.sources.source import Part, ProgressCallback, file_size, progress_of_part

from .trace import Trace
from .trace_reader import read_trace

#: Bytes of files per helper process; below this its start takes longer than it saves.
_WORTH_IT: Final = 24 << 20
_MOST_PROCESSES: Final = 4
#: Seconds before the first call of ``arrived``.
_PATIENCE: Final = 0.3
_Found = Trace | UnreadableError


def read_traces(
    files: Sequence[Path], progress: ProgressCallback | None, arrays: MappedArrays, part: Part | None = None,
    arrived: Callable[[dict[int, Trace | UnreadableError]], None] = lambda found: None,
) -> list[_Found]:  # fmt: skip
    """Reads files; traces in their order, an error for each file that cannot be read.

    Args:
        files: The files.
        progress: Called with the progress over all files.
        arrays: Storage of the columns of several traces.
        part: The part to read of a file that is larger than memory; None: such a file cannot be read.
        arrived: Called now and then with the results so far, by index of the file.
    """
    return _Reading(files, progress, arrays, part, arrived).all()


class _Reading:
    def __init__(
        self, files: Sequence[Path], progress: ProgressCallback | None, arrays: MappedArrays, part: Part | None,
        arrived: Callable[[dict[int, _Found]], None],
    ) -> None:  # fmt: skip
        self._arrived, self._reported, self._began = arrived, 0, time.monotonic()
        self._files, self._arrays = files, arrays
        self._part = part
        self._progress = progress
        self._sizes = [*map(file_size, files)]
        self._lock = threading.Lock()
        # popped from the end: the largest by power of two first, so that no process is left with one; then by name
        self._left = sorted(range(len(files)), key=lambda number: (self._sizes[number].bit_length(), -number))
        self._found: dict[int, _Found] = {}

    def all(self) -> list[_Found]:
        """Reads all files."""
        helpers = max(min(cpu_count(), len(self._files), _MOST_PROCESSES, sum(self._sizes) // _WORTH_IT) - 1, 0)
        # few large files are read one after the other, each by several processes
        if self._sections() > helpers + 1:
            helpers = 0
        with child_processes(helpers) as processes:
            threads = [threading.Thread(target=self._read_in, args=(each,), daemon=True) for each in processes]
            for thread in threads:
                thread.start()
            while (number := self._next()) is not None:
                self._read_here(number, alone=helpers > 0)
                self._report_arrivals()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)
                    self._report_arrivals()
                    self._progress_of(-1)(0, 0)
        # files of a process that died
        for number in range(len(self._files)):
            if number not in self._found:
                self._read_here(number)
        return [self._found[number] for number in range(len(self._files))]

    def _sections(self) -> int:
        """Number of sections in which the largest file would be read; 1 if it is compressed."""
        largest = max(self._sizes, default=0)
        if section_count(largest, cpu_count()) < 2:
            return 1
        file = self._files[self._sizes.index(largest)]
        with file.open("rb") as raw:
            return section_count(largest, cpu_count()) if text_of(file, raw) is raw else 1

    def _read_here(self, number: int, *, alone: bool = True) -> None:
        """Reads a file in this process; if there are several, moves its columns to ``arrays``."""
        found = _read(self._files[number], self._progress_of(number), self._part, alone=alone)
        if isinstance(found, Trace) and len(self._files) > 1:
            # decompressor states cannot be copied
            moved = self._arrays.with_stored_arrays(_without_states(found))
            self._arrays.release_pages()
            found = replace(moved, arguments=found.arguments)
        self._found[number] = found

    def _report_arrivals(self) -> None:
        """Reports results so far: after a moment, then whenever there are four times as many."""
        found = dict(self._found)
        if len(found) >= max(4 * self._reported, 1) and len(found) < len(self._files) and (
            time.monotonic() - self._began > _PATIENCE
        ):  # fmt: skip
            self._reported = len(found)
            self._arrived(found)

    def _next(self) -> int | None:
        with self._lock:
            return self._left.pop() if self._left else None

    def _progress_of(self, number: int) -> Callable[[int, int], None]:
        name = self._files[number].name
        return progress_of_part(self._progress, name, sum(self._sizes[done] for done in list(self._found)),
                                sum(self._sizes))  # fmt: skip

    def _read_in(self, process: ChildProcess) -> None:
        while (number := self._next()) is not None:
            path = self._files[number]
            part = (self._part.range, self._part.step) if self._part is not None else None
            process.ask(f"{__name__}:read_there", str(path.absolute()), part)
            found = process.answer(self._arrays.allocate)
            if found is None:
                return
            self._found[number] = replace(found, path=path) if isinstance(found, Trace) else UnreadableError(found)
            self._arrays.release_pages()


def _read(
    file: Path, report: Callable[[int, int], None] | None, part: Part | None, *, alone: bool = True
) -> _Found:  # fmt: skip
    def read() -> Trace:
        return read_trace(file, report, part, alone=alone)

    try:
        return read() if part is not None else read_or_kept([file], read, _without_states)
    except UnreadableError as error:
        return error


def read_there(path: str, part: tuple[str, int | None] | None) -> Trace | str:
    """Reads a file in another process: its trace, or why it cannot be read."""
    found = _read(Path(path), None, Part(*part) if part is not None else None)
    # decompressor states cannot be pickled
    return _without_states(found) if isinstance(found, Trace) else str(found)


def _without_states(trace: Trace) -> Trace:
    of_file = trace.arguments
    return replace(trace, arguments=replace(of_file, restart_points=None)) if of_file.restart_points else trace
