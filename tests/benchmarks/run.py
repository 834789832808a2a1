#!/usr/bin/env python3
"""Speed and memory of the command line, printed as figures and ratios; nothing here passes or fails.

    python tests/benchmarks/run.py [--large] [--runs 5] [--only WORD] [--keep DIR]

Captures are written anew by `samples/make.py`. Each figure is the best of several whole processes: wall clock, CPU and
peak memory of the child as the system counts them. Targets are for a machine with two cores on which the reference
takes 5 s for 100,000 records of mode 1; elsewhere compare the ratios with one another. Where the published converter
is installed (``bigTpuProfile`` on PATH, or named by TPUPROF_REFERENCE) it runs once beside ours, and the last column
says how many times as long and as much it takes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
READY = "import sys, tpuprof_tui; from tpuprof_tui.analysis import build_indexes; \
build_indexes(tpuprof_tui.open_profile(sys.argv[1]))"
#: Pairing is timed alone: launches of few commands make a capture of very many scopes.
OPEN = "import sys, tpuprof_tui; tpuprof_tui.open_profile(sys.argv[1])"


@dataclass(frozen=True)
class Capture:
    """A capture that `samples/make.py one` writes."""

    name: str
    options: tuple[str, ...]
    large: bool = False


@dataclass(frozen=True)
class Case:
    """One figure: a command, and what it should take."""

    title: str
    words: tuple[str, ...]
    capture: str = ""
    seconds: float | None = None
    mebibytes: float | None = None
    reference: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Figures:
    """What one process took."""

    wall: float
    cpu: float
    mebibytes: float


CAPTURES = (
    Capture("100k", ("--records", "100000")),
    Capture("1M", ("--records", "1000000")),
    Capture("10M", ("--records", "10000000"), large=True),
    Capture("100k_mode2", ("--records", "100000", "--mode", "2")),
    Capture("1M_mode2", ("--records", "1000000", "--mode", "2")),
    Capture("launches", ("--cores", "1", "--launches", "20000")),
    Capture("launches_lost", ("--cores", "1", "--launches", "20000", "--lost", "0.02")),
)
PYTHON = sys.executable
TOOL = (PYTHON, "-m", "tpuprof_tui")
EXPORT = (*TOOL, "export", "{capture}", "{out}", "--only")
REFERENCE = os.environ.get("TPUPROF_REFERENCE") or shutil.which("bigTpuProfile")
CASES = (
    Case("--version", (*TOOL, "--version"), seconds=0.06),
    Case("--help", (*TOOL, "--help"), seconds=0.06),
    Case("ready to show, 100k", (PYTHON, "-c", READY), "100k", 0.15),
    Case("ready to show, 1M", (PYTHON, "-c", READY), "1M", 0.35, 220),
    Case("ready to show, 10M", (PYTHON, "-c", READY), "10M", 2.5, 1945),
    Case("opened, 20k launches", (PYTHON, "-c", OPEN), "launches"),
    Case("opened, 20k launches, 2% lost", (PYTHON, "-c", OPEN), "launches_lost"),
    Case("info --json, 1M", (*TOOL, "info", "--json"), "1M"),
    Case("summary, 1M", (*TOOL, "summary"), "1M"),
    Case("instructions jsonl, 1M", (*TOOL, "instructions", "--format", "jsonl"), "1M", 6.0),
    Case("instructions csv, 1M", (*TOOL, "instructions", "--format", "csv"), "1M", 4.0),
    Case("opened, 1M of mode 2", (PYTHON, "-c", OPEN), "1M_mode2", 0.9),
    Case("export summary, 100k", (*EXPORT, "summary"), "100k", 0.4),
    Case("export pftrace, 100k", (*EXPORT, "pftrace"), "100k", 0.8, reference=()),
    Case("export pftrace, 1M", (*EXPORT, "pftrace"), "1M", 3.0, 500),
    Case("export pftrace, 10M", (*EXPORT, "pftrace"), "10M", 30.0),
    Case("export xlsx, 100k", (*EXPORT, "xlsx"), "100k", 10.0, 300, reference=("--enable_doc",)),
    Case("export xlsx, 100k of mode 2", (*EXPORT, "xlsx"), "100k_mode2", 20.0, 300, reference=("--enable_doc",)),
    Case("export web, 100k", (*EXPORT, "web"), "100k", 1.2),
    Case("export regs, 100k", (*EXPORT, "regs"), "100k"),
)


def written(capture: Capture, folder: Path) -> Path:
    """The directory of a capture, written unless it is there."""
    path = folder / capture.name
    if not path.exists():
        command = [PYTHON, str(ROOT / "samples" / "make.py"), "one", str(folder), "--name", capture.name, "--no-truth"]
        subprocess.run([*command, *capture.options], check=True, stdout=subprocess.DEVNULL)
    return path


def measured(words: list[str]) -> Figures:
    """What one process took; its output is thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit status {process.returncode}")
    kibibyte = 1 if sys.platform == "darwin" else 1024
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * kibibyte / 2**20)


def best(words: list[str], runs: int) -> Figures:
    """The fastest of several runs, with the smallest peak of memory."""
    found = [measured(words) for _ in range(runs)]
    return Figures(min(f.wall for f in found), min(f.cpu for f in found), min(f.mebibytes for f in found))


def ratio(value: float, target: float | None) -> str:
    """How a figure stands to its target: below 1 is better."""
    return f"{value / target:5.2f} of {target:g}" if target else ""


def beside_reference(case: Case, capture: str, scratch: Path, ours: Figures) -> str:
    """How many times as long and as much memory the published converter takes; empty where it is not installed."""
    if case.reference is None or REFERENCE is None:
        return ""
    theirs = measured([REFERENCE, *case.reference, capture, str(scratch / "reference_out")])
    return f"{theirs.wall / ours.wall:5.1f} x time, {theirs.mebibytes / ours.mebibytes:4.1f} x memory"


def main() -> None:
    """Prints one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="ten million records too (1 GB of memory and more)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose title contains this")
    parser.add_argument("--keep", type=Path, help="where captures are kept for the next time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        captures = {capture.name: capture for capture in CAPTURES if options.large or not capture.large}
        print(f"{'':32} {'wall s':>8} {'CPU s':>8} {'MiB':>8}  {'time/target':16} {'memory/target':16} reference/ours")
        for case in CASES:
            if options.only not in case.title or (case.capture and case.capture not in captures):
                continue
            path = str(written(captures[case.capture], folder)) if case.capture else ""
            out = str(Path(scratch) / "out")
            words = [word.format(capture=path, out=out) for word in case.words]
            figures = best([*words, path] if path and path not in words else words, options.runs)
            line = f"{case.title:32} {figures.wall:8.3f} {figures.cpu:8.3f} {figures.mebibytes:8.0f}"
            targets = f"{ratio(figures.wall, case.seconds):16} {ratio(figures.mebibytes, case.mebibytes):16}"
            print(f"{line}  {targets} {beside_reference(case, path, Path(scratch), figures)}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
