"""`AscendSource`: opens Ascend profiles, the folders of ranks, of msprof and of clusters, and single files of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.chrome.peek import extent
from tpuprof_tui.sources.ranks import ranks_in_names
from tpuprof_tui.sources.runs import Recorded, session_entries
from tpuprof_tui.sources.source import (
    RECORDINGS,
    ProgressCallback,
    SessionEntry,
    Source,
    Verdict,
    first_bytes,
    last_bytes,
)

from .read import places
from .read.places import WorkerFiles, seconds_of

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: Examples of the command line's help, by command.
EXAMPLES: Final = {
    "open": """\
  tpuprof node1_4711_2026_ascend_pt           output of Ascend's profiler; the folder above: all ranks
""",
    "report": """\
  tpuprof report node1_4711_2026_ascend_pt communication cluster
""",
}


class AscendSource(Source):
    """Profiles written by the profilers of Huawei's CANN."""

    id = "ascend"
    title = "an Ascend profile"
    expected = "a folder of torch_npu or msprof (*_ascend_pt, PROF_*), of several such ranks, or a file of one"
    vocabulary = "tpuprof_tui.sources.ascend.vocabulary:VOCABULARY"
    options = (RECORDINGS,)
    priority = 3

    def recognises(self, path: Path) -> Verdict:
        """Recognises a path by names: its own, those of its entries and of its parents; else files by their content."""
        found = places.found_at(path)
        if found.workers:
            first = found.workers[0]
            example = min(found.workers[0].every_file(), default=first.root)
            more = len(found.workers) - 1
            reason = f"it holds {example.name}" + (f" and {more} more ranks" if more else "")
            if all(worker.by_content for worker in found.workers):
                return Verdict("content", f"{reason}, which CANN wrote", decides=True)
            return Verdict("name", reason)
        if found.cluster:
            return Verdict("name", f"it holds {min(found.cluster)}")
        if found.raw:
            return Verdict("name", f"it holds raw output ({found.raw[0].folder.name})")
        if found.archives:
            return Verdict("content", f"{found.archives[0].name} is an archive of one", decides=True)
        return Verdict("", f"neither {places.OUTPUT} nor files that msprof writes")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads all ranks; unreadable files become Problems; the error for raw output states how to export it."""
        from .read.profile import open_profile

        return open_profile(path, progress, options.get(RECORDINGS.name) or "")

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder if it is a rank's, an output or a cluster folder."""
        is_output = {places.OUTPUT, places.MSPROF} & set(names) or any(map(places.is_own, names))
        return [folder] if is_output or any(name.endswith(("_ascend_pt", "_ascend_ms")) for name in names) else []

    def files(self, path: Path) -> Sequence[Path]:
        """The files of all ranks and of the cluster."""
        found = places.found_at(path)
        return [*(file for worker in found.workers for file in worker.every_file()), *found.cluster.values(),
                *found.archives] or [path]  # fmt: skip

    def sessions(self, path: Path) -> Sequence[SessionEntry]:
        """The sessions that the folders below a folder are recordings of."""
        workers = places.found_at(path).workers if path.is_dir() else ()
        if len({worker.root for worker in workers}) < 2:
            return ()

        return sessions(workers)

    def whole(self, path: Path) -> Path:
        """The output folder that a file belongs to."""
        return places.profile_path(path)


SOURCE: Final = AscendSource()

#: Host and process, and time of the start, in the name of a rank's folder.
_NAME: Final = lazy_pattern(r"(.+_\d+)_(\d{14})\d*_ascend_(?:pt|ms)")


def sessions(workers: Sequence[WorkerFiles]) -> list[SessionEntry]:
    """The sessions that workers are recordings of, by run and start; empty if all are ranks of one run, each once."""
    folders = {worker.root: worker for worker in workers}
    named = [each.rank for each in ranks_in_names([root.name for root in folders])]
    above = [each.rank for each in ranks_in_names([root.parent.name for root in folders])]
    extents = list(map(_extent, folders.values()))
    timed = None not in extents
    recordings, guessed = [], []
    for (root, worker), own, of_parent, times in zip(folders.items(), named, above, extents, strict=True):
        match = _NAME.fullmatch(root.name)
        guess = of_parent if own is None else own
        rank = guess if worker.rank_of_file is None else worker.rank_of_file
        # clocks of timelines and times of names do not compare
        start, end = times if timed and times is not None else (seconds_of(match[2]) * 10**9 if match else 0,) * 2
        recordings.append(Recorded(match[1] if match else root.name, start, end, rank,
                                   "" if rank is None else "ranks", open_ended=not timed))  # fmt: skip
        guessed.append(worker.rank_of_file is None)
    # ranks that no name tells are those of one run, unless a process was recorded twice or times tell
    known = timed or all(each.rank is not None for each in recordings)
    if not known and len({each.worker for each in recordings}) == len(recordings):
        return []
    sizes = [sum(os.path.getsize(file) for file in worker.every_file() if file.is_file())
             for worker in folders.values()]  # fmt: skip
    return session_entries(recordings, [root.name for root in folders], sizes, guessed)


def _extent(worker: WorkerFiles) -> tuple[int, int] | None:
    """First and last time of its timeline, ns; None if it has none whose end is known."""
    files = worker.paths(worker.timeline_role)
    tails = list(map(last_bytes, files))
    found = [extent(first_bytes(file), tail) for file, tail in zip(files, tails, strict=True)]
    known = [each for each in found if each is not None]
    if not all(tails) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)
