"""Declaration of a view: one report about a profile, shown on the screen, as text, JSON, worksheet, and web page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Where the summary pane shows a view: first column of lists, second column, below both, or (empty) only when chosen.
Place = Literal["first", "second", "below", ""]


class View(Struct, frozen=True):
    """A report about a profile."""

    id: str  #: Name on the command line and in JSON; stable
    title: str  #: Heading; ``{units}``, ``{lane}`` etc. are replaced by the vocabulary's words (``Vocabulary.say``).
    help: str
    compute: str  #: Entry ("module:function") of a function ``(Query) -> Answer`` (``views.answer``)
    needs: tuple[str, ...] = ()  #: Keys of the capabilities that a profile must have
    untimed: bool = False  #: Whether it applies to events without times
    in_summary: bool = True  #: Whether ``tpuprof summary`` and the web page include it
    all_workers: bool = False  #: Whether it covers all workers together
    screen_only: bool = False  #: Whether it is shown on the screen only, not in reports and files
    place: Place = "below"  #: Where the summary pane shows it
    quick: bool = False  #: Whether it is recomputed at each key press; other views wait until typing pauses
    #: Whether it is slow per worker: with many workers it is computed only when the view or a worker is chosen.
    slow: bool = False
    compared: bool = True  #: Whether a comparison includes it by default
    #: Whether its answer may hold facts besides tables; callers that need only facts skip other views.
    facts: bool = True
    facts_alone: str = ""  #: Entry of a function ``(Query) -> facts`` that is faster than ``compute``; may be empty
