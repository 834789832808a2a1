"""Output of comparisons: the verdict with its cause first, then joined views; several runs as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.compare.amounts import LANES, LAUNCHES, compared_label
from tpuprof_tui.analysis.compare.noise import UNKNOWN, Amount, Lost, Noise
from tpuprof_tui.analysis.compare.verdict import change_text, is_renamed, short_name, status_word
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report
from tpuprof_tui.formats.tables import Table as TextTable
from tpuprof_tui.formats.units import TimeUnit, column_unit, delta_text, percent_text, signed, time_text
from tpuprof_tui.model import Severity
from tpuprof_tui.model.view import View

from .answer import Answer, Column, Fact, Table, Target
from .as_json import answer_record, us
from .as_text import answer_report, text_table
from .comparing import OWN, Compared, view_to_compare, views_to_compare
from .overview import notes_table
from .report import problem_record, worker_record
from .sentence import sentence

#: Contributors shown to people per view: of two runs, and of several.
_MOST_LISTED: Final = 5
_MOST_OF_RUNS: Final = 10


def selected_views(compared: Compared, names: Sequence[str]) -> list[View]:
    """The named views, by default those marked ``compared``; UsageError if a view does not exist."""
    profiles = compared.base.profile, compared.other.profile
    if names:
        return [view_to_compare(*profiles, name) for name in names]
    known = {*compared.comparison.origins, *(view.id for view in OWN)}
    return [view for view in views_to_compare(*profiles) if view.compared and (view.compute or view.id in known)]


def has_lost_records(compared: Compared) -> bool:
    """Whether records of either side were lost or unreadable."""
    lost = compared.comparison.lost
    problems = (*compared.base.profile.problems, *compared.other.profile.problems)
    return bool(lost.base or lost.other) or any(each.severity is Severity.ERROR for each in problems)


# records


def diff_record(compared: Compared, views: Sequence[View], limit: int | None = None, offset: int = 0) -> dict[str, Any]:
    """Record of both sides, the verdict and the views; tables have ``limit`` rows from ``offset``."""
    profiles = {"base": compared.base.profile, "other": compared.other.profile}
    return {
        "source": compared.base.vocabulary.source,
        **{side: {"path": profile.path, "workers": [worker_record(profile, worker) for worker in workers]}
           for (side, profile), workers in zip(profiles.items(), compared.workers, strict=True)},
        "problems": [{"side": side, **problem_record(profile, problem)}
                     for side, profile in profiles.items() for problem in profile.problems],
        "verdict": verdict_record(compared) if compared.base.vocabulary.work_breakdowns else None,
        "views": {view.id: answer_record(compared.answer(view), 0, limit, offset) for view in views},
    }  # fmt: skip


def runs_record(runs: Sequence[Compared], views: Sequence[View], limit: int | None, offset: int) -> dict[str, Any]:
    """Record of the reference (``base``), and of each other run what a comparison with it says."""
    records = [diff_record(compared, views, limit, offset) for compared in runs]
    others = [{**record["other"], **{key: record[key] for key in ("verdict", "views")},
               "problems": [each for each in record["problems"] if each["side"] == "other"]}
              for record in records]  # fmt: skip
    problems = [each for each in records[0]["problems"] if each["side"] == "base"]
    return {"source": records[0]["source"], "base": records[0]["base"], "problems": problems, "others": others}


def verdict_record(compared: Compared) -> dict[str, Any]:
    """Record of the verdict; ``per_step``: of a step, null if not both sides have steps."""
    verdict, comparison = compared.verdict, compared.comparison
    per_step = None
    if verdict.step is not None and comparison.steps is not None:
        ours, theirs = comparison.steps
        per_step = {
            "status": status_word(verdict.step),
            "word": compared.base.vocabulary.step.one,
            "steps": {"base": ours.count, "other": theirs.count},
            "length": _amount_record(verdict.step),
            "work": _sum_record(verdict.work),
            "contributors": _contributor_records(verdict.parts),
        }
    work, parts = comparison.sum_of(comparison.contributors), comparison.contributors
    return {**outcome_record(verdict.total, work, parts, comparison.lost, comparison.noise, verdict.why),
            "per_step": per_step}  # fmt: skip


def outcome_record(
    total: Amount, work: Amount, by_view: Mapping[str, Sequence[Amount]], lost: Lost, noise: Noise, why: str
) -> dict[str, Any]:
    """Record of what became of the total and of all work, the parts of it by view, and why."""
    return {
        "status": status_word(total),
        "total": _amount_record(total),
        "work": _sum_record(work),
        "contributors": _contributor_records(by_view),
        "lost": {"base": lost.base, "other": lost.other},
        "noise": {"within": noise.within, "between_runs": noise.between,
                  "runs": {"base": noise.base_runs, "other": noise.other_runs}, "stated": noise.stated},
        "why": why,
    }  # fmt: skip


def _contributor_records(by_view: Mapping[str, Sequence[Amount]]) -> list[dict[str, Any]]:
    """Records of all parts of a sum, with their views, by |difference| descending."""
    found = [(view, each) for view, parts in by_view.items() for each in parts]
    return [{"view": view, "name": each.name, **_amount_record(each), "base_count": each.base_count,
             "other_count": each.other_count, "status": each.status}
            for view, each in sorted(found, key=lambda each: -abs(each[1].delta))]  # fmt: skip


def _amount_record(amount: Amount) -> dict[str, Any]:
    return {**_sum_record(amount), "low_us": us(amount.low), "high_us": us(amount.high)}


def _sum_record(amount: Amount) -> dict[str, Any]:
    return {"base_us": us(amount.base), "other_us": us(amount.other), "delta_us": us(amount.delta)}


# on the screen


def verdict_view(query: Query) -> Answer:
    """The verdict of the comparison with the baseline, and its contributors; empty without a baseline."""
    if query.baseline is None:
        return Answer()
    compared, note = Compared.of(query), "These are figures of all {units}: a comparison does not follow the scope."
    verdict, words = compared.verdict, compared.base.vocabulary
    notes = () if query.scope.everything else (query.vocabulary.say(note),)
    if not words.work_breakdowns:
        views = [view for view in selected_views(compared, ()) if view.place]
        return Answer(tables=tuple(table for view in views for table in compared.answer(view).tables), notes=notes)
    lead, total, a_step = verdict.lead, verdict.total, verdict.a_step
    deltas = {"delta_us": (f"{'Step' if a_step else 'Total'}, {status_word(lead)}", lead),
              "delta_work_us": (f"Work{a_step}", verdict.work)}  # fmt: skip
    if a_step:
        deltas["delta_total_us"] = f"Total, {status_word(total)}", total
    facts = (
        Fact("base_us", f"Base{a_step}", lead.base, "duration"),
        Fact("other_us", f"This{a_step}", lead.other, "duration"),
        *(Fact(key, title, amount.delta, "duration", share=amount.delta / amount.base if amount.base else None)
          for key, (title, amount) in deltas.items()),
    )  # fmt: skip
    columns = (Column("delta_us", "Delta", "duration", bar=True), Column("base_us", "Base", "duration", drop_first=1),
               Column("other_us", "This", "duration", drop_first=2), Column("status", "Status"),
               Column("name", "Name"))  # fmt: skip
    narrowing = dict(words.work_breakdowns) | {each.view: each.column for each in words.origins}
    tables = []
    for view, parts in verdict.parts.items():
        changed = [each for each in parts if each.delta] if tells_something(compared, view, parts) else []
        column = narrowing.get(view, "")
        tables.append(Table.of_rows(
            view, f"{breakdown_title(compared, view)}{a_step}, by difference", columns,
            [(each.delta, each.base, each.other, each.status, verdict.name_of(view, each)) for each in changed],
            target=partial(_target, compared, column, changed) if column else None, word="part",
        ))  # fmt: skip
    return Answer(facts, tuple(tables), notes=(verdict.why, *notes))


def _target(compared: Compared, column: str, parts: Sequence[Amount], row: int) -> Target | None:
    name = parts[row].name
    if name == UNKNOWN:
        return None
    profile, renamed = compared.other.profile, compared.comparison.joint.renamed
    origin = next((each for each in profile.vocabulary.origins if each.column == column), None)
    known = sorted({str(text) for text in profile.strings.get(column, ())})
    if origin is not None:
        called = [text for text in known if compared_label(origin, text) == name]
    else:
        called = [text for text in known if renamed.get(text, text) == name] if renamed and column == "name" else []
    return Target(condition=" | ".join(text_condition(column, text, alone=True) for text in called or [name]))


def breakdown_title(compared: Compared, view: str) -> str:
    """Title of a breakdown of work."""
    known = {each.view: each.word.plural.capitalize() for each in compared.base.vocabulary.origins}
    known |= {LANES: "{Lanes}", LAUNCHES: "Launches"}
    title = known.get(view) or view_to_compare(compared.base.profile, compared.other.profile, view).title
    return compared.base.vocabulary.say(title)


def tells_something(compared: Compared, view: str, parts: Sequence[Amount]) -> bool:
    """Whether a breakdown has differences: not other names of the same work, where it is known what it came from."""
    known, words = compared.comparison.origins, compared.base.vocabulary
    columns = {origin.column for origin in words.origins if origin.view in known}
    told = not known or view in known or not (is_renamed(parts) or dict(words.work_breakdowns).get(view) in columns)
    return told and any(each.delta for each in parts)


# text and Markdown


def diff_reports(
    compared: Compared, views: Sequence[View], limit: int | None, offset: int = 0, *, notes: bool = False
) -> Iterator[Report]:
    """Reports: the verdict, if requested the notes of both sides, then the views requested by name."""
    if compared.base.vocabulary.work_breakdowns:
        lead, a_step = compared.verdict.lead, compared.verdict.a_step
        yield Report(f"{status_word(lead).capitalize()}{a_step}: {change_of(lead)}", tuple(_verdict_lines(compared)),
                     tuple(_contributor_tables(compared)))  # fmt: skip
    else:
        yield Report(str(sentence(replace(compared.other, baseline=compared.base))), ("", *_path_lines(compared)))
    for query in compared.sides if notes else ():
        noted = notes_table(query)
        if noted is not None:
            yield Report(line_text(f"{query.profile.name}: notes"), (), (text_table(noted, limit),))
    for view in views:
        yield answer_report(compared.base.vocabulary.say(view.title), compared.answer(view), limit, offset)


def change_of(amount: Amount) -> str:
    """An amount on both sides, and its change."""
    base, other, delta = round(amount.base), round(amount.other), round(amount.delta)
    return f"{time_text(base)} -> {time_text(other)}, {delta_text(delta)}{change_text(amount)}"


def _path_lines(compared: Compared) -> Iterator[str]:
    for title, query in zip(("Base ", "Other"), compared.sides, strict=True):
        yield f"{title}  {line_text(query.profile.path)}{query.step_text()}"


def _verdict_lines(compared: Compared) -> Iterator[str]:
    verdict, noise = compared.verdict, compared.comparison.noise
    yield f"Why: {verdict.why}"
    yield ""
    yield from _path_lines(compared)
    yield f"Work   {change_of(verdict.work)}{verdict.a_step}"
    if verdict.step is not None:
        yield f"Total  {status_word(verdict.total)}: {change_of(verdict.total)}"
    if verdict.lead.low is not None and verdict.lead.high is not None:
        low, high = (delta_text(round(edge)) for edge in (verdict.lead.low, verdict.lead.high))
        word = "Total" if verdict.step is None else "Step "
        yield f"{word}  between {low} and {high}, by the spread of repeats and of runs"
    within = "nothing repeats" if noise.within is None else f"launches vary by {percent_text(noise.within)}"
    stated = " (assumed: --run-noise)" if noise.stated else " (measured)"
    yield f"Noise  {within}, runs by {percent_text(noise.between)}{stated}"
    if compared.comparison.alike:
        base_path, other_path = (quote(line_text(query.profile.path)) for query in compared.sides)
        pairs, both = compared.comparison.launches, compared.comparison.joint
        alike = len(both.base.launches) == len(both.other.launches) == len(pairs) and not pairs.changed.any()
        more = f"{other_path} --against {base_path}" if alike else f"diff {base_path} {other_path} alignment"
        yield f"Next   tpuprof {more}"


def _contributor_tables(compared: Compared) -> Iterator[TextTable]:
    verdict = compared.verdict
    for view, parts in verdict.parts.items():
        if not tells_something(compared, view, parts):
            continue
        changed = [each for each in parts if each.delta]
        shown = changed[:_MOST_LISTED]
        unit = column_unit(max(max(each.base, each.other) for each in shown))
        title = breakdown_title(compared, view)
        rows = tuple(
            (short_name(verdict.name_of(view, each)), unit.number(each.base), unit.number(each.other),
             signed(unit.number(each.delta), each.delta),
             f"{each.delta / each.base:+.1%}" if each.base else "new",
             f"{each.other_count - each.base_count:+,.4g}" if each.other_count != each.base_count else "",
             each.status) for each in shown
        )  # fmt: skip
        rest = delta_text(round(sum(each.delta for each in changed[_MOST_LISTED:])))
        notes = (f"{len(changed) - len(shown):,} more, together {rest}: tpuprof diff BASE OTHER {view}.",) \
            if len(changed) > len(shown) else ()  # fmt: skip
        # NVTX ranges
        title = title if title[1:2].isupper() else title.lower()
        yield TextTable(f"What contributes, {title} ({unit.name} of work{verdict.a_step})",
                        ("Name", "Base", "Other", "Delta", "Change", "Count", "Status"), rows,
                        left=frozenset((0, 6)), notes=notes)  # fmt: skip


def runs_reports(runs: Sequence[Compared], limit: int | None) -> Iterator[Report]:
    """The verdicts, and a table for each breakdown that all comparisons have: a column for each run, and its change."""
    profiles = [runs[0].base.profile, *(compared.other.profile for compared in runs)]
    names = [short_name(profile.name) for profile in profiles]
    names[0] += " (reference)"
    names = [name if names.count(name) == 1 else f"{name} #{number}" for number, name in enumerate(names, 1)]
    header = (names[0], *(text for name in names[1:] for text in (name, "Change")))
    # of a step only if all runs have steps
    a_step = runs[0].verdict.a_step if all(compared.verdict.step is not None for compared in runs) else ""
    parts = [compared.comparison.per_step if a_step else compared.comparison.contributors for compared in runs]
    views = [view for view in parts[0] if all(tells_something(compared, view, by_view.get(view, ()))
                                              for compared, by_view in zip(runs, parts, strict=True))]  # fmt: skip
    named = list(zip(names[1:], runs, strict=True))
    yield Report(
        "; ".join(f"{name}: {compared.verdict.headline}" for name, compared in named),
        (*(f"Why {name}: {compared.verdict.why}" for name, compared in named), "",
         *(f"{name}  {line_text(profile.path)}" for name, profile in zip(names, profiles, strict=True))),
        (_totals(runs, header), *(
            _part_table([by_view[view] for by_view in parts], view, limit, header,
                        f"{breakdown_title(runs[0], view)} ({{}} of work{a_step})") for view in views)),
    )  # fmt: skip


def _totals(runs: Sequence[Compared], header: Sequence[str]) -> TextTable:
    rows = []
    unit = column_unit(max(max(each.verdict.total.base, each.verdict.total.other) for each in runs))
    for title, amounts in (
        ("Step", [each.verdict.step for each in runs]),
        ("Total", [each.verdict.total for each in runs]),
        ("Work per step", [None if each.verdict.step is None else each.verdict.work for each in runs]),
        ("Work", [each.comparison.sum_of(each.comparison.contributors) for each in runs]),
    ):
        known = [amount for amount in amounts if amount is not None]
        if len(known) == len(runs):
            rows.append((title, *_cells(known, unit)))
    return TextTable("Runs", (f"Time ({unit.name})", *header), tuple(rows), left=frozenset((0,)))


def _part_table(
    parts: Sequence[Sequence[Amount]], view: str, limit: int | None, header: Sequence[str], title: str
) -> TextTable:
    by_run = [{part.name: part for part in of_run} for of_run in parts]
    bases = {name: part.base for of_run in by_run for name, part in of_run.items()}
    rows = [[of_run.get(name, Amount(name, base, 0, 1, 0)) for of_run in by_run] for name, base in bases.items()]
    rows = [row for row in rows if any(part.delta for part in row)]
    rows.sort(key=lambda row: -max(abs(part.delta) for part in row))
    shown = rows[: _MOST_OF_RUNS if limit is None else limit]
    unit = column_unit(max((max(part.base, part.other) for row in shown for part in row), default=0))
    more = len(rows) - len(shown)
    return TextTable(
        title.format(unit.name), ("Name", *header),
        tuple((short_name(row[0].name), *_cells(row, unit)) for row in shown), left=frozenset((0,)), more=more,
        notes=(f"{more:,} more; --limit shows them.",) if more else (), view=view,
    )  # fmt: skip


def _cells(amounts: Sequence[Amount], unit: TimeUnit) -> Iterator[str]:
    """The reference, then each other run and its change."""
    yield unit.number(amounts[0].base)
    for amount in amounts:
        yield unit.number(amount.other)
        yield change_text(amount).strip(" ()") or ("new" if amount.other else "")
