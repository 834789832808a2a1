"""Output of a comparison: the verdict with its cause first, then joined views; as JSON, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from shlex import quote
from typing import Any, Final

import numpy as np

from tpuprof_tui.analysis.compare.comparison import LANES, LAUNCHES
from tpuprof_tui.analysis.compare.noise import NOTHING_LOST, UNKNOWN, Amount, Noise
from tpuprof_tui.analysis.pivot import Frame, key, pivot, rows, total
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report
from tpuprof_tui.formats.tables import Table as TextTable
from tpuprof_tui.formats.units import column_unit, delta_text, percent_text, signed, time_text
from tpuprof_tui.model import Severity
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import Word

from .answer import Answer, Column, Fact, Table, Target
from .as_json import answer_record, us
from .as_text import answer_report, text_table
from .comparing import OWN, Compared, view_to_compare, views_to_compare
from .overview import notes_table
from .report import problem_record, worker_record

#: Status of the total in words.
_WORDS: Final = {"more": "slower", "less": "faster", "added": "slower", "removed": "faster"}
#: Contributors shown to people per view, and maximum characters of their names.
_MOST_LISTED: Final = 5
_NAME: Final = 40
_LAUNCH: Final = Word("launch", "launches")
#: Statuses that are a change.
_CHANGED: Final = ("more", "less", "added", "removed")


def selected_views(compared: Compared, names: Sequence[str]) -> list[View]:
    """The named views, by default those marked ``compared``; UsageError if a view does not exist."""
    profile = compared.base.profile
    if names:
        return [view_to_compare(profile, name) for name in names]
    return [view for view in views_to_compare(profile) if view.compared]


def diff_record(compared: Compared, views: Sequence[View], limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """Record of both sides, the verdict and the views; tables have ``limit`` rows from ``offset``."""
    sides = {}
    for side, query, workers in zip(("base", "other"), (compared.base, compared.other), compared.workers, strict=True):
        sides[side] = {"path": query.profile.path,
                       "workers": [worker_record(query.profile, worker) for worker in workers]}  # fmt: skip
    records = {view.id: answer_record(compared.answer(view), 0, limit, offset) for view in views}
    return {
        "source": compared.base.vocabulary.source,
        **sides,
        "problems": [{"side": side, **problem_record(query.profile, problem)}
                     for side, query in (("base", compared.base), ("other", compared.other))
                     for problem in query.profile.problems],
        "verdict": verdict_record(compared),
        "views": records,
    }  # fmt: skip


def has_lost_records(compared: Compared) -> bool:
    """Whether records of either side were lost or unreadable."""
    lost = compared.comparison.lost
    problems = (*compared.base.profile.problems, *compared.other.profile.problems)
    return bool(lost.base or lost.other) or any(each.severity is Severity.ERROR for each in problems)


def verdict_record(compared: Compared) -> dict[str, Any]:
    """Record of the verdict."""
    total, work, lost = compared.total, compared.work, compared.comparison.lost
    return {
        "status": status_word(total),
        "total": _amount_record(total),
        "work": {key: value for key, value in _amount_record(work).items() if key not in ("low_us", "high_us")},
        "contributors": [
            {"view": view, "name": each.name, **_amount_record(each), "base_count": each.base_count,
             "other_count": each.other_count, "status": each.status}
            for view, each in contributors(compared)
        ],
        "lost": {"base": lost.base, "other": lost.other},
        "noise": noise_record(compared.comparison.noise),
        "why": why(compared),
    }  # fmt: skip


def noise_record(noise: Noise) -> dict[str, Any]:
    """Record of the noise that differences are compared with."""
    return {"within": noise.within, "between_runs": noise.between,
            "runs": {"base": noise.base_runs, "other": noise.other_runs}, "stated": noise.stated}  # fmt: skip


def status_word(total: Amount) -> str:
    """Status of the total in words."""
    return _WORDS.get(total.status, total.status)


def _amount_record(amount: Amount) -> dict[str, Any]:
    return {"base_us": us(amount.base), "other_us": us(amount.other), "delta_us": us(amount.delta),
            "low_us": us(amount.low), "high_us": us(amount.high)}  # fmt: skip


def contributors(compared: Compared) -> list[tuple[str, Amount]]:
    """All parts of the sum of work, with their views, by |difference| descending."""
    found = [(view, each) for view, parts in compared.breakdowns.items() for each in parts]
    return sorted(found, key=lambda each: -abs(each[1].delta))


# cause of the verdict


def why(compared: Compared) -> str:
    """The main cause of the difference, in one sentence."""
    lost = compared.comparison.lost
    causes = [sentence for _, sentence in sorted(_causes(compared), key=lambda each: -each[0])]
    if lost.base or lost.other:
        which = " and ".join(
            f"{count:,} of the {side}" for side, count in (("base", lost.base), ("other", lost.other)) if count
        )
        note = f"Records are lost, {which}: what they could explain is unclear."
        return f"{note} {causes[0]}" if causes else note
    if causes:
        return causes[0]
    total = compared.total
    if total.status == "same":
        return "No part changed by more than noise."
    if compared.comparison.noise.within is None:
        return "Nothing repeats within them, so noise is unknown with one capture per side: use three (gate)."
    return "No single part changed by more than noise: the time lies between the parts listed here."


def _more_steps(compared: Compared) -> Iterator[tuple[float, str]]:
    """Another number of marked steps, as the first cause: then all sums differ."""
    if compared.base.step is not None:
        return
    sides = [query.steps for query in (compared.base, compared.other)]
    counts = [len(set(side.steps.number.tolist())) for side in sides]
    marked = all(count and not side.guessed for count, side in zip(counts, sides, strict=True))
    if marked and counts[0] != counts[1]:
        typical = [max((own.typical for own in spans if own.typical == own.typical), default=None)
                   for spans in compared.steps]  # fmt: skip
        word = sides[0].word
        more = f"{word.of(abs(counts[1] - counts[0]))} {'more' if counts[1] > counts[0] else 'fewer'}"
        lengths = " -> ".join("-" if length is None else time_text(round(length)) for length in typical)
        yield np.inf, (f"The other has {more} ({counts[0]:,} -> {counts[1]:,}); {word.with_article} takes {lengths}. "
                       "--step N compares one.")  # fmt: skip


def _causes(compared: Compared) -> Iterator[tuple[float, str]]:
    yield from _more_steps(compared)
    # counts of the alignment by kernel name
    table = compared.answer(OWN[1]).table("launches")
    launched = {
        row[0]: {column.key: each for column, each in zip(table.columns, row, strict=True)} for row in table.rows()
    }
    shapes = list(_other_shapes(compared))
    yield from (cause for cause, _ in shapes)
    named = {name for _, names in shapes for name in names}
    for parts in list(compared.breakdowns.values())[:1]:
        for part in parts:
            if part.status in _CHANGED and not (part.name in named and part.status in ("added", "removed")):
                yield abs(part.delta), _part_sentence(compared, part, launched.get(part.name))
    if compared.comparison.joint.base.launches.known:
        yield from _moves(compared)
    yield from _late(compared)


def _part_sentence(compared: Compared, part: Amount, launched: dict[str, Any] | None) -> str:
    name, event = _short(part.name), compared.base.vocabulary.event
    if launched is not None and not compared.comparison.joint.base.launches.named:
        name = f"A launch of {name}"
    change = f"{delta_text(part.delta)} of work{_percent(part)}"
    if part.status == "added":
        return f"{name} is new: {change} in {event.of(part.other_count)}."
    if part.status == "removed":
        return f"{name} is gone: {change}, {event.of(part.base_count)}."
    verb = "took longer" if part.delta > 0 else "took less"
    details = []
    if launched is not None:
        details += [f"{_LAUNCH.of(launched[key])} {key}" for key in ("added", "removed") if launched[key]]
        if launched["changed"] > launched["moved"]:
            details.append(f"{_LAUNCH.of(launched['changed'] - launched['moved'])} with other commands or operands")
        if not details and launched["matched"]:
            count = launched["matched"]
            details.append(f"{_LAUNCH.of(count)}, the same commands, each {time_text(round(part.base / count))} -> "
                           f"{time_text(round(part.other / count))}")  # fmt: skip
    return f"{name} {verb}: {change}{'; ' if details else ''}{', '.join(details)}."


def _moves(compared: Compared) -> Iterator[tuple[float, str]]:
    """Causes: launches that moved to another unit."""
    both, pairs = compared.comparison.joint, compared.comparison.launches
    base, other = both.base.launches, both.other.launches
    launches = Frame(
        {
            "kernel": base.kernel[pairs.base],
            "from": base.unit[pairs.base],
            "to": other.unit[pairs.other],
            "work": base.work[pairs.base],
        },
        {},
    )
    moved = launches.take(launches["from"] != launches["to"])
    figures = {**{column: key(column) for column in ("kernel", "from", "to")}, "count": rows, "work": total("work")}
    for kernel, source, target, count, work in pivot(moved, ("kernel", "from", "to"), figures, ()):
        name = _short(both.kernels[kernel] if kernel is not None and kernel >= 0 else UNKNOWN)
        text = f"{_LAUNCH.of(count)} of {name} ({time_text(work)} of work) moved from {both.units[source]} to " \
               f"{both.units[target]}."  # fmt: skip
        yield work, text


def _other_shapes(compared: Compared) -> Iterator[tuple[tuple[float, str], tuple[str, str]]]:
    """Causes: unnamed launches whose number of events differs from that of the paired launch."""
    both, pairs = compared.comparison.joint, compared.comparison.launches
    base, other = both.base.launches, both.other.launches
    if base.named or compared.comparison.lost != NOTHING_LOST:
        return
    launches = Frame(
        {
            "before": base.kernel[pairs.base],
            "after": other.kernel[pairs.other],
            "base": base.work[pairs.base],
            "other": other.work[pairs.other],
        },
        {},
    )
    launches = launches.take(launches["before"] != launches["after"])
    figures = {
        "before": key("before"),
        "after": key("after"),
        "base": total("base"),
        "other": total("other"),
        "count": rows,
    }
    for one, two, ours, theirs, count in pivot(launches, ("before", "after"), figures, ()):
        names = both.kernels[one], both.kernels[two]
        amount = compared.comparison.with_status(Amount("", ours, theirs, count, count))
        if amount.status in _CHANGED:
            text = (
                f"{_LAUNCH.of(count)} of {names[0]} became {names[1]}: "
                f"{delta_text(amount.delta)} of work{_percent(amount)}."
            )
            yield (abs(amount.delta), text), names


def _late(compared: Compared) -> Iterator[tuple[float, str]]:
    """Causes: a unit that arrives later, so that the others wait longer in one scope.

    Only if the change in work of a unit explains less than half of the change in total.
    """
    total, units_of_both = compared.total, max(len(compared.comparison.joint.units), 1)
    if total.status not in _CHANGED or 2 * abs(compared.work.delta) > abs(total.delta) * units_of_both:
        return
    for table in compared.answer(OWN[0]).tables:
        keys = {column.key: index for index, column in enumerate(table.columns)}
        by_scope: dict[str, dict[str, int]] = {}
        for row in table.rows():
            units = by_scope.setdefault(row[keys["scope"]], {})
            unit = row[keys["unit"]]
            units[unit] = units.get(unit, 0) + row[keys["delta_total_us"]]
        for scope, units in by_scope.items():
            if len(units) < 2:
                continue
            late = min(units, key=lambda unit: units[unit])
            longer = [ns for unit, ns in units.items() if unit != late]
            mean = sum(longer) / len(longer)
            if mean > 0 and units[late] < mean / 2:
                where = "" if scope == UNKNOWN else f" in {_short(scope)}"
                yield mean, f"Waits, not work: {late} comes later to where the others wait{where}, they wait " \
                            f"{delta_text(round(mean))} longer each."  # fmt: skip


def _short(name: str) -> str:
    cut = line_text(name)
    return cut if len(cut) <= _NAME else f"{cut[: _NAME - 3]}..."


def _percent(amount: Amount) -> str:
    return f" ({'+' if amount.delta > 0 else ''}{percent_text(amount.delta / amount.base)})" if amount.base else ""


# text and Markdown


def headline(compared: Compared) -> str:
    """The verdict in a few words."""
    total = compared.total
    return f"{status_word(total)}{_percent(total)}"


def verdict_answer(compared: Compared) -> Answer:
    """The verdict and its contributors, as an answer for the screen."""
    total, work = compared.total, compared.work
    share, share_of_work = (each.delta / each.base if each.base else None for each in (total, work))
    facts = (
        Fact("base_us", "Base", total.base, "duration"),
        Fact("other_us", "This", total.other, "duration"),
        Fact("delta_us", f"Total, {status_word(total)}", total.delta, "duration", share=share),
        Fact("delta_work_us", "Work", work.delta, "duration", share=share_of_work),
    )
    words = compared.base.vocabulary
    columns = (Column("delta_us", "Delta", "duration", bar=True), Column("base_us", "Base", "duration", spare=1),
               Column("other_us", "This", "duration", spare=2), Column("status", "Status"),
               Column("name", "Name"))  # fmt: skip
    tables = []
    for view, parts in compared.breakdowns.items():
        changed = [each for each in parts if each.delta]
        column = dict(words.work_breakdowns).get(view, "")
        tables.append(Table.of_rows(
            view, f"{_breakdown_title(compared, view)}, by difference", columns,
            [(each.delta, each.base, each.other, each.status, each.name) for each in changed],
            target=partial(_target, compared, column, changed) if column else None, word="part",
        ))  # fmt: skip
    return Answer(facts, tuple(tables), notes=(why(compared),))


def _breakdown_title(compared: Compared, view: str) -> str:
    known = {LANES: "{Lanes}", LAUNCHES: "Launches"}
    title = known.get(view) or view_to_compare(compared.base.profile, view).title
    return compared.base.vocabulary.say(title)


def _target(compared: Compared, column: str, parts: Sequence[Amount], row: int) -> Target | None:
    name = parts[row].name
    if name == UNKNOWN:
        return None
    called = [name]
    renamed = compared.comparison.joint.renamed
    if renamed and column == "name":
        known = sorted({str(text) for text in compared.other.profile.strings.get("name", ())})
        called = [text for text in known if renamed.get(text, text) == name] or called
    return Target(condition=" | ".join(text_condition(column, text, alone=True) for text in called))


def diff_reports(
    compared: Compared, views: Sequence[View], limit: int | None, offset: int = 0, *, notes: bool = False
) -> Iterator[Report]:
    """Reports: the verdict, if requested the notes of both sides, then the views requested by name."""
    yield Report(_title(compared), tuple(_verdict_lines(compared)), tuple(_contributor_tables(compared)))
    for query in (compared.base, compared.other) if notes else ():
        noted = notes_table(query)
        if noted is not None:
            yield Report(line_text(f"{query.profile.name}: notes"), (), (text_table(noted, limit),))
    for view in views:
        yield answer_report(compared.base.vocabulary.say(view.title), compared.answer(view), limit, offset)


def _title(compared: Compared) -> str:
    total = compared.total
    change = f"{delta_text(total.delta)}{_percent(total)}"
    return f"{status_word(total).capitalize()}: {time_text(total.base)} -> {time_text(total.other)}, {change}"


def _verdict_lines(compared: Compared) -> Iterator[str]:
    total, work, noise = compared.total, compared.work, compared.comparison.noise
    yield f"Why: {why(compared)}"
    yield ""
    yield f"Base   {line_text(compared.base.profile.path)}{compared.base.step_text()}"
    yield f"Other  {line_text(compared.other.profile.path)}{compared.other.step_text()}"
    yield f"Work   {time_text(work.base)} -> {time_text(work.other)}, {delta_text(work.delta)}{_percent(work)}"
    if total.low is not None and total.high is not None:
        low, high = (delta_text(round(edge)) for edge in (total.low, total.high))
        yield f"Total  between {low} and {high}, by the spread of repeats and of runs"
    within = "nothing repeats" if noise.within is None else f"launches vary by {percent_text(noise.within)}"
    stated = " (assumed: --run-noise)" if noise.stated else " (measured)"
    yield f"Noise  {within}, runs by {percent_text(noise.between)}{stated}"
    base_path, other_path = (quote(line_text(query.profile.path)) for query in (compared.base, compared.other))
    pairs, both = compared.comparison.launches, compared.comparison.joint
    alike = len(both.base.launches) == len(both.other.launches) == len(pairs) and not pairs.changed.any()
    more = f"{other_path} --against {base_path}" if alike else f"diff {base_path} {other_path} alignment"
    yield f"Next   tpuprof {more}"


def _contributor_tables(compared: Compared) -> Iterator[TextTable]:
    for view, parts in compared.breakdowns.items():
        changed = [each for each in parts if each.delta]
        if not changed:
            continue
        shown = changed[:_MOST_LISTED]
        unit = column_unit(max(max(each.base, each.other) for each in shown))
        title = _breakdown_title(compared, view)
        rows = tuple(
            (_short(each.name), unit.number(each.base), unit.number(each.other),
             signed(unit.number(each.delta), each.delta),
             f"{each.other_count - each.base_count:+,}" if each.other_count != each.base_count else "",
             each.status) for each in shown
        )  # fmt: skip
        rest = sum(each.delta for each in changed[_MOST_LISTED:])
        notes = (f"{len(changed) - len(shown):,} more, together {delta_text(rest)}: tpuprof diff BASE OTHER {view}.",) \
            if len(changed) > len(shown) else ()  # fmt: skip
        yield TextTable(f"What contributes, {title.lower()} ({unit.name} of work)",
                        ("Name", "Base", "Other", "Delta", "Count", "Status"), rows, left=frozenset((0, 5)),
                        notes=notes)  # fmt: skip
