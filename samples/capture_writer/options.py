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
    #: Core numbers; () means all of the chip.
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

    #: Kernels dispatched as pre-built blocks, and by the RVT firmware path.
    des: tuple[str, ...] = ()
    rvt: tuple[str, ...] = ()
    #: DES nodes whose blocks are not in the file.
    des_blocks: bool = True
    #: Registers name the commands and messages that commands wait for; the truth tells who released whom.
    dependencies: bool = False
    #: A compiled model: command streams instead of nodes.
    bmodel: bool = False
    #: Written as its runtime does: DES nodes announce the streams, a pair comes before each launch.
    announced: bool = False
    #: As on hardware: pairs have no mark on TIU, and SDMA closes too.
    hardware: bool = False
    #: Hardware records; without, commands alone.
    pmu: bool = True
    #: Host trace beside the capture, ``tail_offset_ns`` in global.profile.
    host_trace: bool = False
    #: Kernel names to show instead.
    rename: tuple[tuple[str, str], ...] = ()
    #: Number of the run: others have the same commands and other times, which lie about a percent apart.
    run: int = 0
    #: Kernels that take so many times as long as they would: "mlp:1.2".
    slower: tuple[str, ...] = ()
    #: Cores that begin every launch so many ns later: "3:5000".
    late: tuple[str, ...] = ()
    #: Tiles of a prefill kernel (five TIU commands each).
    prefill_tiles: int = 32

    # -- what goes wrong with records -------------------------------------

    #: Bits of the id counter of the monitors.
    id_bits: int = 32
    #: Pause before each new batch (ms).
    pause_ms: int = 0
    #: Fraction of the run after which the 32-bit time counter wraps; 0: never.
    wrap_at: float = 0.0
    #: The counter wraps in the pause before the second batch.
    wrap_in_pause: bool = False
    #: Counter value at the start of every core (ns); 0: a few microseconds.
    clock_base: int = 0
    #: Fraction of the TIU records (and of the others') that the ring keeps; 0: all.
    ring: float = 0.0
    ring_dma: float = 0.0
    #: Fraction of the records lost on cores, and on ports.
    lost: float = 0.0
    lost_cdma: float = 0.0
    #: Batches of which ports have no records.
    quiet_batches: tuple[int, ...] = ()
    #: Cores whose handshake records are lost.
    lost_opening: tuple[int, ...] = ()
    #: Fraction of the transfers that still run when the next one starts.
    overlap: float = 0.0
    #: Records of each engine lost at the beginning and at the end.
    lost_ends: tuple[int, int] = (0, 0)
    #: System records of each engine behind the opening pair that have no node.
    markers: int = 0
    #: SDMA sends written after the wait that follows them.
    swap_sdma: bool = False
    #: Cores that ran but whose files are gone; the anchor core lost its SDMA records.
    missing: tuple[int, ...] = ()
    no_anchor_sdma: bool = False
    #: Ports whose files are gone; global.profile still counts the records of missing files.
    missing_ports: tuple[int, ...] = ()
    count_missing: bool = False

    # -- how it is written ------------------------------------------------

    #: DYN_DATA and monitor blocks per core and kind.
    dyn_blocks: int = 1
    monitor_blocks: int = 1
    #: Nodes of the closing pair are logged.
    closing_nodes: bool = True
    #: The pairs cross the engines: GDMA sends twice, TIU waits twice.
    crossed_pairs: bool = False
    #: Nodes and blocks that say nothing of the profile in between.
    noise: bool = False
    #: What no tool can be asked to tell of this capture (manifest ``allow``).
    allow: tuple[str, ...] = ()
    #: What the reference gets wrong.
    reference_fails: str = ""

    @property
    def chip(self) -> Chip:
        return CHIPS[self.chip_name]

    @property
    def core_numbers(self) -> tuple[int, ...]:
        return self.cores or tuple(range(self.chip.cores))

    @property
    def written(self) -> tuple[int, ...]:
        """Core numbers with a file."""
        return tuple(number for number in self.core_numbers if number not in self.missing)

    @property
    def tiu_mhz(self) -> int:
        return self.tpu_freq or self.chip.tiu_mhz
