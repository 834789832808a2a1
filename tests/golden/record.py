"""Every output of a capture as files, to compare two states of the program by their bytes.

    python tests/golden/record.py OUT CAPTURE ... [--frames] [--jobs N]
    python tests/golden/record.py --compare BEFORE AFTER

``OUT/CAPTURE/`` gets what each command prints (text and JSON), what each export writes, tables as CSV, JSON lines and
Parquet, and with ``--frames`` what the explorer shows at three sizes after each of a walk of keys. Where a command
fails, its exit status and message are the output. Workbooks are recorded by the parts of their zip.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zipfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

#: What is printed, by the name of its file; CAPTURE stands for the path.
PRINTED = {
    "summary.txt": "summary CAPTURE",
    "info.txt": "info CAPTURE",
    "info.json": "info CAPTURE --json",
    "instructions.jsonl": "instructions CAPTURE",
    "instructions.csv": "instructions CAPTURE --format csv",
    "table.csv": "instructions CAPTURE --format csv --columns engine,core,name,start,dur,kernel,bytes,exposed",
    "sorted.jsonl": "instructions CAPTURE --columns name,dur,at_peak --sort dur:desc",
    "filtered.jsonl": "instructions CAPTURE --filter dur>1us --range 10us..200us",
}
EXPORTED = "xlsx,web,pftrace,summary,regs"
#: Keys pressed one group after another; a frame is taken after each. None leaves the explorer.
WALK = (
    "",
    "w w w j",
    "full_stop",
    "i",
    "C",
    "B",
    "2 j j",
    "s",
    "F",
    "escape",
    "3",
    "Z",
    "Z",
    "4",
    "t j j enter",
    "3",
    "2 c",
    "escape",
    "b",
    "escape",
    "x",
    "escape",
    "1 u",
    "question_mark",
)
SIZES = ((80, 24), (120, 40), (200, 60))


def printed(words: list[str]) -> bytes:
    """What a command prints: status, messages, answer."""
    from tpuprof_tui.cli.main import main

    out, told = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
    out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    return f"exit {status}\n{told.getvalue()}--\n".encode() + out.buffer.getvalue()


def record(capture: Path, out: Path, frames: bool) -> None:
    """Writes all outputs of one capture below ``out``. Paths in texts are told as if the capture lay in no folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        # the same path whatever lies where: it is told in messages and files
        link = Path(folder, capture.name)
        link.symlink_to(capture.resolve())
        os.chdir(folder)
        try:
            for name, words in PRINTED.items():
                (out / name).write_bytes(printed(words.replace("CAPTURE", capture.name).split(" ")))
            told = printed(["export", capture.name, "exported", "--only", EXPORTED])
            (out / "export.txt").write_bytes(told)
            for path in sorted(Path("exported").rglob("*")):
                if path.is_file():
                    _keep(path, out / path)
            if frames:
                asyncio.run(_frames(capture.name, out / "frames"))
        finally:
            os.chdir(before)


def _keep(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".xlsx":
        shutil.copy(path, target)
        return
    with zipfile.ZipFile(path) as package:
        for member in package.namelist():
            part = target / member
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(package.read(member))


async def _frames(name: str, out: Path) -> None:
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "app")]
    os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    from screen import frame, opened, press

    from tpuprof_tui import open_profile
    from tpuprof_tui.app.panes.keybar import KeyBar
    from tpuprof_tui.errors import TpuprofError

    KeyBar.SHOWN_SECONDS = 3600  # a message that went by the clock would be in some of the frames
    try:
        profile = open_profile(name)
    except TpuprofError:
        return
    out.mkdir()
    for size in SIZES:
        async with opened(profile, size) as pilot:
            for place, keys in enumerate(WALK):
                if keys:
                    await press(pilot, keys)
                assert pilot.app.is_running, f"{keys!r} has left the explorer"
                (out / f"{size[0]}x{size[1]}-{place:02}.txt").write_text(frame(pilot.app), encoding="utf-8")


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder, by its path there."""
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}  # fmt: skip


def compared(before: Path, after: Path) -> list[str]:
    """Files that differ or that one side lacks, a line each."""
    old, new = digests(before), digests(after)
    return [f"{'differs' if name in old and name in new else 'gone' if name in old else 'new'}  {name}"
            for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]  # fmt: skip


def main() -> int:
    """The program; exit status 1 where two recordings differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("captures", type=Path, nargs="*")
    parser.add_argument("--frames", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    args = parser.parse_args()
    if args.compare:
        found = compared(*args.compare)
        print("\n".join(found) or "no difference")
        return bool(found)
    with ProcessPoolExecutor(args.jobs, max_tasks_per_child=1) as pool:
        jobs = {capture.name: pool.submit(record, capture.resolve(), (args.out / capture.name).resolve(), args.frames)
                for capture in args.captures}  # fmt: skip
        for name, job in jobs.items():
            job.result()
            print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
