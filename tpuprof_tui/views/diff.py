"""Output of a comparison: the verdict with its cause first, then joined views; as JSON, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from shlex import quote
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.compare.amounts import LANES, LAUNCHES, compared_label
from tpuprof_tui.analysis.compare.noise import UNKNOWN, Amount, Noise
from tpuprof_tui.analysis.compare.verdict import Verdict, change_text, is_renamed, status_word
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report
from tpuprof_tui.formats.tables import Table as TextTable
from tpuprof_tui.formats.units import column_unit, delta_text, percent_text, signed, time_text
from tpuprof_tui.model import Severity
from tpuprof_tui.model.view import View

from .answer import Answer, Column, Fact, Table, Target
from .as_json import answer_record, us
from .as_text import answer_report, text_table
from .comparing import OWN, Compared, view_to_compare, views_to_compare
from .overview import notes_table
from .report import problem_record, worker_record
from .sentence import sentence

#: Contributors shown to people per view.
_MOST_LISTED: Final = 5


def selected_views(compared: Compared, names: Sequence[str]) -> list[View]:
    """The named views, by default those marked ``compared``; UsageError if a view does not exist."""
    profiles = compared.base.profile, compared.other.profile
    if names:
        return [view_to_compare(*profiles, name) for name in names]
    known = {*compared.comparison.origins, *(view.id for view in OWN)}
    return [view for view in views_to_compare(*profiles) if view.compared and (view.compute or view.id in known)]


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
        "verdict": verdict_record(compared) if compared.base.vocabulary.work_breakdowns else None,
        "views": records,
    }  # fmt: skip


def has_lost_records(compared: Compared) -> bool:
    """Whether records of either side were lost or unreadable."""
    lost = compared.comparison.lost
    problems = (*compared.base.profile.problems, *compared.other.profile.problems)
    return bool(lost.base or lost.other) or any(each.severity is Severity.ERROR for each in problems)


def verdict_record(compared: Compared) -> dict[str, Any]:
    """Record of the verdict; ``per_step``: of a step, null if not both sides have steps."""
    verdict, comparison = compared.verdict, compared.comparison
    lost, per_step = comparison.lost, None
    if verdict.step is not None and comparison.steps is not None:
        ours, theirs = comparison.steps
        per_step = {
            "status": status_word(verdict.step),
            "word": compared.base.vocabulary.step.one,
            "steps": {"base": ours.count, "other": theirs.count},
            "length": amount_record(verdict.step),
            "work": _sum_record(compared.step_work),
            "contributors": contributor_records(verdict.parts),
        }
    return {
        "status": status_word(compared.total),
        "total": amount_record(compared.total),
        "work": _sum_record(compared.work),
        "contributors": contributor_records(compared.contributors),
        "lost": {"base": lost.base, "other": lost.other},
        "noise": noise_record(comparison.noise),
        "why": verdict.why,
        "per_step": per_step,
    }


def contributor_records(by_view: Mapping[str, Sequence[Amount]]) -> list[dict[str, Any]]:
    """Records of all parts of a sum, with their views, by |difference| descending."""
    found = [(view, each) for view, parts in by_view.items() for each in parts]
    return [{"view": view, "name": each.name, **amount_record(each), "base_count": each.base_count,
             "other_count": each.other_count, "status": each.status}
            for view, each in sorted(found, key=lambda each: -abs(each[1].delta))]  # fmt: skip


def noise_record(noise: Noise) -> dict[str, Any]:
    """Record of the noise that differences are compared with."""
    return {"within": noise.within, "between_runs": noise.between,
            "runs": {"base": noise.base_runs, "other": noise.other_runs}, "stated": noise.stated}  # fmt: skip


def amount_record(amount: Amount) -> dict[str, Any]:
    """Record of an amount on both sides, us, with the interval of the difference."""
    return {"base_us": us(amount.base), "other_us": us(amount.other), "delta_us": us(amount.delta),
            "low_us": us(amount.low), "high_us": us(amount.high)}  # fmt: skip


def _sum_record(amount: Amount) -> dict[str, Any]:
    return {key: value for key, value in amount_record(amount).items() if key not in ("low_us", "high_us")}


# text and Markdown


def verdict_answer(compared: Compared) -> Answer:
    """The verdict and its contributors, as an answer for the screen."""
    verdict = compared.verdict
    if not compared.base.vocabulary.work_breakdowns:
        views = [view for view in selected_views(compared, ()) if view.place]
        return Answer(tables=tuple(table for view in views for table in compared.answer(view).tables))
    lead, work = verdict.lead, compared.work if verdict.step is None else compared.step_work
    facts = (
        Fact("base_us", f"Base{verdict.a_step}", lead.base, "duration"),
        Fact("other_us", f"This{verdict.a_step}", lead.other, "duration"),
        Fact("delta_us", f"{'Total' if verdict.step is None else 'Step'}, {status_word(lead)}", lead.delta, "duration",
             share=_share(lead)),
        Fact("delta_work_us", f"Work{verdict.a_step}", work.delta, "duration", share=_share(work)),
        *(() if verdict.step is None else
          (Fact("delta_total_us", f"Total, {status_word(verdict.total)}", verdict.total.delta, "duration",
                share=_share(verdict.total)),)),
    )  # fmt: skip
    words = compared.base.vocabulary
    columns = (Column("delta_us", "Delta", "duration", bar=True), Column("base_us", "Base", "duration", spare=1),
               Column("other_us", "This", "duration", spare=2), Column("status", "Status"),
               Column("name", "Name"))  # fmt: skip
    narrowing = dict(words.work_breakdowns) | {each.view: each.column for each in words.origins}
    tables = []
    for view, parts in verdict.parts.items():
        changed = [each for each in parts if each.delta] if tells_something(compared, view, parts) else []
        column = narrowing.get(view, "")
        tables.append(Table.of_rows(
            view, f"{breakdown_title(compared, view)}{verdict.a_step}, by difference", columns,
            [(each.delta, each.base, each.other, each.status, _named(verdict, view, each)) for each in changed],
            target=partial(_target, compared, column, changed) if column else None, word="part",
        ))  # fmt: skip
    return Answer(facts, tuple(tables), notes=(verdict.why,))


def _named(verdict: Verdict, view: str, part: Amount) -> str:
    return verdict.name_of(view, part) if part.name == UNKNOWN else part.name


def _share(amount: Amount) -> float | None:
    return amount.delta / amount.base if amount.base else None


def breakdown_title(compared: Compared, view: str) -> str:
    """Title of a breakdown of work."""
    known = {each.view: each.word.plural.capitalize() for each in compared.base.vocabulary.origins}
    known |= {LANES: "{Lanes}", LAUNCHES: "Launches"}
    title = known.get(view) or view_to_compare(compared.base.profile, compared.other.profile, view).title
    return compared.base.vocabulary.say(title)


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


def diff_reports(
    compared: Compared, views: Sequence[View], limit: int | None, offset: int = 0, *, notes: bool = False
) -> Iterator[Report]:
    """Reports: the verdict, if requested the notes of both sides, then the views requested by name."""
    if compared.base.vocabulary.work_breakdowns:
        yield Report(_title(compared), tuple(_verdict_lines(compared)), tuple(_contributor_tables(compared)))
    else:
        yield Report(str(sentence(replace(compared.other, baseline=compared.base))), ("", *_path_lines(compared)))
    for query in (compared.base, compared.other) if notes else ():
        noted = notes_table(query)
        if noted is not None:
            yield Report(line_text(f"{query.profile.name}: notes"), (), (text_table(noted, limit),))
    for view in views:
        yield answer_report(compared.base.vocabulary.say(view.title), compared.answer(view), limit, offset)


def change_of(amount: Amount) -> str:
    """An amount on both sides, and its change."""
    return f"{time_text(amount.base)} -> {time_text(amount.other)}, {delta_text(amount.delta)}{change_text(amount)}"


def _title(compared: Compared) -> str:
    verdict = compared.verdict
    return f"{status_word(verdict.lead).capitalize()}{verdict.a_step}: {change_of(verdict.lead)}"


def _path_lines(compared: Compared) -> Iterator[str]:
    yield f"Base   {line_text(compared.base.profile.path)}{compared.base.step_text()}"
    yield f"Other  {line_text(compared.other.profile.path)}{compared.other.step_text()}"


def _verdict_lines(compared: Compared) -> Iterator[str]:
    verdict, noise = compared.verdict, compared.comparison.noise
    total, work = verdict.total, compared.work if verdict.step is None else compared.step_work
    yield f"Why: {verdict.why}"
    yield ""
    yield from _path_lines(compared)
    yield f"Work   {change_of(work)}{verdict.a_step}"
    if verdict.step is not None:
        yield f"Total  {status_word(total)}: {change_of(total)}"
    if verdict.lead.low is not None and verdict.lead.high is not None:
        low, high = (delta_text(round(edge)) for edge in (verdict.lead.low, verdict.lead.high))
        word = "Total" if verdict.step is None else "Step "
        yield f"{word}  between {low} and {high}, by the spread of repeats and of runs"
    within = "nothing repeats" if noise.within is None else f"launches vary by {percent_text(noise.within)}"
    stated = " (assumed: --run-noise)" if noise.stated else " (measured)"
    yield f"Noise  {within}, runs by {percent_text(noise.between)}{stated}"
    if compared.comparison.alike:
        base_path, other_path = (quote(line_text(query.profile.path)) for query in (compared.base, compared.other))
        pairs, both = compared.comparison.launches, compared.comparison.joint
        alike = len(both.base.launches) == len(both.other.launches) == len(pairs) and not pairs.changed.any()
        more = f"{other_path} --against {base_path}" if alike else f"diff {base_path} {other_path} alignment"
        yield f"Next   tpuprof {more}"


def tells_something(compared: Compared, view: str, parts: Sequence[Amount]) -> bool:
    """Whether a breakdown has differences: not other names of the same work, where it is known what it came from."""
    known, words = compared.comparison.origins, compared.base.vocabulary
    columns = {origin.column for origin in words.origins if origin.view in known}
    told = not known or view in known or not (is_renamed(parts) or dict(words.work_breakdowns).get(view) in columns)
    return told and any(each.delta for each in parts)


def _contributor_tables(compared: Compared) -> Iterator[TextTable]:
    a_step = compared.verdict.a_step
    for view, parts in compared.verdict.parts.items():
        if not tells_something(compared, view, parts):
            continue
        changed = [each for each in parts if each.delta]
        shown = changed[:_MOST_LISTED]
        unit = column_unit(max(max(each.base, each.other) for each in shown))
        title = breakdown_title(compared, view)
        rows = tuple(
            (compared.verdict.name_of(view, each), unit.number(each.base), unit.number(each.other),
             signed(unit.number(each.delta), each.delta),
             f"{each.delta / each.base:+.1%}" if each.base else "new",
             f"{each.other_count - each.base_count:+,.4g}" if each.other_count != each.base_count else "",
             each.status) for each in shown
        )  # fmt: skip
        rest = sum(each.delta for each in changed[_MOST_LISTED:])
        notes = (f"{len(changed) - len(shown):,} more, together {delta_text(rest)}: tpuprof diff BASE OTHER {view}.",) \
            if len(changed) > len(shown) else ()  # fmt: skip
        # NVTX ranges
        title = title if title[1:2].isupper() else title.lower()
        yield TextTable(f"What contributes, {title} ({unit.name} of work{a_step})",
                        ("Name", "Base", "Other", "Delta", "Change", "Count", "Status"), rows,
                        left=frozenset((0, 6)), notes=notes)  # fmt: skip
