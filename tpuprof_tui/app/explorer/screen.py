"""The main screen of one profile: composes the panes, dispatches key actions and distributes the display state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import asdict
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.detail import DetailPane
from ..panes.headline import HeadlineBar, selection_parts
from ..panes.problems import ProblemsPane
from ..panes.prompt import LongMessage, Prompt
from ..panes.summary.summary import REST_SECONDS, SummaryPane
from ..panes.table import EventTable
from ..panes.table_rows import AT_ONCE
from ..panes.timeline.timeline import TimelinePane
from ..panes.tree import GroupTree
from ..settings.actions import Action, bindings
from ..shell import messages
from ..shell.exports import Exports
from ..shell.messages import Background
from .commands import CommandLine, ExportRequests, TableRequests
from .filtering import Filtering, Search
from .navigation import Jumps, Marks, Navigation, NoteSaver
from .panes import HEADLINE, TABS, CommandResult, ExplorerPart, PaneLayout, PaneManager, Panes, Store, fault

if TYPE_CHECKING:
    from tpuprof_tui.views.sentence import Sentence

#: Interval in seconds at which cached file data that is out of view is released.
_GIVE_BACK_EVERY: Final = 0.5


class ExplorerScreen(Screen[None]):
    """Screen with tree, timeline, tabs (summary, table, problems) and detail of one profile.

    ``actions``, ``requests`` and ``commands`` are those of its parts (see ``ExplorerPart``), and its own.
    """

    AUTO_FOCUS = "#timeline"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("explorer")]
    CSS_PATH = Path(__file__).with_name("screen.tcss")

    def __init__(
        self, session: Session, palette: Palette, glyphs: Glyphs, exports: Exports,
        state: DisplayState | None = None, others: Sequence[tuple[str, str]] = (), layout: PaneLayout | None = None,
        notes: Path | None = None, view: str = "",
    ) -> None:  # fmt: skip
        super().__init__(classes="" if palette.colour else "plain")
        profile = session.profile
        self.session = session
        self.palette = palette
        layout = layout or PaneLayout()
        state = state or DisplayState.of(profile.start_ns, profile.end_ns)
        self.store = Store(session, state, layout.adjust_rows, self._changed)

        self.headline = HeadlineBar(palette, lines=HEADLINE)
        self._selected: tuple[object, ...] = ()
        self._first_view = view
        self.timeline = TimelinePane(session, state, palette, glyphs)
        self.summary = SummaryPane(session, state, palette, glyphs)
        self.table = EventTable(session, state, palette, glyphs)
        self.prompt = Prompt(palette, "timeline", profile.vocabulary)
        self.panes = panes = Panes(
            GroupTree(session, palette, glyphs, others), self.timeline, self.summary, self.table,
            ProblemsPane(session, palette), DetailPane(session, palette, glyphs),
        )  # fmt: skip
        self.lower = Horizontal(panes.summary, panes.table, panes.problems, panes.detail, id="lower")
        self.middle = Vertical(panes.timeline, self.lower, id="middle")

        self.background = Background(self, "background", small=profile.event_count <= AT_ONCE)
        self._sentences = Background(self, "sentence", small=False)
        self.manager = PaneManager(
            self.store, layout, panes, (self.middle, self.lower), self.prompt, lambda: self.size, lambda: self.focused,
            lambda *given: self.app.push_screen(*given),
        )  # fmt: skip
        given = self.manager, self.background
        self.navigation = Navigation(*given)
        self.filtering = Filtering(*given)
        self.marks = Marks(*given)
        self.notes = NoteSaver(*given, lambda *what: self.post_message(messages.CopyText(*what)), notes)
        self.table_requests = TableRequests(*given, self.filtering)
        jumps = Jumps(*given)
        parts: list[ExplorerPart] = [
            self.navigation, self.filtering, Search(*given), self.marks, jumps, self.notes, self.table_requests,
            ExportRequests(*given, exports),
        ]  # fmt: skip
        self.commands: dict[str, Callable[[str], CommandResult]] = {
            "open": self._open, "quit": lambda _: partial(self.app.run_action, "app.quit")
        }  # fmt: skip
        parts.append(CommandLine(
            *given, self.commands, {"filter": self.filtering.fault_of, "view": self.navigation.view_hint},
            self.call_after_refresh, self._perform,
        ))  # fmt: skip
        self.actions: dict[str, Callable[..., object]] = {
            **self.manager.actions, "reload": partial(self._send, "reload"),
            "open-other": partial(self._send, "list_captures"), "next-capture": partial(self._send, "switch", 1),
            "previous-capture": partial(self._send, "switch", -1),
            "swap-sides": partial(jumps.if_compared, partial(self._send, "swap")),
            "leave-comparison": partial(jumps.if_compared, partial(self._send, "leave_comparison")),
        }  # fmt: skip
        self.requests = {**self.manager.requests, "label-key": self.prompt.relabel}
        for part in parts:
            self.requests |= part.requests
            self.actions |= part.actions
            self.commands |= part.commands

    @property
    def state(self) -> DisplayState:
        """The current display state."""
        return self.store.state

    def compose(self) -> ComposeResult:
        """Yields all panes; the layout decides from size and state which of them are visible."""
        self.manager.layout.fit(*self.app.size)
        self.set_class(self.manager.layout.small, "small")
        for name, pane in asdict(self.panes).items():
            pane.add_class("pane", *(("tab",) if name in TABS else ()))
        # placed before mounting, so that the first frame has the final layout
        self.manager.place(self.app.size)
        yield self.headline
        yield Horizontal(self.panes.tree, self.middle, id="body")
        yield self.prompt
        yield LongMessage()

    def on_mount(self) -> None:
        """Shows the initial state in all panes."""
        if self in self.app.screen_stack and self.manager.all_attached():
            self.headline.show_session(self.session)
            self._distribute()
            if not self.session.profile.lanes and self.summary.display:
                # without lanes the timeline is empty
                self.manager.focus("summary")
            if self._first_view:
                self.navigation.show_view(self._first_view)
        if self.session.profile.arrays.spills:
            self.set_interval(_GIVE_BACK_EVERY, self.session.profile.arrays.release_pages)

    def on_unmount(self) -> None:
        """Closes the store, so that answers of overlays that are still open are ignored."""
        self.store.closed = True

    def on_resize(self, event: events.Resize) -> None:
        """Adapts the layout to the new size."""
        if not self.manager.all_attached():
            return
        layout = self.manager.layout
        if layout.fit(*event.size):
            layout.maximised = ""
            self.set_class(layout.small, "small")
        self.manager.arrange(event.size)

    # the state

    @on(messages.ChangeState)
    def change(self, message: messages.ChangeState) -> None:
        """Applies the state change that a pane requests."""
        message.stop()
        state, layout = message.update(self.state), self.manager.layout
        layout.rows_chosen = layout.rows_chosen or state.line_unit != self.state.line_unit
        self.store.change(state)

    def _changed(self, old: DisplayState) -> None:
        state = self.state
        self.notes.changed(old)
        selected = old.selection.has_detail != state.selection.has_detail
        if old.lines_shown != state.lines_shown or selected:
            self.timeline.show(state)
            self.manager.arrange()
        self._distribute()

    def _show_selected(self) -> None:
        state = self.state
        query = Query.of_state(self.session, state.figures_state, state.scope)
        selected = query.step, query.filter, query.range, query.scope
        if selected == self._selected:
            return
        self._selected = selected
        self.headline.show_sentence(None)
        # after the frame of the key
        self.call_after_refresh(self._say, query, selected)
        parts = selection_parts(query)
        if not parts or not self.session.profile.timed:
            self.background.cancel("headline")
            self.headline.show_selection(parts, None)
            return
        self.background.compute(
            "headline", lambda: query.headline, lambda figures: self.headline.show_selection(parts, figures)
        )

    def _say(self, query: Query, selected: tuple[object, ...]) -> None:
        """Shows the answer in one sentence in the headline once it is computed, unless the selection changes."""

        def told() -> Sentence | None:
            from tpuprof_tui.views.sentence import sentence

            time.sleep(REST_SECONDS)
            return sentence(query) if self._selected == selected else None

        self._sentences.compute("sentence", told, self.headline.show_sentence)

    def _distribute(self) -> None:
        state = self.state
        self._show_selected()
        self.timeline.show(state)
        self.panes.tree.show(state)
        self.panes.detail.show(state)
        self.table.show(state)
        self.summary.show(state.figures_state)

    # keys

    def action_do(self, name: str, *arguments: str) -> None:
        """Runs the handler in ``actions`` of that name."""
        self.actions[name](*arguments)

    def back(self) -> bool:
        """Undoes one step (search, filter, selection ...); returns False if nothing is left to undo."""
        # a message is about what is undone
        self.prompt.say("")
        return self.navigation.back()

    def on_key(self, event: events.Key) -> None:
        """Takes the key after ``m``, ``M`` or ``'`` as the letter of a mark."""
        self.marks.take(event)

    def on_descendant_blur(self) -> None:
        """Stops waiting for the letter of a mark when the focus moves."""
        self.marks.stop_waiting()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Shows the keys of the focused pane in the bottom line."""
        if event.widget.id:
            self.prompt.pane = event.widget.id

    async def _perform(self, action: Action, pane: Widget | None) -> None:
        if pane is not None and pane.display:
            self.set_focus(pane, scroll_visible=False)
        node = {"app": self.app, "explorer": self}.get(action.pane, pane)
        await self.app.run_action(action.function, node)

    # messages of panes

    @on(messages.Request)
    def take_request(self, message: messages.Request) -> None:
        """Runs the handler of a pane's request."""
        message.stop()
        self.requests[message.name](*message.arguments)

    @on(messages.ShowMessage)
    def say(self, message: messages.ShowMessage) -> None:
        """Shows the text of a pane in the bottom line."""
        message.stop()
        self.prompt.say(message.text, of_pane=True)

    # callbacks of the parts

    def _open(self, text: str) -> CommandResult:
        path = Path(text).expanduser()
        if not text or not path.exists():
            return fault("the path of a capture; O lists those near this one")
        return partial(self._send, "open_capture", str(path))

    def _send(self, action: str, *arguments: Any) -> None:
        self.post_message(messages.CaptureRequest(action, *arguments))
