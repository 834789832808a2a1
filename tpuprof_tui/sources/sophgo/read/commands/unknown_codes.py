"""Reports codes in nodes that the chip does not know: types, data types and memories."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of

from ..arrays import I64, Bools
from ..core_data import CoreData
from ..stream.blocks import BlockType
from .command_table import Commands, Mode, bits_of

#: Text of a nameless type in the name tables.
_NAMELESS = "unknown"
_INVALID_MEMORY = "INVALID"


def report_unknown_codes(result: CoreData, chip: Chip) -> None:
    """Report each code of a core's nodes that the chip does not know, except for commands with registers."""
    if result.nodes is None:
        return
    for name, commands in result.nodes.engines.items():
        engine = result.engines.get(name)
        # with a compiled model the bindings refer to merged lists, not to the nodes
        bound = engine.bound if engine is not None and engine.commands is commands else None
        for what, done, mask in _unknown_codes(name, commands, chip):
            records = {}
            if engine is not None and bound is not None:
                records["records"] = engine.stream.dump_indices((bound >= 0) & mask[np.maximum(bound, 0)])
            _report_code(result, name, what, done, commands.node_index[mask], **records)
    for port, commands in result.nodes.ports.items():
        for what, done, mask in _unknown_codes("CDMA", commands, chip):
            _report_code(result, f"port {port}", what, done, commands.node_index[mask])


def _unknown_codes(engine: str, commands: Commands, chip: Chip) -> Iterator[tuple[str, str, Bools]]:
    """Problem, consequence and mask of the commands, for each unknown code of an engine."""
    if not len(commands):
        return
    family = family_of(engine)
    has_code = commands.word != 0
    if commands.register_offset is not None:
        has_code &= commands.register_offset < 0
    if "rvt" in chip.name_tables:  # RVT codes are generator indices there
        has_code &= commands.mode != Mode.RVT
    types = commands.type_code
    names = chip.names(engine)
    nameless = np.array([names.type_text(code) == _NAMELESS or code not in names.types for code in range(32)])
    transfers = has_code & (types != chip.system_types[family]) & (family != "tiu")
    checks = [("type", types, nameless, has_code, "They are shown without a name.")]
    formats = np.arange(16) >= len(chip.data_types)
    checks.append(("data type", bits_of(commands.word, 20, 15), formats, transfers, "It is shown by its code."))
    if family == "dma":
        memories = np.array([chip.memories[code] == _INVALID_MEMORY for code in range(4)])
        done = f"It is shown as {_INVALID_MEMORY}."
        checks += [(f"{side} memory", bits_of(commands.word, bit, 3), memories, transfers, done)
                   for side, bit in (("source", 24), ("destination", 26))]  # fmt: skip
    for what, values, unknown, applies, done in checks:
        mask = applies & unknown[values]
        for code in uniques(values[mask]).tolist():
            text = f"{engine} commands with {what} code {code}, which {chip.name} does not know."
            yield text, done, mask & (values == code)


def _report_code(result: CoreData, lane: str, what: str, done: str, node_indices: I64, **records: I64) -> None:
    payloads, offsets = result.payloads(BlockType.DYN_DATA)
    first, offset = int(node_indices.min()), -1
    for payload, begin in zip(payloads, offsets, strict=True):
        if first < len(payload) // 4:
            offset = begin + 4 * first
            break
        first -= len(payload) // 4
    result.report.error(what, done, file=result.file, offset=offset, core=result.core if lane[:4] != "port" else -1,
                        lane=lane, count=len(node_indices), **records)  # type: ignore[arg-type]  # fmt: skip
