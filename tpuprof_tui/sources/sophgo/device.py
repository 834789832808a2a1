"""Device of a capture in terms of the model, and how a capture was recorded."""

from __future__ import annotations

from typing import Final

from tpuprof_tui.model import Device
from tpuprof_tui.model.profile import Recording
from tpuprof_tui.model.vocabulary import DETAIL, NAMES

#: Names of clocks and of memories.
TIU, DMA, DDR, L2 = "TIU", "DMA", "DDR", "L2"
#: Meaning of a mode, by level of detail: no commands, condensed nodes, registers.
_MEANINGS: Final = ("PMU only", "condensed commands", "detailed commands")


def tpu_device(
    chip: str,
    arch: str | None = None,
    *,
    tiu_mhz: float = 0,
    dma_mhz: float = 0,
    ddr_gbps: float = 0.0,
    l2_gbps: float = 0.0,
    parameters: tuple[tuple[str, str], ...] = (),
) -> Device:
    """A chip as a Device: clocks in MHz, peak bandwidths of one core in GB/s; 0 where there is none."""
    return Device(chip, arch, ((TIU, tiu_mhz), (DMA, dma_mhz)), ((DDR, ddr_gbps), (L2, l2_gbps)), parameters)


def detail_of(mode: int, bmodel: bool) -> int:
    """Level of detail of commands as a mode, 0 to 2; for a compiled model (bmodel) it is 2 in any mode."""
    return 2 if bmodel else mode


def recording_of(mode: int, bmodel: bool) -> Recording:
    """Display texts of a capture's mode: ``mode 1``, or ``bmodel``."""
    short = "bmodel" if bmodel else str(mode)
    detail = detail_of(mode, bmodel)
    meaning = _MEANINGS[detail] if 0 <= detail < len(_MEANINGS) else "unknown"
    return Recording(short if bmodel else f"mode {mode}", short, meaning)


def capabilities_of(mode: int, bmodel: bool) -> frozenset[str]:
    """Capabilities of a capture by its mode."""
    return frozenset((NAMES, DETAIL)[: detail_of(mode, bmodel)])
