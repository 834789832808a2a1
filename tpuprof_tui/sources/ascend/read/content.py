"""Recognises files of Ascend's profilers of any name by their content: timelines, tables, databases and archives."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.sources.source import first_bytes, last_bytes

TIMELINE, KERNELS, OPERATORS = "trace_view.json", "kernel_details.csv", "op_summary.csv"
DATABASE, ANALYSIS, CLUSTER = "ascend_pytorch_profiler.db", "analysis.db", "cluster_analysis.db"

_HEAD: Final = 1 << 16
#: Text of a packed timeline that is looked at: its end cannot be read alone.
_PACKED_HEAD: Final = 1 << 21
#: Endings of names that are looked into.
_JSON: Final = (".json", ".json.gz")
_TABLES: Final = (".csv", ".csv.gz", ".txt", ".tsv")
_DATABASES: Final = (".db", ".sqlite", ".sqlite3")
#: What only exporters of CANN write, as their two ways of writing JSON separate it; first the process of the device.
_HARDWARE: Final = b'"Ascend Hardware"'
_MARKS: Final = (
    _HARDWARE, b'"torch_to_npu"', b'"async_npu"', b'"Physic Stream Id"', b'{"name": "CANN"', b'{"name":"CANN"',
    b'"labels": "NPU', b'"labels":"NPU', b'"Task Type": "AI', b'"Task Type":"AI', b'"task type": "AI',
)  # fmt: skip
#: Operators whose times are texts: torch_npu and MindSpore, before any event of the device.
_TEXT_TIMES: Final = (b'"ts": "1', b'"ts":"1')
_OPERATOR: Final = (b'"cat": "cpu_op"', b'"cat":"cpu_op"')
#: Members that PyTorch writes before the events, and arguments that it gives to each.
_PYTORCH: Final = (b'"schemaVersion"', b'"deviceProperties"', b'"External id"', b'"Ev Idx"', b'"Record function id"')
_SQLITE: Final = b"SQLite format 3\x00"
#: Tables by which a database is known, and its role.
_OF_DATABASES: Final = (
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
_ARCHIVES: Final = (
    ".zip", ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar",
)  # fmt: skip
_PACKED_FILES: Final = tuple(f"{kind}.{how}" for kind in (".csv", ".json", ".db") for how in
                       ("zip", "bz2", "xz", "zst", "7z", "rar", *(("gz",) if kind == ".db" else ())))  # fmt: skip
#: Names that only profiles of Ascend have, of folders and of files.
_NAMES: Final = (
    r"_ascend_(?:pt|ms)\b|PROF_\d{6}_\d{17}|ASCEND_PROFILER_OUTPUT|mindstudio_profiler_output|cluster_analysis_output"
    r"|trace_view|kernel_details|op_summary|ascend_(?:pytorch|mindspore)_profiler"
)
_COMMANDS: Final = {".zip": "unzip", ".7z": "7z x", ".rar": "unrar x"}


def may_be_own(name: str) -> bool:
    """Whether a file of this name is looked into, in a folder that no name tells of."""
    return name.lower().endswith((*_JSON, *_TABLES[:2], *_DATABASES))


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace of any kind."""
    return path.name.endswith(_JSON) and b'"ph"' in first_bytes(path, 1 << 12)


def role_of_content(path: Path) -> str:
    """Name that the exporter would have given to a file, by its first (and last) bytes; empty if it is none of its.

    Raises:
        OSError: The file cannot be read.
    """
    name = path.name.lower()
    if name.endswith(_JSON):
        return TIMELINE if _is_timeline(path) else ""
    if name.endswith(_TABLES):
        return role_of_header(header_cells(first_bytes(path, _HEAD)))
    return role_of_database(path)


def _is_timeline(path: Path) -> bool:
    head = first_bytes(path, _HEAD)
    if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"[", b"{")):
        return False
    if _has(head, _PYTORCH):
        return _HARDWARE in head
    if _is_marked(head):
        return True
    if path.suffix.lower() == ".gz":
        return len(head) == _HEAD and _is_marked(first_bytes(path, _PACKED_HEAD))
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _HEAD, 0))
        return size > _HEAD and _has(file.read(_HEAD), _MARKS)


def _is_marked(text: bytes) -> bool:
    return _has(text, _MARKS) or (_has(text, _TEXT_TIMES) and _has(text, _OPERATOR))


def _has(text: bytes, any_of: tuple[bytes, ...]) -> bool:
    return any(mark in text for mark in any_of)


def role_of_header(cells: frozenset[str]) -> str:
    """Role of a table by the cells of its header; empty if it is no table of kernels."""
    if not all(each & cells for each in _HEADS):
        return ""
    return OPERATORS if "Op Name" in cells else KERNELS


def names_separator(head: bytes) -> bool:
    """Whether a table begins with a line that names its separator, as spreadsheets write it: ``sep=;``."""
    return head[:4].lower() == b"sep="


def header_cells(head: bytes) -> frozenset[str]:
    """Cells of the first line of a table, whatever its encoding and its separator."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if head.startswith(mark):
            head = head[2:].decode(encoding, "replace").encode()
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 2)
    line = lines[1] if names_separator(lines[0]) and len(lines) > 1 else lines[0]
    cells = line.decode("utf-8", "replace").replace(";", ",").replace("\t", ",").split(",")
    return frozenset(cell.strip().strip('"').strip() for cell in cells)


def role_of_database(path: Path) -> str:
    """Role of a database by its tables; empty if the file is none of Ascend's."""
    if first_bytes(path, len(_SQLITE)) != _SQLITE:
        return ""
    # few commands need it
    from .database import Database

    try:
        tables = set(Database(path, path.name).tables)
    except UnreadableError:
        return ""
    return next((role for role, known in _OF_DATABASES if known & tables), "")


def archived(path: Path) -> bool:
    """Whether a file is an archive of an Ascend profile: by its name, else by the names of its members."""
    name = path.name.lower()
    if not name.endswith((*_ARCHIVES, *_PACKED_FILES)):
        return False
    if re.search(_NAMES, path.name):
        return True
    # names of members stand in zip and tar files as they are
    members = re.compile(_NAMES.encode())
    # a zip file lists its members at its end
    ends = first_bytes(path), last_bytes(path) if name.endswith(".zip") else b""
    return not name.endswith(_PACKED_FILES) and any(map(members.search, ends))


def unpack_command(path: Path) -> str:
    """A command that unpacks an archive."""
    name = shlex.quote(str(path))
    if path.name.lower().endswith(_PACKED_FILES) and path.suffix in (".gz", ".bz2", ".xz", ".zst"):
        return {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd"}[path.suffix] + f" -k {name}"
    return f"{_COMMANDS.get(path.suffix.lower(), 'tar -xf')} {name}"
