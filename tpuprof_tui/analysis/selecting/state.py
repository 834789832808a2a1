"""Display state of the explorer: one immutable value, owned by the screen; panes receive it and post messages back."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

#: Unit of a line of the timeline.
LineUnit = Literal["lanes", "units"]
#: Meaning of colours: ``operation``, ``kernel``, or the key of a share (``Vocabulary.shares``).
Colouring = str
#: Chart drawn below each lane; empty: none.
StripKind = Literal["", "bandwidth", "utilisation"]
#: Scale of displayed times: units of time, or cycles of the clock.
TimeScale = Literal["time", "cycles"]


class Scope(Struct, frozen=True):
    """Part of the profile under inspection: all, one group, or one lane."""

    group: int = -1  #: Id of the group; -1: all groups
    lane: int = -1  #: Index into ``Profile.lanes``; -1: all lanes of the group

    @property
    def everything(self) -> bool:
        """Whether the scope is the whole profile."""
        return self.group < 0 and self.lane < 0


class SelectedItem(Struct, frozen=True):
    """The selection; each field narrows the one before."""

    group: int = -1  #: Id of the group, or of the selected lane's unit; -1: none
    lane: int = -1  #: Index into ``Profile.lanes``; -1: none
    row: int = -1  #: Row of that lane; -1: none
    counters: int = -1  #: Index of a counter line in the timeline; -1: none
    level: int = -1  #: Row of an open lane in the timeline, from the outermost events; -1: the whole lane
    #: Start and end of a time without work, ns, of the lane, else of the group; None: none. Then no row.
    pause: tuple[int, int] | None = None

    @property
    def has_detail(self) -> bool:
        """Whether there is something to tell of: an event or a pause."""
        return self.row >= 0 or self.pause is not None


class Sort(Struct, frozen=True):
    """Sort order of the table: column key and direction."""

    key: str = "start"
    down: bool = False


class Place(Struct, frozen=True):
    """A place in a profile as given on a command line; empty fields were not given."""

    range: str = ""  #: ``A..B``
    unit_number: int | None = None  #: Number of a unit
    group: str = ""  #: Name of a group or a lane
    filter: str = ""  #: A filter expression
    select: str = ""  #: An event as ``LANE:ROW``, the lane by title or index
    view: str = ""  #: Id of the view that fills the summary


class DisplayState(Struct, frozen=True):
    """Everything that determines what the screen shows of a profile. Times are int ns; windows are half-open."""

    #: full_start, full_end: Extent of the whole profile.
    full_start: int
    full_end: int
    #: start, end: The visible window.
    start: int
    end: int
    cursor: int
    selection: SelectedItem = SelectedItem()  #: Shared by all panes
    scope: Scope = Scope()  #: Restriction of tree, timeline, table and summary
    sort: Sort = Sort()
    in_window: bool = False  #: Whether the table is limited to events of the visible window
    line_unit: LineUnit = "lanes"  #: Whether a line of the timeline is a lane or a whole unit
    filter: str = ""  #: Filter expression of table and timeline; empty: none
    marks: tuple[tuple[str, int], ...] = ()  #: Marks: letter, time
    search: str = ""  #: Last search text; empty: none
    columns: tuple[str, ...] = ()  #: Keys of the table's columns in order; empty: the default ones
    percent: bool = False  #: Whether the table shows each duration as a share of the total
    picked: tuple[int, ...] = ()  #: Numbers of the events picked in the table, in that order
    range: tuple[int, int] | None = None  #: Start and end of the selected range of time; None: none
    #: The window that figures are of without a range, as zoom and pan keys set it; None: the whole profile. A cursor
    #: that scrolls moves the visible window alone.
    viewed: tuple[int, int] | None = None
    anchor: int | None = None  #: Where an unfinished range starts; None: none
    colouring: Colouring = "operation"
    legend: bool = False  #: Whether the timeline shows the legend of its colours
    strip: StripKind = ""  #: Chart drawn below each lane of the timeline
    #: Lines pinned to the top of the timeline: lane, unit, index of a counter line.
    pinned: tuple[tuple[int, int, int], ...] = ()
    unfolded: tuple[int, ...] = ()  #: Indexes of the counter lines that are expanded
    opened: tuple[int, ...] = ()  #: Lanes that the timeline shows as stacks, a row for each depth
    scale: TimeScale = "time"
    spans: tuple[tuple[str, int, int], ...] = ()  #: Stored spans of time: letter, start, end
    texts: tuple[tuple[str, str], ...] = ()  #: Notes on marks and spans: letter, text
    critical_path: bool = False  #: Whether the critical path, once computed, is a lane of the timeline

    @classmethod
    def of(cls, start: int, end: int) -> DisplayState:
        """The initial state for a profile from ``start`` to ``end``: everything visible, the cursor in the middle."""
        end = max(end, start + 1)
        return cls(start, end, start, end, (start + end) // 2)

    @property
    def span(self) -> int:
        """Length of the visible window."""
        return self.end - self.start

    @property
    def lines_shown(self) -> tuple[object, ...]:
        """All fields that determine the number of lines of the timeline, to detect when its layout changes."""
        return (self.line_unit, self.scope, self.legend, self.strip, self.pinned, self.unfolded, self.opened,
                self.critical_path,
                self.legend and self.colouring)  # fmt: skip

    @property
    def figures_window(self) -> tuple[int, int]:
        """Window of the figures, [start, end): the range, else the window that zoom and pan keys set, else all."""
        return self.range or self.viewed or (self.full_start, self.full_end)

    @property
    def figures_state(self) -> DisplayState:
        """The state with the window of the figures as its visible window."""
        start, end = self.figures_window
        return replace(self, start=start, end=end)

    @property
    def fits_all(self) -> bool:
        """Whether the whole profile is visible."""
        return self.start <= self.full_start and self.end >= self.full_end

    def windowed(self, start: int, span: int) -> DisplayState:
        """Sets the window, also of the figures: at ``start``, of length ``span``, clamped to the profile."""
        moved = self.scrolled(start, span)
        return replace(moved, viewed=None if moved.fits_all else (moved.start, moved.end))

    def scrolled(self, start: int, span: int) -> DisplayState:
        """Moves the visible window; figures stay what they are."""
        span = min(max(span, 1), self.full_end - self.full_start)
        start = min(max(start, self.full_start), self.full_end - span)
        cursor = min(max(self.cursor, start), start + span - 1)
        return replace(self, start=start, end=start + span, cursor=cursor)

    def zoomed(self, span: int, minimum: int) -> DisplayState:
        """Sets the window's length (at least ``minimum``), keeping the cursor's position on the screen."""
        span = min(max(span, minimum, 1), self.full_end - self.full_start)
        offset = (self.cursor - self.start) * span // max(self.span, 1)
        return self.windowed(self.cursor - offset, span)

    def panned(self, offset: int) -> DisplayState:
        """Moves the window by ``offset`` ns, keeping the cursor's position on the screen."""
        moved = self.windowed(self.start + offset, self.span)
        shift = moved.start - self.start
        cursor = min(max(self.cursor + shift, moved.start), moved.end - 1)
        return replace(moved, cursor=cursor)

    def at(self, time: int) -> DisplayState:
        """Moves the cursor to ``time``, and the window no further than needed to show it."""
        time = min(max(time, self.full_start), self.full_end - 1)
        if time < self.start:
            moved = self.scrolled(time, self.span)
        elif time >= self.end:
            moved = self.scrolled(time + 1 - self.span, self.span)
        else:
            moved = self
        return replace(moved, cursor=time)

    def showing(self, start: int, end: int) -> DisplayState:
        """Moves the window so that [start, end) is visible: not if it is already, else centered on it."""
        if start >= self.start and end <= self.end:
            return self
        if end - start > self.span:
            return self.scrolled(start - self.span // 10, self.span)
        return self.scrolled((start + end) // 2 - self.span // 2, self.span)

    def fitted(self) -> DisplayState:
        """Zooms out to the whole profile, without a range."""
        return replace(self.windowed(self.full_start, self.full_end - self.full_start), range=None, anchor=None)
