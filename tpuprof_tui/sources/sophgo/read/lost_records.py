"""Lost records: counted in ``global.profile`` but missing in the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from tpuprof_tui.model import Severity

from ..chips.chip import Chip
from ..file_names import SETTINGS_FILE
from .commands.command_table import CORE_ENGINES
from .core_data import CoreData
from .problems import Report
from .stream.files import count_text
from .stream.settings import Settings

if TYPE_CHECKING:
    from .pairing.ports import PortData


class Lost(Struct, frozen=True):
    """Numbers of the cores and CDMA ports that ran but have no record, ascending."""

    cores: tuple[int, ...]
    ports: tuple[int, ...]


def check_counts(settings: Settings, chip: Chip, cores: list[CoreData], ports: list[PortData], report: Report) -> Lost:
    """Report engines with fewer records than ``global.profile`` counts; returns cores and ports without any."""
    lost_cores, lost_ports = [], []
    by_core = {core.core: core for core in cores}
    by_port = {port.port: port for port in ports}
    counted: dict[tuple[bool, int], dict[str, int]] = {}
    for (engine, number), claimed in settings.claimed.items():
        counted.setdefault((engine == "CDMA", number), {})[engine] = claimed
    nonexistent: list[str] = []
    for (of_port, number), claims in sorted(counted.items()):
        present = by_port if of_port else by_core
        if number >= (chip.cdma_ports if of_port else chip.core_count) and number not in present:
            nonexistent += [f"CDMA port {number}" if of_port else f"core {number}"] if any(claims.values()) else []
        elif of_port:
            port = by_port.get(number)
            found = None if port is None else {"CDMA": len(port.stream) + port.stream.left_out}
            label, file = f"port {number}", "" if port is None else port.file
            if _claims_records(claims, found, report, label, file, -1) and (port is None or not len(port.stream)):
                lost_ports.append(number)
        else:
            core = by_core.get(number)
            found = (
                {name: len(each.stream) + each.stream.left_out for name, each in core.engines.items()} if core else None
            )
            claims = {name: claims[name] for name in CORE_ENGINES if name in claims}
            label, file = f"core {number}", "" if core is None else core.file
            if _claims_records(claims, found, report, label, file, number) and (core is None or not core.records):
                lost_cores.append(number)
    if nonexistent:
        what = f"global.profile counts records of {nonexistent[0]}, which {chip.name} does not have."
        done = f"It has {count_text(chip.core_count, 'core')} and {count_text(chip.cdma_ports, 'CDMA port')}."
        report.error(what, done, file=SETTINGS_FILE, count=len(nonexistent))
    for each in cores:  # without counts, a fully damaged file is not an idle core
        severities = [problem.severity for problem in each.report.problems()]
        if (False, each.core) not in counted and not each.blocks and Severity.ERROR in severities:
            lost_cores.append(each.core)
    return Lost(tuple(sorted(lost_cores)), tuple(lost_ports))


def _claims_records(
    claims: dict[str, int], present: dict[str, int] | None, report: Report, owner: str, file: str, core: int
) -> bool:
    """Whether ``global.profile`` counts records of a core or port; reports a file that is missing or holds fewer."""
    claims = {engine: claimed for engine, claimed in claims.items() if claimed}
    if present is None and claims:
        *counts, last = (f"{claimed} {engine}" for engine, claimed in claims.items())
        report.error(
            f"global.profile counts {', '.join(counts)}{' and ' if counts else ''}{last} records of {owner}, "
            "its file is missing.",
            "It is lost: figures do not count it as idle.",
            file=SETTINGS_FILE,
            core=core,
            lane=owner if core < 0 else "",
            lost=sum(claims.values()),
        )
    for engine, claimed in claims.items():
        found = present.get(engine, 0) if present is not None else claimed
        if found < claimed:
            what = f"global.profile counts {claimed} {engine} records, the file holds {found}."
            lane = owner if core < 0 else engine
            report.error(what, "The existing ones are shown.", file=file, core=core, lane=lane, lost=claimed - found)
    return bool(claims)
