"""Rules about steps, gaps, kernels, communication and memory; and the vendor's own advice.

The evidence of each finding has its figure and threshold. Shares are of Stage unless stated otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Frame, GroupBy, key, pivot, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.formats.units import bytes_text, percent_text, time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.intervals import Intervals, interval_at
from tpuprof_tui.model.lane import ALL
from tpuprof_tui.model.uniques import distinct
from tpuprof_tui.sources.chrome.nesting import innermost, order_of_nesting
from tpuprof_tui.views.answer import Target
from tpuprof_tui.views.rules import Finding, Rule, Sees, SourceRules, Wins, with_story

from ..records import COMPUTING, METRICS, OTHER, PYTHON_GC, RecordedRank, is_total
from .communication import CommunicationRows, of_ranks, sums_of_links, waiting_ranks
from .figures import CAUSES, RankFigures, figures_of
from .ranks import frame_of, ranks_of, selected_rows
from .recipes import experts, main_cause

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_CUBE: Final = lazy_pattern("MatMul|BatchMatMul|Conv(?!ert)|.*Attention", re.IGNORECASE)
_ENGINES: Final = lazy_pattern("[SR]DMA")
_ALLOCATES: Final = lazy_pattern(r"(?:.*@)?acl(rt|)(Malloc|Free)")
_COMPILES: Final = lazy_pattern(r"(?:.*@)?(aclop|op)Compile")
_FEW_NORMS: Final = 20
_AI_CORES: Final = lazy_pattern("AI_?CORE|AI_VECTOR_CORE|AIV|MIX_|KERNEL_(AI|MIX)")
_SYNCHRONISES: Final = lazy_pattern(r"(?:.*@)?aclrtSynchronize|aten::item$|aten::_local_scalar_dense$")
#: Most characters shown of a vendor rule's text.
_LONGEST: Final = 2000
#: Transfers are fastest in blocks of so many bytes; RDMA waits so long before it sends again.
_BLOCK, _RETRANSMITS_NS = 512, 4_000_000_000
_SHORT_NS, _LARGE_MB, _MOST_OF_RULE = 10_000, 100, 5
_MAC: Final = f"{OTHER}aic_mac_ratio"
#: Findings need a mac ratio of a cube kernel below the first, an overlapped share of communication below the second.
_CUBE_BUSY, _COVERED = 0.4, 0.5
Findings = Iterator[Finding]
#: Why thresholds are what they are.
DOCUMENTED: Final = "as documented for findings of Ascend profiles"
_A_FACT: Final = "a fact of the recording"


# -- what several rules need


def _of_rank(find: Callable[[Query, Rule, float], Findings]) -> Callable[[Query, Rule, float], Findings]:
    """Makes a rule about each rank of one about a rank, whose gain is a share of Stage."""

    def found(query: Query, rule: Rule, least: float) -> Findings:
        queries = query.local_cache.get("queries of ranks", lambda: [
            (rank, replace(query, scope=Scope(rank.group), baseline=None)) for rank in ranks_of(query)])  # fmt: skip
        for rank, own in queries:
            stage = figures_of(own, rank).sum("stage_us") or inf
            for each in find(own, rule, rule.threshold * stage):
                yield replace(each, whole=stage)

    return found


def _figures(query: Query) -> RankFigures:
    return figures_of(query, ranks_of(query)[0])


def _finding(
    query: Query, rule: Rule, gain: float | None, text: str, figure: str, value: float | None,
    event: tuple[int, int, str] | None = None, threshold: float | None = None, unit: int | None = None,
) -> Finding:  # fmt: skip
    """A finding.

    Args:
        query, rule, gain, text: As of a finding; gain in ns.
        figure, value: What is compared with the threshold, and its value.
        event: Start and end of the event or gap concerned, ns, and its name; None: all of it.
        threshold: That it is compared with, if not the rule's own.
        unit: The NPU; None: that of the query's rank, -1: none of the profile.
    """
    unit = ranks_of(query)[0].unit if unit is None else unit
    group = query.profile.groups.title(unit) if unit >= 0 else ""
    start, end, name = event or (None, None, "")
    evidence = {
        "group": group, "lane": None, "start_us": None if start is None else start / 1000,
        "duration_us": None if start is None or end is None else (end - start) / 1000, "name": name,
        "figure": figure, "value": value, "threshold": rule.threshold if threshold is None else threshold,
    }  # fmt: skip
    place = Target(scope=Scope(unit)) if unit >= 0 else Target()
    target = place if start is None or end is None else Target(time=(start, end))
    return Finding(rule.id, group, gain, text, evidence, rule.advice, target)


def _share(part: float | None, whole: float | None) -> float:
    return part / whole if part and whole else 0.0


def _kernels(query: Query, *keys: str) -> Frame | None:
    """Columns of the selected kernels of the rank, unknown durations as 0; None without kernels or such a column."""
    table = _figures(query).table("kernels")
    if table is None or any(key not in table for key in keys):
        return None

    def known() -> tuple[I64 | slice, Frame]:
        rows = selected_rows(query, table) if query.is_narrowed else ALL
        frame = frame_of(table, ("name", "start", "end", "duration", "timed", "communicates"), rows)
        lengths = np.where(frame["duration"] == INT_MISSING, 0, frame["duration"])
        return rows, frame.with_columns(length=lengths)

    rows, frame = query.local_cache.get("kernels of rules", known)
    more = frame_of(table, keys, rows)
    return frame.with_columns(more.texts, **more.columns)


# -- rules of one rank


def _free(query: Query, rule: Rule, least: float) -> Findings:
    figures = _figures(query)
    free, stage = figures.sum("free_us") or 0, figures.sum("stage_us")
    if free > least:
        causes = {cause: ns for cause, ns in figures.cause_times.items() if ns and cause != "unknown"}
        why = {"host": "mostly the host called late", "dispatch": "mostly between call and launch",
               "device": "mostly launched work waited"}.get(max(causes, key=causes.__getitem__, default=""),
                                                            "why is not known")  # fmt: skip
        share = _share(free, stage)
        text = f"Free for {time_text(round(free))}, {percent_text(share)} of Stage: {why}."
        yield _finding(query, rule, free, text, "free / stage", share)


def _exposed(query: Query, rule: Rule, least: float) -> Findings:
    exposed, stage, total, covered = map(_figures(query).sum, (
        "communication_not_overlapped_us", "stage_us", "communication_us", "overlapped_us"))  # fmt: skip
    share, overlap = _share(exposed, stage), _share(covered, total)
    if (exposed or 0) > least and overlap < _COVERED:
        text = f"Computing covers {percent_text(overlap)} of communication; the rest is {percent_text(share)} of Stage."
        yield _finding(query, rule, exposed, text, "not overlapped / stage", share)


def _gap(query: Query, rule: Rule, least: float) -> Findings:
    figures, gaps = _figures(query), _figures(query).gaps
    row = int(np.argmax(gaps.length)) if len(gaps) else -1
    length = int(gaps.length[row]) if row >= 0 else 0
    if length > least:
        share = length / (figures.sum("stage_us") or inf)
        begin = int(gaps.begin[row])
        text = f"One gap of {time_text(length)}, {percent_text(share)} of Stage; cause: {CAUSES[figures.causes[row]]}."
        found = _finding(query, rule, length, text, "gap / stage", share, (begin, begin + length, "Free"))
        unit = Scope(ranks_of(query)[0].unit)
        found = replace(found, target=Target(time=(begin, begin + length), scope=unit))
        yield with_story(found, query, unit, begin, begin + length)


def _launch_bound(query: Query, rule: Rule, least: float) -> Findings:
    times = _figures(query).cause_times
    host, free = times["host"], sum(times.values())
    if host > rule.threshold * free:
        text = f"{percent_text(host / free)} of the free time the device waited for the host to call."
        yield _finding(query, rule, host, text, "host / free", host / free)


def _of_kernels(
    column: str, test: Callable[[str], Any], text: str, query: Query, rule: Rule, least: float
) -> Findings:  # fmt: skip
    kernels = _kernels(query, column)
    chosen = kernels.take(kernels.has(column, test)) if kernels is not None else None
    time = int(chosen["length"].sum()) if chosen is not None else 0
    if chosen is not None and time > least:
        share = time / (_figures(query).sum("stage_us") or inf)
        name, *_ = next(_by_name(chosen))
        told = text.format(count=f"{len(chosen):,}", share=percent_text(share), most=name)
        yield _finding(query, rule, time, told, "time / stage", share)


def _dynamic(query: Query, rule: Rule, least: float) -> Findings:
    kernels = _kernels(query, "op_state")
    if kernels is None:
        return
    known = int((kernels["op_state"] >= 0).sum())
    dynamic = int(kernels.has("op_state", lambda text: text.lower() == "dynamic").sum())
    if dynamic > rule.threshold * known:
        text = f"{dynamic:,} of {known:,} kernels ran with dynamic shapes."
        yield _finding(query, rule, None, text, "dynamic / kernels", dynamic / known)


def _cube(query: Query, rule: Rule, least: float) -> Findings:
    kernels = _kernels(query, "type", _MAC)
    if kernels is None:
        return
    chosen = kernels.has("type", _CUBE.match) & (kernels[_MAC] < _CUBE_BUSY) & (kernels["length"] > least)
    for name, longest, same_name, times in _by_name(kernels.take(chosen)):
        ratio = float(longest[_MAC][0])
        gain = float((same_name["length"] * (1 - same_name[_MAC])).sum())
        text = f"{name} keeps the cube core busy for {percent_text(ratio)} of its time{times}."
        yield _finding(query, rule, gain, text, "aic_mac_ratio", ratio, _event(longest, name), _CUBE_BUSY)


def _by_name(kernels: Frame) -> Iterator[tuple[str, Frame, Frame, str]]:
    """Groups kernels by name, longest total first: the name, the longest kernel, all of them, and how often it ran."""
    groups = GroupBy(kernels, ["name"])
    for group in np.argsort(-groups.reduce(kernels["length"]), kind="stable")[:_MOST_OF_RULE].tolist():
        same_name = kernels.take(groups.index == group)
        row = int(np.argmax(same_name["length"]))
        code, count = int(same_name["name"][row]), len(same_name)
        name = kernels.texts["name"][code] if code >= 0 else ""
        yield name, same_name.take(slice(row, row + 1)), same_name, f" ({count:,} times)" if count > 1 else ""


def _event(kernel: Frame, name: str) -> tuple[int, int, str] | None:
    return (int(kernel["start"][0]), int(kernel["end"][0]), name) if kernel["timed"][0] else None


def _small(query: Query, rule: Rule, least: float) -> Findings:
    kernels = _kernels(query)
    if kernels is None:
        return
    lengths = kernels["duration"][~kernels["communicates"] & (kernels["duration"] != INT_MISSING)]
    small = int((lengths < _SHORT_NS).sum())
    if small > rule.threshold * len(lengths):
        text = f"{small:,} of {len(lengths):,} kernels take less than 10 us."
        yield _finding(query, rule, None, text, "short kernels / kernels", small / len(lengths))


def _blocks(query: Query, rule: Rule, least: float) -> Findings:
    kernels = _kernels(query, "blocks")
    if kernels is None:
        return
    of_text = np.array([int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
                        for text in kernels.texts["blocks"]] + [-1])  # fmt: skip
    blocks = np.where(kernels["communicates"], -1, of_text[kernels["blocks"]])
    most = int(blocks.max(initial=-1))
    chosen = (blocks > 0) & (blocks < most) & (kernels["length"] > least)
    for name, longest, same_name, times in _by_name(kernels.with_columns(blocks=blocks).take(chosen)):
        gain = float((same_name["length"] * (1 - same_name["blocks"] / most)).sum())
        own = float(longest["blocks"][0])
        text = f"{name} asks for {own:.0f} cores, others for {most}{times}."
        yield _finding(query, rule, gain, text, "Block Dim", own, _event(longest, name), float(most))


def _host_calls(test: re.Pattern[str], text: str, query: Query, rule: Rule, least: float) -> Findings:
    """The union of some calls as a share of the host's time, and the operator in which most of them are."""
    figures = _figures(query)
    lanes = figures.lanes("python", "cann", "other")
    host = query.events(("name", "start", "end", "lane", "thread", "host_total"), lanes, reaching=True)
    operators = host["host_total"] != INT_MISSING
    calls = host.take(host.has("name", test.match) & (np.isin(host["lane"], figures.lanes("cann")) | operators))
    if not len(calls):
        return
    low, high = query.range or (int(host["start"].min()), int(host["end"].max()))
    union = Intervals.union(calls["start"], calls["end"]).clip(low, high)
    if union.total > rule.threshold * (high - low):
        share = union.total / (high - low)
        name = _most_around(calls, host.take(operators))
        told = text.format(share=percent_text(share), count=f"{len(calls):,}", most=name and f", most in {name}")
        yield _finding(query, rule, _while_free(figures, union), told, "calls / host", share)


def _while_free(figures: RankFigures, host: Intervals) -> int:
    """Time of what the host does in which the device is free, ns: the most that can be won."""
    gaps = figures.gaps
    return host.total - host.difference(Intervals.union(gaps.begin, gaps.begin + gaps.length)).total


def _most_around(calls: Frame, operators: Frame) -> str:
    """Name of the operators that calls of their threads lie in for longest; empty if in none."""
    _, thread = distinct(np.append(operators["thread"], calls["thread"]))
    threads = np.split(thread, [len(operators)])
    order = order_of_nesting(threads[0], operators["start"], operators["end"])
    around = operators["start"][order], operators["end"][order], threads[0][order]
    place = innermost(around, (calls["start"], calls["end"], threads[1]))
    name = np.where(place >= 0, operators["name"][order][place], -1) if len(order) else place
    found = Frame({"name": name, "took": calls["end"] - calls["start"]}, operators.texts).take(name >= 0)
    return next((row[0] for row in pivot(found, ("name",), {"name": key("name"), "ns": total("took")}, ("-ns",))), "")


def _synchronised_norms(query: Query, rule: Rule, least: float) -> Findings:
    operators = query.events(("name", "host_total"), _figures(query).lanes("python"))
    norms = operators.take(operators["host_total"] != INT_MISSING)
    count = int(norms.has("name", lambda name: name.startswith("SyncBatchNorm")).sum())
    if count > _FEW_NORMS:
        text = f"{count:,} operators SyncBatchNorm: each communicates, and is slow to call."
        yield _finding(query, rule, None, text, "operators", count, threshold=_FEW_NORMS)


def _pauses_of_python(query: Query, rule: Rule, least: float) -> Findings:
    profile, figures = query.profile, _figures(query)
    lanes = [each for each in figures.lanes("other") if profile.groups.label(profile.lanes[each].group) == PYTHON_GC]
    pauses = query.events(("start", "end"), lanes)
    union = Intervals.union(pauses["start"], pauses["end"])
    if union.total > least:
        share = union.total / (figures.sum("stage_us") or inf)
        longest = time_text(int((pauses["end"] - pauses["start"]).max()))
        text = (f"Python collects garbage {len(pauses):,} times, {percent_text(share)} of Stage, for up to {longest}; "
                "meanwhile the host calls nothing.")  # fmt: skip
        yield _finding(query, rule, _while_free(figures, union), text, "pauses / stage", share)


def _frequency(query: Query, rule: Rule, least: float) -> Findings:
    unit, kernels = ranks_of(query)[0].unit, _kernels(query, "core")
    sampled = next((each for each in query.profile.counters if (each.group, each.name) == (unit, "AI Core Freq")), None)
    if kernels is None or sampled is None or not (nominal := float(np.nan_to_num(sampled.values).max(initial=0))):
        return
    kernels = kernels.take(kernels["timed"] & kernels.has("core", _AI_CORES.match))
    before = np.maximum(np.searchsorted(sampled.times, kernels["start"], side="right") - 1, 0)
    frequency = np.where(sampled.values > 0, sampled.values, nominal)[before]
    lost, all_of_it = float((kernels["length"] * (1 - frequency / nominal)).sum()), int(kernels["length"].sum())
    if lost > rule.threshold * all_of_it:
        slow = int(kernels["length"][frequency < nominal].sum())
        text = (f"AI cores run below {nominal:,.0f} MHz, down to {frequency.min():,.0f} MHz, for "
                f"{percent_text(slow / all_of_it)} of the time of their kernels.")  # fmt: skip
        yield _finding(query, rule, lost, text, "lost / kernels", lost / all_of_it)


def _uneven_steps(query: Query, rule: Rule, least: float) -> Findings:
    # steps that a range cuts are shorter
    whole = _figures(query).steps if query.range is None else ()
    steps = [(step.label, value) for step in whole if (value := step.times[0])]
    values = [value for _, value in steps]
    mean = sum(values) / max(len(values), 1)
    if len(values) > 1 and (spread := (max(values) - min(values)) / mean) > rule.threshold:
        slow = max(steps, key=lambda step: step[1])
        text = f"Computing differs by {percent_text(spread)} between steps; step {slow[0]} takes longest."
        yield _finding(query, rule, max(values) - min(values), text, "(max - min) / mean", spread)


def _differs(query: Query, rule: Rule, least: float) -> Findings:
    apart = (_figures(query).difference or 0) / 1000
    if apart > rule.threshold:
        text = f"Step times differ from the recorded ones by up to {time_text(round(apart * 1000))}."
        yield _finding(query, rule, None, text, "difference_us", apart)


def _grows(query: Query, rule: Rule, least: float) -> Findings:
    figures = _figures(query)
    allocations, ends = figures.table("allocations"), [step.end for step in figures.steps if step.end is not None]
    if allocations is None or len(ends) < 3:
        return
    never, size = np.iinfo(np.int64).max, np.nan_to_num(allocations["size"])
    begun, until = (np.where(column == INT_MISSING, never, column)
                    for column in (allocations["allocated"], allocations["released"]))  # fmt: skip
    held = [float(size[(begun <= end) & (until > end)].sum()) for end in ends]
    if all(one < other for one, other in pairwise(held)) and held[-1] > (1 + rule.threshold) * held[0]:
        text = f"Memory held grows with each step, {bytes_text(round(1024 * (held[-1] - held[0])))} in all."
        grown, figure = held[-1] / max(held[0], 1), "held at the last step / at the first"
        yield _finding(query, rule, None, text, figure, grown, threshold=1 + rule.threshold)


def _small_packets(query: Query, rule: Rule, least: float) -> Findings:
    chosen = CommunicationRows.of_rank(query, ranks_of(query)[0])
    for _, _, op, link, size, large in chosen.rows("transfers", "link", "size_mb", "large_packets"):
        is_large = _ENGINES.match(link) and size > _LARGE_MB and not is_total(op)
        if is_large and large is not None and large < rule.threshold:
            text = f"{op} moves {bytes_text(int(size * 1e6))} over {link} in small packets."
            yield _finding(query, rule, None, text, "Large Packet Ratio", large)


def _retransmits(query: Query, rule: Rule, least: float) -> Findings:
    chosen = CommunicationRows.of_rank(query, ranks_of(query)[0])
    for _, _, op, link, transit in chosen.rows("transfers", "link", "transit"):
        if link == "RDMA" and (transit or 0) > _RETRANSMITS_NS and not is_total(op):
            text = f"{op} takes {time_text(round(transit))} over RDMA: packets were sent again."
            yield _finding(query, rule, None, text, "transit / s", transit / 1e9, threshold=_RETRANSMITS_NS / 1e9)


def _moves(query: Query) -> Frame:
    """Tasks of communication that move more than a block of 512 bytes."""
    moves = query.events(("start", "end", "bytes"), _figures(query).lanes("plane"))
    return moves.take(moves["bytes"] > _BLOCK)


def _unaligned(query: Query, rule: Rule, least: float) -> Findings:
    size = _moves(query)["bytes"]
    odd = size % _BLOCK != 0
    if size[odd].sum() > rule.threshold * size.sum():
        share = float(size[odd].sum() / size.sum())
        text = f"{int(odd.sum()):,} of {len(size):,} transfers, {percent_text(share)} of the bytes, end within a block."
        yield _finding(query, rule, None, text, "bytes / bytes", share)


def _contention(query: Query, rule: Rule, least: float) -> Findings:
    moves, computing = _moves(query), (_figures(query).coverage or {}).get(COMPUTING, Intervals.empty())
    groups, took = GroupBy(moves, ("bytes",)), moves["end"] - moves["start"]
    meanwhile = interval_at(computing.starts, computing.ends, moves["start"]) != INT_MISSING
    alone = groups.reduce(took * ~meanwhile) / np.where(known := groups.count_of(~meanwhile), known, np.nan)
    lost, whole = (float(np.nansum(each[meanwhile])) for each in (took - alone[groups.index], took))
    if lost > rule.threshold * whole:
        text = f"While kernels compute, transfers lose {percent_text(lost / whole)} of their time."
        yield _finding(query, rule, None, text, "lost / time", lost / whole)


def _level0(query: Query, rule: Rule, least: float) -> Findings:
    if ranks_of(query)[0].level == "Level0":
        text = "Recorded at Level0: no operator types, no metrics, no calls of CANN, no transfers."
        yield _finding(query, rule, None, text, "profiler_level", 0, threshold=1)


def _no_metrics(query: Query, rule: Rule, least: float) -> Findings:
    rank, kernels = ranks_of(query)[0], _figures(query).table("kernels")
    none = kernels is not None and kernels.texts["type"] and not any(
        column.group == METRICS for column in kernels.schema)  # fmt: skip
    if rank.level != "Level0" and (none or rank.metrics.replace("_", "").upper().endswith("AICORENONE")):
        text = "Recorded without AI Core metrics: what binds a kernel is not known."
        yield _finding(query, rule, None, text, "metrics", 0, threshold=1)


def _vendor_advice(query: Query, rule: Rule, least: float) -> Findings:
    for file, content in ranks_of(query)[0].advice:
        for entry in _objects(content):
            kind = _first(entry, "rule_type", "type")
            results = entry.get("result", [entry])
            for each in results if isinstance(results, list) else []:
                advice = _keyed(each) if isinstance(each, dict) else {}
                text = _first(advice, "rule_suggestion", "suggestion", "description") or _first(entry, "description")
                sub = _first(advice, "rule_subtype", "subtype")
                about = " ".join(filter(None, (_first(advice, "op_list"), _first(advice, "tuning_data"))))
                told = replace(rule, id=": ".join(filter(None, (kind, sub))) or "prof_rule")
                found = _finding(query, told, None, " ".join(filter(None, (text, about))), "", None)
                yield replace(found, evidence={**found.evidence, "threshold": None}, source=file)


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


# -- rules of several ranks


def _about_rank(
    query: Query, rule: Rule, rank: RecordedRank | str, gain: float, text: str, figure: str, value: float,
    threshold: float,
) -> Finding:  # fmt: skip
    own = [] if isinstance(rank, str) else [rank]
    stages = [figures_of(query, each).sum("stage_us") or 0 for each in own or ranks_of(query)]
    unit = own[0].unit if own else -1
    found = _finding(query, rule, gain, text, figure, value, threshold=threshold, unit=unit)
    return replace(found, whole=max(stages, default=0) or inf)


def _slow_rank(query: Query, rule: Rule, least: float) -> Findings:
    ranks, late = waiting_ranks(query, ranks_of(query))
    who = late.rank if isinstance(late, RecordedRank) else late
    others = [rank for rank in ranks if isinstance(rank, RecordedRank)]
    why = main_cause(query, late, others) if isinstance(late, RecordedRank) else ""
    for rank, rows in ranks.items():
        wait, synchronization = (sum(row[place] or 0 for row in rows) for place in (4, 5))
        if wait and synchronization > rule.threshold * wait:
            last = f"; the others waited for rank {who}{why}" if who is not None and rank is not late else ""
            share = synchronization / wait
            whose = f" of rank {rank}" if isinstance(rank, str) else ""
            text = (f"{percent_text(share)} of the wait{whose} in communication is for the slowest rank to begin"
                    f"{last}.")  # fmt: skip
            yield _about_rank(query, rule, rank, synchronization, text, "synchronization / wait", share, rule.threshold)


def _slow_links(query: Query, rule: Rule, least: float) -> Findings:
    moved = of_ranks(query, ranks_of(query), "transfers", "link", "size_mb", "transit")
    sums = sums_of_links([("", "", "", rank, *row[3:]) for rank, row in moved])
    for link in dict.fromkeys(row[2] for row in sums):
        of_link = [(rank, time, speed) for _, rank, of, _, time, speed in sums if of == link and speed is not None]
        mean, least_share = sum(speed for *_, speed in of_link) / max(len(of_link), 1), 1 - rule.threshold
        for rank, time, speed in of_link:
            if len(of_link) > 1 and speed < least_share * mean:
                whose = f"rank {rank}" if isinstance(rank, str) else "this rank"
                text = f"{link} of {whose} moves {speed:,.2f} GB/s, the mean is {mean:,.2f} GB/s."
                gain = time * (1 - speed / mean)
                yield _about_rank(query, rule, rank, gain, text, "bandwidth / mean", speed / mean, least_share)


def _uneven_experts(query: Query, rule: Rule, least: float) -> Findings:
    ranks = {str(rank.rank): rank for rank in ranks_of(query) if rank.rank is not None}
    load = experts(query, list(ranks.values()))
    for group, number, _, time, tokens, excess in load.rows() if load is not None else ():
        if (excess or 0) > rule.threshold:
            among = f" of ranks {group}" if group else ""
            text = f"Its experts get {tokens:,} tokens, {percent_text(excess)} more than the mean{among}."
            gain = time * excess / (1 + excess)
            yield _about_rank(query, rule, ranks[number], gain, text, "tokens / mean - 1", excess, rule.threshold)


def _rank_rule(
    name: str, title: str, measures: str, threshold: float, advice: str, find: Callable[[Query, Rule, float], Findings],
    chosen: str = DOCUMENTED, *, sees: Sees = "all", wins: Wins = "",
) -> Rule:  # fmt: skip
    return Rule(name, title, measures, threshold, chosen, advice, _of_rank(find), (), sees, wins)


#: Thresholds of gains are shares of Stage.
_OWN: Final = (
    _rank_rule("free", "The device is free", "Free as a share of Stage.", 0.1,
               "See the view `free`: each gap and its cause.", _free, wins="exposed"),
    _rank_rule("long_gap", "A long gap", "The longest slice of Free as a share of Stage.", 0.05,
               "See what the host did meanwhile (view `free`).", _gap, wins="exposed"),
    _rank_rule("launch_bound", "The host launches too late", "Free time of cause host as a share of all of it.", 0.5,
               "Fewer and larger operators, fused optimisers, graph mode, less Python between calls.", _launch_bound,
               wins="exposed"),
    _rank_rule("ai_cpu", "Kernels on AI CPUs", "Kernels on AI CPUs as a share of Stage.", 0.02,
               "Operators or types that AI Core has: see which in the view `kernels`.",
               partial(_of_kernels, "core", lambda core: re.match("AI_?CPU", core),
                       "{count} kernels on AI CPUs take {share} of Stage, most of it {most}.")),
    _rank_rule("transdata", "Conversions of formats", "Kernels of type TransData as a share of Stage.", 0.05,
               "torch_npu.npu.config.allow_internal_format = False, or formats that fit.",
               partial(_of_kernels, "type", "TransData".__eq__,
                       "{count} conversions of formats (TransData) take {share} of Stage, most of it {most}.")),
    _rank_rule("cast", "Casts", "Kernels of type Cast as a share of Stage.", 0.05,
               "Use one type throughout: amp, or types at the source.",
               partial(_of_kernels, "type", "Cast".__eq__, "{count} casts take {share} of Stage, most of it {most}.")),
    _rank_rule("dynamic_shapes", "Dynamic shapes",
               "Kernels of OP State dynamic as a share of those with a state.", 0.5,
               "torch_npu.npu.set_compile_mode(jit_compile=False), and shapes that do not change.", _dynamic),
    _rank_rule("cube_idle", "The cube core idles in cube kernels",
               "A MatMul, Conv or Attention kernel with aic_mac_ratio below 0.4 as a share of Stage.", 0.02,
               "Shapes that are multiples of 16, float16 or bfloat16, formats without conversion.", _cube),
    _rank_rule("small_kernels", "Short kernels", "Kernels below 10 us as a share of their number.", 0.5,
               "Larger batches, fused operators, graph mode: launching costs as much.", _small),
    _rank_rule("few_blocks", "Kernels on few cores",
               "A kernel with fewer blocks than the largest Block Dim as a share of Stage.", 0.01,
               "Larger shapes, or another split of the work.", _blocks),
    _rank_rule("host_synchronises", "The host waits for the device",
               "Union of aclrtSynchronize*, aten::item and _local_scalar_dense as a share of host time.", 0.1,
               "Do not read values every step: .item(), print, synchronize().",
               partial(_host_calls, _SYNCHRONISES,
                       "The host waits for the device {share} of its time ({count} calls{most})."), wins="exposed"),
    _rank_rule("memory_calls", "Memory of the device is allocated or freed",
               "Union of aclrtMalloc*, aclMallocMem* and aclrtFree* as a share of host time.", 0.02,
               "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, no empty_cache(), smaller batches if memory is full.",
               partial(_host_calls, _ALLOCATES,
                       "The host allocates and frees memory of the device {share} of its time ({count} calls{most})."),
               "of 5 real NPUs one has such a call, 0.00008 of its time; msprof-analyze's is 10 ms", wins="exposed"),
    _rank_rule("compiles", "Operators are compiled",
               "Union of aclopCompile* and opCompile as a share of host time.", 0.05,
               "torch_npu.npu.set_compile_mode(jit_compile=False), or record later steps, of the same shapes.",
               partial(_host_calls, _COMPILES, "The host compiles operators {share} of its time ({count} calls)."),
               "4 of 5 real NPUs reach it (0.088 to 0.178), the fifth compiles nothing", wins="exposed"),
    _rank_rule("synchronised_norms", "SyncBatchNorm", "Whether more than 20 operators are SyncBatchNorm.", 0,
               "BatchNorm where batches are large enough, or one collective for several layers.", _synchronised_norms,
               "msprof-analyze's number; real recordings at hand have none"),
    _rank_rule("garbage_collection", "Python collects garbage",
               "Slices of Python GC, which gc_detect_threshold records, as a share of Stage.", 0.01,
               "gc.freeze() after the start; a larger gc.set_threshold(), and gc.collect() between steps.",
               _pauses_of_python, "of a step of 100 ms msprof-analyze's 1 ms; none of 5 real NPUs recorded any",
               wins="exposed"),
    _rank_rule("low_frequency", "AI cores run slowly",
               "What kernels lose while the counter AI Core Freq is below its highest value, as a share of their time.",
               0.05, "See npu-smi for temperature, power and a limit of the frequency.", _frequency,
               "msprof-analyze's; 5 real NPUs have 0, at 1,800 MHz throughout"),
    _rank_rule("uneven_steps", "Steps of different length",
               "Largest less smallest Computing of a step as a share of the mean.", 0.1,
               "Leave warm-up steps out; look for shapes that change.", _uneven_steps),
    _rank_rule("recorded_differs", "Steps differ from the recorded ones",
               "Largest difference of a time of a step from the recorded one, us.", 0.01,
               "See both tables of the view `overview`: files of two recordings stand together, or one is cut.",
               _differs, "the exporter rounds to 0.001 us"),
    _rank_rule("memory_grows", "Memory grows",
               "Memory held at the end of the last step beyond that of the first, where each adds to it.", 0.01,
               "Look for tensors that are kept: lists of losses, outputs without detach().", _grows),
    _rank_rule("small_packets", "Small packets",
               "Large Packet Ratio of more than 100 MB over a link that sends packets: reported below it.", 0.2,
               "Larger buckets, aligned gradients (HCCL).", _small_packets),
    _rank_rule("retransmission", "RDMA sends again", "Transfers over RDMA of more than 4 s.", 0,
               "Check switches, cables and HCCL_RDMA_TIMEOUT.", _retransmits, "msprof-analyze's; RDMA waits so long"),
    _rank_rule("unaligned_transfers", "Transfers in odd blocks",
               "Bytes of transfers of more than 512 bytes that are no multiple of it, as a share of all.", 0.1,
               "Pad buffers of gradients and parameters to multiples of 512 bytes.", _unaligned,
               "2 real NPUs have 0.013, in the last part of each ring; msprof-analyze reports any"),
    _rank_rule("bandwidth_contention", "Computing slows communication",
               "What transfers take longer while kernels compute than others of their size, as a share of their time.",
               0.25, "Compare a run without the overlap: it may cost more than it gains.", _contention,
               "2 real NPUs have 0.21, in the few transfers that are covered"),
    _rank_rule("level0", "Recorded at Level0", "Whether profiler_level was Level0.", 0,
               "Record with profiler_level=Level1.", _level0, _A_FACT, sees="events"),
    _rank_rule("no_metrics", "Recorded without metrics", "Whether kernels were recorded without AI Core metrics.", 0,
               "Record with aic_metrics=PipeUtilization (Level1), or msprof --ai-core=on.", _no_metrics, _A_FACT,
               sees="events"),
    _rank_rule("prof_rule", "The vendor's advice", "Advice in files prof_rule_*.json.", 0, "", _vendor_advice, _A_FACT,
               sees="events"),
    Rule("slow_rank", "A slow rank", "Synchronization as a share of the wait of a rank's collectives.", 0.5, DOCUMENTED,
         "Compare the ranks' steps (view `cluster`): data, computing, placement.", _slow_rank, ()),
    Rule("uneven_experts", "Experts with uneven load",
         "Tokens of a rank, by shapes of GroupedMatmul, beyond the mean of those that share experts, as a share of it.",
         0.2, "as of slow_link: there is no real recording of experts to choose by",
         "Balance the router: an auxiliary loss, a bias of experts, or copies of busy ones.", _uneven_experts, ()),
    Rule("slow_link", "A slow link", "Bandwidth of a link of a rank below the mean of the ranks as a share of it.", 0.2,
         DOCUMENTED, "Check the link, and what else uses it.", _slow_links, ()),
)  # fmt: skip
_EXPOSED: Final = _rank_rule(
    "exposed_communication", "Exposed communication",
    "Communication that computing does not cover as a share of Stage, where less than half is covered.", 0.1,
    "Start it earlier, in smaller buckets, or find the rank that the others wait for.", _exposed, wins="exposed",
)  # fmt: skip
RULES: Final = SourceRules(_OWN, (_EXPOSED,), {
    "pause": "gaps are those of Free, as the exporter has them: long_gap",
    "wait": "tasks that wait are parts of collectives: slow_rank",
    "late_unit": "NPUs wait for one another in collectives alone: slow_rank",
})  # fmt: skip
