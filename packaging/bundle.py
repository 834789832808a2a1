#!/usr/bin/env python3
"""One archive with tpuprof and all it needs, for machines without network.

    python packaging/bundle.py [--python 3.11]... [--machine aarch64] [--extra parquet]... [--output dist]

Wheels are collected for the given versions of Python (without any: the one that runs this) on Linux with glibc, on
this kind of machine or the one that is named. Beside them lie `install.sh`, which installs them, and their checksums.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPT: Final = ROOT / "packaging" / "install.sh"
#: Oldest and newest glibc that wheels may ask for: manylinux2014, and what numpy's newest wheels are built on.
GLIBC: Final = ("2_17", "2_27", "2_28")


def pip(*words: str | Path) -> None:
    """Runs pip of this Python; SystemExit with a sentence where it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, words)]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(f"bundle: pip {words[0]} failed; what it said stands above.")


def own_wheel(folder: Path) -> Path:
    """Builds our own wheel into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        # built from a copy: what an earlier build left lying in the tree would go into the wheel
        unwanted = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "samples")
        copy = shutil.copytree(ROOT, Path(scratch) / "source", ignore=unwanted)
        pip("wheel", "--no-deps", "--wheel-dir", folder, copy)
    return next(folder.glob("tpuprof_tui-*.whl"))


def binaries(python: str, machine: str) -> list[str]:
    """Words that make pip take wheels alone, for one version of Python on one kind of machine."""
    platforms = [f"--platform=manylinux_{glibc}_{machine}" for glibc in GLIBC]
    return ["--only-binary=:all:", f"--python-version={python}", *platforms, f"--platform=manylinux2014_{machine}"]


def collect(folder: Path, wheel: Path, python: str, machine: str, extras: Sequence[str]) -> None:
    """Downloads what the wheel needs for one version of Python."""
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    pip("download", *binaries(python, machine), "--dest", folder, wanted)


def write_archive(path: Path, name: str, wheels: Path, pythons: Sequence[str], machine: str) -> None:
    """Writes the archive; the same wheels give the same bytes."""
    files = {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in sorted(wheels.glob("*.whl"))}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {place}\n" for place, data in sorted(files.items()))
    script = SCRIPT.read_text(encoding="utf-8")
    script = script.replace("@PYTHONS@", " ".join(pythons)).replace("@MACHINE@", machine)
    files |= {"install.sh": script.encode(), "SHA256SUMS": sums.encode(), "LICENSE": (ROOT / "LICENSE").read_bytes()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for place, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{place}")
            entry.size, entry.mode = len(data), 0o755 if place == "install.sh" else 0o644
            archive.addfile(entry, io.BytesIO(data))


def main(words: Sequence[str] | None = None) -> int:
    """Makes the archive; prints its path and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--python", action="append", metavar="X.Y", help=f"a version of Python (default: {here})")
    parser.add_argument("--machine", default=platform.machine(), help="x86_64 or aarch64 (default: as this one)")
    parser.add_argument("--extra", action="append", default=[], choices=("parquet",))
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of the archive")
    options = parser.parse_args(words)
    pythons = options.python or [here]
    if wrong := [version for version in pythons if not re.fullmatch(r"3\.\d\d", version)]:
        parser.error(f"{wrong[0]!r} is not a version of Python such as 3.11")
    with tempfile.TemporaryDirectory() as scratch:
        wheels = Path(scratch)
        wheel = own_wheel(wheels)
        version = wheel.name.split("-")[1]
        for python in pythons:
            collect(wheels, wheel, python, options.machine, options.extra)
        name = f"tpuprof-{version}-bundle"
        path = options.output / f"{name}-{options.machine}.tar.gz"
        write_archive(path, name, wheels, pythons, options.machine)
    print(f"{path}  {path.stat().st_size / 1e6:.1f} MB, for Python {', '.join(pythons)} on {options.machine}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
