"""The pickle of a memory snapshot as columns: its opcodes are read here, nothing is imported, constructed or executed.

Texts, numbers, lists and dicts are all that is known; opcodes that would call something end the reading. Entries of
traces, blocks and segments become columns when the list that holds them grows: no object of them is kept. Frames are
shared objects: a stack is a tuple of codes of frames, and equal runs of references to frames are looked up as bytes.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.columns import Codes

_CHUNK: Final = 4 << 20
#: Bytes behind an opcode that are there when it is read, at least its text.
_MARGIN: Final = 1 << 16
#: Most containers, texts, frames and stacks that are kept; of the memo one entry more for each 8 bytes of the file.
_MOST_KEPT: Final = 1 << 21
#: A new list, its place in the memo, and references to frames if it is filled with nothing else.
_LIST: Final = re.compile(rb"\](\x94|q.|r.{4})?(?:\(((?:h.|j.{4}){1,4096})e|(h.|j.{4})a)?", re.DOTALL)
_REFERENCE: Final = re.compile(rb"h(.)|j(.{4})", re.DOTALL)
_PLAIN: Final = {0x4E: None, 0x88: True, 0x89: False}
#: What opcodes of calls do; they are refused.
_CALLS: Final = {
    **dict.fromkeys(b"ci\x93\x82\x83\x84", "names a function"), **dict.fromkeys(b"Ro\x81\x92b", "calls a function"),
    **dict.fromkeys(b"PQ\x97\x98", "names an object outside"),
}  # fmt: skip
#: Number and text columns of events, blocks and segments, by a key that only they have; each has ``frames`` too.
ROWS: Final = {
    "action": (("addr", "size", "stream", "time_us", "device_free"), ("action", "category", "user_metadata")),
    "state": (("address", "size", "requested_size"), ("state",)),
    "total_size": (("address", "total_size", "stream", "device", "is_expandable"), ("segment_type", "segment_pool_id")),
}

Columns = dict[str, npt.NDArray[Any]]


class FrameCode(int):
    """Code of a frame."""


class Stack(int):
    """Code of a stack."""


class Items(list[Any]):
    """A list or tuple of the file; ``parts``: columns of what was in it, by kind of row."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__(values)
        self.parts: defaultdict[str, list[Columns]] = defaultdict(list)


class Pickled:
    """What a snapshot's pickle holds.

    Attributes:
        root: The object, of dicts, `Items`, `Stack` and plain values.
        fault: Why reading ended before the pickle did; empty: it did not.
        offset: Byte at which reading ended.
        texts: Codes of the texts of text columns.
        frames: Codes of frames: (file name, line, function).
        stacks: Codes of stacks: tuples of codes of frames, the innermost first.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.root: Any = None
        self.fault, self.offset = "", 0
        self.texts, self.frames, self.stacks = Codes(), Codes(), Codes()
        self._read = read
        self._ended = False
        self._kept = self._swept = 0
        self._runs: dict[bytes, Stack | None] = {}
        self._memo: list[Any] = []
        self._stack: list[Any] = []
        #: Height of the stack and containers kept, at each mark.
        self._marks: list[tuple[int, int]] = []
        try:
            self._decode()
        except UnreadableError as error:
            raise UnreadableError(f"{error} at offset {self.offset:,}") from None
        except (AttributeError, IndexError, TypeError, ValueError, struct.error) as error:
            told = str(error) if type(error) is ValueError else "bytes that are no pickle"
            self.fault = "the end of the file" if self._ended else told
            self._close()

    def __getstate__(self) -> dict[str, Any]:
        """What is kept: not what reading it needed."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}

    def _decode(self) -> None:
        """Reads all opcodes; raises if it cannot."""
        stack, memo, marks = self._stack, self._memo, self._marks
        push, unpack = stack.append, struct.unpack_from
        data, at, base, limit = b"", 0, 0, 0
        try:
            while True:
                if at >= limit:
                    more = self._read(_CHUNK)
                    data, base, at = data[at:] + more, base + min(at, len(data)), 0
                    limit = len(data) - _MARGIN if more else len(data)
                    self._check(base)
                    if limit > 0 or more:
                        continue
                    self._ended = True
                code = data[at]
                if code == 0x68:  # h, j: references
                    push(memo[data[at + 1]])
                    at += 2
                elif code == 0x6A:
                    push(memo[unpack("<I", data, at + 1)[0]])
                    at += 5
                elif code == 0x4B:  # K, M, J: numbers
                    push(data[at + 1])
                    at += 2
                elif code == 0x94:
                    memo.append(stack[-1])
                    at += 1
                elif code == 0x4A:
                    push(unpack("<i", data, at + 1)[0])
                    at += 5
                elif code == 0x8A:
                    size = data[at + 1]
                    push(int.from_bytes(data[at + 2 : at + 2 + size], "little", signed=True) if size <= 8 else None)
                    at += 2 + size
                elif code == 0x5D:  # ]
                    at = self._list(data, at)
                elif code == 0x7D:  # }
                    push({})
                    self._kept += 1
                    at += 1
                elif code == 0x28:  # (
                    marks.append((len(stack), self._kept))
                    at += 1
                elif code == 0x75:  # u: what is in a dict
                    mark, _ = marks.pop()
                    stack[mark - 1].update(zip(stack[mark::2], stack[mark + 1 :: 2], strict=True))
                    del stack[mark:]
                    at += 1
                elif code == 0x4D:
                    push(data[at + 1] | data[at + 2] << 8)
                    at += 3
                elif code == 0x2E:
                    self.root = stack[-1]
                    return
                else:
                    at += self._rare(code, data, at)
        finally:
            self.offset = base + min(at, len(data))

    def _check(self, read: int) -> None:
        """Raises ValueError if more is kept than a snapshot has."""
        kept = self._kept, len(self._stack), len(self.texts), len(self.frames), len(self.stacks), len(self._runs)
        if max(*kept, len(self._memo) - read // 8) > _MOST_KEPT:
            raise ValueError("more objects than a snapshot has")

    def _rare(self, code: int, data: bytes, at: int) -> int:
        """Executes an opcode that is not frequent; returns its size."""
        stack = self._stack
        if code in (0x8C, 0x58):  # texts
            size, first = (data[at + 1], 2) if code == 0x8C else (struct.unpack_from("<I", data, at + 1)[0], 5)
            if size > _MARGIN - 8:
                raise ValueError(f"a text of {size:,} bytes")
            stack.append(data[at + first : at + first + size].decode("utf-8", "replace"))
            self._kept += 1
            return int(first + size)
        if code == 0x65:  # e, a: what is in a list
            mark, kept = self._marks.pop()
            if self._extend(stack[mark - 1], stack[mark:]):
                self._kept = kept
            del stack[mark:]
        elif code == 0x61:
            value = stack.pop()
            self._extend(stack[-1], [value])
        elif code == 0x73:  # s: a value of a dict
            value, key = stack.pop(), stack.pop()
            stack[-1].update(((key, value),))
        elif code in _PLAIN:
            stack.append(_PLAIN[code])
        elif code in (0x29, 0x74, 0x85, 0x86, 0x87):  # tuples become lists, which are no keys
            count = len(stack) - self._marks.pop()[0] if code == 0x74 else 0 if code == 0x29 else code - 0x84
            first = len(stack) - count
            stack[first:] = [Items(stack[first:])]
            self._kept += 1 + count
        elif code in (0x71, 0x72):
            self._remember(data[at : at + 5 if code == 0x72 else at + 2], stack[-1])
            return 5 if code == 0x72 else 2
        elif code == 0x47:
            stack.append(struct.unpack_from(">d", data, at + 1)[0])
            return 9
        elif code in (0x95, 0x80):  # a part of the file, the protocol
            return 9 if code == 0x95 else 2
        elif code in _CALLS:
            raise UnreadableError(_CALLS[code])
        else:
            raise ValueError(f"opcode {code:#04x}, which no snapshot has")
        return 1

    def _list(self, data: bytes, at: int) -> int:
        """Executes an opcode of a new list; of a stack, also those that fill it. Returns where the next one is."""
        found = _LIST.match(data, at)
        assert found is not None
        run = found[2] or found[3]
        stack = self._stack_of_run(run) if run else None
        self._stack.append(Items() if stack is None else stack)
        self._kept += stack is None
        if found[1] == b"\x94":
            self._memo.append(self._stack[-1])
        elif found[1]:
            self._remember(found[1], self._stack[-1])
        return at + 1 + len(found[1] or b"") if stack is None else found.end()

    def _remember(self, code: bytes, value: Any) -> None:
        """Puts a value into the memo: at its end, or (opcodes with an argument) anywhere."""
        place = int.from_bytes(code[1:], "little") if len(code) > 1 else len(self._memo)
        if place == len(self._memo):
            self._memo.append(value)
        else:  # not by the programs that write snapshots
            self._memo[place] = value
            self._runs.clear()

    def _stack_of_run(self, run: bytes) -> Stack | None:
        """The stack of references to frames; None if they refer to anything else."""
        if run not in self._runs:
            places = (int.from_bytes(each[1] or each[2], "little") for each in _REFERENCE.finditer(run))
            self._runs[run] = self._stack_of([self._memo[place] for place in places])
        return self._runs[run]

    def _stack_of(self, values: list[Any]) -> Stack | None:
        """The stack of frames; None if the values are anything else."""
        codes = [self._frame_of(value) for value in values]
        return Stack(self.stacks[tuple(codes)]) if codes and None not in codes else None

    def _frame_of(self, value: Any) -> FrameCode | None:
        if type(value) is FrameCode:
            return value
        if type(value) is not dict or "filename" not in value:
            return None
        file, line, name = map(value.get, ("filename", "line", "name"))
        return FrameCode(self.frames[text_or(file), line if type(line) is int else 0, text_or(name)])

    def _extend(self, target: Any, values: list[Any]) -> bool:
        """Appends to a list, rows as columns; whether they were rows. No object is a row twice."""
        if type(target) is not Items:
            raise TypeError
        kind = next((kind for kind in ROWS if type(values[0]) is dict and kind in values[0]), "") if values else ""
        if not kind:
            self._kept += len(values)
            target.extend(values)
            return False
        rows = list({id(row): row for row in values if type(row) is dict and kind in row}.values())
        numbers, texts = ROWS[kind]
        columns: Columns = {key: _numbers([row.get(key) for row in rows]) for key in numbers}
        columns |= {key: np.array([self._text(row.get(key)) for row in rows], np.int32) for key in texts}
        stacks = [row.get("frames") for row in rows]
        known = [self._stack_of(each) if type(each) is Items else each for each in stacks]
        columns["frames"] = np.array([each if type(each) is Stack else -1 for each in known], np.int32)
        if kind == "total_size":  # its own columns, and how many rows of blocks each has
            blocks = [row.get("blocks") for row in rows]
            claimed = [each.parts.pop("state", []) if type(each) is Items else [] for each in blocks]
            columns["blocks"] = np.array([sum(len(part["size"]) for part in parts) for parts in claimed], np.int64)
            target.parts["state"] += [part for parts in claimed for part in parts]
        target.parts[kind].append(columns)
        self._memo[self._swept :] = map(self._swept_value, self._memo[self._swept :])
        self._swept = len(self._memo)
        for row in rows:
            row.clear()
        return True

    def _swept_value(self, value: Any) -> Any:
        """What stays in the memo of a value, when the rows around it have become columns: texts, frames and stacks."""
        if type(value) is dict:
            return self._frame_of(value)
        if type(value) is not Items:
            return value
        return _numbers_text(value) if (stack := self._stack_of(value)) is None else stack

    def _text(self, value: Any) -> int:
        """Code of a text, of numbers as text; -1: none."""
        value = _numbers_text(value) if type(value) is Items else value
        return self.texts[value] if value and type(value) is str else -1

    def _close(self) -> None:
        """Closes what is open where reading ended; an event, block or frame that is not whole is left out."""
        stack, partial = self._stack, {"action", "state", "filename"}
        while self._marks:
            mark, _ = self._marks.pop()
            target, values = stack[mark - 1] if 0 < mark <= len(stack) else None, stack[mark:]
            del stack[mark:]
            if type(target) is dict and not partial & {each for each in values[::2] if type(each) is str}:
                if len(values) % 2 and len(values) > 1 and type(values[-2]) is Items:  # its only item is open
                    self._extend(values[-2], [values.pop()])
                target.update((key, value) for key, value in zip(values[::2], values[1::2], strict=False)
                              if type(key) is str)  # fmt: skip
            elif type(target) is Items:
                self._extend(target, values)
        self.root = stack[0] if stack else None


def text_or(value: Any) -> str:
    """A text; empty for anything else."""
    return value if type(value) is str else ""


def _numbers_text(values: Items) -> str:
    """The two numbers of a pool's id as text; empty for anything else."""
    return f"{values[0]}, {values[1]}" if [*map(type, values)] == [int, int] else ""


def _numbers(values: list[Any]) -> npt.NDArray[np.int64]:
    """Whole numbers; anything else is missing."""
    if not {int, bool}.issuperset(map(type, values)):
        values = [value if type(value) in (int, bool) else INT_MISSING for value in values]
    return np.array(values, np.int64)


def columns_of(kind: str, parts: list[Columns]) -> Columns:
    """The columns of parts as one; ``parts`` is emptied."""
    numbers, texts = ROWS[kind]
    dtypes: dict[str, Any] = dict.fromkeys((*texts, "frames"), np.int32) | dict.fromkeys(numbers, np.int64)
    dtypes |= {"blocks": np.int64} if kind == "total_size" else {}
    found = {key: np.concatenate([np.zeros(0, dtype), *(part.pop(key) for part in parts if key in part)])
             for key, dtype in dtypes.items()}  # fmt: skip
    parts.clear()
    return found
