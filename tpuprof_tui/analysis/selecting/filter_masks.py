"""Results of filters: a mask over all events, and a session restricted to those that pass."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from ..result_cache import ResultCache
from .session import Session

Mask = npt.NDArray[np.bool_]

#: Number of filters whose masks are cached: the current one and recent ones.
CACHED_FILTERS: Final = 4
#: Columns that every view of a lane reads whole: copied at once, the others lazily.
_EAGER: Final = ("start", "end", "role", "sublane")


class FilterResult(Struct, frozen=True, eq=False):
    """The events that pass a filter."""

    text: str  #: The filter expression
    unfiltered: Session  #: The session of all events
    mask: Mask  #: bool, by event number
    count: int  #: Number of events that pass
    cache: ResultCache = field(default_factory=ResultCache)  #: Cache of results computed from these events alone

    def lane(self, number: int) -> Mask:
        """Mask over the rows of a lane."""
        return self.mask[int(self.unfiltered.offsets[number]) : int(self.unfiltered.offsets[number + 1])]

    @property
    def session(self) -> Session:
        """The capture restricted to the events that pass: its figures and indexes follow the filter.

        Its events are renumbered. Cached; O(events) the first time: call it from a worker thread.
        """
        return self.cache.get("session", self._session)

    @property
    def has_session(self) -> bool:
        """Whether ``session`` is cached."""
        return self.cache.peek("session") is not None

    def _session(self) -> Session:
        profile = self.unfiltered.profile
        masks = map(self.lane, range(len(profile.lanes)))
        lanes = tuple(
            lane if mask.all() else lane.select_rows(np.flatnonzero(mask), eager=_EAGER)
            for lane, mask in zip(profile.lanes, masks, strict=True)
        )
        session = Session(replace(profile, lanes=lanes))
        _ = session.indexes.by_unit
        return session


def apply_filter(session: Session, text: str) -> FilterResult:
    """The events that pass a filter, cached; raises FilterError. O(events) the first time."""
    return session.cache.get("passing", lambda: _apply_filter(session, text), text, limit=CACHED_FILTERS)


def _apply_filter(session: Session, text: str) -> FilterResult:
    from .filters import compile_filter  # lazy: commands without a filter start faster

    predicate = compile_filter(text, session.profile)
    mask = np.empty(session.profile.event_count, np.bool_)
    for number, lane in enumerate(session.profile.lanes):
        mask[int(session.offsets[number]) : int(session.offsets[number + 1])] = predicate(lane)
    return FilterResult(text, session, mask, int(np.count_nonzero(mask)))


def is_filter_cached(session: Session, text: str) -> bool:
    """Whether the result of ``apply_filter`` is cached."""
    return not text or session.cache.peek("passing", text) is not None


def filtered_session(session: Session, text: str) -> Session:
    """The session restricted by a filter; ``session`` itself without one. O(events) the first time."""
    return apply_filter(session, text).session if text else session


def emptying_condition(session: Session, text: str) -> str:
    """The condition of a filter that no event passes, else the first one that leaves none of those before it."""
    from .filters import conditions_of

    parts = conditions_of(text)
    counts = [apply_filter(session, part).count for part in parts]
    if 0 in counts:
        return parts[counts.index(0)]
    left = np.ones(session.profile.event_count, np.bool_)
    for part in parts:
        left &= apply_filter(session, part).mask
        if not left.any():
            return part
    return parts[-1]


def none_passes(session: Session, text: str) -> str:
    """Says which condition of a filter that no event passes leaves none."""
    return session.say("No {event} passes: ") + f"{emptying_condition(session, text)} leaves none."


def with_condition(text: str, condition: str) -> str:
    """The filter with a further condition added by ``and``."""
    from .filters import has_alternatives

    text = text.strip()
    if not text or text == condition:
        return condition
    # "or" binds less than "and"
    return " ".join(f"({each})" if has_alternatives(each) else each for each in (text, condition))
