"""The command line of the explorer: validates the text while it is typed, then runs the command or action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace
from textual.widget import Widget

from tpuprof_tui.views.registry import views_of

from ..panes.prompt import Hint, PromptRequest
from ..settings.actions import Action, ActionTable
from ..settings.commands import COMMANDS, Command, actions_named, commands_named, listed, split_command, views_named
from .services import Services

#: Longest number accepted, in digits: more than any number of instructions has.
MAX_DIGITS: Final = 12
#: Result of a command: a fault, a function to call after the focus is back in the pane, or None (done).
CommandResult = Hint | Callable[[], object] | None
#: Command handlers by command id; each takes the argument text.
CommandTable = Mapping[str, Callable[[str], CommandResult]]


def fault(text: str, column: int = -1) -> Hint:
    """Hint that rejects the typed text; ``column`` is the offset of the fault in it, -1 if unknown."""
    return Hint(text, column, fault=True)


class CommandLine:
    """Prompts for a command, a view or an action by name, and runs it.

    Args:
        services: Shared services of the explorer.
        commands: Command handlers by command id.
        validators: Called with the argument while it is typed, by command id; each returns None for nothing to say.
        later: Schedules a function for after the prompt has closed.
        perform: Runs an action on the given pane.
    """

    def __init__(
        self, services: Services, commands: CommandTable, validators: Mapping[str, Callable[[str], Hint | None]],
        later: Callable[[Callable[[], object]], object], perform: Callable[[Action, Widget | None], object],
    ) -> None:  # fmt: skip
        self.vocabulary = services.store.session.profile.vocabulary
        self.prompting = services.prompting
        self.commands = commands
        self.validators = validators
        self.later = later
        self.perform = perform
        self.actions: ActionTable = {"command-line": self.ask, "view": partial(self.ask, "view ")}

    def ask(self, initial: str = "") -> None:
        """Opens the prompt, prefilled with ``initial``."""
        self.prompting.ask(PromptRequest("Command", initial, self._validate, self._accepted))
        if initial:
            return
        known = (command.in_words_of(self.vocabulary).name for command in COMMANDS)
        self.prompting.prompt.show_hint(Hint(listed(known, len(COMMANDS)) + ", a view, or any action"))

    def _validate(self, text: str) -> Hint | None:
        """Describes what the text would do, or lists its completions."""
        found, argument = self._named(text)
        if len(found) == 1 and (argument or split_command(text)[0] in (found[0].name, found[0].id)):
            return self._validate_argument(found[0], argument, len(text) - len(argument))
        names = [command.name for command in found]
        names += [action.text.lower() for action in self._actions_named(text)]
        names = names or self._views_named(text)
        if not names:
            return fault("not a command: ? lists keys and actions") if text.strip() else None
        return Hint(listed(names))

    def _validate_argument(self, command: Command, argument: str, offset: int) -> Hint | None:
        validate = self.validators.get(command.id)
        found = validate(argument) if validate is not None else None
        if found is not None:
            return replace(found, column=found.column + offset if found.column >= 0 else -1)
        usage = f"{command.name} {command.argument}".strip()
        return Hint(f"{usage}: {command.help}")

    def _accepted(self, text: str) -> Hint | None:
        found, argument = self._named(text)
        if len(found) == 1:
            result = self.commands[found[0].id](argument)
            if isinstance(result, Hint):
                return result
            if result is not None:
                self.later(result)
            return None
        actions = self._actions_named(text)
        if len({action.id for action in actions}) == 1:
            pane = self.prompting.previous_focus
            self.later(lambda: self.perform(actions[0], pane))
            return None
        if not text.strip():
            return None
        names = [*(each.name for each in found), *(each.text.lower() for each in actions)] or self._views_named(text)
        return fault(f"several: {listed(names)}") if names else self._validate(text)

    def _named(self, text: str) -> tuple[list[Command], str]:
        """Commands that match the first word, and the argument; an unambiguous view name means ``view NAME``."""
        word, argument = split_command(text)
        found = commands_named(word, self.vocabulary)
        views = self._views_named(text)
        if not found and len(views) == 1 and not self._actions_named(text):
            return commands_named("view", self.vocabulary), views[0]
        return found, argument

    def _views_named(self, text: str) -> list[str]:
        """Ids of the views that a text names or is a prefix of."""
        return views_named(text, (view.id for view in views_of(self.vocabulary, screen=True)), self.vocabulary)

    def _actions_named(self, text: str) -> list[Action]:
        """Actions available in the pane that had the focus before whose name begins with a text."""
        pane = self.prompting.previous_focus
        return actions_named(text, (pane.id or "") if pane is not None else "", self.vocabulary)
