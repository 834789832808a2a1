"""How much memory a profile takes: its columns, the records they are made from, and all that is derived from it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .derived import Counted
from .selecting.session import Session


class Memory(Struct, frozen=True):
    """Bytes of arrays and texts; what several things share counts where it comes first.

    Attributes:
        columns: Columns that are kept as arrays, by kind of lane.
        names: Texts of names, which columns refer to by number.
        records: What was recorded, from which other columns and details are made when they are asked for.
        derived: What was computed and is kept; ``a/b`` is what was computed of ``a``.
    """

    columns: Mapping[str, int]
    names: int
    records: int
    derived: Mapping[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.columns.values()) + self.names + self.records + sum(self.derived.values())


def memory_of(session: Session) -> Memory:
    """What a profile, and all that is kept of it, takes; O(arrays)."""
    counted, profile = Counted(), session.profile
    columns: dict[str, int] = {}
    for lane in profile.lanes:
        columns[lane.kind] = columns.get(lane.kind, 0) + counted.of(*lane.kept_arrays())
    names = counted.of(profile.strings)
    records = counted.of(profile)
    derived: dict[str, int] = {}
    # columns that are computed of other lanes keep themselves what that takes
    for each in (*counted.inside(), session.derived):
        derived |= each.sizes(counted)
    return Memory(columns, names, records, derived)
