"""Matches the DES nodes of a compiled model with the streams they announce, so that commands do not appear twice.

The runtime of BM1690 and BM1690E writes each launch's commands as streams (blocks 13 to 15) and logs a DES node where
each of them ran: the k-th node of an engine announces its k-th stream. The stream determines how many commands ran; the
count in an SDMA node is meaningless. A stream without a node that contains only an end command did not run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from ..arrays import I16, I32, I64
from ..problems import Report


class ModelStream(Struct, frozen=True, eq=False):
    """Commands of one engine for one launch of a compiled model."""

    offsets: I64  #: First byte of each command in the file, int64
    lengths: I32  #: Size of each command in bytes, int32
    only_ends: bool  #: Whether the stream is empty or contains only an end command
    #: Operation index of each command; -1 for one that cannot be decoded.
    ops: I16 = field(default_factory=lambda: np.zeros(0, np.int16))

    def __len__(self) -> int:
        return len(self.offsets)


#: Largest table (nodes times streams) for matching them where their numbers differ.
_MOST_PAIRS = 40_000
#: Node index, engine, port, key and count of a DES node.
DesEntry = tuple[int, str, int, int, int]
_Keys = Collection[tuple[int, int]]
#: Streams by engine, in the order of the file.
Streams = Mapping[str, Sequence[ModelStream]]


def match_nodes_to_streams(des: Sequence[DesEntry], streams: Streams, keyed: _Keys) -> dict[int, int]:
    """Stream that each DES node announces.

    Args:
        keyed: (key, count) of the keyed blocks in the file: their nodes announce no stream.

    Returns:
        Stream number by node index, -1 where no stream is left for it; empty where most counts of the nodes
        differ from those of the streams, so that the nodes must refer to something else.
    """
    result: dict[int, int] = {}
    claims = agreeing = 0
    for engine, engine_streams in streams.items():
        nodes = [(node, count) for node, name, _, key, count in des if name == engine and (key, count) not in keyed]
        counts = [count for _, count in nodes]
        if not engine_streams:
            continue
        numbers = _matched(counts, engine_streams, counted=engine != "SDMA")
        result |= {node: number for (node, _), number in zip(nodes, numbers, strict=True)}
        if engine != "SDMA":
            claims += len(numbers)
            agreeing += sum(number >= 0 and len(engine_streams[number]) == count
                            for number, count in zip(numbers, counts, strict=True))  # fmt: skip
    return result if 2 * agreeing >= claims else {}


def _matched(counts: Sequence[int], streams: Sequence[ModelStream], *, counted: bool) -> list[int]:
    """Stream number of each node, in order; -1 without one. ``counted``: the counts of nodes are meaningful."""
    numbers = list(range(len(streams)))
    if len(counts) < len(streams):
        running = [number for number in numbers if not streams[number].only_ends]
        numbers = running if len(running) >= len(counts) else numbers
    if len(counts) == len(numbers):
        return numbers
    if not counted:
        return [*numbers[: len(counts)], *[-1] * (len(counts) - len(numbers))]
    kept = _longest_common(counts, [len(streams[number]) for number in numbers])
    return [-1 if index < 0 else numbers[index] for index in kept]


def _longest_common(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Index in ``other`` of each item of ``one`` in a longest common subsequence; -1 for items that are not in it.

    Lists too long for the table are matched as far as their beginnings agree.
    """
    n, m = len(one), len(other)
    if n * m > _MOST_PAIRS:
        pairs = enumerate(zip(one, other, strict=False))
        equal_count = next((index for index, pair in pairs if pair[0] != pair[1]), min(n, m))
        return [*range(equal_count), *[-1] * (n - equal_count)]
    best = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            equal = one[i] == other[j]
            best[i][j] = best[i + 1][j + 1] + 1 if equal else max(best[i + 1][j], best[i][j + 1])
    result, j = [], 0
    for i in range(n):
        while j < m and one[i] != other[j] and best[i][j + 1] >= best[i + 1][j]:
            j += 1
        found = j < m and one[i] == other[j]
        result.append(j if found else -1)
        j += found
    return result


def report_mismatches(des: Sequence[DesEntry], found: Mapping[int, int], streams: Streams, report: Report) -> None:
    """Report nodes whose count differs from the length of their stream, and streams without a node."""
    unlike = sum(
        engine != "SDMA" and found.get(node, -1) >= 0 and len(streams[engine][found[node]]) != count
        for node, engine, _, _, count in des
    )
    if unlike:
        what = "DES nodes claim another number of commands than the streams of the model hold."
        report.warning(what, "The streams were used.", count=unlike)
    for engine, engine_streams in streams.items():
        taken = {found.get(node, -1) for node, name, *_ in des if name == engine}
        loose = [number for number, stream in enumerate(engine_streams) if number not in taken and not stream.only_ends]
        if loose:
            report.warning(f"Streams of {engine} commands that no DES node announces.", "They are not shown.",
                           offset=int(engine_streams[loose[0]].offsets[0]), lane=engine, count=len(loose))  # fmt: skip
