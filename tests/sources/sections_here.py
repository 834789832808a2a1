"""Small traces read in sections, those behind the first in this process instead of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from typing import Any

import pytest

from tpuprof_tui.sources.chrome import collector

#: Where the sections began that were read in this process.
READ_FROM: list[int] = []


class InProcess:
    """Does in this process what another would do."""

    def ask(self, function: str, *arguments: Any) -> None:
        self._begin, self._call = arguments[-2], partial(resolve_name(function), *arguments)

    def answer(self) -> Any:
        READ_FROM.append(self._begin)
        return self._call()


@contextmanager
def in_process(count: int) -> Iterator[list[InProcess]]:
    """Reads the sections behind the first in this process."""
    yield [InProcess() for _ in range(count)]


def by_several(patched: pytest.MonkeyPatch, process: Callable[[int], Any] = in_process, count: int = 2) -> None:
    """Lets small files be read by several processes."""
    patched.setattr(collector, "_SMALLEST", 1)
    patched.setattr(collector, "_STARTING", 0)
    patched.setattr(collector, "cpu_count", lambda: count)
    patched.setattr(collector, "child_processes", process)
