"""Runs the explorer without a terminal and reads what it shows as text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.app import App
from textual.pilot import Pilot

from tpuprof_tui.app.application import TpuprofApp
from tpuprof_tui.app.screens.explorer import ExplorerScreen
from tpuprof_tui.model import Profile


def frame(app: App[int]) -> str:
    """What is on the screen, as lines of text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def explorer(pilot: Pilot[int]) -> ExplorerScreen:
    """The explorer's screen."""
    screen = pilot.app.screen
    assert isinstance(screen, ExplorerScreen)
    return screen


async def settled(pilot: Pilot[int]) -> None:
    """Waits until no thread of the app works and all messages are handled."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


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


async def press(pilot: Pilot[int], keys: str) -> None:
    """Presses keys (separated by blanks), then waits for what they started."""
    await pilot.press(*keys.split())
    await settled(pilot)
