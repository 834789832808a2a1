"""Finds the workers at a path: folders of ranks, of msprof, of a cluster, or files; by names, else by content."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.sources.source import natural_order

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
MSPROF: Final = "mindstudio_profiler_output"

_RANK: Final = re.compile(r".*_ascend_(?:pt|ms)")
_INFO: Final = re.compile(r"profiler_info(?:_(\d+))?\.json")
_DATABASE: Final = re.compile(r"ascend_(?:pytorch|mindspore)_profiler_(\d+)\.db")
_PROF: Final = re.compile(r"PROF_.*")
_DEVICE: Final = re.compile(r"device_(\d+)")
#: File name of a table or timeline: its kind, then device, model and iteration, slice, export time; a copy's number.
_FILE: Final = re.compile(
    r"(?P<stem>[A-Za-z][A-Za-z0-9_]*?)(?P<numbers>(?:_(?:slice_)?[-\d]+)*)(?: ?\((?P<copy>\d{1,4})\))?"
    r"\.(?P<kind>csv|json|db)(?P<packed>\.gz)?"
)
_NUMBER: Final = re.compile(r"_(slice_)?([-\d]+)")
#: Digits of an export time, and the least pause in seconds between two exports that no file tells apart.
_TIME_DIGITS: Final = 14
_PAUSE: Final = 600
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
#: Most entries of a folder that are listed, most folders that are, and most files of a folder and named as PyTorch's
#: that are looked into before one of Ascend is found.
_MOST_ENTRIES: Final = 20_000
_MOST_FOLDERS: Final = 2_000
_MOST_LOOKED_INTO, _MOST_OF_PYTORCH, _MOST_ARCHIVES = 64, 4, 1000
#: Endings of names that PyTorch's profiler gives to its traces.
_PYTORCH: Final = (".pt.trace.json", ".pt.trace.json.gz")


class WorkerFiles(Struct, frozen=True):
    """The files of one worker.

    Attributes:
        root: The folder that the worker is named after.
        name: Its name.
        by_role: Its files in order, by role (``kernel_details.csv``, without slice and time).
        info: The files that state how it was recorded; a number in their name is the rank.
        device: Device number that its folder or files are named with; -1 if none is.
        shared: Roles of the files that contain other devices too.
        several: Whether it is one of several devices of a folder, so that the folder's rank is not its own.
        lacking: Numbers of the slices that are missing, by role.
        renamed: Roles that were recognised by content.
    """

    root: Path
    name: str
    by_role: Mapping[str, tuple[Path, ...]]
    info: tuple[Path, ...] = ()
    device: int = -1
    shared: frozenset[str] = frozenset()
    several: bool = False
    lacking: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    renamed: frozenset[str] = frozenset()

    @property
    def rank_of_file(self) -> int | None:
        """The rank in the name of the profiler's info file or database; None if there is none."""
        every = [path.name for paths in self.by_role.values() for path in paths]
        names = every if self.several else [*(path.name for path in self.info), *every]
        found = (match[1] for name in names if (match := _INFO.fullmatch(name) or _DATABASE.fullmatch(name)))
        return next((int(each) for each in found if each and len(each) < 9), None)

    @property
    def is_rank_folder(self) -> bool:
        """Whether it is a rank's folder, which torch_npu or MindSpore analyses."""
        return bool(self.info) or _RANK.fullmatch(self.root.name) is not None

    def every_file(self) -> list[Path]:
        """All files of the worker."""
        return [*(path for paths in self.by_role.values() for path in paths), *self.info]

    def of_device(self, device: int) -> WorkerFiles:
        """The same files, for one of the devices that they contain."""
        return replace(self, name=f"{self.name}/device_{device}", device=device, shared=frozenset(self.by_role),
                       several=True)  # fmt: skip


class Found(Struct, frozen=True):
    """Contents of a path.

    Attributes:
        workers: The workers.
        cluster: Files of msprof-analyze about all of them, by name.
        raw: Recordings not yet exported: the folder, and the command that exports it.
        archives: Archives of such profiles.
        loose: Files that stand beside the folders of ranks.
        others: Traces of PyTorch beside them.
    """

    workers: tuple[WorkerFiles, ...] = ()
    cluster: Mapping[str, Path] = field(default_factory=dict)
    raw: tuple[tuple[Path, str], ...] = ()
    archives: tuple[Path, ...] = ()
    loose: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.workers or self.cluster or self.raw or self.archives)

    @property
    def by_content(self) -> bool:
        """Whether only content tells that these are Ascend's."""
        return all(worker.renamed and len(worker.renamed) == len(worker.by_role) for worker in self.workers)


def found_at(path: Path) -> Found:
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


def role(name: str) -> str:
    """Role of a file, by its name: ``op_summary_0_slice_1_20260511093035.csv`` is ``op_summary.csv``."""
    match = _FILE.fullmatch(name)
    return f"{match['stem']}.{match['kind']}" if match else name


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


class NamedFile(Struct, frozen=True):
    """A file by the parts of its name ``KIND[_DEVICE][_MODEL][_ITERATION][_slice_N][_TIME]``.

    Attributes:
        name: Its name.
        role: Its kind with its extension.
        part: What tells apart files of several devices or ranks: the device's number, or that of a copy in brackets.
        rest: Its other numbers.
        slice: Number of the slice; -1: it is not cut.
        time: Digits of the time of its export; empty if it has none.
    """

    name: str
    role: str
    part: str = ""
    rest: tuple[str, ...] = ()
    slice: int = -1
    time: str = ""

    @property
    def seconds(self) -> float:
        """The time in seconds; 0 without one, or if it is no date."""
        from datetime import datetime

        try:
            return datetime.strptime(self.time[:_TIME_DIGITS], "%Y%m%d%H%M%S").timestamp() if self.time else 0
        except (ValueError, OverflowError):
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
    # torch_npu names its database after the rank
    part = numbers.pop(0) if numbers else ""
    part += f"({match['copy']})" if match["copy"] else ""
    return NamedFile(name, role(name), part, tuple(numbers), cut, time)


def newest_export(files: Sequence[NamedFile]) -> list[NamedFile]:
    """The files of the newest export of one kind and device, slices in order.

    Files belong to one export if they were written within a short while and none repeats another: an uncut file
    repeats every slice. Where one does, the newer export begins behind the longest pause between the two.
    """
    export: list[NamedFile] = []
    places: dict[tuple[tuple[str, ...], int], int] = {}
    for each in sorted(files, key=lambda file: (file.time, file.rest, file.slice, natural_order(file.name))):
        if export and each.seconds - export[-1].seconds > _PAUSE:
            export, places = [], {}
        export.append(each)
        keys = ((each.rest, each.slice), (each.rest, -1)) if each.slice >= 0 else ((each.rest, -2), (each.rest, -1))
        before = max((places.get(key, -1) for key in keys), default=-1)
        if before >= 0:
            begin = max(range(before + 1, len(export)),
                        key=lambda place: (export[place].seconds - export[place - 1].seconds, place))  # fmt: skip
            export = export[begin:]
            places = {}
        for place, file in enumerate(export) if before >= 0 else [(len(export) - 1, each)]:
            places[file.rest, file.slice] = place
            places[file.rest, -2] = place  # of any slice
    return sorted(export, key=lambda file: ([*map(natural_order, file.rest)], file.slice, natural_order(file.name)))


class _Files(Struct, frozen=True):
    """The files of a part of a folder: by role, and the slices that are missing."""

    by_role: dict[str, tuple[Path, ...]]
    lacking: dict[str, tuple[int, ...]]


def _files_by_part(folder: Path, names: Sequence[str]) -> dict[str, _Files]:
    """The newest export of each kind of file, by part; a packed file beside the same unpacked one is left out."""
    present = set(names)
    found: dict[str, dict[str, list[NamedFile]]] = {}
    for name in names:
        file = named_file(name)
        if file is not None and not (name.endswith(".gz") and name[: -len(".gz")] in present):
            found.setdefault(file.part, {}).setdefault(file.role, []).append(file)
    made = {}
    for part, by_role in sorted(found.items(), key=lambda each: natural_order(each[0])):
        exports = {key: newest_export(files) for key, files in sorted(by_role.items())}
        lacking = {key: each for key, files in exports.items() if (each := _missing_slices(files))}
        made[part] = _Files({key: tuple(folder / file.name for file in files) for key, files in exports.items()},
                            lacking)  # fmt: skip
    return made


def _missing_slices(files: Sequence[NamedFile]) -> tuple[int, ...]:
    slices = {file.slice for file in files}
    return tuple(number for number in range(min(max(slices), 1000)) if number not in slices) if -1 not in slices else ()


def _together(parts: Mapping[str, _Files]) -> _Files:
    """The files of all parts as those of one worker: only of the first part that has a kind."""
    by_role: dict[str, tuple[Path, ...]] = {}
    lacking: dict[str, tuple[int, ...]] = {}
    for each in parts.values():
        lacking |= {key: slices for key, slices in each.lacking.items() if key not in by_role}
        by_role = {**each.by_role, **by_role}
    return _Files(dict(sorted(by_role.items())), lacking)


# -- one level


def _in_output(path: Path) -> bool:
    """Whether a file is in an exporter's output folder, or states how the output next to it was recorded."""
    inside = path.parent.name in (OUTPUT, MSPROF) and _FILE.fullmatch(path.name) is not None
    return inside or (_is_info_file(path.name) and os.path.isdir(path.parent / OUTPUT))


def _old_format_root(folder: Path) -> Path | None:
    """The device's folder or PROF_* above a folder ``summary`` or ``timeline`` of CANN 5 to 6.3; None for others."""
    if folder.name not in ("summary", "timeline"):
        return None
    above = folder.parent.parent if folder.parent.name == "host" else folder.parent
    return above if _old_format_workers(above, _listed(above)[1]) else None


def _is_info_file(name: str) -> bool:
    """Whether a file states how the files next to it were recorded."""
    return _INFO.fullmatch(name) is not None or name == "profiler_metadata.json"


def _of_file(path: Path) -> Found:
    if path.name in _CLUSTER_FILES:
        return Found(cluster={path.name: path})
    if not path.is_file():
        return Found()
    if (old := _old_format_root(path.parent)) is not None and _FILE.fullmatch(path.name) is not None:
        return _Search().of_folder(old, 0)
    if _in_output(path):
        return _Search().of_folder(path.parent, 0)
    if is_own(path.name):
        return Found((WorkerFiles(path, path.name, {role(path.name): (path,)}),))
    # few commands need these
    from .archives import archived
    from .content import CLUSTER, role_of_content

    if archived(path):
        return Found(archives=(path,))
    known = role_of_content(path)
    if known == CLUSTER:
        return Found(cluster={known: path})
    return Found((_of_content(path, known),)) if known else Found()


def _of_content(path: Path, known: str) -> WorkerFiles:
    """The worker of a file that is named otherwise than its exporter names it."""
    return WorkerFiles(path, path.name, {known: (path,)}, renamed=frozenset((known,)))


def _of_run(path: Path) -> Found:
    """Profiles in a folder or up to two levels below."""
    return _Search().of_folder(path, 2)


class _Search:
    """One search below a folder; the number of folders that it lists is bounded."""

    def __init__(self) -> None:
        self._left = _MOST_FOLDERS

    def of_folder(self, path: Path, depth: int, *, opened: bool = True) -> Found:
        """Profiles in a folder, or up to ``depth`` levels below it.

        Args:
            path: The folder.
            depth: Levels below it that are searched.
            opened: Whether it is the opened folder itself, or right below it.
        """
        self._left -= 1
        names, folders = _listed(path)
        cluster: dict[str, Path] = {name: path / name for name in _CLUSTER_FILES if name in names}
        found = _exported(path, names, folders)
        if found:
            return Found(tuple(found))
        own = [name for name in names if is_own(name) and name not in _CLUSTER_FILES]
        if not opened and not {role(name) for name in own} & _WORK:
            own = []
        loose: list[WorkerFiles] = []
        if own and not cluster:
            loose = _loose_workers(path, names)
        elif not own and not cluster and opened:
            loose = [_of_content(path / name, known) for name, known in _known_by_content(path, names)]
        raw = _unexported(path, folders)
        if raw is not None and not cluster and not loose:
            return Found(raw=(raw,))
        below = [self.of_folder(path / name, depth - 1, opened=depth > 1) for name in folders[: max(self._left, 0)]
                 ] if depth and raw is None else []  # fmt: skip
        workers = [worker for each in below for worker in each.workers]
        for each in below:
            cluster = {**each.cluster, **cluster}
        workers.sort(key=lambda worker: natural_order(str(worker.root)))
        beside = tuple(file for worker in loose for file in worker.every_file()) if workers else ()
        archives = _archives(path, names[:_MOST_ARCHIVES]) if opened else []
        archives += (file for each in below for file in each.archives)
        others = tuple(path / name for name in names if name.endswith(_PYTORCH)) if workers else ()
        return Found((*loose, *workers), cluster, tuple(each for found in below for each in found.raw), tuple(archives),
                     (*beside, *(file for each in below for file in each.loose)),
                     (*others, *(file for each in below for file in each.others)))  # fmt: skip


def _exported(path: Path, names: Sequence[str], folders: Sequence[str]) -> Sequence[WorkerFiles]:
    """Workers of a folder that an exporter wrote: of a rank, of msprof, or such an output folder; else none."""
    if OUTPUT in folders and (found := _output_workers(path / OUTPUT, path)):
        return found
    if MSPROF in folders and (found := [each for each in _msprof_workers(path, names, folders) if each.by_role]):
        return found
    if path.name in (OUTPUT, MSPROF) and any(map(is_own, names)):
        above = path.parent
        return _msprof_workers(above, [], _listed(above)[1]) if path.name == MSPROF else _output_workers(path, above)
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
    """Workers of a PROF_* folder: of its output, else of its database."""
    names, folders = _listed(path)
    return _exported(path, names, folders) or (_loose_workers(path, names) if any(map(is_own, names)) else [])


def _is_rank_folder(path: Path, names: Sequence[str], folders: Sequence[str]) -> bool:
    return bool(_RANK.fullmatch(path.name)) or "FRAMEWORK" in folders or any(map(_is_info_file, names))


def _info_files(folder: Path, part: str = "") -> tuple[Path, ...]:
    """The files of a folder that state how it was recorded; of several ranks, those of a part."""
    found = sorted(name for name in _listed(folder)[0] if _is_info_file(name))
    own = [name for name in found if (match := _INFO.fullmatch(name)) and match[1] == part]
    return tuple(folder / name for name in own or found)


def _output_workers(output: Path, root: Path) -> list[WorkerFiles]:
    """The worker of ``ASCEND_PROFILER_OUTPUT``, which is of one rank; none if there are no files."""
    parts = _files_by_part(output, _listed(output)[0])
    if _are_several(parts):
        return _workers_of_parts(root, root.name, parts)
    files = _together(parts)
    return [WorkerFiles(root, root.name, files.by_role, _info_files(root), lacking=files.lacking)] if parts else []


def _loose_workers(path: Path, names: Sequence[str]) -> list[WorkerFiles]:
    """The workers of files that lie in a folder as they were copied."""
    parts = _files_by_part(path, [name for name in names if name not in _CLUSTER_FILES and not _is_info_file(name)])
    if _are_several(parts):
        return _workers_of_parts(path, path.name, parts)
    files = _together(parts)
    devices = {int(part) for part, each in parts.items() if part.isdecimal() and len(part) < 6
               and any(not key.endswith(".db") for key in each.by_role)}  # fmt: skip
    return [WorkerFiles(path, path.name, files.by_role, _info_files(path), max(devices, default=-1),
                        lacking=files.lacking)]  # fmt: skip


def _are_several(parts: Mapping[str, _Files]) -> bool:
    """Whether files are numbered as those of several devices or ranks are: two numbers, or two files of one kind."""
    own = [{key for key in each.by_role if key in _OWN} for each in parts.values()]
    numbered = [part for part, keys in zip(parts, own, strict=True) if part and keys]
    kinds = [key for keys in own for key in keys]
    return len(numbered) > 1 or len(set(kinds)) < len(kinds)


def _workers_of_parts(root: Path, name: str, parts: Mapping[str, _Files]) -> list[WorkerFiles]:
    """A worker for each number of files; files without one are of all of them, or one more of the same kinds."""
    common = parts.get("", _Files({}, {}))
    numbered = {part: each for part, each in parts.items() if part and set(each.by_role) & _OWN}
    kinds = {key for each in numbered.values() for key in each.by_role}
    workers = []
    if kinds & set(common.by_role) & _OWN:
        workers.append(WorkerFiles(root, name, common.by_role, _info_files(root), several=True, lacking=common.lacking))
        common = _Files({}, {})
    for part, each in numbered.items():
        of_rank = all(key.endswith(".db") for key in each.by_role)  # torch_npu names them after the rank
        device = int(part) if part.isdecimal() and len(part) < 6 and not of_rank else -1
        label = f"{name}/device_{part}" if device >= 0 else f"{name}/rank_{part}" if of_rank else f"{name} {part}"
        shared = {key: paths for key, paths in common.by_role.items() if key not in each.by_role}
        workers.append(WorkerFiles(root, label, {**shared, **each.by_role}, _info_files(root, part), device,
                                   frozenset(shared) if device >= 0 else frozenset(), several=True,
                                   lacking=common.lacking | each.lacking))  # fmt: skip
    return workers


def _archives(path: Path, names: Sequence[str]) -> list[Path]:
    if all(name.endswith((".json", ".csv", ".log", ".py", ".txt")) for name in names):
        return []
    from .archives import archived

    return [path / name for name in names if archived(path / name)]


def _known_by_content(path: Path, names: Sequence[str]) -> list[tuple[str, str]]:
    """Files of a folder that are Ascend's by content, with their roles."""
    from .content import CLUSTER, is_trace, may_be_own, role_of_content

    found: list[tuple[str, str]] = []
    looked = of_pytorch = 0
    for name in filter(may_be_own, names):
        if _is_info_file(name):
            continue
        named = name.endswith(_PYTORCH)
        if not found and (looked >= _MOST_LOOKED_INTO or (named and of_pytorch >= _MOST_OF_PYTORCH)):
            continue
        looked, of_pytorch = looked + 1, of_pytorch + named
        try:
            known = role_of_content(path / name)
        except OSError:
            continue
        if known and known != CLUSTER:
            found.append((name, known))
    # other traces beside them: the folder is not Ascend's alone
    own = {name for name, _ in found}
    others = (name for name in names if found and name not in own and not _is_info_file(name))
    return [] if any(name.endswith(_PYTORCH) or is_trace(path / name) for name in others) else found


def _devices(folders: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in folders if (match := _DEVICE.fullmatch(name)) and len(match[1]) < 6]


def _msprof_workers(path: Path, names: Sequence[str], folders: Sequence[str]) -> list[WorkerFiles]:
    """The workers of msprof's output: one for each device; several share the files."""
    parts = _files_by_part(path / MSPROF, _listed(path / MSPROF)[0])
    above = _together(_files_by_part(path, [name for name in names if name.endswith(".db")])).by_role
    analysed = _listed(path / ANALYSED)[0] if ANALYSED in folders else []
    more = {**above, **{kind: (path / ANALYSED / key,) for key, kind in _ANALYSED.items() if key in analysed}}
    numbers = {int(part) for part, each in parts.items()
               if part.isdecimal() and len(part) < 6 and set(each.by_role) & _OWN}  # fmt: skip
    devices = sorted({*_devices(folders), *numbers})
    info = _info_files(path.parent) if _is_rank_folder(path.parent, *_listed(path.parent)) else ()
    if len(devices) < 2:
        files = _together(parts)
        by_role = {**more, **files.by_role}
        return [WorkerFiles(path, path.name, by_role, info, devices[0] if devices else -1, lacking=files.lacking)]
    found = []
    for device in devices:
        own = parts.get(str(device), _Files({}, {}))
        common = _together({part: each for part, each in parts.items() if part not in map(str, devices)})
        shared = {key: paths for key, paths in {**more, **common.by_role}.items() if key not in own.by_role}
        found.append(WorkerFiles(path, f"{path.name}/device_{device}", {**shared, **own.by_role}, info, device,
                                 frozenset(shared), several=True, lacking=common.lacking | own.lacking))  # fmt: skip
    return found


def _old_format_workers(path: Path, folders: Sequence[str]) -> list[WorkerFiles]:
    """Workers of CANN 5 to 6.3: each device's ``summary`` and ``timeline``, and files shared by all devices."""
    devices = [path / name for name in folders if _DEVICE.fullmatch(name)]
    common: dict[str, dict[str, tuple[Path, ...]]] = {}
    for folder in (path / "timeline", path / "host" / "summary", path / "host" / "timeline") if devices else ():
        for part, each in _files_by_part(folder, _listed(folder)[0]).items():
            for key, paths in each.by_role.items():
                common.setdefault(key, {})[part] = paths
    found = []
    # the path may be a device's folder itself
    for device in devices or ([path] if _DEVICE.fullmatch(path.name) else []):
        number = int(device.name.rpartition("_")[2][:6])
        # of common files those named after the device, else all
        files, shared = {}, set()
        for key, of_part in common.items():
            own = of_part.get(str(number)) if len(devices) > 1 else None
            files[key] = own or tuple(path for paths in of_part.values() for path in paths)
            shared |= {key} if own is None else set()
        for part in ("summary", "timeline"):
            of_device = _together(_files_by_part(device / part, _listed(device / part)[0])).by_role
            files |= of_device
            shared -= set(of_device)
        if any(name in _OWN for name in files):
            several = len(devices) > 1
            name = f"{path.name}/{device.name}" if several else path.name
            others = [key for key in shared if key in ("msprof.json", "task_time.json")] if several else []
            found.append(WorkerFiles(path, name, files, device=number, shared=frozenset(others), several=several))
    return found


def _unexported(path: Path, folders: Sequence[str]) -> tuple[Path, str] | None:
    """A recording in this folder that is not exported yet, with the command that exports it; else None."""
    if ("FRAMEWORK" in folders or _RANK.fullmatch(path.name)) and any(
        _PROF.fullmatch(name) or name == "FRAMEWORK" for name in folders
    ):  # fmt: skip
        return path, export_command(path)
    parts = [name for name in folders if _DEVICE.fullmatch(name) or name == "host"]
    if any(os.path.isdir(path / name / "data") for name in parts):
        command = f"msprof --export=on --output={shlex.quote(str(path))}"
        return path, f"{command} (msprof of CANN 6: <toolkit>/tools/profiler/bin/msprof)"
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
    """Names of the files and of the folders in a folder, in natural order; empty if it cannot be listed."""
    names, folders = [], []
    try:
        with os.scandir(path) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_ENTRIES:
                    break
                if entry.is_dir():
                    if not entry.name.startswith("."):
                        folders.append(entry.name)
                elif entry.is_file():
                    names.append(entry.name)
    except OSError:
        return [], []
    return sorted(names, key=natural_order), sorted(folders, key=natural_order)


def relative(paths: Sequence[Path], to: Path) -> Iterator[str]:
    """Paths as they are shown: relative to the opened path, with ``/``."""
    base = to if os.path.isdir(to) else to.parent
    for path in paths:
        yield os.path.relpath(path, base).replace(os.sep, "/")
