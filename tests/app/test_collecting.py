"""Garbage is looked for among what is new, and what was left out once is looked at again when another capture opens."""

from __future__ import annotations

import gc
import weakref

import pytest
from profiles import small_profile
from screen import explorer, opened, press, settled

from tpuprof_tui.app.collecting import settle
from tpuprof_tui.app.screens.explorer import ExplorerScreen


class Knot:
    """Refers to itself: only a collection frees it."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def collector():
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


async def test_an_open_capture_is_left_out_of_collections():
    gc.unfreeze()
    async with opened(small_profile(1, instructions=600)) as pilot:
        for _ in range(500):
            if gc.get_freeze_count() > 1_000:
                break
            await pilot.pause(0.02)
        assert gc.get_freeze_count() > 1_000
        pilot.app.reload()
        assert gc.get_freeze_count() == 0


async def test_nothing_keeps_a_capture_that_was_replaced():
    async with opened(small_profile(1, instructions=600)) as pilot:
        held = weakref.ref(explorer(pilot).session)
        await press(pilot, "w 2 j full_stop i slash m a t enter b escape 3 1")
        for _ in range(2):
            settle()
            await press(pilot, "R")
            for _ in range(500):
                if isinstance(pilot.app.screen, ExplorerScreen):
                    break
                await pilot.pause(0.01)
            await settled(pilot)
        gc.collect()
        assert held() is None


def test_garbage_of_the_capture_before_goes_when_another_opens():
    knot = Knot()
    seen = weakref.ref(knot)
    settle()
    del knot
    gc.collect()
    assert seen() is not None, "left out of collections"
    settle()
    assert seen() is None
