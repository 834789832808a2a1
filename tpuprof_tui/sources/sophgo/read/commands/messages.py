"""Dependencies in registers: the command id that a command waits for, and the message of a send or wait.

The bit fields are chip data (``messages`` and ``dependencies`` of the chip files): a wait contains a message id and the
number of sends that release it; a send contains the id and the number of waits that the message serves. ``cmd_id_dep``
is the Cmd Id of a command of the other engine (GDMA's for TIU, TIU's for GDMA), counted from 1 since the last id reset;
0 means none. On AKS and AKSV a bit above the id enables it: compiled streams set it in every computing and every moving
command, but not in sends, waits and ends, which may contain an id nevertheless. On BM1688 and CV84X6 bits above TIU's
id select the engine of that command; the values are not documented in public.

SDMA's field has the same bits as GDMA's, but none for the engine that its id refers to, so it is shown as it is. CDMA's
sends and waits contain a 64-bit constant whose encoding of a message is not public; it is shown as it is, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.model.lane import LazyColumn, Rows, cache_last_slice

from ...chips.chip import Chip, MessageRule, family_of
from ...chips.commands import command_table
from ..arrays import I64
from .lane_registers import LaneRegisters
from .registers import field_of_many

#: Mask of the register bits that an int64 column can hold.
_WIDEST = (1 << 63) - 1
#: Engines with a documented dependency field; the engine that SDMA's refers to is not public.
_DEPENDENT = ("TIU", "GDMA")


class Message(Struct, frozen=True):
    """Message of a send or wait command."""

    id: int
    count: int


def message_in(chip: Chip, engine: str, values: Mapping[str, int]) -> Message | None:
    """Message of a send or wait, from the registers of one command; None where they contain none."""
    rule = chip.messages.get(family_of(engine))
    if rule is None or rule.field not in values:
        return None
    value = values[rule.field]
    return Message(value & (1 << rule.id_bits) - 1, value >> rule.count_bit & (1 << rule.count_bits) - 1)


def dependency_in(chip: Chip, engine: str, values: Mapping[str, int]) -> int:
    """Cmd Id of the other engine's command that a command waits for; 0 without one."""
    return int(depended_on(chip, engine, np.array([values.get("cmd_id_dep", 0)], np.int64))[0])


def depended_on(chip: Chip, engine: str, values: I64) -> I64:
    """Cmd Id of the other engine's command in each dependency register; 0 without one."""
    rule = chip.dependencies.get(family_of(engine))
    if rule is None or engine not in _DEPENDENT:
        return np.zeros(values.shape, np.int64)
    ids = values & (1 << rule.id_bits) - 1
    used = np.ones(values.shape, np.bool_) if rule.enable_bit is None else values >> rule.enable_bit & 1 == 1
    return np.where(used, ids, 0)


def message_columns(chip: Chip, registers: LaneRegisters) -> dict[str, LazyColumn]:
    """Columns of the dependencies and messages of a lane's commands."""
    family = family_of(registers.engine)
    system = command_table(chip, registers.engine).end.operation
    carries_message = np.zeros(32, np.bool_)
    carries_message[[*chip.send_functions[family], *chip.wait_functions[family]]] = True

    def dependency(rows: Rows) -> I64:
        values, missing = field_of_many(
            chip, registers.engine, registers.data, registers.offset[rows], registers.operation[rows], "cmd_id_dep"
        )
        return np.where(missing, INT_MISSING, values.astype(np.int64))

    def register(rule: MessageRule) -> LazyColumn:
        def values(rows: Rows) -> I64:
            operation = registers.operation[rows]
            function = registers.function[rows].astype(np.int64) & 31
            selected = np.flatnonzero((operation == system) & carries_message[function])
            offsets, operations = registers.offset[rows][selected], operation[selected]
            words, _ = field_of_many(chip, registers.engine, registers.data, offsets, operations, rule.field)
            result = np.full(len(operation), INT_MISSING)
            result[selected] = words.astype(np.int64) & _WIDEST
            return result

        return values

    def derived(source: LazyColumn, extract: Callable[[I64], I64]) -> LazyColumn:
        def values(rows: Rows) -> I64:
            words = source(rows)
            return np.where(words == INT_MISSING, INT_MISSING, extract(words))

        return values

    depends = cache_last_slice(dependency)
    columns: dict[str, LazyColumn] = {
        "dependency": derived(depends, lambda words: words),
        "depends_on": derived(depends, lambda words: depended_on(chip, registers.engine, words)),
    }
    if registers.engine in _DEPENDENT and chip.dependencies[family].enable_bit is None:
        columns["depends_engine"] = derived(depends, lambda words: words >> chip.dependencies[family].id_bits)
    rule = chip.messages.get(family)
    if rule is not None:
        ids, first, counts = (1 << rule.id_bits) - 1, rule.count_bit, (1 << rule.count_bits) - 1
        message = cache_last_slice(register(rule))
        columns["message"] = derived(message, lambda values: values & ids)
        columns["message_count"] = derived(message, lambda values: values >> first & counts)
        columns["message_destination"] = derived(message, lambda values: values & ~(ids | counts << first))
    return columns
