"""What happens to records between the hardware and the file: wraps, rings, losses, odd orders."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .build import OPENING_LAUNCH, Built
from .chips import ENGINES, GDMA, SDMA, TIU
from .ops import OPS
from .options import Options
from .streams import LOST, OVERWRITTEN, WORK, Stream

Ints = npt.NDArray[np.int64]

_WRAP = 1 << 32
#: Function code of a DMA send.
_SEND = 3


def apply_hardware_effects(built: Built) -> None:
    """Change the streams of ``built`` as its options ask, in the order the hardware would."""
    options = built.options
    rng = np.random.Generator(np.random.PCG64([options.seed, 77]))
    facts = built.catalogue.columns()
    _set_clocks(built, rng)
    for streams in built.cores.values():
        for stream in streams:
            _core_effects(stream, options, facts, rng)
    if options.chip.silent_end and options.bmodel:
        for streams in built.cores.values():
            for stream in streams[1:]:
                stream.lose(facts["op"][stream.row] == OPS["dma_end"].number, LOST)
    if options.lost_cdma:
        for stream in built.ports:
            _lose_some(stream, options.lost_cdma, facts, rng)
    for stream in built.ports if options.quiet_batches else ():
        batch = built.plan.batch[np.maximum(stream.launch, 0)]
        stream.lose((stream.launch >= 0) & np.isin(batch, options.quiet_batches), LOST)
    for number in options.lost_opening:
        for stream in built.cores[number]:
            stream.lose(stream.launch == OPENING_LAUNCH, LOST)
    if options.no_anchor_sdma and built.anchor_core is not None:
        sdma = built.cores[built.anchor_core][SDMA]
        sdma.lose(np.ones(len(sdma), dtype=np.bool_), LOST)
    for rank, number in enumerate(options.written):
        for stream in built.cores[number]:
            stream.index = rank
    _remove_files(built)
    running = [number for number in built.plan.running if number in options.written]
    built.scope_base = {number: place * built.plan.launches for place, number in enumerate(running)}


def _remove_files(built: Built) -> None:
    options = built.options
    before = record_counts(built)
    for number in options.missing:
        del built.cores[number]
    built.ports = [stream for stream in built.ports if stream.index not in options.missing_ports]
    if options.count_missing:
        built.gone = {key: count for key, count in before.items() if key not in record_counts(built)}


def record_counts(built: Built) -> dict[str, int]:
    """Records in the files, by key of global.profile."""
    counts: dict[str, int] = {}
    if not built.options.pmu:
        return counts
    for number, streams in built.cores.items():
        for stream in streams:
            counts[f"core{number}_{ENGINES[stream.engine].lower()}_record"] = int(stream.present().sum())
    return counts | {f"cdma{stream.index}_record": int(stream.present().sum()) for stream in built.ports}


def _set_clocks(built: Built, rng: np.random.Generator) -> None:
    """Move the counters of all cores and ports so that they wrap, or start high, where asked."""
    options = built.options
    if not (options.wrap_at or options.clock_base or options.wrap_in_pause):
        return
    base = options.clock_base
    if options.wrap_in_pause:
        second = int(np.searchsorted(built.plan.batch, 1))
        base = _WRAP - int(built.launch_end_ns[second - 1] + built.launch_start_ns[second]) // 2
    if options.wrap_at:
        launch = int(options.wrap_at * (built.plan.launches - 1))
        middle = (built.launch_start_ns[launch] + built.launch_end_ns[launch]) // 2
        base = _WRAP - int(middle)
    groups = [*built.cores.values(), *([port] for port in built.ports)]
    for streams in groups:
        offset_ns = base + int(rng.integers(-150, 150))
        if options.tiu_mhz != options.chip.dma_mhz:
            offset_ns -= offset_ns % 1000
        for stream in streams:
            stream.offset = offset_ns * stream.mhz // 1000


def _core_effects(stream: Stream, options: Options, facts: dict[str, Ints], rng: np.random.Generator) -> None:
    if options.overlap and stream.engine in (TIU, GDMA):
        _overlap(stream, options.overlap, facts, rng)
    if options.swap_sdma and stream.engine == SDMA:
        _swap_sends(stream, facts)
    keep = options.ring if stream.engine == TIU else options.ring_dma
    if keep and stream.engine in (TIU, GDMA):
        _lap(stream, int(len(stream) * keep))
    first, last = options.lost_ends
    index = np.arange(len(stream))
    stream.lose((index < first) | (index >= len(stream) - last), LOST)
    if options.lost:
        _lose_some(stream, options.lost, facts, rng)


def _overlap(stream: Stream, fraction: float, facts: dict[str, Ints], rng: np.random.Generator) -> None:
    """Let some commands run on while their successor already runs."""
    work = (facts["system"][stream.row] == 0) & (stream.launch >= 0)
    pairs = work[:-1] & work[1:] & (stream.launch[:-1] == stream.launch[1:])
    chosen = np.flatnonzero(pairs & (rng.random(len(pairs)) < fraction))
    room = stream.end[chosen + 1] - stream.start[chosen + 1]
    stream.end[chosen] = stream.start[chosen + 1] + 1 + (room * rng.random(len(chosen)) * 0.8).astype(np.int64)


def _swap_sends(stream: Stream, facts: dict[str, Ints]) -> None:
    """The record of a send comes after that of the long wait that follows it."""
    system = (facts["system"][stream.row] != 0) & (stream.launch >= 0)
    pair = np.flatnonzero(system[:-1] & system[1:] & (stream.launch[:-1] == stream.launch[1:]))
    sends = pair[facts["function_key"][stream.row[pair]] == _SEND]
    order = np.arange(len(stream), dtype=np.int64)
    order[sends], order[sends + 1] = sends + 1, sends
    stream.dump = order


def _lap(stream: Stream, capacity: int) -> None:
    """A ring of ``capacity`` records that went round: the oldest gone, dumped in slot order."""
    count = len(stream)
    if not 0 < capacity < count:
        return
    index = np.arange(count, dtype=np.int64)
    stream.lose(index < count - capacity, OVERWRITTEN)
    survivors = index[count - capacity :]
    slot = np.argsort(survivors % capacity, kind="stable")
    stream.dump = np.concatenate([index[: count - capacity], survivors[slot]])


def _lose_some(stream: Stream, fraction: float, facts: dict[str, Ints], rng: np.random.Generator) -> None:
    work = facts["infra"][stream.row] == WORK
    stream.lose(work & (rng.random(len(stream)) < fraction), LOST)
