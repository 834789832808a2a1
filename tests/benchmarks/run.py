#!/usr/bin/env python3
"""Speed and memory of the command line, printed as figures and ratios; nothing here passes or fails.

    python tests/benchmarks/run.py [--large] [--runs 5] [--only WORD] [--keep DIR] [--markdown docs/BENCHMARKS.md]

Captures are written anew by `samples/make.py`. Each figure is the best of several whole processes: wall clock, CPU and
peak memory of the child as the system counts them. Targets are for a machine with two cores on which the reference
takes 5 s for 100,000 records of mode 1; elsewhere compare the ratios with one another. Where the published converter
is installed (``bigTpuProfile`` on PATH, or named by TPUPROF_REFERENCE) it runs once beside ours where both write the
same files, and the last column says how many times as long and as much it takes. Where Chromium is installed, the page
of a million instructions is opened and zoomed.

``--markdown`` puts the figures as a table between the lines ``<!-- benchmarks -->`` and ``<!-- /benchmarks -->`` of a
file, with machine, versions and date.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from machine import machine

ROOT = Path(__file__).resolve().parent.parent.parent
READY = "import sys, tpuprof_tui; from tpuprof_tui.analysis import build_indexes; \
build_indexes(tpuprof_tui.open_profile(sys.argv[1]))"
#: Pairing is timed alone: launches of few commands make a capture of very many scopes.
OPEN = "import sys, tpuprof_tui; tpuprof_tui.open_profile(sys.argv[1])"


@dataclass(frozen=True)
class Capture:
    """A capture that `samples/make.py one` writes."""

    name: str
    options: tuple[str, ...]
    large: bool = False


@dataclass(frozen=True)
class Case:
    """One figure: a command, and what it should take.

    Attributes:
        title: What is measured.
        words: The command; ``{capture}``, ``{again}`` (another run of it) and ``{out}`` are filled in.
        capture: Name of the capture; empty: none.
        seconds, mebibytes: Targets.
        above: Whether memory counts from what the opened capture alone takes.
        reference: Options of the published converter that write the same files; None: it has nothing of the kind.
    """

    title: str
    words: tuple[str, ...]
    capture: str = ""
    seconds: float | None = None
    mebibytes: float | None = None
    above: bool = False
    reference: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Figures:
    """What one process took."""

    wall: float
    cpu: float
    mebibytes: float


#: As many lanes as captures have: three engines of eight cores, and every port.
LANES = ("--kind", "cdma", "--ports", "11", "--sdma", "--batches", "100000")
CAPTURES = (
    Capture("100k", ("--records", "100000")),
    Capture("1M", ("--records", "1000000")),
    Capture("1M_again", ("--records", "1000000", "--set", "run=2")),
    Capture("10M", ("--records", "10000000"), large=True),
    Capture("100k_mode2", ("--records", "100000", "--mode", "2")),
    Capture("1M_mode2", ("--records", "1000000", "--mode", "2")),
    Capture("1M_lanes", ("--records", "1000000", *LANES)),
    Capture("10M_lanes", ("--records", "10000000", *LANES), large=True),
    Capture("launches", ("--cores", "1", "--launches", "20000")),
    Capture("launches_lost", ("--cores", "1", "--launches", "20000", "--lost", "0.02")),
)
PYTHON = sys.executable
TOOL = (PYTHON, "-m", "tpuprof_tui")
ALL = (*TOOL, "export", "{capture}", "{out}")
EXPORT = (*ALL, "--only")
REFERENCE = os.environ.get("TPUPROF_REFERENCE") or shutil.which("bigTpuProfile")
CASES = (
    Case("--version", (*TOOL, "--version"), seconds=0.06),
    Case("--help", (*TOOL, "--help"), seconds=0.06),
    Case("ready to show, 100k", (PYTHON, "-c", READY), "100k", 0.15),
    Case("ready to show, 1M", (PYTHON, "-c", READY), "1M", 0.35, 220),
    Case("ready to show, 10M", (PYTHON, "-c", READY), "10M", 2.5, 1945),
    Case("opened, 20k launches", (PYTHON, "-c", OPEN), "launches"),
    Case("opened, 20k launches, 2% lost", (PYTHON, "-c", OPEN), "launches_lost"),
    Case("info --json, 1M", (*TOOL, "info", "--json"), "1M"),
    Case("summary, 1M", (*TOOL, "summary"), "1M"),
    Case("instructions jsonl, 1M", (*TOOL, "instructions", "--format", "jsonl"), "1M", 6.0),
    Case("instructions csv, 1M", (*TOOL, "instructions", "--format", "csv"), "1M", 4.0),
    Case("opened, 1M of mode 2", (PYTHON, "-c", OPEN), "1M_mode2", 0.9),
    Case("diff, 1M against 1M", (*TOOL, "diff", "{capture}", "{again}"), "1M", 5.0),
    Case("diff --json, 1M against 1M", (*TOOL, "diff", "{capture}", "{again}", "--json"), "1M", 5.0),
    Case("report critical_path, 1M", (*TOOL, "report", "{capture}", "critical_path"), "1M", 3.0),
    Case("report findings, 1M", (*TOOL, "report", "{capture}", "findings"), "1M", 2.0),
    Case("export summary, 100k", (*EXPORT, "summary"), "100k", 0.4),
    Case("export pftrace, 100k", (*EXPORT, "pftrace"), "100k", 0.8),
    Case("export pftrace, 1M", (*EXPORT, "pftrace"), "1M", 3.0, 500),
    Case("export pftrace, 1M of mode 2", (*EXPORT, "pftrace"), "1M_mode2"),
    Case("export pftrace, 10M", (*EXPORT, "pftrace"), "10M", 30.0, 700, above=True),
    Case("export xlsx, 100k", (*EXPORT, "xlsx"), "100k", 10.0, 300),
    Case("export xlsx, 100k of mode 2", (*EXPORT, "xlsx"), "100k_mode2", 20.0, 300),
    Case("export web, 100k", (*EXPORT, "web"), "100k", 1.2),
    Case("export web, 1M", (*EXPORT, "web"), "1M"),
    Case("export regs, 100k", (*EXPORT, "regs"), "100k"),
    Case("summary and trace, 100k", (*EXPORT, "summary,pftrace"), "100k", reference=()),
    Case("all of --enable_doc, 100k", (*ALL, "--enable_doc"), "100k", reference=("--enable_doc",)),
    Case("all of --enable_doc, 100k of mode 2", (*ALL, "--enable_doc"), "100k_mode2", reference=("--enable_doc",)),
)
#: Of a process that only decodes: title, figure of decoding.py, unit, target.
DECODING_CASES = (
    ("decoded, 1M of mode 2: workbook columns", "decoded", "s", 3.0),
    ("decoded, 1M of mode 2: memory above open", "mebibytes", "MiB", None),
    ("decoded, 1M of mode 2: detail of a row", "detail", "ms", 5.0),
)
#: Of keys in the explorer, by keys.py, at a million instructions on all lanes: title, figure, unit, target.
KEY_CASES = (
    ("keys: CPU to the last byte, median", "median", "ms", 20.0),
    ("keys: CPU to the last byte, 95th percentile", "p95", "ms", 50.0),
    ("keys: CPU of all threads to rest, median", "all_median", "ms", 20.0),
    ("keys: CPU of all threads to rest, 95th percentile", "all_p95", "ms", 50.0),
    ("keys: charts drawn after a key, by the clock", "charts", "ms", 100.0),
    ("keys: median over that of a bare app's page", "ratio", "x", None),
    ("keys: most bytes of a page down, 256 colours", "page_kb", "kB", 25.0),
    ("keys: sort all, slowest column", "sort", "ms", 250.0),
    ("keys: filter all", "filter", "ms", 100.0),
    ("keys: search all", "search", "ms", 50.0),
    ("keys: summary of a new window", "summary", "ms", 20.0),
)
#: The page of a million instructions in a browser: title, unit, target.
PAGE_CASES = (
    ("page of 1M: first paint", "ms", 1000.0),
    ("page of 1M: everything drawn", "ms", None),
    ("page of 1M: frames per second, zooming", "/s", 30.0),
    ("page of 1M: size", "MB", 10.0),
)


def written(capture: Capture, folder: Path) -> Path:
    """The directory of a capture, written unless it is there."""
    path = folder / capture.name
    if not path.exists():
        command = [PYTHON, str(ROOT / "samples" / "make.py"), "one", str(folder), "--name", capture.name, "--no-truth"]
        subprocess.run([*command, *capture.options], check=True, stdout=subprocess.DEVNULL)
    return path


def measured(words: list[str]) -> Figures:
    """What one process took; its output is thrown away."""
    start = time.perf_counter()
    # compiled once, as where it is installed
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
        "TPUPROF_CACHE": "off"
    }
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=settings)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)}: exit status {process.returncode}")
    kibibyte = 1 if sys.platform == "darwin" else 1024
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * kibibyte / 2**20)


def best(words: list[str], runs: int) -> Figures:
    """The fastest of several runs, with the smallest peak of memory."""
    found = [measured(words) for _ in range(runs)]
    return Figures(min(f.wall for f in found), min(f.cpu for f in found), min(f.mebibytes for f in found))


@dataclass(frozen=True)
class Row:
    """One line of the result.

    Attributes:
        title: What was measured.
        figures: What it took; None for figures of a page.
        seconds, mebibytes: Targets.
        above: MiB that do not count against the target.
        reference: What the published converter took; None where it did not run.
        value, unit, target: Of a page.
    """

    title: str
    figures: Figures | None = None
    seconds: float | None = None
    mebibytes: float | None = None
    above: float = 0.0
    reference: Figures | None = None
    value: float = 0.0
    unit: str = ""
    target: float | None = None

    def text(self) -> str:
        """For a terminal."""
        if self.figures is None:
            goal = "" if self.target is None else f"target {self.target:g}"
            return f"{self.title:40} {self.value:8.1f} {self.unit:4} {goal}".rstrip()
        figures = self.figures
        line = f"{self.title:40} {figures.wall:8.3f} {figures.cpu:8.3f} {figures.mebibytes:8.0f}"
        memory = ratio(figures.mebibytes - self.above, self.mebibytes)
        return f"{line}  {ratio(figures.wall, self.seconds):16} {memory:16} {self.siblings}".rstrip()

    @property
    def siblings(self) -> str:
        """How many times as long and as much memory the published converter takes."""
        if self.reference is None or self.figures is None:
            return ""
        times = self.reference.wall / self.figures.wall, self.reference.mebibytes / self.figures.mebibytes
        return f"{times[0]:5.1f} x time, {times[1]:4.1f} x memory"

    def markdown(self) -> str:
        """As a line of a Markdown table."""
        if self.figures is None:
            goal = "" if self.target is None else f"{self.target:g} {self.unit}"
            cells = [self.title, f"{self.value:.0f} {self.unit}", "", goal, "", "", ""]
        else:
            figures = self.figures
            cells = [
                self.title,
                f"{figures.wall:.2f} s",
                f"{figures.cpu:.2f} s",
                "" if self.seconds is None else f"{self.seconds:g} s",
                f"{figures.mebibytes:.0f} MiB",
                "" if self.mebibytes is None else f"{self.above + self.mebibytes:.0f} MiB",
                self.siblings.strip(),
            ]
        return f"| {' | '.join(cells)} |"


def ratio(value: float, target: float | None) -> str:
    """How a figure stands to its target: below 1 is better."""
    return f"{value / target:5.2f} of {target:g}" if target else ""


@dataclass
class Bench:
    """Measures cases.

    Attributes:
        folder: Where captures are.
        scratch: Where files are written.
        runs: Processes of which the best counts.
        large: Whether large captures are measured too.
    """

    folder: Path
    scratch: Path
    runs: int
    large: bool
    _opened: dict[str, float] = field(default_factory=dict)

    def rows(self, only: str) -> Iterator[Row]:
        """The result, a line at a time."""
        captures = {capture.name: capture for capture in CAPTURES if self.large or not capture.large}
        yield from self._imports(only)
        for case in CASES:
            if only in case.title and (not case.capture or case.capture in captures):
                path = str(written(captures[case.capture], self.folder)) if case.capture else ""
                yield self._row(case, path)
        if any(only in title for title, _, _, _ in DECODING_CASES):
            yield from self._decoding(str(written(captures["1M_mode2"], self.folder)))
        for name in ("1M_lanes", "10M_lanes"):
            if any(only in title for title, _, _, _ in KEY_CASES) and name in captures:
                yield from self._keys(str(written(captures[name], self.folder)), name.partition("_")[0])
        if any(only in title for title, _, _ in PAGE_CASES):
            yield from self._page(str(written(captures["1M"], self.folder)))

    def _row(self, case: Case, path: str) -> Row:
        again = path
        if "{again}" in case.words:
            again = str(written(next(each for each in CAPTURES if each.name == f"{case.capture}_again"), self.folder))
        words = [word.format(capture=path, again=again, out=self.scratch / "out") for word in case.words]
        figures = best([*words, path] if path and path not in words else words, self.runs)
        reference = None
        if case.reference is not None and REFERENCE is not None:
            reference = measured([REFERENCE, *case.reference, path, str(self.scratch / "reference_out")])
        above = self._model(path) if case.above else 0.0
        return Row(case.title, figures, case.seconds, case.mebibytes, above, reference)

    def _model(self, path: str) -> float:
        """MiB of a process that only opens a capture."""
        if path not in self._opened:
            self._opened[path] = best([PYTHON, "-c", OPEN, path], 1).mebibytes
        return self._opened[path]

    def _imports(self, only: str) -> Iterator[Row]:
        sys.path.insert(0, str(Path(__file__).parent))
        import importing

        for title, program, budget in importing.CASES:
            if only in title:
                value = sum(importing.imported(program, self.runs).values())
                yield Row(title, value=value, unit="ms", target=budget)

    def _decoding(self, path: str) -> Iterator[Row]:
        words = [PYTHON, str(Path(__file__).parent / "decoding.py"), path, "--json"]
        runs = [json.loads(subprocess.run(words, check=True, capture_output=True).stdout) for _ in range(self.runs)]
        for title, key, unit, target in DECODING_CASES:
            value = min(run[key] for run in runs) * (1000 if unit == "ms" else 1)
            yield Row(title, value=value, unit=unit, target=target)

    def _keys(self, path: str, size: str) -> Iterator[Row]:
        words = [PYTHON, str(Path(__file__).parent / "keys.py"), path, "--json"]
        found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
        for title, key, unit, target in KEY_CASES:
            # ten times as many may take twice as long
            most = target if target is None or size == "1M" or unit != "ms" else 2 * target
            yield Row(f"{size}, {title}", value=found[key], unit=unit, target=most)

    def _page(self, path: str) -> Iterator[Row]:
        sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "export"), str(Path(__file__).parent)]
        from pages import chromium, page_figures

        if chromium() is None:
            return
        out = self.scratch / "page"
        measured([word.format(capture=path, out=out) for word in (*EXPORT, "web")])
        values = page_figures(out / "PerfWeb" / "result.html", self.scratch, self.runs)
        for (title, unit, target), value in zip(PAGE_CASES, values, strict=True):
            yield Row(title, value=value, unit=unit, target=target)


def table(rows: list[Row]) -> str:
    """The result as Markdown."""
    head = [
        "| What | Figure | CPU | Target | Peak memory | Target | bigTpuProfile |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    lines = [*head, *(row.markdown() for row in rows)]
    return f"Measured on {machine()}.\n\n" + "\n".join(lines) + "\n"


def put(path: Path, text: str) -> None:
    """Replaces what stands between the two marks of a file.

    Raises:
        SystemExit: The file has no such marks.
    """
    whole = path.read_text(encoding="utf-8")
    found, count = re.subn(
        "(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)",
        lambda marks: f"{marks[1]}{text}{marks[2]}",
        whole,
        flags=re.DOTALL,
    )
    if not count:
        raise SystemExit(f"{path} has no lines <!-- benchmarks --> and <!-- /benchmarks -->")
    path.write_text(found, encoding="utf-8")


def main() -> None:
    """Prints one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="ten million records too (1 GB of memory and more)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose title contains this")
    parser.add_argument("--keep", type=Path, help="where captures are kept for the next time")
    parser.add_argument("--markdown", type=Path, help="a file that gets the figures as a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{'':40} {'wall s':>8} {'CPU s':>8} {'MiB':>8}  {'time/target':16} {'memory/target':16} reference/ours")
        rows = []
        for row in Bench(folder, Path(scratch), options.runs, options.large).rows(options.only):
            rows.append(row)
            print(row.text(), flush=True)
        if options.markdown is not None:
            put(options.markdown, table(rows))


if __name__ == "__main__":
    main()
