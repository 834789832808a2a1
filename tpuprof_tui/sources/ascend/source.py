"""`AscendSource`: opens Ascend profiles, the folders of ranks, of msprof and of clusters, and single files of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.sources.source import RECORDINGS, ProgressCallback, Recognition, SessionEntry, Source

from .read import folders

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile


class AscendSource(Source):
    """Profiles written by the profilers of Huawei's CANN."""

    id = "ascend"
    title = "an Ascend profile"
    expected = "a folder of torch_npu or msprof (*_ascend_pt, PROF_*), of several such ranks, or a file of one"
    vocabulary = "tpuprof_tui.sources.ascend.vocabulary:VOCABULARY"
    options = (RECORDINGS,)
    priority = 3

    def recognises(self, path: Path) -> Recognition:
        """Recognises a path by names: its own, those of its entries and of its parents; else files by their content."""
        found = folders.profiles_at(path)
        if found.workers:
            first = found.workers[0]
            example = min(found.workers[0].every_file(), default=first.root)
            more = len(found.workers) - 1
            reason = f"it holds {example.name}" + (f" and {more} more ranks" if more else "")
            if all(worker.by_content for worker in found.workers):
                return Recognition("content", f"{reason}, which CANN wrote", decides=True)
            return Recognition("name", reason)
        if found.cluster:
            return Recognition("name", f"it holds {min(found.cluster)}")
        if found.raw:
            return Recognition("name", f"it holds raw output ({found.raw[0].folder.name})")
        if found.archives:
            return Recognition("content", f"{found.archives[0].name} is an archive of one", decides=True)
        return Recognition("", f"neither {folders.OUTPUT} nor files that msprof writes")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads all ranks; unreadable files become Problems; the error for raw output states how to export it."""
        from .read.profile import open_profile

        return open_profile(path, progress, options.get(RECORDINGS.name) or "")

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder if it is a rank's, an output or a cluster folder."""
        is_output = {folders.OUTPUT, folders.MSPROF} & set(names) or any(map(folders.is_own, names))
        return [folder] if is_output or any(name.endswith(("_ascend_pt", "_ascend_ms")) for name in names) else []

    def files(self, path: Path) -> Sequence[Path]:
        """The files of all ranks and of the cluster."""
        found = folders.profiles_at(path)
        return [*(file for worker in found.workers for file in worker.every_file()), *found.cluster.values(),
                *found.archives] or [path]  # fmt: skip

    def sessions(self, path: Path) -> Sequence[SessionEntry]:
        """The sessions that the folders below a folder are recordings of."""
        workers = folders.profiles_at(path).workers if path.is_dir() else ()
        if len({worker.root for worker in workers}) < 2:
            return ()
        return folders.sessions(workers)

    def whole(self, path: Path) -> Path:
        """The output folder that a file belongs to."""
        return folders.profile_path(path)


SOURCE: Final = AscendSource()
