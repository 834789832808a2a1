"""What really happened in a capture, as the program that wrote it knew it, and how a profile differs from it.

The truth lies beside a written capture as ``NAME.truth.json`` (columns of many records in an ``.npz``), or packed in
``tests/data/truth``. It is never read from the capture's bytes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tpuprof_tui.model import Lane, Profile, is_missing

#: Columns of the truth that are kept, in packed files too.
COLUMNS = ("start_ns", "end_ns", "cycles", "op", "func", "scope", "batch", "bytes", "src", "dst", "dtype", "mode",
           "cmd_id", "alg_ops", "core", "d0", "d1", "d2", "d3", "k", "infra")  # fmt: skip
_WORK, _ID_WRAP = 0, 5
#: Records of the runtime's copies of inputs and outputs: what they are called.
_COPIES = {7: "input copy", 8: "output copy"}
#: Operations whose registers nobody describes.
_UNDESCRIBED = ("compress", "decompress", "randmask", "transfer")
_MODES = (None, "TDI", "RVT", "DES")
_MEMORIES = ("DDR", "L2M", "LMEM")
_DTYPES = ("INT8", "FP16", "FP32", "INT16", "INT32", "BFP16", "INT4", "FP8")
_TENSOR = {("DDR", "DDR"): "tensorLd", ("DDR", "LMEM"): "tensorLd", ("LMEM", "DDR"): "tensorSt",
           ("LMEM", "LMEM"): "tensorMv"}  # fmt: skip

Key = tuple[str, int]
Columns = dict[str, np.ndarray]


@dataclass
class Truth:
    """The instructions of a capture.

    Attributes:
        meta: Facts about the whole capture.
        ops: Operations; the column ``op`` counts them.
        funcs: Kernel functions; the column ``func`` counts them.
        copies: By core: columns of the copies of inputs and outputs by the runtime, in program order.
        lanes: By engine and core (or port): columns of the instructions that are in the capture, in program order.
            Times are ns from the first instruction of all.
    """

    meta: dict[str, Any]
    ops: list[dict[str, Any]]
    funcs: list[str]
    lanes: dict[Key, Columns]
    copies: dict[int, Columns] = field(default_factory=dict)

    @property
    def event_count(self) -> int:
        return sum(len(columns["op"]) for columns in self.lanes.values())

    @property
    def tail(self) -> float:
        """End of the last record of all, the profiler's own included."""
        return self.meta["pmu_last_ns"] - self.meta["reference_zero_ns"]


def read_truth(path: Path) -> Truth:
    """The truth that was written beside a capture."""
    body = json.loads(path.read_text(encoding="utf-8"))
    many = np.load(path.with_suffix(".npz")) if "arrays" in body else None
    meta = body["meta"]
    lanes: dict[Key, Columns] = {}
    copies: dict[int, Columns] = {}
    for number, track in enumerate(body["tracks"]):
        columns = {
            name: np.array(track["columns"][name]) if many is None else many[f"{number}/{name}"]
            for name in (*COLUMNS, "loss")
        }
        for name in ("start_ns", "end_ns"):
            columns[name] = np.round(columns[name] - meta["reference_zero_ns"], 3)
        engine, index = track["engine"], track["index"]
        number = index if engine == "CDMA" else meta["written_cores"][index]
        for codes, found, key in (((_WORK, _ID_WRAP), lanes, (engine, number)), (tuple(_COPIES), copies, number)):
            rows = (columns["loss"] == 0) & np.isin(columns["infra"], codes)
            if rows.any():
                found[key] = {name: columns[name][rows] for name in COLUMNS}
    return Truth(meta, body["ops"], body["funcs"], lanes, copies)


# -- packed ---------------------------------------------------------------


def pack(values: list[Any]) -> Any:
    """A column in few characters: one value for all, differences of whole numbers, or the values."""
    if values and all(value == values[0] and type(value) is type(values[0]) for value in values):
        return {"all": values[0], "count": len(values)}
    if values and all(type(value) is int for value in values):
        return {"steps": [values[0], *(b - a for a, b in pairwise(values))]}
    return values


def unpack(packed: Any) -> list[Any]:
    """The column that `pack` was given."""
    if isinstance(packed, list):
        return packed
    if "all" in packed:
        return [packed["all"]] * packed["count"]
    result: list[Any] = np.cumsum(np.array(packed["steps"], dtype=object)).tolist()
    return result


def write_packed(path: Path, body: Any) -> None:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


def read_packed(path: Path) -> Any:
    return json.loads(lzma.decompress(path.read_bytes()))


def packed_truth(truth: Truth) -> Any:
    """The truth as plain values, times in thousandths of a ns."""

    def plain(name: str, values: np.ndarray) -> Any:
        whole = np.rint(values * 1000).astype(np.int64) if name.endswith("_ns") else values
        return pack(whole.tolist())

    lanes = [
        {"engine": engine, "number": number, **{name: plain(name, columns[name]) for name in COLUMNS}}
        for (engine, number), columns in truth.lanes.items()
    ]
    return {"meta": truth.meta, "ops": truth.ops, "funcs": truth.funcs, "lanes": lanes}


def unpacked_truth(body: Any) -> Truth:
    """The truth that `packed_truth` was given."""
    lanes: dict[Key, Columns] = {}
    for lane in body["lanes"]:
        columns = {name: np.array(unpack(lane[name]), dtype=np.int64) for name in COLUMNS}
        for name in ("start_ns", "end_ns"):
            columns[name] = columns[name] / 1000
        lanes[lane["engine"], lane["number"]] = columns
    return Truth(body["meta"], body["ops"], body["funcs"], lanes)


# -- comparison -----------------------------------------------------------


@dataclass(frozen=True)
class Leave:
    """What a capture cannot tell, so that it is not asked for.

    Attributes:
        shift: Lanes whose times may all be off by one amount: ``core`` (one per core), ``CDMA`` (one per port).
        unbound: Most instructions without their command; all others must have the right one.
        condensed: Instructions whose registers are not in the capture: the last ones of their streams.
        names: Whether the truth has the names of the chip; False where it has another chip's.
    """

    shift: tuple[str, ...] = ()
    unbound: int = 0
    condensed: int = 0
    names: bool = True


def differences(profile: Profile, truth: Truth, leave: Leave = Leave()) -> list[str]:
    """Everything in which a profile differs from the truth, instruction by instruction; empty when nothing does."""
    return list(_Comparison(profile, truth, leave).run())


class _Comparison:
    def __init__(self, profile: Profile, truth: Truth, leave: Leave) -> None:
        self.profile = profile
        self.truth = truth
        self.meta = truth.meta
        self.leave = leave
        self.close = 0.51 if self.meta["tiu_mhz"] == self.meta["dma_mhz"] else 2.6
        self.shifts: dict[int, list[float]] = {}
        self.unbound = 0
        self.condensed = 0

    def run(self) -> Iterator[str]:
        seen = {(lane.kind, self.profile.number_of(lane)): lane for lane in self.profile.lanes if lane.kind != "COPY"}
        for key in sorted(seen.keys() ^ self.truth.lanes.keys()):
            yield f"{key}: {'not in the capture' if key in seen else 'missing'}"
        for key in sorted(seen.keys() & self.truth.lanes.keys()):
            yield from self._lane(key, seen[key], self.truth.lanes[key])
        yield from self._copies()
        for core, shifts in self.shifts.items():
            if max(shifts) - min(shifts) > 4 * self.close:
                yield f"core {core}: its engines are moved against each other by {max(shifts) - min(shifts):.0f} ns"
        if self.unbound > self.leave.unbound:
            yield f"{self.unbound} instructions without their command"
        if self.condensed > self.leave.condensed:
            yield f"{self.condensed} instructions without their registers"
        yield from self._whole()

    def _copies(self) -> Iterator[str]:
        """Copies of inputs and outputs stand in a lane of the host."""
        seen = {self.profile.number_of(lane): lane for lane in self.profile.lanes if lane.kind == "COPY"}
        if seen.keys() != self.truth.copies.keys():
            yield f"copies of cores {sorted(seen)} instead of {sorted(self.truth.copies)}"
        for core in sorted(seen.keys() & self.truth.copies.keys()):
            key, lane, wanted = ("COPY", core), seen[core], self.truth.copies[core]
            if len(lane) != len(wanted["op"]):
                yield f"{key}: {len(lane)} copies instead of {len(wanted['op'])}"
                continue
            shift = self._shift(("GDMA", core), lane["start"], wanted)
            yield from _unlike(key, "start", np.abs(lane["start"] - wanted["start_ns"] - shift) > self.close,
                               lane["start"])  # fmt: skip
            yield from _unlike(key, "bytes", lane["bytes"] != wanted["bytes"], lane["bytes"])
            names = self.profile.strings["name"].texts(lane["name"])
            if names != [_COPIES[code] for code in wanted["infra"].tolist()]:
                yield f"{key}: {names}"

    def _whole(self) -> Iterator[str]:
        profile, meta = self.profile, self.meta
        if profile.device.clock("TIU") != meta["tiu_mhz"]:
            yield f"clock {profile.device.clock('TIU')}"
        if not self.leave.shift and abs((profile.tail_ns or 0) - self.truth.tail) > self.close + 1:
            yield f"tail {profile.tail_ns} instead of {self.truth.tail}"
        if profile.tail_offset_ns != meta.get("tail_offset_ns"):
            yield f"tail offset {profile.tail_offset_ns}"
        written = set(meta["written_cores"])
        groups = profile.groups
        gone, gone_ports = set(groups.lost_numbers("core")), set(groups.lost_numbers("port"))
        known = {*groups.numbers, *gone}
        lost, lost_ports = (set(meta.get(f"lost_{which}", ())) for which in ("cores", "ports"))
        if not written | lost <= known or len(known) != max(len(written | lost), meta["cores"] * meta["core_num_key"]):
            yield f"cores {groups.numbers}, lost {gone}"
        if not lost <= gone or not lost_ports <= gone_ports:
            yield f"lost {gone} and ports {gone_ports}"

    def _lane(self, key: Key, lane: Lane, wanted: Columns) -> Iterator[str]:
        if len(lane) != len(wanted["op"]):
            yield f"{key}: {len(lane)} instructions instead of {len(wanted['op'])}"
            return
        rows = np.argsort(lane["order"], kind="stable")
        if not np.array_equal(lane["order"][rows], np.arange(len(rows))):
            yield f"{key}: places in the stream are not 0, 1, 2, ..."
        start, end = lane["start"][rows], lane["end"][rows]
        shift = self._shift(key, start, wanted)
        yield from _unlike(key, "start", np.abs(start - wanted["start_ns"] - shift) > self.close, start)
        length = wanted["end_ns"] - wanted["start_ns"]
        yield from _unlike(key, "length", np.abs(end - start - length) > 2 * self.close, end - start)
        yield from _unlike(key, "cycles", lane["cycles"][rows] != wanted["cycles"], lane["cycles"][rows])
        shown = wanted["cmd_id"] + (key[0] != "CDMA")
        yield from _unlike(key, "id", lane["command_id"][rows] != shown, lane["command_id"][rows])
        system = np.array([op["system"] for op in self.truth.ops])[wanted["op"]]
        if key[0] != "TIU":
            wrong = (lane["bytes"][rows] != wanted["bytes"]) & ~system
            yield from _unlike(key, "bytes", wrong, lane["bytes"][rows])
        if self.meta["mode"] == 0 and not self.meta["bmodel"]:
            yield from _unlike(key, "work with a name", ~system & ~is_missing(lane["name"][rows]), lane["name"][rows])
            return
        yield from self._commands(key, lane, rows, wanted, system)

    def _shift(self, key: Key, start: np.ndarray, wanted: Columns) -> float:
        """By how much the whole lane is off, where it may be."""
        if ("CDMA" if key[0] == "CDMA" else "core") not in self.leave.shift:
            return 0.0
        shift = float(np.median(start - wanted["start_ns"]))
        if key[0] != "CDMA":
            self.shifts.setdefault(key[1], []).append(shift)
        return shift

    def _commands(self, key: Key, lane: Lane, rows: np.ndarray, wanted: Columns, system: np.ndarray) -> Iterator[str]:
        names, types = self._texts(lane, "name", rows), self._texts(lane, "type", rows)
        registers = self._has_registers(key[0], wanted)
        unknown = names == np.array(None)
        # a guess by the counters stands in for a command that was not found
        tagged = ~is_missing(lane["mode"][rows]) if "mode" in lane else np.zeros(len(rows), bool)
        loose = (unknown | ~tagged) & ~self._static(wanted) & (wanted["infra"] == _WORK)
        self.unbound += int(loose.sum())
        bound = ~loose if self.leave.unbound else np.ones(len(rows), bool)
        if self.leave.condensed and lane.registers is not None:
            without = registers & (lane.registers.operations(rows) < 0)
            self.condensed += int(without.sum())
            registers &= ~without
            if without.any() and registers[int(np.argmax(without)) :].any():
                yield f"{key}: an instruction has registers behind one that has none"
        kinds, texts = self._wanted_names(wanted, registers)
        if self.leave.names:
            yield from _unlike(key, "type", bound & (types != kinds), types)
            yield from _unlike(key, "name", bound & (names != texts), names)
        tags = {
            "kernel": np.array([*self.truth.funcs, None], object)[wanted["func"]],
            "mode": np.array(_MODES, object)[wanted["mode"]],
            "scope": _optional(wanted["scope"]),
            "batch": _optional(wanted["batch"]),
            "core": _optional(wanted["core"]),
        }
        for name, values in tags.items():
            seen = self._texts(lane, name, rows)
            yield from _unlike(key, name, bound & (seen != values), seen)
        if key[0] in ("GDMA", "SDMA"):
            yield from self._transfers(key, lane, rows, wanted, bound & ~system)
        if registers.any() and lane.registers is not None:
            yield from self._registers(key, lane, rows, wanted, bound & registers)

    def _texts(self, lane: Lane, key: str, rows: np.ndarray) -> np.ndarray:
        """A column as texts or numbers; None where it is missing."""
        if key not in lane:
            return np.full(len(rows), None, object)
        values = lane[key][rows]
        if key in self.profile.strings:
            return np.array([*self.profile.strings[key], None], object)[values]
        result = values.astype(object)
        result[is_missing(values)] = None
        return result

    def _static(self, wanted: Columns) -> np.ndarray:
        """Commands of a compiled model's streams: they have no tags."""
        return (wanted["mode"] == 0) if self.meta["bmodel"] else np.zeros(len(wanted["op"]), bool)

    def _has_registers(self, engine: str, wanted: Columns) -> np.ndarray:
        detailed = self.meta["mode"] == 2 and engine != "CDMA"
        return (wanted["mode"] == 3) | ((wanted["mode"] == 1) & detailed) | self._static(wanted)

    def _wanted_names(self, wanted: Columns, registers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs: dict[tuple[int, ...], tuple[str, str]] = {}
        kinds, texts = [], []
        for item in zip(*(column.tolist() for column in (wanted["op"], wanted["src"], wanted["dst"], registers)),
                        strict=True):  # fmt: skip
            if item not in pairs:
                op, source, target, decoded = item
                kind, name = self.truth.ops[op]["registers" if decoded else "node"]
                way = (_MEMORIES[source], _MEMORIES[target])
                pairs[item] = kind, _TENSOR.get(way, "tensor") if name == "*" else name
            kinds.append(pairs[item][0])
            texts.append(pairs[item][1])
        return np.array(kinds, object), np.array(texts, object)

    def _transfers(self, key: Key, lane: Lane, rows: np.ndarray, wanted: Columns, work: np.ndarray) -> Iterator[str]:
        memories = np.array(_MEMORIES, object)
        way = memories[wanted["src"]] + "->" + memories[wanted["dst"]]
        undescribed = np.array([op["key"] in _UNDESCRIBED for op in self.truth.ops])[wanted["op"]]
        blind = undescribed & (wanted["mode"] != 1)  # no node, and registers that nobody can read
        seen = self._texts(lane, "direction", rows)
        yield from _unlike(key, "direction", work & (seen != np.where(blind, None, way)), seen)
        # compressed transfers speak of another data type
        lossy = np.array([op["key"] == "lossy_comp" for op in self.truth.ops])[wanted["op"]]
        seen = self._texts(lane, "dtype", rows)
        kinds = np.where(blind, "", np.array(_DTYPES, object)[wanted["dtype"]])
        tells = ~lossy if self.leave.names else ~lossy & (wanted["mode"] == 1)
        yield from _unlike(key, "data type", work & tells & (seen != kinds), seen)

    def _registers(self, key: Key, lane: Lane, rows: np.ndarray, wanted: Columns, which: np.ndarray) -> Iterator[str]:
        assert lane.registers is not None  # else their names were wrong already
        if key[0] == "TIU":
            seen = lane["alg_ops"][rows]
            wrong = which & (wanted["alg_ops"] >= 0) & (seen != wanted["alg_ops"])
            yield from _unlike(key, "operations", wrong, seen)
        for op in np.unique(wanted["op"][which]).tolist():
            places = np.flatnonzero(which & (wanted["op"] == op))
            for name, values in _shapes(self.truth.ops[op]["key"], wanted, places).items():
                operations = np.unique(lane.registers.operations(rows[places]))
                if len(operations) != 1 or operations[0] < 0:
                    yield f"{key}: {self.truth.ops[op]['key']} decoded as operations {operations}"
                    break
                seen = lane.registers.field(int(operations[0]), name, rows[places])
                yield from _unlike(key, f"register {name}", seen != values, seen)


def _shapes(op: str, wanted: Columns, places: np.ndarray) -> dict[str, np.ndarray]:
    """Register fields that hold a shape, for operations whose registers hold it plainly."""
    d0, d1, d2, d3, k = (wanted[name][places] for name in ("d0", "d1", "d2", "d3", "k"))
    if op in ("tensor", "matrix"):
        return {"src_nsize": d0, "src_csize": d1, "src_hsize": d2, "src_wsize": d3}
    if op == "gather":
        return {"src_csize": d1, "src_hsize": d2, "src_wsize": d3}
    if op == "general":
        return {"cmd_length": d0 * d1 * d2 * d3}
    if op.startswith(("ar_", "sfu_", "lin_")):
        return {"res0_n": d0, "res0_c": d1, "res0_h": d2, "res0_w": d3}
    if op in ("mm2_nn", "mm2_nt"):
        inner, outer = (k, d3) if op == "mm2_nn" else (d3, k)
        return {"res0_c": d1, "res0_w": d3, "opd1_c": inner, "opd1_w": outer}
    return {}


def _optional(values: np.ndarray) -> np.ndarray:
    result = values.astype(object)
    result[values < 0] = None
    return result


def _unlike(key: Key, what: str, wrong: np.ndarray, seen: np.ndarray) -> Iterator[str]:
    places = np.flatnonzero(wrong)
    if len(places):
        yield f"{key}: {what} wrong for {len(places)} of {len(wrong)}, first #{places[0]}: {seen[places[0]]!r}"
