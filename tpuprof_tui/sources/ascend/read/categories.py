"""What slices of an Ascend timeline are: by the layer of their track, and by the type of their task."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final


class What(IntEnum):
    """What a slice is."""

    #: A framework operator.
    OPERATOR = 0
    #: ``ProfilerStep#N``.
    STEP = 1
    #: A Python frame, an entry of the task queue, a mark of the user.
    HOST = 2
    #: A call of CANN.
    CALL = 3
    #: A compute task.
    KERNEL = 4
    COPY = 5
    WAIT = 6
    #: A task of the device that is none of these.
    SYNC = 7
    #: A communication operator, and one of the tasks that it consists of.
    COLLECTIVE = 8
    PART = 9
    #: What the exporter derived of the others.
    DERIVED = 10


class Layer(IntEnum):
    """What a track belongs to, in the order of the screen."""

    PYTHON = 0
    CANN = 1
    STREAM = 2
    COMMUNICATION = 3
    PLANE = 4
    OVERLAP = 5
    OTHER = 6


#: Layers by the name of the process; threads of all others keep their names.
LAYERS: Final = {
    "Python": Layer.PYTHON, "CANN": Layer.CANN, "Ascend Hardware": Layer.STREAM, "Task Scheduler": Layer.STREAM,
    "AI CPU": Layer.STREAM, "HCCL": Layer.COMMUNICATION, "Communication": Layer.COMMUNICATION,
    "Overlap Analysis": Layer.OVERLAP, "MsprofTx": Layer.PYTHON, "MsTx": Layer.PYTHON, "AscendCL": Layer.CANN,
    "GE": Layer.CANN, "Runtime": Layer.CANN,
}  # fmt: skip
STEP: Final = "ProfilerStep#"
#: The four lanes of the exporter's own analysis.
COMPUTING, COMMUNICATION, EXPOSED, FREE = (
    "Computing", "Communication", "Communication(Not Overlapped)", "Free",
)  # fmt: skip
RECEIVE: Final = re.compile("receive", re.IGNORECASE)
#: Values of Accelerator Core that mark communication in tables of kernels.
COMMUNICATION_CORES: Final = ("HCCL", "COMMUNICATION")
#: Cores of AI Core kernels, for the columns "With AICore".
AI_CORES: Final = re.compile("AI_CORE|AI_VECTOR_CORE|MIX_")
_KERNELS: Final = re.compile("AI_?CORE|AI_VECTOR_CORE|AIV(EC)?$|MIX_AI[CV]|AI_?CPU|DSA|KERNEL_(AI|MIX)", re.IGNORECASE)
_COPIES: Final = re.compile("(PCIE_|S)DMA|MEM_?CPY", re.IGNORECASE)
_WAITS: Final = re.compile("(EVENT|NOTIFY)[ _]?WAIT", re.IGNORECASE)


def of_task(kind: str) -> What:
    """What a task of the device is, by its type."""
    if _KERNELS.match(kind):
        return What.KERNEL
    if _COPIES.search(kind):
        return What.COPY
    return What.WAIT if _WAITS.search(kind) else What.SYNC
