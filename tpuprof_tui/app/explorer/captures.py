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
        switch: Opens the capture so many after this one.
        open_path: Opens a capture.
        reload: Reads this one again.
        choose: Lists captures.
    """

    def __init__(
        self,
        switch: Callable[[int], object],
        open_path: Callable[[str], object],
        reload: Callable[[], object],
        choose: Callable[[], object],
    ) -> None:
        self.open_path = open_path
        self.actions: ActionTable = {
            "reload": reload,
            "open-other": choose,
            "next-capture": partial(switch, 1),
            "previous-capture": partial(switch, -1),
        }
        self.commands: CommandTable = {"open": self._open}

    def _open(self, text: str) -> Done:
        path = Path(text).expanduser()
        if not text or not path.exists():
            return fault("the path of a capture; O lists those beside this one")
        return partial(self.open_path, str(path))
