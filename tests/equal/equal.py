"""Compares every answer of a revision with those of the working tree: ``make equal BASE=REV [ALL=1]``.

Answers are recorded by ``recorder.py`` with the package of each side, about the samples, and about what is in
``../shared`` where that is present (``--shared``). By default about a chosen set of them and of selections, which takes
minutes; with ``--all`` about everything. What differs is printed by command, figure and selection; the exit status is 1
if anything does. The base's answers are kept in ``.cache/equal``, by revision, recorder and input.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from contents import content, differences

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".cache" / "equal"
#: Revisions whose answers are kept.
MOST_KEPT = 4
#: Patterns of inputs below ../shared: of the chosen set, and the others.
CHOSEN = (
    "traces/*/*.json.gz", "traces/tb_unit/*", "traces/tl_qwen_h100_vs_mi300", "traces/hta_two_ranks_sampled",
    "traces/ascend_*/*_ascend_pt", "traces/ascend_level1_text", "traces/ascend_level1_db",
    "traces/ascend_cluster_output",
    "traces/ascend_msprof_output/mindstudio_profiler_output", "captures/aks_cdma", "captures/aks_des_kv",
    "captures/aks_gap_core", "captures/aks_lost_records", "captures/aks_sdma", "captures/aks_zoo_mode2",
    "captures/aksv_rvt", "captures/bad_partial_record", "vendor/bm*", "vendor/real/*",
)  # fmt: skip
OTHERS = ("traces/*", "captures/*", "vendor/*")
#: Larger ones are left to ``--all``, bytes: of folders, and of compressed files.
LARGE, LARGE_FILE = 4_000_000, 700_000
#: Figures of a command that are listed unless all are asked for.
LISTED = 30
_LONGEST = 100


class Difference(NamedTuple):
    """A place of an answer that differs: an example of the values, and how many of how many differ."""

    command: str
    selection: str
    place: tuple[str, ...]
    old: str
    new: str
    values: int = 1
    of: int = 1


def inputs(shared: Path, everything: bool) -> list[tuple[str, list[str]]]:
    """Name and words of each input, in an order in which an input is comparable with the one before."""
    found: dict[str, list[str]] = {}
    samples = ROOT / "samples"
    for path in sorted(samples.iterdir()):
        if path.is_dir() and (path / "global.profile").exists() | path.name.startswith(("torch", "ascend")):
            found[f"samples-{path.name}"] = [str(path)]
            if (path / "host_trace.json").exists():
                found[f"samples-{path.name}-trace"] = [str(path), "--trace_file", str(path / "host_trace.json")]
    for pattern in (*CHOSEN, *(OTHERS if everything else ())):
        for path in sorted(shared.glob(pattern)):
            if (path.is_dir() or ".json." in path.name) and (
                everything or _size(path) < (LARGE if path.is_dir() else LARGE_FILE)
            ):
                found.setdefault("-".join(path.relative_to(shared).parts), [str(path)])
    for checks in sorted(shared.glob("cases/*/*/checks.json")) if everything else ():
        case = json.loads(checks.read_text("utf-8"))
        path = checks.parent / case.get("input", ".")
        found["-".join(checks.parent.relative_to(shared).parts)] = [str(path), *case.get("options", [])]
    return list(found.items())


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


def _digest(*paths: Path) -> str:
    """A short hash of files by name and content."""
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        for file in _files(path):
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def plan(shared: Path, everything: bool, only: list[str]) -> list[tuple[str, list[str], list[str] | None]]:
    """What is recorded: names with a hash of the input, the words of each, and of what it is compared with."""
    found: list[tuple[str, list[str], list[str] | None]] = []
    before: list[str] | None = None
    for name, words in inputs(shared, everything):
        other = before if len(words) == 1 else None
        before = words if len(words) == 1 else before
        if not only or any(each in name for each in only):
            paths = [Path(word) for word in (*words, *(other or ())) if os.path.exists(word)]
            found.append((f"{name}@{_digest(*paths)}", words, other))
    return found


def record(package: Path, planned: Any, out: Path, more: list[str]) -> int:
    """Records with the package in a folder; the status of the recorder."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(planned, file)
        file.flush()
        # what could change an answer is the same for both sides
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8",
                       "TZ": "UTC", "PYTHONPATH": str(package), "TPUPROF_CACHE": "off"}  # fmt: skip
        words = [sys.executable, str(HERE / "recorder.py"), file.name, str(out), *more]
        return subprocess.run(words, env=environment, check=False).returncode


def package_of(revision: str, folder: Path) -> None:
    """Unpacks the package of a revision into a folder, as a whole."""
    if folder.exists():
        return
    archive = subprocess.run(["git", "archive", revision, "tpuprof_tui"], cwd=ROOT, check=True, capture_output=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as begun:
        subprocess.run(["tar", "-x", "-C", begun], input=archive.stdout, check=True)
        folder.mkdir()
        Path(begun, "tpuprof_tui").rename(folder / "tpuprof_tui")


def compared(base: Path, tree: Path) -> Iterator[Difference]:
    """Yields what differs between two recordings of an input."""
    with zipfile.ZipFile(base) as old, zipfile.ZipFile(tree) as new:
        names = [*old.namelist(), *new.namelist()]
        for name in dict.fromkeys(name for name in names if name != "selections.json"):
            command, selection, form = name.split("|")
            before, after = (package.read(name) if name in package.namelist() else None for package in (old, new))
            if before is None or after is None:
                sides = ("no such answer" if each is None else "an answer" for each in (before, after))
                yield Difference(command, selection, (), *sides)
            elif before != after:
                try:
                    both = content(form, before), content(form, after)
                except Exception as error:
                    yield Difference(command, selection, (f"not {form}: {error}",), "?", "?")
                    continue
                for found in differences(*both, lines=form == "txt"):
                    yield Difference(command, selection, *found)


def figure_of(place: tuple[str, ...]) -> str:
    """A place without the worker, in words: the figure that the same place of other workers is."""
    kept = [part for index, part in enumerate(place) if place[index - 1 : index] != ("workers",)]
    return ".".join(part for part in kept if part not in ("views", "workers", "tables", "figures")) or "(all)"


def report(found: dict[tuple[str, str], list[tuple[str, Difference]]], answers: int, full: bool) -> None:
    """Prints the differences: two lines for each figure of each command, with the first example."""
    by_command: dict[str, list[str]] = defaultdict(list)
    for (command, figure), cases in sorted(found.items()):
        selections = ", ".join(dict.fromkeys(each.selection for _, each in cases))
        about = len({name for name, _ in cases})
        values = sum(each.values for _, each in cases)
        name, first = cases[0]
        many = f" ({first.values} of {first.of})" if first.of > 1 else ""
        by_command[command].append(
            f"  {figure}: {values} values in {len(cases)} answers about {about} inputs ({selections})\n"
            f"      {name}, {first.selection}: {_short(first.old)} -> {_short(first.new)}{many}"
        )
    for command, lines in by_command.items():
        print("\n".join([command, *(lines if full else lines[:LISTED])]))
        if not full and len(lines) > LISTED:
            print(f"  ... {len(lines) - LISTED} more: --full")
    print(f"{answers} answers compared, {f'{len(found)} figures differ' if found else 'all equal'}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="revision to compare with")
    parser.add_argument("--all", action="store_true", help="all inputs, all selections of all commands")
    parser.add_argument("--full", action="store_true", help="list every figure that differs")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="inputs with this in their name")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="folder of further inputs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    revision = subprocess.run(["git", "rev-parse", "--verify", f"{args.base}^{{commit}}"], cwd=ROOT, check=True,
                              capture_output=True, text=True).stdout.strip()  # fmt: skip
    planned = plan(args.shared, args.all, args.only)
    kept = KEPT / f"{revision[:12]}-{_digest(HERE / 'recorder.py')}{'-all' if args.all else ''}"
    kept.mkdir(parents=True, exist_ok=True)
    package_of(revision, kept / "package")
    for part in kept.glob("*.part"):
        part.unlink()
    os.utime(kept)
    for old in sorted(KEPT.iterdir(), key=lambda path: -path.stat().st_mtime)[MOST_KEPT:]:
        shutil.rmtree(old)
    more = ["--jobs", str(args.jobs), *(["--all"] if args.all else [])]
    status = record(kept / "package", planned, kept, more)
    found: dict[tuple[str, str], list[tuple[str, Difference]]] = defaultdict(list)
    answers = 0
    with tempfile.TemporaryDirectory() as folder:
        status |= record(ROOT, planned, Path(folder), [*more, "--selections", str(kept)])
        for name, *_ in planned:
            base, tree = kept / f"{name}.zip", Path(folder) / f"{name}.zip"
            if base.exists() and tree.exists():  # where one is not, the recorder has said why
                answers += len(zipfile.ZipFile(base).namelist()) - 1
                for each in compared(base, tree):
                    found[each.command, figure_of(each.place)].append((name.partition("@")[0], each))
    report(found, answers, args.full)
    return status or bool(found)


if __name__ == "__main__":
    sys.exit(main())
