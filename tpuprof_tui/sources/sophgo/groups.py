"""Groups of a capture: its cores, which are the units, and its CDMA ports together; cores are told by their numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Group, Groups
from tpuprof_tui.model.group import NO_GROUP

#: Kinds of groups.
CORE: Final = "core"
PORTS: Final = "ports"
PORT: Final = "port"


def capture_groups(cores: Collection[int], ports: Collection[int], idle: Collection[int]) -> Groups:
    """The groups of a capture.

    Args:
        cores: Numbers of its cores, ascending.
        ports: Its ports with records.
        idle: Those of them of which no instruction is left: no lane tells of them, a group does.
    """
    groups = [Group(f"Core {core}", CORE, number=core, is_unit=True) for core in cores]
    if ports:
        parent = len(groups)
        groups.append(Group("CDMA", PORTS))
        groups += [Group(f"port {port}", PORT, parent, number=port) for port in idle]
    return Groups(groups)


def ports_group(groups: Groups) -> int:
    """Id of the group of all ports; -1 without any."""
    return next((place for place, group in enumerate(groups) if group.kind == PORTS), NO_GROUP)


def owner_groups(groups: Groups, cores: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Ids of cores by number; -1 where the core is -1."""
    ids = [groups.numbered(core) for core in range(int(cores.max(initial=-1)) + 1)]
    return np.array([*ids, NO_GROUP], np.int32)[np.maximum(cores, -1)]
