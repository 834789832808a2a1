"""What shows while a capture is read, and when it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.formats.text import bytes_text, clean, wrap

from ..drawing.compositing import DrawnScreen
from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..panes.headline import HeadlineBar
from ..panes.keybar import KeyBar
from ..settings.actions import bindings

if TYPE_CHECKING:
    from tpuprof_tui.sources.catalog import Progress


class LoadingPane(Widget, can_focus=True):
    """How far reading is, and the cores found so far; or what went wrong and what to do next."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("loading")]
    DEFAULT_CSS = "LoadingPane { height: 1fr; padding: 1 2; }"

    class Cancelled(Message):
        """Reading shall stop."""

    def __init__(self, what: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.what = clean(what)
        self.palette = palette
        self.glyphs = glyphs
        self.text = "starting"
        self.done = 0
        self.total = 0
        self.cores: dict[int, int] = {}
        self.failure: tuple[str, str] | None = None

    def show_progress(self, progress: Progress) -> None:
        """Shows a report of the reader."""
        self.text, self.done, self.total = clean(progress.text), progress.done, progress.total
        if progress.core >= 0:
            self.cores[progress.core] = progress.records
        self.refresh()

    def show_failure(self, message: str, hint: str) -> None:
        """Shows why there is nothing to see."""
        self.failure = (clean(message), clean(hint))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the text."""
        width = self.size.width
        lines = self._failure_lines(width) if self.failure else self._progress_lines(width)
        segments = lines[y] if y < len(lines) else []
        return Strip(segments).adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def _failure_lines(self, width: int) -> list[list[Segment]]:
        message, hint = self.failure or ("", "")
        lines = [[Segment(line, self.palette.bad)] for line in wrap(message, width)]
        lines.append([])
        lines += [[Segment(line, self.palette.text)] for line in wrap(hint, width) if line]
        return [*lines, [], [Segment("Esc lists the captures near here, q quits.", self.palette.quiet)]]

    def _progress_lines(self, width: int) -> list[list[Segment]]:
        share = self.done / self.total if self.total > 0 else 0.0
        read = f"  {bytes_text(self.done)} of {bytes_text(self.total)}" if self.total > 0 else ""
        lines = [
            [Segment("Reading ", self.palette.quiet), Segment(self.what, self.palette.strong)],
            [],
            [Segment(bar(share, min(width, 48), self.glyphs), self.palette.compute)],
            [Segment(f"{self.text}{read}", self.palette.text)],
            [],
        ]
        for core, records in sorted(self.cores.items()):
            lines.append([Segment(f"core {core:>3}  ", self.palette.text),
                          Segment(f"{records:>13,} records", self.palette.quiet)])  # fmt: skip
        return lines

    def action_cancel(self) -> None:
        """Stop reading, or go on from a failure."""
        self.post_message(self.Cancelled())


class LoadingScreen(DrawnScreen[None]):
    """The first screen: painted before anything is read."""

    AUTO_FOCUS = "LoadingPane"

    def __init__(self, what: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.what = what
        self.palette = palette
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Headline, progress, keys."""
        yield HeadlineBar(self.palette, "tpuprof")
        yield LoadingPane(self.what, self.palette, self.glyphs)
        yield KeyBar(self.palette, "loading")

    @property
    def pane(self) -> LoadingPane:
        """Where progress is shown."""
        return self.query_one(LoadingPane)
