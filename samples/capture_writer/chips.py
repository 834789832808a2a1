"""What the writer must know of a chip, as data."""

from __future__ import annotations

from dataclasses import dataclass

TIU, GDMA, SDMA, CDMA = range(4)
ENGINES: tuple[str, ...] = ("TIU", "GDMA", "SDMA", "CDMA")

DDR, L2M, LMEM = range(3)

INT8, FP16, FP32, INT16, INT32, BFP16, INT4, FP8 = range(8)
#: Bytes of an element; 4-bit elements are counted in pairs by their users.
ELEMENT_BYTES: tuple[int, ...] = (1, 2, 4, 2, 4, 2, 1, 1)

#: Bits 40-44 of a DMA address that say which memory it lies in.
MEMORY_TAG: tuple[int, ...] = (1, 30, 31)


@dataclass(frozen=True)
class Chip:
    """One chip. Bandwidths in GB/s (= bytes per ns), clocks in MHz."""

    name: str
    arch: str
    cores: int
    cdma_ports: int
    #: Engine codes of dynamic nodes, by engine number; VSDMA apart.
    node_engine: tuple[int, int, int, int]
    vsdma: int
    layouts: str
    #: TIU command id at which RVT firmware restarts the ids of TIU and GDMA.
    rvt_id_limit: int | None = None
    lanes: int = 64
    tiu_mhz: int = 1000
    dma_mhz: int = 1000
    ddr_gbps: float = 68.264
    l2_gbps: float = 128.0
    cdma_gbps: float = 48.0


CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip("AKS", "5", 8, 11, (0, 1, 3, 4), 5, "aks"),
        Chip("AKSV", "6", 4, 10, (0, 1, 2, 3), 4, "aksv", rvt_id_limit=0x3FFFF),
    )
}
