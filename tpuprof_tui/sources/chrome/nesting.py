"""How deep each slice lies within those of its thread."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

#: Sub-lanes that a lane can have; what lies deeper shares the last.
_MOST_SUBLANES: Final = 32_000


def nested_depths(
    start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], thread: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64], int]:
    """Sub-lanes of slices by depth of nesting.

    Slices of a thread that cross (neither within the other, nor apart) go to different stacks.

    Args:
        start, end: ns, ordered by start, then by falling end.
        thread: What each ran on.

    Returns:
        Sub-lane of each slice (those of one do not overlap), number of its stack, and number of sub-lanes.
    """
    stacks: list[list[int]] = []
    of_thread: dict[Any, list[int]] = {}
    depths = np.zeros(len(start), dtype=np.int64)
    nest = np.zeros(len(start), dtype=np.int64)
    rows = zip(start.tolist(), end.tolist(), thread.tolist(), strict=True)
    for row, (begin, finish, name) in enumerate(rows):
        mine = of_thread.setdefault(name, [])
        for number in mine:
            stack = stacks[number]
            while stack and stack[-1] <= begin:
                stack.pop()
            if not stack or finish <= stack[-1]:
                break
        else:
            number = len(stacks)
            stacks.append([])
            mine.append(number)
        depths[row], nest[row] = len(stacks[number]), number
        stacks[number].append(finish)
    heights = np.zeros(len(stacks) + 1, dtype=np.int64)
    np.maximum.at(heights, nest, depths + 1)
    first = np.cumsum(heights) - heights
    sublane = np.minimum(first[nest] + depths, _MOST_SUBLANES - 1).astype(np.int16)
    return sublane, nest, max(int(sublane.max(initial=0)) + 1, 1)
