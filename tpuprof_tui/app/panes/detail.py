"""Detail pane: all fields of the selected event with explanations, and links to related ones; what explains a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType

from tpuprof_tui.analysis.findings.pause_story import PauseStory, pause_story
from tpuprof_tui.analysis.links.dependencies import cached_dependencies, dependencies_of, may_have_dependencies
from tpuprof_tui.analysis.selecting.navigation import select_event, step_event
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection
from tpuprof_tui.formats.text import fit, wrap
from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.views.differences import cached_differences, differences_of

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import Background, ChangeState, ShowMessage
from .detail_entries import Entry, entries_of, pause_entries
from .lines import Line, LinesView, paragraph

#: Least width at which every value has its explanation on the same line.
HELP_BESIDE = 84
LABEL, VALUE = 15, 30

Found = TypeVar("Found")


class DetailPane(LinesView):
    """Entries of the selected event; Enter on a link goes to another event, a field at the cursor is explained."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("detail")]
    copied_as = ("line", "details")

    def __init__(self, session: Session, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "detail")
        self.session = session
        self.glyphs = glyphs
        self.selection = Selection()
        #: Entries that the cursor can be on.
        self.choices: list[Entry] = []
        self._entries: list[Entry] = []
        #: The latest pause that was explained.
        self._story: tuple[Selection, PauseStory | None] = Selection(), None
        self._background = Background(self, "dependencies", small=False)
        #: Kinds of data that need no (further) computation: requested already, or not available in this profile.
        self._requested = {kind for kind, none in (("dependencies", not may_have_dependencies(session)),
                                                    ("differences", session.baseline is None)) if none}  # fmt: skip

    def show(self, state: DisplayState) -> None:
        """Shows the selected event of a state; keeps the cursor on the field with the same label."""
        if state.selection == self.selection:
            return
        self.selection = state.selection
        label = self._chosen.label if self._chosen is not None else ""
        self._entries = []
        if not self.size.width:
            return
        self.rebuild()
        place = next((number for number, entry in enumerate(self.choices) if entry.label == label), self.cursor)
        if place != self.cursor:
            self.go_to(place)

    def cursor_changed(self) -> None:
        """Rebuilds the lines, as the explanation is shown at the cursor."""
        self.rebuild()

    @property
    def _chosen(self) -> Entry | None:
        return self.choices[self.cursor] if self.cursor < len(self.choices) else None

    def action_follow(self) -> None:
        """Selects the event that the link under the cursor leads to."""
        target = self._chosen.leads_to if self._chosen is not None else None
        if target is None:
            self.post_message(ShowMessage("This line has no target: those with an arrow have one."))
            return
        self.cursor, self.choices = 0, []
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(ChangeState(lambda state: select_event(self.session, state, *target)))

    def action_step(self, steps: int) -> None:
        """Selects the event ``steps`` after this one on the same lane."""
        lane = self.selection.lane
        if lane >= 0:
            self.post_message(ChangeState(lambda state: step_event(self.session, state, steps, lane)))

    def text_of_item(self) -> str:
        """Text to copy of the field or link under the cursor, without its explanation."""
        return _entry_text(self._chosen) if self._chosen is not None else ""

    def text_of_all(self) -> str:
        """Text to copy of all entries."""
        return "\n".join(map(_entry_text, self._entries))

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the lines of the event; each field and each link is an item."""
        if not self.selection.has_detail:
            self._entries, self.choices = [], []
            text = self.session.say("No {event} selected: Enter in the timeline or a row of the table selects one.")
            return paragraph(text, width, self.palette.quiet), []
        if not self._entries:
            self._entries = list(self._of_event() if self.selection.pause is None else self._of_pause())
            self.choices = [entry for entry in self._entries if entry.can_be_chosen]
            self.cursor = min(self.cursor, max(len(self.choices) - 1, 0))
        lines: list[Line] = []
        items: list[int] = []
        number = 0
        for entry in self._entries:
            added = self._lines_of(entry, width, entry.can_be_chosen and number == self.cursor)
            lines += added
            items += [number if entry.can_be_chosen else -1] * len(added)
            number += entry.can_be_chosen
        return lines, items

    def _of_event(self) -> Iterator[Entry]:
        session, place = self.session, (self.selection.lane, self.selection.row)
        dependencies = self._available("dependencies", cached_dependencies(session), dependencies_of)
        differences = self._available("differences", cached_differences(session), differences_of)
        return entries_of(session, *place, dependencies, differences)

    def _of_pause(self) -> Iterator[Entry]:
        session, selection = self.session, self.selection
        story = self._story[1] if self._story[0] == selection else None
        if story is None:
            scope, span = Scope(selection.group, selection.lane), selection.pause or (0, 0)
            self._background.compute(
                "pause", partial(pause_story, session, scope, *span), partial(self._told, selection)
            )
        return pause_entries(session, selection, story)

    def _told(self, selection: Selection, story: PauseStory) -> None:
        self._story = selection, story
        self._rebuild_entries(story)

    def _lines_of(self, entry: Entry, width: int, chosen: bool) -> list[Line]:
        palette = self.palette
        if entry.kind == "field":
            return self._field(entry, width, chosen)
        if entry.kind == "link":
            arrow = self.glyphs.released if entry.back else self.glyphs.releases
            first, *rest = wrap(f"{entry.label} {entry.text}", max(width - 4, 4))
            lines: list[Line] = [[Segment(f" {arrow} ", palette.key), Segment(first, palette.text)]]
            lines += [[Segment(f"   {part}", palette.text)] for part in rest]
            return lines + ([[Segment("    Enter goes there.", palette.quiet)]] if chosen else [])
        style = {
            "name": palette.strong, "text": palette.text, "remark": palette.quiet, "warning": palette.caution,
            "group": palette.title,
        }[entry.kind]  # fmt: skip
        return paragraph(entry.text, width, style)

    def _field(self, entry: Entry, width: int, chosen: bool) -> list[Line]:
        palette = self.palette
        style = palette.quiet if entry.text == MISSING else palette.text
        lines: list[Line]
        if width >= HELP_BESIDE:
            label = Segment(f"  {fit(entry.label, 24)} ", palette.quiet)
            wide = fit(entry.text, VALUE) if len(entry.text) <= VALUE else f"{entry.text} "
            room = max(width - label.cell_length - cell_len(wide) - 2, 0)
            lines = [[label, Segment(wide, style), Segment(f" {fit(entry.help, room)}", palette.quiet)]]
            cut = chosen and cell_len(entry.help) > room
            return lines + (paragraph(entry.help, width, palette.quiet, 4) if cut else [])
        # a long label has a line of its own, with the value on the next
        short = len(entry.label) <= LABEL
        label = Segment(f"  {fit(entry.label, LABEL if short else max(width - 4, 6))} ", palette.quiet)
        parts = wrap(entry.text, max(width - LABEL - 4, 6)) or [""]
        lines = [[label, Segment(parts[0], style)]] if short else [[label]]
        lines += [[Segment(" " * (LABEL + 3) + part, style)] for part in parts[short:]]
        if chosen:
            lines += paragraph(entry.help, width, palette.quiet, 4)
        return lines

    def _available(self, kind: str, value: Found | None, find: Callable[[Session], Found]) -> Found | None:
        """Returns ``value``; if it is None, starts computing it in the background unless that was requested before."""
        if value is None and kind not in self._requested:
            self._requested.add(kind)
            self._background.compute(kind, partial(find, self.session), self._rebuild_entries)
        return value

    def _rebuild_entries(self, _: object) -> None:
        if self.size.width:
            self._entries = []
            self.rebuild()


def _entry_text(entry: Entry) -> str:
    return f"{entry.label}  {entry.text}".strip()
