"""Views of two profiles compared: each view queried on both sides and joined, and views that only a comparison has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.amounts import Comparison, CountedSteps
from tpuprof_tui.analysis.compare.matching import launch_rows, paired_rows
from tpuprof_tui.analysis.compare.noise import RUN_NOISE, UNKNOWN, Amount, Status, status_of
from tpuprof_tui.analysis.compare.verdict import Verdict
from tpuprof_tui.analysis.pivot import Frame, Groups, key, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.steps.step_detection import KEY as STEP
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Profile, is_missing
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import NAMES

from .answer import Answer, Column, Fact, Kind, Missing, Table
from .joining import join_sides
from .registry import answer, view_named, views_of
from .report import extent_of, of_worker, workers_of
from .steps import StepSpans, step_spans
from .workers import FIGURES, WORKER

#: Views that exist only for comparisons; one with the id of a view of the source replaces it.
OWN: Final = (
    View("waits", "Waits", "Waits of each {unit}, by what they wait in.", ""),
    View("alignment", "Alignment", "Which launches and {events} belong together, were added, removed or changed.", ""),
)
#: Columns of an amount.
_AMOUNTS: Final = (
    Column("base_total_us", "Base", "duration"), Column("other_total_us", "Other", "duration"),
    Column("delta_total_us", "Delta", "duration"), Column("base_count", "Count base", "count", spare=2),
    Column("other_count", "Count other", "count", spare=2), Column("delta_count", "Count delta", "count", spare=2),
    Column("status", "Status"),
)  # fmt: skip
#: Figures of `paired_rows` that are summed.
_SUMS: Final = ("base_count", "other_count", "matched", "changed", "moved", "added", "removed", "base_ns", "other_ns")
#: Columns of the alignment tables, of launches and of events within them.
_COLUMNS: Final = (
    Column("base_count", "Base count", "count", spare=3), Column("other_count", "Other count", "count", spare=3),
    Column("delta_count", "More", "count", spare=4), Column("matched", "Matched", "count", spare=2),
    Column("changed", "Changed", "count"), Column("moved", "Moved", "count", spare=5),
    Column("added", "Added", "count"), Column("removed", "Removed", "count"),
    Column("base_us", "Base", "duration", spare=1), Column("other_us", "Other", "duration", spare=1),
    Column("delta_us", "Delta", "duration"), Column("status", "Status"),
)  # fmt: skip


class Compared(Struct, frozen=True, eq=False, dict=True):
    """Two profiles and the queries that are compared; ``run_noise``: variation between runs, as a share."""

    base: Query
    other: Query
    run_noise: float = RUN_NOISE

    def __post_init__(self) -> None:
        refuse_unlike(self.base.profile, self.other.profile)
        if not self.comparison.alike and not self.comparison.origins:
            names = " and ".join(f"{query.profile.path} ({query.vocabulary.title})" for query in self._queries)
            raise UsageError(f"{names} have nothing in common.", "It is not recorded which operators launched most of "
                             "the device's work on both sides.")  # fmt: skip

    # -- workers

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
        both = min(len(ours), len(theirs))
        found += zip(ours[:both], theirs[:both], strict=True)
        return [*found, *((worker, None) for worker in ours[both:]), *((None, worker) for worker in theirs[both:])]

    @classmethod
    def of(cls, query: Query) -> Compared:
        """Compares a query with its baseline; cached by scope and filter."""
        base = query.baseline
        assert base is not None
        alone = replace(query, baseline=None)
        which = (query.scope, query.full_filter, base.scope)
        return query.cache.get("comparison", lambda: cls(base, alone), *which, limit=4)

    # -- sums

    @cached_property
    def comparison(self) -> Comparison:
        """Sums of work and alignment."""
        groups = [tuple(-2 if worker is None else worker.group for worker in pair) for pair in self.pairs]
        steps = None
        if self.base.step is None and not self.base.full_filter and not self.other.full_filter:
            ours, theirs = map(_counted_steps, self._queries, self.steps)
            steps = ours, theirs
        return Comparison(self.base, self.other, pairs=groups, run_noise=self.run_noise, steps=steps)  # type: ignore[arg-type]

    @cached_property
    def steps(self) -> tuple[list[StepSpans], list[StepSpans]]:
        """Steps of each side, by worker or group."""
        return step_spans(self.base), step_spans(self.other)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First start and last end of each side, ns."""
        return _span(self.base, self.workers[0]), _span(self.other, self.workers[1])

    @property
    def _queries(self) -> tuple[Query, Query]:
        return self.base, self.other

    @cached_property
    def total(self) -> Amount:
        """The total: first start to last end of both sides."""
        (start, end), (begin, stop) = self.spans
        return self.comparison.total(end - start, stop - begin)

    @cached_property
    def breakdowns(self) -> dict[str, list[Amount]]:
        """Work by view; if the device did no work, host time by name."""
        return self._host_amounts() or self.comparison.breakdowns

    @cached_property
    def step_parts(self) -> dict[str, list[Amount]]:
        """As `contributors`, of a step; empty if not both sides have steps."""
        per_step = self.comparison.stepped
        return self._host_amounts(per_step=True) or self.comparison.per_step if per_step else {}

    def _host_amounts(self, *, per_step: bool = False) -> dict[str, list[Amount]]:
        """Times of host events by name, by |difference| descending; empty if a device did work."""
        found: dict[str, list[Amount]] = {}
        if self.comparison.work.base or self.comparison.work.other:
            return found
        steps = self.comparison.steps if per_step and self.comparison.steps else (None, None)
        for view, column in self.base.vocabulary.host_breakdowns:
            ours, theirs = (_host_sums(query, column, own) for query, own in zip(self._queries, steps, strict=True))
            amounts = []
            for name in dict.fromkeys((*ours, *theirs)):
                (base, count), (other, calls) = (side.get(name, (0, 0)) for side in (ours, theirs))
                amounts.append(self.comparison.with_status(Amount(name, base, other, count, calls)))
            if amounts:
                found[view] = sorted(amounts, key=lambda each: -abs(each.delta))
        return found

    @property
    def contributors(self) -> dict[str, list[Amount]]:
        """All parts of the sum of work, by view: what it came from, then what it is."""
        device = self.breakdowns is self.comparison.breakdowns
        return {**(self.comparison.origins if device else {}), **self.breakdowns}

    @cached_property
    def work(self) -> Amount:
        """Total work."""
        return self._sum_of(self.contributors)

    @cached_property
    def step_work(self) -> Amount:
        """Work of a step."""
        return self._sum_of(self.step_parts)

    def _sum_of(self, by_view: Mapping[str, Sequence[Amount]]) -> Amount:
        parts = next(iter(by_view.values()), ())
        sums = [sum(getattr(each, key) for each in parts) for key in ("base", "other", "base_count", "other_count")]
        return self.comparison.with_status(Amount("", *sums))

    @cached_property
    def verdict(self) -> Verdict:
        """What became of the base, and why."""
        parts = self.step_parts or self.contributors
        return Verdict(self.comparison, self.total, self.comparison.step(self.total), parts, self._more_steps())

    def _more_steps(self) -> str:
        """Another number of marked steps: then all sums differ."""
        if self.base.step is not None:
            return ""
        sides = [query.steps for query in self._queries]
        counts = [len(set(side.steps.number.tolist())) for side in sides]
        marked = all(count and not side.guessed for count, side in zip(counts, sides, strict=True))
        if not marked or counts[0] == counts[1]:
            return ""
        word = sides[0].word
        more = f"{word.of(abs(counts[1] - counts[0]))} {'more' if counts[1] > counts[0] else 'fewer'}"
        if self.comparison.stepped:
            return f"The other has {more} ({counts[0]:,} -> {counts[1]:,})."
        typical = [max((own.typical for own in spans if own.typical == own.typical), default=None)
                   for spans in self.steps]  # fmt: skip
        lengths = " -> ".join("-" if length is None else time_text(round(length)) for length in typical)
        return (f"The other has {more} ({counts[0]:,} -> {counts[1]:,}); {word.with_article} takes {lengths}. "
                "--step N compares one.")  # fmt: skip

    # -- views

    def answer(self, view: View) -> Answer:
        """The answer of a view, joined from both sides."""
        if view.id == "alignment":
            return _alignment(self)
        if view.id == "waits":
            return _waits(self)
        if not view.compute:
            return _origins(self, view)
        if view.all_workers:
            ours, theirs = (answer(view, query) for query in self._queries)
            return join_sides(ours, theirs, self._judge(view), self._renamed)
        parts = []
        for one, two in self.pairs:
            sides = [Answer() if worker is None else answer(view, of_worker(query, worker))
                     for query, worker in zip(self._queries, (one, two), strict=True)]  # fmt: skip
            parts.append(((one or two), join_sides(sides[0], sides[1], self._judge(view), self._renamed)))
        found = parts[0][1] if len(parts) == 1 else _stack_answers([(each.key, told) for each, told in parts if each])
        if view.id == "steps":
            found = replace(found, tables=(*found.tables, self._steps_and_gaps()))
        return found

    @property
    def _renamed(self) -> tuple[str, Mapping[str, str]]:
        return self.base.vocabulary.operation.one, self.comparison.joint.renamed

    def _judge(self, view: View) -> Any:
        known = {part.name: part.status for part in self.comparison.breakdowns.get(view.id, ())}

        def judge(table: str, names: tuple[Any, ...], amount: Amount, kind: Kind) -> Status:
            if len(names) == 1 and names[0] in known and table == "by_name" and kind == "duration":
                return known[names[0]]
            if kind == "duration":
                return self.comparison.with_status(amount).status
            noise = (
                self.comparison.noise if kind not in ("count", "bytes") else replace(self.comparison.noise, between=0.0)
            )
            exact = replace(amount, low=float(amount.delta), high=float(amount.delta))
            return status_of(exact if kind in ("count", "bytes") else amount, noise, self.comparison.lost)

        return judge

    def _steps_and_gaps(self) -> Table:
        """Table of steps and of the gaps between them, which add up to the total."""
        sides = [_step_parts([] if query.step is not None else steps, span)
                 for query, steps, span in zip(self._queries, self.steps, self.spans, strict=True)]  # fmt: skip
        rows = []
        for place in dict.fromkeys((*sides[0], *sides[1])):
            (_, ours), (_, theirs) = (side.get(place, ("", 0)) for side in sides)
            name = next(side[place][0] for side in sides if place in side)
            amount = Amount(name, ours, theirs, int(place in sides[0]), int(place in sides[1]))
            rows.append((name, ours, theirs, theirs - ours, self.comparison.with_status(amount).status))
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


def _host_sums(query: Query, column: str, steps: CountedSteps | None) -> dict[str, tuple[int, float]]:
    """Sum of a time of host events, ns, and their number, by name; ``steps``: a step of those that count."""
    lanes = [number for number, lane in enumerate(query.profile.lanes) if lane.on_host and column in lane]
    events = query.events(("name", column, *(() if steps is None else (STEP,))), lanes)
    events = events.take(~is_missing(events[column]))
    if steps is not None:
        events = events.take(np.isin(events[STEP], steps.numbers))
    if not len(events):
        return {}
    count = 1 if steps is None else steps.count
    figures = {"name": key("name", UNKNOWN), "ns": total(column), "count": rows}
    return {name: (round(ns / count), calls / count) for name, ns, calls in pivot(events, ("name",), figures, ())}


def _span(query: Query, workers: Sequence[Worker]) -> tuple[int, int]:
    if query.step is not None or query.full_filter or query.range is not None:
        return query.window
    return extent_of(query.profile, workers)


def _stack_answers(parts: Sequence[tuple[str, Answer]]) -> Answer:
    tables: dict[str, list[tuple[str, Table]]] = {}
    for worker, result in parts:
        for table in result.tables:
            tables.setdefault(table.key, []).append((worker, table))
    return Answer(
        tables=(*_figures_by_worker(parts), *map(_stack_tables, tables.values())),
        notes=tuple(dict.fromkeys(note for _, told in parts for note in told.notes)),
        missing=tuple(dict.fromkeys(each for _, told in parts for each in told.missing)),
    )


def _stack_tables(parts: Sequence[tuple[str, Table]]) -> Table:
    first = parts[0][1]
    columns = {column.key: column for _, table in parts for column in table.columns}
    status = columns.pop("status", None)
    ordered = [*columns.values(), *([] if status is None else [status])]
    indexes = [[table.column_index(column.key) for column in ordered] for _, table in parts]
    rows: list[tuple[Any, ...]] = [
        (key, *(row[index] if index >= 0 else None for index in of_columns))
        for (key, table), of_columns in zip(parts, indexes, strict=True)
        for row in table.rows()
    ]
    # the main number is the one that narrow tables keep
    delta = next((n for n, each in enumerate(ordered, 1) if each.key.startswith("delta_") and not each.spare), None)
    if delta is not None:
        rows.sort(key=lambda row: -abs(row[delta] or 0))
    found = Table.of_rows(first.key, first.title, (WORKER, *ordered), rows)
    return replace(found, word=first.word, notes=first.notes)


def _figures_by_worker(parts: Sequence[tuple[str, Answer]]) -> Iterator[Table]:
    facts = [{fact.key: fact for fact in told.facts} for _, told in parts]
    known = {key: fact for each in reversed(facts) for key, fact in each.items()}
    if known:
        columns = [Column(key, fact.title, fact.kind, fact.unit, spare=rank) for rank, (key, fact) in
                   enumerate(known.items())]  # fmt: skip
        rows = [(key, *(each[column.key].value if column.key in each else None for column in columns))
                for (key, _), each in zip(parts, facts, strict=True)]  # fmt: skip
        yield Table.of_rows("workers", FIGURES, (WORKER, *columns), rows, word="worker")


# views that only a comparison has


def _origins(compared: Compared, view: View) -> Answer:
    """Work by what it came from, of sources that have no view of it in common."""
    parts = compared.comparison.origins.get(view.id, ())
    if not parts:
        return Answer(missing=(Missing(f"{view.title} of most work of both sides are not recorded."),))
    columns = (Column("name", "Name"), *_AMOUNTS)
    found = [(each.name, *_amount_cells(each)) for each in parts]
    return Answer(tables=(Table.of_rows("by_name", "By name", columns, found, word="part"),))


def _amount_cells(amount: Amount) -> tuple[Any, ...]:
    """Values of ``_AMOUNTS``."""
    count = amount.other_count - amount.base_count
    return (amount.base, amount.other, amount.delta, amount.base_count, amount.other_count, count, amount.status)


def _waits(compared: Compared) -> Answer:
    waits = compared.verdict.waits
    if not waits:
        return Answer()
    words = compared.base.vocabulary
    columns = (Column("unit", words.say("{Unit}")), Column("scope", words.say("{Scope}")), Column("name", "Wait"),
               *_AMOUNTS)  # fmt: skip
    ordered = sorted(waits.items(), key=lambda wait: -abs(wait[1].delta))
    found = [(*names, *_amount_cells(each)) for names, each in ordered]
    return Answer(tables=(Table.of_rows("waits", "Waits", columns, found, word=words.operation.one),))


def _step_parts(workers: Sequence[StepSpans], span: tuple[int, int]) -> dict[tuple[str, int], tuple[str, int]]:
    """Name and length (ns) of each step, of the gap before each, and of the rest at the end, by kind and position.

    They add up to the span. The k-th steps of two sides have one key, whatever their labels.
    """
    start, end = span
    rows = sorted(
        (begin, stop, number, label)
        for own in workers
        for begin, stop, number, label in zip(
            own.start.tolist(), own.end.tolist(), own.number.tolist(), own.label, strict=True
        )
    )
    if not rows:
        return {("run", 0): ("run", end - start)}
    # the ranks of a run are in a step at about the same time
    steps: list[tuple[int, int, str]] = []
    latest: dict[int, int] = {}
    for begin, stop, number, label in rows:
        place = latest.get(number)
        if place is not None and begin < steps[place][1]:
            steps[place] = (steps[place][0], max(steps[place][1], stop), label)
        else:
            latest[number] = len(steps)
            steps.append((begin, stop, label))
    before, found = start, dict[tuple[str, int], tuple[str, int]]()
    for place, (begin, stop, label) in enumerate(steps):
        found["gap", place] = f"gap before {label}", max(begin - before, 0)
        found["step", place] = label, max(stop - max(begin, before), 0)
        before = max(before, stop)
    return {**found, ("rest", 0): ("after the last", end - before)}


def _alignment(compared: Compared) -> Answer:
    comparison, words = compared.comparison, compared.base.vocabulary
    both = comparison.joint
    launches = launch_rows(both, comparison.launches)
    facts = [Fact(key, key.capitalize(), int(launches[key].sum()))
             for key in ("matched", "added", "removed", "changed", "moved")]  # fmt: skip
    facts += [Fact(f"{side}_launches", f"Launches of the {side}", int(launches[f"{side}_count"].sum()))
              for side in ("base", "other")]  # fmt: skip
    name = Column("name", words.say("{Scope}") if both.base.launches.known else words.say("{Operation}"))
    launches = launches.with_columns({"name": (*both.kernels, UNKNOWN)}, name=launches["kernel"])
    tables = (_counts_table("launches", "Launches", (name,), launches, comparison), _operations(compared))
    return Answer(tuple(facts), tables)


def _counts_table(
    name: str, title: str, names: Sequence[Column], elements: Frame, comparison: Comparison,
    example: Callable[[Frame, int], str] | None = None,
) -> Table:  # fmt: skip
    """Table of counts of launches or events (`paired_rows`) by text, rows by |difference| descending.

    ``example``: gives the changed operands of a row of ``elements``.
    """
    texts = {column.key: elements.texts[column.key] for column in names}
    last = {key: np.where(elements[key] < 0, len(texts[key]) - 1, elements[key]) for key in texts}
    known = {part.name: part.status for part in next(iter(comparison.breakdowns.values()), [])}

    def first_changed(groups: Groups) -> list[int]:
        found = np.full(groups.count, -1)
        changed = np.flatnonzero(groups.frame["changed"])[::-1]
        found[groups.index[changed]] = changed
        return found.tolist()  # type: ignore[no-any-return]

    figures = {
        **{column: key(column) for column in texts},
        **{column: total(column) for column in _SUMS},
        "example": first_changed,
    }
    found = []
    for row in pivot(elements.with_columns(None, **last), tuple(texts), figures, ()):
        of_row = dict(zip(figures, row, strict=True))
        base, other, ours, theirs = (of_row[key] for key in ("base_count", "other_count", "base_ns", "other_ns"))
        amount = Amount("", ours, theirs, base, other)
        status = known.get(row[0]) if len(names) == 1 else None
        found.append((
            *row[: len(names)], base, other, other - base,
            *(of_row[key] for key in ("matched", "changed", "moved", "added", "removed")), ours, theirs, amount.delta,
            status or comparison.with_status(amount).status,
            *(() if example is None else (example(elements, of_row["example"]) if of_row["example"] >= 0 else "",)),
        ))  # fmt: skip
    at = len(names) + 10
    found.sort(key=lambda row: (-abs(row[at]), row[0]))
    more = () if example is None else (Column("operands", "Operands, the first that changed"),)
    return Table.of_rows(name, title, (*names, *_COLUMNS, *more), found)


def _operations(compared: Compared) -> Table:
    comparison, words = compared.comparison, compared.base.vocabulary
    both, pairs = comparison.joint, comparison.events
    sides = ({"scope": work.kernel, "name": work.label, "ns": work.length} for work in (both.base, both.other))
    events = paired_rows(pairs, np.zeros(len(pairs), np.bool_), *sides)
    events = events.with_columns({"scope": (*both.kernels, UNKNOWN), "name": (*both.operations, UNKNOWN)})
    partner = np.full(len(both.base), -1, np.int64)
    partner[pairs.base] = pairs.other

    def example(events: Frame, row: int) -> str:
        index = int(events["index"][row])
        return _operand_changes(compared, index, int(partner[index]))

    scope = (Column("scope", words.say("{Scope}")),) if both.base.launches.known else ()
    names = (*scope, Column("name", words.say("{Operation}")))
    title = words.say("{Operations} within launches")
    return _counts_table("operations", title, names, events, comparison, example)


def _operand_changes(compared: Compared, one: int, two: int) -> str:
    both, sides = compared.comparison.joint, []
    for query, work, event in ((compared.base, both.base, one), (compared.other, both.other, two)):
        profile, operands = query.filtered_session.profile, {}
        lane, row = profile.lanes[int(work.lane[event])], int(work.row[event])
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


# on the screen


def with_differences(view: View, query: Query) -> Answer:
    """A view of the displayed profile, with differences from its baseline if its source has the view too."""
    assert query.baseline is not None
    known = {each.id: each for each in views_to_compare(query.baseline.profile, query.profile)}
    if view.id in known:
        return Compared.of(query).answer(known[view.id])
    found = answer(view, replace(query, baseline=None))
    return replace(found, notes=(*found.notes, "The base is of another source: these are figures of this one alone."))


def verdict(query: Query) -> Answer:
    """The verdict of the comparison with the baseline; empty without a baseline."""
    if query.baseline is None:
        return Answer()
    from .diff import verdict_answer

    found = verdict_answer(Compared.of(query))
    if query.scope.everything:
        return found
    note = query.vocabulary.say("These are figures of all {units}: a comparison does not follow the scope.")
    return replace(found, notes=(*found.notes, note))
