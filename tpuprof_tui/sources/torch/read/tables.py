"""Tables of a trace: executions of a server, memory over time, collectives and their messages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.strings import StringsOnDemand
from tpuprof_tui.model.table import Table, TableColumns
from tpuprof_tui.model.uniques import distinct, uniques
from tpuprof_tui.sources.chrome.columns import I32, I64, lookup

from ..categories import ELEMENT_BYTES, Kind
from ..records import device_name
from .arguments import MESSAGES, OPERATORS
from .columns import compact
from .dependencies import RECORD, identities_of
from .steps import executions
from .trace import Trace

#: Larger numbers of bytes are not known.
_MOST_BYTES: Final = (1 << 63) - 1


class TraceTables:
    """The tables of one trace, each computed when it is read.

    Args:
        group: Group of its worker.
        shift: Offset from its times to those of the profile, ns.
        events: Returns the number of the event in each row, and -1 at the end.
    """

    def __init__(self, trace: Trace, group: int, shift: int, events: Callable[[], I64]) -> None:
        self._trace, self._group, self._shift, self._events = trace, group, shift, events

    def all(self) -> tuple[Table, ...]:
        """The tables."""
        named = (("executions", self._executions), ("memory", self._memory), ("collectives", self._collectives),
                 ("intervals", self._intervals))  # fmt: skip
        return tuple(Table(name, self._group, self._trace.path.name, read) for name, read in named)

    def _executions(self) -> TableColumns:
        trace = self._trace
        rows, told = executions(trace)
        texts = {key: _coded([getattr(each, key) or None for each in told]) for key in ("label", "stage")}
        numbers = {key: np.array([INT_MISSING if (value := getattr(each, key)) is None else value for each in told],
                                 np.int64) for key in ("requests", "tokens")}  # fmt: skip
        return _columns({
            "event": self._events()[rows], "start": trace.start[rows] + self._shift,
            "end": trace.end[rows] + self._shift, **numbers,
        }, texts)  # fmt: skip

    def _memory(self) -> TableColumns:
        trace, memory, tree = self._trace, self._trace.memory, self._trace.tree
        node = tree.node_at(memory["thread"], memory["time"])
        # index -1 selects the appended element
        name_of = np.append(trace.name[tree.rows], -1)
        operator = np.where(np.append(tree.operator, False)[node], node, -1)
        above = np.where(operator >= 0, np.append(tree.parent, -1)[operator], -1)

        none = np.zeros(len(node), np.int8)

        def label(name: int, caller: int) -> str | None:
            """The name of an operator; of ``aten::empty`` with its caller."""
            text = trace.names[name] if name >= 0 else None
            return (
                f"{trace.names[caller]} ({text})" if text and caller >= 0 and text.startswith("aten::empty") else text
            )

        texts = {
            "device": _by_pair(memory["device_type"], memory["device_id"], device_name),
            "operator": _by_pair(name_of[operator], name_of[above], label),
            "around": _by_pair(name_of[node], none, lambda name, _: trace.names[name] if name >= 0 else None),
        }
        return _columns({
            "start": memory["time"] + self._shift,
            **{key: memory[key] for key in ("device_type", "device_id", "change", "address", "allocated", "reserved")},
            "event": self._events()[np.append(tree.rows, -1)[operator]],
        }, texts)  # fmt: skip

    @cached_property
    def _found(self) -> _Collectives:
        return _Collectives(self._trace)

    def _collectives(self) -> TableColumns:
        trace, found = self._trace, self._found
        rows = found.rows
        columns = {"event": self._events()[rows], "start": trace.start[rows] + self._shift,
                   "end": trace.end[rows] + self._shift}  # fmt: skip
        texts = {"name": _coded([trace.names[code] for code in trace.name[rows].tolist()]),
                 "identity": _coded([text or None for text in found.identities])}  # fmt: skip
        found_columns, known = _columns(columns, texts)
        # read from the file again, when asked for
        of_messages = {key: lambda some, key=key: found.messages[key][some] for key in
                       ("bytes", "sent", "received", "size", "process_group", "ranks")}  # fmt: skip
        return {**found_columns, **of_messages}, {**known, "process_group": found.texts, "ranks": found.texts}

    def _intervals(self) -> TableColumns:
        found = self._found
        return {"collective": found.of, "start": found.start + self._shift, "end": found.end + self._shift}, {}


class _Collectives:
    """The collectives of a trace by start, with the intervals of each: its host event and its kernels.

    Attributes:
        rows: Rows of their host events.
        start, end: int64 ns of all intervals, by collective, then start.
        of: Index of the collective of each interval.
        identities: What identifies each collective among those of all ranks; empty if nothing does.
        texts: Texts of codes in ``messages``.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace, self.texts = trace, StringsOnDemand()
        launchers, is_host = trace.launchers, np.isin(trace.kind, (Kind.OPERATOR, Kind.ANNOTATION))
        rows = np.flatnonzero(launchers.has_collective_name & is_host)
        self.rows = rows = rows[np.lexsort((trace.file_order[rows], -trace.end[rows], trace.start[rows]))]
        kernels = np.flatnonzero(launchers.communicates)
        ordered = np.argsort(rows, kind="stable")
        owner = lookup(rows[ordered], launchers.of_work[kernels], ordered)
        # kernels launched by another event belong to the innermost collective around their call
        lost = np.flatnonzero((owner < 0) & (trace.call[kernels] >= 0))
        around = launchers.enclosing(np.sort(rows), trace.call[kernels[lost]])
        owner[lost] = lookup(rows[ordered], around, ordered)
        known = owner >= 0
        self._kernels, self._owner = trace.work_rows[kernels[known]], owner[known]
        start = np.concatenate([trace.start[rows], trace.start[self._kernels]])
        end = np.concatenate([trace.end[rows], trace.end[self._kernels]])
        of = np.concatenate([np.arange(len(rows)), self._owner])
        order = np.lexsort((end, start, of))
        self.start, self.end, self.of = start[order], end[order], of[order]
        self._records = np.flatnonzero((trace.kind == Kind.OPERATOR) & trace.named(RECORD.__eq__))
        self.identities = identities_of(trace, rows)
        if trace.identities:
            inside = lookup(rows[ordered], launchers.enclosing(np.sort(rows), self._records), ordered)
            telling = np.concatenate([self._kernels, self._records])
            told_by = np.concatenate([self._owner, inside])
            for index, text in zip(told_by.tolist(), identities_of(trace, telling), strict=True):
                if index >= 0:
                    self.identities[index] = self.identities[index] or text

    @cached_property
    def messages(self) -> Mapping[str, npt.NDArray[Any]]:
        """Columns on the messages: input bytes from shapes and types, 0 for unknown types; and what is told of them."""
        telling, places = self._telling()
        (arguments, messages), texts = self._trace.arguments_at((OPERATORS, self.rows), (MESSAGES, telling))
        size_of: dict[tuple[int, int], int] = {}
        sizes = []
        for codes in zip(arguments["shapes"].tolist(), arguments["input_types"].tolist(), strict=True):
            if codes not in size_of:
                size_of[codes] = _size(*(texts[code] if code >= 0 else "[]" for code in codes))
            sizes.append(size_of[codes])

        def product(counts: I64) -> I64:
            pairs = zip(_at(counts, places).tolist(), _at(messages["element_bytes"], places).tolist(), strict=True)
            return np.array([INT_MISSING if count < 0 or size < 0 or count * size > _MOST_BYTES else count * size
                             for count, size in pairs], np.int64)  # fmt: skip

        def codes_of(codes: I32) -> I32:
            of_rows = np.where(places >= 0, np.append(codes, -1)[places], -1)
            return np.array([self.texts.code(compact(texts[code])) if code >= 0 else -1
                             for code in of_rows.tolist()], np.int32)  # fmt: skip

        return {
            "bytes": np.array([min(size, _MOST_BYTES) for size in sizes], np.int64),
            "sent": product(messages["sent"]), "received": product(messages["received"]),
            "size": _at(messages["size"], places), "process_group": codes_of(messages["group"]),
            "ranks": codes_of(messages["ranks"]),
        }  # fmt: skip

    def _telling(self) -> tuple[I64, I64]:
        """Rows of the events that tell of the messages, and for each collective the index of its event; -1: none.

        It is the ``record_param_comms`` around it, else a kernel of it that has the arguments.
        """
        trace = self._trace
        event = np.full(len(self.rows), -1, np.int64)
        with_arguments = trace.work["collective"][np.searchsorted(trace.work_rows, self._kernels)]
        event[self._owner[with_arguments][::-1]] = self._kernels[with_arguments][::-1]
        around = trace.launchers.enclosing(self._records, self.rows)
        # of collectives within one another, the outer one is what was recorded
        recorded, first = np.unique(around, return_index=True)
        event[first[recorded >= 0]] = recorded[recorded >= 0]
        telling = uniques(event[event >= 0])
        return telling, lookup(telling, event)


def _columns(columns: Mapping[str, npt.NDArray[Any]], texts: Mapping[str, tuple[I32, list[str]]]) -> TableColumns:
    return ({**columns, **{key: codes for key, (codes, _) in texts.items()}},
            {key: known for key, (_, known) in texts.items()})  # fmt: skip


def _coded(texts: Sequence[str | None]) -> tuple[I32, list[str]]:
    """Codes of texts (-1: None), and the distinct texts, sorted."""
    known = sorted({text for text in texts if text is not None})
    code_of = {text: code for code, text in enumerate(known)}
    return np.array([-1 if text is None else code_of[text] for text in texts], np.int32), known


def _by_pair(
    first: npt.NDArray[Any], second: npt.NDArray[Any], text_of: Callable[[int, int], str | None]
) -> tuple[I32, list[str]]:  # fmt: skip
    """Codes of the texts of rows, each a function of two values, which is called once for each distinct pair."""
    (one, of_one), (two, of_two) = map(distinct, (first, second))
    pairs, inverse = distinct(of_one * np.int64(len(two)) + of_two)
    places = zip(*(place.tolist() for place in np.divmod(pairs, max(len(two), 1))), strict=True)
    codes, texts = _coded([text_of(int(one[left]), int(two[right])) for left, right in places])
    return codes[inverse], texts


def _at(values: I64, places: I64) -> I64:
    """Values at some places; missing for place -1."""
    return np.where(places >= 0, np.append(values, INT_MISSING)[places], INT_MISSING)


def _size(shapes: str, types: str) -> int:
    """Bytes of tensors from their shapes and types, as JSON texts; those of unknown types count as 0."""
    try:
        operands = list(zip(json.loads(shapes), json.loads(types), strict=False))
    except (ValueError, TypeError, RecursionError):
        return 0
    return sum(
        math.prod(shape) * ELEMENT_BYTES.get(kind, 0)
        for shape, kind in operands
        if isinstance(kind, str) and isinstance(shape, list) and all(isinstance(each, int) for each in shape)
    )
