"""Matching of operations that two recordings name differently: equal operation codes mean the same operation.

A capture that records more of its commands may have other names for them, while the codes are the same.
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
from tpuprof_tui.model.uniques import uniques

#: Names of an operation in a recording, by its code: the kind of lane, then the values of the code columns; for names
#: with generated suffixes the operation alone.
NamesByCode = Mapping[tuple[str, ...], Collection[str]]


def names_by_code(profile: Profile) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Names of the operations of a profile by code, ascending; empty if its source has none. O(n)."""
    found: dict[tuple[str, ...], set[str]] = {(operation,): names for operation, names in _classes(profile).items()}
    for lane in profile.lanes:
        known = [key for key in profile.vocabulary.operation_codes if key in lane]
        if not known or "name" not in lane or not len(lane):
            continue
        for name, *code in _distinct([lane[key] for key in ("name", *known)]):
            found.setdefault((lane.kind, *map(str, code)), set()).add(profile.text("name", name))
    return {code: tuple(sorted(names)) for code, names in found.items()}


def _distinct(columns: Sequence[npt.NDArray[np.integer[Any]]]) -> Iterator[tuple[int, ...]]:
    known = np.logical_and.reduce([column >= 0 for column in columns])
    values = [column[known].astype(np.int64) for column in columns]
    sizes = [int(each.max(initial=0)) + 1 for each in values]
    if math.prod(sizes) >= 1 << 62:
        yield from map(tuple, np.unique(np.stack(values, axis=1), axis=0).tolist())
    else:  # packed into one integer each: sorts many times as fast
        every = uniques(np.ravel_multi_index(values, sizes))
        yield from zip(*(each.tolist() for each in np.unravel_index(every, sizes)), strict=True)


def operation_synonyms(recordings: Sequence[NamesByCode]) -> dict[str, tuple[str, ...]]:
    """Maps each name to all names of the same operation, in the order of the recordings.

    Two recordings without a common name for a code name the same operation differently; this is applied transitively.
    Names that need no mapping are left out.
    """
    together: dict[str, list[str]] = {}
    # of thousands of recordings most have the same names for a code: collect distinct sets first
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
    order = {name: index for index, name in enumerate(ordered)}
    in_order = {id(names): tuple(sorted(names, key=order.__getitem__)) for names in together.values()}
    return {name: in_order[id(names)] for name, names in together.items()}


def renamed_operations(base: Profile, other: Profile) -> dict[str, str]:
    """Joint names of operations that the sides name differently: the base's names, separated by commas."""
    if list(base.strings.get("name", ())) == list(other.strings.get("name", ())):
        return {}
    if base.vocabulary.operation_class:
        return dict(_of_classes(base, other))
    ours, theirs = names_by_code(base), names_by_code(other)
    here = {name for names in ours.values() for name in names}
    called = {
        name: ", ".join(each for each in names if each in here)
        for name, names in operation_synonyms([ours, theirs]).items()
    }
    return {name: text for name, text in called.items() if name != text}


def _of_classes(base: Profile, other: Profile) -> Iterator[tuple[str, str]]:
    """(Name, operation) for names with generated suffixes (``operation_class``), if the sides share no name of it."""
    ours, theirs = _classes(base), _classes(other)
    for operation in ours.keys() & theirs.keys():
        if ours[operation].isdisjoint(theirs[operation]):
            yield from ((name, operation) for name in ours[operation] | theirs[operation])


def _classes(profile: Profile) -> dict[str, set[str]]:
    """Names with generated suffixes by operation; none if the source has no such names."""
    found: dict[str, set[str]] = {}
    for name in map(str, profile.strings.get("name", ()) if profile.vocabulary.operation_class else ()):
        told = re.match(profile.vocabulary.operation_class, name)
        if told is not None:
            found.setdefault(told[1], set()).add(name)
    return found
