"""Whose recording each trace is: its rank, stated or guessed from names, and which recording of that rank."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.chrome.times import extent
from tpuprof_tui.sources.rank_names import NamedRank, rank_in_name, ranks_in_names
from tpuprof_tui.sources.runs import UnplacedRecording, session_entries
from tpuprof_tui.sources.source import SessionEntry, file_size, first_bytes, last_bytes

from ..records import distributed_info
from .trace import Trace

_SUFFIX: Final = lazy_pattern(
    r"(?:\.(\d+))?(?:\.pt\.trace)?\.(?:json|pftrace|perfetto-trace)(?:\.gz|\.zst|\.bz2|\.xz)?$|\.(?:sqlite3?|db)$"
)
_RANK_FOLDER: Final = lazy_pattern(r"rank[ _=-]?\d{1,7}", re.IGNORECASE)
#: File names of tensorboard_trace_handler: host, process id, timestamp.
_HOST: Final = lazy_pattern(r"(.+)_\d+(?:\.\d+)?\.pt\.trace\.json")


class Identity(Struct, frozen=True):
    """Whose recording a trace is."""

    owner: tuple[Any, ...]  #: What recordings of one rank, or of one worker without a rank, have in common
    key: str  #: Unique name of the recording; with ``~`` if it is that of a guessed rank
    name: str  #: Worker name from the file name
    rank: int | None  #: Rank; None if unknown
    guessed: bool  #: Whether the rank is that of a name
    stage: str  #: Word in the file name for what a server computed; empty if none
    span: int  #: Number of the recording among the owner's, from 1, by time
    #: Stage, and number of the recording among the owner's of that stage: equal ones of ranks compare.
    session: tuple[str, int]


def worker_and_span(name: str) -> tuple[str, str]:
    """Worker name in a file name, and the digits of its span; empty if it has none."""
    match = _SUFFIX.search(name)
    return (name[: match.start()], match[1] or "") if match else (name, "")


def stated_rank(trace: Trace) -> int | None:
    """The rank that a trace states; None if none."""
    rank = distributed_info(trace.metadata).get("rank")
    return rank if type(rank) is int and 0 <= rank < 1 << 31 else None


def begun_ns(trace: Trace) -> int:
    """Time of the earliest event, ns: since 1970 in most files, else on a clock of the host."""
    base = trace.metadata.get("baseTimeNanoseconds")
    return trace.zero_ns + (base if type(base) is int and abs(base) < 1 << 62 else 0)


def host_of(trace: Trace) -> str:
    """Name of the machine that a trace states, else that of its file's name; empty if unknown."""
    stated, named = trace.metadata.get("host_name"), _HOST.match(trace.path.name)
    return stated if stated and isinstance(stated, str) else named[1] if named else ""


def in_order(traces: Sequence[Trace]) -> list[Trace]:
    """Traces by rank, then time, if all have a rank and are of one run by its size; else as they are."""
    ranks = [rank for rank, _ in _ranks(traces)]
    sizes = {str(distributed_info(trace.metadata).get("world_size")) for trace in traces}
    if None in ranks or len(sizes) > 1:
        return list(traces)
    order = sorted(range(len(traces)), key=lambda index: (ranks[index] or 0, begun_ns(traces[index])))
    return [traces[index] for index in order]


def owner_of(name: str, stated: int | None, named: NamedRank, size: Any, part: str = "") -> tuple[Any, ...]:
    """What recordings of one rank, or of one worker without a rank, have in common.

    Args:
        name: Worker name in the file name.
        stated: The rank that the file states; None if none.
        named: What its name says of the rank.
        size: Number of ranks that the file states.
        part: The part of a merged file.
    """
    rank, place = (named.rank, named.place) if stated is None else (stated, ())
    # a process alone, or without a rank, is known by its name, but for the stage in it
    alone = size == 1 or (rank is None and not place)
    apart = (re.sub(rf"[-_.]?{named.stage}", "", name) if named.stage else name, part) if alone else ()
    return rank, place, str(size), apart


def job_of(size: Any, backend: Any, groups: Any) -> str:
    """What the ranks of a job have in common: number of ranks, back end, process groups; empty: a process alone."""
    return f"{size} {backend} {groups}" if type(size) is int and 1 < size < 1 << 62 else ""


def identities(traces: Sequence[Trace], clocks: Sequence[int]) -> list[Identity]:
    """Whose recording each trace is.

    Args:
        traces: The traces of a folder, or of a file.
        clocks: Clock reading of each at its zero, ns.
    """
    ranks = _ranks(traces)
    names = [worker_and_span(trace.path.name) for trace in traces]
    owners = [owner_of(name, stated_rank(trace), named, distributed_info(trace.metadata).get("world_size"), trace.part)
              for (name, _), (_, named), trace in zip(names, ranks, traces, strict=True)]  # fmt: skip
    recordings: dict[tuple[Any, ...], list[int]] = {}
    for index, owner in enumerate(owners):
        recordings.setdefault(owner, []).append(index)
    shared = Counter(owner[0] for owner in recordings)
    several = len(recordings) < len(traces)
    found: dict[int, Identity] = {}
    taken: set[str] = set()
    for owner, own in recordings.items():
        same_name = len({names[index][0] for index in own}) == 1
        # digits of names are times
        own.sort(key=lambda index: (len(names[index][1]), names[index][1]) if same_name else (clocks[index], ""))
        stages = [ranks[index][1].stage for index in own]
        rank = ranks[own[0]][0]
        for span, index in enumerate(own, start=1):
            stage = ranks[index][1].stage
            name = f"{names[index][0]} {traces[index].part}".rstrip()
            title = f"Rank {rank}" if rank is not None and shared[owner[0]] == 1 else name
            guessed = rank is not None and stated_rank(traces[index]) is None
            mark = " ~" if guessed and title != name else ""
            if several and stage and stages.count(stage) == 1 and title != name:
                key = f"{title} {stage}{mark}"
            else:
                key = f"{title}{mark}" if len(own) == 1 else f"{name}@{span}" if same_name else name
            if key in taken:
                key = f"{traces[index].path.name} {traces[index].part}".rstrip()
            taken.add(key)
            found[index] = Identity(owner, key, name, rank, guessed, stage, span,
                                    (stage, stages[:span].count(stage)))  # fmt: skip
    return [found[index] for index in range(len(traces))]


def naming(path: Path) -> str:
    """The name of a file; that of a folder of one rank before it, if it says no rank itself."""
    folder = Path(os.path.abspath(path)).parent.name
    named = _RANK_FOLDER.fullmatch(folder) and not rank_in_name(path.name).place
    return f"{folder}_{path.name}" if named else path.name


def _ranks(traces: Sequence[Trace]) -> list[tuple[int | None, NamedRank]]:
    """The rank of each trace, stated or else named, and what its name says."""
    names = [trace.part or naming(trace.path) for trace in traces]
    named = ranks_in_names(names, [str(trace.metadata.get("host_name") or "") for trace in traces])
    stated = [stated_rank(trace) for trace in traces]
    return [(each.rank if rank is None else rank, each) for rank, each in zip(stated, named, strict=True)]


# -- the list of a folder: what the first and last bytes of traces say, none is read whole

_BASE, _RANK, _SIZE, _GROUPS = (
    re.compile(rb'"%s"\s*:\s*(\d{1,19})' % key) for key in (b"baseTimeNanoseconds", b"rank", b"world_size", b"pg_count")
)
_BACKEND, _DEVICE, _HOST_NAME = (
    re.compile(rb'"%s"\s*:\s*"([^"\\]{1,100})"' % key) for key in (b"backend", b"name", b"host_name")
)


def sessions(files: Sequence[Path]) -> list[SessionEntry]:
    """The sessions that files are recordings of, by run and start; empty if all are ranks of one job, each once."""
    ends = [(first_bytes(path), last_bytes(path)) for path in files]
    named = ranks_in_names(list(map(naming, files)), [_text(_HOST_NAME, head) for head, _ in ends])
    found = [_recorded(path, each, *own) for path, each, own in zip(files, named, ends, strict=True)]
    return session_entries([each for each, _ in found], [path.name for path in files],
                           [*map(file_size, files)], [guessed for _, guessed in found])  # fmt: skip


def _recorded(path: Path, named: NamedRank, head: bytes, tail: bytes) -> tuple[UnplacedRecording, bool]:
    """What both ends of a file say of the recording, and whether its rank is only that of the name."""
    distributed = head.find(b'"distributedInfo"')
    stated = head[distributed : distributed + 4096] if distributed >= 0 else b""
    rank, size, groups = (_number(pattern, stated) for pattern in (_RANK, _SIZE, _GROUPS))
    cards = head.find(b'"deviceProperties"')
    # a base stands before the events or behind them
    base = _number(_BASE, head) or _number(_BASE, tail) or 0
    start, end = extent(head, tail) or (0, 0)
    owner = owner_of(worker_and_span(path.name)[0], rank, named, size)
    recorded = UnplacedRecording(
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
