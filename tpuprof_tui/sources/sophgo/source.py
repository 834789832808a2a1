"""Source of Sophgo captures: directories of ``global.profile``, ``cdmlib*.profile`` and ``cdma*.profile``.

Also of ``bmprofile_data`` folders, which libbmrt writes: ``global.profile``, ``iter*.profile`` and commands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpuprof_tui.sources.source import Progress, ProgressCallback, Recognition, Source, SourceOption

from .file_names import DIRECTORY, nearly_of_capture, of_capture

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

MAX_MHZ: Final = 100_000


def _megahertz(text: str) -> int:
    if text.isdecimal() and 0 < int(text) <= MAX_MHZ:
        return int(text)
    import argparse  # imported by the command line anyway, not needed from Python

    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of MHz from 1 to {MAX_MHZ}")


def _chips() -> Sequence[str]:
    return sorted(path.stem.upper() for path in Path(__file__).with_name("chips").glob("*.json"))


class SophgoSource(Source):
    """Captures written by the runtime of Sophgo's TPUs."""

    id = "sophgo"
    title = "a Sophgo capture"
    expected = "a directory with global.profile and cdmlib*.profile files"
    vocabulary = "tpuprof_tui.sources.sophgo.vocabulary:VOCABULARY"
    options = (
        SourceOption(
            "tiu_mhz",
            ("--tiu_freq", "--tiu-freq"),
            {"type": _megahertz, "metavar": "MHz", "help": "TIU clock; otherwise the capture's, or the chip's default"},
        ),
        SourceOption(
            "chip",
            ("--chip",),
            {"metavar": "NAME", "help": "chip (AKS, AKSV, ...) of a capture that does not name it"},
            choices=_chips,
        ),
        SourceOption(
            "trace_file",
            ("--trace_file", "--trace-file"),
            {"metavar": "FILE", "help": "host trace (Chrome-trace JSON, also .gz) to show with the capture"},
            missing="Give the JSON file that the host's profiler wrote.",
        ),
    )

    def recognises(self, path: Path) -> Recognition:
        """Decides by file names only."""
        if os.path.isfile(path):
            if of_capture(path.name) or nearly_of_capture(path.name):
                return Recognition("name", "this is the name of a capture file")
            return Recognition("", "neither global.profile nor cdmlib*.profile, cdma*.profile or iter*.profile")
        names = os.listdir(path)
        names = list(filter(of_capture, names)) or list(filter(nearly_of_capture, names))
        missing = Recognition("", "it holds neither global.profile nor cdmlib*.profile, cdma*.profile or iter*.profile")
        return Recognition.by_files(names) if names else missing

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads the capture, and the host trace where one is given."""
        from .read.capture import read

        arguments = dict(options)
        trace = arguments.pop("trace_file", None)
        profile = read(path, progress=progress, **arguments)
        if trace is None:
            return profile
        from .read.host_trace import with_host_trace

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(Progress("reading the host trace", done, total))

        return with_host_trace(profile, trace, progress=report)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder, if it contains a file of a capture by name."""
        return [folder] if any(map(of_capture, names)) else []

    def files(self, path: Path) -> Sequence[Path]:
        """All files of the directory that belong to a capture by name."""
        directory = self.whole(path)
        return [directory / name for name in os.listdir(directory) if of_capture(name)]

    def whole(self, path: Path) -> Path:
        """The capture's directory."""
        return path if os.path.isdir(path) else path.parent

    def device_and_call(self, path: Path) -> tuple[int | None, int | None]:
        """Device and call number from the directory's name, ``cdm_profile_data_dev0-3``; the call may be missing."""
        match = DIRECTORY.fullmatch(path.resolve().name)
        return (int(match[1][:9]), int(match[2][:9]) if match[2] else None) if match else (None, None)


SOURCE: Final = SophgoSource()
