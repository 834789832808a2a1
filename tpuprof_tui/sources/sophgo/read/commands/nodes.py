"""Decodes the dynamic node stream (DYN_DATA): commands, their order, and the kernel functions that issued them.

Only function names, pre-built blocks (DES) and changes of scope are walked one by one; everything about the commands
themselves is computed on whole arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.model.uniques import uniques

from ..arrays import I32, I64, U8, Bools
from ..problems import Problems
from .command_table import (
    CORE_ENGINES,
    Commands,
    CommandStream,
    DesNode,
    Mode,
    NodeRules,
    NodeStream,
    NodeType,
    Streams,
    Words,
    bits_of,
)

_IGNORED = (2, 3, 4, 5, 6, 7, 100, 127)
_LIST_OF = {"TIU": "TIU", "GDMA": "GDMA", "SDMA": "SDMA", "VSDMA": "SDMA", "CDMA": "CDMA"}


def decode_nodes(
    words: Words, rules: NodeRules, report: Problems, offset: int, *, unknown_as_commands: bool = False
) -> NodeStream:
    """Decode a node stream.

    Args:
        words: The payload as little-endian 32-bit words.
        offset: Offset of the payload in the file, for the problems.
        unknown_as_commands: Decode nodes of unknown type (a damaged type) as commands of the engine in their bits.

    Returns:
        Commands by engine and port, and the scopes.
    """
    return _Decoder(words, rules, report, offset).decode(unknown_as_commands)


class _Decoder:
    def __init__(self, words: Words, rules: NodeRules, report: Problems, offset: int) -> None:
        self.words = words
        self.rules = rules
        self.report = report
        self.offset = offset
        self.kinds, self.func_indices, self.func_names, self.des = walk_nodes(words, report, offset)

    def decode(self, unknown_as_commands: bool) -> NodeStream:
        stream = NodeStream(scope_names=self.func_names)
        stream.stream_of_node = match_nodes_to_streams(self.des, self.rules.streams, self.rules.keyed)
        self._report_unknown_kinds(unknown_as_commands)
        self.engine_of = bits_of(self.words, 7, 7).astype(np.uint8)
        is_set, is_rvt = self.kinds == NodeType.NODE_SET, self.kinds == NodeType.RVT_NODE_SET
        #: number of NODE_SET words up to each word
        self.sets = np.cumsum(is_set, dtype=np.int32)
        stream.nodes_set = int(np.count_nonzero(is_set))
        self.is_command = is_set | is_rvt
        if unknown_as_commands:
            self.is_command |= self.unknown_kind
        ends, starts = np.flatnonzero(self.kinds == NodeType.FUNC_END), np.array(self.func_indices, dtype=np.int64)
        at = np.concatenate([starts, ends])
        order = np.argsort(at, kind="stable")
        self.scope_at = at[order]
        scopes = [np.arange(len(starts), dtype=np.int32), np.full(len(ends), -1, np.int32)]
        self.scope_values = np.concatenate(scopes)[order]
        self.batch_at = np.flatnonzero(self.kinds == NodeType.BATCH_IDX)
        self.resets = np.flatnonzero(self.kinds == NodeType.ID_RESET)
        self.des_at = np.array([entry[0] for entry in self.des], dtype=np.int64)
        self._report_unknown_engines()
        indices = {name: self._command_indices(name) for name in CORE_ENGINES}
        fills = self._rvt_restarts(indices, bool(is_rvt.any()))
        for name in CORE_ENGINES:
            stream.engines[name] = self._commands(name, -1, indices[name], fills.get(name), stream)
        cdma = self._command_indices("CDMA")
        port_of = (self.words[cdma] >> np.uint32(28)).astype(np.int32)
        in_des = [port for _, engine, port, _, _ in self.des if engine == "CDMA" and port < self.rules.ports]
        for port in dict.fromkeys([*uniques(port_of).tolist(), *in_des]):
            if port < self.rules.ports:
                stream.ports[port] = self._commands("CDMA", port, cdma[port_of == port], None, stream)
                continue
            what = f"Commands for CDMA port {port}, which the chip does not have."
            self.report.error(what, "They were ignored.", count=int((port_of == port).sum()))
        if stream.stream_of_node:
            report_mismatches(self.des, stream.stream_of_node, self.rules.streams, self.report)
        return stream

    def _report_unknown_kinds(self, unknown_as_commands: bool) -> None:
        known = np.zeros(128, np.bool_)
        known[[*(int(kind) for kind in NodeType), *_IGNORED]] = True
        self.unknown_kind = ~known[self.kinds]
        if not self.unknown_kind.any():
            return
        done = "Treated as commands of unreadable type." if unknown_as_commands else "They were skipped."
        for kind in uniques(self.kinds[self.unknown_kind]).tolist():
            indices = np.flatnonzero(self.unknown_kind & (self.kinds == kind))
            offset = self.offset + 4 * int(indices[0])
            self.report.error(f"Node of unknown type {kind}.", done, offset=offset, count=len(indices))

    def _report_unknown_engines(self) -> None:
        known = np.isin(np.arange(8), list(self.rules.engine_codes))
        unknown = np.flatnonzero(self.is_command & ~known[self.engine_of])
        if len(unknown):
            offset = self.offset + 4 * int(unknown[0])
            what = "Commands of an engine the chip does not have."
            self.report.error(what, "They were skipped.", offset=offset, count=len(unknown))

    def _in_list(self, name: str) -> Bools:
        """Whether commands of each engine code are in the list of an engine."""
        return np.array([_LIST_OF.get(self.rules.engine_codes.get(code, "")) == name for code in range(8)])

    def _command_indices(self, name: str) -> I64:
        return np.flatnonzero(self.is_command & self._in_list(name)[self.engine_of])

    def _reset_indices(self, name: str, port: int) -> I64:
        """Indices at which the id counter of an engine (or port) restarts: its own resets, and every DES node."""
        selected = self._in_list(name)[self.engine_of[self.resets]]
        if port >= 0:
            selected &= (self.words[self.resets] >> np.uint32(28)).astype(np.int64) == port
        return np.sort(np.concatenate([self.resets[selected], self.des_at]))

    def _rvt_restarts(self, indices: dict[str, I64], any_rvt: bool) -> dict[str, I64]:
        """Indices of the words after which firmware inserted a pair of commands that restarts TIU and GDMA ids."""
        limit = self.rules.rvt_id_limit
        if limit is None or not any_rvt or len(indices["TIU"]) < limit:
            return {}
        tiu, both = indices["TIU"], np.union1d(indices["TIU"], indices["GDMA"])
        rvt_at = both[self.kinds[both] == NodeType.RVT_NODE_SET]
        resets = self._reset_indices("TIU", -1)
        fills: list[int] = []
        first = 0  # TIU commands counted from here
        while first + limit <= len(tiu):
            last = first + limit - 1
            reset = np.searchsorted(resets, tiu[first], side="left")
            if reset < len(resets) and resets[reset] < tiu[last]:
                inside = resets[(resets > tiu[first]) & (resets < tiu[last])]
                first = int(np.searchsorted(tiu, inside[-1]))
                continue
            # the counter is at the limit from tiu[last] on, until the next TIU command or reset
            later_resets = resets[np.searchsorted(resets, tiu[last]) :]
            until = min([*tiu[last + 1 : last + 2], *later_resets[:1]], default=len(self.words))
            hit = rvt_at[np.searchsorted(rvt_at, tiu[last]) :][:1]
            if len(hit) and hit[0] < until:
                fills.append(int(hit[0]))
                first = int(np.searchsorted(tiu, hit[0], side="right"))
            elif len(later_resets):
                # past the limit without an insertion: only the next reset can bring the counter back to it
                first = int(np.searchsorted(tiu, later_resets[0]))
            else:
                break
        at = np.array(fills, dtype=np.int64)
        return {"TIU": at, "GDMA": at} if fills else {}

    def _commands(self, name: str, port: int, indices: I64, fills: I64 | None, stream: NodeStream) -> Commands:
        entries = [entry for entry in self.des if entry[1] == name and entry[2] == port]
        commands = self._simple(indices)
        if fills is not None and len(fills):
            typ, function = self.rules.rvt_fill[name]
            code = next(code for code, engine in self.rules.engine_codes.items() if engine == name)
            word = np.uint32(code << 7 | typ << 10 | function << 15)
            at = np.searchsorted(commands.node_index, fills, side="right")
            commands = _inserted(commands, at, word, np.int8(Mode.NONE), fills, -1)
        if entries:
            commands = self._with_blocks(commands, name, port, entries, stream)
        self._number(commands, name, port, fills)
        return commands

    def _simple(self, indices: I64) -> Commands:
        kinds = self.kinds[indices]
        mode = np.where(kinds == NodeType.NODE_SET, np.int8(Mode.TDI), np.int8(Mode.NONE))
        mode[kinds == NodeType.RVT_NODE_SET] = Mode.RVT
        extra = np.where(kinds == NodeType.NODE_SET, self.sets[indices] - 1, -1).astype(np.int32)
        word = self.words[indices]
        if self.unknown_kind.any():
            word[self.unknown_kind[indices]] = 0
        # columns with long constant stretches are filled in by _number
        empty = np.zeros(0, np.int32)
        none = np.full(len(indices), -1, np.int32)
        return Commands(word, np.zeros(0, np.int64), empty, empty, mode, indices, extra, none)

    def _with_blocks(
        self, commands: Commands, name: str, port: int, entries: list[DesEntry], stream: NodeStream
    ) -> Commands:
        counts = [entry[4] for entry in entries]
        left = self.rules.most_des
        streams = [stream.stream_of_node.get(entry[0], -1) for entry in entries]
        for number, entry in enumerate(entries):
            if streams[number] >= 0:  # the count in an SDMA node is meaningless
                counts[number] = len(self.rules.streams[name][streams[number]])
                continue
            if counts[number] > left:
                what = f"A DES node claims {counts[number]} commands, more than the file has records and bytes for."
                self.report.error(what, f"{left} of them were used.", offset=self.offset + 4 * entry[0])
                counts[number] = left
            left -= counts[number]
        indices = np.array([entry[0] for entry in entries], dtype=np.int64)
        at = np.searchsorted(commands.node_index, indices)
        first = at + np.concatenate([[0], np.cumsum(counts)[:-1]])
        numbers = np.arange(len(stream.des_nodes), len(stream.des_nodes) + len(entries), dtype=np.int32)
        for entry, count, start, own in zip(entries, counts, first.tolist(), streams, strict=True):
            stream.des_nodes.append(DesNode(name, port, entry[3], count, start, own))
        mode = np.where(np.array(streams) < 0, np.int8(Mode.DES), np.int8(Mode.NONE))
        where, mode, node_index, des = (np.repeat(each, counts) for each in (at, mode, indices, numbers))
        return _inserted(commands, where, np.uint32(0), mode, node_index, des)

    def _number(self, commands: Commands, name: str, port: int, fills: I64 | None) -> None:
        """Fill in ids, scopes and batches, which change only at known places."""
        node_index = commands.node_index
        count = len(node_index)
        # a DES node resets before its own commands, which share its place
        resets = np.searchsorted(node_index, self._reset_indices(name, port), side="left")
        if fills is not None and len(fills):
            # the inserted command continues the old numbering; the next one restarts it
            resets = np.sort(np.concatenate([resets, np.searchsorted(node_index, fills, side="right")]))
        after_des = np.zeros(0, np.int64)
        if commands.des.max(initial=-1) >= 0:
            after_des = np.flatnonzero(np.diff(commands.des, prepend=-1, append=-1))
        edges = uniques(np.concatenate([[0], resets, after_des, [count]]).astype(np.int64))
        commands.id = np.arange(count, dtype=np.int64) - np.repeat(edges[:-1], np.diff(edges))
        commands.scope = _value_at_rows(np.searchsorted(node_index, self.scope_at), self.scope_values, count)
        batches = (self.words[self.batch_at] >> np.uint32(7)).astype(np.int32)
        commands.batch = _value_at_rows(np.searchsorted(node_index, self.batch_at), batches, count)
        inserted = (commands.mode == Mode.NONE) & (commands.word != 0)
        if inserted.any():
            commands.scope[inserted] = -1
            commands.batch[inserted] = -1


def _inserted(commands: Commands, at: I64, word: np.uint32, mode: Any, node_index: I64, des: Any) -> Commands:
    """Commands with others inserted before the rows ``at``; the columns that `_number` fills in are still empty."""
    columns = {"word": word, "mode": mode, "node_index": node_index, "extra": -1, "des": des}
    return replace(commands, **{key: np.insert(getattr(commands, key), at, some) for key, some in columns.items()})


def _value_at_rows(at: I64, values: I32, count: int) -> I32:
    """Value in force at each of ``count`` rows, which changes to ``values[i]`` at row ``at[i]``; -1 before."""
    edges = np.concatenate([[0], at, [count]])
    return np.repeat(np.concatenate([[-1], values]).astype(np.int32), np.diff(edges))


# First pass over a node stream: finds the words that are nodes, and decodes function names and DES nodes.
#
# Names and the second words of DES nodes are data that may look like nodes, so only these are walked one by one.

#: More zero words in a row than this are not padding.
_FEWEST_ZEROS = 8
_DES_ENGINE = {NodeType.DES_TIU: "TIU", NodeType.DES_GDMA: "GDMA", NodeType.DES_SDMA: "SDMA", NodeType.DES_CDMA: "CDMA"}


def walk_nodes(words: Words, report: Problems, offset: int) -> tuple[U8, list[int], list[str], list[DesEntry]]:
    """Node type of each word (FUNC if it is no node), indices and names of the functions, and DES nodes of a stream."""
    kinds = (words & np.uint32(127)).astype(np.uint8)
    is_node = words != 0
    zeros = len(words) - int(np.count_nonzero(is_node))
    candidates = np.flatnonzero(is_node & np.isin(kinds, (NodeType.FUNC, *_DES_ENGINE)))
    func_indices, func_names, des = list[int](), list[str](), list[DesEntry]()
    next_index = 0  # first word that is not part of a walked node
    name_zeros = 0
    count = len(words)
    for index in candidates.tolist():
        if index < next_index:
            continue
        word = int(words[index])
        kind = word & 127
        if kind == NodeType.FUNC:
            length = word >> 7
            size = (length + 3) // 4
            raw = words[index + 1 : index + 1 + size].tobytes()[:length]
            overrun = index + 1 + size > count
            if overrun:
                size = _text_words(words[index + 1 :])
                raw = words[index + 1 : index + 1 + size].tobytes().rstrip(b"\0")
                what = f"A function name of {length} bytes runs past the end of the node stream."
                report.error(what, "The text that is present was used as the name.", offset=offset + 4 * index)
            next_index = index + 1 + size
            if not (overrun and next_index >= count):  # otherwise no command can follow the name
                func_indices.append(index)
                name = raw.decode("utf-8", "replace")
                if name.encode() != raw:
                    what = "A kernel function name is not UTF-8."
                    report.error(what, "Bytes that are not were replaced.", offset=offset + 4 * index)
                func_names.append(name.rstrip("\0"))
            name_zeros += size - int(np.count_nonzero(is_node[index + 1 : next_index]))
        else:
            next_index = index + 2
            if next_index > count:
                what = "A DES node at the end of the node stream lacks its second word."
                report.error(what, "It was ignored.", offset=offset + 4 * index)
                is_node[index] = False
                break
            engine = _DES_ENGINE[NodeType(kind)]
            number = int(words[index + 1])
            name_zeros += number == 0
            port, number = (number >> 28, number & 0xFFFFFFF) if engine == "CDMA" else (-1, number)
            des.append((index, engine, port, word >> 7, number))
        is_node[index + 1 : next_index] = False
    kinds[~is_node] = NodeType.FUNC
    zero_run = _zero_run(words) if zeros > name_zeros + _FEWEST_ZEROS else None
    if zero_run is not None:
        what = "A stretch of zeros in the node stream."
        report.error(what, "The data there is lost.", offset=offset + 4 * zero_run[0], count=zero_run[1])
    elif zeros > name_zeros:
        what = "Zero words in the node stream."
        report.note(what, "Treated as padding; they closed no kernel function.", count=zeros - name_zeros)
    return kinds, func_indices, func_names, des


def _zero_run(words: Words) -> tuple[int, int] | None:
    """First word and length (words) of the first stretch of zeros too long for padding; None without one."""
    edges = np.flatnonzero(np.diff((words == 0).astype(np.int8), prepend=0, append=0))
    lengths = edges[1::2] - edges[::2]
    long = np.flatnonzero(lengths > _FEWEST_ZEROS)
    return (int(edges[::2][long[0]]), int(lengths[long[0]])) if len(long) else None


def _text_words(words: Words) -> int:
    """Number of leading words that read as text: every byte printable, zeros only as the last word's padding."""
    for index, word in enumerate(words[:256].tolist()):
        raw = word.to_bytes(4, "little")
        if not raw.rstrip(b"\0") or min(raw.rstrip(b"\0")) < 0x20:
            return index
        if raw[3] == 0:
            return index + 1
    return min(len(words), 256)


# Matches the DES nodes of a compiled model with the streams they announce, so that commands do not appear twice.
#
# The runtime of BM1690 and BM1690E writes each launch's commands as streams (blocks 13 to 15) and logs a DES node where
# each of them ran: the k-th node of an engine announces its k-th stream. The stream determines how many commands ran;
# the count in an SDMA node is meaningless. A stream without a node that contains only an end command did not run.

#: Largest table (nodes times streams) for matching them where their numbers differ.
_MOST_PAIRS = 40_000
#: Node index, engine, port, key and count of a DES node.
DesEntry = tuple[int, str, int, int, int]
_Keys = Collection[tuple[int, int]]


def match_nodes_to_streams(des: Sequence[DesEntry], streams: Streams, keyed: _Keys) -> dict[int, int]:
    """Stream that each DES node announces.

    Args:
        keyed: (key, count) of the keyed blocks in the file: their nodes announce no stream.

    Returns:
        Stream number by node index, -1 where no stream is left for it; empty where most counts of the nodes
        differ from those of the streams, so that the nodes must refer to something else.
    """
    result: dict[int, int] = {}
    agreeing: list[bool] = []
    for engine, own in streams.items():
        nodes = [(node, count) for node, name, _, key, count in des if name == engine and (key, count) not in keyed]
        numbers = _matched([count for _, count in nodes], own, counted=engine != "SDMA") if own else ()
        for (node, count), number in zip(nodes, numbers, strict=False):
            result[node] = number
            if engine != "SDMA":
                agreeing.append(number >= 0 and len(own[number]) == count)
    return result if 2 * sum(agreeing) >= len(agreeing) else {}


def _matched(counts: Sequence[int], streams: Sequence[CommandStream], *, counted: bool) -> list[int]:
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


def report_mismatches(des: Sequence[DesEntry], pairs: Mapping[int, int], streams: Streams, report: Problems) -> None:
    """Report nodes whose count differs from the length of their stream, and streams without a node."""
    unlike = sum(
        engine != "SDMA" and pairs.get(node, -1) >= 0 and len(streams[engine][pairs[node]]) != count
        for node, engine, _, _, count in des
    )
    if unlike:
        what = "DES nodes claim another number of commands than the streams of the model hold."
        report.warning(what, "The streams were used.", count=unlike)
    for engine, engine_streams in streams.items():
        taken = {pairs.get(node, -1) for node, name, *_ in des if name == engine}
        loose = [number for number, stream in enumerate(engine_streams) if number not in taken and not stream.only_ends]
        if loose:
            report.warning(f"Streams of {engine} commands that no DES node announces.", "They are not shown.",
                           offset=int(engine_streams[loose[0]].offsets[0]), lane=engine, count=len(loose))  # fmt: skip
