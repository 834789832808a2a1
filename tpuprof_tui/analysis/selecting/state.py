"""What the explorer shows: one small immutable value, owned by the screen. Panes get it and answer with messages."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

#: What a line of the timeline shows.
Rows = Literal["engines", "cores"]
#: What colours mean: ``operation``, ``kernel``, or a share of the vocabulary.
Colouring = str
#: What is drawn below each lane; empty: nothing.
StripKind = Literal["", "bandwidth", "utilisation"]
#: What times are told in: units of time, or cycles of the clock.
TimeScale = Literal["time", "cycles"]


class Scope(Struct, frozen=True):
    """What is looked at: all, one group, or one lane.

    Attributes:
        group: Id of the group; -1: all of them.
        lane: Index into ``Profile.lanes``; -1: all lanes of the group.
    """

    group: int = -1
    lane: int = -1

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.group < 0 and self.lane < 0


class Selection(Struct, frozen=True):
    """What is selected; each field narrows the one before.

    Attributes:
        group: Id of the group, of a lane that of its unit; -1: none.
        lane: Index into ``Profile.lanes``; -1: none.
        row: Row of that lane; -1: none.
        counters: Number of a line of counters in the timeline; -1: none.
    """

    group: int = -1
    lane: int = -1
    row: int = -1
    counters: int = -1


class Sort(Struct, frozen=True):
    """Order of the table: column key and direction."""

    key: str = "start"
    down: bool = False


class Place(Struct, frozen=True):
    """A place in a profile that was asked for on a command line; as typed, nothing where it was not.

    Attributes:
        range: ``A..B``.
        core: Number of a unit.
        group: Name of a group.
        filter: A filter.
        select: An event: ``LANE:ROW``, the lane by its title or its number.
    """

    range: str = ""
    core: int | None = None
    group: str = ""
    filter: str = ""
    select: str = ""


class DisplayState(Struct, frozen=True):
    """All that decides what the screen shows of a profile. Times are int ns; windows are half-open.

    Attributes:
        full_start, full_end: The whole profile.
        start, end: The visible window.
        selection: Shared by all panes.
        scope: What tree, timeline, table and summary are narrowed to.
        in_window: Whether the table holds only instructions of the visible window.
        rows: Whether the timeline shows engines or whole cores.
        filter: Filter expression of table and timeline; empty: none.
        marks: Times marked, with their letters.
        spans: Spans of time that are kept: letter, start, end.
        path: Whether the critical path is a lane of the timeline, where it has been found.
        texts: What is written about marks and spans, by their letters.
        search: What was searched for last; empty: nothing.
        columns: Keys of the table's columns in their order; empty: the usual ones.
        percent: Whether the table tells each duration's share of the total.
        picked: Numbers of the instructions picked in the table, in that order.
        range: Start and end of the chosen range of time; None: none.
        anchor: Where a range was begun that has no end yet; None: nowhere.
        legend: Whether the timeline explains its colours.
        strip: What is drawn below each lane of the timeline.
        pinned: Lane and unit of the lines that stay on top of the timeline, and number of a line of counters.
        unfolded: Numbers of the lines of counters whose own lines show.
    """

    full_start: int
    full_end: int
    start: int
    end: int
    cursor: int
    selection: Selection = Selection()
    scope: Scope = Scope()
    sort: Sort = Sort()
    in_window: bool = False
    rows: Rows = "engines"
    filter: str = ""
    marks: tuple[tuple[str, int], ...] = ()
    search: str = ""
    columns: tuple[str, ...] = ()
    percent: bool = False
    picked: tuple[int, ...] = ()
    range: tuple[int, int] | None = None
    anchor: int | None = None
    colouring: Colouring = "operation"
    legend: bool = False
    strip: StripKind = ""
    pinned: tuple[tuple[int, int, int], ...] = ()
    unfolded: tuple[int, ...] = ()
    scale: TimeScale = "time"
    spans: tuple[tuple[str, int, int], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    path: bool = False

    @classmethod
    def of(cls, start: int, end: int) -> DisplayState:
        """The state in which a profile from ``start`` to ``end`` opens: all of it, the cursor in the middle."""
        end = max(end, start + 1)
        return cls(start, end, start, end, (start + end) // 2)

    @property
    def span(self) -> int:
        """Length of the visible window."""
        return self.end - self.start

    @property
    def lines_shown(self) -> tuple[object, ...]:
        """All that decides how many lines the timeline has."""
        return (self.rows, self.scope, self.legend, self.strip, self.pinned, self.unfolded, self.path,
                self.legend and self.colouring)  # fmt: skip

    @property
    def figures_window(self) -> tuple[int, int]:
        """Start and end of what figures are about: the range, else the visible window."""
        return self.range or (self.start, self.end)

    @property
    def figured(self) -> DisplayState:
        """The state with the window that figures are about."""
        start, end = self.figures_window
        return replace(self, start=start, end=end)

    @property
    def figures_scope(self) -> Scope:
        """What figures are about: the scope, else the selected unit or lane of none, else everything."""
        if not self.scope.everything:
            return self.scope
        return Scope(self.selection.group) if self.selection.group >= 0 else Scope(-1, self.selection.lane)

    @property
    def fits_all(self) -> bool:
        """Whether the whole profile is visible."""
        return self.start <= self.full_start and self.end >= self.full_end

    def windowed(self, start: int, span: int) -> DisplayState:
        """The window at ``start``, as long as ``span``, moved and cut so that it lies in the profile."""
        span = min(max(span, 1), self.full_end - self.full_start)
        start = min(max(start, self.full_start), self.full_end - span)
        cursor = min(max(self.cursor, start), start + span - 1)
        return replace(self, start=start, end=start + span, cursor=cursor)

    def zoomed(self, span: int, minimum: int) -> DisplayState:
        """The window ``span`` long about the cursor, which keeps its place; never shorter than ``minimum``."""
        span = min(max(span, minimum, 1), self.full_end - self.full_start)
        offset = (self.cursor - self.start) * span // max(self.span, 1)
        return self.windowed(self.cursor - offset, span)

    def panned(self, offset: int) -> DisplayState:
        """The window moved by ``offset`` ns; the cursor keeps its place on the screen."""
        moved = self.windowed(self.start + offset, self.span)
        shift = moved.start - self.start
        cursor = min(max(self.cursor + shift, moved.start), moved.end - 1)
        return replace(moved, cursor=cursor)

    def at(self, time: int) -> DisplayState:
        """The cursor at ``time``, the window moved no further than needed to show it."""
        time = min(max(time, self.full_start), self.full_end - 1)
        if time < self.start:
            moved = self.windowed(time, self.span)
        elif time >= self.end:
            moved = self.windowed(time + 1 - self.span, self.span)
        else:
            moved = self
        return replace(moved, cursor=time)

    def showing(self, start: int, end: int) -> DisplayState:
        """The window moved so that [start, end) is visible: not at all, or to put it in the middle."""
        if start >= self.start and end <= self.end:
            return self
        if end - start > self.span:
            return self.windowed(start - self.span // 10, self.span)
        return self.windowed((start + end) // 2 - self.span // 2, self.span)

    def fitted(self) -> DisplayState:
        """The whole profile."""
        return self.windowed(self.full_start, self.full_end - self.full_start)
