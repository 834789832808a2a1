"""Loading screen: progress while a capture is read, and the error if it cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import wrap
from tpuprof_tui.formats.units import bytes_text, plural

from ..drawing.glyphs import Glyphs, bar
from ..drawing.theme import Palette
from ..panes.headline import HeadlineBar
from ..panes.prompt import KeyBar
from ..settings.actions import actions_of, bindings, keys_of
from .messages import CaptureRequest

if TYPE_CHECKING:
    from tpuprof_tui.sources.catalog import Progress


class LoadingPane(Widget, can_focus=True):
    """Shows the progress and the groups found so far; or the error and a hint."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("loading")]
    DEFAULT_CSS = "LoadingPane { height: 1fr; padding: 1 2; }"

    def __init__(self, capture_name: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.capture_name = clean(capture_name)
        self.palette = palette
        self.glyphs = glyphs
        self.text = "starting"
        self.done = 0
        self.total = 0
        self.groups: dict[str, int] = {}
        self.failure: tuple[str, str] | None = None
        self.waiting = ""

    def show_progress(self, progress: Progress) -> None:
        """Shows progress of the reader."""
        self.text, self.done, self.total = clean(progress.text), progress.done, progress.total
        if progress.group:
            self.groups[clean(progress.group)] = progress.records
        self.refresh()

    def show_failure(self, message: str, hint: str) -> None:
        """Shows why the capture could not be read."""
        self.failure = (clean(message), clean(hint))
        self.refresh()

    def show_waiting(self, count: int, most: int) -> None:
        """Shows the number of keys that wait for the capture."""
        full = "; more are not taken" if count == most else ""
        waiting = f"{plural(count, 'key')} kept for the capture{full}: Esc drops them." if count else ""
        if waiting != self.waiting:
            self.waiting = waiting
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Renders one line of the text."""
        width = self.size.width
        lines = self._failure_lines(width) if self.failure else self._progress_lines(width)
        segments = lines[y] if y < len(lines) else []
        return Strip(segments).adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def _failure_lines(self, width: int) -> list[list[Segment]]:
        message, hint = self.failure or ("", "")
        lines = [[Segment(line, self.palette.bad)] for line in wrap(message, width)]
        lines.append([])
        lines += [[Segment(line, self.palette.text)] for line in wrap(hint, width) if line]
        keys = wrap("R reads it again, Esc lists the captures near here, q quits.", width)
        return [*lines, [], *([Segment(line, self.palette.quiet)] for line in keys)]

    def _progress_lines(self, width: int) -> list[list[Segment]]:
        share = self.done / self.total if self.total > 0 else 0.0
        read = f"  {bytes_text(self.done)} of {bytes_text(self.total)}" if self.total > 0 else ""
        lines = [
            [Segment("Reading ", self.palette.quiet), Segment(self.capture_name, self.palette.strong)],
            [],
            [Segment(bar(share, min(width, 48), self.glyphs), self.palette.compute)],
            [Segment(f"{self.text}{read}", self.palette.text)],
            [],
        ]
        for group, records in sorted(self.groups.items()):
            lines.append([Segment(f"{group}  ", self.palette.text),
                          Segment(f"{records:>13,} records", self.palette.quiet)])  # fmt: skip
        if self.waiting:
            lines[4:4] = [[Segment(self.waiting, self.palette.caution)]]
        return lines

    def action_cancel(self) -> None:
        """Stops reading, or leaves the error."""
        self.post_message(CaptureRequest("cancel"))

    def action_again(self) -> None:
        """Reads a failed capture again."""
        if self.failure is not None:
            self.post_message(CaptureRequest("reload"))


class LoadingScreen(Screen[None]):
    """The first screen, painted before anything is read."""

    AUTO_FOCUS = "LoadingPane"

    def __init__(self, capture_name: str, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__()
        self.palette = palette
        self.pane = LoadingPane(capture_name, palette, glyphs)

    def compose(self) -> ComposeResult:
        """Yields headline, progress and key bar."""
        yield HeadlineBar(self.palette, "tpuprof")
        yield self.pane
        yield KeyBar(self.palette, "loading")

    @property
    def failed(self) -> bool:
        """Whether reading has failed."""
        return self.pane.failure is not None

    def show_failure(self, message: str, hint: str) -> None:
        """Shows why the capture could not be read."""
        self.show_waiting(0, 0)
        self.pane.show_failure(message, hint)
        self.query_one(KeyBar).label_overrides = {"Cancel": "Captures"}

    def show_waiting(self, count: int, most: int) -> None:
        """Shows the number of keys that wait for the capture."""
        if self.is_mounted:
            self.pane.show_waiting(count, most)

    def meaning(self, key: str) -> str:
        """Id of the action bound to a key here, else in the explorer; empty: none."""
        active = self.active_bindings.get(key)
        if active is not None and active.binding.id not in (None, "loading.again"):
            return active.binding.id or ""
        return next((action.id for action in actions_of("explorer") if key in keys_of(action)), "")

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Whether this screen handles the input itself; other input waits for the capture."""
        return isinstance(event, events.Key) and self.meaning(event.key).startswith(("loading.", "app."))

    def on_screen_resume(self) -> None:
        """Lets a capture be shown that was loaded while an overlay was over this screen."""
        self.post_message(CaptureRequest("resume"))
