"""Views of two profiles compared: a view's answers of both sides joined, and views that only a comparison has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.amounts import Comparison, CountedSteps, Names
from tpuprof_tui.analysis.compare.match import launch_rows, paired_rows
from tpuprof_tui.analysis.compare.noise import RUN_NOISE, UNKNOWN, Amount, Status, status_of
from tpuprof_tui.analysis.compare.verdict import Verdict
from tpuprof_tui.analysis.pivot import Frame, GroupBy, pivot, total
from tpuprof_tui.analysis.pivot import key as text_of_key
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Profile, is_missing
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import NAMES

from .answer import Answer, Column, Fact, Missing, Table, Target, ValueKind
from .registry import answer, view_named, views_of
from .report import extent_of, of_worker, workers_of
from .steps import StepSpans, step_spans
from .workers import FIGURES, WORKER, of_group

#: Views that exist only for comparisons; one with the id of a view of the source replaces it.
OWN: Final = (
    View("waits", "Waits", "Waits of each {unit}, by what they wait in.", ""),
    View("alignment", "Alignment", "Which launches and {events} belong together, were added, removed or changed.", ""),
)
#: Columns of an amount.
_AMOUNTS: Final = (
    Column("base_total_us", "Base", "duration"), Column("other_total_us", "Other", "duration"),
    Column("delta_total_us", "Delta", "duration"), Column("base_count", "Count base", "count", drop_first=2),
    Column("other_count", "Count other", "count", drop_first=2),
    Column("delta_count", "Count delta", "count", drop_first=2),
    Column("status", "Status"),
)  # fmt: skip
#: Columns of the alignment tables, of launches and of events within them: sums of `paired_rows`, and what follows.
_COLUMNS: Final = (
    Column("base_count", "Base count", "count", drop_first=3),
    Column("other_count", "Other count", "count", drop_first=3),
    Column("delta_count", "More", "count", drop_first=4), Column("matched", "Matched", "count", drop_first=2),
    Column("changed", "Changed", "count"), Column("moved", "Moved", "count", drop_first=5),
    Column("added", "Added", "count"), Column("removed", "Removed", "count"),
    Column("base_us", "Base", "duration", drop_first=1), Column("other_us", "Other", "duration", drop_first=1),
    Column("delta_us", "Delta", "duration"), Column("status", "Status"),
)  # fmt: skip
_SUMMED: Final = [column.key for column in _COLUMNS if not column.key.startswith(("delta_", "status"))]
#: Kinds that are compared; times are not, since the two time lines are unrelated.
_NUMBERS: Final[tuple[ValueKind, ...]] = ("count", "duration", "bytes", "rate", "share", "number")
#: Kinds for which a missing row counts as 0.
_SUMS: Final[tuple[ValueKind, ...]] = ("count", "duration", "bytes")
#: Candidates for the main number of a table, by which rows are sorted and judged.
_MAIN: Final = ("total_us", "step_us", "length_us", "busy_us")
_COUNTS: Final = ("count", "calls", "events")
_SIDES: Final = ("base", "other", "delta")


class Compared(Struct, frozen=True, eq=False, dict=True):
    """Two profiles and the queries that are compared; ``run_noise``: variation between runs, as a share."""

    base: Query
    other: Query
    run_noise: float = RUN_NOISE

    def __post_init__(self) -> None:
        refuse_unlike(self.base.profile, self.other.profile)
        if not self.comparison.alike and not self.comparison.origins:
            names = " and ".join(f"{query.profile.path} ({query.vocabulary.title})" for query in self.sides)
            raise UsageError(f"{names} have nothing in common.", "It is not recorded which operators launched most of "
                             "the device's work on both sides.")  # fmt: skip

    @classmethod
    def of(cls, query: Query) -> Compared:
        """Compares a query with its baseline; cached by scope and filter."""
        base = query.baseline
        assert base is not None
        alone = replace(query, baseline=None)
        which = (query.scope, query.full_filter, base.scope)
        return query.cache.get("comparison", lambda: cls(base, alone), *which, limit=4)

    @property
    def sides(self) -> tuple[Query, Query]:
        """The queries of base and other."""
        return self.base, self.other

    @cached_property
    def workers(self) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
        """Workers of each side."""
        return workers_of(self.base.profile), workers_of(self.other.profile)

    @cached_property
    def pairs(self) -> list[tuple[Worker | None, Worker | None]]:
        """Paired workers: by rank and stage, else by order; None: no partner."""
        ours, theirs = map(list, self.workers)
        found: list[tuple[Worker | None, Worker | None]] = []
        if len(ours) > 1 or len(theirs) > 1:
            # only ranks that are unique on a side: traces of one process at two times share a rank
            one, two = map(_by_rank, (ours, theirs))
            found += ((one[key], two[key]) for key in one if key in two)
            paired = {id(each) for pair in found for each in pair}
            ours, theirs = ([each for each in side if id(each) not in paired] for side in (ours, theirs))
        return [*found, *zip_longest(ours, theirs)]

    @cached_property
    def comparison(self) -> Comparison:
        """Matched work and amounts of both sides."""
        groups = [tuple(-2 if worker is None else worker.group for worker in pair) for pair in self.pairs]
        steps = None if self.base.full_filter or self.other.full_filter else self._counted_steps
        return Comparison(self.base, self.other, pairs=groups, run_noise=self.run_noise, steps=steps)  # type: ignore[arg-type]

    @cached_property
    def _counted_steps(self) -> tuple[CountedSteps, CountedSteps]:
        base, other = map(_counted_steps, self.sides, self.steps)
        return base, other

    @cached_property
    def steps(self) -> tuple[list[StepSpans], list[StepSpans]]:
        """Steps of each side, by worker or group."""
        return step_spans(self.base), step_spans(self.other)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """First start and last end of each side, ns."""
        return [query.window if query.step is not None or query.full_filter or query.range is not None
                else extent_of(query.profile, workers)
                for query, workers in zip(self.sides, self.workers, strict=True)]  # fmt: skip

    @cached_property
    def verdict(self) -> Verdict:
        """What became of the base, and why."""
        base, other = (end - start for start, end in self.spans)
        return Verdict(self.comparison, self.comparison.total(base, other), self._more_steps())

    def _more_steps(self) -> str:
        """Another number of marked steps: then all sums differ."""
        if self.base.step is not None:
            return ""
        sides = [query.steps for query in self.sides]
        counts = [len(set(side.steps.number.tolist())) for side in sides]
        marked = all(count and not side.guessed for count, side in zip(counts, sides, strict=True))
        if not marked or counts[0] == counts[1]:
            return ""
        word = sides[0].word
        more = f"The other has {word.more(*counts)}"
        if self.comparison.stepped:
            return f"{more}."
        typical = (side.typical for side in self._counted_steps)
        lengths = " -> ".join(time_text(round(length)) if length == length else "-" for length in typical)
        return f"{more}; {word.with_article} takes {lengths}. --step N compares one."

    def answer(self, view: View) -> Answer:
        """The answer of a view, joined from both sides."""
        own = {"alignment": _alignment, "waits": _waits}.get(view.id)
        if own is not None:
            return own(self)
        if not view.compute:
            return _origins(self, view)

        def told(query: Query, worker: Worker | None) -> Answer:
            return Answer() if worker is None else answer(view, of_worker(query, worker))

        if view.all_workers:
            parts = [("", -1, answer(view, self.base), answer(view, self.other))]
        else:
            parts = [((one or two).key, two.group if two else -1, told(self.base, one), told(self.other, two))  # type: ignore[union-attr]
                     for one, two in self.pairs]  # fmt: skip
        found = joined(parts, self._judge(view), (self.base.vocabulary.operation.one, self.comparison.joint.renamed))
        return replace(found, tables=(*found.tables, self._steps_and_gaps())) if view.id == "steps" else found

    def _judge(self, view: View) -> Judge:
        comparison = self.comparison
        parts = () if comparison.is_of_host else comparison.breakdowns.get(view.id, ())
        known = {part.name: part.status for part in parts}

        def judge(table: str, names: tuple[Any, ...], amount: Amount, kind: ValueKind) -> Status:
            if kind == "duration":
                found = known.get(names[0]) if len(names) == 1 and table == "by_name" else None
                return found or comparison.with_status(amount).status
            if kind not in ("count", "bytes"):
                return status_of(amount, comparison.noise, comparison.lost)
            exact = replace(amount, low=float(amount.delta), high=float(amount.delta))
            return status_of(exact, replace(comparison.noise, between=0.0), comparison.lost)

        return judge

    def _steps_and_gaps(self) -> Table:
        """Table of steps and of the gaps between them, which add up to the total."""
        sides = [_step_parts([] if query.step is not None else steps, span)
                 for query, steps, span in zip(self.sides, self.steps, self.spans, strict=True)]  # fmt: skip
        rows = []
        for place in dict.fromkeys((*sides[0], *sides[1])):
            name = next(side[place][0] for side in sides if place in side)
            lengths, counts = zip(*((side.get(place, ("", 0))[1], int(place in side)) for side in sides), strict=True)
            amount = self.comparison.with_status(Amount(name, *lengths, *counts))
            rows.append((name, *lengths, amount.delta, amount.status))
        rows.sort(key=lambda row: -abs(row[3]))
        columns = (
            Column("part", "Part"), Column("base_us", "Base", "duration"), Column("other_us", "Other", "duration"),
            Column("delta_us", "Delta", "duration"), Column("status", "Status"),
        )  # fmt: skip
        return Table.of_rows("parts", "Steps and gaps: they add up to the total", columns, rows, word="part")


def refuse_unlike(base: Profile, other: Profile) -> None:
    """Raises UsageError, naming both, if two profiles of one source are of chips whose work nothing names alike."""
    ours, theirs = base.vocabulary, other.vocabulary
    unlike = ours.source == theirs.source and ours.one_chip and base.device.chip != other.device.chip
    if unlike and not (base.has(NAMES) and other.has(NAMES)):
        raise UsageError(f"{base.path} is of {base.device.chip}, {other.path} of {other.device.chip}.",
                         "Their commands cannot be compared, and not both name operations.")  # fmt: skip


def views_to_compare(base: Profile, other: Profile) -> tuple[View, ...]:
    """Views that both sources have, as far as they can be compared, and those that only a comparison has."""
    theirs = {(view.id, view.compute) for view in views_of(other.vocabulary)}
    own = {view.id for view in OWN}
    shared = [view for view in views_of(base.vocabulary) if view.id not in own and (view.id, view.compute) in theirs]
    known = {view.id for view in shared}
    of_both = {origin.view for origin in other.vocabulary.origins}.difference(known)
    origins = (View(origin.view, origin.word.plural.capitalize(), f"Work by {origin.word.one}.", "")
               for origin in base.vocabulary.origins if origin.view in of_both)  # fmt: skip
    return (*shared, *origins, *OWN)


def view_to_compare(base: Profile, other: Profile, name: str) -> View:
    """The view with an id; UsageError if there is none."""
    return view_named(base.vocabulary, views_to_compare(base, other), name)


def with_differences(view: View, query: Query) -> Answer:
    """A view of the displayed profile, with differences from its baseline if its source has the view too."""
    assert query.baseline is not None
    known = {each.id: each for each in views_to_compare(query.baseline.profile, query.profile)}
    if view.id in known:
        return Compared.of(query).answer(known[view.id])
    found = answer(view, replace(query, baseline=None))
    return replace(found, notes=(*found.notes, "The base is of another source: these are figures of this one alone."))


def _by_rank(workers: Sequence[Worker]) -> dict[Any, Worker]:
    keys = [(worker.rank, worker.stage) for worker in workers]
    return {key: worker for worker, key in zip(workers, keys, strict=True)
            if worker.rank is not None and keys.count(key) == 1}  # fmt: skip


def _counted_steps(query: Query, spans: Sequence[StepSpans]) -> CountedSteps:
    """The steps of all workers that count in figures."""
    nothing = np.zeros(0, np.int64)
    longest = max((own for own in spans if own.typical == own.typical), key=lambda own: own.typical, default=None)
    counted = [own for own in spans if own.counted.any()]
    return CountedSteps(
        numbers=np.unique(np.concatenate([nothing, *(own.number[own.counted] for own in counted)])),
        count=sum(int(own.counted.sum()) for own in counted) / max(len(counted), 1),
        typical=np.nan if longest is None else longest.typical,
        lengths=nothing if longest is None else longest.lengths,
        all_lengths=np.concatenate([nothing, *((own.end - own.start)[own.counted] for own in counted)]),
        guessed=query.steps.guessed,
    )


# answers of both sides as one

#: Name of a pair of workers, group of the other one (-1: everything), and the answers of both.
AnswerPair = tuple[str, int, Answer, Answer]
#: Judges the main number of a row: (key of the table, texts of the row, amount, kind) -> status.
Judge = Callable[[str, tuple[Any, ...], Amount, ValueKind], Status]
_Key = tuple[Any, ...]


def joined(parts: Sequence[AnswerPair], judge: Judge, renamed: tuple[str, Mapping[str, str]] = ("", {})) -> Answer:
    """A view's answers of both sides, of each pair of workers, as one: of each figure base, other and difference.

    ``judge`` gives the status of a row's main number. ``renamed``: the word of rows that are operations, and the joint
    names of operations by their own; applied to tables with that word. Several pairs have a column of their names.
    """
    facts = [list(_facts(base, other)) for *_, base, other in parts]
    tables = [] if len(parts) == 1 else list(_figures_by_worker([name for name, *_ in parts], facts))
    answers = [side for _, _, *both in parts for side in both]
    for table in dict.fromkeys(table.key for side in answers for table in side.tables):
        sides = [next((own for own in side.tables if own.key == table), None) for side in answers]
        found = _joined_tables([part[:2] for part in parts], sides, judge, renamed)
        tables += [] if found is None else [found]
    return Answer(
        tuple(facts[0]) if len(parts) == 1 else (), tuple(tables),
        notes=tuple(dict.fromkeys(note for side in answers for note in side.notes)),
        missing=tuple(dict.fromkeys(each for side in answers for each in side.missing)),
    )  # fmt: skip


def _facts(base: Answer, other: Answer) -> Iterator[Fact]:
    ours, theirs = ({fact.key: fact for fact in side.facts if fact.kind in _NUMBERS} for side in (base, other))
    for fact in {**ours, **theirs, **ours}.values():
        one, two = (side[fact.key].value if fact.key in side else None for side in (ours, theirs))
        for name, value in zip(_SIDES, (one, two, _difference(one, two)), strict=True):
            yield replace(fact, key=f"{name}_{fact.key}", title=f"{fact.title}, {name}", value=value, share=None,
                          about="", target=None)  # fmt: skip


def _figures_by_worker(names: Sequence[str], facts: Sequence[Sequence[Fact]]) -> Iterator[Table]:
    by_key = [{fact.key: fact for fact in of_pair} for of_pair in facts]
    known = {key: fact for of_pair in reversed(by_key) for key, fact in of_pair.items()}
    if known:
        columns = [Column(key, fact.title, fact.kind, fact.unit, drop_first=rank)
                   for rank, (key, fact) in enumerate(known.items())]  # fmt: skip
        rows = [(name, *(of_pair[key].value if key in of_pair else None for key in known))
                for name, of_pair in zip(names, by_key, strict=True)]  # fmt: skip
        yield Table.of_rows("workers", FIGURES, (WORKER, *columns), rows, word="worker")


def _difference(base: Any, other: Any) -> Any:
    return None if base is None or other is None else other - base


class _KeyedTable:
    """Columns of a side's table as plain values, and its rows by identifying texts and number among equal ones."""

    def __init__(self, table: Table | None, names: Sequence[Column], renamed: Mapping[str, str]) -> None:
        self.table = table
        self.columns = {} if table is None else {column.key: table.column(column.key) for column in table.columns}
        self.rows: dict[_Key, int] = {}
        number, first = Counter[_Key](), dict[_Key, int]()
        texts, counted = [self.columns.get(column.key) for column in names], self.columns.get("counted")
        for row in range(0 if table is None else len(table)):
            if counted is not None and not counted[row]:
                continue
            own = tuple(None if column is None else column[row] for column in texts)
            joint = tuple(renamed.get(text, text) if isinstance(text, str) else text for text in own)
            if joint != own and joint in number:
                self._merge(first[joint], row)
                continue
            number[joint] += 1
            first.setdefault(joint, row)
            key = *joint, number[joint]
            self.rows[key] = row

    def _merge(self, first: int, second: int) -> None:
        """Adds a row of an operation to another: maxima and minima are taken, means weighted by count."""
        assert self.table is not None
        count = next((self.columns[column.key] for column in self.table.columns if column.key in _COUNTS), None)
        one, two = (1, 1) if count is None else (count[first] or 0, count[second] or 0)
        for column in self.table.columns:
            values = self.columns[column.key]
            ours, theirs = values[first], values[second]
            if None in (ours, theirs):
                values[first] = None
            elif column.key.startswith(("mean_", "avg_")):
                values[first] = (ours * one + theirs * two) / max(one + two, 1)
            elif column.key.startswith(("max_", "min_")):
                values[first] = (max if column.key.startswith("max_") else min)(ours, theirs)
            elif column.kind in (*_SUMS, "share"):
                values[first] = ours + theirs

    def value(self, key: _Key, column: Column) -> Any:
        row = self.rows.get(key)
        if row is None:
            return 0 if column.kind in _SUMS else None
        return self.columns[column.key][row] if column.key in self.columns else None


def _joined_tables(
    workers: Sequence[tuple[str, int]],
    tables: Sequence[Table | None],
    judge: Judge,
    renamed: tuple[str, Mapping[str, str]],
) -> Table | None:
    """One table of those of base and other, pair by pair of workers; None: nothing in it is compared."""
    every = [table for table in tables if table is not None]
    # an empty table is the model only if no other has rows
    first = next(filter(len, every), every[0])
    columns = {column.key: column for table in every for column in table.columns}.values()
    texts = [column for column in columns if column.kind == "text"]
    names = [column for column in texts if (column.key == "worker" if first.ordered else column.is_key)]
    labels = [column for column in texts if column not in names and column.is_key] if first.ordered else []
    numbers = [column for column in columns if column.kind in _NUMBERS and column.key != "number"]
    if not numbers or not (names or first.ordered):
        return None
    sides = [_KeyedTable(table, names, renamed[1] if first.word == renamed[0] else {}) for table in tables]
    main = _main(numbers, sides)
    counts = next((column for column in numbers if column.key in _COUNTS), None)
    found: list[tuple[float, list[Any], tuple[Table | None, int | None, int]]] = []
    for (worker, group), *both in zip(workers, sides[::2], sides[1::2], strict=True):
        for row in dict.fromkeys((*both[0].rows, *both[1].rows)):
            side = both[0] if row in both[0].rows else both[1]
            cells = [*row[:-1], *(row[-1:] if first.ordered else ()), *(side.value(row, column) for column in labels)]
            for column in numbers:
                known = any(column.key in side.columns for side in both)
                one, two = (side.value(row, column) if known else None for side in both)
                cells += [one, two, _difference(one, two)]
            values = [side.value(row, main) for side in both]
            number = [side.value(row, counts) if counts is not None and row in side.rows else int(row in side.rows)
                      for side in both]  # fmt: skip
            amount = None if None in values else Amount("", values[0], values[1], number[0] or 0, number[1] or 0)
            cells.append(None if amount is None else judge(first.key, row[:-1], amount, main.kind))
            own = both[1].table, both[1].rows.get(row), group
            found.append((0 if amount is None else -abs(amount.delta), [worker, *cells], own))
    found.sort(key=lambda row: row[0])

    def target(row: int) -> Target | None:
        """Destination of the row in the other profile."""
        table, own, group = found[row][2]
        return None if table is None or own is None else of_group(table.target_of(own), group)

    three = (replace(column, key=f"{side}_{column.key}", bar=False, drop_first=0 if column is main else rank,
                     title=side.capitalize() if column is main else f"{column.title} {side}")
             for rank, column in enumerate(numbers, 1) for side in _SIDES)  # fmt: skip
    place = [Column("place", "No.", "count")] if first.ordered else []
    shown, skipped = [WORKER, *names, *place, *labels, *three, Column("status", "Status")], len(workers) == 1
    return Table.of_rows(
        first.key, first.title, shown[skipped:], [cells[skipped:] for _, cells, _ in found], word=first.word,
        shown=first.shown, notes=first.notes, target=target,
    )  # fmt: skip


def _main(numbers: Sequence[Column], sides: Sequence[_KeyedTable]) -> Column:
    by_key = {column.key: column for column in numbers}
    candidates = [by_key[key] for key in _MAIN if key in by_key]
    candidates += [column for column in numbers if column.bar and column.kind == "duration"]
    candidates += [column for column in numbers if column.kind == "duration"]
    known = (column for column in candidates if any(side.value(row, column) for side in sides for row in side.rows))
    return next(known, (candidates or list(numbers))[0])


# views that only a comparison has


def _origins(compared: Compared, view: View) -> Answer:
    """Work by what it came from, of sources that have no view of it in common."""
    parts: dict[Names, Amount] = {(each.name,): each for each in compared.comparison.origins.get(view.id, ())}
    if not parts:
        return Answer(missing=(Missing(f"{view.title} of most work of both sides are not recorded."),))
    return _amounts("by_name", "By name", [Column("name", "Name")], parts, "part")


def _waits(compared: Compared) -> Answer:
    waits, words = compared.comparison.waits(), compared.base.vocabulary
    names = [Column("unit", words.say("{Unit}")), Column("scope", words.say("{Scope}")), Column("name", "Wait")]
    return _amounts("waits", "Waits", names, waits, words.operation.one) if waits else Answer()


def _amounts(key: str, title: str, names: Sequence[Column], amounts: Mapping[Names, Amount], word: str) -> Answer:
    rows = [(*of_row, each.base, each.other, each.delta, each.base_count, each.other_count,
             each.other_count - each.base_count, each.status)
            for of_row, each in sorted(amounts.items(), key=lambda row: -abs(row[1].delta))]  # fmt: skip
    return Answer(tables=(Table.of_rows(key, title, (*names, *_AMOUNTS), rows, word=word),))


def _step_parts(workers: Sequence[StepSpans], span: tuple[int, int]) -> dict[tuple[str, int], tuple[str, int]]:
    """Name and length (ns) of each step, of the gap before each, and of the rest at the end, by kind and position.

    They add up to the span. The k-th steps of two sides have one key, whatever their labels.
    """
    start, end = span
    rows = sorted(
        row for own in workers
        for row in zip(own.start.tolist(), own.end.tolist(), own.number.tolist(), own.label, strict=True)
    )  # fmt: skip
    if not rows:
        return {("run", 0): ("run", end - start)}
    # the ranks of a run are in a step at about the same time
    steps: list[tuple[int, int, str]] = []
    place_of: dict[int, int] = {}
    for begin, stop, number, label in rows:
        place = place_of.get(number, -1)
        if place >= 0 and begin < steps[place][1]:
            steps[place] = (steps[place][0], max(steps[place][1], stop), label)
        else:
            place_of[number] = len(steps)
            steps.append((begin, stop, label))
    before, found = start, dict[tuple[str, int], tuple[str, int]]()
    for place, (begin, stop, label) in enumerate(steps):
        found["gap", place] = f"gap before {label}", max(begin - before, 0)
        found["step", place] = label, max(stop - max(begin, before), 0)
        before = max(before, stop)
    return {**found, ("rest", 0): ("after the last", end - before)}


def _alignment(compared: Compared) -> Answer:
    comparison, words = compared.comparison, compared.base.vocabulary
    both, known = comparison.joint, comparison.joint.base.launches.known
    launches = launch_rows(both, comparison.launches)
    facts = [Fact(key, key.capitalize(), int(launches[key].sum()))
             for key in ("matched", "added", "removed", "changed", "moved")]  # fmt: skip
    facts += [Fact(f"{side}_launches", f"Launches of the {side}", int(launches[f"{side}_count"].sum()))
              for side in ("base", "other")]  # fmt: skip
    launches = launches.with_columns({"name": (*both.kernels, UNKNOWN)}, name=launches["kernel"])
    scope, name = Column("scope", words.say("{Scope}")), Column("name", words.say("{Operation}"))
    base, other = ((work.kernel, work.label, work.length) for work in comparison.works)
    unmoved = np.zeros(len(comparison.events), np.bool_)
    events = paired_rows(comparison.events, unmoved, ("scope", "name", "us"), base, other)
    events = events.with_columns({"scope": (*both.kernels, UNKNOWN), "name": (*both.operations, UNKNOWN)})
    names = (scope, name) if known else (name,)
    return Answer(tuple(facts), (
        _counts_table("launches", "Launches", (replace(scope, key="name") if known else name,), launches, compared),
        _counts_table("operations", words.say("{Operations} within launches"), names, events, compared, operands=True),
    ))  # fmt: skip


def _counts_table(
    name: str, title: str, names: Sequence[Column], elements: Frame, compared: Compared, *, operands: bool = False
) -> Table:
    """Table of counts of launches or events (`paired_rows`) by text, rows by |difference| descending.

    ``operands``: with the changed operands of the first event whose operands changed.
    """
    comparison, texts = compared.comparison, {column.key: elements.texts[column.key] for column in names}
    known = () if comparison.is_of_host else next(iter(comparison.breakdowns.values()), ())
    statuses = {part.name: part.status for part in known} if len(names) == 1 else {}

    def first_changed(groups: GroupBy) -> list[int]:
        """Number of the event, of the base."""
        first = np.full(groups.count, -1)
        changed = np.flatnonzero(groups.frame["changed"])[::-1]
        first[groups.index[changed]] = groups.frame["index"][changed]
        return first.tolist()  # type: ignore[no-any-return]

    codes = {name: np.where(elements[name] < 0, len(texts[name]) - 1, elements[name]) for name in texts}
    figures = {**{name: text_of_key(name) for name in texts}, **{name: total(name) for name in _SUMMED}}
    if operands:
        figures["operands"] = first_changed
    columns = (*names, *_COLUMNS, *([Column("operands", "Operands, the first that changed")] if operands else []))
    found = []
    for row in pivot(elements.with_columns(None, **codes), tuple(texts), figures, ()):
        cells = dict(zip(figures, row, strict=True))
        amount = Amount("", cells["base_us"], cells["other_us"], cells["base_count"], cells["other_count"])
        cells["delta_us"], cells["delta_count"] = amount.delta, amount.other_count - amount.base_count
        cells["status"] = statuses.get(row[0]) or comparison.with_status(amount).status
        if operands:
            cells["operands"] = "" if cells["operands"] < 0 else _operand_changes(compared, cells["operands"])
        found.append(tuple(cells[column.key] for column in columns))
    at = len(names) + 10
    return Table.of_rows(name, title, columns, sorted(found, key=lambda row: (-abs(row[at]), row[0])))


def _operand_changes(compared: Compared, event: int) -> str:
    """Operands of an event of the base that its partner has otherwise."""
    comparison, sides = compared.comparison, []
    pairs = comparison.events
    partner = int(pairs.other[np.searchsorted(pairs.base, event)])
    for profile, work, number in zip(
        (comparison.base, comparison.other), comparison.works, (event, partner), strict=True
    ):
        lane, row = profile.lanes[int(work.lane[number])], int(work.row[number])
        operands = {}
        for column in profile.vocabulary.operands:
            if column in lane and profile.vocabulary.is_text(column):
                operands[column] = text_of(profile, lane, column, row)
            elif column in lane:
                value = lane.take(column, slice(row, row + 1))
                operands[column] = "-" if is_missing(value)[0] else f"{value[0]:,}"
        sides.append(operands)
    return ", ".join(
        f"{key} {before} -> {sides[1][key]}" for key, before in sides[0].items() if sides[1].get(key, before) != before
    )
