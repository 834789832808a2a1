"""Every action of the registry, pressed once in its pane, does something that can be seen.

What is seen is the whole screen as text, and what it stands for: state, focus, screens, clipboard, theme. A new action
fails here until it has an effect, or the way to one is told in ``SETUP``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from screen import explored, explorer, frame, press, settled
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
                await press(pilot, f"{REACH[pane]} {SETUP.get(action.id, '')}")
                before = seen(pilot)
                await press(pilot, f"{action.keys[0]} {THEN.get(action.id, '')}")
                if seen(pilot) == before:
                    idle.append(action.id)
    assert idle == []


LEAVING = next(action.keys for action in ACTIONS if action.id == "app.leave")
OPEN = ("", "2", "t", "ctrl+p", "ctrl+p z", "colon", "2 c", "b", "question_mark", "ctrl+o", "m", "O", "x", "x e", "x n")
#: Keys that lead somewhere, a key that is pressed there, and whether it leaves the program.
ENDS = (
    *((keys, "q", True) for keys in ("", "2", "4", "t", "O")),
    *((keys, "q", False) for keys in ("ctrl+p", "colon", "2 c", "b", "question_mark", "ctrl+o", "2 space y")),
    *((keys, LEAVING[0], True) for keys in OPEN),
    *(("ctrl+p z", key, True) for key in LEAVING[1:]),
)


async def test_q_leaves_from_any_pane_but_what_is_open_and_control_c_from_everywhere(monkeypatch):
    async with running(CAPTURE) as pilot:
        opened, asked, wrong = explorer(pilot).state, [], []
        monkeypatch.setattr(pilot.app, "exit", asked.append)
        for keys, key, leaves in ENDS:
            await as_opened(pilot, opened)
            await press(pilot, keys)
            asked.clear()
            await press(pilot, key)
            if asked != [0] * leaves:
                wrong.append((keys, key))
            if keys == "O":
                await press(pilot, "escape")
        assert wrong == []


async def test_what_is_done_beside_the_screen_is_done(monkeypatch):
    asked: list[object] = []
    async with running(CAPTURE) as pilot:
        app = pilot.app
        with monkeypatch.context() as patch:
            patch.setattr(app.exports, "end", lambda: asked.append("end"))
            patch.setattr(app, "action_suspend_process", lambda: asked.append("suspend"))
            await press(pilot, "X ctrl+z")
            assert "No export is running" in frame(app)
            await press(pilot, "x X escape")
            assert asked == ["end", "suspend", "end"]
            patch.setattr(app.screen, "refresh", lambda *regions, **how: asked.append(how))
            await press(pilot, "ctrl+l")
            assert {"repaint": True, "layout": True} in asked
        palette = app.preferences.palette
        for key, answer in (("y", True), ("n", False)):
            app.push_screen(Overlay(ConfirmPane("Really?", palette), palette), asked.append)
            await press(pilot, key)
            assert asked[-1] is answer
        before = app.screen.session
        await press(pilot, "R")
        await explored(pilot)
        assert app.screen.session is not before
        app.push_screen(LoadingScreen("some capture", palette, app.glyphs))
        await settled(pilot)
        await press(pilot, "escape")
        assert not isinstance(app.screen, LoadingScreen)


def test_the_special_ones_exist():
    assert not SPECIAL - {action.id for action in ACTIONS}
