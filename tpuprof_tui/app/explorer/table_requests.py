"""What the table asks the explorer for: groups, columns, copies."""

from __future__ import annotations

from dataclasses import replace

from textual import on

from tpuprof_tui.analysis.selecting.filter_masks import narrowed
from tpuprof_tui.analysis.selecting.grouping import knows_names
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.selecting.step_filter import with_step

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..overlays.columns import ColumnsScreen
from ..overlays.copied import copy_text
from ..overlays.groups import GroupsScreen
from ..panes.summary.summary import SummaryPane
from ..panes.table import InstructionTable
from ..panes.tree import GroupTree
from ..panes.tree_nodes import node_conditions
from ..shell.messages import CopyText
from .filter_search import Finding


class TableKeys(Finding):
    """Opens what lies over the table; the explorer owns the state."""

    palette: Palette
    glyphs: Glyphs

    def _go(self, name: str) -> None:
        raise NotImplementedError

    def action_group(self) -> None:
        """What took the time, by name; without names by engine."""
        self._open_groups("name" if knows_names(self.session) else "engine", work_only=True)

    @on(InstructionTable.GroupBy)
    def group_by(self, message: InstructionTable.GroupBy) -> None:
        """How often each value of a column occurs."""
        message.stop()
        self._open_groups("duration" if message.key == "share" else message.key, work_only=False)

    def _open_groups(self, key: str, *, work_only: bool) -> None:
        screen = GroupsScreen(self.session, self.view, self.palette, self.glyphs, key, work_only=work_only)
        self.app.push_screen(screen, self._drill)

    def _drill(self, text: str | None) -> None:
        if text is not None:
            self.apply_filter(text)
            self._go("table")

    @on(SummaryPane.Narrow)
    def narrow(self, message: SummaryPane.Narrow) -> None:
        """One condition more for all panes, or another step."""
        message.stop()
        text, step = self.view.filter, message.step
        self.apply_filter(narrowed(text, message.condition) if step is None else with_step(text, step))

    @on(GroupTree.Narrow)
    def narrow_to_node(self, message: GroupTree.Narrow) -> None:
        """A node of the tree alone, or everything again where it was alone."""
        message.stop()
        view, condition = self.view, message.condition
        alone = not view.scope.everything and view.scope == message.scope and condition in view.filter
        # what another node of the same lane asked for goes with it
        own = node_conditions(self.session.profile.vocabulary)
        rest = " ".join(word for word in view.filter.split() if word not in own)
        self._set(replace(view, scope=Scope() if alone else message.scope))
        text = rest if alone or not condition else narrowed(rest, condition)
        if text != view.filter:
            self.apply_filter(text)

    @on(InstructionTable.ChooseColumns)
    def choose_columns(self, message: InstructionTable.ChooseColumns) -> None:
        """Opens the list of columns."""
        message.stop()
        table = self.query_one("#table", InstructionTable)
        at = table.columns.chosen.key
        known, chosen = self.session.columns, self.view.columns
        self.app.push_screen(ColumnsScreen(known, chosen, self.palette, at, self._take_columns))

    def _take_columns(self, keys: tuple[str, ...]) -> None:
        self._set(replace(self.view, columns=keys))

    @on(CopyText)
    def copy(self, message: CopyText) -> None:
        """Copies a text and shows it."""
        message.stop()
        copy_text(self, self.palette, message.text, message.what)
