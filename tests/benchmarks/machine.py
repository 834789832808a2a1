"""The machine that figures come from."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine() -> str:
    """Where figures come from, in a sentence."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    parts = [names[0] if names else platform.processor() or platform.machine(), f"{os.cpu_count()} cores"]
    parts += [f"{memory[0] / 2**20:.0f} GiB"] if memory else []
    parts += [f"{platform.system()} {platform.release().split('-')[0]}", f"Python {platform.python_version()}"]
    for package in ("numpy", "tpuprof-tui"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    # the measured process itself is one
    busy = f", while other work kept its cores busy (load {load:.0f})" if load > cores + 1 else ""
    return f"{', '.join(parts)}; {datetime.date.today().isoformat()}{busy}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
