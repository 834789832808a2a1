"""Dependencies of a session's instructions, found once for all panes that speak of them."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from ..analysis.dependencies import Links, find_links
from .session import Session

_KNOWN: Final[WeakKeyDictionary[Session, Links]] = WeakKeyDictionary()


def known_links(session: Session) -> Links | None:
    """The links where they have been found; None before."""
    return _KNOWN.get(session)


def links_of(session: Session) -> Links:
    """All links of a profile, found once. O(n log n): ask for them in a thread where there are many instructions."""
    found = _KNOWN.get(session)
    if found is None:
        found = _KNOWN[session] = find_links(session.profile)
    return found
