"""What one column of events is called, measured in, and looks like."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

#: ``int`` and ``hex`` hold int64, ``float`` and ``percent`` float64, ``text`` int32 codes into ``Profile.strings``.
Kind = Literal["int", "hex", "float", "percent", "text"]
#: Group of columns that say what an event is: the default.
EVENT: Final = "event"
#: Group of raw hardware counters: hidden until asked for, and not in tables of all columns.
COUNTERS: Final = "counters"


class Column(Struct, frozen=True):
    """One column of the schema; header, cells, files and help are derived from it.

    Attributes:
        key: Stable name in code, filters and settings.
        file_name: Name in files; empty: files of all that is known do not hold it, tables call it by its title.
        unit: Unit of the values ("ns", "B", "GB/s", "cycles", ""), shown beside them.
        width: Preferred width of the column on the screen, in cells.
        engines: Engines whose instructions have it; empty: all.
        needs: Key of the capability that a capture must have for the value to be known; empty: always known.
        aliases: Short names accepted in filters.
        shown: Whether the table shows it before the user chooses.
        group: Heading in the detail pane.
        source: Where the formula comes from.
    """

    key: str
    title: str
    file_name: str = ""
    kind: Kind = "int"
    unit: str = ""
    help: str = ""
    width: int = 10
    engines: tuple[str, ...] = ()
    needs: str = ""
    aliases: tuple[str, ...] = ()
    decimals: int = 2
    shown: bool = False
    group: str = EVENT
    source: str = ""

    @property
    def align(self) -> Literal["left", "right"]:
        """Text reads from the left, numbers line up on the right."""
        return "left" if self.kind == "text" else "right"

    def applies_to(self, engine: str) -> bool:
        """Whether instructions of ``engine`` can have this column."""
        return not self.engines or engine in self.engines


#: The kind of lane an event ran on: a column that every profile has, as it stands here where the schema of its
#: source names none; lanes that do not hold it are given it.
LANE_KIND: Final = Column("engine", "Lane", kind="text", shown=True, help="The kind of lane it ran on.")
#: The step an event belongs to: a column that profiles with steps have, as it stands here where the schema of their
#: source names none.
STEP: Final = Column("step", "Step", width=6, help="Number of the step, batch or iteration it belongs to.")
