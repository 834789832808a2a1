"""Kinds of events in a PyTorch trace, and the categories (``cat``) of the file that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

#: How the names of steps and of nn.Modules begin.
STEP: Final = "ProfilerStep#"
MODULE: Final = "nn.Module: "


class Kind(IntEnum):
    """Kind of an event."""

    OPERATOR = 0
    ANNOTATION = 1
    CALL = 2
    KERNEL = 3
    COPY = 4
    SET = 5
    #: A wait on the device; not counted as work.
    WAIT = 6
    #: The mirror of an annotation on the device; not counted as work.
    MARK = 7
    #: A Python frame.
    FRAME = 8
    #: A Python event of PyTorch before 1.12, which counts as CPU activity.
    OLD_FRAME = 9
    OTHER = 10
    #: Events of a device whose name decides what they are: of MTIA, and of other programs.
    NAMED = 11


DEVICE_WORK: Final = (Kind.KERNEL, Kind.COPY, Kind.SET)
ON_DEVICE: Final = (*DEVICE_WORK, Kind.WAIT, Kind.MARK)
ON_HOST: Final = (Kind.OPERATOR, Kind.ANNOTATION, Kind.CALL, Kind.FRAME, Kind.OLD_FRAME)
#: Categories of the profiler's own events.
OF_PROFILER: Final = ("trace", "overhead")

#: Category of events that communicate, whatever their names.
COLLECTIVE_COMM: Final = "collective_comm"
KINDS: Final = {
    "operator": Kind.OPERATOR, "cpu_op": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    # collectives of oneCCL on the host
    COLLECTIVE_COMM: Kind.ANNOTATION,
    **dict.fromkeys(("runtime", "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver",
                     "privateuse1_runtime", "privateuse1_driver", "mtia_runtime", "hpu_op"), Kind.CALL),
    "kernel": Kind.KERNEL,
    "memcpy": Kind.COPY, "gpu_memcpy": Kind.COPY,
    "memset": Kind.SET, "gpu_memset": Kind.SET,
    # nodes of graphs that run a function on the host, or record an event, while the stream waits
    **dict.fromkeys(("cuda_sync", "xpu_sync", "graph_host_node", "graph_event_node"), Kind.WAIT),
    "gpu_user_annotation": Kind.MARK,
    "python_function": Kind.FRAME, "python": Kind.OLD_FRAME,
    "mtia_ccp_events": Kind.NAMED,
    # unitrace of Intel
    "gpu_op": Kind.NAMED,
    # rocprofv3 of AMD
    "kernel_dispatch": Kind.KERNEL, "memory_copy": Kind.COPY, "marker_api": Kind.ANNOTATION,
    **dict.fromkeys(("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api"), Kind.CALL),
}  # fmt: skip

#: Process of the host's events in traces of ``EventList.export_chrome_trace``, which have no categories.
LEGACY_HOST: Final = "CPU functions"
#: How the names of the processes of its devices end ("CUDA functions"); the number of the device is their thread.
_LEGACY_DEVICE: Final = " functions"


def kind_of(category: str, process: Any, thread: Any) -> Kind:
    """Kind of the events of a category, process and thread (see `legacy_lanes`)."""
    if not category and process == LEGACY_HOST:
        return Kind.OPERATOR
    if not category and isinstance(thread, str) and thread.endswith(_LEGACY_DEVICE):
        return Kind.KERNEL
    return KINDS.get(category.lower(), Kind.OTHER)


def legacy_lanes(
    categories: Iterable[str], processes: Iterable[Any], threads: Iterable[Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Processes and threads of events; of legacy events of a device its number is the process."""
    pairs = [
        (thread, process) if not category and isinstance(process, str) and process.endswith(_LEGACY_DEVICE)
        and process != LEGACY_HOST else (process, thread)
        for category, process, thread in zip(categories, processes, threads, strict=True)
    ]  # fmt: skip
    found, others = zip(*pairs, strict=True)
    return found, others


def is_legacy(category: str, process: Any, thread: Any) -> bool:
    """Whether the kind of such events is known by their process alone."""
    return not category and kind_of(category, process, thread) != Kind.OTHER
