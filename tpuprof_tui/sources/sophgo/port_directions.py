"""Directions of a CDMA port: which instructions send over the link, and which receive."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.model import Lane, Profile

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
    """Mask of the instructions of a lane that go over the link in one direction.

    Args:
        profile: Contains the function names.
        lane: Lane of a port; the mask is False for other lanes.
        direction: ``tx`` or ``rx``.

    Returns:
        Boolean, one per row.
    """
    if profile.unit_of(lane) >= 0 or lane.number < 0 or "name" not in lane:
        return np.zeros(len(lane), np.bool_)
    names = DIRECTIONS[direction]
    table = np.array([*(text in names for text in profile.strings["name"]), False], np.bool_)
    return np.asarray(table[lane["name"]], np.bool_)
