"""The registry of actions: bindings, footer, help screen and command palette are derived from this one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from textual.binding import Binding, BindingsMap


@dataclass(frozen=True)
class Action:
    """Something a key does.

    Attributes:
        id: Stable name, for key maps.
        keys: Keys in Textual's spelling; the first is the one shown.
        pane: Where it works; see ``PANES``.
        text: A word or two for footer and palette.
        help: One sentence for the help screen.
        function: Name of the method without ``action_``, on the widget or screen of the pane.
        footer: Whether the footer shows it.
    """

    id: str
    keys: tuple[str, ...]
    pane: str
    text: str
    help: str
    function: str
    footer: bool = False


def _table(pane: str, *rows: tuple[str, str, str, str, bool]) -> list[Action]:
    """Actions of one pane; the function is the last part of the id, with underscores."""
    return [
        Action(f"{pane}.{name}", tuple(keys.split()), pane, text, sentence, name.replace("-", "_"), footer)
        for name, keys, text, sentence, footer in rows
    ]


ACTIONS: Final[tuple[Action, ...]] = (
    *_table(
        "app",
        ("quit", "q ctrl+c ctrl+q", "Quit", "Leave tpuprof; in an overlay: close it.", True),
        ("help", "question_mark f1", "Help", "All keys, those of the focused pane first.", True),
        ("palette", "colon ctrl+p", "Commands", "Find any action by name.", True),
        ("repaint", "ctrl+l", "Repaint", "Draw the screen anew.", False),
        ("suspend", "ctrl+z", "Suspend", "Back to the shell; `fg` returns.", False),
        ("back", "escape backspace", "Back", "One step back: close, restore, clear selection, leave scope.", False),
    ),
    *_table(
        "explorer",
        ("next-pane", "tab", "Next pane", "Focus the next pane.", True),
        ("previous-pane", "shift+tab", "Previous pane", "Focus the previous pane.", False),
        ("timeline", "1", "Timeline", "Focus the timeline; on a small screen it fills the screen.", False),
        ("table", "2", "Table", "Focus the table of instructions.", False),
        ("summary", "3", "Summary", "Focus the summary: where the time went.", False),
        ("problems", "4", "Problems", "Focus the list of problems.", False),
        ("tree", "t", "Tree", "Show, focus or hide the tree of cores, engines and ports.", True),
        ("detail", "i", "Detail", "Show or hide all that is known of the selected instruction.", True),
        ("maximise", "Z", "Maximise", "Give the focused pane the whole screen, or take it back.", False),
        ("focus-selection", "f", "Focus", "Bring the selected instruction into view; again: zoom to it.", False),
        ("isolate", "o", "Only this core", "Show only the selected core in all panes; again: all cores.", False),
        ("reload", "R ctrl+r", "Reload", "Read the capture again.", False),
        ("open-other", "O", "Open other", "Choose another capture beside or below this one.", False),
    ),
    *_table(
        "timeline",
        ("zoom-in", "w plus equals_sign", "Zoom in", "Zoom in about the cursor.", True),
        ("zoom-out", "s minus", "Zoom out", "Zoom out about the cursor.", True),
        ("pan-left", "a", "Pan left", "Move the window a tenth to earlier times.", True),
        ("pan-right", "d", "Pan right", "Move the window a tenth to later times.", True),
        ("window-left", "A", "Previous window", "Move back by a whole window.", False),
        ("window-right", "D", "Next window", "Move on by a whole window.", False),
        ("cursor-left", "h left", "Cursor left", "Move the time cursor one cell to the left.", False),
        ("cursor-right", "l right", "Cursor right", "Move the time cursor one cell to the right.", False),
        ("lane-down", "j down", "Lane down", "Select the lane below, at the same time.", False),
        ("lane-up", "k up", "Lane up", "Select the lane above, at the same time.", False),
        ("lane-page-down", "pagedown ctrl+d ctrl+f", "Lanes down", "Move down by a screenful of lanes.", False),
        ("lane-page-up", "pageup ctrl+u ctrl+b", "Lanes up", "Move up by a screenful of lanes.", False),
        ("lane-first", "home", "Window start", "Move the cursor to the start of the window.", False),
        ("lane-last", "end", "Window end", "Move the cursor to the end of the window.", False),
        ("fit", "0", "Fit all", "Show the whole capture.", True),
        ("previous", "comma", "Previous", "Select the previous instruction of the lane.", False),
        ("next", "full_stop", "Next", "Select the next instruction of the lane.", True),
        ("select", "enter", "Select", "Select the instruction at the cursor and show its details.", True),
        ("engines", "e", "Engines/cores", "Show one line for each engine, or one for each core.", True),
    ),
    *_table(
        "list",
        ("line-down", "j down", "Down", "Move down a line.", False),
        ("line-up", "k up", "Up", "Move up a line.", False),
        ("half-down", "ctrl+d", "Half page down", "Move down half a page.", False),
        ("half-up", "ctrl+u", "Half page up", "Move up half a page.", False),
        ("page-down", "pagedown ctrl+f", "Page down", "Move down a page.", False),
        ("page-up", "pageup ctrl+b", "Page up", "Move up a page.", False),
        ("first", "g home", "Top", "Go to the first line.", False),
        ("last", "G end", "End", "Go to the last line.", False),
        ("column-left", "h left", "Left", "Scroll to the columns on the left.", False),
        ("column-right", "l right", "Right", "Scroll to the columns on the right.", False),
    ),
    *_table(
        "table",
        ("select", "enter", "Details", "Show all that is known of the instruction.", True),
        ("column-previous", "less_than_sign", "Column left", "Choose the column to the left.", True),
        ("column-next", "greater_than_sign", "Column right", "Choose the column to the right.", True),
        ("sort", "s", "Sort", "Sort by the chosen column; again: the other way round.", True),
        ("reverse", "I", "Reverse", "Reverse the order.", False),
        ("window-only", "v", "Window only", "Only instructions of the timeline's window, or all of the scope.", True),
        ("centre", "z", "Centre", "Put the selected row in the middle.", False),
        ("previous", "comma", "Previous", "Select the previous instruction of the same engine.", False),
        ("next", "full_stop", "Next", "Select the next instruction of the same engine.", False),
    ),
    *_table(
        "tree",
        ("node-down", "j down", "Down", "Select the node below; all panes follow.", False),
        ("node-up", "k up", "Up", "Select the node above.", False),
        ("fold", "h left", "Fold", "Fold the node, or go to its parent.", False),
        ("unfold", "l right", "Unfold", "Unfold the node.", False),
        ("scope", "enter space", "Only this", "Narrow all panes to this core, engine or port; again: everything.", True),
        ("top", "g home", "Top", "Go to the first node.", False),
        ("bottom", "G end", "End", "Go to the last node.", False),
        ("unfold-all", "e", "Unfold all", "Unfold or fold every core.", True),
    ),
    *_table(
        "problems",
        ("select", "enter", "Go to core", "Select the core or lane the problem is about.", True),
        ("next-problem", "right_curly_bracket", "Next problem", "Go to the next problem.", False),
        ("previous-problem", "left_curly_bracket", "Previous problem", "Go to the previous problem.", False),
    ),
    *_table(
        "chooser",
        ("open", "enter", "Open", "Open the capture.", True),
    ),
    *_table(
        "loading",
        ("cancel", "escape backspace", "Cancel", "Stop reading.", True),
    ),
)  # fmt: skip

#: Places of the screen: title for people, and the groups of actions that work there, nearest first.
PANES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "timeline": ("Timeline", ("timeline", "explorer", "app")),
    "table": ("Table", ("table", "list", "explorer", "app")),
    "summary": ("Summary", ("list", "explorer", "app")),
    "problems": ("Problems", ("problems", "list", "explorer", "app")),
    "tree": ("Tree", ("tree", "explorer", "app")),
    "detail": ("Detail", ("list", "explorer", "app")),
    "chooser": ("Captures", ("chooser", "list", "app")),
    "loading": ("Loading", ("loading", "app")),
    "help": ("Help", ("list", "app")),
}

#: Headings of the groups on the help screen.
GROUPS: Final[dict[str, str]] = {
    "timeline": "Timeline", "table": "Table", "tree": "Tree", "problems": "Problems", "chooser": "Captures",
    "loading": "Loading", "list": "Lists: table, summary, problems, detail, help", "explorer": "All panes",
    "app": "Everywhere",
}  # fmt: skip

_KEY_TEXTS: Final[dict[str, str]] = {
    "question_mark": "?", "colon": ":", "comma": ",", "full_stop": ".", "plus": "+", "minus": "-", "equals_sign": "=",
    "less_than_sign": "<", "greater_than_sign": ">", "left_curly_bracket": "{", "right_curly_bracket": "}",
    "escape": "Esc", "backspace": "Backspace", "enter": "Enter", "space": "Space", "tab": "Tab",
    "shift+tab": "Shift+Tab", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "Up",
    "down": "Down", "left": "Left", "right": "Right", "f1": "F1",
}  # fmt: skip


def key_text(key: str) -> str:
    """A key as people write it."""
    if key in _KEY_TEXTS:
        return _KEY_TEXTS[key]
    return f"Ctrl+{key[5:].upper()}" if key.startswith("ctrl+") else key


def actions_of(group: str) -> Iterator[Action]:
    """Actions of one group, in the order of the table."""
    return (action for action in ACTIONS if action.pane == group)


def bindings(*groups: str) -> list[Binding]:
    """Textual bindings of some groups, with the actions' ids, so that keys can be mapped anew."""
    return [
        Binding(key, action.function, action.text, show=False, id=action.id, tooltip=action.help)
        for group in groups
        for action in actions_of(group)
        for key in [",".join(action.keys)]
    ]


def bindings_map(*groups: str) -> BindingsMap:
    """The same as the map a widget holds."""
    return BindingsMap(bindings(*groups))


def footer_actions(pane: str) -> Iterator[Action]:
    """Actions the footer shows while ``pane`` is focused, nearest first."""
    groups: Iterable[str] = PANES[pane][1] if pane in PANES else ("app",)
    return (action for group in groups for action in actions_of(group) if action.footer)
