"""Garbage is looked for among what is new, and what was left out once is looked at again when another capture opens."""

from __future__ import annotations

import gc
import weakref

import pytest
from profiles import small_profile
from screen import opened

from tpuprof_tui.app.collecting import settle


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
    async with opened(small_profile(1, instructions=600)):
        assert gc.get_freeze_count() > 1_000


def test_garbage_of_the_capture_before_goes_when_another_opens():
    knot = Knot()
    seen = weakref.ref(knot)
    settle()
    del knot
    gc.collect()
    assert seen() is not None, "left out of collections"
    settle()
    assert seen() is None
