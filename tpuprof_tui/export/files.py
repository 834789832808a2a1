"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import TpuprofError


class WriteError(TpuprofError):
    """An output file could not be written."""


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file under a temporary name beside ``path``, renamed to it when the block ends without an error.

    Raises:
        WriteError: The folder is missing or read-only, or the disk is full; nothing is left behind.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise WriteError(f"{path} could not be written: {reason}.", "Choose another output folder.") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value
