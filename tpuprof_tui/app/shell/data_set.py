"""The captures of a data set with their figures, to choose one from."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from typing import ClassVar

from msgspec import Struct, field
from rich.segment import Segment
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.worker import Worker, get_current_worker

from tpuprof_tui.dataset.listing import Figure, Listing, Row, over_days, spark_line, told_apart
from tpuprof_tui.dataset.places import is_address, on_this_machine
from tpuprof_tui.dataset.store import store_at
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
from .messages import AskCapture, Say, tell_failure

#: Cells of a figure, of what stands before them all but the path, and of a path at least.
_FIGURE, _FACTS, _PATH = 12, 20, 16


class Looked(Struct):
    """How one looks at a data set, also when one comes back from a capture of it.

    Attributes:
        out: Folder or address of the data set.
        listing: Its captures; None: not read yet.
        log: Hash of its log when they were read.
        words, column, down: What is typed as filter, the figure that captures are ordered by (-1: by day), and whether
            the largest comes first.
        opened: Path of the capture that was opened last.
        copies: Captures that were fetched from other file systems; they go when the program ends.
    """

    out: str
    listing: Listing | None = None
    log: bytes = b""
    words: str = ""
    column: int = -1
    down: bool = True
    opened: str = ""
    copies: ExitStack = field(default_factory=ExitStack)


class CaptureTable(LinesView):
    """Captures of a data set: a line each with day, device and figures, above them each figure over days.

    Args:
        looked: The data set, and how it was looked at last.
        palette, glyphs: How it is drawn.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("fleet")]
    # lines fill the width: a scroll bar that comes with them would stand on the last cell of each
    DEFAULT_CSS = "CaptureTable { scrollbar-gutter: stable; }"

    class Read(Message):
        """A thread has read the data set, or could not."""

        def __init__(self, listing: Listing | None, failure: str = "", log: bytes = b"") -> None:
            super().__init__()
            self.listing = listing
            self.log = log
            self.failure = failure

    def __init__(self, looked: Looked, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "fleet")
        self.looked = looked
        self.glyphs = glyphs
        self.failure = ""

    @property
    def listing(self) -> Listing | None:
        """The captures; None: not read yet."""
        return self.looked.listing

    def on_mount(self) -> None:
        """Shows what is known, and reads the data set in a thread where it has changed."""
        self.call_after_refresh(self._to_opened)
        self._read()

    def _to_opened(self) -> None:
        """Puts the cursor on the capture that was opened last."""
        paths = [row.path for row in self._rows()]
        if self.looked.opened in paths and self.items:
            self.go_to(paths.index(self.looked.opened))

    @work(thread=True, exclusive=True, group="fleet", exit_on_error=False)
    def _read(self) -> None:
        try:
            log = hashlib.blake2b(store_at(self.looked.out).read_log() or b"").digest()
            if self.looked.listing is None or log != self.looked.log:
                self.post_message(self.Read(Listing.read(self.looked.out), log=log))
        except TpuprofError as error:
            self.post_message(self.Read(None, str(error)))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    def on_capture_table_read(self, message: Read) -> None:
        """Shows what there is."""
        message.stop()
        self.looked.listing, self.looked.log, self.failure = message.listing, message.log, message.failure
        self.rebuild()

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Names, each figure over days, then a line for each capture."""
        if self.listing is None or not self.listing.rows:
            text = self.failure or ("Reading the data set ..." if self.listing is None else "The data set is empty.")
            return paragraph(text, width, self.palette.quiet), []
        shown = self._rows()
        column, down = self.looked.column, self.looked.down
        room = max((width - _FACTS - _PATH) // _FIGURE, 0)
        # the one that captures are ordered by is always among them
        begin = max(column - room + 1, 0) if room else 0
        figures = self.listing.figures[begin : begin + room]
        path_width = max(width - _FACTS - len(figures) * _FIGURE, _PATH)
        arrow = self.glyphs.down if down else self.glyphs.up
        titles = [f"{arrow if place == column else ''}{each.title}" for place, each in enumerate(figures, begin)]
        names = f" {fit('capture', path_width - 1)}{f'{arrow if column < 0 else str()}day':>10} {'dev':>4} {'prob':>4}"
        sparks = [spark_line(over_days(shown, place), _FIGURE - 1, self.glyphs.levels)
                  for place in range(begin, begin + len(figures))]  # fmt: skip
        over = f" {fit(self._count(len(shown)), path_width - 1)}{'over days':>20}"
        lines: list[Line] = [
            [Segment(fit(names + "".join(f" {fit(clean(each), _FIGURE - 1, right=True)}" for each in titles), width),
                     self.palette.header)],
            [Segment(over, self.palette.quiet), Segment("".join(f" {each:>{_FIGURE - 1}}" for each in sparks),
                                                        self.palette.text)],
        ]  # fmt: skip
        items = [-1, -1]
        out = self.looked.out.rstrip("/") if is_address(self.looked.out) else os.path.abspath(self.looked.out)
        beside = f"{out.rpartition('/')[0]}/"
        paths = told_apart([clean(row.path.removeprefix(beside)) for row in shown], path_width - 2)
        for number, (row, path) in enumerate(zip(shown, paths, strict=True)):
            facts = f"{row.day or MISSING:>10} {fit(row.device or MISSING, 4, right=True)} {row.problems:>4,}"
            values = "".join(f" {_text(each, value):>{_FIGURE - 1}}" for each, value in
                             zip(figures, row.values[begin:], strict=False))  # fmt: skip
            lines.append([Segment(f" {fit(path, path_width - 2)} ", self.palette.text),
                          Segment(facts + values, self.palette.quiet)])  # fmt: skip
            items.append(number)
        return lines, items

    def _rows(self) -> list[Row]:
        """The captures that pass the filter, in their order."""
        looked = self.looked
        return [] if looked.listing is None else looked.listing.shown(looked.words, looked.column, down=looked.down)

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
        path = self._rows()[self.cursor].path
        if is_address(path):
            self.post_message(Say(f"Fetching {clean(path)} ..."))
            self._fetch(path)
        elif not os.path.lexists(path):
            self.post_message(Say(f"{clean(path)} lies there no more."))
        else:
            self.looked.opened = path
            self.post_message(CaptureList.Chosen(path))

    @work(thread=True, exclusive=True, group="fetch", exit_on_error=False)
    def _fetch(self, path: str) -> None:
        """Opens a copy of a capture that lies on another file system."""
        try:
            copy = self.looked.copies.enter_context(on_this_machine(path))
        except TpuprofError as error:
            self.post_message(Say(error.message))
            return
        if not get_current_worker().is_cancelled:
            self.looked.opened = path
            self.post_message(CaptureList.Chosen(copy))

    def action_sort(self, steps: int) -> None:
        """Orders by the next or previous figure; beside the last and the first: by day."""
        if self.listing is not None:
            count = len(self.listing.figures) + 1
            self.looked.column = (self.looked.column + 1 + steps) % count - 1
            self._change()

    def action_reverse(self) -> None:
        """Turns the order round."""
        self.looked.down = not self.looked.down
        self._change()

    def action_filter(self) -> None:
        """Asks for words that captures shall hold."""
        before = self.looked.words

        def changed(text: str) -> Note | None:
            self.looked.words = text
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
        looked: The data set, and how it was looked at last.
        palette, glyphs: How it is drawn.
    """

    AUTO_FOCUS = "#fleet"

    def __init__(self, looked: Looked, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.looked, self.palette, self.glyphs = looked, palette, glyphs

    def compose(self) -> ComposeResult:
        """Headline, captures, keys."""
        yield HeadlineBar(self.palette, f"tpuprof  data set {self.looked.out}")
        yield CaptureTable(self.looked, self.palette, self.glyphs)
        yield Prompt(self.palette, "fleet", vocabularies()[0])

    def on_prompt_ask(self, message: Prompt.Ask) -> None:
        """Opens the bottom line for typing."""
        message.stop()
        self.query_one(Prompt).open(message.question)

    def on_prompt_closed(self, message: Prompt.Closed) -> None:
        """Keys go to the captures again."""
        message.stop()
        self.query_one(CaptureTable).focus()

    def on_say(self, message: Say) -> None:
        """Says something in the bottom line."""
        message.stop()
        self.query_one(Prompt).say(message.text)

    def back(self) -> None:
        """To the capture that was open."""
        self.post_message(AskCapture("return"))
