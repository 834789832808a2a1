"""Tables of commands as columns, and the parameters and results of node decoding."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from ..arrays import I8, I16, I32, I64, U32

Words = U32

#: Engines with one command list per core, in processing order.
CORE_ENGINES = ("TIU", "GDMA", "SDMA")


class Mode(IntEnum):
    """How a command was issued."""

    NONE = 0
    TDI = 1
    RVT = 2
    DES = 3


class NodeType(IntEnum):
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


class CommandStream(Struct, frozen=True, eq=False):
    """The commands of one stream, as of one launch of a compiled model; arrays of one length, in stream order."""

    offsets: I64  #: First byte of each command
    lengths: I32  #: Size of each command in bytes; if its layout is not known, the bytes up to where the walk resumed
    ops: I16  #: Operation index (``command_table(...).operations``); -1 for one that cannot be decoded
    end: int  #: First byte after the last command; what follows was not read
    ended: bool  #: Whether a command ended the stream, rather than the end of the data
    only_ends: bool  #: Whether the stream is empty or contains only an end command

    def __len__(self) -> int:
        return len(self.offsets)


#: Streams by engine, in the order of the file.
Streams = Mapping[str, Sequence[CommandStream]]


def concatenated(parts: Sequence[Commands]) -> Commands:
    """Concatenated lists of commands."""
    filled = []
    for part in parts:  # registers were not attached
        none = {"register_offset": np.full(len(part), -1, np.int64), "register_size": np.zeros(len(part), np.int32)}
        filled.append(part if part.register_offset is not None else replace(part, **none))
    names = [name for name in Commands.__struct_fields__ if all(getattr(part, name) is not None for part in filled)]
    return Commands(**{name: np.concatenate([getattr(part, name) for part in filled]) for name in names})


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
    """Decoded dynamic data of one core."""

    engines: dict[str, Commands] = field(default_factory=dict)
    ports: dict[int, Commands] = field(default_factory=dict)
    scope_names: list[str] = field(default_factory=list)  #: Kernel function name of each scope, in order
    des_nodes: list[DesNode] = field(default_factory=list)
    nodes_set: int = 0  #: Number of NODE_SET words (each owns one DYN_EXTRA record)
    #: Number of the stream that each DES node announces, by node index; empty where none does.
    stream_of_node: dict[int, int] = field(default_factory=dict)


class NodeRules(Struct, frozen=True):
    """Parameters of node decoding: constants of the chip, and contents of the file."""

    engine_codes: Mapping[int, str]
    #: TIU id at which firmware inserts a pair of commands that restarts ids; None where it does not.
    rvt_id_limit: int | None
    rvt_fill: Mapping[str, tuple[int, int]]  #: (type, function) of that pair, by engine
    ports: int
    most_des: int  #: Most commands of one engine that DES nodes can dispatch, by what the file contains
    streams: Streams = field(default_factory=dict)  #: Streams of a compiled model, by engine
    keyed: Collection[tuple[int, int]] = ()  #: (key, count) of the keyed command blocks in the file


def bits_of(words: Words, first: int, mask: int) -> I32:
    """One bit field of many words."""
    values: I32 = ((words >> np.uint32(first)) & np.uint32(mask)).astype(np.int32)
    return values
