"""``tpuprof export``: writes files; accepts the options of the published converter and simpler ones."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tpuprof_tui.errors import TpuprofError, UsageError
from tpuprof_tui.export.job import Job, Written, check_selection, parse_cores, parse_kinds, run_export
from tpuprof_tui.export.outputs import keys_of, outputs_of
from tpuprof_tui.export.selection import of_units
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.units import bytes_text
from tpuprof_tui.model import Profile
from tpuprof_tui.model.vocabulary import Output, import_entry
from tpuprof_tui.sources.catalog import Catalog

from .opening import asked_query, open_capture, status_of, tell

DEFAULT_FOLDER: Final = "profile_out"
#: Minimum interval between progress reports, seconds.
_EVERY: Final = 0.1
_BAR: Final = 24


def requested_kinds(options: argparse.Namespace, outputs: Sequence[Output]) -> frozenset[str]:
    """Keys of the outputs that the options request.

    Without ``--only``: web view, workbook and register text, and with ``--perfetto`` the trace and the summary, like
    version 0.3.1 of the published converter; with ``--enable_doc`` the files of its version 0.3.7.

    Raises:
        UsageError: The options exclude all outputs.
    """
    if options.only is not None:
        return parse_kinds(options.only, keys_of(outputs))

    def all_in(name: str, wanted: bool = True) -> set[str]:
        return {output.key for output in outputs if wanted and name in output.sets}

    if options.enable_doc:
        kinds = all_in("enable_doc")
    else:
        kinds = all_in("web", not options.disable_web) | all_in("doc", not options.disable_doc)
        kinds |= all_in("beside", bool(kinds)) | all_in("perfetto", options.perfetto)
    if options.disable_summary:
        kinds -= all_in("summary")
    if not kinds:
        raise UsageError("With these options there is nothing to write.", "See tpuprof export --help.")
    return frozenset(kinds)


def requested_job(options: argparse.Namespace, profile: Profile) -> Job:
    """Converts the options to an export job.

    Raises:
        UsageError: A core, step, range or filter is invalid.
    """
    query, groups, documents = asked_query(options, profile), profile.groups, None
    if options.cores is not None:
        query = of_units(query, parse_cores(options.cores, profile))
    if options.num_core is not None:
        documents = frozenset(unit for unit in groups.units if groups[unit].number < options.num_core)
    kinds = requested_kinds(options, outputs_of(profile.vocabulary))
    return Job(Path(DEFAULT_FOLDER if options.folder is None else options.folder), kinds, query, documents)


def run(options: argparse.Namespace) -> int:
    """Writes the requested files; prints progress, paths, and the table of the summary.

    Returns:
        The exit status.

    Raises:
        TpuprofError: A file could not be written, or the capture has changed since ``--expect``.
    """
    check_expected(options.expect, options.capture)
    profile = open_capture(options.capture, options)
    job = requested_job(options, profile)
    check_selection(job.query)
    outputs = [output for output in outputs_of(profile.vocabulary) if output.key in job.kinds]
    titles = {output.key: output.progress_name or output.title for output in outputs}
    teller = _Machine() if options.machine else _Bar(titles) if sys.stderr.isatty() else _Lines(titles)
    stop_as_interrupted()
    written = run_export(job, teller.progress)
    ends = [import_entry(output.finish)(job.query) for output in outputs if output.finish]
    teller.written(written, [note for note, _ in ends if note])
    if not options.machine:
        print(*(text() for _, text in ends), sep="", end="")
    return status_of(profile)


def check_expected(expected: str | None, capture: str | None) -> None:
    """Checks that a capture is unchanged since the explorer opened it.

    Args:
        expected: Fingerprint at that time; None: no check.
        capture: Path of the capture; None (reported elsewhere): no check.

    Raises:
        TpuprofError: The capture has changed, or does not exist any more.
    """
    if expected is None or capture is None:
        return
    if not os.path.exists(capture):
        raise TpuprofError(f"The capture is gone: {capture} no longer exists.", "Nothing was written.")

    if Catalog().fingerprint(capture) != expected:
        raise TpuprofError("The capture has changed since it was opened.", "Reload it, then export again.")


def stop_as_interrupted() -> None:
    """Handles SIGTERM and SIGHUP like Ctrl+C, so that no partially written file is left."""

    def stop(number: int, frame: Any) -> None:
        del number, frame
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP on purpose
            signal.signal(number, stop)


class _Lines:
    """Progress as plain lines, for pipes and logs."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        self._titles = titles
        self._announced: set[str] = set()

    def progress(self, kind: str, done: float) -> None:
        """Prints a line when an output begins."""
        del done
        if kind not in self._announced:
            self._announced.add(kind)
            tell(f"Writing {self._titles[kind]} ...")

    def written(self, files: list[Written], notes: list[str]) -> None:
        """Prints a line per file, then one per note."""
        for file in files:
            print(f"{file.path}  {bytes_text(file.size)}")
        for note in notes:
            tell(f"tpuprof: {note}")


class _Bar(_Lines):
    """Progress as a bar on a terminal."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        super().__init__(titles)
        self._last = 0.0

    def progress(self, kind: str, done: float) -> None:
        """Redraws the bar, at most ten times a second."""
        now = time.monotonic()
        if done < 1.0 and now - self._last < _EVERY:
            return
        self._last = now
        full = round(_BAR * min(max(done, 0.0), 1.0))
        bar = "#" * full + "-" * (_BAR - full)
        print(
            f"\r{self._titles[kind]:14} [{bar}] {done:4.0%}",
            end="\n" if done >= 1.0 else "",
            file=sys.stderr,
            flush=True,
        )


class _Machine:
    """Progress as JSON lines, for the explorer."""

    def __init__(self) -> None:
        self._last = 0.0

    def progress(self, kind: str, done: float) -> None:
        """Prints the progress, at most ten lines a second."""
        now = time.monotonic()
        if done >= 1.0 or now - self._last >= _EVERY:
            self._last = now
            print(answer_text({"kind": kind, "done": round(done, 3)}, indent=None), flush=True)

    def written(self, files: list[Written], notes: list[str]) -> None:
        """Prints one line with all files and notes."""
        record = {"written": [[str(file.path), file.size] for file in files], "notes": notes}
        print(answer_text(record, indent=None), flush=True)
