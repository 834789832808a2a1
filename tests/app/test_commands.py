"""The command line: what is typed there is judged, and done."""

from __future__ import annotations

import shutil
from pathlib import Path

from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope, SelectedItem, Sort
from tpuprof_tui.app.explorer.commands import ExportRequests
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.settings.actions import (
    COMMANDS,
    actions_for,
    actions_named,
    commands_named,
    split_command,
    views_named,
)
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY
from tpuprof_tui.sources.torch.vocabulary import VOCABULARY as TORCH
from tpuprof_tui.views.registry import views_of

SAMPLES = Path(__file__).parents[2] / "samples"


async def typed(pilot, text: str) -> None:
    """Types a command."""
    await pilot.press("colon", *text)
    await settled(pilot)
    await pilot.press("enter")
    await settled(pilot)


def test_every_command_is_told():
    assert all(command.help.endswith(".") for command in COMMANDS)


def test_words_are_split_from_what_follows():
    assert split_command("  filter dur>1us | TIU ") == ("filter", "dur>1us | TIU")
    assert split_command("120") == ("row", "120")
    assert split_command("+12") == ("move", "+12")
    assert split_command("-3") == ("move", "-3")
    assert split_command("+5us") == ("+5us", "")
    assert split_command("q") == ("quit", "")
    assert split_command("goto 5us") == ("go", "5us")


def test_names_may_be_begun():
    assert [command.name for command in commands_named("co", VOCABULARY)] == ["columns", "core"]
    assert [command.name for command in commands_named("core", VOCABULARY)] == ["core"]
    assert [action.id for action in actions_named("zoom i", "timeline", VOCABULARY)] == ["timeline.zoom-in"]
    assert actions_named("zoom in", "table", VOCABULARY) == []
    for action in actions_for(VOCABULARY):
        if action.pane in ("timeline", "explorer"):
            assert action in actions_named(action.id, "timeline", VOCABULARY)


def test_a_source_s_own_view_goes_before_generic_ones_that_begin_alike():
    known = [view.id for view in views_of(TORCH, screen=True)]
    assert views_named("op", known, TORCH) == ["operators"]
    assert views_named("operati", known, TORCH) == ["operations"]
    assert views_named("operations", known, TORCH) == ["operations"]
    assert len(views_named("o", known, TORCH)) > 1


async def test_a_view_is_shown_by_the_beginning_of_its_name(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await typed(pilot, "dur")
        assert screen.panes.summary.answers.chosen == "durations"
        assert screen.focused is screen.panes.summary
        await pilot.press("colon", "o")
        await settled(pilot)
        assert "operations, overview" in frame(pilot.app) or "several" not in frame(pilot.app)
        await pilot.press("escape")
        await typed(pilot, "steps")
        assert screen.panes.summary.answers.chosen == "steps"


async def test_a_key_lists_the_views_and_takes_the_beginning_of_a_name(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        summary = screen.panes.summary
        await press(pilot, "2 5")
        shown = frame(pilot.app)
        assert all(view.id in shown for view in summary.answers.views)
        await press(pilot, "o")
        assert screen.prompt.hint.text == "overview, operations"
        await press(pilot, "v enter")
        assert summary.answers.chosen == "overview"
        assert summary.has_focus
        # words of a name may stand apart, and where several begin so none is taken
        await press(pilot, "5 c r i t i c a l space p enter")
        assert summary.answers.chosen == "critical_path"
        await press(pilot, "5 c enter")
        assert screen.prompt.is_open
        assert "several: " in frame(pilot.app)
        assert summary.answers.chosen == "critical_path"
        await press(pilot, "z enter")
        assert "views are " in frame(pilot.app)
        await press(pilot, "ctrl+u escape")
        # nothing typed: all views
        await press(pilot, "5 enter")
        assert not screen.prompt.is_open
        assert summary.answers.chosen == ""


async def test_lines_are_counted_from_here(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j full_stop")
        lane, row = screen.state.selection.lane, screen.state.selection.row
        await typed(pilot, "+10")
        assert (screen.state.selection.lane, screen.state.selection.row) == (lane, row + 10)
        await typed(pilot, "-4")
        assert screen.state.selection.row == row + 6
        await press(pilot, "2 g")
        await typed(pilot, "+25")
        await typed(pilot, "move -5")
        assert screen.table.rows.position == 20
        await typed(pilot, "120")
        assert screen.table.rows.position == 119
        await press(pilot, "t t g")
        await typed(pilot, "+3")
        assert screen.query_one("#tree").cursor == 3
        await typed(pilot, "move x")
        assert "number of lines" in frame(pilot.app)


async def test_filter_and_sort(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await typed(pilot, "filter engine=TIU")
        assert screen.state.filter == "engine=TIU"
        await typed(pilot, "sort dur")
        assert screen.state.sort == Sort("duration", True)
        assert screen.focused.id == "table"
        await typed(pilot, "sort dur up")
        assert screen.state.sort == Sort("duration", False)
        await typed(pilot, "sort bw")
        assert screen.table.columns.chosen.key == "ddr_bandwidth"
        assert "DDR BW GB/s ▼" in frame(pilot.app)
        await typed(pilot, "filter")
        assert screen.state.filter == ""


async def test_the_place_of_a_fault_is_marked_where_it_is(profile):
    async with opened(profile, (80, 24)) as pilot:
        await pilot.press("colon", *"filter dur>")
        await settled(pilot)
        prompt = explorer(pilot).prompt
        assert prompt.hint.fault
        assert prompt.hint.column == len("filter dur>")
        await press(pilot, "enter")
        assert prompt.is_open
        await press(pilot, "escape")
        assert not prompt.is_open


async def test_times_and_cores(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await typed(pilot, "go 5us")
        assert screen.state.cursor == 5_000
        await typed(pilot, "window 2us..6us")
        assert (screen.state.start, screen.state.end) == (2_000, 6_000)
        await typed(pilot, "core 1")
        assert screen.state.selection == SelectedItem(1)
        await typed(pilot, "core least")
        assert screen.state.selection.group == Query(screen.session).headline.idlest.unit
        await press(pilot, "o")
        await typed(pilot, "core most")
        assert screen.state.scope == Scope(Query(screen.session).headline.busiest.unit)
        await typed(pilot, "core")
        assert (screen.state.scope, screen.state.selection) == (Scope(), SelectedItem())


async def test_columns_groups_and_rows(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await typed(pilot, "columns name,dur, core")
        assert [column.key for column in screen.table.columns.columns] == ["name", "duration", "core"]
        await typed(pilot, "columns ker, DDR BW,cycles core")
        assert [column.key for column in screen.table.columns.columns] == ["kernel", "ddr_bandwidth", "cycles", "core"]
        await typed(pilot, "columns")
        assert screen.state.columns == ()
        await typed(pilot, "120")
        assert screen.table.rows.position == 119
        await typed(pilot, "group kernel")
        assert pilot.app.screen.has_class("groups")
        assert pilot.app.screen.pane.keys == ("kernel",)


async def test_what_cannot_be_done_says_why_and_stays(profile):
    async with opened(profile) as pilot:
        before = explorer(pilot).state
        for text, told in (
            ("sort zzz", "no such column"), ("columns dur,zzz", "no such column: zzz"),
            ("columns ycl", "ycl: which of cycles"), ("columns dur,co", "co: which of core, "),
            ("group zzz", "no such column"),
            ("go never", "not a time"), ("window 5us", "not a time range"), ("window 6us..2us", "before it starts"),
            ("core 77", "cores are"), ("row x", "row 120"), ("export cake", "kinds are xlsx"),
            ("open /nowhere/at/all", "path of a capture"), ("zzz", "not a command"),
            ("zoom", "several: zoom in, zoom out"),
        ):  # fmt: skip
            await typed(pilot, text)
            assert told in frame(pilot.app).splitlines()[-1]
            assert explorer(pilot).prompt.is_open
            assert explorer(pilot).state == before
            await press(pilot, "escape")


async def test_actions_can_be_typed_by_name(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        span = screen.state.span
        await typed(pilot, "zoom in")
        assert screen.state.span < span
        assert screen.focused.id == "timeline"
        await typed(pilot, "maxi")
        assert screen.manager.layout.maximised == "timeline"
        await typed(pilot, "help")
        assert pilot.app.screen.has_class("help")


async def test_what_it_can_become_is_shown_while_typed(profile):
    async with opened(profile) as pilot:
        await press(pilot, "colon")
        assert "filter, sort, group" in frame(pilot.app).splitlines()[-1]
        await pilot.press(*"co")
        await settled(pilot)
        assert "columns, core, colours, copy, copy command, command" in frame(pilot.app).splitlines()[-1]
        await pilot.press(*"re")
        await settled(pilot)
        assert "core NUMBER|least|most: Select a core" in frame(pilot.app).splitlines()[-1]
        await press(pilot, "escape")
        assert not explorer(pilot).prompt.is_open


async def test_another_capture_is_opened_and_the_program_left(tmp_path):
    shutil.copytree(SAMPLES / "aks_decode_mode0", tmp_path / "one")
    app = TpuprofApp(str(SAMPLES / "aks_bmodel"))
    async with app.run_test(size=(120, 40)) as pilot:
        for name in ("aks_bmodel", "one"):
            for _ in range(500):
                if isinstance(app.screen, ExplorerScreen) and app.screen.session.profile.name == name:
                    break
                await pilot.pause(0.01)
            await settled(pilot)
            assert explorer(pilot).session.profile.name == name
            if name != "one":
                await typed(pilot, f"open {tmp_path / 'one'}")
        await pilot.press("colon", "q", "enter")
        await pilot.pause(0.1)
        assert app._exit


async def test_exports_are_started(profile, monkeypatch):
    async with opened(profile) as pilot:
        asked: list[str] = []
        monkeypatch.setattr(ExportRequests, "export", lambda _, name: asked.append(name))
        await typed(pilot, "export xlsx")
        await typed(pilot, "export pftrace")
        assert asked == ["workbook", "perfetto"]
