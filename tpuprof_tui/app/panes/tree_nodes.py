"""Builds the nodes of the tree: the capture, its groups and lanes, parts of lanes, and neighbouring captures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.side_by_side import SideBySide
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Problem, Role, Severity, Vocabulary
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.vocabulary import Condition, import_entry


def node_conditions(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Filter conditions of the nodes below lanes."""
    return tuple(f"{each.key}={word}" for each in vocabulary.conditions for word in each.words)


class Node(Struct, frozen=True):
    """A node of the tree.

    Attributes:
        label: Label, escaped.
        depth: Depth in the tree; 0 for the root.
        scope: Scope that it selects; None: it cannot be selected.
        condition: Filter condition in addition to the scope; empty: none.
        path: Path of the capture that it opens; empty: none.
        engine: Kind of its lanes, for colours; empty: several kinds.
        share, busy: Utilisation (0 to 1) and time of work in ns, over the whole capture; -1: none.
        count: Number of events; -1: unknown.
        guessed: Whether the distinction of work and wait is a guess.
        severity: Severity of its worst problem: 0 note, 1 warning, 2 error; -1: none.
        lost: Whether it ran but none of its data is available.
        parent: Index of the parent node; -1 for the root and for headings.
        children: Whether it has child nodes.
        remark: Remark of the source, one word.
        ranks: For a host, the number of ranks on it; 0: not a host.
        base: Time of work in ns of its counterpart in the baseline, 0 if there is none; -1: no comparison.
    """

    label: str
    depth: int
    scope: Scope | None = None
    condition: str = ""
    path: str = ""
    engine: str = ""
    share: float = -1.0
    busy: int = -1
    count: int = -1
    guessed: bool = False
    severity: int = -1
    lost: bool = False
    parent: int = -1
    children: bool = False
    remark: str = ""
    ranks: int = 0
    base: int = -1


def nodes_of(
    session: Session, captures: Sequence[tuple[str, str]] = (), sides: SideBySide | None = None
) -> tuple[Node, ...]:
    """All nodes, parents before children; in a comparison siblings with the largest difference first. O(port events).

    ``captures``: (name, path) of the captures in the folder, including this one.
    """
    profile, headline = session.profile, Query(session).headline
    units = headline.units
    root = Node(
        clean(profile.name) or "Capture", 0, Scope(),
        share=sum(unit.utilisation for unit in units) / len(units) if units else 0.0,
        busy=sum(unit.busy for unit in units), count=headline.instructions, guessed=headline.guessed,
        severity=_worst(profile.problems), children=True,
    )  # fmt: skip
    nodes = [root]
    tree = _Nodes(session, nodes)
    for lane in tree.lanes.get(-1, ()):
        tree.add_lane(lane, 1, 0)
    tree.add_top_groups()
    if sides is not None:
        nodes = _by_difference(_with_base(nodes, sides))
    if len(captures) > 1:
        heading = len(nodes)
        nodes.append(Node("Captures", 0, children=True))
        for name, path in captures:
            mark = "*" if name == profile.name else ""
            nodes.append(Node(clean(name) + mark, 1, path=path, parent=heading))
    return tuple(nodes)


class _Nodes:
    """Appends the nodes of groups and lanes to a list."""

    def __init__(self, session: Session, nodes: list[Node]) -> None:
        profile = session.profile
        self._session = session
        self._nodes = nodes
        self._units = {unit.unit: unit for unit in Query(session).headline.units}
        self.lanes: dict[int, list[int]] = {}
        for number, lane in enumerate(profile.lanes):
            self.lanes.setdefault(lane.group, []).append(number)
        self.children: dict[int, list[int]] = {}
        for index, group in enumerate(profile.groups):
            within = profile.groups.within(index)
            if group.lost or not within.isdisjoint(self.lanes) or not within.isdisjoint(self._units):
                self.children.setdefault(group.parent, []).append(index)

    def add_top_groups(self) -> None:
        """Adds the top-level groups; if they ran on several hosts, not one per host, below a node for each host."""
        groups, tops, hosts = self._session.profile.groups, self.children.get(-1, []), dict[str, list[int]]()
        for top in tops:
            hosts.setdefault(groups[top].host, []).append(top)
        several = len(hosts.keys() - {""}) > 1 and len(hosts) < len(tops)
        for host, on_host in hosts.items() if several else [("", tops)]:
            index = len(self._nodes)
            if host:
                # a rank may be recorded several times
                ranks = len({groups[top].number if groups[top].number >= 0 else ~top for top in on_host})
                label = f"{clean(host)} {ranks} rank{'s' if ranks > 1 else ''}"
                self._nodes.append(Node(label, 1, parent=0, ranks=ranks))
            for top in on_host:
                self.add_group(top, 2 if host else 1, index if host else 0)
            if host:
                self._add_up(index, [node for node in self._nodes[index + 1 :] if node.parent == index])

    def _add_up(self, index: int, own: Sequence[Node]) -> None:
        """Sets the figures of a node to the sums (share: the mean) of its children."""
        self._nodes[index] = replace(
            self._nodes[index], share=sum(node.share for node in own) / len(own),
            busy=sum(node.busy for node in own), count=sum(node.count for node in own),
            guessed=any(node.guessed for node in own), engine=own[0].engine,
            severity=max(node.severity for node in own), children=True,
        )  # fmt: skip

    def add_group(self, group: int, depth: int, parent: int) -> None:
        """Adds a group, its lanes and its subgroups, recursively."""
        nodes, profile, index = self._nodes, self._session.profile, len(self._nodes)
        label = clean(profile.groups[group].label)
        if profile.groups[group].lost:
            nodes.append(Node(f"{label} lost", depth, severity=int(Severity.ERROR), lost=True, parent=parent))
            return
        nodes.append(Node(label, depth, parent=parent, remark=clean(profile.groups[group].remark)))
        for lane in self.lanes.get(group, ()):
            self.add_lane(lane, depth + 1, index)
        for child in self.children.get(group, ()):
            self.add_group(child, depth + 1, index)
        own = [node for node in nodes[index + 1 :] if node.parent == index]
        unit, severity = self._units.get(group), max((node.severity for node in own), default=-1)
        if unit is not None:
            within = profile.groups.within(group)
            severity = _worst([problem for problem in profile.problems if problem.group in within])
        # a group with units is selectable; its figures are those of its units, including work submitted to other lanes
        units = [self._units[each] for each in profile.groups.units_within(group)] if unit is None else [unit]
        if units:
            nodes[index] = replace(
                nodes[index], scope=Scope(group), severity=severity, children=bool(own),
                share=sum(each.utilisation for each in units) / len(units), busy=sum(each.busy for each in units),
                count=sum(figures.count for each in units for figures in each.lanes.values()),
                guessed=any(each.guessed for each in units),
            )  # fmt: skip
            return
        # without units the group is not selectable, only its lanes are
        self._add_up(index, own)

    def add_lane(self, number: int, depth: int, parent: int) -> None:
        """Adds a lane; if it belongs to no unit, also its parts by the conditions of the source."""
        session, nodes, index = self._session, self._nodes, len(self._nodes)
        profile, lane = session.profile, session.profile.lanes[number]
        figures = lane_figures(session.indexes[number], *session.clip_window(profile.start_ns, profile.end_ns, number))
        nodes.append(Node(
            clean(lane.label), depth, Scope(session.unit_of(number), number), engine=lane.kind,
            share=figures.utilisation, busy=figures.busy, count=figures.count, guessed=lane.role_guessed,
            severity=_worst([each for each in profile.problems if each.is_about(lane, profile.groups)]), parent=parent,
        ))  # fmt: skip
        if session.unit_of(number) < 0:
            parts = [(each, word) for each in session.profile.vocabulary.conditions for word in each.words]
            found = (_part_node(session, number, each, word, depth + 1, index) for each, word in parts)
            nodes += [node for node in found if node is not None]
            nodes[index] = replace(nodes[index], children=len(nodes) > index + 1)


def _part_node(session: Session, number: int, condition: Condition, word: str, depth: int, parent: int) -> Node | None:
    """Node of the part of a lane that meets a condition, such as one direction of a port; None if it is empty."""
    profile, lane = session.profile, session.profile.lanes[number]
    chosen = import_entry(condition.mask)(profile, lane, word)
    if not bool(chosen.any()):
        return None
    work = chosen & (lane["role"] == Role.WORK)
    busy = Intervals.union(lane["start"][work], lane["end"][work]).total
    start, end = profile.window_of(lane)
    return Node(
        word.upper(), depth, Scope(session.unit_of(number), number), condition=f"{condition.key}={word}",
        engine=lane.kind,
        share=busy / max(end - start, 1), busy=busy, count=int(np.count_nonzero(chosen)),
        guessed=lane.role_guessed, parent=parent,
    )  # fmt: skip


def _worst(problems: Sequence[Problem]) -> int:
    return max((int(problem.severity) for problem in problems), default=-1)


def _with_base(nodes: Sequence[Node], sides: SideBySide) -> list[Node]:
    """Sets ``base`` of each node from its counterpart, and appends the units that only the baseline has."""
    theirs = nodes_of(sides.base)
    busy_by_scope = {(node.scope, node.condition): node.busy for node in theirs}
    by_label = {node.label: node.busy for node in theirs if node.scope is None or node.scope.group not in sides.units}

    def busy(node: Node) -> int:
        scope = node.scope
        if scope is not None and scope.lane >= 0:
            lane = sides.lanes[scope.lane]
            scope = Scope(sides.base.unit_of(lane), lane) if lane >= 0 else None
        elif scope is not None and scope.group in sides.units:
            scope = Scope(sides.units[scope.group])
        elif node.depth:
            return by_label.get(node.label, 0)
        return max(busy_by_scope.get((scope, node.condition), 0), 0)

    gone = {unit.unit: unit for unit in Query(sides.base).headline.units if unit.unit not in sides.units.values()}
    return [
        *(replace(node, base=busy(node)) if node.busy >= 0 else node for node in nodes),
        *(Node(f"{clean(unit.label)} gone", 1, share=0.0, busy=0, count=0, lost=True, parent=0, base=unit.busy)
          for unit in gone.values()),
    ]  # fmt: skip


def _by_difference(nodes: Sequence[Node]) -> list[Node]:
    children: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(index)
    ordered: list[Node] = []

    def add(index: int, parent: int) -> None:
        new_index = len(ordered)
        ordered.append(replace(nodes[index], parent=parent))
        for child in sorted(children.get(index, ()), key=lambda each: -abs(nodes[each].busy - nodes[each].base)):
            add(child, new_index)

    for index in children.get(-1, ()):
        add(index, -1)
    return ordered
