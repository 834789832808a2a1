"""Who waits for whom: the cores that made others wait, and the last core at each barrier."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.events import numbers_in
from tpuprof_tui.analysis.links.waits import Barriers, Waits, barriers_in, waits_of, work_during_text
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model.lane import select_rows
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, LazyValues, Missing, Table, Target

#: Most barriers listed, the costliest ones.
_MOST_BARRIERS: Final = 200
#: Most columns of the table of cores by cores.
_MOST_CORES: Final = 16


def waits(query: Query) -> Answer:
    """Waits that start in the window, by the core that released them."""
    everything = waits_of(query.session)
    selected = select_rows(everything, _selection_mask(query, everything))
    if not len(selected.waiter):
        return Answer(missing=(Missing("Nothing waits here."),))
    known = selected.released_by >= 0
    if not known.any():
        return Answer(missing=(Missing("What ended the waits is not known here."),))
    barriers = barriers_in(
        query.session, select_rows(everything, np.isin(everything.releaser, selected.releaser[known]))
    )
    return Answer(tables=(_makers(query, selected, barriers), _matrix(query, selected), _barriers(query, barriers)))


def _selection_mask(query: Query, everything: Waits) -> npt.NDArray[np.bool_]:
    start, end = query.window
    chosen = (everything.start >= start) & (everything.start < end)
    if query.scope.everything and not query.full_filter:
        return chosen
    chosen &= np.isin(everything.waiter, numbers_in(query.session, query.scope))
    if query.full_filter:
        chosen &= apply_filter(query.session, query.full_filter).mask[everything.waiter]
    return chosen


def _makers(query: Query, selected: Waits, barriers: Barriers) -> Table:
    """One row per core that made others wait, the costliest first."""
    took = selected.end - selected.start
    rows = []
    for unit in uniques(selected.released_by[selected.released_by >= 0]).tolist():
        others = (selected.released_by == unit) & (selected.unit != unit)
        if others.any():
            last = barriers.late_ns[barriers.unit == unit]
            rows.append((int(took[others].sum()), unit, int(others.sum()), last, bool(selected.guessed[others].any()),
                         int(selected.releaser[others][took[others].argmax()])))  # fmt: skip
    rows.sort(key=lambda row: (-row[0], row[1]))
    title = query.profile.groups.title
    columns = (
        Column("unit", query.vocabulary.say("{Unit}")), Column("waited_us", "Others waited", "duration", bar=True),
        Column("waits", "Waits", "count", drop_first=1), Column("last", "Last at barriers", "count"),
        Column("late_us", "Late by", "duration"),
    )  # fmt: skip
    return Table.of_rows(
        "makers", "Who makes the others wait", columns,
        [(title(unit), waited, count, len(last), int(last.sum()))
         for waited, unit, count, last, _, _ in rows],
        target=lambda row: Target(event=query.session.locate(rows[row][5])), word=query.vocabulary.unit.one,
        guessed=frozenset(index for index, row in enumerate(rows) if row[4]),
        notes=("Others waited: time of the waits that it released, of other cores only. Late by: how much later it "
               "came to barriers than the last of the others.",),
    )  # fmt: skip


def _matrix(query: Query, selected: Waits) -> Table:
    """One row per core that waited, one column per core it waited for."""
    took = selected.end - selected.start
    title = query.profile.groups.title
    waiters, waiter = np.unique(selected.unit, return_inverse=True)
    releasers, releaser = np.unique(np.append(selected.released_by, -1), return_inverse=True)
    # by releaser, the first unknown, and waiter
    time = np.zeros((len(releasers), len(waiters)), np.int64)
    np.add.at(time, (releaser[:-1], waiter), took)
    sums = dict(zip(releasers.tolist()[1:], time[1:].sum(axis=1).tolist(), strict=True))
    listed = sorted(sorted(sums, key=lambda unit: -sums[unit])[:_MOST_CORES])
    chosen = np.isin(releasers, listed)
    rest = time[1:][~chosen[1:]].sum(axis=0)
    columns = [
        Column("unit", query.vocabulary.say("{Unit}")), Column("total_us", "Waits", "duration", bar=True),
        *(Column(f"for_{query.profile.groups.number(by)}_us", f"for {query.profile.groups.number(by)}", "duration",
                 drop_first=index) for index, by in enumerate(listed)),
    ]  # fmt: skip
    values: list[list[object]] = [
        list(map(title, waiters.tolist())), *(each.tolist() for each in (time.sum(axis=0), *time[chosen])),
    ]  # fmt: skip
    for key, heading, more in (("others_us", "for others", rest), ("unknown_us", "unknown", time[0])):
        if more.any():
            columns.append(Column(key, heading, "duration"))
            values.append(more.tolist())
    guessed = np.flatnonzero(np.bincount(waiter, selected.guessed)).tolist()
    return Table(
        "waits", "Who waits for whom", tuple(columns), tuple(values),
        guessed=frozenset(guessed), word=query.vocabulary.unit.one,
        target=lambda row: Target(scope=Scope(int(waiters[row]))),
        notes=("A core waits for itself where one of its engines waits for another, or for its own send.",),
    )  # fmt: skip


def _barriers(query: Query, barriers: Barriers) -> Table:
    """One row per barrier, the costliest first."""
    session, listed = query.session, select_rows(barriers, np.arange(min(len(barriers), _MOST_BARRIERS)))
    columns = (
        Column("time_us", "Time", "time"), Column("unit", "Last"), Column("late_us", "Late by", "duration"),
        Column("waited_us", "Others waited", "duration", bar=True), Column("waits", "Waits", "count", drop_first=2),
        Column("meanwhile", "It did meanwhile", drop_first=1),
    )  # fmt: skip
    units, late, time = listed.unit.tolist(), listed.late_ns.tolist(), listed.time.tolist()

    cached: dict[int, str | None] = {}

    def meanwhile(row: int) -> str | None:
        if row not in cached:
            cached[row] = work_during_text(session, units[row], time[row] - late[row], time[row]) or None
        return cached[row]

    more = (f"{len(barriers) - len(listed):,} more barriers cost less.",) if len(listed) < len(barriers) else ()
    return Table(
        "barriers", "Barriers", columns,
        (listed.time, list(map(query.profile.groups.title, units)), listed.late_ns, listed.waited_ns, listed.waits,
         LazyValues(len(listed), lambda rows: list(map(meanwhile, range(*rows.indices(len(listed))))))),
        target=lambda row: Target(event=session.locate(int(listed.releaser[row]))),
        guessed=frozenset(np.flatnonzero(listed.guessed).tolist()), word="barrier",
        brief=range(min(len(listed), 5)),
        notes=("A barrier is that of all its cores. It did meanwhile: the longest work of the last core between the "
               "arrival of the last but one and its own.", *more),
    )  # fmt: skip
