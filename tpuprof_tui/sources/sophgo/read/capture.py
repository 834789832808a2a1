"""Reads a capture directory into a Profile, and aligns its cores on one time line."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.source import Progress, file_size, natural_order

from ..chips.chip import Chip, chip_by_arch, chip_by_name, chip_names, unsupported_arch
from ..file_names import LOCATIONS, NETWORK, SETTINGS_FILE, is_bmprofile, nearly_of_capture, of_capture, plain_name
from .commands.command_table import CORE_ENGINES
from .core import read_core, report_unrecorded, report_untimed, untimed_commands
from .core_data import CoreData, number_scopes
from .files import Settings, count_text, list_files, read_settings, settings_file
from .problems import Problems
from .profile_builder import ProfileBuilder, check_counts
from .records.profiler_records import sync_on_last_wait

if TYPE_CHECKING:
    from .ports import PortData


def read(
    path: Path, *, chip: str | None = None, tiu_mhz: int | None = None, progress: Callable[[Any], None] | None = None
) -> Profile:
    """Read a capture: its directory, or a file in it; see ``tpuprof_tui.sources.catalog.open_profile``."""
    directory = path if path.is_dir() else path.parent
    report = Problems()
    _report_names(directory, report, chip)
    if is_bmprofile(directory):
        from .bmprofile.folder import read_folder  # other captures do without it

        return read_folder(directory, chip=chip, tiu_mhz=tiu_mhz, progress=progress)
    settings = read_settings(settings_file(directory), report)
    kind = _chip(settings, chip, directory, report)
    core_files, port_files = list_files(directory, report, kind)
    if not core_files and not port_files:
        claimed = sum(settings.claimed.values())
        counts = f"global.profile counts {count_text(claimed, 'record')}, " if claimed else ""
        advice = "Copy the cdmlib*.profile and cdma*.profile files next to it."
        raise UnreadableError(f"{directory}: {counts}there is no core or port file.", advice)
    mhz = tiu_mhz or settings.tpu_freq or kind.tiu_mhz
    cores = _read_cores(core_files, kind, mhz, settings.bmodel, progress)
    ports: list[PortData] = []
    if port_files:
        from .ports import read_port  # most captures have no ports

        ports = [read_port(number, port, kind) for number, port in port_files]
    lost = check_counts(settings, kind, cores, ports, report)
    number_scopes(cores)
    recorded = any(core.engines for core in cores) or any(len(port.stream) for port in ports)
    untimed = [] if recorded else [untimed_commands(core, kind) for core in cores]
    if any(untimed):
        report_untimed(cores, untimed, report)
    for core in cores if not any(untimed) else ():
        if not core.engines:
            report_unrecorded(core)
    sync_on_last_wait(cores, kind, report)
    align_cores(cores, report)
    if ports:
        from .ports import anchor_ports, match_ports, report_unplaced

        anchor_ports(ports, cores)
        match_ports(ports, cores, kind)
        if settings.bmodel:
            from .commands.model_ports import match_streams

            match_streams(ports, cores, kind)
        report_unplaced(ports)
    profile = ProfileBuilder(directory, settings, kind, mhz, cores, ports, lost, report, untimed).profile()
    if not any((directory / name).exists() for name in (LOCATIONS, NETWORK)):
        return profile
    from .layers import with_layers  # most captures have no such files

    return with_layers(profile)


def _report_names(directory: Path, report: Problems, chip: str | None) -> None:
    """Reports files of a capture that are not read for their names alone.

    Raises:
        UnreadableError: Without them there is nothing to read.
    """
    names = os.listdir(directory)
    own = {name for name in names if of_capture(name)}
    others = [name for name in sorted(names, key=natural_order)
              if nearly_of_capture(name) and plain_name(name) not in own]  # fmt: skip
    advice = "Unpack and rename them: names are as cdmlib0_0.profile."
    if others and (own <= {SETTINGS_FILE} or (not chip and SETTINGS_FILE in map(plain_name, others))):
        more = f" and {len(others) - 1} more are" if len(others) > 1 else " is"
        raise UnreadableError(f"{directory}: {others[0]}{more} packed, or named in capitals.", advice)
    for name in others:
        report.error("It is packed, or named in capitals.", f"It was not read. {advice}", file=name)


def _chip(settings: Settings, chip_option: str | None, directory: Path, report: Problems) -> Chip:
    known = ", ".join(name.upper() for name in chip_names())
    if chip_option is not None:
        chip = chip_by_name(chip_option) or chip_by_arch(chip_option)
        if chip is None:
            raise UnreadableError(f"There is no chip named {chip_option!r}.", f"Known chips: {known}.")
        return chip
    if settings.arch is None:
        what = "names no chip" if settings_file(directory) is not None else "is missing, which names the chip"
        why = next((f" {problem.what}" for problem in report.problems() if problem.file == SETTINGS_FILE), "")
        raise UnreadableError(f"{directory}: global.profile {what}.{why}", f"Name it with --chip ({known}).")
    chip = chip_by_arch(settings.arch)
    if chip is None:
        name = unsupported_arch(settings.arch)
        what = f"chip {name} cannot be read" if name else f"global.profile names an unknown arch {settings.arch[:40]!r}"
        raise UnreadableError(f"{directory}: {what}.", f"If it is one of {known}, name it with --chip.")
    return chip


def _read_cores(
    files: list[tuple[int, Path]], chip: Chip, mhz: float, bmodel: bool, progress: Callable[[Any], None] | None
) -> list[CoreData]:
    """Read all core files in parallel threads: NumPy releases the GIL for most of the work."""
    total = sum(file_size(path) for _, path in files)
    done = 0
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        jobs = {pool.submit(read_core, core, path, chip, mhz, bmodel=bmodel): path for core, path in files}
        try:
            for job in as_completed(jobs):
                done += file_size(jobs[job])
                core = job.result()
                if progress is not None:
                    progress(Progress("reading cores", done, total, f"core {core.core:>3}", core.records))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [job.result() for job in jobs]


def align_cores(cores: list[CoreData], report: Problems) -> None:
    """Shift the streams of each core so that the cores' clocks agree.

    The reference is the engine whose opening wait every core has recorded, TIU first. Where no engine has it on all
    cores, each core uses the best it has, corrected by the offset between engines on the other cores; a core that lost
    all opening waits is placed by the end of its closing pair.
    """
    active = [core for core in cores if core.engines]
    if not active:
        return
    syncs = {
        core.core: {name: each.sync_end for name, each in core.engines.items() if each.sync_end is not None}
        for core in active
    }
    common = next((name for name in CORE_ENGINES if all(name in syncs[core.core] for core in active)), None)
    base: int | None = None
    for core in active:
        instant = syncs[core.core][common] if common else _wait_end(core, syncs, active, report)
        if instant is None:
            if len(active) > 1:
                what = "The core recorded neither the opening nor the closing synchronisation."
                done = "It keeps its own clock; its times do not compare with those of other cores."
                report.warning(what, done, file=core.file, core=core.core)
            continue
        if base is None:
            base = instant
        shift_core(core, base - instant)
    if common is not None and common != "TIU" and len(active) > 1:
        report.note(f"Some core lost its opening TIU wait; all cores were aligned on {common}.", "")


def _wait_end(core: CoreData, syncs: dict[int, dict[str, int]], active: list[CoreData], report: Problems) -> int | None:
    """End of the opening TIU wait on a core's own clock (ns), estimated where it was lost; None if it cannot be."""
    own_syncs = syncs[core.core]
    if "TIU" in own_syncs:
        return own_syncs["TIU"]
    for name, end in own_syncs.items():
        offsets = [other["TIU"] - other[name] for other in syncs.values() if "TIU" in other and name in other]
        what = f"The opening TIU wait was not recorded; the core was aligned on {name}."
        done = "" if offsets else "Offsets below 1 us against other cores are not known."
        report.warning(what, done, file=core.file, core=core.core)
        return end + (int(np.median(offsets)) if offsets else 0)
    closing = _closing_end(core)
    if closing is None:
        return None
    closed = ((_closing_end(peer), syncs[peer.core].get("TIU")) for peer in active)
    spans = [end - start for end, start in closed if end is not None and start is not None]
    what = "The opening synchronisation was overwritten; the core was aligned on its closing pair."
    report.warning(what, "Small offsets against other cores are possible.", file=core.file, core=core.core)
    return closing - (int(np.median(spans)) if spans else 0)


def _closing_end(core: CoreData) -> int | None:
    ends = [core.engines[name].closing_end for name in ("TIU", "GDMA") if name in core.engines]
    return next((end for end in ends if end is not None), None)


def shift_core(core: CoreData, by: int) -> None:
    """Shift all times of a core by ``by`` ns."""
    if not by:
        return
    for engine in core.engines.values():
        engine.stream.shift(by)
        if engine.closing_end is not None:
            engine.closing_end += by
        engine.port_sync_ends = {number: end + by for number, end in engine.port_sync_ends.items()}
