"""Opens time by call path as a flame graph, and narrows all panes to a path chosen there."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import narrowed
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.views.query import Query

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..overlays.flame import FlameGraph
from ..overlays.overlay import Overlay
from ..settings.actions import ActionTable
from .filtering import Filtering
from .store import Store


class FlameGraphs:
    """The flame graph of what the state shows: its window, groups and filter."""

    def __init__(
        self, store: Store, filtering: Filtering, palette: Callable[[], Palette], glyphs: Glyphs,
        go: Callable[[str], None], open_overlay: Callable[..., object],
    ) -> None:  # fmt: skip
        self.store = store
        self.filtering = filtering
        self.palette = palette
        self.glyphs = glyphs
        self.go = go
        self.open_overlay = open_overlay
        self.actions: ActionTable = {"flame-graph": self.open}

    def open(self) -> None:
        """Shows it over the panes."""
        state = self.store.state
        query = Query.of_state(self.store.session, state, state.figures_scope)
        self.open_overlay(Overlay(FlameGraph(query, self.palette(), self.glyphs), self.palette()), self._narrow)

    def _narrow(self, found: tuple[Scope, str] | None) -> None:
        if found is None:
            return
        state, (scope, condition) = self.store.state, found
        if not scope.everything:
            self.store.change(replace(state, scope=scope))
        if condition:
            self.filtering.apply(narrowed(state.filter, condition))
        self.go("table")
