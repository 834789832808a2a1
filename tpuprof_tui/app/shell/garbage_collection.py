"""Where memory comes from, and when Python looks for cycles of garbage: never through what lasts like the capture.

A full collection visits every object. With the screens' modules and a capture's tables that is 70 ms and more, felt as
a key that hangs now and then.

The GNU C library has up to eight heaps a core, one for each thread that asks, and what was freed in one serves no
other: after many figures have been made each holds some megabytes that nobody uses.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

#: Objects made since the last look before the youngest are looked at; a frame makes some thousand and keeps few.
YOUNG: Final = 10_000
#: The same until the first capture is on the screen: modules and what is made of a small one are no garbage.
STARTING: Final = 250_000
#: The setting "most heaps" of the GNU C library's mallopt.
_M_ARENA_MAX: Final = -8


class Threads(ThreadPoolExecutor):
    """Threads that keep nothing of what they did: a thread holds the work it did last, and who asked for it."""

    def submit(self, fn: Callable[..., Result], /, *arguments: Any, **settings: Any) -> Future[Result]:
        """Has a function called, whose context variables end with it."""
        return super().submit(Context().run, fn, *arguments, **settings)


def be_patient(objects: int = YOUNG) -> None:
    """Looks seldom from now on: after so many objects."""
    gc.set_threshold(objects, *gc.get_threshold()[1:])


def settle() -> None:
    """Collects once, gives free memory back, then leaves all there is out of later collections."""
    unsettle()
    gc.collect()
    gc.freeze()
    be_patient()
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def unsettle() -> None:
    """What was left out may be garbage soon: another capture is to be opened."""
    gc.unfreeze()


def share_memory() -> bool:
    """All threads take memory from one heap from now on; whether the C library lets one choose."""
    choose = getattr(_c_library(), "mallopt", None)
    return choose is not None and bool(choose(_M_ARENA_MAX, 1))


def _c_library() -> Any:
    """The functions of the C library; None where they cannot be called."""
    # numpy loads it too
    import ctypes

    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
