"""Builds lanes of the model from streams and commands; columns are computed on demand from node words and counters."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Role, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, cache_last_slice, constant
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of
from tpuprof_tui.sources.sophgo.chips.names import variant_direction
from tpuprof_tui.sources.sophgo.groups import owner_groups, ports_group

from ..arrays import I8, I32, I64, U8, Bytes
from ..commands.command_table import Commands, Mode
from ..commands.details import PLACE_BITS, Detail, decode_lane
from ..commands.messages import message_columns
from ..records.monitor import Stream
from .computations import at_peak, condensed_columns, conflict_columns, counted_columns, excess
from .lane_columns import Words, Work, counter_columns, counting, known_or_missing, scoped
from .transfers import Transfers, TransferTables, node_places

_ENGINE_ID = {"TIU": 0, "GDMA": 1, "SDMA": 3, "CDMA": 4}
_MODES = ("TDI", "RVT", "DES")
_TEXTS = ("name", "type", "kernel", "mode", "direction", "dtype", "from_memory", "to_memory")
_LONG_WAIT_NS = 1000
_CODES = 1 << 10  # number of codes of type and function
_PLACES = 1 << 14  # with source and destination memory
_VARIANTS = 0x1FFFFF  # mask of type code and generator index
#: Categories of generator indices that are system commands.
_GENERATOR_SYSTEM = frozenset(("sys", "sdma_sys"))


class LaneSource(Struct):
    """Input of one lane.

    Attributes:
        stream: Records that are instructions, in stream order, times in ns; None where commands have no records.
        commands: Command of each record in the same order (word 0 where there is none); None without any.
        core: Core number of the lane; -1 for a port.
        cores: Submitting core of each record of a port, -1 unknown; None for a core's lane.
        first_scope: Scope id of the commands' scope 0.
        data: Bytes that contain the commands' registers.
    """

    engine: str
    stream: Stream | None
    commands: Commands | None
    core: int
    cores: I32 | None
    first_scope: int
    data: Bytes


#: Names that do not come from node codes: index of each row's name (-1: none), and string codes of the names by column.
_OwnNames = tuple[I32, dict[str, I32]]


class LaneBuilder:
    """Builds the lanes of one profile, which share the string tables."""

    def __init__(self, chip: Chip, tiu_mhz: float, groups: Groups) -> None:
        self.chip = chip
        self.groups = groups
        self.tiu_mhz = tiu_mhz
        self.strings = {key: StringsBuilder() for key in _TEXTS}
        for mode in _MODES:
            self.strings["mode"].code(mode)
        self._tables = TransferTables(chip, self.strings)

    def build(self, source: LaneSource, scope_kernel: I32) -> Lane:
        """Lane of one stream.

        Args:
            scope_kernel: Kernel string code by scope id.
        """
        engine, family = source.engine, family_of(source.engine)
        stream, commands, order = source.stream, source.commands, None
        if stream is not None and bool((stream.start[1:] < stream.start[:-1]).any()):
            order = np.argsort(stream.start, kind="stable")
            stream, commands = stream.take(order), None if commands is None else commands.take(order)
        detail = decode_lane(self.chip, engine, source.data, commands) if commands is not None else None
        generated = None
        if commands is not None and "rvt" in self.chip.name_tables and (commands.mode == Mode.RVT).any():
            generated = commands.mode == Mode.RVT
        work = Work(self._words(stream, commands), self.chip.system_types[family], generated)
        count = len(work.word)
        own = self._own_names(work, detail)
        times = _times(stream, commands, family)
        if stream is not None:
            start, end = stream.start, stream.end
            sublane, _ = split_overlaps(start, end)
        else:
            start = end = np.full(count, INT_MISSING, np.int64)
            sublane = None
        columns: dict[str, Array | LazyColumn] = {
            "start": start,
            "end": end,
            "order": order if order is not None else counting(count),
            "sublane": sublane if sublane is not None else constant(count, 0, np.int16),
            "engine_id": constant(count, _ENGINE_ID[engine], np.int64),
            **self._cores(source, order, count),
            **times,
            "role": self._roles(work, family, own),
            **self._named(work.word, family, own),
        }
        if commands is not None:
            columns |= scoped(commands, source.first_scope, scope_kernel)
        if family != "tiu":
            places = self._moved_places(work, own, detail)
            figures = Transfers(self._tables, engine, stream, work, places, detail).columns()
        else:
            figures = condensed_columns(work)
            if detail is not None:
                figures |= counted_columns(self.chip, detail, None if stream is None else times["cycles"], self.tiu_mhz)
            if stream is not None:
                figures |= conflict_columns(stream, times["cycles"])
        if stream is not None and "ideal" in figures:
            ideal = cache_last_slice(figures["ideal"])
            figures |= {"ideal": lambda rows: ideal(rows).copy(), "at_peak": at_peak(ideal, times["duration"]),
                        "excess": excess(ideal, times["duration"])}  # fmt: skip
        columns |= figures
        if detail is not None:
            columns |= message_columns(self.chip, detail)
        if stream is not None:
            columns |= counter_columns(stream)

        def text(key: str, code: int) -> str:
            return self.strings[key].text(code)

        def describe(row: int) -> str:
            from .instruction_text import LaneReading  # imported on first use

            return LaneReading(self.chip, engine, columns, text, detail, commands is None)(row)

        label, number, group = engine, -1, self.groups.numbered(source.core)
        if stream is not None and stream.port >= 0:
            columns["port"] = constant(count, stream.port, np.int64)
            label, number, group = stream.label, stream.port, ports_group(self.groups)
        return Lane(kind=engine, label=label, number=number, group=group,
                    activity=Activity.COMPUTE if family == "tiu" else Activity.TRANSFER, columns=columns,
                    registers=detail, describe=describe, role_guessed=commands is None)  # fmt: skip

    def _cores(self, source: LaneSource, order: I64 | None, count: int) -> dict[str, LazyColumn]:
        """Column of the lane's core; for a port, columns of each row's submitter and of its group."""
        if source.cores is None:
            return {"core": constant(count, source.core, np.int64)}
        owners = owner_groups(self.groups, source.cores if order is None else source.cores[order])
        owner = known_or_missing(owners)
        return {"core": lambda rows: self.groups.unit_numbers(owner(rows)), "owner": owner}

    def _words(self, stream: Stream | None, commands: Commands | None) -> Words:
        """Node words, with synthetic ones for system records without a command.

        Sends and waits alternate: the half with the larger sum of durations are the waits, and so is everything above 1
        us (pipeline 9).
        """
        word = commands.word if commands is not None else np.zeros(0 if stream is None else len(stream), np.uint32)
        loose = np.flatnonzero(word == 0)
        if stream is None or not len(loose):
            return word
        loose = loose[stream.system(self.chip, loose)]
        if not len(loose):
            return word
        family = family_of(stream.engine)
        length = stream.end[loose] - stream.start[loose]
        odd = np.arange(len(loose)) & 1
        wait_parity = int(length[odd == 1].sum() > length[odd == 0].sum())
        is_wait = (length > _LONG_WAIT_NS) | (odd == wait_parity)
        typ = self.chip.system_types[family]
        send, wait = min(self.chip.send_functions[family]), min(self.chip.wait_functions[family])
        result: Words = word.copy()
        result[loose] = np.where(is_wait, np.uint32(typ << 10 | wait << 15), np.uint32(typ << 10 | send << 15))
        return result

    def _roles(self, work: Work, family: str, own: _OwnNames | None) -> I8:
        table = np.full(_CODES, Role.WORK, np.int8)
        table[work.system | np.arange(32) << 5] = Role.SYNC
        table[[work.system | function << 5 for function in self.chip.wait_functions[family]]] = Role.WAIT
        roles: I8 = table[(work.word >> np.uint32(10)) & np.uint32(_CODES - 1)]
        if work.generated is not None and own is not None:
            place, codes = own
            texts = zip(*([self.strings[key].text(code) for code in codes[key].tolist()] for key in codes), strict=True)
            mine = np.array([generator_role(*text) for text in texts], np.int8)
            roles[work.generated] = mine[place[work.generated]]
        return roles

    def _own_names(self, work: Work, detail: Detail | None) -> _OwnNames | None:
        """Names of commands by operation (TIU, and operations without a published name) and by generator index."""
        place, types, names = np.zeros(0, np.int32), list[str](), list[str]()
        if detail is not None and family_of(detail.engine) == "tiu":
            _, place, types, names = detail.texts()
        elif detail is not None and (told := detail.partial_texts()) is not None:
            place, types, names = told
        if work.generated is not None:
            rows = np.flatnonzero(work.generated)
            keys, where = np.unique((work.word[rows] >> np.uint32(10)) & np.uint32(_VARIANTS), return_inverse=True)
            more = [self.chip.names("TIU", rvt=True).texts_of(key) for key in keys.tolist()]
            place = place if len(place) else np.full(len(work.word), -1, np.int32)
            place[rows] = (where + len(types)).astype(np.int32)
            types, names = [*types, *(kind for kind, _ in more)], [*names, *(name for _, name in more)]
        if not types:
            return None
        return place, {
            key: np.array([*map(self.strings[key].code, texts), -1], np.int32)
            for key, texts in (("type", types), ("name", names))
        }

    def _named(self, word: Words, family: str, own: _OwnNames | None) -> dict[str, LazyColumn]:
        """Columns of type and name: by node codes unless the row has a name in ``own``."""
        names = self.chip.names(family)
        codes = ((word >> np.uint32(10)) & np.uint32(_CODES - 1)).astype(np.int64)
        size = _PLACES if names.directed else _CODES
        tables = {key: np.full(size, -1, np.int32) for key in ("type", "name")}
        for code in np.flatnonzero(np.bincount(codes, minlength=_CODES)).tolist():
            for key in range(code, size, _CODES):
                for table, text in zip(tables, names.texts_of(key), strict=True):
                    tables[table][key] = self.strings[table].code(text)

        def column(name: str) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                key = (some >> np.uint32(10)) & np.uint32(_CODES - 1)
                if size == _PLACES:
                    key |= ((some >> np.uint32(24)) & np.uint32(15)) << np.uint32(10)
                result: Array = tables[name][key]
                result[some == 0] = -1
                if own is None:
                    return result
                place = own[0][rows]
                return np.where(place >= 0, own[1][name][place], result)

            return values

        return {name: column(name) for name in tables}

    def _moved_places(self, work: Work, own: _OwnNames | None, detail: Detail | None) -> U8 | None:
        """Packed memories of each row where its word does not determine them: wide codes, and names that imply them."""
        places = None if detail is None else detail.places
        if own is None or work.generated is None:
            return places
        places = node_places(work.word) if places is None else places
        implied = [variant_direction(self.strings["name"].text(code)) for code in own[1]["name"].tolist()]
        known = np.array([entry is not None for entry in implied])
        packed = np.array([entry[0] | entry[1] << PLACE_BITS if entry else 0 for entry in implied], np.uint8)
        return np.where(work.generated & known[own[0]], packed[own[0]], places)


def generator_role(category: str, variant: str) -> Role:
    """Role of a generator index, by its category and variant."""
    if category not in _GENERATOR_SYSTEM:
        return Role.WORK
    return Role.WAIT if variant.endswith("_msgwait") else Role.SYNC


def _times(stream: Stream | None, commands: Commands | None, family: str) -> dict[str, LazyColumn]:
    """Columns of duration, cycles and id; without a stream only the id is known."""
    if stream is None:
        assert commands is not None
        missing, numbers = constant(len(commands), INT_MISSING, np.int64), commands.id
        return {"duration": missing, "cycles": missing, "command_id": lambda rows: numbers[rows].astype(np.int64) + 1}
    start, end, cycles, ids = stream.start, stream.end, stream.cycles, stream.id
    first = 0 if family == "cdma" else 1
    return {
        "duration": lambda rows: end[rows] - start[rows],
        "cycles": (lambda rows: end[rows] - start[rows] + 1) if cycles is None else (lambda rows: cycles[rows]),
        "command_id": lambda rows: ids[rows].astype(np.int64) + first,
    }
