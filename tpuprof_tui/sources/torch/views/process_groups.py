"""Collectives of a rank by process group: bandwidth as nccl-tests define it, and how long before the last rank it came.

Algorithm bandwidth is the size of the message over the time; bus bandwidth what each link has to carry of it, which can
be compared with what it can: by `_FACTORS` of n ranks. The size is the whole output of an all-gather, the whole input
of a reduce-scatter. Time is the transfer where ranks can be compared, else all of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.pivot import Frame, Groups, any_true, key, mean_known, most, pivot, rows, total, total_known
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.table import Table as Records
from tpuprof_tui.views.answer import Column

I64 = npt.NDArray[np.int64]
COLUMNS: Final = (
    Column("worker", "Worker"), Column("group", "Group"), Column("name", "Name", narrows="name"),
    Column("ranks", "Ranks", "number", spare=3, guess="ranks_guessed"), Column("calls", "Calls", "count"),
    Column("bytes", "Message", "bytes", spare=2), Column("time_us", "Time", "duration", bar=True),
    Column("algorithm_gb_per_s", "Alg. GB/s", "number", spare=4),
    Column("bus_gb_per_s", "Bus GB/s", "number", guess="ranks_guessed"),
    Column("skew_us", "Skew", "duration"), Column("max_skew_us", "Max skew", "duration", spare=1),
    Column("ranks_guessed", "Ranks guessed", "flag", shown=False),
)  # fmt: skip
NOTE: Final = ("Bus GB/s: what each link carries, as nccl-tests count it. Skew: how long the rank was in it before the "
               "last one came, on average.")  # fmt: skip
GUESSED: Final = "~ The file does not tell the ranks of the group: it may have fewer than the world."


def _all_but_own(ranks: int) -> float:
    return (ranks - 1) / ranks


#: What links carry of the size of a message, by the beginning of the collective's name; of n ranks.
_FACTORS: Final[tuple[tuple[str, Callable[[int], float]], ...]] = (
    ("all_reduce", lambda ranks: 2 * _all_but_own(ranks)), ("allreduce", lambda ranks: 2 * _all_but_own(ranks)),
    ("all_gather", _all_but_own), ("allgather", _all_but_own), ("reduce_scatter", _all_but_own),
    ("all_to_all", _all_but_own), ("alltoall", _all_but_own), ("gather", _all_but_own), ("scatter", _all_but_own),
    ("broadcast", lambda _: 1.0), ("reduce", lambda _: 1.0), ("send", lambda _: 1.0), ("recv", lambda _: 1.0),
)  # fmt: skip


def rows_by_group(
    worker: str, table: Records, names: list[str], intervals: Frame, begins: I64 | None, chosen: I64, world: int | None
) -> list[tuple[Any, ...]]:
    """Rows of `COLUMNS` of some collectives of a worker, those that took longest first.

    Args:
        worker, table, names, intervals: Of the worker.
        begins: Start of transfer of each interval, ``INT_MISSING``: not known; None: of none.
        chosen: Rows of the collectives.
        world: Number of ranks where a collective does not tell that of its group; None: unknown.
    """
    time, skew = _times(table, intervals, begins)
    group = list(table.values("process_group", chosen))
    own = [names[row] for row in chosen.tolist()]
    stated = table.take("size", chosen)
    guessed = (stated == INT_MISSING) & (world is not None)
    ranks = np.where(guessed, world or 0, stated)
    sizes = (table.take(column, chosen).tolist() for column in ("sent", "received", "bytes"))
    told = np.array(list(map(_message, own, *sizes, ranks.tolist())), np.int64).reshape(-1, 2)
    codes = np.arange(len(chosen), dtype=np.int64)
    frame = Frame(
        {"group": np.where([text is None for text in group], -1, codes).astype(np.int64), "name": codes,
         "ranks": ranks, "bytes": told[:, 0], "bus": told[:, 1], "time": time[chosen], "skew": skew[chosen],
         "guessed": guessed.astype(np.int64),
         "timed": np.where(told[:, 0] == INT_MISSING, INT_MISSING, time[chosen])},
        {"group": group, "name": own},
    ).with_texts("group").with_texts("name")  # fmt: skip
    found = pivot(frame, ("group", "name", "ranks"), {
        "group": key("group", None), "name": key("name"), "ranks": lambda groups: groups.values("ranks"),
        "calls": rows, "bytes": total_known("bytes"), "time": total("time"), "algorithm": _rate("bytes"),
        "bus": _rate("bus"), "skew": mean_known("skew"), "most": most("skew"), "guessed": any_true("guessed"),
    }, ("-time", "name"))  # fmt: skip
    return [(worker, *row) for row in found]


def _rate(name: str) -> Callable[[Groups], list[float | None]]:
    """GB/s of the messages of known size."""

    def values(groups: Groups) -> list[float | None]:
        parts, times = (groups.reduce(groups.frame[column]).tolist() for column in (name, "timed"))
        return [part / time if part and time else None for part, time in zip(parts, times, strict=True)]

    return values


def _times(table: Records, intervals: Frame, begins: I64 | None) -> tuple[I64, I64]:
    """Time of each collective and how long it waited for the last rank (``INT_MISSING``: not known), ns.

    Of its kernels; of the host event where it has none.
    """
    of, start, end = intervals["collective"], intervals["start"], intervals["end"]
    on_host = (start == table["start"][of]) & (end == table["end"][of])
    with_kernels = np.bincount(of[~on_host], minlength=len(table)) > 0
    used = ~(on_host & with_kernels[of])
    of, start, end = of[used], start[used], end[used]
    begin = start if begins is None else begins[used]
    known = (begin != INT_MISSING) & (begins is not None)
    time, waited = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    np.add.at(time, of, end - np.where(known, begin, start))
    np.add.at(waited, of, np.where(known, begin - start, 0))
    return time, np.where(np.bincount(of[known], minlength=len(table)) > 0, waited, INT_MISSING)


def _message(name: str, sent: int, received: int, shapes: int, ranks: int) -> tuple[int, int]:
    """Size of a collective's message and what links carry of it, bytes; ``INT_MISSING``: unknown.

    ``shapes``: bytes by the shapes of its inputs, 0: unknown.
    """
    kind = name.rpartition(":")[2].strip("_").lower()
    factor = next((factor for word, factor in _FACTORS if kind.startswith(word)), None)
    gathers = kind.startswith(("all_gather", "allgather"))
    size = received if gathers else sent if sent != INT_MISSING else shapes or INT_MISSING
    known = factor is not None and size != INT_MISSING and ranks > 0
    return size, round(size * factor(ranks)) if known and factor is not None else INT_MISSING
