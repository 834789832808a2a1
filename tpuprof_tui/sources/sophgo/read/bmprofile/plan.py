"""What the compiler planned: layers and dependencies of commands (``global.profile``), and their forecast."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec import Struct, field

from tpuprof_tui.lazy_names import lazy_pattern

from ...file_names import FORECAST_FILE, SETTINGS_FILE
from ..arrays import I8, I32, I64, Bytes
from ..problems import Problems

#: Lines that mean something; group names say what, all others are details of the layer above.
_LINE: Final = lazy_pattern(
    rb"^(?:\[bmprofile\] *)?(?:"
    rb"(?P<engine>bd|gdma) cmd_id bd_id=(?P<bd>\d{1,10}) gdma_id=(?P<gdma>\d{1,10})(?: gdma_dir=\d+)?"
    rb" (?P<kind>bd|gdma)_func=(?P<func>\d{1,3})(?: core=(?P<core>\d{1,4}))?"
    rb"|(?P<layer>global|local)_layer: layer_id=(?P<id>-?\d{1,10}) layer_type=(?P<type>\S{0,80})"
    rb"(?: layer_name=(?P<name>[^\r\n]{0,400}))?"
    rb"|(?P<step>end) parallel|insert (?P<end>bd|gdma) end|(?P<run>start|end) to run subnet_id=(?P<subnet>\d{1,9})"
    rb"|core_list=(?P<cores>[\d,]{1,400})"
    rb"|mtype=(?P<memory>\d+) addr=(?P<address>\d{1,19}) size=(?P<size>\d{1,18}) alloc=(?P<alloc>\d{1,18})"
    rb" free=(?P<free>\d{1,18}) desc=(?P<desc>[^\r\n]{0,200})"
    rb"|(?P<key>arch|net_name|tpu_freq) *= *(?P<value>[^\r\n]{0,400})"
    rb")",
    re.MULTILINE,
)
_ENTRY: Final = lazy_pattern(
    rb"(\S*?)\|([A-Za-z]\w*)\|s:\d+\|b:(\d{1,9})\|g:(\d{1,9})\|e:-?\d+\|t:(\d{1,15})(?=\||\s|$)"
)
_TOTAL: Final = lazy_pattern(rb"API_END total_cycle:(\d{1,15})")
_RUNTIME: Final = lazy_pattern(rb"runtime: *([\d.]{1,20})ms")
_TABLE: Final = b"ENGINE_BD "
#: Larger files (bytes) are not read; text of a million commands has some 400 MB.
_LARGEST: Final = 1 << 30
_ID_MASK: Final = (1 << 20) - 1
#: Type code of register writes, whose line has register bits in place of a dependency.
_REGISTER_WRITE: Final = 12
#: Type codes of messages between cores, and of ends, which belong to no layer.
_TIU_MESSAGE: Final = 15
_GDMA_MESSAGE: Final = 6
ENGINES: Final = ("TIU", "GDMA")


class PlannedCommands(Struct, frozen=True, eq=False):
    """Commands of one engine of a core in a subnet; arrays of one length, by number."""

    layer: I32  #: Number of the layer line that the command follows, over all subnets; -1 without one
    depends: I64  #: Number, from 1, of the other engine's command that it waits for; 0 without one
    type: I8  #: Type code; -1 unknown


def _blank(count: int) -> PlannedCommands:
    return PlannedCommands(np.full(count, -1, np.int32), np.zeros(count, np.int64), np.full(count, -1, np.int8))


class Plan(Struct):
    """Content of ``global.profile``."""

    arch: str = ""
    network: str = ""
    tpu_freq: int = 0
    cores: tuple[int, ...] = ()
    #: Name of each layer line; a layer has one for each tile and core.
    layer_names: list[str] = field(default_factory=list)
    commands: dict[tuple[int, int, str], PlannedCommands] = field(default_factory=dict)  #: By subnet, core and engine
    #: Allocations of device memory: address, bytes, time allocated and freed (us since 1970; 0: never), use.
    memory: list[tuple[int, int, int, int, str]] = field(default_factory=list)

    def planned(self, subnet: int, core: int, engine: str, count: int) -> PlannedCommands:
        """Of ``count`` commands; those that have no line are of no layer."""
        found, blank = self.commands.get((subnet, core, engine)), _blank(count)
        if found is not None:
            known = min(count, len(found.layer))
            for name in PlannedCommands.__struct_fields__:
                getattr(blank, name)[:known] = getattr(found, name)[:known]
        return blank


def read_plan(data: Bytes, report: Problems) -> Plan:
    """Read the text. Lines that have another form are details, or ornament."""
    plan, text = Plan(), data[:_LARGEST].tobytes()
    if len(data) > _LARGEST:
        report.error("The text is too long.", "Its first GiB was read.", file=SETTINGS_FILE)
    lines: dict[tuple[int, int, str], list[tuple[int, int, int, int]]] = {}
    layer, local, subnet, ended, dropped = -1, False, 0, False, 0
    for match in _LINE.finditer(text):
        kind = match.lastgroup
        if match["engine"]:
            of_tiu = match["kind"] == b"bd"
            own, other = (match["bd"], match["gdma"]) if of_tiu else (match["gdma"], match["bd"])
            group = lines.setdefault((subnet, int(match["core"] or 0), ENGINES[not of_tiu]), [])
            number = (int(own) if match["engine"] == match["kind"] else 0) or len(group) + 1
            func = int(match["func"])
            depends = 0 if of_tiu and func == _REGISTER_WRITE else int(other) & _ID_MASK
            if number > len(text):  # each command has a line
                dropped += 1
                continue
            outside = ended or func == (_TIU_MESSAGE if of_tiu else _GDMA_MESSAGE)
            group.append((number, -1 if outside else layer, depends, func & 0x7F))
            ended = False
        elif match["layer"]:
            name = (match["name"] or b"").strip() or match["type"] + b"_" + match["id"]
            layer, local = len(plan.layer_names), match["layer"] == b"local"
            plan.layer_names.append(name.decode("utf-8", "replace"))
        elif match["step"]:
            layer = -1 if local else layer
        elif match["end"]:
            ended = True
        elif match["run"]:
            layer, subnet = -1, int(match["subnet"])
            if match["run"] == b"start":  # a model that is loaded again replaces its earlier plan
                for key in [key for key in lines if key[0] == subnet]:
                    del lines[key]
        elif match["cores"]:
            plan.cores = tuple(dict.fromkeys(int(part) for part in match["cores"].split(b",") if 0 < len(part) < 5))
        elif match["memory"]:
            values = (int(match[name]) for name in ("address", "size", "alloc", "free"))
            plan.memory.append((*values, match["desc"].decode("utf-8", "replace").strip()))  # type: ignore[arg-type]
        elif kind:
            value = match["value"].decode("utf-8", "replace").strip()
            if match["key"] == b"arch":
                plan.arch = value
            elif match["key"] == b"net_name":
                plan.network = value
            elif value.isdecimal() and len(value) < 7:
                plan.tpu_freq = int(value)  # 0: unknown
    if dropped:
        what = "Command numbers that no model has."
        report.error(what, "Their lines were ignored.", file=SETTINGS_FILE, count=dropped)
    for key, entries in lines.items():
        columns = np.array(entries, np.int64)
        found = _blank(int(columns[:, 0].max()))
        rows = columns[:, 0] - 1
        found.layer[rows], found.depends[rows], found.type[rows] = columns[:, 1:].T
        plan.commands[key] = found
    return plan


def read_forecast(data: Bytes, report: Problems) -> dict[str, I64]:
    """Forecast length (ns) of the commands of core 0 by engine, by number; -1: none.

    Times in the file are cycles of the TIU clock on both engines; ``runtime`` tells which clock the compiler assumed.
    """
    text = data[:_LARGEST].tobytes()
    table = text[text.rfind(_TABLE) :] if _TABLE in text else b""  # the last model's
    total, runtime = _TOTAL.search(table), _RUNTIME.search(table)
    ns = float(runtime[1]) * 1e6 if runtime and runtime[1].count(b".") <= 1 and runtime[1] != b"." else 0.0
    if not len(data):
        return {}
    if not table or total is None or not int(total[1]) or not ns:
        report.warning("No forecast can be read.", "Times are shown without it.", file=FORECAST_FILE)
        return {}
    found: dict[str, I64] = {}
    entries = [(kind[:4] == b"GDMA", *map(int, numbers)) for _, kind, *numbers in _ENTRY.findall(table)]
    columns = np.array(entries, np.int64).reshape(-1, 4)
    for number, engine in enumerate(ENGINES):
        own = columns[:, 1 + number]
        rows = np.flatnonzero((columns[:, 0] == number) & (own > 0) & (own < len(text)))
        lengths = np.full(int(own[rows].max(initial=0)), -1, np.int64)
        lengths[own[rows] - 1] = np.rint(columns[rows, 3] * (ns / int(total[1])))
        found[engine] = lengths
    return found
