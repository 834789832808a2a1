#!/usr/bin/env python3
"""The explorer at size, printed as figures; nothing here passes or fails.

    python tests/benchmarks/scale.py [--only WORD] [--keep DIR] [--small]

Captures are written by `samples/make.py`: ten million records, twenty thousand launches, five million instructions on
one core, 64 lanes and more, 64 captures in a folder. Each is opened in a process of its own, without a terminal but
with all that a terminal would be sent; a key's cost is the CPU time of the process from the key until all threads and
messages it caused have come to rest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
SIZE = (160, 48)
#: What is pressed, by what it does; each is repeated.
KEYS = {
    "zoom": ("1", "w", "w", "w", "w", "w", "s", "s", "w", "w"),
    "pan": ("d", "d", "a", "d", "d", "a", "l", "l", "h", "l"),
    "scroll": ("2", "pagedown", "pagedown", "G", "pageup", "g", "j", "j", "k", "pagedown"),
    "summary": ("3", "j", "j", "1", "0", "w", "3", "1", "s", "0"),
}
CAPTURES = {
    "10M records": ("--records", "10000000"),
    "20k launches": ("--cores", "1", "--launches", "20000"),
    "5M on one core": ("--cores", "1", "--records", "5000000"),
    "66 lanes": ("--cores", "22", "--records", "200000", "--sdma"),
}
MANY = 64


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="only what has this word in its title")
    parser.add_argument("--keep", type=Path, help="folder where captures are kept and found again")
    parser.add_argument("--small", action="store_true", help="a hundredth of the records: to try this program")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        title, path = options.measure.split("=", 1)
        print(json.dumps(asyncio.run(listed(path) if title == "list" else explored(path))))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep or Path(scratch)
        for title, words in CAPTURES.items():
            if options.only in title:
                small = tuple(word[:-2] if word.isdecimal() and len(word) > 4 else word for word in words)
                _tell(title, measured("open", written(place, title, small if options.small else words)))
        if options.only in f"{MANY} captures":
            folder = place / "many"
            for number in range(MANY):
                written(folder, f"cdm_profile_data_dev{number % 8}-{number}", ("--records", "20000"))
            _tell(f"{MANY} captures listed", measured("list", folder))
    return 0


def written(place: Path, title: str, words: tuple[str, ...]) -> Path:
    """A capture, unless it is there already."""
    name = title.replace(" ", "_")
    if not (place / name).is_dir():
        place.mkdir(parents=True, exist_ok=True)
        make = [sys.executable, str(ROOT / "samples" / "make.py"), "one", str(place), "--name", name, "--no-truth"]
        subprocess.run([*make, *words], check=True, capture_output=True)
    return place / name


def measured(what: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--measure", f"{what}={path}"], check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _tell(title: str, figures: dict[str, float]) -> None:
    print(f"{title:20}", "  ".join(f"{name} {value:.4g}" for name, value in figures.items()), flush=True)


async def _at_rest(pilot: object) -> None:
    """All threads and messages have come to rest."""
    app = pilot.app  # type: ignore[attr-defined]
    resting = 0
    # a thread may begin when a frame has been drawn
    while resting < 2:
        await pilot.pause()  # type: ignore[attr-defined]
        resting = 0 if any(worker.is_running for worker in app.workers) else resting + 1
        await asyncio.sleep(0.005)


async def explored(path: str) -> dict[str, float]:
    """Opens a capture and presses keys: seconds to open, ms of CPU a key (median and largest), memory in MiB."""
    from tpuprof_tui.app.explorer.screen import ExplorerScreen
    from tpuprof_tui.app.shell.application import TpuprofApp

    app = TpuprofApp(path)
    begun = time.process_time(), time.perf_counter()
    async with app.run_test(size=SIZE) as pilot:
        while not isinstance(app.screen, ExplorerScreen):
            await asyncio.sleep(0.01)
        await _at_rest(pilot)
        figures = {"open_cpu_s": time.process_time() - begun[0], "open_wall_s": time.perf_counter() - begun[1]}
        figures["lanes"] = len(app.screen.session.profile.lanes)
        figures["instructions"] = app.screen.session.profile.event_count
        for title, keys in KEYS.items():
            costs = []
            for key in keys:
                before = time.process_time()
                await pilot.press(key)
                await _at_rest(pilot)
                costs.append(1000 * (time.process_time() - before))
            figures |= {f"{title}_ms": median(costs), f"{title}_max_ms": max(costs)}
    figures["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


async def listed(path: str) -> dict[str, float]:
    """Lists a folder: seconds until all captures are named, and until all is known of them."""
    from tpuprof_tui.app.shell.application import TpuprofApp
    from tpuprof_tui.app.shell.capture_list import CaptureList, ChooseScreen

    app = TpuprofApp(path)
    begun = time.perf_counter()
    figures: dict[str, float] = {}
    async with app.run_test(size=SIZE):
        while "known_s" not in figures:
            # looked at in passing: waiting for rest would be measured instead
            await asyncio.sleep(0.01)
            if isinstance(app.screen, ChooseScreen):
                found = app.screen.query_one(CaptureList).entries
                if len(found) == MANY:
                    figures.setdefault("named_s", time.perf_counter() - begun)
                    if all(each.total or each.failed for each in found):
                        figures["known_s"] = time.perf_counter() - begun
    figures["cpu_s"] = time.process_time()
    figures["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


if __name__ == "__main__":
    sys.exit(main())
