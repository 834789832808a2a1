"""What may be asked of a capture."""

from __future__ import annotations

from dataclasses import dataclass

from .chips import CHIPS, Chip


@dataclass(frozen=True)
class Options:
    """One capture. The defaults make a decode step of one layer on all cores, condensed."""

    name: str
    about: str = ""
    chip_name: str = "AKS"
    #: Core numbers with a file; () means all of the chip.
    cores: tuple[int, ...] = ()
    #: 0 PMU only, 1 condensed, 2 detailed.
    mode: int = 1
    seed: int = 1
    #: Layers of a step and steps (each is a batch launch).
    layers: int = 1
    batches: int = 1
    #: Stop at this many records (steps are added as needed); 0: as many as there are.
    records: int = 0
    #: Many tiny kernels instead of decode steps.
    launches: int = 0
    #: Kernels of a step, if not a decode step's.
    kernels: tuple[str, ...] = ()

    #: Cores that only handshake, and cores whose file holds empty blocks.
    idle: tuple[int, ...] = ()
    empty: tuple[int, ...] = ()
    #: ``core_num`` in global.profile.
    core_num: bool = True
    tpu_freq: int = 0
    sdma: bool = False

    #: CDMA ports in use; transfers per direction of a launch; all cores submit the same.
    ports: int = 0
    cdma_pairs: int = 0
    cdma_twins: bool = False

    @property
    def chip(self) -> Chip:
        return CHIPS[self.chip_name]

    @property
    def core_numbers(self) -> tuple[int, ...]:
        return self.cores or tuple(range(self.chip.cores))

    @property
    def tiu_mhz(self) -> int:
        return self.tpu_freq or self.chip.tiu_mhz
