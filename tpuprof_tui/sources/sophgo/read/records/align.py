"""Aligns the clocks of all cores: the profiler's opening waits end at the same instant on every core."""

from __future__ import annotations

import numpy as np

from ..commands.command_table import CORE_ENGINES
from ..core_data import CoreData
from ..problems import Report


def align_cores(cores: list[CoreData], report: Report) -> None:
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


def _wait_end(core: CoreData, syncs: dict[int, dict[str, int]], active: list[CoreData], report: Report) -> int | None:
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
    spans = [
        closed - syncs[peer.core]["TIU"]
        for peer in active
        if (closed := _closing_end(peer)) is not None and "TIU" in syncs[peer.core]
    ]
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
