"""What is remembered for a user: theme, columns, keys, the timeline's looks. Nothing needs it.

A file that is missing, unreadable, broken or not ours is as good as none. It is replaced whole, so that two explorers
never see half of one, and only what has changed is put into what the file holds by then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from .actions import ACTIONS

#: Larger files are not ours.
LARGEST: Final = 1 << 18
FILE: Final = "config.json"
#: Longest name of a column, most columns, longest list of keys.
_LONGEST, _MOST = 64, 256
#: How often, and after how many seconds, another explorer's lock is tried again.
_TRIES, _PAUSE = 20, 0.01
#: What of the timeline's looks is remembered, and the values there are; none: any word, of one source or another.
LOOKS: Final[dict[str, tuple[str | bool, ...]]] = {
    "colouring": (), "legend": (False, True),
    "strip": ("", "bandwidth", "utilisation"), "scale": ("time", "cycles"),
}  # fmt: skip


class Config(Struct, frozen=True):
    """What is remembered.

    Attributes:
        theme: Name of the theme; empty: none was chosen.
        columns: Keys of the table's columns; empty: the usual ones.
        keys: Keys by action id, separated by commas, in Textual's spelling.
        looks: How the timeline looks, by the fields of the display's state that are in ``LOOKS``.
    """

    theme: str = ""
    columns: tuple[str, ...] = ()
    keys: dict[str, str] = field(default_factory=dict)
    looks: dict[str, str | bool] = field(default_factory=dict)


def config_path() -> Path | None:
    """``tpuprof/config.json`` in ``XDG_CONFIG_HOME``, else in ``~/.config``; None where there is no home."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return base / "tpuprof" / FILE


def read_config(path: Path | None = None) -> Config:
    """What is remembered; what cannot be read or makes no sense is left out."""
    found = _held(config_path() if path is None else path)
    theme, columns, keys, looks = (found.get(name) for name in ("theme", "columns", "keys", "timeline"))
    return Config(
        theme if isinstance(theme, str) and len(theme) < _LONGEST else "",
        tuple(columns) if isinstance(columns, list) and _are_names(columns) else (),
        {name: text for name, text in keys.items() if _is_mapping(name, text)} if isinstance(keys, dict) else {},
        {name: looks[name] for name, allowed in LOOKS.items() if _is_look(looks[name], allowed)}
        if isinstance(looks, dict) and LOOKS.keys() <= looks.keys() else {},
    )  # fmt: skip


def write_config(changes: dict[str, Any], path: Path | None = None) -> bool:
    """Puts changes into what is remembered; False where that was not possible, which harms nothing.

    Args:
        changes: ``theme``, ``columns``, ``keys`` or ``timeline``, as in the file.
        path: The file; None: the user's.
    """
    target = config_path() if path is None else path
    if target is None:
        return False
    temporary = ""
    lock = -1
    try:
        target = Path(os.path.realpath(target))  # what a link leads to, not the link
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            return False  # a pipe or a device, as where the name leads to /dev/null: nothing to be replaced
        lock = _locked(target.parent)
        held = _held(target)
        if not held and target.is_file() and target.stat().st_size > len("{}\n"):
            os.replace(target, target.with_name(f"{FILE}.broken"))  # somebody may have typed it
        text = json.dumps({**held, **changes}, indent=1)
        handle, temporary = tempfile.mkstemp(prefix=f".{FILE}.", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        os.replace(temporary, target)
    except (OSError, ValueError, TypeError, RuntimeError):
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    finally:
        if lock >= 0:
            os.close(lock)
    return True


def _locked(folder: Path) -> int:
    """A lock on a folder, so that of two explorers that write at once neither loses what the other wrote.

    Who holds it does so for an instant; where it cannot be had, writing goes on without it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_PAUSE)
        else:
            break
    return descriptor


def _held(path: Path | None) -> dict[str, Any]:
    """What the file holds; nothing where it is none of ours."""
    try:
        if path is None or not path.is_file() or path.stat().st_size > LARGEST:
            return {}
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


def _are_names(values: list[Any]) -> bool:
    return len(values) <= _MOST and all(isinstance(value, str) and len(value) < _LONGEST for value in values)


def _is_look(value: Any, allowed: tuple[str | bool, ...]) -> bool:
    """Whether this is one of the values there are, or a short word where any is one; 1 is not True here."""
    if not allowed:
        return isinstance(value, str) and len(value) < _LONGEST
    return any(value == one and type(value) is type(one) for one in allowed)


def _is_mapping(name: Any, text: Any) -> bool:
    """Whether this maps keys to an action there is."""
    known = any(action.id == name for action in ACTIONS)
    keys = text.split(",") if isinstance(text, str) and len(text) < _MOST else []
    return known and bool(keys) and all(key.strip() and key.strip().isprintable() for key in keys)
