#!/usr/bin/env python3
"""Coverage-guided fuzzing with atheris: ``python tests/fuzz/run.py --seconds 600 [TARGET ...]``.

Each target (see ``fuzz_targets.py``) runs in a process of its own, as many at once as there are processors; the time is
that of the whole run. What was found lies in the folder given by ``--findings``, one file per input; ``--replay FILE``
runs a target on one of them. Without atheris (it needs CPython 3.11 to 3.13 on Linux) nothing is fuzzed, which is said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import conftest  # noqa: F401 - the rooms of the tests can be imported

#: Memory that one process may take, MiB; an input that needs more is a finding.
MOST_MEMORY = 2048
#: Seconds after which an input counts as one that never ends.
LONGEST = 30
MOST_BYTES = 4096


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="which; without any all of them")
    parser.add_argument("--seconds", type=float, default=600.0, help="time of the whole run")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder for inputs that fail")
    parser.add_argument("--replay", type=Path, help="run the target on this file instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def fuzz_one(name: str, seconds: int, findings: Path) -> None:
    """Fuzzes a target in this process; ends it."""
    import atheris

    with atheris.instrument_imports(include=["tpuprof_tui"]):
        import fuzz_targets
    fuzz_targets.outputs_every = 8
    target = fuzz_targets.TARGETS[name]
    corpus = findings / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    options = [f"-max_total_time={seconds}", f"-timeout={LONGEST}", f"-rss_limit_mb={MOST_MEMORY}",
               f"-max_len={MOST_BYTES}", f"-artifact_prefix={findings}/{name}-", "-print_final_stats=1",
               str(corpus)]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], target.run)
    atheris.Fuzz()


def main() -> int:
    options = _arguments()
    try:
        import atheris  # noqa: F401
    except ImportError:
        print("atheris is not installed here (it comes for CPython 3.11 to 3.13 on Linux): no coverage-guided fuzzing. "
              "The same targets ran on fixed inputs in tests/fuzz/test_fuzz.py.")  # fmt: skip
        return 0
    if options.one:
        fuzz_one(options.one, int(options.seconds), options.findings)
        return 0
    from fuzz_targets import TARGETS

    names = options.targets or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
        return 2
    if options.replay:
        TARGETS[names[0]].run(options.replay.read_bytes())
        return 0
    return _run_all(names, options.seconds, options.jobs, options.findings)


def _run_all(names: list[str], seconds: float, at_once: int, findings: Path) -> int:
    """All targets, some at once; 1 where one of them found something."""
    findings.mkdir(parents=True, exist_ok=True)
    each = max(int(seconds * at_once / len(names)), 1)
    waiting, running, failed = list(names), {}, []
    while waiting or running:
        while waiting and len(running) < at_once:
            name = waiting.pop(0)
            log = (findings / f"{name}.log").open("wb")
            words = [sys.executable, __file__, "--one", name, "--seconds", str(each), "--findings", str(findings)]
            running[name] = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        time.sleep(0.2)
        for name, child in list(running.items()):
            if child.poll() is None:
                continue
            del running[name]
            text = (findings / f"{name}.log").read_text(errors="replace")
            runs = text.rpartition("stat::number_of_executed_units:")[2].split()[:1]
            if child.returncode:
                failed.append(name)
                print(f"{name:9} FAILED, see {findings}/{name}.log:\n{text[-3000:]}")
            else:
                print(f"{name:9} {runs[0] if runs else '?':>8} inputs in {each} s, nothing found", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
