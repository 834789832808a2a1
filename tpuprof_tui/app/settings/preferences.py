"""What is remembered for a user, as it is used: theme, keys, columns, the timeline's looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.state import DisplayState

from ..drawing.theme import THEMES, Palette, after, plain_palette
from .config import LOOKS, read_config, write_config

if TYPE_CHECKING:
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.model import Profile


class Preferences:
    """What was remembered when the explorer started, and what has been chosen since.

    Attributes:
        config: As it is in the file.
        theme: Name of the theme; empty where colours are not wanted.
        palette: The colours of the theme.
        textual_theme: Name of the theme for Textual's own widgets; without colours that of the terminal's.
    """

    def __init__(self, *, colours: bool = True) -> None:
        self.config = read_config()
        self.theme = ""
        self.palette: Palette = plain_palette()
        self.textual_theme = "ansi-dark"
        if colours:
            self._use(self.config.theme if self.config.theme in THEMES else next(iter(THEMES)))

    def _use(self, theme: str) -> None:
        self.theme, self.palette, self.textual_theme = theme, THEMES[theme][1], THEMES[theme][0].name

    def next_theme(self) -> None:
        """Chooses the next theme, and remembers it."""
        self._use(after(self.theme))
        self._remember({"theme": self.theme}, theme=self.theme)

    def first_state(self, session: Session) -> DisplayState:
        """The state a profile opens with: columns as they were last, as far as this profile has them."""
        profile = session.profile
        state = DisplayState.of(profile.start_ns, profile.end_ns)
        known = {column.key for column in session.columns}
        columns = tuple(key for key in self.config.columns if key in known)
        return self._with_looks(replace(state, columns=columns), profile)

    def _with_looks(self, state: DisplayState, profile: Profile) -> DisplayState:
        """The state with the looks that were chosen last, as far as the profile knows what they show."""
        from tpuprof_tui.analysis.selecting.time_scale import clock_of

        from ..drawing.colouring import is_known

        looks: dict[str, Any] = dict(self.config.looks)
        if not is_known(profile, looks.get("colouring", "operation")):
            looks.pop("colouring", None)
        if looks.get("strip") == "bandwidth" and not is_known(profile, "bandwidth"):
            del looks["strip"]
        if not clock_of(profile.device):
            looks.pop("scale", None)
        return replace(state, **looks)

    def remember_state(self, state: DisplayState, session: Session) -> None:
        """Remembers columns and the timeline's looks, where they are not as they were."""
        first = self.first_state(session)
        if state.columns != first.columns:
            self._remember({"columns": list(state.columns)}, columns=state.columns)
        if any(getattr(state, name) != getattr(first, name) for name in LOOKS):
            looks = {name: getattr(state, name) for name in LOOKS}
            self._remember({"timeline": looks}, looks=looks)

    def _remember(self, changes: dict[str, Any], **fields: Any) -> None:
        self.config = replace(self.config, **fields)
        write_config(changes)
