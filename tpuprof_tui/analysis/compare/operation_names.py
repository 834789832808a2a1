"""Operations that recordings call otherwise: those with the same codes are one, whatever they are called.

A capture that tells more of its commands may have other names for them; codes are the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Profile

#: Names that a recording has for each code of an operation; a code begins with the kind of lane it is of.
NamesByCode = Mapping[tuple[str, ...], Collection[str]]


def names_by_code(profile: Profile) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Names of the operations of a profile, ascending; nothing where its source knows no codes. O(n)."""
    found: dict[tuple[str, ...], set[str]] = {}
    for lane in profile.lanes:
        known = [key for key in profile.vocabulary.operation_codes if key in lane]
        if not known or "name" not in lane or not len(lane):
            continue
        for name, *code in _distinct([lane[key] for key in ("name", *known)]):
            found.setdefault((lane.kind, *map(str, code)), set()).add(profile.text("name", name))
    return {code: tuple(sorted(names)) for code, names in found.items()}


def _distinct(columns: Sequence[npt.NDArray[np.integer[Any]]]) -> Iterator[tuple[int, ...]]:
    """The different rows of some columns, of those without a missing value: none below 0."""
    known = np.logical_and.reduce([column >= 0 for column in columns])
    values = [column[known].astype(np.int64) for column in columns]
    sizes = [int(each.max(initial=0)) + 1 for each in values]
    if math.prod(sizes) >= 1 << 62:
        yield from map(tuple, np.unique(np.stack(values, axis=1), axis=0).tolist())
    else:  # as one number: that sorts many times as fast
        every = np.unique(np.ravel_multi_index(values, sizes))
        yield from zip(*(each.tolist() for each in np.unravel_index(every, sizes)), strict=True)


def one_operation(recordings: Sequence[NamesByCode]) -> dict[str, tuple[str, ...]]:
    """Names that stand for one operation, by each of them, in the order of the recordings.

    Where two recordings have no name in common for a code, all that they call it is one; and so on with each of these
    names. Names that are the same everywhere are left out.
    """
    together: dict[str, list[str]] = {}
    # of thousands of recordings most call a code the same
    every: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for recording in recordings:
        for code, called in recording.items():
            every.setdefault(code, {})[tuple(called)] = None
    for tables in every.values():
        for others, names in combinations(tables, 2):
            if set(names).isdisjoint(others):
                every_name = (same for name in (*others, *names) for same in together.get(name, [name]))
                joined = list(dict.fromkeys(every_name))
                together.update(dict.fromkeys(joined, joined))
    ordered = dict.fromkeys(name for names in recordings for each in names.values() for name in each)
    order = {name: place for place, name in enumerate(ordered)}
    return {name: tuple(sorted(names, key=order.__getitem__)) for name, names in together.items()}


def renamed_operations(base: Profile, other: Profile) -> dict[str, str]:
    """What operations of either side are called where they are compared, if otherwise: as in the base, by commas."""
    if list(base.strings.get("name", ())) == list(other.strings.get("name", ())):
        return {}
    if base.vocabulary.operation_class:
        return dict(_of_classes(base, other))
    ours, theirs = names_by_code(base), names_by_code(other)
    here = {name for names in ours.values() for name in names}
    called = {
        name: ", ".join(each for each in names if each in here) for name, names in one_operation([ours, theirs]).items()
    }
    return {name: text for name, text in called.items() if name != text}


def _of_classes(base: Profile, other: Profile) -> Iterator[tuple[str, str]]:
    """Names of operations whose ends either recording made up, and the operation: of those with no name in common."""
    sides: list[dict[str, set[str]]] = []
    for side in (base, other):
        found: dict[str, set[str]] = {}
        sides.append(found)
        for name in map(str, side.strings.get("name", ())):
            told = re.match(side.vocabulary.operation_class, name)
            if told is not None:
                found.setdefault(told[1], set()).add(name)
    ours, theirs = sides
    for operation in ours.keys() & theirs.keys():
        if ours[operation].isdisjoint(theirs[operation]):
            yield from ((name, operation) for name in ours[operation] | theirs[operation])
