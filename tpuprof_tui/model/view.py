"""A view: one thing that is said about a profile, declared once and shown on the screen, as text, JSON, sheet, page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: Where the summary pane tells a view: in the first column of lists, in the second, below both, only when chosen.
Place = Literal["first", "second", "below", ""]


class View(Struct, frozen=True):
    """One thing that is said about a profile.

    Attributes:
        id: Its name on the command line and in JSON; stable.
        title: Its heading; ``{units}``, ``{lane}`` and the like are the vocabulary's words (``Vocabulary.say``).
        compute: Entry ("module:function") of a function ``(Query) -> Answer`` (``views.answer``).
        needs: Keys of the capabilities a profile must have.
        untimed: Whether it has something to say of events without times.
        summed_up: Whether ``tpuprof summary`` and the web page tell it.
        together: Whether it is of all workers together.
        screen_alone: Whether it is for eyes alone: in no report and no file.
        place: Where the summary pane tells it.
        quick: Whether it is recomputed at each key press; other views wait until typing pauses.
        slow: Whether each worker takes long: of many workers it is computed when it is chosen, or one of them.
        compared: Whether a comparison tells it unasked.
        facts: Whether its answer may hold facts beside tables; callers that need facts alone skip the other views.
        facts_alone: Entry of a function ``(Query) -> facts`` that gives them sooner than ``compute``; may be empty.
    """

    id: str
    title: str
    help: str
    compute: str
    needs: tuple[str, ...] = ()
    untimed: bool = False
    summed_up: bool = True
    together: bool = False
    screen_alone: bool = False
    place: Place = "below"
    quick: bool = False
    slow: bool = False
    compared: bool = True
    facts: bool = True
    facts_alone: str = ""
