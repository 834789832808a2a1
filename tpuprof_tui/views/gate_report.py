"""Output of ``tpuprof gate`` as text, JSON, Markdown and JUnit; and baselines: runs stored in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

import numpy as np
from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import asdict, astuple, replace

from tpuprof_tui.analysis.compare.amounts import LAUNCHES, Comparison
from tpuprof_tui.analysis.compare.gate import PARTS, Figure, Gate, RuleOutcome, Run
from tpuprof_tui.analysis.compare.noise import NOTHING_LOST, Amount
from tpuprof_tui.analysis.compare.work import recorded_operands
from tpuprof_tui.analysis.operation_names import names_by_code
from tpuprof_tui.analysis.pivot import key, pivot
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.moves import place_words
from tpuprof_tui.analysis.selecting.state import Place
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.formats.escape import html_text, line_text, markdown_code, markdown_text
from tpuprof_tui.formats.parsing import range_text
from tpuprof_tui.formats.tables import Report, markdown_lines
from tpuprof_tui.formats.tables import Table as TextTable
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.model.intervals import last_of_each
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.model.vocabulary import Word

from .comparing import Compared
from .diff_report import change_of, has_lost_records, outcome_record
from .registry import answer, facts_of, figures_of, view_of, views_of

#: Key at the start of a baseline file.
BASELINE: Final = "tpuprof_baseline"
#: Kind of the parts of a view, and the view of a kind.
_KINDS: Final = {"kernels": "kernel", "operations": "operation", "operators": "operation"}
#: Version of what the figures of a baseline mean; of another major version they are not comparable.
_DEFINITIONS: Final = "2.2"
_VIEWS: Final = {"kernel": "kernels", "operation": "operations"}
_SIDES: Final = ("base", "other")
#: Maximum number of rules in text.
_MOST_LISTED: Final = 10
#: Maximum length of the filter in a command, bytes, so that text stays below its limit.
_LONGEST_CONDITION: Final = 2000
#: Maximum number of findings in text, each of a different rule.
_FINDINGS: Final = 3


class Side(Struct, frozen=True):
    """The runs of one side."""

    runs: tuple[Run, ...]  #: Figures of each run
    #: source, chip: Source and chip of the profiles.
    source: str
    chip: str
    column: str = ""  #: Event column with the name of the kernel
    #: Findings of the first run, if requested: rule, place, possible gain (ns), text and advice.
    findings: tuple[tuple[str, str, int, str, str], ...] = ()
    #: By figure, the place of the longest launch or event in the first run, if requested.
    places: Mapping[str, Place] = field(default_factory=dict)
    is_baseline: bool = False  #: Whether the side was read from a baseline file, so that its captures may not exist
    unread: tuple[tuple[str, str], ...] = ()  #: Captures that could not be read: path, and why

    def renamed(self, names: Mapping[str, str]) -> Side:
        """This side with joint names of figures (`joint_names`)."""
        return replace(self, runs=tuple(run.renamed(names) for run in self.runs),
                       places={names.get(name, name): place for name, place in self.places.items()})  # fmt: skip


def side_of(query: Query, path: str, *, findings: bool = False, views: Collection[str] | None = None) -> Side:
    """The side of a single profile.

    ``findings``: with its top findings and the places of its figures. ``views``: ids of the views whose figures it has;
    None: all.
    """
    compared, words = Compared(query, query), query.vocabulary
    comparison, launches = compared.comparison, compared.comparison.joint.base.launches
    figures = {"total": _figure_of(compared.verdict.total)}
    steps = [own for own in compared.steps[0] if not math.isnan(own.typical)]
    if steps:  # of several workers the largest, as of all figures
        step = max(steps, key=lambda own: own.typical)
        count = len(step.lengths)
        spread = float(step.lengths.var(ddof=1)) / count if count > 1 else math.nan
        figures["step"] = Figure(step.typical, count, spread, count - 1)
    for view, parts in comparison.breakdowns.items() if words.work_breakdowns else ():  # else events are no work
        if view != LAUNCHES:  # kernels are event counts here: one that lost events would look new
            figures |= {f"{_KINDS.get(view, 'kernel')}:{part.name}": _figure_of(part) for part in parts}
    for each in views_of(words):
        if each.compared and not each.all_workers and (views is None or each.id in views):
            known = figures_of(facts_of(each, query))
            figures |= {f"{each.id}.{name}": Figure(value) for name, value in known.items()}
    signatures = {}
    for kernel in uniques(launches.kernel[launches.kernel >= 0]).tolist() if launches.known and launches.named else ():
        hashes = launches.signature[launches.kernel == kernel]
        signatures[comparison.joint.kernels[kernel]] = len(hashes), int(np.bitwise_xor.reduce(uniques(hashes)))
    stepped = bool(steps) and not query.steps.guessed
    run = Run(path, figures, comparison.lost.base, signatures, recorded_operands(query.profile),
              names_by_code(query.profile), has_lost_records(compared), query.profile.is_fragmentary,
              stepped, len(query.profile.units), stepped * len(uniques(query.steps.steps.number)),
              sum(lane.on_host and len(lane) > 0 for lane in query.profile.lanes))  # fmt: skip
    return Side(
        (run,), words.source, query.profile.device.chip if words.one_chip else "",
        dict(words.work_breakdowns).get("kernels", ""), _findings(query) if findings else (),
        dict(_places(query, comparison)) if findings else {},
    )  # fmt: skip


def _findings(query: Query) -> tuple[tuple[str, str, int, str, str], ...]:
    by_rule: dict[str, tuple[str, str, int, str, str]] = {}
    for table in answer(view_of(query.vocabulary, "findings"), query).tables:
        columns = (table.column(key) for key in ("rule", "group", "gain_us", "text", "advice"))
        for found in zip(*columns, strict=True):
            if found[2]:
                by_rule.setdefault(found[0], found)
    return tuple(by_rule.values())[:_FINDINGS]


def _places(query: Query, comparison: Comparison) -> Iterator[tuple[str, Place]]:
    """Places of the longest launch of each kernel and of the longest event of each operation. O(n log n)."""
    both, work, profile = comparison.joint, comparison.joint.base, comparison.base
    launches = work.launches
    if not len(work):
        yield from _host_places(query)
    for view, column in query.vocabulary.work_breakdowns:
        names, code, length = both.kernels, launches.kernel, launches.work
        if column == "name":
            names, code, length = both.operations, work.label, work.length
        elif not launches.known:
            continue
        last = last_of_each(np.lexsort((length, code)), code)
        for index in last[code[last] >= 0].tolist():
            event = index if column == "name" else min(int(launches.first[index]), len(work) - 1)
            lane, row = profile.lanes[int(work.lane[event])], slice(int(work.row[event]), int(work.row[event]) + 1)
            start, end = ((int(lane.take(edge, row)[0]) for edge in ("start", "end")) if column == "name" else
                          (int(launches.start[index]), int(launches.end[index])))  # fmt: skip
            number = profile.unit_number(lane)
            yield _place(view, names[int(code[index])], start, end, number if number >= 0 else None)


def _host_places(query: Query) -> Iterator[tuple[str, Place]]:
    """Place of the longest event of each name, for a profile in which only the host works. O(n log n)."""
    named = [number for number, lane in enumerate(query.profile.lanes) if "name" in lane]
    events = query.events(("name", "start", "end"), named)
    events = events.take(np.argsort(events["end"] - events["start"], kind="stable")[::-1])
    longest = pivot(events, ("name",), {column: key(column, None) for column in ("name", "start", "end")}, ())
    for view, _ in query.vocabulary.host_breakdowns:
        yield from (_place(view, name, start, end) for name, start, end in longest if name is not None)


def _place(view: str, name: str, start: int, end: int, unit_number: int | None = None) -> tuple[str, Place]:
    return f"{_KINDS.get(view, 'kernel')}:{name}", Place(range_text(start, max(end, start + 1)), unit_number)


def _figure_of(amount: Amount) -> Figure:
    """The figure of a profile compared with itself: its variance is half that of the difference."""
    return Figure(amount.base, round(amount.base_count), amount.variance / 2, amount.degrees_of_freedom / 2)


def refuse_unlike_sides(base: Side, other: Side) -> None:
    """Raises UsageError, naming both, if two sides are of different sources or chips and so not comparable."""
    ours, theirs = base.runs[0].path, other.runs[0].path
    for one, two in ((base.source, other.source), (base.chip, other.chip)):
        if one != two:
            raise UsageError(f"{ours} is of {one}, {theirs} of {two}.", "They cannot be compared.")


# baselines


def baseline_text(name: str, side: Side) -> str:
    """A side as JSON text, to be stored as a baseline."""
    record = {
        BASELINE: _DEFINITIONS, "name": name, "source": side.source, "chip": side.chip,
        "runs": [
            {**asdict(run), "codes": [[*code, list(names)] for code, names in run.codes.items()],
             "figures": {name: [None if value != value else value for value in astuple(figure)]
                         for name, figure in run.figures.items()}}
            for run in side.runs
        ],
    }  # fmt: skip
    return json.dumps(record) + "\n"


def is_baseline(path: Path) -> bool:
    """Whether a file is a baseline, by its first bytes."""
    try:
        with path.open("rb") as stream:
            return f'"{BASELINE}"'.encode() in stream.read(100)
    except OSError:
        return False


def read_baseline(path: Path) -> Side:
    """Reads a side from a baseline file; UnreadableError if it is not one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if str(record[BASELINE]).partition(".")[0] != _DEFINITIONS.partition(".")[0]:
            raise UnreadableError(f"{path} is a baseline of another version ({line_text(str(record[BASELINE]), 20)}): "
                                  "its figures have other definitions.", _save_again(path, record))  # fmt: skip
        runs = tuple(
            convert({**run, "codes": {tuple(code): names for *code, names in run.get("codes", ())},
                     "figures": {name: _figure(*values) for name, values in run["figures"].items()}}, Run)
            for run in record["runs"]
        )  # fmt: skip
        if not runs:
            raise ValueError("no runs")
        return Side(runs, str(record["source"]), str(record["chip"]), is_baseline=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise UnreadableError(
            f"{path} cannot be read as a baseline.", "Save it again: tpuprof baseline save."
        ) from error


def _save_again(path: Path, record: Any) -> str:
    captures = " ".join(quote(line_text(str(run["path"]))) for run in record.get("runs", ())) or "PATH ..."
    return f"Save it again: tpuprof baseline save {quote(line_text(str(path)))} {captures}"


def _figure(value: float, count: int, variance: float | None, degrees_of_freedom: float) -> Figure:
    found = Figure(
        float(value), int(count), math.nan if variance is None else float(variance), float(degrees_of_freedom)
    )
    if (
        not math.isfinite(found.value + found.degrees_of_freedom)
        or min(found.count, found.degrees_of_freedom) < 0
        or found.variance < 0
    ):
        raise ValueError("no figure")
    return found


# output


def gate_record(result: Gate, base: Side, other: Side) -> dict[str, Any]:
    """JSON record of the gate's outcome."""
    amounts = result.amounts
    by_view = {_VIEWS[kind]: [replace(each, name=name.partition(":")[2]) for name, each in amounts.items()
                              if name.startswith(f"{kind}:")] for kind in _VIEWS}  # fmt: skip
    sums = [sum(getattr(each, side) for each in by_view["kernels"] or by_view["operations"]) for side in _SIDES]
    work, why = Amount("", sums[0], sums[1], 0, 0), why_gated(result, base, other)
    return {
        "result": result.result,
        "rules": [
            {"rule": each.rule.text, "result": each.result,
             **{key: None if value is None else value / (1000 if is_time(each.rule.figure) else 1)
                for key in (*_SIDES, "delta", "low", "high") for value in [getattr(each.amount, key)]}}
            for each in result.rules
        ],
        "verdict": outcome_record(amounts["total"], work, by_view, result.lost, result.noise, why),
        "findings": [{"rule": rule, "group": group, "gain_us": gain / 1000, "text": text, "advice": advice}
                     for rule, group, gain, text, advice in other.findings],
        "unread": [{"path": path, "why": why} for side in (base, other) for path, why in side.unread],
    }  # fmt: skip


def is_time(figure: str) -> bool:
    """Whether a figure is in ns."""
    return "." not in figure or figure.endswith("_us") or figure.startswith(PARTS)


def why_gated(result: Gate, base: Side, other: Side) -> str:
    """The outcome in one sentence: the worst violation, or that there is none."""
    fragmentary = [run.path for run in (*base.runs, *other.runs) if run.fragmentary]
    if fragmentary:
        path = line_text(fragmentary[0], 200)
        return f"More than 5 % of the device's events of {path} are not recorded or not believed: nothing is judged."
    broken = [each for each in result.rules if each.result == "FAIL"]
    note = "".join(f" {sentence}" for sentence in (*_more(base.runs[0], other.runs[0]), _other_launches(base, other))
                   if sentence)  # fmt: skip
    parts = [each for each in broken if each.rule.figure.startswith(PARTS)]
    if broken:
        most = max(parts or broken, key=_severity)
        total = result.amounts["total"]
        if total.status in ("same", "less"):  # it did not follow the part
            note = f" The total is {'the same' if total.status == 'same' else 'less'}: {change_of(total)}.{note}"
        return f"{_sentence(most)}.{note}"
    unsure = [each for each in result.rules if each.result == "INCONCLUSIVE"]
    missing = [each.rule.text for each in unsure if not each.recorded]
    if missing:
        return f"Not every run records what {line_text(missing[0], 60)} is about: record all runs in the same way."
    if unsure and result.incomplete != NOTHING_LOST:
        return "Records are lost or unreadable: they could explain or hide changes of some parts."
    if unsure and unsure[0].amount.low is None:
        return (
            f"Nothing repeats within the runs to tell noise from {unsure[0].rule.text}: use three runs per side.{note}"
        )
    if unsure:
        return f"Noise is as large as the limit of {unsure[0].rule.text}: use more runs per side.{note}"
    return f"Nothing grew beyond its limit.{note}"


def _severity(outcome: RuleOutcome) -> tuple[float, bool]:
    return outcome.amount.delta, outcome.rule.figure.startswith("kernel:")


def _more(base: Run, other: Run) -> Iterator[str]:
    """Other numbers of units and marked steps: then all sums differ; and a host of one side alone, in its total."""
    for word, counts in ((Word("unit"), (base.units, other.units)), (Word("step"), (base.steps, other.steps))):
        if all(counts) and counts[0] != counts[1]:
            yield f"The other has {word.more(*counts)}."
    if min(hosts := (base.host_lanes, other.host_lanes)) == 0 < max(hosts):
        yield f"No host is recorded in the {'base' if hosts[1] else 'other'}."


def _other_launches(base: Side, other: Side) -> str:
    first = base.runs[0], other.runs[0]
    if first[0].lost or first[1].lost:
        return ""
    ours, theirs = (run.signatures for run in first)
    # hashes over different operands are not comparable: compare only the number of launches
    size = 2 if first[0].operands == first[1].operands else 1
    names = [name for name in sorted({*ours, *theirs}) if ours.get(name, ())[:size] != theirs.get(name, ())[:size]]
    if not names or not ours or not theirs:
        return ""
    named = ", ".join(line_text(name, 40) for name in names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    return f"Launched or built differently than before: {named}."


def _sentence(outcome: RuleOutcome) -> str:
    figure, amount = outcome.rule.figure, outcome.amount
    kind, _, name = figure.partition(":")
    subject = f"The {kind} {line_text(name, 40)}" if name else f"The {kind}" if kind in ("total", "step") else figure
    value = time_text(round(amount.delta)) if is_time(figure) else f"{amount.delta:g}"
    if not amount.base:
        return f"{subject} is new: {value}"
    return f"{subject} grew by {value} ({percent_text(amount.delta / amount.base)})"


def gate_report(result: Gate, base: Side, other: Side) -> Report:
    """The outcome as text."""
    noise = result.noise
    runs = [f"{len(side.runs)} runs: {path}, ..." if len(side.runs) > 1 else path
            for side in (base, other) for path in [line_text(side.runs[0].path)]]  # fmt: skip
    between = f"between runs {percent_text(noise.between)}"
    stated = "assumed: three runs per side measure it" if noise.stated else "measured"
    lines = (
        f"Why: {why_gated(result, base, other)}", "",
        f"Base   {runs[0]}", f"Other  {runs[1]}", f"Noise  {between}, {stated}",
        *_lost_lines(result, base, other),
        *(f"See    {line}" for line in _commands(result, base, other)),
        *(f"Try    {line}" for line in _advice(result, other)),
    )  # fmt: skip
    return Report(result.result, lines, (_table(result),) if result.rules else ())


def _lost_lines(result: Gate, base: Side, other: Side) -> Iterator[str]:
    lost = result.lost
    if lost != NOTHING_LOST:
        yield f"Lost   {lost.base:,} records of the base, {lost.other:,} of the other: what they explain is not judged"
    for path, why in (*base.unread, *other.unread):
        yield f"Unread {line_text(path)} is left out: {line_text(why)}"


def _table(result: Gate) -> TextTable:
    shown = sorted(result.rules, key=lambda each: ("FAIL", "INCONCLUSIVE", "PASS").index(each.result))
    rows = tuple(
        (each.result, line_text(each.rule.text, 44), *(_value(each, side) for side in _SIDES),
         *(_value(each, side, "+") for side in ("delta", "low", "high")))
        for each in shown[:_MOST_LISTED]
    )  # fmt: skip
    more = len(shown) - len(rows)
    notes = (f"{more:,} more: --json lists all.",) if more else ()
    return TextTable(
        "Rules", ("Result", "Rule", "Base", "Other", "Delta", "Low", "High"), rows, left=frozenset((0, 1)), notes=notes
    )


def _value(outcome: RuleOutcome, key: str, sign: str = "") -> str:
    value = getattr(outcome.amount, key)
    if value is None:
        return "-"
    text = time_text(round(value)) if is_time(outcome.rule.figure) else f"{value:,.4g}"
    return f"{sign}{text}" if value > 0 else text


def _commands(result: Gate, base: Side, other: Side) -> Iterator[str]:
    """Commands that open the worst part in the explorer, where it is longest, and that list its events."""
    parts = [each for each in result.rules if each.result == "FAIL" and each.rule.figure.startswith(PARTS)]
    if not parts:
        return
    most = max(parts, key=_severity).rule.figure
    kind, _, name = most.partition(":")
    path = line_text(other.runs[0].path)
    if most in other.places:
        yield place_words(path, other.places[most], against="" if base.is_baseline else line_text(base.runs[0].path))
    condition = text_condition(other.column, name)
    if kind == "kernel" and other.column and len(condition.encode("utf-8", "replace")) <= _LONGEST_CONDITION:
        yield (f"tpuprof instructions {quote(path)} --filter {quote(condition)} "
               "--columns name,start,dur --sort dur:desc --limit 20")  # fmt: skip


def _advice(result: Gate, other: Side) -> Iterator[str]:
    for rule, _, gain, text, advice in other.findings if result.result != "PASS" else ():
        yield f"{rule}, at most {time_text(gain)}: {line_text(text, 160)} {advice}"


def gate_markdown(result: Gate, base: Side, other: Side) -> str:
    """The outcome as Markdown for a merge request."""
    lines = [f"### tpuprof gate: {result.result}", "", markdown_text(why_gated(result, base, other)), ""]
    lines += markdown_lines(_table(result)) if result.rules else []
    report = gate_report(result, base, other)
    lines += [f"- {markdown_text(line)}" for line in (*report.lines[2:5], *_lost_lines(result, base, other))]
    lines += ["", *(f"- {markdown_code(command)}" for command in _commands(result, base, other))]
    advice = [f"- {markdown_text(line)}" for line in _advice(result, other)]
    lines += ["", "Possible savings:", "", *advice] if advice else []
    return "\n".join(lines) + "\n"


def gate_junit(result: Gate, base: Side, other: Side) -> str:
    """The outcome as JUnit XML: a test per rule, skipped if inconclusive; an unread capture is an error."""
    failures = sum(each.result == "FAIL" for each in result.rules)
    skipped = sum(each.result == "INCONCLUSIVE" for each in result.rules)
    unread = (*base.unread, *other.unread)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             f'<testsuite name="tpuprof gate" tests="{len(result.rules) + len(unread)}" failures="{failures}" '
             f'errors="{len(unread)}" skipped="{skipped}">']  # fmt: skip
    for path, why in unread:
        lines += [f'  <testcase classname="tpuprof.gate" name="{html_text(path)}">',
                  f'    <error message="{html_text(why)}"/>', "  </testcase>"]  # fmt: skip
    for each in result.rules:
        lines.append(f'  <testcase classname="tpuprof.gate" name="{html_text(each.rule.text)}">')
        numbers = f"{_value(each, 'base')} -> {_value(each, 'other')}, {_value(each, 'low')} to {_value(each, 'high')}"
        if each.result == "FAIL":
            lines.append(f'    <failure message="{html_text(_sentence(each))}">{html_text(numbers)}</failure>')
        elif each.result == "INCONCLUSIVE":
            why = "noise or lost records are as large as the limit" if each.recorded else "not recorded by every run"
            lines.append(f'    <skipped message="{why}: {html_text(numbers)}"/>')
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"]) + "\n"
