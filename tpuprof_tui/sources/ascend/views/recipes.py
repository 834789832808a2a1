"""Recipes: time by module, MFU of matrix multiplications, tokens of experts, why a rank is late."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from math import nan, prod
from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Frame, GroupBy, key, per, pivot, quotient, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.sources.chrome.columns import I64, lookup
from tpuprof_tui.sources.chrome.nesting import Nesting
from tpuprof_tui.views.answer import Answer, Column, Table, Target

from ..records import OTHER, RecordedRank
from .figures import WHY, figures_of
from .kernels import NO_METRICS
from .ranks import TIMES, coded, frame_of, lacks, lanes_of, per_rank, selected_rows

MODULE: Final = "nn.Module: "
_GROUPED: Final = lazy_pattern("GroupedMat[Mm]ul")
_MATMUL: Final = lazy_pattern("(Batch|Grouped)?MatMul", re.IGNORECASE)
_SHAPE: Final = lazy_pattern(r"\d{1,9}(, ?\d{1,9}){0,15}")
_BLOCKED: Final = lazy_pattern("FRACTAL|NZ|NC1")
_CYCLES, _CORE_TIME, _USE = (
    f"{OTHER}{name}" for name in ("aic_total_cycles", "aicore_time(us)", "cube_utilization(%)")
)
#: Least use of cube cores from which their number and frequency follow: it is written with three digits.
_LEAST_SHARE: Final = 0.01
#: Operations of a cube core in a cycle: 16 x 16 x 16 multiplications and additions of 16-bit numbers; of INT8 twice.
_PER_CYCLE: Final = 2 * 16**3
#: Names of groups between which experts are divided.
_EXPERT_GROUPS: Final = ("exp", "ep", "expert")
_BEFORE: Final = "Before the first kernel"
_MOST_CAUSES: Final = 10


# -- modules

_MODULE: Final = (
    (Column("name", "Module"), key("name", None)), (Column("calls", "Calls", "count"), rows),
    (Column("operators", "Operators", "count", drop_first=1), total("operators")),
    (Column("host_total_us", "Host Total", "duration", bar=True), total("host_total")),
    (Column("host_self_us", "Host Self", "duration", drop_first=2), total("host_self")),
    (Column("device_total_us", "Device Total", "duration", bar=True), total("device_total")),
    (Column("device_self_us", "Device Self", "duration"), total("device_self")),
)  # fmt: skip


@per_rank
def modules(query: Query, rank: RecordedRank) -> Answer:
    """Modules of the model by name, with the host's time in them and that of what their operators called."""
    whole = query.whole
    frames = query.cache.get("Ascend modules", partial(_every_module, whole), rank.key)
    if not len(frames):
        return Answer(missing=(lacks("by_name", "No modules were recorded.", "frames of modules",
                                     "with_modules=True or with_stack=True (torch_npu.profiler)"),))  # fmt: skip
    chosen = query.events(("lane", "row"), lanes_of(query, "python"))
    found = lookup(frames["number"], query.session.offsets[chosen["lane"]] + chosen["row"])
    frame = frames.take(found[found >= 0]).with_texts("name", lambda name: name.removeprefix(MODULE))
    table = Table.of_pivot("by_name", "By module", frame, ["name"], _MODULE, ("-device_total_us", "-host_total_us"),
                           word="module")  # fmt: skip
    names = [MODULE + name for name in table.column("name")]
    table = replace(table, target=lambda row: Target(condition=text_condition("name", names[row])))
    note = "Device: what operators that begin in the module called, but not backward. Self: not of modules in it."
    return Answer(tables=(table,), source=rank.timeline, notes=(note,))


def _every_module(query: Query) -> Frame:
    """Each frame of a module, in the order of its ``number`` among events, with its times."""
    events = query.events(("lane", "row", "name", "start", "end", "device_self", "host_total"),
                          lanes_of(query, "python"))  # fmt: skip
    operators = events["host_total"] != INT_MISSING
    places = events["start"], events["end"], events["lane"]
    chosen = np.flatnonzero(events.has("name", lambda name: name.startswith(MODULE)))
    every, modules = Nesting(*places), Nesting(*(column[chosen] for column in places))
    device = np.where(operators & (events["device_self"] != INT_MISSING), events["device_self"], 0)
    frame = events.take(chosen)
    totals = {"host": frame["end"] - frame["start"], "device": every.total(device)[chosen]}
    return frame.with_columns(
        None, number=query.session.offsets[frame["lane"]] + frame["row"], operators=every.total(operators)[chosen],
        **{f"{side}_total": total for side, total in totals.items()},
        **{f"{side}_self": modules.without_children(total) for side, total in totals.items()},
    )  # fmt: skip


# -- matrix multiplications


@per_rank
def mfu(query: Query, rank: RecordedRank) -> Answer:
    """Operations of matrix multiplications by shape, and their share of what the cube cores could do."""
    table = query.profile.table("kernels", rank.group)
    if table is None or "output_shapes" not in table:
        return Answer(missing=(lacks("mfu", "Shapes of kernels are not known.", "kernel_details.csv or op_summary with "
                                     "shapes", "profiler_level=Level1, or msprof --task-time=l1"),))  # fmt: skip
    chosen = selected_rows(query, table)
    kinds = frame_of(table, ("type", "duration"), chosen)
    chosen = chosen[kinds.has("type", _MATMUL.match) & (kinds["duration"] != INT_MISSING)]
    heads = {name: head for name, head in _PRODUCT.items() if name in table}
    frame = frame_of(table, ("duration", *heads), chosen)
    groups = GroupBy(frame, tuple(heads))
    texts = list(zip(*(key(name)(groups) if name in heads else [""] * groups.count for name in _PRODUCT), strict=True))
    flop = np.array([operations(inputs, outputs, formats) for _, inputs, outputs, _, formats in texts])
    halved = np.array([0.5 if types.startswith("INT8") else 1.0 for *_, types, _ in texts])
    frame = frame.with_columns(flop=flop[groups.index], work=(flop * halved)[groups.index])
    peak = query.cache.get("Ascend peak", partial(_peak, table), rank.key)
    figures = [
        *((Column(name, title, drop_first=drop_first), key(name, None))
          for name, (title, drop_first) in heads.items()), *TIMES[:2],
        (Column("flop", "FLOP", "number", drop_first=2), total("flop")),
        (Column("tflops", "TFLOP/s", "number"), per(quotient(total("flop"), total("duration")), 1000)),
        (Column("mfu", "MFU", "share"), per(quotient(total("work"), total("duration")), peak)),
    ]  # fmt: skip
    products = Table.of_pivot("mfu", "Matrix multiplications", frame, tuple(heads), figures, ("-total_us",))
    if not peak:
        unknown = lacks("mfu", "The peak of the cube cores is not known.", "cycles of kernels", NO_METRICS)
        return Answer(tables=(products,), missing=(unknown,), source=table.file)
    note = f"MFU: share of {peak / 1000:,.1f} TFLOP/s (16-bit numbers; INT8: twice that), what cube cores can do."
    return Answer(tables=(products,), source=table.file, notes=(note,))


#: Texts that tell a matrix multiplication, with the title of each, and which are dropped first where room is scarce.
_PRODUCT: Final = {
    "type": ("Type", 0), "input_shapes": ("Input Shapes", 0), "output_shapes": ("Output Shapes", 3),
    "input_types": ("Input Data Types", 1), "input_formats": ("Input Formats", 4),
}  # fmt: skip


def operations(inputs: str, outputs: str, formats: str = "") -> float:
    """Operations of a matrix multiplication, 2 M N K, by its shapes (``32,64;64,8``); NaN if they do not tell."""
    left, *_ = parts_of(inputs) or [()]
    product = parts_of(outputs)
    # dimensions of blocked formats are others; a list of products does not tell how they add up
    blocked = _BLOCKED.search(formats.partition(";")[0]) is not None
    if blocked or len(product) != 1 or len(left) != len(product[0]) or len(left) < 2 or not product[0][-2]:
        return nan
    inner, rest = divmod(left[-2] * left[-1], product[0][-2])
    return nan if rest else 2.0 * prod(product[0]) * inner


def parts_of(shapes: str) -> list[tuple[int, ...]]:
    """Shapes of several operands; without those that are empty, up to one that is none."""
    parts = takewhile(_SHAPE.fullmatch, filter(None, shapes.strip('"').split(";")))
    return [tuple(map(int, part.split(","))) for part in parts]


def _peak(table: Records) -> float:
    """16-bit operations per ns of all cube cores; 0 if unknown.

    Cycles of all cores per time follow from ``cube_utilization(%)``, else are those of the kernel with the most.
    """
    recorded = {column.key for column in table.schema}
    if _CYCLES not in recorded:
        return 0
    cycles, found = table[_CYCLES], np.zeros(0)
    if _USE in recorded:
        share, time = table[_USE] / 100, table["duration"]
        known = (share >= _LEAST_SHARE) & (time > 0) & (cycles > 0)
        found = cycles[known] / (share * time)[known]
    if not len(found) and _CORE_TIME in recorded:
        time = table[_CORE_TIME]
        known = (time >= 1) & (cycles > 0)
        found = np.sort(cycles[known] / time[known])[-1:] / 1000
    return float(np.median(found)) * _PER_CYCLE if len(found) else 0


# -- several ranks


def experts(query: Query, ranks: Sequence[RecordedRank]) -> Table | None:
    """Tokens that the experts of each rank get, as first dimensions of GroupedMatmul tell; None if there are none."""
    parts: list[tuple[I64, ...]] = []
    sharing, groups = coded(
        next((who for name, who in rank.parallel.values() if name in _EXPERT_GROUPS), "") for rank in ranks
    )
    for number, rank in enumerate(ranks):
        table = query.profile.table("kernels", rank.group)
        if table is None or "input_shapes" not in table or not any(map(_GROUPED.match, table.texts["type"])):
            continue
        chosen = selected_rows(replace(query, scope=Scope(rank.group)), table)
        chosen = chosen[frame_of(table, ("type",), chosen).has("type", _GROUPED.match)]
        frame = frame_of(table, ("duration", "input_shapes"), chosen)
        by_shapes = GroupBy(frame, ("input_shapes",))
        tokens = np.array(list(map(_tokens, key("input_shapes")(by_shapes))), np.int64)[by_shapes.index]
        parts.append((np.full(len(chosen), number), tokens, frame["duration"]))
    if not parts:
        return None
    of_rank, tokens, duration = map(np.concatenate, zip(*parts, strict=True))
    frame = Frame({"group": sharing[of_rank], "rank": of_rank, "tokens": tokens, "duration": duration},
                  {"group": groups, "rank": [str(rank.rank) for rank in ranks]})  # fmt: skip
    figures = {"group": key("group"), "rank": key("rank"), "kernels": rows, "total": total("duration"),
               "tokens": total("tokens")}  # fmt: skip
    found = pivot(frame, ("group", "rank"), figures, ("-tokens",))
    of_groups = {group: [row[-1] for row in found if row[0] == group] for group in groups}
    means = {group: sum(of_group) / max(len(of_group), 1) for group, of_group in of_groups.items()}
    return Table.of_rows("experts", "Tokens of experts", _EXPERTS, [
        (*row, row[-1] / means[row[0]] - 1 if means[row[0]] else None) for row in found])  # fmt: skip


_EXPERTS: Final = (
    Column("group", "Ranks that share experts", drop_first=2), Column("rank", "Rank"),
    Column("kernels", "Kernels", "count"),
    Column("total_us", "Total Time", "duration", drop_first=1), Column("tokens", "Tokens", "count", bar=True),
    Column("excess_share", "Above the mean", "share"),
)  # fmt: skip


def _tokens(shapes: str) -> int:
    """First dimensions of the operands that the experts multiply: the leading matrices of the first one's width."""
    parts = parts_of(shapes)
    return sum(part[0] for part in takewhile(lambda part: len(part) == 2 and part[1] == parts[0][-1], parts))


def causes(query: Query, late: RecordedRank, ranks: Sequence[RecordedRank]) -> Table:
    """What takes a late rank longer than the others on average: kernels by name, free time by cause, preparation."""
    found: list[tuple[bool, tuple[str, str], int]] = []
    for rank in ranks:
        own = replace(query, scope=Scope(rank.group), baseline=None)
        if (table := query.profile.table("kernels", rank.group)) is not None:
            work = frame_of(table, ("name", "duration", "communicates"), selected_rows(own, table))
            work = work.take(~work["communicates"])
            sums = pivot(work, ("name",), {"name": key("name"), "ns": total("duration")}, ())
            found += ((rank is late, ("Computing", name), ns) for name, ns in sums)
        figures = figures_of(own, rank)
        found += ((rank is late, ("Free", WHY[cause]), ns) for cause, ns in figures.cause_times.items())
        # later steps prepare within free time
        found += ((rank is late, ("Preparing", _BEFORE), int(step.times[-1] or 0)) for step in figures.steps[:1])
    is_late, what, times = zip(*found, strict=True)
    codes, names = coded(what)
    frame = Frame({"what": codes, "late": np.array(is_late), "other": ~np.array(is_late), "ns": np.array(times)}, {})
    sides = {"what": key("what"), "own": total("ns", "late"), "mean": per(total("ns", "other"), len(ranks) - 1)}
    compared = [(late.rank, *names[code], own, mean, own - mean)
                for code, own, mean in pivot(frame, ("what",), sides, ())]  # fmt: skip
    longer = sorted((row for row in compared if row[-1] > 0), key=lambda row: -row[-1])[:_MOST_CAUSES]
    return Table.of_rows("causes", "Why a rank is late", _CAUSES, longer, target=lambda row: Target(
        condition=text_condition("name", longer[row][2]) if longer[row][1] == "Computing" else "",
        scope=Scope(late.group)))  # fmt: skip


def main_cause(query: Query, late: RecordedRank, ranks: Sequence[RecordedRank]) -> str:
    """The first of `causes` in words; empty if there is none."""
    for _, part, name, _, _, longer in causes(query, late, ranks).rows(0, 1):
        time = time_text(round(longer))
        told = f"{name} takes {time} longer" if part == "Computing" else f"{part} {time} longer: {name}".lower()
        return f" ({told})"
    return ""


_CAUSES: Final = (
    Column("rank", "Late rank"), Column("part", "Part", drop_first=1), Column("name", "What"),
    Column("value_us", "Its time", "duration"), Column("mean_us", "Mean of the others", "duration"),
    Column("excess_us", "Longer", "duration", bar=True),
)  # fmt: skip
