"""What rows of the workbook should hold, one value at a time, and how a workbook is read back."""

from __future__ import annotations

import math
import zipfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openpyxl
from profiles import selected_query

from tpuprof_tui.model import INT_MISSING, Role
from tpuprof_tui.sources.sophgo.files.workbook import write_workbook
from tpuprof_tui.sources.sophgo.schema import COUNTERS, SCHEMA

FORMATS = ("INT8", "FP16", "FP32", "INT16", "INT32", "BFP16", "INT4", "FP8")
MAIN = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
BY_NAME = {column.file_name: column for column in SCHEMA.values() if column.file_name}
#: Names that the files give to what the schema calls otherwise, counters among them.
NODES = {"type": "node_type", "engine": "node_engine", "Depends on": "depends_on",
         **{column.key: column.key for column in COUNTERS}}  # fmt: skip


@cache
def columns_of(lane):
    """All columns as lists."""
    return {key: values.tolist() for key, values in lane.arrays().items()}


@cache
def stream_order(lane):
    return np.argsort(lane["order"], kind="stable").tolist()


def known(profile, lane, key, row):
    """A value of the model, None where it is missing."""
    if key not in lane:
        return None
    value = columns_of(lane)[key][row]
    if SCHEMA[key].kind == "text":
        return profile.strings[key][value] if value >= 0 else None
    return None if value == INT_MISSING or (isinstance(value, float) and not math.isfinite(value)) else value


@cache
def register_values(lane, row):
    """Register fields of a row's command by their names in files."""
    operation = -1 if lane.registers is None else int(lane.registers.operations(np.array([row]))[0])
    if operation < 0:
        return None
    prefix = "des_" if lane.kind == "TIU" else ""
    return {
        prefix + name: int(lane.registers.field(operation, name, np.array([row]))[0])
        for name in lane.registers.field_names(operation)
    }


def expected(profile, lane, name, row, place):
    """What the cell under ``name`` should hold; ``place`` counts the rows of the lane's stream."""
    registers = register_values(lane, row)
    columns = columns_of(lane)
    works = columns["role"][row] == Role.WORK
    if name in ("Layer Id", "Layer Name"):
        return "-"
    if name == "Port":
        return lane.number
    if name == "Avg Cycle Last 200":
        rows = stream_order(lane)
        if place < 199:
            return round(columns["end"][row] / columns["command_id"][row])
        return round((columns["end"][row] - columns["start"][rows[place - 199]]) / 200)
    if name == "Data Type" and lane.kind == "TIU":
        return tiu_data_type(profile, lane, row, registers, works)
    if name == "Direction" and not works:
        return "-"
    if name == "Data Type" and not works:
        return "None"
    if registers is not None:
        if name in registers:
            return hex_of(name, registers[name])
        if name == "Data Type":
            return FORMATS[registers["src_data_format"]] if "src_data_format" in registers else None
        if name.startswith("mask_start_addr") and lane.kind != "TIU":
            return "0x0"
        if name in ("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)"):
            direction = known(profile, lane, "direction", row) or "DDR->DDR"
            mine = "DDR" in direction if name.startswith("DDR") else "L2M" in direction and "DDR" not in direction
            return round(known(profile, lane, BY_NAME[name].key, row), 4) if mine else 0
    if name == "des_opt_res0_prec" and registers is None:
        value = known(profile, lane, "precision", row)
        return 0 if value is None and works else value
    column = SCHEMA.get(NODES.get(name, "")) or BY_NAME.get(name)
    if column is None or not column.applies_to(lane.kind) or (registers is not None and column.group == "codes"
                                                                and column.key not in ("engine_id", "from_memory",
                                                                                       "to_memory")):  # fmt: skip
        return None
    value = known(profile, lane, column.key, row)
    value = column.placeholder if value is None else value
    if column.kind == "percent":
        return round(float(f"{float(str(value).rstrip('%')):.1f}") / 100, 4)
    if isinstance(value, float):
        return round(value, 4)
    return hex_of(name, value)


def hex_of(name, value):
    return hex(value) if isinstance(value, int) and ("addr" in name or "mask" in name) else value


def tiu_data_type(profile, lane, row, registers, works):
    if registers is None:
        code = known(profile, lane, "precision", row)
        code = 0 if code is None and works else code
        return "None -> None" if code is None else f"{FORMATS[code]} -> {FORMATS[code]}"
    result, operand = registers.get("des_opt_res0_prec"), registers.get("des_opt_opd0_prec")
    operand = result if operand is None else operand
    texts = ["None" if code is None else FORMATS[code] for code in (operand, result)]
    return " -> ".join(texts)


# -- reading ------------------------------------------------------------------


def loaded(path: Path):
    """The workbook, after all its parts proved to be XML."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))
    return openpyxl.load_workbook(path)


def header_row(sheet) -> int:
    """Row of the column headers of a sheet of rows."""
    return next(row for row in range(1, 200) if sheet.cell(row, 1).value == "Engine Id")


def table_of(sheet):
    """Headers and rows of a sheet of rows."""
    first = header_row(sheet)
    names = [cell.value for cell in sheet[first]]
    assert None not in names
    assert len(set(names)) == len(names)
    return names, [[cell.value for cell in row] for row in sheet.iter_rows(min_row=first + 1, max_col=len(names))]


def parts_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(profile, folder, **selection):
    path = folder / "book.xlsx"
    write_workbook(selected_query(profile, **selection), path)
    return loaded(path)
