"""Runs the explorer without a terminal and reads what it shows as text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import textual.app
import textual.pilot
from rich.cells import cell_len
from textual._context import active_app
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.model import Profile

#: Screens that show several panes, and one or two: columns and lines.
WIDE, SMALL = (160, 48), (80, 24)
#: Recorded frames.
FRAMES = Path(__file__).parent / "frames"
#: Sizes of the screen that frames are recorded at, by name.
SIZES = {"80x24": (80, 24), "200x60": (200, 60)}
#: A test of frames: each size once, and ASCII once.
AS_RECORDED = pytest.mark.parametrize(
    ("size", "ascii_only"),
    [("80x24", False), ("200x60", False), ("80x24", True)],
    ids=["80x24-unicode", "200x60-unicode", "80x24-ascii"],
)


def compared(name: str, size: str, ascii_only: bool, lines: Sequence[str], *, width: int = 0) -> None:
    """Asserts that lines are those of the recorded frame; ``UPDATE_FRAMES=1`` writes it anew for review.

    Args:
        name: What the frame shows.
        size: The screen's size as in the file's name: ``80x24``.
        ascii_only: Whether it is drawn in ASCII.
        lines: What is on the screen.
        width: Cells that each line takes; 0: any number.
    """
    if width:
        assert {cell_len(line) for line in lines} == {width}
    assert not ascii_only or all(line.isascii() for line in lines)
    path = FRAMES / f"{name}-{size}-{'ascii' if ascii_only else 'unicode'}.txt"
    if os.environ.get("UPDATE_FRAMES"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
    assert [line.rstrip() for line in lines] == path.read_text(encoding="utf-8").splitlines()


def frame(app: App[int]) -> str:
    """What is on the screen, as lines of text."""
    _draw(app.screen)
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def explorer(pilot: Pilot[int]) -> ExplorerScreen:
    """The explorer's screen."""
    screen = pilot.app.screen
    assert isinstance(screen, ExplorerScreen)
    return screen


async def quiet(*_: object) -> None:
    """Waits until no task of the event loop can go on, no timer ends within 20 ms, and what changed is drawn.

    Textual's own ways to wait sleep 20 ms at a time until the processor rests, four times for a key, and send a message
    to each widget: that takes longer than what the key does.
    """
    loop = asyncio.get_running_loop()
    app = active_app.get(None)
    # keys that wait for a capture are looked at every 10 ms until it is read: it is not waited for here
    slept, longest = 0.0, 0.2
    while slept < longest:
        await asyncio.sleep(0)
        if not loop._ready and app is not None and app._screen_stack:
            app.screen._on_timer_update()  # a frame that would be drawn a sixtieth of a second later
        if loop._ready:
            continue
        now = loop.time()
        due = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=now + 1)
        if due > now + 0.02:
            return
        await asyncio.sleep(due - now)
        slept += max(due - now, 0.001)


async def _quiet_screen(pilot: Pilot[object], timeout: float = 0) -> bool:
    await quiet()
    return True


_draw = Screen._compositor_refresh


def _draw_later(screen: Screen[object]) -> None:
    """Half of the time went into frames that nobody looked at: ``frame`` draws, and ``opened`` at last."""
    if screen.app.is_headless:
        screen._dirty_widgets.clear()
    else:
        _draw(screen)


_parse = Stylesheet._parse_rules
_parsed: dict[object, list[RuleSet]] = {}


def _parse_once(sheet: Stylesheet, *how: object, **more: object) -> list[RuleSet]:
    """Rules of a style sheet, which are the same in each app."""
    key = how, *more.items(), *sheet._variables.items()
    if key not in _parsed:
        _parsed[key] = _parse(sheet, *how, **more)  # type: ignore[arg-type]
    return _parsed[key]


Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
textual.app.wait_for_idle = textual.pilot.wait_for_idle = quiet  # type: ignore[attr-defined]
Pilot._wait_for_screen = _quiet_screen  # type: ignore[method-assign]
Screen._compositor_refresh = _draw_later  # type: ignore[method-assign]


async def settled(pilot: Pilot[int]) -> None:
    """Waits until no thread of the app works and all messages are handled."""
    while True:
        await pilot.pause()
        try:
            await pilot.app.workers.wait_for_complete()
        except WorkerCancelled:  # a newer one took its place; a failure is raised
            continue
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers):
            return


def shown(screen: ExplorerScreen) -> set[str | None]:
    """The panes that are on the screen, by id."""
    return {pane.id for pane in screen.query(".pane") if pane.display and pane.size.area}


async def explored(pilot: Pilot[int]) -> None:
    """Waits until a capture has been read and the explorer shows it."""
    for _ in range(1000):
        if isinstance(pilot.app.screen, ExplorerScreen):
            break
        await pilot.pause(0.01)
    await settled(pilot)


@asynccontextmanager
async def opened(
    profile: Profile, size: tuple[int, int] = (160, 48), *, ascii_only: bool = False
) -> AsyncIterator[Pilot[int]]:
    """The explorer with a profile open."""
    app = TpuprofApp(profile=profile, ascii_only=ascii_only)
    async with app.run_test(size=size) as pilot:
        for _ in range(500):
            if isinstance(app.screen, ExplorerScreen):
                break
            await pilot.pause(0.01)
        await settled(pilot)
        yield pilot
        if app._screen_stack:  # what nobody looked at can be drawn, too
            _draw(app.screen)


async def press(pilot: Pilot[int], keys: str) -> None:
    """Presses keys (separated by blanks), then waits for what they started."""
    await pilot.press(*keys.split())
    await settled(pilot)
