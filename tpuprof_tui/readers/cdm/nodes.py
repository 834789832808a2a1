"""The dynamic node stream (DYN_DATA): which commands were issued, in which order, under which kernel function.

Only function names, pre-built blocks (DES) and changes of scope are walked one by one; everything about the
commands themselves is computed on whole arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from .report import Report

Words = npt.NDArray[np.uint32]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

#: Engines whose commands have one list per core, and the order they are always taken in.
CORE_ENGINES = ("TIU", "GDMA", "SDMA")


class Mode(IntEnum):
    """How a command was issued."""

    NONE = 0
    TDI = 1
    RVT = 2
    DES = 3


class Node(IntEnum):
    """Types of nodes with a meaning here."""

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


_IGNORED = (2, 3, 4, 5, 6, 7, 100, 127)
_DES_ENGINE = {Node.DES_TIU: "TIU", Node.DES_GDMA: "GDMA", Node.DES_SDMA: "SDMA", Node.DES_CDMA: "CDMA"}
_LIST_OF = {"TIU": "TIU", "GDMA": "GDMA", "SDMA": "SDMA", "VSDMA": "SDMA", "CDMA": "CDMA"}


@dataclass
class Commands:
    """Commands of one engine of a core (or of one of its CDMA ports), in the order they were issued.

    Arrays of one length. ``word`` is the node as stored (0 for commands of a block and inserted ones), ``id`` counts
    from 0 since the last id reset, ``scope`` is the core's scope number or -1, ``batch`` -1 when none is in force,
    ``place`` the node's place in the stream, ``extra`` the number of its DYN_EXTRA record or -1, ``register`` the
    offset of its register bytes in the core file or -1 (filled in later), ``des`` the number of its DES node or -1.
    """

    word: Words
    id: I64
    scope: I32
    batch: I32
    mode: npt.NDArray[np.int8]
    place: I64
    extra: I32
    des: I32
    register: I64 | None = None

    def __len__(self) -> int:
        return len(self.word)

    @property
    def type_code(self) -> npt.NDArray[np.int32]:
        """Type code of each node."""
        return _bits(self.word, 10, 31)

    @property
    def function_code(self) -> npt.NDArray[np.int32]:
        """Function code of each node."""
        return _bits(self.word, 15, 31)

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Commands:
        """The commands at some places."""
        return Commands(
            self.word[rows],
            self.id[rows],
            self.scope[rows],
            self.batch[rows],
            self.mode[rows],
            self.place[rows],
            self.extra[rows],
            self.des[rows],
            None if self.register is None else self.register[rows],
        )


@dataclass(frozen=True)
class DesNode:
    """Dispatch of a pre-built command block: ``count`` commands from ``first`` on in its engine's list."""

    engine: str
    port: int
    key: int
    count: int
    first: int


@dataclass
class NodeStream:
    """What one core's dynamic data says.

    Attributes:
        engines: Commands by engine name (TIU, GDMA, SDMA).
        ports: Commands by CDMA port.
        scope_names: Kernel function name of each scope, in order.
        des_nodes: DES nodes, in order.
        nodes_set: Number of NODE_SET words (each owns one DYN_EXTRA record).
    """

    engines: dict[str, Commands] = field(default_factory=dict)
    ports: dict[int, Commands] = field(default_factory=dict)
    scope_names: list[str] = field(default_factory=list)
    des_nodes: list[DesNode] = field(default_factory=list)
    nodes_set: int = 0


@dataclass(frozen=True)
class NodeRules:
    """What node decoding needs to know of a chip.

    Attributes:
        engine_codes: Engine name by code.
        rvt_id_limit: TIU id at which firmware inserts a pair of commands that restarts ids; None where it does not.
        rvt_fill: (type, function) of those by engine.
        ports: Number of CDMA ports.
        most_des: Commands of one engine that DES nodes may stand for at the most; more cannot have a record.
    """

    engine_codes: Mapping[int, str]
    rvt_id_limit: int | None
    rvt_fill: Mapping[str, tuple[int, int]]
    ports: int
    most_des: int


@dataclass
class _Skeleton:
    """The walk over names and DES nodes: which words are nodes, and what the walked ones said."""

    is_node: npt.NDArray[np.bool_]
    func_places: list[int]
    func_names: list[str]
    des: list[tuple[int, str, int, int, int]]  # place, engine, port, key, count


def decode_nodes(
    words: Words, rules: NodeRules, report: Report, *, file: str, offset: int, core: int, odd_as_commands: bool = False
) -> NodeStream:
    """Decode a node stream.

    Args:
        words: The payload as little-endian 32-bit words.
        rules: The chip's codes and limits.
        report: Takes the problems.
        file, offset, core: Where the payload lies, for the problems.
        odd_as_commands: Take nodes of unknown type for commands of the engine their bits name (a damaged type).

    Returns:
        Commands by engine and port, and the scopes.
    """
    kinds = (words & np.uint32(127)).astype(np.uint8)
    skeleton = _walk(words, kinds, rules, report, file, offset, core)
    decoder = _Decoder(words, kinds, skeleton, rules, report, file, offset, core)
    return decoder.decode(odd_as_commands)


def _walk(
    words: Words, kinds: npt.NDArray[np.uint8], rules: NodeRules, report: Report, file: str, offset: int, core: int
) -> _Skeleton:
    is_node = words != 0
    zeros = len(words) - int(np.count_nonzero(is_node))
    candidates = np.flatnonzero(is_node & ((kinds == Node.FUNC) | ((kinds >= Node.DES_TIU) & (kinds <= Node.DES_CDMA))))
    result = _Skeleton(is_node, [], [], [])
    behind = 0  # first word that is not part of a walked node
    name_zeros = 0
    count = len(words)
    for place in candidates.tolist():
        if place < behind:
            continue
        word = int(words[place])
        kind = word & 127
        if kind == Node.FUNC:
            length = word >> 7
            size = (length + 3) // 4
            raw = words[place + 1 : place + 1 + size].tobytes()[:length]
            overrun = place + 1 + size > count
            if overrun:
                size = _text_words(words[place + 1 :])
                raw = words[place + 1 : place + 1 + size].tobytes().rstrip(b"\0")
                report.error(
                    f"A function name of {length} bytes runs past the end of the node stream.",
                    "The text that is there was taken for the name.",
                    file=file,
                    offset=offset + 4 * place,
                    core=core,
                )
            behind = place + 1 + size
            if not (overrun and behind >= count):  # else nothing can have run under it
                result.func_places.append(place)
                result.func_names.append(_name(raw, report, file, offset + 4 * place, core))
            name_zeros += size - int(np.count_nonzero(is_node[place + 1 : behind]))
        else:
            behind = place + 2
            if behind > count:
                report.error(
                    "A DES node at the end of the node stream lacks its second word.",
                    "It was ignored.",
                    file=file,
                    offset=offset + 4 * place,
                    core=core,
                )
                is_node[place] = False
                break
            engine = _DES_ENGINE[Node(kind)]
            number = int(words[place + 1])
            name_zeros += number == 0
            port, number = (number >> 28, number & 0xFFFFFFF) if engine == "CDMA" else (-1, number)
            result.des.append((place, engine, port, word >> 7, number))
        is_node[place + 1 : behind] = False
    if zeros > name_zeros:
        report.note(
            "Zero words in the node stream.",
            "Taken for padding; no kernel function was closed by them.",
            file=file,
            core=core,
            count=zeros - name_zeros,
        )
    return result


def _text_words(words: Words) -> int:
    """How many leading words read as text: every byte printable, zeros only as the last word's padding."""
    for place, word in enumerate(words[:256].tolist()):
        raw = word.to_bytes(4, "little")
        if not raw.rstrip(b"\0") or min(raw.rstrip(b"\0")) < 0x20:
            return place
        if raw[3] == 0:
            return place + 1
    return min(len(words), 256)


def _name(raw: bytes, report: Report, file: str, offset: int, core: int) -> str:
    try:
        return raw.decode("utf-8").rstrip("\0")
    except UnicodeDecodeError:
        report.warning(
            "A kernel function name is not UTF-8.",
            "Bytes that are not were replaced.",
            file=file,
            offset=offset,
            core=core,
        )
        return raw.decode("utf-8", "replace").rstrip("\0")


class _Decoder:
    """The array work behind ``decode_nodes``."""

    def __init__(
        self,
        words: Words,
        kinds: npt.NDArray[np.uint8],
        skeleton: _Skeleton,
        rules: NodeRules,
        report: Report,
        file: str,
        offset: int,
        core: int,
    ) -> None:
        self.words = words
        self.kinds = np.where(skeleton.is_node, kinds, np.uint8(Node.FUNC))
        self.skeleton = skeleton
        self.rules = rules
        self.report = report
        self.file = file
        self.core = core
        self.offset = offset

    def decode(self, odd_as_commands: bool) -> NodeStream:
        stream = NodeStream(scope_names=self.skeleton.func_names)
        self._note_odd_kinds(odd_as_commands)
        self.engine_of = self._engines()
        is_set = self.kinds == Node.NODE_SET
        is_rvt = self.kinds == Node.RVT_NODE_SET
        stream.nodes_set = int(np.count_nonzero(is_set))
        self.extra_number = np.cumsum(is_set, dtype=np.int32) if stream.nodes_set else None
        self.is_command = is_set | is_rvt
        if odd_as_commands:
            self.is_command |= self.odd
        self.scope_at, self.scope_values = self._scope_changes()
        self.batch_at = np.flatnonzero(self.kinds == Node.BATCH_IDX)
        self.resets = np.flatnonzero(self.kinds == Node.ID_RESET)
        self.des_at = np.array([entry[0] for entry in self.skeleton.des], dtype=np.int64)
        places = {name: self._places(name) for name in CORE_ENGINES}
        fills = self._rvt_restarts(places, bool(is_rvt.any()))
        for name in CORE_ENGINES:
            stream.engines[name] = self._commands(name, -1, places[name], fills.get(name), stream)
        cdma = self._places("CDMA")
        if len(cdma):
            port_of = (self.words[cdma] >> np.uint32(28)).astype(np.int32)
            for port in np.unique(port_of).tolist():
                if port >= self.rules.ports:
                    self.report.error(
                        f"Commands for CDMA port {port}, which the chip does not have.",
                        "They were ignored.",
                        count=int((port_of == port).sum()),
                        file=self.file,
                        core=self.core,
                    )
                else:
                    stream.ports[port] = self._commands("CDMA", port, cdma[port_of == port], None, stream)
        for _, engine, port, _, _ in self.skeleton.des:
            if engine == "CDMA" and port < self.rules.ports and port not in stream.ports:
                stream.ports[port] = self._commands("CDMA", port, cdma[:0], None, stream)
        return stream

    # -- what each word is ------------------------------------------------

    def _note_odd_kinds(self, odd_as_commands: bool) -> None:
        known = np.zeros(128, np.bool_)
        known[[*(int(kind) for kind in Node), *_IGNORED]] = True
        self.odd = ~known[self.kinds]
        if not self.odd.any():
            return
        done = "Taken for commands whose type is unreadable." if odd_as_commands else "They were skipped."
        for kind in np.unique(self.kinds[self.odd]).tolist():
            places = np.flatnonzero(self.odd & (self.kinds == kind))
            self.report.error(
                f"Node of unknown type {kind}.",
                done,
                offset=self.offset + 4 * int(places[0]),
                count=len(places),
                file=self.file,
                core=self.core,
            )

    def _engines(self) -> npt.NDArray[np.uint8]:
        codes: npt.NDArray[np.uint8] = _bits(self.words, 7, 7).astype(np.uint8)
        return codes

    def _places(self, name: str) -> I64:
        """Places of an engine's commands in the stream."""
        codes = np.zeros(8, np.bool_)
        for code, engine in self.rules.engine_codes.items():
            codes[code] = _LIST_OF.get(engine) == name
        if name == "TIU":
            unknown = self.is_command & ~np.isin(np.arange(8), list(self.rules.engine_codes))[self.engine_of]
            if unknown.any():
                first = int(np.flatnonzero(unknown)[0])
                self.report.error(
                    "Commands of an engine the chip does not have.",
                    "They were skipped.",
                    offset=self.offset + 4 * first,
                    count=int(unknown.sum()),
                    file=self.file,
                    core=self.core,
                )
        return np.flatnonzero(self.is_command & codes[self.engine_of])

    def _scope_changes(self) -> tuple[I64, I32]:
        ends = np.flatnonzero(self.kinds == Node.FUNC_END)
        starts = np.array(self.skeleton.func_places, dtype=np.int64)
        at = np.concatenate([starts, ends])
        values = np.concatenate([np.arange(len(starts), dtype=np.int32), np.full(len(ends), -1, np.int32)])
        order = np.argsort(at, kind="stable")
        return at[order], values[order]

    # -- ids --------------------------------------------------------------

    def _reset_places(self, name: str, port: int) -> I64:
        """Where the id counter of an engine (or port) restarts: its own resets, and every DES node."""
        codes = [code for code, engine in self.rules.engine_codes.items() if _LIST_OF.get(engine) == name]
        mine = np.isin(self.engine_of[self.resets], codes)
        if port >= 0:
            mine &= (self.words[self.resets] >> np.uint32(28)).astype(np.int64) == port
        return np.sort(np.concatenate([self.resets[mine], self.des_at]))

    def _rvt_restarts(self, places: dict[str, I64], any_rvt: bool) -> dict[str, I64]:
        """Places (of words) behind which firmware inserted a pair of commands that restarts TIU and GDMA ids."""
        limit = self.rules.rvt_id_limit
        if limit is None or not any_rvt or len(places["TIU"]) < limit:
            return {}
        rvt = np.zeros(len(self.words), np.bool_)
        for name in ("TIU", "GDMA"):
            rvt[places[name]] = self.kinds[places[name]] == Node.RVT_NODE_SET
        rvt_at = np.flatnonzero(rvt)
        tiu = places["TIU"]
        resets = self._reset_places("TIU", -1)
        fills: list[int] = []
        first = 0  # TIU commands counted from here
        while first + limit <= len(tiu):
            last = first + limit - 1
            reset = np.searchsorted(resets, tiu[first], side="left")
            if reset < len(resets) and resets[reset] < tiu[last]:
                inside = resets[(resets > tiu[first]) & (resets < tiu[last])]
                first = int(np.searchsorted(tiu, inside[-1]))
                continue
            # the counter stands at the limit from tiu[last] on, until the next TIU command or reset
            until = tiu[last + 1] if last + 1 < len(tiu) else len(self.words)
            reset = np.searchsorted(resets, tiu[last])
            until = min(until, resets[reset]) if reset < len(resets) else until
            hit = np.searchsorted(rvt_at, tiu[last])
            if hit < len(rvt_at) and rvt_at[hit] < until:
                fills.append(int(rvt_at[hit]))
                first = int(np.searchsorted(tiu, rvt_at[hit], side="right"))
            else:
                # past the limit without an insertion: only the next reset can bring the counter back to it
                if reset >= len(resets):
                    break
                first = int(np.searchsorted(tiu, resets[reset]))
        at = np.array(fills, dtype=np.int64)
        return {"TIU": at, "GDMA": at} if fills else {}

    # -- one list ---------------------------------------------------------

    def _commands(self, name: str, port: int, places: I64, fills: I64 | None, stream: NodeStream) -> Commands:
        entries = [entry for entry in self.skeleton.des if entry[1] == name and entry[2] == port]
        commands = self._simple(places)
        if fills is not None and len(fills):
            commands = self._with_fills(commands, name, fills)
        if entries:
            commands = self._with_blocks(commands, name, port, entries, stream)
        self._number(commands, name, port, fills)
        return commands

    def _simple(self, places: I64) -> Commands:
        kinds = self.kinds[places]
        mode = np.where(kinds == Node.NODE_SET, np.int8(Mode.TDI), np.int8(Mode.NONE))
        mode[kinds == Node.RVT_NODE_SET] = Mode.RVT
        if self.extra_number is not None:
            extra = self.extra_number[places] - 1
            extra[kinds != Node.NODE_SET] = -1
        else:
            extra = np.full(len(places), -1, np.int32)
        word = self.words[places]
        if self.odd.any():
            word[self.odd[places]] = 0
        # the columns that repeat over long stretches are filled in by _number
        empty = np.zeros(0, np.int32)
        return Commands(
            word, np.zeros(0, np.int64), empty, empty, mode, places, extra, np.full(len(places), -1, np.int32)
        )

    def _with_fills(self, commands: Commands, name: str, fills: I64) -> Commands:
        typ, function = self.rules.rvt_fill[name]
        code = next(code for code, engine in self.rules.engine_codes.items() if engine == name)
        word = np.uint32(code << 7 | typ << 10 | function << 15)
        at = np.searchsorted(commands.place, fills, side="right")
        return Commands(
            np.insert(commands.word, at, word),
            commands.id,
            commands.scope,
            commands.batch,
            np.insert(commands.mode, at, np.int8(Mode.NONE)),
            np.insert(commands.place, at, fills),
            np.insert(commands.extra, at, -1),
            np.insert(commands.des, at, -1),
        )

    def _with_blocks(
        self,
        commands: Commands,
        name: str,
        port: int,
        entries: list[tuple[int, str, int, int, int]],
        stream: NodeStream,
    ) -> Commands:
        counts = [entry[4] for entry in entries]
        left = self.rules.most_des
        for number, entry in enumerate(entries):
            if counts[number] > left:
                self.report.error(
                    f"A DES node claims {counts[number]} commands, more than there are records.",
                    f"{left} of them were taken.",
                    offset=self.offset + 4 * entry[0],
                    file=self.file,
                    core=self.core,
                )
                counts[number] = left
            left -= counts[number]
        at = np.searchsorted(commands.place, np.array([entry[0] for entry in entries]))
        where = np.repeat(at, counts)
        first = at + np.concatenate([[0], np.cumsum(counts)[:-1]])
        numbers = np.arange(len(stream.des_nodes), len(stream.des_nodes) + len(entries), dtype=np.int32)
        for entry, count, start in zip(entries, counts, first.tolist(), strict=True):
            stream.des_nodes.append(DesNode(name, port, entry[3], count, start))
        place = np.repeat(np.array([entry[0] for entry in entries], dtype=np.int64), counts)
        return Commands(
            np.insert(commands.word, where, np.uint32(0)),
            commands.id,
            commands.scope,
            commands.batch,
            np.insert(commands.mode, where, np.int8(Mode.DES)),
            np.insert(commands.place, where, place),
            np.insert(commands.extra, where, -1),
            np.insert(commands.des, where, np.repeat(numbers, counts)),
        )

    def _number(self, commands: Commands, name: str, port: int, fills: I64 | None) -> None:
        """Fill in ids, scopes and batches: constant between the places where they change."""
        place = commands.place
        count = len(place)
        # a DES node resets before its own commands, which share its place
        resets = np.searchsorted(place, self._reset_places(name, port), side="left")
        if fills is not None and len(fills):
            # the inserted command still has the old numbering; the next one starts anew
            resets = np.sort(np.concatenate([resets, np.searchsorted(place, fills, side="right")]))
        after_des = np.zeros(0, np.int64)
        if commands.des.max(initial=-1) >= 0:
            after_des = np.flatnonzero(np.diff(commands.des, prepend=-1, append=-1))
        edges = np.unique(np.concatenate([[0], resets, after_des, [count]]).astype(np.int64))
        commands.id = np.arange(count, dtype=np.int64) - np.repeat(edges[:-1], np.diff(edges))
        commands.scope = _spread(np.searchsorted(place, self.scope_at), self.scope_values, count)
        batches = (self.words[self.batch_at] >> np.uint32(7)).astype(np.int32)
        commands.batch = _spread(np.searchsorted(place, self.batch_at), batches, count)
        inserted = (commands.mode == Mode.NONE) & (commands.word != 0)
        if inserted.any():
            commands.scope[inserted] = -1
            commands.batch[inserted] = -1


def _bits(words: Words, first: int, mask: int) -> I32:
    """A bit field of many words."""
    values: I32 = ((words >> np.uint32(first)) & np.uint32(mask)).astype(np.int32)
    return values


def _spread(at: I64, values: I32, count: int) -> I32:
    """Value in force at each of ``count`` places, when it changes to ``values[i]`` at place ``at[i]``; -1 before."""
    edges = np.concatenate([[0], at, [count]])
    return np.repeat(np.concatenate([[-1], values]).astype(np.int32), np.diff(edges))
