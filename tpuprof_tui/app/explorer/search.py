"""Search: filters nodes in the tree, lines in detail and problems, and instruction names everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from tpuprof_tui.analysis.counter_lines import ancestors, counter_lines
from tpuprof_tui.analysis.selecting.filter_masks import numbers_shown
from tpuprof_tui.analysis.selecting.search import Hits, hits_in_table, hits_in_time, pattern_of
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, Selection

from ..panes.detail import DetailPane
from ..panes.lines import LinesView
from ..panes.problems import ProblemsPane
from ..panes.prompt import Hint, PromptRequest
from ..panes.tree import GroupTree
from ..settings.actions import ActionTable
from .filtering import pending_hint
from .services import Services


class Search:
    """Dispatches the search keys to the search of the focused pane."""

    def __init__(self, services: Services) -> None:
        self.names, self.lines = NameSearch(services), LineSearch(services)
        self.prompting = services.prompting
        self.actions: ActionTable = {
            "search": self._ask, "search-next": partial(self._step, 1), "search-previous": partial(self._step, -1)
        }  # fmt: skip

    def _ask(self) -> None:
        pane = self.prompting.pane
        if isinstance(pane, GroupTree):
            pane.ask_filter()
        elif isinstance(pane, DetailPane | ProblemsPane) and pane.has_cursor:
            self.lines.ask(pane)
        else:
            self.names.ask()

    def _step(self, steps: int) -> None:
        """Goes to the next match of the pane's own line search if it has one, else of the name search."""
        pane = self.prompting.pane
        if isinstance(pane, LinesView) and self.lines.searched(pane):
            self.lines.step(pane, steps)
        else:
            self.names.step(steps)


class NameSearch:
    """Incremental search of instruction names, with next and previous.

    If no name matches, Enter goes to the counters that match.
    """

    def __init__(self, services: Services) -> None:
        self.store, self.background, self.say = services.store, services.background, services.say
        self.prompting, self.position = services.prompting, services.position
        self.manager, self.table = services.manager, services.manager.panes.table
        self._hits: Hits | None = None
        self._hits_key: tuple[object, ...] = ()
        #: State and position (key, number) at which the search began.
        self._state_before: DisplayState | None = None
        self._start_position: tuple[int, int] = (0, -1)

    def ask(self) -> None:
        """Opens the prompt; goes to the first match while the text is typed."""
        self._state_before, self._start_position = self.store.state, self.position.current()
        self.prompting.ask(PromptRequest("Search", "", self._typed, self._accepted, self._cancelled))

    def _typed(self, text: str) -> Hint | None:
        origin = self._state_before or self.store.state
        if not text:
            self._return()
            return None

        def take(hits: Hits) -> None:
            if not self.prompting.prompt.is_open:
                return
            if not len(hits):
                self.store.change(replace(origin, search=text))
                counters = len(self._counters(text))
                hint = f"no name, {counters:,} counters match: Enter shows them" if counters else "no name matches"
                self.prompting.prompt.show_hint(Hint(hint, fault=not counters))
                return
            index = hits.index(*self._start_position) % len(hits)
            self._go_to(hits, index)
            self.prompting.prompt.show_hint(Hint(f"{index + 1:,}/{len(hits):,}"))

        self._find(text, take)
        return pending_hint(self.prompting, self.background)

    def _accepted(self, text: str) -> Hint | None:
        """Keeps the match; an empty text repeats the previous search."""
        origin = self._state_before or self.store.state
        searched = text or origin.search
        if searched != self.store.state.search:
            self.store.change(replace(self.store.state, search=searched))
        if searched and not text:
            self.step(1)
        elif searched:
            self._find(searched, self._show_position)
        return None

    def _cancelled(self) -> None:
        self.background.cancel("search")
        self._return()

    def _return(self) -> None:
        """Restores the state and table row from before the search."""
        if self._state_before is not None:
            self.store.change(self._state_before)
            if self.position.in_table:
                self.table.put(self._start_position[0])

    def step(self, steps: int) -> None:
        """Goes to the next or the previous match."""
        text = self.store.state.search
        if not text:
            self.say("Nothing was searched for yet: / searches names.")
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                self._go_to_counter(text, steps)
                return
            index, wrapped = hits.stepped(*self.position.current(), steps)
            self._go_to(hits, index)
            end = ", from the start again" if steps > 0 else ", from the end again"
            self.say(f"/{text}  {index + 1:,}/{len(hits):,}{end if wrapped else ''}")

        self._find(text, take)

    def _show_position(self, hits: Hits) -> None:
        if len(hits):
            number = hits.index(*self.position.current()) % len(hits) + 1
            self.say(f"/{hits.text}  {number:,}/{len(hits):,}   n next, N previous, Esc clears")
        else:
            self._go_to_counter(hits.text, 1)

    def _counters(self, text: str) -> list[int]:
        """Line numbers of the counters whose label matches a text; folded groups of counters are left out."""
        pattern = pattern_of(text)
        lines = enumerate(counter_lines(self.store.session))
        return [number for number, line in lines if not line.is_parent and pattern.search(line.label)]

    def _go_to_counter(self, text: str, steps: int) -> None:
        """Selects the next or the previous counter line that matches, and unfolds the groups it is in."""
        found, lines = self._counters(text), counter_lines(self.store.session)
        if not found:
            self.say(f"No name matches {text}.")
            return
        current = self.store.state.selection.counters
        ahead = [number for number in found if (number > current if steps > 0 else number < current)]
        number = (ahead or found)[0 if steps > 0 else -1]
        # counter lines are shown among the lanes of the timeline
        self.manager.go("timeline")
        state = self.store.state
        unfolded = dict.fromkeys((*state.unfolded, *ancestors(lines, number)))
        selection = Selection(lines[number].group, counters=number)
        self.store.change(replace(state, scope=Scope(), line_unit="engines", unfolded=tuple(unfolded),
                                  selection=selection, search=text))  # fmt: skip
        self.say(f"/{text}  counter {found.index(number) + 1:,}/{len(found):,}   n next, N previous, Esc clears")

    def _find(self, text: str, take: Callable[[Hits], None]) -> None:
        """Passes the matches of a text to ``take``: from the cache, or computed in the background."""
        state, session = self.store.state, self.store.session
        rows, in_table, shown = self.table.rows, self.position.in_table, replace(state, in_window=False)
        key = ("table", text, rows.current_key) if in_table else ("time", text, state.scope, state.filter)
        order = rows.order

        def work() -> Hits:
            if in_table:
                return hits_in_table(session, text, order)
            return hits_in_time(session, text, numbers_shown(session, shown))

        def keep(hits: Hits) -> None:
            self._hits, self._hits_key = hits, key
            take(hits)

        if self._hits is not None and self._hits_key == key:
            self.background.cancel("search")
            take(self._hits)
        else:
            self.background.compute("search", work, keep)

    def _go_to(self, hits: Hits, index: int) -> None:
        session = self.store.session
        lane, row = session.locate(int(hits.numbers[index]))
        start, end = session.span_of(lane, row)
        new_state = self.store.state.showing(start, max(end, start + 1)).at(start)
        selection = Selection(session.unit_of(lane), lane, row)
        self.store.change(replace(new_state, selection=selection, search=hits.text))


class LineSearch:
    """Incremental search of the text lines of a pane."""

    def __init__(self, services: Services) -> None:
        self.prompting, self.say = services.prompting, services.say
        #: Last text searched for, by widget id of the pane.
        self._texts: dict[str | None, str] = {}

    def ask(self, pane: LinesView) -> None:
        """Opens the prompt; goes to the first matching line while the text is typed."""
        before = pane.cursor

        def typed(text: str) -> Hint | None:
            found = _matching_items(pane, text) if text else []
            if not found:
                pane.go_to(before)
                return Hint("no line matches", fault=True) if text else None
            index = next((index for index, item in enumerate(found) if item >= before), 0)
            pane.go_to(found[index])
            return Hint(f"{index + 1:,}/{len(found):,}")

        def accepted(text: str) -> Hint | None:
            if text:
                self._texts[pane.id] = text
            elif self.searched(pane):
                self.step(pane, 1)
            return None

        self.prompting.ask(PromptRequest("Search here", "", typed, accepted, lambda: pane.go_to(before)))

    def searched(self, pane: LinesView) -> bool:
        """Whether a text was searched for in a pane."""
        return pane.id in self._texts

    def step(self, pane: LinesView, steps: int) -> None:
        """Goes to the next or the previous match in a pane that was searched."""
        text = self._texts[pane.id]
        found = _matching_items(pane, text)
        if not found:
            self.say(f"No line here matches {text}.")
            return
        ahead = [item for item in found if (item > pane.cursor if steps > 0 else item < pane.cursor)]
        target = (ahead or found)[0 if steps > 0 else -1]
        pane.go_to(target)
        end = "" if ahead else ", from the start again" if steps > 0 else ", from the end again"
        self.say(f"/{text}  {found.index(target) + 1:,}/{len(found):,}{end}")


def _matching_items(pane: LinesView, text: str) -> list[int]:
    """Indices of the items of a pane with a matching line, in display order, without duplicates."""
    pattern = pattern_of(text)
    found = (item for item, strip in zip(pane.items, pane.lines, strict=False)
             if item >= 0 and pattern.search(strip.text))  # fmt: skip
    return list(dict.fromkeys(found))
