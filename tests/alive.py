"""Which screens, captures and drawn lines are in memory, and whether they should be."""

from __future__ import annotations

import asyncio
import gc
import sys
from asyncio import Task
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any
from weakref import WeakSet

from textual._styles_cache import StylesCache
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.model import Profile, profile

NOTED: tuple[type, ...] = (Screen, Profile, StylesCache)
_made: dict[type, WeakSet[Any]] = {}


def _noted(kind: type, begin: Callable[..., None]) -> Callable[..., None]:
    @wraps(begin)
    def begun(self: Any, *arguments: Any, **settings: Any) -> None:
        begin(self, *arguments, **settings)
        if isinstance(self, kind):
            _made[kind].add(self)

    return begun


def note_all() -> None:
    """From now on all that are made are known, and nothing of before."""
    for kind in NOTED:
        if kind not in _made and kind is Profile:
            # a struct calls no __init__ of Python; this is the end of what Profile does in its place
            profile.force_setattr = _noted(kind, profile.force_setattr)
        elif kind not in _made:
            kind.__init__ = _noted(kind, kind.__init__)  # type: ignore[misc]
        _made[kind] = WeakSet()


def kept(app: App[int]) -> list[str]:
    """Screens nothing can come back to, profiles of captures that are on no screen, lines of widgets that are gone.

    What a filter makes of a capture's profile is of the same capture: they share their launches.
    """
    screens, profiles, lines = _kept(app)
    told = [repr(each) for each in screens]
    told += [f"lines of {len(lines)} widgets"] if lines else []
    return told + [f"profile of {each.name}" for each in profiles]


def _kept(app: App[int]) -> tuple[list[Any], list[Any], list[Any]]:
    stack = app.screen_stack
    sessions = [each.session for each in stack if isinstance(each, ExplorerScreen)]
    sessions += [each.baseline for each in sessions if each.baseline is not None]
    assert all(each.profile in _made[Profile] for each in sessions), "profiles are made without being noted"
    shown = {id(each.profile.scopes) for each in sessions}
    owners = {id(each._styles_cache) for each in app._registry if isinstance(each, Widget)}
    return (
        [each for each in _made[Screen] if each not in stack],
        [each for each in _made[Profile] if id(each.scopes) not in shown],
        [each for each in _made[StylesCache] if id(each) not in owners],
    )


def holders(app: App[int]) -> str:
    """The shortest chain of references to what is kept, from a thread, a task or a module."""
    gc.unfreeze()
    gc.collect()
    ends = {id(each) for found in _kept(app) for each in found}
    if not ends:
        return "nothing refers to it: it was let go of after the last collection"
    begins = [(f"{each.get_name()}: ", each) for each in asyncio.all_tasks()]
    begins = [("", app), *_locals_of_threads(), *begins, *((f"{name}: ", each) for name, each in sys.modules.items())]
    came: dict[int, tuple[Any, Any]] = {}
    level: list[Any] = []
    for where, each in begins:
        if id(each) not in came:
            came[id(each)] = each, where
            level.append(each)
    while level:
        for each in level:
            if id(each) in ends:
                return _chain(each, came)
        reached: list[Any] = []
        for each in level:
            for held in gc.get_referents(each):
                # not the variables and lists of this search
                if id(held) not in came and held is not level and held is not came and held is not begins:
                    came[id(held)] = held, each
                    reached.append(held)
        level = reached
    return "no thread, task or module refers to it in a way that the garbage collector knows"


def _locals_of_threads() -> list[tuple[str, Any]]:
    """Where in a thread a variable is, and its value."""
    found: list[tuple[str, Any]] = []
    for frame in sys._current_frames().values():
        at: FrameType | None = frame
        while at is not None:
            if at.f_code.co_filename != __file__:
                found += [(f"{at.f_code.co_name}:{at.f_lineno} {name}: ", value) for name, value in at.f_locals.items()]
            at = at.f_back
    return found


def _chain(each: Any, came: dict[int, tuple[Any, Any]]) -> str:
    told: list[str] = []
    while not isinstance(each, str):
        name = getattr(each, "__qualname__", None) or (repr(each) if isinstance(each, MessagePump | Task) else "")
        told.append(f"{type(each).__name__} {name}"[:100].rstrip())
        each = came[id(each)][1]
    return each + " -> ".join(reversed(told))
