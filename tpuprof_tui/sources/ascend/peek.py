"""What names of folders say of the recordings in them, for the list of a folder of several."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Final

from tpuprof_tui.sources.ranks import ranks_in_names
from tpuprof_tui.sources.runs import Recorded, session_entries
from tpuprof_tui.sources.source import SessionEntry

from .read.places import WorkerFiles

#: Host and process, and time of the start, in the name of a rank's folder.
_NAME: Final = re.compile(r"(.+_\d+)_(\d{14})\d*_ascend_(?:pt|ms)")


def sessions(workers: Sequence[WorkerFiles]) -> list[SessionEntry]:
    """The sessions that workers are recordings of, by run and start; empty if all are ranks of one run, each once."""
    folders = {worker.root: worker for worker in workers}
    named = ranks_in_names([root.name for root in folders])
    recordings, sizes, guessed = [], [], []
    for (root, worker), guess in zip(folders.items(), named, strict=True):
        match = _NAME.fullmatch(root.name)
        rank = guess.rank if worker.rank_of_file is None else worker.rank_of_file
        start = _ns(match[2]) if match else 0
        recordings.append(
            Recorded(match[1] if match else root.name, start, start, rank, "" if rank is None else "ranks")
        )
        guessed.append(worker.rank_of_file is None)
        sizes.append(sum(os.path.getsize(file) for file in worker.every_file() if file.is_file()))
    # ranks that no name tells are those of one run, unless a process was recorded twice
    known = all(each.rank is not None for each in recordings)
    if not known and len({each.worker for each in recordings}) == len(recordings):
        return []
    return session_entries(recordings, [root.name for root in folders], sizes, guessed)


def _ns(text: str) -> int:
    """The time in a name, ns since 1970, as if it were UTC; 0 if it is none."""
    try:
        return int(datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc).timestamp()) * 10**9
    except ValueError:
        return 0
