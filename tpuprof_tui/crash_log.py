"""Where the details of an unexpected error go, so that the person at the terminal reads one sentence."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from . import __version__


def state_folder() -> Path:
    """``tpuprof`` in ``XDG_STATE_HOME``, else in ``~/.local/state``; it may not exist yet.

    Raises:
        RuntimeError: No home directory is known.
    """
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".local" / "state") / "tpuprof"


def written_log(error: BaseException, arguments: Sequence[str]) -> Path | None:
    """Writes the traceback of ``error`` to a new file that only its owner can read.

    Args:
        error: What happened.
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
        return Path(name)
    return None


def sentence(error: BaseException, log: Path | None) -> str:
    """What the person at the terminal is told."""
    what = " ".join(str(error).split())[:200]
    kind = type(error).__name__
    named = f"{kind}: {what}" if what else kind
    where = f"Details are in {log}" if log else "No log could be written; --debug shows the details"
    return f"Unexpected error ({named}). {where}."


def report(error: BaseException, arguments: Sequence[str]) -> None:
    """Logs ``error`` and says so in one line on stderr."""
    print(f"tpuprof: {sentence(error, written_log(error, arguments))}", file=sys.stderr)


def _folders() -> Iterator[Path]:
    with suppress(RuntimeError):
        yield state_folder()
    yield Path(tempfile.gettempdir())
