"""Call trees: time aggregated by call path, merging rows whose chains of callers have the same labels.

Rows are groups, scopes, the host frames that called the device work, and that work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.intervals import positions_in_runs
from tpuprof_tui.model.uniques import distinct, uniques

from ..pivot import Frame, GroupBy
from ..selecting.session import Session

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Text columns that label work which no host frame called.
_LEVELS = ("kernel", "name")
#: Maximum depth of a tree; deeper calls count towards their ancestor at this depth.
DEEPEST: Final = 500


class Labels(Struct, frozen=True, eq=False, dict=True):
    """Numbering of a tree's labels: group ids, then per text column a label for missing values and one per code."""

    profile: Profile

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Text columns that the profile has."""
        return tuple(key for key in _LEVELS if key in self.profile.strings)

    @cached_property
    def _first(self) -> tuple[int, ...]:
        sizes = [len(self.profile.groups), *(len(self.profile.strings[key]) + 1 for key in self.keys)]
        return tuple(np.cumsum(sizes).tolist())

    def encode(self, key: str, codes: npt.NDArray[np.integer]) -> Ints:
        """Converts codes of a text column to labels."""
        known = (codes >= 0) & (codes < len(self.profile.strings[key]))
        return self._first[self.keys.index(key)] + np.where(known, codes, -1).astype(np.int64) + 1

    def missing(self, key: str) -> int:
        """The label for missing values of a column."""
        return self._first[self.keys.index(key)]

    def decode(self, label: int) -> tuple[str, str, int]:
        """Decodes a label: its column (empty: a group), its text, and its code or group id (-1: missing)."""
        if label < self._first[0]:
            return "", self.profile.groups[label].label, label
        level = max(number for number, first in enumerate(self._first[:-1]) if first <= label)
        code = label - self._first[level] - 1
        return self.keys[level], self.profile.strings[self.keys[level]][code] if code >= 0 else MISSING, code


def call_stacks(session: Session, lanes: Iterable[Frame]) -> tuple[CallTree, Labels]:
    """Time by call path of some events, each at its full duration; callers are shown even if they are not among them.

    Of events on the host only frames count (``Vocabulary.frames``), each without the frames it calls.

    Args:
        session: The profile.
        lanes: Events lane by lane: columns ``lane``, ``row``, ``group``, ``start``, ``end``, and those of `Labels`.
    """
    labels = Labels(session.profile)
    parts = _RowBuilder(session, labels)
    for events in lanes:
        parts.add(events)
    return call_tree(*parts.columns()), labels


class _RowBuilder:
    """Builder of a tree's rows: the groups, then the host frames, then work."""

    def __init__(self, session: Session, labels: Labels) -> None:
        self.session, self.labels = session, labels
        groups = session.profile.groups
        self._parts: list[tuple[Ints, ...]] = []
        self._count = 0
        self._append(np.array([group.parent for group in groups], np.int64), np.arange(len(groups)))
        self._frames = _frames_of(session)
        if self._frames is not None:
            above, first = self._frames.above, self._count
            self._first_frame = first
            self._callers = np.where(above >= 0, above + first, self._frames.top)
            self._frame_labels = self.labels.encode("name", self._frames.name)
            self._append(self._callers, self._frame_labels)

    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The rows as columns: parent, label, own ns, count."""
        parent, label, own, count = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return parent, label, own, count

    def _append(self, parent: Ints, label: Ints, own: Ints | None = None, count: Ints | None = None) -> Ints:
        nothing = np.zeros(len(parent), np.int64)
        self._parts.append((parent, label, nothing if own is None else own, nothing if count is None else count))
        self._count += len(parent)
        return np.arange(self._count - len(parent), self._count)

    def add(self, events: Frame) -> None:
        """Appends events; of those on the host, frames."""
        if not len(events):
            return
        events = events.with_columns(took=events["end"] - events["start"])
        frames = self._frames
        if frames is not None:
            numbers = events["row"] + self.session.offsets[events["lane"]]
            on_host = np.array([lane.on_host for lane in self.session.profile.lanes], np.bool_)[events["lane"]]
            at = frames.frame_of_event[numbers[on_host]]
            at = at[at >= 0]
            self._append(self._callers[at], self._frame_labels[at], frames.own[at], np.ones(len(at), np.int64))
            caller = np.where(on_host, -1, frames.caller[numbers])
            called = events.take(caller >= 0)
            name = self.labels.encode("name", called["name"])
            self._append(self._first_frame + caller[caller >= 0], name, called["took"], np.ones(len(called), np.int64))
            events = events.take(~on_host & (caller < 0))
        self._append_grouped(events)

    def _append_grouped(self, events: Frame) -> None:
        """Appends work that no frame called: one row per distinct path of group, scope and name."""
        keys = self.labels.keys
        events = events.with_columns(None, **{key: self.labels.encode(key, events[key]) for key in keys})
        paths = GroupBy(events, ("group", *keys))
        parent, *levels = (paths.values(key) for key in ("group", *keys))
        for key, label in zip(keys[:-1], levels, strict=False):
            # work without a kernel is attached directly to its group
            known = label > self.labels.missing(key)
            parent[known] = self._append(parent[known], label[known])
        if levels:
            self._append(parent, levels[-1], paths.reduce(events["took"]), paths.sizes)


def calling_names(session: Session, pattern: str = "") -> Ints:
    """By event: code of the name of the innermost frame that called it and whose name matches ``pattern``; -1: none."""
    frames = _frames_of(session)
    if frames is None:
        return np.full(session.profile.event_count, -1, np.int64)
    names, fits = session.profile.strings["name"], re.compile(pattern).match
    used = [code for code in uniques(frames.name).tolist() if fits(names[code])]
    none = len(frames.name)
    jump = nearest(np.where(frames.above < 0, none, frames.above), np.isin(frames.name, used))
    return np.append(frames.name, -1)[jump][frames.caller]


class _Frames(Struct, frozen=True, eq=False):
    """Host events that are frames of call paths."""

    frame_of_event: Ints  #: By event of the profile: index of its frame; -1 for events that are not frames
    caller: Ints  #: By event: index of the innermost frame that called it; -1: none
    above: Ints  #: By frame: index of the enclosing frame; -1: none
    top: Ints  #: By frame: id of its lane's topmost group
    name: Ints  #: By frame: code of its name
    own: Ints  #: By frame: duration without the frames it calls, ns


def _frames_of(session: Session) -> _Frames | None:
    profile = session.profile
    if not profile.vocabulary.frames or not {"name", "type"} <= set(profile.strings):
        return None
    return session.cache.get("call frames", lambda: _find_frames(session))


def _find_frames(session: Session) -> _Frames:
    profile, offsets = session.profile, session.offsets
    at = np.full(profile.event_count, -1, np.int64)
    # by event: the innermost frame that it is or is nested in
    inside = np.full(profile.event_count, -1, np.int64)
    parts: list[tuple[Ints, ...]] = []
    count = 0
    for number, lane in enumerate(profile.lanes):
        if not lane.on_host or not len(lane) or not {"name", "type"} <= set(lane.keys()):
            continue
        rows = np.flatnonzero(_is_frame(profile, lane))
        frame_of_row = np.full(len(lane) + 1, -1, np.int64)
        frame_of_row[rows] = count + np.arange(len(rows))
        jump = nearest(parents_of(lane), frame_of_row[:-1] >= 0)
        above = frame_of_row[jump[parents_of(lane)[rows]]]
        took = lane.take("end", rows) - lane.take("start", rows)
        at[offsets[number] : offsets[number + 1]] = frame_of_row[:-1]
        inside[offsets[number] : offsets[number + 1]] = frame_of_row[jump[:-1]]
        top = np.full(len(rows), profile.groups.top(lane.group))
        parts.append((above, top, lane.take("name", rows).astype(np.int64), took))
        count += len(rows)
    nothing = (np.zeros(0, np.int64),) * 4
    above, top, name, took = (np.concatenate(each) for each in zip(nothing, *parts, strict=True))
    own = took.copy()
    np.subtract.at(own, above[above >= 0], took[above >= 0])
    return _Frames(at, _callers(session, inside), above, top, name, np.maximum(own, 0))


def _callers(session: Session, inside: Ints) -> Ints:
    """By device event: the frame that called it, from the links of the host; the first kind of link that has one."""
    profile, found = session.profile, np.full(session.profile.event_count, -1, np.int64)
    if profile.links is None:
        return found
    links = profile.links()
    on_host = np.repeat(np.array([lane.on_host for lane in profile.lanes], np.bool_), np.diff(session.offsets))
    for kind in range(len(links.kinds)):
        rows = np.flatnonzero((links.kind == kind) & on_host[links.from_row] & ~on_host[links.to_row])
        event, frame = links.to_row[rows], inside[links.from_row[rows]]
        new = (frame >= 0) & (found[event] < 0)
        found[event[new]] = frame[new]
    return found


def _is_frame(profile: Profile, lane: Lane) -> Mask:
    """Mask of the events of a host lane that are frames: type and name pattern match ``Vocabulary.frames``."""
    types, names = profile.strings["type"], profile.strings["name"]
    found = np.zeros(len(lane), np.bool_)
    kind, name = lane["type"], lane["name"]
    for wanted, pattern in profile.vocabulary.frames.items():
        codes = [code for code, text in enumerate(types) if text == wanted]
        rows = np.flatnonzero(np.isin(kind, codes) & (name >= 0) & (name < len(names)))
        fits = re.compile(pattern).match
        used = uniques(name[rows])
        found[rows] = np.isin(name[rows], np.array([code for code in used.tolist() if fits(names[code])], name.dtype))
    return found


def parents_of(lane: Lane) -> Ints:
    """Row of each event's enclosing event, ``len(lane)`` at top level; as recorded, else from nested times."""
    if "parent" in lane:
        parent = lane["parent"].astype(np.int64)
        return np.where((parent >= 0) & (parent < len(lane)), parent, len(lane))
    found = np.full(len(lane), len(lane), np.int64)
    start, end, sublane = lane["start"], lane["end"], lane["sublane"]
    for level in range(1, int(sublane.max(initial=0)) + 1):
        rows, outer = np.flatnonzero(sublane == level), np.flatnonzero(sublane == level - 1)
        if not len(outer):  # filtered out
            continue
        index = np.searchsorted(start[outer], start[rows], "right") - 1
        hit = (index >= 0) & (end[outer[np.maximum(index, 0)]] >= end[rows])
        found[rows[hit]] = outer[index[hit]]
    return found


class CallTree(Struct, frozen=True, eq=False):
    """A call tree as int64 columns of one length, in depth-first order; siblings by ``total`` descending."""

    parent: Ints  #: Index of the caller; -1 for roots
    depth: Ints  #: Number of callers above it
    label: Ints  #: Label, see ``Labels``
    own: Ints  #: Time of the path itself, ns
    total: Ints  #: Time including callees, ns
    count: Ints  #: Number of events including callees

    def __len__(self) -> int:
        return len(self.parent)


def call_tree(parent: Ints, label: Ints, own: Ints, count: Ints) -> CallTree:
    """Aggregates rows by call path, dropping paths with a total count of 0; O(rows log rows).

    Args:
        parent: Index of each row's caller, in any order; -1: none. Rows called from a cycle are dropped.
        label: Label of each row, from 0.
        own: Time of each row without callees, ns.
        count: Number of events of each row; 0 for callers that are not events themselves.
    """
    order = np.argsort(parent, kind="stable")
    callers = parent[order]
    labels = int(label.max(initial=0)) + 1
    node = np.full(len(parent), -1, np.int64)
    parents: list[Ints] = []
    called: list[Ints] = []
    edges = [0]
    rows = np.flatnonzero(parent < 0)
    while len(rows) and len(parents) < DEEPEST:
        above = np.where(parent[rows] >= 0, node[parent[rows]], -1)
        keys, index = distinct((above + 1) * labels + label[rows])
        node[rows] = edges[-1] + index
        parents.append(keys // labels - 1)
        called.append(keys % labels)
        edges.append(edges[-1] + len(keys))
        first = np.searchsorted(callers, rows, "left")
        lengths = np.searchsorted(callers, rows, "right") - first
        rows = order[np.repeat(first, lengths) + positions_in_runs(lengths)]
    if len(rows):
        # rows below the maximum depth count towards their nearest ancestor in the tree
        above = np.where(parent < 0, len(parent), parent)
        node = np.append(node, -1)[nearest(above, node >= 0)[:-1]]
    reached = np.flatnonzero(node >= 0)
    sums = np.zeros((2, edges[-1]), np.int64)
    for each, values in zip(sums, (own, count), strict=True):
        np.add.at(each, node[reached], values[reached])
    callers_of, labels_of = (np.concatenate([np.zeros(0, np.int64), *each]) for each in (parents, called))
    return _in_depth_first_order(callers_of, labels_of, sums[0], sums[1], edges)


def nearest(parent: Ints, chosen: npt.NDArray[np.bool_]) -> Ints:
    """For each row the row itself if chosen, else its nearest chosen ancestor; ``len(chosen)``: none.

    ``parent`` uses ``len(chosen)`` for none as well. int64, with one more element for that index.
    """
    count = len(chosen)
    jump = np.append(np.where(chosen, np.arange(count), parent), count)
    for _ in range(count.bit_length()):
        further = jump[jump]
        if np.array_equal(further, jump):
            break
        jump = further
    return jump


def _in_depth_first_order(parent: Ints, label: Ints, own: Ints, count: Ints, edges: list[int]) -> CallTree:
    """Computes totals of nodes given level by level, and puts them in depth-first order."""
    levels = [slice(*pair) for pair in pairwise(edges)]
    total, below = own.copy(), count.copy()
    depth = np.repeat(np.arange(len(levels)), np.diff(edges))
    for level in levels[:0:-1]:
        for sums in (total, below):
            np.add.at(sums, parent[level], sums[level])
    size = (below > 0).astype(np.int64)
    for level in levels[:0:-1]:
        np.add.at(size, parent[level], size[level])
    # offset among siblings: after all siblings with a larger total, and after their subtrees
    order = np.lexsort((label, -total, parent))
    ahead = np.cumsum(size[order]) - size[order]
    families = parent[order]
    first = np.searchsorted(families, families, "left")
    before = np.zeros(len(order), np.int64)
    before[order] = ahead - ahead[first] if len(order) else ahead
    index = before
    for level in levels[1:]:
        index[level] += index[parent[level]] + 1
    kept = np.flatnonzero(below > 0)
    kept = kept[np.argsort(index[kept])]
    above = parent[kept]
    return CallTree(
        np.where(above >= 0, index[above], -1), depth[kept], label[kept], own[kept], total[kept], below[kept]
    )


class Icicle(Struct, frozen=True, eq=False, dict=True):
    """A call tree as int64 columns of one length, in depth-first order; siblings from left to right."""

    depth: Ints  #: Number of callers above each path; at most one more than that of the path before it
    total: Ints  #: Time of each path including callees, ns; the sum over its callees does not exceed it

    @cached_property
    def parent(self) -> Ints:
        """Index of each path's caller; -1 for roots."""
        parents = np.full(len(self.depth), -1, np.int64)
        latest: list[int] = []
        for path, depth in enumerate(self.depth.tolist()):
            parents[path] = latest[depth - 1] if depth else -1
            latest[depth:] = [path]
        return parents

    @cached_property
    def start(self) -> Ints:
        """Left edge of each path, ns; a caller's own time is at its right end."""
        starts = np.zeros(len(self.depth), np.int64)
        free: list[int] = [0]
        for path, (depth, total) in enumerate(zip(self.depth.tolist(), self.total.tolist(), strict=True)):
            starts[path] = begin = free[depth]
            free[depth:] = [begin + total, begin]
        return starts

    @property
    def total_of_roots(self) -> int:
        """Total time of all roots, ns."""
        return int(self.total[self.depth == 0].sum())

    def subtree_end(self, path: int) -> int:
        """Index after the last path in the subtree of a path."""
        others = np.flatnonzero(self.depth[path + 1 :] <= self.depth[path])
        return path + 1 + int(others[0]) if len(others) else len(self.depth)

    def callers(self, path: int) -> list[int]:
        """A path and all its callers, root first."""
        found = [path] if path >= 0 else []
        while found and self.parent[found[-1]] >= 0:
            found.append(int(self.parent[found[-1]]))
        return found[::-1]

    def siblings(self, path: int) -> list[int]:
        """All paths with the same caller, from left to right."""
        found: list[int] = np.flatnonzero(self.parent == self.parent[path]).tolist()
        return found

    def rows(self, root: int, width: int) -> list[list[tuple[int, int, int]]]:
        """Layout in a drawing of ``width`` cells, zoomed to one path; -1: all paths.

        Returns:
            For each depth, (first cell, cell after the last, path) of each path that has a cell; callers of ``root``
            span the full width.
        """
        found = [[(0, width, place)] for place in self.callers(root)[:-1]]
        first, end = (root, self.subtree_end(root)) if root >= 0 else (0, len(self.depth))
        begin, length = (int(self.start[root]), int(self.total[root])) if root >= 0 else (0, self.total_of_roots)
        if length <= 0:
            return found
        # integer arithmetic: products of ns and cells stay below 2**63
        left = (self.start[first:end] - begin) * width // length
        right = (self.start[first:end] + self.total[first:end] - begin) * width // length
        wide = np.flatnonzero(right > left)
        for depth in range(int(self.depth[first]) if root >= 0 else 0, int(self.depth[first:end].max()) + 1):
            row = wide[self.depth[first:end][wide] == depth]
            if not len(row):
                break
            found.append(list(zip(left[row].tolist(), right[row].tolist(), (row + first).tolist(), strict=True)))
        return found
