#!/usr/bin/env python3
"""Time and memory of Ascend output, made up by ``samples/ascend_profile.py``, against bounds and against pandas.

    python tests/benchmarks/ascend.py [--runs 5] [--rows 1000000] [--ranks 64] [--limit]

CPU seconds on one core, the best of some runs:

- a folder of about 10,000 events: `tpuprof report` of all views above what importing the same modules takes, and the
  first useful screen of the explorer (seconds of the clock, all cores);
- kernel_details.csv of a million rows: `tpuprof report ... kernels`, time and memory at the peak over those of
  ``pandas.read_csv`` of the whole file in the same run;
- the tables of 64 ranks: `tpuprof report ... overview cluster`.

--limit: exit status 1 where a bound is not met.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "samples"), str(Path(__file__).parent)]
from ascend_profile import run_of, us, write_text  # noqa: E402 - it lies in samples
from machine import machine  # noqa: E402
from traces import Best  # noqa: E402

#: Steps of a rank with about 5,000 slices and flows, columns of AI Core metrics of a real kernel_details.csv.
STEPS, METRICS = 26, 24
#: Modules that a program had loaded at its end are loaded without it.
IMPORTED = """
import importlib
for name in {names!r}:
    importlib.import_module(name)
"""
NAMES = """
import contextlib, io, sys
from tpuprof_tui.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["report", {path!r}, "--json"])
print("\\n".join(name for name in sys.modules if name.partition(".")[0] in ("tpuprof_tui", "numpy", "msgspec")))
"""


def tool(*words: str) -> list[str]:
    """The command line of the checkout."""
    return [f"PYTHONPATH={ROOT}", sys.executable, "-m", "tpuprof_tui", *words]


def best(command: list[str], runs: int) -> Best:
    """The best of some runs of a program."""
    found = Best()
    for _ in range(runs):
        found.take(command)
    return found


def write_ranks(folder: Path, ranks: int, steps: int) -> Path:
    """The folders of so many ranks."""
    for rank in range(ranks):
        write_text(run_of(rank, steps), folder)
    return folder


def write_kernels(folder: Path, rows: int) -> Path:
    """The folder of a rank whose kernel_details.csv alone is there, with so many rows."""
    output = write_text(run_of(0, 1), folder) / "ASCEND_PROFILER_OUTPUT"
    for each in output.iterdir():
        if each.name != "kernel_details.csv":
            each.unlink()
    path = output / "kernel_details.csv"
    header, *kernels = path.read_text().splitlines()
    starts, of = header.split(",").index("Start Time(us)"), [line.split(",") for line in kernels]
    metrics = ",".join(f"0.{number:03d}" for number in range(METRICS))

    def lines() -> Iterator[str]:
        yield ",".join((header, *(f"metric_{number}" for number in range(METRICS)))) + "\n"
        for number in range(rows):
            cells = of[number % len(of)]
            cells[starts] = f"{us(1_750_000_000_000_000_000 + number * 60_000)}\t"
            yield f"{','.join(cells)},{metrics}\n"

    with path.open("w") as out:
        out.writelines(lines())
    return path


def imports_of(path: Path, runs: int) -> float:
    """CPU seconds that the modules of a report of all views take alone."""
    names = subprocess.run([sys.executable, "-c", NAMES.format(path=str(path))], capture_output=True, text=True,
                           check=True, cwd=ROOT).stdout.split()  # fmt: skip
    code = IMPORTED.format(names=[name for name in names if name != "tpuprof_tui.__main__"])
    return best([f"PYTHONPATH={ROOT}", sys.executable, "-c", code], runs).cpu


def main() -> int:
    """Measures; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--limit", action="store_true")
    options = parser.parse_args()
    print(f"{machine()}; best of {options.runs}\n")
    beyond = []

    def told(what: str, value: float, most: float, unit: str) -> None:
        print(f"{what:64} {value:8.2f} {unit:5} (at most {most:g})", flush=True)
        if value > most:
            beyond.append(what)

    with tempfile.TemporaryDirectory() as scratch:
        small = write_ranks(Path(scratch, "small"), 2, STEPS)
        report = best(tool("report", str(small), "--json"), options.runs)
        told(
            "10,000 events: report of all views above its imports",
            report.cpu - imports_of(small, options.runs),
            0.5,
            "s",
        )
        screen = Best()
        for _ in range(options.runs):
            screen.take_screen(small)
        told("10,000 events: first useful screen", screen.wall, 0.6, "s")
        table = write_kernels(Path(scratch, "large"), options.rows)
        ours = best(tool("report", str(table), "kernels", "--json", "--limit", "20"), options.runs)
        peer = best([sys.executable, "-c", f"import pandas; pandas.read_csv({str(table)!r})"], options.runs)
        megabytes = table.stat().st_size / 1e6
        told(
            f"kernel_details.csv, {options.rows:,} rows, {megabytes:,.0f} MB: time over pandas",
            ours.cpu / peer.cpu,
            1,
            "",
        )
        told(
            f"its memory over pandas ({ours.memory:,.0f} of {peer.memory:,.0f} MiB)",
            ours.memory / peer.memory,
            1 / 3,
            "",
        )
        ranks = write_ranks(Path(scratch, "ranks"), options.ranks, STEPS)
        tables = best(tool("report", str(ranks), "overview", "cluster", "--json"), min(options.runs, 2))
        told(f"{options.ranks} ranks: overview and cluster", tables.cpu, 10, "s")
    return int(bool(beyond) and options.limit)


if __name__ == "__main__":
    sys.exit(main())
