"""Perfetto traces, made by the package perfetto's messages: as PyTorch writes them, of the events of a Chrome trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END, INSTANT, COUNTER = (getattr(pb.TrackEvent, f"TYPE_{kind}") for kind in
                                ("SLICE_BEGIN", "SLICE_END", "INSTANT", "COUNTER"))  # fmt: skip
CLEARED, NEEDS_STATE = 1, 2
#: Stages of PyTorch by the categories of Chrome traces.
STAGES = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "gpu_user_annotation": "Annotation",
          "graph_event_node": "EventRecord", "graph_host_node": "HostNode"}  # fmt: skip
EXTRA = {"device": "device id", "context": "context id", "stream": "stream id"}
LAUNCHES = {"registers per thread": "registers_per_thread", "shared memory": "shared_mem_dynamic"}


class Builder:
    """A trace of one sequence of packets, with interned texts."""

    def __init__(self, sequence: int = 1) -> None:
        self.trace = pb.Trace()
        self.sequence = sequence
        self._iids: dict[tuple[str, str], int] = {}
        self.packet(flags=CLEARED | NEEDS_STATE)

    def packet(self, time: int | None = None, flags: int = NEEDS_STATE) -> Any:
        packet = self.trace.packet.add(trusted_packet_sequence_id=self.sequence, sequence_flags=flags)
        if time is not None:
            packet.timestamp = time
        return packet

    def iid(self, table: str, text: str, field: str = "name") -> int:
        """Id of an interned text, which a packet tells before its first use."""
        if (table, text) not in self._iids:
            number = self._iids[table, text] = sum(each == table for each, _ in self._iids) + 1
            entry = getattr(self.packet().interned_data, table).add(iid=number)
            setattr(entry, field, text if field == "name" else text.encode())
        return self._iids[table, text]

    def process(self, uuid: int, pid: int, name: str) -> None:
        descriptor = self.trace.packet.add().track_descriptor
        descriptor.uuid, descriptor.process.pid, descriptor.process.process_name = uuid, pid, name

    def thread(self, uuid: int, parent: int, pid: int, tid: int, name: str = "") -> None:
        descriptor = self.trace.packet.add().track_descriptor
        descriptor.uuid, descriptor.parent_uuid, descriptor.thread.pid, descriptor.thread.tid = uuid, parent, pid, tid
        if name:
            descriptor.thread.thread_name = name

    def track(self, uuid: int, name: str, parent: int = 0, **counter: Any) -> None:
        descriptor = self.trace.packet.add().track_descriptor
        descriptor.uuid, descriptor.name, descriptor.parent_uuid = uuid, name, parent
        if counter:
            descriptor.counter.SetInParent()
            for key, value in counter.items():
                setattr(descriptor.counter, key, value)

    def event(
        self, kind: int, track: int, time: int, name: str = "", category: str = "",
        args: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        names = self.iid("event_names", name) if name else 0
        categories = self.iid("event_categories", category) if category else 0
        event = self.packet(time).track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name_iid = names
        if category:
            event.category_iids.append(categories)
        for key, value in (args or {}).items():
            annotate(event.debug_annotations.add(name=key), value)
        return event

    def slice(self, track: int, begin: int, end: int, name: str, category: str = "", **args: Any) -> Any:
        event = self.event(BEGIN, track, begin, name, category, args)
        self.event(END, track, end)
        return event

    def bytes(self) -> bytes:
        return self.trace.SerializeToString()


def annotate(note: Any, value: Any) -> None:
    """Sets the value of a debug annotation as PyTorch does."""
    if isinstance(value, dict):
        for key, each in value.items():
            annotate(note.dict_entries.add(name=key), each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            annotate(note.array_values.add(), each)
    elif isinstance(value, bool):
        note.bool_value = value
    elif isinstance(value, int):
        note.int_value = value
    elif isinstance(value, (float, Decimal)):
        note.double_value = float(value)
    else:
        note.string_value = "null" if value is None else value


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def message(field: int, content: bytes) -> bytes:
    """A field with a message, for those that the package's messages do not know."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def ns(us: Any) -> int:
    return int(Decimal(str(us)) * 1000)


def torch_trace(events: Iterable[Mapping[str, Any]], waits: Mapping[int, list[int]] | None = None) -> bytes:
    """A trace as PyTorch's exporter writes it: all begins of slices, all ends, then what ran on GPUs.

    Args:
        events: Those of a Chrome trace.
        waits: Correlations of what work waits for, by its correlation.
    """
    builder, tracks = Builder(), dict[Any, int]()
    events = list(events)
    told = {(each["name"], each["pid"], each["tid"]): each["args"] for each in events if each["ph"] == "M"}
    names = {pid: args["name"] for (kind, pid, _), args in told.items() if kind == "process_name"}
    threads = {(pid, tid): args["name"] for (kind, pid, tid), args in told.items() if kind == "thread_name"}
    queues = {each["tid"]: number for number, each in enumerate(events, 100) if each.get("cat") in STAGES}

    def track(pid: Any, tid: Any) -> int:
        if pid not in tracks:
            tracks[pid] = len(tracks) + 1
            builder.process(tracks[pid], pid, names.get(pid, f"GPU {pid}"))
        if (pid, tid) not in tracks:
            tracks[pid, tid] = len(tracks) + 1
            builder.thread(tracks[pid, tid], tracks[pid], pid, tid, threads.get((pid, tid), ""))
        return tracks[pid, tid]

    interned = builder.packet().interned_data
    for number, stage in enumerate(STAGES.values(), 1):
        interned.gpu_specifications.add(iid=number, name=stage)
    for queue, number in queues.items():
        interned.gpu_specifications.add(iid=number, name=f"[{queue:02}] stream {queue}")
    interned.MergeFromString(b"".join(message(1001, b"\x08" + varint(number) + message(2, name.encode()))
                                      for number, name in enumerate(LAUNCHES.values(), 1)))  # fmt: skip
    slices = [each for each in events if each["ph"] == "X" and each["cat"] not in STAGES]
    for each in slices:
        category = "" if each["cat"] == "cuda_sync" else each["cat"]
        event = builder.event(BEGIN, track(each["pid"], each["tid"]), ns(each["ts"]), each["name"], category,
                              each.get("args"))  # fmt: skip
        if category == "cuda_runtime":
            correlation = each["args"]["correlation"]
            event.MergeFromString(message(3000, b"\x08" + varint(correlation)))
    for each in slices:
        builder.event(END, track(each["pid"], each["tid"]), ns(each["ts"]) + ns(each["dur"]))
    for each in events:
        if each["ph"] == "i":
            builder.event(INSTANT, track(each["pid"], each["tid"]), ns(each["ts"]), each["name"], "", each["args"])
        if each["ph"] != "X" or each["cat"] not in STAGES:
            continue
        name, args = builder.iid("event_names", each["name"]), dict(each.get("args", {}))
        stage = builder.packet(ns(each["ts"])).gpu_render_stage_event
        stage.event_id, stage.duration, stage.gpu_id = args.get("correlation", 0), ns(each["dur"]), each["pid"]
        stage.hw_queue_iid, stage.stage_iid = queues[each["tid"]], [*STAGES].index(each["cat"]) + 1
        stage.name_iid = name
        stage.event_wait_ids.extend((waits or {}).get(stage.event_id, ()))
        if "grid" in args:
            for dimension, key in ((stage.launch.grid_size, "grid"), (stage.launch.workgroup_size, "block")):
                dimension.x, dimension.y, dimension.z = args.pop(key)
            for number, key in enumerate(LAUNCHES, 1):
                stage.launch.args.add(name_iid=number, uint_value=args.pop(key))
        for key, value in args.items():
            value = value if isinstance(value, str) else json.dumps(value, default=float)
            stage.extra_data.add(name=EXTRA.get(key, key), value=value)
    return builder.bytes()


def program_trace() -> bytes:
    """A trace of any program: two threads and a track below its process, instants, counters, flows, what is lost."""
    builder = Builder()
    builder.process(1, 12, "server")
    for track, thread in ((2, 13), (3, 14)):
        builder.thread(track, 1, 12, thread, f"worker {track}")
    builder.track(4, "queue", 1)
    builder.track(5, "memory", 1, unit_name="B")
    builder.track(6, "fan")
    for number in range(60):
        begin = 1_700_000_000_000_000_000 + 10_000 * number
        about = {"id": number, "path": {"name": "/a", "parts": [1, 2]}}
        asked = builder.event(INSTANT, 4, begin, "asked", "request", about)
        asked.flow_ids.append(number + 1)
        answer = builder.slice(
            2 + number % 2, begin + 500, begin + 8000 + 40 * number, "answer", "request", bytes=number
        )
        answer.terminating_flow_ids.append(number + 1)
        builder.slice(2 + number % 2, begin + 1000, begin + 3000, "parse", "parser")
        builder.event(COUNTER, 5, begin).double_counter_value = 1024.0 * number
        builder.slice(6, begin, begin + 100, "turn")
    builder.packet().ftrace_events.cpu = 1
    builder.event(END, 6, 1_700_000_000_000_000_000)
    return builder.bytes()


def sample() -> bytes:
    """The file in ``samples/torch_perfetto``: the events of a rank of the sample of CUDA, as PyTorch exports them."""
    samples = Path(__file__).resolve().parents[2] / "samples"
    (path,) = (samples / "torch_cuda_synthetic").glob("node0_4000.*")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    work = [each["args"]["correlation"] for each in events if each.get("cat") == "kernel"]
    waits = {second: [first] for first, second in pairwise(work)}
    return gzip.compress(torch_trace([each for each in events if each["ph"] in "XMi"], waits), mtime=0)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parents[2] / "samples" / "torch_perfetto"
    folder.mkdir(exist_ok=True)
    (folder / "rank0.pftrace.gz").write_bytes(sample())
