"""The two sheets on a network's layers: figures by group of operations, and one row per layer and core."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.formats.xlsx.book import Page, Value
from tpuprof_tui.formats.xlsx.rows import (
    BLOCK_HEADER,
    BLOCK_VALUE,
    COLUMN_HEADER,
    COUNT,
    KEY_CELL,
    PERCENT,
    TOTAL_HEADER,
)
from tpuprof_tui.model import Lane, Profile
from tpuprof_tui.model.lane import Rows

from ..read.arrays import map_texts
from ..read.layers import Layer, LayerMap
from .summary_table import Sums, bandwidth, cycles_us, direction_contains, filled_values, ratio

Array = npt.NDArray[Any]

_SLICES: Final = tuple(
    f"{side}_{name}" for side in "ga" for name in ("m_secs_o", "n_secs_o", "k_secs_o", "m_slice", "n_slice", "k_slice",
                                                   "cost")
)  # fmt: skip
LAYER_COLUMNS: Final = (
    "layer_id", "layer_name", "data_type", "layer_type", "engine_type", "load_bandwidth", "store_bandwidth",
    "kh", "kw", "k_stride_h", "k_stride_w", "iN", "iC", "iH", "iW", "oN", "oC", "oH", "oW", "ifm", "ofm", "m", "k", "n",
    "weight_size", "feature_size", "alg_ops", "other_info", "uarch_rate", "uarch_ops", "alg_cycle", "alg_cycle_ratio",
    *_SLICES, "ddr<->l1/l2 bytes(B)", "l1<->l2 bytes(B)", "sim_cycle", "sim_cycle_ratio", "core_id",
)  # fmt: skip
#: Row of the column headers in both sheets.
HEADER_ROW: Final = 9
_GROUP_COLUMNS: Final = (
    "Function", "Algorithm OPs", "Algorithm OPs Ratio", "Weight Size(B)", "uArch OPs", "uArch URate",
    "uArch GOPs Ratio", "ASIC Cycles", "ASIC Time(us)", "Time Ratio", "ASIC FPS", "Operations",
)  # fmt: skip
_CASE_COLUMNS: Final = ("Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark")
#: Prefixes of the names of operations, by group; operations without one are a group of their own.
_GROUPS: Final = {
    "Conv": ("Conv", "Deconv"), "MatMul": ("MatMul", "A16MatMul"), "Pool": ("Pool", "AvgPool", "MaxPool"),
    "Eltwise": ("Add", "Sub", "Mul", "Div", "Max", "Min"),
}  # fmt: skip
_FORMATS: Final = {
    "f8": "FP8",
    "f16": "FP16",
    "f32": "FP32",
    "bf16": "BFP16",
    **{f"{sign}i{bits}": f"INT{bits}" for sign in ("", "s", "u") for bits in (4, 8, 16, 32)},
}
#: Operations whose operands after the first are weights.
_WEIGHTED: Final = frozenset(("Conv", "MatMul"))


class LayerSums:
    """Figures of each layer, summed over its commands.

    A network that ran several times counts once, as in the reference: of commands with the same id the last of its
    lane.
    """

    def __init__(self, profile: Profile, layers: LayerMap) -> None:
        self.profile = profile
        self.network = layers.network
        self._map = layers
        self._sums = defaultdict[str, Array](lambda: np.zeros(len(layers.network.layers), np.int64))

    def add(self, lane: Lane, parts: Iterable[Rows]) -> None:
        """Adds instructions of a lane."""
        if lane.kind not in ("TIU", "GDMA"):
            return
        seen = np.zeros(0, dtype=np.int64)
        for rows in reversed(list(parts)):
            layer_indices = self._map.indices(lane, rows)
            ids = lane.take("command_id", rows)
            distinct, from_end = np.unique(ids[::-1], return_index=True)
            last = (len(ids) - 1 - from_end)[~np.isin(distinct, seen)]
            seen = np.union1d(seen, distinct)
            inside = last[layer_indices[last] >= 0]
            if lane.kind == "TIU":
                found = {key: filled_values(lane, key, rows) for key in ("alg_ops", "uarch_ops", "alg_cycle", "cycles")}
            else:
                found = self._of_transfers(lane, rows)
            for name, values in found.items():
                np.add.at(self._sums[name], layer_indices[inside], values[inside])

    def _of_transfers(self, lane: Lane, rows: Rows) -> dict[str, Array]:
        amounts = {"bytes": filled_values(lane, "bytes", rows), "cycles": filled_values(lane, "cycles", rows)}
        ddr, l2 = (direction_contains(self.profile, lane, memory, rows) for memory in ("DDR", "L2"))
        # rows without a direction move nothing
        known = map_texts(self.profile, lane, "direction", rows, lambda text: True)
        loads = map_texts(self.profile, lane, "direction", rows, lambda text: text.startswith("DDR->")) & ddr
        moves = {"ddr": ddr & known, "l2": l2 & ~ddr, "load": loads, "store": ddr & ~loads & known}
        return {f"{kind}_{name}": values * moved for kind, moved in moves.items() for name, values in amounts.items()}

    def of(self, *layers: Layer) -> Sums:
        """Figures of some layers."""
        places = [layer.number - 1 for layer in layers]
        return Sums({name: int(values[places].sum()) for name, values in self._sums.items()})


def group_of(layer: Layer) -> str:
    """Group of operations of a layer."""
    return next((group for group, starts in _GROUPS.items() if layer.name.startswith(starts)), layer.name)


def weight_size(layer: Layer) -> int:
    """Bytes of the operands that are weights."""
    return sum(tensor.size for tensor in layer.operands[1:]) if group_of(layer) in _WEIGHTED else 0


# -- sheets -------------------------------------------------------------------


def layer_sheet(page: Page, sums: LayerSums) -> None:
    """Writes one row per layer and core."""
    network, profile, device = sums.network, sums.profile, sums.profile.device
    names = ("Network", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU FP32 TOPS", "DDR BW(GB/s/Core)",
             "TPU Frequency(GHz)", "DMA Frequency(GHz)")  # fmt: skip
    values: list[Value] = [network.name, device.chip, *_peak(profile), device.peak("DDR"), device.clock("TIU") / 1000,
                           device.clock("DMA") / 1000]  # fmt: skip
    _head(page, profile, names, values)
    page.line(HEADER_ROW, 1, LAYER_COLUMNS, COLUMN_HEADER)
    totals = sums.of(*network.layers)
    for row, layer in enumerate(network.layers, HEADER_ROW + 1):
        cells = _layer_cells(layer, sums, totals)
        listed = [cells.get(name, "-") for name in LAYER_COLUMNS]
        forms = (
            PERCENT if name.endswith(("ratio", "rate")) else COUNT if isinstance(value, int) else "General"
            for name, value in zip(LAYER_COLUMNS[1:], listed[1:], strict=True)
        )
        page.line(row, 1, listed, KEY_CELL, ("General", *forms))
    page.headed(HEADER_ROW, len(LAYER_COLUMNS), HEADER_ROW + len(network.layers), frozen_columns=2)


def _layer_cells(layer: Layer, sums: LayerSums, totals: Sums) -> dict[str, Value]:
    figures = sums.of(layer)
    first = layer.operands[0].shape if layer.operands else ()
    last = layer.results[0].shape if layer.results else ()
    input_bytes, output_bytes = (sum(tensor.size for tensor in tensors) for tensors in (layer.operands, layer.results))
    mhz = sums.profile.device.clock("DMA")
    left, right = (tensors[0].matrix if tensors else () for tensors in (layer.operands, layer.results))
    product = group_of(layer) == "MatMul" and len(left) > 1 and len(right) > 1
    sizes = (math.prod(left[:-1]), left[-1], right[-1]) if product else (0, 0, 0)
    form = next((tensor.form for tensor in layer.operands if tensor.form), "-")
    return {
        "layer_id": layer.number,
        "layer_name": layer.name,
        "data_type": _FORMATS.get(form, form.upper()),
        "engine_type": "TPU",
        **{f"{kind}_bandwidth": round(bandwidth(figures, kind, mhz), 2) for kind in ("load", "store")},
        **dict(zip(("kh", "kw", "k_stride_h", "k_stride_w"), (*layer.kernel, *layer.strides), strict=True)),
        **dict(zip(("iN", "iC", "iH", "iW"), _four_dimensions(first), strict=True)),
        **dict(zip(("oN", "oC", "oH", "oW"), _four_dimensions(last), strict=True)),
        **dict(zip("mkn", sizes, strict=True)),
        "ifm": input_bytes,
        "ofm": output_bytes,
        "weight_size": weight_size(layer),
        "feature_size": input_bytes - weight_size(layer),
        "other_info": "; ".join(f"tensor_{number}: {list(one.shape)}" for number, one in enumerate(layer.operands)),
        "uarch_rate": ratio(figures["alg_ops"], figures["uarch_ops"]),
        **{name: figures[name] for name in ("alg_ops", "uarch_ops", "alg_cycle")},
        "alg_cycle_ratio": ratio(figures["alg_cycle"], totals["alg_cycle"]),
        "ddr<->l1/l2 bytes(B)": figures["ddr_bytes"],
        "l1<->l2 bytes(B)": figures["l2_bytes"],
        "sim_cycle": figures["cycles"],
        "sim_cycle_ratio": ratio(figures["cycles"], totals["cycles"]),
        "core_id": layer.core,
    }


def network_sheet(page: Page, sums: LayerSums, total_ns: int, concurrency: float) -> None:
    """Writes figures by group of operations, and what less time in each of them would gain."""
    network, profile, device = sums.network, sums.profile, sums.profile.device
    cores = len(profile.units)
    names = ("Network", "Model GFLOPs", "Quant Type", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU FP32 TOPS",
             "DDR BW(GB/s)", "TPU Frequency(MHz)", "DMA Frequency(MHz)")  # fmt: skip
    values: list[Value] = [network.name, network.flops / 1e9, network.mode.lower(), device.chip, *_peak(profile),
              round(device.peak("DDR") * cores, 2), device.clock("TIU"), device.clock("DMA")]  # fmt: skip
    _head(page, profile, names, values)
    groups: dict[str, list[Layer]] = {}
    for layer in network.layers:
        groups.setdefault(group_of(layer), []).append(layer)
    listed = sorted(groups.items())
    page.line(HEADER_ROW, 2, _GROUP_COLUMNS, TOTAL_HEADER)
    for row, (name, layers) in enumerate([*listed, ("Overall", list(network.layers))], HEADER_ROW + 1):
        _put_cells(page, row, _group_cells(name, layers, sums))
    head_row = HEADER_ROW + len(listed) + 4
    page.line(head_row, 2, _CASE_COLUMNS, TOTAL_HEADER)
    for row, cells in enumerate(_cases(listed, sums, total_ns, concurrency), head_row + 1):
        _put_cells(page, row, cells)


def _group_cells(name: str, layers: Sequence[Layer], sums: LayerSums) -> list[Value]:
    figures, every = sums.of(*layers), sums.of(*sums.network.layers)
    alg, uarch, cycles = figures["alg_ops"], figures["uarch_ops"], figures["cycles"]
    time = _us(sums.profile, cycles)
    overall = name == "Overall"
    return [
        name, alg, ratio(alg, every["alg_ops"], 3), sum(map(weight_size, layers)), uarch, ratio(alg, uarch, 3),
        ratio(uarch, every["uarch_ops"], 3), cycles, time, ratio(cycles, every["cycles"], 3),
        round(1e6 / time, 2) if overall and time else "-",
        "-" if overall else ", ".join(sorted({layer.name for layer in layers})),
    ]  # fmt: skip


def _cases(
    groups: Sequence[tuple[str, Sequence[Layer]]], sums: LayerSums, total_ns: int, concurrency: float
) -> list[list[Value]]:
    """Rows of cases: as measured, with engines fully overlapped, then with each group in turn at the chip's peak."""
    profile, flops = sums.profile, sums.network.flops
    tops = _peak(profile)[1]

    def utilisation(time: float) -> float:
        return round(flops / (time * 1e6 * tops) * 100, 3) if time > 0 and tops else 0.0

    time = round(total_ns / 1000, 3)
    rows: list[list[Value]] = [["origin", 0, time, round(concurrency * 100, 2), utilisation(time), "without host time"]]
    busy = sum(_us(profile, sums.of(*layers)["cycles"]) for _, layers in groups)
    if busy < time:
        rows.append(["100% Concurrency", round(time - busy, 3), round(busy, 3), 100, utilisation(busy),
                     "all transfers hidden behind TIU work"])  # fmt: skip
        time = busy
    for name, layers in groups:
        figures = sums.of(*layers)
        taken = _us(profile, figures["cycles"])
        best = round(figures["alg_ops"] / (tops * 1e6), 3) if tops else taken
        if best < taken:
            time = max(time - (taken - best), 0.0)
            rows.append([f"{name} tiuTime: {taken:.2f} us -> {best:.2f} us", round(taken - best, 3), round(time, 3),
                         100, utilisation(time), f"{name} at the chip's peak, the cases above included"])  # fmt: skip
    return rows


def _put_cells(page: Page, row: int, cells: Sequence[Value]) -> None:
    shares = ("Ratio", "Rate")
    titles = _GROUP_COLUMNS if len(cells) == len(_GROUP_COLUMNS) else _CASE_COLUMNS
    for column, (title, value) in enumerate(zip(titles, cells, strict=True), 2):
        form = COUNT if isinstance(value, int) else "#,##0.000"
        if any(share in title for share in shares):
            form = "0.000%"
        align = "left" if isinstance(value, str) else "right"
        page.put(row, column, value, replace(KEY_CELL, form="General" if isinstance(value, str) else form, align=align))


def _head(page: Page, profile: Profile, names: Sequence[str], values: Sequence[Value]) -> None:
    page.line(1, 2, names, BLOCK_HEADER)
    page.line(2, 2, values, BLOCK_VALUE)
    lanes, channels, pixels, vector = _units_per_cycle(profile)
    names = ("NPU NUM (lane)", "IC Alignment (8bits)", "Conv OHOW Align", "Vector OHOW Align(8bits)", "Conv Ops/s",
             "Vect Ops/s", "Pool OPs/s")  # fmt: skip
    alignment = (lanes, channels, pixels, vector, lanes * channels * pixels * 2, lanes * vector, lanes * vector * 2)
    page.line(4, 2, names, BLOCK_HEADER)
    page.line(5, 2, alignment, replace(BLOCK_VALUE, form=COUNT))


def _units_per_cycle(profile: Profile) -> tuple[int, int, int, int]:
    """Lanes, input channels, output pixels and vector elements that the chip processes in one cycle."""
    known = dict(profile.device.parameters)
    names = ("NPU Num", "Cube IC Align(8bits)", "Cube OHOW Align(8bits)", "Vector OHOW Align(8bits)")
    values = [known.get(name, "0") for name in names]
    first, second, third, fourth = (int(value) if value.isdecimal() else 0 for value in values)
    return first, second, third, fourth


def _peak(profile: Profile) -> list[float]:
    """Peak TOPS of all cores for 8-bit, 16-bit and 32-bit elements."""
    lanes, channels, pixels, _ = _units_per_cycle(profile)
    peak = lanes * channels * pixels * 2 * profile.device.clock("TIU") / 1e6
    return [round(peak / part, 3) * len(profile.units) for part in (1, 2, 16)]


def _four_dimensions(shape: Sequence[int]) -> list[int]:
    """A shape as four dimensions: missing ones are 1, surplus ones are multiplied into the last."""
    padded = [*shape[:3], math.prod(shape[3:])] if len(shape) > 3 else [*shape, 1, 1, 1, 1]
    return padded[:4]


def _us(profile: Profile, cycles: int) -> float:
    return cycles_us(cycles, profile.device.clock("TIU"))
