"""The help screen: all keys, those of the focused pane first, commands, filters and terms."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import BindingType

from tpuprof_tui.formats.text import wrap
from tpuprof_tui.model import Vocabulary

from ..drawing.theme import Palette
from ..panes.keybar import KeyBar
from ..panes.lines import Line, LinesView
from ..settings.actions import GROUPS, PANES, actions_for, bindings, key_text, keys_of
from ..settings.commands import COMMANDS
from .overlay import Overlay

KEYS = 24

#: What the words of the screen mean, once.
WORDS: tuple[tuple[str, str], ...] = (
    ("work", "{events} that are neither waits nor synchronisation"),
    ("wait, sync", "{events} that wait for others; those that bring several into step"),
    ("busy", "time with work on a lane (what overlaps counts once)"),
    ("idle", "time without work, wait and sync"),
    ("utilisation", "busy over the window"),
    ("compute", "work that computes"),
    ("transfer", "work that moves data"),
    ("exposed", "transfer while the {unit} does not compute"),
    ("~", "a figure that rests on guesswork: work and wait cannot be told apart for sure"),
    ("-", "not known"),
)

#: What filters look like, where the source shows no examples.
FILTERS: tuple[tuple[str, str], ...] = (
    ("dur>10us", "numbers: = != < <= > >=, with units where the column has some"),
    ("name=A*", "texts: * and ? stand for any characters; capitals count where there are some"),
    ("name~^a.*b$", "texts: a regular expression"),
    ("a b", "blanks mean and"),
    ("a | b", "or; parentheses group"),
    ("!a", "not"),
    ("role=wait", "work, wait or sync; several with commas"),
)
#: What letters behind a node of the tree mean.
MARKS: tuple[tuple[str, str], ...] = (
    ("n  w  E", "a note, a warning or an error is about it: 4 lists them, } and { go through them"),
    ("*", "all panes are narrowed to it"),
)


class HelpLines(LinesView):
    """The lines of the help screen."""

    def __init__(self, palette: Palette, pane: str, vocabulary: Vocabulary) -> None:
        super().__init__(palette, "help")
        self.about = pane
        self.vocabulary = vocabulary

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Keys by group, nearest first; then the others, then words."""
        known = actions_for(self.vocabulary)
        near = PANES.get(self.about, ("", ("app",)))[1]
        lines: list[Line] = []
        for group in [*near, *(group for group in GROUPS if group not in near and group not in ("loading", "chooser"))]:
            lines += [[Segment(f" {GROUPS[group]}", self.palette.title)]]
            for action in (each for each in known if each.pane == group):
                keys = "  ".join(key_text(key) for key in keys_of(action))
                lines += self._entry(keys, action.help, width)
            lines.append([])
        own, say = self.vocabulary.help_words, self.vocabulary.say
        words = [(word, own.get(word) or say(meaning)) for word, meaning in WORDS]
        told = (each.said(self.vocabulary) for each in COMMANDS)
        commands = [(f"{each.name} {each.argument}".strip(), each.help) for each in told]
        filters = _filters(self.vocabulary)
        for title, entries in (("Commands (:)", commands), ("Filters (&)", filters), ("Marks of the tree", MARKS),
                               ("Words", words)):  # fmt: skip
            lines.append([Segment(f" {title}", self.palette.title)])
            for word, meaning in entries:
                lines += self._entry(word, meaning, width)
            lines.append([])
        return lines[:-1], []

    def _entry(self, keys: str, text: str, width: int) -> list[Line]:
        column = min(KEYS, max(width // 3, 6))
        first, *rest = wrap(text, max(width - column - 4, 8))
        lines: list[Line] = []
        if len(keys) > column:
            lines.append([Segment(f"   {keys}", self.palette.key)])
            keys = ""
        lines.append([Segment(f"   {keys:<{column}}", self.palette.key), Segment(first, self.palette.text)])
        return lines + [[Segment(" " * (column + 3) + line, self.palette.text)] for line in rest]


def _filters(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """What filters look like, and the keys of the columns with their aliases."""
    keys = ", ".join(
        column.key + "".join(f" ({alias})" for alias in column.aliases[:1])
        for column in vocabulary.listed()
        if column.group != "codes"
    )
    return [*(vocabulary.help_filters or FILTERS), ("keys", keys)]


class HelpScreen(Overlay[None]):
    """Help over whatever is on the screen."""

    AUTO_FOCUS = "#help"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]
    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen #help { width: 88%; max-width: 96; height: 92%; border: round $accent; background: $surface; }
    """

    def __init__(self, palette: Palette, pane: str, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.palette = palette
        self.pane = pane
        self.vocabulary = vocabulary

    def compose(self) -> ComposeResult:
        """The lines, and the keys that work here."""
        lines = HelpLines(self.palette, self.pane, self.vocabulary)
        lines.border_title = "Keys"
        lines.border_subtitle = "Esc or q closes"
        yield lines
        yield KeyBar(self.palette, "help")
