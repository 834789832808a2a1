"""Captures without hardware records, from emulators or with the PMU off: only commands, without times.

Commands are in the order of issue. The sends and waits that the profiler and, around each launch of a compiled model,
the runtime issue outside every kernel function are left out.
"""

from __future__ import annotations

import numpy as np

from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of

from ..commands.command_table import CORE_ENGINES, Commands, Mode
from ..commands.lane_registers import block_commands
from ..commands.model_interleaving import concatenated
from ..core_data import CoreData
from ..problems import Report
from ..records.profiler_records import without_profiler_commands


def untimed_commands(core: CoreData, chip: Chip) -> dict[str, Commands]:
    """Commands of each engine of a core, without engines that have none."""
    found: dict[str, Commands] = {}
    for name in CORE_ENGINES:
        parts = [] if core.has_des_streams else [block_commands(core.streams.get(name, ()))]
        if core.nodes is not None and len(core.nodes.engines[name]):
            issued = without_profiler_commands(name, core, chip)
            if core.bmodel:
                synchronising = (issued.scope < 0) & (issued.type_code == chip.system_types[family_of(name)])
                issued = issued.take(np.flatnonzero(~(synchronising & (issued.mode == Mode.TDI))))
            parts.append(issued)
        present = [part for part in parts if part is not None and len(part)]
        if present:
            found[name] = concatenated(present)
    return found


def report_untimed(cores: list[CoreData], found: list[dict[str, Commands]], report: Report) -> None:
    """Report the one problem that describes such a capture."""
    counts = {name: sum(len(each[name]) for each in found if name in each) for name in CORE_ENGINES}
    launches = max((len(streams) for core in cores for streams in core.streams.values()), default=0)
    launches += sum(len(core.nodes.scope_names) for core in cores if core.nodes is not None)
    issued = sum(len(commands) for core in cores if core.nodes is not None for commands in core.nodes.engines.values())
    issued += sum(map(len, (stream for core in cores if not core.has_des_streams for streams in core.streams.values()
                            for stream in streams)))  # fmt: skip
    left_out = issued - sum(counts.values())
    launches_text = f"{launches:,} launch{'es' if launches != 1 else ''}; " if launches else ""
    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    report.warning(
        f"No hardware records: {launches_text}{counts_text} commands without times.",
        "They are shown in the order they were issued"
        + (f", without {left_out:,} sends and waits around them." if left_out else "."),
    )
