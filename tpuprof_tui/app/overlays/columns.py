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

    Each change calls ``changed`` at once with the keys of the visible columns (empty: the default columns). The cursor
    starts on the column with the key ``cursor_key``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "columns")]

    def __init__(
        self, all_columns: tuple[Column, ...], chosen: tuple[str, ...], palette: Palette, cursor_key: str,
        changed: Callable[[tuple[str, ...]], None],
    ) -> None:  # fmt: skip
        super().__init__(palette, "columns")
        self.all_columns = all_columns
        self.changed = changed
        self.columns: list[Column] = []
        self.shown_keys: set[str] = set()
        self._take(chosen)
        self.cursor = next((index for index, column in enumerate(self.columns) if column.key == cursor_key), 0)

    def _take(self, chosen: tuple[str, ...]) -> None:
        by_key = {column.key: column for column in self.all_columns}
        visible = [by_key[key] for key in chosen if key in by_key] or list(self.all_columns)
        self.shown_keys = {column.key for column in visible}
        self.columns = [*visible, *(column for column in self.all_columns if column.key not in self.shown_keys)]

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds a line for each column: checkbox, name and meaning."""
        names = [header_text(column.title, column.unit) for column in self.columns]
        room = min(max((cell_len(name) for name in names), default=8) + 2, max(width // 3, 12))
        lines: list[Line] = []
        for column, name in zip(self.columns, names, strict=True):
            visible = column.key in self.shown_keys
            lines.append([
                Segment(" [x] " if visible else " [ ] ", self.palette.key),
                Segment(fit(name, room), self.palette.text if visible else self.palette.quiet),
                Segment(fit(column.help, max(width - room - 5, 0)), self.palette.quiet),
            ])  # fmt: skip
        self.border_title = Content(f"Columns: {len(self.shown_keys)} of {len(self.columns)} shown")
        return lines, list(range(len(lines)))

    def _apply(self) -> None:
        self.rebuild()
        self.go_to(self.cursor)
        keys = tuple(column.key for column in self.columns if column.key in self.shown_keys)
        defaults = tuple(column.key for column in self.all_columns)
        self.changed(() if keys == defaults else keys)

    def action_show_hide(self) -> None:
        """Shows or hides the column; the last visible one cannot be hidden."""
        key = self.columns[self.cursor].key
        if self.shown_keys != {key}:
            self.shown_keys ^= {key}
            self.cursor = min(self.cursor + 1, len(self.columns) - 1)
            self._apply()

    def action_shift(self, steps: int) -> None:
        """Moves the column ``steps`` places to the right."""
        new = self.cursor + steps
        if 0 <= new < len(self.columns):
            old = self.cursor
            self.columns[old], self.columns[new] = self.columns[new], self.columns[old]
            self.cursor = new
            self._apply()

    def action_usual(self) -> None:
        """Restores the default columns."""
        self._take(())
        self._apply()
