"""Opens the captures of a command, determines the exit status, and checks ``--step``; shared by commands."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpuprof_tui.dataset import is_data_set
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.exit_status import DATA_LOSS, NO_RESULT, OK
from tpuprof_tui.sources.catalog import Catalog
from tpuprof_tui.sources.source import ZIP, ZSTD, natural_order

if TYPE_CHECKING:
    from tpuprof_tui.analysis.query import Query
    from tpuprof_tui.model import Profile
    from tpuprof_tui.sources.catalog import Part

#: Maximum number of steps that the error for an unknown step lists.
_NAMED: Final = 8
#: Seconds in which a named pipe must have a writer.
_WAIT: Final = 2.0
NO_CAPTURE: Final = "No capture given.", "See tpuprof --help; a capture named like a command is ./NAME."


def report_error(message: str, status: int = NO_RESULT) -> int:
    """Prints a sentence to stderr; returns the exit status."""
    tell(f"tpuprof: {message}")
    return status


def tell(message: str) -> None:
    """Prints a line to stderr; that nobody reads it, such as a closed pipe, is no error."""
    from tpuprof_tui.formats.escape import line_text

    with suppress(OSError):
        print(line_text(message), file=sys.stderr, flush=True)


def capture_arguments(options: argparse.Namespace) -> list[str]:
    """The captures on the command line.

    Raises:
        UsageError: There are none.
    """
    if not options.captures:
        raise UsageError(*NO_CAPTURE)
    return list(options.captures)


def status_of(profile: Profile) -> int:
    """Exit status of a command that has shown a profile: `DATA_LOSS` if it has errors."""
    from tpuprof_tui.model import Severity, worst

    return DATA_LOSS if worst(profile.problems) == Severity.ERROR else OK


def for_each_capture(options: argparse.Namespace, answer: Callable[[Profile], object], *, headed: bool = True) -> int:
    """Calls ``answer`` for each capture in order; returns the worst exit status.

    Of several captures, unreadable ones are reported and skipped.
    """
    captures = capture_arguments(options)
    if len(captures) == 1:
        profile = open_capture(captures[0], options)
        answer(profile)
        return status_of(profile)
    status = OK
    for index, capture in enumerate(captures):
        try:
            profile = open_capture(capture, options)
        except UnreadableError as error:
            sys.stdout.flush()
            status = max(status, report_error(str(error), error.exit_code))
            continue
        if headed:
            from tpuprof_tui.formats.escape import line_text

            between = "\n" if index else ""
            print(f"{between}==> {line_text(capture)} <==")
        answer(profile)
        status = max(status, status_of(profile))
    return status


def open_capture(capture: str | None, options: argparse.Namespace) -> Profile:
    """Opens a capture, or standard input (``-``), with the given options.

    Raises:
        UsageError: No capture is given.
        UnreadableError: The capture cannot be read.
    """
    if capture is None:
        raise UsageError(*NO_CAPTURE)
    from msgspec.structs import replace

    from tpuprof_tui import open_profile

    path = capture
    if capture == "-" or _is_pipe(capture):
        path = _stored(capture)
    try:
        profile = open_profile(path, part=_part(options), **options.source)
    except UnreadableError as error:
        if path != capture:
            named = "Standard input" if capture == "-" else capture
            raise UnreadableError(str(error).replace(path, named)) from None
        found = _captures_within(capture)
        if len(found) == 1 and found[0] != Path(capture):
            return open_capture(str(found[0]), options)
        raise _folder_error(capture, found) or error from None
    if path != capture:
        return replace(profile, path=capture)
    notes = getattr(options, "notes", None)
    return replace(profile, notes=notes) if notes else profile


def open_captures(captures: Sequence[str], options: argparse.Namespace) -> list[Profile]:
    """Opens captures, in parallel if their source supports it."""
    from tpuprof_tui import open_profiles

    try:
        return open_profiles(captures, part=_part(options), **options.source)
    except UnreadableError:
        return [open_capture(each, options) for each in captures]  # raises an error that names the capture


def _part(options: argparse.Namespace) -> Part | None:
    """The part of a profile that ``--range`` and ``--step`` select; None: all."""
    from tpuprof_tui.sources.catalog import Part

    part = Part(getattr(options, "range", None) or "", getattr(options, "step", None))
    return part if part != Part("", None) else None


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def with_pipes_stored(path: str) -> str:
    """The path, but of a named pipe that of a temporary file with what is written into it; see `_stored`."""
    return _stored(path) if _is_pipe(path) else path


def _stored(path: str) -> str:
    """Reads standard input (``-``) or a named pipe into a temporary file, which is deleted at exit; its path.

    Raises:
        UsageError: Standard input is a terminal.
        UnreadableError: Nothing writes into the pipe.
    """
    import atexit
    import shutil
    import tempfile

    from tpuprof_tui.sources.source import first_bytes

    if path == "-" and sys.stdin.isatty():
        raise UsageError("Nothing is piped to stdin.", "Pipe a trace into it: zcat trace.json.gz | tpuprof ... -")
    folder = tempfile.mkdtemp(prefix="tpuprof")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "stdin.json" if path == "-" else Path(path).name)
    stream = sys.stdin.buffer if path == "-" else open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    with file.open("wb") as target, stream:
        if path != "-":
            target.write(_first_of_pipe(path, stream.fileno()))
        shutil.copyfileobj(stream, target, 1 << 20)
    # some packed files and archives are recognized by name
    head = first_bytes(file, 512)
    zstd, zipped, tar = head.startswith(ZSTD), head.startswith(ZIP), head[257:262] == b"ustar"
    for packed, ending in ((zstd, ".json.zst"), (zipped, ".zip"), (tar, ".tar")):
        if packed and not file.name.endswith(ending):
            file = file.rename(file.with_name(file.name.removesuffix(".json") + ending))
    return str(file)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _first_of_pipe(path: str, pipe: int) -> bytes:
    """The first bytes of a named pipe, which waits for more afterwards; opening one that waits needs a writer.

    Raises:
        UnreadableError: Nothing writes into it.
    """
    end = time.monotonic() + _WAIT
    first = b""
    # without a writer the pipe is at its end, with one that has not written yet reading would wait
    with suppress(BlockingIOError):
        while not (first := os.read(pipe, 1 << 16)):
            if time.monotonic() > end:
                raise UnreadableError(f"{path} is a named pipe, and nothing writes into it.",
                                      "Write a trace into it: zcat trace.json.gz > PIPE.")  # fmt: skip
            time.sleep(0.02)
    os.set_blocking(pipe, True)
    return first


def must_exist(path: str, hint: str) -> None:
    """Checks early that a path, which is opened later, exists.

    Raises:
        UnreadableError: The path does not exist.
    """
    if "://" in path:
        raise _remote_error(path)
    if not os.path.exists(path):
        raise UnreadableError(f"{path}: no such file or directory.", hint)


def _remote_error(path: str) -> UnreadableError:
    return UnreadableError(f"{path} is on another file system: only one data set at a time can be opened there.",
                           f"Build one: tpuprof dataset build OUT {path}.")  # fmt: skip


def _captures_within(path: str) -> list[Path]:
    """Captures in a local folder that is no data set, at most 9."""
    if "://" in path or is_data_set(path):
        return []
    return list(islice(Catalog().find(path, seconds=1.0), 9))


def _folder_error(path: str, found: Sequence[Path]) -> UnreadableError | None:
    """Error for a folder that contains captures, for a data set, or for a remote path; None for other paths."""
    if is_data_set(path):
        return UnreadableError(f"{path} is a data set.", f"Query it: tpuprof dataset query {path} 'SELECT ...'.")
    if "://" in path:
        return _remote_error(path)
    if not found or found[0] == Path(path):
        return None
    named = ", ".join(sorted(map(str, found), key=natural_order)[:3])
    return UnreadableError(
        f"{path} is not a capture, but a folder of {'more than 8' if len(found) > 8 else len(found)}.",
        f"Name one of them: {named}{', ...' if len(found) > 3 else '.'}",
    )


def check_step(query: Query) -> None:
    """Checks that the step of a query exists.

    Raises:
        UsageError: There is no such step; the hint lists existing ones.
    """
    if query.step is None:
        return
    found = query.steps
    if not len(found):
        raise UsageError(f"The capture has no {found.word.plural}, and no sequence of its launches repeats.", "")
    if not len(found.numbered(query.step)):
        there = f"There are: {found.numbers_text(_NAMED)}."
        raise UsageError(f"The capture has no {found.word.one} {query.step}.", there)


def tell_if_none_passes(query: Query) -> None:
    """Tells on stderr which condition of a query's filter leaves no event, if none passes."""
    from tpuprof_tui.analysis.selecting.filter_masks import apply_filter, none_passes

    text = query.full_filter
    if text and not apply_filter(query.session, text).count:
        tell(f"tpuprof: {none_passes(query.session, text)}")


def asked_query(options: argparse.Namespace, profile: Profile) -> Query:
    """The query of ``--range``, ``--filter`` and ``--step``, of the redacted profile with ``--redact``.

    Raises:
        UsageError: There is no such step, or range or filter are invalid.
    """
    from tpuprof_tui.analysis.query import query_of

    text, window = options.filter or "", None
    if text:
        from tpuprof_tui.analysis.selecting.filters import compile_filter

        compile_filter(text, profile)
    if options.redact:
        from tpuprof_tui.views.redacting import redacted

        profile = redacted(profile)
    if options.range is not None:
        from tpuprof_tui.analysis.selecting.time_scale import base_of
        from tpuprof_tui.formats.parsing import range_typed

        start, end = range_typed(options.range, base_of(profile))
        window = profile.start_ns if start is None else start, profile.end_ns if end is None else end
    query = query_of(profile, range=window, filter=text, step=options.step)
    check_step(query)
    return query
