"""Writes a capture directory: global.profile, core files, CDMA files, truth."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .build import Built, build
from .chips import CDMA
from .descriptors import BLOCK_KV, idle_stream, keyed_blocks, model_blocks
from .extras import Blob, ExtraStream, program_blob
from .hardware_effects import apply_hardware_effects, record_counts
from .host import TAIL_OFFSET_NS, write_host_trace
from .nodes import NodeStream, Words, no_words, program_words
from .options import Options
from .pmu import monitor_chunks, monitor_records
from .program import DES, STATIC
from .streams import CLOSING, COPY_IN, COPY_OUT, RUNTIME, Stream
from .truth import Truth

#: Block types.
MONITOR = (3, 4, 11, 12)
DYN_DATA, DYN_EXTRA = 5, 6

_CDMA_ID_BITS = 24
#: What no node tells of.
_UNLOGGED = frozenset((RUNTIME, COPY_IN, COPY_OUT))
#: Blocks that hold nothing of the profile: summary, logs, commands, an anchor, one of no bytes.
_OTHER_BLOCKS = ((1, b"summary"), (2, b"log of the compiler"), (7, bytes(range(40))), (9, b""), (100, bytes(12)))


@dataclass(frozen=True)
class Written:
    """What was written."""

    path: Path
    records: int
    bytes: int
    meta: dict[str, Any]


def write_block(file: BinaryIO, kind: int, size: int, chunks: Iterable[bytes]) -> None:
    """Header and payload of a block whose size is known beforehand."""
    file.write(struct.pack("<II", kind, size))
    done = 0
    for chunk in chunks:
        file.write(chunk)
        done += len(chunk)
    assert done == size, (kind, done, size)


def write_capture(options: Options, parent: Path, truth: bool = True) -> Written:
    """Write ``parent/options.name`` and its truth, replacing what is there."""
    path = parent / options.name
    if path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True)
    built = build(options)
    apply_hardware_effects(built)
    writer = _Writer(built)
    for number in built.cores:
        with (path / f"cdmlib0_{number}.profile").open("wb") as file:
            writer.core_file(file, number)
    for stream in built.ports:
        with (path / f"cdma0_{stream.index}.profile").open("wb") as file:
            writer.monitor(file, stream)
    counts = record_counts(built) | built.gone
    (path / "global.profile").write_text(_global_text(options, counts), encoding="utf-8")
    answer = Truth(built)
    meta = answer.meta(counts)
    if options.host_trace:
        meta |= write_host_trace(parent / f"{options.name}.host_trace.json", built, meta["pmu_last_ns"])
    if truth:
        answer.save(parent / f"{options.name}.truth.json", meta)
    size = sum(file.stat().st_size for file in path.iterdir())
    return Written(path, meta["records"], size, meta)


def _global_text(options: Options, counts: dict[str, int]) -> str:
    capacity = 4096
    while capacity <= max(counts.values(), default=0):
        capacity *= 2
    lines = [f"arch={options.chip.arch}"]
    if options.tpu_freq:
        lines.append(f"tpu_freq={options.tpu_freq}")
    if options.core_num:
        lines.append(f"core_num={len(options.core_numbers)}")
    lines.append(f"max_record_num={capacity}")
    if options.bmodel:
        lines.append("bmodel=1")
    if options.host_trace:
        lines.append(f"tail_offset_ns={TAIL_OFFSET_NS}")
    lines += [f"{key}={value}" for key, value in counts.items()]
    return "\n".join(lines) + "\n"


class _Writer:
    """Encodes the streams of one capture."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.catalogue = built.catalogue.columns()
        programs = built.catalogue.programs
        noise, announced = built.options.noise, built.options.announced
        silent = _UNLOGGED if built.options.closing_nodes else {*_UNLOGGED, CLOSING}
        self.table: list[Words] = [
            program_words(number, p, noise, announced)
            if p.infra not in silent and (announced or p.mode != STATIC)
            else no_words()
            for number, p in enumerate(programs)
        ]
        self.blobs: list[Blob] = []
        if built.options.mode == 2:
            self.blobs = [program_blob(p, p.infra not in silent, noise) for p in programs]

    def core_file(self, file: BinaryIO, number: int) -> None:
        options = self.built.options
        for stream in self.built.cores[number] if options.pmu else ():
            self.monitor(file, stream)
            if options.noise:
                for kind, payload in _OTHER_BLOCKS:
                    write_block(file, kind, len(payload), [payload])
        if number in options.empty:
            return
        if options.bmodel:
            self._model(file, number)
        if options.mode:
            self._nodes(file, number)

    def monitor(self, file: BinaryIO, stream: Stream) -> None:
        """Monitor blocks of one stream; usually one."""
        bits = _CDMA_ID_BITS if stream.engine == CDMA else self.built.options.id_bits
        chip = self.built.options.chip
        cuts = np.linspace(0, monitor_records(stream), self.built.options.monitor_blocks + 1).astype(int)
        for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            chunks = monitor_chunks(stream, chip, self.catalogue, bits, a, b, marked=not self.built.options.hardware)
            write_block(file, MONITOR[stream.engine], (b - a) * chip.record_bytes[stream.engine], chunks)

    def _programs(self, number: int) -> list[int]:
        """Programs a core runs, each once, in order of first use."""
        plan = self.built.plan
        if number not in plan.running:
            return []
        return list(dict.fromkeys(plan.program[plan.running.index(number)].tolist()))

    def _model(self, file: BinaryIO, number: int) -> None:
        """Command streams of a compiled model, one set per launch."""
        plan = self.built.plan
        # an idle core carries the streams of the others too
        place = plan.running.index(number) if number in plan.running else 0
        programs = self.built.catalogue.programs
        for program in plan.program[place].tolist():
            for kind, payload in model_blocks(programs[program]) if programs[program].mode == STATIC else ():
                write_block(file, kind, len(payload), [payload])
            if self.built.options.announced and programs[program].mode == STATIC and not self.built.options.sdma:
                for kind, payload in idle_stream(programs[program].chip):
                    write_block(file, kind, len(payload), [payload])

    def _nodes(self, file: BinaryIO, number: int) -> None:
        options, programs = self.built.options, self.built.catalogue.programs
        if options.des_blocks:
            for program in self._programs(number):
                if programs[program].mode == DES:
                    for payload in keyed_blocks(program, programs[program]):
                        write_block(file, BLOCK_KV, len(payload), [payload])
        whole = self._node_stream(number)
        for part in range(options.dyn_blocks):
            nodes = whole.part(part, options.dyn_blocks)
            if self.blobs:
                extras = ExtraStream(self.blobs, nodes.program)
                write_block(file, DYN_EXTRA, extras.size, extras.chunks())
            write_block(file, DYN_DATA, nodes.size, nodes.chunks())

    def _node_stream(self, number: int) -> NodeStream:
        built, plan = self.built, self.built.plan
        program = np.array([built.opening[number], built.closing], dtype=np.int64)
        batch = first_port = np.zeros(0, dtype=np.int64)
        if number in plan.running:
            place = plan.running.index(number)
            program = np.concatenate([program[:1], plan.program[place], program[1:]])
            batch, first_port = plan.batch, (place - plan.reduction) % len(plan.running)
        zero = np.zeros(1, dtype=np.int64)
        # the handshake names its ports itself: slot = port
        step = np.full(len(program), max(len(plan.running), 1), dtype=np.int64)
        step[0] = 1
        return NodeStream(
            self.table,
            program,
            np.concatenate([zero, batch, zero]),
            np.concatenate([zero, first_port, zero]),
            step,
        )
