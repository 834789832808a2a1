"""Activities and roles of events: compute, transfer, communication, host; work, wait, sync, annotation."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Activity(IntEnum):
    """Kind of activity of an event."""

    COMPUTE = 0
    TRANSFER = 1
    COMMUNICATION = 2
    HOST = 3


#: Activities that move data.
MOVES: Final = (Activity.TRANSFER, Activity.COMMUNICATION)


class Role(IntEnum):
    """Role of an event: *work*, *wait* (it waits for others), *sync* (other commands that do no work), *annotation*.

    Annotations label other events and are excluded from all figures.
    """

    WORK = 0
    WAIT = 1
    SYNC = 2
    ANNOTATION = 3
