"""Ends what does not end, and measures memory."""

from __future__ import annotations

import faulthandler
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

#: What every profile and its outputs take, whatever their size, and what each byte of input may take beyond that.
ROOM, EACH = 64 << 20, 64

#: Nothing takes a hundredth of this; who does is taken for an endless loop, and ended with the place it is at.
SECONDS = 120


@contextmanager
def ending() -> Iterator[None]:
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def bounded(size: int, room: int = ROOM, each: int = EACH) -> Iterator[None]:
    """No more memory than the size of the input allows."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < room + each * size, f"{peak} bytes for {size}"
