"""The registry of actions: bindings, footer, help screen and command palette are derived from this one table."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct
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


def _table(
    pane: str,
    *rows: tuple[str, str, str, str, str],
    dispatcher: str = "",
    functions: Mapping[str, str] | None = None,
    prefix: str = "",
) -> list[Action]:
    """Builds the actions of one pane.

    Args:
        pane: The pane.
        rows: (last part of the id, keys, text, help, footer) of each action.
        dispatcher: Function that is called with the last part of the id; empty: each has a function of that name.
        functions: Action strings of exceptions, by the last part of the id.
        prefix: First part of the ids; empty: the pane.
    """

    def function(name: str) -> str:
        own = f"{dispatcher}({name!r})" if dispatcher else name.replace("-", "_")
        return (functions or {}).get(name, own)

    return [
        Action(f"{prefix or pane}.{name}", tuple(keys.split()), pane, text, sentence, function(name), footer)
        for name, keys, text, sentence, footer in rows
    ]


# Keys that differ from what users of other tools may expect, and why:
# - Digits go to views and fit the timeline at once, so they cannot be counts before a key; `:+10` and `:-10` are.
# - `s` sorts by the chosen column without another key, the frequent case; `S` asks for the column.
# - Left and right move the time cursor as `h` and `l` do: zoom, marks and ranges refer to it. `a` and `d` pan.
# - Space in the tree narrows to a node: rows cannot be picked there.
# - `h` does not open the help: it moves left there too. `?` and F1 open and close it.
# - `}` and `{` treat consecutive instructions of one problem as one place.
_ACTIONS: Final[tuple[Action, ...]] = (
    *_table(
        "app",
        ("quit", "q", "Quit", "Leave tpuprof; in an overlay: close it.", "Quit"),
        ("leave", "ctrl+c ctrl+q", "Leave", "Leave tpuprof, whatever is open; asks only while an export runs.", ""),
        ("help", "question_mark f1", "Help", "All keys, those of the focused pane first.", "Help"),
        ("palette", "ctrl+p", "Palette", "Find any action by name.", ""),
        ("theme", "T", "Theme", "The next theme: dark, light, safe for colour-blind eyes.", ""),
        ("repaint", "ctrl+l", "Repaint", "Redraw the screen.", ""),
        ("suspend", "ctrl+z", "Suspend", "Back to the shell; `fg` returns.", ""),
        ("back", "escape backspace", "Back", "One step back: close, restore, clear selection, leave scope.", ""),
        functions={"palette": "command_palette", "suspend": "suspend_process"},
    ),
    *_table(
        "explorer",
        # first, so that in the summary's footer it is next to `v` and `V`
        ("view", "5", "View by name", "Fill the summary with one view, by name or prefix; empty: all views.",
         "View"),
        ("next-pane", "tab", "Next pane", "Focus the next pane.", "Pane"),
        ("previous-pane", "shift+tab", "Previous pane", "Focus the previous pane.", ""),
        ("timeline", "1", "Timeline", "Focus the timeline; on a small screen it fills the screen.", ""),
        ("table", "2", "Table", "Focus the table of {events}.", ""),
        ("summary", "3", "Summary", "Focus the summary: where the time went.", ""),
        ("problems", "4", "Problems", "Focus the list of problems.", ""),
        ("tree", "t", "Tree", "Show, focus or hide the tree of {units} and {lanes}.", "Tree"),
        ("detail", "i", "Detail", "Show or hide the details of the selected {event}.", "Detail"),
        ("maximise", "Z", "Maximise", "Show the focused pane on the whole screen, or restore it.", ""),
        ("focus-selection", "f", "Focus", "Bring the selected {event} into view; again: zoom to it.", ""),
        ("filter", "ampersand backslash", "Filter", "Show only what passes a filter; in the tree: nodes; empty: all.",
         "Filter"),
        ("search", "slash", "Search",
         "Search names as you type: in the table's order, or in time; in detail and problems lines.", "Search"),
        ("search-next", "n", "Next match", "Go to the next match.", ""),
        ("search-previous", "N", "Previous match", "Go to the previous match.", ""),
        ("group", "b", "Group by", "Group the table's rows by name, {scope}, type, {unit}, {lane}.", "Group"),
        ("flame-graph", "H", "Flame graph", "Time by call path as a flame graph: what called what, and how long.", ""),
        ("released-by", "left_square_bracket", "Released by",
         "Go to what the selected {event} waited for, or what launched it.", ""),
        ("releases", "right_square_bracket", "Releases",
         "Go to what waited for the selected {event}, or what it launched.", ""),
        ("mark", "m", "Mark", "Mark the time of cursor or row with the letter typed next; again: remove it.", ""),
        ("go-to-mark", "apostrophe", "Go to mark", "Go to the mark or kept span of the letter typed next.", ""),
        ("keep-span", "M", "Keep span", "Keep the range, selection or window under the letter typed next.", ""),
        ("isolate", "o", "Only this {unit}",
         "Show only the selected {unit}, or the summary's line, in all panes; again: all.", ""),
        ("next-problem", "right_curly_bracket", "Next problem",
         "Go to the next {event} with a problem, else to the next problem.", ""),
        ("previous-problem", "left_curly_bracket", "Previous problem",
         "Go to the previous {event} with a problem, else to the previous problem.", ""),
        ("next-difference", "semicolon", "Next difference",
         "Go to the next {event} that differs from the base: added, changed, or longer or shorter beyond noise.", ""),
        ("previous-difference", "quotation_mark", "Previous difference",
         "Go to the previous {event} that differs from the base.", ""),
        ("swap-sides", "W", "Swap sides", "Open the base, compared with what is open now.", ""),
        ("leave-comparison", "Q", "Leave comparison", "Open this capture without a comparison.", ""),
        ("reload", "R ctrl+r", "Reload", "Read the capture again.", ""),
        ("next-capture", "right_parenthesis", "Next capture", "Open the next capture in the folder.", ""),
        ("previous-capture", "left_parenthesis", "Previous capture", "Open the previous capture in the folder.", ""),
        ("open-other", "O", "Open other", "Choose another capture in the folder or below it.", ""),
        ("jump", "ctrl+o", "Jump", "A letter on each pane: the next key goes there.", ""),
        ("copy-command", "at", "Copy command",
         "Copy the command line that opens what is shown; in the summary the one that prints its figures.", ""),
        ("pause", "p", "Pause", "Hold the live summary; again: follow the screen.", ""),
        ("command-line", "colon", "Command", "Type a command: filter, sort, go, {unit}, ... or the name of any action.",
         "Command"),
        ("export", "x", "Export", "Open the export menu: {written}, tables.", "Export"),
        ("stop-export", "X", "Stop export", "Stop the running export; no partial file remains.", ""),
        dispatcher="do",
    ),
    *_table(
        # of the timeline, but in all panes
        "explorer",
        ("fit", "0", "Fit all", "Show all of the time: no range, and the timeline zoomed out.", "Fit all"),
        dispatcher="do", prefix="timeline",
    ),
    *_table(
        "timeline",
        ("zoom-in", "w plus equals_sign", "Zoom in", "Zoom in about the cursor.", "Zoom"),
        ("zoom-out", "s minus", "Zoom out", "Zoom out about the cursor.", "Zoom"),
        ("pan-left", "a", "Pan left", "Move the window a tenth to earlier times.", "Pan"),
        ("pan-right", "d", "Pan right", "Move the window a tenth to later times.", "Pan"),
        ("window-left", "A", "Previous window", "Move back by a whole window.", ""),
        ("window-right", "D", "Next window", "Move on by a whole window.", ""),
        ("cursor-left", "h left", "Cursor left", "Move the time cursor one cell to the left.", ""),
        ("cursor-right", "l right", "Cursor right", "Move the time cursor one cell to the right.", ""),
        ("lane-down", "j down", "Lane down", "Select the lane below, at the same time.", ""),
        ("lane-up", "k up", "Lane up", "Select the lane above, at the same time.", ""),
        ("lane-page-down", "pagedown ctrl+d ctrl+f", "Lanes down", "Move down by a screenful of lanes.", ""),
        ("lane-page-up", "pageup ctrl+u ctrl+b", "Lanes up", "Move up by a screenful of lanes.", ""),
        ("lane-first", "home", "Window start", "Move the cursor to the start of the window.", ""),
        ("lane-last", "end", "Window end", "Move the cursor to the end of the window.", ""),
        ("previous", "comma", "Previous", "Select the previous {event} of the lane.", "Step"),
        ("next", "full_stop", "Next", "Select the next {event} of the lane.", "Step"),
        ("select", "enter", "Select",
         "Select the {event} or pause at the cursor and show its details; a pause again: zoom to it.", "Select"),
        ("engines", "e", "{Lanes}/{units}", "Show one line for each {lane}, or one for each {unit}.",
         "{Lanes}/{units}"),
        ("go-to-time", "g", "Go to time", "Go to a time: 12.5ms, 1200us, 30%, +5us, ns, 12500c (cycles).", "Time"),
        ("range", "r", "Range", "Limit figures to the selection or to the range between two cursors.", "Range"),
        ("next-same", "greater_than_sign", "Next of the name", "Select the lane's next of this name.", ""),
        ("previous-same", "less_than_sign", "Previous of the name", "Select the lane's previous of this name.", ""),
        ("next-pause", "J", "Next pause", "Select the {lane}'s or {unit}'s next pause of at least a cell.", ""),
        ("previous-pause", "K", "Previous pause", "Select its previous pause.", ""),
        ("colours", "C", "Colours", "Colour by {colourings}.", "Colours"),
        ("legend", "L", "Legend", "Show what the colours and letters mean, or hide it.", "Legend"),
        ("strips", "B", "Strips", "Below each lane: its bandwidth, its busy share, or nothing.", ""),
        ("scale", "u", "Time/cycles", "Show times in units of time or in cycles.", ""),
        ("copy", "y", "Copy", "Copy the range, else the selected {event}, else the window's start and end.", ""),
        ("pin", "P", "Pin", "Pin the selected lane to the top, or unpin it.", ""),
        ("open-lane", "z", "Stack", "Show the selected lane as a stack, a row for each depth, or as one row.", ""),
        ("open-all", "E", "All stacks", "Show all lanes with nested events as stacks, or each as one row.", ""),
        dispatcher="do", functions={"select": "select", "go-to-time": "go_to_time", "copy": "copy"},
    ),
    *_table(
        "list",
        ("line-down", "j down", "Down", "Move down a line.", ""),
        ("line-up", "k up", "Up", "Move up a line.", ""),
        ("half-down", "ctrl+d", "Half page down", "Move down half a page.", ""),
        ("half-up", "ctrl+u", "Half page up", "Move up half a page.", ""),
        ("page-down", "pagedown ctrl+f", "Page down", "Move down a page.", ""),
        ("page-up", "pageup ctrl+b", "Page up", "Move up a page.", ""),
        ("first", "g home", "Top", "Go to the first line.", ""),
        ("last", "G end", "End", "Go to the last line.", ""),
        ("centre", "z", "Centre", "Put the line under the cursor in the middle.", ""),
        dispatcher="do", functions={"centre": "centre"},
    ),
    *_table(
        # lists with columns
        "wide",
        ("column-left", "h left", "Left", "Scroll to the columns on the left.", ""),
        ("column-right", "l right", "Right", "Scroll to the columns on the right.", ""),
        functions={"column-left": "scroll_columns(-1)", "column-right": "scroll_columns(1)"}, prefix="list",
    ),
    *_table(
        "text",
        ("page-on", "space", "Page on", "Move down a page.", ""),
        functions={"page-on": "do('page-down')"},
    ),
    *_table(
        "table",
        ("select", "enter", "Details", "Show all details of the {event}.", "Details"),
        ("column-previous", "less_than_sign", "Column left", "Choose the column to the left.", "Column"),
        ("column-next", "greater_than_sign", "Column right", "Choose the column to the right.", "Column"),
        ("sort", "s", "Sort", "Sort by the chosen column; again: reverse.", "Sort"),
        ("sort-by", "S", "Sort by", "Sort by a column, named by its first letters; again: reverse.", ""),
        ("reverse", "I", "Reverse", "Reverse the order.", ""),
        ("frequencies", "F", "Frequencies", "How often each value of the chosen column occurs, and its time.", ""),
        ("columns", "c", "Columns", "Choose columns and their order.", "Columns"),
        ("percent", "percent_sign", "Percent", "Show each duration's share of the total of the table, or not.", ""),
        ("pick", "space", "Pick row", "Pick the row for copying, or unpick it.", ""),
        ("clear-picks", "U", "Clear picks", "Unpick all rows.", ""),
        ("copy-rows", "y", "Copy rows", "Copy the picked rows, or the row under the cursor.", "Copy"),
        ("copy-cell", "Y", "Copy cell", "Copy the cell of the chosen column.", ""),
        ("copy-column", "ctrl+y", "Copy column", "Copy the chosen column of the picked rows, or of all.", ""),
        ("window-only", "v", "Window only", "Show only what the timeline's window holds, or all.", "Window only"),
        ("previous", "comma", "Previous", "Select the previous {event} of the same {lane}.", ""),
        ("next", "full_stop", "Next", "Select the next {event} of the same {lane}.", ""),
        functions={
            "column-previous": "choose_column(-1)", "column-next": "choose_column(1)",
            "previous": "step(-1)", "next": "step(1)",
            **{name: f"do({name!r})" for name in ("reverse", "window-only", "percent", "clear-picks")},
        },
    ),
    *_table(
        "summary",
        ("select", "enter", "Go there", "Go to the line's {event}, pause or {unit}; of several to the longest.",
         "Go there"),
        ("copy-line", "y", "Copy line", "Copy the line under the cursor.", ""),
        ("copy-all", "Y", "Copy all", "Copy the whole summary, as it is shown.", ""),
        ("next-section", "J", "Next section", "Scroll to the next section.", "Section"),
        ("previous-section", "K", "Previous section", "Scroll to the previous section.", "Section"),
        ("next-view", "v", "Next view", "Fill the summary with the next view, all rows; Esc: all views.",
         "View"),
        ("previous-view", "V", "Previous view", "Fill the summary with the previous view.", "View"),
        functions={
            "next-section": "step_section(1)", "previous-section": "step_section(-1)",
            "next-view": "step_view(1)", "previous-view": "step_view(-1)",
        },
    ),
    *_table(
        "groups",
        ("drill", "enter", "Show these", "Show the group's {events}: sets the filter.", "Show these"),
        ("next-grouping", "b", "Group by", "Group by the next column; `:group COLUMN COLUMN` groups by any one or two.",
         "Group by"),
        ("work-only", "w", "Work/all", "Count only work of the device, or also waits and the host.", "Work/all"),
        ("column-previous", "less_than_sign", "Sort left", "Sort by the column to the left; shows it.", "Sort"),
        ("column-next", "greater_than_sign s", "Sort right", "Sort by the column to the right; shows it.", "Sort"),
        ("reverse", "I", "Reverse", "Reverse the order.", "Reverse"),
        ("copy", "y", "Copy", "Copy the list.", "Copy"),
        functions={"column-previous": "scroll_columns(-1)", "column-next": "scroll_columns(1)"},
    ),
    *_table(
        "flame",
        ("drill", "enter", "Show these", "Show only the path's {events}, in all panes.", "Show these"),
        ("zoom-in", "w plus equals_sign", "Zoom in", "Zoom in to the path under the cursor.", "Zoom"),
        ("zoom-out", "s minus", "Zoom out", "Zoom out to the caller.", "Zoom"),
        ("fit", "0", "Fit all", "Show all paths.", "Fit all"),
        ("copy", "y", "Copy", "Copy the path and its times.", "Copy"),
        functions={"zoom-in": "zoom(1)", "zoom-out": "zoom(-1)", "fit": "zoom(0)"},
    ),
    *_table(
        "help",
        ("search", "slash", "Search", "Show only the lines that contain a text; empty: all.", "Search"),
    ),
    *_table(
        "columns",
        ("show-hide", "space enter", "Show/hide", "Show the column, or hide it.", "Show/hide"),
        ("earlier", "K", "Earlier", "Move the column to the left.", "Move"),
        ("later", "J", "Later", "Move the column to the right.", "Move"),
        ("usual", "r", "Usual", "The default columns in their default order.", "Usual"),
        functions={"earlier": "shift(-1)", "later": "shift(1)"},
    ),
    *_table(
        "tree",
        ("node-down", "j down", "Down", "Select the node below; all panes follow.", ""),
        ("node-up", "k up", "Up", "Select the node above.", ""),
        ("fold", "h left", "Fold", "Fold the node, or go to its parent.", ""),
        ("unfold", "l right", "Unfold", "Unfold the node.", ""),
        ("scope", "enter space", "Only this", "Narrow all panes to this node; again: everything. Or open the capture.",
         "Only this"),
        ("top", "g home", "Top", "Go to the first node.", ""),
        ("bottom", "G end", "End", "Go to the last node.", ""),
        ("page-down", "pagedown ctrl+d ctrl+f", "Page down", "Move down a page.", ""),
        ("page-up", "pageup ctrl+u ctrl+b", "Page up", "Move up a page.", ""),
        ("fold-unfold", "e", "Fold/unfold", "Fold or unfold the node; without children: its parent.",
         "Fold"),
        ("unfold-all", "E", "Unfold all", "Unfold every node.", "Fold"),
        ("fold-all", "C", "Fold all", "Fold every node.", "Fold"),
        ("copy", "y", "Copy", "Copy the line under the cursor.", ""),
        functions={
            "node-down": "do('line-down')", "node-up": "do('line-up')", "top": "do('first')", "bottom": "do('last')",
            "page-down": "do('page-down')", "page-up": "do('page-up')",
        },
    ),
    *_table(
        "detail",
        ("follow", "enter", "Follow", "Go to the {event} that the line under the cursor names.", "Follow"),
        ("previous", "comma", "Previous", "Select the previous {event} of the lane.", "Step"),
        ("next", "full_stop", "Next", "Select the next {event} of the lane.", "Step"),
        ("copy-line", "y", "Copy line", "Copy the line under the cursor.", "Copy"),
        ("copy-all", "Y", "Copy all", "Copy all details of the {event}.", ""),
        functions={"previous": "step(-1)", "next": "step(1)"},
    ),
    *_table(
        "problems",
        ("select", "enter", "Go there", "Select the {event}, lane or {unit} the problem is about; again: the next.",
         "Go there"),
        ("copy-line", "y", "Copy problem", "Copy the problem under the cursor.", "Copy"),
        ("copy-all", "Y", "Copy all", "Copy all problems.", ""),
    ),
    *_table(
        "chooser",
        ("open", "enter", "Open", "Open the capture, compared with the base if there is one.", "Open"),
        ("mark", "space", "Mark", "Mark a recording: Enter opens the marked ones on one time line.", "Mark"),
        ("base", "b", "Base", "Make it the base that captures are compared with; again: none.", "Base"),
    ),
    *_table(
        "fleet",
        ("open", "enter", "Open", "Open the capture at its path.", "Open"),
        ("sort-next", "s", "Next order", "Order by the next figure; after the last one: by day.", "Sort"),
        ("sort-previous", "S", "Previous order", "Order by the previous figure; before the first one: by day.", ""),
        ("reverse", "r", "Reverse", "Reverse the order.", "Reverse"),
        ("filter", "ampersand backslash", "Filter", "Filter the captures by words: path, chip, device, day.", "Filter"),
        functions={"sort-next": "sort(1)", "sort-previous": "sort(-1)"},
    ),
    *_table(
        "prompt",
        ("accept", "enter", "Accept", "Accept the text.", ""),
        ("cancel", "escape", "Cancel", "Cancel.", ""),
        ("older", "up ctrl+p", "Older", "The previous text typed.", ""),
        ("newer", "down ctrl+n", "Newer", "The next text typed.", ""),
        functions={"older": "recall(1)", "newer": "recall(-1)"},
    ),
    *_table(
        "export",
        ("core", "o", "Only the {unit}", "Write only the {unit} of the scope or the selection; again: all.", ""),
        ("cores", "n", "Only some {units}", "Type the {units} to write; empty: all.", ""),
        ("window", "v", "Only the window", "Write only what runs in the range, else the window; again: all.", ""),
        ("filtered", "ampersand backslash", "Only the filter", "Write only what passes the filter; again: all.", ""),
        ("folder", "e", "Folder", "Choose the folder to write to.", "Folder"),
        ("choose", "enter", "Choose", "Run the line under the cursor.", ""),
        ("line-down", "down", "Down", "Move down a line.", ""),
        ("line-up", "up", "Up", "Move up a line.", ""),
        ("stop", "X", "Stop", "Stop the running export; no partial file remains.", ""),
        functions={
            "line-down": "do('line-down')", "line-up": "do('line-up')",
            **{name: f"only({name!r})" for name in ("core", "window", "filtered")},
            **{name: f"type({name!r})" for name in ("cores", "folder")},
        },
    ),
    *_table(
        "confirm",
        ("yes", "y", "Yes", "Confirm.", "Yes"),
        ("no", "n", "No", "Cancel.", "No"),
        functions={"yes": "answer(True)", "no": "answer(False)"},
    ),
    *_table(
        "loading",
        ("cancel", "escape backspace", "Cancel", "Stop reading.", "Cancel"),
        ("again", "R ctrl+r", "Read again", "Read again what could not be read.", ""),
    ),
)  # fmt: skip


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
    for action in _ACTIONS:
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


#: Panes by id: display title, and the groups of actions available there, the most specific first.
PANES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "timeline": ("Timeline", ("timeline", "explorer", "app")),
    "table": ("Table", ("table", "list", "wide", "explorer", "app")),
    "summary": ("Summary", ("summary", "list", "wide", "text", "explorer", "app")),
    "problems": ("Problems", ("problems", "list", "text", "explorer", "app")),
    "tree": ("Tree", ("tree", "explorer", "app")),
    "groups": ("Groups", ("groups", "list", "wide", "text", "app")),
    "flame": ("Flame graph", ("flame", "list", "wide", "app")),
    "columns": ("Columns", ("columns", "list", "app")),
    "copied": ("Copied", ("list", "text", "app")),
    "detail": ("Detail", ("detail", "list", "text", "explorer", "app")),
    "chooser": ("Captures", ("chooser", "list", "app")),
    "fleet": ("Data set", ("fleet", "list", "wide", "text", "app")),
    "loading": ("Loading", ("loading", "app")),
    "help": ("Help", ("help", "list", "text", "app")),
    "export": ("Export", ("export", "app")),
    "confirm": ("Question", ("confirm", "list", "app")),
}

#: Headings of the groups on the help screen.
GROUPS: Final[dict[str, str]] = {
    "timeline": "Timeline", "table": "Table", "summary": "Summary", "tree": "Tree", "problems": "Problems",
    "detail": "Detail",
    "groups": "Groups of the table", "flame": "Flame graph",
    "columns": "Columns of the table", "chooser": "Captures", "fleet": "Captures of a data set",
    "loading": "Loading", "list": "Lists: table, summary, problems, detail, help",
    "wide": "With columns: table, summary, groups, flame graph, data set",
    "help": "Help",
    "text": "Where nothing is picked: summary, problems, detail, help", "explorer": "All panes",
    "app": "Everywhere", "export": "Export menu", "confirm": "Questions", "prompt": "While typing in the bottom line",
}  # fmt: skip

#: Key of an action whose keys the user gave to others.
NO_KEY: Final = "unbound"
_KEY_TEXTS: Final[dict[str, str]] = {
    NO_KEY: "-",
    "question_mark": "?", "colon": ":", "comma": ",", "full_stop": ".", "plus": "+", "minus": "-", "equals_sign": "=",
    "less_than_sign": "<", "apostrophe": "'", "slash": "/", "percent_sign": "%",
    "semicolon": ";", "quotation_mark": '"', "at": "@",
    "left_parenthesis": "(", "right_parenthesis": ")",
    "greater_than_sign": ">", "left_curly_bracket": "{", "right_curly_bracket": "}",
    "escape": "Esc", "backspace": "Backspace", "enter": "Enter", "space": "Space", "tab": "Tab",
    "ampersand": "&", "backslash": "\\", "left_square_bracket": "[", "right_square_bracket": "]",
    "shift+tab": "Shift+Tab", "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "Up",
    "down": "Down", "left": "Left", "right": "Right", "f1": "F1",
}  # fmt: skip


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
    if key in _KEY_TEXTS:
        return _KEY_TEXTS[key]
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
