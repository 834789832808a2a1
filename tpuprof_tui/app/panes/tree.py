"""The tree of groups and lanes with utilisation, busy time and count of each; and the captures beside this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.message import Message

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import delta_text, percent_text, time_text
from tpuprof_tui.model import Severity
from tpuprof_tui.views.differences import known_side_by_side

from ..drawing.colouring import lane_shades
from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import Change, CopyText, Say
from .lines import Line, LinesView
from .prompt import Note, Prompt, Question
from .tree_nodes import Node, nodes_of

#: Letters of the worst problem about a node, by severity.
MARKS: Final = ("n", "w", "E")
#: Cells of share, busy time, count and mark; of busy time of both sides, difference and mark.
_FIGURES: Final = 7 + 9 + 8 + 2
_BOTH: Final = 9 + 9 + 10 + 2
#: Up to this many lanes all cores begin unfolded.
_FEW: Final = 40


class GroupTree(LinesView, inherit_bindings=False):
    """The cursor is the selection of all panes; Enter narrows them to a node."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("tree")]

    class Narrow(Message):
        """All panes are to show a scope alone, and there only what passes a condition; again: everything."""

        def __init__(self, scope: Scope, condition: str) -> None:
            super().__init__()
            self.scope = scope
            self.condition = condition

    class Retitled(Message):
        """The filter box holds something else."""

    class OpenCapture(Message):
        """Another capture is to be opened."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(
        self, session: Session, palette: Palette, glyphs: Glyphs, others: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(palette, "tree")
        self.session = session
        self.glyphs = glyphs
        self.state: DisplayState | None = None
        self.nodes = nodes_of(session, others, known_side_by_side(session))
        #: Places of the nodes whose children are hidden.
        self.folded: set[int] = set()
        if len(session.profile.lanes) > _FEW:
            self.folded = {place for place, node in enumerate(self.nodes) if node.depth == 1 and node.children}
        #: Text that the labels of the nodes shown have; empty: all nodes.
        self.filter = ""
        self._shown: list[int] = []
        self._show_nodes()

    # nodes

    @property
    def node(self) -> Node:
        """The node under the cursor."""
        return self.nodes[self._shown[self.cursor]] if self._shown else self.nodes[0]

    def _show_nodes(self) -> None:
        """Which nodes show: those not folded away; with a filter those that have its text, and what they belong to."""
        if self.filter:
            keep: set[int] = set()
            for place in range(len(self.nodes)):
                if self._passes(place):
                    while place >= 0:
                        keep.add(place)
                        place = self.nodes[place].parent
            self._shown = sorted(keep)
            return
        self._shown = []
        hidden: set[int] = set()
        for place, node in enumerate(self.nodes):
            if node.parent in hidden or node.parent in self.folded:
                hidden.add(place)
            else:
                self._shown.append(place)

    def _passes(self, place: int) -> bool:
        """Whether a node or what it belongs to has the words of the filter; ``!`` before it: has not."""
        text = self.filter.removeprefix("!")
        exact = any(letter.isupper() for letter in text)
        labels = self._path(place)
        labels = labels if exact else labels.lower()
        found = all(word in labels for word in (text if exact else text.lower()).split())
        return found != self.filter.startswith("!")

    def _path(self, place: int) -> str:
        labels = []
        while place >= 0:
            labels.append(self.nodes[place].label)
            place = self.nodes[place].parent
        return " ".join(reversed(labels[:-1] or labels))

    def _keep_node(self) -> None:
        """Shows other nodes, the cursor on the same one or on what it belongs to."""
        place = self._shown[self.cursor] if self._shown else 0
        self._show_nodes()
        while place not in self._shown and place > 0:
            place = max(self.nodes[place].parent, 0)
        self.cursor = self._shown.index(place) if place in self._shown else 0
        self._rebuild_if_seen()
        if self._shown:
            super().go_to(self.cursor)

    def _rebuild_if_seen(self) -> None:
        """Builds the lines anew; without room for them, as soon as there is some."""
        if self.size.width:
            self.rebuild()
        else:
            # keys find no lines of nodes that do not show any more
            self.items, self._built_for = [], -1

    # lines

    @property
    def shows_both(self) -> bool:
        """Whether the base is told beside the capture."""
        return self.nodes[0].base >= 0

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """A line for each node: name, bar, share, busy time, count and problem mark in columns, whatever the depth."""
        if not self._shown:
            text = f"No node is called {clean(self.filter)}: & changes the filter, Esc clears it."
            return [[Segment(fit(f" {text}", width), self.palette.quiet)]], []
        name = max(width - (_BOTH if self.shows_both else _FIGURES + min(max((width - 34) // 2, 3), 20)), 7)
        return [self._line(place, name, width) for place in self._shown], list(range(len(self._shown)))

    def _line(self, place: int, name: int, width: int) -> Line:
        node, glyphs, palette = self.nodes[place], self.glyphs, self.palette
        icon = " "
        if node.children:
            folded = place in self.folded and not self.filter
            icon = (">" if folded else "-") if glyphs.letters else ("▸" if folded else "▾")
        scoped = self.state is not None and self._is_scoped(node)
        label = f"{' ' * max(node.depth - 1, 0)}{icon}{node.label}{'*' if scoped else ''}"
        style = palette.key if scoped else palette.strong if node.depth < 2 else palette.text
        if node.remark:
            told = f"{label} {node.remark}"
            label, style = told if cell_len(told) <= name else f"{label}!", palette.severity(int(Severity.WARNING))
        if node.share < 0:
            return [Segment(fit(label, width), style if not node.path else palette.text)]
        own = (
            palette.shaded(lane_shades(self.session.profile.vocabulary, node.engine))
            if node.engine
            else palette.compute
        )
        guess = "~" if node.guessed and node.busy else ""
        mark = MARKS[node.severity] if node.severity >= 0 else " "
        problem = Segment(f" {mark}", palette.severity(max(node.severity, 0)) + Style(bold=node.severity > 0))
        if node.base >= 0:
            delta = node.busy - node.base
            return [
                Segment(fit(label, name), style),
                Segment(f"{_narrow(time_text(node.base)):>9}", palette.quiet),
                Segment(f"{guess + _narrow(time_text(node.busy)):>9}", palette.text),
                Segment(f"{_narrow(delta_text(delta)):>10}", palette.strong if delta else palette.quiet),
                problem,
            ]  # fmt: skip
        return [
            Segment(fit(label, name), style),
            Segment(bar(node.share, max(width - name - _FIGURES, 0), glyphs), own),
            Segment(f"{percent_text(node.share, guessed=node.guessed):>7}", palette.text),
            Segment(f"{guess + _narrow(time_text(node.busy)):>9}", palette.text),
            Segment(f"{_short(node.count):>8}", palette.quiet),
            problem,
        ]

    def _is_scoped(self, node: Node) -> bool:
        state = self.state
        if state is None or node.scope is None or node.scope.everything or node.scope != state.scope:
            return False
        others = {each.condition for each in self.nodes if each.scope == node.scope and each.condition}
        return node.condition in state.filter if node.condition else not any(each in state.filter for each in others)

    # state

    def show(self, state: DisplayState) -> None:
        """Moves the cursor to the selected node and marks the scope."""
        old, self.state = self.state, state
        if old is not None and (old.scope, old.filter) != (state.scope, state.filter):
            self._rebuild_if_seen()
        if old is None or old.selection != state.selection:
            self._follow(state.selection)

    def _follow(self, selection: Selection) -> None:
        if self._shown and self.node.scope == Scope(selection.group, selection.lane):
            return
        for scope in (Scope(selection.group, selection.lane), Scope(selection.group)):
            wanted = next((n for n, node in enumerate(self.nodes) if node.scope == scope), None)
            if wanted is None:
                continue
            while wanted > 0 and wanted not in self._shown:
                wanted = max(self.nodes[wanted].parent, 0)
            if wanted in self._shown:
                self._put(self._shown.index(wanted))
            return

    def _put(self, item: int) -> None:
        """Puts the cursor on a line without selecting."""
        self.cursor = item
        if self.items:
            super().go_to(item)

    def go_to(self, item: int) -> None:
        """Puts the cursor on a line: its node becomes the selection of all panes."""
        super().go_to(item)
        scope = self.node.scope
        if scope is None:
            return

        def selected(state: DisplayState) -> DisplayState:
            if (state.selection.group, state.selection.lane) == (scope.group, scope.lane):
                return state
            return replace(state, selection=Selection(scope.group, scope.lane))

        self.post_message(Change(selected))

    def on_click(self, event: events.Click) -> None:
        """A click selects; narrowing is a key."""
        if self.items:
            super().on_click(event)

    # the filter box

    def ask_filter(self) -> None:
        """Asks for the text that the nodes shown have."""
        before = self.filter

        def typed(text: str) -> Note | None:
            self.set_filter(text)
            found = sum(self._passes(place) for place in self._shown) if text.strip() else len(self.nodes)
            return Note(f"{found:,} of {len(self.nodes):,} nodes", fault=not found)

        def accepted(text: str) -> Note | None:
            self.set_filter(text)
            return None

        def left() -> None:
            self.set_filter(before)

        self.post_message(Prompt.Ask(Question("Tree", before, typed, accepted, left)))

    def set_filter(self, text: str) -> None:
        """Shows only nodes with a text."""
        self.filter = text.strip()
        if self.filter == "!":
            self.filter = ""
        self._keep_node()
        self.post_message(self.Retitled())

    # keys

    def action_fold(self) -> None:
        """Fold, or go to the parent."""
        place = self._shown[self.cursor] if self._shown else 0
        node = self.nodes[place]
        if node.children and place not in self.folded and node.depth:
            self.folded.add(place)
            self._keep_node()
        elif node.parent in self._shown:
            self.go_to(self._shown.index(node.parent))

    def action_unfold(self) -> None:
        """Unfold."""
        if self._shown:
            self.folded.discard(self._shown[self.cursor])
            self._keep_node()

    def action_fold_unfold(self) -> None:
        """Fold the node or unfold it; one without anything below folds what it belongs to."""
        place = self._shown[self.cursor] if self._shown else 0
        if not self.nodes[place].children:
            place = self.nodes[place].parent
        if place < 0 or not self.nodes[place].depth:
            self.post_message(Say("Nothing to fold here: E unfolds every node, C folds them."))
            return
        self.folded ^= {place}
        self._keep_node()

    def action_unfold_all(self) -> None:
        """Unfold every node."""
        self.folded.clear()
        self._keep_node()

    def action_fold_all(self) -> None:
        """Fold every node but the capture itself."""
        self.folded = {place for place, node in enumerate(self.nodes) if node.children and node.depth}
        self._keep_node()

    def action_copy(self) -> None:
        """Copies the line under the cursor."""
        node = self.node
        guess = "~" if node.guessed and node.busy else ""
        figures: tuple[str, ...] = (percent_text(node.share, guessed=node.guessed), f"{guess}{time_text(node.busy)}",
                   self.session.profile.vocabulary.event.of(node.count))  # fmt: skip
        if node.base >= 0:
            figures = (*figures, f"base {time_text(node.base)}", _narrow(delta_text(node.busy - node.base)))
        name = clean(self._path(self._shown[self.cursor] if self._shown else 0))
        self.post_message(CopyText("  ".join((name, *(figures if node.share >= 0 else ()))), "line"))

    def action_scope(self) -> None:
        """Narrow to the node, or widen again; opens a capture."""
        node = self.node
        if node.path:
            self.post_message(self.OpenCapture(node.path))
        elif node.scope is not None:
            self.post_message(self.Narrow(node.scope, node.condition))
        else:
            several = f"{node.label} holds several lanes: choose one of them."
            self.post_message(Say(f"{node.label}: nothing of it is there to look at." if node.lost else several))


def _narrow(time: str) -> str:
    """The text of a time without the blank before its unit."""
    return time.replace(" ", "")


def _short(count: int) -> str:
    """A count in at most seven characters."""
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1_000_000:,.2f}M" if count < 100_000_000 else f"{count / 1_000_000:,.0f}M"
