"""Records every answer about some inputs, of the package that PYTHONPATH names: a zip file per input.

    PYTHONPATH=PACKAGE python tests/equal/recorder.py PLAN OUT [--selections OTHER] [--jobs N] [--all]

PLAN is JSON: a list of ``[name, [words that name the input], [words of the input it is compared with] or null]``. The
profile is opened once, then each command runs in this process. Nothing but the command line (``cli.main.main``),
``open_profile`` and ``open_profiles`` is used, so that what happens below them may move; to choose selections also the
lanes and groups of the profile. ``selections.json`` in the zip file holds them: with ``--selections`` they are those of
a recording made before, so that both sides answer the same questions.

Each answer is an entry called ``COMMAND|SELECTION|FORM``; form is one of ``contents.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

#: Rows of tables in text: all.
ROWS = "1000000"
FORMS = {".xlsx": "xlsx", ".html": "html", ".pftrace": "pftrace", ".parquet": "parquet", ".json": "json", ".csv": "csv"}


class Answers:
    """Asks the command line in this process; keeps profiles open by what names them."""

    def __init__(self) -> None:
        import tpuprof_tui
        from tpuprof_tui.cli.main import main

        self._main, self._open = main, tpuprof_tui.open_profile
        self._open_profiles: dict[str, Any] = {}
        tpuprof_tui.open_profile = self.open
        tpuprof_tui.open_profiles = lambda paths, **options: [self.open(path, **options) for path in paths]

    def forget(self) -> None:
        """Lets go of all profiles."""
        self._open_profiles.clear()

    def open(self, path: Any, *, part: Any = None, **options: Any) -> Any:
        """The profile, opened at most once; ``part`` is for traces too large to read whole, which none here is."""
        del part
        key = repr((str(path), sorted(options.items())))
        if key not in self._open_profiles:
            self._open_profiles[key] = self._open(path, **options)
        return self._open_profiles[key]

    def ask(self, *words: str) -> tuple[int | str, str, bytes]:
        """Status, messages and output of a command; the status of one that fails unexpectedly names the exception."""
        out, told = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
        status: int | str
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            try:
                # an exception instead of a sentence with the name of a log; not every command has the option
                status = self._main([*words, *(["--debug"] if words[0] != "dataset" else [])])
            except SystemExit as end:
                status = str(end.code)
            except Exception as error:
                status = f"{type(error).__name__}: {error}"
        out.flush()
        assert isinstance(out.buffer, io.BytesIO)
        return status, told.getvalue(), out.buffer.getvalue()

    def profile(self, words: list[str]) -> Any:
        """The profile that a command about ``words`` opened; None: none."""
        self.ask("describe", *words)
        return next(reversed(self._open_profiles.values()), None)


@cache
def answers_here() -> Answers:
    """The one of this process: it takes the place of the package's own functions."""
    return Answers()


def single_selections(answers: Answers, words: list[str]) -> dict[str, list[str]]:
    """Options of a range, a step, a filter, a unit, a rank, and of a filter by name, as far as the profile has them."""
    found: dict[str, list[str]] = {}
    profile = answers.profile(words)
    if profile is None or not profile.timed:
        return found
    found["range"] = ["--range", "25%..60%"]
    steps = re.findall(r"\d+", answers.ask("summary", *words, "--step", "987654321")[1].rpartition("There are:")[2])
    if steps:
        found["step"] = ["--step", steps[:2][-1]]
    lanes = [lane for lane in profile.lanes if len(lane) and not lane.on_host] or list(profile.lanes)
    lengths = sorted(int(length) for lane in lanes for length in (lane["end"] - lane["start"]).tolist())
    if lengths:
        found["filter"] = ["--filter", f"dur>{lengths[len(lengths) // 2]}ns"]
    groups = profile.groups
    if profile.units:
        found["group"] = ["--core", str(groups[profile.units[-1]].number)]
    tops = [place for place in range(len(groups)) if groups[place].parent < 0]
    if len(tops) > 1:
        found["rank"] = ["--group", "/".join(groups.path(tops[-1]))]
    largest = max((lane for lane in lanes if "name" in lane), key=len, default=None)
    codes = Counter([] if largest is None else largest["name"].tolist())
    names = [profile.strings["name"][code] for code, _ in codes.most_common(1) if code >= 0]
    word = re.match(r"[A-Za-z]\w+", "".join(names))  # no signs that a filter would read
    if word:
        found["name"] = ["--filter", f"name={word[0]}*"]
    return found


def with_pairs(singles: dict[str, list[str]]) -> dict[str, list[str]]:
    """Whole, the single selections, and the pairs of the first four."""
    pairs = combinations([name for name in singles if name not in ("rank", "name")], 2)
    return {"whole": [], **singles, **{f"{a}+{b}": [*singles[a], *singles[b]] for a, b in pairs}}


class Recording:
    """A zip file that gets the answers about one input."""

    def __init__(self, answers: Answers, package: zipfile.ZipFile) -> None:
        self._answers, self._package = answers, package

    def keep(self, command: str, selection: str, form: str, body: bytes) -> None:
        """Adds an entry; of equal date, so that equal answers are equal files."""
        self._package.writestr(zipfile.ZipInfo(f"{command}|{selection}|{form}"), body, zipfile.ZIP_DEFLATED, 1)

    def ask(self, command: str, selection: str, form: str, *words: str) -> None:
        """Runs a command and adds what it says."""
        status, told, body = self._answers.ask(*words)
        self.keep(command, selection, form, body)
        if status != 0 or told:
            self.keep(f"{command}: status, messages", selection, "txt", f"exit {status}\n{told}".encode())

    def ask_files(self, command: str, selection: str, folder: str, *words: str) -> None:
        """Runs a command that writes files into a folder below this one; adds them by content, and what it prints."""
        status, told, body = self._answers.ask(*words)
        printed = [line for line in body.decode().splitlines() if not line.startswith(folder)]  # paths and sizes
        self.keep(command, selection, "txt", "\n".join([f"exit {status}", told, *printed]).encode())
        for path in sorted(Path(folder).rglob("*")) if os.path.isdir(folder) else ():
            if path.is_file() and path.name[0] not in "._":  # no logs and lists of files
                # of a data set without the folders by day and the hash of the capture
                name = re.sub(r"/source=.*/[0-9a-f]{24}", "", str(path.relative_to(folder)))
                self.keep(f"{command} {name}", selection, FORMS.get(path.suffix, "txt"),
                          path.read_bytes())  # fmt: skip


def record(words: list[str], other: list[str] | None, target: Path, given: Path | None, everything: bool) -> None:
    """Writes the answers about the input that ``words`` name; ``given``: a recording whose selections are taken."""
    answers = answers_here()
    answers.forget()
    if given is not None and given.exists():
        with zipfile.ZipFile(given) as package:
            singles = json.loads(package.read("selections.json"))
    else:
        singles = single_selections(answers, words)
    here = os.getcwd()
    begun = target.with_name(f"{target.name}.{os.getpid()}.part")
    with zipfile.ZipFile(begun, "w") as package, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _record(Recording(answers, package), answers, words, other, singles, everything)
        finally:
            os.chdir(here)
        package.writestr(zipfile.ZipInfo("selections.json"), json.dumps(singles))
    begun.replace(target)


def _record(
    to: Recording, answers: Answers, words: list[str], other: list[str] | None, singles: dict[str, list[str]],
    everything: bool,
) -> None:  # fmt: skip
    for command in ("info", "describe"):
        to.ask(f"{command} --json", "whole", "json", command, *words, "--json")
        to.ask(command, "whole", "txt", command, *words)
    to.ask("report", "whole", "txt", "report", *words, "--limit", ROWS)
    # files and text of one selection an input, which takes turns
    turns = [name for name in singles if name not in ("rank", "name")]
    turn = turns[zlib.crc32(os.path.basename(words[0]).encode()) % len(turns)] if turns else ""
    for name, options in with_pairs(singles).items():
        some = everything or name in ("whole", turn)
        to.ask("report --json", name, "json", "report", *words, "--json", *options)
        if some:
            to.ask("report --markdown", name, "txt", "report", *words, "--markdown", "--limit", ROWS, *options)
        if name in ("whole", "step"):
            to.ask("summary", name, "txt", "summary", *words, "--limit", ROWS, *options)
        if name != "rank":
            _record_events(to, words, name, options, everything)
        if name != "rank" and some:
            _record_files(to, answers, words, name, options)
    for against, label in ((words, "with itself"), (other, "with the one before")):
        # options of the input go with one of the two only where it is compared with itself
        if against is None or (len(words) > 1 and against is not words):
            continue
        for name in ("whole", "step") if "step" in singles else ("whole",):
            options = singles.get(name, [])
            to.ask(f"diff --json {label}", name, "json", "diff", against[0], *words, "--json", *options)
        to.ask(f"diff {label}", "whole", "txt", "diff", against[0], *words, "--limit", ROWS)
        more = ("overview.step_us>5%", "units.mean_utilisation>5%") if everything else ()
        for rule in ("total>5%", "step>5%", *more):
            to.ask(f"gate {label} {rule}", "whole", "json", "gate", *words, "--against", against[0], "--json",
                   "--fail-on", rule)  # fmt: skip
        to.ask(f"gate {label}", "whole", "txt", "gate", *words, "--against", against[0])
    to.ask_files("baseline", "whole", "kept", "baseline", "save", "kept/figures.json", *words[:1])
    to.ask_files("dataset", "whole", "data", "dataset", "build", "data", words[0], "--jobs", "1")


def _record_events(to: Recording, words: list[str], name: str, options: list[str], everything: bool) -> None:
    # all columns; the source's own fields; a choice of columns in an order
    to.ask("instructions --format parquet", name, "parquet", "instructions", *words, "--format", "parquet", *options)
    if name == "whole" or everything:
        to.ask("instructions --format csv", name, "csv", "instructions", *words, "--format", "csv", *options)
        to.ask("instructions", name, "jsonl", "instructions", *words, *options)
    to.ask("instructions --sort", name, "jsonl", "instructions", *words, "--columns", "engine,core,name,start,dur",
           "--sort", "dur:desc", "--limit", "500", *options)  # fmt: skip


def _record_files(to: Recording, answers: Answers, words: list[str], name: str, options: list[str]) -> None:
    options = ["--cores" if word == "--core" else word for word in options]
    told = answers.ask("export", *words, "none", "--only", "no-such-output")[1]
    outputs = told.rpartition("Choose from ")[2].strip().rstrip(".").split(", ")
    to.ask_files("export", name, f"files-{name}", "export", *words, f"files-{name}", "--only", ",".join(outputs),
                 *options)  # fmt: skip


def end_with_parent() -> None:
    """Ends this process when the one that began it ends, on Linux."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def main() -> int:
    """The program."""
    end_with_parent()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--selections", type=Path, metavar="OTHER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    import tpuprof_tui

    expected = os.environ["PYTHONPATH"].split(os.pathsep)[0]
    if not Path(tpuprof_tui.__file__).is_relative_to(expected):
        raise SystemExit(f"{tpuprof_tui.__file__} is not the package below {expected}")
    os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    args.out.mkdir(parents=True, exist_ok=True)
    status = 0
    # a process per input at a time; profiles go with what asked for them
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("fork"), end_with_parent) as pool:
        jobs = {}
        for name, words, other in json.loads(args.plan.read_text("utf-8")):
            target = args.out / f"{name}.zip"
            if not target.exists():
                given = args.selections and args.selections.resolve() / target.name
                jobs[name] = pool.submit(record, words, other, target.resolve(), given, args.all)
        for name, job in jobs.items():
            try:
                job.result()
            except Exception as error:
                status = 1
                print(f"{name} could not be recorded: {type(error).__name__}: {error}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
