"""Streams and commands -> lanes of the model: columns computed from node words and record counters on demand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.model import INT_MISSING, Activity, Groups, Lane, Role, StringsBuilder
from tpuprof_tui.model.lane import Array, LazyColumn, Rows, constant
from tpuprof_tui.model.sublanes import split_overlaps
from tpuprof_tui.sources.sophgo.chips.chip import Chip, family_of
from tpuprof_tui.sources.sophgo.chips.names import variant_direction
from tpuprof_tui.sources.sophgo.groups import owner_groups, ports_group

from ..commands.command_table import I32, Commands, Mode
from ..commands.details import PLACE_BITS, Detail, decode_lane
from ..commands.messages import message_columns
from ..records.counters import counter_columns
from ..records.monitor import Stream
from ..stream.files import Bytes
from .computations import at_peak, condensed_columns, conflict_columns, counted_columns, excess, operation_columns
from .lane_columns import I64, Words, Work, counting, known_or_missing, scoped
from .transfers import Transfers, TransferTables, node_places

_ENGINE_ID = {"TIU": 0, "GDMA": 1, "SDMA": 3, "CDMA": 4}
_MODES = ("TDI", "RVT", "DES")
_TEXTS = ("name", "type", "kernel", "mode", "direction", "dtype", "from_memory", "to_memory")
_LONG_WAIT_NS = 1000
_CODES = 1 << 10  # type and function code
_PLACES = 1 << 14  # and source and destination memory
_VARIANTS = 0x1FFFFF  # type code and generator index
#: Categories of generator indices that are system commands.
_GENERATOR_SYSTEM = frozenset(("sys", "sdma_sys"))

Bools = npt.NDArray[np.bool_]


class LaneSource(Struct):
    """What a lane is made of.

    Attributes:
        stream: Records that are instructions, in stream order, times in ns.
        commands: Command of each record in the same order (word 0 where there is none); None without any.
        core: Core number of the lane, -1 for a port.
        cores: Submitting core of each record of a port, -1 unknown; None for a core's lane.
        first_scope: Scope id of the commands' scope 0.
        data: The bytes the commands' registers lie in.
    """

    stream: Stream
    commands: Commands | None
    core: int
    cores: npt.NDArray[np.int32] | None
    first_scope: int
    data: Bytes


class _OwnNames(Struct, frozen=True):
    """Names that do not come from the codes of a node.

    Attributes:
        place: Which of them each row has, -1 for none.
        types, names: Their string codes.
    """

    place: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32]
    names: npt.NDArray[np.int32]


class LaneBuilder:
    """Builds the lanes of one profile; they share the tables of strings."""

    def __init__(self, chip: Chip, tiu_mhz: float, groups: Groups) -> None:
        self.chip = chip
        self.groups = groups
        self.tiu_mhz = tiu_mhz
        self.strings = {key: StringsBuilder() for key in _TEXTS}
        for mode in _MODES:
            self.strings["mode"].code(mode)
        self._tables = TransferTables(chip, self.strings)

    def build(self, source: LaneSource, scope_kernel: npt.NDArray[np.int32]) -> Lane:
        """The lane of one stream.

        Args:
            source: Records and commands.
            scope_kernel: Kernel string code by scope id.
        """
        stream, commands = _ordered(source)
        order = None if stream is source.stream else np.argsort(source.stream.start, kind="stable")
        engine, family, count = stream.engine, family_of(stream.engine), len(stream)
        detail = decode_lane(self.chip, engine, source.data, commands) if commands is not None else None
        generated = _generated(self.chip, commands)
        work = Work(self._words(stream, commands), self.chip.system_types[family], generated)
        sublane, _ = split_overlaps(stream.start, stream.end)
        columns: dict[str, Array | LazyColumn] = {
            "start": stream.start,
            "end": stream.end,
            "order": order if order is not None else counting(count),
            "sublane": sublane if sublane is not None else constant(count, 0, np.int16),
            "engine_id": constant(count, _ENGINE_ID[engine], np.int64),
            **self._cores(source, order, count),
            **_times(stream, family),
        }
        if engine == "CDMA":
            columns["port"] = constant(count, stream.port, np.int64)
        own = self._own_names(work, generated, detail)
        columns["role"] = self._roles(work, family, own)
        columns |= self._named(work.word, family, own)
        if commands is not None:
            columns |= scoped(commands, source.first_scope, scope_kernel)
        columns |= self._figures(stream, work, own, detail)
        if detail is not None:
            columns |= message_columns(self.chip, detail)
        columns |= counter_columns(stream)

        def describe(row: int) -> str:
            from .instruction_text import LaneReading  # read when first asked for

            return LaneReading(self.chip, engine, columns, self._text, detail, commands is None)(row)

        port = engine == "CDMA"
        return Lane(kind=engine, label=f"port {stream.port}" if port else engine, number=stream.port if port else -1,
                    group=ports_group(self.groups) if port else self.groups.numbered(source.core),
                    activity=_activity(family), columns=columns,
                    registers=detail, describe=describe, role_guessed=commands is None)  # fmt: skip

    def _cores(self, source: LaneSource, order: I64 | None, count: int) -> dict[str, LazyColumn]:
        """The lane's core; of a port each row's submitter, also as the group that owns the row."""
        if source.cores is None:
            return {"core": constant(count, source.core, np.int64)}
        owners = owner_groups(self.groups, source.cores if order is None else source.cores[order])
        owner = known_or_missing(owners)
        return {"core": lambda rows: self.groups.unit_numbers(owner(rows)), "owner": owner}

    def build_untimed(
        self, engine: str, core: int, commands: Commands, first_scope: int, data: Bytes, scope_kernel: I32
    ) -> Lane:
        """The lane of commands that no record tells of: what they are, and nothing that was measured."""
        family, count = family_of(engine), len(commands)
        detail = decode_lane(self.chip, engine, data, commands)
        generated = _generated(self.chip, commands)
        work = Work(commands.word, self.chip.system_types[family], generated)
        own = self._own_names(work, generated, detail)
        nowhere = np.full(count, INT_MISSING, np.int64)
        ids = commands.id
        columns: dict[str, Array | LazyColumn] = {
            "start": nowhere,
            "end": nowhere,
            "duration": nowhere,
            "cycles": nowhere,
            "order": counting(count),
            "sublane": constant(count, 0, np.int16),
            "engine_id": constant(count, _ENGINE_ID[engine], np.int64),
            "core": constant(count, core, np.int64),
            "command_id": lambda rows: ids[rows].astype(np.int64) + 1,
            "role": self._roles(work, family, own),
            **self._named(work.word, family, own),
            **scoped(commands, first_scope, scope_kernel),
        }
        if family == "tiu":
            columns |= condensed_columns(work)
            columns |= {} if detail is None else operation_columns(self.chip, detail)
        else:
            places = self._moved_places(work, own, detail)
            columns |= Transfers(self._tables, engine, None, work, places, detail).unmeasured(count)
        if detail is not None:
            columns |= message_columns(self.chip, detail)

        def describe(row: int) -> str:
            from .instruction_text import LaneReading  # read when first asked for

            return LaneReading(self.chip, engine, columns, self._text, detail, guessed=False)(row)

        return Lane(kind=engine, group=self.groups.numbered(core), label=engine, activity=_activity(family),
                    columns=columns, registers=detail, describe=describe)  # fmt: skip

    def _text(self, key: str, code: int) -> str:
        """Text of a code of a text column."""
        return self.strings[key].text(code)

    # -- preparation ------------------------------------------------------

    def _words(self, stream: Stream, commands: Commands | None) -> Words:
        """Node words, with made-up ones for system records without a command.

        Sends and waits alternate: the longer of the two halves are the waits, and everything above 1 us (pipeline 9).
        """
        word = commands.word if commands is not None else np.zeros(len(stream), np.uint32)
        loose = np.flatnonzero(word == 0)
        loose = loose[stream.system(self.chip, loose)] if len(loose) else loose
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
        made_up = [np.uint32(typ << 10 | function << 15) for function in (send, wait)]
        result[loose] = np.where(is_wait, made_up[1], made_up[0])
        return result

    def _roles(self, work: Work, family: str, own: _OwnNames | None) -> npt.NDArray[np.int8]:
        table = np.full(_CODES, Role.WORK, np.int8)
        for function in range(32):
            wait = function in self.chip.wait_functions[family]
            table[work.system | function << 5] = Role.WAIT if wait else Role.SYNC
        roles: npt.NDArray[np.int8] = table[(work.word >> np.uint32(10)) & np.uint32(_CODES - 1)]
        if work.generated is not None and own is not None:
            texts = [(self.strings["type"].text(kind), self.strings["name"].text(name))
                     for kind, name in zip(own.types.tolist(), own.names.tolist(), strict=True)]  # fmt: skip
            mine = np.array([generator_role(*text) for text in texts], np.int8)
            roles[work.generated] = mine[own.place[work.generated]]
        return roles

    # -- names ------------------------------------------------------------

    def _own_names(self, work: Work, generated: Bools | None, detail: Detail | None) -> _OwnNames | None:
        """Names of commands by their operation (TIU, and what no published table names), and of generator indices."""
        place, types, names = np.zeros(0, np.int32), list[str](), list[str]()
        if detail is not None and family_of(detail.engine) == "tiu":
            _, place, types, names = detail.texts()
        elif detail is not None and (told := detail.partial_texts()) is not None:
            place, types, names = told
        if generated is not None:
            rows = np.flatnonzero(generated)
            keys, where = np.unique((work.word[rows] >> np.uint32(10)) & np.uint32(_VARIANTS), return_inverse=True)
            more = [self.chip.names("TIU", rvt=True).texts_of(key) for key in keys.tolist()]
            place = place if len(place) else np.full(len(work.word), -1, np.int32)
            place[rows] = (where + len(types)).astype(np.int32)
            types, names = [*types, *(kind for kind, _ in more)], [*names, *(name for _, name in more)]
        if not types:
            return None
        codes = [np.array([*(self.strings[key].code(text) for text in texts), -1], np.int32)
                 for key, texts in (("type", types), ("name", names))]  # fmt: skip
        return _OwnNames(place, codes[0], codes[1])

    def _named(self, word: Words, family: str, own: _OwnNames | None) -> dict[str, LazyColumn]:
        """Type and name: by the codes of the node unless the row has names of its own."""
        names = self.chip.names(family)
        codes = ((word >> np.uint32(10)) & np.uint32(_CODES - 1)).astype(np.int64)
        size = _PLACES if names.directed else _CODES
        tables = {key: np.full(size, -1, np.int32) for key in ("type", "name")}
        for code in np.flatnonzero(np.bincount(codes, minlength=_CODES)).tolist():
            for key in range(code, size, _CODES):
                for table, text in zip(tables, names.texts_of(key), strict=True):
                    tables[table][key] = self.strings[table].code(text)

        def column(table: npt.NDArray[np.int32], mine: Callable[[_OwnNames], npt.NDArray[np.int32]]) -> LazyColumn:
            def values(rows: Rows) -> Array:
                some = word[rows]
                key = (some >> np.uint32(10)) & np.uint32(_CODES - 1)
                if size == _PLACES:
                    key |= ((some >> np.uint32(24)) & np.uint32(15)) << np.uint32(10)
                result: Array = table[key]
                result[some == 0] = -1
                if own is None:
                    return result
                place = own.place[rows]
                return np.where(place >= 0, mine(own)[place], result)

            return values

        return {"type": column(tables["type"], lambda some: some.types),
                "name": column(tables["name"], lambda some: some.names)}  # fmt: skip

    # -- figures ----------------------------------------------------------

    def _figures(
        self, stream: Stream, work: Work, own: _OwnNames | None, detail: Detail | None
    ) -> dict[str, LazyColumn]:
        """What only computations or only transfers have."""
        times = _times(stream, "")
        if family_of(stream.engine) == "tiu":
            columns = condensed_columns(work)
            if detail is not None:
                columns |= counted_columns(self.chip, detail, times["cycles"], self.tiu_mhz)
            columns |= conflict_columns(stream, times["cycles"])
        else:
            places = self._moved_places(work, own, detail)
            columns = Transfers(self._tables, stream.engine, stream, work, places, detail).columns()
        if "ideal" in columns:
            columns["at_peak"] = at_peak(columns["ideal"], times["duration"])
            columns["excess"] = excess(columns["ideal"], times["duration"])
        return columns

    def _moved_places(self, work: Work, own: _OwnNames | None, detail: Detail | None) -> npt.NDArray[np.uint8] | None:
        """Memories of each row where the bits of its word do not tell them: wide codes, and names that imply them."""
        places = None if detail is None else detail.places
        if own is None or work.generated is None:
            return places
        places = node_places(work.word) if places is None else places
        implied = [variant_direction(self.strings["name"].text(code)) for code in own.names.tolist()]
        known = np.array([entry is not None for entry in implied])
        packed = np.array([entry[0] | entry[1] << PLACE_BITS if entry else 0 for entry in implied], np.uint8)
        return np.where(work.generated & known[own.place], packed[own.place], places)


def _activity(family: str) -> Activity:
    return Activity.COMPUTE if family == "tiu" else Activity.TRANSFER


def generator_role(category: str, variant: str) -> Role:
    """What a generator index is to the figures; its category and variant tell, no code does."""
    if category not in _GENERATOR_SYSTEM:
        return Role.WORK
    return Role.WAIT if variant.endswith("_msgwait") else Role.SYNC


def _generated(chip: Chip, commands: Commands | None) -> Bools | None:
    """Commands whose node holds a generator index instead of codes; None where none do."""
    if commands is None or "rvt" not in chip.name_tables:
        return None
    generated = commands.mode == Mode.RVT
    return generated if generated.any() else None


def _times(stream: Stream, family: str) -> dict[str, LazyColumn]:
    """Duration, cycles and id."""
    start, end, cycles, ids = stream.start, stream.end, stream.cycles, stream.id
    first = 0 if family == "cdma" else 1

    def command_id(rows: Rows) -> Array:
        return ids[rows].astype(np.int64) + first

    return {
        "duration": lambda rows: end[rows] - start[rows],
        "cycles": (lambda rows: end[rows] - start[rows] + 1) if cycles is None else (lambda rows: cycles[rows]),
        "command_id": command_id,
    }


def _ordered(source: LaneSource) -> tuple[Stream, Commands | None]:
    """Records and commands ordered by start; the same objects where that is their order already."""
    stream, commands = source.stream, source.commands
    if not len(stream) or not bool((stream.start[1:] < stream.start[:-1]).any()):
        return stream, commands
    order = np.argsort(stream.start, kind="stable")
    return stream.take(order), None if commands is None else commands.take(order)
