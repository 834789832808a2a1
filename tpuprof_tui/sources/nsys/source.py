"""`NsysSource`: opens databases of Nsight Systems, one file or a folder of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import (
    RECORDINGS,
    Progress,
    ProgressCallback,
    Recognition,
    Source,
    chosen_files,
    file_size,
    first_bytes,
    natural_order,
)

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

_NAMED: Final = lazy_pattern(r"(?s).*\.(?:sqlite3?|db)")
_SQLITE: Final = b"SQLite format 3\0"
#: How the names of tables of events begin, beside the one of texts that they refer to.
_EVENTS: Final = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "OSRT_API", "GPU_METRICS")
_TEXTS: Final = "StringIds"


class NsysSource(Source):
    """Databases of Nsight Systems."""

    id = "nsys"
    title = "a database of Nsight Systems"
    expected = "a database of Nsight Systems (`nsys export --type sqlite`) or a folder of them"
    vocabulary = "tpuprof_tui.sources.nsys.vocabulary:VOCABULARY"
    priority = 4
    options = (RECORDINGS,)

    def recognises(self, path: Path) -> Recognition:
        """Recognises a path by the tables of the database."""
        found = self.files(path)
        if not found:
            return Recognition("", "no SQLite database with StringIds and tables of events of Nsight Systems")
        tables = "its tables are those of Nsight Systems"
        return Recognition("content", f"it holds {found[0].name}" if os.path.isdir(path) else tables)

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a file, or all files of a folder; a file of a folder that cannot be read becomes a Problem."""
        from .read.recording import read

        files = chosen_files(self.files(path), options)

        def report(text: str) -> None:
            if progress is not None:
                progress(Progress(text, 0, 0))

        return read(path, files, report)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder if it holds several databases of Nsight Systems, else its one."""
        found = _databases(folder, names)
        return [folder] if len(found) > 1 else found

    def files(self, path: Path) -> Sequence[Path]:
        """The file itself, or the databases of a folder, by name; none if none is of Nsight Systems."""
        return _databases(path, os.listdir(path)) if os.path.isdir(path) else [path] if _is_nsys(path) else []


def _databases(folder: Path, names: Sequence[str]) -> list[Path]:
    named = sorted(filter(_NAMED.fullmatch, names), key=natural_order)
    found = {folder / name: _is_nsys(folder / name) for name in named}
    return [path for path, known in found.items() if known or (known is None and True in found.values())]


def _is_nsys(path: Path) -> bool | None:
    """Whether a file is such a database; None: it is empty, gone or cut, so that only files beside it tell."""
    if not file_size(path):
        return None if path.is_file() or not path.exists() else False
    if first_bytes(path, len(_SQLITE)) != _SQLITE:
        return False
    from tpuprof_tui.errors import UnreadableError
    from tpuprof_tui.sources.sqlite import SqliteFile

    try:
        tables = SqliteFile(path, path.name).tables
    except UnreadableError:
        return _TEXTS.encode() in first_bytes(path, 1 << 20) or None
    return _TEXTS in tables and any(table.startswith(_EVENTS) for table in tables)


SOURCE: Final = NsysSource()
