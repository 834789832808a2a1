"""The rows of the timeline for a state: lanes, units, steps, launches, strips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from tpuprof_tui.analysis.compare.side_by_side import SideBySide
from tpuprof_tui.analysis.counter_lines import counter_lines, visible_lines
from tpuprof_tui.analysis.critical_path import known_path_lane
from tpuprof_tui.analysis.links.launches import launches
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, StripKind
from tpuprof_tui.analysis.steps.step_figures import FEWEST_OVER_TIME, step_lane
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Vocabulary
from tpuprof_tui.views.differences import known_side_by_side

#: What a line shows: a lane or unit, the steps, the critical path, the launches of a unit, counters, or below these a
#: strip or the same of what is compared with.
Kind = Literal["", "steps", "path", "launches", "bandwidth", "utilisation", "base", "counters"]


class Row(Struct, frozen=True):
    """A line of the timeline: a lane (index into ``Profile.lanes``), or something of a unit where ``lane`` is -1.

    ``base``: the line of the base that is shown instead, with its own lane and unit. ``counters``: number of a line of
    counters (``counter_lines``); -1: none.
    """

    lane: int
    unit: int
    label: str
    guessed: bool
    first: bool
    kind: Kind = ""
    base: Row | None = None
    counters: int = -1

    @property
    def place(self) -> tuple[int, int, int]:
        """What tells it from the others that can be selected."""
        return self.lane, self.unit, self.counters

    @property
    def is_strip(self) -> bool:
        """Whether it belongs to the line above."""
        return self.kind in ("bandwidth", "utilisation", "base")

    @property
    def can_be_selected(self) -> bool:
        """Whether it stands for a lane or a unit; strips, steps and the path do not."""
        return not self.is_strip and self.kind not in ("steps", "path")


def rows_of(session: Session, state: DisplayState) -> list[Row]:
    """The lines of the timeline for a state: those pinned, then the others in the profile's order."""
    rows = _ordered(session, state)
    if state.pinned:
        rows.sort(key=lambda row: not is_pinned(row, state))
    if state.strip:
        rows = [line for row in rows for line in (row, *_strip(session, row, state.strip))]
    both = known_side_by_side(session)
    if both is not None:
        rows = [*(line for row in rows for line in (row, *_of_base(both, row))), *_alone(both, state)]
    return [*_steps(session, state, both), *_path(session, state), *rows]


def _steps(session: Session, state: DisplayState, both: SideBySide | None) -> tuple[Row, ...]:
    """The line of the steps, above all others; none where there are too few, or one lane alone is shown."""
    if state.scope.lane >= 0 or len(step_lane(session, state.scope.group).lane) < FEWEST_OVER_TIME:
        return ()
    found = session.steps
    row = Row(-1, -1, found.word.plural.capitalize(), found.guessed, True, "steps")
    if both is None or not state.scope.everything or not len(step_lane(both.base).lane):
        return (row,)
    return row, replace(row, label="base", first=False, kind="base", base=row)


def _path(session: Session, state: DisplayState) -> tuple[Row, ...]:
    """The line of the critical path, where it is wanted and known."""
    known = state.path and state.scope.everything and known_path_lane(session) is not None
    return (Row(-1, -1, "Critical path", False, True, "path"),) if known else ()


def continued_label(rows: Sequence[Row], number: int) -> str:
    """A lane's label with blanks for the words it begins with as that of the lane above does; its last word stays."""
    above = next((row.label for row in reversed(rows[:number]) if not row.is_strip), "")
    words = rows[number].label.split(" ")
    same = 0
    for mine, other in zip(words[:-1], above.split(" "), strict=False):
        if mine != other:
            break
        same += 1
    return "".join(" " * (cell_len(word) + 1) for word in words[:same]) + " ".join(words[same:])


def is_pinned(row: Row, state: DisplayState) -> bool:
    """Whether a line stays on top; that of the steps always does."""
    shown = row.base or row
    return shown.kind in ("steps", "path") or row.place in state.pinned


def _ordered(session: Session, state: DisplayState) -> list[Row]:
    lanes, groups = session.profile.lanes, session.profile.groups
    numbers, scopes = session.lanes_in(state.scope), session.profile.vocabulary.phrase("scopes", "{scopes}")
    if state.rows == "cores" and state.scope.lane < 0:
        units = groups.units_within(state.scope.group)
        guessed = any(lane.role_guessed for lane in lanes)
        rows = [Row(-1, unit, clean(groups.shown(unit)), guessed, True) for unit in units]
        return rows + [_lane_row(session, number, True) for number in numbers if session.unit_of(number) not in units]
    group = known = -1
    rows = []
    for number in numbers:
        unit, first = session.unit_of(number), not rows or lanes[number].group != group
        if unit not in (-1, known) and state.scope.lane < 0 and len(launches(session, unit).lane):
            rows.append(Row(-1, unit, f"{clean(groups.title(unit))} {scopes}", False, True, "launches"))
            first = False
        rows.append(_lane_row(session, number, first))
        group, known = lanes[number].group, unit
    return _with_counters(session, state, rows) if state.scope.lane < 0 else rows


def _with_counters(session: Session, state: DisplayState, rows: list[Row]) -> list[Row]:
    """The lines with those of counters, each below the last lane of what was measured."""
    lines, groups = counter_lines(session), session.profile.groups
    within = groups.within(state.scope.group)
    owners = [session.profile.lanes[row.lane].group if row.lane >= 0 else row.unit for row in rows]
    found: dict[int, list[Row]] = {}
    for number in visible_lines(lines, state.unfolded):
        line = lines[number]
        if state.scope.group >= 0 and line.group not in within:
            continue
        below = groups.within(line.group) if line.group >= 0 else None
        last = max((place for place, owner in enumerate(owners) if below is None or owner in below),
                   default=len(rows) - 1)  # fmt: skip
        sign = ("- " if number in state.unfolded else "+ ") if line.folds else ""
        row = Row(-1, line.group, f"{sign}{line.label}", False, True, "counters", counters=number)
        owned = f"{sign}{clean(groups.shown(line.group))} {line.label}" if line.group >= 0 else row.label
        shown = owned if line.parent < 0 or is_pinned(row, state) else f"{'  ' * line.depth}{row.label}"
        found.setdefault(last, []).append(replace(row, label=shown))
    if not found:
        return rows
    return [*found.get(-1, ()), *(line for place, row in enumerate(rows) for line in (row, *found.get(place, ())))]


def _lane_row(session: Session, number: int, first: bool) -> Row:
    lane = session.profile.lanes[number]
    label = clean(f"{session.profile.groups.shown(lane.group)} {lane.label}".lstrip())
    return Row(number, session.unit_of(number), label, lane.role_guessed, first)


def _bandwidths(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Columns of bandwidth."""
    share = vocabulary.share("bandwidth")
    return tuple(key for key, _ in share.columns) if share is not None else ()


def _strip(session: Session, row: Row, kind: StripKind) -> tuple[Row, ...]:
    """The strip below a lane; none where the lane knows nothing of it."""
    if row.lane < 0 or not kind:
        return ()
    lane = session.profile.lanes[row.lane]
    if kind == "bandwidth" and not any(key in lane for key in _bandwidths(session.profile.vocabulary)):
        return ()
    return (Row(row.lane, row.unit, "bandwidth" if kind == "bandwidth" else "busy", row.guessed, False, kind),)


def _of_base(both: SideBySide, row: Row) -> tuple[Row, ...]:
    """The same line of the base; none where it has none, as of counters."""
    if row.kind == "counters":
        return ()
    lane = both.lanes[row.lane] if row.lane >= 0 else -1
    unit = both.base.unit_of(lane) if lane >= 0 else both.units.get(row.unit, -1)
    if lane < 0 and (row.lane >= 0 or unit < 0):
        return ()
    guessed = lane >= 0 and both.base.profile.lanes[lane].role_guessed
    base = Row(lane, unit, row.label, guessed, row.first, row.kind)
    return (Row(row.lane, row.unit, "base", guessed, False, "base", base),)


def _alone(both: SideBySide, state: DisplayState) -> list[Row]:
    """Lanes that only the base has, below all others."""
    if not state.scope.everything or state.rows == "cores":
        return []
    rows = []
    for number in both.alone:
        lane = both.base.profile.lanes[number]
        label = clean(f"base {both.base.title_of(number)}")
        base = Row(number, both.base.unit_of(number), label, lane.role_guessed, True)
        rows.append(Row(-1, -1, label, lane.role_guessed, True, "base", base))
    return rows
