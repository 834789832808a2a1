"""The rows of the timeline for a state: lanes, units, steps, launches, strips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from tpuprof_tui.analysis.links.launches import launches
from tpuprof_tui.analysis.path_lane import known_path_lane
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import StripKind, ViewState
from tpuprof_tui.analysis.steps.step_lane import FEWEST, step_lane
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Vocabulary

#: What a line shows: a lane or unit, the steps, the critical path, the launches of a unit, or a strip below the lane.
Kind = Literal["", "steps", "path", "launches", "bandwidth", "utilisation"]


@dataclass(frozen=True)
class Row:
    """A line of the timeline: a lane (index into ``Profile.lanes``), or something of a unit where ``lane`` is -1."""

    lane: int
    unit: int
    label: str
    guessed: bool
    first: bool
    kind: Kind = ""

    @property
    def is_strip(self) -> bool:
        """Whether it belongs to the line above."""
        return self.kind in ("bandwidth", "utilisation")

    @property
    def can_be_selected(self) -> bool:
        """Whether it stands for a lane or a unit; strips, steps and the path do not."""
        return not self.is_strip and self.kind not in ("steps", "path")


def rows_of(session: Session, view: ViewState) -> list[Row]:
    """The lines of the timeline for a state: those pinned, then the others in the profile's order."""
    rows = _ordered(session, view)
    if view.pinned:
        rows.sort(key=lambda row: not is_pinned(row, view))
    if view.strip:
        rows = [line for row in rows for line in (row, *_strip(session, row, view.strip))]
    return [*_steps(session, view), *_path(session, view), *rows]


def _steps(session: Session, view: ViewState) -> tuple[Row, ...]:
    """The line of the steps, above all others; none where there are too few, or one lane alone is shown."""
    if view.scope.lane >= 0 or len(step_lane(session, view.scope.group).lane) < FEWEST:
        return ()
    found = session.steps
    return (Row(-1, -1, found.word.plural.capitalize(), found.guessed, True, "steps"),)


def _path(session: Session, view: ViewState) -> tuple[Row, ...]:
    """The line of the critical path, where it is wanted and known."""
    known = view.path and view.scope.everything and known_path_lane(session) is not None
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


def is_pinned(row: Row, view: ViewState) -> bool:
    """Whether a line stays on top; that of the steps always does."""
    return row.kind in ("steps", "path") or (row.lane, row.unit) in view.pinned


def _ordered(session: Session, view: ViewState) -> list[Row]:
    lanes, groups = session.profile.lanes, session.profile.groups
    numbers, scopes = session.lanes_in(view.scope), session.profile.vocabulary.phrase("scopes", "{scopes}")
    if view.rows == "cores" and view.scope.lane < 0:
        units = groups.units_within(view.scope.group)
        guessed = any(lane.role_guessed for lane in lanes)
        rows = [Row(-1, unit, clean(groups.shown(unit)), guessed, True) for unit in units]
        return rows + [_lane_row(session, number, True) for number in numbers if session.unit_of(number) not in units]
    group = known = -1
    rows = []
    for number in numbers:
        unit, first = session.unit_of(number), not rows or lanes[number].group != group
        if unit not in (-1, known) and view.scope.lane < 0 and len(launches(session, unit).lane):
            rows.append(Row(-1, unit, f"{clean(groups.title(unit))} {scopes}", False, True, "launches"))
            first = False
        rows.append(_lane_row(session, number, first))
        group, known = lanes[number].group, unit
    return rows


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
