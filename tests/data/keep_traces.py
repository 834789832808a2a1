"""Packs what tests need of public profiles: ``python tests/data/keep_traces.py FOLDER...``.

Each ``FOLDER`` is one that ``traces/README.md`` names, with what other tools say of it beside it. Kept of Ascend's are
all tasks, operators, calls and links, digit by digit, so the figures of the exporter's own csv files are those of what
is kept; left out are files, columns and arguments that no test looks at, stack frames, and most counters. Traces of
PyTorch stay as they are. Of the figures of other tools those are kept that tests look at.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import sys
import tarfile
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
#: Kept as they are.
WHOLE: Final = (
    "api_statistic.csv", "op_statistic.csv", "step_trace_time.csv", "profiler_info_0.json", "profiler_info_1.json",
    "h100.pt.trace.json.gz", "gpu_timeline.csv", "kernel_summary.csv",
)  # fmt: skip
#: Tables of which some columns are kept.
COLUMNS: Final = {
    "kernel_details.csv": ("Step Id", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)",
                           "Wait Time(us)", "Block Dim"),
    "operator_details.csv": ("Name", "Host Total Duration(us)", "Device Self Duration(us)"),
    "memory_record.csv": ("Component", "Timestamp(us)", "Total Reserved(MB)"),
}  # fmt: skip
#: Objects of which some members are kept, by the keys that lead there.
MEMBERS: Final = {
    "oracle_hta.json": (("gpu_kernel_breakdown", "by_kernel_total"), ("profiler_steps",)),
    "oracle_perfetto.json": (("threads",), ("flows",)),
    "oracle_tb.json": (("profiles",),),
}
#: Of timelines: arguments, and processes of the counters, that are kept.
ARGUMENTS: Final = frozenset(
    ("name", "Task Type", "task type", "connection_id", "size(Byte)", "level", "KB", "MHz", "Hit Rate(%)",
     "Throughput(MB/s)")
)  # fmt: skip
COUNTERS: Final = ("AI Core Freq", "LLC", "NPU MEM")


def main(folder: Path) -> None:
    """Writes ``traces/NAME.tar.xz``."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            content = kept(file)
            if content is not None:
                member = tarfile.TarInfo(file.relative_to(folder).as_posix())
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    target = HERE / "traces" / f"{folder.name}.tar.xz"
    target.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{target}: {target.stat().st_size:,} bytes of {len(packed.getvalue()):,}")


def kept(file: Path) -> bytes | None:
    """What stays of a file; None where nothing does."""
    if file.name in WHOLE:
        return file.read_bytes()
    if file.name in COLUMNS:
        return kept_columns(file)
    if file.name in MEMBERS:
        return kept_members(file)
    return kept_events(file) if file.name == "trace_view.json" else None


def kept_columns(file: Path) -> bytes:
    """A table with some of its columns; cells as they stand, the tab behind times included."""
    text = io.StringIO()
    with file.open(newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(text, COLUMNS[file.name], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv.DictReader(stream))
    return text.getvalue().encode()


def kept_members(file: Path) -> bytes:
    """An object with some of its members."""
    whole = json.loads(file.read_bytes(), parse_float=Decimal)
    result: dict[str, Any] = {}
    for path in MEMBERS[file.name]:
        into, value = result, whole
        for key in path[:-1]:
            into, value = into.setdefault(key, {}), value[key]
        into[path[-1]] = value[path[-1]]
    if file.name == "oracle_tb.json":
        steps = [each["overview"]["exact_steps_us"] for each in result["profiles"]]
        result["profiles"] = [{"overview": {"exact_steps_us": each}} for each in steps]
    return spelled(result).encode()


def kept_events(file: Path) -> bytes:
    """A timeline without stack frames and most counters, its events with some of their arguments."""
    events = json.loads(file.read_bytes(), parse_float=Decimal)
    processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    lines = []
    for each in events:
        counted = each["ph"] == "C" and processes[each["pid"]] not in COUNTERS
        if counted or each.get("cat") == "python_function":
            continue
        if "args" in each:
            each["args"] = {key: value for key, value in each["args"].items() if key in ARGUMENTS}
        lines.append(spelled(each))
    return ("[" + ",\n".join(lines) + "]\n").encode()


def spelled(value: Any) -> str:
    """JSON that keeps the digits of decimals."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{spelled(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(Path(name))
