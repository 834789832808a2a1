"""Tree pane: groups and lanes with utilisation, busy time and count, and the other captures of the folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType

from tpuprof_tui.analysis.compare.side_by_side import SideBySide
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.analysis.totals.figures import lane_figures
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, label_cut
from tpuprof_tui.formats.units import delta_text, percent_text, time_text
from tpuprof_tui.model import Problem, Role, Severity, Vocabulary
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.vocabulary import Condition, import_entry
from tpuprof_tui.views.differences import cached_side_by_side

from ..drawing.colouring import lane_shades
from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import CaptureRequest, ChangeState, CopyText, Request, ShowMessage
from .lines import Line, LinesView
from .prompt import Hint, PromptRequest, ask


def node_conditions(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Filter conditions of the nodes below lanes."""
    return tuple(f"{each.key}={word}" for each in vocabulary.conditions for word in each.words)


class Node(Struct, frozen=True):
    """A node of the tree."""

    label: str  #: Label, escaped
    depth: int  #: Depth in the tree; 0 for the root
    scope: Scope | None = None  #: Scope that it selects; None: it cannot be selected
    condition: str = ""  #: Filter condition in addition to the scope; empty: none
    path: str = ""  #: Path of the capture that it opens; empty: none
    lane_kind: str = ""  #: Kind of its lanes, for colours; empty: several kinds
    #: share, busy: Utilisation (0 to 1) and time of work in ns, over the whole capture; -1: none.
    share: float = -1.0
    busy: int = -1
    count: int = -1  #: Number of events; -1: unknown
    guessed: bool = False  #: Whether the distinction of work and wait is a guess
    severity: int = -1  #: Severity of its worst problem: 0 note, 1 warning, 2 error; -1: none
    lost: bool = False  #: Whether it ran but none of its data is available
    parent: int = -1  #: Index of the parent node; -1 for the root and for headings
    children: bool = False  #: Whether it has child nodes
    remark: str = ""  #: Remark of the source, one word
    ranks: int = 0  #: For a host, the number of ranks on it; 0: not a host
    base: int = -1  #: Time of work in ns of its counterpart in the baseline, 0 if there is none; -1: no comparison


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
        busy=sum(unit.busy for unit in units), count=headline.event_count, guessed=headline.guessed,
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
            guessed=any(node.guessed for node in own), lane_kind=own[0].lane_kind,
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
            clean(lane.label), depth, Scope(session.unit_of(number), number), lane_kind=lane.kind,
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
        lane_kind=lane.kind,
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


#: Mark of the worst problem of a node, by severity.
MARKS: Final = ("n", "w", "E")
#: Width in cells of share, busy time, count and mark; in a comparison, of both busy times, difference and mark.
_FIGURES: Final = 7 + 9 + 8 + 2
_BOTH: Final = 9 + 9 + 10 + 2
#: Most lanes for which all units are unfolded initially.
_FEW: Final = 40
#: Default label of Enter in the bottom line.
_ONLY: Final = "Only this"
#: Most ranks for which all hosts are unfolded initially.
_FEW_RANKS: Final = 8


class GroupTree(LinesView, inherit_bindings=False):
    """Tree of nodes. Moving the cursor changes the selection of all panes; Enter narrows all panes to the node."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("tree")]

    def __init__(
        self, session: Session, palette: Palette, glyphs: Glyphs, captures: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(palette, "tree")
        self.session = session
        self.glyphs = glyphs
        self.state: DisplayState | None = None
        self.nodes = nodes_of(session, captures, cached_side_by_side(session))
        #: Whether figures of the baseline are shown too.
        self.shows_both = self.nodes[0].base >= 0
        #: Indices of the folded nodes.
        self.folded: set[int] = set()
        if len(session.profile.lanes) > _FEW:
            self.folded = {index for index, node in enumerate(self.nodes) if node.children and not node.ranks
                           and (node.depth == 1 or self.nodes[node.parent].ranks)}  # fmt: skip
        if sum(node.ranks for node in self.nodes) > _FEW_RANKS:
            self.folded |= {index for index, node in enumerate(self.nodes) if node.ranks}
        #: Filter text for labels; empty: all nodes.
        self.filter = ""
        self._visible: list[int] = []
        self._conditions = node_conditions(session.profile.vocabulary)
        #: Current label of Enter in the bottom line.
        self._enter = _ONLY
        self._show_nodes()

    # nodes

    @property
    def _index(self) -> int:
        return self._visible[self.cursor] if self._visible else 0

    @property
    def node(self) -> Node:
        """The node under the cursor."""
        return self.nodes[self._index]

    def _show_nodes(self) -> None:
        keep: set[int] = set()
        for index, node in enumerate(self.nodes):
            if not self.filter and (node.parent < 0 or (node.parent in keep and node.parent not in self.folded)):
                keep.add(index)
            elif self.filter and self._matches_filter(index):
                keep.update(self._path(index))
        self._visible = sorted(keep)

    def _matches_filter(self, index: int) -> bool:
        """Whether the labels of a node and its ancestors contain all words of the filter; a leading ``!`` negates."""
        text = self.filter.removeprefix("!")
        exact = any(letter.isupper() for letter in text)
        labels = self._path_text(index)
        labels = labels if exact else labels.lower()
        found = all(word in labels for word in (text if exact else text.lower()).split())
        return found != self.filter.startswith("!")

    def _path(self, index: int) -> list[int]:
        path = []
        while index >= 0:
            path.append(index)
            index = self.nodes[index].parent
        return path

    def _path_text(self, index: int) -> str:
        labels = [self.nodes[each].label for each in self._path(index)]
        return " ".join(reversed(labels[:-1] or labels))

    def _keep_node(self) -> None:
        """Updates the visible nodes; keeps the cursor on its node or the nearest visible ancestor."""
        index = self._index
        self._show_nodes()
        self.cursor = max(self._line_of(index), 0)
        self.rebuild()
        if self._visible:
            super().go_to(self.cursor)

    def _line_of(self, index: int) -> int:
        return next((self._visible.index(each) for each in (*self._path(index), 0) if each in self._visible), -1)

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a line for each visible node, in columns: name, bar, share, busy time, count, problem mark."""
        if not self._visible:
            text = f"No node is called {clean(self.filter)}: & changes the filter, Esc clears it."
            return [[Segment(fit(f" {text}", width), self.palette.quiet)]], []
        name = max(width - (_BOTH if self.shows_both else _FIGURES + min(max((width - 34) // 2, 2), 20)), 7)
        return [self._line(index, name, width) for index in self._visible], list(range(len(self._visible)))

    def _line(self, index: int, name: int, width: int) -> Line:
        node, glyphs, palette = self.nodes[index], self.glyphs, self.palette
        icon = " "
        if node.children:
            folded = index in self.folded and not self.filter
            icon = (">" if folded else "-") if glyphs.letters else ("▸" if folded else "▾")
        scoped = self.state is not None and self._is_scoped(node)
        indent, label = f"{' ' * max(node.depth - 1, 0)}{icon}", f"{node.label}{'*' if scoped else ''}"
        style = palette.key if scoped else palette.strong if node.depth < 2 else palette.text
        if node.remark:
            text = f"{label} {node.remark}"
            label = text if cell_len(indent + text) < name else f"{label}!"
            style = palette.severity(int(Severity.WARNING))

        def named(cells: int) -> Segment:
            # sibling names often differ only at the end: cut in the middle; a blank before the bar
            visible_label = label_cut(label, cells - 1 - len(indent)) if node.depth else label
            return Segment(fit(indent + visible_label, cells - 1) + " ", style)

        if node.share < 0:
            return [Segment(fit(indent + label, width), style if not node.path else palette.text)]
        shades = lane_shades(self.session.profile.vocabulary, node.lane_kind) if node.lane_kind else None
        guess = "~" if node.guessed and node.busy else ""
        mark = MARKS[node.severity] if node.severity >= 0 else " "
        problem = Segment(f" {mark}", palette.severity(max(node.severity, 0)) + Style(bold=node.severity > 0))
        if node.base >= 0:
            delta = node.busy - node.base
            return [
                named(name),
                Segment(f"{_narrow(time_text(node.base)):>9}", palette.quiet),
                Segment(f"{guess + _narrow(time_text(node.busy)):>9}", palette.text),
                Segment(f"{_narrow(delta_text(delta)):>10}", palette.strong if delta else palette.quiet),
                problem,
            ]  # fmt: skip
        share = Segment(f"{percent_text(node.share, guessed=node.guessed):>7}", palette.text)
        if node.ranks and cell_len(indent + label) >= name:
            # long host names replace the other figures
            return [named(max(width - 9, 7)), share, problem]
        return [
            named(name),
            Segment(bar(node.share, max(width - name - _FIGURES, 0), glyphs),
                    palette.compute if shades is None else palette.shaded(shades)),
            share,
            Segment(f"{guess + _narrow(time_text(node.busy)):>9}", palette.text),
            Segment(f"{_short(node.count):>8}", palette.quiet),
            problem,
        ]  # fmt: skip

    def _is_scoped(self, node: Node) -> bool:
        state = self.state
        if state is None or node.scope is None or node.scope.everything or node.scope != state.scope:
            return False
        others = {each.condition for each in self.nodes if each.scope == node.scope and each.condition}
        return node.condition in state.filter if node.condition else not any(each in state.filter for each in others)

    # state

    def show(self, state: DisplayState) -> None:
        """Shows a state: moves the cursor to the selected node and marks the scope."""
        old, self.state = self.state, state
        if old is not None and (old.scope, old.filter) != (state.scope, state.filter):
            self.rebuild()
        if old is None or old.selection != state.selection:
            self._go_to_selection(state.selection)

    def _go_to_selection(self, selection: SelectedItem) -> None:
        if self._visible and self.node.scope == Scope(selection.group, selection.lane):
            return
        for scope in (Scope(selection.group, selection.lane), Scope(selection.group)):
            index = next((n for n, node in enumerate(self.nodes) if node.scope == scope), None)
            if index is None:
                continue
            line = self._line_of(index)
            if line >= 0:
                self.cursor = line
                super().go_to(line)
            return

    def go_to(self, item: int) -> None:
        """Puts the cursor on a line, and selects its node in all panes."""
        super().go_to(item)
        scope = self.node.scope
        if scope is None:
            return

        def selected(state: DisplayState) -> DisplayState:
            if (state.selection.group, state.selection.lane) == (scope.group, scope.lane):
                return state
            return replace(state, selection=SelectedItem(scope.group, scope.lane))

        self.post_message(ChangeState(selected))

    def cursor_changed(self) -> None:
        """Updates the label of Enter in the bottom line for the node under the cursor."""
        node, state = self.node, self.state
        if node.path:
            enter_label = "Open"
        elif node.scope is None:
            enter_label = ("Unfold" if self._index in self.folded else "Fold") if node.ranks else ""
        elif node.scope.everything:
            words = () if state is None else state.filter.split()
            narrowed = state is not None and (
                not state.scope.everything or any(each in words for each in self._conditions)
            )
            enter_label = "Show all" if narrowed else ""
        else:
            alone = state is not None and state.scope == node.scope and node.condition in state.filter
            enter_label = "Show all" if alone else _ONLY
        if enter_label != self._enter:
            self._enter = enter_label
            self.post_message(Request("label-key", _ONLY, enter_label))

    def rebuild(self, *, keep_scroll: bool = True) -> None:
        """Rebuilds the lines and the label of Enter after a change of scope or folding."""
        super().rebuild(keep_scroll=keep_scroll)
        self.cursor_changed()

    # node filter

    def ask_filter(self) -> None:
        """Prompts for the node filter, applied while it is typed."""
        before = self.filter

        def typed(text: str) -> Hint | None:
            self.set_filter(text)
            found = sum(self._matches_filter(index) for index in self._visible) if text.strip() else len(self.nodes)
            return Hint(f"{found:,} of {len(self.nodes):,} nodes", fault=not found)

        def accepted(text: str) -> Hint | None:
            self.set_filter(text)
            return None

        ask(self, PromptRequest("Tree", before, typed, accepted, lambda: self.set_filter(before)))

    def set_filter(self, text: str) -> None:
        """Sets the node filter; empty: all nodes."""
        self.filter = text.strip()
        if self.filter == "!":
            self.filter = ""
        self._keep_node()
        self.post_message(Request("titles"))

    # keys

    def action_fold(self) -> None:
        """Folds the node; if it is folded or a leaf, goes to its parent."""
        index = self._index
        node = self.nodes[index]
        if node.children and index not in self.folded and node.depth:
            self.folded.add(index)
            self._keep_node()
        elif node.parent in self._visible:
            self.go_to(self._visible.index(node.parent))

    def action_unfold(self) -> None:
        """Unfolds the node."""
        if self._visible:
            self.folded.discard(self._visible[self.cursor])
            self._keep_node()

    def action_fold_unfold(self) -> None:
        """Folds or unfolds the node; for a leaf, its parent."""
        index = self._index
        if not self.nodes[index].children:
            index = self.nodes[index].parent
        if index < 0 or not self.nodes[index].depth:
            self.post_message(ShowMessage("Nothing to fold here: E unfolds every node, C folds them."))
            return
        self.folded ^= {index}
        self._keep_node()

    def action_unfold_all(self) -> None:
        """Unfolds all nodes."""
        self.folded.clear()
        self._keep_node()

    def action_fold_all(self) -> None:
        """Folds all nodes but the root."""
        self.folded = {index for index, node in enumerate(self.nodes) if node.children and node.depth}
        self._keep_node()

    def action_copy(self) -> None:
        """Copies the line under the cursor."""
        node = self.node
        guess = "~" if node.guessed and node.busy else ""
        figures: tuple[str, ...] = (percent_text(node.share, guessed=node.guessed), f"{guess}{time_text(node.busy)}",
                   self.session.profile.vocabulary.event.of(node.count))  # fmt: skip
        if node.base >= 0:
            figures = (*figures, f"base {time_text(node.base)}", _narrow(delta_text(node.busy - node.base)))
        name = clean(self._path_text(self._index))
        self.post_message(CopyText("  ".join((name, *(figures if node.share >= 0 else ()))), "line"))

    def action_scope(self) -> None:
        """Toggles narrowing to the node; on a capture, opens it; on a host, folds or unfolds it."""
        node = self.node
        if node.path:
            self.post_message(CaptureRequest("open_capture", node.path))
        elif node.scope is not None:
            self.post_message(Request("narrow-to-node", node.scope, node.condition))
        elif node.ranks:
            self.action_fold_unfold()
        else:
            several = f"{node.label} holds several lanes: choose one of them."
            text = f"{node.label}: it has no data to show." if node.lost else several
            self.post_message(ShowMessage(text))


def _narrow(time: str) -> str:
    return time.replace(" ", "")


def _short(count: int) -> str:
    """Text of a count, at most seven characters."""
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1_000_000:,.2f}M" if count < 100_000_000 else f"{count / 1_000_000:,.0f}M"
