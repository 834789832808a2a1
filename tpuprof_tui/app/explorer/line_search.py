"""Search within the lines of a pane: where details and problems are read, ``/`` looks through them."""

from __future__ import annotations

from tpuprof_tui.analysis.selecting.search import pattern_of

from ..panes.detail import DetailPane
from ..panes.keybar import KeyBar
from ..panes.lines import LinesView
from ..panes.problems import ProblemsPane
from ..panes.prompt import Note
from .filter_search import Finding


class LineSearch(Finding):
    """The search keys in panes of lines; elsewhere they are those of the instructions. The explorer owns the state."""

    #: What was searched for in a pane, by its name.
    _sought: dict[str, str]

    def action_search(self) -> None:
        """Asks for a text and goes to the lines that have it while it is typed."""
        pane = self.focused
        if not isinstance(pane, DetailPane | ProblemsPane) or not pane.has_cursor:
            super().action_search()
            return
        lines: LinesView = pane
        before = lines.cursor

        def typed(text: str) -> Note | None:
            found = _matching(lines, text) if text else []
            if not found:
                lines.go_to(before)
                return Note("no line matches", fault=True) if text else None
            place = next((place for place, item in enumerate(found) if item >= before), 0)
            lines.go_to(found[place])
            return Note(f"{place + 1:,}/{len(found):,}")

        def accepted(text: str) -> Note | None:
            if text:
                self._texts()[_name(lines)] = text
            elif self._texts().get(_name(lines)):
                self._step_line(lines, 1)
            return None

        self.ask("Search here", "", typed, accepted, on_cancel=lambda: lines.go_to(before))

    def action_search_next(self) -> None:
        """The next match, of the pane's own search where it has one."""
        if not self._step_in_pane(1):
            super().action_search_next()

    def action_search_previous(self) -> None:
        """The match before."""
        if not self._step_in_pane(-1):
            super().action_search_previous()

    def _texts(self) -> dict[str, str]:
        if "_sought" not in self.__dict__:
            self._sought = {}
        return self._sought

    def _step_in_pane(self, steps: int) -> bool:
        pane = self.focused
        if not isinstance(pane, LinesView) or _name(pane) not in self._texts():
            return False
        self._step_line(pane, steps)
        return True

    def _step_line(self, pane: LinesView, steps: int) -> None:
        text = self._texts()[_name(pane)]
        found = _matching(pane, text)
        bar = self.query_one(KeyBar)
        if not found:
            bar.say(f"No line here matches {text}.")
            return
        ahead = [item for item in found if (item > pane.cursor if steps > 0 else item < pane.cursor)]
        wanted = (ahead or found)[0 if steps > 0 else -1]
        pane.go_to(wanted)
        end = "" if ahead else ", from the start again" if steps > 0 else ", from the end again"
        bar.say(f"/{text}  {found.index(wanted) + 1:,}/{len(found):,}{end}")


def _name(pane: LinesView) -> str:
    return pane.id or ""


def _matching(pane: LinesView, text: str) -> list[int]:
    """Items of a pane with a line that matches, in their order."""
    pattern = pattern_of(text)
    found = (item for item, strip in zip(pane.items, pane.lines, strict=False)
             if item >= 0 and pattern.search(strip.text))  # fmt: skip
    return list(dict.fromkeys(found))
