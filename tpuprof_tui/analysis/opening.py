"""Prepares a profile for the explorer's first frame: indexes and the figures it shows."""

from __future__ import annotations

from tpuprof_tui.model import Profile

from .links.launches import launches
from .selecting.session import Session


def opened(profile: Profile) -> Session:
    """A profile with its indexes, its steps, and of each unit a lane of its launches; meant for a thread."""
    session = Session.build(profile)
    _ = session.steps
    for unit in profile.units:
        launches(session, unit)
    return session
