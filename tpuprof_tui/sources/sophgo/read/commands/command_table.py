"""Tables of commands as columns, and the parameters and results of node decoding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from ..arrays import I8, I16, I32, I64, U32
from ..problems import Report

# Matches the DES nodes of a compiled model with the streams they announce, so that commands do not appear twice.
#
# The runtime of BM1690 and BM1690E writes each launch's commands as streams (blocks 13 to 15) and logs a DES node
# where each of them ran: the k-th node of an engine announces its k-th stream. The stream determines how many
# commands ran; the count in an SDMA node is meaningless. A stream without a node that contains only an end command
# did not run.


class ModelStream(Struct, frozen=True, eq=False):
    """Commands of one engine for one launch of a compiled model.

    Attributes:
        offsets: First byte of each command in the file, int64.
        lengths: Size of each command in bytes, int32.
        only_ends: Whether the stream is empty or contains only an end command.
        ops: Operation index of each command; -1 for one that cannot be decoded.
    """

    offsets: I64
    lengths: I32
    only_ends: bool
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


Words = U32

#: Engines with one command list per core, in processing order.
CORE_ENGINES = ("TIU", "GDMA", "SDMA")


class Mode(IntEnum):
    """How a command was issued."""

    NONE = 0
    TDI = 1
    RVT = 2
    DES = 3


class Node(IntEnum):
    """Node types that the reader evaluates."""

    FUNC = 0
    NODE_SET = 1
    DES_TIU = 8
    DES_GDMA = 9
    DES_SDMA = 10
    DES_CDMA = 11
    ID_RESET = 12
    RVT_NODE_SET = 13
    BATCH_IDX = 14
    FUNC_END = 15


class Commands(Struct):
    """Columns of the commands of one engine of a core (or of one of its CDMA ports), in the order of issue.

    Arrays of one length. ``word`` is the node as stored (0 for commands of a block and those of unreadable type),
    ``id`` counts from 0 since the last id reset, ``scope`` is the core's scope number or -1, ``batch`` -1 when none is
    in force, ``node_index`` the node's index in the stream (without nodes a stream or launch number), ``extra``
    the number of its DYN_EXTRA record or -1, ``register_offset`` and ``register_size`` the range of its register bytes
    in the core file (offset -1: none; filled in later), ``des`` the number of its DES node or -1, ``forecast`` the
    length that the compiler expected (ns; -1 unknown).
    """

    word: Words
    id: I64
    scope: I32
    batch: I32
    mode: I8
    node_index: I64
    extra: I32
    des: I32
    register_offset: I64 | None = None
    register_size: I32 | None = None
    forecast: I64 | None = None

    def __len__(self) -> int:
        return len(self.word)

    @property
    def type_code(self) -> I32:
        """Type code of each node."""
        return bits_of(self.word, 10, 31)

    @property
    def function_code(self) -> I32:
        """Function code of each node."""
        return bits_of(self.word, 15, 31)

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Commands:
        """Commands at the given rows."""
        columns = {name: values[rows] for name in self.__struct_fields__ if (values := getattr(self, name)) is not None}
        return Commands(**columns)


class DesNode(Struct, frozen=True):
    """Dispatch of a pre-built command block: ``count`` commands from index ``first`` on in its engine's list.

    ``stream`` is the number of the compiled model's stream that it announces; -1 for a keyed block.
    """

    engine: str
    port: int
    key: int
    count: int
    first: int
    stream: int = -1


class NodeStream(Struct):
    """Decoded dynamic data of one core.

    Attributes:
        scope_names: Kernel function name of each scope, in order.
        nodes_set: Number of NODE_SET words (each owns one DYN_EXTRA record).
        stream_of_node: Number of the stream that each DES node announces, by node index; empty where none does.
    """

    engines: dict[str, Commands] = field(default_factory=dict)
    ports: dict[int, Commands] = field(default_factory=dict)
    scope_names: list[str] = field(default_factory=list)
    des_nodes: list[DesNode] = field(default_factory=list)
    nodes_set: int = 0
    stream_of_node: dict[int, int] = field(default_factory=dict)


class NodeRules(Struct, frozen=True):
    """Parameters of node decoding: constants of the chip, and contents of the file.

    Attributes:
        rvt_id_limit: TIU id at which firmware inserts a pair of commands that restarts ids; None where it does not.
        rvt_fill: (type, function) of that pair, by engine.
        most_des: Most commands of one engine that DES nodes can dispatch, by what the file contains.
        streams: Streams of a compiled model, by engine.
        keyed: (key, count) of the keyed command blocks in the file.
    """

    engine_codes: Mapping[int, str]
    rvt_id_limit: int | None
    rvt_fill: Mapping[str, tuple[int, int]]
    ports: int
    most_des: int
    streams: Streams = field(default_factory=dict)
    keyed: Collection[tuple[int, int]] = ()


def bits_of(words: Words, first: int, mask: int) -> I32:
    """One bit field of many words."""
    values: I32 = ((words >> np.uint32(first)) & np.uint32(mask)).astype(np.int32)
    return values
