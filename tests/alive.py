"""Which screens, captures and drawn lines are in memory, and whether they should be."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakSet

from textual._styles_cache import StylesCache
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget

from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.model import Profile

NOTED: tuple[type, ...] = (Screen, Profile, StylesCache)
_made: dict[type, WeakSet[Any]] = {}


def _noted(kind: type, begin: Callable[..., None]) -> Callable[..., None]:
    @wraps(begin)
    def begun(self: Any, *arguments: Any, **settings: Any) -> None:
        begin(self, *arguments, **settings)
        _made[kind].add(self)

    return begun


def note_all() -> None:
    """From now on all that are made are known, and nothing of before."""
    for kind in NOTED:
        if kind not in _made:
            kind.__init__ = _noted(kind, kind.__init__)  # type: ignore[misc]
        _made[kind] = WeakSet()


def kept(app: App[int]) -> list[str]:
    """Screens nothing can come back to, profiles of captures that are on no screen, lines of widgets that are gone.

    What a filter makes of a capture's profile is of the same capture: they share their launches.
    """
    stack = app.screen_stack
    shown = {id(each.session.profile.scopes) for each in stack if isinstance(each, ExplorerScreen)}
    screens = [repr(each) for each in _made[Screen] if each not in stack]
    owners = {id(each._styles_cache) for each in app._registry if isinstance(each, Widget)}
    lines = sum(id(each) not in owners for each in _made[StylesCache])
    screens += [f"lines of {lines} widgets"] if lines else []
    return screens + [f"profile of {each.name}" for each in _made[Profile] if id(each.scopes) not in shown]
