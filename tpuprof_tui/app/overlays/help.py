"""The help screen: keys (those of the focused pane first), commands, filters and terms; ``/`` searches in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType

from tpuprof_tui.analysis.selecting.search import pattern_of
from tpuprof_tui.formats.text import wrap
from tpuprof_tui.model import Vocabulary

from ..drawing.theme import Palette
from ..panes.lines import Line, LinesView
from ..panes.prompt import Hint, PromptRequest, ask
from ..settings.actions import COMMANDS, GLOSSARY, GROUPS, PANES, TREE_MARKS, actions_for, bindings, key_text, keys_of

KEY_COLUMN_WIDTH = 24


class HelpLines(LinesView):
    """The lines of the help screen: keys of the pane ``about`` first; only entries that match ``search_text``."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("help")]

    def __init__(self, palette: Palette, pane: str, vocabulary: Vocabulary) -> None:
        super().__init__(palette, "help")
        self.about = pane
        self.vocabulary = vocabulary
        self.search_text = ""
        self.found = 0
        self.border_title = "Keys"
        self.border_subtitle = "/ searches, Esc or q closes"

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the sections, with only the entries that match the search."""
        matches = pattern_of(self.search_text).search
        lines: list[Line] = []
        self.found = 0
        for title, entries in self._sections():
            matching = [each for each in entries if not self.search_text or any(map(matches, each))]
            if matching:
                lines.append([Segment(f" {title}", self.palette.title)])
                for keys, text in matching:
                    lines += self._entry(keys, text, width)
                lines.append([])
                self.found += len(matching)
        return lines[:-1], []

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        all_actions = actions_for(self.vocabulary)
        own_groups = PANES.get(self.about, ("", ("app",)))[1]
        other_groups = (group for group in GROUPS if group not in (*own_groups, "loading", "chooser", "fleet"))
        for group in (*own_groups, *other_groups):
            actions = (each for each in all_actions if each.pane == group)
            yield GROUPS[group], [("  ".join(map(key_text, keys_of(each))), each.help) for each in actions]
        own, say = self.vocabulary.help_words, self.vocabulary.say
        commands = (each.in_words_of(self.vocabulary) for each in COMMANDS)
        yield "Commands (:)", [(f"{each.name} {each.argument}".strip(), each.help) for each in commands]
        yield "Filters (&)", _filters(self.vocabulary)
        yield "Marks of the tree", list(TREE_MARKS)
        yield "Words", [(word, own.get(word) or say(meaning)) for word, meaning in GLOSSARY]

    def _entry(self, keys: str, text: str, width: int) -> list[Line]:
        column = min(KEY_COLUMN_WIDTH, max(width // 3, 6))
        first, *rest = wrap(text, max(width - column - 4, 8))
        lines: list[Line] = []
        if len(keys) > column:
            lines.append([Segment(f"   {keys}", self.palette.key)])
            keys = ""
        lines.append([Segment(f"   {keys:<{column}}", self.palette.key), Segment(first, self.palette.text)])
        return lines + [[Segment(" " * (column + 3) + line, self.palette.text)] for line in rest]

    def action_search(self) -> None:
        """Prompts for a text, and filters the entries while it is typed."""

        def show(text: str) -> Hint | None:
            self.search_text = text
            self.rebuild(keep_scroll=False)
            self.border_title = f"{self.found:,} found" if text else "Keys"
            return Hint("no line matches", fault=True) if text and not self.found else None

        ask(self, PromptRequest("Search here", "", show, show, partial(show, "")))


def _filters(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    keys = ", ".join(
        column.key + "".join(f" ({alias})" for alias in column.aliases[:1])
        for column in vocabulary.listed()
        if column.group != "codes"
    )
    return [*vocabulary.filter_examples, ("keys", keys)]
