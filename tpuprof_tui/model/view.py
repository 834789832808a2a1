"""Declaration of a view: one report about a profile, shown on the screen, as text, JSON, worksheet, and web page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Where the summary pane shows a view: first column of lists, second column, below both, or (empty) only when chosen.
Place = Literal["first", "second", "below", ""]


class View(Struct, frozen=True):
    """A report about a profile.

    Attributes:
        id: Name on the command line and in JSON; stable.
        title: Heading; ``{units}``, ``{lane}`` etc. are replaced by the vocabulary's words (``Vocabulary.say``).
        compute: Entry ("module:function") of a function ``(Query) -> Answer`` (``views.answer``).
        needs: Keys of the capabilities that a profile must have.
        untimed: Whether it applies to events without times.
        in_summary: Whether ``tpuprof summary`` and the web page include it.
        all_workers: Whether it covers all workers together.
        screen_only: Whether it is shown on the screen only, not in reports and files.
        place: Where the summary pane shows it.
        quick: Whether it is recomputed at each key press; other views wait until typing pauses.
        slow: Whether it is slow per worker: with many workers it is computed only when the view or a worker is chosen.
        compared: Whether a comparison includes it by default.
        facts: Whether its answer may hold facts besides tables; callers that need only facts skip other views.
        facts_alone: Entry of a function ``(Query) -> facts`` that is faster than ``compute``; may be empty.
    """

    id: str
    title: str
    help: str
    compute: str
    needs: tuple[str, ...] = ()
    untimed: bool = False
    in_summary: bool = True
    all_workers: bool = False
    screen_only: bool = False
    place: Place = "below"
    quick: bool = False
    slow: bool = False
    compared: bool = True
    facts: bool = True
    facts_alone: str = ""
