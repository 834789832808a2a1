"""Kinds of events in a PyTorch trace, and the categories (``cat``) of the file that they come from."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


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
    #: ``mtia_ccp_events``: the event's name decides which device kind it becomes.
    MTIA = 11


DEVICE_WORK: Final = (Kind.KERNEL, Kind.COPY, Kind.SET)
ON_DEVICE: Final = (*DEVICE_WORK, Kind.WAIT, Kind.MARK)

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
    "mtia_ccp_events": Kind.MTIA,
}  # fmt: skip
