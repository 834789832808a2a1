"""Ways back: what Esc does next, from where a pane was opened, and from one core to all."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tpuprof_tui.analysis.selecting.state import Rows, Scope, Selection, ViewState

from ..panes.keybar import KeyBar
from ..panes.summary.summary import SummaryPane
from ..panes.tree import GroupTree
from .dependency_jumps import Following
from .line_search import LineSearch
from .marks import Marking
from .problem_steps import ProblemSteps

#: Panes that lie over others where one fills the screen: Esc closes them first.
OVER: Final = ("tree", "detail")


class Returning(Following, Marking, ProblemSteps, LineSearch):
    """Keys that lead back; the explorer owns the state and places the panes."""

    maximised: str
    detail_wanted: bool | None
    rows_chosen: bool
    #: What filled the screen, and what had the keys, before one of ``OVER`` was opened.
    opened_from: tuple[str, str] = ("", "")
    #: What the timeline shows of all cores, where one alone shows its engines.
    rows_of_all: Rows = "engines"

    def _focus(self, name: str) -> None:
        raise NotImplementedError

    def remember_place(self, name: str) -> None:
        """Keeps where one is, as another pane is about to fill the screen."""
        if name in OVER and self.maximised not in OVER:
            self.opened_from = self.maximised, (self.focused.id if self.focused is not None else None) or ""

    def restore(self) -> None:
        """No pane fills the screen any more, or the one that did before tree or detail was opened."""
        place, focused = self.opened_from if self.maximised in OVER else ("", "")
        self._maximise(place)
        if focused and self.query_one(f"#{focused}").display:
            self._focus(focused)

    def rows_scoped(self, view: ViewState) -> ViewState:
        """One core shows its engines; all cores again show what they did, as far as that was chosen by a key."""
        if not self.rows_chosen or view.scope.everything == self.view.scope.everything:
            return view
        if view.scope.everything:
            return replace(view, rows=self.rows_of_all)
        self.rows_of_all = self.view.rows
        return replace(view, rows="engines")

    def action_isolate(self) -> None:
        """Only the selected core, or all again; in the summary only what its line stands for."""
        selection = self.view.selection
        summary = self.query_one("#summary", SummaryPane)
        if summary.has_focus and summary.has_cursor:
            summary.narrow()
        elif not self.view.scope.everything:
            self._set(replace(self.view, scope=Scope()))
        elif selection.group >= 0:
            self._set(replace(self.view, scope=Scope(selection.group)))
        elif selection.lane >= 0:
            self._set(replace(self.view, scope=Scope(-1, selection.lane)))
        else:
            self.query_one(KeyBar).say(
                self.session.say("No {unit} selected: j and k in the timeline or the tree (t) select one.")
            )

    def back(self) -> bool:
        """One step back; False where there is none left."""
        view = self.view
        tree, summary = self.query_one("#tree", GroupTree), self.query_one("#summary", SummaryPane)
        if summary.views.chosen and summary.has_focus:
            summary.choose("")
        elif tree.filter and tree.has_focus:
            tree.set_filter("")
        elif self.maximised in OVER:
            self.restore()
        elif view.search or view.filter:
            # the search first: it lies within the filter
            self._set(replace(view, search="") if view.search else replace(view, filter=""))
        elif view.range is not None or view.anchor is not None:
            self._set(replace(view, range=None, anchor=None))
        elif self.maximised:
            self._maximise("")
            self._focus("timeline")
        elif view.selection.row >= 0:
            self.detail_wanted = None
            self._set(replace(view, selection=replace(view.selection, row=-1)))
        elif not view.scope.everything:
            self._set(replace(view, scope=Scope()))
        elif view.selection != Selection():
            self._set(replace(view, selection=Selection()))
        else:
            return False
        return True
