"""Links between events: dependencies, launches, sends and their waits, as their source knows them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace


class Links(Struct, frozen=True, eq=False):
    """Links in columns of one length. Immutable.

    Events are numbered over all lanes of the profile, lane by lane.

    Attributes:
        kinds: What links mean ("launch").
        kind: int8 codes into them.
        from_row, to_row: int64 numbers of the events: of the first the second is a consequence.
        ending: Codes of kinds whose second event is a wait that the first lets end; of others it lets it begin.
        guessed: Codes of kinds that rest on guesswork.
        meeting: Codes of ending kinds whose second event goes on when the first begins, as in a collective.

    Raises:
        ValueError: The columns are not of one length.
    """

    kinds: tuple[str, ...]
    kind: npt.NDArray[np.int8]
    from_row: npt.NDArray[np.int64]
    to_row: npt.NDArray[np.int64]
    ending: frozenset[int] = frozenset()
    guessed: frozenset[int] = frozenset()
    meeting: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not len(self.kind) == len(self.from_row) == len(self.to_row):
            raise ValueError("columns of links are not of one length")
        for column in (self.kind, self.from_row, self.to_row):
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.kind)

    def renumbered(self, numbers: npt.NDArray[np.int64]) -> Links:
        """The links among some events.

        Args:
            numbers: int64, the new number of each event; -1 of those that are left out.
        """
        first, second = numbers[self.from_row], numbers[self.to_row]
        kept = (first >= 0) & (second >= 0)
        return replace(self, kind=self.kind[kept], from_row=first[kept], to_row=second[kept])
