"""Synthetic profiles for tests, built straight from numpy: no capture, no reader.

``small_profile`` has a little of everything, ``big_profile`` has any number of instructions in a second, and
``make_lane`` and ``make_profile`` build exactly what a test needs. All are functions of their arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.export.selection import of_units
from tpuprof_tui.model import (
    INT_MISSING,
    Activity,
    Device,
    Groups,
    Lane,
    Problem,
    Profile,
    Role,
    Scopes,
    Severity,
    Strings,
    StringsBuilder,
)
from tpuprof_tui.model.group import NO_GROUP
from tpuprof_tui.sources.sophgo.groups import PORTS, capture_groups, group_of
from tpuprof_tui.sources.sophgo.read.dependencies import with_dependencies
from tpuprof_tui.sources.sophgo.read.profile_builder import capabilities_of, recording_of
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

#: Groups of many cores whose ids are their numbers: for problems that are told before there is a profile.
CORES = capture_groups(range(64), (), ())
ENGINES = ("TIU", "GDMA", "SDMA")
ENGINE_IDS = {"TIU": 0, "GDMA": 1, "SDMA": 3, "CDMA": 4}
TEXT_KEYS = ("engine", "name", "type", "kernel", "mode", "direction", "dtype", "from_memory", "to_memory")
#: (type, name, role, type code, function code) of the operations the builders choose from.
OPERATIONS: dict[str, tuple[tuple[str, str, Role, int, int], ...]] = {
    "TIU": (
        ("matmul", "mm2_nn", Role.WORK, 2, 4),
        ("arith/SEG", "mul", Role.WORK, 3, 0),
        ("arith/SEG", "add", Role.WORK, 3, 2),
        ("SFU", "rsqrt", Role.WORK, 9, 17),
        ("sys", "wait_msg", Role.WAIT, 15, 9),
        ("sys", "send_msg", Role.SYNC, 15, 8),
    ),
    "GDMA": (
        ("DMA_tensor", "tensor_load", Role.WORK, 0, 0),
        ("DMA_tensor", "tensor_store", Role.WORK, 0, 0),
        ("DMA_matrix", "matrix_load", Role.WORK, 1, 0),
        ("sys", "wait_msg", Role.WAIT, 6, 4),
        ("sys", "send_msg", Role.SYNC, 6, 3),
    ),
    "CDMA": (
        ("send", "send", Role.WORK, 0, 0),
        ("recv", "recv", Role.WORK, 6, 0),
        ("sys", "sys_msg_tx_wait", Role.WAIT, 7, 4),
    ),
}
OPERATIONS["SDMA"] = OPERATIONS["GDMA"]
KERNELS = ("rmsnorm_multi_core", "llama_attention_multi_core", "a16_matmul_multi_core", "rope_multi_core",
           "all_reduce_multi_core", "swiglu_multi_core")  # fmt: skip
DIRECTIONS = (("DDR", "LMEM"), ("LMEM", "DDR"), ("L2M", "LMEM"))
DTYPES = ("INT8", "FP16", "FP32")

Ints = npt.NDArray[np.int64]


class Texts:
    """The string tables of a profile being built."""

    def __init__(self) -> None:
        self.builders: dict[str, StringsBuilder] = {key: StringsBuilder() for key in TEXT_KEYS}

    def codes(self, key: str, values: Sequence[str | None]) -> npt.NDArray[np.int32]:
        """Codes of texts; None is missing."""
        builder = self.builders[key]
        return np.array([-1 if value is None else builder.code(value) for value in values], dtype=np.int32)

    def build(self) -> dict[str, Strings]:
        return {key: builder.build() for key, builder in self.builders.items()}


class Registers:
    """Register fields in arrays: operation 0 has three fields, operation 1 two."""

    names = (("cmd_short", "tsk_typ", "res0_n"), ("cmd_short", "src_wsize"))

    def __init__(self, operations: npt.NDArray[np.int16], names: tuple[tuple[str, ...], ...] | None = None) -> None:
        self._operations = operations
        if names is not None:
            self.names = names

    def operations(self, rows: Any) -> npt.NDArray[np.int16]:
        return self._operations[rows]

    def field_names(self, operation: int) -> tuple[str, ...]:
        return self.names[operation]

    def field(self, operation: int, name: str, rows: Any) -> Ints:
        numbers = np.arange(len(self._operations), dtype=np.int64)[rows]
        return numbers * 10 + self.names[operation].index(name)

    def raw(self, row: int) -> bytes:
        return int(row).to_bytes(8, "little")

    def operation_of(self, row: int) -> int:
        return int(self._operations[row])

    def unexplained(self, row: int) -> bytes:
        return self.raw(row) if self._operations[row] < 0 else b""


def first_free_sublanes(starts: Ints, ends: Ints) -> npt.NDArray[np.int16]:
    """Sub-lane of each event, the first that is free; starts ascend."""
    free: list[int] = []
    result = np.zeros(len(starts), dtype=np.int16)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        for number, until in enumerate(free):
            if until <= start:
                free[number] = end
                result[row] = number
                break
        else:
            result[row] = len(free)
            free.append(end)
    return result


def make_lane(
    engine: str = "TIU",
    number: int = 0,
    /,
    *,
    starts: Any,
    ends: Any,
    roles: Any = None,
    role_guessed: bool = False,
    registers: Registers | None = None,
    **columns: Any,
) -> Lane:
    """A lane of core ``number`` (CDMA: of port ``number``) with the columns every lane has, and those given.

    Rows may be given in any order; they are sorted by start here. ``duration`` is computed when asked for. The group is
    the core's number; ``make_profile`` puts its id in place of it. A port's ``core`` is also its ``owner``.
    """
    start = np.asarray(starts, dtype=np.int64)
    end = np.asarray(ends, dtype=np.int64)
    count = len(start)
    given = {key: values if callable(values) else np.asarray(values) for key, values in columns.items()}
    role = np.zeros(count, dtype=np.int8) if roles is None else np.asarray(roles, dtype=np.int8)
    held: dict[str, Any] = {"order": np.arange(count, dtype=np.int64), "role": role, **given}
    if np.any(np.diff(start) < 0):
        rank = np.argsort(start, kind="stable")
        start, end = start[rank], end[rank]
        held = {key: values[rank] for key, values in held.items()}
    overlapping = count > 1 and bool(np.any(start[1:] < np.maximum.accumulate(end)[:-1]))
    sublane = first_free_sublanes(start, end) if overlapping else np.zeros(count, dtype=np.int16)
    port = engine == "CDMA"
    if port and "core" in held:
        held["owner"] = held["core"]
    return Lane(
        kind=engine,
        group=NO_GROUP if port else number,
        number=number if port else -1,
        label=f"Port {number}" if port else engine,
        activity=Activity.COMPUTE if engine == "TIU" else Activity.TRANSFER,
        columns={"start": start, "end": end, "sublane": sublane,
                 "duration": lambda rows: end[rows] - start[rows], **held},
        role_guessed=role_guessed,
        registers=registers,
    )  # fmt: skip


def tpu_device(
    chip: str, arch: str | None = None, *, tiu_mhz: float = 0, dma_mhz: float = 0, ddr_gbps: float = 0,
    l2_gbps: float = 0, parameters: tuple[tuple[str, str], ...] = (),
) -> Device:  # fmt: skip
    return Device(chip, arch, (("TIU", tiu_mhz), ("DMA", dma_mhz)), (("DDR", ddr_gbps), ("L2", l2_gbps)), parameters)


def make_profile(
    lanes: Sequence[Lane],
    *,
    strings: Mapping[str, Strings] | None = None,
    mode: int = 1,
    cores: Sequence[int] | None = None,
    problems: Sequence[Problem] = (),
    scopes: Scopes | None = None,
    device: Device | None = None,
) -> Profile:
    """A profile of these lanes; ``cores`` defaults to those of the lanes."""
    known = {key: Strings() for key in TEXT_KEYS}
    own = sorted({lane.group for lane in lanes if lane.kind != "CDMA" and lane.group >= 0}) if cores is None else cores
    ports = sorted(lane.number for lane in lanes if lane.kind == "CDMA")
    groups = capture_groups(own, ports, ())
    lanes = [_placed(lane, groups) for lane in lanes]
    tail = max((int(lane["end"].max()) for lane in lanes if len(lane)), default=None)
    return with_dependencies(Profile(
        path="/nowhere/synthetic",
        name="synthetic",
        vocabulary=VOCABULARY,
        device=device or tpu_device("AKS", "4", tiu_mhz=1000, dma_mhz=1000, ddr_gbps=68.25, l2_gbps=128.0),
        recording=recording_of(mode, False),
        capabilities=capabilities_of(mode, False),
        source_data={"mode": mode, "bmodel": False},
        groups=groups,
        lanes=tuple(lanes),
        strings={**known, **(strings or {})},
        scopes=scopes or Scopes(),
        problems=tuple(problems),
        tail_ns=tail,
    ))  # fmt: skip


def session_of(profile: Profile) -> Session:
    """A session of a profile, with ``exposed`` and ``step``."""
    return query_of(profile).session


def _placed(lane: Lane, groups: Groups) -> Lane:
    """A lane with ids of groups in place of numbers of cores; the same where they are equal."""
    group = group_of(groups, PORTS) if lane.kind == "CDMA" else groups.numbered(lane.group)
    if any(group.number not in (-1, place) for place, group in enumerate(groups)) and "owner" in lane:
        owners = [groups.numbered(owner) if owner >= 0 else owner for owner in lane["owner"].tolist()]
        lane = lane.with_column("owner", np.array(owners, np.int64))
    return lane if group == lane.group else replace(lane, group=group)


def _events(random: np.random.Generator, count: int, kernels_every: int) -> tuple[Ints, Ints, Ints]:
    """Starts, ends and launch numbers of ``count`` events that do not overlap."""
    durations = random.integers(1, 400, count)
    gaps = random.integers(0, 120, count)
    launch = np.arange(count, dtype=np.int64) // kernels_every
    ends = np.cumsum(durations + gaps)
    return ends - durations, ends, launch


def _columns(
    random: np.random.Generator, texts: Texts, engine: str, core: int, launch: Ints, scope_base: int, mode: int
) -> dict[str, Any]:
    """Columns of a lane beyond those every lane has; ``roles`` among them."""
    count = len(launch)
    operations = OPERATIONS[engine]
    # system commands are rare, as in real work
    chances = np.array([12.0 if operation[2] is Role.WORK else 1.0 for operation in operations])
    picked = random.choice(len(operations), count, p=chances / chances.sum())
    roles = np.array([operation[2] for operation in operations], dtype=np.int8)[picked]
    columns: dict[str, Any] = {"command_id": np.arange(1, count + 1, dtype=np.int64) % 65536, "roles": roles}
    if mode >= 1:
        table = {key: texts.codes(key, values) for key, values in {
            "name": [operation[1] for operation in operations],
            "type": [operation[0] for operation in operations],
            "kernel": KERNELS, "mode": ["TDI"]}.items()}  # fmt: skip
        columns |= {key: table[key][picked] for key in ("name", "type")}
        columns |= {"kernel": table["kernel"][launch % len(KERNELS)],
                    "mode": np.full(count, table["mode"][0], dtype=np.int32),
                    "scope": scope_base + launch, "batch": launch // 1000}  # fmt: skip
        codes = np.array([operation[3:] for operation in operations], dtype=np.int64)[picked]
        if engine == "TIU":
            columns |= {"node_type": np.ones(count, np.int64), "node_engine": np.zeros(count, np.int64),
                        "tiu_type": codes[:, 0], "tiu_function": codes[:, 1],
                        "node_extra": random.integers(0, 3, count)}  # fmt: skip
            columns["precision"] = np.where(roles == Role.WORK, columns["node_extra"], INT_MISSING)
        else:
            way = random.integers(0, len(DIRECTIONS), count)
            dtype = random.integers(0, len(DTYPES), count)
            columns |= {"direction": texts.codes("direction", [f"{a}->{b}" for a, b in DIRECTIONS])[way],
                        "from_memory": texts.codes("from_memory", [a for a, _ in DIRECTIONS])[way],
                        "to_memory": texts.codes("to_memory", [b for _, b in DIRECTIONS])[way],
                        "dtype": texts.codes("dtype", DTYPES)[dtype], "data_format": dtype,
                        "dma_type": codes[:, 0], "dma_function": codes[:, 1]}  # fmt: skip
    if engine != "TIU":
        columns |= {"bytes": np.where(roles == Role.WORK, random.integers(64, 50000, count), 0),
                    "stall": random.integers(0, 40, count), "transactions": random.integers(0, 800, count)}  # fmt: skip
    if mode == 2 and engine == "TIU":
        columns |= {"alg_ops": random.integers(1, 10**6, count), "alg_cycle": random.integers(0, 500, count)}
        columns["uarch_ops"] = columns["alg_ops"] * random.integers(1, 5, count)
        columns["uarch_rate"] = 100.0 * columns["alg_ops"] / columns["uarch_ops"]
    columns["engine"] = np.full(count, texts.codes("engine", [engine])[0], dtype=np.int32)
    columns["engine_id"] = np.full(count, ENGINE_IDS[engine], dtype=np.int64)
    columns["core"] = np.full(count, core, dtype=np.int64)
    return columns


def _finish(columns: dict[str, Any], starts: Ints, ends: Ints, engine: str, mode: int) -> dict[str, Any]:
    """Adds what follows from times: cycles, bandwidth, registers."""
    columns["cycles"] = ends - starts + 1
    if engine != "TIU":
        span = np.maximum(ends - starts, 1)
        columns["ddr_bandwidth"] = np.round(columns["bytes"] / span, 4)
        if mode == 2:
            addresses = (np.arange(len(starts), dtype=np.int64) << 12) | (1 << 40)
            columns |= {"src_addr": addresses, "dst_addr": addresses + 64, "l2_bandwidth": np.zeros(len(starts))}
    if mode == 2:
        operations = np.where(columns["roles"] == Role.WORK, 0 if engine == "TIU" else 1, -1).astype(np.int16)
        columns["registers"] = Registers(operations)
    return columns


def big_profile(
    instructions: int = 1_000_000,
    *,
    cores: int = 8,
    ports: int = 0,
    mode: int = 1,
    seed: int = 0,
    engines: Sequence[str] = ENGINES,
    kernels_every: int = 50,
) -> Profile:
    """A profile of about ``instructions`` instructions, spread evenly over cores, engines and ports.

    Events of a core's engine never overlap; those of a CDMA port do, and are submitted by changing cores (-1: unknown,
    held as missing). In mode 0 names, kernels, directions and data types are unknown and roles guessed.
    """
    random = np.random.default_rng(seed)
    texts = Texts()
    places = [(engine, core) for core in range(cores) for engine in engines]
    places += [("CDMA", port) for port in range(ports)]
    counts = np.full(len(places), instructions // max(len(places), 1))
    counts[: instructions - int(counts.sum())] += 1
    lanes: list[Lane] = []
    launches = max(int(counts.max(initial=0)) // kernels_every + 1, 1)
    for (engine, number), count in zip(places, counts.tolist(), strict=True):
        starts, ends, launch = _events(random, count, kernels_every)
        core = 0 if engine == "CDMA" else number
        columns = _columns(random, texts, engine, core, launch, core * launches, mode)
        if engine == "CDMA":
            ends = ends + random.integers(0, 300, count)  # full duplex: neighbours overlap
            submitter = launch % max(cores, 1)
            columns["core"] = np.where(submitter == cores - 1, INT_MISSING, submitter) if cores > 1 else submitter
            columns["port"] = np.full(count, number, dtype=np.int64)
        finished = _finish(columns, starts, ends, engine, mode)
        lanes.append(make_lane(engine, number, starts=starts, ends=ends, role_guessed=mode == 0, **finished))
    kernel = texts.codes("kernel", [KERNELS[launch % len(KERNELS)] for launch in range(launches)])
    scopes = Scopes(np.tile(kernel, cores), np.repeat(np.arange(cores, dtype=np.int32), launches))
    return make_profile(lanes, strings=texts.build(), mode=mode, cores=range(cores), scopes=scopes)


def small_profile(mode: int = 1, *, event_count: int = 600, seed: int = 0) -> Profile:
    """Three cores (core 2 idle), three engines each, two CDMA ports, and problems of every severity."""
    profile = big_profile(event_count, cores=2, ports=2, mode=mode, seed=seed, kernels_every=20)
    problems = (
        Problem(Severity.NOTE, "The last block has no end marker.", "Read to the end of the file.",
                file="cdmlib_0.profile", offset=4096, group=0),
        Problem(Severity.WARNING, "Two cores look alike to CDMA port 1.", "Its submitter is left open.", lane="Port 1"),
        Problem(Severity.ERROR, "12 bytes of a node are missing.", "Its commands are shown as unknown.",
                file="cdmlib_1.profile", offset=77, group=1, lane="GDMA", count=3),
    )  # fmt: skip
    return make_profile(profile.lanes, strings=profile.strings, mode=mode, cores=range(3), scopes=profile.scopes,
                        problems=problems)  # fmt: skip


def selected_query(profile: Profile, units: Iterable[int] | None = None, start: int | None = None,
                   end: int | None = None, filter: str = "") -> Query:  # fmt: skip  # noqa: A002
    """The query of units (ids; None: all), from a time to another (ns; None: no bound), of a filter."""
    window = profile.start_ns if start is None else start, profile.end_ns if end is None else end
    query = query_of(profile, range=window, filter=filter)
    return query if units is None else of_units(query, units)
