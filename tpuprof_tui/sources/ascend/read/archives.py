"""Recognises archives of Ascend profiles, which must be unpacked before they can be read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from tpuprof_tui.sources.source import first_bytes, last_bytes

_ARCHIVES: Final = (
    ".zip", ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar",
)  # fmt: skip
_PACKED: Final = tuple(f"{kind}.{how}" for kind in (".csv", ".json", ".db") for how in
                       ("zip", "bz2", "xz", "zst", "7z", "rar", *(("gz",) if kind == ".db" else ())))  # fmt: skip
#: Names that only profiles of Ascend have, of folders and of files.
_NAMES: Final = (
    r"_ascend_(?:pt|ms)\b|PROF_\d{6}_\d{17}|ASCEND_PROFILER_OUTPUT|mindstudio_profiler_output|cluster_analysis_output"
    r"|trace_view|kernel_details|op_summary|ascend_(?:pytorch|mindspore)_profiler"
)
_COMMANDS: Final = {".zip": "unzip", ".7z": "7z x", ".rar": "unrar x"}


def archived(path: Path) -> bool:
    """Whether a file is an archive of an Ascend profile: by its name, else by the names of its members."""
    name = path.name.lower()
    if not name.endswith((*_ARCHIVES, *_PACKED)):
        return False
    if re.search(_NAMES, path.name):
        return True
    # names of members stand in zip and tar files as they are
    members = re.compile(_NAMES.encode())
    # a zip file lists its members at its end
    ends = first_bytes(path), last_bytes(path) if name.endswith(".zip") else b""
    return not name.endswith(_PACKED) and any(map(members.search, ends))


def unpack_command(path: Path) -> str:
    """A command that unpacks an archive."""
    name = shlex.quote(str(path))
    if path.name.lower().endswith(_PACKED) and path.suffix in (".gz", ".bz2", ".xz", ".zst"):
        return {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd"}[path.suffix] + f" -k {name}"
    return f"{_COMMANDS.get(path.suffix.lower(), 'tar -xf')} {name}"
