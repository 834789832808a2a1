"""Screen that lists the captures of a data set with their figures, to open one."""

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
from textual.screen import Screen
from textual.worker import get_current_worker

from tpuprof_tui.dataset.captures import is_address, local_copy
from tpuprof_tui.dataset.listing import ListColumn, ListedCapture, Listing, over_days, shortened_paths, spark_line
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
from ..panes.prompt import Hint, Prompt, PromptRequest, ask
from ..settings.actions import bindings
from .messages import CaptureRequest, ShowMessage

#: Widths in cells: of a figure, of day, device and problems together, and the least width of the path.
_FIGURE, _FACTS, _PATH = 12, 20, 16


class DataSetViewState(Struct):
    """View state of a data set; kept while one of its captures is open."""

    location: str  #: Folder or address of the data set
    listing: Listing | None = None  #: Its captures; None: not read yet
    log: bytes = b""  #: Hash of its log at the time of reading
    #: words, column, down: Filter text, index of the figure to sort by (-1: by day), and whether in descending order.
    words: str = ""
    column: int = -1
    down: bool = True
    opened: str = ""  #: Path of the capture that was opened last
    #: Local copies of captures from remote file systems; deleted when the program ends.
    copies: ExitStack = field(default_factory=ExitStack)


class CaptureTable(LinesView):
    """Table of captures: a sparkline of each figure over days, then a line per capture with day, device and figures."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("wide", "fleet")]
    # reserve the gutter: lines are built for the full width, and a scroll bar shown later would hide their last cell
    DEFAULT_CSS = "CaptureTable { scrollbar-gutter: stable; }"

    def __init__(self, view: DataSetViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "fleet")
        self.view = view
        self.glyphs = glyphs
        self.failure = ""

    @property
    def listing(self) -> Listing | None:
        """The captures; None: not read yet."""
        return self.view.listing

    def on_mount(self) -> None:
        """Shows the known captures, and reads the data set in a worker thread if its log has changed."""
        self.call_after_refresh(self._to_opened)
        self._read()

    def _to_opened(self) -> None:
        paths = [row.path for row in self._rows()]
        if self.view.opened in paths and self.items:
            self.go_to(paths.index(self.view.opened))

    @work(thread=True, exclusive=True, group="fleet", exit_on_error=False)
    def _read(self) -> None:
        try:
            log = hashlib.blake2b(store_at(self.view.location).read_log() or b"").digest()
            if self.view.listing is None or log != self.view.log:
                self.call_later(self._take, Listing.read(self.view.location), "", log)
        except TpuprofError as error:
            self.call_later(self._take, None, str(error), b"")

    def _take(self, listing: Listing | None, failure: str, log: bytes) -> None:
        self.view.listing, self.view.log, self.failure = listing, log, failure
        self.rebuild()

    # lines

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the header, the sparklines, and a line for each capture."""
        if self.listing is None or not self.listing.rows:
            text = self.failure or ("Reading the data set ..." if self.listing is None else "The data set is empty.")
            return paragraph(text, width, self.palette.quiet), []
        rows = self._rows()
        column, down, location = self.view.column, self.view.down, self.view.location
        figure_count = max((width - _FACTS - _PATH) // _FIGURE, 0)
        # scroll to keep the sort column visible
        first = max(column - figure_count + 1, 0) if figure_count else 0
        figures = self.listing.figures[first : first + figure_count]
        path_width = max(width - _FACTS - len(figures) * _FIGURE, _PATH)
        arrow = self.glyphs.down if down else self.glyphs.up
        titles = [f"{arrow if index == column else ''}{each.title}" for index, each in enumerate(figures, first)]
        names = f" {fit('capture', path_width - 1)}{f'{arrow if column < 0 else str()}day':>10} {'dev':>4} {'prob':>4}"
        sparks = [spark_line(over_days(rows, index), _FIGURE - 1, self.glyphs.levels)
                  for index in range(first, first + len(figures))]  # fmt: skip
        totals = f" {fit(self._count(len(rows)), path_width - 1)}{'over days':>20}"
        lines: list[Line] = [
            [Segment(fit(names + "".join(f" {fit(clean(each), _FIGURE - 1, right=True)}" for each in titles), width),
                     self.palette.header)],
            [Segment(totals, self.palette.quiet), Segment("".join(f" {each:>{_FIGURE - 1}}" for each in sparks),
                                                        self.palette.text)],
        ]  # fmt: skip
        items = [-1, -1]
        address = location.rstrip("/") if is_address(location) else os.path.abspath(location)
        prefix = f"{address.rpartition('/')[0]}/"
        paths = shortened_paths([clean(row.path.removeprefix(prefix)) for row in rows], path_width - 2)
        for number, (row, path) in enumerate(zip(rows, paths, strict=True)):
            facts = f"{row.day or MISSING:>10} {fit(row.device or MISSING, 4, right=True)} {row.problems:>4,}"
            values = "".join(f" {_text(each, value):>{_FIGURE - 1}}" for each, value in
                             zip(figures, row.values[first:], strict=False))  # fmt: skip
            lines.append([Segment(f" {fit(path, path_width - 2)} ", self.palette.text),
                          Segment(facts + values, self.palette.quiet)])  # fmt: skip
            items.append(number)
        return lines, items

    def _rows(self) -> list[ListedCapture]:
        view = self.view
        return [] if view.listing is None else view.listing.shown(view.words, view.column, down=view.down)

    def _count(self, rows: int) -> str:
        assert self.listing is not None
        total = len(self.listing.rows) + self.listing.more
        passing = f"  &{clean(self.view.words)}" if self.view.words else ""
        return f"{rows:,} of {total:,} captures{passing}" if rows < total or passing else f"{total:,} captures"

    def clear_filter(self) -> bool:
        """Shows all captures again; returns False if none were filtered out."""
        filtered, self.view.words = bool(self.view.words), ""
        if filtered:
            self._change()
        return filtered

    # keys

    def _change(self) -> None:
        self.cursor = 0
        self.rebuild(keep_scroll=False)

    def action_open(self) -> None:
        """Opens the capture under the cursor; a remote one is fetched first."""
        if self.listing is None or not self.has_cursor:
            return
        path = self._rows()[self.cursor].path
        if is_address(path):
            self.post_message(ShowMessage(f"Fetching {clean(path)} ..."))
            self._fetch(path)
        elif not os.path.lexists(path):
            self.post_message(ShowMessage(f"{clean(path)} no longer exists."))
        else:
            self.view.opened = path
            self.post_message(CaptureRequest("choose", path))

    @work(thread=True, exclusive=True, group="fetch", exit_on_error=False)
    def _fetch(self, path: str) -> None:
        try:
            copy = self.view.copies.enter_context(local_copy(path))
        except TpuprofError as error:
            self.post_message(ShowMessage(error.message))
            return
        if not get_current_worker().is_cancelled:
            self.view.opened = path
            self.post_message(CaptureRequest("choose", copy))

    def action_sort(self, steps: int) -> None:
        """Sorts by the next or the previous figure, cyclic; by day between the last and the first."""
        if self.listing is not None:
            count = len(self.listing.figures) + 1
            self.view.column = (self.view.column + 1 + steps) % count - 1
            self._change()

    # the order decides which figures are shown
    action_scroll_columns = action_sort

    def action_reverse(self) -> None:
        """Reverses the order."""
        self.view.down = not self.view.down
        self._change()

    def action_filter(self) -> None:
        """Prompts for words to filter captures by."""
        before = self.view.words

        def changed(text: str) -> Hint | None:
            self.view.words = text
            self._change()
            return Hint(self._count(len(self.items) - 2)) if self.listing is not None and self.listing.rows else None

        def cancelled() -> None:
            changed(before)

        ask(self, PromptRequest("Filter", before, changed, changed, cancelled))


def _text(figure: ListColumn, value: float | None) -> str:
    if value is None:
        return MISSING
    if figure.kind == "share":
        return percent_text(value)
    return (
        f"{value:,.3f}" if figure.kind == "number" else time_text(round(value * (1000 if figure.kind == "us" else 1)))
    )


class DataSetScreen(Screen[None]):
    """Screen with the captures of a data set."""

    AUTO_FOCUS = "#fleet"

    def __init__(self, view: DataSetViewState, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.view, self.palette, self.glyphs = view, palette, glyphs

    def compose(self) -> ComposeResult:
        """Yields headline, captures and bottom line."""
        yield HeadlineBar(self.palette, f"tpuprof  data set {self.view.location}")
        yield CaptureTable(self.view, self.palette, self.glyphs)
        yield Prompt(self.palette, "fleet", vocabularies()[0])

    def on_show_message(self, message: ShowMessage) -> None:
        """Shows a message in the bottom line."""
        message.stop()
        self.query_one(Prompt).say(message.text)

    def back(self) -> None:
        """Clears the filter, else returns to the capture that was open."""
        if not self.query_one(CaptureTable).clear_filter():
            self.post_message(CaptureRequest("back"))
