"""Texts of the timeline: title, legend of the glyphs, description of what is at the cursor."""

from __future__ import annotations

import numpy as np

from tpuprof_tui.analysis.counter_lines import counter_curve, counter_lines
from tpuprof_tui.analysis.links.dependencies import LinkedInstruction
from tpuprof_tui.analysis.links.launches import launch_text, unit_text
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.navigation import pause_at
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState
from tpuprof_tui.analysis.selecting.time_scale import Measure
from tpuprof_tui.app.drawing.colouring import known_names, name_numbers, title_of
from tpuprof_tui.app.drawing.glyphs import Glyphs
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import range_text
from tpuprof_tui.formats.units import GUESS, amount_text, span_text
from tpuprof_tui.model import INT_MISSING

from .lane_data import LaneData
from .layout import LaneLayout


def title(layout: LaneLayout, *, computing: bool) -> str:
    """Title: scope, filter, visible window, colouring, and whether colours are still being computed."""
    session, state, measure = layout.session, layout.state, layout.measure
    window = f"{measure.exact(state.start, layout.resolution)} to {measure.exact(state.end, layout.resolution)}"
    part = "all" if state.fits_all else measure.length(state.span)
    scope = "" if state.scope.everything else f"  only {clean(session.scope_title(state.scope))}"
    chosen = state.colouring != "operation" and layout.shows_colours
    meaning = title_of(session.profile.vocabulary, state.colouring).partition(",")[0]
    colours = f"  colours: {meaning}" if chosen else ""
    waiting = " (computing ...)" if computing else ""
    passing = f"  pass {clean(state.filter)}" if state.filter else ""
    scrolled = state.figures_window != (state.start, state.end)
    shares = "  % of range" if state.range is not None else f"  % of {span_text(*state.figures_window)}" if (
        scrolled and state.viewed) else "  % of the whole" if scrolled else ""  # fmt: skip
    clipped = session.clip_window(*state.figures_window)
    shares = shares if clipped == state.figures_window else "  % of the device's time"
    base = "  next to its base" if layout.has_base else ""
    return f"1 Timeline{scope}{base}{passing}  {window} ({part}){shares}{colours}{waiting}"


def glyph_legend(layout: LaneLayout, glyphs: Glyphs, *, filtered: bool) -> str:
    """Legend of the glyphs, and the number of lanes scrolled out of view."""
    below = len(layout.rows) - layout.top - layout.lines
    hidden = f"  {glyphs.down}{below} more" if below > 0 else ""
    above = f"  {glyphs.up}{layout.top} more" if layout.top else ""
    if layout.state.line_unit == "cores":
        shade = "T" if glyphs.letters else "▒"
        meaning = f"{glyphs.levels[8]} compute  {shade} exposed transfer"
    else:
        meaning = f"{glyphs.levels[8]} work  {glyphs.wait} wait  {glyphs.sync} sync"
    if layout.has_base:
        meaning += f"  {glyphs.gap} nothing here"
    if filtered:
        meaning += f"  {glyphs.hidden} filtered out"
    return f"{meaning}{above}{hidden}"


def at_cursor(layout: LaneLayout, lane_data: LaneData, glyphs: Glyphs) -> str:
    """Describes what the selected line shows at the cursor."""
    session, state, measure = layout.session, layout.state, layout.measure
    text = f" {measure.exact(state.cursor, layout.resolution)}"
    number = layout.selected_row(state)
    if not layout.rows:
        return f"{text}  no lanes: 4 shows the problems, O opens another capture"
    if number < 0:
        return f"{text}  j k lane, Enter selects"
    row = layout.rows[number]
    if row.kind == "launches":
        return f"{text}  {row.label}  {launch_text(session, row.unit, state.cursor, measure)}"
    if row.kind == "counters":
        return f"{text}  {_counters_text(session, state, row.counters)}"
    if row.lane < 0:
        return f"{text}  {row.label}  {unit_text(session, row.unit, state.cursor, measure)}"
    found, pause = layout.event_under_cursor(row.lane, state), state.selection.pause
    if found < 0 or (pause is not None and pause[0] <= state.cursor < pause[1]):
        pause = pause_at(session, state.selection, state, state.cursor)
        return f"{text}  {row.label}  {f'pause  {measure.length(pause[1] - pause[0])}' if pause else 'idle'}"
    hidden = lane_data.passing is not None and not lane_data.passing.lane(row.lane)[found]
    is_selected = (row.lane, found) == (state.selection.lane, state.selection.row)
    linked = _linked_events_text(session, lane_data.linked_events, measure, glyphs) if is_selected else ""
    description, kernel = _described(session, row.lane, found, measure)
    if (named := session.profile.vocabulary.names(state.colouring)) is not None:
        number = int(name_numbers(session.indexes[row.lane], np.array([found]), named.key)[0])
        if (names := known_names(session, named.key)) and number >= 0:
            # before the event's name, which may be longer than the line
            description = f"{named.title} {clean(names[number])}  {description}"
    return f"{text}  {row.label}  {description}{'  (filtered out)' if hidden else ''}{linked}{kernel}"


def _counters_text(session: Session, state: DisplayState, number: int) -> str:
    line = counter_lines(session)[number]
    title = f"{clean(session.profile.groups.title(line.group))} {line.label}" if line.group >= 0 else line.label
    if line.is_parent:
        verb = "folds" if number in state.unfolded else "shows"
        return f"{title}: {len(line.counters):,} counters, Enter {verb} them"
    curve, unit = counter_curve(session, line.counters[0]), session.profile.counters[line.counters[0]].unit
    start, end = state.figures_window
    mean = float(curve.means(np.array([start, end], np.int64))[0])
    values = [amount_text(value, unit) for value in (curve.at(state.cursor), mean, curve.maximum(start, end))]
    return "{}  {}  mean {}  max {}".format(title, *values)


def _linked_events_text(session: Session, ties: tuple[LinkedInstruction, ...], measure: Measure, glyphs: Glyphs) -> str:
    text = ""
    for released, glyph, word in ((True, glyphs.released, "after"), (False, glyphs.releases, "before")):
        found = [tie for tie in ties if tie.released is released]
        if found:
            lane = session.profile.lanes[found[0].lane]
            name = text_of(session.profile, lane, "name", found[0].row, readable=True) or session.say("{event}")
            more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            where = clean(session.title_of(found[0].lane))
            slack = found[0].slack_ns
            gap = f"{measure.length(abs(slack))} {word if slack >= 0 else 'together with'}"
            text += f"  {glyph} {gap} {name} ({where}){more}"
    return text


def _described(session: Session, lane_number: int, row: int, measure: Measure) -> tuple[str, str]:
    profile, lane = session.profile, session.profile.lanes[lane_number]
    start, end = session.span_of(lane_number, row)
    name = text_of(profile, lane, "name", row, readable=True) or session.say("{event} {row:,}", row=row)
    kernel = text_of(profile, lane, "kernel", row)
    roles = ("", f" ({GUESS if lane.role_guessed else ''}wait)", f" ({GUESS if lane.role_guessed else ''}sync)")
    role = roles[int(lane.take("role", slice(row, row + 1))[0]) % 3]
    return f"{name}{role}  {measure.length(end - start)}", f"  in {kernel}" if kernel else ""


def copied(session: Session, lane_number: int, row: int) -> str:
    """Text to copy of an event: one line with exact times in ns."""
    profile, lane = session.profile, session.profile.lanes[lane_number]
    start, end = session.span_of(lane_number, row)
    name = text_of(profile, lane, "name", row) or session.say("{event} {row}", row=row)
    kernel, reading = text_of(profile, lane, "kernel", row), clean(lane.description(row))
    times = ("no times",) if start == INT_MISSING else (range_text(start, end), f"{end - start} ns")
    parts = (clean(profile.title_of(lane)), name, *times, kernel, reading)
    return "  ".join(part for part in parts if part)
