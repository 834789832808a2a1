"""The nodes of the tree: the capture, its groups and lanes, parts of lanes, and the captures beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.side_by_side import SideBySide
from tpuprof_tui.analysis.index.intervals import Intervals
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Problem, Role, Severity, Vocabulary
from tpuprof_tui.model.vocabulary import Condition, imported


def node_conditions(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The filters that nodes below lanes stand for."""
    return tuple(f"{each.key}={word}" for each in vocabulary.conditions for word in each.words)


class Node(Struct, frozen=True):
    """A line of the tree.

    Attributes:
        label: What it is called, clean.
        depth: 0 for the capture.
        scope: What it stands for; None: nothing that can be looked at.
        condition: Filter that narrows the scope to it; empty: none is needed.
        path: The capture it opens; empty: none.
        engine: Kind of its lanes, for colours; empty: several.
        share, busy: Utilisation, 0 to 1, and ns of work over the whole capture; -1 where there is none to tell.
        count: Events; -1: not known.
        guessed: Work and wait are told apart by guesswork.
        severity: Of the worst problem about it, 0 note, 1 warning, 2 error; -1: none.
        lost: Whether it ran and nothing of it is there.
        parent: Place of the node it belongs to; -1 for the capture and for headings.
        children: Whether there are nodes below it.
        remark: What its source says of it, in a word.
        ranks: Of a host: how many top groups ran on it; 0: it is none.
        base: ns of work of the same in the base, 0 where that has none; -1: nothing is compared.
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
    session: Session, others: Sequence[tuple[str, str]] = (), both: SideBySide | None = None
) -> tuple[Node, ...]:
    """All nodes, parents before their children; beside a base what differs the most is first. O(events of the ports).

    ``others``: name and path of the captures beside this one, itself included.
    """
    profile, headline = session.profile, session.headline
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
    if both is not None:
        nodes = _by_difference(_beside_base(nodes, both))
    if len(others) > 1:
        heading = len(nodes)
        nodes.append(Node("Captures", 0, children=True))
        for name, path in others:
            here = "*" if name == profile.name else ""
            nodes.append(Node(clean(name) + here, 1, path=path, parent=heading))
    return tuple(nodes)


class _Nodes:
    """Adds groups and lanes to nodes."""

    def __init__(self, session: Session, nodes: list[Node]) -> None:
        profile = session.profile
        self._session = session
        self._nodes = nodes
        self._units = {unit.unit: unit for unit in session.headline.units}
        self.lanes: dict[int, list[int]] = {}
        for number, lane in enumerate(profile.lanes):
            self.lanes.setdefault(lane.group, []).append(number)
        self.children: dict[int, list[int]] = {}
        for place, group in enumerate(profile.groups):
            within = profile.groups.within(place)
            if group.lost or not within.isdisjoint(self.lanes) or not within.isdisjoint(self._units):
                self.children.setdefault(group.parent, []).append(place)

    def add_top_groups(self) -> None:
        """The top groups; those of several hosts below a node for each host, unless each has but one."""
        groups, tops, hosts = self._session.profile.groups, self.children.get(-1, []), dict[str, list[int]]()
        for top in tops:
            hosts.setdefault(groups[top].host, []).append(top)
        several = len(hosts.keys() - {""}) > 1 and len(hosts) < len(tops)
        for host, mine in hosts.items() if several else [("", tops)]:
            place = len(self._nodes)
            if host:
                # a rank may have been recorded several times
                ranks = len({groups[top].number if groups[top].number >= 0 else ~top for top in mine})
                label = f"{clean(host)} {ranks} rank{'s' if ranks > 1 else ''}"
                self._nodes.append(Node(label, 1, parent=0, ranks=ranks))
            for top in mine:
                self.add_group(top, 2 if host else 1, place if host else 0)
            if host:
                self._add_up(place, [node for node in self._nodes[place + 1 :] if node.parent == place])

    def _add_up(self, place: int, own: Sequence[Node]) -> None:
        """Gives a node the figures of those below it."""
        self._nodes[place] = replace(
            self._nodes[place], share=sum(node.share for node in own) / len(own),
            busy=sum(node.busy for node in own), count=sum(node.count for node in own),
            guessed=any(node.guessed for node in own), engine=own[0].engine,
            severity=max(node.severity for node in own), children=True,
        )  # fmt: skip

    def add_group(self, group: int, depth: int, parent: int) -> None:
        """A group, its lanes, and the groups below it."""
        nodes, profile, place = self._nodes, self._session.profile, len(self._nodes)
        label = clean(profile.groups[group].label)
        if profile.groups[group].lost:
            nodes.append(Node(f"{label} lost", depth, severity=int(Severity.ERROR), lost=True, parent=parent))
            return
        nodes.append(Node(label, depth, parent=parent, remark=clean(profile.groups[group].remark)))
        for lane in self.lanes.get(group, ()):
            self.add_lane(lane, depth + 1, place)
        for below in self.children.get(group, ()):
            self.add_group(below, depth + 1, place)
        own = [node for node in nodes[place + 1 :] if node.parent == place]
        unit, severity = self._units.get(group), max((node.severity for node in own), default=-1)
        if unit is not None:
            within = profile.groups.within(group)
            severity = _worst([problem for problem in profile.problems if problem.group in within])
        # what holds units can be looked at; it has done what they have: what was submitted counts with them
        units = [self._units[each] for each in profile.groups.units_within(group)] if unit is None else [unit]
        if units:
            nodes[place] = replace(
                nodes[place], scope=Scope(group), severity=severity, children=bool(own),
                share=sum(each.utilisation for each in units) / len(units), busy=sum(each.busy for each in units),
                count=sum(figures.count for each in units for figures in each.lanes.values()),
                guessed=any(each.guessed for each in units),
            )  # fmt: skip
            return
        # other lanes are looked at one by one
        self._add_up(place, own)

    def add_lane(self, number: int, depth: int, parent: int) -> None:
        """A lane; of no unit also the parts that conditions of the source make."""
        session, nodes, place = self._session, self._nodes, len(self._nodes)
        profile, lane = session.profile, session.profile.lanes[number]
        figures = lane_figures(session.indexes[number], *session.clip_window(profile.start_ns, profile.end_ns, number))
        nodes.append(Node(
            clean(lane.label), depth, Scope(session.unit_of(number), number), engine=lane.kind,
            share=figures.utilisation, busy=figures.busy, count=figures.count, guessed=lane.role_guessed,
            severity=_worst([each for each in profile.problems if each.is_about(lane, profile.groups)]), parent=parent,
        ))  # fmt: skip
        if session.unit_of(number) < 0:
            parts = [(each, word) for each in session.profile.vocabulary.conditions for word in each.words]
            found = (_part_node(session, number, each, word, depth + 1, place) for each, word in parts)
            nodes += [node for node in found if node is not None]
            nodes[place] = replace(nodes[place], children=len(nodes) > place + 1)


def _part_node(session: Session, number: int, condition: Condition, word: str, depth: int, parent: int) -> Node | None:
    """What of a lane a condition leaves, such as one direction of a port; None where that is nothing."""
    profile, lane = session.profile, session.profile.lanes[number]
    chosen = imported(condition.mask)(profile, lane, word)
    if not bool(chosen.any()):
        return None
    work = chosen & (lane["role"] == Role.WORK)
    busy = Intervals.union(lane["start"][work], lane["end"][work]).total
    start, end = session.device_window
    return Node(
        word.upper(), depth, Scope(session.unit_of(number), number), condition=f"{condition.key}={word}",
        engine=lane.kind,
        share=busy / max(end - start, 1), busy=busy, count=int(np.count_nonzero(chosen)),
        guessed=lane.role_guessed, parent=parent,
    )  # fmt: skip


def _worst(problems: Sequence[Problem]) -> int:
    return max((int(problem.severity) for problem in problems), default=-1)


def _beside_base(nodes: Sequence[Node], both: SideBySide) -> list[Node]:
    """Nodes with what the same did in the base, behind them the units that only the base has."""
    theirs = nodes_of(both.base)
    by_place = {(node.scope, node.condition): node.busy for node in theirs}
    by_label = {node.label: node.busy for node in theirs if node.scope is None or node.scope.group not in both.units}

    def busy(node: Node) -> int:
        scope = node.scope
        if scope is not None and scope.lane >= 0:
            lane = both.lanes[scope.lane]
            scope = Scope(both.base.unit_of(lane), lane) if lane >= 0 else None
        elif scope is not None and scope.group in both.units:
            scope = Scope(both.units[scope.group])
        elif node.depth:
            return by_label.get(node.label, 0)
        return max(by_place.get((scope, node.condition), 0), 0)

    gone = {unit.unit: unit for unit in both.base.headline.units if unit.unit not in both.units.values()}
    return [
        *(replace(node, base=busy(node)) if node.busy >= 0 else node for node in nodes),
        *(Node(f"{clean(unit.label)} gone", 1, share=0.0, busy=0, count=0, lost=True, parent=0, base=unit.busy)
          for unit in gone.values()),
    ]  # fmt: skip


def _by_difference(nodes: Sequence[Node]) -> list[Node]:
    """The same tree, of what lies below one node that first which differs the most from the base."""
    below: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        below.setdefault(node.parent, []).append(place)
    found: list[Node] = []

    def add(place: int, parent: int) -> None:
        at = len(found)
        found.append(replace(nodes[place], parent=parent))
        for child in sorted(below.get(place, ()), key=lambda each: -abs(nodes[each].busy - nodes[each].base)):
            add(child, at)

    for place in below.get(-1, ()):
        add(place, -1)
    return found
