"""Reads one core's file: orders records, decodes commands, binds them, tells what is lost, unknown or without times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tpuprof_tui.model.uniques import uniques

from ..chips.chip import Chip, family_of
from .arrays import I64, Bools
from .commands.command_table import CORE_ENGINES, Commands, Mode, NodeRules, NodeStream, bits_of, concatenated
from .commands.lane_registers import attach_registers, block_commands, keyed_blocks, model_streams
from .commands.model_interleaving import EngineCommands, interleaved
from .commands.nodes import decode_nodes
from .core_data import CoreData, EngineData
from .files import BlockType, read_bytes, walk_blocks
from .pairing import SYSTEM, TO_BUS, TO_LOCAL, UNKNOWN, WORK, EngineItems, clean_binding, paired
from .problems import Problems
from .records import profiler_records, runtime_records
from .records.monitor import RecordStream, find_unmarked_opening, in_order, read_stream, to_ns, unwrapped_ids

_WRAP = 1 << 32
_MONITORS = {"TIU": BlockType.MONITOR_BD, "GDMA": BlockType.MONITOR_GDMA, "SDMA": BlockType.MONITOR_SDMA}
_LOCAL_MEMORY = 2
#: Allowance for commands without a record in the limit for the counts of DES nodes.
_LOST = 1024
#: Bytes of the shortest command of any engine.
_SHORTEST_COMMAND = 16
#: Engines of one core whose first records are further apart than this do not share a counter origin.
_ORIGIN_SLACK_NS = 1_000_000


def read_core(core: int, path: Path, chip: Chip, tiu_mhz: float, *, bmodel: bool = False) -> CoreData:
    """Read, order and pair one core's file; anomalies go to the result's report."""
    report = Problems(path.name)
    result = CoreData(core, path.name, read_bytes(path, report), report, bmodel=bmodel)
    report.core = core
    result.blocks = walk_blocks(result.data, report)
    streams = {name: read_stream(*result.payloads(_MONITORS[name]), chip, name, report) for name in CORE_ENGINES}
    streams = {name: stream for name, stream in streams.items() if len(stream)}
    result.records = sum(map(len, streams.values()))
    find_unmarked_opening(streams, chip, same_clock=tiu_mhz == chip.dma_mhz)
    for name, stream in streams.items():
        result.engines[name] = EngineData(in_order(stream, chip, report))
    if bmodel:
        _take_block_commands(result, chip)
    else:
        _decode_commands(result, chip)
        attach_registers(result, chip)
    for engine in result.engines.values():
        longest = None if engine.commands is None else int(engine.commands.id.max(initial=0))
        engine.stream.id = unwrapped_ids(engine.stream.id, longest)
    _common_origin(result, chip, tiu_mhz)
    profiler_records.trim_edges(result, chip)
    runtime_records.note_unmarked(result, chip)
    if bmodel and not result.has_des_streams:  # its streams do not contain the profiler's own commands
        profiler_records.separate_profiler_records(result, chip)
        runtime_records.separate_runtime_records(result, chip)
        _interleave(result, chip)
        _bind(result, chip)
    else:
        runtime_records.agree_on_first_reset(result, chip)
        runtime_records.separate_runtime_records(result, chip)
        _bind(result, chip)
        profiler_records.separate_profiler_records(result, chip)
    runtime_records.separate_unbound_runtime_records(result, chip)
    profiler_records.set_sync_end(result, chip)
    report_unpaired(result)
    report_unknown_codes(result, chip)
    return result


def report_unpaired(result: CoreData) -> None:
    """Report records without a command and commands without a record."""
    for name, engine in result.engines.items():
        rows = np.arange(len(engine.bound))[engine.keep]
        if engine.commands is None:
            # ids number the commands of a launch: ids skipped between two records are commands without a record
            skipped = np.diff(engine.stream.id[rows].astype(np.int64)) - 1
            how, lost, after = ", by their ids", int(skipped[skipped > 0].sum()), rows[1:][skipped > 0]
            lost *= lost < len(skipped)
        else:
            how, lost = "", len(engine.commands) - int(np.count_nonzero(engine.bound >= 0))
            after = _records_after_lost(engine.bound, len(engine.commands)) if lost else rows
            rows = rows[engine.bound[rows] < 0]
            if len(rows):
                result.report.error(f"{name} records without a command.", "They are shown as unknown.",
                                    offset=engine.stream.byte_offset(result.data, int(rows[0])), lane=name,
                                    count=len(rows), records=engine.stream.dump_indices(rows),
                                    unnamed=True)  # fmt: skip
        if lost:
            what = f"{name} commands without a record{how}: the hardware did not keep it."
            result.report.warning(what, "Times and sums lack what they took.", lane=name, count=lost, lost=lost,
                                  after_gap=True, records=engine.stream.dump_indices(after))  # fmt: skip
    if result.engines:
        report_unrecorded(result)
    held = any(len(stream) for streams in result.streams.values() for stream in streams)
    shown = sum(len(engine.bound[engine.keep]) for engine in result.engines.values())
    if result.bmodel and result.nodes is None and shown and not held:
        what = "The capture is of a compiled model, but the file has no commands of it."
        result.report.warning(what, "Its records are shown as unknown.", count=1)


def report_unrecorded(result: CoreData) -> None:
    """Report engines that have commands in the nodes but no record."""
    for name, commands in (result.nodes.engines if result.nodes is not None else {}).items():
        if name not in result.engines and len(commands):
            what = f"{name} has commands but no record."
            result.report.warning(what, "Nothing of it can be shown.", count=len(commands))


def _records_after_lost(bound: I64, count: int) -> I64:
    """Rows of the records that follow commands without a record; the last bound record where none follows."""
    rows = np.flatnonzero(bound >= 0)
    if not len(rows):
        return rows
    bound_mask = np.zeros(count, np.bool_)
    bound_mask[bound[rows]] = True
    next_rows = np.searchsorted(np.maximum.accumulate(bound[rows]), np.flatnonzero(~bound_mask))
    return uniques(rows[np.minimum(next_rows, len(rows) - 1)])


def _take_block_commands(result: CoreData, chip: Chip) -> None:
    """Take the command streams that a bmodel has instead of nodes, and the nodes of commands that firmware issued."""
    result.streams = {name: model_streams(result, chip, name) for name in CORE_ENGINES}
    _decode_commands(result, chip)
    attach_registers(result, chip)
    for name, engine in result.engines.items() if not result.has_des_streams else ():
        streams = result.streams[name]
        # where SDMA has nothing to do, its end is the runtime's, as its records are
        idle = name == "SDMA" and chip.preamble > 0 and all(stream.only_ends for stream in streams)
        static = None if idle else block_commands(streams)
        dynamic = (
            engine.commands
            if engine.commands is None
            else profiler_records.without_profiler_commands(name, result, chip)
        )
        parts = [part for part in (static, dynamic) if part is not None and len(part)]
        engine.commands = concatenated(parts) if parts else None
        engine.static_count = 0 if static is None else len(static)
    found = [name for name, engine in result.engines.items() if engine.static_count]
    for name, engine in result.engines.items():
        if found and engine.commands is None and name != "SDMA":
            what = f"There is no stream of {name} commands."
            result.report.error(what, "Its records are shown as unknown.", lane=name)
    if result.nodes is None:
        return
    # commands that DES nodes dispatch are in separate streams
    beside = sum(int(np.count_nonzero(commands.des < 0)) for commands in result.nodes.ports.values())
    if beside:
        what = "CDMA commands that firmware issued in addition to a compiled model."
        result.report.warning(what, "They are not matched with the records of their ports.", count=beside)
    result.nodes.ports.clear()


def _interleave(result: CoreData, chip: Chip) -> None:
    """Merge the commands of a model's streams and of nodes into execution order."""
    engines = [(engine, engine.commands) for engine in result.engines.values() if engine.commands is not None]
    if result.nodes is None or not any(len(commands) > engine.static_count for engine, commands in engines):
        return
    lists = [
        EngineCommands(
            _record_items(_bindable_records(engine), chip),
            *(commands.take(part) for part in (slice(0, engine.static_count), slice(engine.static_count, None))),
        )
        for engine, commands in engines
    ]
    for (engine, _), commands in zip(engines, interleaved(lists), strict=True):
        engine.commands = commands


# -- commands -----------------------------------------------------------------


def _decode_commands(result: CoreData, chip: Chip) -> None:
    payloads, offsets = result.payloads(BlockType.DYN_DATA)
    if not payloads:
        return
    result.mode = 1
    if len(payloads) > 1:
        result.report.note(f"{len(payloads)} blocks of dynamic data.", "Read as one stream.")
    rest = sum(len(part) % 4 for part in payloads)
    if rest:
        what = f"Bytes at the end of the dynamic data that are not a whole word: {rest}."
        result.report.error(what, "They were ignored.", offset=offsets[-1] + len(payloads[-1]) // 4 * 4)
    whole = [part[: len(part) // 4 * 4] for part in payloads]
    words = (whole[0] if len(whole) == 1 else np.concatenate(whole)).view("<u4")
    fills = {name: chip.rvt_fill[family_of(name)] for name in CORE_ENGINES if family_of(name) in chip.rvt_fill}
    held = sum(len(stream) for streams in result.streams.values() for stream in streams)
    held += sum(map(len, result.payloads(BlockType.DES_KV)[0])) // _SHORTEST_COMMAND
    most = held + (2 * result.records + _LOST if result.records else 0)
    keyed = set(keyed_blocks(result)) if any(result.streams.values()) else set()
    rules = NodeRules(chip.engine_codes, chip.rvt_id_limit, fills, chip.cdma_ports, most, result.streams, keyed)
    report = Problems(result.file, result.core)
    nodes = decode_nodes(words, rules, report, offsets[0])
    if any("unknown type" in problem.what for problem in report.problems()) and not _all_clean(result, nodes):
        other_report = Problems(result.file, result.core)
        other = decode_nodes(words, rules, other_report, offsets[0], unknown_as_commands=True)
        if _all_clean(result, other):
            nodes, report = other, other_report
    result.report.extend(report)
    result.nodes = nodes
    for name, engine in result.engines.items():
        commands = nodes.engines[name]
        engine.commands = commands if len(commands) else None
    if any(block.kind == BlockType.DYN_EXTRA for block in result.blocks):
        result.mode = 2


def _all_clean(result: CoreData, nodes: NodeStream) -> bool:
    return all(
        clean_binding(engine.stream.id, nodes.engines[name].id) is not None
        for name, engine in result.engines.items()
        if len(nodes.engines[name])
    )


# -- one time line per core ---------------------------------------------------


def _common_origin(result: CoreData, chip: Chip, tiu_mhz: float) -> None:
    """Put the counters of a core's engines on one origin, then convert cycles to ns.

    All counters of a core start at once, but each may have wrapped before its first record.
    """
    streams = [engine.stream for engine in result.engines.values()]
    if not streams:
        return
    clocks = [float(tiu_mhz if family_of(stream.engine) == "tiu" else chip.dma_mhz) for stream in streams]
    one_clock = len(set(clocks)) == 1
    base = next((stream for stream in streams if not stream.lapped), streams[0])
    for stream in streams if one_clock else ():
        at_end = stream.lapped or base.lapped
        own, reference = (stream.end[-1], base.end[-1]) if at_end else (stream.start[0], base.start[0])
        wraps = int(np.rint((int(reference) - int(own)) / _WRAP))
        if wraps:
            stream.shift(wraps * _WRAP)
    for stream, clock in zip(streams, clocks, strict=True):
        to_ns(stream, clock)
    for stream in streams:
        distance = int(base.start[0]) - int(stream.start[0])
        if not one_clock and not stream.lapped and not base.lapped and abs(distance) > _ORIGIN_SLACK_NS:
            stream.shift(distance)
            result.report.warning(
                f"The {stream.engine} counter has wrapped and does not tick like {base.engine}: they share no origin.",
                "Their opening commands are assumed to start together; offsets under 2 us between engines are unknown.",
            )


# -- binding ------------------------------------------------------------------


def _bind(result: CoreData, chip: Chip) -> None:
    engines = [(engine, engine.commands) for engine in result.engines.values() if engine.commands is not None]
    for engine in result.engines.values():
        engine.bound = np.full(len(engine.stream), -1, np.int64)
    streams = [_bindable_records(engine) for engine, _ in engines]
    lists = [commands for _, commands in engines]
    found = [clean_binding(stream.id, commands.id) for stream, commands in zip(streams, lists, strict=True)]
    if not all(binding is not None and len(binding) == len(some) for binding, some in zip(found, lists, strict=True)):
        records = [_record_items(stream, chip) for stream in streams]
        items = [_command_items(stream.engine, some, chip) for stream, some in zip(streams, lists, strict=True)]
        pairings = paired(records, items, lapped=any(stream.lapped for stream in streams))
        found = [bound for bound, _ in pairings]
        for stream, (_, doubt) in zip(streams, pairings, strict=True):
            if doubt.any():
                what = f"{stream.engine} records whose launch is not certain: too many next to them are lost."
                done = "They are shown in the likelier one; the adjacent kernel function is possible."
                result.report.warning(what, done, lane=stream.engine, count=int(doubt.sum()),
                                      records=stream.dump_indices(doubt))  # fmt: skip
    for (engine, _), binding in zip(engines, found, strict=True):
        if binding is not None:
            engine.bound[engine.keep] = binding


def _bindable_records(engine: EngineData) -> RecordStream:
    """Records that can have a command: all of them, or without the profiler's own once those are known."""
    everything = isinstance(engine.keep, slice) and engine.keep == slice(None)
    return engine.stream if everything else engine.stream.take(engine.keep)


def _record_items(stream: RecordStream, chip: Chip) -> EngineItems:
    system = stream.system_mask(chip)
    kind = np.where(system, np.int8(SYSTEM), np.int8(WORK))
    if family_of(stream.engine) == "dma" and "gif_mem_w_cntr" in stream.layout.by_name:
        local = stream.counter("gif_mem_w_cntr") > 0
        bus = stream.counter("axi_d0_w_cntr") > 0
        kind[local & ~bus] = TO_LOCAL
        kind[bus & ~local] = TO_BUS
    elif family_of(stream.engine) not in chip.system_records or not stream.marked:
        kind[:] = UNKNOWN
    return EngineItems(stream.id, stream.start, kind, stream.end)


def _command_items(name: str, commands: Commands, chip: Chip) -> EngineItems:
    family = family_of(name)
    kind = np.where(commands.type_code == chip.system_types[family], np.int8(SYSTEM), np.int8(WORK))
    if family == "dma":
        to = (commands.word >> np.uint32(26)) & np.uint32(3)
        plain = (kind == WORK) & (commands.mode == Mode.TDI)
        kind[plain] = np.where(to[plain] == _LOCAL_MEMORY, TO_LOCAL, TO_BUS)
    kind[commands.word == 0] = UNKNOWN
    if "rvt" in chip.name_tables:  # RVT codes are generator indices there, not type codes
        kind[commands.mode == Mode.RVT] = UNKNOWN
    return EngineItems(commands.id, commands.node_index, kind)


#: Text of a nameless type in the name tables.
_NAMELESS = "unknown"
_INVALID_MEMORY = "INVALID"


def report_unknown_codes(result: CoreData, chip: Chip) -> None:
    """Report each code of a core's nodes that the chip does not know, except for commands with registers."""
    if result.nodes is None:
        return
    for name, commands in result.nodes.engines.items():
        engine = result.engines.get(name)
        for what, done, mask in _unknown_codes(name, commands, chip):
            records = {}
            # with a compiled model the bindings refer to merged lists, not to the nodes
            if engine is not None and engine.commands is commands:
                bad = (engine.bound >= 0) & mask[np.maximum(engine.bound, 0)]
                records["records"] = engine.stream.dump_indices(bad)
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
    formats, no_format = bits_of(commands.word, 20, 15), np.arange(16) >= len(chip.data_types)
    checks = [
        ("type", types, nameless, has_code, "They are shown without a name."),
        ("data type", formats, no_format, transfers, "It is shown by its code."),
    ]
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
    first, offset = int(node_indices.min()), -1
    for payload, begin in zip(*result.payloads(BlockType.DYN_DATA), strict=True):
        if first < len(payload) // 4:
            offset = begin + 4 * first
            break
        first -= len(payload) // 4
    result.report.error(what, done, file=result.file, offset=offset, core=result.core if lane[:4] != "port" else -1,
                        lane=lane, count=len(node_indices), **records)  # type: ignore[arg-type]  # fmt: skip


# Captures without hardware records, from emulators or with the PMU off: only commands, without times.
#
# Commands are in the order of issue. The sends and waits that the profiler and, around each launch of a compiled
# model, the runtime issue outside every kernel function are left out.


def untimed_commands(core: CoreData, chip: Chip) -> dict[str, Commands]:
    """Commands of each engine of a core, without engines that have none."""
    found: dict[str, Commands] = {}
    for name in CORE_ENGINES:
        parts = [] if core.has_des_streams else [block_commands(core.streams.get(name, ()))]
        if core.nodes is not None and len(core.nodes.engines[name]):
            issued = profiler_records.without_profiler_commands(name, core, chip)
            parts.append(
                issued.take(np.flatnonzero(~profiler_records.outside_kernels(name, issued, chip)))
                if core.bmodel
                else issued
            )
        present = [part for part in parts if part is not None and len(part)]
        if present:
            found[name] = concatenated(present)
    return found


def report_untimed(cores: list[CoreData], commands: list[dict[str, Commands]], report: Problems) -> None:
    """Report the one problem that describes such a capture."""
    counts = {name: sum(len(each[name]) for each in commands if name in each) for name in CORE_ENGINES}
    launches = max((len(streams) for core in cores for streams in core.streams.values()), default=0)
    left_out = -sum(counts.values())
    for core in cores:
        if core.nodes is not None:
            launches += len(core.nodes.scope_names)
            left_out += sum(map(len, core.nodes.engines.values()))
        if not core.has_des_streams:
            left_out += sum(len(stream) for streams in core.streams.values() for stream in streams)
    launches_text = f"{launches:,} launch{'es' if launches != 1 else ''}; " if launches else ""
    counts_text = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    without = f", without {left_out:,} sends and waits around them" if left_out else ""
    what = f"No hardware records: {launches_text}{counts_text} commands without times."
    report.warning(what, f"They are shown in the order they were issued{without}.")
