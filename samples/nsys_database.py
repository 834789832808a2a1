#!/usr/bin/env python3
"""Write synthetic databases of Nsight Systems of any size: ``python samples/nsys_database.py OUT --ranks 2``.

The run is that of ``torch_trace.py``, as ``nsys export --type sqlite`` would have written it: not recorded. Operators
and annotations are ranges of NVTX, so figures of kernels, copies, launches and streams equal those of that trace.
Tables and columns follow the documented schema, of two versions. The same options and seed give the same rows.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from torch_trace import PID, Rank

EPOCH = 1_700_000_000_000_000_000
#: Columns of tables in both versions, and those that only the later one has.
TABLES = {
    "StringIds": ("id value", ""),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start end deviceId contextId streamId correlationId globalPid demangledName shortName mangledName launchType "
        "cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory "
        "localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig",
        "greenContextId",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start end deviceId contextId streamId correlationId globalPid bytes copyKind srcKind dstKind srcDeviceId "
        "srcContextId dstDeviceId dstContextId graphNodeId",
        "greenContextId virtualAddress copyCount",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start end eventClass globalTid correlationId nameId returnValue callchainId", ""),
    "NVTX_EVENTS": (
        "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value int64Value "
        "doubleValue uint32Value int32Value floatValue jsonTextId jsonText",
        "binaryData",
    ),
    "OSRT_API": ("start end eventClass globalTid correlationId nameId returnValue nestingLevel callchainId", ""),
    "SCHED_EVENTS": ("start cpu isSchedIn globalTid", ""),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start globalPid deviceId contextId address pc bytes memKind memoryOperationType name correlationId",
        "streamId",
    ),
    "ThreadNames": ("nameId priority globalTid", ""),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs utcTime localTime", ""),
    "TARGET_INFO_SYSTEM_ENV": ("globalVid devStateName name nameEnum value", ""),
    "TARGET_INFO_GPU": (
        "vmId id name busLocation isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid "
        "luid chipName cuDevice threadsPerWarp computeMajor computeMinor", "",
    ),
    "ENUM_CUDA_MEMCPY_OPER": ("id name label", ""),
}  # fmt: skip
#: Tables that only the later version has.
LATER = {
    "PROCESSES": "globalPid pid name",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid numMultiprocessors",
    "META_DATA_EXPORT": "name value",
    "GPU_METRICS": "timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName metricId metricName",
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": "id name label",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text globalPid",
}  # fmt: skip


class Database:
    """Writes a database.

    Args:
        version: Year of the schema: 2022 or 2025.
    """

    def __init__(self, path: Path, version: int = 2025) -> None:
        path.unlink(missing_ok=True)
        self.version = version
        self._connection = sqlite3.connect(path)
        self._strings: dict[str, int] = {}
        self.columns: dict[str, list[str]] = {}
        later = version >= 2025
        tables = {table: f"{both} {more if later else ''}" for table, (both, more) in TABLES.items()}
        for table, columns in (tables | (LATER if later else {})).items():
            self.columns[table] = columns.split()
            types = {each: "TEXT" if each in ("text", "name", "value") else "INTEGER" for each in self.columns[table]}
            declared = ", ".join(f'"{each}" {type_}' for each, type_ in types.items())
            self._connection.execute(f"CREATE TABLE {table} ({declared})")

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Adds rows to a table, if this version has it; columns that it has not are left out."""
        if table in self.columns:
            marks = ",".join("?" * len(self.columns[table]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})",
                                         ([row.get(each) for each in self.columns[table]] for row in rows))  # fmt: skip

    def string(self, text: str) -> int:
        """Id of a text."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def close(self) -> None:
        """Writes the texts, and closes the file."""
        self.add("StringIds", ({"id": id_, "value": text} for text, id_ in self._strings.items()))
        self._connection.commit()
        self._connection.execute("VACUUM")
        self._connection.close()


def global_id(process: int, thread: int = 0) -> int:
    """Process and thread as one number, as all tables have them."""
    return 1 << 56 | process << 24 | thread


def write_process(database: Database, events: Sequence[dict[str, Any]], process: int, device: int, card: int) -> None:
    """Adds what a process recorded.

    Args:
        events: As of `Rank.events`, times in ns.
        process: Its number; that of the trace's threads becomes it.
        device: Number by which the process calls its only device.
        card: Number of that card.
    """
    owner, string, later = global_id(process), database.string, database.version >= 2025

    def thread(event: dict[str, Any]) -> int:
        return global_id(process, event["tid"] - PID + process)

    spans = [event for event in events if event["ph"] == "X"]
    of = {category: [each for each in spans if each["cat"] == category] for category in
          ("kernel", "gpu_memcpy", "cuda_runtime")}  # fmt: skip

    def work(event: dict[str, Any]) -> dict[str, Any]:
        return {"start": event["ts"], "end": event["ts"] + event["dur"], "deviceId": device, "contextId": 1,
                "streamId": event["tid"], "correlationId": event["args"]["correlation"],
                "globalPid": owner}  # fmt: skip

    database.add("CUPTI_ACTIVITY_KIND_KERNEL", ({
        **work(each), "demangledName": string(each["name"]),
        "shortName": string(each["name"].partition("(")[0].rpartition(" ")[2].partition("<")[0].rpartition("::")[2]),
        "registersPerThread": each["args"]["registers per thread"], "staticSharedMemory": 0, "dynamicSharedMemory": 0,
        **dict(zip(("gridX", "gridY", "gridZ"), each["args"]["grid"], strict=True)),
        **dict(zip(("blockX", "blockY", "blockZ"), each["args"]["block"], strict=True)),
        "localMemoryPerThread": 0, "gridId": number,
    } for number, each in enumerate(of["kernel"])))  # fmt: skip
    database.add("CUPTI_ACTIVITY_KIND_MEMCPY", (
        {**work(each), "bytes": each["args"]["bytes"], "copyKind": 1, "srcKind": 0, "dstKind": 2}
        for each in of["gpu_memcpy"]))  # fmt: skip
    database.add("CUPTI_ACTIVITY_KIND_RUNTIME", (
        {"start": each["ts"], "end": each["ts"] + each["dur"], "eventClass": 0, "globalTid": thread(each),
         "correlationId": each["args"]["correlation"], "nameId": string(f"{each['name']}_v7000"), "returnValue": 0}
        for each in of["cuda_runtime"]))  # fmt: skip
    database.add("NVTX_EVENTS", (
        {"start": each["ts"], "end": each["ts"] + each["dur"], "eventType": 59, "globalTid": thread(each),
         "domainId": 0, **({"textId": string(each["name"])} if later else {"text": each["name"]})}
        for each in spans if each["cat"] in ("cpu_op", "user_annotation")))  # fmt: skip
    database.add("OSRT_API", (
        {"start": each["ts"] + 10_000, "end": each["ts"] + each["dur"] - 10_000, "globalTid": thread(each),
         "nameId": string("poll")} for each in spans if each["name"].startswith("enumerate(DataLoader)")))  # fmt: skip
    database.add("SCHED_EVENTS", [{"start": 0, "cpu": 0, "isSchedIn": 1, "globalTid": owner}])
    database.add("CUDA_GPU_MEMORY_USAGE_EVENTS", (
        {"start": each["ts"], "globalPid": owner, "deviceId": device, "contextId": 1, "address": each["args"]["Addr"],
         "bytes": abs(each["args"]["Bytes"]), "memKind": 2, "memoryOperationType": int(each["args"]["Bytes"] < 0)}
        for each in events if each["name"] == "[memory]"))  # fmt: skip
    first, last = events[0]["ts"], max(each["ts"] + each["dur"] for each in spans)
    database.add("GPU_METRICS", ({"timestamp": time, "typeId": 0x1_0000_0000_0000 | card, "metricId": 0, "value":
                                  (time // 100_000 * 7 + card) % 101}
                                 for time in range(first, last, 100_000)))  # fmt: skip
    names = sorted({(thread(each), "pt_autograd_0" if each["tid"] != PID else "python") for each in of["cuda_runtime"]})
    database.add("ThreadNames", ({"nameId": string(name), "priority": 20, "globalTid": id_} for id_, name in names))
    database.add("PROCESSES", [{"globalPid": owner, "pid": process, "name": "/usr/bin/python3"}])
    database.add("TARGET_INFO_CUDA_DEVICE", [{"gpuId": card, "cudaId": device, "pid": process,
                                              "numMultiprocessors": 108}])  # fmt: skip


def write_session(database: Database, cards: int) -> None:
    """Adds what is known of the session, and of so many cards."""
    database.add("TARGET_INFO_SESSION_START_TIME", [{"utcEpochNs": EPOCH, "utcTime": "2023-11-14T22:13:20"}])
    database.add("TARGET_INFO_SYSTEM_ENV", [{"name": "Hostname", "value": "node0"}])
    database.add("TARGET_INFO_GPU", ({
        "id": card, "name": "Synthetic A100", "totalMemory": 85_899_345_920, "smCount": 108, "threadsPerWarp": 32,
        "computeMajor": 8, "computeMinor": 0, "chipName": "GA100", "isDiscrete": 1,
    } for card in range(cards)))  # fmt: skip
    database.add("TARGET_INFO_GPU_METRICS", (
        {"typeId": 0x1_0000_0000_0000 | card, "sourceId": 1, "typeName": "GPU Metrics", "metricId": 0,
         "metricName": "SMs Active [Throughput %]"} for card in range(cards)))  # fmt: skip
    database.add("META_DATA_EXPORT", [{"name": "EXPORT_SCHEMA_VERSION", "value": "synthetic"}])
    database.add("ENUM_CUDA_MEMCPY_OPER", [{"id": 1, "name": "HtoD", "label": "Host-to-Device"}])
    database.add("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", [{"id": 2, "name": "Warning", "label": "Warning"}])
    database.close()


def write_run(
    folder: Path, *, ranks: int = 1, steps: int = 3, layers: int = 4, events: int = 0, version: int = 2025,
    together: bool = False, seed: int = 0,
) -> list[Path]:  # fmt: skip
    """Writes a run.

    Args:
        folder: Where to; it is made where it is not there.
        ranks: Processes, each with a card of its own.
        steps, layers: Steps, and layers in each.
        events: Steps until there are so many events with a duration, rather than ``steps``; 0: does not count.
        version: Year of the schema.
        together: One database of all processes, rather than one of each.
        seed: Of the random numbers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recorded: list[Rank] = []
    # the last rank is the one that others wait for
    for number in reversed(range(ranks)):
        rank = Rank(number, ranks, seed, 400_000 if 0 < number == ranks - 1 else 0,
                    recorded[0].reduced if recorded else ())  # fmt: skip
        step = complete = seen = 0
        while step < steps if not events else complete < events:
            rank.step(step, layers)
            step += 1
            complete += sum(each["ph"] == "X" for each in rank.events[seen:])
            seen = len(rank.events)
        steps, events = step, 0
        recorded.append(rank)
    paths = []
    for first in range(1 if together else ranks):
        paths.append(folder / ("run.sqlite" if together else f"run_rank{first}.sqlite"))
        database = Database(paths[-1], version)
        for number in range(ranks) if together else [first]:
            write_process(database, recorded[ranks - 1 - number].events, PID + number * 100, 0, number)
        write_session(database, ranks)
    return paths


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=1, help="processes, each with a card of its own (1)")
    parser.add_argument("--steps", type=int, default=3, help="steps of training (3)")
    parser.add_argument("--layers", type=int, default=4, help="layers of the model (4)")
    parser.add_argument("--events", type=int, default=0, help="steps until there are so many events")
    parser.add_argument("--version", type=int, default=2025, choices=(2022, 2025), help="year of the schema (2025)")
    parser.add_argument("--together", action="store_true", help="one database of all processes")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    for path in write_run(**vars(parser.parse_args())):
        print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
