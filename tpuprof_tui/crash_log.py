"""Crash logs: the traceback of an unexpected error is written to a file, and the user sees one sentence."""

from __future__ import annotations

import os
import platform
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tpuprof_tui import __version__

#: Name of the program's folder in the state directory.
FOLDER: Final = "tpuprof"
#: Number of logs to keep.
MOST_LOGS: Final = 20


def state_folder() -> Path:
    """``tpuprof`` in ``XDG_STATE_HOME``, else in ``~/.local/state``; it may not exist yet.

    Raises:
        RuntimeError: No home directory is known.
    """
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (configured if configured.is_absolute() else Path.home() / ".local" / "state") / FOLDER


def write_log(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Writes the traceback of ``error`` to a new file that only its owner can read.

    Args:
        error: The unexpected error.
        arguments: The command line.

    Returns:
        Path of the log, in the state folder or else in the folder for temporary files; None where neither can be
        written.
    """
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    system = f"tpuprof {__version__}, Python {platform.python_version()}, {platform.platform()}"
    text = f"{system}\narguments: {list(arguments)!r}\n\n{details}"
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), suffix=".log", dir=folder)
            with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        _delete_oldest(folder)
        return Path(name)
    return None


def _delete_oldest(folder: Path) -> None:
    """Deletes all but the newest ``MOST_LOGS`` logs, only in the program's own state folder."""
    if folder.name == FOLDER:
        for old in sorted(folder.glob("*.log"))[:-MOST_LOGS]:
            with suppress(OSError):
                old.unlink()


def reported(error: BaseException, arguments: Sequence[str]) -> str:
    """Logs ``error`` and returns the sentence that reports it to the user."""
    log, text = write_log(error, arguments), " ".join(str(error).split())[:200]
    kind = type(error).__name__
    summary = f"{kind}: {text}" if text else kind
    where = f"Details are in {log}" if log else "No log could be written; --debug shows the details"
    return f"Unexpected error ({summary}). {where}."


def type_and_location(error: BaseException) -> str:
    """Type of an error and its innermost line in this package, such as ``KeyError in views/steps.py, line 12``.

    Contains no text from captures.
    """
    package = Path(__file__).parent
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(package)
    ]
    kind = type(error).__name__
    return f"{kind} in {Path(frames[-1].filename).relative_to(package)}, line {frames[-1].lineno}" if frames else kind


def _folders() -> Iterator[Path]:
    with suppress(RuntimeError):
        yield state_folder()
    yield Path(tempfile.gettempdir())
