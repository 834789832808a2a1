#!/usr/bin/env python3
"""Runs the tests on other Pythons, and on the oldest packages that the project says it works with.

    python packaging/pythons.py [--lowest] [--folder .venv/pythons] PYTHON... [-- PYTEST_ARGS...]

For each interpreter: a virtual environment of its own, our wheel installed into it, then the tests from a copy beside
it, so that what is tested is what was installed. ``--lowest`` pins every package that the project names to the lower
end of its range; those of the tests alone stay as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bundle import ROOT, own_wheel

_RANGE: Final = re.compile(r'^    "([a-z]+)>=([\d.]+),<[\d.]+",$', re.MULTILINE)
_EXTRA: Final = re.compile(r"^dataset = .*$", re.MULTILINE)
#: What the tests need of the tree beside the package.
_BESIDE: Final = ("tests", "samples", "docs", "packaging", "screenshots", "pyproject.toml", "Makefile", "NOTICE",
                  "LICENSE", "README.md", "README.zh.md", "CONTRIBUTING.md", "CHANGELOG.md")  # fmt: skip

#: Tests of the tree itself, not of what was installed; they need the package's sources beside them.
_OF_THE_TREE: Final = ("--ignore=tests/packaging/test_wheel.py", "--ignore=tests/sources/sophgo/test_reference_page.py",
                       "--deselect=tests/packaging/test_readme.py::test_links_lead_somewhere",
                       "--deselect=tests/export/test_web.py::test_the_scripts_are_sound")  # fmt: skip


def lowest() -> list[str]:
    """Requirements that pin the lower end of each range in pyproject.toml, those of data sets among them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = {match[1]: match[2] for match in _RANGE.finditer(text)}
    for extra in _EXTRA.findall(text):
        found |= dict(re.findall(r'"([a-z]+)>=([\d.]+)"', extra))
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def tried(python: str, folder: Path, wheel: Path, pins: Sequence[str], words: Sequence[str]) -> int:
    """Exit status of the tests with one interpreter."""
    place = folder / (Path(python).name + ("-lowest" if pins else ""))
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", place / "venv"], check=True)
    inside = str(place / "venv" / "bin" / "python")
    install = [inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", f"{wheel}[test]", *pins]
    if subprocess.run(install, check=False).returncode:
        return 2
    copy = place / "copy"
    for name in _BESIDE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [inside, "-m", "pytest", "-q", *_OF_THE_TREE, *(words or ["-n", "auto", "--dist", "loadfile"])]
    return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


def main() -> int:
    """Tries each interpreter; the status is 0 where the tests passed with all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="+", help="an interpreter: python3.10, a path, ...")
    parser.add_argument("--lowest", action="store_true", help="the oldest packages of each range")
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv" / "pythons", help="where environments are made")
    ours, theirs = sys.argv[1:], []
    if "--" in ours:
        ours, theirs = ours[: ours.index("--")], ours[ours.index("--") + 1 :]
    options = parser.parse_args(ours)
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        wheel = own_wheel(Path(scratch))
        for python in options.python:
            status = tried(python, options.folder.resolve(), wheel, lowest() if options.lowest else [], theirs)
            print(f"{python}: {'passed' if status == 0 else f'failed ({status})'}", flush=True)
            failed += [python] if status else []
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
