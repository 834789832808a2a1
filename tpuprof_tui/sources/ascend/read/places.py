"""What a path can be: folders of ranks, their output, msprof's, a cluster's, and loose files; told by names alone."""

from __future__ import annotations

import os
import re
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
#: What stands behind the name of a table or timeline: a slice, a device, a model, an iteration, the time of the export.
_FILE: Final = re.compile(
    r"(?P<stem>[A-Za-z][A-Za-z0-9_]*?)(?:_slice_(?P<slice>\d+))?(?:_[-\d]+)*\.(?P<kind>csv|json|db)"
)
_TIME: Final = re.compile(r"_(\d{14})\.")
#: Files that by their name alone are Ascend's.
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
#: Folder that `msprof --analyze=on` writes beside the output, and what is read of it, by what it stands for.
ANALYSED: Final = "analyze"
_ANALYSED: Final = {
    "communication.json": "communication.json", "communication_matrix.json": "communication_matrix.json",
    "communication_analyzer.db": "analysis.db",
}  # fmt: skip
#: Entries of a folder that are looked at.
_MOST_ENTRIES: Final = 20_000


class Place(Struct, frozen=True):
    """Where what one worker recorded lies.

    Attributes:
        root: The folder that the worker is named after.
        name: What it is called.
        files: Its files by what they are (``kernel_details.csv``, without slices and times), in order.
        info: The files that say how it was recorded; the number in a name is the rank.
        device: Number of the device; -1 where no folder tells it.
        shared: Whether its files tell other devices too.
    """

    root: Path
    name: str
    files: Mapping[str, tuple[Path, ...]]
    info: tuple[Path, ...] = ()
    device: int = -1
    shared: bool = False

    @property
    def rank_told(self) -> int | None:
        """The rank as a name tells it: that of the profiler's file."""
        found = (match[1] for path in self.info if (match := _INFO.fullmatch(path.name)) and match[1])
        return next((int(each) for each in found if len(each) < 9), None)

    @property
    def rank_of_name(self) -> int | None:
        """The rank as the folder's name tells it, which a user gave."""
        found = re.search(r"rank_?(\d{1,8})", self.name, re.IGNORECASE)
        return int(found[1]) if found else None

    def every_file(self) -> list[Path]:
        """All its files."""
        return [*(path for paths in self.files.values() for path in paths), *self.info]


class Found(Struct, frozen=True):
    """What lies at a path.

    Attributes:
        places: The workers.
        cluster: Files of msprof-analyze about all of them, by name.
        raw: What was recorded and not exported: a folder, and the command that exports it.
    """

    places: tuple[Place, ...] = ()
    cluster: Mapping[str, Path] = field(default_factory=dict)
    raw: tuple[tuple[Path, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places or self.cluster or self.raw)


def found_at(path: Path) -> Found:
    """What lies at a path; nothing where it is none of Ascend's.

    Raises:
        OSError: It cannot be looked at.
    """
    # names of folders above it count too, which a relative path need not say
    path = Path(os.path.abspath(path))
    if not os.path.isdir(path):
        return _of_file(path)
    path = whole(path) if path.name == ANALYSED else _of_old_part(path) or path
    found = _of_run(path)
    if not found.places and not found.cluster:
        above = _above(path)
        if above is not None:
            return _of_folder(above, 0) or found
    return found


def is_own(name: str) -> bool:
    """Whether a file is Ascend's by its name alone."""
    return role(name) in _OWN or name in _CLUSTER_FILES


def role(name: str) -> str:
    """What a file is, by its name: ``op_summary_slice_1_20260511093035.csv`` is ``op_summary.csv``."""
    match = _FILE.fullmatch(name)
    return f"{match['stem']}.{match['kind']}" if match else name


def whole(path: Path) -> Path:
    """The folder that a file of a profile, or a folder in it, stands for; any other path itself."""
    if not os.path.isdir(path):
        return _of_old_part(path.parent) or (path.parent if _in_output(path) else path)
    if path.name in (OUTPUT, MSPROF):
        return path
    if (old := _of_old_part(path)) is not None:
        return old
    if path.name == ANALYSED and os.path.isdir(path.parent / MSPROF):
        return path.parent
    return path if _of_run(path).places else _above(path) or path


# -- one level


def _in_output(path: Path) -> bool:
    """Whether a file lies where the exporters write, or tells how what lies beside it was recorded."""
    inside = path.parent.name in (OUTPUT, MSPROF) and _FILE.fullmatch(path.name) is not None
    return inside or (_tells(path.name) and os.path.isdir(path.parent / OUTPUT))


def _of_old_part(folder: Path) -> Path | None:
    """What ``summary`` or ``timeline`` of CANN 5 to 6.3 is a part of: a device, or all; None of any other folder."""
    if folder.name not in ("summary", "timeline"):
        return None
    above = folder.parent.parent if folder.parent.name == "host" else folder.parent
    return above if _of_old(above, _listed(above)[1]) else None


def _tells(name: str) -> bool:
    """Whether a file tells how what lies beside it was recorded."""
    return _INFO.fullmatch(name) is not None or name == "profiler_metadata.json"


def _of_file(path: Path) -> Found:
    if path.name in _CLUSTER_FILES:
        return Found(cluster={path.name: path})
    if not path.is_file():
        return Found()
    if (old := _of_old_part(path.parent)) is not None and _FILE.fullmatch(path.name) is not None:
        return _of_folder(old, 0)
    if _in_output(path):
        return _of_folder(path.parent, 0)
    if not is_own(path.name):
        return Found()
    return Found((Place(path, path.name, {role(path.name): (path,)}),))


def _of_run(path: Path) -> Found:
    """What a folder holds, itself or one level below; of a folder of such folders and nothing else what these hold."""
    found = _of_folder(path, 1)
    if found:
        return found
    _, folders = _listed(path)
    return _of_folder(path, 2) if folders and all(_of_folder(path / name, 1) for name in folders) else found


def _of_folder(path: Path, depth: int) -> Found:
    """What a folder holds, itself or in so many levels below it."""
    names, folders = _listed(path)
    own = [name for name in names if is_own(name)]
    cluster: dict[str, Path] = {name: path / name for name in _CLUSTER_FILES if name in names}
    if OUTPUT in folders:
        place = _place(path / OUTPUT, path)
        if place.files:
            return Found((place,))
    if MSPROF in folders:
        return Found(tuple(_msprof_places(path, names, folders)))
    if path.name == MSPROF and own and len(_devices(above := _listed(path.parent)[1])) > 1:
        return Found(tuple(_msprof_places(path.parent, [], above)))
    if path.name in (OUTPUT, MSPROF) and own:
        return Found((_place(path, path.parent),))
    if own and not cluster:
        return Found((_place(path, path),))
    old = _of_old(path, folders)
    if old:
        return Found(tuple(old))
    raw = _raw(path, folders)
    if raw is not None and not cluster:
        return Found(raw=(raw,))
    below = [_of_folder(path / name, depth - 1) for name in folders] if depth else []
    places = [each for found in below for each in found.places]
    for found in below:
        cluster = {**found.cluster, **cluster}
    places.sort(key=lambda place: natural_order(str(place.root)))
    return Found(tuple(places), cluster, tuple(each for found in below for each in found.raw))


def _place(output: Path, root: Path) -> Place:
    """The worker whose output lies in a folder."""
    names, _ = _listed(output)
    above, _ = _listed(root)
    info = tuple(sorted(root / name for name in above if _tells(name)))
    return Place(root, root.name, _files(output, names), info)


def _devices(folders: Sequence[str]) -> list[int]:
    return [int(match[1]) for name in folders if (match := _DEVICE.fullmatch(name)) and len(match[1]) < 6]


def _msprof_places(path: Path, names: Sequence[str], folders: Sequence[str]) -> list[Place]:
    """The workers of msprof's output: one for each device; of several each takes its part of the files."""
    inside, _ = _listed(path / MSPROF)
    files = dict(_files(path / MSPROF, inside))
    files |= {key: paths for key, paths in _files(path, names).items() if key not in files and key.endswith(".db")}
    analysed = _files(path / ANALYSED, _listed(path / ANALYSED)[0]) if ANALYSED in folders else {}
    files |= {what: analysed[key] for key, what in _ANALYSED.items() if key in analysed and what not in files}
    devices = _devices(folders)
    if len(devices) < 2:
        return [Place(path, path.name, files, device=devices[0] if devices else -1)]
    return [Place(path, f"{path.name}/device_{device}", files, device=device, shared=True) for device in devices]


def _of_old(path: Path, folders: Sequence[str]) -> list[Place]:
    """Workers of CANN 5 to 6.3: a device's ``summary`` and ``timeline``, and what lies beside it of all of them."""
    devices = [path / name for name in folders if _DEVICE.fullmatch(name)]
    shared: dict[str, tuple[Path, ...]] = {}
    for folder in (path / "timeline", path / "host" / "summary", path / "host" / "timeline") if devices else ():
        shared |= _files(folder, _listed(folder)[0])
    found = []
    # a device's folder may be named itself
    for device in devices or ([path] if _DEVICE.fullmatch(path.name) else []):
        number = int(device.name.rpartition("_")[2][:6])
        files = {role: _of_device(paths, number) if len(devices) > 1 else paths for role, paths in shared.items()}
        for part in ("summary", "timeline"):
            files |= _files(device / part, _listed(device / part)[0])
        if any(name in _OWN for name in files):
            name = path.name if len(devices) < 2 else f"{path.name}/{device.name}"
            # timelines of tasks that lie in its folder, or are named after it, tell no other device
            tasks = [task for role in ("msprof.json", "task_time.json") for task in files.get(role, ())]
            others = any(device not in task.parents and not _names(task, number) for task in tasks)
            found.append(Place(path, name, files, device=number, shared=others and len(devices) > 1))
    return found


def _of_device(paths: tuple[Path, ...], device: int) -> tuple[Path, ...]:
    """Those of some files that name a device, ``msprof_<device>_<model>_<iteration>.json``; all where none does."""
    return tuple(path for path in paths if _names(path, device)) or paths


def _names(path: Path, device: int) -> bool:
    return re.match(rf"[A-Za-z_]+_{device}(?=[_.])", path.name) is not None


def _files(folder: Path, names: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    """Files by what they are: slices in order, of several exports the last."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        if match:
            time = _TIME.search(name)
            turn = int(match["slice"]) if match["slice"] and len(match["slice"]) < 9 else -1
            found.setdefault(role(name), []).append((time[1] if time else "", turn, name))
    files = {}
    for key, each in sorted(found.items()):
        last = max(time for time, _, _ in each)
        kept = sorted((turn, natural_order(name), name) for time, turn, name in each if time == last)
        files[key] = tuple(folder / name for *_, name in kept)
    return files


def _raw(path: Path, folders: Sequence[str]) -> tuple[Path, str] | None:
    """What was recorded here and not exported, with the command that does it."""
    if ("FRAMEWORK" in folders or _RANK.fullmatch(path.name)) and any(
        _PROF.fullmatch(name) or name == "FRAMEWORK" for name in folders
    ):  # fmt: skip
        kind = "mindspore" if path.name.endswith("_ms") else "torch_npu"
        where = str(path).replace("\\", "\\\\").replace("'", "\\'")
        return path, f"python3 -c \"from {kind}.profiler.profiler import analyse; analyse('{where}')\""
    parts = [name for name in folders if _DEVICE.fullmatch(name) or name == "host"]
    if any(os.path.isdir(path / name / "data") for name in parts):
        return path, f"msprof --export=on --output={path}"
    return None


def _above(path: Path) -> Path | None:
    """The folder above one, or above that, which it is a part of: FRAMEWORK, PROF_*, device_0, empty output."""
    part = re.compile(rf"FRAMEWORK|PROF_.*|device_\d+|host|data|summary|timeline|sqlite|logs|{OUTPUT}|{MSPROF}")
    own = path.absolute()
    raw = None
    for above in list(own.parents)[:3]:
        if not part.fullmatch(own.name):
            break
        found = _of_folder(above, 0)
        if found.places:
            return above
        raw = above if found.raw else raw
        own = above
    return raw


def _listed(path: Path) -> tuple[list[str], list[str]]:
    """Names of the files and of the folders in a folder, in natural order; none where it cannot be listed."""
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
    """Paths as they are told: relative to what was opened, with ``/``."""
    base = to if os.path.isdir(to) else to.parent
    for path in paths:
        yield os.path.relpath(path, base).replace(os.sep, "/")
