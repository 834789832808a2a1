"""Directions of a CDMA port: which of its instructions send over the link, which receive."""

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
#: Names of the directions.
DIRECTIONS: Final = {"tx": TX_NAMES, "rx": RX_NAMES}


def going(profile: Profile, lane: Lane, direction: str) -> npt.NDArray[np.bool_]:
    """Which instructions of a lane go over the link in a direction.

    Args:
        profile: Has the names.
        lane: A port; nothing of other lanes does.
        direction: ``tx`` or ``rx``.

    Returns:
        Boolean, one for each row.
    """
    if lane.port < 0 or "name" not in lane:
        return np.zeros(len(lane), np.bool_)
    wanted = DIRECTIONS[direction]
    table = np.array([*(text in wanted for text in profile.strings["name"]), False], np.bool_)
    return np.asarray(table[lane["name"]], np.bool_)
