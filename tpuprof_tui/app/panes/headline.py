"""Headline bar: capture, total time, busiest and idlest unit, exposed transfer, number of problems; the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from tpuprof_tui.formats.escape import clean
from tpuprof_tui.formats.text import fit, in_sentence, middle_cut
from tpuprof_tui.formats.units import GUESS, percent_text, plural, span_text, time_text

from ..drawing.theme import Palette

if TYPE_CHECKING:
    from tpuprof_tui.analysis.query import Query
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.analysis.totals.figures import Headline
    from tpuprof_tui.views.sentence import Sentence

#: (text, style, rank) of a part; parts of the highest rank are dropped first if there is no room.
HeadlinePart = tuple[str, Style, int]

#: Least rank of parts that identify the capture rather than give figures.
CAPTION = 4
#: Rank of the chip and recording mode.
CHIP = CAPTION + 2
#: Between the parts of a selection, and the width from which on it is said that everything is.
SEPARATOR = " · "
_WIDE = 120
#: Cells of a name that figures leave, and the least for it to be shown at all.
_NAME_CELLS, _MIN_NAME_CELLS = 16, 6


class HeadlineBar(Widget):
    """The top line of a screen; in the explorer, the line below it holds the answer in one sentence."""

    DEFAULT_CSS = "HeadlineBar { dock: top; height: 1; background: $panel; color: $foreground; }"

    def __init__(self, palette: Palette, text: str = "tpuprof", *, lines: int = 1) -> None:
        super().__init__()
        self.styles.height = lines
        self.sentence: Sentence | None = None
        self.palette = palette
        self.items: list[list[HeadlinePart]] = [[(clean(text), palette.title, 0)]]
        self.session: Session | None = None
        self.several = False
        self.selection: tuple[str, ...] = ()
        self.selected: Headline | None = None

    def show_selection(self, parts: tuple[str, ...], figures: Headline | None) -> None:
        """Shows the figures of a selection and what it is; no parts and None: those of the whole profile."""
        if (parts, figures) != (self.selection, self.selected):
            self.selection, self.selected = parts, figures
            self.refresh()

    def show_sentence(self, sentence: Sentence | None) -> None:
        """Shows a sentence in the second line; None: it is not known yet."""
        if sentence != self.sentence:
            self.sentence = sentence
            self.refresh()

    def show_session(self, session: Session) -> None:
        """Shows the figures of a profile."""
        self.session = session
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Renders a line: of the first shortens words, then drops items from the highest rank, until it fits."""
        base, session = self.rich_style, self.session
        if y:
            text = "" if self.sentence is None else clean(self.sentence.within(self.size.width - 2))
            told = Segment(f" {text}", base + self.palette.strong)
            return Strip([told]).adjust_cell_length(self.size.width, base)
        selection = self._selection_text(self.size.width) if session is not None else ""
        width = self.size.width - (cell_len(selection) + 3 if selection else 0)
        items = self.items if session is None else self._fitting(session, width)
        segments = [Segment(" ", base)]
        for number, item in enumerate(items):
            if number:
                segments.append(Segment("  ", base))
            segments += [Segment(text, base + style) for text, style, _ in item]
        if _width(items) > width:
            segments = [Segment(fit("".join(segment.text for segment in segments), width), base)]
        line = Strip(segments).adjust_cell_length(width, base)
        if not selection:
            return line
        style = self.palette.chosen if self.selection else self.palette.quiet
        end = Strip([Segment("  ", base), Segment(selection, base + style), Segment(" ", base)])
        return Strip.join([line, end]).adjust_cell_length(self.size.width, base)

    def _selection_text(self, width: int) -> str:
        """What is selected, cut in the middle; everything is only said where there is room."""
        if self.selection:
            return middle_cut(SEPARATOR.join(self.selection), max(width // 2, 12))
        assert self.session is not None
        units = self.session.profile.vocabulary.unit.plural
        return f"all {units}" if width >= _WIDE and len(self.session.profile.units) > 1 else ""

    def _fitting(self, session: Session, width: int) -> list[list[HeadlinePart]]:
        """The name, cut in the middle, and the items that have room beside it; figures are shortened before they go."""
        profile = session.profile
        name = clean(profile.name).removeprefix(profile.vocabulary.usual_name) or clean(profile.name)
        least = min(cell_len(name), _NAME_CELLS) + 2
        items = headline_items(session, self.palette, self.selected)
        needed = [item for item in items if item[0][2] < CAPTION]
        if least + _width(needed) > width:
            items = headline_items(session, self.palette, self.selected, short=True)
        while len(items) > 1 and least + _width(items) > width:
            items.remove(max(items, key=lambda item: item[0][2]))
        card = clean(profile.device.chip).partition(" ")[2]
        if card and all(item[0][2] != CHIP for item in items) and least + _width(items) + 2 + cell_len(card) <= width:
            items.insert(0, [(card, self.palette.quiet, CHIP)])
        room = width - _width(items) - 2
        return items if room < _MIN_NAME_CELLS else [[(middle_cut(name, room), self.palette.title, 0)], *items]


def selection_parts(query: Query) -> tuple[str, ...]:
    """What a query selects, in words: scope, step, time, filter; empty: everything."""
    session, window = query.session, query.range
    return tuple(clean(part) for part in (
        "" if query.scope.everything else session.scope_title(query.scope),
        "" if query.step is None else f"{query.steps.word.one} {query.step}",
        "" if window is None else span_text(*window), query.filter,
    ) if part)  # fmt: skip


def _width(items: list[list[HeadlinePart]]) -> int:
    return 1 + sum(2 + sum(cell_len(text) for text, _, _ in item) for item in items) - 2


def headline_items(
    session: Session, palette: Palette, selected: Headline | None = None, *, short: bool = False
) -> list[list[HeadlinePart]]:
    """Items of the headline, each a list of parts.

    ``selected``: figures of a selection, None: of the whole profile; ``short``: without decimals and some words.
    """
    # lazy import: the bar is painted before numpy is imported
    from tpuprof_tui.analysis.query import Query
    from tpuprof_tui.views.report import total_ns

    profile, figures = session.profile, selected or Query(session).headline
    quiet, strong = palette.quiet, palette.strong
    total = (figures.device_ns if selected else total_ns(session)) if profile.timed else 0
    items: list[list[HeadlinePart]] = [
        [(f"{clean(profile.device.chip)} {profile.recording.name}", quiet, CHIP)],
        [("total ", quiet, 0), (time_text(total), strong, 0)] if profile.timed else [("no times", strong, 0)],
    ]
    if profile.problems:
        worst = max(int(problem.severity) for problem in profile.problems)
        style = palette.severity(worst)
        items.append([(plural(len(profile.problems), "problem"), style, 1)])
    if figures.device_ns != total:
        items.append([("device ", quiet, 3), (time_text(figures.device_ns), strong, 0)])
    verdict = session.cache.peek("verdict")
    if verdict is not None:
        items.append([("" if short else "against base ", quiet, 0), (str(verdict), palette.chosen, 0)])
    if figures.busiest is not None and figures.idlest is not None and figures.device_ns:
        for word, unit, rank in (("busiest", figures.busiest, 2), ("idlest", figures.idlest, 4)):
            if len(figures.units) == 1:
                if word == "idlest":
                    continue
                word = "busy"
            share = _share(unit.utilisation, unit.guessed, short)
            items.append([(f"{word} ", quiet, rank), (f"{in_sentence(unit.label)} {share}", strong, 0)])
    if figures.most_exposed is not None and figures.device_ns:
        unit = figures.most_exposed
        share = _share(unit.exposed / figures.device_ns, unit.guessed, short)
        words = "exposed " if short else "exposed transfer "
        time = "" if short else f"{GUESS if unit.guessed else ''}{time_text(unit.exposed)} "
        items.append([(words, quiet, 3), (f"{in_sentence(unit.label)} {time}{share}", palette.exposed, 0)])
    items.append([(profile.vocabulary.event_word(timed=profile.timed).of(figures.event_count), quiet, CAPTION + 3)])
    return items


def _share(share: float, guessed: bool, short: bool) -> str:
    return f"{GUESS if guessed else ''}{share * 100:.0f}%" if short else percent_text(share, guessed=guessed)
