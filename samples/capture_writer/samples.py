"""The captures that are kept beside this program."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .capture import write_capture
from .damage import blocks, joined
from .kinds import KINDS
from .options import Options

_FOUR = (0, 1, 2, 3)

SAMPLES: tuple[Options, ...] = (
    replace(KINDS["decode_mode0"], name="aks_decode_mode0", cores=_FOUR),
    replace(KINDS["decode_mode1"], name="aks_decode_mode1", layers=2, batches=2),
    replace(KINDS["decode_mode2"], name="aks_decode_mode2", cores=_FOUR, sdma=True),
    replace(KINDS["aksv_cdma"], name="aksv_cdma"),
    replace(KINDS["bmodel"], name="aks_bmodel", cores=_FOUR),
    replace(KINDS["host_trace"], name="aks_host_trace", cores=_FOUR),
)
DAMAGED = replace(KINDS["decode_mode1"], name="aks_damaged", cores=(0, 1, 2), seed=303)


def write_samples(directory: Path) -> Iterator[str]:
    """Write all samples into ``directory``; a line about each."""
    for options in SAMPLES:
        written = write_capture(options, directory, truth=False)
        if options.host_trace:
            trace = directory / str(written.meta["host_trace"])
            shutil.move(trace, written.path / "host_trace.json")
        yield f"{options.name}: {written.records:,} records, {written.bytes:,} bytes"
    path = _write_damaged(directory)
    size = sum(file.stat().st_size for file in path.iterdir())
    yield f"{DAMAGED.name}: {size:,} bytes, damaged"


def _write_damaged(directory: Path) -> Path:
    """Three cores: one sound, one cut inside its nodes, one with a stray block before a giant claim."""
    path = write_capture(DAMAGED, directory, truth=False).path
    cut = path / "cdmlib0_1.profile"
    cut.write_bytes(cut.read_bytes()[:-1003])
    stray = path / "cdmlib0_2.profile"
    parts = blocks(stray.read_bytes())
    parts.insert(1, replace(parts[0], kind=77, payload=b"not a block of this format"))
    stray.write_bytes(joined(parts) + b"\x05\x00\x00\x00\xff\xff\xff\xff" + bytes(32))
    return path
