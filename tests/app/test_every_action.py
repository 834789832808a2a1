"""Every action of the registry, pressed once in its pane, does something that can be seen.

What is seen is the whole screen as text, and what it stands for: state, focus, screens, clipboard, theme. A new action
fails here until it has an effect, or the way to one is told in ``SETUP``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from profiles import small_profile
from screen import explored, explorer, frame, settled
from textual.pilot import Pilot

from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.overlays.overlay import ConfirmPane, Overlay
from tpuprof_tui.app.settings.actions import ACTIONS, Action
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.loading import LoadingScreen

SAMPLES = Path(__file__).parents[2] / "samples"
#: Registers, so that dependencies are known; others beside it.
CAPTURE = SAMPLES / "aks_decode_mode2"
DAMAGED = SAMPLES / "aks_damaged"
SIZE = (140, 44)

#: Keys to a pane whose actions are pressed.
REACH = {
    "app": "", "explorer": "", "timeline": "", "list": "2", "wide": "2",
    "text": "3", "table": "2", "summary": "3", "problems": "4",
    "tree": "shift+tab", "groups": "b", "columns": "2 c", "detail": "2 j j i", "chooser": "O", "export": "x",
    "help": "question_mark", "flame": "H",
    "prompt": "ampersand d u r greater_than_sign 1",
}  # fmt: skip
#: Keys pressed before an action that would have nothing to do on what it finds.
SETUP = {
    "app.back": "w j o", "explorer.search-next": "slash m m enter", "explorer.search-previous": "slash m m enter",
    "explorer.focus-selection": "j full_stop D", "explorer.isolate": "j",
    "explorer.released-by": "2 slash w a i t enter",
    "explorer.releases": "2 slash s e n d enter", "timeline.zoom-out": "w", "timeline.pan-left": "w w",
    "timeline.pan-right": "w w", "timeline.window-left": "w w", "timeline.window-right": "w w",
    "timeline.lane-up": "j j", "timeline.lane-page-up": "j j", "timeline.fit": "w", "timeline.open-lane": "j",
    "timeline.previous": "j j full_stop",
    "timeline.next-pause": "j j", "timeline.previous-pause": "j j end",
    "timeline.next": "j j", "timeline.select": "j j", "explorer.go-to-mark": "m q h h h", "timeline.range": "l",
    "timeline.next-same": "j j enter", "timeline.previous-same": "j j enter", "timeline.pin": "j j j j j j",
    "timeline.lane-first": "l", "timeline.lane-last": "l", "timeline.copy": "j j enter",
    "list.line-up": "j", "list.half-up": "G", "list.page-up": "G", "list.first": "G", "list.column-left": "l l",
    "table.clear-picks": "space", "table.column-previous": "greater_than_sign", "table.window-only": "1 w w 2",
    "list.centre": "ctrl+d ctrl+d ctrl+d",
    "explorer.timeline": "2", "table.previous": "j j full_stop", "table.select": "j i 2", "table.next": "j",
    "summary.previous-section": "Z J J", "summary.next-section": "Z", "columns.usual": "space", "columns.earlier": "j",
    "tree.node-up": "j", "tree.fold": "j", "tree.unfold": "j h", "tree.top": "j j", "tree.page-up": "G",
    "tree.fold-unfold": "j", "tree.unfold-all": "C",
    "tree.scope": "j", "export.line-up": "down", "export.core": "escape j x", "export.cores": "", "export.stop": "",
    "export.window": "escape w x", "export.filtered": "escape ampersand s y s enter x",
    "prompt.older": "enter ampersand x enter ampersand", "prompt.newer": "enter ampersand x enter ampersand up up",
    "flame.zoom-in": "j", "flame.zoom-out": "j w", "flame.fit": "j w",
    "detail.previous": "full_stop", "detail.follow": "",
}  # fmt: skip
#: Keys pressed after it: what it asks for.
THEN = {"explorer.mark": "q", "explorer.go-to-mark": "q", "explorer.keep-span": "q"}
#: Captures other than the usual one.
OTHER = dict.fromkeys(
    (
        "problems.select",
        "problems.copy-line",
        "problems.copy-all",
        "explorer.next-problem",
        "explorer.previous-problem",
    ),
    DAMAGED,
) | dict.fromkeys(("timeline.open-lane", "timeline.open-all"), SAMPLES / "torch_cpu_recorded")


@asynccontextmanager
async def running(path: Path):
    """The explorer with a capture from disk; exports are noted, not run."""
    app = TpuprofApp(str(path))
    app.started = []  # type: ignore[attr-defined]
    app.exports.start = app.started.append  # type: ignore[attr-defined, method-assign]
    async with app.run_test(size=SIZE) as pilot:
        await explored(pilot)
        yield pilot


def seen(pilot: Pilot[int]) -> tuple[Any, ...]:
    """All that an action can change."""
    app = pilot.app
    assert isinstance(app, TpuprofApp)
    screens = tuple(type(screen).__name__ for screen in app.screen_stack)
    views = tuple(screen.state for screen in app.screen_stack if isinstance(screen, ExplorerScreen))
    focused = app.screen.focused
    # a cursor differs from the line before by its ground alone
    where = (focused.id, getattr(focused, "cursor", 0)) if focused is not None else None
    return frame(app), screens, views, where, app.clipboard, app.theme, app.opening.capture.path, tuple(app.started)


async def pressed(pilot: Pilot[int], keys: str) -> None:
    for key in keys.split():
        await pilot.press(key)
        await settled(pilot)


SPECIAL = {
    "explorer.reload",
    "app.quit",
    "app.leave",
    "app.repaint",
    "app.suspend",
    "loading.cancel",
    "loading.again",
    "explorer.stop-export",
    "export.stop",
    # it needs a folder of recordings: test_opening.py
    "chooser.mark",
    # they need something to compare with: test_comparing.py
    "explorer.next-difference",
    "explorer.previous-difference",
    "explorer.swap-sides",
    "explorer.leave-comparison",
}
USUAL = [action for action in ACTIONS if action.id not in SPECIAL and action.pane not in ("confirm", "fleet")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Default folders of exports lie below the current directory."""
    monkeypatch.chdir(tmp_path)


async def as_opened(pilot: Pilot[int], view: DisplayState) -> None:
    """The explorer as it was when the capture was opened, as far as actions depend on it."""
    app = pilot.app
    while app.screen.is_modal:
        app.pop_screen()
    screen = explorer(pilot)
    while screen.back():
        await settled(pilot)
    screen.store.change(view)
    screen.set_focus(screen.timeline)
    await settled(pilot)


PANES = sorted({action.pane for action in USUAL})
#: Actions that want an explorer of their own: they need lists as they are at first, or leave the capture.
ALONE = {"list.centre", "tree.unfold", "tree.page-down", "explorer.next-capture", "explorer.previous-capture",
         "explorer.open-other", "explorer.pause"}  # fmt: skip


@pytest.mark.parametrize("pane", PANES)
async def test_every_action_has_an_effect(pane: str):
    """One explorer for many actions: to start one for each takes most of the time."""
    several: dict[tuple[Path, str], list[Action]] = {}
    for action in USUAL:
        if action.pane == pane:
            place = OTHER.get(action.id, CAPTURE), action.id if action.id in ALONE else ""
            several.setdefault(place, []).append(action)
    idle = []
    for (path, _), actions in several.items():
        async with running(path) as pilot:
            opened = explorer(pilot).state
            for action in actions:
                await as_opened(pilot, opened)
                await pressed(pilot, f"{REACH[pane]} {SETUP.get(action.id, '')}")
                before = seen(pilot)
                await pressed(pilot, f"{action.keys[0]} {THEN.get(action.id, '')}")
                if seen(pilot) == before:
                    idle.append(action.id)
    assert idle == []


async def left(keys: str, key: str) -> bool:
    """Whether a key leaves the program where some keys lead."""
    app = TpuprofApp(profile=small_profile(1, instructions=60))
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(500):
            if isinstance(app.screen, ExplorerScreen):
                break
            await pilot.pause(0.01)
        await pressed(pilot, keys)
        await pilot.press(key)
        await pilot.pause()
        return bool(app._exit)


@pytest.mark.parametrize("keys", ["", "2", "4", "t", "O"])
async def test_q_leaves_from_any_pane(keys):
    assert await left(keys, "q")


@pytest.mark.parametrize("keys", ["ctrl+p", "colon", "2 c", "b", "question_mark", "ctrl+o", "2 space y"])
async def test_q_types_or_closes_what_is_open(keys):
    assert not await left(keys, "q")


LEAVING = next(action.keys for action in ACTIONS if action.id == "app.leave")
OPEN = ["", "2", "t", "ctrl+p", "ctrl+p z", "colon", "2 c", "b", "question_mark", "ctrl+o", "m", "O"]


@pytest.mark.parametrize(
    ("keys", "key"), [*((keys, LEAVING[0]) for keys in OPEN), *(("ctrl+p z", key) for key in LEAVING[1:])]
)
async def test_control_c_leaves_from_everywhere(keys, key):
    assert await left(keys, key)


@pytest.mark.parametrize("keys", ["x", "x e", "x n"])
async def test_control_c_leaves_from_the_export_menu(keys):
    async with running(CAPTURE) as pilot:
        await pressed(pilot, keys)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert pilot.app._exit


async def test_reload_reads_the_capture_again():
    async with running(CAPTURE) as pilot:
        before = pilot.app.screen.session
        await pressed(pilot, "R")
        await explored(pilot)
        assert pilot.app.screen.session is not before


async def test_repaint_draws_everything_anew(monkeypatch):
    async with running(CAPTURE) as pilot:
        drawn: list[dict[str, bool]] = []
        monkeypatch.setattr(pilot.app.screen, "refresh", lambda *regions, **how: drawn.append(how))
        await pilot.press("ctrl+l")
        assert {"repaint": True, "layout": True} in drawn


async def test_suspend_gives_the_terminal_back(monkeypatch):
    async with running(CAPTURE) as pilot:
        asked: list[bool] = []
        monkeypatch.setattr(pilot.app, "action_suspend_process", lambda: asked.append(True))
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert asked == [True]


async def test_reading_can_be_cancelled():
    async with running(CAPTURE) as pilot:
        screen = LoadingScreen("some capture", pilot.app.preferences.palette, pilot.app.glyphs)
        pilot.app.push_screen(screen)
        await settled(pilot)
        await pressed(pilot, "escape")
        assert not isinstance(pilot.app.screen, LoadingScreen)


@pytest.mark.parametrize("keys", ["X", "x X"])
async def test_without_an_export_stopping_one_says_so(keys, monkeypatch):
    async with running(CAPTURE) as pilot:
        asked: list[bool] = []
        monkeypatch.setattr(pilot.app.exports, "end", lambda: asked.append(True))
        await pressed(pilot, keys)
        assert asked == [True]
        assert keys != "X" or "No export is running" in frame(pilot.app)


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False)])
async def test_questions_are_answered(key, answer):
    async with running(CAPTURE) as pilot:
        answers: list[bool | None] = []
        palette = pilot.app.preferences.palette
        pilot.app.push_screen(Overlay(ConfirmPane("Really?", palette), palette), answers.append)
        await settled(pilot)
        await pressed(pilot, key)
        assert answers == [answer]


def test_the_special_ones_exist():
    assert not SPECIAL - {action.id for action in ACTIONS}
