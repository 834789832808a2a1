"""Views of the use of devices: overview (step time, what to do), steps, streams, launches, recording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import nan
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.pivot import Frame, GroupBy, key
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.model import INT_MISSING, Activity
from tpuprof_tui.model.intervals import Intervals, interval_at
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.chrome.columns import I64
from tpuprof_tui.views.answer import Answer, Column, Fact, Table, places_text, plain_value
from tpuprof_tui.views.steps import StepSpans, detected_steps
from tpuprof_tui.views.workers import WORKER

from ..categories import ELIGIBLE, LOADER, LOADER_KINDS, STEP, Kind, tensor_core_use, uses_tensor_cores
from ..records import GPU_TYPES, RecordedTrace, given_id
from .worker_events import (
    WorkerEvents,
    is_collective,
    not_narrowed,
    of_streams,
    of_workers,
    per_worker,
    ratio,
    steps_of,
    work_of_steps,
    worker_by_worker,
)

PARTS: Final = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other")
#: Order in which columns are dropped from narrow tables, the highest first.
_DROP_FIRST: Final = {"kernel": 0, "communication": 1, "other": 2, "dataloader": 3, "cpu": 4, "runtime": 5, "memcpy": 6,
                      "memset": 7}  # fmt: skip
_TITLES: Final = ("Kernel", "Copy", "Set", "Communication", "Runtime", "Data loader", "CPU", "Other")
_NOT_COUNTED: Final = "Last steps whose device work was not recorded to its end do not count."
_CAPTURED: Final = "CUDA graphs are captured, not run."


def step_spans(query: Query) -> list[StepSpans]:
    """The steps of each worker, with the work that they launched; if none are marked, those that ``--step`` selects."""
    spans = []
    for events in worker_by_worker(query):
        steps = steps_of(query, events.worker)
        lengths = (steps.end - steps.start)[steps.counted]
        mean = _mean(lengths)
        typical = nan if mean is None else mean
        if steps.annotated:
            spans.append(StepSpans(steps.number, tuple(f"step {label}" for label in steps.label), steps.start,
                                   steps.end, steps.counted, typical, lengths))  # fmt: skip
        else:
            spans += [
                replace(found, typical=typical, lengths=lengths) for found in detected_steps(query, events.worker.group)
            ]
    return spans


def _mean(values: I64) -> float | None:
    return int(values.sum()) / len(values) if len(values) else None


def steps(query: Query) -> Answer:
    """The steps view."""
    return not_narrowed(query, of_workers(query, _steps), "Lengths of steps", ("filter",))


def _steps(events: WorkerEvents) -> Answer:
    found, query = events.steps, events.query
    chosen = np.flatnonzero(events.chosen)
    counts = [bool(each) for each in found.counted.tolist()]
    launched, lost = found.launched, None
    if query.condition and not query.steps.guessed:
        work = events.with_query(step=None, range=None).frame("stream", "call_start", "call_end")
        launched = np.array(list(map(len, work_of_steps(work, found))), np.int64)
    if events.recorded.unrecorded:
        calls = events.whole.frame("thread", "unrecorded")
        times = np.sort(calls["start"][calls["unrecorded"] == 1])
        lost = np.searchsorted(times, found.host_end) - np.searchsorted(times, found.host_start)
    rows = [
        (found.label[n], int(found.host_start[n]), int(found.host_end[n] - found.host_start[n]),
         int(found.start[n]) if counts[n] else None, int(found.end[n] - found.start[n]) if counts[n] else None,
         int(launched[n]), counts[n], *([int(lost[n])] if lost is not None else []))
        for n in chosen.tolist()
    ]  # fmt: skip
    columns = (
        Column("step", "Step"), Column("host_start_us", "Host start", "time"),
        Column("host_us", "Host", "duration", bar=True), Column("start_us", "Start", "time"),
        Column("step_us", "Step", "duration", bar=True), Column("launched", "Launched", "count"),
        Column("counted", "Counted", "flag"),
        *([Column("unrecorded", "Launches not recorded", "count")] if lost is not None else []),
    )  # fmt: skip
    uncounted = () if found.counted[chosen].all() else (_NOT_COUNTED,)
    facts = Fact("steps", "Steps", len(events.counted)), Fact("annotated", "Annotated", found.annotated, "flag")
    steps = Table.of_rows("steps", "Steps", columns, rows, notes=(*events.step_notes, *uncounted), ordered=True,
                          longest="step_us")  # fmt: skip
    return Answer(facts, (steps, *_executions(events)))


def _executions(events: WorkerEvents) -> Iterator[Table]:
    """Table of a server's model executions, with the device work of each; a graph replay is one call, many kernels."""
    told = events.table("executions")
    chosen = events.rows(told)
    if not len(chosen):
        return
    work = events.whole.frame("stream", "call_start", "call", "launched_together")
    start, end = told["start"], told["end"]
    execution = interval_at(start, end, work["call_start"])
    heads = [told.values(key) for key in ("label", "stage", "requests", "tokens")]
    found = []
    for number in chosen.tolist():
        own = work.take(execution == number)
        shared = own["call"][own["launched_together"] > 1]
        covered = Intervals.union(own["start"], own["end"]).total
        found.append((number, *(plain_value(values[number]) for values in heads), int(start[number]),
                      int(end[number] - start[number]), covered, len(own), len(uniques(shared)),
                      len(shared)))  # fmt: skip
    yield Table.of_rows("executions", "Runs of the model", (
        Column("execution", "No."), Column("kind", "Kind"), Column("stage", "Stage", drop_first=4),
        Column("requests", "Requests", "count", drop_first=3), Column("tokens", "Tokens", "count", drop_first=2),
        Column("start_us", "Start", "time"),
        Column("host_us", "Host", "duration", bar=True), Column("device_us", "Device", "duration", bar=True),
        Column("launched", "Launched", "count"), Column("graphs", "Graph replays", "count"),
        Column("graph_kernels", "Their kernels", "count"),
    ), found, ordered=True)  # fmt: skip


def parts_of(selection: WorkerEvents, work: Frame) -> list[I64]:
    """Time of each part (``PARTS``, in that order) in the counted steps, without the time that earlier parts cover."""
    start, end = selection.step_spans
    host = selection.ran("thread", "name", "type", "kind")
    operators, kind = host["kind"] == Kind.OPERATOR, host["kind"]
    collectives = is_collective(host)
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
                   if table.key != "recommendations" or not query.condition)  # fmt: skip
    notes = ("Advice is left out: a filter hides part of what it is about.",) if query.condition else ()
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


def _overview(selection: WorkerEvents) -> Answer:
    recorded, found, counted = selection.recorded, selection.steps, selection.counted
    start, end = selection.step_spans
    length = end - start
    work = selection.ran("stream", "activity", "kind", "name", "device_text", "blocks_per_sm", "occupancy", "inside",
                         "by_operator", "operator")  # fmt: skip
    parts = parts_of(selection, work)
    count = len(counted)
    window = int(end.max() - start.min()) if count else None

    kernels = work.take(work["activity"] != Activity.TRANSFER)
    counted_kernels = kernels.take(kernels["inside"])
    kernel_time, use = int(counted_kernels["duration"].sum()), TensorCoreUse(recorded, counted_kernels)
    facts = [
        Fact("steps", "Steps", count),
        Fact("step_us", "Step", _mean(length), "duration"),
        *(Fact(f"{key}_us", title, _mean(values), "duration", share=ratio(int(values.sum()), int(length.sum())))
          for key, title, values in zip(PARTS, _TITLES, parts, strict=True)),
        Fact("window_us", "First to last step", window, "duration", short_title="Span"),
    ]  # fmt: skip
    if recorded.has_kernels:
        known = recorded.tensor_cores_known
        used, unknown, listed = (ratio(int(counted_kernels["duration"][which].sum()), kernel_time)
                                 for which in (use.used, use.unknown, use.listed))  # fmt: skip
        facts += [
            Fact("tensor_core_time_share", "Kernel time on tensor cores", used if known else None, "share",
                 shown=known),
            Fact("tensor_core_unknown_share", "Tensor cores not known", unknown, "share",
                 shown=known and bool(unknown)),
            Fact("tensor_core_share", "Tensor cores by TensorBoard's list", listed, "share", shown=known),
        ]  # fmt: skip
    columns = [
        Column("step", "Step"), Column("start_us", "Start", "time"),
        Column("host_us", "Host", "duration", drop_first=1),
        Column("step_us", "Step", "duration", bar=True),
        *(Column(f"{key}_us", title, "duration", drop_first=_DROP_FIRST[key])
          for key, title in zip(PARTS, _TITLES, strict=True)),
    ]  # fmt: skip
    rows = [
        (found.label[step], int(start[n]), int(found.host_end[step] - found.host_start[step]),
         int(length[n]), *(int(part[n]) for part in parts))
        for n, step in enumerate(counted.tolist())
    ]  # fmt: skip
    devices = _devices(selection, kernels, start, end)
    notes = list(selection.step_notes)
    if not recorded.overlaps_explained:
        notes += selection.overlap_notes
    if not found.counted[selection.chosen].all():
        notes.append(_NOT_COUNTED)
    if recorded.has_kernels and not recorded.tensor_cores_known:
        card = next((f" of {clean(str(each['name']))}" for each in recorded.devices if each.get("name")), "")
        notes.append(f"Use of tensor cores is not known: kernel names{card} do not show it.")
    elif (use.used & ~use.listed).any():
        notes.append("TensorBoard's list of names lacks kernels that use tensor cores (CUTLASS, flash attention, "
                     "nvjet).")  # fmt: skip
    if selection.query.range is not None:
        notes.append("Only the part of steps within the range is shown.")
    steps = Table.of_rows("steps", "Steps", columns, rows, ordered=True, longest="step_us")
    advice = _recommendations(selection, kernels, parts, length, devices)
    return Answer(tuple(facts), (advice, devices, steps), notes=tuple(notes))


class TensorCoreUse:
    """Whether kernels use tensor cores, as masks.

    Attributes:
        used, unknown: By their names; unknown on cards whose names do not tell.
        listed: By TensorBoard's list of names.
    """

    def __init__(self, recorded: RecordedTrace, kernels: Frame) -> None:
        known = recorded.tensor_cores_known
        self.used = kernels.has("name", lambda name: known and tensor_core_use(name) is True)
        self.unknown = kernels.has("name", lambda name: not known or tensor_core_use(name) is None)
        self.listed = kernels.has("name", uses_tensor_cores)


def _devices(selection: WorkerEvents, kernels: Frame, starts: I64, ends: I64) -> Table:
    known_use = selection.recorded.tensor_cores_known
    columns = (
        Column("device", "Device"), Column("name", "Name"), Column("memory_bytes", "Memory", "bytes", drop_first=1),
        Column("compute_capability", "Capability", drop_first=2),
        Column("utilization", "Utilization", "share", bar=True, short_title="Util"),
        Column("sm_efficiency", "SM efficiency", "share", short_title="SM eff."),
        Column("occupancy", "Occupancy", "share"),
        Column("tensor_core_share", "By TensorBoard's list", "share", drop_first=3, shown=known_use),
        Column("tensor_core_time_share", "Tensor cores", "share", shown=known_use),
    )  # fmt: skip
    cards = selection.recorded.devices
    properties_of_id = {str(each.get("id")): each for each in cards if "id" in each}
    low, high = (int(starts.min()), int(ends.max())) if len(starts) else (0, 0)
    rows: list[tuple[Any, ...]] = []
    groups = GroupBy(kernels, ["device_text"])
    devices = sorted(enumerate(key("device_text")(groups)), key=lambda each: (len(each[1]), each[1]))
    for group, device in devices:
        own = kernels.take(groups.index == group)
        alone = cards[0] if len(devices) == len(cards) == 1 and "id" not in cards[0] else {}
        properties = properties_of_id.get(device, alone)
        capability = properties.get("computeMajor"), properties.get("computeMinor")
        busy = Intervals.union(own["start"], own["end"]).between(low, high)
        counted = own.take(own["inside"])
        use, length = TensorCoreUse(selection.recorded, counted), counted["duration"]
        rows.append((
            given_id(device), *(value if isinstance(value := properties.get(name), kind) else None
                             for name, kind in (("name", str), ("totalGlobalMem", int))),
            "{}.{}".format(*capability) if set(map(type, capability)) == {int} else None,
            busy / (high - low) if high > low else None,
            _efficiency(own, low, high), _occupancy(own, low, high),
            ratio(int(length[counted["by_operator"] & use.listed].sum()), int(length[counted["by_operator"]].sum())),
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


def _recommendations(selection: WorkerEvents, kernels: Frame, parts: list[I64], length: I64, devices: Table) -> Table:
    recorded, memory = selection.recorded, selection.table("memory")
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
    for device, _, capacity, _, utilization, *_ in device_rows:
        if utilization is not None and utilization < 0.5 and not recorded.fragmentary:
            rows.append(("low_utilization", device, utilization, _CAPTURED if recorded.captures_graphs else
                         "Idle over half the time: larger batch, kernels."))  # fmt: skip
        peak = _peak(memory, device)
        if capacity and peak is not None and peak > 0.9 * capacity:
            rows.append(("memory", device, peak / capacity, "Nearly full: a smaller batch, checkpointing."))
    tried = kernels.has("operator", ELIGIBLE.__contains__)
    use = TensorCoreUse(recorded, kernels)
    for device, _, _, capability, *_ in device_rows:
        capable = recorded.tensor_cores_known and capability and float(capability.split(".")[0]) >= 7
        if capable and tried.any() and not (tried & (use.used | use.unknown)).any():
            rows.append(("tensor_cores", device, 0.0, "Unused: autocast, sizes that are multiples of 8."))
    if recorded.data_parallel and len(device_rows) > 1:
        rows.append(("data_parallel", None, None, "DistributedDataParallel is faster than DataParallel."))
    capable = any(capability and float(capability) >= 3.5 for _, _, _, capability, *_ in device_rows)
    if recorded.distributed.get("backend") == "gloo" and capable:
        rows.append(("nccl", None, None, "The backend nccl is faster than gloo on these cards."))
    columns = (Column("id", "Advice", drop_first=1), Column("device", "Device"), Column("value", "Share", "share"),
               Column("text", "What to do"))  # fmt: skip
    return Table.of_rows("recommendations", "What to do", columns, rows)


def _peak(memory: Records, device: str | None) -> int | None:
    if device is None or not device.isdecimal():
        return None
    on_device = np.isin(memory["device_type"], GPU_TYPES) & (memory["device_id"] == int(device))
    known = memory["allocated"][on_device & (memory["allocated"] != INT_MISSING)]
    return int(known.max()) if len(known) else None


_WORDS: Final = (
    r"(?:token|secret|key|passw|passphrase|pgpass|_pwd|credential|auth|cookie|signature"
    r"|(?<![a-z])(?:pass|creds?|sig)(?![a-z]))"
)
_SECRET: Final = lazy_pattern(_WORDS, re.IGNORECASE)
#: Secrets within texts: NAME=value, "name": "value", --name value, Authorization: Bearer value.
_GIVEN: Final = lazy_pattern(
    rf"({_WORDS}[\w.-]{{0,40}}\\*[\"']?(?:\s*[=:]\s*|\s+)(?:(?:bearer|basic|digest)\s+)?)"
    r"(?:\\*\"[^\"]*\"|\\*'[^']*'|[^\s,;&]+)",
    re.IGNORECASE,
)
#: User and password of an address, and values that are secrets by their form.
_USER: Final = lazy_pattern(r"(?<=://)[^\s/@]+(?=@)")
_FORMS: Final = lazy_pattern(r"\b(?:gh[a-z]_|github_pat_|glpat-|hf_|sk-|xox[a-z]-|AKIA|ASIA)[\w-]{16,}")
_MASK: Final = "********"


@per_worker()
def recording(events: WorkerEvents) -> Answer:
    """The recording view of one worker."""
    rows: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", events.recorded.metadata)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, (dict, list)) and value:
            inner = value.items() if isinstance(value, dict) else enumerate(_without_values_of_secrets(value))
            waiting += reversed([(f"{name}.{key}".lstrip("."), each) for key, each in inner])
        else:
            text = "true" if value is True else "false" if value is False else "null" if value is None else str(value)
            rows.append((name, _MASK if _SECRET.search(name) else _masked(text)))
    columns = (Column("name", "Name"), Column("value", "Value"))
    return Answer(tables=(Table.of_rows("recording", "Recording", columns, rows, ordered=True),))


def _masked(text: str) -> str:
    for pattern, mask in ((_USER, _MASK), (_GIVEN, rf"\1{_MASK}"), (_FORMS, _MASK)):
        text = pattern.sub(mask, text)
    return text


def _without_values_of_secrets(values: list[Any]) -> list[Any]:
    """A list with arguments masked that follow an option such as ``--token``."""
    options = [isinstance(each, str) and each.startswith("-") and bool(_SECRET.search(each)) and "=" not in each
               for each in ("", *values)]  # fmt: skip
    return [_MASK if masked else each for masked, each in zip(options, values, strict=False)]


Window = tuple[int, int]
#: Shorter gaps between events of a stream are due to the hardware, ns (HTA).
_KERNEL_GAP: Final = 30_000
#: Device work that starts later than this after its launch counts as long delayed, ns.
_LONG_DELAY: Final = 100_000
_COLUMNS: Final = (
    Column("device", "Device"), Column("stream", "Stream"), Column("events", "Events", "count"),
    Column("start_us", "Start", "time", drop_first=3), Column("span_us", "Span", "duration", drop_first=2),
    Column("busy_us", "Busy", "duration", bar=True), Column("idle_us", "Idle", "duration"),
    Column("host_wait_us", "Waits for host", "duration"), Column("kernel_wait_us", "Between kernels", "duration"),
    Column("other_wait_us", "Other", "duration"), Column("queue_max", "Queue", "count", drop_first=1),
)  # fmt: skip


@of_streams
def streams(events: WorkerEvents) -> Answer:
    """The streams view of one worker."""
    work = events.frame("stream", "activity", "kind", "call_start", "order", "device_text", "stream_text",
                           "inside", reaching=True)  # fmt: skip
    window = events.query.range

    everything, activity, kind = events.union(work), work["activity"], work["kind"]
    comm = events.union(work, activity == Activity.COMMUNICATION)
    compute = events.union(work, activity == Activity.COMPUTE)
    copies, sets = events.union(work, kind == Kind.COPY), events.union(work, kind == Kind.SET)
    every = work if window is None else events.with_query(range=None).frame("stream")
    first, last = (int(every["start"].min()), int(every["end"].max())) if len(every) else (0, 0)
    if window is not None:
        first, last = max(first, window[0]), min(last, window[1])
    length = max(last - first, 0)
    covered = comm.union_with(compute)
    exposed = covered.total - compute.total
    exposed_copies = covered.union_with(copies).total - covered.total
    facts = (
        Fact("window_us", "First to last work", length, "duration", short_title="Span"),
        Fact("busy_us", "Busy", everything.total, "duration"),
        Fact("idle_us", "Idle", length - everything.total, "duration"),
        Fact("computation_us", "Computation", compute.total, "duration"),
        Fact("communication_us", "Communication", comm.total, "duration"),
        Fact("memcpy_us", "Copies", copies.total, "duration"), Fact("memset_us", "Sets", sets.total, "duration"),
        Fact("exposed_communication_us", "Exposed communication", exposed, "duration"),
        Fact("exposed_memcpy_us", "Exposed copies", exposed_copies, "duration"),
        Fact("overlap_us", "Overlap", comm.total - exposed, "duration"),
        Fact("overlap_share", "Overlap share", ratio(comm.total - exposed, comm.total), "share"),
    )  # fmt: skip
    groups = GroupBy(work, ["device_text", "stream_text"])
    rows: list[tuple[Any, ...]] = []
    for group, first in enumerate(groups.first):
        names = [work.texts[key][work[key][first]] for key in ("device_text", "stream_text")]
        rows.append((*names, *_stream(work.take(groups.index == group), window)))
    rows.sort(key=lambda row: [(len(text), text) for text in row[:2]])
    rows = [(given_id(row[0]), given_id(row[1]), *row[2:]) for row in rows]
    return Answer(facts, (Table.of_rows("streams", "Streams", _COLUMNS, rows),))


def _stream(work: Frame, window: Window | None) -> tuple[int, ...]:
    """Figures of one stream; with a window, of the part of its work that is inside."""
    work = work.take(np.lexsort((work["order"], work["start"])))
    start, end, call = work["start"], work["end"], work["call_start"]
    if window is not None:
        start, end = np.clip(start, *window), np.clip(end, *window)
    reach = np.maximum.accumulate(end)
    gap = start[1:] - reach[:-1]
    late = (call[1:] != INT_MISSING) & (call[1:] > reach[:-1])
    short = ~late & (gap < _KERNEL_GAP)
    waits = [int(gap[(gap > 0) & which].sum()) for which in (late, short, ~late & ~short)]
    span, busy = int(reach[-1] - start[0]), Intervals.union(start, end).total
    launched = (call != INT_MISSING) & work["inside"]
    change = np.repeat([1, -1], int(launched.sum()))
    queue = np.cumsum(change[np.lexsort((-change, np.concatenate([call[launched], start[launched]])))])
    return (int(work["inside"].sum()), int(start[0]), span, busy, span - busy, *waits,
            max(int(queue.max(initial=0)), 0))  # fmt: skip


@of_streams
def launches(events: WorkerEvents) -> Answer:
    """The launches view of one worker: durations of launching calls, and delays until the work starts."""
    work = events.frame("stream", "call_start", "call_end", "delay", "launched_together")
    together = work["launched_together"]
    alone = work.take(together == 1)
    host, device, delay = alone["call_end"] - alone["call_start"], alone["duration"], alone["delay"]
    return Answer((
        Fact("launches", "Launches", len(alone)), Fact("host_us", "Time of calls", int(host.sum()), "duration"),
        Fact("device_us", "Time on the device", int(device.sum()), "duration"),
        Fact("delay_us", "Waiting", int(delay.sum()), "duration"),
        Fact("delay_max_us", "Longest wait", int(delay.max(initial=0)), "duration"),
        Fact("short_kernels", "Shorter than their call", int((device < host).sum())),
        Fact("long_delays", "Waited over 100 us", int((delay > _LONG_DELAY).sum())),
        Fact("unlaunched", "Launched before recording", int((together == 0).sum())),
        Fact("graph_launched", "Launched together (graphs)", int((together > 1).sum())),
    ))  # fmt: skip
