"""Dependencies of a session's instructions, found once for all panes that speak of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..selecting.session import Session
from .dependencies import LinkKind, Links, find_links

#: Of so many a selected instruction waited for, or released, the timeline marks where they are.
MARKED: Final = 64


def known_links(session: Session) -> Links | None:
    """The links where they have been found; None before."""
    found: Links | None = session.derived.known("links")
    return found


def links_of(session: Session) -> Links:
    """All links of a profile, found once. O(n log n): ask for them in a thread where there are many instructions."""
    return session.derived.get("links", lambda: find_links(session.profile))


def may_have_links(session: Session) -> bool:
    """Whether it is worth to look for links: some lane names what its instructions wait for."""
    return any("depends_on" in lane or lane.registers is not None for lane in session.profile.lanes)


@dataclass(frozen=True)
class Tie:
    """An instruction that the selected one waited for, or that waited for it.

    Attributes:
        lane, row: The instruction.
        time: When it let the selected one go (its last ns), or was let go itself (of a wait its last ns).
        released: Whether it released the selected one; else it was released by it.
        slack_ns: Time between the two.
    """

    lane: int
    row: int
    time: int
    released: bool
    slack_ns: int


def ties_of(session: Session, lane: int, row: int) -> tuple[Tie, ...]:
    """What an instruction waited for, then what waited for it, the closest first; empty while that is not known.

    O(log links), and at most ``MARKED`` of each.
    """
    links = known_links(session)
    if links is None or row < 0:
        return ()
    before = sorted(links.waits_for(lane, row), key=lambda link: link.slack_ns)[:MARKED]
    after = sorted(links.releases(lane, row), key=lambda link: link.slack_ns)[:MARKED]
    ties = []
    for link in before:
        start, end = session.span_of(*link.releaser)
        ties.append(Tie(*link.releaser, max(end - 1, start), True, link.slack_ns))
    for link in after:
        start, end = session.span_of(*link.waiter)
        time = max(end - 1, start) if link.kind is LinkKind.MESSAGE else start
        ties.append(Tie(*link.waiter, time, False, link.slack_ns))
    return tuple(ties)
