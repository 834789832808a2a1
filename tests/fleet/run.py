#!/usr/bin/env python3
"""A data set of a fleet put to the proof: killed builds, other engines, an object store that fails, a cluster.

    make fleet-test                                  all of it: 2,000 captures, a few minutes
    python tests/fleet/run.py --days 20 --only fleet engines

Parts: ``fleet`` (builds killed at random and begun again; what was put in is found), ``engines`` (DuckDB, polars and
Spark tell the same), ``store`` (captures, and a data set, at s3:// addresses of a server on this machine that fails now
and then), ``ray`` (a cluster of two nodes on this machine, of which one is killed in the middle). Needs the extra
``fleet``, and Java for Spark: a part whose package is missing is told and ends with status 1. All traffic stays on this
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from captures import Fleet
from engines import engines_agree
from findings import check
from ray_cluster import built_while_a_node_dies
from store import built_from_a_store_that_fails

from tpuprof_tui.dataset import build as building
from tpuprof_tui.dataset.manifest import Manifest

TOOL = [sys.executable, "-m", "tpuprof_tui", "dataset", "build"]


def content(out: Any) -> dict[str, Any]:
    """All that a data set holds, by capture and table: rows, and the sum of what is a number."""
    import pyarrow
    from pyarrow import compute, parquet

    found: dict[str, Any] = {}
    manifest = Manifest.read(out)
    for file in sorted(manifest.files):
        with manifest.store.open(file) as stream:
            table = parquet.read_table(stream)
        numbers = [compute.sum(table[field.name]).as_py() for field in table.schema
                   if pyarrow.types.is_integer(field.type) or pyarrow.types.is_floating(field.type)]  # fmt: skip
        found[file] = (table.num_rows, numbers)
    return found


def killed_builds(fleet: Fleet, folder: Path, out: Path, kills: int, seed: int) -> dict[str, Any]:
    """Builds a fleet; the processes are killed at random moments, and begun again."""
    dice = random.Random(seed)
    killed, status = 0, None
    took = time.perf_counter()
    while killed < kills:
        process = subprocess.Popen([*TOOL, out, folder, "--jobs", "2"], start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            status = process.wait(dice.uniform(1, 4))
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    if status is None:
        status = subprocess.run([*TOOL, out, folder, "--jobs", "2"], stdout=subprocess.DEVNULL, check=False).returncode
    assert status in (0, 1)  # 1: damaged ones were left to the last build
    again = subprocess.run([*TOOL, out, folder, "--json"], capture_output=True, text=True, check=False)
    assert json.loads(again.stdout)["unchanged"] == fleet.days * fleet.devices, again.stdout[:500]
    on_disk = {str(file.relative_to(out)) for file in out.rglob("*.parquet")}
    assert on_disk == Manifest.read(out).files
    # a part of the fleet, built at once: the same
    few, words = out.with_name("few"), [str(folder / fleet.day(day)) for day in range(3)]
    building.build(few, words, building.local(2))
    whole = content(out)
    for file, told in content(few).items():
        assert whole[file] == told, file
    return {"killed": killed, "seconds": round(time.perf_counter() - took)}


def rate(fleet: Fleet, folder: Path, place: Path) -> dict[str, Any]:
    """Captures per second on one and on two processes, and the memory of the one that takes most."""
    words = [str(folder / fleet.day(day)) for day in range(min(fleet.days, 10))]
    told: dict[str, Any] = {}
    for jobs in (1, 2):
        script = ("import resource, sys, time; from pathlib import Path; from tpuprof_tui.dataset.build import build, "
                  "local\nif __name__ == '__main__':\n t = time.perf_counter(); "
                  "b = build(Path(sys.argv[1]), sys.argv[3:], local(int(sys.argv[2]))); t = time.perf_counter() - t\n "
                  # its own ru_maxrss would be that of the process that began it, where that is larger
                  "own = next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith('VmHWM'))\n "
                  "r = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
                  " print(len(b.written) / t, r // 1024)")  # fmt: skip
        file = place / "rate.py"
        file.write_text(script)
        done = subprocess.run([sys.executable, file, place / f"rate{jobs}", str(jobs), *words],
                              capture_output=True, text=True, check=True)  # fmt: skip
        speed, memory = done.stdout.split()
        told[f"{jobs} processes"] = f"{float(speed):.1f} captures/s, {memory} MB each at most"
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--devices", type=int, default=20)
    parser.add_argument("--damaged", type=int, default=10, help="captures of each kind of damage")
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=("fleet", "engines", "store", "ray"), default=None)
    parser.add_argument("--keep", type=Path, help="folder that stays; captures that are there are not written again")
    asked = parser.parse_args()
    place = asked.keep or Path(tempfile.mkdtemp(prefix="tpuprof-fleet"))
    fleet = Fleet.of(asked.days, asked.devices, asked.damaged, asked.seed)
    folder, out = place / "captures", place / "fleet"
    if not folder.exists():
        print(f"writing {fleet.days * fleet.devices:,} captures into {folder}", flush=True)
        fleet.write(folder, jobs=2)
    parts: dict[str, Callable[[], Any]] = {
        "fleet": lambda: {**killed_builds(fleet, folder, out, asked.kills, asked.seed),
                          **check(fleet, folder, out), **rate(fleet, folder, place)},
        "engines": lambda: engines_agree(fleet, out, place),
        "store": lambda: built_from_a_store_that_fails(folder / fleet.day(0), place, content, asked.seed),
        "ray": lambda: built_while_a_node_dies(folder, place, content),
    }  # fmt: skip
    status = 0
    try:
        if not out.exists() and asked.only and "fleet" not in asked.only:
            building.build(out, [str(folder)], building.local(2))
        for name, part in parts.items():
            if asked.only is None or name in asked.only:
                try:
                    print(f"{name}: {json.dumps(part(), default=str)}", flush=True)
                except ImportError as error:
                    print(f"{name}: not run, {error}", flush=True)
                    status = 1
    finally:
        if asked.keep is None:
            shutil.rmtree(place, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
