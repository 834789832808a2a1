"""Overview: breakdown of step time, utilization of devices, recommendations; and the steps view."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Frame, Groups, key
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.intervals import Intervals
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, places_text
from tpuprof_tui.views.query import Query
from tpuprof_tui.views.steps import StepSpans, detected_steps
from tpuprof_tui.views.workers import WORKER

from ..read.categories import COLLECTIVE_COMM, Kind
from ..read.kernel_names import ELIGIBLE, LOADER, LOADER_KINDS, tensor_core_use, uses_tensor_cores
from ..read.launchers import COLLECTIVE
from ..read.profile import GPU_TYPES, properties_of
from ..read.steps import STEP, executions, step_at, step_numbers
from ..read.values import known
from .run import Run, ViewSelection, runs_of
from .tables import not_narrowed, of_workers, ratio

I64 = npt.NDArray[np.int64]
PARTS: Final = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other")
#: Order in which columns are dropped from narrow tables, the highest first.
_SPARE: Final = {"kernel": 0, "communication": 1, "other": 2, "dataloader": 3, "cpu": 4, "runtime": 5, "memcpy": 6,
                 "memset": 7}  # fmt: skip
_TITLES: Final = ("Kernel", "Copy", "Set", "Communication", "Runtime", "Data loader", "CPU", "Other")
_NOT_COUNTED: Final = "Last steps whose device work was not recorded to its end do not count."
_CAPTURED: Final = "CUDA graphs are captured, not run."


def step_spans(query: Query) -> list[StepSpans]:
    """The steps of each worker, with the work that they launched; if none are marked, those that ``--step`` selects."""
    spans = []
    for run in runs_of(query):
        steps, shift = run.steps, run.worker.shift_ns
        lengths = (steps.end - steps.start)[steps.counted]
        mean = _mean(lengths)
        typical = nan if mean is None else mean
        if steps.annotated:
            spans.append(StepSpans(step_numbers(steps.label), tuple(f"step {label}" for label in steps.label),
                                   steps.start + shift, steps.end + shift, steps.counted, typical,
                                   lengths))  # fmt: skip
        else:
            spans += [
                replace(found, typical=typical, lengths=lengths) for found in detected_steps(query, run.worker.group)
            ]
    return spans


def _mean(values: I64) -> float | None:
    """Mean of a time of the counted steps; None without any."""
    return int(values.sum()) / len(values) if len(values) else None


def steps(query: Query) -> Answer:
    """The steps view."""
    return not_narrowed(query, of_workers(query, _steps), "Steps", ("filter",))


def _steps(selection: ViewSelection) -> Answer:
    found, shift = selection.step_list, selection.run.worker.shift_ns
    counts = [bool(each) for each in found.counted.tolist()]
    launches, lacking = selection.run.launchers.launches
    unrecorded = np.sort(selection.run.trace.start[launches[lacking]])
    lost = np.searchsorted(unrecorded, found.host_end) - np.searchsorted(unrecorded, found.host_start)
    rows = [
        (found.label[n], int(found.host_start[n]) + shift, int(found.host_end[n] - found.host_start[n]),
         int(found.start[n]) + shift if counts[n] else None, int(found.end[n] - found.start[n]) if counts[n] else None,
         int(found.launched[n]), counts[n], *([int(lost[n])] if len(unrecorded) else []))
        for n in np.flatnonzero(selection.steps).tolist()
    ]  # fmt: skip
    columns = (
        Column("step", "Step"), Column("host_start_us", "Host start", "time"),
        Column("host_us", "Host", "duration", bar=True), Column("start_us", "Start", "time"),
        Column("step_us", "Step", "duration", bar=True), Column("launched", "Launched", "count"),
        Column("counted", "Counted", "flag"),
        *([Column("unrecorded", "Launches not recorded", "count")] if len(unrecorded) else []),
    )  # fmt: skip
    uncounted = () if found.counted[selection.steps].all() else (_NOT_COUNTED,)
    notes = (*selection.step_notes, *uncounted)
    facts = (
        Fact("steps", "Steps", int((found.counted & selection.steps).sum())),
        Fact("annotated", "Annotated", found.annotated, "flag"),
    )
    steps = Table.of_rows("steps", "Steps", columns, rows, notes=notes, ordered=True, longest="step_us")
    return Answer(facts, (steps, *_executions(selection)))


def _executions(selection: ViewSelection) -> Iterator[Table]:
    """Table of a server's model executions, with the device work of each; a graph replay is one call, many kernels."""
    run, trace, shift = selection.run, selection.run.trace, selection.run.worker.shift_ns
    rows, told = executions(trace)
    chosen = np.flatnonzero(selection.mask_of(rows))
    if not len(chosen):
        return
    launched = np.flatnonzero(run.call >= 0)
    call = run.call[launched]
    execution = step_at(trace.start[rows], trace.end[rows], trace.start[call])
    order = np.argsort(execution, kind="stable")
    launched, call = launched[order], call[order]
    shared = np.bincount(call, minlength=len(trace))[call] > 1
    border = np.searchsorted(execution[order], np.arange(len(rows) + 1)).tolist()
    found = []
    for number in chosen.tolist():
        own = slice(border[number], border[number + 1])
        work, each = launched[own], told[number]
        covered = Intervals.union(run.work_start[work], run.work_end[work]).total
        start, end = int(trace.start[rows[number]]), int(trace.end[rows[number]])
        found.append((number, each.label, each.stage or None, each.requests, each.tokens, start + shift, end - start,
                      covered, len(work), len(uniques(call[own][shared[own]])), int(shared[own].sum())))  # fmt: skip
    yield Table.of_rows("executions", "Runs of the model", (
        Column("execution", "No."), Column("kind", "Kind"), Column("stage", "Stage", spare=4),
        Column("requests", "Requests", "count", spare=3), Column("tokens", "Tokens", "count", spare=2),
        Column("start_us", "Start", "time"),
        Column("host_us", "Host", "duration", bar=True), Column("device_us", "Device", "duration", bar=True),
        Column("launched", "Launched", "count"), Column("graphs", "Graph replays", "count"),
        Column("graph_kernels", "Their kernels", "count"),
    ), found, ordered=True)  # fmt: skip


def parts_of(selection: ViewSelection, work: Frame, steps: I64) -> list[I64]:
    """Time of each part (``PARTS``, in that order) in some steps, without the time that earlier parts cover."""
    shift = selection.run.worker.shift_ns
    start, end = (edge + shift for edge in selection.step_spans(steps))
    host = selection.ran("thread", "name", "type", "kind")
    operators, kind = host["kind"] == Kind.OPERATOR, host["kind"]
    collectives = host.has("name", COLLECTIVE.match) | host.has("type", lambda text: text.lower() == COLLECTIVE_COMM)
    collectives &= operators | (kind == Kind.ANNOTATION)
    loaders = host.has("name", LOADER.fullmatch) & np.isin(kind, LOADER_KINDS)
    cpu = (operators & ~host.has("name", lambda name: name.startswith(STEP))) | (kind == Kind.OLD_FRAME)
    unions = [
        selection.union(work, work["activity"] == Activity.COMPUTE),
        *(selection.union(work, work["kind"] == copies) for copies in (Kind.COPY, Kind.SET)),
        selection.union(work, work["activity"] == Activity.COMMUNICATION).union_with(
            selection.union(host, collectives)),
        *(selection.union(host, which) for which in (kind == Kind.CALL, loaders, cpu)),
    ]  # fmt: skip
    so_far, before, parts = Intervals.empty(), np.zeros(len(start), np.int64), []
    for each in unions:
        so_far = so_far.union_with(each)
        covered = so_far.covered(end) - so_far.covered(start)
        parts.append(covered - before)
        before = covered
    return [*parts, end - start - before]


def overview(query: Query) -> Answer:
    """The overview; equal recommendations of several workers are merged, with a filter there are none."""
    answer = of_workers(query, _overview)
    tables = tuple(_each_once(table) if table.key == "recommendations" else table for table in answer.tables
                   if table.key != "recommendations" or not query.filter)  # fmt: skip
    notes = ("Advice is left out: a filter hides part of what it is about.",) if query.filter else ()
    return replace(answer, tables=tables, notes=(*answer.notes, *notes))


def _each_once(table: Table) -> Table:
    """Merges equal recommendations of several workers, keeping the row of the worker it applies to most."""
    place = table.column_index(WORKER.key)
    if place < 0:
        return table
    ids, share, worker = (table.column(key) for key in ("id", "value", WORKER.key))
    alike = []
    for advice in dict.fromkeys(ids):
        rows = [row for row, each in enumerate(ids) if each == advice]
        rows.sort(key=lambda row: (share[row] or 0) * (1 if advice == "low_utilization" else -1))
        alike.append([*{worker[row]: row for row in reversed(rows)}.values()][::-1])
    alike = [rows for rows in alike if len(rows) > 1]
    alone = set(range(len(table))).difference(*alike)
    note = "Of several workers: the largest share, of low utilization the smallest."
    return replace(
        table, merge_groups=sorted((*alike, *([row] for row in alone))), notes=(note,) if alike else (),
        merge_rows=lambda rows: (*rows[0][:place], places_text([row[place] for row in rows]), *rows[0][place + 1 :]),
    )  # fmt: skip


def _overview(selection: ViewSelection) -> Answer:
    run = selection.run
    found, shift = selection.step_list, run.worker.shift_ns
    counted = np.flatnonzero(found.counted & selection.steps)
    start, end = selection.step_spans(counted)
    length = end - start
    work = selection.ran("stream", "activity", "kind", "name", "device_text", "blocks_per_sm", "occupancy", "inside",
                         "by_operator", "operator")  # fmt: skip
    parts = parts_of(selection, work, counted)
    count = len(counted)
    window = int(end.max() - start.min()) if count else None

    kernels = work.take(work["activity"] != Activity.TRANSFER)
    counted_kernels = kernels.take(kernels["inside"])
    kernel_time, use = int(counted_kernels["duration"].sum()), TensorCoreUse(run, counted_kernels)
    facts = [
        Fact("steps", "Steps", count),
        Fact("step_us", "Step", _mean(length), "duration"),
        *(Fact(f"{key}_us", title, _mean(values), "duration", share=ratio(int(values.sum()), int(length.sum())))
          for key, title, values in zip(PARTS, _TITLES, parts, strict=True)),
        Fact("window_us", "First to last step", window, "duration", head="Span"),
    ]  # fmt: skip
    if run.kernels.any():
        used, unknown, listed = (
            ratio(int(counted_kernels["duration"][which].sum()), kernel_time)
            for which in (use.used, use.unknown, use.listed)
        )
        known = run.tensor_cores_known
        facts += [
            Fact(
                "tensor_core_time_share", "Kernel time on tensor cores", used if known else None, "share", shown=known
            ),
            Fact(
                "tensor_core_unknown_share", "Tensor cores not known", unknown, "share", shown=known and bool(unknown)
            ),
            Fact("tensor_core_share", "Tensor cores by TensorBoard's list", listed, "share", shown=known),
        ]
    columns = [
        Column("step", "Step"), Column("start_us", "Start", "time"), Column("host_us", "Host", "duration", spare=1),
        Column("step_us", "Step", "duration", bar=True),
        *(Column(f"{key}_us", title, "duration", spare=_SPARE[key]) for key, title in zip(PARTS, _TITLES, strict=True)),
    ]  # fmt: skip
    rows = [
        (found.label[step], int(start[n]) + shift, int(found.host_end[step] - found.host_start[step]),
         int(length[n]), *(int(part[n]) for part in parts))
        for n, step in enumerate(counted.tolist())
    ]  # fmt: skip
    devices = _devices(selection, kernels, start + shift, end + shift)
    notes = list(selection.step_notes)
    if not run.trace.overlaps.explained.all():
        notes += selection.overlap_notes
    if not found.counted[selection.steps].all():
        notes.append(_NOT_COUNTED)
    if run.kernels.any() and not run.tensor_cores_known:
        card = next((f" of {clean(str(each['name']))}" for each in properties_of(run.trace) if each.get("name")), "")
        notes.append(f"Use of tensor cores is not known: kernel names{card} do not show it.")
    elif (use.used & ~use.listed).any():
        notes.append(
            "TensorBoard's list of names lacks kernels that use tensor cores (CUTLASS, flash attention, nvjet)."
        )
    if selection.window is not None:
        notes.append("Only the part of steps within the range is shown.")
    return Answer(
        tuple(facts),
        (
            _recommendations(run, kernels, parts, length, devices),
            devices,
            Table.of_rows("steps", "Steps", columns, rows, ordered=True, longest="step_us"),
        ),
        notes=tuple(notes),
    )


class TensorCoreUse:
    """Whether kernels use tensor cores, as masks.

    Attributes:
        used, unknown: By their names; unknown on cards whose names do not tell.
        listed: By TensorBoard's list of names.
    """

    def __init__(self, run: Run, kernels: Frame) -> None:
        known = run.tensor_cores_known
        self.used = kernels.has("name", lambda name: known and tensor_core_use(name) is True)
        self.unknown = kernels.has("name", lambda name: not known or tensor_core_use(name) is None)
        self.listed = kernels.has("name", uses_tensor_cores)


def _devices(selection: ViewSelection, kernels: Frame, starts: I64, ends: I64) -> Table:
    known_use = selection.run.tensor_cores_known
    columns = (
        Column("device", "Device"), Column("name", "Name"), Column("memory_bytes", "Memory", "bytes", spare=1),
        Column("compute_capability", "Capability", spare=2), Column("utilization", "Utilization", "share", bar=True,
                                                                    head="Util"),
        Column("sm_efficiency", "SM efficiency", "share", head="SM eff."), Column("occupancy", "Occupancy", "share"),
        Column("tensor_core_share", "By TensorBoard's list", "share", spare=3, shown=known_use),
        Column("tensor_core_time_share", "Tensor cores", "share", shown=known_use),
    )  # fmt: skip
    cards = properties_of(selection.run.trace)
    properties_of_id = {str(each.get("id")): each for each in cards if "id" in each}
    low, high = (int(starts.min()), int(ends.max())) if len(starts) else (0, 0)
    rows: list[tuple[Any, ...]] = []
    groups = Groups(kernels, ["device_text"])
    devices = sorted(enumerate(key("device_text")(groups)), key=lambda each: (len(each[1]), each[1]))
    for group, device in devices:
        own = kernels.take(groups.index == group)
        alone = cards[0] if len(devices) == len(cards) == 1 and "id" not in cards[0] else {}
        properties = properties_of_id.get(device, alone)
        capability = properties.get("computeMajor"), properties.get("computeMinor")
        busy = Intervals.union(own["start"], own["end"]).between(low, high)
        counted = own.take(own["inside"])
        use, length, by_operator = TensorCoreUse(selection.run, counted), counted["duration"], counted["by_operator"]
        rows.append((
            known(device), *(value if isinstance(value := properties.get(name), kind) else None
                             for name, kind in (("name", str), ("totalGlobalMem", int))),
            "{}.{}".format(*capability) if set(map(type, capability)) == {int} else None,
            busy / (high - low) if high > low else None,
            _efficiency(own, low, high), _occupancy(own, low, high),
            ratio(int(length[by_operator & use.listed].sum()), int(length[by_operator].sum())),
            ratio(int(length[use.used].sum()), int(length.sum())) if known_use else None,
        ))  # fmt: skip
    return Table.of_rows("devices", "Devices", columns, rows)


def _efficiency(kernels: Frame, low: int, high: int) -> float | None:
    """SM efficiency: mean over the window of the summed blocks per SM of running kernels, capped at 1."""
    kernels = kernels.take(np.nan_to_num(kernels["blocks_per_sm"]) > 0)
    start, end = (np.clip(kernels[edge], low, high) for edge in ("start", "end"))
    real = end > start
    if not real.any():
        return None
    value = kernels["blocks_per_sm"][real]
    times = np.concatenate([start[real], end[real]])
    order = np.argsort(times, kind="stable")
    height = np.cumsum(np.concatenate([value, -value])[order])
    width = np.diff(times[order])
    return float((np.clip(height[:-1], 0, 1) * width).sum() / (high - low))


def _occupancy(kernels: Frame, low: int, high: int) -> float | None:
    """Mean occupancy, weighted by the time of the kernels in the window."""
    kernels = kernels.take(np.nan_to_num(kernels["occupancy"], nan=-1.0) >= 0)
    weight = (np.clip(kernels["end"], low, high) - np.clip(kernels["start"], low, high)).astype(np.float64)
    total = float(weight.sum())
    return float((kernels["occupancy"] * weight).sum() / total / 100) if total else None


def _recommendations(run: Run, kernels: Frame, parts: list[I64], length: I64, devices: Table) -> Table:
    rows: list[tuple[Any, ...]] = []
    total = int(length.sum())
    for part, most, text in (
        ("dataloader", 0.05, "Steps wait for data: num_workers, pin_memory."),
        ("communication", 0.1, "Uncovered: larger buckets, compression."),
    ):
        share = ratio(int(parts[PARTS.index(part)].sum()), total)
        if share is not None and share > most:
            rows.append((part, None, share, text))
    device_rows = devices.rows()
    for device, _, memory, _, utilization, *_ in device_rows:
        if utilization is not None and utilization < 0.5 and not run.is_fragmentary:
            rows.append(("low_utilization", device, utilization, _CAPTURED if run.captures_graphs else
                         "Idle over half the time: larger batch, kernels."))  # fmt: skip
        peak = _peak(run, device)
        if memory and peak is not None and peak > 0.9 * memory:
            rows.append(("memory", device, peak / memory, "Nearly full: a smaller batch, checkpointing."))
    tried = kernels.has("operator", ELIGIBLE.__contains__)
    use = TensorCoreUse(run, kernels)
    for device, _, _, capability, *_ in device_rows:
        capable = run.tensor_cores_known and capability and float(capability.split(".")[0]) >= 7
        if capable and tried.any() and not (tried & (use.used | use.unknown)).any():
            rows.append(("tensor_cores", device, 0.0, "Unused: autocast, sizes that are multiples of 8."))
    if run.trace.named("DataParallel.forward".__eq__).any() and len(device_rows) > 1:
        rows.append(("data_parallel", None, None, "DistributedDataParallel is faster than DataParallel."))
    info = run.trace.metadata.get("distributedInfo")
    if isinstance(info, dict) and info.get("backend") == "gloo" and any(
        each[3] and float(each[3]) >= 3.5 for each in device_rows
    ):  # fmt: skip
        rows.append(("nccl", None, None, "The backend nccl is faster than gloo on these cards."))
    columns = (Column("id", "Advice"), Column("device", "Device", spare=1), Column("value", "Share", "share"),
               Column("text", "What to do"))  # fmt: skip
    return Table.of_rows("recommendations", "What to do", columns, rows)


def _peak(run: Run, device: str | None) -> int | None:
    memory = run.trace.memory
    if device is None or not device.isdecimal():
        return None
    on_device = np.isin(memory.device_type, GPU_TYPES) & (memory.device_id == int(device))
    known = memory.allocated[on_device & (memory.allocated != INT_MISSING)]
    return int(known.max()) if len(known) else None
