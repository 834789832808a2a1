"""Recordings of ovens in the catalog: files ``*.oven.json``, and folders with ``bakeryN.oven.json`` for each bakery."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.sources.source import ProgressCallback, Recognition, Source, SourceOption, first_bytes

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

_BAKERY: Final = re.compile(r"bakery(\d{1,4})\.oven\.json")
_CONTENT: Final = re.compile(rb'\s*\{\s*"oven"\s*:\s*\d')


class OvenSource(Source):
    """Recordings of ovens."""

    id = "oven"
    title = "a recording of ovens"
    expected = "a file *.oven.json or a folder of bakeryN.oven.json"
    options = (
        SourceOption("tick_ns", ("--tick_ns", "--tick-ns"),
                     {"type": int, "metavar": "NS", "help": "length of a tick; otherwise the recording's"}),
    )  # fmt: skip

    def recognises(self, path: Path) -> Recognition:
        """A folder and most files by name, a file with another name by how it begins."""
        if os.path.isdir(path):
            count = sum(1 for name in os.listdir(path) if _BAKERY.fullmatch(name))
            return (
                Recognition("name", f"it holds {count} bakeries")
                if count
                else Recognition("", "no bakeryN.oven.json in it")
            )
        if path.name.endswith(".oven.json"):
            return Recognition("name", "it ends in .oven.json")
        if _CONTENT.match(first_bytes(path, 256)):
            return Recognition("content", 'it begins with {"oven": ')
        return Recognition("", 'neither *.oven.json nor {"oven": at its beginning')

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads one bakery or all of a folder."""
        from .profile import profile_of
        from .recording import read_recording

        recordings = {file.name: read_recording(file) for file in self.files(path)}
        for recording in recordings.values():
            recording.tick_ns = options.get("tick_ns", recording.tick_ns)
        return profile_of(path, recordings)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder where its files are bakeries, else each recording."""
        if any(map(_BAKERY.fullmatch, names)):
            return [folder]
        return [folder / name for name in names if name.endswith(".oven.json")]

    def files(self, path: Path) -> Sequence[Path]:
        """The file, or those of all bakeries by number."""
        if not os.path.isdir(path):
            return [path]
        found = [(int(match[1]), name) for name in os.listdir(path) if (match := _BAKERY.fullmatch(name))]
        return [path / name for _, name in sorted(found)]


OVEN: Final = OvenSource()
