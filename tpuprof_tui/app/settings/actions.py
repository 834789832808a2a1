"""The registry of actions (`actions.json`): bindings, footer, help screen and command palette are derived from it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace
from textual.binding import Binding

from tpuprof_tui.export.outputs import explorer_outputs, outputs_of
from tpuprof_tui.model.vocabulary import Output, Vocabulary
from tpuprof_tui.sources.catalog import vocabularies

#: Action handlers, by the last part of the action id.
ActionTable = Mapping[str, Callable[..., object]]


class Action(Struct, frozen=True):
    """An action that keys are bound to.

    Attributes:
        id: Stable name ``PANE.NAME``, for key maps.
        keys: Keys in Textual's spelling; the first is displayed.
        pane: Group of actions that it belongs to; see ``PANES``.
        text: Short name for footer and palette. This and the other texts have placeholders for the source's words
            (``{unit}``, see ``Vocabulary.words``).
        help: One sentence for the help screen.
        function: Textual action string: method without ``action_``, on the pane's widget or screen, with arguments.
        footer: Label in the footer, empty: not shown; adjacent actions with the same label share an entry.
    """

    id: str
    keys: tuple[str, ...]
    pane: str
    text: str
    help: str
    function: str
    footer: str = ""


class Registry(Struct, frozen=True):
    """What ``actions.json`` holds.

    Attributes:
        actions: Actions of all panes but those that write outputs.
        panes: Panes by id: display title, and the groups of actions available there, the most specific first.
        groups: Headings of the groups on the help screen.
        key_texts: Display texts of keys.
        glossary: Terms on the screen, and their meanings.
        tree_marks: Marks after a node of the tree, and their meanings.
    """

    actions: tuple[Action, ...]
    panes: dict[str, tuple[str, tuple[str, ...]]]
    groups: dict[str, str]
    key_texts: dict[str, str]
    glossary: tuple[tuple[str, str], ...]
    tree_marks: tuple[tuple[str, str], ...]


# Keys that differ from what users of other tools may expect, and why:
# - Digits go to views and fit the timeline at once, so they cannot be counts before a key; `:+10` and `:-10` are.
# - `s` sorts by the chosen column without another key, the frequent case; `S` asks for the column.
# - Left and right move the time cursor as `h` and `l` do: zoom, marks and ranges refer to it. `a` and `d` pan.
# - Space in the tree narrows to a node: rows cannot be picked there.
# - `h` does not open the help: it moves left there too. `?` and F1 open and close it.
# - `}` and `{` treat consecutive instructions of one problem as one place.
#: The file with actions and commands.
FILE: Final = Path(__file__).with_name("actions.json")
_REGISTRY: Final = json.decode(FILE.read_bytes(), type=Registry)
PANES, GROUPS = _REGISTRY.panes, _REGISTRY.groups
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
