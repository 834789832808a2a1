"""Formats of other profilers that are recognised but not read: error messages that name them and the right tool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from .source import first_bytes

#: Most files of a folder that are checked, and bytes read of each.
_MOST_FILES: Final = 200
_HEAD: Final = 1 << 16


class KnownFormat(Struct, frozen=True):
    """A format that is recognised but not read."""

    title: str  #: Name of the format, with its article
    names: tuple[str, ...]  #: Patterns of its file names, lower case
    advice: str  #: Which tool opens or converts it, in sentences
    #: Byte strings, one of which is among the first bytes of a file; empty: the file name suffices.
    marks: tuple[bytes, ...] = ()

    def describes(self, file: Path) -> bool:
        """Whether a file is of this format."""
        if not any(fnmatchcase(file.name.lower(), pattern) for pattern in self.names):
            return False
        if not self.marks:
            return True
        head = first_bytes(file, _HEAD)
        return any(mark in head for mark in self.marks)


KNOWN_FORMATS: Final = (
    KnownFormat(
        "a report of Nsight Systems",
        ("*.nsys-rep", "*.qdrep"),
        "`nsys export --type sqlite FILE` makes a database of it, which tpuprof opens.",
    ),
    KnownFormat(
        "a report of Nsight Compute",
        ("*.ncu-rep", "*.nsight-cuprof-report"),
        "Nsight Compute opens it; `ncu --import FILE --csv` prints it.",
    ),
    KnownFormat(
        "an XPlane profile of XLA",
        ("*.xplane.pb", "*.xplane.pb.gz"),
        "Open the JSON that jax.profiler.trace(..., create_perfetto_trace=True) writes next to it; XProf shows it "
        "(`xprof --logdir FOLDER`).",
    ),
    KnownFormat(
        "a database of rocmProfileData",
        ("*.rpd", "*.db", "*.sqlite", "*.sqlite3"),
        "`rpd2tracing.py FILE OUT.json` makes Chrome-trace JSON of it.",
        (b"rocpd_api",),
    ),
    KnownFormat(
        "a rocpd database of ROCm",
        ("*.db", "*.rocpd", "*.sqlite", "*.sqlite3"),
        "`rocpd convert -i FILE --output-format pftrace` makes a Perfetto trace of it, which tpuprof opens.",
        (b"rocpd_",),
    ),
    KnownFormat(
        "JSON of rocprofv3",
        ("*.json", "*.json.gz"),
        "Record with `rocprofv3 --output-format pftrace`: tpuprof opens that.",
        (b'"rocprofiler-sdk-tool"',),
    ),
    KnownFormat(
        "a table of rocprofv3",
        ("*.csv",),
        "Record with `rocprofv3 --output-format pftrace`: tpuprof opens that.",
        (b'"Correlation_Id","Start_Timestamp","End_Timestamp"',),
    ),
    KnownFormat(
        "a Chrome trace",
        ("*.json", "*.json.gz"),
        "https://ui.perfetto.dev opens it; tpuprof shows one next to a capture of the same run (`tpuprof --help`).",
        (b'"traceEvents"', b'"ph"'),
    ),
    KnownFormat("a recording of perf", ("perf.data", "perf.data.*"), "`perf script` prints it.", (b"PERFILE2",)),
)


def known_format(path: Path) -> tuple[KnownFormat, Path] | None:
    """The format of a file, or of the first file of a folder that has one, and that file; None if unknown."""
    return next(
        ((each, file) for file in islice(_files(path), _MOST_FILES) for each in KNOWN_FORMATS if each.describes(file)),
        None,
    )


def _files(path: Path) -> Iterator[Path]:
    if not os.path.isdir(path):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file():
                yield path / entry.name
