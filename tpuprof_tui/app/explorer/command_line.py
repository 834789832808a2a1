"""The command line of the explorer: judges what is typed, and does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace
from textual.widget import Widget

from tpuprof_tui.views.registry import views_of

from ..panes.prompt import Note, Question
from ..settings.actions import Action, ActionTable
from ..settings.commands import COMMANDS, Command, actions_named, commands_named, listed, split, views_begun
from .services import Services

#: More digits than any number of instructions has.
MOST_DIGITS: Final = 12
#: What a command comes to: a fault, what is still to be done when the keys are back where they were, or nothing more.
Done = Note | Callable[[], object] | None
#: What commands do, by their ids; each takes what follows the command's name.
CommandTable = Mapping[str, Callable[[str], Done]]


def fault(text: str, column: int = -1) -> Note:
    """Why a text cannot be taken, and where in it the fault is."""
    return Note(text, column, fault=True)


class CommandLine:
    """Asks for a command, for a view, or for any action by its name.

    Args:
        services: Those of the explorer.
        commands: What each command does.
        judges: What judges that while it is typed.
        later: Calls a function when the prompt is closed.
        perform: Does an action, on the pane that keys went to.
    """

    def __init__(
        self, services: Services, commands: CommandTable, judges: Mapping[str, Callable[[str], Note | None]],
        later: Callable[[Callable[[], object]], object], perform: Callable[[Action, Widget | None], object],
    ) -> None:  # fmt: skip
        self.vocabulary = services.store.session.profile.vocabulary
        self.prompting = services.prompting
        self.commands = commands
        self.judges = judges
        self.later = later
        self.perform = perform
        self.actions: ActionTable = {"command-line": self.ask, "view": partial(self.ask, "view ")}

    def ask(self, initial: str = "") -> None:
        """Asks for a command, of which something may be typed already."""
        self.prompting.ask(Question("Command", initial, self._judged, self._accepted))
        if initial:
            return
        known = (command.said(self.vocabulary).name for command in COMMANDS)
        self.prompting.prompt.tell(Note(listed(known, len(COMMANDS)) + ", a view, or any action"))

    def _judged(self, text: str) -> Note | None:
        """What the text would do, or could become."""
        found, argument = self._named(text)
        if len(found) == 1 and (argument or split(text)[0] in (found[0].name, found[0].id)):
            return self._judged_argument(found[0], argument, len(text) - len(argument))
        names = [command.name for command in found]
        names += [action.text.lower() for action in self._actions_named(text)]
        names = names or self._views_named(text)
        if not names:
            return fault("no command: ? lists keys and actions") if text.strip() else None
        return Note(listed(names))

    def _judged_argument(self, command: Command, argument: str, place: int) -> Note | None:
        judge = self.judges.get(command.id)
        found = judge(argument) if judge is not None else None
        if found is not None:
            return replace(found, column=found.column + place if found.column >= 0 else -1)
        told = f"{command.name} {command.argument}".strip()
        return Note(f"{told}: {command.help}")

    def _accepted(self, text: str) -> Note | None:
        found, argument = self._named(text)
        if len(found) == 1:
            done = self.commands[found[0].id](argument)
            if isinstance(done, Note):
                return done
            if done is not None:
                self.later(done)
            return None
        actions = self._actions_named(text)
        if len({action.id for action in actions}) == 1:
            pane = self.prompting.asked_from
            self.later(lambda: self.perform(actions[0], pane))
            return None
        if not text.strip():
            return None
        names = [*(each.name for each in found), *(each.text.lower() for each in actions)] or self._views_named(text)
        return fault(f"several: {listed(names)}") if names else self._judged(text)

    def _named(self, text: str) -> tuple[list[Command], str]:
        """The commands that a text may mean, and what follows; a view's name, or its beginning, shows it."""
        word, argument = split(text)
        found = commands_named(word, self.vocabulary)
        views = self._views_named(text)
        if not found and len(views) == 1 and not self._actions_named(text):
            return commands_named("view", self.vocabulary), views[0]
        return found, argument

    def _views_named(self, text: str) -> list[str]:
        """The views that a text means, or may become."""
        return views_begun(text, (view.id for view in views_of(self.vocabulary, screen=True)), self.vocabulary)

    def _actions_named(self, text: str) -> list[Action]:
        """The actions of the pane that keys went to before whose name begins with a text."""
        pane = self.prompting.asked_from
        return actions_named(text, (pane.id or "") if pane is not None else "", self.vocabulary)
