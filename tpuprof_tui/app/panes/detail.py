"""Detail pane: all fields of the selected event with explanations, and links to related ones; what explains a pause."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import ClassVar, Final, Literal, TypeVar

import numpy as np
from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType

from tpuprof_tui.analysis.compare.side_by_side import Differences
from tpuprof_tui.analysis.evidence.pause_story import CAUSE_TEXTS, PauseStory, pause_story
from tpuprof_tui.analysis.evidence.peers import neighbours, peers_of
from tpuprof_tui.analysis.evidence.problem_rows import about_text, problem_rows
from tpuprof_tui.analysis.index.ordering import unit_or_port
from tpuprof_tui.analysis.links.dependencies import (
    Dependencies,
    Dependency,
    cached_dependencies,
    dependencies_of,
    likely_release,
    may_have_dependencies,
)
from tpuprof_tui.analysis.links.waits import barrier_of, lane_work_during, work_during_text
from tpuprof_tui.analysis.selecting.cell_texts import column_texts, text_of
from tpuprof_tui.analysis.selecting.moves import select_event, step_event
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, in_sentence, wrap
from tpuprof_tui.formats.units import GUESS, MISSING, clock_text, exact_time, gap_text, percent_text, time_text
from tpuprof_tui.model import Column, Lane, Profile
from tpuprof_tui.views.differences import cached_differences, difference_text, differences_of

from ..drawing.glyphs import Glyphs
from ..drawing.theme import Palette
from ..settings.actions import bindings
from ..shell.messages import Background, ChangeState, ShowMessage
from .lines import Line, LinesView, paragraph

#: Kind of an entry, which determines how it is drawn; "group" is the title of a group of fields.
EntryKind = Literal["name", "text", "remark", "warning", "group", "field", "link"]

#: Most dependencies listed in each direction.
MAX_LINKS: Final = 8
#: Most enclosing events listed.
MAX_ENCLOSING: Final = 24
#: Most other lanes listed.
MAX_MEANWHILE: Final = 4
#: Longest text of an argument that is shown.
_MAX_ARGUMENT: Final = 4096
#: Columns that are computed for every lane, without a column in its data.
_OF_EVERY_LANE: Final = ("engine", "core", "duration")
#: Groups of register fields, in display order.
_REGISTER_GROUPS: Final = ("shape", "addresses", "options", "reserved")
#: Undecoded bytes per line.
_RAW_BYTES: Final = 16


class Entry(Struct, frozen=True):
    """An entry of the detail, which may be wrapped to several lines."""

    kind: EntryKind
    text: str  #: Its text; the value of a field
    label: str = ""  #: Label of a field or a link
    help: str = ""  #: Explanation of a field
    leads_to: tuple[int, int] | None = None  #: Lane and row of the target event of a link
    back: bool = False  #: Whether a link leads to an earlier event, rather than to a later one

    @property
    def can_be_chosen(self) -> bool:
        """Whether the cursor can be on it."""
        return self.kind in ("field", "link")


def entries_of(
    session: Session, number: int, row: int, dependencies: Dependencies | None, differences: Differences | None = None
) -> Iterator[Entry]:
    """Yields the entries of row ``row`` of lane ``number`` in display order.

    ``dependencies`` and ``differences`` (from the baseline) are None until they are computed, or without a baseline.
    """
    lane = session.profile.lanes[number]
    yield from _heading(session, lane, number, row)
    reading = clean(lane.description(row))
    if reading:
        yield Entry("text", reading)
    for problem in problem_rows(session).about(number, row):
        yield Entry("warning", f"{about_text(problem)} {clean(problem.done)}")
    if differences is not None:
        yield from _baseline_entries(session, differences, number, row)
    if dependencies is not None:
        yield from _dependencies(session, dependencies, number, row)
    yield from _enclosing(session, dependencies, number, row)
    yield from _peer_entries(session, lane, number, row)
    yield from _neighbours(session, number, row)
    if not lane.on_host:
        yield from _meanwhile(session, session.unit_of(number), number, *session.span_of(number, row))
    yield from _missing(session, lane)
    yield from _fields(session, lane, row)
    yield from _register_fields(session, lane, row)
    yield from _arguments(lane, row)


def pause_entries(session: Session, selection: SelectedItem, story: PauseStory | None) -> Iterator[Entry]:
    """Yields the entries of a selected pause; ``story`` is None until it is known."""
    start, end = selection.pause or (0, 0)
    number, profile = selection.lane, session.profile
    where = session.title_of(number) if number >= 0 else profile.groups.title(selection.group)
    yield Entry("name", "pause")
    yield Entry("text", f"{clean(where)}, no work for {time_text(end - start)} from {exact_time(start)}")
    if story is None:
        yield Entry("remark", "Looking for what explains it ...")
        return
    if story.cause:
        yield Entry("text", f"Cause: {CAUSE_TEXTS[story.cause]}")
    for label, event in (("Before", story.before), ("After", story.after)):
        if event is not None:
            first, last = session.span_of(*event)
            text = f"{_link_name(session, *event)}, {time_text(last - first)}"
            yield Entry("link", text, label, leads_to=event, back=label == "Before")
    if story.waited_for is not None:
        guess, releaser = GUESS if story.waited_for.guessed else "", story.waited_for.releaser
        text = f"{guess}{_link_name(session, *releaser)} ({story.waited_for.kind})"
        yield Entry("link", text, "Waited for", leads_to=releaser, back=True)
    yield from _meanwhile(session, session.unit_of(number) if number >= 0 else selection.group, number, start, end)
    for lane, found in groupby(story.host, key=lambda each: each.lane):
        yield Entry("group", f"{clean(session.title_of(lane))} meanwhile")
        for each in found:
            text = f"{time_text(each.ns)}, {percent_text(each.share)}  {clean(each.name)}"
            label = clean(each.type) or session.say("{Event}")
            yield Entry("link", text, label, "Time of it within the pause.", leads_to=(each.lane, each.row), back=True)


def _heading(session: Session, lane: Lane, number: int, row: int) -> Iterator[Entry]:
    start, end = session.span_of(number, row)
    role = ("", "wait, ", "sync, ")[int(lane.take("role", slice(row, row + 1))[0]) % 3]
    guess = "~" if role and lane.role_guessed else ""
    yield Entry("name", text_of(session.profile, lane, "name", row) or session.say("{event}"))
    timed = session.profile.timed and not lane.is_aside
    ran = f"{time_text(end - start)} at {exact_time(start)}" if timed else "without times"
    profile = session.profile
    # lanes of no unit, such as ports, run what several units submit
    owner = int(lane.take("owner", slice(row, row + 1))[0]) if profile.unit_of(lane) < 0 and "owner" in lane else -1
    submitted = f" submitted by {in_sentence(profile.groups.title(owner))}" if owner >= 0 else ""
    yield Entry("text", f"{clean(profile.title_of(lane))}{clean(submitted)}, {guess}{role}{ran}")
    if session.profile.wall_ns is not None and timed:
        yield Entry("text", f"starts {clock_text(session.profile.wall_ns + start)} (wall clock)")


def _name(session: Session, number: int, row: int) -> str:
    return text_of(session.profile, session.profile.lanes[number], "name", row, readable=True) or session.say("{event}")


def _link_name(session: Session, number: int, row: int) -> str:
    lane = session.profile.lanes[number]
    order = int(lane.take("order", slice(row, row + 1))[0])
    return f"{_name(session, number, row)} {order} of {clean(session.profile.title_of(lane))}"


def _baseline_entries(session: Session, differences: Differences, number: int, row: int) -> Iterator[Entry]:
    """The event's counterpart in the baseline: its duration, and every field that differs."""
    event = session.number(number, row)
    text, base = difference_text(session, differences, event), session.baseline
    partner = int(differences.partner[event])
    if text:
        yield Entry("remark", text)
    if partner < 0 or base is None:
        return
    base_lane, base_row = base.locate(partner)
    before = {entry.label: entry.text for entry in _fields(base, base.profile.lanes[base_lane], base_row)}
    yield Entry("group", f"base -> here: {_link_name(base, base_lane, base_row)}")
    for entry in _fields(session, session.profile.lanes[number], row):
        if entry.kind == "field" and before.get(entry.label, entry.text) != entry.text:
            yield Entry("field", f"{before[entry.label]} -> {entry.text}", entry.label, entry.help)


def _dependencies(session: Session, dependencies: Dependencies, number: int, row: int) -> Iterator[Entry]:
    waits = dependencies.waits_for(number, row)
    guessed = None if waits else likely_release(session, number, row)
    waits = waits if guessed is None else (guessed,)
    for labels, back, when, key, found in (
        (("Waited for", "Launched by"), True, "before", "[", waits),
        (("Released", "Launched"), False, "later", "]", dependencies.releases(number, row)),
    ):
        label = labels[all(each.launched for each in found)]
        for each in sorted(found, key=lambda each: each.slack_ns)[:MAX_LINKS]:
            end = each.releaser if back else each.waiter
            text = f"{GUESS if each.guessed else ''}{_link_name(session, *end)}, {gap_text(each.slack_ns, when)}"
            yield Entry("link", text, labels[each.launched], leads_to=end, back=back)
            yield from _barrier(session, each) if back else ()
        if len(found) > MAX_LINKS:
            yield Entry("remark", f"{label} {len(found) - MAX_LINKS:,} more; {key} follows the closest")
    first, count = dependencies.started_in(session.profile.lanes, number, row)
    for each in first:
        text = f"{_link_name(session, *each.waiter)}{f', the first of {count:,}' if count > 1 else ''}"
        yield Entry("link", text, "Started", leads_to=each.waiter)


def _enclosing(session: Session, dependencies: Dependencies | None, number: int, row: int) -> Iterator[Entry]:
    """Links to the enclosing events, innermost first; for an event launched elsewhere, those enclosing its launch."""
    lane, label = session.profile.lanes[number], "Inside"
    if "parent" not in lane and dependencies is not None:
        started = (each.releaser for each in dependencies.waits_for(number, row))
        number, row = next((each for each in started if "parent" in session.profile.lanes[each[0]]), (number, row))
        lane, label = session.profile.lanes[number], "Started in"
    if "parent" not in lane:
        return
    parent = int(lane.take("parent", slice(row, row + 1))[0])
    for _ in range(MAX_ENCLOSING):
        if parent < 0:
            return
        start, end = session.span_of(number, parent)
        text = f"{_name(session, number, parent)}, {time_text(end - start)}"
        yield Entry("link", text, label, leads_to=(number, parent), back=True)
        parent = int(lane.take("parent", slice(parent, parent + 1))[0])
    if parent >= 0:
        yield Entry("remark", "and in more")


def _barrier(session: Session, dependency: Dependency) -> Iterator[Entry]:
    """The unit that arrived last at a barrier, how late it was, and what it did meanwhile."""
    barrier = barrier_of(session, dependency.releaser) if dependency.ends else None
    if not barrier:
        return
    unit, time, late = int(barrier.unit[0]), int(barrier.time[0]), int(barrier.late_ns[0])
    guess = GUESS if barrier.guessed[0] else ""
    came = f"{in_sentence(session.profile.groups.title(unit))} came last, {guess}{time_text(late)}"
    did = work_during_text(session, unit, time - late, time)
    yield Entry("remark", f"Barrier: {came} after the others{f'; meanwhile {did}' if did else ''}")


def _peer_entries(session: Session, lane: Lane, number: int, row: int) -> Iterator[Entry]:
    found = peers_of(session, number, row)
    if found.count < 2 or not found.median_ns:
        return
    start, end = session.span_of(number, row)
    median = time_text(round(found.median_ns))
    like = f" by {', '.join(map(in_sentence, found.by))}" if found.by else ""
    ratio = f"{(end - start) / found.median_ns:.1f}x the median {median}"
    yield Entry("remark", f"{ratio} of {found.count:,} peers{like}")
    if found.longest == (number, row):
        yield Entry("remark", f"the longest of them; the shortest took {time_text(found.shortest_ns)}")
    else:
        text = f"{_link_name(session, *found.longest)}, {time_text(found.longest_ns)}"
        yield Entry("link", text, "Longest", leads_to=found.longest, back=session.span_of(*found.longest)[0] < start)


def _neighbours(session: Session, number: int, row: int) -> Iterator[Entry]:
    timed = session.profile.timed and not session.profile.lanes[number].is_aside
    for label, each in zip(("Before", "After"), neighbours(session, number, row), strict=True):
        if each is not None:
            name = _name(session, number, each.row)
            text = f"{name}, {gap_text(each.gap_ns, 'apart')}" if timed else name
            yield Entry("link", text, label, leads_to=(number, each.row), back=label == "Before")


def _meanwhile(session: Session, unit: int, number: int, start: int, end: int) -> Iterator[Entry]:
    if end <= start:
        return
    busy_lanes = [each for each in lane_work_during(session, unit, start, end) if each.lane != number]
    if not busy_lanes and sum(session.unit_of(each) == unit for each in range(len(session.profile.lanes))) > 1:
        yield Entry("remark", session.say("Meanwhile no other {lane} of its {unit} worked"))
    for each in sorted(busy_lanes, key=lambda each: -each.busy)[:MAX_MEANWHILE]:
        label = clean(session.profile.lanes[each.lane].label)
        most = f", {each.share:.0%} on {clean(each.name)}" if each.name else ""
        yield Entry("remark", f"Meanwhile {label} worked {each.busy:.0%} of the time{most}")


def _missing(session: Session, lane: Lane) -> Iterator[Entry]:
    profile, vocabulary = session.profile, session.profile.vocabulary
    needs = {column.needs for column in vocabulary.columns if column.needs and column.applies_to(lane.kind)}
    for need in sorted(vocabulary.needs(each) for each in needs if not profile.has(each)):
        yield Entry("warning", f"{MISSING} needs {need}: this capture is {profile.recording.name}")


def _fields(session: Session, lane: Lane, row: int) -> Iterator[Entry]:
    rows = np.array([row], dtype=np.int64)
    profile, vocabulary = session.profile, session.profile.vocabulary
    shown = [column for column in vocabulary.columns if column.applies_to(lane.kind) and _shows(profile, lane, column)]
    groups = list(dict.fromkeys(column.group for column in vocabulary.columns))
    shown.sort(key=lambda column: groups.index(column.group))
    for group, columns in groupby(shown, key=lambda column: column.group):
        yield Entry("group", vocabulary.heading(group))
        for column in columns:
            text = column_texts(session, lane, column, rows)[0]
            if text != MISSING and column.unit and column.kind != "percent":
                text = f"{text} {column.unit}"
            yield Entry("field", text, column.title, column.help)


def _shows(profile: Profile, lane: Lane, column: Column) -> bool:
    """Whether to show a column: the lane has it, or would have it in another mode (shown as missing)."""
    if column.key in lane or column.key in _OF_EVERY_LANE:
        return True
    return unit_or_port(profile, lane, "port") >= 0 if column.key == "port" else bool(column.needs)


def _register_fields(session: Session, lane: Lane, row: int) -> Iterator[Entry]:
    if lane.registers is None:
        return
    rows = np.array([row], dtype=np.int64)
    words = session.profile.vocabulary
    word, about_bytes = words.phrase("fields", "fields"), words.phrase("bytes", "Bytes as captured.")
    operation = lane.registers.operation_of(row)
    raw = lane.registers.unexplained(row)
    if operation < 0:
        yield from _raw(raw, f"{word}: not decoded", about_bytes)
        return
    names = sorted(lane.registers.field_names(operation), key=lambda name: _REGISTER_GROUPS.index(register_group(name)))
    for group, members in groupby(names, key=register_group):
        yield Entry("group", f"{word}: {group}")
        for name in members:
            value = int(lane.registers.field(operation, name, rows)[0])
            text = f"{value:,}" if -1024 < value < 1024 else f"{value:,} 0x{value & (1 << 64) - 1:x}"
            help_text = words.phrase("field", "Field {name}, as captured.", name=clean(name))
            yield Entry("field", text, clean(name), help_text)
    yield from _raw(raw, f"{word}: the rest is not known", about_bytes)


def _arguments(lane: Lane, row: int) -> Iterator[Entry]:
    found = lane.arguments(row) if lane.arguments is not None else {}
    if found:
        yield Entry("group", "arguments")
    for name, value in found.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Entry("field", clean(text[:_MAX_ARGUMENT]), clean(str(name)), "As recorded.")


def _raw(raw: bytes, why: str, help_text: str) -> Iterator[Entry]:
    if raw:
        yield Entry("warning", f"{why}, as captured")
    for first in range(0, len(raw), _RAW_BYTES):
        yield Entry("field", raw[first : first + _RAW_BYTES].hex(" "), f"{first:4x}", help_text)


def register_group(name: str) -> str:
    """Group of a register field, by its name."""
    lower = name.lower()
    if lower.startswith(("rsvd", "reserved")) or lower == "reserve":
        return "reserved"
    if "addr" in lower or "mask" in lower:
        return "addresses"
    if lower.endswith(("size", "stride", "str", "_n", "_c", "_h", "_w", "length", "pad")):
        return "shape"
    return "options"


#: Least width at which every value has its explanation on the same line.
HELP_BESIDE = 84
LABEL, VALUE = 15, 30

Computed = TypeVar("Computed")


class DetailPane(LinesView):
    """Entries of the selected event; Enter on a link goes to another event, a field at the cursor is explained."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("detail")]
    copied_as = ("line", "details")

    def __init__(self, session: Session, palette: Palette, glyphs: Glyphs) -> None:
        super().__init__(palette, "detail")
        self.session = session
        self.glyphs = glyphs
        self.selection = SelectedItem()
        #: Entries that the cursor can be on.
        self.choices: list[Entry] = []
        self._entries: list[Entry] = []
        #: The latest pause that was explained.
        self._story: tuple[SelectedItem, PauseStory | None] = SelectedItem(), None
        self._background = Background(self, "dependencies", small=False)
        #: Kinds of data that need no (further) computation: requested already, or not available in this profile.
        self._requested = {kind for kind, none in (("dependencies", not may_have_dependencies(session)),
                                                    ("differences", session.baseline is None)) if none}  # fmt: skip

    def show(self, state: DisplayState) -> None:
        """Shows the selected event of a state; keeps the cursor on the field with the same label."""
        if state.selection == self.selection:
            return
        self.selection = state.selection
        label = self._chosen.label if self._chosen is not None else ""
        self._entries = []
        if not self.size.width:
            return
        self.rebuild()
        place = next((number for number, entry in enumerate(self.choices) if entry.label == label), self.cursor)
        if place != self.cursor:
            self.go_to(place)

    def cursor_changed(self) -> None:
        """Rebuilds the lines, as the explanation is shown at the cursor."""
        self.rebuild()

    @property
    def _chosen(self) -> Entry | None:
        return self.choices[self.cursor] if self.cursor < len(self.choices) else None

    def action_follow(self) -> None:
        """Selects the event that the link under the cursor leads to."""
        target = self._chosen.leads_to if self._chosen is not None else None
        if target is None:
            self.post_message(ShowMessage("This line has no target: those with an arrow have one."))
            return
        self.cursor, self.choices = 0, []
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(ChangeState(lambda state: select_event(self.session, state, *target)))

    def action_step(self, steps: int) -> None:
        """Selects the event ``steps`` after this one on the same lane."""
        lane = self.selection.lane
        if lane >= 0:
            self.post_message(ChangeState(lambda state: step_event(self.session, state, steps, lane)))

    def text_of_item(self) -> str:
        """Text to copy of the field or link under the cursor, without its explanation."""
        return _entry_text(self._chosen) if self._chosen is not None else ""

    def text_of_all(self) -> str:
        """Text to copy of all entries."""
        return "\n".join(map(_entry_text, self._entries))

    def build(self, width: int) -> tuple[list[Line], list[int]]:
        """Builds the lines of the event; each field and each link is an item."""
        if not self.selection.has_detail:
            self._entries, self.choices = [], []
            text = self.session.say("No {event} selected: Enter in the timeline or a row of the table selects one.")
            return paragraph(text, width, self.palette.quiet), []
        if not self._entries:
            self._entries = list(self._of_event() if self.selection.pause is None else self._of_pause())
            self.choices = [entry for entry in self._entries if entry.can_be_chosen]
            self.cursor = min(self.cursor, max(len(self.choices) - 1, 0))
        lines: list[Line] = []
        items: list[int] = []
        number = 0
        for entry in self._entries:
            added = self._lines_of(entry, width, entry.can_be_chosen and number == self.cursor)
            lines += added
            items += [number if entry.can_be_chosen else -1] * len(added)
            number += entry.can_be_chosen
        return lines, items

    def _of_event(self) -> Iterator[Entry]:
        session, place = self.session, (self.selection.lane, self.selection.row)
        dependencies = self._available("dependencies", cached_dependencies(session), dependencies_of)
        differences = self._available("differences", cached_differences(session), differences_of)
        return entries_of(session, *place, dependencies, differences)

    def _of_pause(self) -> Iterator[Entry]:
        session, selection = self.session, self.selection
        story = self._story[1] if self._story[0] == selection else None
        if story is None:
            scope, span = Scope(selection.group, selection.lane), selection.pause or (0, 0)
            self._background.compute(
                "pause", partial(pause_story, session, scope, *span), partial(self._told, selection)
            )
        return pause_entries(session, selection, story)

    def _told(self, selection: SelectedItem, story: PauseStory) -> None:
        self._story = selection, story
        self._rebuild_entries(story)

    def _lines_of(self, entry: Entry, width: int, chosen: bool) -> list[Line]:
        palette = self.palette
        if entry.kind == "field":
            return self._field(entry, width, chosen)
        if entry.kind == "link":
            arrow = self.glyphs.released if entry.back else self.glyphs.releases
            first, *rest = wrap(f"{entry.label} {entry.text}", max(width - 4, 4))
            lines: list[Line] = [[Segment(f" {arrow} ", palette.key), Segment(first, palette.text)]]
            lines += [[Segment(f"   {part}", palette.text)] for part in rest]
            return lines + ([[Segment("    Enter goes there.", palette.quiet)]] if chosen else [])
        style = {
            "name": palette.strong, "text": palette.text, "remark": palette.quiet, "warning": palette.caution,
            "group": palette.title,
        }[entry.kind]  # fmt: skip
        return paragraph(entry.text, width, style)

    def _field(self, entry: Entry, width: int, chosen: bool) -> list[Line]:
        palette = self.palette
        style = palette.quiet if entry.text == MISSING else palette.text
        lines: list[Line]
        if width >= HELP_BESIDE:
            label = Segment(f"  {fit(entry.label, 24)} ", palette.quiet)
            wide = fit(entry.text, VALUE) if len(entry.text) <= VALUE else f"{entry.text} "
            room = max(width - label.cell_length - cell_len(wide) - 2, 0)
            lines = [[label, Segment(wide, style), Segment(f" {fit(entry.help, room)}", palette.quiet)]]
            cut = chosen and cell_len(entry.help) > room
            return lines + (paragraph(entry.help, width, palette.quiet, 4) if cut else [])
        # a long label has a line of its own, with the value on the next
        short = len(entry.label) <= LABEL
        label = Segment(f"  {fit(entry.label, LABEL if short else max(width - 4, 6))} ", palette.quiet)
        parts = wrap(entry.text, max(width - LABEL - 4, 6)) or [""]
        lines = [[label, Segment(parts[0], style)]] if short else [[label]]
        lines += [[Segment(" " * (LABEL + 3) + part, style)] for part in parts[short:]]
        if chosen:
            lines += paragraph(entry.help, width, palette.quiet, 4)
        return lines

    def _available(self, kind: str, value: Computed | None, find: Callable[[Session], Computed]) -> Computed | None:
        """Returns ``value``; if it is None, starts computing it in the background unless that was requested before."""
        if value is None and kind not in self._requested:
            self._requested.add(kind)
            self._background.compute(kind, partial(find, self.session), self._rebuild_entries)
        return value

    def _rebuild_entries(self, _: object) -> None:
        if self.size.width:
            self._entries = []
            self.rebuild()


def _entry_text(entry: Entry) -> str:
    return f"{entry.label}  {entry.text}".strip()
