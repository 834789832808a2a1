"""Findings: rules about steps, gaps, kernels, communication and memory; and the vendor's own advice.

The evidence of each finding has its figure and threshold. Shares are of Stage unless stated otherwise. Gains are upper
bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.formats.units import bytes_text, percent_text, time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Answer, Column, Table, Target
from tpuprof_tui.views.query import Query

from ..recorded import METRICS, OTHER, STEP_KEYS, RecordedRank, is_total, late_rank, records, waits_of
from .figures import CAUSES, RankFigures, figures_of
from .overview import difference
from .ranks import WHOLE, ranks_of

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: A finding with at least this share of Stage as gain is a warning, else a note.
WARNS_FROM: Final = 0.01
_CUBE: Final = lazy_pattern("MatMul|BatchMatMul|Conv(?!ert)|.*Attention", re.IGNORECASE)
_ENGINES: Final = lazy_pattern("[SR]DMA")
_SYNCHRONISES: Final = lazy_pattern(r"(?:.*@)?aclrtSynchronize|aten::item$|aten::_local_scalar_dense$")
#: Most characters shown of a vendor rule's text.
_LONGEST: Final = 2000
_SHORT_NS: Final = 10_000
_LARGE_MB: Final = 100
_MOST_OF_RULE: Final = 5
_MAC: Final = f"{OTHER}aic_mac_ratio"
#: Findings need a mac ratio of a cube kernel below the first, an overlapped share of communication below the second.
_CUBE_BUSY, _COVERED = 0.4, 0.5


class Finding(Struct, frozen=True):
    """One finding.

    Attributes:
        rule: Key of the rule.
        worker: Key of the worker; empty: all workers together.
        gain: Time that could be saved, ns; None if unknown.
        text, advice: Observation, and what to try.
        figure, value, threshold: Name and value of the figure, and the threshold it is compared with.
        where: Start and end of the slice or gap concerned, ns on the time line, and its name; None: the whole
            recording.
        source: Origin of the rule: this program, or the vendor's file.
    """

    rule: str
    worker: str
    gain: float | None
    text: str
    advice: str
    figure: str = ""
    value: float | None = None
    threshold: float | None = None
    where: tuple[int, int, str] | None = None
    source: str = "tpuprof"


class Rule(Struct, frozen=True):
    """A rule that finds problems.

    Attributes:
        key: Its key.
        formula: Definition of the figure, one sentence.
        figure: Name of the figure.
        threshold: Value beyond which it is reported.
        advice: What to try.
        find: Yields findings; called with the figures of a rank (``RULES``) or the communication of all ranks
            (``RULES_OF_ALL``), and this rule.
    """

    key: str
    formula: str
    figure: str
    threshold: float
    advice: str
    find: Callable[[Any, Rule], Iterator[Finding]]

    def found(self, worker: str, gain: float | None, text: str, value: float,
              where: tuple[int, int, str] | None = None, threshold: float | None = None) -> Finding:  # fmt: skip
        """A finding of this rule about a worker; ``threshold``: the one compared with, if not the rule's own."""
        beyond = self.threshold if threshold is None else threshold
        return Finding(self.key, worker, gain, text, self.advice, self.figure, value, beyond, where)


def findings(query: Query) -> Answer:
    """The findings view."""
    ranks = ranks_of(query)
    figures = [figures_of(query, rank) for rank in ranks]
    found: list[Finding] = []
    for of_rank in figures:
        found += [finding for rule in RULES for finding in rule.find(of_rank, rule)]
        found += _vendor_findings(of_rank.rank)
    communication = _communication_of_ranks(query, ranks)
    found += [finding for rule in RULES_OF_ALL for finding in rule.find(communication, rule)]
    stages = {of_rank.rank.key: stage_of(of_rank) for of_rank in figures}
    found.sort(key=lambda finding: -(finding.gain or 0))
    units = {rank.key: rank.unit for rank in ranks}
    rows = []
    for finding in found:
        stage = stages.get(finding.worker) or max(stages.values(), default=0)
        gain = None if finding.gain is None else min(finding.gain, stage) if stage else finding.gain
        severity = "warning" if gain is not None and stage and gain >= WARNS_FROM * stage else "note"
        unit = units.get(finding.worker, -1)
        group = query.profile.groups.title(unit) if unit >= 0 else ""
        start, end, name = finding.where or (None, None, "")
        evidence = {
            "group": group, "lane": None, "start_us": None if start is None else start / 1000,
            "duration_us": None if start is None or end is None else (end - start) / 1000, "name": name,
            "figure": finding.figure, "value": finding.value, "threshold": finding.threshold,
        }  # fmt: skip
        rows.append((severity, finding.rule, finding.worker, group, gain, finding.text, [evidence], finding.advice,
                     finding.source))  # fmt: skip
    columns = (
        Column("severity", "Severity", spare=3), Column("rule", "Rule", spare=4),
        Column("worker", "Worker", shown=False), Column("group", "Where", shown=len(ranks) > 1),
        Column("gain_us", "To win", "duration"), Column("text", "What"),
        Column("evidence", "Evidence", "list", shown=False), Column("advice", "Try", spare=1),
        Column("source", "Source", shown=False),
    )  # fmt: skip

    def target(row: int) -> Target | None:
        where, unit = found[row].where, units.get(found[row].worker, -1)
        if where is not None:
            return Target(time=where[:2])
        return Target(scope=Scope(unit)) if unit >= 0 else None

    part = query.range is not None or query.step is not None or bool(query.filter)
    sources = dict.fromkeys(finding.source for finding in found)
    return Answer(
        tables=(Table.of_rows("findings", "Findings", columns, rows, target=target, word="finding",
                              notes=("To win: an upper bound.",)),),
        notes=(WHOLE,) if part else (), source=", ".join(sources),
    )  # fmt: skip


# -- figures shared by several rules


def stage_of(figures: RankFigures) -> float:
    """Sum of Stage over all steps of a rank, ns; 0 if unknown."""
    return _sum(figures, "stage_us") or 0


def _sum(figures: RankFigures, key: str) -> float | None:
    index = STEP_KEYS.index(key)
    known = [value for step in figures.steps if (value := step.values[index]) is not None]
    return sum(known) if known else None


def _share(part: float | None, whole: float | None) -> float:
    return part / whole if part and whole else 0.0


def _lengths(kernels: Records) -> I64:
    duration = kernels["duration"]
    return np.where(duration == INT_MISSING, 0, duration)


def _where(kernels: Records, key: str, test: Callable[[str], Any]) -> Mask:
    """Mask of the kernels whose text passes a test."""
    codes = kernels[key]
    return np.array([*(bool(test(text)) for text in kernels.texts[key]), False], np.bool_)[codes]


# -- rules of one worker


def _free(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    free, stage = _sum(figures, "free_us"), stage_of(figures)
    share = _share(free, stage)
    if share > rule.threshold and free is not None:
        causes = {cause: ns for cause, ns in figures.cause_times.items() if ns and cause != "unknown"}
        most = max(causes, key=lambda cause: causes[cause]) if causes else ""
        why = {"host": "mostly the host called late", "dispatch": "mostly between call and launch",
               "device": "mostly launched work waited"}.get(most, "why is not known")  # fmt: skip
        text = f"Free for {time_text(round(free))}, {percent_text(share)} of Stage: {why}."
        yield rule.found(figures.rank.key, free, text, share)


def _exposed(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    exposed, stage = _sum(figures, "communication_not_overlapped_us"), stage_of(figures)
    total, covered = _sum(figures, "communication_us"), _sum(figures, "overlapped_us")
    share, overlap = _share(exposed, stage), _share(covered, total)
    if share > rule.threshold and overlap < _COVERED and exposed is not None:
        text = f"Computing covers {percent_text(overlap)} of communication; the rest is {percent_text(share)} of Stage."
        yield rule.found(figures.rank.key, exposed, text, share)


def _gap(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    gaps, stage = figures.gaps, stage_of(figures)
    if not len(gaps) or not stage:
        return
    row = int(np.argmax(gaps.length))
    length = int(gaps.length[row])
    if length > rule.threshold * stage:
        cause = CAUSES[figures.causes[row]]
        text = f"One gap of {time_text(length)}, {percent_text(length / stage)} of Stage; cause: {cause}."
        yield rule.found(
            figures.rank.key, length, text, length / stage, (int(gaps.start[row]), int(gaps.end[row]), "Free")
        )


def _launch_bound(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    times = figures.cause_times
    host, free = times["host"], sum(times.values())
    if host > rule.threshold * free:
        text = f"{percent_text(host / free)} of the free time the device waited for the host to call."
        yield rule.found(figures.rank.key, host, text, host / free)


def _of_kernels(test: Callable[[Records], Mask], text: str) -> Callable[[RankFigures, Rule], Iterator[Finding]]:
    """A rule about the time of the kernels in a mask, as a share of Stage."""

    def found(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
        kernels, stage = figures.table("kernels"), stage_of(figures)
        if kernels is None or not stage:
            return
        selected = test(kernels)
        total = int(_lengths(kernels)[selected].sum())
        if total > rule.threshold * stage:
            text_of_finding = text.format(count=f"{int(selected.sum()):,}", share=percent_text(total / stage))
            yield rule.found(figures.rank.key, total, text_of_finding, total / stage)

    return found


def _dynamic(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    kernels = figures.table("kernels")
    if kernels is None:
        return
    states = kernels["op_state"] if "op_state" in kernels else np.zeros(0, np.int32)
    known = int((states >= 0).sum())
    dynamic = int(_where(kernels, "op_state", lambda text: text.lower() == "dynamic").sum()) if known else 0
    if known and dynamic > rule.threshold * known:
        text = f"{dynamic:,} of {known:,} kernels ran with dynamic shapes."
        yield rule.found(figures.rank.key, None, text, dynamic / known)


def _cube(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    kernels, stage = figures.table("kernels"), stage_of(figures)
    if kernels is None or not stage or _MAC not in kernels:
        return
    ratio = kernels[_MAC]
    lengths = _lengths(kernels)
    rows = np.flatnonzero(
        _where(kernels, "type", _CUBE.match) & (ratio < _CUBE_BUSY) & (lengths > rule.threshold * stage)
    )
    for name, row, same_name in _by_name(kernels, rows):
        gain = float((lengths[same_name] * (1 - ratio[same_name])).sum())
        text = f"{name} keeps the cube core busy for {percent_text(float(ratio[row]))} of its time{_times(same_name)}."
        yield rule.found(
            figures.rank.key, gain, text, float(ratio[row]), _span(kernels, row, name), threshold=_CUBE_BUSY
        )


def _by_name(kernels: Records, rows: I64) -> Iterator[tuple[str, int, I64]]:
    """Groups kernels by name, longest total first: the name, the row of the longest, and all rows."""
    lengths, codes = _lengths(kernels), kernels["name"][rows]
    found = [rows[codes == code] for code in np.flatnonzero(np.bincount(codes + 1)) - 1]
    found.sort(key=lambda same_name: -int(lengths[same_name].sum()))
    for same_name in found[:_MOST_OF_RULE]:
        row = int(same_name[np.argmax(lengths[same_name])])
        code = int(kernels["name"][row])
        yield kernels.texts["name"][code] if code >= 0 else "", row, same_name


def _times(rows: I64) -> str:
    return f" ({len(rows):,} times)" if len(rows) > 1 else ""


def _span(kernels: Records, row: int, name: str) -> tuple[int, int, str] | None:
    if not kernels["timed"][row]:
        return None
    return int(kernels["start"][row]), int(kernels["end"][row]), name


def _small(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    kernels = figures.table("kernels")
    if kernels is None:
        return
    duration = kernels["duration"]
    known = ~kernels["communicates"] & (duration != INT_MISSING)
    count, small = int(known.sum()), int((known & (duration < _SHORT_NS)).sum())
    if count and small > rule.threshold * count:
        text = f"{small:,} of {count:,} kernels take less than 10 us."
        yield rule.found(figures.rank.key, None, text, small / count)


def _blocks(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    kernels, stage = figures.table("kernels"), stage_of(figures)
    if kernels is None or not stage:
        return
    values = np.array([int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
                       for text in kernels.texts["blocks"]] + [-1])[kernels["blocks"]]  # fmt: skip
    values = np.where(kernels["communicates"], -1, values)
    most = int(values.max(initial=-1))
    lengths = _lengths(kernels)
    rows = np.flatnonzero((values > 0) & (values < most) & (lengths > rule.threshold * stage))
    for name, row, same_name in _by_name(kernels, rows):
        gain = float((lengths[same_name] * (1 - values[same_name] / most)).sum())
        text = f"{name} asks for {values[row]} cores, others for {most}{_times(same_name)}."
        yield rule.found(
            figures.rank.key, gain, text, float(values[row]), _span(kernels, row, name), threshold=float(most)
        )


def _synchronises(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    host = figures.events(("python", "cann", "other"), "name", "start", "end", "lane", "host_total")
    passing = np.array([*(bool(_SYNCHRONISES.match(name)) for name in host.texts["name"]), False], np.bool_)
    calls = np.isin(host["lane"], figures.lanes("cann")) | (host["host_total"] != INT_MISSING)
    waiting = host.take(passing[host["name"]] & calls)
    if not len(waiting):
        return
    waits = Intervals.union(waiting["start"], waiting["end"]).total
    host_time = int(host["end"].max() - host["start"].min())
    if waits > rule.threshold * host_time:
        share = percent_text(waits / host_time)
        text = f"The host waits for the device {share} of its time ({len(waiting):,} calls)."
        yield rule.found(figures.rank.key, waits, text, waits / host_time)


def _uneven_steps(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    steps = [(step.label, value) for step in figures.steps if (value := step.values[0])]
    if len(steps) < 2:
        return
    values = [value for _, value in steps]
    mean = sum(values) / len(values)
    spread = (max(values) - min(values)) / mean
    if spread > rule.threshold:
        slow = max(steps, key=lambda step: step[1])
        text = f"Computing differs by {percent_text(spread)} between steps; step {slow[0]} takes longest."
        yield rule.found(figures.rank.key, max(values) - min(values), text, spread)


def _differs(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    apart = (difference(figures) or 0) / 1000
    if apart > rule.threshold:
        text = f"Step times differ from the recorded ones by up to {time_text(round(apart * 1000))}."
        yield rule.found(figures.rank.key, None, text, apart)


def _grows(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    """Reports memory that is held at the end of each step and grows with every step."""
    allocations, ends = figures.table("allocations"), [step.end for step in figures.steps if step.end is not None]
    if allocations is None or len(ends) < 3:
        return
    never, size = np.iinfo(np.int64).max, np.nan_to_num(allocations["size"])
    begun, until = (
        np.where(allocations[key] == INT_MISSING, never, allocations[key]) for key in ("allocated", "released")
    )
    held = [float(size[(begun <= end) & (until > end)].sum()) for end in ends]
    if all(one < other for one, other in pairwise(held)) and held[-1] > (1 + rule.threshold) * held[0]:
        text = f"Memory held grows with each step, {bytes_text(round(1024 * (held[-1] - held[0])))} in all."
        yield rule.found(figures.rank.key, None, text, held[-1] / max(held[0], 1), threshold=1 + rule.threshold)


def _small_packets(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    transfers = figures.table("transfers")
    rows = [] if transfers is None else records(transfers, "op", "link", "size_mb", "large_packets")
    for op, link, size, large in rows:
        is_large = _ENGINES.match(link) and size > _LARGE_MB and not is_total(op)
        if is_large and large is not None and large < rule.threshold:
            text = f"{op} moves {bytes_text(int(size * 1e6))} over {link} in small packets."
            yield rule.found(figures.rank.key, None, text, large)


def _level0(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    if figures.rank.level == "Level0":
        text = "Recorded at Level0: no operator types, no metrics, no calls of CANN, no transfers."
        yield rule.found(figures.rank.key, None, text, 0, threshold=1)


def _no_metrics(figures: RankFigures, rule: Rule) -> Iterator[Finding]:
    kernels, metrics = figures.table("kernels"), figures.rank.metrics
    none = kernels is not None and kernels.texts["type"] and not any(
        column.group == METRICS for column in kernels.schema)  # fmt: skip
    if figures.rank.level != "Level0" and (none or metrics.replace("_", "").upper().endswith("AICORENONE")):
        text = "Recorded without AI Core metrics: what binds a kernel is not known."
        yield rule.found(figures.rank.key, None, text, 0, threshold=1)


def _vendor_findings(rank: RecordedRank) -> Iterator[Finding]:
    """Findings from ``prof_rule_*.json``, texts unchanged."""
    for file, content in rank.advice:
        for rule in _objects(content):
            kind = _first(rule, "rule_type", "type")
            results = rule.get("result", [rule])
            for each in results if isinstance(results, list) else []:
                advice = _keyed(each) if isinstance(each, dict) else {}
                text = _first(advice, "rule_suggestion", "suggestion", "description") or _first(rule, "description")
                sub = _first(advice, "rule_subtype", "subtype")
                about = " ".join(filter(None, (_first(advice, "op_list"), _first(advice, "tuning_data"))))
                yield Finding(": ".join(filter(None, (kind, sub))) or "prof_rule", rank.key, None,
                              " ".join(filter(None, (text, about))), "", source=file)  # fmt: skip


def _objects(content: Any) -> Iterator[Mapping[str, Any]]:
    """The rules in a file: a list, or an object with a list in ``data``; keys in lower case with underscores."""
    rules = _keyed(content).get("data") if isinstance(content, dict) else content
    for each in rules if isinstance(rules, list) else []:
        if isinstance(each, dict):
            yield _keyed(each)


def _keyed(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).strip().lower().replace(" ", "_"): each for key, each in value.items()}


def _first(value: Mapping[str, Any], *keys: str) -> str:
    found = next((value[key] for key in keys if value.get(key)), "")
    if isinstance(found, list):
        found = ", ".join(map(str, found[:20]))
    return utf8_text(str(found)[:_LONGEST])


# -- rules of several workers


class _Communication(Struct, frozen=True):
    """Communication of a rank: key (empty: not a rank of the profile), rank, clock, operators and transfers.

    Attributes:
        operations: See `waits_of`.
        transfers: ``link``, ``size_mb``, ``transit`` of each, without sums.
    """

    key: str
    rank: Any
    clock: float | None
    operations: list[tuple[Any, ...]]
    transfers: list[tuple[Any, ...]]


def _communication_of_ranks(query: Query, ranks: Sequence[RecordedRank]) -> list[_Communication]:
    """Communication of each rank, else as msprof-analyze's files tell it."""
    tables = [(rank, query.profile.table("operations", rank.group)) for rank in ranks]
    found = [_Communication(rank.key, rank.rank, rank.clock, waits_of(table, rank.zero),
                            _transfers(query.profile.table("transfers", rank.group)))
             for rank, table in tables if table is not None]  # fmt: skip
    operations, transfers = (query.profile.table(name) for name in ("operations", "transfers"))
    if found or operations is None or transfers is None:
        return found
    numbers = dict.fromkeys(rank for table in (operations, transfers) for (rank,) in records(table, "rank"))
    return [_Communication("", number, None, waits_of(operations, rank=number), _transfers(transfers, number))
            for number in numbers]  # fmt: skip


def _transfers(table: Records | None, rank: str | None = None) -> list[tuple[Any, ...]]:
    rows = [] if table is None else records(table, "rank", "op", "link", "size_mb", "transit")
    return [row[2:] for row in rows if rank in (None, row[0]) and not is_total(row[1])]


def _slow_rank(ranks: Sequence[_Communication], rule: Rule) -> Iterator[Finding]:
    """Ranks that wait for the slowest rank (``late``)."""
    last = late_rank([(told.rank, told.clock, told.operations) for told in ranks])
    for index, told in enumerate(ranks):
        wait, synchronization = (sum(row[place] or 0 for row in told.operations) for place in (4, 5))
        if wait and synchronization > rule.threshold * wait:
            who = ranks[last].rank if last not in (-1, index) else None
            others = f"; the others waited for rank {who}" if who is not None else ""
            whose = "" if told.key else f" of rank {told.rank}"
            share = percent_text(synchronization / wait)
            text = f"{share} of the wait{whose} in communication is for the slowest rank to begin{others}."
            yield rule.found(told.key, synchronization, text, synchronization / wait)


def _slow_links(ranks: Sequence[_Communication], rule: Rule) -> Iterator[Finding]:
    sums: dict[str, dict[int, list[float]]] = {}
    for index, told in enumerate(ranks):
        for link, size, transit in told.transfers:
            sums_of_rank = sums.setdefault(link, {}).setdefault(index, [0.0, 0.0])
            sums_of_rank[0] += size
            sums_of_rank[1] += transit or 0
    for link, of_rank in sums.items():
        speeds = {index: size / time * 1_000_000 for index, (size, time) in of_rank.items() if time}
        if len(speeds) < 2:
            continue
        mean = sum(speeds.values()) / len(speeds)
        for index, speed in speeds.items():
            if speed < (1 - rule.threshold) * mean:
                told = ranks[index]
                whose = "this rank" if told.key else f"rank {told.rank}"
                text = f"{link} of {whose} moves {speed:,.2f} GB/s, the mean is {mean:,.2f} GB/s."
                yield rule.found(told.key, of_rank[index][1] * (1 - speed / mean), text, speed / mean,
                                 threshold=1 - rule.threshold)  # fmt: skip


#: Rules about one worker.
RULES: Final = (
    Rule("free", "Free as a share of Stage.",
         "free / stage", 0.1, "See the view `free`: each gap and its cause.", _free),
    Rule("exposed_communication", "Communication that computing does not cover as a share of Stage, where less than "
         "half is covered.", "not overlapped / stage", 0.1,
         "Start it earlier, in smaller buckets, or find the rank that the others wait for.", _exposed),
    Rule("long_gap", "The longest slice of Free as a share of Stage.", "gap / stage", 0.05,
         "See what the host did meanwhile (view `free`).", _gap),
    Rule("launch_bound", "Free time of cause host as a share of all of it.", "host / free", 0.5,
         "Fewer and larger operators, fused optimisers, graph mode, less Python between calls.", _launch_bound),
    Rule("ai_cpu", "Kernels on AI CPUs as a share of Stage.", "time / stage", 0.02,
         "Operators or types that AI Core has: see which in the view `kernels`.",
         _of_kernels(lambda kernels: _where(kernels, "core", lambda core: re.match("AI_?CPU", core)),
                     "{count} kernels on AI CPUs take {share} of Stage.")),
    Rule("transdata", "Kernels of type TransData as a share of Stage.", "time / stage", 0.05,
         "torch_npu.npu.config.allow_internal_format = False, or formats that fit.",
         _of_kernels(lambda kernels: _where(kernels, "type", "TransData".__eq__),
                     "{count} conversions of formats (TransData) take {share} of Stage.")),
    Rule("cast", "Kernels of type Cast as a share of Stage.", "time / stage", 0.05,
         "Use one type throughout: amp, or types at the source.",
         _of_kernels(lambda kernels: _where(kernels, "type", "Cast".__eq__), "{count} casts take {share} of Stage.")),
    Rule("dynamic_shapes", "Kernels of OP State dynamic as a share of those with a state.", "dynamic / kernels", 0.5,
         "torch_npu.npu.set_compile_mode(jit_compile=False), and shapes that do not change.", _dynamic),
    Rule("cube_idle", "A MatMul, Conv or Attention kernel with aic_mac_ratio below 0.4 as a share of Stage.",
         "aic_mac_ratio", 0.02,
         "Shapes that are multiples of 16, float16 or bfloat16, formats without conversion.", _cube),
    Rule("small_kernels", "Kernels below 10 us as a share of their number.", "short kernels / kernels", 0.5,
         "Larger batches, fused operators, graph mode: launching costs as much.", _small),
    Rule("few_blocks", "A kernel with fewer blocks than the largest Block Dim as a share of Stage.", "Block Dim", 0.01,
         "Larger shapes, or another split of the work.", _blocks),
    Rule("host_synchronises", "Union of aclrtSynchronize*, aten::item and _local_scalar_dense as a share of host time.",
         "waits / host", 0.1, "Do not read values every step: .item(), print, synchronize().", _synchronises),
    Rule("uneven_steps", "Largest less smallest Computing of a step as a share of the mean.", "(max - min) / mean", 0.1,
         "Leave warm-up steps out; look for shapes that change.", _uneven_steps),
    Rule("recorded_differs", "Largest difference of a time of a step from the recorded one, us.", "difference_us", 0.01,
         "See both tables of the view `overview`: files of two recordings stand together, or one is cut.", _differs),
    Rule("memory_grows", "Memory held at the end of the last step beyond that of the first, where each adds to it.",
         "held at the last step / at the first",
         0.01, "Look for tensors that are kept: lists of losses, outputs without detach().", _grows),
    Rule("small_packets", "Large Packet Ratio of more than 100 MB over a link that sends packets: reported below it.",
         "Large Packet Ratio", 0.2, "Larger buckets, aligned gradients (HCCL).", _small_packets),
    Rule("level0", "Whether profiler_level was Level0.",
         "profiler_level", 0, "Record with profiler_level=Level1.", _level0),
    Rule("no_metrics", "Whether kernels were recorded without AI Core metrics.", "metrics", 0,
         "Record with aic_metrics=PipeUtilization (Level1), or msprof --ai-core=on.", _no_metrics),
)  # fmt: skip
#: Rules that compare workers.
RULES_OF_ALL: Final = (
    Rule("slow_rank", "Synchronization as a share of the wait of a rank's collectives.", "synchronization / wait", 0.5,
         "Compare the ranks' steps (view `cluster`): data, computing, placement.", _slow_rank),
    Rule("slow_link", "Bandwidth of a link of a rank below the mean of the ranks as a share of it.",
         "bandwidth / mean", 0.2, "Check the link, and what else uses it.", _slow_links),
)  # fmt: skip
