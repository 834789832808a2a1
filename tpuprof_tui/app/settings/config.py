"""The user's preferences: theme, columns, keys, timeline options, and their configuration file. It is optional.

A file that is missing, unreadable or malformed counts as empty. Writes replace the file atomically, so that concurrent
explorers never read half of it, and merge only the changed entries into its current contents.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.formats.files import WriteError, whole_file

from ..drawing.theme import PLAIN, THEMES, Palette, next_theme_name
from .actions import ACTIONS

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile

#: Largest file, in bytes, that is read.
MAX_BYTES: Final = 1 << 18
FILE: Final = "config.json"
#: A name or short text in the file; most columns, and longest list of keys in characters.
_Name = Annotated[str, Meta(max_length=63)]
_MAX_COUNT: Final = 256
#: Number of attempts, and pause in seconds between them, to get a lock held by another explorer.
_TRIES, _PAUSE = 20, 0.01
#: Timeline options that are saved, with the type of their values; colourings depend on the source.
TIMELINE_OPTIONS: Final[dict[str, Any]] = {
    "colouring": _Name, "legend": bool, "strip": Literal["", "bandwidth", "utilisation"],
    "scale": Literal["time", "cycles"],
}  # fmt: skip


class Config(Struct, frozen=True):
    """Contents of the configuration file."""

    theme: str = ""  #: Name of the theme; empty: none chosen
    columns: tuple[str, ...] = ()  #: Keys of the table's columns; empty: the default ones
    keys: dict[str, str] = field(default_factory=dict)  #: Comma-separated keys in Textual's spelling, by action id
    #: Timeline options, by the field names of ``DisplayState`` in ``TIMELINE_OPTIONS``.
    timeline_options: dict[str, str | bool] = field(default_factory=dict)


def config_path() -> Path | None:
    """``tpuprof/config.json`` in ``XDG_CONFIG_HOME``, else in ``~/.config``; None without a home directory."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return base / "tpuprof" / FILE


def read_config(path: Path | None = None) -> Config:
    """Reads the configuration; invalid entries are ignored. ``path``: the file; None: the user's."""
    found = _read_object(config_path() if path is None else path)
    keys, options = (_valid(found.get(name), dict[str, Any], {}) for name in ("keys", "timeline"))
    values = {name: _valid(options.get(name), kind, None) for name, kind in TIMELINE_OPTIONS.items()}
    return Config(
        _valid(found.get("theme"), _Name, ""),
        _valid(found.get("columns"), Annotated[tuple[_Name, ...], Meta(max_length=_MAX_COUNT)], ()),
        {name: text for name, text in keys.items() if _is_mapping(name, text)},
        {name: value for name, value in values.items() if value is not None} if values.keys() <= options.keys() else {},
    )


def write_config(changes: dict[str, Any], path: Path | None = None) -> bool:
    """Merges entries into the file; returns False if it could not be written, which is harmless.

    ``path``: the file; None: the user's.
    """
    target = config_path() if path is None else path
    if target is None:
        return False
    lock = -1
    try:
        target = Path(os.path.realpath(target))  # replace the target of a symbolic link, not the link
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(target.parent)
        current = _read_object(target)
        if not current and target.is_file() and target.stat().st_size > len("{}\n"):
            os.replace(target, target.with_name(f"{FILE}.broken"))  # keep a malformed file: it may be edited by hand
        with whole_file(target) as stream:
            stream.write(f"{json.dumps({**current, **changes}, indent=1)}\n".encode())
    except (OSError, ValueError, TypeError, RuntimeError, WriteError):
        return False
    finally:
        if lock >= 0:
            os.close(lock)
    return True


def _locked(folder: Path) -> int:
    """Locks a folder, so that concurrent explorers do not lose each other's changes; returns its file descriptor.

    The lock is held only briefly. If it cannot be obtained, writing continues without it.
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


def _read_object(path: Path | None) -> dict[str, Any]:
    """The JSON object in the file; empty if it is missing, too large or malformed."""
    try:
        if path is None or not path.is_file() or path.stat().st_size > MAX_BYTES:
            return {}
        current = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return current if isinstance(current, dict) else {}


def _valid(value: Any, kind: Any, otherwise: Any) -> Any:
    try:
        return convert(value, kind)
    except ValidationError:
        return otherwise


def _is_mapping(name: Any, text: Any) -> bool:
    known = any(action.id == name for action in ACTIONS)
    keys = text.split(",") if isinstance(text, str) and len(text) < _MAX_COUNT else []
    return known and bool(keys) and all(key.strip() and key.strip().isprintable() for key in keys)


class Preferences:
    """The saved configuration, and what the user has chosen since."""

    def __init__(self, *, colours: bool = True) -> None:
        self.config = read_config()  #: The configuration as in the file
        self.theme = ""  #: Name of the theme; empty: no colours
        self.palette: Palette = PLAIN  #: Palette of the theme
        #: Name of the Textual theme; without colours the one with the terminal's own colours.
        self.textual_theme = "ansi-dark"
        if colours:
            self._apply_theme(self.config.theme if self.config.theme in THEMES else next(iter(THEMES)))

    def _apply_theme(self, theme: str) -> None:
        self.theme, self.palette, self.textual_theme = theme, THEMES[theme][1], THEMES[theme][0].name

    def next_theme(self) -> None:
        """Switches to the next theme, and saves it."""
        self._apply_theme(next_theme_name(self.theme))
        self._save({"theme": self.theme}, theme=self.theme)

    def initial_state(self, session: Session) -> DisplayState:
        """Initial state of a profile, with the saved columns and timeline options that it supports."""
        profile = session.profile
        state = DisplayState.of(profile.start_ns, profile.end_ns)
        valid_columns = {column.key for column in session.columns}
        columns = tuple(key for key in self.config.columns if key in valid_columns)
        return self._with_timeline_options(replace(state, columns=columns), profile)

    def _with_timeline_options(self, state: DisplayState, profile: Profile) -> DisplayState:
        from tpuprof_tui.analysis.selecting.time_scale import clock_of

        from ..drawing.colouring import is_known

        options: dict[str, Any] = dict(self.config.timeline_options)
        if not is_known(profile, options.get("colouring", "operation")):
            options.pop("colouring", None)
        if options.get("strip") == "bandwidth" and not is_known(profile, "bandwidth"):
            del options["strip"]
        if not clock_of(profile.device):
            options.pop("scale", None)
        return replace(state, **options)

    def save_state(self, state: DisplayState, session: Session) -> None:
        """Saves columns and timeline options if they differ from the initial state."""
        initial = self.initial_state(session)
        if state.columns != initial.columns:
            self._save({"columns": list(state.columns)}, columns=state.columns)
        if any(getattr(state, name) != getattr(initial, name) for name in TIMELINE_OPTIONS):
            options = {name: getattr(state, name) for name in TIMELINE_OPTIONS}
            self._save({"timeline": options}, timeline_options=options)

    def _save(self, changes: dict[str, Any], **fields: Any) -> None:
        self.config = replace(self.config, **fields)
        write_config(changes)
