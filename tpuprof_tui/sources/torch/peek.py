"""What the first bytes of traces say of their recordings, for the list of a folder: no file is read to its end."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tpuprof_tui.sources.ranks import rank_in_name
from tpuprof_tui.sources.runs import Recorded, session_entries
from tpuprof_tui.sources.source import SessionEntry, first_bytes

from .read.identities import worker_and_span

_NUMBER: Final = rb'"%s"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)'
_TIME, _BASE, _RANK, _SIZE = (
    re.compile(_NUMBER % key) for key in (b"ts", b"baseTimeNanoseconds", b"rank", b"world_size")
)
_BACKEND, _DEVICE = (re.compile(rb'"%s"\s*:\s*"([^"\\]{1,100})"' % key) for key in (b"backend", b"name"))


def sessions(files: Sequence[Path]) -> list[SessionEntry]:
    """The sessions that files are recordings of, by run and start; empty if all are ranks of one job, each once."""
    found = [_recorded(path) for path in files]
    return session_entries([each for each, _ in found], [path.name for path in files],
                           [os.path.getsize(path) for path in files], [guessed for _, guessed in found])  # fmt: skip


def _recorded(path: Path) -> tuple[Recorded, bool]:
    """What the beginning of a file says of the recording, and whether its rank is only that of the name."""
    head = first_bytes(path)
    distributed = head.find(b'"distributedInfo"')
    stated = head[distributed : distributed + 4096] if distributed >= 0 else b""
    times = [float(match[1]) for match in _TIME.finditer(head)]
    base = _BASE.search(head)
    start = round(next((time for time in times if time), 0.0) * 1000) + (int(float(base[1])) if base else 0)
    rank, size, backend = (pattern.search(stated) for pattern in (_RANK, _SIZE, _BACKEND))
    cards = head.find(b'"deviceProperties"')
    card = _DEVICE.search(head, cards, cards + 4096) if cards >= 0 else None
    named = rank_in_name(path.name)
    worker = str(named.place) if named.place and rank is None else worker_and_span(path.name)[0]
    job = f"{size[1].decode()} {backend[1].decode() if backend else ''}" if size and float(size[1]) > 1 else ""
    if not job and named.place and "-TP-" in path.name:
        # the id of a run of SGLang
        job = path.name.partition("-TP-")[0]
    recorded = Recorded(worker, start, start, int(float(rank[1])) if rank else named.rank, job,
                        card[1].decode(errors="replace") if card else "", stage=named.stage)  # fmt: skip
    return recorded, rank is None and named.rank is not None
