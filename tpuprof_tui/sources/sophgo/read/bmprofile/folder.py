"""Reads a folder ``bmprofile_data-N`` into a Profile: its cores, and the blocks of the driver as lanes of the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Profile, Role, Strings
from tpuprof_tui.model.lane import Array, LazyColumn, constant
from tpuprof_tui.model.profile import RecordingMode
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.model.table import Table, TableColumns
from tpuprof_tui.sources.source import Progress, file_size, natural_order

from ...chips.chip import Chip, bmprofile_chip, chip_by_name, chip_names
from ...file_names import COMMAND_FILE, DRIVER_FILE, FORECAST_FILE, LOCATIONS, RUN_FILE, SETTINGS_FILE
from ..arrays import I64, Bytes
from ..core import report_unpaired, report_unrecorded, report_untimed
from ..core_data import number_scopes
from ..files import Block, BlockType, Settings, count_text, read_bytes, walk_blocks
from ..host_trace import GROUP, KIND
from ..problems import Problems
from ..profile_builder import LostGroups, ProfileBuilder
from .core_runs import CoreRuns, Launch
from .plan import ENGINES, Plan, read_forecast, read_plan

_SUMMARY_BYTES = 36
#: Chip whose records have older layouts, by code and name.
_OLD_CHIP = ("1", "BM1684")
#: Folder that the driver library writes beside those of the runtime.
_DRIVER_FOLDER = "bmprofile_data-0"
#: Types of the blocks of a core: it has one of each at most, those of the PMU before those of the firmware.
_MONITORS = (BlockType.MONITOR_BD, BlockType.MONITOR_GDMA)
_DYNAMIC = (BlockType.DYN_DATA, BlockType.DYN_EXTRA)


class SubnetRun(Struct):
    """One run of a subnet."""

    file: str
    subnet: int = 0
    begin_us: int = 0  #: Host time when the runtime began to set it up, us since 1970; 0 unknown
    launches: list[Launch] = field(default_factory=list)  #: What each core ran


class Folder(Struct):
    """Bytes of all files, one after the other."""

    data: Bytes
    parts: list[tuple[int, str]]  #: First offset of each file and its name, ascending
    runs: list[tuple[str, int, int]]
    #: Range of each file of commands by address, core (-1: any) and engine.
    commands: dict[tuple[int, int, str], tuple[int, int]]


def read_folder(
    directory: Path, *, chip: str | None, tiu_mhz: int | None, progress: Callable[[Any], None] | None
) -> Profile:
    """Read a folder; see ``tpuprof_tui.sources.catalog.open_profile``."""
    report = Problems()
    plan = read_plan(_optional(directory, SETTINGS_FILE, report), report)
    kind = _chip(plan, chip, directory)
    mhz = tiu_mhz or (plan.tpu_freq if kind.bmprofile.clock_recorded else 0) or kind.tiu_mhz
    if kind.bmprofile.one_clock:
        kind = replace(kind, dma_mhz=mhz)
    folder = _files(directory, report, progress)
    if not folder.runs:
        what = f"{directory} is a bmprofile_data folder of libbmrt without a recorded run."
        raise UnreadableError(what, "Copy its iter*.profile files next to it.")
    forecast = read_forecast(_optional(directory, FORECAST_FILE, report), report) if folder.commands else {}
    calls = Calls()
    runs = [_run(folder, name, first, last, plan, calls, report) for name, first, last in folder.runs]
    if len({run.subnet for run in runs}) > 1:
        forecast = {}  # commands of each subnet are numbered anew
    cores = CoreRuns(kind, mhz, folder.data, folder.parts, folder.commands, plan, forecast).read(runs, report)
    if not kind.bmprofile.clock_known and not tiu_mhz:
        what = f"{kind.name} does not record its clock: all times are those of {mhz} MHz (~)."
        report.warning(what, "Cycles are exact. --tiu_freq sets the clock.")
    number_scopes(cores)
    recorded = any(core.engines for core in cores)
    untimed = [] if recorded else [core.nodes.engines for core in cores if core.nodes is not None]
    if any(untimed):
        report_untimed(cores, untimed, report)
    for core in cores if not any(untimed) else ():
        (report_unpaired if core.engines else report_unrecorded)(core)
    if not cores and not calls.earliest_us():
        report.error("Neither a launch nor a call of the driver is recorded.", "Nothing can be shown.")
    settings = Settings(arch=plan.arch or None, bmodel=True)
    builder = ProfileBuilder(directory, settings, kind, mhz, cores, [], LostGroups(), report, untimed, layers=True)
    zero_us = runs[0].begin_us if recorded else calls.earliest_us()
    beside = directory.resolve().with_name(_DRIVER_FOLDER)
    if beside.is_dir() and directory.resolve() != beside:
        report.note(f"The driver library's profile lies beside it: {_DRIVER_FOLDER}.", "Open it by itself.")
    profile = replace(
        builder.profile(),
        recording=RecordingMode("bmprofile", "bmprofile", "detailed commands"),
        facts={"network": plan.network} if plan.network else {},
        tables=(memory_table(plan, zero_us),) if plan.memory else (),
    )
    if (directory / LOCATIONS).exists():
        from ..layers import layer_table  # most folders have no such file

        profile = replace(profile, tables=(*profile.tables, layer_table(profile)))
    return with_calls(profile, calls, zero_us)


def _optional(directory: Path, name: str, report: Problems) -> Bytes:
    path = directory / name
    if not path.exists():
        done = "There are no layers." if name == SETTINGS_FILE else "There is no forecast."
        report.warning(f"{name} is missing.", done, file=name)
        return np.zeros(0, np.uint8)
    return read_bytes(path, report)


def _chip(plan: Plan, chip_option: str | None, directory: Path) -> Chip:
    known = ", ".join(name.upper() for name in chip_names() if bmprofile_chip(name) is not None)
    value = chip_option if chip_option is not None else plan.arch
    chip = bmprofile_chip(value)
    if chip is not None:
        return chip
    named = chip_by_name(value)
    if named is not None:
        what = f"{named.name} has no such folders"
    elif not value:
        what = "global.profile names no chip"
    elif value in _OLD_CHIP:
        what = "BM1684 cannot be read"
    else:
        what = f"{'there is no chip' if chip_option else 'global.profile names an unknown arch'} {value[:40]!r}"
    what = f"{directory}, a bmprofile_data folder of libbmrt: {what}."
    raise UnreadableError(what, f"Known chips: {known} (--chip).")


def _files(directory: Path, report: Problems, progress: Callable[[Any], None] | None) -> Folder:
    names = sorted(os.listdir(directory), key=natural_order)
    runs = [name for name in names if RUN_FILE.fullmatch(name) or DRIVER_FILE.fullmatch(name)]
    wanted = [*runs, *(name for name in names if COMMAND_FILE.fullmatch(name))]
    sizes = [file_size(directory / name) for name in wanted]
    data, ends = np.empty(sum(sizes), np.uint8), [0]
    for number, (name, size) in enumerate(zip(wanted, sizes, strict=True)):
        content = read_bytes(directory / name, report, data[ends[-1] : ends[-1] + size])
        ends.append(ends[-1] + len(content))
        if progress is not None:
            progress(Progress("reading files", number + 1, len(wanted), name, 0))
    data = data[: ends[-1]]
    parts = list(zip(ends, wanted, strict=False))
    commands = {}
    for first, last, name in zip(ends, ends[1:], wanted, strict=False):
        match = COMMAND_FILE.fullmatch(name)
        if match:
            commands[int(match[1], 16), int(match[2] or -1), ENGINES[int(match[3])]] = first, last
    ranges = [(name, first, last) for name, first, last in zip(runs, ends, ends[1:], strict=False)]
    return Folder(data, parts, ranges, commands)


def _run(folder: Folder, name: str, first: int, last: int, plan: Plan, calls: Calls, report: Problems) -> SubnetRun:
    """Blocks of a file by core; cores follow one another in each type of block."""
    own = Problems(name)
    run, sets, commands = SubnetRun(name), list[dict[int, Block]](), list[Block]()
    for block in walk_blocks(folder.data[first:last], own):
        moved = Block(block.kind, block.offset + first, block.length)
        if block.kind == BlockType.SUMMARY and block.length >= _SUMMARY_BYTES:
            words = folder.data[moved.offset : moved.offset + _SUMMARY_BYTES].tobytes()
            run.subnet, run.begin_us = int.from_bytes(words[4:8], "little"), int.from_bytes(words[12:20], "little")
        elif block.kind == BlockType.BMLIB:
            run.begin_us = calls.read(folder.data, moved, own, first)
        elif block.kind == BlockType.BMLIB_EXTRA:
            calls.remark(folder.data[moved.offset : moved.offset + moved.length])
        elif block.kind == BlockType.COMMAND:
            commands.append(moved)
        elif block.kind in (*_MONITORS, *_DYNAMIC):
            held = sets[-1] if sets else {}
            if not sets or block.kind in held or (block.kind in _MONITORS and any(kind in held for kind in _DYNAMIC)):
                sets.append({})
            sets[-1][block.kind] = moved
    count = max(len(sets), len(commands))
    numbers = plan.cores if len(plan.cores) == count else range(count)
    if len(plan.cores) not in (0, count):
        own.warning(
            f"{count_text(count, 'core')} recorded, global.profile lists {len(plan.cores)}.", "Numbered from 0."
        )
    for number, core in enumerate(numbers):
        launch = Launch(core, name, first, sets[number] if number < len(sets) else {})
        if number < len(commands):
            _announce(launch, folder.data, commands[number], own)
        run.launches.append(launch)
    report.extend(own)
    return run


def _announce(launch: Launch, data: Bytes, block: Block, report: Problems) -> None:
    """Take addresses and numbers of a core's commands from its block."""
    words: I64 = data[block.offset : block.offset + block.length // 4 * 4].view("<u4").astype(np.int64)
    groups = int(words[8]) if len(words) > 8 else -1
    if groups < 0 or groups > (len(words) - 9) // 2:
        what = "A block of commands is too short for what it announces."
        report.error(what, "What it holds was used.", offset=block.offset - launch.base)
        groups = max(0, (len(words) - 9) // 2)
    if len(words) < 9:
        return
    counts = words[9 : 9 + 2 * groups].reshape(-1, 2).sum(axis=0)
    for engine, place, count in (("GDMA", 0, counts[0]), ("TIU", 4, counts[1])):
        address, offset = (int(words[place + at]) | int(words[place + at + 1]) << 32 for at in (0, 2))
        launch.commands[engine] = address, offset, int(count)


#: Lists of a block of calls in their order: label of the lane, and the layout of an entry. ``api``: no end is recorded.
_LAYOUTS: Final = {
    label: np.dtype([(name, f"<{kind}") for name, kind in (item.split(":") for item in fields.split())])
    for label, fields in (
        ("send", "code:u4 begin:u8"),
        ("sync", "begin:u8 end:u8"),
        ("mark", "code:u8 begin:u8 end:u8"),
        ("copy", "source:u8 target:u8 code:u4 bytes:u4 begin:u8 end:u8"),
        ("memory", "address:u8 bytes:u4 code:u4 begin:u8 end:u8"),
    )
}
_NAMES: Final = {
    "copy": ("copy host->chip", "copy chip->host", "copy chip->chip"),
    "memory": ("allocate", "free", "invalidate", "flush"),
}
_TYPE: Final = "driver"
#: Latest time (us since 1970) that is taken for one: the year 2286.
_LATEST_US: Final = 10**16


class Calls:
    """Calls of the driver library, by list: entries and their names."""

    def __init__(self) -> None:
        self.entries: dict[str, list[npt.NDArray[Any]]] = {label: [] for label in _LAYOUTS}
        self.names: dict[str, list[list[str]]] = {label: [] for label in _LAYOUTS}

    def read(self, data: Bytes, block: Block, report: Problems, base: int) -> int:
        """Take the calls of a block; returns when they begin (us since 1970), 0 if that is not known.

        Args:
            data: Bytes of the folder.
            base: Offset of the block's file in them.
        """
        place, last = block.offset + 16, block.offset + block.length
        if place > last:
            return 0
        for label, layout in _LAYOUTS.items():
            if place + 4 > last:
                break  # older libraries write fewer lists
            count = int(data[place : place + 4].view("<u4")[0])
            place += 4
            held = min(count, (last - place) // layout.itemsize)
            if held < count:
                what = f"A list of {count:,} {label} calls is cut off: {held:,} are there."
                report.error(what, "Those are shown.", offset=place - base, count=count - held)
            entries = data[place : place + held * layout.itemsize].view(layout)
            place += held * layout.itemsize if held == count else last - place
            kinds = _NAMES.get(label, ())
            names = [label] * held
            if "code" in (layout.names or ()):
                names = [kinds[code] if code < len(kinds) else f"{label} {code}" for code in entries["code"].tolist()]
            self.entries[label].append(entries)
            self.names[label].append(names)
        begin = int(data[block.offset : block.offset + 8].view("<u8")[0])
        return begin if begin < _LATEST_US else 0

    def remark(self, payload: Bytes) -> None:
        """Add the text of a block of remarks to the call that it is about."""
        if len(payload) < 12:
            return
        which, index, length = (int(value) for value in payload[:12].view("<u4"))
        text = payload[12 : 12 + length].tobytes().decode("utf-8", "replace").strip("\0 ")
        lists = [*self.names.values()][which] if which < len(_LAYOUTS) else []
        if lists and index < len(lists[-1]) and text:
            lists[-1][index] += f": {text}"

    def earliest_us(self) -> int:
        """Begin of the first call, us since 1970; 0 without any."""
        begins = [int(entries["begin"].min()) for lists in self.entries.values() for entries in lists if len(entries)]
        return min(begins, default=0)


def with_calls(profile: Profile, calls: Calls, zero_us: int) -> Profile:
    """The profile with lanes of the driver's calls; ``zero_us``: host time of the profile's zero, us since 1970."""
    tables = {key: dict.fromkeys(profile.strings.get(key, ())) for key in ("name", "type")}
    codes = {text: code for code, text in enumerate(tables["name"])}
    kind = list({**tables["type"], _TYPE: None}).index(_TYPE)
    lanes = []
    for label, lists in calls.entries.items():
        if not any(map(len, lists)):
            continue
        entries: npt.NDArray[Any] = np.concatenate(lists)
        begin = entries["begin"].astype(np.int64)
        fields = entries.dtype.names or ()
        end = entries["end"].astype(np.int64) if "end" in fields else begin
        order = np.argsort(begin, kind="stable")
        known = (begin > 0) & (begin < _LATEST_US) & (end >= begin) & (end < _LATEST_US)
        order = order[known[order]]
        texts = [text for names in calls.names[label] for text in names]
        name = np.array([codes.setdefault(texts[row], len(codes)) for row in order.tolist()], np.int32)
        start, stop = (begin[order] - zero_us) * 1000, (end[order] - zero_us) * 1000
        sublane, _ = split_overlaps(start, stop)
        count = len(order)
        columns: dict[str, Array | LazyColumn] = {
            "start": start,
            "end": stop,
            "order": order.astype(np.int64),
            "role": constant(count, Role.WORK, np.int8),
            "sublane": sublane if sublane is not None else constant(count, 0, np.int16),
            "name": name,
            "type": constant(count, kind, np.int32),
        }
        if "bytes" in fields:
            columns["bytes"] = entries["bytes"].astype(np.int64)[order]
        lanes.append(Lane(kind=KIND, group=len(profile.groups), label=label, activity=Activity.HOST, columns=columns))
    if not lanes:
        return profile
    strings = {**profile.strings, "name": Strings(codes), "type": Strings({**tables["type"], _TYPE: None})}
    return replace(profile, groups=Groups((*profile.groups, GROUP)), lanes=(*profile.lanes, *lanes), strings=strings)


def memory_table(plan: Plan, zero_us: int) -> Table:
    """Allocations of device memory: address, bytes, allocated and freed (ns on the time line), use."""
    memory = plan.memory

    def times(values: Sequence[int]) -> list[int]:
        return [(us - zero_us) * 1000 if 0 < us < _LATEST_US else int(INT_MISSING) for us in values]

    def read() -> TableColumns:
        address, size, allocated, freed, use = zip(*memory, strict=True)
        uses = list(dict.fromkeys(use))
        numbers = {"address": address, "bytes": size, "allocated": times(allocated), "freed": times(freed)}
        columns = {key: np.array(values, np.int64) for key, values in numbers.items()}
        return {**columns, "use": np.array([uses.index(text) for text in use], np.int32)}, {"use": uses}

    return Table("device_memory", -1, SETTINGS_FILE, read)
