"""Garbage is looked for among what is new, and what was left out once is looked at again when another capture opens."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
import weakref
from threading import Event

import pytest
from profiles import small_profile
from screen import explorer, opened, press, settled

from tpuprof_tui.app import terminal
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell import process
from tpuprof_tui.app.shell.process import collect_and_freeze


class Knot:
    """Refers to itself: only a collection frees it."""

    def __init__(self):
        self.itself = self


@pytest.fixture(autouse=True)
def collected_by_the_tests():
    """What is collected here, the program collects itself."""
    threshold = gc.get_threshold()
    yield
    gc.freeze()
    gc.set_threshold(*threshold)


async def test_an_open_capture_is_left_out_of_collections():
    gc.unfreeze()
    async with opened(small_profile(1, event_count=600)) as pilot:
        for _ in range(500):
            if gc.get_freeze_count() > 1_000:
                break
            await pilot.pause(0.02)
        assert gc.get_freeze_count() > 1_000
        pilot.app.opening.reload()
        assert gc.get_freeze_count() == 0


async def test_nothing_keeps_a_capture_that_was_replaced():
    async with opened(small_profile(1, event_count=600)) as pilot:
        held = weakref.ref(explorer(pilot).session)
        await press(pilot, "w 2 j full_stop i slash m a t enter b escape 3 1")
        for _ in range(2):
            collect_and_freeze()
            await press(pilot, "R")
            for _ in range(500):
                if isinstance(pilot.app.screen, ExplorerScreen):
                    break
                await pilot.pause(0.01)
            await settled(pilot)
        gc.collect()
        assert held() is None


async def test_a_replaced_capture_goes_when_a_thread_that_outlasts_the_collections_ends(monkeypatch):
    collections = []

    def collect():
        collect_and_freeze()
        collections.append(None)

    async def until(condition):
        for _ in range(500):
            if condition():
                return
            await pilot.pause(0.01)

    monkeypatch.setattr(terminal, "COLLECT_SECONDS", (0.1, 0.1))  # longer than a pause of the pilot waits
    monkeypatch.setattr(process, "collect_and_freeze", collect)
    begun, end = Event(), Event()
    async with opened(small_profile(1, event_count=600)) as pilot:
        try:
            background = explorer(pilot).background
            background.small = False
            background.compute("long", lambda: (begun.set(), end.wait()), lambda _: None)
            del background
            await until(begun.is_set)
            held = weakref.ref(explorer(pilot))
            await press(pilot, "R")
            await until(lambda: isinstance(pilot.app.screen, ExplorerScreen))
            collections.clear()
            await until(lambda: len(collections) >= 2)
            assert held() is not None, "the thread refers to it"
        finally:
            end.set()
        await until(lambda: held() is None)
        assert held() is None
        collections.clear()
        await pilot.pause(0.3)
        assert len(collections) <= 2, "nothing is left to free"


def test_garbage_of_the_capture_before_goes_when_another_opens():
    knot = Knot()
    seen = weakref.ref(knot)
    collect_and_freeze()
    del knot
    gc.collect()
    assert seen() is not None, "left out of collections"
    collect_and_freeze()
    assert seen() is None


HEAPS = """
import ctypes, sys, threading
from tpuprof_tui.app.shell.process import use_single_malloc_arena
shared = "shared" in sys.argv and use_single_malloc_arena()
library = ctypes.CDLL(None)
taken = threading.Barrier(7)
def take():
    kept = [bytearray(600) for _ in range(1_000)]
    taken.wait()
threads = [threading.Thread(target=take) for _ in range(6)]
for thread in threads:
    thread.start()
taken.wait()
library.fopen.restype = ctypes.c_void_p
library.fopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
library.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
library.fclose.argtypes = [ctypes.c_void_p]
file = library.fopen(sys.argv[1].encode(), b"w")
library.malloc_info(0, file)
library.fclose(file)
print(shared)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not the GNU C library")
def test_all_threads_take_memory_from_one_heap(tmp_path):
    found = []
    for word in ("apart", "shared"):
        told = tmp_path / word
        done = subprocess.run([sys.executable, "-c", HEAPS, told, word], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == str(word == "shared")
        found.append(told.read_text().count("<heap nr="))
    assert found[0] > 1
    assert found[1] == 1


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(process, "_c_library", lambda: None)
    assert not process.use_single_malloc_arena()
    collect_and_freeze()
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        patch.setattr("ctypes.CDLL", lambda _: (_ for _ in ()).throw(OSError("static")))
        assert not process.use_single_malloc_arena()
