"""What the profiler itself runs around the kernels: the opening and the closing pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .chips import CDMA, GDMA, SDMA, TIU
from .ops import OPS
from .options import Options
from .program import Program, Row
from .streams import CLOSING, EDGE, INIT

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
#: Markers without nodes behind the opening pair: engine, operation; id, first start, distance, duration.
_MARKERS = ((TIU, "tiu_wait"), (GDMA, "dma_wait"), (SDMA, "dma_wait"))
_MARKER = (9999, 1900, 150, 12)
#: The same relative to the end of the last kernel; SDMA has a pair where a compiled model's runtime closes.
_CLOSING: tuple[tuple[int, str, int, int], ...] = (
    (GDMA, "dma_send", 2480, 2490),
    (TIU, "tiu_send", 2560, 2570),
    (GDMA, "dma_wait", 2520, 2900),
    (TIU, "tiu_wait", 2600, 3040),
)
_CLOSING_SDMA = ((SDMA, "dma_send", 2500, 2510), (SDMA, "dma_wait", 2540, 3010))

#: The same where GDMA answers TIU: each engine does one thing, twice.
_CROSSED = {
    "tiu_send": "tiu_wait",
    "dma_wait": "dma_send",
}

#: VSDMA sends that release the CDMA ports: first start, distance, duration.
_RELEASE = (1500, 400, 10)


def opening(options: Options, ports: int) -> Frame:
    """The handshake of a core; with ``ports``, also that of the CDMA ports."""
    if not options.chip.framed:
        return _bare_opening(options)
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
    number, first, distance, length = _MARKER
    for place in range(options.markers):
        for engine, key in _MARKERS:
            start = first + _RELEASE[1] * ports + distance * place
            program.rows.append(Row(OPS[key], engine, 0, 0.0, alg_ops=1, id=number + place, infra=EDGE))
            times.append((start, start + length))
    return _frame(program, times, 0)


def closing(options: Options, last_ns: int) -> Frame:
    """The pair that ends the profile, after the last kernel."""
    if not options.chip.framed:
        return _bare_closing(options, last_ns)
    program = Program("", options.chip, bare=True, infra=CLOSING)
    times = []
    for engine, key, start, end in (*_CLOSING, *(_CLOSING_SDMA if options.announced or options.hardware else ())):
        program.add(Row(OPS[_key(options, key)], engine, 0, 0.0, alg_ops=1))
        times.append((start, end))
    return _frame(program, times, last_ns)


#: Real commands that open the streams of a chip with stray records; the first one ends on all cores at once.
_REAL_OPENING: tuple[tuple[int, str, int, int], ...] = (
    (TIU, "tiu_send", -10, 0),
    (GDMA, "dma_send", -6, 4),
    (TIU, "tiu_wait", 20, 400),
    (GDMA, "dma_wait", 30, 410),
)
#: Id of a stray record: none that commands have at the head, one that they had at the tail.
_STRAY_IDS = (0x1FFF0, 0)


def _stray(program: Program, number: int) -> None:
    program.rows.append(Row(OPS["tiu_nop"], TIU, 0, 0.0, alg_ops=1, id=_STRAY_IDS[number], infra=EDGE))


def _bare_opening(options: Options) -> Frame:
    """What chips without a handshake open with: nothing, or a stray record and a real pair."""
    program = Program("", options.chip, bare=True)
    times: list[tuple[int, int]] = []
    if options.chip.strays:
        _stray(program, 0)
        times.append((-1600, -1590))
        for engine, key, start, end in () if options.bmodel else _REAL_OPENING:
            program.add(Row(OPS[key], engine, 0, 0.0, alg_ops=1))
            times.append((start, end))
    return _frame(program, times, 0)


def _bare_closing(options: Options, last_ns: int) -> Frame:
    program = Program("", options.chip, bare=True, infra=CLOSING)
    for _ in range(options.chip.strays):
        _stray(program, 1)
    return _frame(program, [(2480, 2490)] * options.chip.strays, last_ns)


def _key(options: Options, key: str) -> str:
    return _CROSSED.get(key, key) if options.crossed_pairs else key


def _frame(program: Program, times: list[tuple[int, int]], shift: int) -> Frame:
    table = np.array(times, dtype=np.int64).reshape(len(times), 2) + shift
    return Frame(program, table[:, 0], table[:, 1])
