"""Which event of a thread encloses which.

An event lies below the innermost earlier one that contains it wholly. One that starts exactly where another ends is
its sibling, even where both are of no length.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def parents(start: I64, end: I64, thread: npt.NDArray[np.integer]) -> I64:
    """The place of the event that encloses each; -1 where none does.

    Args:
        start, end: ns, thread by thread, in each in the order of nesting.
        thread: Number of the thread of each.
    """
    found = [-1] * len(start)
    stack: list[tuple[int, int]] = []
    last = None
    for place, (begin, finish, lane) in enumerate(zip(start.tolist(), end.tolist(), thread.tolist(), strict=True)):
        if lane != last:
            stack.clear()
            last = lane
        while stack and stack[-1][0] <= begin:
            stack.pop()
        for until, number in reversed(stack):
            if until >= finish and until > begin:
                found[place] = number
                break
        stack.append((finish, place))
    return np.array(found, np.int64)


def innermost(
    outer: tuple[I64, I64, npt.NDArray[np.integer]], inner: tuple[I64, I64, npt.NDArray[np.integer]]
) -> I64:  # fmt: skip
    """The place of the last event of ``outer`` that contains each of ``inner``; -1 where none does.

    Args:
        outer, inner: Starts, ends, ns, and threads; outer in the order of nesting. An inner event of no length lies in
            what begins no later and ends after it.
    """
    starts, ends = (np.concatenate([one, other]) for one, other in zip(outer[:2], inner[:2], strict=True))
    threads = np.concatenate([outer[2], inner[2]])
    count = len(outer[0])
    order = np.lexsort((np.arange(len(starts)), np.arange(len(starts)) >= count, starts, threads))
    found = [-1] * len(inner[0])
    stack: list[tuple[int, int]] = []
    last = None
    rows = zip(order.tolist(), starts[order].tolist(), ends[order].tolist(), threads[order].tolist(), strict=True)
    for place, begin, finish, lane in rows:
        if lane != last:
            stack.clear()
            last = lane
        while stack and stack[-1][0] <= begin:
            stack.pop()
        if place < count:
            stack.append((finish, place))
            continue
        for until, number in reversed(stack):
            if until >= finish and until > begin:
                found[place - count] = number
                break
    return np.array(found, np.int64)
