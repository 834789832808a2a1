"""What cannot be read is never an empty capture without a word."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
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
    assert profile.event_count


def _beside(parent: Path) -> Path:
    source = capture("single_core")
    folder = _folder(parent, iter0__profile=_SUMMARY)
    for file in source.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("name", [str.upper, lambda name: f"{name}.gz", lambda name: f"{name.upper()}.zst"])
@pytest.mark.parametrize("settings", ["global.profile", "GLOBAL.PROFILE", "global.profile.gz"])
def test_names_that_are_packed_or_in_capitals_are_told(
    tmp_path: Path, name: Callable[[str], str], settings: str
) -> None:
    """Not that files are missing, nor that the chip is."""
    for file in capture("single_core").iterdir():
        renamed = settings if file.name == "global.profile" else name(file.name)
        (tmp_path / renamed).write_bytes(file.read_bytes())
    with pytest.raises(UnreadableError, match="packed, or named in capitals") as raised:
        open_profile(tmp_path)
    assert "Unpack and rename" in raised.value.hint


def test_one_file_of_such_a_name_is_told_and_the_rest_read(tmp_path: Path) -> None:
    for file in capture("single_core").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for name in ("cdmlib0_3.profile.gz", "CDMLIB0_4.PROFILE", "cdmlib0_0.profile.gz"):
        (tmp_path / name).write_bytes(b"")
    told = [each.file for each in open_profile(tmp_path).problems if "named in capitals" in each.what]
    assert told == ["CDMLIB0_4.PROFILE", "cdmlib0_3.profile.gz"]


def test_packed_bytes_of_a_plain_name_are_told(tmp_path: Path) -> None:
    for file in capture("single_core").iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content if file.name == "global.profile" else gzip.compress(content))
    assert "It is packed." in [each.what for each in open_profile(tmp_path).problems]
    (tmp_path / "global.profile").write_bytes(gzip.compress(b"arch=5"))
    with pytest.raises(UnreadableError, match=r"names no chip\. It is packed"):
        open_profile(tmp_path)


def test_a_pipe_in_place_of_the_settings_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "global.profile")
    with pytest.raises(UnreadableError, match=r"names no chip\. Not a regular file"):
        open_profile(tmp_path)


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
    assert profile.event_count == 0
    assert any(what in problem.what and problem.severity == Severity.ERROR for problem in profile.problems)
    assert main(["info", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"]
