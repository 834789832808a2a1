"""Runs exports: writes the chosen outputs to a folder and removes stale files of earlier exports."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.files import WriteError, whole_file
from tpuprof_tui.model import Profile
from tpuprof_tui.model.lane import row_count
from tpuprof_tui.model.vocabulary import Output, import_entry

from .outputs import outputs_of
from .selection import of_units, rows_of

#: File in the output folder that lists the files written by exports.
OWN_LIST: Final = ".tpuprof_files.json"
_LARGEST_LIST: Final = 1 << 20

#: Progress callback: key of the output, and completed share (0 to 1).
Report = Callable[[str, float], None]


class Job(Struct, frozen=True, dict=True):
    """Parameters of an export."""

    folder: Path  #: Output folder; created if needed
    kinds: frozenset[str]  #: Keys of outputs (``export.outputs``)
    query: Query  #: What to export
    #: Ids of the units in workbook, web and register text; None: those of the query.
    document_units: frozenset[int] | None = None

    @cached_property
    def document_query(self) -> Query:
        """The query for workbook, web and register text."""
        return self.query if self.document_units is None else of_units(self.query, self.document_units)


class Written(Struct, frozen=True):
    """A file written by an export: path and size in bytes."""

    path: Path
    size: int


def run_export(job: Job, report: Report = lambda name, done: None) -> list[Written]:
    """Writes the files of a job, each atomically; returns them in order of writing.

    ``report`` gets the progress of each output.

    Raises:
        WriteError: A file could not be written; files written before it are complete and stay.
    """
    profile = job.query.profile
    # not Path.resolve, which raises for circular links
    capture, target = (Path(os.path.realpath(path)) for path in (profile.path, job.folder))
    if target == capture or capture in target.parents:
        raise WriteError(f"{job.folder} is inside the capture.", "Choose an output folder outside it.")
    outputs = sorted(outputs_of(profile.vocabulary), key=lambda output: output.write_order)
    chosen = [output for output in outputs if output.key in job.kinds]
    before, existed = _listed_files(job.folder, outputs), os.path.exists(job.folder)
    planned = {name for output in chosen for name in output.files}
    planned |= {name for output in chosen if output.names for name in import_entry(output.names)(job)}
    # written first, so that the next export knows these files even if this process is killed
    _write_list(job.folder, before | planned)
    written: list[Path] = []
    try:
        for output in chosen:
            paths = [job.folder / name for name in output.files]
            written += import_entry(output.writer)(job, paths, partial(report, output.key))
    except BaseException:
        _write_list(
            job.folder, {name for name in before | planned if name in before or os.path.exists(job.folder / name)}
        )
        if not existed:
            _remove_empty(job.folder, chosen)
        raise
    names = {path.relative_to(job.folder).as_posix() for path in written}
    stale = {name for name in before - names if _is_export_file(name, chosen)}
    for name in stale:
        with contextlib.suppress(OSError):
            os.unlink(job.folder / name)
    _write_list(job.folder, (before - stale) | names)
    return [Written(path, path.stat().st_size) for path in written]


def check_selection(query: Query) -> None:
    """Checks that a query selects any events.

    Raises:
        UsageError: It selects none.
    """
    numbers, say = range(len(query.profile.lanes)), query.vocabulary.say
    # what runs in the range is in unions, even if nothing starts in it
    if not query.profile.event_count or any(row_count(rows_of(query, number, reaching=True)) for number in numbers):
        return
    message = say("No {event} matches these options: nothing was written.")
    raise UsageError(message, say("Check {units}, range, filter."))


# -- files of earlier exports -------------------------------------------------


def _listed_files(folder: Path, outputs: Sequence[Output]) -> set[str]:
    """Files listed by earlier exports in this folder; names that no export writes are ignored."""
    try:
        list_ = folder / OWN_LIST
        names = json.loads(list_.read_bytes()[:_LARGEST_LIST]) if list_.is_file() else []
    except (OSError, ValueError, RecursionError):
        return set()
    if not isinstance(names, list):
        return set()
    return {name for name in names if isinstance(name, str) and _is_export_file(name, outputs)}


def _is_export_file(name: str, outputs: Iterable[Output]) -> bool:
    """Whether one of the outputs writes a file of this name; other files are never deleted, even if listed."""
    return any(name in each.files or (each.pattern and re.fullmatch(each.pattern, name)) for each in outputs)


def _write_list(folder: Path, names: set[str]) -> None:
    if names:
        with contextlib.suppress(WriteError), whole_file(folder / OWN_LIST) as stream:
            stream.write(json.dumps(sorted(names), indent=0).encode("ascii"))
    else:
        with contextlib.suppress(OSError):
            os.unlink(folder / OWN_LIST)


def _remove_empty(folder: Path, outputs: Sequence[Output]) -> None:
    inner = dict.fromkeys((folder / name).parent for output in outputs for name in output.files)
    for path in (*(each for each in inner if each != folder), folder):
        with contextlib.suppress(OSError):
            path.rmdir()


# -- command line arguments ---------------------------------------------------


def parse_kinds(text: str, known: Sequence[str]) -> frozenset[str]:
    """Parses keys of outputs, ``xlsx,web,...``; ``known``: valid keys.

    Raises:
        UsageError: A key is unknown, or there are none.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(f"There is no output {', '.join(unknown) or text!r}.", f"Choose from {', '.join(known)}.")
    return frozenset(names)


def parse_cores(text: str, profile: Profile) -> frozenset[int]:
    """Parses numbers of units, ``0,3`` or ``0-3,6``: the ids of all units that have them.

    Raises:
        UsageError: The text is malformed, or the profile has no such unit.
    """
    say, known = profile.vocabulary.say, profile.groups.numbers
    cores: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        if match is None:
            raise UsageError(say("{text!r} is not a list of {units}.", text=text), "Write them as 0,3 or 0-3.")
        first, last = int(match[1]), int(match[2] or match[1])
        cores.update(core for core in known if first <= core <= last)
        if not any(first <= core <= last for core in known):
            named = "{unit} {first}" if first == last else "{units} {first} to {last}"
            has = f"It has {', '.join(map(str, known)) or 'none'}."
            raise UsageError(say(f"The capture has no {named}.", first=first, last=last), has)
    return frozenset(unit for unit in profile.units if profile.groups.number(unit) in cores)
