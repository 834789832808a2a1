"""The nodes of the tree: the capture, its cores and engines, CDMA ports and their directions, the host, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tpuprof_tui.analysis.index.intervals import Intervals
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.text import clean
from tpuprof_tui.model import Lane, Problem, Role, Severity, Vocabulary
from tpuprof_tui.model.vocabulary import Condition, imported


def node_conditions(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The filters that nodes below lanes stand for."""
    return tuple(f"{each.key}={word}" for each in vocabulary.conditions for word in each.words)


@dataclass(frozen=True)
class Node:
    """A line of the tree.

    Attributes:
        label: What it is called, clean.
        depth: 0 for the capture.
        scope: What it stands for; None: nothing that can be looked at.
        condition: Filter that narrows the scope to it; empty: none is needed.
        path: The capture it opens; empty: none.
        engine: Engine of its lanes, for colours; empty: several.
        share, busy: Utilisation, 0 to 1, and ns of work over the whole capture; -1 where there is none to tell.
        count: Instructions; -1: not known.
        guessed: Work and wait are told apart by guesswork.
        severity: Of the worst problem about it, 0 note, 1 warning, 2 error; -1: none.
        lost: Whether it ran and nothing of it is there.
        parent: Place of the node it belongs to; -1 for the capture and for headings.
        children: Whether there are nodes below it.
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


def nodes_of(session: Session, others: Sequence[tuple[str, str]] = ()) -> tuple[Node, ...]:
    """All nodes, parents before their children. O(instructions of the ports).

    Args:
        session: The capture.
        others: Name and path of the captures beside it, itself included.
    """
    nodes: list[Node] = []
    _add_cores(session, nodes)
    _add_groups(session, nodes)
    if len(others) > 1:
        heading = len(nodes)
        nodes.append(Node("Captures", 0, children=True))
        for name, path in others:
            here = "*" if name == session.profile.name else ""
            nodes.append(Node(clean(name) + here, 1, path=path, parent=heading))
    return tuple(nodes)


def _add_cores(session: Session, nodes: list[Node]) -> None:
    profile, headline = session.profile, session.headline
    cores, problems = headline.cores, profile.problems
    mean = sum(core.utilisation for core in cores) / len(cores) if cores else 0.0
    nodes.append(
        Node(
            clean(profile.name) or "Capture",
            0,
            Scope(),
            share=mean,
            busy=sum(core.busy for core in cores),
            count=headline.instructions,
            guessed=headline.guessed,
            severity=_worst(problems),
            children=True,
        )
    )
    by_number = {core.core: core for core in cores}
    for number in sorted((*by_number, *profile.lost_cores)):
        core = by_number.get(number)
        if core is None:
            nodes.append(_lost_node(f"Core {number}", 1, 0))
            continue
        lanes = [number for number, lane in enumerate(profile.lanes) if lane.core == core.core]
        place = len(nodes)
        nodes.append(
            Node(
                f"Core {core.core}",
                1,
                Scope(core.core),
                share=core.utilisation,
                busy=core.busy,
                count=sum(figures.count for figures in core.lanes.values()),
                guessed=core.guessed,
                severity=_worst([problem for problem in problems if problem.core == core.core]),
                parent=0,
                children=bool(lanes),
            )
        )
        nodes += [_lane_node(session, number, 2, place) for number in lanes]


def _lost_node(label: str, depth: int, parent: int) -> Node:
    return Node(f"{label} lost", depth, severity=int(Severity.ERROR), lost=True, parent=parent)


def _add_groups(session: Session, nodes: list[Node]) -> None:
    """Lanes of no core, by group, with the parts that conditions of the source make; then the ports that are lost."""
    parts = [(each, word) for each in session.profile.vocabulary.conditions for word in each.words]
    lanes = session.profile.lanes
    for group in dict.fromkeys(lane.group for lane in lanes if lane.core < 0):
        heading = len(nodes)
        numbers = [number for number, lane in enumerate(lanes) if lane.core < 0 and lane.group == group]
        nodes.append(Node(clean(group), 1, parent=0, children=True))
        for number in numbers:
            place = len(nodes)
            nodes.append(_lane_node(session, number, 2, heading))
            found = [_part_node(session, number, each, word, place) for each, word in parts]
            ways = [node for node in found if node is not None]
            nodes += ways
            nodes[place] = replace(nodes[place], children=bool(ways))
        own = [node for node in nodes[heading + 1 :] if node.depth == 2]
        nodes[heading] = replace(
            nodes[heading], share=sum(node.share for node in own) / len(own), busy=sum(node.busy for node in own),
            count=sum(node.count for node in own), guessed=any(node.guessed for node in own), engine=own[0].engine,
            severity=max(node.severity for node in own),
        )  # fmt: skip
    word = session.profile.vocabulary.word_of("ports")
    nodes += [_lost_node(f"{word.one} {port}", 1, 0) for port in session.profile.lost_ports]


def _lane_node(session: Session, number: int, depth: int, parent: int) -> Node:
    profile, lane = session.profile, session.profile.lanes[number]
    figures = lane_figures(session.indexes[number], *session.counted(profile.start_ns, profile.end_ns, number))
    about = [problem for problem in profile.problems if _is_about(problem, lane)]
    return Node(
        clean(lane.label), depth, Scope(lane.core, number), engine=lane.engine, share=figures.utilisation,
        busy=figures.busy, count=figures.count, guessed=lane.role_guessed, severity=_worst(about), parent=parent,
    )  # fmt: skip


def _part_node(session: Session, number: int, condition: Condition, word: str, parent: int) -> Node | None:
    """What of a lane a condition leaves, such as one direction of a port; None where that is nothing."""
    profile, lane = session.profile, session.profile.lanes[number]
    chosen = imported(condition.mask)(profile, lane, word)
    if not bool(chosen.any()):
        return None
    work = chosen & (lane["role"] == Role.WORK)
    busy = Intervals.union(lane["start"][work], lane["end"][work]).total
    start, end = session.device_window
    return Node(
        word.upper(), 3, Scope(lane.core, number), condition=f"{condition.key}={word}", engine=lane.engine,
        share=busy / max(end - start, 1), busy=busy, count=int(np.count_nonzero(chosen)),
        guessed=lane.role_guessed, parent=parent,
    )  # fmt: skip


def _is_about(problem: Problem, lane: Lane) -> bool:
    return bool(problem.lane) and problem.lane == lane.label and problem.core in (-1, lane.core)


def _worst(problems: Sequence[Problem]) -> int:
    return max((int(problem.severity) for problem in problems), default=-1)
