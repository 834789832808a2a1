"""Export as collapsed stacks: one line per call path with its self time, ns; for speedscope and flamegraph.pl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.views.call_tree import paths, tree_of

from .job import Job
from .selection import timed_part


def write_collapsed(job: Job, files: Sequence[Path], progress: Callable[[float], None]) -> list[Path]:
    """Writes lines such as ``core;kernel function;operation ns``.

    Raises:
        WriteError: The file could not be written; no partial file is left.
    """
    tree, labels = tree_of(timed_part(job.query))
    with whole_file(files[0]) as stream:
        for path, own in zip(paths(tree, labels), tree.own.tolist(), strict=True):
            if own > 0:
                stream.write(f"{utf8_text(path)} {own}\n".encode())
    progress(1.0)
    return list(files)
