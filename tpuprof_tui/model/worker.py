"""Workers: the recordings of single processes or machines that a profile consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Worker(Struct, frozen=True, eq=False):
    """A recording of one process or machine.

    Attributes:
        key: Unique name among the workers.
        group: Id of its group; -1: the whole profile, if there is a single worker.
        rank: Its rank; None: none.
        name: Its name for people.
        span: Number of the recording of this worker, from 1.
        files: Names of its files.
        devices: Its devices: ``name`` and further properties.
        hosts: Whether host events count among its own; a source may keep them separate.
        window: Start and end of the recording, ns, of a source that defines a clock of each worker, which begins
            there; None: extent of its events, on the profile's clock.
        epoch_ns: Reading of its own clock at the zero of the profile's time line, ns; None: the profile's.
        begun_ns: Wall-clock time at which it began, ns since 1970; None: its own clock is that, if plausible.
        rank_guessed: Whether its rank is only what the name of a file or folder says.
        stage: Word for what a server computed meanwhile (EXTEND); empty: not told.
        recorded: What the views of its source know of the recording beside events and tables.
        release: Returns memory of what columns of its events computed, where memory is short.
    """

    key: str
    group: int = -1
    rank: int | None = None
    name: str = ""
    span: int = 1
    files: tuple[str, ...] = ()
    devices: tuple[dict[str, Any], ...] = ()
    hosts: bool = True
    window: tuple[int, int] | None = None
    epoch_ns: int | None = None
    begun_ns: int | None = None
    rank_guessed: bool = False
    stage: str = ""
    recorded: Any = None
    release: Callable[[], None] = lambda: None

    @property
    def offset_ns(self) -> int:
        """Zero of the times of its views in JSON, ns on the profile's time line: 0 unless it has a clock of its own."""
        return 0 if self.window is None else self.window[0]
