#!/usr/bin/env python3
"""What imports cost, by ``python -X importtime``: milliseconds in modules that a bare interpreter does not load.

python tests/benchmarks/importing.py [--modules]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Final

_LINE: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
#: Title, program, budget in ms (of the machine that the figures of the benchmarks are for).
CASES: Final = (
    ("imports, package alone", "import tpuprof_tui", 5.0),
    ("imports, --version", "import tpuprof_tui.cli.main", 40.0),
    ("imports, reading a capture", "import tpuprof_tui.sources.sophgo.read, tpuprof_tui.analysis", 120.0),
    (
        "imports, explorer",
        "import tpuprof_tui.app; tpuprof_tui.app.set_gc_threshold(); "
        "import tpuprof_tui.app.shell.application, tpuprof_tui.app.explorer.screen",
        450.0,
    ),
)


def modules(program: str) -> dict[str, float]:
    """Milliseconds spent in each module itself while ``program`` runs, interpreter start included."""
    words = [sys.executable, "-X", "importtime", "-c", program]
    # compiled once, as where it is installed
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    told = subprocess.run(words, check=True, capture_output=True, text=True, env=settings).stderr
    return {match[2]: int(match[1]) / 1000 for match in _LINE.finditer(told)}


def imported(program: str, runs: int = 5) -> dict[str, float]:
    """Modules that ``program`` adds to a bare interpreter, each with its ms in the fastest of several runs.

    Each by itself: on a busy machine hardly any run is left alone from start to end.
    """
    bare = modules("pass").keys()
    found = [{name: ms for name, ms in modules(program).items() if name not in bare} for _ in range(runs)]
    return {name: min(each[name] for each in found if name in each) for name in found[0]}


def main() -> None:
    """Prints a line per case, and with ``--modules`` the ten that cost most."""
    for title, program, budget in CASES:
        found = imported(program)
        total = sum(found.values())
        print(f"{title:32} {total:8.1f} ms in {len(found)} modules, {total / budget:5.2f} of {budget:g}")
        if "--modules" in sys.argv[1:]:
            for name, ms in sorted(found.items(), key=lambda item: -item[1])[:10]:
                print(f"    {ms:8.1f}  {name}")


if __name__ == "__main__":
    main()
