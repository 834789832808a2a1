"""``tpuprof cache``: what is kept on disk of large files that were read, and its removal."""

from __future__ import annotations

import argparse

from tpuprof_tui.errors import TpuprofError
from tpuprof_tui.exit_status import OK
from tpuprof_tui.formats.units import bytes_text, plural
from tpuprof_tui.sources import column_cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the option of the command to a parser."""
    parser.add_argument("--clear", action="store_true", help="remove it")


def cache_command(options: argparse.Namespace) -> int:
    """Prints where it is and how much, or removes it; returns the exit status."""
    folder, found = column_cache.folder(), column_cache.files()
    if folder is None:
        print(f"Nothing is kept: {column_cache.SWITCH} is off, or there is no home directory.")
        return OK
    what = f"{plural(len(found), 'file')}, {bytes_text(sum(size for _, size in found))}"
    if not options.clear:
        print(f"{folder}: {what}, at most {bytes_text(column_cache.MOST)}.")
        return OK
    for path, _ in found:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise TpuprofError(f"{path} cannot be removed: {error.strerror or error}.") from None
    print(f"{folder}: {what}, removed.")
    return OK
