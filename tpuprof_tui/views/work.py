"""Views of work: time by kernel and operation, and time lost against the hardware's peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.lane_index import event_at
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.totals.work_sums import (
    COUNT,
    IDEAL,
    KNOWN,
    KNOWN_NS,
    LOST,
    TOTAL,
    Grouping,
    WorkSums,
    work_sums,
)
from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.model import Profile

from .answer import Answer, Column, Missing, Table, Target

Ints = npt.NDArray[np.int64]

#: Columns that work is grouped by, with the vocabulary's word for each.
_BY: Final[tuple[tuple[Grouping, str], ...]] = (("kernel", "scope"), ("name", "operation"))


def kernels(query: Query) -> Answer:
    """Work by kernel function."""
    return _work_tables(query, "kernel", "scope")


def operations(query: Query) -> Answer:
    """Work by operation."""
    return _work_tables(query, "name", "operation")


def _work_tables(query: Query, by: Grouping, word: str) -> Answer:
    *values, codes = top_columns(query.profile, _sums(query)[by], by)
    if by not in query.profile.strings or not len(codes):
        return Answer(tables=_running_through(query) if by == "name" else ())
    if not (codes >= 0).any():
        return Answer(missing=(Missing(query.vocabulary.say(f"No {{{word}}} is known here.")),))
    columns = (
        Column("share", "Share", "share", bar=True), Column("total_us", "Work", "duration"),
        Column("count", "Count", "count"), Column("mean_us", "Mean", "duration", drop_first=2),
        Column("max_us", "Max", "duration", drop_first=1), Column("name", "Name"),
    )  # fmt: skip
    table = Table("by_name", query.vocabulary.say(f"{{{word.capitalize()}s}}"), columns, tuple(values),
                  target=partial(_target, query, by, values[-1], codes),
                  word=query.vocabulary.say(f"{{{word}}}"))  # fmt: skip
    return Answer(tables=(table,))


def top_columns(profile: Profile, sums: WorkSums, by: Grouping) -> tuple[Any, ...]:
    """By work time descending: share, ns, count, mean ns, maximum ns, label, and code of the label (-1: missing)."""
    count, total = sums.sums[COUNT].astype(np.int64), sums.sums[TOTAL].astype(np.int64)
    ranked = np.argsort(-total, kind="stable")
    ranked = ranked[count[ranked] > 0]
    every, count, total = max(int(total.sum()), 1), count[ranked], total[ranked]
    return total / every, total, count, total / count, sums.longest[ranked], *_labels(profile, by, ranked)


def _labels(profile: Profile, by: Grouping, indexes: Ints) -> tuple[list[str], Ints]:
    texts = profile.strings.get(by, ())
    return [texts[index - 1] if index else MISSING for index in indexes.tolist()], indexes - 1


def _running_through(query: Query) -> tuple[Table, ...]:
    """Table of events that run through a window in which no work starts; empty if there are none."""
    start, end = query.window
    events = [
        query.event(number, row)
        for number, index in query.lane_indexes.items()
        if (row := event_at(index, start)) >= 0 and int(index.lane["end"][row]) > start
    ]
    if not events or end <= start:
        return ()
    profile = query.profile
    spans = [query.session.span_of(number, row) for number, row in events]
    lanes = [profile.lanes[number] for number, _ in events]
    columns = (
        Column("lane", query.vocabulary.say("{Lane}")), Column("name", query.vocabulary.say("{Operation}")),
        Column("scope", query.vocabulary.say("{Scope}"), drop_first=1),
        Column("start_us", "Since", "time", drop_first=2),
        Column("duration_us", "Duration", "duration"),
    )  # fmt: skip
    rows = [
        (profile.title_of(lane), *(text_of(profile, lane, key, row) for key in ("name", "kernel")),
         begin, stop - begin)
        for lane, (_, row), (begin, stop) in zip(lanes, events, spans, strict=True)
    ]  # fmt: skip

    def target(place: int) -> Target:
        return Target(event=events[place])

    title = query.vocabulary.say("No work starts here; {events} run through")
    return (Table.of_rows("running_through", title, columns, rows, target=target, word=query.vocabulary.event.one),)


def lost(query: Query) -> Answer:
    """Tables of work that took longer than the ideal time at the hardware's peak."""
    tables = [_lost_table(query, by, word) for by, word in _BY if by in query.profile.strings]
    if not any(len(table) for table in tables):
        return Answer(missing=(Missing("The time at the hardware's peak is not known here."),))
    return Answer(tables=tuple(tables))


def _lost_table(query: Query, by: Grouping, word: str) -> Table:
    *found, codes = lost_columns(query.profile, _sums(query)[by], by)
    rows = np.flatnonzero(found[4] > 0)
    notes = ["Lost: time beyond that at the hardware's peak (cycles of the algorithm, bandwidth)."]
    if found[5].any():
        notes.append("No peak: work whose time at the peak is not known; it counts nowhere else.")
    columns = (
        Column("lost_us", "Lost", "duration", bar=True), Column("ideal_us", "Ideal", "duration", drop_first=1),
        Column("of_peak", "At peak", "share"), Column("total_us", "Took", "duration", drop_first=2),
        Column("count", "Count", "count", drop_first=3), Column("unknown", "No peak", "count", drop_first=4),
        Column("name", "Name"),
    )  # fmt: skip
    names = [found[-1][row] for row in rows.tolist()]
    return Table(f"{word}s", query.vocabulary.say(f"Lost by {{{word}}}"), columns,
                 (*(each[rows] for each in found[:-1]), names),
                 target=partial(_target, query, by, names, codes[rows]), notes=tuple(notes),
                 word=query.vocabulary.say(f"{{{word}}}"))  # fmt: skip


def lost_columns(profile: Profile, sums: WorkSums, by: Grouping) -> tuple[Any, ...]:
    """By ns lost descending: ns lost, ideal ns, ideal / taken, ns taken, counts with and without a known ideal time.

    Then label and code as in `top_columns`. Ideal time is the column ``ideal``; work without it is counted separately.
    What an event is faster than ideal is not taken from what others lose.
    """
    count, known, total, ideal, lost = (sums.sums[row] for row in (COUNT, KNOWN, KNOWN_NS, IDEAL, LOST))
    ranked = np.lexsort((known - count, -total, -lost))
    ranked = ranked[count[ranked] > 0]
    count, known, total, ideal, lost = (each[ranked] for each in (count, known, total, ideal, lost))
    ratio = np.divide(ideal, total, out=np.zeros(len(total)), where=total > 0)
    unknown = (count - known).astype(np.int64)
    return lost, ideal, ratio, total, known.astype(np.int64), unknown, *_labels(profile, by, ranked)


def _sums(query: Query) -> dict[Grouping, WorkSums]:
    def made() -> dict[Grouping, WorkSums]:
        return work_sums(query.work_indexes, query.profile.strings, *query.window, tuple(by for by, _ in _BY))

    return query.filtered_session.cache.get("work of a window", made, (query.scope, *query.window), limit=1)


def _target(query: Query, key: str, labels: Sequence[str], codes: Ints, row: int) -> Target | None:
    if codes[row] < 0:
        return None

    def made() -> frozenset[str]:
        counts = Counter(text.lower() for text in query.profile.strings[key])
        return frozenset(text for text, count in counts.items() if count > 1)

    alike = query.cache.get("texts that differ by capitals", made, key)
    return Target(condition=text_condition(key, labels[row], alone=labels[row].lower() not in alike))
