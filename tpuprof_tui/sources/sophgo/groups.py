"""Groups of a capture: its cores, which are the units, and one for its CDMA ports; directions of a port."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Group, Groups, Lane, Profile
from tpuprof_tui.model.group import NO_GROUP
from tpuprof_tui.model.lane import ALL

from .read.arrays import map_texts

#: Kinds of groups.
CORE: Final = "core"
PORTS: Final = "ports"
PORT: Final = "port"


def capture_groups(
    cores: Collection[int],
    ports: Collection[int],
    idle: Collection[int] = (),
    lost_cores: Collection[int] = (),
    lost_ports: Collection[int] = (),
) -> Groups:
    """The groups of a capture.

    Args:
        cores: Core numbers, ascending.
        ports: Ports with records.
        idle: Ports among them without an instruction: they have no lane, only a group.
        lost_cores, lost_ports: Cores and ports that ran but have no records; not in the other lists.
    """
    groups = [Group(f"Core {core}", CORE, number=core, is_unit=core in cores, lost=core not in cores)
              for core in sorted((*cores, *lost_cores))]  # fmt: skip
    if ports:
        parent = len(groups)
        groups.append(Group("CDMA", PORTS))
        groups += [Group(f"port {port}", PORT, parent, number=port) for port in idle]
    groups += [Group(f"CDMA port {port}", PORT, number=port, lost=True) for port in lost_ports]
    return Groups(groups)


def group_of(groups: Groups, kind: str, number: int = -1) -> int:
    """Group id of a core by number, also of a lost one, or of all ports; -1 without one."""
    return next((index for index, each in enumerate(groups) if (each.kind, each.number) == (kind, number)), NO_GROUP)


def owner_groups(groups: Groups, cores: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Group ids of cores by number; -1 where the core is -1."""
    ids = [groups.numbered(core) for core in range(int(cores.max(initial=-1)) + 1)]
    return np.array([*ids, NO_GROUP], np.int32)[np.maximum(cores, -1)]


#: Functions that send and that receive (outputs 4); others belong to neither direction.
TX_NAMES: Final = frozenset(
    ("send", "CDMA_send", "sys_msg_tx_send", "sys_msg_tx_wait", "tcp_send", "CDMA_tcp_send")
)  # fmt: skip
RX_NAMES: Final = frozenset(
    ("receive", "CDMA_receive", "sys_msg_rx_send", "sys_msg_rx_wait", "tcp_receive", "CDMA_tcp_receive", "read")
)  # fmt: skip
#: Function names by direction.
DIRECTIONS: Final = {"tx": TX_NAMES, "rx": RX_NAMES}


def direction_mask(profile: Profile, lane: Lane, direction: str) -> npt.NDArray[np.bool_]:
    """Mask of the rows of a port that go over the link in one direction, ``tx`` or ``rx``; False for other lanes."""
    if profile.unit_of(lane) >= 0 or lane.number < 0 or "name" not in lane:
        return np.zeros(len(lane), np.bool_)
    return map_texts(profile, lane, "name", ALL, DIRECTIONS[direction].__contains__)
