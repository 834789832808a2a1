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
from .chips import CDMA, ENGINES
from .extras import Blob, ExtraStream, program_blob
from .nodes import NodeStream, Words, program_words
from .options import Options
from .pmu import monitor_chunks, monitor_size
from .streams import Stream
from .truth import Truth

#: Block types.
MONITOR = (3, 4, 11, 12)
DYN_DATA, DYN_EXTRA = 5, 6


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
    writer = _Writer(built)
    for number in built.cores:
        with (path / f"cdmlib0_{number}.profile").open("wb") as file:
            writer.core_file(file, number)
    for stream in built.ports:
        with (path / f"cdma0_{stream.index}.profile").open("wb") as file:
            writer.monitor(file, stream)
    counts = writer.record_counts()
    (path / "global.profile").write_text(_global_text(options, counts), encoding="utf-8")
    answer = Truth(built)
    if truth:
        answer.save(parent / f"{options.name}.truth.json", counts, {})
    size = sum(file.stat().st_size for file in path.iterdir())
    return Written(path, sum(len(s) for s in built.streams), size, answer.meta(counts))


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
    lines += [f"{key}={value}" for key, value in counts.items()]
    return "\n".join(lines) + "\n"


class _Writer:
    """Encodes the streams of one capture."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.catalogue = built.catalogue.columns()
        functions = dict(_operation_types(built))
        self.catalogue["function_key"] = np.array([functions[o] for o in self.catalogue["op"].tolist()], dtype=np.int64)
        self.table: list[Words] = [program_words(p, 2 if p.infra == 1 else 1 << 30) for p in built.catalogue.programs]
        detailed = built.options.mode == 2
        self.blobs: list[Blob] = [program_blob(p) for p in built.catalogue.programs] if detailed else []

    def record_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for number, streams in self.built.cores.items():
            for stream in streams:
                name = ENGINES[stream.engine].lower()
                counts[f"core{number}_{name}_record"] = int(stream.present().sum())
        for stream in self.built.ports:
            counts[f"cdma{stream.index}_record"] = int(stream.present().sum())
        return counts

    def core_file(self, file: BinaryIO, number: int) -> None:
        for stream in self.built.cores[number]:
            self.monitor(file, stream)
        if self.built.options.mode == 0 or number in self.built.options.empty:
            return
        nodes = self._nodes(number)
        if self.blobs:
            extras = ExtraStream(self.blobs, nodes.program)
            write_block(file, DYN_EXTRA, extras.size, extras.chunks())
        write_block(file, DYN_DATA, nodes.size, nodes.chunks())

    def monitor(self, file: BinaryIO, stream: Stream) -> None:
        chunks = monitor_chunks(stream, self.catalogue, 24 if stream.engine == CDMA else 32)
        write_block(file, MONITOR[stream.engine], monitor_size(stream), chunks)

    def _nodes(self, number: int) -> NodeStream:
        built, plan = self.built, self.built.plan
        program = np.array([built.opening[number], built.closing], dtype=np.int64)
        batch = first_port = np.zeros(0, dtype=np.int64)
        if number in plan.running:
            place = plan.running.index(number)
            program = np.concatenate([program[:1], plan.program[place], program[1:]])
            batch, first_port = plan.batch, (place - plan.reduction) % len(plan.running)
        zero = np.zeros(1, dtype=np.int64)
        # the handshake names its ports itself: slot = port
        step = np.full(len(program), len(plan.running), dtype=np.int64)
        step[0] = 1
        return NodeStream(self.table, program, np.concatenate([zero, batch, zero]),
                          np.concatenate([zero, first_port, zero]), step)  # fmt: skip


def _operation_types(built: Built) -> set[tuple[int, int]]:
    return {(row.op.number, row.op.type) for p in built.catalogue.programs for row in p.rows}
