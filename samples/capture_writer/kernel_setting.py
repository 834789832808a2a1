"""What shapes a kernel on one core."""

from __future__ import annotations

from dataclasses import dataclass

from .chips import Chip
from .program import TDI, Program


@dataclass(frozen=True)
class Setting:
    """What shapes a kernel on one core."""

    chip: Chip
    #: Cores that run the kernel together.
    cores: int
    #: Imbalance: extra tiles of this core.
    extra: int = 0
    #: CDMA ports this core serves in the launch.
    slots: int = 0
    #: Differences that make CDMA launches of two cores tell-tale.
    flavour: int = 0
    mode: int = TDI
    sdma: bool = False
    #: The same from port to port of a core.
    slot_flavours: int = 0
    #: Transfers per direction and CDMA launch (0: the kernel's own number).
    cdma_pairs: int = 0
    #: Tiles of the prefill kernel.
    prefill_tiles: int = 32
    #: Without the synchronisation at the end.
    open_end: bool = False
    #: Kernels of a subnet write into one program.
    shared: Program | None = None

    def program(self, name: str) -> Program:
        return self.shared or Program(f"{name}_multi_core", self.chip, self.mode, open_end=self.open_end)
