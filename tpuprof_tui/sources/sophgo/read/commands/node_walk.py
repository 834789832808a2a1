"""First pass over a node stream: finds the words that are nodes, and decodes function names and DES nodes.

Names and the second words of DES nodes are data that may look like nodes, so only these are walked one by one.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..arrays import U8
from ..problems import Report
from .command_table import Node, Words
from .des_streams import DesEntry

#: More zero words in a row than this are not padding.
_FEWEST_ZEROS = 8
_DES_ENGINE = {Node.DES_TIU: "TIU", Node.DES_GDMA: "GDMA", Node.DES_SDMA: "SDMA", Node.DES_CDMA: "CDMA"}


class Skeleton(Struct):
    """Result of the walk: node type of each word (FUNC if it is no node), and the functions and DES nodes found."""

    kinds: U8
    func_indices: list[int]
    func_names: list[str]
    des: list[DesEntry]


def walk_nodes(words: Words, report: Report, offset: int) -> Skeleton:
    """Walk the function names and DES nodes of a stream."""
    kinds = (words & np.uint32(127)).astype(np.uint8)
    is_node = words != 0
    zeros = len(words) - int(np.count_nonzero(is_node))
    candidates = np.flatnonzero(is_node & ((kinds == Node.FUNC) | ((kinds >= Node.DES_TIU) & (kinds <= Node.DES_CDMA))))
    result = Skeleton(kinds, [], [], [])
    next_index = 0  # first word that is not part of a walked node
    name_zeros = 0
    count = len(words)
    for index in candidates.tolist():
        if index < next_index:
            continue
        word = int(words[index])
        kind = word & 127
        if kind == Node.FUNC:
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
                result.func_indices.append(index)
                try:
                    name = raw.decode("utf-8")
                except UnicodeDecodeError:
                    name = raw.decode("utf-8", "replace")
                    what = "A kernel function name is not UTF-8."
                    report.error(what, "Bytes that are not were replaced.", offset=offset + 4 * index)
                result.func_names.append(name.rstrip("\0"))
            name_zeros += size - int(np.count_nonzero(is_node[index + 1 : next_index]))
        else:
            next_index = index + 2
            if next_index > count:
                what = "A DES node at the end of the node stream lacks its second word."
                report.error(what, "It was ignored.", offset=offset + 4 * index)
                is_node[index] = False
                break
            engine = _DES_ENGINE[Node(kind)]
            number = int(words[index + 1])
            name_zeros += number == 0
            port, number = (number >> 28, number & 0xFFFFFFF) if engine == "CDMA" else (-1, number)
            result.des.append((index, engine, port, word >> 7, number))
        is_node[index + 1 : next_index] = False
    kinds[~is_node] = Node.FUNC
    zero_run = _zero_run(words) if zeros > name_zeros + _FEWEST_ZEROS else None
    if zero_run is not None:
        what = "A stretch of zeros in the node stream."
        report.error(what, "The data there is lost.", offset=offset + 4 * zero_run[0], count=zero_run[1])
    elif zeros > name_zeros:
        what = "Zero words in the node stream."
        report.note(what, "Treated as padding; they closed no kernel function.", count=zeros - name_zeros)
    return result


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
