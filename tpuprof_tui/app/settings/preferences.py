"""The user's preferences at run time: theme, keys, columns, timeline options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState

from ..drawing.theme import THEMES, Palette, next_theme_name, plain_palette
from .config import TIMELINE_OPTIONS, read_config, write_config

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile


class Preferences:
    """The saved configuration, and what the user has chosen since.

    Attributes:
        config: The configuration as in the file.
        theme: Name of the theme; empty: no colours.
        palette: Palette of the theme.
        textual_theme: Name of the Textual theme; without colours the one with the terminal's own colours.
    """

    def __init__(self, *, colours: bool = True) -> None:
        self.config = read_config()
        self.theme = ""
        self.palette: Palette = plain_palette()
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
        """Applies the saved timeline options, as far as the profile has the data for them."""
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
