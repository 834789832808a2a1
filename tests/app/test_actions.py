from __future__ import annotations

from collections import Counter

import pytest
from textual.actions import parse
from textual.keys import _get_key_aliases

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.app.drawing.glyphs import UNICODE
from tpuprof_tui.app.drawing.theme import DARK
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.export import ExportPane
from tpuprof_tui.app.overlays.flame import FlameGraph
from tpuprof_tui.app.overlays.help import HelpLines
from tpuprof_tui.app.overlays.overlay import ConfirmPane
from tpuprof_tui.app.overlays.table_lists import ColumnList, GroupList
from tpuprof_tui.app.panes.detail import DetailPane
from tpuprof_tui.app.panes.lines import LinesView
from tpuprof_tui.app.panes.problems import ProblemsPane
from tpuprof_tui.app.panes.prompt import Prompt
from tpuprof_tui.app.panes.summary.summary import SummaryPane
from tpuprof_tui.app.panes.table import EventTable
from tpuprof_tui.app.panes.timeline.changes import CHANGES
from tpuprof_tui.app.panes.timeline.timeline import TimelinePane
from tpuprof_tui.app.panes.tree import GroupTree
from tpuprof_tui.app.settings import actions
from tpuprof_tui.app.settings.actions import (
    ACTIONS,
    COMMANDS,
    GROUPS,
    PANES,
    Action,
    actions_of,
    bindings,
    footer_keys,
    key_text,
)
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import CaptureList
from tpuprof_tui.app.shell.data_set import CaptureTable
from tpuprof_tui.app.shell.loading import LoadingPane
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

OWNERS = {
    "app": TpuprofApp, "explorer": ExplorerScreen, "timeline": TimelinePane, "list": LinesView,
    "table": EventTable, "summary": SummaryPane, "tree": GroupTree, "problems": ProblemsPane,
    "detail": DetailPane, "chooser": CaptureList, "fleet": CaptureTable,
    "loading": LoadingPane, "text": LinesView,
    "export": ExportPane, "confirm": ConfirmPane,
    "prompt": Prompt, "groups": GroupList, "flame": FlameGraph, "wide": FlameGraph, "columns": ColumnList,
    "help": HelpLines,
}  # fmt: skip
#: Never to be bound: what terminals send for other keys, or take for themselves.
FORBIDDEN = {"ctrl+i", "ctrl+m", "ctrl+h", "f10", "f11", "ctrl+s"}


def clashes(pane: str, everything: tuple[Action, ...]) -> list[str]:
    """Keys that two actions of one pane share; the panes above may only be covered where that is said below."""
    groups = PANES[pane][1]
    keys = Counter(key for action in everything if action.pane in groups for key in action.keys)
    return sorted(key for key, count in keys.items() if count > 1)


@pytest.mark.parametrize("pane", PANES)
def test_no_two_actions_share_a_key_in_a_pane(pane):
    # while loading there is nothing to go back to: Esc cancels
    allowed = ["backspace", "escape"] if pane == "loading" else []
    assert clashes(pane, ACTIONS) == allowed


def test_a_clash_would_be_found():
    doubled = (*ACTIONS, Action("table.other", ("s",), "table", "Other", "Another thing.", "other"))
    assert clashes("table", doubled) == ["s"]


def name_of(action: Action) -> str:
    return action.function.partition("(")[0]


def test_every_action_is_explained_bound_and_done_by_a_function():
    for action in ACTIONS:
        assert action.help.endswith("."), action.id
        assert action.text, action.id
        assert action.keys, action.id
        assert action.pane in GROUPS, action.id
        assert not FORBIDDEN & set(action.keys), action.id
        assert callable(getattr(OWNERS[action.pane], f"action_{name_of(action)}")), action.id


def test_every_change_of_the_timeline_is_an_action_of_the_registry():
    assert {f"do({name!r})" for name in CHANGES} == {each.function for each in actions_of("timeline")} - {
        "select", "go_to_time", "copy"
    }  # fmt: skip


def test_parts_of_the_explorer_do_every_action_and_every_command_and_no_others(session: Session):
    screen = ExplorerScreen(session, DARK, UNICODE, TpuprofApp(profile=session.profile).exports)
    done = [parse(action.function)[2][0] for action in actions_of("explorer")]
    assert set(screen.actions) == set(done)
    assert set(screen.commands) == {command.id for command in COMMANDS}


def test_every_action_has_a_key_or_is_in_the_palette():
    # the palette lists all actions of the groups of each pane: an action of no pane could not be reached
    groups = {group for _, names in PANES.values() for group in names} | {"prompt"}
    assert {action.pane for action in ACTIONS} <= groups
    assert all(action.keys for action in actions_of("prompt"))


def test_every_action_method_is_an_action_of_the_registry():
    known = {name_of(action) for action in ACTIONS}
    methods = {
        name.removeprefix("action_")
        for owner in OWNERS.values()
        for place in owner.__mro__
        if place.__module__.startswith("tpuprof_tui.")
        for name in vars(place)
        if name.startswith("action_")
    }
    assert methods - known == set()


def test_ids_are_unique():
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)


def test_every_escape_has_a_twin():
    # in a text field Backspace deletes
    for action in ACTIONS:
        assert ("escape" in action.keys) == ("backspace" in action.keys) or action.pane == "prompt"


def test_keys_of_the_text_field_differ():
    keys = [key for action in actions_of("prompt") for key in action.keys]
    assert len(set(keys)) == len(keys)


def test_bindings_carry_the_ids_of_their_actions():
    made = bindings("timeline", "app")
    assert {binding.id for binding in made} == {action.id for action in (*actions_of("timeline"), *actions_of("app"))}


@pytest.mark.parametrize("pane", PANES)
def test_left_and_right_are_listed_and_bound_only_where_they_do_something(pane):
    owner = OWNERS.get(pane, LinesView)
    listed = {action.id for group in PANES[pane][1] for action in actions_of(group)}
    bound = {binding.id for each in owner.__mro__ for binding in vars(each).get("BINDINGS", ())}
    has_columns = pane in ("table", "summary", "groups", "flame", "fleet")
    assert hasattr(owner, "action_scroll_columns") == has_columns
    both = {"list.column-left", "list.column-right"}
    assert [each & both for each in (listed, bound)] == [both if has_columns else set()] * 2


@pytest.mark.parametrize("pane", PANES)
def test_the_footer_always_tells_help_and_quit(pane):
    texts = [text for _, text in footer_keys(pane, VOCABULARY)]
    assert {"Help", "Quit"} <= set(texts)


def test_footer_shows_neighbours_of_one_name_together():
    assert (("w", "s"), "Zoom") in footer_keys("timeline", VOCABULARY)


def test_key_names_are_those_people_write():
    assert key_text("question_mark") == "?"
    assert key_text("ctrl+p") == "Ctrl+P"
    for action in ACTIONS:
        for key in action.keys:
            shown = key_text(key)
            assert len(shown) == 1 or shown[0].isupper() or shown == key
            assert _get_key_aliases(key)
    assert actions.key_text("Z") == "Z"
