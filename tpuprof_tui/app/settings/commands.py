"""Registry of the commands of the command line (``:``), and lookup of commands, actions, views and columns by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, json

from tpuprof_tui.export.outputs import explorer_outputs
from tpuprof_tui.model import Column
from tpuprof_tui.model.vocabulary import Vocabulary

from .actions import FILE, PANES, Action, actions_for


class Command(Struct, frozen=True):
    """A command of the command line.

    Attributes:
        id: First word, the same for all sources.
        argument: Placeholder of the argument for the help; empty: it takes none.
        help: One sentence, with placeholders for the source's words (see ``Vocabulary.words``).
        name: First word in the source's terms, with placeholders; empty: the id.
    """

    id: str
    argument: str
    help: str
    name: str = ""

    def in_words_of(self, vocabulary: Vocabulary) -> Command:
        """Returns the command with its placeholders replaced by the source's words."""
        keys = ", ".join(output.key for output in explorer_outputs(vocabulary))
        return Command(
            self.id, self.argument, vocabulary.say(self.help, outputs=keys), vocabulary.say(self.name) or self.id
        )


class _Registry(Struct, frozen=True):
    commands: tuple[Command, ...]
    #: Alternative names of commands.
    aliases: dict[str, str]


_REGISTRY: Final = json.decode(FILE.read_bytes(), type=_Registry)
COMMANDS = _REGISTRY.commands


def split_command(text: str) -> tuple[str, str]:
    """Splits typed text into command id and argument; a number alone means ``row``, with a sign ``move``."""
    word, _, rest = text.strip().partition(" ")
    if word[:1] in ("+", "-") and word[1:].isdecimal() and not rest:
        return "move", word
    if word.isdecimal() and not rest:
        return "row", word
    return _REGISTRY.aliases.get(word, word), rest.strip()


def commands_named(word: str, vocabulary: Vocabulary) -> list[Command]:
    """Commands whose name starts with a word; only the exact match if there is one."""
    commands = [command.in_words_of(vocabulary) for command in COMMANDS]
    exact = [command for command in commands if word in (command.name, command.id)]
    return exact or [command for command in commands if word and command.name.startswith(word)]


def actions_named(text: str, pane: str, vocabulary: Vocabulary) -> list[Action]:
    """Actions of a pane whose name starts with a text; only exact matches if there are any."""
    name = " ".join(text.lower().split())
    groups = PANES[pane][1] if pane in PANES else ("explorer", "app")
    all_actions = actions_for(vocabulary)
    candidates = [action for group in groups for action in all_actions if action.pane == group]
    exact = [action for action in candidates if name in _names(action)]
    return exact or [action for action in candidates if name and any(each.startswith(name) for each in _names(action))]


def completions(text: str, names: Iterable[str]) -> list[str]:
    """Names that start with a text, spaces standing for underscores; only the exact match if there is one."""
    prefix = "_".join(text.lower().split())
    all_names = list(names)
    return [prefix] if prefix in all_names else [name for name in all_names if prefix and name.startswith(prefix)]


def views_named(text: str, views: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Ids of views that start with a text; if exactly one of them is the source's own, only that one."""
    found = completions(text, views)
    own = [view.id for view in vocabulary.views if view.id in found]
    return own if len(own) == 1 else found


def _names(action: Action) -> tuple[str, str, str]:
    return action.text.lower(), action.id.partition(".")[2].replace("-", " "), action.id


def listed(names: Iterable[str], most: int = 6) -> str:
    """The first ``most`` distinct names, separated by commas."""
    every = list(dict.fromkeys(names))
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "")


def columns_named(columns: Sequence[Column], text: str) -> list[Column]:
    """Columns that match a text in any case: exact matches first, then prefixes, then substrings; in column order."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    ranked = [(rank, column) for column in columns if (rank := _rank(column, wanted)) is not None]
    return [column for _, column in sorted(ranked, key=lambda each: each[0])]


def column_named(columns: Sequence[Column], text: str) -> tuple[Column | None, list[Column]]:
    """The only column that a text names exactly, else the only one whose name starts with it; None: none or several.

    The second result lists the columns that match, the best matches only.
    """
    wanted = text.strip().lower()
    alike = columns_named(columns, text)
    ranks = [_rank(column, wanted) for column in alike]
    best = [column for column, rank in zip(alike, ranks, strict=True) if rank == ranks[0]]
    return (best[0] if len(best) == 1 and ranks[0] != _SUBSTRING else None), best


#: Rank of a column of which only a part matches.
_SUBSTRING: Final = 2


def _rank(column: Column, wanted: str) -> int | None:
    names = [name.lower() for name in (column.key, *column.aliases, column.title)]
    if wanted in names:
        return 0
    if any(name.startswith(wanted) for name in names):
        return 1
    return _SUBSTRING if any(wanted in name for name in names) else None
