"""Titles of the panes: tabs that can be clicked, what the visible one holds, what the tree shows."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from tpuprof_tui.formats.escape import clean

from ..panes.keybar import KeyBar
from .layout import TABS, Layout
from .pane_manager import Panes
from .store import Store

#: What the figures of the tree are: window, range and filter change those of timeline and summary alone.
TREE_FIGURES: Final = "util, busy, count of whole capture"
#: The same with a base.
BOTH_FIGURES: Final = "busy: base, this, difference"
TAB_TITLES: Final = {"summary": "3 Summary", "table": "2 Table", "problems": "4 Problems"}


class PaneTitles:
    """Writes the titles onto the borders of the panes."""

    def __init__(self, store: Store, layout: Layout, panes: Panes, bar: KeyBar) -> None:
        self.store = store
        self.layout = layout
        self.panes = panes
        self.bar = bar
        self._shown: dict[tuple[str, str], str] = {}

    def show(self) -> None:
        """Titles of the tabs, the visible one marked; what it holds below."""
        summary, table, layout = self.panes.summary, self.panes.table, self.layout
        dim = "dim" if table.palette.colour else ""
        told = {"summary": summary.title_text, "table": table.title_text}.get(layout.tab, str)()
        tabs = Content("").join(self._tab(name, dim) for name in TABS)
        if layout.small and told:
            tabs += Content.styled(f" {told}", dim)
        self._put(layout.tab, "border_title", tabs)
        self._put(layout.tab, "border_subtitle", Content(told))
        self.bar.aside = table.place_text() if table.display else ""
        tree = self.panes.tree.filter
        passing = f"  &{clean(tree)}" if tree else ""
        about = BOTH_FIGURES if self.panes.tree.shows_both else TREE_FIGURES
        figures = f"  {about}" if layout.small else ""
        self._put("tree", "border_title", Content(f"{self.store.session.say('{Units}')} (t){passing}{figures}"))
        self._put("tree", "border_subtitle", Content(about))
        self._put("detail", "border_title", Content("Detail (i)"))

    def _tab(self, name: str, dim: str) -> Content:
        """A click on a tab is as good as its key."""
        problems = len(self.store.session.profile.problems)
        title = TAB_TITLES[name] + (f" ({problems})" if name == "problems" and problems else "")
        chosen = name == self.layout.tab
        look = "bold" if chosen else dim
        return Content.styled(f"[{title}]" if chosen else f" {title} ", f"{look} @click=screen.do({name!r})".lstrip())

    def _put(self, pane: str, where: str, title: Content) -> None:
        """Sets a title that has changed: each setting repaints the whole pane."""
        if self._shown.get((pane, where)) != title.plain:
            self._shown[pane, where] = title.plain
            setattr(self.panes.named(pane), where, title)
