"""The explorer of one profile: owns the view's state, places the panes, passes the state on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Rows, ViewState
from tpuprof_tui.analysis.selecting.step_filter import chosen_step
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import EMPTY_CAPTURE

from ..drawing.compositing import DrawnScreen
from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..panes.detail import DetailPane
from ..panes.headline import HeadlineBar
from ..panes.keybar import KeyBar, LongMessage
from ..panes.problems import ProblemsPane
from ..panes.prompt import Prompt
from ..panes.summary.summary import SummaryPane
from ..panes.table import InstructionTable
from ..panes.timeline.timeline import Timeline
from ..panes.tree import GroupTree
from ..settings.actions import bindings
from ..shell.messages import Change, Say, ShowDetail
from .command_line import Commanding
from .export_requests import ExportKeys
from .live_summary import LiveKeys
from .navigation_history import Returning
from .table_requests import TableKeys

#: From this size on tree, timeline, tabs and detail stand beside one another.
WIDE, HIGH = 120, 30
TREE_WIDTH = 40
DETAIL_WIDTH = 42
#: What the figures of the tree are: window, range and filter change those of timeline and summary alone.
TREE_FIGURES = "util, busy, count of whole capture"
TABS = ("summary", "table", "problems")
TAB_TITLES = {"summary": "3 Summary", "table": "2 Table", "problems": "4 Problems"}


class ExplorerScreen(ExportKeys, LiveKeys, TableKeys, Commanding, Returning, DrawnScreen[None]):
    """Tree, timeline, tabs (summary, table, problems) and detail of one profile."""

    AUTO_FOCUS = "#timeline"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("explorer")]
    CSS = """
    ExplorerScreen { layers: base above; }
    ExplorerScreen .pane { border: round $border-blurred; border-title-color: $text-muted;
        border-subtitle-color: $text-muted; background: $background; padding: 0; }
    ExplorerScreen .pane:focus { border: round $accent; border-title-color: $accent; border-title-style: bold; }
    ExplorerScreen.small .pane { border: none; border-top: solid $border-blurred; }
    ExplorerScreen.small .pane:focus { border: none; border-top: solid $accent; }
    ExplorerScreen.plain .pane:focus { border-title-style: reverse; }
    ExplorerScreen #lower { height: 1fr; }
    ExplorerScreen #middle { width: 1fr; }
    ExplorerScreen .tab { width: 1fr; height: 1fr; }
    """

    def __init__(
        self, session: Session, palette: Palette, glyphs: Glyphs, view: ViewState | None = None,
        others: Sequence[tuple[str, str]] = (),
    ) -> None:  # fmt: skip
        super().__init__(classes="" if palette.colour else "plain")
        self.session = session
        self.palette = palette
        self.glyphs = glyphs
        self.others = others
        profile = session.profile
        self.view = view or ViewState.of(profile.start_ns, profile.end_ns)
        self.tab = "summary"
        self.maximised = ""
        self.small = False
        self.tree_wanted = True
        self.detail_wanted: bool | None = None
        self.rows_chosen = False
        self._titles: dict[tuple[str, str], str] = {}

    def compose(self) -> ComposeResult:
        """All panes; which of them show is decided by size and state."""
        self.small = _is_small(self.app.size)
        self.set_class(self.small, "small")
        yield HeadlineBar(self.palette)
        # what does not show is not laid out first
        shown = self._displays()
        with Horizontal(id="body"):
            yield _pane(GroupTree(self.session, self.palette, self.glyphs, self.others), shown)
            with Vertical(id="middle"):
                yield _pane(Timeline(self.session, self.view, self.palette, self.glyphs), shown)
                with Horizontal(id="lower"):
                    yield _pane(SummaryPane(self.session, self.view, self.palette, self.glyphs), shown)
                    yield _pane(InstructionTable(self.session, self.view, self.palette, self.glyphs), shown)
                    yield _pane(ProblemsPane(self.session, self.palette), shown)
                    yield _pane(DetailPane(self.session, self.palette, self.glyphs), shown)
        yield Prompt(self.palette, "timeline", self.session.profile.vocabulary)
        yield LongMessage()

    def on_mount(self) -> None:
        """Everything shows the first state."""
        if self not in self.app.screen_stack or not self._is_whole():
            return
        self.query_one(HeadlineBar).show_session(self.session, several=len(self.others) > 1)
        self._pass_on()

    def _is_whole(self) -> bool:
        """Whether all panes are there: replaced, or the application left, while they were mounted, some are gone."""
        panes = (HeadlineBar, GroupTree, Timeline, SummaryPane, InstructionTable, DetailPane)
        return all(self.query(pane) for pane in panes)

    # panes

    @property
    def timeline(self) -> Timeline:
        """The timeline pane."""
        return self.query_one("#timeline", Timeline)

    @property
    def summary(self) -> SummaryPane:
        """The summary pane."""
        return self.query_one("#summary", SummaryPane)

    def on_resize(self, event: events.Resize) -> None:
        """Another size may need another layout."""
        if not self._is_whole():
            return
        small = _is_small(event.size)
        if small != self.small:
            self.small = small
            self.maximised = ""
            self.set_class(small, "small")
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int | None = None, height: int | None = None) -> None:
        """Shows the panes that this size and state ask for."""
        width = self.size.width if width is None else width
        height = self.size.height if height is None else height
        cores = self.small and not self.maximised and self.view.scope.everything
        rows: Rows = "cores" if cores else "engines"
        if self.view.rows != rows and not self.rows_chosen:
            self._set(replace(self.view, rows=rows))
        one = self.maximised
        shown = self._displays()
        for name, display in shown.items():
            self.query_one(f"#{name}").display = display
        self.query_one("#middle").display = one != "tree"
        self.query_one("#lower").display = any(shown[name] for name in (*TABS, "detail"))
        self._size_panes(width, height)
        self.table.activate(shown["table"])
        self.summary.activate(shown["summary"])
        self._title()
        focused = self.focused
        if focused is None or (focused.id in shown and not shown[focused.id]):
            self._focus(one or "timeline")

    def _displays(self) -> dict[str, bool]:
        """Which panes show, by name."""
        if self.maximised:
            return {name: name == self.maximised for name in ("tree", "timeline", "detail", *TABS)}
        room = not self.small
        detail = self.view.selection.row >= 0 if self.detail_wanted is None else self.detail_wanted
        return {
            "tree": room and self.tree_wanted, "timeline": True, "detail": room and detail,
            **{name: name == self.tab for name in TABS},
        }  # fmt: skip

    def _size_panes(self, width: int, height: int) -> None:
        timeline, tree, detail = self.timeline, self.query_one("#tree"), self.query_one("#detail")
        frame = 1 if self.small else 2
        wanted = timeline.wanted_height() + frame
        body = height - 2
        if self.maximised:
            timeline.styles.height = tree.styles.width = detail.styles.width = "1fr"
            return
        share = body - 8 if self.small else body * 55 // 100
        timeline.styles.height = max(min(wanted, share), 3 + frame) if body > 8 else "1fr"
        tree.styles.width = TREE_WIDTH
        detail.styles.width = min(max(DETAIL_WIDTH, (width - TREE_WIDTH) * 38 // 100), 64)

    def _title(self) -> None:
        """Titles of the tabs, the visible one marked; what it holds below."""
        texts = {"summary": self.summary.title_text, "table": self.table.title_text}
        told = texts[self.tab]() if self.tab in texts else ""
        problems = len(self.session.profile.problems)
        parts: list[Content] = []
        for name in TABS:
            title = TAB_TITLES[name] + (f" ({problems})" if name == "problems" and problems else "")
            chosen = name == self.tab
            text = f"[{title}]" if chosen else f" {title} "
            look = "bold" if chosen else "dim" if self.palette.colour else ""
            # a click on a tab is as good as its key
            parts.append(Content.styled(text, f"{look} @click=screen.{name}".lstrip()))
        if self.small and told:
            parts.append(Content.styled(f" {told}", "dim" if self.palette.colour else ""))
        self._put_title(self.tab, "border_title", Content("").join(parts))
        self._put_title(self.tab, "border_subtitle", Content(told))
        self.query_one(KeyBar).show_note(self.table.place_text() if self.table.display else "")
        tree = self.query_one("#tree", GroupTree).filter
        passing = f"  &{clean(tree)}" if tree else ""
        figures = f"  {TREE_FIGURES}" if self.small else ""
        self._put_title("tree", "border_title", Content(f"{self.session.say('{Units}')} (t){passing}{figures}"))
        self._put_title("tree", "border_subtitle", Content(TREE_FIGURES))
        self._put_title("detail", "border_title", Content("Detail (i)"))

    def _put_title(self, pane: str, where: str, title: Content) -> None:
        """Sets a title that has changed: each setting repaints the whole pane."""
        if self._titles.get((pane, where)) != title.plain:
            self._titles[pane, where] = title.plain
            setattr(self.query_one(f"#{pane}"), where, title)

    @on(InstructionTable.Retitled)
    @on(SummaryPane.Retitled)
    @on(GroupTree.Retitled)
    def retitle(self) -> None:
        """A pane is about something else."""
        self._title()

    # state

    @on(Change)
    def change(self, message: Change) -> None:
        """A pane asks for another state."""
        message.stop()
        view = message.update(self.view)
        self.rows_chosen = self.rows_chosen or view.rows != self.view.rows
        self._set(view)

    def _set(self, view: ViewState) -> None:
        view = self.rows_scoped(view)
        # what an overlay answers can come when another capture has taken the place of this one
        if view == self.view or self not in self.app.screen_stack:
            return
        old, self.view = self.view, view
        selected = (old.selection.row < 0) != (view.selection.row < 0)
        if old.lines_shown != view.lines_shown or selected:
            self.timeline.show(view)
            self._arrange()
        self._pass_on()

    def _pass_on(self) -> None:
        view = self.view
        self.query_one(HeadlineBar).show_step(self._step_text())
        self.timeline.show(view)
        self.query_one("#tree", GroupTree).show(view)
        self.query_one("#detail", DetailPane).show(view)
        self.table.show(view)
        self.summary.show(view.figured)

    def _step_text(self) -> str:
        """The step that the panes are about; empty: none."""
        number = chosen_step(self.view.filter) if self.view.filter else None
        return "" if number is None else f"{self.session.steps.word.one} {number} alone"

    @on(Say)
    def say(self, message: Say) -> None:
        """A pane has something to say."""
        message.stop()
        self.query_one(KeyBar).say(message.text)

    @on(ShowDetail)
    def show_detail(self, message: ShowDetail) -> None:
        """A pane asks for the detail of the selection."""
        message.stop()
        if self.view.selection.row < 0:
            self.query_one(KeyBar).say(
                self.session.say(
                    "Nothing runs at the cursor: . and , go to the next and previous {event}."
                    if self.session.profile.instructions
                    else EMPTY_CAPTURE
                )
            )
        elif self.small:
            self._maximise("detail")
        else:
            self.detail_wanted = True
            self._arrange()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The bottom line tells the keys of the focused pane."""
        if event.widget.id:
            self.query_one(KeyBar).show_pane(event.widget.id)

    # keys

    def _focus(self, name: str) -> None:
        self.query_one(f"#{name}").focus(scroll_visible=False)

    def _go(self, name: str) -> None:
        """Focuses a pane; on a small screen it fills it."""
        if name in TABS:
            self.tab = name
        if self.small or self.maximised:
            self._maximise(name)
        else:
            self._arrange()
        self._focus(name)

    def _maximise(self, name: str) -> None:
        self.remember_place(name)
        self.maximised = name
        if name in TABS:
            self.tab = name
        self._arrange()
        if name:
            self._focus(name)

    def action_timeline(self) -> None:
        """The timeline."""
        self._go("timeline")

    def action_table(self) -> None:
        """The table."""
        self._go("table")

    def action_summary(self) -> None:
        """The summary."""
        self._go("summary")

    def action_problems(self) -> None:
        """The problems."""
        self._go("problems")

    def action_next_pane(self) -> None:
        """The next pane that shows."""
        self._cycle(1)

    def action_previous_pane(self) -> None:
        """The previous pane that shows."""
        self._cycle(-1)

    def _cycle(self, step: int) -> None:
        if self.maximised:
            order = ["timeline", "table", "summary", "problems"]
            now = order.index(self.maximised) if self.maximised in order else -step
            self._go(order[(now + step) % len(order)])
            return
        order = [name for name in ("tree", "timeline", self.tab, "detail") if self.query_one(f"#{name}").display]
        focused = self.focused.id if self.focused is not None else ""
        now = order.index(focused) if focused in order else -step
        self._focus(order[(now + step) % len(order)])

    def action_tree(self) -> None:
        """The tree: shown and focused, or hidden."""
        self._toggle("tree")

    def action_detail(self) -> None:
        """The detail: shown, or hidden."""
        if self.view.selection.row < 0 and not self.query_one("#detail").display:
            self.timeline.action_select()
            if not self.small:
                self.detail_wanted = True
                self._arrange()
            return
        self._toggle("detail")

    def _toggle(self, name: str) -> None:
        shown = self.query_one(f"#{name}").display
        if shown and self.maximised:
            self.restore()
            return
        if self.small or self.maximised:
            self._maximise(name)
            return
        if name == "tree":
            self.tree_wanted = not shown
        else:
            self.detail_wanted = not shown
        self._arrange()
        if not shown:
            self._focus(name)

    def action_maximise(self) -> None:
        """The focused pane fills the screen, or no longer does."""
        focused = self.focused.id if self.focused is not None else None
        if self.maximised:
            self.restore()
        elif focused is not None:
            self._maximise(focused)


def _is_small(size: Size) -> bool:
    """Whether a screen has no room for panes beside one another."""
    return size.width < WIDE or size.height < HIGH


def _pane(widget: Widget, shown: dict[str, bool]) -> Widget:
    name = widget.id or ""
    widget.add_class("pane", *(("tab",) if name in TABS else ()))
    widget.display = shown[name]
    return widget
