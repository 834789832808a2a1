"""Work and counters of GPUs: render stages, which are kernels, copies and others of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from .state import (
    CONTEXTS,
    GPU_COUNTERS,
    KERNELS,
    MOST_KEPT,
    NAMES,
    PARAMETERS,
    SHORT,
    SPECIFICATIONS,
    Sequence,
    as_json,
)
from .wire import Field, double, fields, last, numbers, signed, text

I64 = npt.NDArray[np.int64]
#: Categories of PyTorch by the names that it gives to stages.
_CATEGORIES: Final = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Annotation": "gpu_user_annotation",
    "EventRecord": "graph_event_node", "HostNode": "graph_host_node",
}  # fmt: skip
#: Arguments as PyTorch names them in Chrome traces.
_TITLES: Final = {"device id": "device", "context id": "context", "stream id": "stream",
                  "registers_per_thread": "registers per thread", "shared_mem_dynamic": "shared memory"}  # fmt: skip
_BEGINS: Final = tuple("-0123456789[")
#: Values of arguments of launches, by field.
_VALUES: Final[dict[int, Callable[[Any], Any]]] = {3: signed, 4: int, 5: double, 6: text}


class Stages:
    """Work of GPUs, and counters of GPUs."""

    def __init__(self) -> None:
        #: Names of queues and stages of events that know them by number, by field.
        self._specified: dict[int, list[str]] = {2: [], 3: []}
        self._counters: dict[tuple[int, int], str] = {}
        #: Numbers of events by id, and ids that events wait for, and their numbers.
        self._numbers, self._waits = dict[int, int](), list[tuple[int, int]]()

    @property
    def waits(self) -> tuple[I64, I64]:
        """Numbers of the events that others wait for, and of those."""
        found = [(self._numbers[id_], waiting) for id_, waiting in self._waits if id_ in self._numbers]
        causes, consequences = np.array(found, np.int64).reshape(-1, 2).T
        return causes, consequences

    def work(self, sequence: Sequence, event: list[Field], count: int) -> tuple[int, str, str]:
        """Length in ns of an event (GpuRenderStageEvent), what it is and where, and its arguments, as JSON."""
        found = dict(event)
        for number, value in fields(found.get(7, b"")):
            if number in self._specified:
                self._specified[number].append(text(last(value).get(1, b"")))
        queue, stage = (
            sequence.text(SPECIFICATIONS, found[iid]) if iid in found
            else dict(enumerate(self._specified[place])).get(found.get(index, 0), f"{otherwise} {found.get(index, 0)}")
            for iid, index, place, otherwise in ((13, 3, 2, "queue"), (14, 4, 3, "stage"))
        )  # fmt: skip
        name = next((sequence.text(table, found[number], stage) if table else text(found[number])
                     for number, table in ((17, 0), (20, NAMES), (19, KERNELS)) if number in found), stage)  # fmt: skip
        device, id_ = signed(found.get(11, 0)), found.get(1, 0)
        arguments = {"device": str(device)}
        for number, value in event:
            if number in _ARGUMENTS:
                kept = sequence.arguments.get(value)
                if kept is None:
                    kept = _ARGUMENTS[number](sequence, value)
                    if len(value) <= SHORT and len(sequence.arguments) < MOST_KEPT:
                        sequence.arguments[value] = kept
                arguments |= kept
            elif number == 18:
                self._waits += [(wanted, count) for wanted in numbers(value)]
        self._numbers[id_] = count
        if context := sequence.tables[CONTEXTS].get(found.get(5, 0)):
            arguments.setdefault("process_id", str(signed(context.get(2, 0))))
        arguments.setdefault("correlation", str(id_))
        category = _CATEGORIES.get(stage, "kernel" if 21 in found else stage)
        words = f'"cat":{as_json(category)},"name":{as_json(name)}'
        place = f'"pid":{device},"tid":{arguments.get("stream") or as_json(queue)}'
        members = ",".join([f"{as_json(key)}:{value}" for key, value in arguments.items()])
        return found.get(2, 0), f"{words},{place}", f"{{{members}}}"

    def samples(self, sequence: Sequence, event: list[Field]) -> Iterator[tuple[int, str, float]]:
        """GPU, name and value of samples of counters (GpuCounterEvent)."""
        found = dict(event)
        interned = sequence.tables[GPU_COUNTERS].get(found.get(4, 0), {})
        gpu = signed(found.get(3, interned.get(3, 0)))
        for number, value in fields(interned.get(2, b"") or found.get(1, b"")):
            counter = last(value) if number == 1 else {}
            if 2 in counter:
                self._counters[gpu, counter.get(1, 0)] = self._counters[-1, counter.get(1, 0)] = text(counter[2])
        for number, value in event:
            sample = last(value) if number == 2 else {}
            if 2 in sample or 3 in sample:
                id_ = sample.get(1, 0)
                name = self._counters.get((gpu, id_)) or self._counters.get((-1, id_), f"counter {id_}")
                yield gpu, name, double(sample[3]) if 3 in sample else signed(sample[2])


def _extra(sequence: Sequence, data: bytes) -> dict[str, str]:
    """A message ExtraData as an argument, its value as JSON: a number or list if it is the text of one."""
    del sequence
    found = last(data)
    key, word = (text(found.get(number, b"")) for number in (1, 2))
    try:
        value = msgspec.json.decode(word) if word[:1] in _BEGINS else word
    except (msgspec.DecodeError, RecursionError):
        value = word
    return {_TITLES.get(key, key): as_json(value)}


def _launch(sequence: Sequence, data: bytes) -> dict[str, str]:
    """Arguments of a message ComputeKernelLaunch as JSON, as PyTorch names them."""
    found = {}
    for number, value in fields(data):
        inner = last(value)
        if number in (1, 2):
            found["grid" if number == 1 else "block"] = as_json([inner.get(axis, 1) for axis in (1, 2, 3)])
        elif number == 3:
            key = text(inner[2]) if 2 in inner else sequence.text(PARAMETERS, inner.get(1, 0))
            values = (of(inner[each]) for each, of in _VALUES.items() if each in inner)
            found[_TITLES.get(key, key)] = as_json(next(values, None))
    return found


#: Arguments of work, by field.
_ARGUMENTS: Final = {6: _extra, 21: _launch}
