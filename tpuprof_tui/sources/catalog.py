"""Sources on disk -> a Profile. One package per source; this module finds the one that recognises a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .sophgo.finding import device_and_call, find_captures
from .sophgo.fingerprint import fingerprint

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile, Vocabulary

__all__ = ["Progress", "ProgressCallback", "device_and_call", "find_captures", "fingerprint", "open_profile",
           "vocabularies"]  # fmt: skip


@dataclass(frozen=True)
class Progress:
    """How far reading is.

    Attributes:
        text: What is being done, a few words.
        done, total: Bytes read so far and in all.
        core: Core just finished; -1 when the report is not about one core.
        records: Records found on that core.
    """

    text: str
    done: int
    total: int
    core: int = -1
    records: int = 0


#: Called from the reading thread, at most a few times a second; may raise to cancel.
ProgressCallback = Callable[[Progress], None]


def vocabularies() -> tuple[Vocabulary, ...]:
    """What the sources call things, for what is asked without a profile; known without numpy."""
    from .sophgo.vocabulary import VOCABULARY

    return (VOCABULARY,)


def open_profile(
    path: str | os.PathLike[str],
    *,
    chip: str | None = None,
    tiu_mhz: int | None = None,
    progress: ProgressCallback | None = None,
) -> Profile:
    """Read a capture.

    Args:
        path: Capture directory, or a file in it.
        chip: Chip name for captures whose ``global.profile`` is absent or names an unknown arch.
        tiu_mhz: TIU clock in MHz; without it the capture's ``tpu_freq``, then the chip's default.
        progress: Called while reading; what it raises ends the reading and is passed on.

    Returns:
        The profile: times in integer ns on one time line, whose zero is the first instruction.

    Raises:
        UnreadableError: No such path, nothing recognisable in it, or an unknown chip without ``chip``.
    """
    from .sophgo import read as cdm

    return cdm.read(Path(path), chip=chip, tiu_mhz=tiu_mhz, progress=progress)
