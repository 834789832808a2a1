"""Cached per-event differences of the displayed profile from its baseline, and their texts."""

from __future__ import annotations

from typing import cast

import numpy as np

from tpuprof_tui.analysis.compare.noise import beyond_noise
from tpuprof_tui.analysis.compare.side_by_side import Differences, SideBySide, find_differences
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.formats.units import time_text

from .comparing import Compared


def cached_differences(session: Session) -> Differences | None:
    """The differences if they have been computed; None before."""
    return cast("Differences | None", session.cache.peek("differences"))


def differences_of(session: Session) -> Differences:
    """All differences from the baseline, cached. O(n log n) the first time: call it from a worker thread."""
    base = session.baseline
    assert base is not None

    query, offsets = Query(session, baseline=Query(base)), (base.offsets, session.offsets)
    return session.cache.get("differences", lambda: find_differences(Compared.of(query).comparison, *offsets))


def cached_side_by_side(session: Session) -> SideBySide | None:
    """The pairing for side-by-side display if it has been computed; None before."""
    return cast("SideBySide | None", session.cache.peek("side by side"))


def side_by_side(session: Session) -> SideBySide | None:
    """The pairing for side-by-side display, cached; None without baseline or times. O(n log n): use a worker thread."""
    base = session.baseline
    if base is None or not (session.profile.timed and base.profile.timed):
        return None

    query = Query(session, baseline=Query(base))
    return session.cache.get("side by side", lambda: SideBySide(session, base, Compared.of(query).comparison))


def difference_text(session: Session, differences: Differences, number: int) -> str:
    """Describes how an event differs from its partner in one sentence; empty for an event that does no work."""
    base, partner = session.baseline, int(differences.partner[number])
    assert base is not None
    if partner < 0:
        return "Added: nothing of the base belongs to it." if differences.differs[number] else ""
    (start, end), (begin, stop) = session.span_of(*session.locate(number)), base.span_of(*base.locate(partner))
    here, there = end - start, stop - begin
    between, within = differences.noise
    text = _duration_change(there, here)
    if here != there and not beyond_noise(np.array([there]), np.array([here]), between, within)[0]:
        small = abs(here - there) <= between * max(here, there)
        text += ", within noise" if small or within is not None else ", unclear"
    launch = differences.launch_at(number)
    more = f"; its launch: {_duration_change(*launch)}" if launch is not None else ""
    return f"{text}{', other operands' if differences.changed[number] else ''}{more}."


def _duration_change(there: int, here: int) -> str:
    if here == there:
        return f"As long as in the base, {time_text(there)}"
    share = f" ({(here - there) / there:+.1%})" if there else ""
    way = "longer" if here > there else "shorter"
    return f"{time_text(abs(here - there))} {way} than {time_text(there)} in the base{share}"
