"""Roofline view: operations and bytes of operators by their shapes, achieved rates, and what bounds them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tpuprof_tui.analysis.pivot import Frame, GroupBy, key, pivot, total
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.nesting import parents
from tpuprof_tui.views.answer import Answer, Column, Missing, Table

from ..categories import category_of
from ..operator_work import ELEMENT_BYTES, FORMULAS, Call, lengths_in_name, work_of
from ..vocabulary import DEVICE
from .worker_events import WorkerEvents, per_worker


class Card(NamedTuple):
    """Peak rates of a card."""

    name: str  #: Regular expression of its name in traces
    half: float  #: TFLOP/s of 16-bit numbers with matrix units
    single: float  #: TFLOP/s of 32-bit numbers; TF32 if matrix units support it
    memory: float  #: GB/s

    def peak(self, size: int) -> float | None:
        """FLOP/s of numbers of ``size`` bytes; None if it is not known."""
        known = {1: 2 * self.half, 2: self.half, 4: self.single}.get(size)
        return None if known is None else known * 1e12


#: Peak rates from data sheets: dense, without sparsity. The first entry whose name matches is used.
CARDS: Final = (
    Card(r"GB?200|B200", 2250, 1100, 8000),
    Card(r"H200", 989.4, 494.7, 4800),
    Card(r"H100.*PCIe", 756, 378, 2000),
    Card(r"H100.*NVL", 835.5, 417.5, 3900),
    Card(r"H800|H100", 989.4, 494.7, 3350),
    Card(r"H20\b", 148, 74, 4000),
    Card(r"A[18]00\b.*80GB", 312, 156, 2039),
    Card(r"A[18]00(?!\d)", 312, 156, 1555),
    Card(r"V100", 125, 15.7, 900),
    Card(r"L40S", 362, 183, 864),
    Card(r"L4\b", 121, 60, 300),
    Card(r"A10\b", 125, 62.5, 600),
    Card(r"T4\b", 65, 8.1, 320),
    Card(r"RTX 4090", 165.2, 82.6, 1008),
    Card(r"RTX 3090", 71, 35.6, 936),
    Card(r"MI325X", 1307.4, 653.7, 6000),
    Card(r"MI300X", 1307.4, 653.7, 5300),
    Card(r"MI250X", 191.5, 47.9, 1638),
    Card(r"MI250", 181, 45.3, 1638),
    Card(r"MI210", 181, 45.3, 1638),
    Card(r"MI100", 184.6, 46.1, 1229),
)


def card_named(name: str) -> Card | None:
    """The card with a name as traces give it; None if it is not known."""
    return next((card for card in CARDS if re.search(card.name, name)), None)


_COLUMNS: Final = (
    Column("name", "Operator", filter_column="name"), Column("shape", "Shapes"), Column("dtype", "Type", drop_first=2),
    Column("category", "Op category", drop_first=5, is_key=False), Column("calls", "Calls", "count"),
    Column("device_total_us", "Device", "duration", bar=True),
    Column("flops", "FLOP of a call", "number", drop_first=4),
    Column("bytes", "Bytes of a call", "bytes", drop_first=3), Column("tflops", "TFLOP/s", "number"),
    Column("peak_share", "Of peak", "share"), Column("gb_per_s", "GB/s", "number", drop_first=1),
    Column("bound", "Bound by", is_key=False),
)  # fmt: skip


class Line(NamedTuple):
    """Calls of an operator with some shapes; times are ns, the other fields as in the table."""

    name: str
    shape: str
    dtype: str | None
    category: str
    calls: int
    device: int
    operations: int
    moved: int | None
    tflops: float
    peak_share: float | None
    gb_per_s: float | None
    bound: str | None


@per_worker(DEVICE)
def roofline(events: WorkerEvents) -> Answer:
    """The roofline view of one worker, by name and shapes."""
    lines, unknown = lines_of(events)
    if not lines and not unknown:
        message = "There are no operators with shapes whose work is known."
        return Answer(missing=(Missing(message, "record_shapes=True"),))
    card = _card(events)
    cached = any(line.bound == "cache" for line in lines)
    notes = [*(["Bound by cache: it moved more than memory can; its data were in the cache."] if cached else []),
             *(["The card is not in the table of cards: shares of its peak are not known."] if card is None else []),
             *([f"Of {unknown} shapes the work is not known."] if unknown else [])]  # fmt: skip
    return Answer(tables=(
        Table.of_rows("roofline", "By name and shapes", _COLUMNS, lines, notes=tuple(notes)),
        *([_bounds(lines)] if card is not None else []),
    ))  # fmt: skip


def _bounds(lines: list[Line]) -> Table:
    """Device time by category and by what bounds it, with the time that it would take at the peak."""
    known = [line for line in lines if line.peak_share is not None and line.bound is not None]
    texts = {"category": [line.category for line in known], "bound": [line.bound or "" for line in known]}
    at_peak = [round(line.device * (line.peak_share or 0)) for line in known]
    codes = np.arange(len(known), dtype=np.int64)
    frame = Frame({"category": codes, "bound": codes, "calls": np.array([line.calls for line in known], np.int64),
                   "device": np.array([line.device for line in known], np.int64),
                   "at_peak": np.array(at_peak, np.int64)}, texts)  # fmt: skip
    figures = {"category": key("category"), "bound": key("bound"), "calls": total("calls"), "device": total("device"),
               "at_peak": total("at_peak")}  # fmt: skip
    found = pivot(frame.with_texts("category").with_texts("bound"), ("category", "bound"), figures, ("-device",))
    columns = (
        Column("category", "Op category", filter_column="op_category"), Column("bound", "Bound by"),
        Column("calls", "Calls", "count"),
        Column("device_total_us", "Device", "duration", bar=True), Column("at_peak_us", "At the peak", "duration"),
        Column("peak_share", "Of peak", "share"),
    )  # fmt: skip
    return Table.of_rows("bounds", "What bounds them", columns,
                         [(*row, row[4] / row[3] if row[3] else None) for row in found])  # fmt: skip


def lines_of(events: WorkerEvents) -> tuple[list[Line], int]:
    """The selected operators by name and shapes, the longest first, and the number of shapes of unknown work."""
    frame = events.whole.frame("thread", "name", "lane", "row", "shapes", "host_total", "device_total")
    work = frame.take((frame["host_total"] != INT_MISSING) & frame.has("name", FORMULAS.__contains__))
    # those within another one are part of it
    work = work.take((parents(work["start"], work["end"], work["lane"]) < 0) & (work["device_total"] > 0))
    work = work.take(events.selects(work))
    if not len(work):
        return [], 0
    work = _with_lengths(events, work)
    group, card = GroupBy(work, ["name", "shapes", "lengths"]), _card(events)
    found: list[Line] = []
    device = group.reduce(work["device_total"])
    names, shapes, lengths = (key(column)(group) for column in ("name", "shapes", "lengths"))
    for number, first in enumerate(group.first.tolist()):
        read = events.query.profile.lanes[int(work["lane"][first])].arguments
        arguments = {} if read is None else read(int(work["row"][first]))
        line = _line(names[number], shapes[number] or "[]", lengths[number], arguments, int(group.sizes[number]),
                     int(device[number]), card)  # fmt: skip
        found += [line] if line is not None else []
    return sorted(found, key=lambda line: (-line.device, line.name, line.shape)), group.count - len(found)


def _card(events: WorkerEvents) -> Card | None:
    names = (str(each.get("name") or "") for each in events.recorded.devices)
    return next(filter(None, map(card_named, names)), None)


def _with_lengths(events: WorkerEvents, work: Frame) -> Frame:
    """The operators with ``lengths``: name of the annotation around them that tells those of a batch; else missing."""
    told = events.whole.frame("thread", "name")
    told = told.take(told.has("name", lengths_in_name))
    told = told.take(np.argsort(told["start"], kind="stable"))
    place = np.searchsorted(told["start"], work["start"], side="right") - 1
    inside = (place >= 0) & (np.append(told["end"], 0)[place] >= work["end"])
    lengths = np.where(inside, np.append(told["name"], -1)[place], -1)
    return work.with_columns({"lengths": told.texts["name"]}, lengths=lengths)


def _line(
    name: str, shape: str, annotation: str, arguments: Mapping[str, Any], calls: int, device: int, card: Card | None
) -> Line | None:  # fmt: skip
    try:
        dims = json.loads(shape)
    except (ValueError, RecursionError):
        return None
    concrete, types = arguments.get("Concrete Inputs"), arguments.get("Input type")
    types = [each if isinstance(each, str) else "" for each in types] if isinstance(types, list) else []
    sizes = [ELEMENT_BYTES.get(each) for each in types] + [None] * (len(dims) if isinstance(dims, list) else 0)
    lengths = lengths_in_name(annotation) if annotation else None
    work = work_of(name, Call(dims, sizes, concrete if isinstance(concrete, list) else (), lengths))
    if work is None:
        return None
    operations, moved = work
    dtype = next((each for each in types if each in ELEMENT_BYTES), None)
    seconds = device / 1e9
    rate, throughput = operations * calls / seconds, moved * calls / seconds if moved else None
    bound = None
    peak = None if card is None or dtype is None else card.peak(ELEMENT_BYTES[dtype])
    share = rate / peak if peak is not None else None
    # without a known peak: every card computes more than one operation for each byte that it reads
    if card is not None and moved and throughput and (peak is not None or operations <= moved):
        bound = "memory" if peak is None or operations / moved <= peak / (card.memory * 1e9) else "compute"
        share = share if bound == "compute" else throughput / (card.memory * 1e9)
        if bound == "memory" and share is not None and share > 1:
            bound = "cache"
    told = f"{shape} sq {lengths.queries:,}, sk {lengths.keys:,}" if lengths and "attention" in name else shape
    share = None if share is not None and share > 1 else share
    return Line(name, told, dtype, category_of(name, ""), calls, device, operations, moved, rate / 1e12, share,
                None if throughput is None else throughput / 1e9, bound)  # fmt: skip
