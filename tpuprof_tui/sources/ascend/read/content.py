"""Recognises files of Ascend's profilers by their content: timelines, kernel tables and databases of any name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tpuprof_tui.sources.source import first_bytes

TIMELINE, KERNELS, OPERATORS = "trace_view.json", "kernel_details.csv", "op_summary.csv"
DATABASE, ANALYSIS, CLUSTER = "ascend_pytorch_profiler.db", "analysis.db", "cluster_analysis.db"

_HEAD: Final = 1 << 16
#: Text of a packed timeline that is looked at: its end cannot be read alone.
_PACKED_HEAD: Final = 1 << 21
_JSON: Final = re.compile(r".*\.json(?:\.gz)?", re.IGNORECASE)
_TABLE: Final = re.compile(r".*\.(?:csv|txt|tsv)(?:\.gz)?", re.IGNORECASE)
_BEGINS: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
#: Process of the device; what else only exporters of CANN write.
_HARDWARE: Final = re.compile(rb'"name"\s*:\s*"Ascend Hardware"')
_MARKS: Final = re.compile(
    rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:Ascend Hardware|CANN)"|"labels"\s*:\s*"NPU\b'
    rb'|"(?:torch_to_npu|async_npu|Physic Stream Id)"'
    rb'|"[Tt]ask [Tt]ype"\s*:\s*"(?:AI_?CORE|AI_VECTOR_CORE|MIX_AI[CV]|AI_CPU)'
)
#: Operators whose times are texts: torch_npu and MindSpore, before any event of the device.
_TEXT_TIMES: Final = re.compile(rb'"ts"\s*:\s*"\d{10,}(?:\.\d+)?"')
_OPERATOR: Final = re.compile(rb'"cat"\s*:\s*"cpu_op"')
#: Members that PyTorch writes before the events.
_PYTORCH: Final = re.compile(rb'"(?:schemaVersion|deviceProperties|distributedInfo|traceName)"\s*:')
_SQLITE: Final = b"SQLite format 3\x00"
#: Tables by which a database is known, and its role.
_TABLES: Final = (
    (DATABASE, {"COMPUTE_TASK_INFO", "CANN_API", "PYTORCH_API", "COMMUNICATION_OP"}),
    (ANALYSIS, {"StepTraceTime", "CommAnalyzerTime"}),
    (CLUSTER, {"ClusterStepTraceTime", "ClusterCommAnalyzerTime", "ClusterCommunicationTime"}),
)  # fmt: skip
#: Cells of a header of kernels: their name, start and duration, and one that other tables with these lack.
_HEADS: Final = (
    {"Name", "Op Name"}, {"Start Time(us)", "Task Start Time(us)", "Task Start Time"},
    {"Duration(us)", "Task Duration(us)"},
    {"Accelerator Core", "Task Type", "Wait Time(us)", "Task Wait Time(us)", "Block Dim", "Block Num", "Stream ID"},
)  # fmt: skip


def role_of_content(path: Path) -> str:
    """Name that the exporter would have given to a file, by its first (and last) bytes; empty if it is none of its.

    Raises:
        OSError: The file cannot be read.
    """
    name = path.name
    if _JSON.fullmatch(name):
        return TIMELINE if _is_timeline(path) else ""
    if _TABLE.fullmatch(name):
        return role_of_header(header_cells(first_bytes(path, _HEAD)))
    return role_of_database(path)


def _is_timeline(path: Path) -> bool:
    head = first_bytes(path, _HEAD)
    if not _BEGINS.match(head):
        return False
    if _PYTORCH.search(head):
        return _HARDWARE.search(head) is not None
    if _is_marked(head):
        return True
    if path.suffix == ".gz":
        return len(head) == _HEAD and _is_marked(first_bytes(path, _PACKED_HEAD))
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _HEAD, 0))
        return size > _HEAD and _MARKS.search(file.read(_HEAD)) is not None


def _is_marked(text: bytes) -> bool:
    return _MARKS.search(text) is not None or bool(_TEXT_TIMES.search(text) and _OPERATOR.search(text))


def role_of_header(cells: frozenset[str]) -> str:
    """Role of a table by the cells of its header; empty if it is no table of kernels."""
    if not all(each & cells for each in _HEADS):
        return ""
    return OPERATORS if "Op Name" in cells else KERNELS


def header_cells(head: bytes) -> frozenset[str]:
    """Cells of the first line of a table, whatever its encoding and its separator."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if head.startswith(mark):
            head = head[2:].decode(encoding, "replace").encode()
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)
    line = lines[1] if lines[0].lower().startswith(b"sep=") and len(lines) > 1 else lines[0]
    return frozenset(cell.strip().strip('"').strip() for cell in re.split("[,;\t]", line.decode("utf-8", "replace")))


def role_of_database(path: Path) -> str:
    """Role of a database by its tables; empty if the file is none of Ascend's."""
    if first_bytes(path, len(_SQLITE)) != _SQLITE:
        return ""
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    try:
        uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            tables = {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.Error:
        return ""
    return next((role for role, known in _TABLES if known & tables), "")
