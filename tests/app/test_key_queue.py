"""Keys reach what they were typed for, however fast they come and whatever loads meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from profiles import small_profile
from screen import explored, explorer, frame, opened, settled
from test_opening import make_captures, reading, until, until_reading  # noqa: F401
from textual import events
from textual.pilot import Pilot

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.settings.actions import ACTIONS, EXIT_KEYS, NO_KEY, keymap_of, keys_of
from tpuprof_tui.app.settings.config import write_config
from tpuprof_tui.app.shell import key_queue
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import ChooseScreen
from tpuprof_tui.app.shell.loading import LoadingScreen
from tpuprof_tui.errors import UnreadableError


def burst(pilot: Pilot[int], *keys: str) -> None:
    """Keys as they come from a clipboard: all of them before the first is looked at."""
    for key in keys:
        pilot.app._driver.send_message(
            events.Key(key, {"greater_than_sign": ">"}.get(key, key if len(key) == 1 else None))
        )


async def test_what_follows_the_key_that_leaves_is_nobodys():
    async with opened(small_profile(1, event_count=60)) as pilot:
        burst(pilot, "q", "x", "2", "slash", "a", "R")
        # an error in the application is raised where the block ends
        for _ in range(500):
            if not pilot.app.is_running:
                break
            await asyncio.sleep(0.01)
    assert pilot.app.return_code == 0


async def test_a_key_waits_for_what_the_one_before_opens():
    async with opened(small_profile(1, event_count=600)) as pilot:
        screen = explorer(pilot)
        burst(pilot, "2", "j", "j", "ampersand", *"dur", "greater_than_sign", "0", "enter", "question_mark")
        await until(pilot, lambda: pilot.app.screen.has_class("help"))
        assert (screen.manager.layout.tab, screen.state.filter) == ("table", "dur>0")


async def test_keys_typed_while_a_capture_loads_are_kept_for_it(tmp_path, reading):  # noqa: F811
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        # q would leave here; behind other keys it is one of them: it closes the menu
        burst(pilot, "2", "x", "q", "ampersand", *"dur", "greater_than_sign", "0", "enter")
        await until_reading(pilot, lambda: "10 keys kept for the capture: Esc drops them." in frame(app))
        reading.go.set()
        await explored(pilot)
        await until(pilot, lambda: explorer(pilot).state.filter == "dur>0")
        assert explorer(pilot).manager.layout.tab == "table"


async def test_escape_drops_what_is_kept_and_then_cancels(tmp_path, reading):  # noqa: F811
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        await pilot.press("2", "escape")
        assert isinstance(app.screen, LoadingScreen)
        assert "kept for the capture" not in frame(app)
        await pilot.press("escape")
        await until_reading(pilot, lambda: isinstance(app.screen, ChooseScreen))
        reading.go.set()


async def test_what_a_capture_that_cannot_be_read_was_to_get_is_dropped(tmp_path, reading):  # noqa: F811
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    reading.error = UnreadableError("nothing in it")
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        await pilot.press("x", "q")
        reading.go.set()
        await until(pilot, lambda: "nothing in it" in frame(app))
        await settled(pilot)
        assert isinstance(app.screen, LoadingScreen)
        assert not app._exit
        reading.error = None
        await pilot.press("R")
        await explored(pilot)
        assert isinstance(app.screen, ExplorerScreen)


async def test_no_more_is_kept_than_is_told(tmp_path, reading, monkeypatch):  # noqa: F811
    monkeypatch.setattr(key_queue, "MAX_WAITING", 3)
    monkeypatch.setattr(key_queue, "TIMEOUT_SECONDS", 30.0)  # keys take longer where the machine is busy
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        await pilot.press("R", "2", "j", "j", "j", "j")
        assert "3 keys kept for the capture; more are not taken: Esc drops them." in frame(app)
        reading.go.set()
        await explored(pilot)
        assert len(reading.paths) == 1, "reading again is what was under way"
        await until(pilot, lambda: explorer(pilot).table.rows.position == 2)


async def test_help_over_a_capture_that_loads_keeps_its_keys(tmp_path, reading):  # noqa: F811
    """The q that closes the help does not leave, however late it comes."""
    make_captures(tmp_path, "one")
    app = TpuprofApp(str(tmp_path / "one"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until_reading(pilot, lambda: "1,234 records" in frame(app))
        await pilot.press("question_mark")
        assert app.screen.has_class("help")
        reading.go.set()
        await settled(pilot)
        assert app.screen.has_class("help")
        await pilot.press("q")
        await explored(pilot)
        assert isinstance(app.screen, ExplorerScreen)
        assert not app._exit


MAPS = [
    {"app.leave": "f12", "app.quit": "f11"},
    {"app.theme": "ctrl+c,ctrl+q", "app.quit": "f11"},
    {"timeline.pan-left": "CTRL+C", "explorer.export": "q", "app.quit": "x", "app.leave": "x"},
]


@pytest.mark.parametrize("keys", MAPS)
async def test_no_key_map_takes_the_last_way_to_leave(keys):
    assert write_config({"keys": keys})
    async with opened(small_profile(1, event_count=60)) as pilot:
        leave = next(action for action in ACTIONS if action.id == "app.leave")
        assert set(EXIT_KEYS) <= set(keys_of(leave))
        await pilot.press("colon")
        await pilot.press("ctrl+c")
        assert pilot.app._exit
    write_config({"keys": {}})
    async with opened(small_profile(1, event_count=60)):
        pass


def test_only_the_keys_that_leave_are_taken_from_a_map():
    assert keymap_of({"app.theme": "f2, ctrl+c", "app.help": "ctrl+q"}) == {"app.theme": "f2"}
    assert keymap_of({"app.leave": "f12,ctrl+c"}) == {"app.leave": "f12,ctrl+c,ctrl+q"}


def test_a_key_the_user_gave_to_an_action_is_no_longer_that_of_another():
    # in the pane; of keys of all panes in each
    given = keymap_of({"timeline.zoom-in": "B", "app.help": "K"})
    assert given == {"timeline.zoom-in": "B", "app.help": "K", "timeline.strips": NO_KEY,
                     "timeline.previous-pause": NO_KEY, "summary.previous-section": NO_KEY,
                     "columns.earlier": NO_KEY}  # fmt: skip
    assert keymap_of({"table.sort": "z", "table.columns": "j"}) == {"table.sort": "z", "table.columns": "j"}
