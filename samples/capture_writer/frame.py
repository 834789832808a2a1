"""What the profiler itself runs around the kernels: the opening and the closing pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .chips import CDMA, GDMA, SDMA, TIU
from .ops import OPS
from .options import Options
from .program import Program, Row
from .streams import CLOSING, INIT

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """A bare program and the times (ns) of its rows."""

    program: Program
    start: I64
    end: I64


#: engine, operation, start and end in ns before the end of the TIU wait.
_OPENING: tuple[tuple[int, str, int, int], ...] = (
    (TIU, "tiu_send", -1600, -1590),
    (GDMA, "dma_send", -1020, -1010),
    (TIU, "tiu_wait", -1000, 0),
    (GDMA, "dma_wait", -960, -10),
    (SDMA, "dma_send", -1010, -1000),
    (SDMA, "dma_wait", -900, -290),
)
#: The same relative to the end of the last kernel.
_CLOSING: tuple[tuple[int, str, int, int], ...] = (
    (GDMA, "dma_send", 2480, 2490),
    (TIU, "tiu_send", 2560, 2570),
    (GDMA, "dma_wait", 2520, 2900),
    (TIU, "tiu_wait", 2600, 3040),
)

#: The same where GDMA answers TIU: each engine does one thing, twice.
_CROSSED = {
    "tiu_send": "tiu_wait",
    "dma_wait": "dma_send",
}

#: VSDMA sends that release the CDMA ports: first start, distance, duration.
_RELEASE = (1500, 400, 10)


def opening(options: Options, ports: int) -> Frame:
    """The handshake of a core; with ``ports``, also that of the CDMA ports."""
    program = Program("", options.chip, first_id=(0, 0, 0, 41), bare=True, infra=INIT)
    times: list[tuple[int, int]] = []

    def put(engine: int, key: str, start: int, end: int, slot: int = 0) -> None:
        program.add(Row(OPS[key], engine, 0, 0.0, alg_ops=1, slot=slot))
        times.append((start, end))

    for engine, key, start, end in _OPENING:
        put(engine, _key(options, key), start, end)
    first, distance, length = _RELEASE
    for port in range(ports):
        put(SDMA, "dma_send", first + distance * port, first + distance * port + length)
    for port in range(ports):
        released = first + distance * port + length
        put(CDMA, "cdma_tx_wait", released - 700 - 37 * port, released, port)
        put(CDMA, "cdma_nop", released + 20, released + 31, port)
    return _frame(program, times, 0)


def closing(options: Options, last_ns: int) -> Frame:
    """The pair that ends the profile, after the last kernel."""
    program = Program("", options.chip, bare=True, infra=CLOSING)
    times = []
    for engine, key, start, end in _CLOSING:
        program.add(Row(OPS[_key(options, key)], engine, 0, 0.0, alg_ops=1))
        times.append((start, end))
    return _frame(program, times, last_ns)


def _key(options: Options, key: str) -> str:
    return _CROSSED.get(key, key) if options.crossed_pairs else key


def _frame(program: Program, times: list[tuple[int, int]], shift: int) -> Frame:
    table = np.array(times, dtype=np.int64) + shift
    return Frame(program, table[:, 0], table[:, 1])
