"""What passes a filter: a mask over all instructions, and a session of these instructions alone."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from ..derived import Derived
from ..index.ordering import lane_rows
from .session import Ints, Session, numbers_in
from .state import DisplayState

Mask = npt.NDArray[np.bool_]

#: Filters whose masks are kept: the one that holds, and those one comes back to.
KEPT: Final = 4
#: Columns every view of a lane reads whole: taken once, the others when they are asked for.
_EAGER: Final = ("start", "end", "role", "sublane")


class Passing(Struct, frozen=True, eq=False):
    """The instructions that pass a filter.

    Attributes:
        text: The filter.
        whole: The session of all instructions.
        mask: By instruction number, whether it passes.
        count: How many pass.
        derived: What is computed of these instructions alone.
    """

    text: str
    whole: Session
    mask: Mask
    count: int
    derived: Derived = field(default_factory=Derived)

    def lane(self, number: int) -> Mask:
        """Which rows of a lane pass."""
        return self.mask[int(self.whole.offsets[number]) : int(self.whole.offsets[number + 1])]

    @property
    def session(self) -> Session:
        """The same capture with nothing but what passes: figures and indexes of it follow the filter.

        Its instructions are numbered anew. Made once, in O(instructions): ask for it in a thread.
        """
        return self.derived.get("session", self._session)

    @property
    def has_session(self) -> bool:
        """Whether ``session`` answers at once."""
        return self.derived.known("session") is not None

    def _session(self) -> Session:
        profile = self.whole.profile
        masks = map(self.lane, range(len(profile.lanes)))
        lanes = tuple(
            lane if mask.all() else lane.taking(np.flatnonzero(mask), eager=_EAGER)
            for lane, mask in zip(profile.lanes, masks, strict=True)
        )
        session = Session.build(replace(profile, lanes=lanes))
        # steps are those of all instructions, whatever passes
        session.derived.get("steps", lambda: self.whole.steps)
        return session


def passing(session: Session, text: str) -> Passing:
    """What passes a filter (``filters``), or FilterError; the latest ones are kept. O(instructions) the first time."""
    return session.derived.get("passing", lambda: _passing(session, text), text, most=KEPT)


def _passing(session: Session, text: str) -> Passing:
    from .filters import compile_filter  # commands without a filter start sooner without it

    predicate = compile_filter(text, session.profile)
    mask = np.empty(session.profile.instructions, np.bool_)
    for number, lane in enumerate(session.profile.lanes):
        mask[int(session.offsets[number]) : int(session.offsets[number + 1])] = predicate(lane)
    return Passing(text, session, mask, int(np.count_nonzero(mask)))


def is_known(session: Session, text: str) -> bool:
    """Whether ``passing`` answers at once."""
    return not text or session.derived.known("passing", text) is not None


def shown_session(session: Session, text: str) -> Session:
    """The session of what passes the filter; ``session`` itself without one. May take O(instructions)."""
    return passing(session, text).session if text else session


def row_of_all(session: Session, text: str, lane: int, row: int) -> int:
    """Row among all events of a lane of what is row ``row`` of those that pass the filter."""
    return int(np.flatnonzero(passing(session, text).lane(lane))[row]) if text else row


def numbers_shown(session: Session, state: DisplayState) -> Ints:
    """Numbers of the instructions the table holds: of the scope, the filter, and the window where it is asked for."""
    numbers = numbers_in(session, state.scope, state.figures_window if state.in_window else None)
    if not state.filter:
        return numbers
    mask = passing(session, state.filter).mask
    if len(numbers) == len(mask):
        return np.flatnonzero(mask)
    return numbers[mask[numbers]]


def total_duration(session: Session, numbers: Ints) -> int:
    """Sum of the durations of instructions, ns; ``numbers`` ascending."""
    chosen = lane_rows(session.profile, session.offsets, numbers)
    return sum(int(np.sum(lane.take("end", rows) - lane.take("start", rows))) for lane, rows in chosen)


def narrowed(text: str, condition: str) -> str:
    """A filter that asks for one condition more."""
    text = text.strip()
    if not text or text == condition:
        return condition
    return f"({text}) {condition}" if "|" in text else f"{text} {condition}"
