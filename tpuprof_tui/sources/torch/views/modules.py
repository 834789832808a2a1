"""Modules view: the tree of nn.Modules, with host time and the device time of their operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.analysis.pivot import Frame, GroupBy, key
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.columns import lookup
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, Target

from ..categories import MODULE, Kind
from ..vocabulary import MODULES
from .worker_events import WorkerEvents, not_narrowed, of_workers

#: A module (its group) and the modules that it calls.
Node = tuple[int, list[Any]]
_KEYS: Final = ("name", "module_id")
_FIGURES: Final = ("module_operators", "duration", "module_host_self", "module_device_total", "module_device_self")

_COLUMNS = (
    Column("depth", "Depth", "count"), Column("name", "Module"), Column("id", "Id", "count"),
    Column("occurrences", "Times", "count"), Column("operators", "Operators", "count"),
    Column("host_total_us", "Host total", "duration", bar=True), Column("host_self_us", "Host self", "duration"),
    Column("device_total_us", "Device total", "duration", bar=True),
    Column("device_self_us", "Device self", "duration"),
    Column("peers", "Peers", "count", drop_first=2), Column("of_peers", "Of peers", "number", drop_first=1),
)  # fmt: skip
_PEERS: Final = (
    Column("classes", "Classes"), Column("modules", "Modules", "count"), Column("name", "Longest", is_key=False),
    Column("mean_us", "A time", "duration", bar=True), Column("peers_us", "Its peers", "duration"),
    Column("of_peers", "Of peers", "number"), Column("beyond_us", "Beyond", "duration"),
)  # fmt: skip
_NOTE: Final = ("Peers: modules of the same classes, from the outermost to themselves. Of peers: what one takes over "
                "what its peers take on average, each time; on the device, else the host.")  # fmt: skip


class Peer(Struct, frozen=True):
    """A module beside its peers: those of the same classes from the outermost to themselves; times are ns."""

    path: tuple[str, ...]  #: Names of these classes
    name: str  #: Its name
    peers: int  #: Number of its peers
    #: mean, of_peers: What it takes each time, and what they do on average.
    mean: float
    of_peers: float
    beyond: float  #: Time of all its occurrences beyond that

    @property
    def ratio(self) -> float | None:
        """What it takes over what its peers take."""
        return self.mean / self.of_peers if self.of_peers else None


def modules(query: Query) -> Answer:
    """The modules view."""
    return not_narrowed(query, of_workers(query, _modules, MODULES), "Modules")


def module_facts(query: Query) -> tuple[Fact, ...]:
    """Number of distinct modules; decodes only the arguments of module frames."""
    return of_workers(query, _counted, MODULES).facts


def _module_frames(events: WorkerEvents, *keys: str) -> Frame:
    """Columns of the selected frames of modules: ``name`` is that of the module, ``module_id`` 0 without an id."""
    frame = events.in_worker.frame("thread", "name", "kind", "module_id", *keys)
    modules = frame.take((frame["kind"] == Kind.FRAME) & frame.has("name", lambda name: name.startswith(MODULE)))
    number = modules["module_id"]
    return modules.with_texts("name", lambda name: name[len(MODULE) :]).with_columns(
        module_id=np.where(number == INT_MISSING, 0, number)
    )


def _counted(events: WorkerEvents) -> Answer:
    return Answer((Fact("modules", "Modules", GroupBy(_module_frames(events), _KEYS).count),))


def _modules(events: WorkerEvents) -> Answer:
    rows = _module_rows(events)
    peers = peers_of(rows)
    told = [(peer.peers, peer.ratio) if (peer := peers.get(number)) is not None else (None, None)
            for number in range(len(rows))]  # fmt: skip

    def target(row: int) -> Target:
        return Target(condition=text_condition("name", f"{MODULE}{rows[row][1]}"))

    table = Table.of_rows("modules", "Modules", _COLUMNS, [(*row, *more) for row, more in zip(rows, told, strict=True)],
                          target=target, notes=(_NOTE,) if peers else ())  # fmt: skip
    longest = longest_of_peers(peers)
    beside = Table.of_rows("peers", "Beside their peers", _PEERS, [
        ("/".join(each.path), each.peers + 1, each.name, each.mean, each.of_peers, each.ratio, each.beyond)
        for each in longest
    ], target=lambda row: Target(condition=text_condition("name", f"{MODULE}{longest[row].name}")))  # fmt: skip
    distinct = len({row[1:3] for row in rows})
    return Answer((Fact("modules", "Modules", distinct),), (table, beside), notes=events.replay_notes)


def longest_of_peers(peers: Mapping[int, Peer]) -> list[Peer]:
    """Of each group of at least three peers the module that takes longest, by the time beyond its peers, falling."""
    groups: dict[tuple[str, ...], Peer] = {}
    for peer in peers.values():
        if peer.peers > 1 and peer.mean > 0 and (peer.path not in groups or peer.mean > groups[peer.path].mean):
            groups[peer.path] = peer
    return sorted(groups.values(), key=lambda peer: -peer.beyond)


def peers_of(rows: Sequence[tuple[Any, ...]]) -> dict[int, Peer]:
    """Modules that have peers, by their row in the tree of modules."""
    paths: list[tuple[str, ...]] = []
    outer: list[str] = []
    for depth, name, *_ in rows:
        outer[depth:] = [name.rstrip("0123456789").rstrip("_")]
        paths.append(tuple(outer))
    place = 7 if any(row[7] for row in rows) else 5
    of_paths: dict[tuple[str, ...], dict[tuple[str, int], float]] = {}
    for path, row in zip(paths, rows, strict=True):
        of_paths.setdefault(path, {})[row[1], row[2]] = row[place] / row[3]
    found = {}
    for number, (path, row) in enumerate(zip(paths, rows, strict=True)):
        means = of_paths[path]
        if len(means) > 1:
            own = means[row[1], row[2]]
            others = (sum(means.values()) - own) / (len(means) - 1)
            found[number] = Peer(path, row[1], len(means) - 1, own, others, (own - others) * row[3])
    return found


def _module_rows(events: WorkerEvents) -> list[tuple[Any, ...]]:
    """Rows of the table without peers, as a tree in preorder."""
    # all ids are read at once with those of frames, so these first
    frames = events.whole.frame("thread", "python_id", "python_parent", "kind", "lane", "row")
    frames = frames.take(frames["kind"] == Kind.FRAME)
    modules = _module_frames(events, "lane", "row", *_FIGURES)
    groups = GroupBy(modules, _KEYS)
    names, ids = list(key("name")(groups)), modules["module_id"][groups.first].tolist()
    figures = list(
        zip(groups.sizes.tolist(), *(groups.reduce(modules[name]).tolist() for name in _FIGURES), strict=True)
    )
    rows: list[tuple[Any, ...]] = []
    waiting = [(0, node) for node in reversed(_trees(events, frames, modules, groups, names, ids))]
    while waiting:
        depth, (module, children) = waiting.pop()
        rows.append((depth, names[module], ids[module], *figures[module]))
        waiting += [(depth + 1, child) for child in reversed(children)]
    return rows


def _trees(
    events: WorkerEvents, frames: Frame, modules: Frame, groups: GroupBy, names: list[str], ids: list[int]
) -> list[Node]:  # fmt: skip
    """Nested (module, children): parents by the chain of Python ids; equal roots merged, sorted by name.

    ``frames``: all Python frames; ``modules``: the selected frames of modules, with their groups, and names and ids.
    """
    offsets = events.query.session.offsets
    number, of_modules = (offsets[each["lane"]] + each["row"] for each in (frames, modules))
    # of frames with the same id the last one is used
    distinct_ids, last = np.unique(frames["python_id"][::-1], return_index=True)
    parent = lookup(distinct_ids, frames["python_parent"], len(frames) - 1 - last)
    parent[frames["python_parent"] == INT_MISSING] = -1
    index = lookup(of_modules, number)
    # nearest module up the chain, by pointer doubling; modules point to themselves
    above = np.append(np.where(index >= 0, np.arange(len(frames)), parent), -1)
    for _ in range(len(above).bit_length()):
        above = above[above]
    found = np.flatnonzero(index >= 0)
    found = found[np.argsort(frames["start"][found], kind="stable")]
    nodes: dict[int, Node] = {n: (int(groups.index[index[n]]), []) for n in found.tolist()}
    roots: list[Node] = []
    for n, at in zip(found.tolist(), above[parent[found]].tolist(), strict=True):
        # a cycle of ids leads to no module
        (nodes[at][1] if at in nodes and at != n else roots).append(nodes[n])
    distinct: dict[str, Node] = {}
    for root in roots:
        distinct.setdefault(_text(root), root)
    order = {
        module: place for place, module in enumerate(sorted(range(len(ids)), key=lambda each: (names[each], ids[each])))
    }
    return sorted(distinct.values(), key=lambda node: order[node[0]])


def _text(root: Node) -> str:
    parts, waiting = [], [(0, root)]
    while waiting:
        depth, (module, children) = waiting.pop()
        parts.append(f"{depth} {module}")
        waiting += [(depth + 1, child) for child in reversed(children)]
    return "\n".join(parts)
