"""Dependencies of a session's instructions, found once for all panes that speak of them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ..selecting.session import Session
from .dependencies import Dependencies, find_dependencies

#: Of so many a selected instruction waited for, or released, the timeline marks where they are.
MARKED: Final = 64


def known_dependencies(session: Session) -> Dependencies | None:
    """The dependencies where they have been found; None before."""
    found: Dependencies | None = session.derived.known("dependencies")
    return found


def dependencies_of(session: Session) -> Dependencies:
    """All dependencies of a profile, found once. O(n log n): to be asked for in a thread where there are many."""
    return session.derived.get("dependencies", lambda: find_dependencies(session.profile))


def may_have_dependencies(session: Session) -> bool:
    """Whether it is worth to look for dependencies: the source knows some."""
    return session.profile.links is not None


class Tie(Struct, frozen=True):
    """An instruction that the selected one waited for, or that waited for it.

    Attributes:
        lane, row: The instruction.
        time: When it released the selected one (its last ns), or was let go itself (of a wait its last ns).
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

    O(log dependencies), and at most ``MARKED`` of each.
    """
    dependencies = known_dependencies(session)
    if dependencies is None or row < 0:
        return ()
    before = sorted(dependencies.waits_for(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    after = sorted(dependencies.releases(lane, row), key=lambda each: each.slack_ns)[:MARKED]
    ties = []
    for each in before:
        start, end = session.span_of(*each.releaser)
        ties.append(Tie(*each.releaser, max(end - 1, start), True, each.slack_ns))
    for each in after:
        start, end = session.span_of(*each.waiter)
        time = max(end - 1, start) if each.ends else start
        ties.append(Tie(*each.waiter, time, False, each.slack_ns))
    return tuple(ties)
