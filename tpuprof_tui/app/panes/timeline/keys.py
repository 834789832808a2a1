"""Keys of the timeline beyond moving about: times, ranges, looks, same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.filter_masks import is_known as is_passing_known
from tpuprof_tui.analysis.selecting.filter_masks import passing
from tpuprof_tui.analysis.selecting.navigation import (
    copied_range,
    gone_to,
    ranged,
    same_name,
    selected,
    time_of,
)
from tpuprof_tui.analysis.selecting.state import StripKind, TimeScale, ViewState
from tpuprof_tui.analysis.selecting.time_scale import clock_of
from tpuprof_tui.app.drawing.colouring import is_known, next_colouring, title_of
from tpuprof_tui.app.shell.messages import Change, CopyText, Say
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.parsing import TypedError, range_text
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.vocabulary import NAMES

from ..prompt import Note, Prompt, Question
from .lanes import LaneView


class TimelineTools(LaneView):
    """What the timeline's less common keys do; each asks for another state."""

    def _ask(self, update: Callable[[ViewState], ViewState]) -> None:
        self.post_message(Change(update))

    def _say(self, text: str) -> None:
        self.post_message(Say(text))

    # times

    def action_go_to_time(self) -> None:
        """Asks for a time and goes there."""
        question = Question("Go to time", changed=self._judged_time, accepted=self._taken_time, kind="time")
        self.post_message(Prompt.Ask(question))

    def _judged_time(self, text: str) -> Note | None:
        if not text.strip():
            return None
        try:
            return Note(self.measure.exact(self._time(text)))
        except TypedError as error:
            return Note(str(error), fault=True)

    def _taken_time(self, text: str) -> Note | None:
        note = self._judged_time(text)
        if note is None or note.fault:
            return note
        time = self._time(text)
        self._ask(lambda view: gone_to(view, time))
        return None

    def _time(self, text: str) -> int:
        return time_of(text, self.view, self.session.profile.device)

    def action_scale(self) -> None:
        """Times in units of time or in cycles."""
        clock = clock_of(self.session.profile.device)
        if not clock:
            self._say("This capture tells no clock: times stay in units of time.")
            return

        def changed(view: ViewState) -> ViewState:
            scale: TimeScale = "cycles" if view.scale == "time" else "time"
            # whole numbers of MHz are told as such
            mhz = f"{clock.numerator:,}" if clock.denominator == 1 else f"{float(clock):,.3f}"
            self._say(f"Times in cycles of {mhz} MHz." if scale == "cycles" else "Times in ns, us, ms and s.")
            return replace(view, scale=scale)

        self._ask(changed)

    # ranges

    def action_range(self) -> None:
        """Begins or ends a range, or makes the selection one."""

        def changed(view: ViewState) -> ViewState:
            view, told = ranged(view, self.session)
            self._say(told)
            return view

        self._ask(changed)

    # copies

    def action_copy(self) -> None:
        """Copies the range, the selected instruction, or the window."""
        view = self.view
        if view.range is None and view.selection.row >= 0:
            self.post_message(CopyText(self._event_text(), self.session.say("{event}")))
        else:
            self.post_message(CopyText(copied_range(view), "window" if view.range is None else "range"))

    def _event_text(self) -> str:
        """The selected event in one line that can be pasted anywhere: exact times, in ns."""
        number, row = self.view.selection.lane, self.view.selection.row
        profile, lane = self.session.profile, self.session.profile.lanes[number]
        start, end = self.session.span_of(number, row)
        name = text_of(profile, lane, "name", row) or self.session.say("{event} {row}", row=row)
        kernel, reading = text_of(profile, lane, "kernel", row), clean(lane.reading(row))
        times = ("no times",) if start == INT_MISSING else (range_text(start, end), f"{end - start} ns")
        parts = (clean(profile.title_of(lane)), name, *times, kernel, reading)
        return "  ".join(part for part in parts if part)

    # what is shown

    def action_colours(self) -> None:
        """The next meaning of colours."""

        def changed(view: ViewState) -> ViewState:
            if not self.shows_colours:
                self._say(self.session.say("Colours belong to {lanes}: e shows them."))
                return view
            colouring = next_colouring(self.session.profile, view.colouring)
            if colouring == view.colouring:
                needs = self.session.profile.vocabulary.all_needs()
                more = f": more needs {needs}" if needs else ""
                self._say(f"The capture knows nothing else to colour by{more}.")
            else:
                self._say(f"Colours mean: {title_of(self.session.profile.vocabulary, colouring)}. L explains them.")
            return replace(view, colouring=colouring)

        self._ask(changed)

    def action_legend(self) -> None:
        """Explains the colours, or no longer."""
        self._ask(lambda view: replace(view, legend=not view.legend))

    def action_strips(self) -> None:
        """The next kind of strip."""

        def changed(view: ViewState) -> ViewState:
            if view.rows == "cores" and not any(row.lane >= 0 for row in self.rows):
                self._say(self.session.say("Strips belong to {lanes}: e shows them."))
                return view
            following: dict[StripKind, StripKind] = {"": "bandwidth", "bandwidth": "utilisation", "utilisation": ""}
            strip = following[view.strip]
            if strip == "bandwidth" and not is_known(self.session.profile, "bandwidth"):
                strip = "utilisation"
            share = self.session.profile.vocabulary.share("bandwidth")
            peak = share.peak_text if share is not None else "the peak"
            told = {"": "No strips.", "bandwidth": f"Strips: bandwidth, share of {peak}.",
                    "utilisation": "Strips: share of the time with work."}  # fmt: skip
            self._say(told[strip])
            return replace(view, strip=strip)

        self._ask(changed)

    def action_pin(self) -> None:
        """The selected line stays on top, or goes back."""

        def changed(view: ViewState) -> ViewState:
            number = self.selected_row(view)
            if number < 0:
                self._say("No lane selected: j and k select one.")
                return view
            place = (self.rows[number].lane, self.rows[number].unit)
            gone = place in view.pinned
            pinned = tuple(each for each in view.pinned if each != place)
            self._say(f"{clean(self.rows[number].label)} {'is back in its place' if gone else 'stays on top'}.")
            return replace(view, pinned=pinned if gone else (*pinned, place))

        self._ask(changed)

    # names

    def action_next_same(self) -> None:
        """The lane's next instruction of the same name."""
        self._step_name(1)

    def action_previous_same(self) -> None:
        """The lane's previous instruction of the same name."""
        self._step_name(-1)

    def _step_name(self, steps: int) -> None:
        def stepped(view: ViewState) -> ViewState:
            lane, row = view.selection.lane, view.selection.row
            if lane >= 0 and row < 0:
                row = self.event_under_cursor(lane, view)
            if row < 0:
                self._say(self.session.say("Nothing selected: . and , go to the next and previous {event}."))
                return view
            name = text_of(self.session.profile, self.session.profile.lanes[lane], "name", row)
            filtered = bool(view.filter) and is_passing_known(self.session, view.filter)
            passes = passing(self.session, view.filter).lane(lane) if filtered else None
            found = same_name(self.session, lane, row, steps, passes)
            if not name:
                self._say(f"The capture knows no names here: they need {self.session.profile.vocabulary.needs(NAMES)}.")
            elif found < 0:
                end = "of this lane passes the filter; Esc clears it." if filtered else "on this lane."
                self._say(f"No {'later' if steps > 0 else 'earlier'} {clean(name)} {end}")
            return view if found < 0 else selected(self.session, view, lane, found)

        self._ask(stepped)
