"""What a reload replaces is let go of, whatever was on the screen: of captures and screens only what is shown lives."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import wait
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from weakref import ref

import pytest
from alive import NOTED, kept, note_all
from screen import settled
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell import screen_release as forgetting
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.screen_release import DRAWN, Threads
from tpuprof_tui.sources.catalog import open_profile

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode1"
#: What is done before the capture is read again: keys, clicks, sizes.
STATES = {
    "a prompt, after a filter": "ampersand T I U enter slash m a t",
    "help, after another theme": "T question_mark",
    "a menu": "x",
    "a menu, pressed on": "ctrl+o click",
    "the palette, after a message": "y ctrl+p",
    "groups": "2 b",
    "scroll bars, and sizes in flight": "7x3 80x24 250x70 160x48",
}


@pytest.fixture
def capture(tmp_path):
    return Path(shutil.copytree(SAMPLE, tmp_path / "captured"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(forgetting, "SETTLE_SECONDS", 0.05)
    for kind in NOTED:
        # undone at the end
        monkeypatch.setattr(kind, "__init__", kind.__init__)
    note_all()


async def do(pilot: Pilot[int], what: str) -> None:
    """Presses keys, clicks, resizes."""
    for each in what.split():
        if each == "click":
            # as from the terminal: a pilot's click would leave traces in the test itself
            for kind in (events.MouseDown, events.MouseUp):
                pilot.app._driver.send_message(kind(None, 30, 12, 0, 0, 1, False, False, False, 30, 12))
            await pilot.pause()
        elif each[0].isdigit() and len(each) > 1:
            width, height = map(int, each.split("x"))
            size = Size(width, height)
            pilot.app._driver._size = (width, height)
            pilot.app.post_message(events.Resize(size, size))
            await pilot.pause()
        else:
            await pilot.press(each)


async def shown(pilot: Pilot[int], number: int) -> None:
    """Waits until a capture is on the screen that was read since ``number`` were."""
    while not isinstance(pilot.app.screen, ExplorerScreen) or pilot.app.readings == number:
        await pilot.pause(0.01)
    await settled(pilot)


class Counting(TpuprofApp):
    """The explorer, which knows how many captures it has shown."""

    readings = 0

    def on_opening_app_loaded(self) -> None:
        """One more."""
        self.readings += 1


async def left(app: TpuprofApp) -> list[str]:
    """What there still is of what was replaced, after a while."""
    for _ in range(300):
        if not kept(app):
            break
        await asyncio.sleep(0.01)
    return kept(app)


async def test_reloads_leave_nothing_behind(capture):
    app = Counting(str(capture))
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, 0)
        for state, what in STATES.items():
            await do(pilot, what)
            number = app.readings
            app.screen.call_later(app.reload)
            await shown(pilot, number)
            assert await left(app) == [], state
            await do(pilot, "escape escape escape escape")


async def test_an_export_at_work_keeps_no_screen(capture):
    ended = asyncio.Event()

    async def run(_: object) -> None:
        await ended.wait()

    app = Counting(str(capture))
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, 0)
        app.exporter.run = run
        app.screen.call_later(app.start_export, SimpleNamespace(kind=SimpleNamespace(id="web", title="page")))
        await pilot.pause()
        app.screen.call_later(app.reload)
        while app.readings < 2 or not (isinstance(app.screen, ExplorerScreen) and app.screen.query("#detail")):
            await pilot.pause(0.01)
        await pilot.pause()
        assert any(worker.group == "export" for worker in app.workers)
        assert await left(app) == []
        ended.set()


async def test_a_reading_that_came_too_late_to_be_shown_goes_too(capture):
    app = Counting(str(capture))
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, 0)
        at_work = SimpleNamespace(profile=open_profile(str(capture)))
        at_work.itself = at_work
        app.note_reading(at_work.profile)
        app.settle_soon()
        await pilot.pause(0.1)
        # by now it has been left out of collections, with all there was
        del at_work
        assert await left(app) == []


def test_a_thread_keeps_nothing_of_what_it_did():
    known: ContextVar[object] = ContextVar("known")

    class Work:
        pass

    with Threads(1) as threads:
        work = Work()
        wait([threads.submit(known.set, work)])
        gone = ref(work)
        del work
        # the thread drops what it was given before it takes the next
        threads.submit(int).result()
        assert gone() is None


async def test_what_closes_begins_no_scroll_bar(capture):
    app = TpuprofApp(str(capture))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        pane = app.screen
        pane._closing = True
        assert pane.vertical_scrollbar._task is None
        pane._closing = False


async def test_caches_of_what_was_drawn_are_emptied(capture):
    caches = [getattr(owner, name) for owner, name in DRAWN]
    app = Counting(str(capture))
    async with app.run_test(size=(160, 48)) as pilot:
        await shown(pilot, 0)
        for key in ("w", "s", "Z", "Z", "question_mark", "escape"):
            await pilot.press(key)
        used = [cache for cache in caches if cache.cache_info().currsize]
        assert len(used) > len(caches) / 2
        app._let_go(0)
        assert not any(cache.cache_info().currsize for cache in caches)
