"""Constants, figures of transfers and names of one chip, and their loading."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct, convert
from numpy.typing import NDArray

from .bit_layout import CHIP_FILES, ChipDataError, RecordLayout, record_layout

#: Command encoding (family) by engine; other engines have none.
FAMILIES: Final = {"TIU": "tiu", "GDMA": "dma", "SDMA": "dma", "VSDMA": "dma", "DMA": "dma", "CDMA": "cdma"}
_ENGINES: Final = frozenset({"TIU", "GDMA", "SDMA", "CDMA", "VSDMA", "HAU"})


def family_of(engine: str) -> str:
    """Command encoding (``tiu``, ``dma`` or ``cdma``) of an engine, given in either case.

    Raises:
        KeyError: The engine has no commands of its own.
    """
    return FAMILIES[engine.upper()]


class SyncRecord(Struct, frozen=True):
    """Index of a core's raw TIU record that ends at the common instant of all cores; negative counts from the end."""

    operator: int  #: Index in operator captures (modes 0 to 2)
    bmodel: int  #: Index in bmodel captures
    bmodel_after_trim: bool  #: Whether the bmodel index counts after the edges were trimmed


class SystemRule(Struct, frozen=True):
    """A monitor record is a system record when all ``fields`` equal ``equals``.

    The published rule for DMA uses the AXI handshakes only, which would take moves within local memory, that touch no
    AXI bus, for system commands.
    """

    fields: tuple[str, ...]
    equals: int


class MessageRule(Struct, frozen=True):
    """Bits of the message in a send or wait command: the id in the lowest ``id_bits`` of ``field``, and a count.

    The count of a wait is the number of sends that release it, that of a send the number of waits that its message
    serves.
    """

    field: str
    id_bits: int
    count_bit: int
    count_bits: int


class DependencyRule(Struct, frozen=True):
    """Bits of ``cmd_id_dep``: a command id in the lowest ``id_bits``, used if ``enable_bit`` (if any) is set."""

    id_bits: int
    enable_bit: int | None


class MemoryRule(Struct, frozen=True):
    """Determines the memory of an address."""

    high_bits: int  #: Width of the address's high part; the low part has 32 bits
    tag_bit: int  #: The tag is the address shifted right by this
    tags: Mapping[int, int]  #: Memory code by tag
    other: int  #: Memory code of tags not listed
    #: ``(first, bytes, memory code)`` of the address below the tag, looked up for unlisted tags.
    windows: tuple[tuple[int, int, int], ...]

    @property
    def codes(self) -> tuple[int, ...]:
        """Memory codes that an address can have."""
        return self.other, *self.tags.values(), *(memory for _, _, memory in self.windows)


class BmprofileRules(Struct, frozen=True):
    """What holds of a chip's ``bmprofile_data`` folders, which libbmrt writes."""

    arch_codes: tuple[int, ...] = ()  #: Integer codes in their ``arch=`` lines; empty: there are no such folders
    #: Whether ``tpu_freq`` is the clock; else it is a constant of the runtime that means nothing.
    clock_recorded: bool = False
    clock_known: bool = True  #: Whether the chip runs at its default clock where none is recorded
    one_clock: bool = False  #: Whether GDMA ticks at the TIU clock
    unrecorded: tuple[str, ...] = ()  #: Families whose system commands may leave no record


class Chip(Struct, frozen=True, eq=False):
    """Constants of one chip; see the data files for the values.

    Mappings by family have the keys ``tiu``, ``dma`` (GDMA and SDMA) and, where the chip has ports, ``cdma``.
    """

    name: str
    arch_codes: tuple[int, ...]  #: Integer codes in ``arch=`` lines
    arch_names: tuple[str, ...]  #: Names in ``arch=`` lines, in either case
    core_count: int  #: Number of cores; the last one is the anchor of the CDMA ports
    cdma_ports: int
    records: Mapping[str, RecordLayout]  #: Monitor record layout by family
    preamble: int  #: Number of synchronisation commands that open each engine's stream
    system_types: Mapping[str, int]  #: Type code of system commands by family
    send_functions: Mapping[str, frozenset[int]]  #: Function codes of system sends by family
    wait_functions: Mapping[str, frozenset[int]]  #: Function codes of system waits by family
    #: Rule that recognises system records by their counters, by family; some families have none.
    system_records: Mapping[str, SystemRule]
    messages: Mapping[str, MessageRule]
    dependencies: Mapping[str, DependencyRule]
    figures: Mapping[str, TransferFigures]
    engine_codes: Mapping[int, str]  #: Engine name by the engine code of dynamic nodes
    rvt_id_limit: int | None  #: TIU id at which firmware inserts a pair that resets ids; None when it never does
    rvt_fill: Mapping[str, tuple[int, int]]  #: Type and function of those inserted commands by family
    sync_record: SyncRecord
    tiu_edge_trim: int  #: Number of stray TIU records at each end of a stream
    tiu_mhz: int  #: Default TIU clock
    dma_mhz: int  #: Clock of GDMA, SDMA and CDMA
    memory_of_address: MemoryRule
    parameters: tuple[tuple[str, str | int | float], ...]  #: Architecture parameters (label, value) in printing order
    data_types: tuple[str, ...]  #: Data type names by code
    memories: tuple[str, ...]  #: Memory names by code
    #: Condensed names by family; ``rvt`` where generator indices have names of their own.
    name_tables: Mapping[str, NameTable]
    bmprofile: BmprofileRules = BmprofileRules()  #: Rules of folders of libbmrt

    def parameter(self, label: str) -> str | int | float:
        """Architecture parameter by its printed label.

        Raises:
            KeyError: No such label.
        """
        return dict(self.parameters)[label]

    @property
    def ddr_gbps(self) -> float:
        """Peak DDR bandwidth of a core, GB/s."""
        return float(self.parameter("DDR Max BW(GB/s/Core)"))

    @property
    def l2_gbps(self) -> float:
        """Peak L2 bandwidth, GB/s; 0 where none is given."""
        return float(self.parameter("L2 Max BW(GB/s)"))

    def peak_gbps(self, direction: str) -> float:
        """Peak bandwidth of a direction, GB/s: DDR's if DDR is involved, else L2's; 0 if there is none."""
        if "DDR" in direction:
            return self.ddr_gbps
        return self.l2_gbps if "L2" in direction else 0.0

    def data_type_text(self, code: int) -> str:
        """Name of a data type code; ``unknown_N`` for codes without one."""
        return self.data_types[code] if 0 <= code < len(self.data_types) else f"unknown_{code}"

    def names(self, engine: str, *, rvt: bool = False) -> NameTable:
        """Condensed names of an engine (or family); with ``rvt`` those of generator indices where the chip has them.

        Raises:
            KeyError: The chip has no such engine.
        """
        if rvt and "rvt" in self.name_tables:
            return self.name_tables["rvt"]
        return self.name_tables[family_of(engine)]


def common_tables() -> Mapping[str, Any]:
    """Raw tables that several chips share."""
    return CHIP_FILES.file("common/tables.json")


def chip_names() -> tuple[str, ...]:
    """Lower-case names of the chips that have a data file."""
    return tuple(sorted(path.stem for path in CHIP_FILES.folder.glob("*.json")))


def chip_by_name(name: str) -> Chip | None:
    """The chip of that name, in either case; None when there is none."""
    lowered = name.strip().casefold()
    return CHIP_FILES.table(_load, lowered) if lowered in chip_names() else None


def chip_by_arch(value: str) -> Chip | None:
    """The chip with an ``arch`` value (integer code or name, in either case); None when there is none."""
    text = value.strip()
    digits = text.lstrip("+0") if text.lstrip("+").isdigit() and text.isascii() else ""
    for name in chip_names():
        chip = CHIP_FILES.table(_load, name)
        if text.upper() in map(str.upper, chip.arch_names) or digits in map(str, chip.arch_codes):
            return chip
    return None


def bmprofile_chip(value: str) -> Chip | None:
    """The chip with a name, or an ``arch`` value of libbmrt, as that runtime records it; None when there is none."""
    text = value.strip().upper()
    for name in chip_names():
        chip = CHIP_FILES.table(_load_of_bmprofile, name)
        codes = chip.bmprofile.arch_codes
        if codes and text in (*chip.arch_names, *map(str, codes)):
            return chip
    return None


def unsupported_arch(value: str) -> str | None:
    """Name of a chip whose ``arch`` code is known but cannot be read; None for every other value."""
    name: str | None = common_tables()["unsupported_archs"].get(value.strip())
    return name


def _load(name: str) -> Chip:
    return chip_from_data(CHIP_FILES.file(f"{name}.json"), common_tables())


def _load_of_bmprofile(name: str) -> Chip:
    data = CHIP_FILES.file(f"{name}.json")
    figures = data.get("bmprofile", {}).get("figures", data["figures"])
    return chip_from_data({**data, "figures": figures}, common_tables())


def chip_from_data(data: Mapping[str, Any], common: Mapping[str, Any]) -> Chip:
    """Validated chip from a data file's content.

    Raises:
        ChipDataError: The content is inconsistent.
        KeyError, ValidationError: A value is missing or invalid.
    """
    records = {family: record_layout(key, common["records"][key]) for family, key in data["records"].items()}
    figures = {family: transfer_figures(item, records[family]) for family, item in data["figures"].items()}
    shared = {key: common[key] for key in ("memories", "moves", "data_types")}
    names = {
        family: name_table(
            {**shared, **common["tables"][key], "directed": family == "dma", "variants": family == "rvt"}
        )
        for family, key in data["names"].items()
    }
    made = {"records": records, "figures": figures, "name_tables": names}
    chip = convert({**data, **shared, **made}, Chip, str_keys=True)
    _check(chip)
    return chip


def _check(chip: Chip) -> None:
    rule = chip.memory_of_address
    faults = {
        "an engine code does not fit three bits": not set(chip.engine_codes) <= set(range(8)),
        "an engine code has no engine": not set(chip.engine_codes.values()) <= _ENGINES,
        "an engine has two codes": len(set(chip.engine_codes.values())) != len(chip.engine_codes),
        "a family lacks its system type": set(chip.system_types) != set(chip.records),
        "a family lacks its names": not set(chip.records) <= set(chip.name_tables),
        "the ports and the CDMA records contradict": (chip.cdma_ports > 0) != ("cdma" in chip.records),
        "a system rule names a field the record lacks": any(
            set(rule.fields) - set(chip.records[family].by_name) for family, rule in chip.system_records.items()
        ),
        "a clock or the core count is not positive": min(chip.tiu_mhz, chip.dma_mhz, chip.core_count) <= 0,
        "a parameter occurs twice": len(dict(chip.parameters)) != len(chip.parameters),
        "a memory code has no name": not set(rule.codes) <= set(range(len(chip.memories))),
    }
    for what, found in faults.items():
        if found:
            raise ChipDataError(f"chip {chip.name}: {what}")


# Formulas for figures of a transfer from its record's counters, written as text.
#
# ``a+b`` adds counters, ``a+b|c`` takes the larger of two sums, and a final ``/16`` divides the result, rounding
# down.

Counts = NDArray[np.int64]


class Formula(Struct, frozen=True):
    """The larger of some sums of counters, divided by ``divisor`` and rounded down."""

    sums: tuple[tuple[str, ...], ...]
    divisor: int

    def of(self, counter: Callable[[str], Counts]) -> Counts:
        """Values for records whose counters ``counter`` returns by name."""
        totals = (sum(map(counter, others), counter(first)) for first, *others in self.sums)
        result: Counts = functools.reduce(np.maximum, totals)
        return result if self.divisor == 1 else result // self.divisor


class TransferFigures(Struct, frozen=True):
    """Formulas for the figures of transfers."""

    condensed: Mapping[str, Formula] = {}  #: Formula by column, for records of commands without known registers
    #: Formula by column, for those with known registers; other columns use ``condensed``.
    detailed: Mapping[str, Formula] = {}
    rates: Mapping[str, str] = {}  #: Column of bytes by the column of the bandwidth computed from it
    ddr_only: frozenset[str] = frozenset()  #: Columns that are 0 where the direction does not involve DDR
    #: Whether bandwidths of condensed commands are split by direction; else all count as DDR's.
    by_direction: bool = False


def formula(text: str) -> Formula:
    """Parse a formula.

    Raises:
        ChipDataError: It names no counter, or the divisor is not a positive number.
    """
    sums, _, divisor = text.partition("/")
    parsed = tuple(tuple(name.strip() for name in part.split("+")) for part in sums.split("|"))
    if not all(name for names in parsed for name in names) or (divisor and not (divisor.isdigit() and int(divisor))):
        raise ChipDataError(f"{text!r} is not a formula")
    return Formula(parsed, int(divisor or 1))


def transfer_figures(data: Mapping[str, Any], layout: RecordLayout) -> TransferFigures:
    """Validated figures from a data file's entry.

    Raises:
        ChipDataError: A formula is invalid, or names a counter that the record lacks.
    """
    parts = {
        key: {name: formula(text) for name, text in data.get(key, {}).items()} for key in ("condensed", "detailed")
    }
    used = {name for part in parts.values() for item in part.values() for names in item.sums for name in names}
    if not used <= layout.by_name.keys():
        raise ChipDataError(f"{sorted(used - layout.by_name.keys())} are no counters of {layout.name}")
    return convert({**data, **parts}, TransferFigures)


FUNCTION_SHIFT = 5
SOURCE_SHIFT = 10
DESTINATION_SHIFT = 12
_CODE_MASK = 0x1F
_MEMORY_MASK = 0x3

_LOADING_ENDINGS = ("_ld", "_ldt", "_ldbc", "_mld")
_STORING_ENDINGS = ("_st", "_stt", "_mst")


class NameTable(Struct, frozen=True, eq=False):
    """Names of one engine family's condensed commands, by key: type | function << 5 | memories << 10, 12."""

    types: Mapping[int, tuple[str, Mapping[int, str]]]  #: (Type name, names by function code) by type code
    unknown_type: str  #: Pattern for a type outside the table; ``{type}`` is replaced by the code
    unknown_name: str  #: Pattern for a function outside it; also ``{type_name}`` and ``{function}``
    directed: bool  #: Whether keys contain memories, on which names may depend
    variants: bool  #: Whether the function takes all bits above the type (CV84X6 generator indices)
    memories: tuple[str, ...]
    moves: Mapping[str, str]  #: Suffix of a plain move's name by direction; none for other directions

    def type_text(self, type_code: int) -> str:
        """Function Type of a type code."""
        entry = self.types.get(type_code)
        return entry[0] if entry else self.unknown_type.replace("{type}", str(type_code))

    def name_text(self, type_code: int, function: int, direction: str = "") -> str:
        """Function Name of type and function code; ``direction`` determines the suffix of plain moves."""
        entry = self.types.get(type_code)
        name = entry[1].get(function) if entry else None
        if name is not None:
            return name.replace("{move}", self.moves.get(direction, ""))
        text = self.unknown_name.replace("{type_name}", self.type_text(type_code))
        return text.replace("{type}", str(type_code)).replace("{function}", str(function))

    def texts_of(self, key: int) -> tuple[str, str]:
        """Function Type and Function Name of a key."""
        type_code, function = key & _CODE_MASK, key >> FUNCTION_SHIFT
        shifts = (SOURCE_SHIFT, DESTINATION_SHIFT) if self.directed else ()
        direction = "->".join(self.memories[key >> shift & _MEMORY_MASK] for shift in shifts)
        function = function if self.variants else function & _CODE_MASK
        return self.type_text(type_code), self.name_text(type_code, function, direction)


def variant_direction(name: str) -> tuple[int, int] | None:
    """Source and destination memory codes that a generator variant's name implies; None when it implies none."""
    if name.endswith(_LOADING_ENDINGS):
        return 0, 2
    if name.endswith(_STORING_ENDINGS):
        return 2, 0
    return None


def name_table(data: Mapping[str, Any]) -> NameTable:
    """Validated table from a data file's entry.

    Raises:
        ChipDataError: A code does not fit its field, or a pattern is missing.
    """
    table = convert(data, NameTable, str_keys=True)
    widest = (1 << 16) - 1 if table.variants else _CODE_MASK
    if any(not 0 <= code <= _CODE_MASK for code in table.types):
        raise ChipDataError("a type code has more than five bits")
    if any(not 0 <= function <= widest for _, functions in table.types.values() for function in functions):
        raise ChipDataError("a function code does not fit")
    return table
