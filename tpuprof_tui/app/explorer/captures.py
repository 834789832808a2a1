"""Other captures: the next one, one from a list, this one again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..settings.actions import ActionTable
from .command_line import CommandTable, Done, fault


class Captures:
    """Asks for another capture.

    Args:
        switch: Opens the capture so many after this one; False where it is alone.
        open_path: Opens a capture.
        reload: Reads this one again.
        choose: Lists captures.
        say: Tells something in the bottom line.
    """

    def __init__(
        self,
        switch: Callable[[int], bool],
        open_path: Callable[[str], None],
        reload: Callable[[], None],
        choose: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self.switch = switch
        self.open_path = open_path
        self.say = say
        self.actions: ActionTable = {
            "reload": reload,
            "open-other": choose,
            "next-capture": partial(self._step, 1),
            "previous-capture": partial(self._step, -1),
        }
        self.commands: CommandTable = {"open": self._open}

    def _step(self, steps: int) -> None:
        if not self.switch(steps):
            self.say("No other capture beside this one: O looks for captures further away.")

    def _open(self, text: str) -> Done:
        path = Path(text).expanduser()
        if not text or not path.exists():
            return fault("the path of a capture; O lists those beside this one")
        return partial(self.open_path, str(path))
