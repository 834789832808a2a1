"""The search keys: in the tree they narrow its nodes, in panes that are read they look through lines, else names."""

from __future__ import annotations

from functools import partial

from ..panes.detail import DetailPane
from ..panes.lines import LinesView
from ..panes.problems import ProblemsPane
from ..panes.tree import GroupTree
from ..settings.actions import ActionTable
from .line_search import LineSearch
from .name_search import NameSearch
from .prompting import Prompting


class Search:
    """Asks the pane that keys go to which search is meant."""

    def __init__(self, names: NameSearch, lines: LineSearch, prompting: Prompting) -> None:
        self.names = names
        self.lines = lines
        self.prompting = prompting
        self.actions: ActionTable = {
            "search": self.ask,
            "search-next": partial(self.step, 1),
            "search-previous": partial(self.step, -1),
        }

    def ask(self) -> None:
        """Asks for a text."""
        pane = self.prompting.pane
        if isinstance(pane, GroupTree):
            pane.ask_filter()
        elif isinstance(pane, DetailPane | ProblemsPane) and pane.has_cursor:
            self.lines.ask(pane)
        else:
            self.names.ask()

    def step(self, steps: int) -> None:
        """The next match, of the pane's own search where it has one."""
        pane = self.prompting.pane
        if isinstance(pane, LinesView) and self.lines.searched(pane):
            self.lines.step(pane, steps)
        else:
            self.names.step(steps)
