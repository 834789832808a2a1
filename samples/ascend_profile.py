"""Writes a made-up Ascend profile: what torch_npu would leave of a small training on two cards, as text or databases.

    python samples/ascend_profile.py OUT [--form text|db] [--ranks 2] [--steps 3]

Nothing of it was recorded on hardware: names, shapes and times are invented, and the same options give the same bytes.
Both forms tell the same run. Rank 1 begins each step later, so rank 0 waits for it in the collectives.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

#: The clock at the start of the run, ns since 1970.
START = 1_750_000_000_000_000_000
GROUP = "4711"
_HOST, _LAUNCHER = 100, 101


@dataclass
class Operator:
    """A framework operator: ns, the place of the one around it (-1: none), and the connections of what it called."""

    name: str
    start: int
    end: int
    parent: int = -1
    connections: list[int] = field(default_factory=list)


@dataclass
class Task:
    """A task of the device: a kernel where ``type`` is set; ns."""

    name: str
    start: int
    end: int
    connection: int
    stream: int = 2
    kind: str = "AI_VECTOR_CORE"
    type: str = ""
    blocks: int = 20
    shapes: str = "32,128"
    ratios: tuple[float, float] = (0.0, 0.0)


@dataclass
class Run:
    """What one rank did: operators, calls (name, level, ns, connection), tasks and collectives."""

    rank: int
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    calls: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    collectives: list[Task] = field(default_factory=list)
    #: Wait of each collective for the others, ns.
    waits: list[int] = field(default_factory=list)

    def kernels(self) -> list[Task]:
        """Kernels and collectives by start."""
        return sorted([*(each for each in self.tasks if each.type), *self.collectives], key=lambda each: each.start)


#: Operator, the one in it that calls, kernel, its type and core, length in ns, cube and vector ratio, blocks.
_LAYER = (
    ("aten::linear", "aten::addmm", "aclnnAddmm_MatMulV2", "MatMulV2", "AI_CORE", 41_500, (0.82, 0.0), 20),
    ("aten::relu", "", "aclnnRelu_Relu", "Relu", "AI_VECTOR_CORE", 6_250, (0.0, 0.61), 40),
    ("aten::layer_norm", "aten::native_layer_norm", "aclnnLayerNorm_LayerNormV4", "LayerNormV4", "AI_VECTOR_CORE",
     12_750, (0.0, 0.74), 40),
    ("aten::to", "aten::_to_copy", "aclnnCast_Cast", "Cast", "AI_VECTOR_CORE", 3_125, (0.0, 0.33), 8),
)  # fmt: skip


def run_of(rank: int, steps: int = 3, layers: int = 6) -> Run:
    """The run of a rank."""
    run = Run(rank)
    host, device, connection = START + 1_000, START, 10
    for number in range(steps):
        begun = host
        host += 4_000 + (260_000 if rank else 20_000)  # data; rank 1 is late
        for layer in range(layers * len(_LAYER)):
            name, inner, kernel, kind, core, length, ratios, blocks = _LAYER[layer % len(_LAYER)]
            connection += 1
            task = Task(kernel, 0, length, connection, 2, core, kind, blocks, "32,128;128,128", ratios)
            host, device = _called(run, host, device, connection, name, inner, task)
        connection += 1
        host, device = _called(run, host, device, connection, "aten::copy_", "",
                               Task("MEMCPY_ASYNC", 0, 8_000, connection, 3, "MEMCPY_ASYNC"))  # fmt: skip
        connection += 1
        # both ranks end the collective together: who comes first waits
        launch = host + 9_000
        run.operators.append(Operator("c10d::allreduce_", host, host + 15_000, -1, [connection]))
        run.calls.append(("HcclAllreduce", "hccl", launch, launch + 3_000, connection))
        start = max(launch + 20_000, device + 2_000)
        wait = 0 if rank else 240_000
        end = start + wait + 96_000
        run.collectives.append(Task(f"hcom_allReduce__711_{number}_1", start, end, connection, -1, "HCCL",
                                    "hcom_allReduce_", 0, ""))  # fmt: skip
        run.waits.append(wait)
        host, device = end + 5_000, end
        run.steps.append((number, begun, host))
        host += 2_000
    return run


def _called(run: Run, host: int, device: int, connection: int, name: str, inner: str, task: Task) -> tuple[int, int]:
    """An operator, the call that launches its task, and the task; when host and device are done with it."""
    outer = len(run.operators)
    run.operators.append(Operator(name, host, host + 21_000, -1, [] if inner else [connection]))
    if inner:
        run.operators.append(Operator(inner, host + 2_000, host + 19_000, outer, [connection]))
    launch = host + 9_500
    run.calls.append((f"aclnn{name.rpartition(':')[2]}", "acl", launch, launch + 6_000, connection))
    length = task.end
    task.start = max(launch + 8_000, device + 500) if task.type else launch + 7_000
    task.end = task.start + length
    run.tasks.append(task)
    return host + 22_500, task.end if task.type else device


# -- what the exporter derives


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """A union of stretches."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def overlap_of(run: Run) -> dict[str, list[tuple[int, int]]]:
    """The four lanes of Overlap Analysis."""
    computing = merged((each.start, each.end) for each in run.tasks if each.type)
    talking = merged((each.start, each.end) for each in run.collectives)
    both = merged([*computing, *talking])
    exposed = []
    for start, end in talking:
        for a, b in computing:
            if a < end and b > start:
                if a > start:
                    exposed.append((start, a))
                start = max(start, b)
        if start < end:
            exposed.append((start, end))
    free = [(one[1], other[0]) for one, other in pairwise(both)]
    return {"Computing": computing, "Communication": talking, "Communication(Not Overlapped)": exposed, "Free": free}


def step_rows(run: Run) -> list[tuple[int, dict[str, int]]]:
    """Rows of step_trace_time: of each step what began in it."""
    lanes = overlap_of(run)
    begun = [min(each.start for each in run.kernels() if each.start >= start) for _, start, _ in run.steps]
    rows = []
    for place, (number, host, _) in enumerate(run.steps):
        until = begun[place + 1] if place + 1 < len(begun) else 1 << 62
        sums = {kind: sum(end - start for start, end in spans if begun[place] <= start < until)
                for kind, spans in lanes.items()}  # fmt: skip
        exposed = sums["Communication(Not Overlapped)"]
        rows.append((number, {**sums, "Overlapped": sums["Communication"] - exposed,
                              "Stage": sums["Computing"] + exposed + sums["Free"], "Bubble": 0,
                              "Communication(Not Overlapped and Exclude Receive)": exposed,
                              "Preparing": begun[place] - host}))  # fmt: skip
    return rows


def us(ns: int) -> str:
    """ns as microseconds with three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


# -- text


def write_text(run: Run, folder: Path) -> Path:
    """The folder of a rank as text."""
    output = folder / f"rank{run.rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    write_info(run, output.parent, "text")
    (output / "trace_view.json").write_text("[" + ",\n".join(map(json.dumps, events_of(run))) + "]\n")
    waited, before, lines = {}, 0, []
    for each in run.kernels():
        waited[id(each)] = max(0, each.start - before) if before else 0
        before = each.end
    for each in run.kernels():
        cube, vector = each.ratios
        step = max(number for number, start, _ in run.steps if start <= each.start)
        stream = each.stream if each.stream > 0 else "N/A"
        lines.append([step, 4294967295, each.connection, stream, each.name, each.type,
                      "dynamic", each.kind, f"{us(each.start)}\t", us(each.end - each.start), us(waited[id(each)]),
                      each.blocks, 0, f'"""{each.shapes}"""' if each.shapes else "N/A", cube, vector])  # fmt: skip
    _csv(output / "kernel_details.csv", "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,"
         "Start Time(us),Duration(us),Wait Time(us),Block Dim,Mix Block Dim,Input Shapes,aic_mac_ratio,aiv_vec_ratio",
         lines)  # fmt: skip
    names = ("Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble",
             "Communication(Not Overlapped and Exclude Receive)", "Preparing")  # fmt: skip
    _csv(output / "step_trace_time.csv", ",".join(("Step", *names)),
         [[number, *(us(values[name]) for name in names)] for number, values in step_rows(run)])  # fmt: skip
    communication, matrix = {}, {}
    for number, (each, wait) in enumerate(zip(run.collectives, run.waits, strict=True)):
        length = each.end - each.start
        times = {"Start Timestamp(us)": float(us(each.start)[:-2]), "Elapse Time(ms)": length / 1e6,
                 "Transit Time(ms)": 0.09, "Wait Time(ms)": wait / 1e6, "Synchronization Time(ms)": wait / 1e6,
                 "Idle Time(ms)": (length - wait) / 1e6 - 0.09, "Wait Time Ratio": 0,
                 "Synchronization Time Ratio": 0}  # fmt: skip
        link = {"Transit Size(MB)": 1.5, "Transit Time(ms)": 0.09, "Bandwidth(GB/s)": 16.6667,
                "Large Packet Ratio": 0.0, "Size Distribution": {"0.75": [2, 0.09]}}  # fmt: skip
        op = f"{each.name}@{GROUP}"
        communication[f"step{number}"] = {"p2p": {}, "collective": {op: {
            "Communication Time Info": times, "Communication Bandwidth Info": {"HCCS": link}}}}  # fmt: skip
        pair = {"Transport Type": "HCCS", "Transit Size(MB)": 1.5, "Transit Time(ms)": 0.09,
                "Bandwidth(GB/s)": 16.6667, "Op Name": each.name}  # fmt: skip
        matrix[f"step{number}"] = {"p2p": {}, "collective": {f"allreduce-top1@{GROUP}": {
            f"{run.rank}-{1 - run.rank}": pair}}}  # fmt: skip
    (output / "communication.json").write_text(json.dumps(communication))
    (output / "communication_matrix.json").write_text(json.dumps(matrix))
    return output.parent


def write_info(run: Run, folder: Path, form: str) -> None:
    """``profiler_info_N.json``."""
    config = {"_profiler_level": "Level1", "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION", "_export_type": form}
    info = {"config": {"experimental_config": config}, "rank_id": run.rank, "made_by": "tpuprof's samples"}
    (folder / f"profiler_info_{run.rank}.json").write_text(json.dumps(info, indent=1))


def _csv(path: Path, header: str, rows: Sequence[Sequence[object]]) -> None:
    path.write_text("".join(f"{line}\n" for line in (header, *(",".join(map(str, row)) for row in rows))))


def events_of(run: Run) -> list[dict[str, object]]:
    """The events of ``trace_view.json``."""
    python, cann, hardware, hccl, analysis, memory = 7, 224, 225, 226, 227, 228
    events: list[dict[str, object]] = []

    def complete(pid: int, tid: int, name: str, start: int, end: int, **more: object) -> None:
        # durations of the device have more decimals than ns
        events.append(
            {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": (end - start) / 1000, **more}
        )

    def flow(category: str, name: object, start: tuple[int, int, int], end: tuple[int, int, int]) -> None:
        for ph, (pid, tid, time) in (("s", start), ("f", end)):
            events.append({"ph": ph, "bp": "e", "name": category, "cat": category, "id": name, "pid": pid, "tid": tid,
                           "ts": us(time), "args": {}})  # fmt: skip

    for number, start, end in run.steps:
        complete(python, _HOST, f"ProfilerStep#{number}", start, end, cat="cpu_op")
    where = {each.connection: (hardware, each.stream, each.start) for each in run.tasks}
    where |= {each.connection: (hccl, 0, each.start) for each in run.collectives}
    for each in run.operators:
        complete(python, _HOST, each.name, each.start, each.end, cat="cpu_op",
                 args={"Input Dims": "32,128", "Call stack": "train.py(12): step"})  # fmt: skip
        for connection in each.connections:
            flow("async_npu", f"n{connection}", (python, _HOST, each.start), where[connection])
    for name, level, start, end, connection in run.calls:
        complete(cann, _LAUNCHER, f"AscendCL@{name}", start, end, args={"level": level, "connection_id": connection})
        flow("HostToDevice", f"h{connection}", (cann, _LAUNCHER, start), where[connection])
    for each in run.tasks:
        complete(hardware, each.stream, each.name, each.start, each.end,
                 args={"Task Type": each.kind, "connection_id": each.connection})  # fmt: skip
    for each in run.collectives:
        complete(hccl, 0, each.name, each.start, each.end, args={"connection_id": each.connection})
        complete(hccl, 1, "Memcpy", each.end - 90_000, each.end, args={"size(Byte)": 1_500_000, "task type": "Memcpy"})
    for tid, (kind, spans) in enumerate(overlap_of(run).items()):
        for start, end in spans:
            complete(analysis, tid, kind, start, end)
    for number, start, _ in run.steps:
        events.append({"ph": "C", "name": "APP/HBM", "pid": memory, "tid": 0, "ts": us(start),
                       "args": {"KB": 2_000_000 + 1000 * number}})  # fmt: skip
    names = {python: "Python", cann: "CANN", hardware: "Ascend Hardware", hccl: "Communication",
             analysis: "Overlap Analysis", memory: "NPU MEM"}  # fmt: skip
    threads = [(hardware, 2, "Stream 2"), (hardware, 3, "Stream 3"), (hccl, 0, "Group 0 Communication"),
               (hccl, 1, "Plane 0"), *((analysis, tid, kind) for tid, kind in enumerate(overlap_of(run)))]  # fmt: skip
    events += [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in names.items()
    ]
    events += [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}} for pid, tid, name in threads
    ]
    return events


# -- databases


def write_database(run: Run, folder: Path) -> Path:
    """The same as ``ascend_pytorch_profiler_N.db`` and ``analysis.db``."""
    output = folder / f"rank{run.rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    write_info(run, output.parent, "db")
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    levels = {"acl": 20000, "hccl": 5500}
    thread = 7 << 32
    tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
        "TASK": ("startNs,endNs,deviceId,connectionId,globalTaskId,globalPid,taskType,contextId,streamId,taskId,"
                 "modelId",
                 [(each.start, each.end, run.rank, each.connection, place, 7,
                   text(f"KERNEL_{each.kind}" if each.type else each.kind), 4294967295, each.stream, each.connection,
                   4294967295) for place, each in enumerate(run.tasks)]),
        "COMPUTE_TASK_INFO": ("name,globalTaskId,blockDim,mixBlockDim,taskType,opType,inputShapes",
                              [(text(each.name), place, each.blocks, 0, text(each.kind), text(each.type),
                                text(f'"{each.shapes}"')) for place, each in enumerate(run.tasks) if each.type]),
        "TASK_PMU_INFO": ("globalTaskId,name,value",
                          [(place, text(name), value) for place, each in enumerate(run.tasks) if each.type
                           for name, value in zip(("aic_mac_ratio", "aiv_vec_ratio"), each.ratios, strict=True)]),
        "COMMUNICATION_OP": ("opName,startNs,endNs,connectionId,groupName,opId,opType",
                             [(text(each.name), each.start, each.end, each.connection, text(GROUP), place,
                               text(each.type)) for place, each in enumerate(run.collectives)]),
        "CANN_API": ("startNs,endNs,type,globalTid,connectionId,name",
                     [(start, end, levels[level], thread | _LAUNCHER, connection, text(name))
                      for name, level, start, end, connection in run.calls]),
        "PYTORCH_API": ("startNs,endNs,globalTid,connectionId,name,inputShapes,type",
                        [*((str(each.start), str(each.end), thread | _HOST, place, text(each.name), text("32,128"),
                            50001)
                           for place, each in enumerate(run.operators)),
                         *((str(start), str(end), thread | _HOST, None, text(f"ProfilerStep#{number}"), None, 50001)
                           for number, start, end in run.steps)]),
        "CONNECTION_IDS": ("id,connectionId", [(place, connection) for place, each in enumerate(run.operators)
                                               for connection in each.connections]),
        "ENUM_API_TYPE": ("id,name", [(number, name) for name, number in levels.items()]),
        "RANK_DEVICE_MAP": ("rankId,deviceId", [(run.rank, run.rank)]),
        "NPU_INFO": ("id,name", [(run.rank, "Ascend (made up)")]),
    }  # fmt: skip
    _database(output / f"ascend_pytorch_profiler_{run.rank}.db",
              {**tables, "STRING_IDS": ("id,value", [(number, value) for value, number in texts.items()])})  # fmt: skip
    names = {"computing": "Computing", "communication_not_overlapped": "Communication(Not Overlapped)",
             "overlapped": "Overlapped", "communication": "Communication", "free": "Free", "stage": "Stage",
             "bubble": "Bubble", "communication_not_overlapped_and_exclude_receive":
             "Communication(Not Overlapped and Exclude Receive)", "preparing": "Preparing"}  # fmt: skip
    times = [(each.name, GROUP, float(us(each.start)[:-2]), (each.end - each.start) / 1e6, 0.09, wait / 1e6, wait / 1e6,
              (each.end - each.start - wait) / 1e6 - 0.09, f"step{number}", "collective")
             for number, (each, wait) in enumerate(zip(run.collectives, run.waits, strict=True))]  # fmt: skip
    _database(output / "analysis.db", {
        "StepTraceTime": (",".join(("step", *names)),
                          [(str(number), *(values[name] / 1000 for name in names.values()))
                           for number, values in step_rows(run)]),
        "CommAnalyzerTime": ("hccl_op_name,group_name,start_timestamp,elapse_time,transit_time,wait_time,"
                             "synchronization_time,idle_time,step,type", times),
        "CommAnalyzerBandwidth": ("hccl_op_name,group_name,transport_type,transit_size,transit_time,bandwidth,"
                                  "large_packet_ratio,package_size,count,total_duration,step,type",
                                  [(each.name, GROUP, "HCCS", 1.5, 0.09, 16.6667, 0.0, 0.75, 2, 0.09, f"step{number}",
                                    "collective") for number, each in enumerate(run.collectives)]),
        "CommAnalyzerMatrix": ("hccl_op_name,group_name,src_rank,dst_rank,transport_type,transit_size,transit_time,"
                               "bandwidth,op_name,step,type",
                               [("allreduce-top1", GROUP, str(run.rank), str(1 - run.rank), "HCCS", 1.5, 0.09, 16.6667,
                                 each.name, f"step{number}", "collective")
                                for number, each in enumerate(run.collectives)]),
    })  # fmt: skip
    return output.parent


def _database(path: Path, tables: dict[str, tuple[str, list[tuple[object, ...]]]]) -> None:
    with sqlite3.connect(path) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"create table {name} ({columns})")
            connection.executemany(f"insert into {name} values ({','.join('?' * (columns.count(',') + 1))})", rows)
    connection.close()


def main() -> None:
    """Writes the ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--form", choices=("text", "db"), default="text")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    for rank in range(args.ranks):
        write = write_text if args.form == "text" else write_database
        print(write(run_of(rank, args.steps), args.out))


if __name__ == "__main__":
    main()
