#!/usr/bin/env python3
"""What a data set costs: a capture in it against opening it, and questions over ten million events; CPU seconds.

    python tests/benchmarks/dataset.py [--events 10] [--runs 25]

The first table is of one process that opens a capture and puts it into a data set in turn: the median of all turns,
with the ratio of the medians and that of the best turns. The second is of whole processes of `tpuprof dataset query`,
with what they take to start (`select 1`). Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from tpuprof_tui import open_profile
from tpuprof_tui.dataset import build
from tpuprof_tui.dataset.manifest import Manifest

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = {
    "small": ("--cores", "1"),
    "mode 1, 15,000": ("--records", "15000"),
    "mode 1, 100,000": ("--records", "100000"),
    "mode 2, one core": ("--mode", "2", "--cores", "1"),
}
#: Percentiles are exact: approx_quantile is another number, and no sooner.
QUESTIONS = (
    "select 1",
    "select count(*) from events",
    "select name, count(*), sum(duration) from events group by name",
    "select quantile_cont(duration, 0.99) from events",
    "select count(*), sum(duration), quantile_disc(duration, 0.99) from events where role = 'work'",
    "select name, quantile_disc(duration, 0.99) from events group by name",
)


def written(place: Path, name: str, *options: str) -> Path:
    """A synthetic capture."""
    words = [sys.executable, ROOT / "samples" / "make.py", "one", "--no-truth", "--name", name, *options, place]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return place / name


def took(action: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    action()
    return time.process_time() - began


def many_events(place: Path, millions: int) -> Path:
    """A data set of a capture of a million events, as often as asked for, under other names."""
    out = place / "many"
    build.build(out, [str(written(place, "million", "--records", "1000000"))], build.local(1))
    with Manifest.opened(out) as manifest:
        (entry,) = manifest.entries.values()
        for number in range(1, millions):
            capture = f"{number:04}{entry.capture[4:]}"
            files = [file.replace(entry.capture, capture) for file in entry.files]
            for file, copy in zip(entry.files, files, strict=True):
                shutil.copy(out / file, out / copy)
            again = replace(entry, path=f"{entry.path}{number}", capture=capture, files=tuple(files))
            manifest.log([again])
    return out


def asked(out: Path, sql: str) -> float:
    """CPU seconds of a process that asks."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "tpuprof_tui", "dataset", "query", out, sql, "--csv"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--events", type=int, default=10, help="millions of events that questions are asked about")
    parser.add_argument("--runs", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tpuprof-dataset") as folder:
        place = Path(folder)
        print(f"{'capture':20}{'events':>9}{'opened':>10}{'put in':>10}{'ratio':>7}{'of best':>9}{'Parquet':>10}")
        for name, words in CAPTURES.items():
            path = str(written(place, name.replace(" ", "_"), *words))
            opened, within = [], []
            out = place / f"out {name}"
            for _ in range(options.runs):
                # as a capture of a day that others are of: its folders are there, and it replaces no files
                for file in out.rglob("*.parquet"):
                    file.unlink()
                opened.append(took(lambda path=path: open_profile(path)))
                within.append(took(lambda path=path, out=out: build.write_capture(str(out), path)))
            size = sum(file.stat().st_size for file in out.rglob("*.parquet"))
            usual, put = median(opened), median(within)
            print(f"{name:20}{open_profile(path).event_count:>9,}{usual * 1e3:>7.1f} ms{put * 1e3:>7.1f} ms"
                  f"{put / usual:>7.1f}{min(within) / min(opened):>9.1f}{size / 1e3:>7.0f} kB", flush=True)  # fmt: skip
        out = many_events(place, options.events)
        print(f"\n{options.events:,} million events")
        for sql in QUESTIONS:
            print(f"{min(asked(out, sql) for _ in range(3)):6.2f} s  {sql}", flush=True)


if __name__ == "__main__":
    main()
