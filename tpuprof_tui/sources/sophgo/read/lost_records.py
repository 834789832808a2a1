"""Lost records: counted in ``global.profile``, missing in the files."""

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
    """Numbers of the cores and CDMA ports that ran and of which no record is there, ascending."""

    cores: tuple[int, ...]
    ports: tuple[int, ...]


def check_counts(settings: Settings, chip: Chip, cores: list[CoreData], ports: list[PortData], report: Report) -> Lost:
    """A Problem for each engine that has fewer records than ``global.profile`` counts; which have none at all."""
    lost_cores, lost_ports = [], []
    by_core = {core.core: core for core in cores}
    by_port = {port.port: port for port in ports}
    counted: dict[tuple[bool, int], dict[str, int]] = {}
    for (engine, number), claimed in settings.claimed.items():
        counted.setdefault((engine == "CDMA", number), {})[engine] = claimed
    beyond: list[str] = []
    for (of_port, number), claims in sorted(counted.items()):
        present = by_port if of_port else by_core
        if number >= (chip.cdma_ports if of_port else chip.core_count) and number not in present:
            beyond += [f"CDMA port {number}" if of_port else f"core {number}"] if any(claims.values()) else []
        elif of_port:
            lost_ports += [number] if _port_is_lost(number, claims["CDMA"], by_port.get(number), report) else []
        else:
            lost_cores += [number] if _core_is_lost(number, claims, by_core.get(number), report) else []
    if beyond:
        report.error(
            f"global.profile counts records of {beyond[0]}, which {chip.name} does not have.",
            f"It has {count_text(chip.core_count, 'core')} and {count_text(chip.cdma_ports, 'CDMA port')}.",
            file=SETTINGS_FILE,
            count=len(beyond),
        )
    for core in cores:  # without counts a file that is all damage is no idle core
        severities = [problem.severity for problem in core.report.problems()]
        if (False, core.core) not in counted and not core.blocks and Severity.ERROR in severities:
            lost_cores.append(core.core)
    return Lost(tuple(sorted(lost_cores)), tuple(lost_ports))


def _core_is_lost(number: int, claims: dict[str, int], core: CoreData | None, report: Report) -> bool:
    """Whether records are counted of a core and none is there; a Problem where any is missing."""
    claims = {name: claims[name] for name in CORE_ENGINES if claims.get(name)}
    if not claims:
        return False
    if core is None:
        _tell_missing(report, f"core {number}", claims, core=number)
        return True
    for name, claimed in claims.items():
        engine = core.engines.get(name)
        found = len(engine.stream) + engine.stream.left_out if engine is not None else 0
        if found < claimed:
            _tell_fewer(report, name, claimed, found, file=core.file, core=number, lane=name)
    return not core.records


def _port_is_lost(number: int, claimed: int, port: PortData | None, report: Report) -> bool:
    """The same of a CDMA port."""
    if not claimed:
        return False
    if port is None:
        _tell_missing(report, f"port {number}", {"CDMA": claimed}, core=-1)
        return True
    found = len(port.stream) + port.stream.left_out
    if found < claimed:
        _tell_fewer(report, "CDMA", claimed, found, file=port.file, core=-1, lane=port.stream.label)
    return not len(port.stream)


def _tell_missing(report: Report, whose: str, claims: dict[str, int], *, core: int) -> None:
    counts = [f"{claimed} {engine}" for engine, claimed in claims.items()]
    several = f"{', '.join(counts[:-1])} and {counts[-1]}" if len(counts) > 1 else counts[0]
    report.error(
        f"global.profile counts {several} records of {whose}, its file is not there.",
        "It is lost: no figure takes it for idle.",
        file=SETTINGS_FILE,
        core=core,
        lane=whose if core < 0 else "",
        lost=sum(claims.values()),
    )


def _tell_fewer(report: Report, engine: str, claimed: int, found: int, *, file: str, core: int, lane: str) -> None:
    report.error(
        f"global.profile counts {claimed} {engine} records, the file holds {found}.",
        "What is there is shown.",
        file=file,
        core=core,
        lane=lane,
        lost=claimed - found,
    )
