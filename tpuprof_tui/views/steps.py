"""View of steps: one row per step, and the repeated launch sequences within them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.steps.step_detection import ProfileSteps, repeated_sequences
from tpuprof_tui.analysis.steps.step_figures import (
    Steadiness,
    StepLengths,
    StepTable,
    quartiles,
    steadiness,
    step_lengths,
    step_table,
)
from tpuprof_tui.formats.parsing import step_typed
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.vocabulary import NAMES

from .answer import Answer, Column, Fact, Missing, Table, Target

Ints = npt.NDArray[np.int64]

#: Number of cached step tables, by scope.
_KEPT: Final = 4
_GROUP: Final = Column("group", "Group")


class StepSpans(Struct, frozen=True, eq=False):
    """Steps of one worker or group, for comparisons; columns of one length."""

    number: Ints  #: Numbers, as ``--step`` takes them
    label: tuple[str, ...]  #: Labels for people, which ``--step`` takes too
    #: start, end: int64 ns.
    start: Ints
    end: Ints
    counted: npt.NDArray[np.bool_]  #: Mask of those that count in figures
    typical: float  #: What the views say that a step takes, ns; NaN: unknown
    lengths: Ints  #: Lengths that ``typical`` is the mean or median of, ns


def step_spans(query: Query) -> list[StepSpans]:
    """The steps of each worker or group of a whole profile: by the source's definition, else as `steps` lists them."""
    own = query.vocabulary.entry("steps")
    found: list[StepSpans] = detected_steps(query) if own is None else own(query)
    return found


def detected_steps(query: Query, worker: int | None = None) -> list[StepSpans]:
    """The steps that `steps` lists, by group; ``worker``: only those of one group."""
    found = query.steps
    table, spans = step_lengths(found), []
    for group, steady in table.steadiness.items():
        if worker not in (None, group):
            continue
        rows = np.flatnonzero(table.group == group)
        start, length = table.start[rows], table.length[rows]
        labels = tuple(
            label if step_typed(label) == number else f"{found.word.one} {number}"
            for label, number in zip(
                map(found.label, table.index[rows].tolist()), table.number[rows].tolist(), strict=True
            )
        )
        spans.append(StepSpans(table.number[rows], labels, start, start + length, steady.steady, steady.median,
                               length[steady.steady]))  # fmt: skip
    return spans


def steps(query: Query) -> Answer:
    """Table of steps, facts about their usual length, and table of repeated launch sequences."""
    found, words = query.steps, query.vocabulary
    if not len(found):
        needs = "" if query.profile.has(NAMES) else words.needs(NAMES)
        return Answer(missing=(Missing(f"No {words.step.plural} are recorded, and no sequence of launches repeats.",
                                       f"a profile of {needs}" if needs else ""),))  # fmt: skip
    if query.scope.lane >= 0:
        return Answer(missing=(Missing(words.say("Steps are shown by {unit}."), do=words.say("Choose {a_unit}.")),))
    session = query.filtered_session
    table = session.cache.get(
        "steps' figures",
        lambda: step_table(
            session.profile, found, units=query.units, lanes=query.lanes, owners=query.owners, indexes=session.indexes
        ),
        query.scope,
        limit=_KEPT,
    )
    chosen = _selected_rows(query, table)
    several = _has_several_groups(table, chosen)
    groups = query.profile.groups
    names = [groups.title(group) for group in table.group[chosen].tolist()]
    return Answer(
        _facts(found, table, chosen),
        (
            _steps(query, found, table, chosen, [names] if several else []),
            _sequences(query, found, table, chosen, several),
        ),
        notes=(*((words.say("~ No {steps} were marked: these are repeating sequences of launches."),)
                 if found.guessed else ()),
               *(("Lengths and gaps are not narrowed by the filter; it hides what repeats.",)
                 if query.condition else ()),
               *((words.say("A {step} is of the whole run: its times are those of all {units}."),)
                 if query.scope.group in query.profile.units and -1 in table.group[chosen] else ())),
    )  # fmt: skip


def step_facts(query: Query) -> tuple[Fact, ...]:
    """The facts of `steps` alone, without computing the figures of each step."""
    found = query.steps
    if not len(found) or query.scope.lane >= 0:
        return ()
    table = step_lengths(found)
    return _facts(found, table, _selected_rows(query, table))


def _facts(found: ProfileSteps, table: StepLengths, chosen: Any) -> tuple[Fact, ...]:
    count = len(set(table.number[chosen].tolist()))
    return (Fact("steps", found.word.plural.capitalize(), count, guessed=found.guessed),
            *_lengths(found, table, chosen, _has_several_groups(table, chosen)))  # fmt: skip


def _has_several_groups(table: StepLengths, chosen: Any) -> bool:
    return len(set(table.group[chosen].tolist())) > 1


def _selected_rows(query: Query, table: StepLengths) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows of the selected steps: of the groups in scope, starting in the range."""
    chosen = np.ones(len(table), np.bool_)
    if query.range is not None:
        chosen &= (table.start >= query.range[0]) & (table.start < query.range[1])
    if query.step is not None:
        chosen &= table.number == query.step
    if query.scope.group >= 0:
        steps = query.steps.set_of(query.scope.group)
        chosen &= np.isin(table.index, steps.index) if steps is not None else False
    return np.flatnonzero(chosen)


def _lengths(found: ProfileSteps, table: StepLengths, chosen: Ints, several: bool) -> tuple[Fact, ...]:
    steady = chosen[(table.usual & ~table.warm_up)[chosen]]
    length = table.length[steady if len(steady) else chosen]
    if several or not len(length):
        return ()
    (low, median, high), more = quartiles(length), len(length) > 1
    warm_up = int(np.count_nonzero(table.warm_up[chosen]))
    return (
        Fact("median_us", "Median length", median, "duration", guessed=found.guessed),
        Fact("low_us", "A quarter is shorter than", low, "duration", guessed=found.guessed, shown=more),
        Fact("high_us", "A quarter is longer than", high, "duration", guessed=found.guessed, shown=more),
        Fact("warm_up", "Warm-up", warm_up, unit=found.word.plural, shown=warm_up > 0),
    )  # fmt: skip


def _steps(query: Query, found: ProfileSteps, table: StepTable, chosen: Any, names: list[list[str]]) -> Table:
    words = query.vocabulary
    judged = (each[chosen].tolist() for each in (table.usual, table.warm_up, table.outlier, table.difference))
    communicates = bool(table.communication.any())
    more = (Column("communication_us", "Communication", "duration", drop_first=1),) if communicates else ()
    columns = (
        *([_GROUP] if names else []), Column("step", found.word.one.capitalize()),
        Column("number", "Number", "count", shown=False), Column("start_us", "From", "time", drop_first=3),
        Column("length_us", "Length", "duration", bar=True), Column("gap_us", "Gap", "duration"),
        Column("delta_us", "From median", "duration"), Column("events", words.say("{Events}"), "count", drop_first=4),
        Column("busy_us", "Busy", "duration", drop_first=2), Column("compute_us", "Compute", "duration"),
        Column("transfer_us", "Transfer", "duration"), *more, Column("exposed_us", "Exposed", "duration"),
        Column("note", "Note"), Column("usual", "Usual launches", "flag", shown=False),
        Column("warm_up", "Warm-up", "flag", shown=False), Column("outlier", "Outlier", "flag", shown=False),
    )  # fmt: skip
    values: list[Any] = [
        *names, [found.label(place) for place in table.index[chosen].tolist()], table.number, table.start,
        table.length, table.gap, table.difference, table.events, table.busy, table.compute, table.transfer,
        *([table.communication] if communicates else []), table.exposed, list(map(_note, *judged)),
        table.usual, table.warm_up, table.outlier,
    ]  # fmt: skip
    numbers = table.number[chosen].tolist()
    return Table(
        "steps", found.word.plural.capitalize(), columns,
        tuple(each[chosen] if isinstance(each, np.ndarray) else each for each in values),
        target=lambda row: Target(step=numbers[row]), word=found.word.one, shown=len(found) > 1, ordered=True,
        longest="length_us", guessed=frozenset(range(len(chosen))) if found.guessed else None,
        notes=(words.say("Gap: from the end of the one before. Compute, transfer, exposed: sums over {units}, of the "
                         "{events} that belong to it, whenever they run."),),
    )  # fmt: skip


def _note(usual: bool, warm_up: bool, outlier: bool, difference: float) -> str:
    parts = ["warm-up"] if warm_up else []
    parts += [] if usual else ["other launches"]
    parts += [("longer" if difference > 0 else "shorter") + " than usual"] if outlier else []
    return ", ".join(parts)


def _sequences(query: Query, found: ProfileSteps, table: StepTable, chosen: Ints, several: bool) -> Table:
    columns = (
        *([_GROUP] if several else []), Column("level", "Level", "count"), Column("what", "What"),
        Column("launches", "Launches", "count"), Column("count", "Times", "count"),
        Column("differ", "Differ", "count", drop_first=1), Column("warm_up", "Warm-up", "count", drop_first=2),
        Column("median_us", "Median", "duration"), Column("low_us", "1st quartile", "duration", drop_first=3),
        Column("high_us", "3rd quartile", "duration", drop_first=3),
        Column("shortest_us", "Shortest", "duration", drop_first=4),
        Column("longest_us", "Longest", "duration", drop_first=4),
    )  # fmt: skip
    repeating = [] if query.condition else list(_repeating(query, found, table, chosen, several))
    rows, first = [row for row, _ in repeating], [interval for _, interval in repeating]
    return Table.of_rows(
        "repeats", "What repeats", columns, rows, word="sequence", ordered=True,
        target=lambda row: Target(time=first[row]),
        shown=len(found) > 1 or len(rows) > 1,
        notes=("Median and quartiles are those of the steady state: without warm-up and deviating ones.",),
    )  # fmt: skip


def _repeating(
    query: Query, found: ProfileSteps, table: StepTable, chosen: Ints, several: bool
) -> Iterator[tuple[tuple[Any, ...], tuple[int, int]]]:
    """Yields a row per sequence, of its selected repetitions, and the interval of the first one in the steady state."""
    sequences = query.session.cache.get("what repeats", lambda: repeated_sequences(query.profile, found))
    for group in sorted(set(table.group[chosen].tolist())):
        rows = chosen[table.group[chosen] == group]
        start, end = table.start[rows], table.start[rows] + table.length[rows]
        own = [each for each in sequences if each.group == group]
        name = [query.profile.groups.title(group)] if several else []
        launches = own[0].launches if own else INT_MISSING
        yield _repeats((*name, 0, found.word.plural, launches), start, end, table.usual[rows])
        for each in own[1:]:
            # repetitions of steps that overlap are of the last to start
            step = np.searchsorted(start, each.start, side="right") - 1
            within = np.flatnonzero((step >= 0) & (each.start < end[step]))
            if len(within):
                title = f"{each.first} ... {each.last}"
                yield _repeats((*name, each.depth, title, each.launches), each.start[within], each.end[within],
                               each.usual[within])  # fmt: skip


def _repeats(
    names: tuple[Any, ...], start: Ints, end: Ints, usual: npt.NDArray[np.bool_]
) -> tuple[tuple[Any, ...], tuple[int, int]]:
    judged = steadiness(end - start, usual)
    row = min(judged.warm_up, len(start) - 1)
    differ = int(np.count_nonzero(~usual))
    return (*names, len(start), differ, *_spread(judged)), (int(start[row]), int(end[row]))


def _spread(one: Steadiness) -> tuple[Any, ...]:
    return one.warm_up, one.median, one.low, one.high, one.shortest, one.longest
