"""`SnapshotSource`: opens memory snapshots of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import ProgressCallback, Recognition, Source, first_bytes

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

_NAMED: Final = lazy_pattern(r"(?i:.*(?:snapshot|memory).*\.(?:pickle|pkl)(?:\.gz)?)")
#: A pickle of protocol 2 to 5 that begins with a dict, or a list of segments.
_BEGINNING: Final = lazy_pattern(rb"(?s)\x80[\x02-\x05](?:\x95.{8})?[}\]]")
_KEYS: Final = (b"segments", b"device_traces", b"segment_type", b"total_size")


class SnapshotSource(Source):
    """Memory snapshots of PyTorch's caching allocator."""

    id = "snapshot"
    title = "a memory snapshot of PyTorch"
    expected = "a memory snapshot of PyTorch (*.pickle[.gz])"
    vocabulary = "tpuprof_tui.sources.snapshot.vocabulary:VOCABULARY"
    priority = 4

    def recognises(self, path: Path) -> Recognition:
        """Recognises a file by its first bytes alone: pickles have many uses."""
        head = first_bytes(path, 4096)
        if _BEGINNING.match(head) and any(key in head for key in _KEYS):
            return Recognition("content", "it is a pickle with segments of memory")
        return Recognition("", "no pickle with segments of memory at its beginning")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a snapshot; nothing in it is imported or executed."""
        from .read.profile import read

        return read(path, progress)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """Pickles that are named after a snapshot or memory."""
        return [folder / name for name in names if _NAMED.fullmatch(name)]


SOURCE: Final = SnapshotSource()
