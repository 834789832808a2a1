"""The tree of cores, engines and ports, each with its utilisation and count."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from ...analysis.figures import lane_figures
from ..actions import bindings
from ..format import clean, fit, percent_text
from ..glyphs import Glyphs, bar
from ..messages import Change
from ..session import Session
from ..state import Scope, Selection, ViewState
from ..theme import Palette

NAME = 10
BAR = 6


class CoreTree(Tree[Scope], inherit_bindings=False):
    """Capture, cores, engines; CDMA, ports. The cursor is the selection; Enter narrows all panes to a node."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("tree")]
    DEFAULT_CSS = "CoreTree { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; overflow-x: hidden; }"

    def __init__(self, session: Session, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__("All cores", Scope(), id="tree")
        self.session = session
        self.palette = palette
        self.glyphs = glyphs
        self.view: ViewState | None = None
        self.auto_expand = False
        self.guide_depth = 2
        self.ICON_NODE = f"{glyphs.mark} " if glyphs.letters else "▸ "
        self.ICON_NODE_EXPANDED = "- " if glyphs.letters else "▾ "
        self._by_scope: dict[Scope, TreeNode[Scope]] = {}
        self._known: dict[Scope, tuple[str, float, int, bool]] = {}
        self._fill()

    def _fill(self) -> None:
        profile, headline = self.session.profile, self.session.headline
        cores = headline.cores
        mean = sum(core.utilisation for core in cores) / len(cores) if cores else 0.0
        self._known[Scope()] = ("All", mean, headline.instructions, headline.guessed)
        self._by_scope[Scope()] = self.root
        self.root.expand()
        few = len(profile.lanes) <= 40
        for core in cores:
            scope = Scope(core.core)
            count = sum(figures.count for figures in core.lanes.values())
            self._known[scope] = (f"Core {core.core}", core.utilisation, count, core.guessed)
            lanes = [number for number, lane in enumerate(profile.lanes) if lane.core == core.core]
            node = self.root.add("", scope, expand=few and bool(lanes), allow_expand=bool(lanes))
            self._by_scope[scope] = node
            for number in lanes:
                self._add_lane(node, number)
        for group in dict.fromkeys(lane.group for lane in profile.lanes if lane.core < 0):
            numbers = [number for number, lane in enumerate(profile.lanes) if lane.core < 0 and lane.group == group]
            node = self.root.add(clean(group), None, expand=True)
            for number in numbers:
                self._add_lane(node, number)

    def _add_lane(self, parent: TreeNode[Scope], number: int) -> None:
        lane = self.session.profile.lanes[number]
        profile = self.session.profile
        figures = lane_figures(self.session.indexes[number], profile.start_ns, profile.end_ns)
        scope = Scope(lane.core, number)
        self._known[scope] = (clean(lane.label), figures.utilisation, figures.count, lane.role_guessed)
        self._by_scope[scope] = parent.add_leaf("", scope)

    def render_label(self, node: TreeNode[Scope], base_style: Style, style: Style) -> Text:
        """Name, bar, utilisation, count: in columns whatever the depth."""
        depth = 0 if node.is_root else 1 if node.parent is not None and node.parent.is_root else 2
        icon = (self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE) if node.allow_expand else ""
        text = Text(icon, style=base_style + style)
        scope = node.data
        if scope is None or scope not in self._known:
            return text.append(str(node.label), style)
        name, share, count, guessed = self._known[scope]
        room = NAME - 2 * depth - len(icon) + 2
        scoped = self.view is not None and scope == self.view.scope and not scope.everything
        text.append(fit(f"{name}{'*' if scoped else ''}", room), style + (self.palette.key if scoped else Style.null()))
        lane = self.session.profile.lanes[scope.lane] if scope.lane >= 0 else None
        own = self.palette.engine(lane.engine) if lane else self.palette.compute
        text.append(bar(share, BAR, self.glyphs), style + own)
        text.append(f"{percent_text(share, guessed=guessed):>7}", style)
        text.append(f"{_short(count):>8}", style + self.palette.quiet)
        return text

    # state

    def show(self, view: ViewState) -> None:
        """Moves the cursor to the selected node and marks the scope."""
        old, self.view = self.view, view
        if old is None or old.scope != view.scope:
            self._invalidate()
        if old is None or old.selection != view.selection:
            self._follow(view.selection)

    def _follow(self, selection: Selection) -> None:
        node = self._by_scope.get(Scope(selection.core, selection.lane)) or self._by_scope.get(Scope(selection.core))
        if node is None or node is self.cursor_node:
            return
        if node.parent is not None and not node.parent.is_expanded:
            node = node.parent
        with self.prevent(Tree.NodeHighlighted):
            self.move_cursor(node)

    def on_tree_node_highlighted(self, message: Tree.NodeHighlighted[Scope]) -> None:
        """The cursor selects a core or lane in all panes."""
        message.stop()
        scope = message.node.data
        if not self.has_focus or scope is None:
            return

        def selected(view: ViewState) -> ViewState:
            if (view.selection.core, view.selection.lane) == (scope.core, scope.lane):
                return view
            return replace(view, selection=Selection(scope.core, scope.lane))

        self.post_message(Change(selected))

    def on_tree_node_selected(self, message: Tree.NodeSelected[Scope]) -> None:
        """A click selects; narrowing is a key."""
        message.stop()

    # keys

    def action_node_down(self) -> None:
        """The node below."""
        self.action_cursor_down()

    def action_node_up(self) -> None:
        """The node above."""
        self.action_cursor_up()

    def action_fold(self) -> None:
        """Fold, or go to the parent."""
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.allow_expand and not node.is_root:
            node.collapse()
        elif node.parent is not None:
            self.move_cursor(node.parent)

    def action_unfold(self) -> None:
        """Unfold."""
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self.cursor_node.expand()

    def action_unfold_all(self) -> None:
        """Unfold all cores, or fold them."""
        folded = any(not node.is_expanded for node in self.root.children)
        for node in self.root.children:
            if folded:
                node.expand()
            else:
                node.collapse()

    def action_top(self) -> None:
        """The first node."""
        self.move_cursor_to_line(0)

    def action_bottom(self) -> None:
        """The last node."""
        self.move_cursor_to_line(max(self.last_line, 0))

    def action_scope(self) -> None:
        """Narrow to the node, or widen again."""
        scope = self.cursor_node.data if self.cursor_node is not None else None
        if scope is None:
            return
        self.post_message(Change(lambda view: replace(view, scope=Scope() if view.scope == scope else scope)))


def _short(count: int) -> str:
    """A count in at most seven characters."""
    if count < 1_000_000:
        return f"{count:,}"
    return f"{count / 1_000_000:,.2f}M" if count < 100_000_000 else f"{count / 1_000_000:,.0f}M"
