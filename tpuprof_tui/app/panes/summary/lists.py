"""Lists of the summary: what took the time, where it was lost, what is worth a look, why a core was not busier.

Lines come with what they stand for: Enter on them looks closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tpuprof_tui.analysis.findings.findings import Findings, Found
from tpuprof_tui.analysis.index.extremes import LARGE
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.grouping import text_condition
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import ViewState
from tpuprof_tui.analysis.totals.headroom import HeadroomRow
from tpuprof_tui.analysis.totals.top import TopRow
from tpuprof_tui.analysis.totals.window_figures import Figures, summary_scope
from tpuprof_tui.app.drawing.colouring import lane_shades
from tpuprof_tui.app.drawing.glyphs import Glyphs, bar
from tpuprof_tui.app.drawing.theme import Palette
from tpuprof_tui.formats.text import clean, fit, in_sentence, wrap
from tpuprof_tui.formats.units import (
    GUESS,
    TimeUnit,
    bytes_text,
    exact_time,
    percent_text,
    rate_text,
    time_text,
    time_unit,
)
from tpuprof_tui.model.vocabulary import NAMES

from ..lines import Line

#: From this width on lists tell means and longest too.
WIDE = 84


@dataclass(frozen=True)
class Target:
    """What a line of the summary stands for: a condition to filter by, an instruction, or a stretch of time."""

    condition: str = ""
    instruction: tuple[int, int] | None = None
    time: tuple[int, int] | None = None


#: A line, and what it stands for.
Entry = tuple[Line, Target | None]


def nothing_text(view: ViewState) -> str:
    """Why there are no figures of work, and what to do to see some."""
    ways = ["& changes the filter"] if view.filter else []
    if view.range is not None:
        ways.append("Esc clears the range")
    elif not view.fits_all:
        ways.append("0 in the timeline shows the whole capture")
    if not summary_scope(view).everything:
        ways.append("Esc goes back to all cores")
    told = " and ".join(ways) if len(ways) < 3 else ", ".join(ways)
    return f"No work here: {told}." if ways else "No work in this capture: it waits and synchronises alone."


class SummaryLists:
    """Makes the lists of a summary for a width."""

    def __init__(self, session: Session, palette: Palette, glyphs: Glyphs) -> None:
        self.session = session
        self.palette = palette
        self.glyphs = glyphs

    def heading(self, text: str, width: int, note: str = "") -> Line:
        """A line that heads a section."""
        shown = f" {text} "
        note = note if cell_len(shown) + cell_len(note) + 4 <= width else ""
        room = max(width - len(shown) - len(note) - 3, 0)
        line = [Segment(shown, self.palette.title), Segment(self.glyphs.rule * room, self.palette.rule)]
        return [*line, Segment(f" {note} " if note else "", self.palette.quiet)]

    def _told(self, text: str, width: int, style: Style, indent: int = 1) -> list[Entry]:
        return [([Segment(" " * indent + part, style)], None) for part in wrap(text, max(width - indent - 1, 8))]

    # what took the time

    def took_time(self, figures: Figures, width: int, most: int, view: ViewState) -> list[Entry]:
        """Kernel functions and operations, ``most`` of each; engines where no operation is known."""
        entries: list[Entry] = []
        if not any(row.figures.busy for row in figures.kinds):
            return self._told(nothing_text(view), width, self.palette.quiet)
        for title, key, rows in (
            ("Kernel functions", "kernel", figures.kernels), ("Operations", "name", figures.operations),
        ):  # fmt: skip
            if rows:
                entries += [*self._top(title, key, rows[:most], width, len(rows)), ([], None)]
        return entries[:-1] if entries else self._engines(figures, width)

    def _engines(self, figures: Figures, width: int) -> list[Entry]:
        vocabulary = self.session.profile.vocabulary
        entries: list[Entry] = [(self.heading("Engines", width, f"names need {vocabulary.needs(NAMES)}"), None)]
        total = sum(row.figures.busy for row in figures.kinds) or 1
        for row in sorted(figures.kinds, key=lambda row: -row.figures.busy):
            each, style = row.figures, self.palette.shaded(lane_shades(vocabulary, row.kind))
            told = f"{GUESS if each.guessed else ''}{time_text(each.busy)}"
            line = self._bar_line(row.label, each.busy / total, told, f"{each.count:,} x", width, style)
            entries.append((line, None))
        return entries

    def _top(self, title: str, key: str, rows: Sequence[TopRow], width: int, total: int) -> list[Entry]:
        more = f"top {len(rows)} of {total}, b lists all" if len(rows) < total else ""
        note = more or ("share, total, count, mean, longest" if width >= WIDE else "share, total, count")
        unit = time_unit(max(row.total_ns for row in rows))
        means = time_unit(max(round(row.mean_ns) for row in rows))
        entries: list[Entry] = [(self.heading(title, width, note), None)]
        for row in rows:
            label = clean(row.label) if row.code >= 0 else "unknown"
            totals = unit.text(row.total_ns)
            count = f"{row.count:,} x"
            if width >= WIDE:
                count += f"{means.number(row.mean_ns):>10} {means.name}{time_text(row.max_ns):>11}"
            style = self.palette.compute
            line = self._bar_line(label, row.share, totals, count, width, style, rows[0].share)
            entries.append((line, self._narrowing(key, row.label, row.code)))
        return entries

    def _narrowing(self, key: str, label: str, code: int) -> Target | None:
        if code < 0:
            return None
        alone = sum(text.lower() == label.lower() for text in self.session.profile.strings[key]) < 2
        return Target(condition=text_condition(key, label, alone=alone))

    def _bar_line(
        self, label: str, share: float, total: str, count: str, width: int, style: Style, full: float = 1.0
    ) -> Line:
        """A line whose bar is full where the share is ``full``: that of the longest."""
        count_width = 35 if width >= WIDE else 11 if width >= 46 else 0
        name_width = min(max(width - count_width - 34, 10), 34)
        bar_width = max(min(width - name_width - count_width - 24, 40), 0)
        count_width += max(width - name_width - count_width - 24 - bar_width, 0) if count_width else 0
        return [
            Segment(f" {fit(label, name_width)} ", self.palette.text),
            Segment(bar(share / full if full else 0.0, bar_width, self.glyphs), style),
            Segment(f"{percent_text(share):>7}", self.palette.strong),
            Segment(f"{fit(total, 13, right=True)}", self.palette.text),
            Segment(f"{fit(count, count_width, right=True)} ", self.palette.quiet),
        ]

    # where it was lost

    def lost(self, figures: Figures, width: int, most: int) -> list[Entry]:
        """Where work took longer than it would have at the chip's peak; nothing where that is not known."""
        entries: list[Entry] = []
        for title, key, rows in (
            ("Lost against the peak, by kernel", "kernel", figures.lost_kernels),
            ("by operation", "name", figures.lost_operations),
        ):  # fmt: skip
            if not rows:
                continue
            note = "lost, of peak, took" if not entries else ""
            entries.append((self.heading(title, width, note), None))
            unit = time_unit(round(rows[0].lost_ns))
            entries += [
                (self._lost_line(row, rows[0], unit, width), self._narrowing(key, row.label, row.code))
                for row in rows[:most]
            ]
        return [([], None), *entries] if entries else []

    def _lost_line(self, row: HeadroomRow, first: HeadroomRow, unit: TimeUnit, width: int) -> Line:
        label = clean(row.label) if row.code >= 0 else "unknown"
        rest = 14 + 8 + (12 if width >= 46 else 0)
        name_width = min(max(width - rest - 8, 10), 34)
        bar_width = max(min(width - name_width - rest - 2, 40), 0)
        lost = unit.text(row.lost_ns)
        took = fit(time_text(round(row.total_ns)), 12, right=True) if width >= 46 else ""
        return [
            Segment(f" {fit(label, name_width)} ", self.palette.text),
            Segment(bar(row.lost_ns / max(first.lost_ns, 1), bar_width, self.glyphs), self.palette.exposed),
            Segment(f"{lost:>14}", self.palette.strong),
            Segment(f"{percent_text(row.ratio):>8}", self.palette.text),
            Segment(took, self.palette.quiet),
        ]

    # what is worth a look

    def worth_a_look(self, figures: Figures, found: Findings, width: int) -> list[Entry]:
        """Single instructions and pauses that stand out; Enter goes to them."""
        parts = (
            ("Most exposed transfers", "Enter goes there", found.exposed, self._exposed_text),
            ("Slowest transfers", f"from {bytes_text(LARGE)}", found.slow, self._slow_text),
            ("Longest waits", "", found.wait, self._wait_text),
        )
        entries = self.pauses(figures, width)
        for title, note, each, told in parts:
            if not each:
                continue
            entries.append((self.heading(title, width, note), None))
            for one in each:
                value, more = told(one)
                line = [
                    Segment(f" {value:>11} ", self.palette.strong),
                    Segment(fit(self._named(one, more), max(width - 13, 0)), self.palette.text),
                ]
                entries.append((line, Target(instruction=(one.lane, one.row))))
        return [([], None), *entries] if entries else []

    def _named(self, found: Found, more: str) -> str:
        """What an instruction is, when it ran, what else is to be told, and its kernel function."""
        profile = self.session.profile
        lane = profile.lanes[found.lane]
        name = text_of(profile, lane, "name", found.row) or "instruction"
        kernel = text_of(profile, lane, "kernel", found.row)
        start, _ = self.session.span_of(found.lane, found.row)
        return (
            f"{clean(profile.title_of(lane))} {name} at {exact_time(start, 100)}{more}{f', {kernel}' if kernel else ''}"
        )

    def _exposed_text(self, found: Found) -> tuple[str, str]:
        start, end = self.session.span_of(found.lane, found.row)
        part = "" if found.value >= end - start else f", of {time_text(end - start)}"
        return f"{self._guess(found)}{time_text(round(found.value))}", part

    def _slow_text(self, found: Found) -> tuple[str, str]:
        lane = self.session.profile.lanes[found.lane]
        size = int(lane.take("bytes", slice(found.row, found.row + 1))[0])
        return rate_text(found.value), f", {bytes_text(size)}"

    def _wait_text(self, found: Found) -> tuple[str, str]:
        return f"{self._guess(found)}{time_text(round(found.value))}", ""

    def _guess(self, found: Found) -> str:
        return GUESS if self.session.profile.lanes[found.lane].role_guessed else ""

    # why a core is as busy as it is

    def reason(self, figures: Figures, width: int) -> list[Entry]:
        """How the chosen core spent its time, its longest pauses, and how it differs from the others."""
        reason = figures.reason
        if reason is None or not reason.unit.window:
            return []
        unit, window = reason.unit, reason.unit.window
        guess = GUESS if unit.guessed else ""
        place = _place_text(reason.place, reason.units)
        note = f"busy {percent_text(unit.utilisation, guessed=unit.guessed)}{place}"
        note += f", mean {percent_text(reason.mean)}" if reason.units > 1 else ""
        entries: list[Entry] = [(self.heading(clean(unit.label), width, note), None)]
        shares = (
            ("computes", unit.compute), ("moves data alone", unit.exposed),
            ("waits or synchronises", unit.wait), ("nothing runs", unit.idle),
        )  # fmt: skip
        text = ", ".join(f"{name} {guess}{percent_text(part / window)}" for name, part in shares)
        entries += self._told(text, width, self.palette.text)
        if reason.differences:
            more = "less" if reason.differences[0][1] < 0 else "more"
            parts = ", ".join(f"{clean(label)} {time_text(abs(ns))}" for label, ns in reason.differences)
            entries += self._told(f"{more} work than the mean core: {parts}", width, self.palette.text)
        if reason.pauses and not figures.filter:
            pause = reason.pauses[0]
            text = (
                f"longest pause {time_text(pause.end - pause.start)} from {exact_time(pause.start, 100)}: {pause.text}"
            )
            entries += self._told(text, width, self.palette.text)
        return [*entries, ([], None)]

    def pauses(self, figures: Figures, width: int) -> list[Entry]:
        """The longest pauses of the chosen core; Enter goes to them."""
        reason = figures.reason
        # a filter leaves more time with nothing than there was
        if reason is None or not reason.pauses or figures.filter:
            return []
        entries: list[Entry] = [(self.heading(f"Longest pauses of {in_sentence(reason.unit.label)}", width), None)]
        for pause in reason.pauses:
            told = fit(f"from {exact_time(pause.start, 100)}: {pause.text}", max(width - 13, 0))
            line = [
                Segment(f" {time_text(pause.end - pause.start):>11} ", self.palette.strong),
                Segment(told, self.palette.text),
            ]
            entries.append((line, Target(time=(pause.start, pause.end))))
        return entries


def _place_text(place: int, units: int) -> str:
    if units < 2:
        return ""
    if place == 1:
        return f", most of {units}"
    return f", least of {units}" if place == units else f", number {place} of {units}"
