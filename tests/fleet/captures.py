"""A fleet of small captures with a truth: a drift, a device that is slow, a capture unlike all others, damage."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "samples"))

from capture_writer.capture import write_capture
from capture_writer.options import Options

#: What a kernel is called by the writer, and in captures.
SLOW, DRIFTED, ODD, STEADY = "mlp", "lm_head", "attention", "rmsnorm"
NAMES = {SLOW: "kernel:llama_mlp_multi_core", DRIFTED: "kernel:lm_head_matmul_multi_core",
         ODD: "kernel:llama_attention_multi_core", STEADY: "kernel:rmsnorm_multi_core"}  # fmt: skip
_FIRST_DAY = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Fleet:
    """What is put into a fleet.

    Attributes:
        days, devices: One capture a day of each device.
        bad: The device whose `SLOW` kernel takes half as long again.
        drift: The day from which `DRIFTED` takes a quarter longer, on all devices.
        odd: Day and device of the one capture in which `ODD` takes three times as long.
        unreadable: Days and devices of captures of which nothing can be read.
        cut: Days and devices of captures of which a file is cut off.
        first_run: Number of the first capture's run: no two runs are the same.
    """

    days: int
    devices: int
    bad: int = 2
    drift: int = 0
    odd: tuple[int, int] = (1, 0)
    unreadable: frozenset[tuple[int, int]] = frozenset()
    cut: frozenset[tuple[int, int]] = frozenset()
    first_run: int = 1

    @classmethod
    def of(cls, days: int, devices: int, damaged: int, seed: int = 1) -> Fleet:
        """A fleet with so many captures of each kind of damage, anywhere but where something else is put."""
        bad, odd = 2, (1, 0)
        free = [(day, device) for day in range(days) for device in range(devices)
                if device != bad and (day, device) != odd]  # fmt: skip
        chosen = random.Random(seed).sample(free, 2 * damaged)
        return cls(days, devices, bad, days * 3 // 5, odd, frozenset(chosen[:damaged]), frozenset(chosen[damaged:]))

    def day(self, number: int) -> str:
        """A day as the data set calls it."""
        return (_FIRST_DAY + timedelta(days=number)).strftime("%Y-%m-%d")

    def path(self, folder: Path, day: int, device: int) -> Path:
        """Where a capture lies."""
        return folder / self.day(day) / f"cdm_profile_data_dev{device}-{day}"

    def write(self, folder: Path, jobs: int = 1) -> None:
        """Writes all captures."""
        if jobs == 1:
            for day in range(self.days):
                self.write_day(folder, day)
            return
        with ProcessPoolExecutor(jobs) as pool:
            list(pool.map(self.write_day, [folder] * self.days, range(self.days)))

    def write_day(self, folder: Path, day: int) -> None:
        """Writes the captures of a day."""
        for device in range(self.devices):
            self.write_one(folder, day, device)

    def write_one(self, folder: Path, day: int, device: int, records: int = 0) -> None:
        """Writes a capture, with so many records or more."""
        path = self.path(folder, day, device)
        slower = (*((f"{SLOW}:1.5",) if device == self.bad else ()),
                  *((f"{DRIFTED}:1.25",) if day >= self.drift else ()),
                  *((f"{ODD}:3",) if (day, device) == self.odd else ()))  # fmt: skip
        run = self.first_run + day * self.devices + device
        options = replace(Options(path.name), cores=(0,), run=run, slower=slower, records=records)
        write_capture(options, path.parent, truth=False)
        if (day, device) in self.unreadable:
            (path / "global.profile").write_bytes(b"\xff\x00 nothing")
            for file in path.glob("cdmlib*"):
                file.write_bytes(b"\x00" * 100)
        if (day, device) in self.cut:
            file = max(path.glob("cdmlib*"), key=lambda each: each.stat().st_size)
            os.truncate(file, file.stat().st_size * 2 // 3)
        moment = (_FIRST_DAY + timedelta(days=day)).timestamp()
        for file in path.iterdir():
            os.utime(file, (moment, moment))
