"""What the keys of the timeline make of the state: pure functions, by the name of their action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from tpuprof_tui.analysis.counter_lines import counter_curve
from tpuprof_tui.analysis.links.launches import stepped_launch
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.filter_masks import is_known as is_passing_known
from tpuprof_tui.analysis.selecting.filter_masks import passing
from tpuprof_tui.analysis.selecting.navigation import gone_to, ranged, same_name, selected, stepped_event
from tpuprof_tui.analysis.selecting.state import Selection, StripKind, TimeScale, ViewState
from tpuprof_tui.analysis.selecting.time_scale import clock_of
from tpuprof_tui.app.drawing.colouring import is_known, next_colouring, title_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model.vocabulary import NAMES

from .layout import LaneLayout

Thing = TypeVar("Thing")

#: The state after a key, and what to say of it; empty: nothing.
Changed = tuple[ViewState, str]
#: What a key does with the state that holds when it is answered.
StateChange = Callable[[LaneLayout, ViewState], Changed]


# steps


def cursor_moved(layout: LaneLayout, view: ViewState, cells: int) -> ViewState:
    """The cursor in the middle of the cell so many cells on; the window follows it."""
    count, axis = layout.cells, layout.axis
    cell = axis.cell_at(view.cursor, view.start, view.end, count) + cells
    edges = axis.edges(view.start, view.end, count)
    while 0 <= cell < count and edges[cell] == edges[cell + 1]:  # no time of this side lies in a gap
        cell += 1 if cells > 0 else -1
    if 0 <= cell < count:
        return view.at((int(edges[cell]) + max(int(edges[cell + 1]) - 1, int(edges[cell]))) // 2)
    return view.at(view.cursor + cells * max(view.span // count, 1))


def lane_moved(layout: LaneLayout, view: ViewState, lines: int) -> ViewState:
    """The lane or unit so many lines below selected."""
    wanted = layout.stepped_row(view, lines)
    if wanted in (-1, layout.selected_row(view)):
        return view
    return replace(view, selection=layout.selection_of(wanted))


def event_stepped(layout: LaneLayout, view: ViewState, steps: int) -> Changed:
    """The event so many steps on selected, of the selected lane; of a line of launches the launch the range.

    Of a counter the cursor goes to the next change of its value.
    """
    counters = layout.counters_of(view)
    if counters is not None and not counters.folds:
        time = counter_curve(layout.session, counters.counters[0]).stepped(view.cursor, steps)
        return (view, f"{counters.label} does not change any more.") if time is None else (gone_to(view, time), "")
    found = launch_or_event(layout, view, steps)
    way = "later" if steps > 0 else "earlier"
    told = "No {way} {event} of this lane passes the filter; Esc clears it."
    return found, layout.session.say(told, way=way) if found is view and view.filter else ""


def launch_or_event(layout: LaneLayout, view: ViewState, steps: int) -> ViewState:
    """The state with the launch or event so many steps on; 0: the nearest to the cursor."""
    row = layout.launches_row(view)
    if row is not None:
        return stepped_launch(layout.session, view, row.unit, steps)
    return stepped_event(layout.session, view, steps, layout.lane_for_steps(view))


def event_selected(layout: LaneLayout, view: ViewState) -> ViewState:
    """The event at the cursor selected; of a line of launches the launch the range; counters folded or unfolded."""
    counters = layout.counters_of(view)
    if counters is not None:
        return replace(view, unfolded=_toggled(view.unfolded, view.selection.counters)) if counters.folds else view
    if layout.launches_row(view) is not None:
        return launch_or_event(layout, replace(view, range=None), 0)
    lane = layout.lane_for_steps(view)
    row = layout.event_under_cursor(lane, view) if lane >= 0 else -1
    return view if row < 0 else replace(view, selection=Selection(layout.session.unit_of(lane), lane, row))


def name_stepped(layout: LaneLayout, view: ViewState, steps: int) -> Changed:
    """The lane's next (``steps`` 1) or previous (-1) event of the same name selected."""
    session, lane, row = layout.session, view.selection.lane, view.selection.row
    if lane >= 0 and row < 0:
        row = layout.event_under_cursor(lane, view)
    if row < 0:
        return view, session.say("Nothing selected: . and , go to the next and previous {event}.")
    name = text_of(session.profile, session.profile.lanes[lane], "name", row)
    filtered = bool(view.filter) and is_passing_known(session, view.filter)
    found = same_name(session, lane, row, steps, passing(session, view.filter).lane(lane) if filtered else None)
    told = ""
    if not name:
        told = f"The capture knows no names here: they need {session.profile.vocabulary.needs(NAMES)}."
    elif found < 0:
        end = "of this lane passes the filter; Esc clears it." if filtered else "on this lane."
        told = f"No {'later' if steps > 0 else 'earlier'} {clean(name)} {end}"
    return (view if found < 0 else selected(session, view, lane, found)), told


# what is shown, and how


def rescaled(layout: LaneLayout, view: ViewState) -> Changed:
    """Times in units of time, or in cycles."""
    clock = clock_of(layout.session.profile.device)
    if not clock:
        return view, "This capture tells no clock: times stay in units of time."
    scale: TimeScale = "cycles" if view.scale == "time" else "time"
    # whole numbers of MHz are told as such
    mhz = f"{clock.numerator:,}" if clock.denominator == 1 else f"{float(clock):,.3f}"
    told = f"Times in cycles of {mhz} MHz." if scale == "cycles" else "Times in ns, us, ms and s."
    return replace(view, scale=scale), told


def recoloured(layout: LaneLayout, view: ViewState) -> Changed:
    """The next meaning of colours."""
    session, profile = layout.session, layout.session.profile
    if not layout.shows_colours:
        return view, session.say("Colours belong to {lanes}: e shows them.")
    colouring = next_colouring(profile, view.colouring)
    if colouring != view.colouring:
        told = f"Colours mean: {title_of(profile.vocabulary, colouring)}. L explains them."
        return replace(view, colouring=colouring), told
    needs = profile.vocabulary.all_needs()
    return view, f"The capture knows nothing else to colour by{f': more needs {needs}' if needs else ''}."


def strips_changed(layout: LaneLayout, view: ViewState) -> Changed:
    """The next kind of strip below each lane."""
    profile = layout.session.profile
    if view.rows == "cores" and not any(row.lane >= 0 for row in layout.rows):
        return view, layout.session.say("Strips belong to {lanes}: e shows them.")
    after: dict[StripKind, StripKind] = {"": "bandwidth", "bandwidth": "utilisation", "utilisation": ""}
    strip = after[view.strip]
    if strip == "bandwidth" and not is_known(profile, "bandwidth"):
        strip = "utilisation"
    share = profile.vocabulary.share("bandwidth")
    peak = share.peak_text if share is not None else "the peak"
    told = {"": "No strips.", "bandwidth": f"Strips: bandwidth, share of {peak}.",
            "utilisation": "Strips: share of the time with work."}  # fmt: skip
    return replace(view, strip=strip), told[strip]


def pin_toggled(layout: LaneLayout, view: ViewState) -> Changed:
    """The selected row pinned on top, or back in its place."""
    number = layout.selected_row(view)
    if number < 0:
        return view, "No lane selected: j and k select one."
    row = layout.rows[number]
    was = row.place in view.pinned
    told = f"{clean(row.label).strip()} {'is back in its place' if was else 'stays on top'}."
    return replace(view, pinned=_toggled(view.pinned, row.place)), told


def _toggled(kept: tuple[Thing, ...], thing: Thing) -> tuple[Thing, ...]:
    """What is kept with one thing more, or without it where it is among them."""
    without = tuple(each for each in kept if each != thing)
    return without if thing in kept else (*kept, thing)


def _silent(change: Callable[[LaneLayout, ViewState], ViewState]) -> StateChange:
    """A change of which nothing is said."""
    return lambda layout, view: (change(layout, view), "")


#: By the last part of the action's id.
CHANGES: Final[Mapping[str, StateChange]] = {
    "zoom-in": _silent(lambda layout, view: view.zoomed(view.span // 2, layout.cells)),
    "zoom-out": _silent(lambda layout, view: view.zoomed(view.span * 2, layout.cells)),
    "pan-left": _silent(lambda _, view: view.panned(-max(view.span // 10, 1))),
    "pan-right": _silent(lambda _, view: view.panned(max(view.span // 10, 1))),
    "window-left": _silent(lambda _, view: view.panned(-view.span)),
    "window-right": _silent(lambda _, view: view.panned(view.span)),
    "cursor-left": _silent(lambda layout, view: cursor_moved(layout, view, -1)),
    "cursor-right": _silent(lambda layout, view: cursor_moved(layout, view, 1)),
    "lane-down": _silent(lambda layout, view: lane_moved(layout, view, 1)),
    "lane-up": _silent(lambda layout, view: lane_moved(layout, view, -1)),
    "lane-page-down": _silent(lambda layout, view: lane_moved(layout, view, layout.lines)),
    "lane-page-up": _silent(lambda layout, view: lane_moved(layout, view, -layout.lines)),
    "lane-first": _silent(lambda _, view: view.at(view.start)),
    "lane-last": _silent(lambda _, view: view.at(view.end - 1)),
    "fit": _silent(lambda _, view: view.fitted()),
    "engines": _silent(lambda _, view: replace(view, rows="cores" if view.rows == "engines" else "engines")),
    "legend": _silent(lambda _, view: replace(view, legend=not view.legend)),
    "previous": lambda layout, view: event_stepped(layout, view, -1),
    "next": lambda layout, view: event_stepped(layout, view, 1),
    "next-same": lambda layout, view: name_stepped(layout, view, 1),
    "previous-same": lambda layout, view: name_stepped(layout, view, -1),
    "range": lambda layout, view: ranged(view, layout.session),
    "scale": rescaled,
    "colours": recoloured,
    "strips": strips_changed,
    "pin": pin_toggled,
}
