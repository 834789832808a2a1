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


@pytest.mark.parametrize("options", [{}, {"chip": "BM1688"}, {"chip": "AKS"}], ids=str)
@pytest.mark.parametrize(
    ("settings", "chip"),
    [
        ("[bmprofile] arch=3\n[bmprofile] net_name=a\n", "BM1684X"),
        ("[bmprofile] arch=4\n[bmprofile] tpu_freq=0\n", "BM1688 or CV186X"),
        ("[bmprofile] arch=8\n", "CV184X"),
        ("ornament\n[bmprofile] arch=bm1684x\n", "BM1684X"),
        ("arch=3\ntpu_freq=1000\n", "BM1684X"),
        ("", ""),
    ],
)
def test_folders_of_libbmrt_are_named(tmp_path: Path, settings: str, chip: str, options: dict[str, str]) -> None:
    folder = _folder(tmp_path, global__profile=settings, iter0__profile=_SUMMARY, bmlib_0__profile=b"")
    with pytest.raises(UnreadableError) as error:
        open_profile(folder, **options)
    named = f" ({chip})" if chip else ""
    assert str(error.value) == f"{folder} is a bmprofile_data folder of libbmrt{named}, which tpuprof does not read."


def test_one_sentence_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _folder(tmp_path, global__profile="[bmprofile] arch=4\n", cmd_12406e000_0_0__dat=b"")
    for words in (("info",), ("summary",), ("info", "--chip", "BM1688"), ("instructions",)):
        assert main([words[0], str(folder), *words[1:]]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_its_files_alone_are_named_too(tmp_path: Path) -> None:
    folder = _folder(tmp_path, iter0__profile=_SUMMARY, net_stat__sim="")
    for path in (folder, folder / "iter0.profile"):
        with pytest.raises(UnreadableError, match="part of a bmprofile_data folder"):
            open_profile(path)


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
