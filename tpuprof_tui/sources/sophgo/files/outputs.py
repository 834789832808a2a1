"""Writers of the file formats that only captures of this source have, called by exports (``Vocabulary.outputs``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tpuprof_tui.export.job import Job
from tpuprof_tui.export.selection import Selection
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.model import Profile

Progress = Callable[[float], None]


def write_summary(profile: Profile, job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the published summary; no file without instructions."""
    from .summary_text import summary_text

    data = summary_text(profile.timed_part, job.selection).encode("ascii")
    if data:
        with whole_file(paths[0]) as stream:
            stream.write(data)
    progress(1.0)
    return list(paths) if data else []


def console_summary(profile: Profile, selection: Selection) -> tuple[str, Callable[[], str]]:
    """Why there is no summary (empty if there is one), and a function that returns its table for the terminal."""
    from .summary_text import summary_console, summary_missing

    return summary_missing(profile, selection), partial(summary_console, profile, selection)


def write_trace(profile: Profile, job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the Perfetto trace."""
    from .perfetto import write_perfetto

    with whole_file(paths[0]) as stream:
        write_perfetto(profile.timed_part, stream, job.selection, progress=progress)
    return list(paths)


def write_registers(profile: Profile, job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the register text, one file for each core and kind of engine."""
    from .field_texts import write_registers_text

    write_registers_text(profile, job.folder, job.document_selection, progress=progress)
    return [job.folder / name for name in register_names(profile, job)]


def register_names(profile: Profile, job: Job) -> list[str]:
    """File names of the register text."""
    from .field_texts import register_files

    return list(register_files(profile, job.document_selection))


def write_documents(profile: Profile, job: Job, paths: Sequence[Path], progress: Progress) -> list[Path]:
    """Writes the workbook, and its rows as CSV."""
    from .field_texts import write_merged_csv
    from .workbook import write_workbook

    selection = job.document_selection
    write_workbook(profile, paths[0], selection, progress=lambda done: progress(0.85 * done))
    write_merged_csv(profile, paths[1], selection, progress=lambda done: progress(0.85 + 0.15 * done))
    return list(paths)
