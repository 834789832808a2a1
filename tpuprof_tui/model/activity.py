"""What events are to the figures: by what they do, and by whether they do anything."""

from __future__ import annotations

from enum import IntEnum


class Activity(IntEnum):
    """What an event does."""

    COMPUTE = 0
    TRANSFER = 1
    COMMUNICATION = 2
    HOST = 3


class Role(IntEnum):
    """Whether an event counts: *work*, *wait* (it waits for others), *sync* (other commands that do no work).

    Annotations say what others were done for; they count in no figure.
    """

    WORK = 0
    WAIT = 1
    SYNC = 2
    ANNOTATION = 3
