"""What Textual 8.2.8 and Rich 15.0 keep of widgets that are gone, and how it is dropped.

- a task lasts as long as what it serves, and its context holds the widget it was begun for and what lay below;
- a widget at rest holds the message it handled last, and with it the widget that sent it;
- scroll bars that are made while their widget closes are begun, but never ended;
- the application holds the widget on which a button was pressed last;
- a cache of all widgets' colours holds the lines that some hundred widgets drew last, Rich's cache of cut texts the
  16,384 cut last; caches of regions fill for as long as sizes and windows change.

``TerminalApp`` relies on ``App._register``, ``_start_widget``, ``_mouse_down_widget`` and ``_registry`` for it, this
module on the caches in ``CACHES``. Without it, opening 1,000,000 events and reading them again three to seven times
takes about 400 MiB in place of 245; after four minutes of random keys three replaced explorers, 794 drawn widgets and
70 more tasks are in memory, and it has grown from 103 to 172 MiB, where it stays at 115.
"""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual._context import visible_screen_stack
from textual._styles_cache import StylesCache
from textual.css.scalar import Scalar
from textual.geometry import Region

#: Functions that keep what was drawn: whose they are, and their names.
CACHES: Final = (
    (StylesCache, "get_inner_outer"), (Segment, "_split_cells"), (Scalar, "resolve"),
    *((Region, name) for name in ("intersection", "union", "shrink", "grow", "translate", "__contains__")),
)  # fmt: skip


def clear_drawn() -> None:
    """Drops what is kept of drawn lines, and of the screens drawn last."""
    visible_screen_stack.set([])
    for owner, name in CACHES:
        # another release may keep nothing there
        getattr(getattr(owner, name, None), "cache_clear", int)()
