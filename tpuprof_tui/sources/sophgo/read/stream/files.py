"""The files of a capture directory, and their bytes.

A capture is read into buffers of the size found at open. No memory map is kept: a file that is rewritten under a map
kills the process that reads it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tpuprof_tui.sources.sophgo.file_names import CORE_FILE, PORT_FILE, PORT_LIKE, SETTINGS_FILE

from ..problems import Report

Bytes = npt.NDArray[np.uint8]

#: Numbers in names beyond this are no core or port numbers.
_LARGEST_NUMBER = 1023


@dataclass(frozen=True)
class CaptureFiles:
    """What lies in a capture directory, by role.

    Attributes:
        directory: The capture.
        settings: ``global.profile``, or None.
        cores: (core number, file), ascending.
        ports: (port number, file), ascending.
    """

    directory: Path
    settings: Path | None
    cores: tuple[tuple[int, Path], ...]
    ports: tuple[tuple[int, Path], ...]


def list_files(directory: Path, report: Report) -> CaptureFiles:
    """Sort the files of a capture by role; odd names become Problems."""
    settings: Path | None = None
    core_files: list[Path] = []
    ports: dict[int, Path] = {}
    for name in sorted(os.listdir(directory), key=_natural):
        path = directory / name
        match = PORT_FILE.fullmatch(name)
        if name == SETTINGS_FILE:
            settings = path
        elif CORE_FILE.fullmatch(name):
            core_files.append(path)
        elif match:
            number = int(match[1][:9])
            if number > _LARGEST_NUMBER or number in ports:
                report.error("The name gives no port of its own.", "The file was not read.", file=name)
            else:
                ports[number] = path
        elif PORT_LIKE.fullmatch(name):
            report.error("The name gives no port number (cdma*_N.profile).", "The file was not read.", file=name)
    return CaptureFiles(directory, settings, tuple(_numbered(core_files, report)), tuple(sorted(ports.items())))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key that orders embedded numbers by value."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part[:18]), "") if part.isdecimal() else (1, 0, part) for part in parts]


def _numbered(files: list[Path], report: Report) -> Iterator[tuple[int, Path]]:
    """Core number of each file: the last number of its name; else the lowest that is free."""
    taken: dict[int, Path] = {}
    rest: list[Path] = []
    for path in files:
        numbers = re.findall(r"\d+", path.name.removesuffix(".profile"))
        number = int(numbers[-1][:9]) if numbers else -1
        if 0 <= number <= _LARGEST_NUMBER and number not in taken:
            taken[number] = path
        else:
            rest.append(path)
    for path in rest:
        number = next(free for free in range(len(files)) if free not in taken)
        taken[number] = path
        report.error("The name gives no core number of its own.", f"Taken as core {number}.", file=path.name)
    yield from sorted(taken.items())


def read_bytes(path: Path, report: Report) -> Bytes:
    """The bytes of a regular file as found at open; what cannot be read is a Problem and an empty array."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        report.error(
            f"Cannot be opened: {(error.strerror or str(error)).lower()}.",
            "Its core or port is missing.",
            file=path.name,
        )
        return np.zeros(0, np.uint8)
    try:
        return _read_open(descriptor, path.name, report)
    except (OSError, MemoryError) as error:
        report.error(f"Cannot be read: {error or 'out of memory'}.", "Its core or port is missing.", file=path.name)
        return np.zeros(0, np.uint8)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, name: str, report: Report) -> Bytes:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        report.error("Not a regular file.", "It was not read.", file=name)
        return np.zeros(0, np.uint8)
    buffer = np.empty(before.st_size, np.uint8)
    view = memoryview(buffer)  # type: ignore[arg-type]
    done = 0
    while done < len(view):
        count = os.readv(descriptor, [view[done : done + (1 << 28)]])
        if count == 0:
            break
        done += count
    after = os.fstat(descriptor)
    if done < len(view) or after.st_size != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        report.warning(
            "The file changed while it was read.", "Shown as it was read; reload when it is complete.", file=name
        )
    return buffer[:done]
