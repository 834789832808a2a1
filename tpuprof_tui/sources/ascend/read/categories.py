"""Classification of slices of an Ascend timeline: by the layer of their track and the type of their task."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern


class SliceClass(IntEnum):
    """Class of a slice."""

    #: A framework operator.
    OPERATOR = 0
    #: ``ProfilerStep#N``.
    STEP = 1
    #: A Python frame, an entry of the task queue, or a user mark.
    HOST = 2
    #: A CANN call.
    CALL = 3
    #: A compute task.
    KERNEL = 4
    COPY = 5
    WAIT = 6
    #: Any other device task.
    SYNC = 7
    #: A communication operator (COLLECTIVE), and one of its tasks (COLLECTIVE_TASK).
    COLLECTIVE = 8
    COLLECTIVE_TASK = 9
    #: A slice of the exporter's overlap analysis.
    DERIVED = 10
    #: A task that stands for its subtasks, which are slices too.
    PARENT = 11


class Layer(IntEnum):
    """Layer of a track, in display order."""

    PYTHON = 0
    CANN = 1
    STREAM = 2
    COMMUNICATION = 3
    PLANE = 4
    OVERLAP = 5
    OTHER = 6


#: Layer by name of the process; all others are ``OTHER``.
LAYERS: Final = {
    "Python": Layer.PYTHON, "CANN": Layer.CANN, "Ascend Hardware": Layer.STREAM, "Task Scheduler": Layer.STREAM,
    "AI CPU": Layer.STREAM, "HCCL": Layer.COMMUNICATION, "Communication": Layer.COMMUNICATION,
    "Overlap Analysis": Layer.OVERLAP, "MsprofTx": Layer.PYTHON, "MsTx": Layer.PYTHON, "AscendCL": Layer.CANN,
    "GE": Layer.CANN, "Runtime": Layer.CANN,
}  # fmt: skip
#: Values of Accelerator Core that mark communication operators in kernel tables.
COMMUNICATION_CORES: Final = ("HCCL", "COMMUNICATION")
#: Cores of AI Core kernels, for the "With AICore" columns: as operator_details.csv counts, and of databases, which have
#: no such table.
AI_CORES: Final = lazy_pattern("(AI_CORE|AI_VECTOR_CORE)$")
AI_CORES_OF_DATABASE: Final = lazy_pattern("AI_CORE|AI_VECTOR_CORE|MIX_")
_KERNELS: Final = lazy_pattern(
    "AI_?CORE|AI_VECTOR_CORE|AIV(EC)?$|MIX_AI[CV]|AI_?CPU|DSA|KERNEL_(AI|MIX)", re.IGNORECASE
)
_COPIES: Final = lazy_pattern("(PCIE_|S)DMA|MEM_?CPY", re.IGNORECASE)
_WAITS: Final = lazy_pattern("(EVENT|NOTIFY)[ _]?WAIT", re.IGNORECASE)


def class_of_task(kind: str) -> SliceClass:
    """Class of a device task, by its type."""
    if _KERNELS.match(kind):
        return SliceClass.KERNEL
    if _COPIES.search(kind):
        return SliceClass.COPY
    return SliceClass.WAIT if _WAITS.search(kind) else SliceClass.SYNC
