"""Reads the traces of a run in several processes: decoding holds the GIL, so threads do not help.

The other processes run this module as a program. Protocol: on standard input, one JSON text ``[path, part]`` per line;
on standard output, for each, the length of a pickle and the number of its out-of-band buffers (8 bytes each, little
endian), the pickle, and each buffer preceded by its length.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from msgspec.structs import replace

from tpuprof_tui.child_process import cores, python_words
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model.mapped_arrays import MappedArrays, pickled, unpickled
from tpuprof_tui.sources.chrome.inflate import text_of
from tpuprof_tui.sources.chrome.sections import section_count
from tpuprof_tui.sources.source import Part, ProgressCallback, progress_of_part

from .reading import read_trace
from .trace import Trace

if TYPE_CHECKING:
    import subprocess

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
        self._sizes = [file.stat().st_size for file in files]
        self._lock = threading.Lock()
        # popped from the end: the largest by power of two first, so that no process is left with one; then by name
        self._left = sorted(range(len(files)), key=lambda number: (self._sizes[number].bit_length(), -number))
        self._found: dict[int, _Found] = {}

    def all(self) -> list[_Found]:
        """Reads all files."""
        helpers = max(min(cores(), len(self._files), _MOST_PROCESSES, sum(self._sizes) // _WORTH_IT) - 1, 0)
        # few large files are read one after the other, each by several processes
        if self._sections() > helpers + 1:
            helpers = 0
        with _other_processes(helpers) as processes:
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
        if section_count(largest, cores()) < 2:
            return 1
        file = self._files[self._sizes.index(largest)]
        with file.open("rb") as raw:
            return section_count(largest, cores()) if text_of(file, raw) is raw else 1

    def _read_here(self, number: int, *, alone: bool = True) -> None:
        """Reads a file in this process; if there are several, moves its columns to ``arrays``."""
        found = _read(self._files[number], self._progress_of(number), self._part, alone=alone)
        if isinstance(found, Trace) and len(self._files) > 1:
            arguments = found.arguments
            # decompressor states cannot be copied
            moved = self._arrays.with_stored_arrays(replace(found, arguments=replace(arguments, restart_points=None)))
            self._arrays.release_pages()
            found = replace(moved, arguments=arguments)
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
        """Callback for the progress of one file, which reports that over all files."""
        name = self._files[number].name
        return progress_of_part(self._progress, name, sum(self._sizes[done] for done in list(self._found)),
                                sum(self._sizes))  # fmt: skip

    def _read_in(self, process: subprocess.Popen[bytes]) -> None:
        """Reads files in another process until none are left."""
        assert process.stdin is not None
        assert process.stdout is not None
        while (number := self._next()) is not None:
            try:
                part = (self._part.range, self._part.step) if self._part is not None else None
                path = os.fspath(self._files[number].absolute())
                process.stdin.write(json.dumps((path, part)).encode() + b"\n")
                process.stdin.flush()
                found = self._received(process.stdout)
            except (OSError, ValueError, EOFError, pickle.UnpicklingError):
                return
            if isinstance(found, Trace):
                found = replace(found, path=self._files[number])
            self._found[number] = found if isinstance(found, Trace) else UnreadableError(str(found))
            self._arrays.release_pages()

    def _received(self, stream: IO[bytes]) -> Any:
        """The result of another process, its arrays placed in ``arrays``."""
        length, count = _number(stream), _number(stream)
        data, buffers = _exactly(stream, length), []
        for _ in range(count):
            buffer = self._arrays.allocate(_number(stream))
            if stream.readinto(buffer) < len(buffer):  # type: ignore[attr-defined]
                raise EOFError
            buffers.append(buffer)
        return unpickled(data, buffers)


def _read(
    file: Path, report: Callable[[int, int], None] | None, part: Part | None, *, alone: bool = True
) -> _Found:  # fmt: skip
    try:
        return read_trace(file, report, part, alone=alone)
    except UnreadableError as error:
        return error


@contextlib.contextmanager
def _other_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that read files; they are killed when the block ends."""
    if not count:
        yield []
        return
    import subprocess

    found: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                found.append(subprocess.Popen(python_words(__name__), stdin=subprocess.PIPE,
                                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))  # fmt: skip
        yield found
    finally:
        for process in found:
            process.kill()
            process.communicate()


def _number(stream: IO[bytes]) -> int:
    return int.from_bytes(_exactly(stream, 8), "little")


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Main loop of the other process."""
    for line in requests:
        path, part = json.loads(line)
        found = _read(Path(path), None, Part(*part) if part is not None else None)
        if isinstance(found, Trace) and found.arguments.restart_points:
            # decompressor states cannot be pickled
            found = replace(found, arguments=replace(found.arguments, restart_points=None))
        data, buffers = pickled(found if isinstance(found, Trace) else str(found))
        responses.write(len(data).to_bytes(8, "little") + len(buffers).to_bytes(8, "little"))
        responses.write(data)
        for each in buffers:
            responses.write(len(each).to_bytes(8, "little"))
            responses.write(each)
        responses.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
