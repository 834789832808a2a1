"""Finds the workers at a path: folders of ranks, of msprof, of a cluster, or files; by names, else by content."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.rank_names import ranks_in_names
from tpuprof_tui.sources.source import SessionEntry, first_bytes, last_bytes, natural_order

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
MSPROF: Final = "mindstudio_profiler_output"

_RANK: Final = lazy_pattern(r".*_ascend_(?:pt|ms)")
_INFO: Final = lazy_pattern(r"profiler_info(?:_(\d+))?\.json")
_DATABASE: Final = lazy_pattern(r"ascend_(?:pytorch|mindspore)_profiler_(\d+)\.db")
_PROF: Final = lazy_pattern(r"PROF_.*")
_DEVICE: Final = lazy_pattern(r"device_(\d+)")
#: File names that only Ascend profiles have.
_OWN: Final = frozenset(
    ("trace_view.json", "kernel_details.csv", "op_summary.csv", "op_statistic.csv", "operator_details.csv",
     "step_trace_time.csv", "api_statistic.csv", "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv",
     "msprof.json", "ascend_pytorch_profiler.db", "ascend_mindspore_profiler.db", "analysis.db", "msprof.db",
     "task_time.csv", "communication_matrix.json", "prof_rule.json", "pytorch_operator_view.csv", "l2_cache.csv",
     "thread_group.json", "task_queue.json", "msprof_tx.csv", "msprof_tx.json", "ge_op_execute.csv",
     "acl_statistic.csv", "runtime_api.csv"),
)  # fmt: skip
#: Those of them that hold the work of a device.
_WORK: Final = frozenset((
    "trace_view.json", "kernel_details.csv", "op_summary.csv", "msprof.json", "ascend_pytorch_profiler.db",
    "ascend_mindspore_profiler.db", "msprof.db",
))  # fmt: skip
_CLUSTER_FILES: Final = (
    "cluster_step_trace_time.csv", "cluster_communication.json", "cluster_communication_matrix.json",
    "communication_group.json", "cluster_analysis.db",
)  # fmt: skip
#: Folder that `msprof --analyze=on` writes next to the output, and its files, by the file they replace.
ANALYSED: Final = "analyze"
_ANALYSED: Final = {
    "communication.json": "communication.json", "communication_matrix.json": "communication_matrix.json",
    "communication_analyzer.db": "analysis.db",
}  # fmt: skip
#: Most entries of a folder that are listed, and most folders; most files that are looked into before one of Ascend is
#: found, of the opened folder and of those below it; most files of a folder that may be archives.
_MOST_ENTRIES: Final = 20_000
_MOST_FOLDERS: Final = 2_000
_MOST_LOOKED_INTO, _MOST_BELOW, _MOST_ARCHIVES = 64, 4, 1000
#: Endings of names that PyTorch's profiler gives to its traces.
_PYTORCH: Final = (".pt.trace.json", ".pt.trace.json.gz")
#: Ends of the names of files of other profiles.
_OTHERS: Final = (*_PYTORCH, ".profile")

#: File name of a table or timeline: its kind, then device, model and iteration, slice, export time; a copy's number.
_FILE: Final = lazy_pattern(
    r"(?P<stem>[A-Za-z][A-Za-z0-9_]*?)(?P<numbers>(?:_(?:slice_)?[-\d]+)*)(?: ?\((?P<copy>\d{1,4})\))?"
    r"\.(?P<kind>csv|json|db)(?:\.gz)?"
)
_NUMBER: Final = lazy_pattern(r"_(slice_)?([-\d]+)")
#: Digits of an export time, and the least pause in seconds between two exports that no file tells apart.
_TIME_DIGITS: Final = 14
_PAUSE: Final = 600


class Export(Struct, frozen=True):
    """The files of one kind in order, as they were exported together."""

    paths: tuple[Path, ...]  #: The files
    lacking: tuple[int, ...] = ()  #: Numbers of the slices that are missing
    time: str = ""  #: Digits of the time of the newest; empty if none is named with one
    shared: bool = False  #: Whether they contain other devices too
    by_content: bool = False  #: Whether they were recognised by content


#: The newest export of each kind of file, by role (``kernel_details.csv``, without slice and time).
Exports = Mapping[str, Export]


class WorkerFiles(Struct, frozen=True):
    """The files of one worker."""

    root: Path  #: The folder that it is named after
    name: str
    exports: Exports
    info: tuple[Path, ...] = ()  #: The files that state how it was recorded; a number in their name is the rank
    device: int = -1  #: Device number that its folder or files are named with; -1 if none is
    several: bool = False  #: Whether it is one of several devices of a folder, so that the folder's rank is not its own

    @property
    def rank_of_file(self) -> int | None:
        """The rank in the name of the profiler's info file or database; None if there is none."""
        paths = [path for export in self.exports.values() for path in export.paths]
        names = (path.name for path in (paths if self.several else (*self.info, *paths)))
        found = (match[1] for name in names if (match := _INFO.fullmatch(name) or _DATABASE.fullmatch(name)))
        return next((int(each) for each in found if each and len(each) < 9), None)

    @property
    def timeline_role(self) -> str:
        """Role of the files of its timeline; empty if there is none."""
        return next((role for role in ("trace_view.json", "msprof.json") if role in self.exports), "")

    @property
    def is_rank_folder(self) -> bool:
        """Whether it is a rank's folder, which torch_npu or MindSpore analyses."""
        return bool(self.info) or _RANK.fullmatch(self.root.name) is not None

    @property
    def by_content(self) -> bool:
        """Whether only content tells that its files are Ascend's."""
        return bool(self.exports) and all(export.by_content for export in self.exports.values())

    @property
    def shares(self) -> bool:
        """Whether any of its files contain other devices too."""
        return any(export.shared for export in self.exports.values())

    def paths(self, role: str) -> tuple[Path, ...]:
        """Its files of a role, in order."""
        return self.exports[role].paths if role in self.exports else ()

    def every_file(self) -> list[Path]:
        """All files of the worker."""
        return [*(path for export in self.exports.values() for path in export.paths), *self.info]

    def of_device(self, device: int) -> WorkerFiles:
        """The same files, for one of the devices that they contain."""
        shared = {key: replace(export, shared=True) for key, export in self.exports.items()}
        return replace(self, name=f"{self.name}/device_{device}", exports=shared, device=device, several=True)


class Unexported(Struct, frozen=True):
    """A recording that is not exported: its folder, a sentence that begins behind its name, and how to export it."""

    folder: Path
    what: str
    advice: str


class Profiles(Struct, frozen=True):
    """The profiles at a path."""

    workers: tuple[WorkerFiles, ...] = ()
    cluster: Mapping[str, Path] = field(default_factory=dict)  #: Files of msprof-analyze about all workers, by name
    raw: tuple[Unexported, ...] = ()
    archives: tuple[Path, ...] = ()  #: Archives of such profiles
    loose: tuple[Path, ...] = ()  #: Files that stand beside the folders of ranks
    others: tuple[Path, ...] = ()  #: Traces of PyTorch beside them

    def __bool__(self) -> bool:
        return bool(self.workers or self.cluster or self.raw or self.archives)


def profiles_at(path: Path) -> Profiles:
    """The profiles at a path; empty if there is no Ascend profile.

    Raises:
        OSError: The path cannot be read.
    """
    # names of parent folders count, which a relative path may lack
    path = Path(os.path.abspath(path))
    if not os.path.isdir(path):
        return _of_file(path)
    path = profile_path(path) if path.name == ANALYSED else _old_format_root(path) or path
    found = _of_run(path)
    if not found.workers and not found.cluster:
        above = _enclosing_profile(path)
        if above is not None:
            return _Search().of_folder(above, 0) or found
    return found


def is_own(name: str) -> bool:
    """Whether only Ascend profiles have a file of this name."""
    return role(name) in _OWN or name in _CLUSTER_FILES


def profile_path(path: Path) -> Path:
    """The folder of the profile that a file or folder belongs to; any other path itself."""
    if not os.path.isdir(path):
        return _old_format_root(path.parent) or (path.parent if _in_output(path) else path)
    if path.name in (OUTPUT, MSPROF):
        return path
    if (old := _old_format_root(path)) is not None:
        return old
    if path.name == ANALYSED and os.path.isdir(path.parent / MSPROF):
        return path.parent
    return path if _of_run(path).workers else _enclosing_profile(path) or path


# -- names of files


def role(name: str) -> str:
    """Role of a file, by its name: ``op_summary_0_slice_1_20260511093035.csv`` is ``op_summary.csv``."""
    match = _FILE.fullmatch(name)
    return f"{match['stem']}.{match['kind']}" if match else name


class NamedFile(Struct, frozen=True):
    """A file by the parts of its name ``KIND[_DEVICE][_MODEL][_ITERATION][_slice_N][_TIME]``."""

    name: str
    role: str  #: Its kind with its extension
    part: str = ""  #: Number of its device, or of its rank; empty without one
    rest: tuple[str, ...] = ()  #: Its other numbers
    slice: int = -1  #: Number of the slice; -1: it is not cut
    time: str = ""  #: Digits of the time of its export; empty if it has none
    #: Number in brackets that a browser or a file manager adds to a second file of one name; empty: none.
    copy: str = ""


def seconds_of(digits: str) -> int:
    """A time ``20260511093035`` in seconds since 1970, as if it were UTC; 0 if it is none."""
    from datetime import datetime, timezone  # few folders need it

    parts = [int(digits[at : at + (2 if at else 4)] or 0) for at in (0, 4, 6, 8, 10, 12)]
    try:
        return int(datetime(*parts, tzinfo=timezone.utc).timestamp())  # type: ignore[arg-type,misc]
    except ValueError:
        return 0


def named_file(name: str) -> NamedFile | None:
    """A file by its name; None if it is not named as the exporters' files are."""
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    cut, time, numbers = -1, "", []
    for is_slice, number in _NUMBER.findall(match["numbers"]):
        if is_slice and number.isdecimal() and len(number) < 9:
            cut = int(number)
        elif len(number) >= _TIME_DIGITS and number.isdecimal():
            time = number
        else:
            numbers.append(number)
    part = numbers.pop(0) if numbers else ""
    return NamedFile(name, role(name), part, tuple(numbers), cut, time, match["copy"] or "")


def newest_export(files: Sequence[NamedFile]) -> list[NamedFile]:
    """The files of the newest export of one kind and device, slices in order.

    Files belong to one export if they were written within a short while and none repeats another: an uncut file
    repeats every slice. Where one does, the newer export begins behind the longest pause between the two.
    """
    export: list[NamedFile] = []
    places: dict[tuple[tuple[str, ...], int], int] = {}
    for each in sorted(files, key=lambda file: (file.time, file.rest, file.slice, natural_order(file.name))):
        if export and seconds_of(each.time) - seconds_of(export[-1].time) > _PAUSE:
            export, places = [], {}
        export.append(each)
        keys = ((each.rest, each.slice), (each.rest, -1)) if each.slice >= 0 else ((each.rest, -2), (each.rest, -1))
        before = max((places.get(key, -1) for key in keys), default=-1)
        if before >= 0:
            times = [seconds_of(file.time) for file in export]
            begin = max(range(before + 1, len(export)), key=lambda place: (times[place] - times[place - 1], place))
            export = export[begin:]
            places = {}
        for place, file in enumerate(export) if before >= 0 else [(len(export) - 1, each)]:
            places[file.rest, file.slice] = place
            places[file.rest, -2] = place  # of any slice
    return sorted(export, key=lambda file: ([*map(natural_order, file.rest)], file.slice, natural_order(file.name)))


def missing_slices(files: Sequence[NamedFile]) -> tuple[int, ...]:
    """Numbers of the slices that an export lacks, as far as the others tell."""
    slices = {file.slice for file in files}
    return tuple(number for number in range(min(max(slices), 1000)) if number not in slices) if -1 not in slices else ()


# -- files of a folder


def _files_by_part(folder: Path, names: Sequence[str], *, copied: bool = False) -> dict[str, Exports]:
    """The newest export of each kind of file, by part; a packed file beside the same unpacked one is left out.

    ``copied``: whether the files were copied by hand: then ``kernel_details (1).csv`` is a part of its own.
    """
    present = set(names)
    found: dict[str, dict[str, list[NamedFile]]] = {}
    for name in names:
        file = named_file(name)
        if file is not None and not (name.endswith(".gz") and name[: -len(".gz")] in present):
            part = f"{file.part}({file.copy})" if copied and file.copy else file.part
            found.setdefault(part, {}).setdefault(file.role, []).append(file)
    parts: dict[str, dict[str, Export]] = {}
    latest: dict[str, str] = {}
    for part, by_role in sorted(found.items(), key=lambda item: natural_order(item[0])):
        for key, of_role in sorted(by_role.items()):
            files = newest_export(of_role)
            time = max(file.time for file in files)
            paths = tuple(folder / file.name for file in files)
            parts.setdefault(part, {})[key] = Export(paths, missing_slices(files), time)
            latest[key] = max(time, latest.get(key, "")) if part else latest.get(key, "")
    common = {key: export.time for key, export in parts.get("", {}).items()}

    def is_outdated(part: str, key: str) -> bool:
        """Of exports with a file for each device and of those with one for all the newer counts, of each kind."""
        one, each = common.get(key, ""), latest[key]
        return bool(one and each) and (one > each if part else one < each)

    kept = {part: {key: export for key, export in of_part.items() if not is_outdated(part, key)}
            for part, of_part in parts.items()}  # fmt: skip
    return {part: exports for part, exports in kept.items() if exports}


def _together(parts: Iterable[Exports]) -> Exports:
    found: dict[str, Export] = {}
    for exports in parts:
        for key, export in exports.items():
            before = found.get(key, Export(()))
            found[key] = Export((*before.paths, *export.paths), before.lacking or export.lacking)
    return dict(sorted(found.items()))


def _one_of_several(
    root: Path, name: str, own: Exports, common: Exports, info: tuple[Path, ...], device: int
) -> WorkerFiles:  # fmt: skip
    """The worker of a device, with the files of all that it has none of its own of."""
    shared = {key: replace(export, shared=device >= 0) for key, export in common.items() if key not in own}
    return WorkerFiles(root, name, {**shared, **own}, info, device, several=True)


def _number(part: str) -> int:
    return int(part) if part.isdecimal() and len(part) < 6 else -1


# -- one level


def _in_output(path: Path) -> bool:
    inside = path.parent.name in (OUTPUT, MSPROF) and _FILE.fullmatch(path.name) is not None
    return inside or (_is_info_file(path.name) and os.path.isdir(path.parent / OUTPUT))


def _old_format_root(folder: Path) -> Path | None:
    """The device's folder or PROF_* above a folder ``summary`` or ``timeline`` of CANN 5 to 6.3; None for others."""
    if folder.name not in ("summary", "timeline"):
        return None
    above = folder.parent.parent if folder.parent.name == "host" else folder.parent
    return above if _old_format_workers(above, _listed(above)[1]) else None


def _is_info_file(name: str) -> bool:
    return _INFO.fullmatch(name) is not None or name == "profiler_metadata.json"


def _of_file(path: Path) -> Profiles:
    if path.name in _CLUSTER_FILES:
        return Profiles(cluster={path.name: path})
    if not path.is_file():
        return Profiles()
    if (old := _old_format_root(path.parent)) is not None and _FILE.fullmatch(path.name) is not None:
        return _Search().of_folder(old, 0)
    if _in_output(path):
        return _Search().of_folder(path.parent, 0)
    if is_own(path.name):
        return Profiles((WorkerFiles(path, path.name, {role(path.name): Export((path,))}),))
    # few commands need these
    from .content import CLUSTER, archived, role_of_content

    if archived(path):
        return Profiles(archives=(path,))
    known = role_of_content(path)
    if known == CLUSTER:
        return Profiles(cluster={known: path})
    return Profiles((_of_content(path, known),)) if known else Profiles()


def _of_content(path: Path, known: str) -> WorkerFiles:
    return WorkerFiles(path, path.name, {known: Export((path,), by_content=True)})


def _of_run(path: Path) -> Profiles:
    """Profiles in a folder or up to two levels below by names; else files in it or right below it by content."""
    search = _Search()
    return search.of_folder(path, 2) or search.of_folder(path, 1, most_below=_MOST_BELOW)


class _Search:
    """One search below a folder; the number of folders that it lists is bounded, and each is listed once."""

    def __init__(self) -> None:
        self._left = _MOST_FOLDERS
        self._listed = lru_cache(maxsize=None)(_listed)

    def of_folder(self, path: Path, depth: int, level: int = 0, most_below: int = 0) -> Profiles:
        """Profiles in a folder, or up to ``depth`` levels below it.

        ``level``: that of the folder below the opened one; ``most_below``: most files of a folder below the opened one
        that are looked into, and of such folders.
        """
        self._left -= 1
        names, folders = self._listed(path)
        cluster: dict[str, Path] = {name: path / name for name in _CLUSTER_FILES if name in names}
        found = _exported(path, names, folders)
        if found:
            return Profiles(tuple(found))
        own = [name for name in names if is_own(name) and name not in _CLUSTER_FILES]
        if level > 1 and not {role(name) for name in own} & _WORK:
            own = []
        loose = _loose_workers(path, names) if own and not cluster else []
        if not cluster and (most := most_below if level else _MOST_LOOKED_INTO):
            loose = _with_content(loose, path, names, most)
        raw = _unexported(path, names, folders)
        if raw is not None and not cluster and not loose:
            return Profiles(raw=(raw,))
        below: list[Profiles] = []
        for number, name in enumerate(folders[: max(self._left, 0)] if depth and raw is None else ()):
            # where the first folders hold nothing, no other is looked into
            if number >= most_below > 0 and not any(below):
                break
            below.append(self.of_folder(path / name, depth - 1, level + 1, most_below))
        workers = [worker for each in below for worker in each.workers]
        # runs beside profiles of other kinds are a list to choose from
        if level == 0 and not any(worker.root.parent == path for worker in workers) and any(
            not each and any(file.endswith(_OTHERS) for file in _listed(path / name)[0])
            for name, each in zip(folders, below, strict=False)
        ):  # fmt: skip
            return Profiles()
        for each in below:
            cluster = {**each.cluster, **cluster}
        workers.sort(key=lambda worker: natural_order(str(worker.root)))
        beside = tuple(file for worker in loose for file in worker.every_file()) if workers else ()
        archives = _archives(path, names[:_MOST_ARCHIVES]) if level < 2 else []
        archives += (file for each in below for file in each.archives)
        others = tuple(path / name for name in names if name.endswith(_PYTORCH)) if workers else ()
        return Profiles((*loose, *workers), cluster, tuple(each for found in below for each in found.raw),
                        tuple(archives), (*beside, *(file for each in below for file in each.loose)),
                        (*others, *(file for each in below for file in each.others)))  # fmt: skip


def _exported(path: Path, names: Sequence[str], folders: Sequence[str]) -> Sequence[WorkerFiles]:
    """Workers of a folder that an exporter wrote: of a rank, of msprof, or such an output folder; else none."""
    if OUTPUT in folders and (found := _output_workers(path)):
        return found
    if MSPROF in folders and (found := [each for each in _msprof_workers(path, names, folders) if each.exports]):
        return found
    if path.name in (OUTPUT, MSPROF) and any(map(is_own, names)):
        above = path.parent
        return _msprof_workers(above, [], _listed(above)[1]) if path.name == MSPROF else _output_workers(above)
    # the analysis of a rank was left out or failed, and msprof exported what is inside
    parts = [name for name in folders if _PROF.fullmatch(name)] if _is_rank_folder(path, names, folders) else []
    exported = [(name, _exported_part(path / name)) for name in parts]
    several = sum(bool(workers) for _, workers in exported) > 1
    return [
        replace(worker, root=path, name=worker.name.replace(name, f"{path.name}/{name}" if several else path.name, 1),
                info=_info_files(path))
        for name, workers in exported for worker in workers
    ] or _old_format_workers(path, folders)  # fmt: skip


def _exported_part(path: Path) -> Sequence[WorkerFiles]:
    names, folders = _listed(path)
    return _exported(path, names, folders) or (_loose_workers(path, names) if any(map(is_own, names)) else [])


def _is_rank_folder(path: Path, names: Sequence[str], folders: Sequence[str]) -> bool:
    return bool(_RANK.fullmatch(path.name)) or "FRAMEWORK" in folders or any(map(_is_info_file, names))


def _info_files(folder: Path, part: str = "") -> tuple[Path, ...]:
    found = sorted(name for name in _listed(folder)[0] if _is_info_file(name))
    own = [name for name in found if (match := _INFO.fullmatch(name)) and match[1] == part]
    return tuple(folder / name for name in own or found)


def _workers_in(folder: Path, names: Sequence[str], root: Path, *, copied: bool = False) -> list[WorkerFiles]:
    """The workers of the files of a folder: one, or one for each number that files are named with.

    They are of several devices or ranks if there are two numbers, or two files of one kind.
    """
    parts = _files_by_part(folder, names, copied=copied)
    own = {part: set(exports) & _OWN for part, exports in parts.items()}
    kinds = [key for keys in own.values() for key in keys]
    # a database is named after the rank, all other files after the device
    numbered = [part for part, keys in own.items() if part and any(not key.endswith(".db") for key in keys)]
    if len(numbered) < 2 and len(set(kinds)) == len(kinds):
        of_devices = [part for part, exports in parts.items() if any(not key.endswith(".db") for key in exports)]
        device = max(map(_number, of_devices), default=-1)
        return [WorkerFiles(root, root.name, _together(parts.values()), _info_files(root), device)] if parts else []
    common, workers = parts.get("", {}), []
    numbered_kinds = {key for part, keys in own.items() if part and keys for key in parts[part]}
    if numbered_kinds & own.get("", set()):
        # files without a number are of one more of the same kinds
        workers.append(WorkerFiles(root, root.name, common, _info_files(root), several=True))
        common = {}
    for part, exports in parts.items():
        if part and own[part]:
            of_rank = all(key.endswith(".db") for key in exports)
            device = -1 if of_rank else _number(part)
            label = f"/device_{part}" if device >= 0 else f"/rank_{part}" if of_rank else f" {part}"
            info = _info_files(root, part)
            workers.append(_one_of_several(root, f"{root.name}{label}", exports, common, info, device))
    return workers


def _output_workers(root: Path) -> list[WorkerFiles]:
    names = _listed(root / OUTPUT)[0]
    return _with_content(_workers_in(root / OUTPUT, names, root), root / OUTPUT, names)


def _loose_workers(path: Path, names: Sequence[str]) -> list[WorkerFiles]:
    """The workers of files that lie in a folder as they were copied."""
    names = [name for name in names if name not in _CLUSTER_FILES and not _is_info_file(name)]
    return _workers_in(path, names, path, copied=True)


def _with_content(
    workers: list[WorkerFiles], folder: Path, names: Sequence[str], most: int = _MOST_LOOKED_INTO
) -> list[WorkerFiles]:
    """The workers of a folder, with its files that are known by content if no name tells of any work of a device."""
    if any(set(worker.exports) & _WORK for worker in workers):
        return workers
    found = _known_by_content(folder, names, most)
    roles = {known: Export((folder / name,), by_content=True) for name, known in found}
    if len(workers) == 1 and len(roles) == len(found):
        (worker,) = workers
        return [replace(worker, exports={**worker.exports, **roles})]
    return [*workers, *(_of_content(folder / name, known) for name, known in found)]


def _archives(path: Path, names: Sequence[str]) -> list[Path]:
    if all(name.endswith((".json", ".csv", ".log", ".py", ".txt")) for name in names):
        return []
    from .content import archived

    return [path / name for name in names if archived(path / name)]


def _known_by_content(path: Path, names: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Files of a folder that are Ascend's by content, with their roles; if none of ``most`` is, no other is either.

    Empty if there are other traces: such a folder is not Ascend's alone.
    """
    from .content import CLUSTER, is_trace, may_be_own, role_of_content

    found: list[tuple[str, str]] = []
    wanted = [name for name in names if may_be_own(name) and not _is_info_file(name)]
    # what is named as PyTorch's traces tells most
    for number, name in enumerate(sorted(wanted, key=lambda name: not name.endswith(_PYTORCH))):
        if not found and number >= most:
            break
        try:
            known = role_of_content(path / name)
        except OSError:
            continue
        if known and known != CLUSTER:
            found.append((name, known))
        elif name.endswith(_PYTORCH) or is_trace(path / name):
            return []
    return sorted(found, key=lambda each: natural_order(each[0]))


def _msprof_workers(path: Path, names: Sequence[str], folders: Sequence[str]) -> list[WorkerFiles]:
    """The workers of msprof's output: one for each device; several share the files."""
    parts = _files_by_part(path / MSPROF, _listed(path / MSPROF)[0])
    above = _together(_files_by_part(path, [name for name in names if name.endswith(".db")]).values())
    analysed = _listed(path / ANALYSED)[0] if ANALYSED in folders else []
    more = {**above, **{kind: Export((path / ANALYSED / key,)) for key, kind in _ANALYSED.items() if key in analysed}}
    named = [_number(match[1]) for name in folders if (match := _DEVICE.fullmatch(name))]
    devices = sorted({*named, *(_number(part) for part, exports in parts.items() if set(exports) & _OWN)} - {-1})
    info = _info_files(path.parent) if _is_rank_folder(path.parent, *_listed(path.parent)) else ()
    if len(devices) < 2:
        return [WorkerFiles(path, path.name, {**more, **_together(parts.values())}, info, max(devices, default=-1))]
    common = _together(exports for part, exports in parts.items() if _number(part) not in devices)
    own = {
        device: _together(exports for part, exports in parts.items() if _number(part) == device) for device in devices
    }
    return [_one_of_several(path, f"{path.name}/device_{device}", own[device], {**more, **common}, info, device)
            for device in devices]  # fmt: skip


def _old_format_workers(path: Path, folders: Sequence[str]) -> list[WorkerFiles]:
    """Workers of CANN 5 to 6.3: each device's ``summary`` and ``timeline``, and files shared by all devices."""
    devices = [path / name for name in folders if _DEVICE.fullmatch(name)]
    common = [_files_by_part(folder, _listed(folder)[0]) for folder in (
        path / "timeline", path / "host" / "summary", path / "host" / "timeline")] if devices else []  # fmt: skip
    found = []
    # the path may be a device's folder itself
    for device in devices or ([path] if _DEVICE.fullmatch(path.name) else []):
        number, several, exports = int(device.name.rpartition("_")[2][:6]), len(devices) > 1, dict[str, Export]()
        for parts in common:
            # of common files those named after the device, else all
            every = {key: replace(export, shared=several and key in ("msprof.json", "task_time.json"))
                     for key, export in _together(parts.values()).items()}  # fmt: skip
            exports |= {**every, **(parts.get(str(number), {}) if several else {})}
        for part in ("summary", "timeline"):
            exports |= _together(_files_by_part(device / part, _listed(device / part)[0]).values())
        if any(name in _OWN for name in exports):
            name = f"{path.name}/{device.name}" if several else path.name
            found.append(WorkerFiles(path, name, exports, (), number, several))
    return found


def _unexported(path: Path, names: Sequence[str], folders: Sequence[str]) -> Unexported | None:
    what, is_rank = "holds raw output that is not exported yet.", _RANK.fullmatch(path.name) is not None
    if "FRAMEWORK" in folders or (is_rank and any(map(_PROF.fullmatch, folders))):
        return Unexported(path, what, f"Export it: {export_command(path)}")
    parts = [name for name in folders if _DEVICE.fullmatch(name) or name == "host"]
    if any(os.path.isdir(path / name / "data") for name in parts):
        return Unexported(path, what, f"Export it: msprof --export=on --output={shlex.quote(str(path))} (msprof of "
                          "CANN 6: <toolkit>/tools/profiler/bin/msprof)")  # fmt: skip
    # what is left of a rank whose analysis wrote nothing
    if is_rank and (OUTPUT in folders or any(map(_INFO.fullmatch, names))):
        return Unexported(path, "holds no output: its analysis was not finished, or not all of it was copied.",
                          f"Export it where its FRAMEWORK and PROF_* are: {export_command(path)}")  # fmt: skip
    return None


def export_command(rank_folder: Path) -> str:
    """The command that analyses a rank's folder, of torch_npu or MindSpore."""
    kind = "mindspore" if rank_folder.name.endswith("_ms") else "torch_npu"
    where = str(rank_folder).replace("\\", "\\\\").replace("'", "\\'")
    return f"python3 -c \"from {kind}.profiler.profiler import analyse; analyse('{where}')\""


def _enclosing_profile(path: Path) -> Path | None:
    """The nearest parent folder with a profile that a folder (FRAMEWORK, PROF_*, device_0, data) is a part of."""
    part = re.compile(rf"FRAMEWORK|PROF_.*|device_\d+|host|data|summary|timeline|sqlite|logs|{OUTPUT}|{MSPROF}")
    own = path.absolute()
    raw = None
    for above in list(own.parents)[:3]:
        if not part.fullmatch(own.name):
            break
        found = _Search().of_folder(above, 0)
        if found.workers:
            return above
        raw = above if found.raw else raw
        own = above
    return raw


def _listed(path: Path) -> tuple[list[str], list[str]]:
    names, folders = [], []
    try:
        with os.scandir(path) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_ENTRIES:
                    break
                if entry.is_dir():
                    if not entry.name.startswith("."):
                        folders.append(entry.name)
                # a link to nothing is told when it is opened
                elif entry.is_file() or (entry.is_symlink() and not os.path.exists(entry)):
                    names.append(entry.name)
    except OSError:
        return [], []
    return sorted(names, key=natural_order), sorted(folders, key=natural_order)


def relative(paths: Sequence[Path], to: Path) -> Iterator[str]:
    """Paths as they are shown: relative to the opened path, with ``/``."""
    base = to if os.path.isdir(to) else to.parent
    for path in paths:
        yield os.path.relpath(path, base).replace(os.sep, "/")


# -- the list of a folder of several recordings: what names of folders and both ends of timelines say

#: Host and process, and time of the start, in the name of a rank's folder.
RECORDING: Final = lazy_pattern(r"(.+_\d+)_(\d{14})\d*_ascend_(?:pt|ms)")


def sessions(workers: Sequence[WorkerFiles]) -> list[SessionEntry]:
    """The sessions that workers are recordings of, by run and start; empty if all are ranks of one run, each once."""
    # imports numpy
    from tpuprof_tui.sources.runs import UnplacedRecording, session_entries

    folders = {worker.root: worker for worker in workers}
    named = [each.rank for each in ranks_in_names([root.name for root in folders])]
    above = [each.rank for each in ranks_in_names([root.parent.name for root in folders])]
    extents = list(map(_extent, folders.values()))
    timed = None not in extents
    recordings, guessed = [], []
    for (root, worker), own, of_parent, times in zip(folders.items(), named, above, extents, strict=True):
        match = RECORDING.fullmatch(root.name)
        guess = of_parent if own is None else own
        rank = guess if worker.rank_of_file is None else worker.rank_of_file
        # clocks of timelines and times of names do not compare
        start, end = times if timed and times is not None else (seconds_of(match[2]) * 10**9 if match else 0,) * 2
        recordings.append(UnplacedRecording(match[1] if match else root.name, start, end, rank,
                                   "" if rank is None else "ranks", open_ended=not timed))  # fmt: skip
        guessed.append(worker.rank_of_file is None)
    # ranks that no name tells are those of one run, unless a process was recorded twice or times tell
    known = timed or all(each.rank is not None for each in recordings)
    if not known and len({each.worker for each in recordings}) == len(recordings):
        return []
    sizes = [sum(os.path.getsize(file) for file in worker.every_file() if file.is_file())
             for worker in folders.values()]  # fmt: skip
    return session_entries(recordings, [root.name for root in folders], sizes, guessed)


def _extent(worker: WorkerFiles) -> tuple[int, int] | None:
    """First and last time of its timeline, ns; None if it has none whose end is known."""
    from tpuprof_tui.sources.chrome.times import extent  # imports numpy

    files = worker.paths(worker.timeline_role)
    tails = list(map(last_bytes, files))
    found = [extent(first_bytes(file), tail) for file, tail in zip(files, tails, strict=True)]
    known = [each for each in found if each is not None]
    if not all(tails) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)
