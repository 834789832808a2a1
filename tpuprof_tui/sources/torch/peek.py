"""What the first and last bytes of traces say of their recordings, for the list of a folder: none is read whole."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tpuprof_tui.sources.chrome.peek import extent
from tpuprof_tui.sources.ranks import NamedRank, ranks_in_names
from tpuprof_tui.sources.runs import Recorded, session_entries
from tpuprof_tui.sources.source import SessionEntry, first_bytes, last_bytes

from .read.identities import job_of, naming, owner_of, worker_and_span

_BASE, _RANK, _SIZE, _GROUPS = (
    re.compile(rb'"%s"\s*:\s*(\d{1,19})' % key) for key in (b"baseTimeNanoseconds", b"rank", b"world_size", b"pg_count")
)
_BACKEND, _DEVICE, _HOST = (
    re.compile(rb'"%s"\s*:\s*"([^"\\]{1,100})"' % key) for key in (b"backend", b"name", b"host_name")
)


def sessions(files: Sequence[Path]) -> list[SessionEntry]:
    """The sessions that files are recordings of, by run and start; empty if all are ranks of one job, each once."""
    ends = [(first_bytes(path), last_bytes(path)) for path in files]
    named = ranks_in_names(list(map(naming, files)), [_text(_HOST, head) for head, _ in ends])
    found = [_recorded(path, each, *own) for path, each, own in zip(files, named, ends, strict=True)]
    return session_entries([each for each, _ in found], [path.name for path in files],
                           [os.path.getsize(path) for path in files], [guessed for _, guessed in found])  # fmt: skip


def _recorded(path: Path, named: NamedRank, head: bytes, tail: bytes) -> tuple[Recorded, bool]:
    """What both ends of a file say of the recording, and whether its rank is only that of the name."""
    distributed = head.find(b'"distributedInfo"')
    stated = head[distributed : distributed + 4096] if distributed >= 0 else b""
    rank, size, groups = (_number(pattern, stated) for pattern in (_RANK, _SIZE, _GROUPS))
    cards = head.find(b'"deviceProperties"')
    # a base stands before the events or behind them
    base = _number(_BASE, head) or _number(_BASE, tail) or 0
    start, end = extent(head, tail) or (0, 0)
    owner = owner_of(worker_and_span(path.name)[0], rank, named, size)
    recorded = Recorded(
        str(owner), start + base, (end if tail else start) + base, named.rank if rank is None else rank,
        job_of(size, _text(_BACKEND, stated) or None, groups),
        _text(_DEVICE, head[cards : cards + 4096]) if cards >= 0 else "", stage=named.stage, open_ended=not tail,
    )  # fmt: skip
    return recorded, rank is None and named.rank is not None


def _number(pattern: re.Pattern[bytes], text: bytes) -> int | None:
    match = pattern.search(text)
    return int(match[1]) if match else None


def _text(pattern: re.Pattern[bytes], text: bytes) -> str:
    match = pattern.search(text)
    return match[1].decode(errors="replace") if match else ""
