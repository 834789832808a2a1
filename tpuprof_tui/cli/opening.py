"""Opens what a command names, one capture or several, and says how it ends; ``--step N``, for all that take one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.exit_status import FINE, LOST, NOTHING
from tpuprof_tui.sources.catalog import Catalog

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Part

#: Numbers of steps that are named where one is not among them.
_NAMED: Final = 8
NO_CAPTURE: Final = "No capture given.", "See tpuprof --help; a capture named like a command is ./NAME."


def told(message: str, status: int = NOTHING) -> int:
    """Says one sentence on stderr; gives the exit status."""
    from tpuprof_tui.formats.escape import line_text

    print(f"tpuprof: {line_text(message)}", file=sys.stderr)
    return status


def given(options: argparse.Namespace) -> list[str]:
    """The captures named.

    Raises:
        UsageError: None is.
    """
    if not options.captures:
        raise UsageError(*NO_CAPTURE)
    return list(options.captures)


def status_of(profile: Profile) -> int:
    """The exit status of a command that has told of a profile."""
    from tpuprof_tui.model import Severity, worst

    return LOST if worst(profile.problems) == Severity.ERROR else FINE


def each(options: argparse.Namespace, answer: Callable[[Profile], object], *, headed: bool = True) -> int:
    """One answer for each capture, in the order they are named; gives the worst exit status.

    What cannot be opened is told, and the others follow.
    """
    captures = given(options)
    if len(captures) == 1:
        profile = opened(captures[0], options)
        answer(profile)
        return status_of(profile)
    status = FINE
    for place, capture in enumerate(captures):
        try:
            profile = opened(capture, options)
        except UnreadableError as error:
            sys.stdout.flush()
            status = max(status, told(str(error), error.exit_code))
            continue
        if headed:
            from tpuprof_tui.formats.escape import line_text

            between = "\n" if place else ""
            print(f"{between}==> {line_text(capture)} <==")
        answer(profile)
        status = max(status, status_of(profile))
    return status


def opened(capture: str | None, options: argparse.Namespace) -> Profile:
    """A capture, or what comes by standard input (``-``), read as the options say.

    Raises:
        UsageError: None is named.
        UnreadableError: It cannot be read.
    """
    if capture is None:
        raise UsageError(*NO_CAPTURE)
    from msgspec.structs import replace

    from tpuprof_tui import open_profile

    if capture == "-":
        return _piped(options)
    try:
        profile = open_profile(capture, part=_part(options), **options.source)
    except UnreadableError as error:
        raise _folder_error(capture) or error from None
    notes = getattr(options, "notes", None)
    return replace(profile, notes=notes) if notes else profile


def all_opened(captures: Sequence[str], options: argparse.Namespace) -> list[Profile]:
    """Those captures, read side by side where their source can."""
    from tpuprof_tui import open_profiles

    try:
        return open_profiles(captures, part=_part(options), **options.source)
    except UnreadableError:
        return [opened(each, options) for each in captures]  # says which of them, and why


def _part(options: argparse.Namespace) -> Part | None:
    """The part of a profile that is asked for; None: all."""
    from tpuprof_tui.sources.catalog import Part

    asked = Part(getattr(options, "range", None) or "", getattr(options, "step", None))
    return asked if asked != Part("", None) else None


def _piped(options: argparse.Namespace) -> Profile:
    """A profile of one file, or of an archive, that comes by standard input."""
    import atexit
    import shutil
    import tempfile

    from msgspec.structs import replace

    from tpuprof_tui import open_profile
    from tpuprof_tui.sources.source import first_bytes

    if sys.stdin.isatty():
        raise UsageError("Nothing comes by standard input.", "Pipe a trace into it: zcat trace.json.gz | tpuprof ... -")
    folder = tempfile.mkdtemp(prefix="tpuprof")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "stdin.json")
    with file.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
    # these are known by their names
    head = first_bytes(file, 512)
    if head.startswith(b"\x28\xb5\x2f\xfd") or head[257:262] == b"ustar":
        file = file.rename(file.with_name("stdin.tar" if head[257:262] == b"ustar" else "stdin.json.zst"))
    try:
        return replace(open_profile(file, part=_part(options), **options.source), path="-")
    except UnreadableError as error:
        raise UnreadableError(str(error).replace(str(file), "Standard input")) from None


def must_exist(path: str, hint: str) -> None:
    """What is opened later is looked for at once.

    Raises:
        UnreadableError: It is not there.
    """
    if "://" in path:
        raise _elsewhere(path)
    if not os.path.exists(path):
        raise UnreadableError(f"{path}: no such file or directory.", hint)


def _elsewhere(path: str) -> UnreadableError:
    return UnreadableError(f"{path} lies on another file system: there one data set at a time is opened.",
                           f"Make one: tpuprof dataset build OUT {path}.")  # fmt: skip


def _folder_error(path: str) -> UnreadableError | None:
    """What to say of a folder that is no capture but holds some, or is a data set of some; None of anything else."""
    if is_data_set(path):
        return UnreadableError(f"{path} is a data set.", f"Ask it: tpuprof dataset query {path} 'SELECT ...'.")
    if "://" in path:
        return _elsewhere(path)
    found = list(islice(Catalog().find(path, seconds=1.0), 9))
    if not found or found[0] == Path(path):
        return None
    named = ", ".join(str(capture) for capture in found[:3])
    return UnreadableError(
        f"{path} is no capture, but a folder of {'more than 8' if len(found) > 8 else len(found)}.",
        f"Name one of them: {named}{', ...' if len(found) > 3 else '.'}",
    )


def check_step(step: int | None, profile: Profile) -> None:
    """Whether there is a step of a number.

    Raises:
        UsageError: There is none; says which there are.
    """
    if step is None:
        return
    from tpuprof_tui.analysis.steps.step_detection import steps_of

    found = steps_of(profile)
    if not len(found):
        raise UsageError(f"The capture has no {found.word.plural}, and nothing that it launches repeats.", "")
    if not len(found.numbered(step)):
        raise UsageError(f"The capture has no {found.word.one} {step}.", f"There are: {found.numbers_text(_NAMED)}.")


def filter_asked(options: argparse.Namespace, profile: Profile) -> str:
    """The filter that ``--filter`` and ``--step`` ask for together; empty without both.

    Raises:
        UsageError: There is no such step, or the filter cannot be understood.
    """
    if options.step is None:
        return options.filter or ""
    from tpuprof_tui.analysis.selecting.filters import with_step

    check_step(options.step, profile)
    return with_step(options.filter or "", options.step)
