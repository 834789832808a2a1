"""Captures of compiled models kept in ``tests/data/compiled``; its README says what they are."""

from __future__ import annotations

import tarfile
from pathlib import Path

from truth_tables import Truth, read_packed, unpacked_truth

DATA = Path(__file__).resolve().parents[2] / "data" / "compiled"
RECORDED = ("bm1690_ffn_bf16_mode1", "bm1690_mlp_f16_mode2", "bm1690e_mlp_f16_mode2")
#: Folders of libbmrt, whose truth is JSON: iterations, their cores, and rows of these.
BMPROFILES = ("bm1684x_two_models", "bm1688_mlp_f16_2core")
UNRECORDED = "bm1690_conv_int8_no_pmu"


def compiled(name: str, parent: Path, folder: str = "") -> Path:
    """A kept capture as a directory of its own below ``parent``."""
    path = parent / (folder or name)
    path.mkdir()
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            assert content is not None
            (path / member.name).write_bytes(content.read())
    return path


def compiled_truth(name: str) -> Truth:
    """What really happened in one of ``RECORDED``."""
    return unpacked_truth(read_packed(DATA / f"{name}.json.xz"))
