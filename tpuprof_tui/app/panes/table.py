"""The table of instructions: the keys that move its cursor, choose columns and sort."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from tpuprof_tui.analysis.selecting.navigation import stepped_event
from tpuprof_tui.analysis.selecting.state import Selection, Sort, ViewState
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.formats.units import plural

from ..settings.actions import bindings
from ..settings.column_names import columns_named
from ..shell.messages import Change, Say, ShowDetail
from .instructions import InstructionRows
from .prompt import Note, Prompt, Question

#: Rows of a column that are copied at most: clipboards hold no millions.
COPIED = 10_000


class InstructionTable(InstructionRows):
    """Keys and mouse of the table: each asks for another state, or moves the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "table")]

    class GroupBy(Message):
        """What the table holds is to be grouped by a column."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class ChooseColumns(Message):
        """Columns are to be chosen."""

    class Copy(Message):
        """A text is to be copied."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    def go_to(self, position: int) -> None:
        """Puts the cursor on a row: its instruction becomes the selection of all panes."""
        if not len(self.order):
            return
        before, self.position = self.position, min(max(position, 0), len(self.order) - 1)
        self._bring_into_view()
        self._refresh_rows(before, self.position)
        self._select()
        self.post_message(self.Retitled())

    def _select(self) -> None:
        lane, row = self.session.place(int(self.order[self.position]))
        selection = Selection(self.session.unit_of(lane), lane, row)
        start, _ = self.session.span_of(lane, row)
        self.post_message(Change(lambda view: replace(view.at(start), selection=selection)))

    def action_line_down(self) -> None:
        """A row down."""
        self.go_to(self.position + 1)

    def action_line_up(self) -> None:
        """A row up."""
        self.go_to(self.position - 1)

    def action_half_down(self) -> None:
        """Half a page down."""
        self.go_to(self.position + max(self.page // 2, 1))

    def action_half_up(self) -> None:
        """Half a page up."""
        self.go_to(self.position - max(self.page // 2, 1))

    def action_page_down(self) -> None:
        """A page down."""
        self.go_to(self.position + self.page)

    def action_page_up(self) -> None:
        """A page up."""
        self.go_to(self.position - self.page)

    def action_first(self) -> None:
        """The first row."""
        self.go_to(0)

    def action_last(self) -> None:
        """The last row."""
        self.go_to(len(self.order) - 1)

    def action_centre(self) -> None:
        """The cursor's row in the middle."""
        self.scroll_to(y=max(self.position - self.page // 2, 0), animate=False, immediate=True)

    def action_column_left(self) -> None:
        """Scroll a column to the left."""
        before = [edge for edge in self._scrolled_edges() if edge < self.scroll_offset.x]
        self.scroll_to(x=before[-1] if before else 0, animate=False, immediate=True)

    def action_column_right(self) -> None:
        """Scroll a column to the right."""
        after = [edge for edge in self._scrolled_edges() if edge > self.scroll_offset.x]
        if after:
            self.scroll_to(x=after[0], animate=False, immediate=True)

    def _scrolled_edges(self) -> list[int]:
        """How far the table is scrolled where a column stands right behind those that stay."""
        return [edge - self.edges[self.staying] for edge in self.edges[self.staying :]]

    def action_column_previous(self) -> None:
        """Choose the column to the left."""
        self._choose(self.column - 1)

    def action_column_next(self) -> None:
        """Choose the column to the right."""
        self._choose(self.column + 1)

    def choose(self, key: str) -> None:
        """Chooses a column by its key, where it shows, and brings it into view."""
        place = next((number for number, column in enumerate(self.columns) if column.key == key), -1)
        if place >= 0:
            self._choose(place)

    def _choose(self, column: int) -> None:
        self.column = min(max(column, 0), len(self.columns) - 1)
        left, right = self.edges[self.column : self.column + 2]
        view_left, width = self.scroll_offset.x, self.scrollable_content_region.width
        kept = self.edges[self.staying]
        if self.column >= self.staying and left < view_left + kept:
            self.scroll_to(x=left - kept, animate=False, immediate=True)
        elif self.column >= self.staying and right > view_left + width:
            self.scroll_to(x=right - width, animate=False, immediate=True)
        self.refresh()
        self.post_message(Say(f"{self.columns[self.column].title}: {self.columns[self.column].help}  (s sorts)"))

    def action_sort(self) -> None:
        """Sort by the chosen column, or reverse."""
        # the share is in the order of the durations
        self._sort_by("duration" if self.columns[self.column] is SHARE else self.columns[self.column].key)

    def _sort_by(self, key: str) -> None:
        numbers = not self.session.profile.vocabulary.is_text(key) and key not in (
            "start",
            "end",
            "order",
            "core",
            "port",
        )

        def sorted_by(view: ViewState) -> ViewState:
            down = not view.sort.down if view.sort.key == key else numbers
            return replace(view, sort=Sort(key, down))

        self.post_message(Change(sorted_by))

    def action_sort_by(self) -> None:
        """Asks for the column to sort by."""
        columns = self.session.profile.vocabulary.phrase("sort_hint", "a column: name, duration, ...")
        hint = Note(f"{columns}  Enter sorts, then s turns it round")

        def judged(text: str) -> Note | None:
            found = columns_named(self.columns, text)
            if not text.strip():
                return hint
            if not found:
                return Note("no column here is called so: c chooses columns", fault=True)
            return Note(", ".join(column.title for column in found[:4]))

        def accepted(text: str) -> Note | None:
            found = columns_named(self.columns, text)
            if found:
                self._choose(self.columns.index(found[0]))
                self.action_sort()
            return None if found or not text.strip() else judged(text)

        self.post_message(Prompt.Ask(Question("Sort by", "", judged, accepted)))

    def action_reverse(self) -> None:
        """The other way round."""
        self.post_message(Change(lambda view: replace(view, sort=replace(view.sort, down=not view.sort.down))))

    def action_window_only(self) -> None:
        """Only the window, or all."""
        self.post_message(Change(lambda view: replace(view, in_window=not view.in_window)))

    def action_frequencies(self) -> None:
        """How often each value of the chosen column occurs."""
        self.post_message(self.GroupBy(self.columns[self.column].key))

    def action_columns(self) -> None:
        """Choose columns."""
        self.post_message(self.ChooseColumns())

    def action_percent(self) -> None:
        """Each duration's share of the total beside it, or not."""
        self.post_message(Change(lambda view: replace(view, percent=not view.percent)))

    def action_pick(self) -> None:
        """Picks the row or lets it go, and moves on."""
        if not len(self.order):
            return
        number = int(self.order[self.position])

        def toggled(view: ViewState) -> ViewState:
            picked = tuple(each for each in view.picked if each != number)
            return replace(view, picked=picked if len(picked) < len(view.picked) else (*picked, number))

        self.post_message(Change(toggled))
        self.go_to(self.position + 1)

    def action_clear_picks(self) -> None:
        """No row is picked any more."""
        self.post_message(Change(lambda view: replace(view, picked=())))

    def action_copy_rows(self) -> None:
        """Copies the picked rows, or that under the cursor."""
        numbers = self._picked() or [int(each) for each in self.order[self.position : self.position + 1]]
        if numbers:
            self.post_message(self.Copy(self.text_of(numbers), plural(len(numbers), "row")))

    def action_copy_cell(self) -> None:
        """Copies the cell of the chosen column."""
        if len(self.order):
            text = self.text_of([int(self.order[self.position])], only=self.column)
            self.post_message(self.Copy(text, self.columns[self.column].title))

    def action_copy_column(self) -> None:
        """Copies the chosen column of all rows, or of those picked."""
        numbers = self._picked() or self.order[:COPIED].tolist()
        if numbers:
            what = f"{self.columns[self.column].title} of {plural(len(numbers), 'row')}"
            if not self._picked() and len(numbers) < len(self.order):
                what += f", the first of {len(self.order):,}"
            self.post_message(self.Copy(self.text_of(numbers, only=self.column), what))

    def _picked(self) -> list[int]:
        """The picked rows; a capture read anew may hold fewer."""
        return [number for number in self.view.picked if number < self.session.profile.instructions]

    def action_select(self) -> None:
        """The detail of the row."""
        if len(self.order):
            self._select()
            self.post_message(ShowDetail())

    def action_previous(self) -> None:
        """The instruction before, on the same engine."""
        self._step(-1)

    def action_next(self) -> None:
        """The instruction after, on the same engine."""
        self._step(1)

    def _step(self, steps: int) -> None:
        if len(self.order):
            lane, row = self.session.place(int(self.order[self.position]))
            here = Selection(self.session.unit_of(lane), lane, row)
            self.post_message(
                Change(lambda view: stepped_event(self.session, replace(view, selection=here), steps, lane))
            )

    def on_click(self, event: events.Click) -> None:
        """The header sorts, a row is selected."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y == 0:
            x = offset.x - self.mark_width
            x += self.scroll_offset.x if x >= self.edges[self.staying] else 0
            self._choose(sum(edge <= x for edge in self.edges) - 1)
            self.action_sort()
        elif self.scroll_offset.y + offset.y - 1 < len(self.order):
            self.go_to(self.scroll_offset.y + offset.y - 1)
