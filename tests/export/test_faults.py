"""What is left of an export that could not be finished: nothing half-written, and what was there before."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import NO_BYTECODE, limited
from profiles import small_profile

from tpuprof_tui.export import job
from tpuprof_tui.export.job import OWN_LIST, Job, run_export
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats import files
from tpuprof_tui.formats.files import WriteError, whole_file
from tpuprof_tui.sources.sophgo.files import registers_text

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"
KINDS = ("summary", "pftrace", "regs", "xlsx", "web")


def command(kind: str, out: Path) -> list[str]:
    """The command that writes one kind of file below ``out``."""
    tool = [sys.executable, "-m", "tpuprof_tui"]
    if kind in KINDS or "," in kind:
        return [*tool, "export", str(SAMPLE), str(out), "--only", kind]
    return [*tool, "instructions", str(SAMPLE), "--format", kind, "--columns", "name,dur", "--output",
            str(out / f"instructions.{kind}")]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with an export of everything."""
    out = tmp_path_factory.mktemp("whole")
    subprocess.run(command(",".join(KINDS), out), check=True, capture_output=True)
    return out


# -- disks --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "csv", "jsonl"])
def test_a_disk_that_takes_no_more_is_one_sentence(kind, tmp_path):
    out = tmp_path / "out"
    done = limited(command(kind, out), 4096)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if not line.startswith("Writing")]
    assert len(told) == 1
    assert told[0].startswith("tpuprof: ")
    assert "could not be written: file too large" in told[0]
    assert contents(tmp_path) == {}
    if kind in KINDS:
        assert not out.exists(), "a folder made for nothing"


def test_a_program_under_a_limit_leaves_no_bytecode_that_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setitem(NO_BYTECODE, "PYTHONPYCACHEPREFIX", str(tmp_path / "bytecode"))
    assert limited(command("jsonl", tmp_path / "out"), 4096).returncode == 2
    assert contents(tmp_path) == {}


def test_the_set_up_compiles_the_package_before_anything_runs():
    for target, runs in (("test", "-m pytest"), ("demo", "bin/tpuprof")):
        told = subprocess.run(["make", "-n", target], cwd=SAMPLE.parents[1], capture_output=True, text=True, check=True)
        before, found, _ = told.stdout.partition(runs)
        assert found
        assert "compileall -q tpuprof_tui" in before


@pytest.mark.parametrize("kind", [*KINDS, "csv"])
def test_a_full_disk_keeps_what_was_there(kind, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k,mode=777", "tmpfs", str(disk)],
                             capture_output=True, check=False)  # fmt: skip
    if mounted.returncode:
        pytest.skip("only root can make a small disk")
    try:
        (disk / "mine.txt").write_text("mine")
        done = subprocess.run(command(kind, disk / "out"), capture_output=True, text=True, check=False,
                              env=NO_BYTECODE)  # fmt: skip
        assert done.returncode == 2
        (told,) = [line for line in done.stderr.splitlines() if not line.startswith("Writing")]
        assert told.startswith("tpuprof: ")
        assert "could not be written: no space left on device" in told
        assert contents(disk) == {"mine.txt": b"mine"}
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("kind", ["regs", "xlsx"])
def test_what_an_earlier_export_wrote_stays_when_a_later_one_fails(kind, whole):
    before = contents(whole)
    done = limited(command(kind, whole), 4096)
    assert done.returncode == 2
    assert contents(whole) == before


@pytest.mark.parametrize("kind", ["web", "csv"])
def test_a_folder_that_cannot_be_made_is_one_sentence(kind):
    done = subprocess.run(command(kind, Path("/proc/nowhere/out")), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if not line.startswith("Writing")]
    assert len(told) == 1
    assert "could not be written" in told[0]
    assert "Choose another output folder." in told[0]


# -- ends that nobody asked for -------------------------------------------------


def test_an_export_that_is_killed_leaves_and_lists_whole_files_alone(tmp_path, whole):
    chance = random.Random(9)
    expected = contents(whole)
    words = command("summary,regs,web", tmp_path / "out")
    begun = time.monotonic()
    subprocess.run(command("summary,regs,web", tmp_path / "timed"), check=True, capture_output=True)
    lasts = time.monotonic() - begun
    ended = 0
    for _ in range(3):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, 1.0) * lasts)
        process.kill()
        ended += process.wait() != 0
        found = contents(tmp_path / "out") if (tmp_path / "out").exists() else {}
        listed = json.loads(found.pop(OWN_LIST, b"[]"))
        for name, data in found.items():
            if name.endswith(".part"):  # killed after its bytes got a name, before that was the file's own
                continue
            assert data == expected.get(name), name
            assert name in listed
    assert ended


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
        run_export(profile, Job(tmp_path, frozenset({"regs"})))
    left = {path.name for path in tmp_path.glob("*RegInfo*")}
    assert len(left) >= 2
    monkeypatch.undo()
    (tmp_path / "tiuRegInfo_99.txt").write_text("somebody else's")
    run_export(profile, Job(tmp_path, frozenset({"regs"}), Selection(units=frozenset({1}))))
    names = {path.name for path in tmp_path.glob("*RegInfo*")}
    assert "tiuRegInfo_0.txt" in left - names
    assert {"tiuRegInfo_1.txt", "tiuRegInfo_99.txt"} <= names


def test_a_failed_run_lists_what_there_is(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise WriteError("no")

    monkeypatch.setattr("tpuprof_tui.export.web.page.write_web", fails)
    with pytest.raises(WriteError):
        run_export(small_profile(1), Job(tmp_path, frozenset({"summary", "web"})))
    assert json.loads((tmp_path / OWN_LIST).read_text()) == ["summary.txt"]
    assert sorted(contents(tmp_path)) == [OWN_LIST, "summary.txt"]
