"""Findings specific to PyTorch traces, in addition to those of any profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.events import column_of, frame_of
from tpuprof_tui.analysis.pivot import Frame, GroupBy
from tpuprof_tui.analysis.query import EVERYTHING, Query
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.units import MISSING, bytes_text, percent_text, plural, time_text
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.group import Worker
from tpuprof_tui.sources.chrome.nesting import parents
from tpuprof_tui.views.answer import Answer, Target
from tpuprof_tui.views.rules import TIMES, Finding, Rule, SourceRules, evidence, window_finding

from ..categories import LOADER, LOADER_KINDS, Kind, tensor_core_use
from ..records import GPU_TYPES
from ..vocabulary import DEVICE, MEMORY
from .by_name import repeated_sequences
from .distributed import transfers_by_run
from .memory import by_device
from .overview import streams
from .worker_events import WorkerEvents, worker_by_worker, workers_of

#: Kernels below this duration in ns are short; at least this many in a row are reported.
_SHORT: Final = 10_000
_IN_A_ROW: Final = 4
#: Least share of reserved memory beyond the peak of allocated memory that is reported as fragmentation.
_FRAGMENTED: Final = 0.3
#: A memory peak is reported from this share of the device's memory on, or from this multiple of the amount that is not
#: exceeded during ``_USUALLY`` of the time; peaks below ``_LEAST_PEAK`` bytes are not reported.
_FULL: Final = 0.8
_PEAKS: Final = 2.0
_LEAST_PEAK: Final = 1 << 20
_USUALLY: Final = 0.9
#: Names of calls and operators that wait for the GPU.
_WAITS: Final = r"Synchronize|^aten::(item|_local_scalar_dense)$"


def _finding(query: Query, rule: Rule, worker: Worker, gain: float, text: str, events: Frame) -> Finding:
    """A finding about some events, with the longest as evidence; without any about the worker."""
    profile = query.profile
    if not len(events):
        return window_finding(query, rule, worker.key, gain, text, "", Target(scope=Scope(worker.group)))
    longest = int(events["duration"].argmax())
    number, row, start, length, name = (
        int(events[key][longest]) for key in ("lane", "row", "start", "duration", "name")
    )
    lane = profile.lanes[number]
    found = evidence(
        profile.groups.title(lane.group), start, length, line_text(events.texts["name"][name], 60), lane.label
    )
    return Finding(rule.id, worker.key, round(gain), text, found, rule.advice, Target(event=(number, row)))


def _streams(query: Query) -> list[tuple[WorkerEvents, Answer]]:
    """The streams view of each worker, cached."""

    def made() -> list[tuple[WorkerEvents, Answer]]:
        return [
            (events, streams(replace(query, scope=Scope(events.worker.group)))) for events in worker_by_worker(query)
        ]

    return query.local_cache.get("streams", made)


def _host_bound(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for selection, answer in _streams(query):
        if selection.recorded.captures_graphs:
            continue
        table = answer.table("streams")
        keys = [column.key for column in table.columns]
        rows = [dict(zip(keys, row, strict=True)) for row in table.rows()]
        worst = max(rows, key=lambda row: (row["busy_us"], row["host_wait_us"]), default=None)
        if worst is not None and worst["host_wait_us"] >= least:
            # old traces name the stream by its thread: stream 7
            stream = (worst["stream"] or MISSING).removeprefix("stream ")
            text = (f"Stream {stream} of GPU {worst['device'] or MISSING} has nothing to do for "
                    f"{time_text(worst['host_wait_us'])} because the host launches too late.")  # fmt: skip
            title = f"GPU {worst['device']} stream {stream}"
            titles = [query.profile.title_of(lane) for lane in query.profile.lanes]
            target = Target(scope=Scope(lane=titles.index(title)) if title in titles else query.scope)
            brief = (f"GPU {worst['device'] or MISSING} stream {stream} starves, {time_text(worst['host_wait_us'])}: "
                     "the host launches late.")  # fmt: skip
            yield window_finding(
                query, rule, f"GPU {worst['device'] or MISSING}", worst["host_wait_us"], text, "", target, brief
            )


#: Chooses events of a worker.
_Choose = Callable[[WorkerEvents], Frame]


def _covered(query: Query, rule: Rule, least: float, chosen: _Choose, text: str) -> Iterator[Finding]:
    """A finding for each worker about some of its events; the gain is the time that they cover."""
    for selection in worker_by_worker(query):
        events = chosen(selection)
        gain = selection.union(events).total
        if len(events) and gain and gain >= least:
            names = events.texts["name"]
            name = line_text(names[int(np.bincount(events["name"], weights=events["duration"]).argmax())], 60)
            # aten::item calls what waits
            outer = parents(events["start"], events["end"], events["lane"]) < 0
            count = int(outer.sum())
            full = text.format(count=f"{count:,}", calls=plural(count, "call"), time=time_text(gain), name=name)
            yield _finding(query, rule, selection.worker, gain, full, events)


def _named(pattern: str, kind: str, *kinds: Kind) -> _Choose:
    """Chooses the events of some kinds on a kind of lane whose name contains a pattern, or reaches into the window."""
    test = re.compile(pattern).search

    def chosen(selection: WorkerEvents) -> Frame:
        events = selection.frame(kind, "name", "kind", "lane", "row", reaching=True)
        return events.take(np.isin(events["kind"], kinds) & events.has("name", test))

    return chosen


def _waits_for_gpu(selection: WorkerEvents) -> Frame:
    """The calls that wait for the GPU; none if it did nothing."""
    events = _named(_WAITS, "thread", Kind.CALL, Kind.OPERATOR)(selection)
    worked = any(lane.kind == "stream" for lane in selection.query.profile.lanes_of(selection.worker.group))
    return events if worked else events.take(slice(0, 0))


def _loads(selection: WorkerEvents) -> Frame:
    """The calls that fetch the next batch."""
    return _named(rf"^(?:{LOADER.pattern})$", "thread", *LOADER_KINDS)(selection)


def _short(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    """Sequences of short kernels on a stream; the gain is the gaps between them."""
    for selection in worker_by_worker(query):
        kernels = selection.kernels("name", "lane", "row")
        if not len(kernels) or selection.recorded.captures_graphs:
            continue
        start, end = kernels["start"], kernels["end"]
        short = kernels["duration"] < _SHORT
        both = (np.diff(kernels["lane"]) == 0) & short[1:] & short[:-1]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], both.astype(np.int8), [0]])))
        begins, ends = edges[::2], edges[1::2]
        long = ends - begins + 1 >= _IN_A_ROW
        gaps = np.concatenate([[0], np.cumsum(np.maximum(start[1:] - end[:-1], 0) * both)])
        gain = int((gaps[ends] - gaps[begins])[long].sum())
        if gain and gain >= least:
            count = int((ends - begins + 1)[long].sum())
            text = f"{count:,} kernels below {time_text(_SHORT)} follow one another, {time_text(gain)} between them."
            most = int(np.where(long, ends - begins, 0).argmax())
            yield _finding(query, rule, selection.worker, gain, text, kernels.take(slice(begins[most], ends[most] + 1)))


def _fusible(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    """The repeated sequence of light kernels with the most to win; the gaps between them are those of other rules."""
    for selection in worker_by_worker(query):
        found = repeated_sequences(selection)
        groups = GroupBy(found.with_columns(won=found["gain"] - found["gaps"]), ("sequence", "module"))
        won = groups.reduce(groups.frame["won"])
        worst = int(won.argmax()) if len(won) else -1
        if worst >= 0 and won[worst] and won[worst] >= least:
            first = int(groups.first[worst])
            name = line_text(found.texts["sequence"][found["sequence"][first]], 60)
            source = found.texts["source"][found["source"][first]] if found["source"][first] >= 0 else ""
            where = f" in {line_text(source.rpartition('/')[2], 60)}" if source else ""
            brief = (f"{groups.sizes[worst]:,} times {found['kernels'][first]} light kernels follow one another{where}"
                     ", which one could do")  # fmt: skip
            text = f"{brief}: all but the longest of each take {time_text(int(won[worst]))} ({name})."
            events = found.with_columns({"name": found.texts["sequence"]}, name=found["sequence"])
            of_worst = events.take(groups.index == worst)
            yield replace(_finding(query, rule, selection.worker, won[worst], text, of_worst), brief=f"{brief}.")


def _tensor_cores(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for selection in worker_by_worker(query):
        capable = any(type(each.get("computeMajor")) is int and each["computeMajor"] >= 7
                      for each in selection.recorded.devices)  # fmt: skip
        if not capable or not selection.recorded.tensor_cores_known:
            continue
        kernels = selection.kernels("name", "lane", "row")
        others = kernels.take(kernels.has("name", lambda name: tensor_core_use(name) is False))
        unused = others.take(column_of(query.session, others, "eligible").astype(np.bool_))
        gain = int(unused["duration"].sum())
        if gain and gain >= least:
            text = f"Operators that can use tensor cores spend {time_text(gain)} in kernels that do not."
            yield _finding(query, rule, selection.worker, gain, text, unused)


def _late_rank(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    groups = {worker.key: worker.group for worker in workers_of(query)}
    if len(workers_of(replace(query, scope=EVERYTHING))) < 2:
        return
    for rows in transfers_by_run(replace(query, scope=EVERYTHING)):
        waits = {worker: waited for step, worker, _, waited in rows if step == "all"}
        if len(waits) < 2:
            continue
        late = min(waits, key=lambda worker: waits[worker])
        in_each = (sum(waits.values()) - waits[late]) / (len(waits) - 1) - waits[late]
        gain = in_each * sum(worker == late and step != "all" for step, worker, *_ in rows)
        if gain >= least and late in groups:
            text = f"{late} is late: the others wait {time_text(round(in_each))} longer in each step for it."
            yield window_finding(query, rule, late, gain, text, "", Target(scope=Scope(groups[late])))


def _instants(selection: WorkerEvents) -> Frame:
    """Memory instants in the queried time that say what is allocated."""
    query = selection.query
    keys = ("start", "device", "device_type", "device_id", "allocated", "reserved", "around")
    instants = frame_of(selection.table("memory"), keys)
    known = instants["allocated"] != INT_MISSING
    if query.range is not None or query.step is not None:
        start, end = query.window
        known &= (instants["start"] >= start) & (instants["start"] < end)
    return instants.take(known)


def _end_of_memory(selection: WorkerEvents) -> int:
    """End of the time that instants of memory are of, ns."""
    query, window = selection.query, selection.worker.window
    return window[1] + 1 if window and query.range is None and query.step is None else query.window[1]


def _fragmentation(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for selection in worker_by_worker(query):
        instants = _instants(selection)
        on_gpu = np.isin(instants["device_type"], GPU_TYPES) & (instants["reserved"] != INT_MISSING)
        devices = list(by_device(instants.take(on_gpu)))
        for name, here in devices:
            allocated, reserved = int(here["allocated"].max()), int(here["reserved"].max())
            if not reserved or (reserved - allocated) / reserved < _FRAGMENTED:
                continue
            where = f" on {name}" if len(devices) > 1 else ""
            text = (f"{bytes_text(reserved)} are reserved{where} and never more than {bytes_text(allocated)} "
                    f"allocated: {percent_text(1 - allocated / reserved)} is fragmented.")  # fmt: skip
            # start of the peak of reserved memory
            begin = int(here["start"][here["reserved"].argmax()])
            length = max(_end_of_memory(selection) - begin, 1)
            key = selection.worker.key
            yield Finding(rule.id, key, None, text, evidence(key, begin, length, name), rule.advice,
                          Target(time=(begin, begin + length)))  # fmt: skip


def _memory_peak(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    for selection in worker_by_worker(query):
        capacities = {str(each.get("id")): each.get("totalGlobalMem") for each in selection.recorded.devices}
        end, key = _end_of_memory(selection), selection.worker.key
        for name, here in by_device(_instants(selection)):
            time, allocated = here["start"], here["allocated"]
            order = np.argsort(allocated, kind="stable")
            cumulative = np.cumsum(np.diff(time, append=end)[order])
            usual = int(allocated[order[np.searchsorted(cumulative, _USUALLY * cumulative[-1])]])
            most = int(allocated.argmax())
            peak = int(allocated[most])
            on_gpu = int(here["device_type"][0]) in GPU_TYPES
            capacity = capacities.get(str(int(here["device_id"][0]))) if on_gpu else None
            full = type(capacity) is int and capacity > 0 and peak >= _FULL * capacity
            if peak < _LEAST_PEAK or not (full or peak >= _PEAKS * usual):
                continue
            above = np.flatnonzero(allocated <= usual)
            since, until = np.searchsorted(above, most), np.searchsorted(above, most, side="right")
            begin = int(time[above[since - 1] + 1]) if since else int(time[0])
            stop = int(time[above[until]]) if until < len(above) else end
            around = int(here["around"][most])
            where = f" in {line_text(here.texts['around'][around], 60)}" if around >= 0 else ""
            of = f" of {bytes_text(capacity)}" if type(capacity) is int and full else ""
            text = f"{bytes_text(peak)}{of} are allocated on {name}{where}"
            if bytes_text(usual) != bytes_text(peak):
                text += f", {bytes_text(usual)} or less in {percent_text(_USUALLY)} of the time"
            yield Finding(rule.id, key, None, f"{text}.", evidence(key, begin, stop - begin, name), rule.advice,
                          Target(time=(begin, stop)))  # fmt: skip


RULES: Final = SourceRules(adds=(
    Rule("host_bound", "The host launches too late",
         "Gaps of the busiest stream whose next call started after the gap began.", 0.05,
         "10 of 16 real traces reach it; the next ones have 0.049 and 0.035",
         "Launch ahead: CUDA graphs, torch.compile, larger kernels, less work on the host between them.", _host_bound,
         (TIMES, DEVICE), "complete", "idle"),
    Rule("synchronises", "The host waits for the GPU", "Union of calls that synchronise, aten::item and its like.",
         0.02, "5 of 16 real traces reach it, the least with 0.030; the next has 0.016",
         "Keep values on the GPU, log them seldom, copy with non_blocking=True.",
         partial(_covered, chosen=_waits_for_gpu, text="The host waits for the GPU in {calls}, {time}: {name}."),
         (TIMES, DEVICE), wins="idle"),
    Rule("pageable_copies", "Copies of memory that is not pinned", "Union of copies from and to pageable memory.", 0.01,
         "1 of 16 real traces reaches it (0.026); the next has 0.006",
         "Pin it: DataLoader(pin_memory=True) and .to(device, non_blocking=True).", partial(_covered,
                 chosen=_named("Pageable", "stream", Kind.COPY),
                 text="{count} copies from or to memory that is not pinned take {time}."), (TIMES, DEVICE),
         wins="exposed"),
    Rule("loader_waits", "The run waits for data", "Union of the calls that fetch the next batch.", 0.05,
         "3 of 20 real traces reach it, the least with 0.060; the next has 0.040",
         "More workers (num_workers), prefetch_factor, persistent_workers, faster storage.",
         partial(_covered, chosen=_loads, text="The run waits {time} for data in {calls}."), wins="idle"),
    Rule("late_rank", "A late rank", "What other ranks wait in collectives beyond the one that waits least.", 0.02,
         "none of 20 real traces reaches it: at most 0.017",
         "Compare its loader and its kernels with another's: tpuprof diff.", _late_rank, sees="complete"),
    Rule("short_kernels", "Short kernels in a row", "Gaps within runs of four kernels or more below 10 us.", 0.02,
         "10 of 16 real traces reach it, the least with 0.030; the next has 0.006",
         "Fuse them: torch.compile, foreach or fused optimizers, CUDA graphs.", _short, (TIMES, DEVICE), "complete",
         "idle"),
    Rule("fusible_kernels", "Kernels that one could do",
         "All but the longest kernel of each time that a sequence of light kernels runs, the one with the most.", 0.02,
         "7 of 21 real traces reach it, the least with 0.021; the next has 0.013",
         "One kernel for them: torch.compile, or one made for it. See the view fusion.", _fusible, (TIMES, DEVICE),
         confidence="likely"),
    Rule("tensor_cores_unused", "Tensor cores are not used",
         "Kernels of operators that can use tensor cores which do not.", 0.05,
         "3 of 16 real traces reach it, the least with 0.19; the next has 0.019",
         "Mixed precision (torch.autocast, TF32), sizes that are multiples of 8.", _tensor_cores, (TIMES, DEVICE),
         confidence="likely"),
    Rule("memory_peak", "A peak of memory",
         "Peak memory allocated on a device: 80 % of its memory or more, or twice what is allocated in 90 % of the "
         "time.", 0.0, "its limits are in its sentence: no time is won",
         "Free what is no longer used before it (del), activation checkpointing, smaller pieces at that operator.",
         _memory_peak, (TIMES, MEMORY)),
    Rule("fragmentation", "Memory is fragmented", "Reserved memory beyond what is ever allocated, 30 % or more.", 0.0,
         "its limit is in its sentence: no time is won",
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or sizes that repeat.", _fragmentation, (TIMES, MEMORY)),
), leaves_out={"late_unit": "GPUs wait for one another in collectives alone: late_rank"})  # fmt: skip
