"""What cannot be read is never an empty capture without a word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import raw_bytes as raw
from written_captures import capture

from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Severity
from tpuprof_tui.sources.catalog import open_profile

_SUMMARY = raw.block(1, bytes(36))


def _folder(parent: Path, **files: bytes | str) -> Path:
    folder = parent / "folder"
    folder.mkdir()
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_a_capture_beside_such_files_is_read(tmp_path: Path) -> None:
    profile = open_profile(_beside(tmp_path))
    assert profile.instructions


def _beside(parent: Path) -> Path:
    source = capture("single_core")
    folder = _folder(parent, iter0__profile=_SUMMARY)
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_settings_alone_are_no_capture(tmp_path: Path) -> None:
    folder = _folder(tmp_path, global__profile="arch=5\n")
    with pytest.raises(UnreadableError, match="there is no core or port file"):
        open_profile(folder)


_PAIR = raw.dma_record(100, 110, 0) + raw.dma_record(120, 150, 1)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (raw.block(raw.MONITOR_TIU, bytes(7)), "of which nothing is a record or command"),
        (raw.block(raw.MONITOR_GDMA, bytes(64 * 40)), "of which nothing is a record or command"),
        (raw.block(raw.MONITOR_TIU, np.full(400, 0xFFFFFFFF, "<u4").tobytes()), "of which nothing"),
        (raw.block(1, b"summary") + raw.block(7, bytes(40)), "of which nothing is a record or command"),
        (raw.block(raw.DYN_DATA, b"\xff\xff\xff\xff"), "of which nothing is a record or command"),
        (raw.block(raw.MONITOR_GDMA, _PAIR), "2 records, all of the profiler itself"),
        (b"", "All files of cores and ports are empty."),
    ],
)
def test_bytes_of_which_nothing_is_shown_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, what: str
) -> None:
    folder = _folder(tmp_path, global__profile="arch=5\n", cdmlib0_0__profile=content)
    profile = open_profile(folder)
    assert profile.instructions == 0
    assert any(what in problem.what and problem.severity == Severity.ERROR for problem in profile.problems)
    assert main(["info", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"]
