"""Roofline view: FLOP and bytes of matrix products, convolutions and attention from their shapes; achieved rates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from tpuprof_tui.analysis.pivot import Groups, key
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.nesting import parents
from tpuprof_tui.views.answer import Answer, Column, Missing, Table

from ..vocabulary import DEVICE
from .worker_events import WorkerEvents, per_worker

Shape = Sequence[int]
#: Bytes per element, by type.
_BYTES: Final = {
    "c10::Half": 2, "c10::BFloat16": 2, "float": 4, "double": 8, "signed char": 1, "unsigned char": 1, "int": 4,
    "long int": 8, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1, "c10::Float8_e5m2fnuz": 1,
}  # fmt: skip


class Card(NamedTuple):
    """Peak rates of a card.

    Attributes:
        name: Regular expression of its name in traces.
        half: TFLOP/s of 16-bit numbers with matrix units.
        single: TFLOP/s of 32-bit numbers; TF32 if matrix units support it.
        memory: GB/s.
    """

    name: str
    half: float
    single: float
    memory: float


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


#: Work of one call: floating-point operations (a multiply-add counts as two), and elements read and written, each once.
Work = tuple[int, int]


def _product(left: Shape, right: Shape) -> Work | None:
    """(..., m, k) times (..., k, n)."""
    if len(left) != len(right) or len(left) not in (2, 3) or left[-1] != right[-2]:
        return None
    batch, (rows, inner), columns = math.prod(left[:-2]), left[-2:], right[-1]
    return (2 * batch * rows * inner * columns, batch * (rows * inner + inner * columns + rows * columns))


def _attention(causal: int, dims: Sequence[Shape], args: Sequence[Any]) -> Work | None:
    """Query, key and value of (batch, heads, length, size); a causal mask (argument ``causal``) halves the work."""
    query, key, value = dims[:3]
    if not len(query) == len(key) == len(value) == 4:
        return None
    heads, length, size = query[0] * query[1], query[2], query[3]
    both = 2 * heads * length * key[2] * (size + value[3])
    elements = math.prod(query) + math.prod(key) + math.prod(value) + heads * length * value[3]
    return (both // 2 if len(args) > causal and str(args[causal]) == "True" else both, elements)


def _convolution(dims: Sequence[Shape], args: Sequence[Any]) -> Work | None:
    """Input (batch, channels, ...), weight (channels out, channels in of a group, ...), then stride and padding."""
    data, weight = dims[:2]
    stride, padding, dilation = (_numbers(args[index], len(data) - 2) for index in (3, 4, 5))
    if len(data) < 3 or len(data) != len(weight) or not stride or not padding or not dilation:
        return None
    if len(args) > 6 and str(args[6]) == "True":  # transposed: each input element is multiplied by the whole weight
        return (2 * math.prod(data) * weight[1] * math.prod(weight[2:]), math.prod(data) + math.prod(weight))
    sizes = [(size + 2 * pad - far * (wide - 1) - 1) // step + 1 for size, pad, far, wide, step in
             zip(data[2:], padding, dilation, weight[2:], stride, strict=True)]  # fmt: skip
    out = data[0] * weight[0] * math.prod(sizes)
    return (2 * out * math.prod(weight[1:]), math.prod(data) + math.prod(weight) + out)


def _numbers(text: Any, count: int) -> list[int]:
    """A list of ``count`` numbers, given as list or JSON text, a single one repeated; empty if it is no such list."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return []
    if not isinstance(found, list) or not all(type(each) is int and 0 <= each < 1 << 20 for each in found):
        return []
    return found * count if len(found) == 1 else found if len(found) == count else []


Formula = Callable[[Sequence[Shape], Sequence[Any]], "Work | None"]
#: Work of each operator; operators nested inside these are part of them.
FORMULAS: Final[dict[str, Formula]] = {
    "aten::mm": lambda dims, _: _product(dims[0], dims[1]),
    "aten::bmm": lambda dims, _: _product(dims[0], dims[1]),
    "aten::_scaled_mm": lambda dims, _: _product(dims[0], dims[1]),
    "aten::addmm": lambda dims, _: _product(dims[1], dims[2]),
    "aten::baddbmm": lambda dims, _: _product(dims[1], dims[2]),
    "aten::convolution": _convolution,
    "aten::scaled_dot_product_attention": partial(_attention, 5),
    "aten::_scaled_dot_product_flash_attention": partial(_attention, 4),
    "aten::_scaled_dot_product_efficient_attention": partial(_attention, 6),
    "aten::_scaled_dot_product_cudnn_attention": partial(_attention, 6),
}
_COLUMNS: Final = (
    Column("name", "Operator", narrows="name"), Column("shape", "Shapes"), Column("dtype", "Type", spare=2),
    Column("calls", "Calls", "count"), Column("device_total_us", "Device", "duration", bar=True),
    Column("flops", "FLOP of a call", "number", spare=4), Column("bytes", "Bytes of a call", "bytes", spare=3),
    Column("tflops", "TFLOP/s", "number"), Column("peak_share", "Of peak", "share"),
    Column("gb_per_s", "GB/s", "number", spare=1), Column("bound", "Bound by"),
)  # fmt: skip


@per_worker(DEVICE)
def roofline(events: WorkerEvents) -> Answer:
    """The roofline view of one worker, by name and shapes."""
    frame = events.whole.frame("thread", "name", "lane", "row", "shapes", "host_total", "device_total")
    work = frame.take((frame["host_total"] != INT_MISSING) & frame.has("name", FORMULAS.__contains__))
    # those within another one are part of it
    work = work.take((parents(work["start"], work["end"], work["lane"]) < 0) & (work["device_total"] > 0))
    work = work.take(events.selects(work))
    if not len(work):
        message = "There are no matrix products, convolutions or attention with shapes."
        return Answer(missing=(Missing(message, "record_shapes=True"),))
    group = Groups(work, ["name", "shapes"])
    names = [str(each.get("name") or "") for each in events.recorded.devices]
    card = next(filter(None, map(card_named, names)), None)
    found, unknown = [], 0
    device = group.reduce(work["device_total"])
    labels, shapes = key("name")(group), key("shapes", "[]")(group)
    for number, first in enumerate(group.first.tolist()):
        read = events.query.profile.lanes[int(work["lane"][first])].arguments
        arguments = {} if read is None else read(int(work["row"][first]))
        line = _line(labels[number], shapes[number], arguments, int(group.sizes[number]), int(device[number]), card)
        unknown += line is None
        found += [line] if line is not None else []
    found.sort(key=lambda line: (-line[4], *line[:2]))
    notes = [*(["The card is not in the table of cards: shares of its peak are not known."] if card is None else []),
             *([f"Of {unknown} shapes the work is not known."] if unknown else [])]  # fmt: skip
    return Answer(tables=(Table.of_rows("roofline", "By name and shapes", _COLUMNS, found, notes=tuple(notes)),))


def _line(
    name: str, text: str, arguments: Mapping[str, Any], calls: int, device: int, card: Card | None
) -> tuple[Any, ...] | None:  # fmt: skip
    try:
        dims = json.loads(text)
        concrete, types = arguments.get("Concrete Inputs"), arguments.get("Input type")
        work = FORMULAS[name](dims, concrete if isinstance(concrete, list) else [])
    except (ValueError, TypeError, IndexError, RecursionError, ZeroDivisionError):
        return None
    operations, elements = work or (0, 0)
    if not 0 < operations < 1 << 62 or elements <= 0:
        return None
    dtype = next((each for each in types if each in _BYTES), None) if isinstance(types, list) else None
    size = _BYTES[dtype] if dtype is not None else None
    moved = elements * size if size else None
    seconds = device / 1e9
    rate = operations * calls / seconds
    throughput = moved * calls / seconds if moved else None
    share, bound = None, None
    if card is not None and size is not None:
        peak = card.single if size == 4 else card.half * (2 if size == 1 else 1)
        share = rate / (peak * 1e12)
        if moved:
            bound = "compute" if operations / moved > peak * 1e12 / (card.memory * 1e9) else "memory"
            share = share if bound == "compute" else (throughput or 0) / (card.memory * 1e9)
    return (name, text, dtype, calls, device, operations, moved, rate / 1e12, share,
            None if throughput is None else throughput / 1e9, bound)  # fmt: skip
