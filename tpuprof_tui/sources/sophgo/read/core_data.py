"""Data of one core's file, filled in by the stages of reading."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from .arrays import I64, Bools, Bytes
from .commands.command_table import Commands, CommandStream, NodeStream
from .files import Block, BlockType, payloads_of
from .problems import Problems
from .records.monitor import RecordStream


class HostCopies(Struct, frozen=True, eq=False):
    """Copies of a model's inputs and outputs by its runtime."""

    rows: I64  #: Rows of the stream, ascending
    inward: Bools  #: For each whether it copies an input in, before a launch; else an output out, behind one


class EngineData(Struct):
    """One engine of a core."""

    stream: RecordStream
    commands: Commands | None = None  #: Its commands; None where the capture has none
    bound: I64 = field(default_factory=lambda: np.zeros(0, np.int64))  #: Index of each record's command; -1 without one
    sync_end: int | None = None  #: End (ns) of the opening wait; None when it was not recorded
    closing_end: int | None = None  #: End (ns) of the closing pair; None without one
    #: Mask or slice of the records that are instructions, without the profiler's own.
    keep: Bools | slice = field(default_factory=lambda: slice(None))
    #: SDMA only: end (ns) of the k-th send that releases a CDMA port, by k.
    port_sync_ends: dict[int, int] = field(default_factory=dict)
    static_count: int = 0  #: Number of leading ``commands`` that come from the streams of a compiled model
    copies: HostCopies | None = None  #: Records that are no instructions but copies by the runtime; None without any


class CoreData(Struct):
    """Data of one core's file."""

    core: int
    file: str
    data: Bytes  #: The file's bytes; records and registers are views of it
    report: Problems
    blocks: list[Block] = field(default_factory=list)
    engines: dict[str, EngineData] = field(default_factory=dict)  #: Engines with records, by name
    nodes: NodeStream | None = None  #: Dynamic nodes; None in PMU-only captures
    mode: int = 0  #: Capture mode 0, 1 or 2, derived from the blocks present
    records: int = 0
    first_scope: int = 0
    bmodel: bool = False  #: Whether commands are stored as streams instead of nodes
    streams: dict[str, list[CommandStream]] = field(default_factory=dict)  #: Those streams, by engine
    #: First offset and name of each file in ``data``, ascending; empty: it is one file.
    parts: Sequence[tuple[int, str]] = ()

    def place(self, offset: int) -> tuple[str, int]:
        """File and offset there of an offset in ``data``."""
        parts = self.parts or [(0, self.file)]
        first, name = parts[bisect_right(parts, offset, key=lambda part: part[0]) - 1]
        return name, offset - first

    @property
    def has_des_streams(self) -> bool:
        """Whether the nodes state where each stream ran, so that they give all commands in order."""
        return self.nodes is not None and bool(self.nodes.stream_of_node)

    def payloads(self, kind: BlockType) -> tuple[list[Bytes], list[int]]:
        """Payloads and offsets of the blocks of one type."""
        return payloads_of(self.data, self.blocks, kind)


def number_scopes(cores: Sequence[CoreData]) -> None:
    """Number the scopes over all cores."""
    first_scope = 0
    for core in cores:
        core.first_scope = first_scope
        first_scope += len(core.nodes.scope_names) if core.nodes is not None else 0
