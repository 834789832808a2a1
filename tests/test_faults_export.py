"""Exports that are killed, run out of room, or lose their terminal: a file is whole or not there, and one message says
what happened."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import without_powers

from tpuprof_tui.cli.main import main

SAMPLE = Path(__file__).parents[1] / "samples" / "aksv_cdma"
pytestmark = pytest.mark.skipif(not SAMPLE.is_dir(), reason="the sample captures are not there")

KINDS = ("summary", "pftrace", "regs", "xlsx", "web")


def _words(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tpuprof_tui", "export", str(SAMPLE), str(folder), *more]


def _files(folder: Path) -> dict[str, bytes]:
    """Files under their final names."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and not path.name.startswith(".")}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an export that nothing disturbs writes."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    subprocess.run(_words(folder, "--only", ",".join(KINDS)), check=True, capture_output=True)
    found = _files(folder)
    assert {name.partition("/")[0] for name in found} >= {"summary.txt", "perfetto.pftrace", "PerfDoc", "PerfWeb"}
    return found


def _same(name: str, data: bytes, wanted: bytes) -> bool:
    """Whether a file is the one that was to be written; a workbook holds the time it was made."""
    if name.endswith(".xlsx"):
        return abs(len(data) - len(wanted)) < 64 and data[-22:-18] == b"PK\5\6"
    return data == wanted


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_no_half_file_bears_a_final_name(
    tmp_path: Path, whole: dict[str, bytes], seed: int
) -> None:
    """Whatever the moment, what bears a final name is as an undisturbed export writes it."""
    chance = Random(seed)
    folder = tmp_path / "out"
    child = subprocess.Popen(_words(folder, "--only", ",".join(KINDS), "--machine"), stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(chance.randrange(1, 14)):  # a line comes whenever a tenth of a second has passed, or a file is done
        if not child.stdout.readline():
            break
    time.sleep(chance.random() / 20)
    child.kill()
    child.wait()
    child.stdout.close()
    found = _files(folder) if folder.is_dir() else {}
    assert set(found) <= set(whole)
    assert [name for name, data in found.items() if not _same(name, data, whole[name])] == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_that_is_killed_is_whole_or_not_there(tmp_path: Path, form: str) -> None:
    words = [sys.executable, "-m", "tpuprof_tui", "instructions", str(SAMPLE), "--format", form]
    words += ["--columns", "core,engine,name,start,dur", "--output"]
    started = time.monotonic()
    subprocess.run([*words, str(tmp_path / "whole")], check=True, capture_output=True)
    last = time.monotonic() - started
    chance = Random(form)
    for _ in range(2):
        child = subprocess.Popen([*words, str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
        time.sleep(last * chance.uniform(0.6, 1))
        child.kill()
        child.wait()
        if (tmp_path / "killed").exists():
            assert (tmp_path / "killed").read_bytes() == (tmp_path / "whole").read_bytes()
            (tmp_path / "killed").unlink()


def test_what_was_there_before_stays_whole_until_it_is_replaced(tmp_path: Path, whole: dict[str, bytes]) -> None:
    folder = tmp_path / "out"
    for name in whole:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"an earlier one")
    child = subprocess.Popen(_words(folder, "--only", ",".join(KINDS), "--machine"), stdout=subprocess.PIPE)
    assert child.stdout is not None
    for _ in range(4):
        child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    found = _files(folder)
    assert set(found) == set(whole)
    assert all(data == b"an earlier one" or _same(name, data, whole[name]) for name, data in found.items())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_asked_to_end_nothing_half_written_stays(tmp_path: Path, number: signal.Signals) -> None:
    for attempt in range(5):
        folder = tmp_path / f"out{attempt}"
        child = subprocess.Popen(_words(folder, "--only", "xlsx,web", "--machine"), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)  # fmt: skip
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        _, said = child.communicate()
        if child.returncode:
            break
        # a busy machine: all was written before the signal came
        assert len(_files(folder)) > 1
    assert child.returncode == 130
    assert said == b""
    assert list(folder.rglob(".*.part")) == []


def test_without_a_terminal_to_lose_nohup_is_respected(tmp_path: Path, whole: dict[str, bytes]) -> None:
    folder = tmp_path / "out"
    words = ["nohup", *_words(folder, "--only", "summary,pftrace", "--machine")]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGHUP)
    child.communicate()
    assert child.returncode == 0
    assert _files(folder)["perfetto.pftrace"] == whole["perfetto.pftrace"]


# -- no room -------------------------------------------------------------------


def _one_message(done: subprocess.CompletedProcess[str]) -> str:
    """The one message of a command that failed; beside it stands only what it was writing."""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Writing ")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("tpuprof: ")
    return lines[0]


@pytest.mark.parametrize(
    ("kind", "number"),
    [("summary", errno.ENOSPC), ("pftrace", errno.EDQUOT), ("regs", errno.EIO), ("web", errno.EROFS),
     ("xlsx", errno.EIO)],
)  # fmt: skip
def test_a_quota_or_a_broken_disk_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str, number: int
) -> None:
    known = os.fdopen

    def refusing(descriptor: int, *rest: Any, **more: Any) -> Any:
        stream = known(descriptor, *rest, **more)

        def write(data: Any) -> int:
            raise OSError(number, os.strerror(number))

        return _Refusing(stream, write)

    monkeypatch.setattr(os, "fdopen", refusing)
    assert main(["export", str(SAMPLE), str(tmp_path / "out"), "--only", kind]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Writing ")]
    assert len(lines) == 1
    assert f"could not be written: {os.strerror(number).lower()}" in lines[0]
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


class _Refusing:
    """A file that takes nothing."""

    def __init__(self, stream: Any, write: Callable[[Any], int]) -> None:
        self._stream = stream
        self.write = write

    def __enter__(self) -> _Refusing:
        return self

    def __exit__(self, *rest: Any) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def test_a_folder_that_is_gone_or_none_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to("circle")
    for folder in ("file/out", "circle/out", "/proc/nowhere/out", "a" * 300):
        done = subprocess.run(_words(tmp_path / folder, "--only", "summary"), capture_output=True, text=True)
        assert "could not be written" in _one_message(done)


# -- pipes and permissions -------------------------------------------------------


@pytest.mark.parametrize("words", ["instructions --format csv", "instructions", "info", "summary", "info --json"])
def test_head_ends_a_command_quietly(words: str) -> None:
    command, *options = words.split()
    line = " ".join(
        [sys.executable, "-m", "tpuprof_tui", command, str(SAMPLE), *options, "| head -1; exit ${PIPESTATUS[0]}"]
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


def test_a_file_that_may_not_be_read_costs_its_core(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    shutil.copytree(SAMPLE, capture)
    (capture / "cdmlib0_1.profile").chmod(0)
    done = without_powers([sys.executable, "-m", "tpuprof_tui", "info", str(capture)])
    assert (done.returncode, done.stderr) == (1, "")
    assert "permission denied" in done.stdout


def test_a_capture_that_may_not_be_listed_is_one_sentence(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    shutil.copytree(SAMPLE, capture)
    capture.chmod(0)
    try:
        done = without_powers([sys.executable, "-m", "tpuprof_tui", "info", str(capture)])
    finally:
        capture.chmod(0o755)
    assert "permission denied" in _one_message(done)


def test_a_folder_that_may_not_be_written_is_one_message(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    assert "permission denied" in _one_message(without_powers(_words(folder / "out", "--only", "summary")))
