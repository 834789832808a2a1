"""Details that the first pass over a trace skips: operators' shapes and stacks, ids of Python frames, flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.sources.chrome.columns import I32, I64, Codes, printable, to_int64
from tpuprof_tui.sources.chrome.times import exact_ns, text_of_times

from ..categories import legacy_lanes
from .arguments import Arguments
from .events import FLOWS, FRAMES, MESSAGES, OPERATORS, NamedEnd, NamedStart

_LONGEST: Final = 1 << 20
_FLOWS: Final = ("fwdbwd", "forward_backward")
#: Begin of the categories of flows in legacy traces: cpu_to_cuda.
_LAUNCH_FLOWS: Final = "cpu_to_"
_WORK_FLOWS: Final = ("ac2g", "async_gpu", "async", "async_cpu_to_gpu")


class OperatorArgs(Struct, frozen=True, eq=False):
    """Arguments of operators and annotations, in columns of one length; -1 if absent.

    Attributes:
        dims: Codes of shapes (JSON texts).
        types: Codes of data types (JSON texts).
        stack: Codes of call stacks.
        texts: Texts by code.
    """

    dims: I32
    types: I32
    stack: I32
    texts: tuple[str, ...]


class FrameIds(Struct, frozen=True, eq=False):
    """Python ids of frames, of their callers, and of modules, in columns of one length; missing if absent."""

    id: I64
    parent: I64
    module: I64


class Messages(Struct, frozen=True, eq=False):
    """What was recorded of the messages of collectives, in columns of one length; missing if absent.

    Attributes:
        sent, received: Numbers of elements of this rank's input and output.
        element_bytes: Bytes of an element; missing for an unknown type.
        size: Number of ranks of the group.
        group, ranks: Codes of the group's name and of the list of its ranks (JSON texts); -1 if absent.
        texts: Texts by code.
    """

    sent: I64
    received: I64
    element_bytes: I64
    size: I64
    group: I32
    ranks: I32
    texts: tuple[str, ...]


def details_of(
    source: Arguments, operators: I64, frames: I64, messages: I64
) -> tuple[OperatorArgs, FrameIds, Messages]:
    """Arguments of operators, of Python frames, and of events that tell of messages.

    All are given by their places in the file, which is read once for all: reading takes longer than decoding any.
    """
    texts = Codes()
    told_of_operators, ids, told = source.columns(texts, (OPERATORS, operators), (FRAMES, frames), (MESSAGES, messages))
    decoded = tuple(printable(text, _LONGEST) for text in texts)
    return (OperatorArgs(texts=decoded, **told_of_operators), FrameIds(**ids), Messages(texts=decoded, **told))


class FlowEnds(Struct, frozen=True, eq=False):
    """Ends of flows in the order of the file, in columns of one length.

    Attributes:
        begins: Whether each is the flow's start.
        of_work: Whether the flow is one of device work, else from a forward to a backward operator.
        id, number: Code of the flow's id, and its value; missing if it is no integer.
        thread: Index of its thread.
        time: ns from the trace's zero.
    """

    begins: npt.NDArray[np.bool_]
    of_work: npt.NDArray[np.bool_]
    id: I64
    number: I64
    thread: I64
    time: I64

    def joined(self, which: npt.NDArray[np.bool_], row: I64) -> tuple[I64, I64, I64]:
        """Rows at the start and at the end of some flows, and their numbers, given the row of each end; -1: none."""
        begins = which & self.begins & (row >= 0)
        source_of = dict(zip(self.id[begins].tolist(), row[begins].tolist(), strict=True))
        target = np.flatnonzero(which & ~self.begins & (row >= 0))
        source = np.array([source_of.get(number, -1) for number in self.id[target].tolist()], np.int64)
        known = source >= 0
        return source[known], row[target[known]], self.number[target[known]]


def flow_ends_of(
    arguments: Arguments | None, threads: Sequence[tuple[str, str]], zero_ns: int, *, of_work: bool = False
) -> FlowEnds:  # fmt: skip
    """Ends of flows from forward to backward operators.

    Args:
        arguments: Of the file; None if it has no flows.
        threads: Process and thread of each lane in the file, as texts.
        zero_ns: Zero of the times returned.
        of_work: Whether those of device work are read too: one for each launch.
    """
    texts = Codes()
    lanes = {texts[pid] << 32 | texts[tid]: lane for lane, (pid, tid) in enumerate(threads)}
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    times = []
    names = (*_FLOWS, *_WORK_FLOWS) if of_work else _FLOWS
    words = tuple(b'"%b"' % name.encode() for name in names)
    for events in arguments.events(FLOWS, words) if arguments is not None else ():
        flows = [each for each in events if isinstance(each, NamedStart) and each.cat in names]
        starts = np.array([type(each) is NamedStart for each in flows], np.bool_)
        of_device = np.array([each.cat in _WORK_FLOWS for each in flows], np.bool_)
        parts.append((
            starts, of_device, to_int64([each.id for each in flows]),
            *(np.array([texts[str(getattr(each, key))] for each in flows], np.int32) for key in ("id", "pid", "tid")),
        ))  # fmt: skip
        times.append(text_of_times([each.ts for each in flows]))
    nothing = (*[np.zeros(0, np.bool_)] * 2, np.zeros(0, np.int64), *[np.zeros(0, np.int32)] * 3)
    starts, of_device, number, flow_id, pid, tid = map(np.concatenate, zip(nothing, *parts, strict=True))
    distinct, inverse = np.unique(pid.astype(np.int64) << 32 | tid, return_inverse=True)
    lane = np.array([lanes.get(pair, -1) for pair in distinct.tolist()], np.int64)[inverse]
    time = exact_ns(b"".join(times)) - zero_ns
    known = lane >= 0
    return FlowEnds(starts[known], of_device[known], flow_id[known].astype(np.int64), number[known], lane[known],
                    time[known])  # fmt: skip


def launches_of(arguments: Arguments, zero_ns: int) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Flows of a legacy trace, from the operator that launched a kernel to the kernel.

    Yields:
        Of both ends the process and thread as texts, as in ``Trace.threads``, the time in ns from the trace's zero, and
        the name of the event.
    """
    begun: dict[Any, tuple[Any, ...]] = {}
    for events in arguments.events(FLOWS, (f'"{_LAUNCH_FLOWS}'.encode(),)):
        flows = [each for each in events if isinstance(each, NamedStart) and str(each.cat).startswith(_LAUNCH_FLOWS)]
        if not flows:
            continue
        pids, tids = legacy_lanes([""] * len(flows), [each.pid for each in flows], [each.tid for each in flows])
        times = (exact_ns(text_of_times([each.ts for each in flows])) - zero_ns).tolist()
        for flow, pid, tid, time in zip(flows, pids, tids, times, strict=True):
            end = (str(pid), str(tid)), time, printable(flow.name) if isinstance(flow.name, str) else ""
            key = str(flow.id)
            if not isinstance(flow, NamedEnd):
                begun[key] = end
            elif key in begun:
                yield begun[key], end
