"""Two profiles compared, view by view: the same queries on both sides, and what only a comparison tells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.compare.alignment import Pairs
from tpuprof_tui.analysis.compare.comparison import Comparison
from tpuprof_tui.analysis.compare.noise import RUN_NOISE, UNKNOWN, Amount, Noise, Status, status_of
from tpuprof_tui.analysis.compare.work import Work
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.model import Lane, Profile, Role, is_missing
from tpuprof_tui.model.view import View

from .answer import Answer, Column, Fact, Kind, Table
from .joining import Renamed, joined
from .query import Query
from .registry import answer, views_of
from .report import Worker, worker_record, workers_of

#: Views that only a comparison has.
OWN: Final = (
    View("waits", "Waits", "Waits of each {unit}, by what they wait in.", ""),
    View("alignment", "Alignment", "Which launches and {events} belong together, were added, removed or changed.", ""),
)
_NO_ANSWER: Final = Answer()


class Compared(Struct, frozen=True, eq=False, dict=True):
    """Two profiles and the part of them that is compared.

    Attributes:
        base, other: What is asked of each side.
        run_noise: How far runs of the same lie apart, a share.
    """

    base: Query
    other: Query
    run_noise: float = RUN_NOISE

    def __post_init__(self) -> None:
        refuse_unlike(self.base.profile, self.other.profile)

    # -- workers

    @cached_property
    def workers(self) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
        """Those of each side."""
        return workers_of(self.base.profile), workers_of(self.other.profile)

    @cached_property
    def pairs(self) -> list[tuple[Worker | None, Worker | None]]:
        """Workers that belong together: of one rank, else in their order."""
        ours, theirs = map(list, self.workers)
        found: list[tuple[Worker | None, Worker | None]] = []
        if len(ours) > 1 or len(theirs) > 1:
            one, two = _by_rank(ours), _by_rank(theirs)
            found += ((one[rank], two[rank]) for rank in one if rank in two)
            ours = [each for each in ours if one.get(each.rank) is not each or each.rank not in two]
            theirs = [each for each in theirs if two.get(each.rank) is not each or each.rank not in one]
        both = min(len(ours), len(theirs))
        found += zip(ours[:both], theirs[:both], strict=True)
        return [*found, *((worker, None) for worker in ours[both:]), *((None, worker) for worker in theirs[both:])]

    @classmethod
    def of(cls, query: Query) -> Compared:
        """A query and its baseline; kept with what it is about."""
        base = query.baseline
        assert base is not None
        alone = replace(query, baseline=None)
        which = (query.scope, query.passes, base.scope)
        return query.derived.get("comparison", lambda: cls(base, alone), *which, most=4)

    # -- sums

    @cached_property
    def comparison(self) -> Comparison:
        """Sums and what belongs together."""
        groups = [tuple(-2 if worker is None else worker.scope.group for worker in pair) for pair in self.pairs]
        return Comparison(self.base.shown.profile, self.other.shown.profile, pairs=groups,  # type: ignore[arg-type]
                          run_noise=self.run_noise, steps=self._step_lengths())  # fmt: skip

    def _step_lengths(self) -> tuple[Any, Any] | None:
        """Lengths of the usual steps of each side, ns; None of single steps."""
        if self.base.step is not None or self.base.passes or self.other.passes:
            return None
        found = [query.session.steps for query in self._queries]
        base, other = ((each.steps.end - each.steps.start)[each.usual] for each in found)
        return base, other

    @cached_property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First start and last end of each side, ns."""
        ours, theirs = (_span(query, workers) for query, workers in zip(self._queries, self.workers, strict=True))
        return ours, theirs

    @property
    def _queries(self) -> tuple[Query, Query]:
        return self.base, self.other

    @cached_property
    def total(self) -> Amount:
        """From the first start to the last end."""
        (start, end), (begin, stop) = self.spans
        return self.comparison.total(end - start, stop - begin)

    @cached_property
    def cuts(self) -> dict[str, list[Amount]]:
        """Work by view; where the device did nothing, time of the host as the source's view tells it."""
        comparison = self.comparison
        if comparison.work.base or comparison.work.other:
            return comparison.cuts
        found = {}
        for view, table, column in self.base.vocabulary.host_cuts:
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
            found[view] = [comparison.judged(each) for each in found[view]]
        return found or comparison.cuts

    @cached_property
    def work(self) -> Amount:
        """All of it."""
        parts = next(iter(self.cuts.values()), [])
        sums = [sum(getattr(each, key) for each in parts) for key in ("base", "other", "base_count", "other_count")]
        return self.comparison.judged(Amount("", *sums))

    @property
    def noise(self) -> Noise:
        """What a difference has to be beyond."""
        return self.comparison.noise

    # -- views

    def answer(self, view: View) -> Answer:
        """What a view says of both."""
        if view.id == "alignment":
            return _alignment(self)
        parts = []
        if view.together or view.id == "waits":
            told = [_waits(query) if view.id == "waits" else answer(view, query) for query in self._queries]
            return joined(told[0], told[1], self._judge(view), self._renamed)
        for ours, theirs in self.pairs:
            sides = [_NO_ANSWER if worker is None else answer(view, _of_worker(query, worker))
                     for query, worker in zip(self._queries, (ours, theirs), strict=True)]  # fmt: skip
            parts.append(((ours or theirs), joined(sides[0], sides[1], self._judge(view), self._renamed)))
        found = parts[0][1] if len(parts) == 1 else _stacked([(each.key, told) for each, told in parts if each])
        if view.id == "steps":
            found = replace(found, tables=(*found.tables, self._parts()))
        return found

    @property
    def _renamed(self) -> Renamed:
        return Renamed(self.base.vocabulary.operation.one, self.comparison.both.renamed)

    def _judge(self, view: View) -> Any:
        known = {part.name: part.status for part in self.comparison.cuts.get(view.id, ())}

        def judge(table: str, names: tuple[Any, ...], amount: Amount, kind: Kind) -> Status:
            if len(names) == 1 and names[0] in known and table == "by_name" and kind == "duration":
                return known[names[0]]
            if kind == "duration":
                return self.comparison.judged(amount).status
            noise = self.noise if kind not in ("count", "bytes") else replace(self.noise, between=0.0)
            exact = replace(amount, low=float(amount.delta), high=float(amount.delta))
            return status_of(exact if kind in ("count", "bytes") else amount, noise, self.comparison.lost)

        return judge

    def _parts(self) -> Table:
        """Steps and the gaps between them: they add up to the total."""
        sides = [_step_parts(query, span) for query, span in zip(self._queries, self.spans, strict=True)]
        rows = []
        for name in dict.fromkeys((*sides[0], *sides[1])):
            ours, theirs = (side.get(name, 0) for side in sides)
            amount = Amount(name, ours, theirs, int(name in sides[0]), int(name in sides[1]))
            rows.append((name, ours, theirs, theirs - ours, self.comparison.judged(amount).status))
        rows.sort(key=lambda row: -abs(row[3]))
        columns = (
            Column("part", "Part"), Column("base_us", "Base", "duration"), Column("other_us", "Other", "duration"),
            Column("delta_us", "Delta", "duration"), Column("status", "Status"),
        )  # fmt: skip
        return Table.of_rows("parts", "Steps and gaps: they add up to the total", columns, rows, word="part")


def _by_rank(workers: Sequence[Worker]) -> dict[int | None, Worker]:
    """Workers by their rank, where it is theirs alone: traces of one process at two times have one rank."""
    known = [worker.rank for worker in workers]
    return {worker.rank: worker for worker in workers if worker.rank is not None and known.count(worker.rank) == 1}


def refuse_unlike(base: Profile, other: Profile) -> None:
    """Whether two profiles can be compared.

    Raises:
        UsageError: They are of different sources or chips; the sentence names both.
    """
    ours, theirs = base.vocabulary, other.vocabulary
    if ours.source != theirs.source:
        raise UsageError(f"{base.path} is a profile of {ours.title}, {other.path} of {theirs.title}.",
                         "Profiles of one source alone can be compared.")  # fmt: skip
    if ours.one_chip and base.device.chip != other.device.chip:
        raise UsageError(f"{base.path} is of {base.device.chip}, {other.path} of {other.device.chip}.",
                         "Their commands cannot be compared.")  # fmt: skip


def views_to_compare(profile: Profile) -> tuple[View, ...]:
    """Views of a source that are told of two profiles, with those that only a comparison has."""
    return (*views_of(profile.vocabulary), *OWN)


def view_to_compare(profile: Profile, name: str) -> View:
    """The view with an id.

    Raises:
        UsageError: There is none.
    """
    views = views_to_compare(profile)
    for view in views:
        if view.id == name:
            return view
    known = ", ".join(view.id for view in views)
    raise UsageError(f"There is no view {name!r} of {profile.vocabulary.title} profiles.", f"There are: {known}.")


def _of_worker(query: Query, worker: Worker) -> Query:
    return query if worker.scope.everything or not query.scope.everything else replace(query, scope=worker.scope)


def _span(query: Query, workers: Sequence[Worker]) -> tuple[int, int]:
    if query.step is not None or query.passes or query.range is not None:
        return query.window
    edges = []
    for worker in workers:
        if worker.window is not None:
            edges.append(worker.window)
            continue
        record = worker_record(query.profile, worker)
        part = query.profile if worker.hosts else query.profile.device_part
        if record["events"]:
            edges.append((part.start_ns, part.end_ns))
    return (min(start for start, _ in edges), max(end for _, end in edges)) if edges else (0, 0)


def _stacked(parts: Sequence[tuple[str, Answer]]) -> Answer:
    tables: dict[str, list[tuple[str, Table]]] = {}
    for key, told in parts:
        for table in told.tables:
            tables.setdefault(table.key, []).append((key, table))
    stacked = []
    for known in tables.values():
        first = known[0][1]
        rows = [(key, *row) for key, table in known if len(table.columns) == len(first.columns)
                for row in table.rows()]  # fmt: skip
        place = next((n for n, each in enumerate(first.columns, 1) if each.key.startswith("delta_")), None)
        if place is not None:
            rows.sort(key=lambda row: -abs(row[place] or 0))
        columns = (Column("worker", "Worker"), *first.columns)
        stacked.append(
            replace(Table.of_rows(first.key, first.title, columns, rows), word=first.word, notes=first.notes)
        )
    return Answer(
        facts=tuple(replace(fact, about=key) for key, told in parts for fact in told.facts),
        tables=tuple(stacked),
        notes=tuple(dict.fromkeys(note for _, told in parts for note in told.notes)),
        missing=tuple(dict.fromkeys(each for _, told in parts for each in told.missing)),
    )


# what only a comparison tells


def _waits(query: Query) -> Answer:
    """Time of waits by unit, by what they wait in, and by what the wait is called."""
    profile = query.shown.profile
    sums: dict[tuple[str, str, str], list[int]] = {}
    for lane in profile.lanes:
        if lane.on_host or not len(lane):
            continue
        rows = np.flatnonzero(lane["role"] == Role.WAIT)
        if not len(rows):
            continue
        unit = profile.groups.title(profile.unit_of(lane)) or profile.title_of(lane)
        codes = [lane.take(key, rows).astype(np.int64) if key in lane else np.full(len(rows), -1)
                 for key in ("kernel", "name")]  # fmt: skip
        length = lane.take("end", rows) - lane.take("start", rows)
        distinct, which, count = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True, return_counts=True)
        total = np.bincount(which.reshape(-1), weights=length)
        for (kernel, name), ns, number in zip(distinct.tolist(), total.tolist(), count.tolist(), strict=True):
            texts = (profile.text(key, code) if code >= 0 else UNKNOWN
                     for key, code in (("kernel", kernel), ("name", name)))  # fmt: skip
            one = sums.setdefault((unit, *texts), [0, 0])  # type: ignore[arg-type]
            one[0] += int(ns)
            one[1] += number
    words = query.vocabulary
    if not sums:
        return Answer()
    columns = (Column("unit", words.say("{Unit}")), Column("scope", words.say("{Scope}")), Column("name", "Wait"),
               Column("total_us", "Waited", "duration"), Column("count", "Count", "count"))  # fmt: skip
    told = [(*key, *value) for key, value in sorted(sums.items(), key=lambda each: -each[1][0])]
    return Answer(tables=(Table.of_rows("waits", "Waits", columns, told, word=words.operation.one),))


def _step_parts(query: Query, span: tuple[int, int]) -> dict[str, int]:
    """Length of each step and of each gap before one, of what is before and behind; they add up to the span."""
    start, end = span
    steps = query.session.steps.steps if query.step is None else None
    if steps is None or not len(steps):
        return {"run": end - start}
    order = np.lexsort((steps.end, steps.start))
    _, first = np.unique(np.stack((steps.start[order], steps.end[order])), axis=1, return_index=True)
    word, before = query.session.steps.word.one, start
    found: dict[str, int] = {}
    for turn, place in enumerate(order[np.sort(first)].tolist(), 1):
        found[f"gap before {word} {turn}"] = int(steps.start[place]) - before
        found[f"{word} {turn}"] = int(steps.end[place] - steps.start[place])
        before = int(steps.end[place])
    found["behind the last"] = end - before
    return found


def _alignment(compared: Compared) -> Answer:
    comparison = compared.comparison
    both, launches = comparison.both, comparison.launches
    base, other = both.base.launches, both.other.launches
    real = base.unit[launches.base] >= 0
    pairs = Pairs(launches.base[real], launches.other[real], launches.changed[real])
    gone, new = launches.rest(len(base), len(other))
    gone, new = gone[base.unit[gone] >= 0], new[other.unit[new] >= 0]
    moved = base.unit[pairs.base] != other.unit[pairs.other]
    counts = (("matched", len(pairs)), ("added", len(new)), ("removed", len(gone)),
              ("changed", int(pairs.changed.sum())), ("moved", int(moved.sum())))  # fmt: skip
    facts = [Fact(key, key.capitalize(), value) for key, value in counts]
    facts += [Fact("base_launches", "Launches of the base", int((base.unit >= 0).sum())),
              Fact("other_launches", "Launches of the other", int((other.unit >= 0).sum()))]  # fmt: skip
    names = both.kernels
    rows = _Rows(len(names) + 1)
    rows.add("matched", base.kernel[pairs.base])
    rows.add("changed", base.kernel[pairs.base[pairs.changed]])
    rows.add("moved", base.kernel[pairs.base[moved]])
    rows.add("added", other.kernel[new])
    rows.add("removed", base.kernel[gone])
    for side, each in (("base", base), ("other", other)):
        known = each.unit >= 0
        rows.add(f"{side}_count", each.kernel[known])
        rows.add(f"{side}_us", each.kernel[known], each.work[known])
    words = compared.base.vocabulary
    name = Column("name", words.say("{Scope}") if base.whole else words.say("{Operation}"))
    table = rows.table("launches", "Launches", [name], lambda place: (_named(names, place),), comparison)
    return Answer(tuple(facts), (table, *_operations(compared)))


def _named(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else UNKNOWN


class _Rows:
    """Sums by place of a row."""

    _COLUMNS: Final = (
        Column("base_count", "Base count", "count", spare=3), Column("other_count", "Other count", "count", spare=3),
        Column("delta_count", "More", "count", spare=4), Column("matched", "Matched", "count", spare=2),
        Column("changed", "Changed", "count"), Column("moved", "Moved", "count", spare=5),
        Column("added", "Added", "count"), Column("removed", "Removed", "count"),
        Column("base_us", "Base", "duration", spare=1), Column("other_us", "Other", "duration", spare=1),
        Column("delta_us", "Delta", "duration"), Column("status", "Status"),
    )  # fmt: skip

    def __init__(self, size: int) -> None:
        self._size = size
        self._sums: dict[str, Any] = {}

    def add(self, key: str, places: Any, weights: Any = None) -> None:
        places = np.where(places < 0, self._size - 1, places)
        found = np.bincount(places, weights=weights, minlength=self._size).astype(np.int64)
        self._sums[key] = self._sums.get(key, 0) + found

    def table(self, key: str, title: str, names: list[Column], texts: Any, comparison: Comparison,
              more: Any = None) -> Table:  # fmt: skip
        """Rows by falling |difference|; ``more``: a last column and its text by place."""
        sums = {name: self._sums.get(name, np.zeros(self._size, np.int64)) for name in (
            "base_count", "other_count", "matched", "changed", "moved", "added", "removed", "base_us", "other_us",
        )}  # fmt: skip
        rows = []
        known = {part.name: part.status for part in next(iter(comparison.cuts.values()), [])}
        for place in np.flatnonzero(sums["base_count"] + sums["other_count"]).tolist():
            one = {name: int(values[place]) for name, values in sums.items()}
            amount = Amount("", one["base_us"], one["other_us"], one["base_count"], one["other_count"])
            told = texts(place)
            status = known.get(told[0]) if len(told) == 1 else None
            status = status or comparison.judged(amount).status
            rows.append((*told, one["base_count"], one["other_count"], one["other_count"] - one["base_count"],
                         *(one[name] for name in ("matched", "changed", "moved", "added", "removed")),
                         one["base_us"], one["other_us"], amount.delta, status,
                         *(() if more is None else (more[1](place),))))  # fmt: skip
        at = len(names) + 10
        rows.sort(key=lambda row: (-abs(row[at]), row[0]))
        columns = (*names, *self._COLUMNS, *(() if more is None else (more[0],)))
        return Table.of_rows(key, title, columns, rows)


def _operations(compared: Compared) -> tuple[Table, ...]:
    """Events by kernel and operation: which belong together, which have other operands."""
    comparison = compared.comparison
    both, pairs = comparison.both, comparison.events
    base, other = both.base, both.other
    gone, new = pairs.rest(len(base), len(other))
    size = len(both.operations) + 1
    kernels = both.kernels if base.launches.whole else ()
    keys = [_keys(work, size, len(kernels) + 1) for work in (base, other)]
    known, which = np.unique(np.concatenate(keys), return_inverse=True)
    which = which.reshape(-1)
    places = which[: len(base)], which[len(base) :]
    rows = _Rows(len(known) + 1)
    rows.add("matched", places[0][pairs.base])
    rows.add("changed", places[0][pairs.base[pairs.changed]])
    rows.add("added", places[1][new])
    rows.add("removed", places[0][gone])
    for side, each, place in (("base", base, places[0]), ("other", other, places[1])):
        rows.add(f"{side}_count", place)
        rows.add(f"{side}_us", place, each.length)
    changed = np.flatnonzero(pairs.changed)
    _, first = np.unique(places[0][pairs.base[changed]], return_index=True)
    examples = {int(places[0][pairs.base[at]]): _change(compared, int(pairs.base[at]), int(pairs.other[at]))
                for at in changed[first].tolist()}  # fmt: skip

    def texts(place: int) -> tuple[str, ...]:
        kernel, operation = divmod(int(known[place]), size)
        named = _named(both.operations, operation)
        return (_named(kernels, kernel), named) if base.launches.whole else (named,)

    words = compared.base.vocabulary
    names = [Column("name", words.say("{Operation}"))]
    if base.launches.whole:
        names.insert(0, Column("scope", words.say("{Scope}")))
    more = Column("operands", "Operands, the first that changed"), lambda place: examples.get(place, "")
    return (rows.table("operations", words.say("{Operations} within launches"), names, texts, comparison, more),)


def _keys(work: Work, size: int, kernels: int) -> Any:
    label = np.where(work.label < 0, size - 1, work.label)
    if not work.launches.whole:
        return label
    return np.where(work.kernel < 0, kernels - 1, work.kernel) * size + label


def _change(compared: Compared, one: int, two: int) -> str:
    """Operands that differ between two events of one operation."""
    texts = []
    sides = []
    for query, work, place in ((compared.base, compared.comparison.both.base, one),
                               (compared.other, compared.comparison.both.other, two)):  # fmt: skip
        profile = query.shown.profile
        lane, row = profile.lanes[int(work.lane[place])], int(work.row[place])
        known = [key for key in profile.vocabulary.operands if key in lane]
        sides.append({key: _operand_text(profile, lane, key, row) for key in known})
    for key, before in sides[0].items():
        after = sides[1].get(key, before)
        if after != before:
            texts.append(f"{key} {before} -> {after}")
    return ", ".join(texts)


def _operand_text(profile: Profile, lane: Lane, key: str, row: int) -> str:
    if profile.vocabulary.is_text(key):
        return text_of(profile, lane, key, row)
    value = lane.take(key, slice(row, row + 1))
    return "-" if is_missing(value)[0] else f"{value[0]:,}"


# on the screen


def with_differences(view: View, query: Query) -> Answer:
    """A view of what is shown, with differences from what it is compared with."""
    return Compared.of(query).answer(view)


def verdict(query: Query) -> Answer:
    """What changed and why; nothing without something to compare with."""
    if query.baseline is None:
        return Answer()
    from .diff import verdict_answer

    return verdict_answer(Compared.of(query))
