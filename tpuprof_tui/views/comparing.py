"""Views of two profiles compared: each view queried on both sides and joined, and views that only a comparison has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.alignment import Pairs
from tpuprof_tui.analysis.compare.comparison import Comparison
from tpuprof_tui.analysis.compare.noise import RUN_NOISE, UNKNOWN, Amount, Status, status_of
from tpuprof_tui.analysis.pivot import key, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.model import Profile, Role, is_missing
from tpuprof_tui.model.view import View
from tpuprof_tui.model.worker import Worker

from .answer import Answer, Column, Fact, Kind, Table
from .joining import join_sides
from .registry import answer, view_named, views_of
from .report import extent_of, of_worker, workers_of
from .steps import StepSpans, step_spans
from .workers import WORKER

#: Views that exist only for comparisons.
OWN: Final = (
    View("waits", "Waits", "Waits of each {unit}, by what they wait in.", ""),
    View("alignment", "Alignment", "Which launches and {events} belong together, were added, removed or changed.", ""),
)

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
            one, two = (
                {
                    key: each
                    for each, key in zip(side, keys, strict=True)
                    if each.rank is not None and keys.count(key) == 1
                }
                for side, keys in ((side, [(each.rank, each.stage) for each in side]) for side in (ours, theirs))
            )
            found += ((one[key], two[key]) for key in one if key in two)
            paired = [each for pair in found for each in pair]
            ours, theirs = (
                [each for each in side if not any(each is other for other in paired)] for side in (ours, theirs)
            )
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
        steps: Any = None
        if self.base.step is None and not self.base.full_filter and not self.other.full_filter:
            steps = tuple(
                np.concatenate([np.zeros(0, np.int64), *((own.end - own.start)[own.counted] for own in spans)])
                for spans in self.steps
            )
        return Comparison(self.base.filtered_session.profile, self.other.filtered_session.profile, pairs=groups,  # type: ignore[arg-type]
                          run_noise=self.run_noise, steps=steps)  # fmt: skip

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
        """Work by view; if the device did no work, host time from the source's own views."""
        comparison = self.comparison
        if comparison.work.base or comparison.work.other:
            return comparison.breakdowns
        found = {}
        for view, table, column in self.base.vocabulary.host_breakdowns:
            known = self.answer(view_to_compare(self.base.profile, view))
            rows = next((each for each in known.tables if each.key == table), None)
            if rows is None:
                continue
            keys = {each.key: place for place, each in enumerate(rows.columns)}
            found[view] = sorted(
                (Amount(str(row[keys["name"]]), row[keys[f"base_{column}"]], row[keys[f"other_{column}"]],
                        row[keys["base_calls"]], row[keys["other_calls"]]) for row in rows.rows()),
                key=lambda each: -abs(each.delta),
            )  # fmt: skip
            found[view] = [comparison.with_status(each) for each in found[view]]
        return found or comparison.breakdowns

    @cached_property
    def work(self) -> Amount:
        """Total work."""
        parts = next(iter(self.breakdowns.values()), [])
        sums = [sum(getattr(each, key) for each in parts) for key in ("base", "other", "base_count", "other_count")]
        return self.comparison.with_status(Amount("", *sums))

    # -- views

    def answer(self, view: View) -> Answer:
        """The answer of a view, joined from both sides."""
        if view.id == "alignment":
            return _alignment(self)
        parts = []
        if view.all_workers or view.id == "waits":
            answers = [_waits(query) if view.id == "waits" else answer(view, query) for query in self._queries]
            return join_sides(answers[0], answers[1], self._judge(view), self._renamed)
        for ours, theirs in self.pairs:
            sides = [Answer() if worker is None else answer(view, of_worker(query, worker))
                     for query, worker in zip(self._queries, (ours, theirs), strict=True)]  # fmt: skip
            parts.append(((ours or theirs), join_sides(sides[0], sides[1], self._judge(view), self._renamed)))
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
    """Raises UsageError, naming both, if two profiles are of different sources or chips and so not comparable."""
    ours, theirs = base.vocabulary, other.vocabulary
    if ours.source != theirs.source:
        raise UsageError(f"{base.path} and {other.path} are of different sources: {ours.title} and {theirs.title}.",
                         "Only profiles of one source can be compared.")  # fmt: skip
    if ours.one_chip and base.device.chip != other.device.chip:
        raise UsageError(f"{base.path} is of {base.device.chip}, {other.path} of {other.device.chip}.",
                         "Their commands cannot be compared.")  # fmt: skip


def views_to_compare(profile: Profile) -> tuple[View, ...]:
    """Views of a source that can be compared, and those that only a comparison has."""
    return (*views_of(profile.vocabulary), *OWN)


def view_to_compare(profile: Profile, name: str) -> View:
    """The view with an id; UsageError if there is none."""
    return view_named(profile.vocabulary, views_to_compare(profile), name)


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
        yield Table.of_rows("workers", "Workers", (WORKER, *columns), rows, word="worker")


# views that only a comparison has


def _waits(query: Query) -> Answer:
    profile, words = query.profile, query.vocabulary
    lanes = [number for number, lane in enumerate(profile.lanes) if not lane.on_host]
    known = [column for column in ("kernel", "name") if column in words.schema]
    waits = query.events({"lane", "start", "end", *known}, lanes, role=Role.WAIT)
    if not len(waits):
        return Answer()
    units = [profile.groups.title(profile.unit_of(lane)) or profile.title_of(lane) for lane in profile.lanes]
    waits = waits.with_columns(
        {"unit": units},
        unit=waits["lane"],
        took=waits["end"] - waits["start"],
        **{column: np.full(len(waits), -1) for column in ("kernel", "name") if column not in known},
    )
    waits = waits.with_texts("unit").with_texts("kernel", missing=UNKNOWN).with_texts("name", missing=UNKNOWN)
    columns = (Column("unit", words.say("{Unit}")), Column("scope", words.say("{Scope}")), Column("name", "Wait"),
               Column("total_us", "Waited", "duration"), Column("count", "Count", "count"))  # fmt: skip
    figures = {"unit": key("unit"), "kernel": key("kernel"), "name": key("name"), "ns": total("took"), "count": rows}
    told = pivot(waits, ("unit", "kernel", "name"), figures, ("-ns",))
    return Answer(tables=(Table.of_rows("waits", "Waits", columns, told, word=words.operation.one),))


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
    comparison = compared.comparison
    both, launches = comparison.joint, comparison.launches
    base, other = both.base.launches, both.other.launches
    real = base.unit[launches.base] >= 0
    pairs = Pairs(launches.base[real], launches.other[real], launches.changed[real])
    removed, added = launches.unpaired(len(base), len(other))
    removed, added = removed[base.unit[removed] >= 0], added[other.unit[added] >= 0]
    moved = base.unit[pairs.base] != other.unit[pairs.other]
    known, known_other = base.unit >= 0, other.unit >= 0
    counts = (("matched", len(pairs)), ("added", len(added)), ("removed", len(removed)),
              ("changed", int(pairs.changed.sum())), ("moved", int(moved.sum())))  # fmt: skip
    facts = [Fact(key, key.capitalize(), value) for key, value in counts]
    facts += [
        Fact("base_launches", "Launches of the base", int(known.sum())),
        Fact("other_launches", "Launches of the other", int(known_other.sum())),
    ]
    codes = {
        "base_count": base.kernel[known], "other_count": other.kernel[known_other],
        "matched": base.kernel[pairs.base], "changed": base.kernel[pairs.base[pairs.changed]],
        "moved": base.kernel[pairs.base[moved]], "added": other.kernel[added], "removed": base.kernel[removed],
    }  # fmt: skip
    work = base.work[known], other.work[known_other]
    words, texts = compared.base.vocabulary, [(name,) for name in (*both.kernels, UNKNOWN)]
    name = Column("name", words.say("{Scope}") if base.known else words.say("{Operation}"))
    table = _counts_table("launches", "Launches", [name], texts, codes, work, comparison)
    return Answer(tuple(facts), (table, *_operations(compared)))


def _counts_table(
    key: str, title: str, names: list[Column], texts: Sequence[tuple[str, ...]], codes: Mapping[str, Any],
    work: tuple[Any, Any], comparison: Comparison, examples: Mapping[int, str] | None = None,
) -> Table:  # fmt: skip
    """Table of counts by text, rows by |difference| descending; code -1 counts in the last text's row.

    ``codes``: for each count column the codes of what it counts; ``work``: ns of each of base's and other's elements;
    ``examples``: changed operands by row.
    """
    size = len(texts)
    sums = {}
    for column, weights in (*((column, None) for column in codes), ("base", work[0]), ("other", work[1])):
        places = codes[column if weights is None else f"{column}_count"]
        sums[column] = np.bincount(np.where(places < 0, size - 1, places), weights=weights, minlength=size)
    known = {part.name: part.status for part in next(iter(comparison.breakdowns.values()), [])}
    rows = []
    for place in np.flatnonzero(sums["base_count"] + sums["other_count"]).tolist():
        one = {column: int(values[place]) for column, values in sums.items()}
        amount = Amount("", one["base"], one["other"], one["base_count"], one["other_count"])
        status = known.get(texts[place][0]) if len(names) == 1 else None
        rows.append((*texts[place], one["base_count"], one["other_count"], one["other_count"] - one["base_count"],
                     *(one.get(column, 0) for column in ("matched", "changed", "moved", "added", "removed")),
                     one["base"], one["other"], amount.delta, status or comparison.with_status(amount).status,
                     *(() if examples is None else (examples.get(place, ""),))))  # fmt: skip
    at = len(names) + 10
    rows.sort(key=lambda row: (-abs(row[at]), row[0]))
    more = () if examples is None else (Column("operands", "Operands, the first that changed"),)
    return Table.of_rows(key, title, (*names, *_COLUMNS, *more), rows)


def _operations(compared: Compared) -> tuple[Table, ...]:
    comparison, words = compared.comparison, compared.base.vocabulary
    both, pairs = comparison.joint, comparison.events
    base, other = both.base, both.other
    removed, added = pairs.unpaired(len(base), len(other))
    operations, kernels = (*both.operations, UNKNOWN), (*both.kernels, UNKNOWN)
    size, whole = len(operations), base.launches.known
    # kernel and operation as one integer; missing ones are numbered last
    keys = [np.where(work.kernel < 0, len(kernels) - 1, work.kernel) * (size if whole else 0)
            + np.where(work.label < 0, size - 1, work.label) for work in (base, other)]  # fmt: skip
    known, which = np.unique(np.concatenate(keys), return_inverse=True)
    ours, theirs = np.split(which.reshape(-1), [len(base)])
    changed = np.flatnonzero(pairs.changed)
    _, first = np.unique(ours[pairs.base[changed]], return_index=True)
    examples = {int(ours[pairs.base[at]]): _operand_changes(compared, int(pairs.base[at]), int(pairs.other[at]))
                for at in changed[first].tolist()}  # fmt: skip
    texts = [(*((kernels[key // size],) if whole else ()), operations[key % size]) for key in known.tolist()]
    codes = {
        "base_count": ours, "other_count": theirs, "matched": ours[pairs.base],
        "changed": ours[pairs.base[pairs.changed]], "added": theirs[added], "removed": ours[removed],
    }  # fmt: skip
    names = [*([Column("scope", words.say("{Scope}"))] if whole else []), Column("name", words.say("{Operation}"))]
    return (_counts_table("operations", words.say("{Operations} within launches"), names, texts, codes,
                  (base.length, other.length), comparison, examples),)  # fmt: skip


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
    """A view of the displayed profile, with differences from its baseline."""
    return Compared.of(query).answer(view)


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
