"""Tree pane: groups and lanes with utilisation, busy time and count, and the other captures of the folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, label_cut
from tpuprof_tui.formats.units import delta_text, percent_text, time_text
from tpuprof_tui.model import Severity
from tpuprof_tui.views.differences import cached_side_by_side

from ..drawing.colouring import lane_shades
from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import CaptureRequest, ChangeState, CopyText, Request, ShowMessage
from .lines import Line, LinesView
from .prompt import Hint, Prompt, PromptRequest
from .tree_nodes import Node, node_conditions, nodes_of

#: Mark of the worst problem of a node, by severity.
MARKS: Final = ("n", "w", "E")
#: Width in cells of share, busy time, count and mark; in a comparison, of both busy times, difference and mark.
_FIGURES: Final = 7 + 9 + 8 + 2
_BOTH: Final = 9 + 9 + 10 + 2
#: Most lanes for which all cores are unfolded initially.
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
        shades = lane_shades(self.session.profile.vocabulary, node.engine) if node.engine else None
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

    def _go_to_selection(self, selection: Selection) -> None:
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
            return replace(state, selection=Selection(scope.group, scope.lane))

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

        self.post_message(Prompt.Ask(PromptRequest("Tree", before, typed, accepted, lambda: self.set_filter(before))))

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
