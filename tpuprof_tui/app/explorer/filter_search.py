"""Filter and search of the explorer: what is typed is judged at once, what takes long runs in a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from textual import on, work
from textual.message import Message
from textual.worker import Worker, get_current_worker

from tpuprof_tui.analysis.selecting.filter_masks import Passing, is_known, numbers_shown, passing
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter
from tpuprof_tui.analysis.selecting.search import Hits, hits_in_table, hits_in_time
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Selection, ViewState

from ..overlays.asking import Asking
from ..panes.keybar import KeyBar
from ..panes.prompt import Note
from ..panes.table import InstructionTable
from ..panes.table_rows import AT_ONCE
from ..panes.tree import GroupTree
from ..shell.messages import tell_failure

#: What a filter can look like; shown until one is typed.
_FILTER_HINT: Final = "dur>10us  name=a*  | !role=wait  /regex/"
#: Takes a result in the event loop.
Take = Callable[[Any], None]


class Finding(Asking):
    """Filters and searches; the explorer owns the state."""

    session: Session
    view: ViewState
    _hits: Hits | None = None
    _hits_for: tuple[object, ...] = ()
    _before_search: ViewState | None = None
    _from: tuple[int, int] = (0, -1)

    class Found(Message):
        """A thread has found what was asked for."""

        def __init__(self, kind: str, ticket: int, take: Take, result: Any) -> None:
            super().__init__()
            self.kind = kind
            self.ticket = ticket
            self.take = take
            self.result = result

    def _set(self, view: ViewState) -> None:
        raise NotImplementedError

    @property
    def table(self) -> InstructionTable:
        """The table pane."""
        return self.query_one("#table", InstructionTable)

    # threads

    _tickets: dict[str, int]

    def compute(self, kind: str, work_out: Callable[[], Any], take: Take, *, at_once: bool) -> None:
        """Works something out, large things in a thread; of one kind only the latest result is taken.

        Args:
            kind: What supersedes what.
            work_out: Makes the result.
            take: Takes it, in the event loop.
            at_once: Whether it is small enough not to need a thread.
        """
        if "_tickets" not in self.__dict__:
            self._tickets = {}
        ticket = self._tickets[kind] = self._tickets.get(kind, 0) + 1
        if at_once:
            take(work_out())
        else:
            self._work_out(kind, ticket, work_out, take)

    @work(thread=True, group="finding", exit_on_error=False, description="finding")
    def _work_out(self, kind: str, ticket: int, work_out: Callable[[], Any], take: Take) -> None:
        worker = get_current_worker()
        if self._tickets[kind] != ticket:
            return
        result = work_out()
        if not worker.is_cancelled:
            self.post_message(self.Found(kind, ticket, take, result))

    @on(Found)
    def found(self, message: Found) -> None:
        """Takes a result, unless another one is wanted by now."""
        message.stop()
        if self._tickets.get(message.kind) == message.ticket:
            message.take(message.result)

    @on(Worker.StateChanged)
    def failed(self, event: Worker.StateChanged) -> None:
        """What goes wrong in a thread is told."""
        tell_failure(self, event)

    @property
    def _is_small(self) -> bool:
        return self.session.profile.instructions <= AT_ONCE

    # filter

    def action_filter(self) -> None:
        """Asks for the filter; in the tree for that of its nodes."""
        if self._in_tree():
            return
        self.ask("Filter", self.view.filter, self._judged_filter, self._taken_filter, on_cancel=self._forget_filter)
        if not self.view.filter:
            self.prompt.tell(self._filter_hint())

    def _judged_filter(self, text: str) -> Note | None:
        """The fault of a filter; without one how many instructions pass, as soon as that is known."""
        fault = self._fault_of(text)
        if fault is not None:
            self._forget_filter()
            return fault
        if not text.strip():
            self._forget_filter()
            return self._filter_hint()
        self.compute("filter", lambda: passing(self.session, text.strip()), self._count_passing, at_once=self._is_small)
        return self._note_so_far()

    def _note_so_far(self) -> Note | None:
        """What was told last, until more is known; but no fault of another text."""
        note = self.prompt.note
        return None if note is not None and note.fault and not self._is_small else note

    def _forget_filter(self) -> None:
        self.compute("filter", lambda: None, lambda _: None, at_once=True)

    def _fault_of(self, text: str) -> Note | None:
        try:
            compile_filter(text, self.session.profile)
        except FilterError as error:
            message = error.message.rpartition(" (at column ")[0] or error.message
            return Note(f"{message}. {error.hint}" if error.hint else message, error.column, fault=True)
        return None

    def _filter_hint(self) -> Note:
        return Note(self.session.profile.vocabulary.phrase("filter_hint", _FILTER_HINT))

    def _count_passing(self, found: Passing) -> None:
        self.prompt.tell(Note(f"{found.count:,} of {self.session.profile.instructions:,} pass"))

    def _taken_filter(self, text: str) -> Note | None:
        fault = self._fault_of(text)
        if fault is None:
            self.apply_filter(text.strip())
        return fault

    def apply_filter(self, text: str) -> None:
        """Lets all panes show only what passes; they get the filter when its masks are there."""
        self._forget_filter()
        if is_known(self.session, text):
            self._take_filter(text)
            return
        self.query_one(KeyBar).say("Filtering ...")
        self.compute("filter", lambda: passing(self.session, text).text, self._take_filter, at_once=self._is_small)

    def _take_filter(self, text: str) -> None:
        self._set(replace(self.view, filter=text))
        if not text:
            return
        count, every = passing(self.session, text).count, self.session.profile.instructions
        self.query_one(KeyBar).say(
            f"{count:,} of {self.session.profile.vocabulary.event.of(every)} pass. & changes the filter, Esc clears it."
        )

    def _in_tree(self) -> bool:
        """Whether the tree is focused: it asks for itself."""
        if isinstance(self.focused, GroupTree):
            self.focused.ask_filter()
            return True
        return False

    # search

    def _in_table(self) -> bool:
        """Whether one searches in the order of the table; else in time."""
        table = self.table
        # while a text is asked for, the pane that asked
        where = self._focused_before if self.focused in (None, self.prompt) else self.focused
        return table.display and where is table

    def action_search(self) -> None:
        """Asks for a text and goes to its matches while it is typed; in the tree only they stay."""
        if self._in_tree():
            return
        self._before_search = self.view
        if not self.prompt.is_open:
            self._focused_before = self.focused
        self._from = self._here()
        self.ask("Search", "", self._typed_search, self._taken_search, on_cancel=self._left_search)

    def _typed_search(self, text: str) -> Note | None:
        origin = self._before_search or self.view
        if not text:
            self._return()
            return None

        def take(hits: Hits) -> None:
            if not self.prompt.is_open:
                return
            if not len(hits):
                self._set(replace(origin, search=text))
                self.prompt.tell(Note("no name matches", fault=True))
                return
            place = hits.place(*self._from) % len(hits)
            self._go_to_hit(hits, place)
            self.prompt.tell(Note(f"{place + 1:,}/{len(hits):,}"))

        self._with_hits(text, take)
        return self._note_so_far()

    def _taken_search(self, text: str) -> Note | None:
        """Keeps what was found; an empty text repeats the search before."""
        origin = self._before_search or self.view
        wanted = text or origin.search
        if wanted != self.view.search:
            self._set(replace(self.view, search=wanted))
        if wanted and not text:
            self._step_search(1)
        elif wanted:
            self._with_hits(wanted, self._tell_place)
        return None

    def _left_search(self) -> None:
        self.compute("search", lambda: None, lambda _: None, at_once=True)
        self._return()

    def _return(self) -> None:
        """Back to where the search began."""
        if self._before_search is not None:
            self._set(self._before_search)
            if self._in_table():
                self.table.put(self._from[0])

    def action_search_next(self) -> None:
        """The next match."""
        self._step_search(1)

    def action_search_previous(self) -> None:
        """The match before."""
        self._step_search(-1)

    def _step_search(self, steps: int) -> None:
        text = self.view.search
        if not text:
            self.query_one(KeyBar).say("Nothing was searched for yet: / searches names.")
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                self.query_one(KeyBar).say(f"No name matches {text}.")
                return
            place, wrapped = hits.stepped(*self._here(), steps)
            self._go_to_hit(hits, place)
            end = ", from the start again" if steps > 0 else ", from the end again"
            self.query_one(KeyBar).say(f"/{text}  {place + 1:,}/{len(hits):,}{end if wrapped else ''}")

        self._with_hits(text, take)

    def _tell_place(self, hits: Hits) -> None:
        if len(hits):
            place = hits.place(*self._here()) % len(hits) + 1
            told = f"/{hits.text}  {place:,}/{len(hits):,}   n next, N previous, Esc clears"
        else:
            told = f"No name matches {hits.text}."
        self.query_one(KeyBar).say(told)

    def _here(self) -> tuple[int, int]:
        """Where one is: the key of the order one goes through, and the instruction's number (-1: none)."""
        selection = self.view.selection
        table = self.table
        if self._in_table():
            return table.rows.position, int(table.rows.order[table.rows.position]) if len(table.rows.order) else -1
        if selection.row < 0:
            return self.view.cursor, -1
        start, _ = self.session.span_of(selection.lane, selection.row)
        return start, self.session.number(selection.lane, selection.row)

    def _with_hits(self, text: str, take: Take) -> None:
        """Finds the matches of a text, unless they are known, and hands them on."""
        table = self.table
        view, session = self.view, self.session
        wanted: tuple[object, ...]
        work_out: Callable[[], Hits]
        if self._in_table():
            wanted = ("table", text, table.rows.held)
            work_out = partial(hits_in_table, session, text, table.rows.order)
        else:
            wanted = ("time", text, view.scope, view.filter)
            work_out = partial(_hits_over_time, session, text, replace(view, in_window=False))

        def keep(hits: Hits) -> None:
            self._hits, self._hits_for = hits, wanted
            take(hits)

        if self._hits is not None and self._hits_for == wanted:
            self.compute("search", lambda: self._hits, take, at_once=True)
        else:
            self.compute("search", work_out, keep, at_once=self._is_small)

    def _go_to_hit(self, hits: Hits, place: int) -> None:
        lane, row = self.session.place(int(hits.numbers[place]))
        start, end = self.session.span_of(lane, row)
        moved = self.view.showing(start, max(end, start + 1)).at(start)
        selection = Selection(self.session.unit_of(lane), lane, row)
        self._set(replace(moved, selection=selection, search=hits.text))


def _hits_over_time(session: Session, text: str, view: ViewState) -> Hits:
    return hits_in_time(session, text, numbers_shown(session, view))
