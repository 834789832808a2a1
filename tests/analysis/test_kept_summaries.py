"""The summaries that the reference wrote of the captures in tests/data, beside those we make of the same bytes."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.sources.sophgo.files.summary_text import summary_text

HERE = Path(__file__).resolve().parent
CAPTURES = HERE.parent / "data" / "captures"
WRITTEN = sorted((HERE / "summaries").glob("*.txt"))


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(CAPTURES / f"{name}.tar.xz") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None
            (folder / Path(entry.name).name).write_bytes(content.read())
    return folder


def test_there_are_summaries():
    assert len(WRITTEN) == 10


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.stem)
def test_the_summary_is_the_references_to_the_letter(written, tmp_path):
    profile = open_profile(unpacked(written.stem, tmp_path))
    assert summary_text(query_of(profile)).startswith(written.read_text(encoding="utf-8"))
