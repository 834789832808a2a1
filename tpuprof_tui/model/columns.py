"""Definition of an event column: key, title, type, unit, and presentation."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

#: ``int`` and ``hex`` hold int64, ``float`` and ``percent`` float64, ``text`` int32 codes into ``Profile.strings``.
ColumnKind = Literal["int", "hex", "float", "percent", "text"]
#: Group of columns that describe the event itself: the default.
EVENT: Final = "event"
#: Group of columns that say where an event ran, the same for all events of a lane.
PLACE: Final = "place"
#: Group of raw hardware counters: hidden by default, and excluded from tables of all columns.
COUNTERS: Final = "counters"


class Column(Struct, frozen=True):
    """One column of the schema, from which table headers, cells, files and help are derived."""

    key: str  #: Stable name in code, filters and settings
    title: str
    file_name: str = ""  #: Name in files; empty: left out of files with all columns, and tables use the title
    kind: ColumnKind = "int"
    unit: str = ""  #: Unit of the values ("ns", "B", "GB/s", "cycles", ""), shown next to them
    help: str = ""
    width: int = 10  #: Preferred width of the column on the screen, in cells
    lanes: tuple[str, ...] = ()  #: Keys of the kinds of lanes whose events have it; empty: all
    needs: str = ""  #: Key of the capability that a capture must have for the value to be known; empty: always known
    aliases: tuple[str, ...] = ()  #: Short names accepted in filters
    decimals: int = 2
    shown: bool = False  #: Whether the table shows it by default
    group: str = EVENT  #: Heading in the detail pane
    source: str = ""  #: Source of the formula
    emphasis: str = ""  #: Key of a column of shares, 0 to 1, by which screens emphasise this one; empty: none
    is_id: bool = False  #: Whether numbers are names, written without separators of thousands

    @property
    def align(self) -> Literal["left", "right"]:
        """Alignment: left for text, right for numbers."""
        return "left" if self.kind == "text" else "right"

    def applies_to(self, lane_kind: str) -> bool:
        """Whether events of lanes of a kind can have this column."""
        return not self.lanes or lane_kind in self.lanes


#: The kind of lane an event ran on. Every profile has this column: it is added to schemas and lanes without it.
LANE_KIND: Final = Column("engine", "Lane", kind="text", shown=True, help="The kind of lane it ran on.")
#: The step an event belongs to, in profiles with steps; added to schemas that do not define this column.
STEP: Final = Column("step", "Step", width=6, help="Number of the step, batch or iteration it belongs to.")
