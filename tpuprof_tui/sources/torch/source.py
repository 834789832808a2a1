"""`TorchSource`: opens PyTorch traces, a single file, an archive, or the folder of a run."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import (
    RECORDINGS,
    ZSTD,
    Part,
    Progress,
    ProgressCallback,
    Recognition,
    SessionEntry,
    Source,
    chosen_files,
    first_bytes,
    natural_order,
)

if TYPE_CHECKING:
    from tarfile import TarFile
    from zipfile import ZipFile

    from tpuprof_tui.errors import UnreadableError
    from tpuprof_tui.model import Problem, Profile
    from tpuprof_tui.model.mapped_arrays import MappedArrays

    from .read.trace import Trace

_NAMED: Final = lazy_pattern(r"(?s)(?:.*\.pt\.trace|trace)\.json(?:\.gz|\.zst|\.bz2|\.xz)?")
_JSON: Final = lazy_pattern(r"(?s).*\.json(?:\.gz|\.zst|\.bz2|\.xz)?")
#: Perfetto traces, which tpuprof and some profilers write.
_PERFETTO: Final = lazy_pattern(r"(?s).*\.(?:pftrace|perfetto-trace)(?:\.gz|\.zst|\.bz2|\.xz)?")
#: What tpuprof exports beside captures.
_EXPORT: Final = "perfetto.pftrace"
_ARCHIVE: Final = lazy_pattern(r"(?s).*\.(?:tar|tar\.(?:gz|bz2|xz)|tgz|tbz2|txz|zip)")
#: File that SGLang merges the traces of a run's ranks into, and the run's id.
_MERGED: Final = lazy_pattern(r"merged-(.+)\.trace\.json(?:\.gz)?")
#: Folder of the traces of graphs' captures, beside those of a run.
CAPTURES: Final = "capture_traces"
#: Byte strings in the beginning of a trace: its list of events, or keys that PyTorch writes before it.
_MARKS: Final = (b'"traceEvents"', b'"ph"')
_OWN_KEYS: Final = lazy_pattern(rb'\s*\{\s*"(?:schemaVersion|traceEvents|deviceProperties|displayTimeUnit|metadata)"')
_LIST: Final = lazy_pattern(rb'\s*\[\s*\{[^{}]*"(?:ph|name|cat|ts|pid)"\s*:')


class TorchSource(Source):
    """Traces of the PyTorch profiler."""

    id = "torch"
    title = "a PyTorch trace"
    expected = "a PyTorch or Perfetto trace (*.pt.trace.json[.gz], *.pftrace) or a folder of them"
    vocabulary = "tpuprof_tui.sources.torch.vocabulary:VOCABULARY"
    priority = 5
    options = (RECORDINGS,)

    def recognises(self, path: Path) -> Recognition:
        """Recognises a path by the profiler's file names, else by the beginning of a JSON file."""
        if os.path.isdir(path):
            return self._folder(path)
        if _NAMED.fullmatch(path.name):
            return Recognition("name", f"it is named like a trace ({path.name})")
        if _ARCHIVE.fullmatch(path.name) or _is_zip(path):
            name = _first_in_archive(path)
            return Recognition("content", f"it holds {name}") if name else Recognition("", "first file is not a trace")
        if _JSON.fullmatch(path.name) and _begins_as_trace(path):
            return Recognition("content", "it begins like a trace")
        if _PERFETTO.fullmatch(path.name):
            return Recognition("name", f"it is named like a Perfetto trace ({path.name})")
        if _is_perfetto(path):
            return Recognition("content", "it begins like a Perfetto trace")
        return Recognition("", "neither *.pt.trace.json[.gz], JSON with traceEvents nor a Perfetto trace")

    def _folder(self, path: Path) -> Recognition:
        if named := list(filter(_NAMED.fullmatch, os.listdir(path))):
            return Recognition.by_files(named)
        found = [file.name for file in self.files(path)]
        return Recognition("content", f"it holds {found[0]}") if found else Recognition("", "no trace in it")

    def open(self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None) -> Profile:
        """Reads a file, or all files of a folder; a file of a folder that cannot be read becomes a Problem."""
        return self.open_part(path, options, progress, None)

    def open_part(
        self, path: Path, options: Mapping[str, Any], progress: ProgressCallback | None, part: Part | None
    ) -> Profile:  # fmt: skip
        """Reads a path as `open` does; of files larger than memory only the part."""
        from tpuprof_tui.errors import UnreadableError
        from tpuprof_tui.model import Problem, Severity
        from tpuprof_tui.model.mapped_arrays import MappedArrays

        from .read.parallel_reading import read_traces

        is_archive = not os.path.isdir(path) and (_ARCHIVE.fullmatch(path.name) or _is_zip(path))
        files, arrays = chosen_files(_unpack(path) if is_archive else self.files(path), options), MappedArrays()

        def arrived(found: Mapping[int, Trace | UnreadableError]) -> None:
            if progress is not None and not all(isinstance(trace, UnreadableError) for trace in found.values()):
                count_text = f"{len(found)} of {len(files)} traces are read."
                following = Problem(Severity.WARNING, count_text, "The others follow.", count=len(files) - len(found))
                preliminary = _profile(path, files, found, arrays, following)
                progress(Progress(f"{count_text} The others follow.", 0, 0, profile=preliminary))

        return _profile(path, files, dict(enumerate(read_traces(files, progress, arrays, part, arrived))), arrays)

    def open_several(self, paths: Sequence[Path], options: Mapping[str, Any], part: Part | None) -> list[Profile]:
        """Reads all paths in as many processes as there are cores."""
        if any(_ARCHIVE.fullmatch(path.name) or _is_zip(path) for path in paths):
            return super().open_several(paths, options, part)
        from tpuprof_tui.model.mapped_arrays import MappedArrays

        from .read.parallel_reading import read_traces

        files, arrays = [chosen_files(self.files(path), options) for path in paths], MappedArrays()
        found = iter(read_traces([file for each in files for file in each], None, arrays, part))
        return [_profile(path, each, dict(enumerate(islice(found, len(each)))), arrays)
                for path, each in zip(paths, files, strict=True)]  # fmt: skip

    def sessions(self, path: Path) -> Sequence[SessionEntry]:
        """The sessions that the traces of a folder are recordings of."""
        files = self.files(path) if os.path.isdir(path) else ()
        if len(files) < 2:
            return ()
        from .read.identities import sessions

        return sessions(files)

    def find(self, folder: Path, names: Sequence[str]) -> Sequence[Path]:
        """The folder if it holds several traces, else its one trace."""
        found = [folder / name for name in names if _NAMED.fullmatch(name)]
        found = found or [folder / name for name in names if _PERFETTO.fullmatch(name) and name != _EXPORT]
        return [folder] if len(found) > 1 else found

    def files(self, path: Path) -> Sequence[Path]:
        """The file itself, or the traces of a folder, by name."""
        if not os.path.isdir(path):
            return [path]
        left_out = _left_out(path)
        names = sorted((name for name in os.listdir(path) if name not in left_out), key=natural_order)
        found = [path / name for name in names
                 if _NAMED.fullmatch(name) or (_JSON.fullmatch(name) and _begins_as_trace(path / name))]  # fmt: skip
        # what tpuprof exported may lie beside what it was made of
        return found or [path / name for name in names if _PERFETTO.fullmatch(name) and _is_perfetto(path / name)]


def _left_out(folder: Path) -> dict[str, str]:
    """The files of a folder whose traces others of it hold too, and what is said of each."""
    names = set(os.listdir(folder))
    found = {name: "The trace beside this file is the same, unpacked." for name in names if name.endswith(".json.gz")
             and name[:-3] in names and _is_packed(folder / name[:-3], folder / name)}  # fmt: skip
    merged = {name: match[1] for name in names if (match := _MERGED.fullmatch(name)) is not None}
    # SGLang merges in the folder of the ranks' files
    return found | {name: "The traces beside this file were merged into it." for name, run in merged.items()
                    if any(other.startswith(f"{run}-TP-") for other in names)}  # fmt: skip


def _is_packed(plain: Path, packed: Path) -> bool:
    """Whether a gzip file states the size of another file as that of its content."""
    with suppress(OSError):
        if plain.is_file() and packed.is_file():
            with packed.open("rb") as file:
                file.seek(-4, os.SEEK_END)
                return int.from_bytes(file.read(), "little") == plain.stat().st_size % (1 << 32) > 0
    return False


def _profile(
    path: Path, files: Sequence[Path], found: Mapping[int, Trace | UnreadableError], arrays: MappedArrays,
    *more: Problem,
) -> Profile:  # fmt: skip
    """The profile of the files read so far (results by index of the file); unreadable files become Problems."""
    from tpuprof_tui.errors import UnreadableError
    from tpuprof_tui.model import Problem, Severity

    from .read.merged_ranks import ranks_of
    from .read.profile import profile_of

    traces: list[Trace] = []
    problems = list(more)
    for name, what in sorted(_left_out(path).items()) if os.path.isdir(path) else ():
        problems.append(Problem(Severity.NOTE, what, "It is left out.", file=name))
    for number, each in sorted(found.items()):
        try:
            if isinstance(each, UnreadableError):
                raise each
            traces += ranks_of(each)
        except UnreadableError as error:
            if len(files) == 1:
                raise
            problems.append(Problem(Severity.ERROR, str(error), "It is left out.", file=files[number].name))
    if not traces:
        raise UnreadableError(f"{path} holds no trace that can be read.")
    return profile_of(path, traces, problems, arrays, more_follows=bool(more))


def _is_zip(path: Path) -> bool:
    return first_bytes(path, 4) == b"PK\x03\x04"


def _first_in_archive(path: Path) -> str:
    """File name of the first trace in an archive, of tar from its beginning; empty if none is found."""
    import tarfile
    import zipfile

    names: list[str] = []
    try:
        if _is_zip(path):
            with zipfile.ZipFile(path) as packed:
                names = packed.namelist()
        else:
            with tarfile.open(fileobj=io.BytesIO(first_bytes(path)), mode="r:") as archive:
                # those before the end of what was read of it, which is an error
                names.extend(member.name for member in archive if member.isfile())
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, ValueError):
        pass
    return next((name for name in (Path(each).name for each in names) if _JSON.fullmatch(name)), "")


def _unpack(path: Path) -> list[Path]:
    """Unpacks the traces of an archive into a temporary folder, flat; it is deleted when the process ends.

    Files of one name are named by their folders too: ``rank0_trace.json``. No more is unpacked than of a packed trace
    of the same size.

    Raises:
        UnreadableError: The archive is damaged, or its files are too long for it.
    """
    # archives are rare, and these modules are slow to import
    import atexit
    import shutil
    import tarfile
    import tempfile
    import zipfile
    import zlib

    from tpuprof_tui.errors import UnreadableError
    from tpuprof_tui.sources.chrome.inflate import ALWAYS_UNPACKED, MOST_UNPACKED

    folder = Path(tempfile.mkdtemp(prefix="tpuprof"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    found: dict[str, Path] = {}
    left = ALWAYS_UNPACKED + MOST_UNPACKED * path.stat().st_size
    try:
        with zipfile.ZipFile(path) if _is_zip(path) else tarfile.open(path) as archive:
            for number, (name, content) in enumerate(_contents(archive)):
                place = Path(name)
                if name in found or not _JSON.fullmatch(place.name):
                    continue
                file = folder / f"{number}_{place.name}"
                of_capture = place.parent.name == CAPTURES
                if of_capture:
                    (folder / CAPTURES).mkdir(exist_ok=True)
                    file = folder / CAPTURES / file.name
                with file.open("wb") as target, content() as stream:
                    while left > 0 and (data := stream.read(1 << 20)):
                        left -= len(data)
                        target.write(data)
                if left <= 0:
                    raise UnreadableError(f"{path} holds files that are too long for it.", "Unpack it first.")
                if of_capture:
                    continue
                if _NAMED.fullmatch(place.name) or _begins_as_trace(file):
                    found[name] = file
    # RuntimeError: encrypted, NotImplementedError (one of them): packed in an unknown way
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, zlib.error) as error:
        if not found:
            raise UnreadableError(f"{path} cannot be unpacked ({error}).") from None
    names = [Path(each).name for each in found]
    unpacked = (_renamed(file, Path(member), alone=names.count(Path(member).name) == 1)
                for member, file in found.items())  # fmt: skip
    return sorted(unpacked, key=lambda file: natural_order(file.name))


def _contents(archive: TarFile | ZipFile) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    from zipfile import ZipFile

    if isinstance(archive, ZipFile):
        yield from ((each.filename, partial(archive.open, each)) for each in archive.infolist() if not each.is_dir())
        return
    for member in archive:
        if member.isfile():
            yield member.name, partial(cast("Callable[..., IO[bytes]]", archive.extractfile), member)


def _renamed(file: Path, member: Path, *, alone: bool) -> Path:
    """Gives an unpacked file the name of its member; with the folders if it is not ``alone`` with it."""
    parts = [part for part in member.parts if part not in ("/", ".", "..")]
    target = file.with_name(member.name if alone else "_".join(parts)[-200:])
    return file if target.exists() else file.rename(target)


def _is_perfetto(path: Path) -> bool:
    head = first_bytes(path, 1 << 12)
    if head.startswith(ZSTD):
        return _PERFETTO.fullmatch(path.name) is not None
    if not head.startswith(b"\n"):
        return False
    # imports numpy
    from tpuprof_tui.sources.perfetto.packets import is_perfetto

    return is_perfetto(head)


def _begins_as_trace(path: Path) -> bool:
    head = first_bytes(path)
    # zstd cannot be looked into without zstandard; no other source takes JSON packed so
    if head.startswith(ZSTD):
        return path.suffix == ".zst"
    return bool(_LIST.match(head)) or bool(_OWN_KEYS.match(head) and any(mark in head for mark in _MARKS)) or (
        b'"traceEvents"' in head and b'"ph"' in head
    )  # fmt: skip


SOURCE: Final = TorchSource()
