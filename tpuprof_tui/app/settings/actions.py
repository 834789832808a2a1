"""The registry of actions and commands (`actions.json`): bindings, footer, help and palette are derived from it.

Also the lookup of commands, actions, views and columns by typed names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace
from textual.binding import Binding

from tpuprof_tui.export.outputs import explorer_outputs, outputs_of
from tpuprof_tui.model import Column
from tpuprof_tui.model.vocabulary import Output, Vocabulary
from tpuprof_tui.sources.catalog import vocabularies

#: Action handlers, by the last part of the action id.
ActionTable = Mapping[str, Callable[..., object]]


class Action(Struct, frozen=True):
    """An action that keys are bound to."""

    id: str  #: Stable name ``PANE.NAME``, for key maps
    keys: tuple[str, ...]  #: Keys in Textual's spelling; the first is displayed
    pane: str  #: Group of actions that it belongs to; see ``PANES``
    #: Short name for footer and palette. This and the other texts have placeholders for the source's words (``{unit}``,
    #: see ``Vocabulary.words``).
    text: str
    help: str  #: One sentence for the help screen
    function: str  #: Textual action string: method without ``action_``, on the pane's widget or screen, with arguments
    footer: str = ""  #: Label in the footer, empty: not shown; adjacent actions with the same label share an entry


class PromptCommand(Struct, frozen=True):
    """A command of the command line."""

    id: str  #: First word, the same for all sources
    argument: str  #: Placeholder of the argument for the help; empty: it takes none
    help: str  #: One sentence, with placeholders for the source's words (see ``Vocabulary.words``)
    name: str = ""  #: First word in the source's terms, with placeholders; empty: the id

    def in_words_of(self, vocabulary: Vocabulary) -> PromptCommand:
        """Returns the command with its placeholders replaced by the source's words."""
        keys = ", ".join(output.key for output in explorer_outputs(vocabulary))
        return PromptCommand(
            self.id, self.argument, vocabulary.say(self.help, outputs=keys), vocabulary.say(self.name) or self.id
        )


class Registry(Struct, frozen=True):
    """What ``actions.json`` holds."""

    actions: tuple[Action, ...]  #: Actions of all panes but those that write outputs
    #: Panes by id: display title, and the groups of actions available there, the most specific first.
    panes: dict[str, tuple[str, tuple[str, ...]]]
    groups: dict[str, str]  #: Headings of the groups on the help screen
    key_texts: dict[str, str]  #: Display texts of keys
    commands: tuple[PromptCommand, ...]  #: Commands of the command line
    aliases: dict[str, str]  #: Alternative names of commands
    glossary: tuple[tuple[str, str], ...]  #: Terms on the screen, and their meanings
    tree_marks: tuple[tuple[str, str], ...]  #: Marks after a node of the tree, and their meanings


# Keys that differ from what users of other tools may expect, and why:
# - Digits go to views and fit the timeline at once, so they cannot be counts before a key; `:+10` and `:-10` are.
# - `s` sorts by the chosen column without another key, the frequent case; `S` asks for the column.
# - Left and right move the time cursor as `h` and `l` do: zoom, marks and ranges refer to it. `a` and `d` pan.
# - Space in the tree narrows to a node: rows cannot be picked there.
# - `h` does not open the help: it moves left there too. `?` and F1 open and close it.
# - `}` and `{` treat consecutive events of one problem as one place.
_REGISTRY: Final = json.decode(Path(__file__).with_name("actions.json").read_bytes(), type=Registry)
COMMANDS, PANES, GROUPS = _REGISTRY.commands, _REGISTRY.panes, _REGISTRY.groups
GLOSSARY, TREE_MARKS = _REGISTRY.glossary, _REGISTRY.tree_marks
#: Key of an action whose keys the user gave to others.
NO_KEY: Final = "unbound"


def _output_actions(output: Output, *, has_keys: bool = True) -> Iterator[Action]:
    """The two actions that write an output: one of the explorer, for its scope and filter, one of the export menu."""
    letters = (output.letter,) if has_keys and output.letter else ()
    needs = f" (needs {output.needs})" if output.needs else ""
    how = f", as shown: columns, order, scope, filter{needs}" if output.is_table else ", of scope and filter"
    what = output.progress_name or f"the {output.title}"
    yield Action(
        f"explorer.export-{output.id}", tuple(f"alt+{letter}" for letter in letters), "explorer",
        f"Export {output.title}", f"Write {what}{how}.", f"do('export-output', {output.id!r})",
    )  # fmt: skip
    title = output.title[:1].upper() + output.title[1:]
    yield Action(f"export.{output.id}", letters, "export", title, output.sentence, f"output({output.id!r})",
                 output.short if letters else "")  # fmt: skip


def _with_outputs(outputs: Iterable[Output], keys: Container[str]) -> tuple[Action, ...]:
    """The registry with the actions of some outputs; outputs whose id is not in ``keys`` get no key bindings."""
    output_actions = [action for output in outputs for action in _output_actions(output, has_keys=output.id in keys)]
    actions: list[Action] = []
    for action in _REGISTRY.actions:
        if action.id == "export.core":
            actions += [each for each in output_actions if each.pane == "export"]
        actions.append(action)
        if action.id == "explorer.export":
            actions += [each for each in output_actions if each.pane == "explorer"]
    return tuple(actions)


#: Outputs of this package's sources: known before a capture is opened, so that keys can be bound to them.
_OUTPUTS: Final = explorer_outputs(*vocabularies())
#: All actions that keys can be bound to.
ACTIONS: Final = _with_outputs(_OUTPUTS, {output.id for output in _OUTPUTS})


def actions_for(vocabulary: Vocabulary) -> tuple[Action, ...]:
    """All actions for a source: texts in its words, and the export actions of its own outputs; of no source: of all."""
    outputs = explorer_outputs(vocabulary) if vocabulary.source else _OUTPUTS
    written = ", ".join(output.title for output in outputs_of(vocabulary))
    say = partial(vocabulary.say, written=written)
    return tuple(
        replace(
            each, text=say(each.text), help=say(vocabulary.phrases.get(each.id, each.help)), footer=say(each.footer)
        )
        for each in _with_outputs(outputs, {output.id for output in _OUTPUTS})
    )


#: Keys that always exit, whatever the user has configured.
EXIT_KEYS: Final = next(action.keys for action in ACTIONS if action.id == "app.leave")
#: Keys configured by the user, by action id.
_REMAPPED: Final[dict[str, tuple[str, ...]]] = {}


def remap(keys: Mapping[str, str]) -> None:
    """Sets the user's keys, by action id, for footer, help and palette; other actions keep those of the table."""
    _REMAPPED.clear()
    _REMAPPED.update({name: tuple(key.strip() for key in text.split(",")) for name, text in keys.items()})


def keymap_of(keys: Mapping[str, str]) -> dict[str, str]:
    """The user's keys by action id, which other actions of the pane, or of any pane for keys of all panes, then lose.

    ``EXIT_KEYS`` are reserved for ``app.leave``.
    """
    found: dict[str, str] = {}
    for name, text in keys.items():
        others = [key.strip() for key in text.split(",") if key.strip().lower() not in EXIT_KEYS]
        others += EXIT_KEYS if name == "app.leave" else ()
        if others:
            found[name] = ",".join(others)
    panes = {action.id: action.pane for action in ACTIONS}
    taken = {(panes.get(name, ""), key) for name, text in found.items() for key in text.split(",")}
    for action in ACTIONS:
        lost = {key for key in action.keys for pane in (action.pane, "app", "explorer") if (pane, key) in taken}
        if lost and action.id not in found:
            found[action.id] = ",".join(key for key in action.keys if key not in lost) or NO_KEY
    return found


def keys_of(action: Action) -> tuple[str, ...]:
    """Keys of an action; the first is displayed."""
    return _REMAPPED.get(action.id, action.keys)


def key_text(key: str) -> str:
    """Display text of a key."""
    if key in _REGISTRY.key_texts:
        return _REGISTRY.key_texts[key]
    if key.startswith("alt+"):
        return f"Alt+{key[4:]}"
    return f"Ctrl+{key[5:].upper()}" if key.startswith("ctrl+") else key


def actions_of(group: str, vocabulary: Vocabulary | None = None) -> list[Action]:
    """Actions of one group, in table order; ``vocabulary``: those for a source; None: all."""
    actions = ACTIONS if vocabulary is None else actions_for(vocabulary)
    return [action for action in actions if action.pane == group]


def bindings(*groups: str) -> list[Binding]:
    """Textual bindings of some groups, with the action ids, so that a keymap can override the keys."""
    return [
        Binding(
            ",".join(action.keys),
            # the namespace makes app actions work in overlays too
            f"app.{action.function}" if action.pane == "app" else action.function,
            action.text,
            show=False,
            id=action.id,
            # before any input field or overlay can handle the key
            priority=action.id == "app.leave",
        )
        for group in groups
        for action in actions_of(group)
    ]


def footer_keys(pane: str, vocabulary: Vocabulary) -> list[tuple[tuple[str, ...], str]]:
    """(keys, label) of the footer entries while ``pane`` is focused: the pane's own first, help and quit last."""
    groups = PANES[pane][1] if pane in PANES else ("app",)
    all_actions = actions_for(vocabulary)
    footer_actions = [action for group in groups for action in all_actions if action.pane == group and action.footer]
    first = [action for action in footer_actions if action.id in ("app.help", "app.quit")]
    rest = [action for action in footer_actions if action not in first]
    return [
        (tuple(keys_of(action)[0] for action in actions), text)
        for text, actions in ((text, list(group)) for text, group in groupby(rest + first, lambda each: each.footer))
    ]


def split_command(text: str) -> tuple[str, str]:
    """Splits typed text into command id and argument; a number alone means ``row``, with a sign ``move``."""
    word, _, rest = text.strip().partition(" ")
    if word[:1] in ("+", "-") and word[1:].isdecimal() and not rest:
        return "move", word
    if word.isdecimal() and not rest:
        return "row", word
    return _REGISTRY.aliases.get(word, word), rest.strip()


def commands_named(word: str, vocabulary: Vocabulary) -> list[PromptCommand]:
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
