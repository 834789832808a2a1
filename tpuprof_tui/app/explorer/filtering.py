"""The filter shared by all panes: prompt with validation, and narrowing by summary line, tree node or step."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.filter_masks import (
    apply_filter,
    emptying_condition,
    is_filter_cached,
    with_condition,
)
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter, with_step
from tpuprof_tui.analysis.selecting.session import numbers_in
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.analysis.steps.step_detection import steps_of
from tpuprof_tui.analysis.steps.step_figures import step_span
from tpuprof_tui.formats.parsing import step_typed

from ..panes.prompt import Hint, PromptRequest
from ..panes.tree_nodes import node_conditions
from ..settings.actions import ActionTable
from ..shell.background import Background
from .command_line import CommandResult, CommandTable, fault
from .services import Prompting, Services

#: Examples of filters, shown while the prompt is empty.
_HINT: Final = "dur>10us  name=a*  | !role=wait  /regex/"


class Filtering:
    """Prompts for a filter, validates it, and applies it to all panes."""

    def __init__(self, services: Services) -> None:
        self.store, self.background, self.say = services.store, services.background, services.say
        self.prompting, self.tree = services.prompting, services.manager.panes.tree
        self.actions: ActionTable = {"filter": self.ask}
        self.commands: CommandTable = {"filter": self._accepted, "step": self._step}

    def ask(self) -> None:
        """Opens the prompt for the filter; in the tree, for the filter of its nodes."""
        if self.prompting.pane is self.tree:
            self.tree.ask_filter()
            return
        text = self.store.state.filter
        self.prompting.ask(
            PromptRequest("Filter", f"{text} ".lstrip(), self._validate, self._accepted, self._stop_counting)
        )
        if not text:
            self.prompting.prompt.show_hint(self._hint())

    def _validate(self, text: str) -> Hint | None:
        """The fault of a filter, or None; a valid one starts counting in the background how many instructions pass."""
        found = self.fault_of(text)
        if found is not None or not text.strip():
            self._stop_counting()
            return found or self._hint()
        scope = self.store.state.scope
        self.background.compute("filter", lambda: self._counted(text.strip(), scope), self._show_count)
        return pending_hint(self.prompting, self.background)

    def fault_of(self, text: str) -> Hint | None:
        """The fault of a filter, with its column; None if it is valid."""
        try:
            compile_filter(text, self.store.session.profile)
        except FilterError as error:
            message = error.message.rpartition(" (at column ")[0] or error.message
            return fault(f"{message}. {error.hint}" if error.hint else message, error.column)
        return None

    def _hint(self) -> Hint:
        return Hint(self.store.session.profile.vocabulary.phrase("filter_hint", _HINT))

    def _counted(self, text: str, scope: Scope) -> tuple[int, int]:
        """How many events of a scope pass a filter, and how many it has."""
        session = self.store.session
        found = apply_filter(session, text)
        if scope.everything:
            return found.count, session.profile.instructions
        numbers = numbers_in(session, scope, None)
        return int(found.mask[numbers].sum()), len(numbers)

    def _show_count(self, counted: tuple[int, int]) -> None:
        count, total = counted
        self.prompting.prompt.show_hint(Hint(f"{count:,} of {total:,} pass"))

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
        session = self.store.session
        if is_filter_cached(session, text):
            self._take(text)
            return
        self.say("Filtering ...")
        self.background.compute("filter", lambda: apply_filter(session, text).text, self._take)

    def _take(self, text: str) -> None:
        self.store.change(replace(self.store.state, filter=text))
        if not text:
            return
        count, total = self._counted(text, self.store.state.scope)
        if not count:
            session = self.store.session
            self.background.compute("emptying", lambda: emptying_condition(session, text), self._say_none)
            return
        counted = f"{count:,} of {self.store.session.profile.vocabulary.event.of(total)} pass."
        self.say(f"{counted} & changes the filter, Esc clears it.")

    def _say_none(self, condition: str) -> None:
        self.say(self.store.session.say("No {event} passes: ") + f"{condition} leaves none. & changes the filter.")

    # narrowing

    def narrow(self, condition: str, step: int | None) -> None:
        """Adds a condition to the filter, or replaces its step."""
        text = self.store.state.filter
        self.apply(with_condition(text, condition) if step is None else with_step(text, step))

    def narrow_to_node(self, scope: Scope, condition: str) -> None:
        """Toggles narrowing to a node of the tree: its scope and its condition."""
        state = self.store.state
        alone = not state.scope.everything and state.scope == scope and condition in state.filter
        # drop the conditions that another node of the same lane added
        own = node_conditions(self.store.session.profile.vocabulary)
        rest = " ".join(word for word in state.filter.split() if word not in own)
        self.store.change(replace(state, scope=Scope() if alone else scope))
        text = rest if alone or not condition else with_condition(rest, condition)
        if text != state.filter:
            self.apply(text)

    def choose_step(self, number: int) -> None:
        """Filters all panes to a step, and sets the window to its time."""
        span = step_span(self.store.session, number)
        if span is not None:
            state = replace(self.store.state, range=None, anchor=None)
            self.store.change(state.windowed(span[0], max(span[1] - span[0], 1)))
        self.apply(with_step(self.store.state.filter, number))

    def _step(self, text: str) -> CommandResult:
        steps = steps_of(self.store.session)
        if not text:
            self.apply(with_step(self.store.state.filter, None))
            return None
        typed = step_typed(text)
        number = -1 if typed is None else typed
        if not len(steps):
            return fault(f"there are no {steps.word.plural} here, and no sequence of launches repeats")
        if not len(steps.numbered(number)):
            return fault(f"{steps.word.plural} are {steps.numbers_text(16)}")
        self.choose_step(number)
        return None


def pending_hint(prompting: Prompting, background: Background) -> Hint | None:
    """The hint to show until the background result arrives: the last one, unless it is a fault of an older text."""
    hint = prompting.prompt.hint
    return None if hint is not None and hint.fault and not background.small else hint
