"""Finds the workers at a path, by names alone: folders of ranks, of msprof, of a cluster, or single files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tpuprof_tui.sources.source import natural_order

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
MSPROF: Final = "mindstudio_profiler_output"

_RANK: Final = re.compile(r".*_ascend_(?:pt|ms)")
_INFO: Final = re.compile(r"profiler_info(?:_(\d+))?\.json")
_PROF: Final = re.compile(r"PROF_.*")
_DEVICE: Final = re.compile(r"device_(\d+)")
#: File name of a table or timeline: its name, then slice, device, model, iteration and export time.
_FILE: Final = re.compile(
    r"(?P<stem>[A-Za-z][A-Za-z0-9_]*?)(?:_slice_(?P<slice>\d+))?(?:_[-\d]+)*\.(?P<kind>csv|json|db)"
)
_TIME: Final = re.compile(r"_(\d{14})\.")
#: File names that only Ascend profiles have.
_OWN: Final = frozenset(
    ("trace_view.json", "kernel_details.csv", "op_summary.csv", "op_statistic.csv", "operator_details.csv",
     "step_trace_time.csv", "api_statistic.csv", "memory_record.csv", "operator_memory.csv", "npu_module_mem.csv",
     "msprof.json", "ascend_pytorch_profiler.db", "ascend_mindspore_profiler.db", "analysis.db", "msprof.db",
     "task_time.csv", "communication_matrix.json", "prof_rule.json", "pytorch_operator_view.csv", "l2_cache.csv",
     "thread_group.json", "task_queue.json", "msprof_tx.csv", "msprof_tx.json", "ge_op_execute.csv",
     "acl_statistic.csv", "runtime_api.csv"),
)  # fmt: skip
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
#: Most entries of a folder that are listed.
_MOST_ENTRIES: Final = 20_000


class WorkerFiles(Struct, frozen=True):
    """The files of one worker.

    Attributes:
        root: The folder that the worker is named after.
        name: Its name.
        by_role: Its files in order, by role (``kernel_details.csv``, without slice and time).
        info: The files that state how it was recorded; a number in their name is the rank.
        device: Device number; -1 if no folder states it.
        shared: Whether its files contain other devices too.
    """

    root: Path
    name: str
    by_role: Mapping[str, tuple[Path, ...]]
    info: tuple[Path, ...] = ()
    device: int = -1
    shared: bool = False

    @property
    def rank_of_file(self) -> int | None:
        """The rank in the name of the profiler's info file; None if there is none."""
        found = (match[1] for path in self.info if (match := _INFO.fullmatch(path.name)) and match[1])
        return next((int(each) for each in found if len(each) < 9), None)

    @property
    def rank_of_folder(self) -> int | None:
        """The rank in the folder's name, which the user chose; None if there is none."""
        found = re.search(r"rank_?(\d{1,8})", self.name, re.IGNORECASE)
        return int(found[1]) if found else None

    def every_file(self) -> list[Path]:
        """All files of the worker."""
        return [*(path for paths in self.by_role.values() for path in paths), *self.info]


class Found(Struct, frozen=True):
    """Contents of a path.

    Attributes:
        workers: The workers.
        cluster: Files of msprof-analyze about all of them, by name.
        raw: Recordings not yet exported: the folder, and the command that exports it.
    """

    workers: tuple[WorkerFiles, ...] = ()
    cluster: Mapping[str, Path] = field(default_factory=dict)
    raw: tuple[tuple[Path, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.workers or self.cluster or self.raw)


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
            return _of_folder(above, 0) or found
    return found


def is_own(name: str) -> bool:
    """Whether only Ascend profiles have a file of this name."""
    return role(name) in _OWN or name in _CLUSTER_FILES


def role(name: str) -> str:
    """Role of a file, by its name: ``op_summary_slice_1_20260511093035.csv`` is ``op_summary.csv``."""
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
        return _of_folder(old, 0)
    if _in_output(path):
        return _of_folder(path.parent, 0)
    if not is_own(path.name):
        return Found()
    return Found((WorkerFiles(path, path.name, {role(path.name): (path,)}),))


def _of_run(path: Path) -> Found:
    """Profiles in a folder or one level below; two levels below if all of its folders contain profiles."""
    found = _of_folder(path, 1)
    if found:
        return found
    _, folders = _listed(path)
    return _of_folder(path, 2) if folders and all(_of_folder(path / name, 1) for name in folders) else found


def _of_folder(path: Path, depth: int) -> Found:
    """Profiles in a folder, or up to ``depth`` levels below it."""
    names, folders = _listed(path)
    own = [name for name in names if is_own(name)]
    cluster: dict[str, Path] = {name: path / name for name in _CLUSTER_FILES if name in names}
    if OUTPUT in folders:
        worker = _worker_files(path / OUTPUT, path)
        if worker.by_role:
            return Found((worker,))
    if MSPROF in folders:
        return Found(tuple(_msprof_workers(path, names, folders)))
    if path.name == MSPROF and own and len(_devices(above := _listed(path.parent)[1])) > 1:
        return Found(tuple(_msprof_workers(path.parent, [], above)))
    if path.name in (OUTPUT, MSPROF) and own:
        return Found((_worker_files(path, path.parent),))
    if own and not cluster:
        return Found((_worker_files(path, path),))
    old = _old_format_workers(path, folders)
    if old:
        return Found(tuple(old))
    raw = _unexported(path, folders)
    if raw is not None and not cluster:
        return Found(raw=(raw,))
    below = [_of_folder(path / name, depth - 1) for name in folders] if depth else []
    workers = [each for found in below for each in found.workers]
    for found in below:
        cluster = {**found.cluster, **cluster}
    workers.sort(key=lambda worker: natural_order(str(worker.root)))
    return Found(tuple(workers), cluster, tuple(each for found in below for each in found.raw))


def _worker_files(output: Path, root: Path) -> WorkerFiles:
    """The worker of an output folder."""
    names, _ = _listed(output)
    above, _ = _listed(root)
    info = tuple(sorted(root / name for name in above if _is_info_file(name)))
    return WorkerFiles(root, root.name, _files(output, names), info)


def _devices(folders: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in folders if (match := _DEVICE.fullmatch(name)) and len(match[1]) < 6]


def _msprof_workers(path: Path, names: Sequence[str], folders: Sequence[str]) -> list[WorkerFiles]:
    """The workers of msprof's output: one for each device; several share the files."""
    inside, _ = _listed(path / MSPROF)
    files = dict(_files(path / MSPROF, inside))
    files |= {key: paths for key, paths in _files(path, names).items() if key not in files and key.endswith(".db")}
    analysed = _files(path / ANALYSED, _listed(path / ANALYSED)[0]) if ANALYSED in folders else {}
    files |= {kind: analysed[key] for key, kind in _ANALYSED.items() if key in analysed and kind not in files}
    devices = _devices(folders)
    if len(devices) < 2:
        return [WorkerFiles(path, path.name, files, device=devices[0] if devices else -1)]
    return [WorkerFiles(path, f"{path.name}/device_{device}", files, device=device, shared=True) for device in devices]


def _old_format_workers(path: Path, folders: Sequence[str]) -> list[WorkerFiles]:
    """Workers of CANN 5 to 6.3: each device's ``summary`` and ``timeline``, and files shared by all devices."""
    devices = [path / name for name in folders if _DEVICE.fullmatch(name)]
    shared: dict[str, tuple[Path, ...]] = {}
    for folder in (path / "timeline", path / "host" / "summary", path / "host" / "timeline") if devices else ():
        shared |= _files(folder, _listed(folder)[0])
    found = []
    # the path may be a device's folder itself
    for device in devices or ([path] if _DEVICE.fullmatch(path.name) else []):
        number = int(device.name.rpartition("_")[2][:6])
        files = {role: _of_device(paths, number) if len(devices) > 1 else paths for role, paths in shared.items()}
        for part in ("summary", "timeline"):
            files |= _files(device / part, _listed(device / part)[0])
        if any(name in _OWN for name in files):
            name = path.name if len(devices) < 2 else f"{path.name}/{device.name}"
            # timelines in its folder or named after it contain no other device
            tasks = [task for role in ("msprof.json", "task_time.json") for task in files.get(role, ())]
            others = any(device not in task.parents and not _names(task, number) for task in tasks)
            found.append(WorkerFiles(path, name, files, device=number, shared=others and len(devices) > 1))
    return found


def _of_device(paths: tuple[Path, ...], device: int) -> tuple[Path, ...]:
    """The files named after a device, ``msprof_<device>_<model>_<iteration>.json``; all files if there are none."""
    return tuple(path for path in paths if _names(path, device)) or paths


def _names(path: Path, device: int) -> bool:
    return re.match(rf"[A-Za-z_]+_{device}(?=[_.])", path.name) is not None


def _files(folder: Path, names: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    """Files by role: slices in order; of several exports only the last."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        if match:
            time = _TIME.search(name)
            slice_number = int(match["slice"]) if match["slice"] and len(match["slice"]) < 9 else -1
            found.setdefault(role(name), []).append((time[1] if time else "", slice_number, name))
    files = {}
    for key, each in sorted(found.items()):
        last = max(time for time, _, _ in each)
        kept = sorted((slice_number, natural_order(name), name) for time, slice_number, name in each if time == last)
        files[key] = tuple(folder / name for *_, name in kept)
    return files


def _unexported(path: Path, folders: Sequence[str]) -> tuple[Path, str] | None:
    """A recording in this folder that is not exported yet, with the command that exports it; else None."""
    if ("FRAMEWORK" in folders or _RANK.fullmatch(path.name)) and any(
        _PROF.fullmatch(name) or name == "FRAMEWORK" for name in folders
    ):  # fmt: skip
        kind = "mindspore" if path.name.endswith("_ms") else "torch_npu"
        where = str(path).replace("\\", "\\\\").replace("'", "\\'")
        return path, f"python3 -c \"from {kind}.profiler.profiler import analyse; analyse('{where}')\""
    parts = [name for name in folders if _DEVICE.fullmatch(name) or name == "host"]
    if any(os.path.isdir(path / name / "data") for name in parts):
        command = f"msprof --export=on --output={shlex.quote(str(path))}"
        return path, f"{command} (msprof of CANN 6: <toolkit>/tools/profiler/bin/msprof)"
    return None


def _enclosing_profile(path: Path) -> Path | None:
    """The nearest parent folder with a profile that a folder (FRAMEWORK, PROF_*, device_0, data) is a part of."""
    part = re.compile(rf"FRAMEWORK|PROF_.*|device_\d+|host|data|summary|timeline|sqlite|logs|{OUTPUT}|{MSPROF}")
    own = path.absolute()
    raw = None
    for above in list(own.parents)[:3]:
        if not part.fullmatch(own.name):
            break
        found = _of_folder(above, 0)
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
