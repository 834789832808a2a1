"""The column chooser: which columns the table shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType
from textual.content import Content

from tpuprof_tui.analysis.selecting.cell_texts import header_text
from tpuprof_tui.formats.text import fit
from tpuprof_tui.model import Column

from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView
from ..settings.actions import bindings


class ColumnList(LinesView):
    """All columns of the capture: first the visible ones in table order, then the hidden ones.

    Each change calls ``taken`` at once with the keys of the visible columns (empty: the default columns). The cursor
    starts on the column with the key ``at``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "columns")]

    def __init__(
        self, known: tuple[Column, ...], chosen: tuple[str, ...], palette: Palette, at: str,
        taken: Callable[[tuple[str, ...]], None],
    ) -> None:  # fmt: skip
        super().__init__(palette, "columns")
        self.known = known
        self.taken = taken
        self.columns: list[Column] = []
        self.shown: set[str] = set()
        self._take(chosen)
        self.cursor = next((place for place, column in enumerate(self.columns) if column.key == at), 0)

    def _take(self, chosen: tuple[str, ...]) -> None:
        by_key = {column.key: column for column in self.known}
        shown = [by_key[key] for key in chosen if key in by_key] or list(self.known)
        self.shown = {column.key for column in shown}
        self.columns = [*shown, *(column for column in self.known if column.key not in self.shown)]

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a line for each column: checkbox, name and meaning."""
        names = [header_text(column.title, column.unit) for column in self.columns]
        room = min(max((cell_len(name) for name in names), default=8) + 2, max(width // 3, 12))
        lines: list[Line] = []
        for column, name in zip(self.columns, names, strict=True):
            shown = column.key in self.shown
            lines.append([
                Segment(" [x] " if shown else " [ ] ", self.palette.key),
                Segment(fit(name, room), self.palette.text if shown else self.palette.quiet),
                Segment(fit(column.help, max(width - room - 5, 0)), self.palette.quiet),
            ])  # fmt: skip
        self.border_title = Content(f"Columns: {len(self.shown)} of {len(self.columns)} shown")
        return lines, list(range(len(lines)))

    def _changed(self) -> None:
        self.rebuild()
        self.go_to(self.cursor)
        keys = tuple(column.key for column in self.columns if column.key in self.shown)
        usual = tuple(column.key for column in self.known)
        self.taken(() if keys == usual else keys)

    def action_show_hide(self) -> None:
        """Shows or hides the column; the last visible one cannot be hidden."""
        key = self.columns[self.cursor].key
        if self.shown != {key}:
            self.shown ^= {key}
            self.cursor = min(self.cursor + 1, len(self.columns) - 1)
            self._changed()

    def action_shift(self, steps: int) -> None:
        """Moves the column ``steps`` places to the right."""
        wanted = self.cursor + steps
        if 0 <= wanted < len(self.columns):
            here = self.cursor
            self.columns[here], self.columns[wanted] = self.columns[wanted], self.columns[here]
            self.cursor = wanted
            self._changed()

    def action_usual(self) -> None:
        """Restores the default columns."""
        self._take(())
        self._changed()
