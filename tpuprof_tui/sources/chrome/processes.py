"""A pool of processes that call functions of this package: decoding holds the GIL, so threads do not help.

They run this module as a program. Protocol: on standard input, a JSON text ``[function, argument, ...]`` a line, the
function as ``module:name``; on standard output, for each, the length of a pickle and the number of its out-of-band
buffers (8 bytes each, little endian), the pickle, and each buffer preceded by its length.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import IO, Any, BinaryIO

from tpuprof_tui.child_process import python_words
from tpuprof_tui.model.mapped_arrays import pickled, unpickled


class ChildProcess:
    """Another process, which calls one function after the other."""

    def __init__(self) -> None:
        import subprocess  # imported here: small traces are read by this process alone

        self._process = subprocess.Popen(
            python_words(__name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, function: str, *arguments: Any) -> None:
        """Lets it call a function (``module:name``) with arguments that JSON can hold."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps((function, *arguments)).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self, allocate: Callable[[int], Any] = bytearray) -> Any:
        """Waits for the result of the function; None if the process failed.

        Args:
            allocate: Allocates the buffers of large arrays, of a given number of bytes.
        """
        stream: Any = self._process.stdout
        try:
            length, count = _number(stream), _number(stream)
            data, buffers = _exactly(stream, length), []
            for _ in range(count):
                buffers.append(memoryview(allocate(_number(stream))))
                if stream.readinto(buffers[-1]) < len(buffers[-1]):
                    return None
            return unpickled(data, buffers)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            return None

    def end(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def child_processes(count: int) -> Iterator[list[ChildProcess]]:
    """At most ``count`` processes: those that could be started. They are killed when the block ends."""
    found: list[ChildProcess] = []
    try:
        for _ in range(count):
            with contextlib.suppress(OSError):
                found.append(ChildProcess())
        yield found
    finally:
        for worker in found:
            worker.end()


def _number(stream: IO[bytes]) -> int:
    return int.from_bytes(_exactly(stream, 8), "little")


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _serve(requests: BinaryIO, responses: BinaryIO) -> None:
    for line in requests:
        function, *arguments = json.loads(line)
        data, buffers = pickled(resolve_name(function)(*arguments))
        responses.write(len(data).to_bytes(8, "little") + len(buffers).to_bytes(8, "little") + data)
        for buffer in buffers:
            responses.write(len(buffer).to_bytes(8, "little"))
            responses.write(buffer)
        responses.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
