"""State changes of the timeline's keys: pure functions of layout and state, by action name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.counter_lines import counter_curve
from tpuprof_tui.analysis.index.lane_index import sublanes_of
from tpuprof_tui.analysis.links.launches import step_launch
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter, is_filter_cached
from tpuprof_tui.analysis.selecting.moves import (
    go_to,
    next_pause,
    pause_at,
    same_name,
    select_event,
    select_pause,
    step_event,
    toggle_range,
)
from tpuprof_tui.analysis.selecting.state import DisplayState, SelectedItem, StripKind, TimeScale
from tpuprof_tui.analysis.selecting.time_scale import clock_of
from tpuprof_tui.app.drawing.colouring import is_known, next_colouring, title_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model.vocabulary import NAMES

from .layout import LaneLayout

Element = TypeVar("Element")

#: The new state, and a message; empty: none.
StateAndMessage = tuple[DisplayState, str]
#: A state change, applied to the state at the time when the request is handled.
StateChange = Callable[[LaneLayout, DisplayState], StateAndMessage]


def cursor_moved(layout: LaneLayout, state: DisplayState, cells: int) -> DisplayState:
    """Moves the cursor by ``cells``, to the middle of a cell; the window follows."""
    count, axis = layout.cells, layout.axis
    cell = axis.cell_at(state.cursor, state.start, state.end, count) + cells
    edges = axis.edges(state.start, state.end, count)
    while 0 <= cell < count and edges[cell] == edges[cell + 1]:  # skip gaps of the aligned axis: they have no time
        cell += 1 if cells > 0 else -1
    if 0 <= cell < count:
        return state.at((int(edges[cell]) + max(int(edges[cell + 1]) - 1, int(edges[cell]))) // 2)
    return state.at(state.cursor + cells * max(state.span // count, 1))


def lane_moved(layout: LaneLayout, state: DisplayState, lines: int) -> DisplayState:
    """Selects the lane or unit ``lines`` rows below."""
    row = layout.stepped_row(state, lines)
    if row in (-1, layout.selected_row(state)):
        return state
    return replace(state, selection=layout.selection_of(row))


def event_stepped(layout: LaneLayout, state: DisplayState, steps: int) -> StateAndMessage:
    """Selects the event ``steps`` on in the selected lane.

    On a row of launches the launch becomes the range; on a counter the cursor goes to a change of its value.
    """
    counters = layout.counters_of(state)
    if counters is not None and not counters.is_parent:
        time = counter_curve(layout.session, counters.counters[0]).step(state.cursor, steps)
        return (state, f"{counters.label} has no more changes.") if time is None else (go_to(state, time), "")
    found = launch_or_event(layout, state, steps)
    direction = "later" if steps > 0 else "earlier"
    message = "No {way} {event} of this lane passes the filter; Esc clears it."
    return found, layout.session.say(message, way=direction) if found is state and state.filter else ""


def launch_or_event(layout: LaneLayout, state: DisplayState, steps: int) -> DisplayState:
    """The state with the launch as range, or the event selected, ``steps`` on; 0: the nearest to the cursor."""
    row = layout.launches_row(state)
    if row is not None:
        return step_launch(layout.session, state, row.unit, steps)
    lane, selection = layout.lane_for_steps(state), state.selection
    if selection.level < 0 or lane != selection.lane or lane not in state.opened:
        return step_event(layout.session, state, steps, lane)
    # the next one of the same depth
    rows = sublanes_of(layout.session.indexes[lane])[selection.level].rows
    selected = selection.row if selection.row >= 0 else layout.event_under_cursor(lane, state)
    place = int(np.searchsorted(rows, selected)) + (steps if selection.row >= 0 else 0)
    stepped = select_event(layout.session, state, lane, int(rows[min(max(place, 0), len(rows) - 1)]))
    return replace(stepped, selection=replace(stepped.selection, level=selection.level))


def event_selected(layout: LaneLayout, state: DisplayState) -> DisplayState:
    """Selects the event at the cursor; on launches, makes the launch the range; on counters, folds or unfolds."""
    counters = layout.counters_of(state)
    if counters is not None:
        return (
            replace(state, unfolded=_toggled(state.unfolded, state.selection.counters)) if counters.is_parent else state
        )
    if layout.launches_row(state) is not None:
        return launch_or_event(layout, replace(state, range=None), 0)
    pause = state.selection.pause
    if pause is not None and pause[0] <= state.cursor < pause[1]:
        # again: zoom to it, with what is before and after
        return state.windowed(pause[0] - (pause[1] - pause[0]) // 4, (pause[1] - pause[0]) * 3 // 2 + 1)
    lane = layout.lane_for_steps(state)
    row = layout.event_under_cursor(lane, state) if lane >= 0 else -1
    level = state.selection.level if lane == state.selection.lane else -1
    if row >= 0:
        return replace(state, selection=SelectedItem(layout.session.unit_of(lane), lane, row, level=level))
    pause = None if layout.selected_row(state) < 0 else pause_at(layout.session, state.selection, state, state.cursor)
    return state if pause is None else select_pause(state, state.selection, pause)


def pause_stepped(layout: LaneLayout, state: DisplayState, steps: int) -> StateAndMessage:
    """Selects the next (``steps`` 1) or previous (-1) pause of the lane or unit that is at least a cell long."""
    session = layout.session
    # without a selected row the first one
    state = lane_moved(layout, state, 1) if state.selection == SelectedItem() else state
    if layout.counters_of(state) is not None or state.selection == SelectedItem():
        return state, session.say("No {lane} selected: j and k select one.")
    least = max(state.span // layout.cells, 1)
    found = next_pause(session, state, steps, least)
    if found is None:
        way = "later" if steps > 0 else "earlier"
        return state, f"No {way} pause of {layout.measure.length(least)} or more here: w zooms in for shorter ones."
    message = f"Pause of {layout.measure.length(found[1] - found[0])}: Enter zooms to it, i tells what happened in it."
    return select_pause(state, state.selection, found), message


def name_stepped(layout: LaneLayout, state: DisplayState, steps: int) -> StateAndMessage:
    """Selects the lane's next (``steps`` 1) or previous (-1) event with the same name."""
    session, lane, row = layout.session, state.selection.lane, state.selection.row
    if lane >= 0 and row < 0:
        row = layout.event_under_cursor(lane, state)
    if row < 0:
        return state, session.say("Nothing selected: . and , go to the next and previous {event}.")
    name = text_of(session.profile, session.profile.lanes[lane], "name", row)
    filtered = bool(state.filter) and is_filter_cached(session, state.filter)
    found = same_name(session, lane, row, steps, apply_filter(session, state.filter).lane(lane) if filtered else None)
    message = ""
    if not name:
        message = f"The capture has no names here: they need {session.profile.vocabulary.needs(NAMES)}."
    elif found < 0:
        end = "of this lane passes the filter; Esc clears it." if filtered else "on this lane."
        message = f"No {'later' if steps > 0 else 'earlier'} {clean(name)} {end}"
    return (state if found < 0 else select_event(session, state, lane, found)), message


def rescaled(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Toggles times between units of time and cycles."""
    clock = clock_of(layout.session.profile.device)
    if not clock:
        return state, "This capture records no clock rate: times stay in units of time."
    scale: TimeScale = "cycles" if state.scale == "time" else "time"
    # no decimals for a whole number of MHz
    mhz = f"{clock.numerator:,}" if clock.denominator == 1 else f"{float(clock):,.3f}"
    message = f"Times in cycles of {mhz} MHz." if scale == "cycles" else "Times in ns, us, ms and s."
    return replace(state, scale=scale), message


def recoloured(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Switches to the next colouring."""
    session, profile = layout.session, layout.session.profile
    if not layout.shows_colours:
        return state, session.say("Colours apply to {lanes}: e shows them.")
    colouring = next_colouring(profile, state.colouring)
    if colouring != state.colouring:
        message = f"Colours mean: {title_of(profile.vocabulary, colouring)}. L explains them."
        # back at the first colouring: list those by names that were skipped for lack of data
        named = profile.vocabulary.named if colouring == "operation" else ()
        for each in (each for each in named if not is_known(profile, each.key)):
            message += f" {each.title.capitalize()} needs {profile.vocabulary.needs(each.needs)}."
        return replace(state, colouring=colouring), message
    words = profile.vocabulary
    needs = f": more needs {words.all_needs()}" if words.capabilities and (words.shares or words.named) else ""
    return state, f"The capture has nothing else to colour by{needs}."


def strips_changed(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Switches to the next kind of strip below each lane."""
    profile = layout.session.profile
    if state.line_unit == "units" and not any(row.lane >= 0 for row in layout.rows):
        return state, layout.session.say("Strips apply to {lanes}: e shows them.")
    next_strip: dict[StripKind, StripKind] = {"": "bandwidth", "bandwidth": "utilisation", "utilisation": ""}
    strip = next_strip[state.strip]
    if strip == "bandwidth" and not is_known(profile, "bandwidth"):
        strip = "utilisation"
    share = profile.vocabulary.share("bandwidth")
    peak = share.peak_text if share is not None else "the peak"
    messages = {"": "No strips.", "bandwidth": f"Strips: bandwidth, share of {peak}.",
            "utilisation": "Strips: share of the time with work."}  # fmt: skip
    return replace(state, strip=strip), messages[strip]


def pin_toggled(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Pins the selected row to the top, or unpins it."""
    number = layout.selected_row(state)
    if number < 0:
        return state, "No lane selected: j and k select one."
    row = layout.rows[number]
    was_pinned = row.place in state.pinned
    message = f"{clean(row.label).strip()} {'is back in its place' if was_pinned else 'stays on top'}."
    return replace(state, pinned=_toggled(state.pinned, row.place)), message


def lane_opened(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Opens the selected lane as a stack, a row for each depth, or closes it."""
    lane = state.selection.lane
    if lane < 0:
        return state, layout.session.say("No {lane} selected: j and k select one.")
    if not _is_stack(layout, lane):
        return state, "Its events are not within one another: there is nothing to open."
    if state.line_unit == "units" and layout.rows[layout.selected_row(state)].lane < 0:
        return state, layout.session.say("e shows {lanes}, which can be opened.")
    return replace(state, opened=_toggled(state.opened, lane), selection=replace(state.selection, level=-1)), ""


def all_opened(layout: LaneLayout, state: DisplayState) -> StateAndMessage:
    """Opens all lanes with nested events, or closes all if any is open."""
    stacks = tuple(row.lane for row in layout.rows if row.lane >= 0 and not row.kind and _is_stack(layout, row.lane))
    message = "" if stacks or state.opened else layout.session.say("No {lane} has events within one another.")
    return replace(state, opened=() if state.opened else tuple(dict.fromkeys(stacks)),
                   selection=replace(state.selection, level=-1)), message  # fmt: skip


def _is_stack(layout: LaneLayout, lane: int) -> bool:
    return "parent" in layout.session.profile.lanes[lane]


def _toggled(elements: tuple[Element, ...], element: Element) -> tuple[Element, ...]:
    without = tuple(each for each in elements if each != element)
    return without if element in elements else (*elements, element)


def _quiet(change: Callable[[LaneLayout, DisplayState], DisplayState]) -> StateChange:
    return lambda layout, state: (change(layout, state), "")


#: State changes by the last part of the action id.
CHANGES: Final[Mapping[str, StateChange]] = {
    "zoom-in": _quiet(lambda layout, state: state.zoomed(state.span // 2, layout.cells)),
    "zoom-out": _quiet(lambda layout, state: state.zoomed(state.span * 2, layout.cells)),
    "pan-left": _quiet(lambda _, state: state.panned(-max(state.span // 10, 1))),
    "pan-right": _quiet(lambda _, state: state.panned(max(state.span // 10, 1))),
    "window-left": _quiet(lambda _, state: state.panned(-state.span)),
    "window-right": _quiet(lambda _, state: state.panned(state.span)),
    "cursor-left": _quiet(lambda layout, state: cursor_moved(layout, state, -1)),
    "cursor-right": _quiet(lambda layout, state: cursor_moved(layout, state, 1)),
    "lane-down": _quiet(lambda layout, state: lane_moved(layout, state, 1)),
    "lane-up": _quiet(lambda layout, state: lane_moved(layout, state, -1)),
    "lane-page-down": _quiet(lambda layout, state: lane_moved(layout, state, layout.lines)),
    "lane-page-up": _quiet(lambda layout, state: lane_moved(layout, state, -layout.lines)),
    "lane-first": _quiet(lambda _, state: state.at(state.start)),
    "lane-last": _quiet(lambda _, state: state.at(state.end - 1)),
    "engines": _quiet(lambda _, state: replace(state, line_unit="units" if state.line_unit == "lanes" else "lanes")),
    "legend": _quiet(lambda _, state: replace(state, legend=not state.legend)),
    "previous": lambda layout, state: event_stepped(layout, state, -1),
    "next": lambda layout, state: event_stepped(layout, state, 1),
    "next-pause": lambda layout, state: pause_stepped(layout, state, 1),
    "previous-pause": lambda layout, state: pause_stepped(layout, state, -1),
    "next-same": lambda layout, state: name_stepped(layout, state, 1),
    "previous-same": lambda layout, state: name_stepped(layout, state, -1),
    "range": lambda layout, state: toggle_range(state, layout.session),
    "scale": rescaled,
    "colours": recoloured,
    "strips": strips_changed,
    "pin": pin_toggled,
    "open-lane": lane_opened,
    "open-all": all_opened,
}
