"""The captures of a data set with their figures, to choose one from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import Worker

from tpuprof_tui.dataset.listing import Figure, Listing, over_days, spark_line
from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit
from tpuprof_tui.formats.units import MISSING, percent_text, time_text
from tpuprof_tui.sources.catalog import vocabularies

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.headline import HeadlineBar
from ..panes.lines import Line, LinesView, paragraph
from ..panes.prompt import Note, Prompt, Question
from ..settings.actions import bindings
from ..terminal.line_compositor import DrawnScreen
from .capture_list import CaptureList
from .messages import ReturnToCapture, Say, tell_failure

#: Cells of a figure, of what stands before them all but the path, and of a path at least.
_FIGURE, _FACTS, _PATH = 12, 20, 16


class CaptureTable(LinesView):
    """Captures of a data set: a line each with day, device and figures, above them each figure over days.

    Args:
        out: Folder of the data set.
        palette, glyphs: How it is drawn.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("fleet")]

    class Read(Message):
        """A thread has read the data set, or could not."""

        def __init__(self, listing: Listing | None, failure: str = "") -> None:
            super().__init__()
            self.listing = listing
            self.failure = failure

    def __init__(self, out: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "fleet")
        self.out = out
        self.glyphs = glyphs
        self.listing: Listing | None = None
        self.failure = ""
        #: What is typed as filter, the figure that captures are ordered by (-1: by day), and the largest first.
        self.words = ""
        self.column = -1
        self.down = True

    def on_mount(self) -> None:
        """Reads the data set in a thread."""
        self._read()

    @work(thread=True, exclusive=True, group="fleet", exit_on_error=False)
    def _read(self) -> None:
        try:
            self.post_message(self.Read(Listing.read(Path(self.out))))
        except TpuprofError as error:
            self.post_message(self.Read(None, str(error)))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    def on_capture_table_read(self, message: Read) -> None:
        """Shows what there is."""
        message.stop()
        self.listing, self.failure = message.listing, message.failure
        self.rebuild()

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Names, each figure over days, then a line for each capture."""
        if self.listing is None or not self.listing.rows:
            text = self.failure or ("Reading the data set ..." if self.listing is None else "The data set is empty.")
            return paragraph(text, width, self.palette.quiet), []
        shown = self.listing.shown(self.words, self.column, down=self.down)
        room = max((width - _FACTS - _PATH) // _FIGURE, 0)
        figures = self.listing.figures[:room]
        path_width = max(width - _FACTS - len(figures) * _FIGURE, _PATH)
        arrow = self.glyphs.down if self.down else self.glyphs.up
        titles = [f"{arrow if place == self.column else ''}{each.title}" for place, each in enumerate(figures)]
        names = (
            f" {fit('capture', path_width - 1)}{f'{arrow if self.column < 0 else str()}day':>10} {'dev':>4} {'prob':>4}"
        )
        sparks = [spark_line(over_days(shown, place), _FIGURE - 1, self.glyphs.levels) for place in range(len(figures))]
        over = f" {fit(self._count(len(shown)), path_width - 1)}{'over days':>20}"
        lines: list[Line] = [
            [Segment(fit(names + "".join(f" {fit(clean(each), _FIGURE - 1, right=True)}" for each in titles), width),
                     self.palette.header)],
            [Segment(over, self.palette.quiet), Segment("".join(f" {each:>{_FIGURE - 1}}" for each in sparks),
                                                        self.palette.text)],
        ]  # fmt: skip
        items = [-1, -1]
        for number, row in enumerate(shown):
            path = (
                row.path if "://" in row.path else os.path.relpath(row.path, os.path.dirname(os.path.abspath(self.out)))
            )
            facts = f"{row.day or MISSING:>10} {fit(row.device or MISSING, 4, right=True)} {row.problems:>4,}"
            values = "".join(f" {_text(each, value):>{_FIGURE - 1}}" for each, value in
                             zip(figures, row.values, strict=False))  # fmt: skip
            lines.append([Segment(f" {fit(clean(path), path_width - 1)}", self.palette.text),
                          Segment(facts + values, self.palette.quiet)])  # fmt: skip
            items.append(number)
        return lines, items

    def _count(self, shown: int) -> str:
        assert self.listing is not None
        every = len(self.listing.rows) + self.listing.more
        return f"{shown:,} of {every:,} captures" if shown < every else f"{every:,} captures"

    # keys

    def _change(self) -> None:
        """Another order or filter: from the top."""
        self.cursor = 0
        self.rebuild(keep_scroll=False)

    def action_open(self) -> None:
        """Opens the capture under the cursor where it lies."""
        if self.listing is None or not self.has_cursor:
            return
        path = self.listing.shown(self.words, self.column, down=self.down)[self.cursor].path
        if "://" in path:
            self.post_message(Say(f"{clean(path)} lies on another file system: copy it here to open it."))
        elif not os.path.lexists(path):
            self.post_message(Say(f"{clean(path)} lies there no more."))
        else:
            self.post_message(CaptureList.Chosen(path))

    def action_sort(self, steps: int) -> None:
        """Orders by the next or previous figure; beside the last and the first: by day."""
        if self.listing is not None:
            count = len(self.listing.figures) + 1
            self.column = (self.column + 1 + steps) % count - 1
            self._change()

    def action_reverse(self) -> None:
        """Turns the order round."""
        self.down = not self.down
        self._change()

    def action_filter(self) -> None:
        """Asks for words that captures shall hold."""
        before = self.words

        def changed(text: str) -> Note | None:
            self.words = text
            self._change()
            return Note(self._count(len(self.items) - 2)) if self.listing is not None and self.listing.rows else None

        def cancelled() -> None:
            changed(before)

        self.post_message(Prompt.Ask(Question("Filter", before, changed, changed, cancelled)))


def _text(figure: Figure, value: float | None) -> str:
    if value is None:
        return MISSING
    if figure.kind == "share":
        return percent_text(value)
    return (
        f"{value:,.3f}" if figure.kind == "number" else time_text(round(value * (1000 if figure.kind == "us" else 1)))
    )


class DataSetScreen(DrawnScreen[None]):
    """The captures of a data set.

    Args:
        out: Folder of the data set.
        palette, glyphs: How it is drawn.
    """

    AUTO_FOCUS = "#fleet"

    def __init__(self, out: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.out, self.palette, self.glyphs = out, palette, glyphs

    def compose(self) -> ComposeResult:
        """Headline, captures, keys."""
        yield HeadlineBar(self.palette, f"tpuprof  data set {self.out}")
        yield CaptureTable(self.out, self.palette, self.glyphs)
        yield Prompt(self.palette, "fleet", vocabularies()[0])

    def on_prompt_ask(self, message: Prompt.Ask) -> None:
        """Opens the bottom line for typing."""
        message.stop()
        self.query_one(Prompt).open(message.question)

    def on_prompt_accepted(self, message: Prompt.Accepted) -> None:
        """Keys go to the captures again."""
        message.stop()
        self.query_one(CaptureTable).focus()

    def on_prompt_cancelled(self, message: Prompt.Cancelled) -> None:
        """Keys go to the captures again."""
        message.stop()
        self.query_one(CaptureTable).focus()

    def on_say(self, message: Say) -> None:
        """Says something in the bottom line."""
        message.stop()
        self.query_one(Prompt).say(message.text)

    def back(self) -> None:
        """To the capture that was open."""
        self.post_message(ReturnToCapture())
