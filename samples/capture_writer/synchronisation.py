"""What commands wait for, as registers say it, and which command released which.

A command names the last command of the other engine that it needs (``cmd_id_dep``, ids from 1 since the id reset).
Sends and waits name a message: a wait says how many sends release it, a send how many waits its message serves. The
kernels of this writer say what they wait for in their own terms (``Row.after``, ``Row.until``); here these become ids,
and the truth of who released whom is told from the kernels' terms, never from the ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .chips import GDMA, TIU
from .program import BARRIER, Program, Row

if TYPE_CHECKING:
    from .build import Built

#: Bit of a dependency register that says it is used.
DEPENDENCY_ENABLE = 1 << 20
#: Messages of one core's own: from here on, so many for each core.
_OWN_MESSAGES, _OWN_COUNT = 64, 32

_OTHER = {TIU: GDMA, GDMA: TIU}
_SENDS = frozenset(("tiu_send", "dma_send"))
_WAITS = frozenset(("tiu_wait", "dma_wait"))


def synchronise(program: Program, cores: int, place: int) -> None:
    """Give a program's commands their dependencies, and its sends and waits messages that fit the hardware's rule.

    Args:
        program: Program of one launch on one core.
        cores: Cores that run the kernel together.
        place: Which of them this is.
    """
    for row in program.rows:
        needed = _needed(program, row)
        if needed >= 0:
            row.dependency = program.rows[needed].id + 1
    own = 0
    for number, row in enumerate(program.rows):
        if row.op.key in _WAITS and row.until != BARRIER:
            message = _OWN_MESSAGES + place * _OWN_COUNT + own % _OWN_COUNT
            own += 1
            _join(program, [row.until] if _is_send(program, row.until) else [], [number], message)
    everywhere = [n for n, row in enumerate(program.rows) if row.op.key in _WAITS and row.until == BARRIER]
    sends = _barrier_sends(program)
    for number in (*sends, *everywhere):
        program.rows[number].count = cores * len(everywhere if number in sends else sends)


def _needed(program: Program, row: Row) -> int:
    """The other engine's last command that a command needs; -1 for none."""
    other = _OTHER.get(row.engine)
    return max((before for before in row.after if program.rows[before].engine == other), default=-1)


def _is_send(program: Program, number: int) -> bool:
    return number >= 0 and program.rows[number].op.key in _SENDS


def _join(program: Program, sends: list[int], waits: list[int], message: int) -> None:
    for number in sends:
        program.rows[number].message, program.rows[number].count = message, len(waits)
    for number in waits:
        program.rows[number].message, program.rows[number].count = message, max(len(sends), 1)


def _barrier_sends(program: Program) -> list[int]:
    """Sends of the barrier: those with its message that nobody on this core waits for alone."""
    messages = {row.message for row in program.rows if row.op.key in _WAITS and row.until == BARRIER}
    return [n for n, row in enumerate(program.rows) if row.op.key in _SENDS and row.message in messages]


# -- truth --------------------------------------------------------------------


def links(built: Built) -> list[list[int]]:
    """Who released whom: waiting track and record, releasing track and record (as the truth numbers them).

    A wait for several sends is released by the one that retires last. A link whose ends were not both recorded is
    left out, and so is a wait one of whose sends was not recorded.
    """
    tracks = {id(stream): number for number, stream in enumerate(built.streams)}
    places: dict[tuple[int, int, int], tuple[int, int]] = {}
    launches: dict[int, list[tuple[int, int]]] = {}
    for number, streams in built.cores.items():
        for stream in streams:
            present = stream.present()
            for record in np.flatnonzero((stream.launch >= 0) & present).tolist():
                places[number, int(stream.launch[record]), int(stream.row[record])] = (tracks[id(stream)], record)
    for place, number in enumerate(built.plan.running):
        for launch, program in enumerate(built.plan.program[place].tolist()):
            launches.setdefault(launch, []).append((number, program))
    found: list[list[int]] = []
    for launch, running in launches.items():
        found += _launch_links(built, launch, running, places)
    return sorted(found)


def _launch_links(
    built: Built, launch: int, running: list[tuple[int, int]], places: dict[tuple[int, int, int], tuple[int, int]]
) -> list[list[int]]:
    streams, programs = built.streams, built.catalogue.programs

    def end(place: tuple[int, int]) -> float:
        stream = streams[place[0]]
        return float(stream.ns(stream.end[place[1] : place[1] + 1])[0])

    def record(core: int, program: int, row: int) -> tuple[int, int] | None:
        return places.get((core, launch, built.catalogue.first[program] + row))

    arrivals = [record(core, program, row) for core, program in running for row in _barrier_sends(programs[program])]
    found: list[list[int]] = []
    for core, program in running:
        rows = programs[program].rows
        for number, row in enumerate(rows):
            waiter = record(core, program, number)
            needed = _needed(programs[program], row)
            releasers = [record(core, program, needed)] if needed >= 0 else []
            if row.op.key in _WAITS:
                sends = arrivals if row.until == BARRIER else (
                    [record(core, program, row.until)] if _is_send(programs[program], row.until) else []
                )  # fmt: skip
                known = [send for send in sends if send is not None]
                if known and len(known) == len(sends):
                    releasers.append(max(known, key=lambda send: (end(send), send)))
            if waiter is not None:
                found += [[*waiter, *releaser] for releaser in releasers if releaser is not None]
    return found
