"""Filter and search: the filter shared by all panes, and the search of names, of nodes, and of the lines of a pane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.analysis.counter_lines import ancestors, counter_lines
from tpuprof_tui.analysis.events import numbers_in, numbers_shown
from tpuprof_tui.analysis.selecting.filter_masks import (
    apply_filter,
    is_filter_cached,
    none_passes,
    with_condition,
)
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter, with_step
from tpuprof_tui.analysis.selecting.search import Hits, hits_in_table, hits_in_time, pattern_of
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import step_span
from tpuprof_tui.formats.parsing import step_typed

from ..panes.detail import DetailPane
from ..panes.lines import LinesView
from ..panes.problems import ProblemsPane
from ..panes.prompt import Hint, PromptRequest
from ..panes.tree import GroupTree, node_conditions
from ..shell.messages import Background
from .panes import CommandResult, ExplorerPart, PaneManager, fault

#: Examples of filters, shown while the prompt is empty.
_HINT: Final = "dur>10us  name=a*  | !role=wait  /regex/"


class Filtering(ExplorerPart):
    """Prompts for a filter, validates it, and applies it to all panes."""

    def __init__(self, manager: PaneManager, background: Background) -> None:
        super().__init__(manager, background)
        self.actions = {"filter": self.ask}
        self.requests = {"narrow": self.narrow, "narrow-to-node": self.narrow_to_node, "step": self.choose_step}
        self.commands = {"filter": self._accepted, "step": self._step}

    def ask(self) -> None:
        """Opens the prompt for the filter; in the tree, for the filter of its nodes."""
        pane = self.prompt.behind
        if isinstance(pane, GroupTree):
            pane.ask_filter()
            return
        text = self.state.filter
        self.prompt.open(
            PromptRequest("Filter", f"{text} ".lstrip(), self._validate, self._accepted, self._stop_counting)
        )
        if not text:
            self.prompt.show_hint(self._hint())

    def _validate(self, text: str) -> Hint | None:
        """The fault of a filter, or None; a valid one starts counting in the background how many events pass."""
        found = self.fault_of(text)
        if found is not None or not text.strip():
            self._stop_counting()
            return found or self._hint()
        scope = self.state.scope
        self.background.compute(
            "filter", lambda: self._counted(text.strip(), scope),
            lambda counted: self.prompt.show_hint(Hint(f"{counted[0]:,} of {counted[1]:,} pass")),
        )  # fmt: skip
        return self.pending_hint()

    def fault_of(self, text: str) -> Hint | None:
        """The fault of a filter, with its column; None if it is valid."""
        try:
            compile_filter(text, self.session.profile)
        except FilterError as error:
            message = error.message.rpartition(" (at column ")[0] or error.message
            return fault(f"{message}. {error.hint}" if error.hint else message, error.column)
        return None

    def _hint(self) -> Hint:
        return Hint(self.session.profile.vocabulary.phrase("filter_hint", _HINT))

    def _counted(self, text: str, scope: Scope) -> tuple[int, int]:
        session = self.session
        found = apply_filter(session, text)
        if scope.everything:
            return found.count, session.profile.event_count
        numbers = numbers_in(session, scope)
        return int(found.mask[numbers].sum()), len(numbers)

    def _stop_counting(self) -> None:
        self.background.cancel("filter")

    def _accepted(self, text: str) -> Hint | None:
        found = self.fault_of(text)
        if found is None:
            self.apply(text.strip())
        return found

    def apply(self, text: str) -> None:
        """Applies a filter to all panes, once its masks are computed (in the background if they are not cached)."""
        self._stop_counting()
        session = self.session
        if is_filter_cached(session, text):
            self._take(text)
            return
        self.say("Filtering ...")
        self.background.compute("filter", lambda: apply_filter(session, text).text, self._take)

    def _take(self, text: str) -> None:
        self.change(replace(self.state, filter=text))
        if not text:
            return
        count, total = self._counted(text, self.state.scope)
        if not count:
            session = self.session
            self.background.compute("emptying", lambda: none_passes(session, text), self._say_none)
            return
        counted = f"{count:,} of {self.session.profile.vocabulary.event.of(total)} pass."
        self.say(f"{counted} & changes the filter, Esc clears it.")

    def _say_none(self, sentence: str) -> None:
        self.say(f"{sentence} & changes the filter.")

    # narrowing

    def narrow(self, condition: str, step: int | None) -> None:
        """Adds a condition to the filter, or replaces its step."""
        text = self.state.filter
        self.apply(with_condition(text, condition) if step is None else with_step(text, step))

    def narrow_to_node(self, scope: Scope, condition: str) -> None:
        """Toggles narrowing to a node of the tree: its scope and its condition."""
        state = self.state
        alone = not state.scope.everything and state.scope == scope and condition in state.filter
        # drop the conditions that another node of the same lane added
        own = node_conditions(self.session.profile.vocabulary)
        rest = " ".join(word for word in state.filter.split() if word not in own)
        self.change(replace(state, scope=Scope() if alone else scope))
        text = rest if alone or not condition else with_condition(rest, condition)
        if text != state.filter:
            self.apply(text)

    def choose_step(self, number: int) -> None:
        """Filters all panes to a step, and sets the window to its time."""
        span = step_span(self.session, number)
        if span is not None:
            state = replace(self.state, range=None, anchor=None)
            self.change(state.windowed(span[0], max(span[1] - span[0], 1)))
        self.apply(with_step(self.state.filter, number))

    def _step(self, text: str) -> CommandResult:
        steps = steps_of(self.session)
        if not text:
            self.apply(with_step(self.state.filter, None))
            return None
        typed = step_typed(text)
        number = -1 if typed is None else typed
        if not len(steps):
            return fault(f"there are no {steps.word.plural} here, and no sequence of launches repeats")
        if not len(steps.numbered(number)):
            return fault(f"{steps.word.plural} are {steps.numbers_text(16)}")
        self.choose_step(number)
        return None


class Search(ExplorerPart):
    """Incremental search, with next and previous: of names, of nodes in the tree, of lines in detail and problems.

    If no name matches, Enter goes to the counters that match.
    """

    def __init__(self, manager: PaneManager, background: Background) -> None:
        super().__init__(manager, background)
        self._hits: Hits | None = None
        self._hits_key: tuple[object, ...] = ()
        #: State and position (key, number) at which the search began.
        self._state_before: DisplayState | None = None
        self._start_position: tuple[int, int] = (0, -1)
        #: Last text searched for in the lines of a pane, by widget id.
        self._texts: dict[str | None, str] = {}
        self.actions = {
            "search": self._ask, "search-next": partial(self._step, 1), "search-previous": partial(self._step, -1)
        }  # fmt: skip

    def _ask(self) -> None:
        pane = self.prompt.behind
        if isinstance(pane, GroupTree):
            pane.ask_filter()
        elif isinstance(pane, DetailPane | ProblemsPane) and pane.has_cursor:
            self._ask_line(pane)
        else:
            self._state_before, self._start_position = self.state, self.current()
            self.prompt.open(PromptRequest("Search", "", self._typed, self._accepted, self._cancelled))

    def _step(self, steps: int) -> None:
        pane = self.prompt.behind
        if isinstance(pane, LinesView) and pane.id in self._texts:
            self._step_line(pane, steps)
        else:
            self._step_name(steps)

    # names

    def _typed(self, text: str) -> Hint | None:
        origin = self._state_before or self.state
        if not text:
            self._return()
            return None

        def take(hits: Hits) -> None:
            if not self.prompt.is_open:
                return
            if not len(hits):
                self.change(replace(origin, search=text))
                counters = len(self._counters(text))
                hint = f"no name, {counters:,} counters match: Enter shows them" if counters else "no name matches"
                self.prompt.show_hint(Hint(hint, fault=not counters))
                return
            index = hits.index(*self._start_position) % len(hits)
            self._go_to(hits, index)
            self.prompt.show_hint(Hint(f"{index + 1:,}/{len(hits):,}"))

        self._find(text, take)
        return self.pending_hint()

    def _accepted(self, text: str) -> Hint | None:
        """Keeps the match; an empty text repeats the previous search."""
        origin = self._state_before or self.state
        searched = text or origin.search
        if searched != self.state.search:
            self.change(replace(self.state, search=searched))
        if searched and not text:
            self._step_name(1)
        elif searched:
            self._find(searched, self._show_position)
        return None

    def _cancelled(self) -> None:
        self.background.cancel("search")
        self._return()

    def _return(self) -> None:
        if self._state_before is not None:
            self.change(self._state_before)
            if self.in_table:
                self.manager.panes.table.put(self._start_position[0])

    def _step_name(self, steps: int) -> None:
        text = self.state.search
        if not text:
            self.say("Nothing was searched for yet: / searches names.")
            return

        def take(hits: Hits) -> None:
            if not len(hits):
                self._go_to_counter(text, steps)
                return
            index, wrapped = hits.stepped(*self.current(), steps)
            self._go_to(hits, index)
            end = ", from the start again" if steps > 0 else ", from the end again"
            self.say(f"/{text}  {index + 1:,}/{len(hits):,}{end if wrapped else ''}")

        self._find(text, take)

    def _show_position(self, hits: Hits) -> None:
        if len(hits):
            number = hits.index(*self.current()) % len(hits) + 1
            self.say(f"/{hits.text}  {number:,}/{len(hits):,}   n next, N previous, Esc clears")
        else:
            self._go_to_counter(hits.text, 1)

    def _counters(self, text: str) -> list[int]:
        """Line numbers of the counters whose label matches a text; folded groups of counters are left out."""
        pattern = pattern_of(text)
        lines = enumerate(counter_lines(self.session))
        return [number for number, line in lines if not line.is_parent and pattern.search(line.label)]

    def _go_to_counter(self, text: str, steps: int) -> None:
        found, lines = self._counters(text), counter_lines(self.session)
        if not found:
            self.say(f"No name matches {text}.")
            return
        current = self.state.selection.counters
        ahead = [number for number in found if (number > current if steps > 0 else number < current)]
        number = (ahead or found)[0 if steps > 0 else -1]
        # counter lines are shown among the lanes of the timeline
        self.manager.go("timeline")
        state = self.state
        unfolded = dict.fromkeys((*state.unfolded, *ancestors(lines, number)))
        selection = SelectedItem(lines[number].group, counters=number)
        self.change(replace(state, scope=Scope(), line_unit="lanes", unfolded=tuple(unfolded),
                                  selection=selection, search=text))  # fmt: skip
        self.say(f"/{text}  counter {found.index(number) + 1:,}/{len(found):,}   n next, N previous, Esc clears")

    def _find(self, text: str, take: Callable[[Hits], None]) -> None:
        state, session = self.state, self.session
        rows, in_table, shown = self.manager.panes.table.rows, self.in_table, replace(state, in_window=False)
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
        session = self.session
        lane, row = session.locate(int(hits.numbers[index]))
        start, end = session.span_of(lane, row)
        new_state = self.state.showing(start, max(end, start + 1)).at(start)
        selection = SelectedItem(session.unit_of(lane), lane, row)
        self.change(replace(new_state, selection=selection, search=hits.text))

    # lines of a pane

    def _ask_line(self, pane: LinesView) -> None:
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
            elif pane.id in self._texts:
                self._step_line(pane, 1)
            return None

        self.prompt.open(PromptRequest("Search here", "", typed, accepted, lambda: pane.go_to(before)))

    def _step_line(self, pane: LinesView, steps: int) -> None:
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
    pattern = pattern_of(text)
    found = (item for item, strip in zip(pane.items, pane.lines, strict=False)
             if item >= 0 and pattern.search(strip.text))  # fmt: skip
    return list(dict.fromkeys(found))
