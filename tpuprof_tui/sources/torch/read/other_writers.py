"""Traces that other programs write in the same form: XProf (JAX), unitrace for GPUs of Intel, rocprofv3 for AMD's.

They tell what runs on devices by the names of processes. XProf: ``/device:TPU:0``, ``/device:GPU:1``, whose threads are
streams (``Stream #13(Compute)``), else ``XLA Ops``; other threads (``XLA Modules``, ``Framework Ops``, ``Steps``) say
of the same time what it was for. unitrace: ``DEVICE<host>[Intel ...] 0:3a:0:0``, with events of category ``gpu_op``.
rocprofv3 names tracks: ``COMPUTE AGENT [4] STREAM [1] (GPU)``, ``COPY to AGENT [0] STREAM [1] (CPU)``, or by queue
and thread. Copies to an agent that is a CPU come from the GPU of their stream, if that is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.chrome.columns import I64, Codes

from ..categories import Kind
from .arguments import WORK
from .trace import Columns, numeric_sort_key

_XPROF: Final = lazy_pattern(r"/device:(?P<kind>[A-Za-z]+):(?P<number>\d{1,6})(?!\d)(?P<more>.*)", re.DOTALL)
_UNITRACE: Final = lazy_pattern(r"(?:RANK \d+ )?DEVICE<[^>]*>(?:\[(?P<card>[^\]]*)\])?.*", re.DOTALL)
_XPROF_HOST: Final = "/host:CPU"
_ROCPROF: Final = lazy_pattern(
    r"(?P<what>COMPUTE|COPY to) \w+ \[(?P<agent>\d{1,6})\] (?P<unit>STREAM|QUEUE|THREAD) \[(?P<number>\d{1,20})\] "
    r"\(?(?P<kind>[CG]PU)\)?"
)
_STREAM: Final = lazy_pattern(r"Stream #(\d+)")
_OPS: Final = "XLA Ops"
_STEPS: Final = "Steps"


class Foreign(Struct, frozen=True, eq=False):
    """Devices of a trace that another program wrote."""

    writer: str  #: The program
    #: Process and thread of each key of events, on devices their number and what they call it.
    lanes: list[tuple[str, str]]
    kinds: npt.NDArray[np.int8]  #: int8, kind of the events of each key
    titles: dict[str, str]  #: Title of each device, by its process in ``lanes``
    cards: list[dict[str, Any]]  #: Properties of devices, as PyTorch states them
    steps: npt.NDArray[np.bool_]  #: Mask of the keys whose events are steps


def foreign(
    keys: Sequence[tuple[Any, ...]], kinds: npt.NDArray[np.int8], processes: Mapping[str, str],
    threads: Mapping[tuple[str, str], str],
) -> Foreign | None:  # fmt: skip
    """The devices of a trace, by the names of its processes and threads; None if none has such a name.

    Args:
        keys: Category, process and thread of events.
        kinds: Their kinds by category.
        processes, threads: Names.
    """
    # unitrace counts processes of devices downwards
    order = sorted({str(pid) for _, pid, _ in keys}, key=lambda pid: -numeric_sort_key(pid)[1])
    named = {pid: match for pid in order if (match := (_XPROF.fullmatch(processes.get(pid, ""))
                                                       or _UNITRACE.fullmatch(processes.get(pid, ""))))}  # fmt: skip
    is_xprof = any("kind" in match.groupdict() for match in named.values()) or _XPROF_HOST in processes.values()
    if not named and not is_xprof:
        return _of_rocprof(keys, kinds, threads)
    devices: dict[str, str] = {}
    titles, cards = {}, []
    for index, (pid, match) in enumerate(named.items()):
        told = match.groupdict()
        number, more = told.get("number") or str(index), (told.get("more") or "").strip()
        devices[pid] = f"{number} {more or pid}" if more or number in titles else number
        titles[devices[pid]] = f"{told.get('kind') or 'GPU'} {devices[pid]}"
        if told.get("card"):
            cards.append({"id": int(number), "name": told["card"]})
    streams = {pid for pid, _ in threads if pid in named and _STREAM.match(threads[pid, _])}
    lanes, found, steps = [], [], []
    for (_, pid, tid), kind in zip(keys, kinds.tolist(), strict=True):
        raw = str(pid), str(tid)
        name = threads.get(raw, "")
        stream = _STREAM.match(name)
        lanes.append((devices[raw[0]], stream[1] if stream else name or raw[1]) if raw[0] in devices else raw)
        if raw[0] not in devices:
            kind = Kind.ANNOTATION if is_xprof and kind == Kind.OTHER else kind
        elif kind == Kind.OTHER:
            runs = bool(stream) if raw[0] in streams else name in (_OPS, "")
            kind = Kind.NAMED if runs else Kind.MARK
        found.append(kind)
        steps.append(raw[0] in devices and name == _STEPS)
    return Foreign("XProf" if is_xprof else "unitrace", lanes, np.array(found, np.int8), titles, cards,
                   np.array(steps, np.bool_))  # fmt: skip


def _of_rocprof(
    keys: Sequence[tuple[Any, ...]], kinds: npt.NDArray[np.int8], threads: Mapping[tuple[str, str], str]
) -> Foreign | None:
    # a track without a thread has its name for one
    pairs = {(str(pid), str(tid)) for _, pid, tid in keys}
    tracks = {raw: match for raw in pairs if (match := _ROCPROF.fullmatch(threads.get(raw) or raw[1]))}
    if not tracks:
        return None
    cards: dict[str, set[str]] = {}
    for match in tracks.values():
        if match["kind"] == "GPU":
            cards.setdefault(match["agent"], set()).add(f"{match['unit']} {match['number']}")
    lanes, titles = [], {}
    for _, pid, tid in keys:
        raw = str(pid), str(tid)
        if match := tracks.get(raw):
            device, unit = match["agent"], f"{match['unit']} {match['number']}"
            if device not in cards:
                of_stream = [each for each in cards if unit in cards[each]]
                device = (*(cards if len(cards) == 1 else of_stream if len(of_stream) == 1 else ()), "?")[0]
            titles[device] = f"GPU {device}"
            what = {"STREAM": "", "QUEUE": "queue ", "THREAD": "copies of thread "}[match["unit"]]
            raw = device, f"{what}{match['number']}"
        lanes.append(raw)
    return Foreign("rocprofv3", lanes, kinds, titles, [], np.zeros(len(keys), np.bool_))


def work_without_arguments(lane: I64, threads: Sequence[tuple[str, str]], texts: Codes) -> Columns:
    """Columns of device work on some of the threads (``lane``: their index), whose arguments are not PyTorch's."""
    columns = {key: np.repeat(values, len(lane)) for key, values in WORK.of((None,), texts).items()}
    for key, part in (("device", 0), ("stream", 1)):
        columns[key] = np.array([texts[thread[part]] for thread in threads], np.int32)[lane]
    return columns
