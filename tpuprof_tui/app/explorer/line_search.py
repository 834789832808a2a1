"""Search within the lines of a pane: where details and problems are read, ``/`` looks through them."""

from __future__ import annotations

from collections.abc import Callable

from tpuprof_tui.analysis.selecting.search import pattern_of

from ..panes.lines import LinesView
from ..panes.prompt import Note
from .prompting import Prompting


class LineSearch:
    """Goes to the lines of a pane that match a text."""

    def __init__(self, prompting: Prompting, say: Callable[[str], None]) -> None:
        self.prompting = prompting
        self.say = say
        #: What was searched for in a pane, by its name.
        self._texts: dict[str, str] = {}

    def ask(self, pane: LinesView) -> None:
        """Asks for a text and goes to the lines that have it while it is typed."""
        before = pane.cursor

        def typed(text: str) -> Note | None:
            found = _matching(pane, text) if text else []
            if not found:
                pane.go_to(before)
                return Note("no line matches", fault=True) if text else None
            place = next((place for place, item in enumerate(found) if item >= before), 0)
            pane.go_to(found[place])
            return Note(f"{place + 1:,}/{len(found):,}")

        def accepted(text: str) -> Note | None:
            if text:
                self._texts[_name(pane)] = text
            elif self.searched(pane):
                self.step(pane, 1)
            return None

        self.prompting.ask("Search here", "", typed, accepted, on_cancel=lambda: pane.go_to(before))

    def searched(self, pane: LinesView) -> bool:
        """Whether a text was searched for in a pane."""
        return _name(pane) in self._texts

    def step(self, pane: LinesView, steps: int) -> None:
        """The next match in a pane that was searched, or the one before."""
        text = self._texts[_name(pane)]
        found = _matching(pane, text)
        if not found:
            self.say(f"No line here matches {text}.")
            return
        ahead = [item for item in found if (item > pane.cursor if steps > 0 else item < pane.cursor)]
        wanted = (ahead or found)[0 if steps > 0 else -1]
        pane.go_to(wanted)
        end = "" if ahead else ", from the start again" if steps > 0 else ", from the end again"
        self.say(f"/{text}  {found.index(wanted) + 1:,}/{len(found):,}{end}")


def _name(pane: LinesView) -> str:
    return pane.id or ""


def _matching(pane: LinesView, text: str) -> list[int]:
    """Items of a pane with a line that matches, in their order."""
    pattern = pattern_of(text)
    found = (item for item, strip in zip(pane.items, pane.lines, strict=False)
             if item >= 0 and pattern.search(strip.text))  # fmt: skip
    return list(dict.fromkeys(found))
