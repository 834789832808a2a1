"""Flame graph of time by call path: callers above callees, width proportional to duration."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.content import Content

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.totals.call_stacks import Icicle
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.views.answer import Table
from tpuprof_tui.views.call_tree import call_tree_view

from ..drawing.colouring import kernel_category
from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView
from ..panes.table_rows import AT_ONCE
from ..settings.actions import bindings
from ..shell.messages import Background, CopyText
from .overlay import Close

#: Number of lines above the graph: the path under the cursor, and its times.
HEAD = 2
#: Least width, in cells, at which a path is labelled.
MIN_LABEL_CELLS = 4


class FlameGraph(LinesView):
    """Flame graph widget: a line for each depth, a cursor on one path.

    Closes with the scope and the filter condition of the chosen path.

    Attributes:
        chosen: Index of the path under the cursor.
        root: Index of the path that fills the width; -1: all root paths together.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "wide", "flame")]

    def __init__(self, query: Query, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "flame")
        self.call_query = query
        self.glyphs = glyphs
        self.chosen, self.root = 0, -1
        self.table: Table | None = None
        self.icicle = Icicle(np.zeros(0, np.int64), np.zeros(0, np.int64))
        scopes = query.profile.strings.get("kernel", ())
        self._scopes = {name: code for code, name in enumerate(scopes)}
        self._background = Background(self, "flame", small=query.profile.event_count <= AT_ONCE)

    def on_mount(self) -> None:
        """Computes the paths: at once for a small profile, else in the background."""
        self.border_title = Content("Flame graph")
        self._background.compute(
            "flame", partial(call_tree_view, self.call_query), lambda found: self._take(found.tables[0])
        )

    def _take(self, table: Table) -> None:
        self.table = table
        self.icicle = Icicle(*(np.asarray(table.column(key), np.int64) for key in ("depth", "total_us")))
        self.rebuild()

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the path under the cursor, its times, and a line for each depth."""
        if self.table is None:
            return [[Segment(" adding up ...", self.palette.quiet)]], []
        if not self.icicle.total_of_roots:
            return [[Segment(fit(" Nothing takes time here; Esc closes.", width), self.palette.quiet)]], []
        lines: list[Line] = [
            [Segment(fit(f" {self.path(self.chosen)}", width), self.palette.strong)],
            [Segment(fit(f" {self.times(self.chosen)}", width), self.palette.quiet)],
        ]
        lines += [self._line(row, width) for row in self.icicle.rows(self.root, width)]
        return lines, []

    def path(self, index: int) -> str:
        """Names along a path, from its root."""
        return clean(" > ".join(self.name_of(each) for each in self.icicle.callers(index)))

    def times(self, index: int) -> str:
        """Times of a path: total, share of the root that is shown, self time, and number of events."""
        assert self.table is not None
        total, own, count = (int(self.table.column(key)[index]) for key in ("total_us", "self_us", "count"))
        full = self.icicle.total_of_roots if self.root < 0 else int(self.icicle.total[self.root])
        events = self.call_query.vocabulary.event.of(count)
        name = "all" if self.root < 0 else self.name_of(self.root)
        return f"{time_text(total)}, {percent_text(total / full)} of {clean(name)}; self {time_text(own)}; {events}"

    def name_of(self, index: int) -> str:
        """Last name of a path; ``-`` if empty."""
        assert self.table is not None
        return str(self.table.column("name")[index]) or "-"

    def _line(self, row: list[tuple[int, int, int]], width: int) -> Line:
        line: Line = []
        used = 0
        for first, end, index in row:
            if first > used:
                line.append(Segment(" " * (first - used)))
            name = clean(self.name_of(index))
            text = fit(f"{self.glyphs.edge}{name if end - first >= MIN_LABEL_CELLS else ''}", end - first)
            line.append(Segment(text, self._style(name, chosen=index == self.chosen)))
            used = end
        return [*line, Segment(" " * (width - used))]

    def _style(self, name: str, *, chosen: bool) -> Style:
        """Style of a name: a kernel function has the same colour as elsewhere, another name a stable one of its own."""
        code = self._scopes.get(name, sum(map(ord, name)))
        if not self.palette.colour:
            return self.palette.row if chosen else self.palette.text
        style = self.palette.filled(kernel_category(code, "").shades)
        return self.palette.on_selected(style) if chosen else style

    def move(self, lines: int) -> None:
        """Moves the cursor down to the longest callee, or up to the caller, ``lines`` times."""
        index = self.chosen
        for _ in range(min(abs(lines), len(self.icicle.depth))):
            child = index + 1
            if lines < 0 and self.icicle.parent[index] >= 0:
                index = int(self.icicle.parent[index])
            elif lines > 0 and child < len(self.icicle.depth) and self.icicle.parent[child] == index:
                index = child
        self._choose(index)

    def action_scroll_columns(self, columns: int) -> None:
        """Moves the cursor to a sibling: a path with the same caller."""
        if not self.icicle.total_of_roots:
            return
        siblings = self.icicle.siblings(self.chosen)
        self._choose(siblings[min(max(siblings.index(self.chosen) + columns, 0), len(siblings) - 1)])

    def _choose(self, index: int) -> None:
        """Puts the cursor on a path, and zooms and scrolls so that it is at least one cell wide and in view."""
        if not self.icicle.total_of_roots:
            return
        self.chosen = index
        callers = self.icicle.callers(index)
        if self.root >= 0 and self.root not in callers:
            # the cursor left the zoomed path: zoom out to the common ancestor
            self.root = max((each for each in self.icicle.callers(self.root) if each in callers), default=-1)
        if not any(index == each for row in self.icicle.rows(self.root, self.size.width) for _, _, each in row):
            self.root = int(self.icicle.parent[index])
        self.rebuild()
        height = max(self.scrollable_content_region.height - HEAD, 1)
        line = int(self.icicle.depth[index]) + HEAD
        if not self.scroll_offset.y + HEAD <= line < self.scroll_offset.y + HEAD + height:
            self.scroll_to(y=max(line - height, 0), animate=False, immediate=True)

    def action_zoom(self, steps: int) -> None:
        """Zooms in to the path under the cursor (1), out to the caller of the root (-1), or out to all (0)."""
        if steps > 0 and self.icicle.total_of_roots:
            self.root = self.chosen
        else:
            self.root = int(self.icicle.parent[self.root]) if steps and self.root >= 0 else -1
        self.rebuild()

    def action_drill(self) -> None:
        """Closes with the scope and condition that select the events of the path under the cursor."""
        if self.table is None or not self.icicle.total_of_roots:
            return
        callers = [self.table.target_of(each) for each in self.icicle.callers(self.chosen)]
        scope = next((each.scope for each in callers if each is not None and each.scope is not None), Scope())
        condition = next((each.condition for each in callers[::-1] if each is not None and each.condition), "")
        self.post_message(Close((scope, condition)))

    def action_copy(self) -> None:
        """Copies the path and its times."""
        if self.icicle.total_of_roots:
            self.post_message(CopyText(f"{self.path(self.chosen)}: {self.times(self.chosen)}", "the path"))

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the clicked path; the keys can do the same."""
        offset = event.get_content_offset(self)
        if offset is not None and self.icicle.total_of_roots:
            number = offset.y + self.scroll_offset.y - HEAD
            rows = self.icicle.rows(self.root, self.size.width)
            for first, end, index in rows[number] if 0 <= number < len(rows) else ():
                if first <= offset.x < end:
                    self._choose(index)
