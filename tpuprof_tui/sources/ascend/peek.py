"""What names of folders and both ends of timelines say of recordings, for the list of a folder of several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.chrome.peek import extent
from tpuprof_tui.sources.ranks import ranks_in_names
from tpuprof_tui.sources.runs import Recorded, session_entries
from tpuprof_tui.sources.source import SessionEntry, first_bytes, last_bytes

from .read.folders import WorkerFiles, seconds_of

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
