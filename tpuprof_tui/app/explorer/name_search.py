"""Search for names of instructions, in the table's order or in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, hits_in_table, hits_in_time
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Selection

from ..panes.prompt import Note
from ..panes.table import InstructionTable
from ..shell.background import Background
from .filtering import note_so_far
from .position import Position
from .prompting import Prompting
from .store import Store


class NameSearch:
    """Goes to the instructions whose name matches a text, while it is typed and from one to the next."""

    def __init__(
        self,
        store: Store,
        background: Background,
        prompting: Prompting,
        position: Position,
        table: InstructionTable,
        say: Callable[[str], None],
    ) -> None:
        self.store = store
        self.background = background
        self.prompting = prompting
        self.position = position
        self.table = table
        self.say = say
        self._hits: Hits | None = None
        self._hits_for: tuple[object, ...] = ()
        #: State and place where the search began.
        self._before: DisplayState | None = None
        self._from: tuple[int, int] = (0, -1)

    def ask(self) -> None:
        """Asks for a text and goes to its matches while it is typed."""
        self._before, self._from = self.store.state, self.position.here()
        self.prompting.ask("Search", "", self._typed, self._accepted, on_cancel=self._cancelled)

    def _typed(self, text: str) -> Note | None:
        origin = self._before or self.store.state
        if not text:
            self._return()
            return None

        def take(hits: Hits) -> None:
            if not self.prompting.prompt.is_open:
                return
            if not len(hits):
                self.store.change(replace(origin, search=text))
                self.prompting.prompt.tell(Note("no name matches", fault=True))
                return
            place = hits.place(*self._from) % len(hits)
            self._go_to(hits, place)
            self.prompting.prompt.tell(Note(f"{place + 1:,}/{len(hits):,}"))

        self._find(text, take)
        return note_so_far(self.prompting, self.background)

    def _accepted(self, text: str) -> Note | None:
        """Keeps what was found; an empty text repeats the search before."""
        origin = self._before or self.store.state
        wanted = text or origin.search
        if wanted != self.store.state.search:
            self.store.change(replace(self.store.state, search=wanted))
        if wanted and not text:
            self.step(1)
        elif wanted:
            self._find(wanted, self._tell_place)
        return None

    def _cancelled(self) -> None:
        self.background.cancel("search")
        self._return()

    def _return(self) -> None:
        """Back to where the search began."""
        if self._before is not None:
            self.store.change(self._before)
            if self.position.in_table:
                self.table.put(self._from[0])

    def step(self, steps: int) -> None:
        """The next match, or the one before."""
        text = self.store.state.search
        if not text:
            self.say("Nothing was searched for yet: / searches names.")
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                self.say(f"No name matches {text}.")
                return
            place, wrapped = hits.stepped(*self.position.here(), steps)
            self._go_to(hits, place)
            end = ", from the start again" if steps > 0 else ", from the end again"
            self.say(f"/{text}  {place + 1:,}/{len(hits):,}{end if wrapped else ''}")

        self._find(text, take)

    def _tell_place(self, hits: Hits) -> None:
        if len(hits):
            place = hits.place(*self.position.here()) % len(hits) + 1
            self.say(f"/{hits.text}  {place:,}/{len(hits):,}   n next, N previous, Esc clears")
        else:
            self.say(f"No name matches {hits.text}.")

    def _find(self, text: str, take: Callable[[Hits], None]) -> None:
        """Finds the matches of a text, unless they are known, and hands them on."""
        state, session = self.store.state, self.store.session
        wanted: tuple[object, ...]
        work: Callable[[], Hits]
        if self.position.in_table:
            wanted = ("table", text, self.table.rows.held)
            work = partial(hits_in_table, session, text, self.table.rows.order)
        else:
            wanted = ("time", text, state.scope, state.filter)
            work = partial(_hits_in_time, session, text, replace(state, in_window=False))

        def keep(hits: Hits) -> None:
            self._hits, self._hits_for = hits, wanted
            take(hits)

        if self._hits is not None and self._hits_for == wanted:
            self.background.cancel("search")
            take(self._hits)
        else:
            self.background.compute("search", work, keep)

    def _go_to(self, hits: Hits, place: int) -> None:
        session = self.store.session
        lane, row = session.place(int(hits.numbers[place]))
        start, end = session.span_of(lane, row)
        moved = self.store.state.showing(start, max(end, start + 1)).at(start)
        selection = Selection(session.unit_of(lane), lane, row)
        self.store.change(replace(moved, selection=selection, search=hits.text))


def _hits_in_time(session: Session, text: str, state: DisplayState) -> Hits:
    return hits_in_time(session, text, numbers_shown(session, state))
