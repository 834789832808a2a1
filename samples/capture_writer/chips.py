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
    #: Bytes of a record of TIU, GDMA, SDMA and CDMA.
    record_bytes: tuple[int, int, int, int] = (16, 64, 64, 128)
    #: Whether word 3 of a TIU record is a thread and bank conflicts.
    counts_conflicts: bool = False
    #: Whether the profiler opens and closes the streams with commands of its own.
    framed: bool = True
    #: Stray TIU records at each end.
    strays: int = 0
    #: Whether the last command of a DMA stream leaves no record.
    silent_end: bool = False
    #: Whether RVT nodes hold indices of a generator instead of codes.
    generator: bool = False
    #: First bit of the count in the messages of DMA engines; TIU has its count at bit 16.
    message_count_bit: int = 9
    #: The part of a DMA address that holds the memory's tag.
    address_high: str = "h13"


CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        Chip("AKS", "5", 8, 11, (0, 1, 3, 4), 5, "aks"),
        Chip("AKSV", "6", 4, 10, (0, 1, 2, 3), 4, "aksv", rvt_id_limit=0x3FFFF, message_count_bit=16),
        Chip(
            "BM1688",
            "4",
            2,
            0,
            (0, 1, 2, 3),
            4,
            "bm1688",
            lanes=32,
            tiu_mhz=900,
            dma_mhz=750,
            ddr_gbps=32.0,
            l2_gbps=32.0,
            record_bytes=(32, 256, 256, 128),
            framed=False,
            silent_end=True,
            message_count_bit=8,
            address_high="h8",
        ),
        Chip(
            "CV84X6",
            "7",
            4,
            0,
            (0, 1, 2, 3),
            4,
            "cv84x6",
            lanes=16,
            tiu_mhz=1400,
            dma_mhz=1200,
            ddr_gbps=64.0,
            l2_gbps=64.0,
            counts_conflicts=True,
            framed=False,
            strays=1,
            generator=True,
            message_count_bit=8,
        ),
    )
}
