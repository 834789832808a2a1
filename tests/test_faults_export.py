"""Exports that are killed, run out of room, or lose their terminal: a file is whole or not there, and one message says
what happened."""

from __future__ import annotations

import errno
import json
import os
import resource
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
from profiles import selected_query, small_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.export import job
from tpuprof_tui.export.job import OWN_LIST, Job, run_export
from tpuprof_tui.formats import files
from tpuprof_tui.formats.files import WriteError, whole_file
from tpuprof_tui.sources.sophgo.files import field_texts as registers_text

SAMPLE = Path(__file__).parents[1] / "samples" / "aksv_cdma"
pytestmark = pytest.mark.skipif(not SAMPLE.is_dir(), reason="the sample captures are not there")

KINDS = ("summary", "pftrace", "regs", "xlsx", "web")


def _words(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tpuprof_tui", "export", str(SAMPLE), str(folder), *more]


def _command(kind: str, folder: Path) -> list[str]:
    """Words of the command that writes one kind of file below a folder."""
    if kind in KINDS:
        # the workbook takes as long as all others
        return ["export", str(SAMPLE), str(folder), "--only", kind, *(["--cores", "0"] if kind == "xlsx" else [])]
    return ["instructions", str(SAMPLE), "--format", kind, "--columns", "name,dur", "--output",
            str(folder / f"instructions.{kind}")]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _files(folder: Path) -> dict[str, bytes]:
    """Files under their final names."""
    return {name: data for name, data in contents(folder).items() if not Path(name).name.startswith(".")}


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
    listed = json.loads((folder / OWN_LIST).read_text()) if (folder / OWN_LIST).exists() else []
    assert set(listed) >= set(found)
    assert [name for name, data in found.items() if not _same(name, data, whole[name])] == []


def test_a_table_that_is_killed_is_whole_or_not_there(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tpuprof_tui", "instructions", str(SAMPLE), "--format", "csv"]
    words += ["--columns", "core,engine,name,start,dur", "--output"]
    started = time.monotonic()
    subprocess.run([*words, str(tmp_path / "whole")], check=True, capture_output=True)
    last = time.monotonic() - started
    chance = Random("csv")
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


def _message(stderr: str) -> str:
    """The one message of a command that failed; beside it stands only what it was writing."""
    (line,) = [line for line in stderr.splitlines() if not line.startswith("Writing ")]
    assert line.startswith("tpuprof: ")
    return line


def _one_message(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    return _message(done.stderr)


@pytest.mark.parametrize("kind", [*KINDS, "csv", "jsonl"])
def test_a_disk_that_takes_no_more_is_one_message_and_keeps_what_was_there(kind, tmp_path, monkeypatch, capsys):
    """The system says the same where a file may have no more than some bytes."""
    # bytecode that is cut off could never be imported again
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    new, known = tmp_path / "new", tmp_path / "known"
    assert main(_command(kind, known)) == 0
    before = contents(known)
    for folder in (new, known):
        capsys.readouterr()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            assert main(_command(kind, folder)) == 2
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "could not be written: file too large" in _message(capsys.readouterr().err)
    assert contents(known) == before
    assert contents(new) == {}
    assert not new.exists() or kind not in KINDS, "a folder made for nothing"


def test_the_set_up_compiles_the_package_before_anything_runs():
    for target, runs in (("test", "-m pytest"), ("demo", "bin/tpuprof")):
        told = subprocess.run(["make", "-n", target], cwd=SAMPLE.parents[1], capture_output=True, text=True, check=True)
        before, found, _ = told.stdout.partition(runs)
        assert found
        assert "compileall -q tpuprof_tui" in before


@pytest.mark.parametrize("kind", ["regs", "csv"])
def test_a_full_disk_keeps_what_was_there(kind, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=777", "tmpfs", str(disk)],
                             capture_output=True, check=False)  # fmt: skip
    if mounted.returncode:
        pytest.skip("only root can make a small disk")
    try:
        (disk / "mine.txt").write_text("mine")
        words = [sys.executable, "-B", "-m", "tpuprof_tui", *_command(kind, disk / "out")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "could not be written: no space left on device" in _one_message(done)
        assert contents(disk) == {"mine.txt": b"mine"}
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("kind", "number"),
    [("summary", errno.EROFS), ("pftrace", errno.EDQUOT), ("regs", errno.EIO)],
)
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
    assert f"could not be written: {os.strerror(number).lower()}" in _message(capsys.readouterr().err)
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


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to("circle")
    for folder in ("file/out", "circle/out", "/proc/nowhere/out", "a" * 300):
        for kind in ("summary", "csv"):
            assert main(_command(kind, tmp_path / folder)) == 2
            told = _message(capsys.readouterr().err)
            assert "could not be written" in told
            assert "Choose another output folder." in told or not folder.startswith("/proc")


# -- pipes and permissions -------------------------------------------------------


def test_head_ends_a_command_quietly() -> None:
    line = f"{sys.executable} -m tpuprof_tui instructions {SAMPLE} --format csv | head -1; exit ${{PIPESTATUS[0]}}"
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


# -- ends of a run, and of its files --------------------------------------------


def test_without_unnamed_files_a_temporary_name_is_used(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "file"
    with whole_file(path) as stream:
        stream.write(b"all")
        stream.flush()
        assert [each.suffix for each in tmp_path.iterdir()] == [".part"]
    assert contents(tmp_path) == {"file": b"all"}


def test_file_systems_that_know_no_unnamed_files_are_written_to_as_well(tmp_path, monkeypatch):
    real = os.open

    def refusing(path, flags, *more, **named):
        if hasattr(os, "O_TMPFILE") and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(files.errno.EOPNOTSUPP, "not supported")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refusing)
    with whole_file(tmp_path / "file") as stream:
        stream.write(b"all")
    assert contents(tmp_path) == {"file": b"all"}


def test_file_systems_without_links_are_written_to_as_well(tmp_path, monkeypatch):
    def refusing(*_, **__):
        raise PermissionError(files.errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refusing)
    with whole_file(tmp_path / "file") as stream:
        stream.write(b"all" * 100_000)
    assert contents(tmp_path) == {"file": b"all" * 100_000}
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~files._umask()
    monkeypatch.setattr(shutil, "copyfileobj", refusing)
    with pytest.raises(WriteError, match="not permitted"), whole_file(tmp_path / "other") as stream:
        stream.write(b"all")
    assert list(contents(tmp_path)) == ["file"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system knows no unnamed files")
def test_an_unnamed_file_cannot_be_seen(tmp_path):
    with whole_file(tmp_path / "file") as stream:
        stream.write(b"all")
        stream.flush()
        seen = contents(tmp_path)
    if seen:
        pytest.skip("this file system knows no unnamed files")
    assert contents(tmp_path) == {"file": b"all"}
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~files._umask()


def test_what_an_ended_run_wrote_is_removed_by_the_next(tmp_path, monkeypatch):
    profile = small_profile(1)
    written = []

    def killed(*told):
        if len(written) == 3:
            raise SystemExit(9)
        written.append(told)
        return real(*told)

    real = registers_text.rows_as_text
    monkeypatch.setattr(registers_text, "rows_as_text", killed)
    # as when the process is killed: nothing of ours runs any more
    monkeypatch.setattr(job, "_write_list", lambda folder, names, write=job._write_list: write(folder, names)
                        if not written else None)  # fmt: skip
    with pytest.raises(SystemExit):
        run_export(Job(tmp_path, frozenset({"regs"}), query_of(profile)))
    left = {path.name for path in tmp_path.glob("*RegInfo*")}
    assert len(left) >= 2
    monkeypatch.undo()
    (tmp_path / "tiuRegInfo_99.txt").write_text("somebody else's")
    run_export(Job(tmp_path, frozenset({"regs"}), selected_query(profile, units=frozenset({1}))))
    names = {path.name for path in tmp_path.glob("*RegInfo*")}
    assert "tiuRegInfo_0.txt" in left - names
    assert {"tiuRegInfo_1.txt", "tiuRegInfo_99.txt"} <= names


def test_a_failed_run_lists_what_there_is(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise WriteError("no")

    monkeypatch.setattr("tpuprof_tui.export.web.page.write_web", fails)
    with pytest.raises(WriteError):
        run_export(Job(tmp_path, frozenset({"summary", "web"}), query_of(small_profile(1))))
    assert json.loads((tmp_path / OWN_LIST).read_text()) == ["summary.txt"]
    assert sorted(contents(tmp_path)) == [OWN_LIST, "summary.txt"]
