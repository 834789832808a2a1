"""What the first bytes of traces say of their recordings, for the list of a folder: no file is read to its end."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tpuprof_tui.model.profile import time_of_day
from tpuprof_tui.sources.ranks import rank_in_name
from tpuprof_tui.sources.runs import Recorded, places_of
from tpuprof_tui.sources.source import SessionEntry, first_bytes

from .read.identities import worker_and_span

_NUMBER: Final = rb'"%s"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)'
_TIME, _BASE, _RANK, _SIZE = (
    re.compile(_NUMBER % key) for key in (b"ts", b"baseTimeNanoseconds", b"rank", b"world_size")
)
_BACKEND, _DEVICE = (re.compile(rb'"%s"\s*:\s*"([^"\\]{1,100})"' % key) for key in (b"backend", b"name"))


class _Beginning(Struct, frozen=True):
    """What the beginning of a file says of the recording, whose end is not known; whether the rank is the name's."""

    path: Path
    recorded: Recorded
    guessed: bool


def sessions(files: Sequence[Path]) -> list[SessionEntry]:
    """The sessions that files are recordings of, by run and start; empty if all are ranks of one job, each once."""
    found = [_beginning(path) for path in files]
    whose = {(each.recorded.job, each.recorded.rank) for each in found}
    if len(whose) == len(found) and None not in {rank for _, rank in whose} and len({job for job, _ in whose}) == 1:
        return []
    places = places_of([each.recorded for each in found])
    members: list[tuple[int, list[_Beginning]]] = []
    first: dict[tuple[int, str], int] = {}
    for place, each in sorted(zip(places, found, strict=True), key=lambda pair: pair[1].recorded.start):
        first.setdefault((place.run, each.recorded.stage), each.recorded.start)
    rows = [(place.run, first[place.run, each.recorded.stage], each.recorded.start, each)
            for place, each in zip(places, found, strict=True)]  # fmt: skip
    for run, _, _, each in sorted(rows, key=lambda row: row[:3]):
        if (
            not members
            or members[-1][0] != run
            or members[-1][1][0].recorded.stage != each.recorded.stage
            or each.recorded.who in {other.recorded.who for other in members[-1][1]}
        ):
            members.append((run, []))
        members[-1][1].append(each)
    return [_entry(run, each) for run, each in members]


def _entry(run: int, members: Sequence[_Beginning]) -> SessionEntry:
    ranks = sorted({each.recorded.rank for each in members if each.recorded.rank is not None})
    named = " ~" if any(each.guessed for each in members) else ""
    devices = dict.fromkeys(each.recorded.device for each in members if each.recorded.device)
    begun = [start for each in members if (start := time_of_day(each.recorded.start)) is not None]
    return SessionEntry(
        tuple(each.path.name for each in members), run + 1, ", ".join(map(str, ranks)) + named, ", ".join(devices),
        min(begun, default=None), sum(os.path.getsize(each.path) for each in members),
    )  # fmt: skip


def _beginning(path: Path) -> _Beginning:
    head = first_bytes(path)
    distributed = head.find(b'"distributedInfo"')
    stated = head[distributed : distributed + 4096] if distributed >= 0 else b""
    times = [float(match[1]) for match in _TIME.finditer(head)]
    base = _BASE.search(head)
    start = round(next((time for time in times if time), 0.0) * 1000) + (int(base[1]) if base else 0)
    rank, size, backend = (pattern.search(stated) for pattern in (_RANK, _SIZE, _BACKEND))
    cards = head.find(b'"deviceProperties"')
    card = _DEVICE.search(head, cards, cards + 4096) if cards >= 0 else None
    named = rank_in_name(path.name)
    worker = str(named.place) if named.place and rank is None else worker_and_span(path.name)[0]
    of_job = f"{size[1].decode()} {backend[1].decode() if backend else ''}" if size and int(size[1]) > 1 else ""
    if not of_job and named.place and "-TP-" in path.name:
        # the id of a run of SGLang
        of_job = path.name.partition("-TP-")[0]
    recorded = Recorded(worker, start, start, int(rank[1]) if rank else named.rank, of_job,
                        card[1].decode(errors="replace") if card else "", stage=named.stage)  # fmt: skip
    return _Beginning(path, recorded, rank is None and named.rank is not None)
