from __future__ import annotations

import os
import re

import numpy as np
import pytest
from converter import converted, needs_converter
from kept import kept_profile, unpacked
from profiles import Texts, make_lane, make_profile, selected_query, small_profile
from workbook_reading import known, register_values, stream_order

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.formats.files import WriteError
from tpuprof_tui.model import INT_MISSING, Device, Role
from tpuprof_tui.sources.sophgo.files import field_texts as registers_text
from tpuprof_tui.sources.sophgo.files.field_texts import register_files, write_registers_text

PREFIX = {"TIU": "tiu", "GDMA": "tdma", "SDMA": "tdma", "CDMA": "cdma"}


def blocks_of(path):
    """Head and blocks of a register text, each a list of lines."""
    tag = f"__{path.name.split('Reg')[0].upper()}_REG_INFO__"
    head, *blocks = re.split(f"^{tag}\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert head.startswith("__CHIP_ARCH_ARGS__\n")
    return head.splitlines()[1:], [block.split("\n")[:-1] for block in blocks]


def meta_lines(profile, lane, row):
    core = known(profile, lane, "core", row)
    lines = [f"\tGlobal Idx: {int(lane['order'][row])}", f"\tCore Id: {core}"]
    for key, name in (("mode", "mode"), ("kernel", "kernel_func"), ("scope", "func_scope_id"),
                      ("batch", "batch_launch")):  # fmt: skip
        value = known(profile, lane, key, row)
        lines += [] if value is None else [f"\t{name}: {value}"]
    return lines


def tiu_block(profile, lane, row):
    """The block of a TIU command, one value at a time."""
    kind = known(profile, lane, "type", row) or "unknown"
    name = known(profile, lane, "name", row) or "unknown"
    rate = known(profile, lane, "uarch_rate", row)
    shared = [f"Start Time(ns): {lane['start'][row]}", f"End Time(ns): {lane['end'][row]}",
              f"Cmd Id: {lane['command_id'][row]}", f"Asic Cycle: {lane['cycles'][row]}", "Engine Id: 0",
              *(f"{text}: {1 if value is None else value}" for text, value in (
                  ("Alg Ops", known(profile, lane, "alg_ops", row)),
                  ("uArch Ops", known(profile, lane, "uarch_ops", row))))]  # fmt: skip
    last = [f"Alg Cycle: {known(profile, lane, 'alg_cycle', row) or 0}",
            f"uArch Rate: {0 if rate is None else rate:.1f}%"]  # fmt: skip
    registers = register_values(lane, row)
    if registers is None:
        first = [f"Function Type: {kind}", f"Function Name: {name}"]
        extra = {"type": ("node_type", 0), "engine": ("node_engine", 0), "des_tsk_typ": ("tiu_type", 31),
                 "des_tsk_eu_typ": ("tiu_function", 0), "extra_info": ("node_extra", 0)}  # fmt: skip
        values = {text: known(profile, lane, key, row) for text, (key, _) in extra.items()}
        registers = {text: extra[text][1] if value is None else value for text, value in values.items()}
        precision = known(profile, lane, "precision", row)
        if precision is not None or lane["role"][row] == Role.WORK:
            registers["des_opt_res0_prec"] = precision or 0
    else:
        first, last = [f"Function Name: {name}", f"Function Type: {kind}"], last[::-1]
    lines = [f"\t{line}" for line in (*first, *shared, *last)]
    return [*lines, *meta_lines(profile, lane, row), f"{kind}:", *(f"\t{a}: {b}" for a, b in registers.items())]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_every_line_of_the_tiu_is_written(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(registers_text, "SLICE", 30)
    profile = small_profile(mode)
    count = write_registers_text(query_of(profile), tmp_path)
    assert count == profile.event_count
    for core in (0, 1):
        lane = profile.lane("TIU", core)
        _, blocks = blocks_of(tmp_path / f"tiuRegInfo_{core}.txt")
        assert blocks == [tiu_block(profile, lane, row) for row in stream_order(lane)]


def test_the_head_lists_the_architecture(tmp_path):
    lane = make_lane("TIU", 0, starts=[0], ends=[5], cycles=np.array([6]), command_id=np.array([1]))
    device = Device("AKS", parameters=(("Chip Arch", "AKS"), ("Core Num", "8")))
    write_registers_text(query_of(make_profile([lane], device=device)), tmp_path)
    head, _ = blocks_of(tmp_path / "tiuRegInfo_0.txt")
    assert head == ["\tChip Arch: AKS", "\tCore Num: 8"]


def test_sdma_follows_gdma_in_one_file(tmp_path):
    profile = small_profile(1)
    write_registers_text(query_of(profile), tmp_path)
    _, blocks = blocks_of(tmp_path / "tdmaRegInfo_1.txt")
    engines = [next(line for line in block if line.startswith("\tEngine Id")) for block in blocks]
    lanes = [profile.lane("GDMA", 1), profile.lane("SDMA", 1)]
    assert engines == ["\tEngine Id: 1"] * len(lanes[0]) + ["\tEngine Id: 3"] * len(lanes[1])


def test_files_are_those_with_instructions(tmp_path):
    profile = small_profile(1)
    wanted = {f"{kind}RegInfo_{number}.txt" for kind in ("tiu", "tdma", "cdma") for number in (0, 1)}
    assert set(register_files(query_of(profile))) == wanted
    write_registers_text(query_of(profile), tmp_path)
    assert set(os.listdir(tmp_path)) == wanted
    # no core is known to have submitted the commands of its ports
    assert list(register_files(selected_query(profile, units=frozenset({1})))) == [
        "tiuRegInfo_1.txt",
        "tdmaRegInfo_1.txt",
    ]
    assert not register_files(query_of(make_profile([])))


def test_what_is_chosen_is_what_is_written(tmp_path):
    profile = small_profile(1)
    middle = (profile.start_ns + profile.end_ns) // 2
    selection = {"units": frozenset({0}), "end": middle}
    count = write_registers_text(selected_query(profile, **selection), tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(register_files(selected_query(profile, **selection)))
    lane = profile.lane("TIU", 0)
    _, blocks = blocks_of(tmp_path / "tiuRegInfo_0.txt")
    rows = [row for row in stream_order(lane) if lane["start"][row] < middle]
    assert blocks == [tiu_block(profile, lane, row) for row in rows]
    assert 0 < count < profile.event_count


def test_an_unknown_submitter_is_none(tmp_path):
    lane = make_lane("CDMA", 3, starts=[0, 9], ends=[5, 20], core=np.array([INT_MISSING, 2]), bytes=np.array([0, 64]),
                     cycles=np.array([6, 12]), command_id=np.array([1, 2]))  # fmt: skip
    write_registers_text(query_of(make_profile([lane])), tmp_path)
    _, blocks = blocks_of(tmp_path / "cdmaRegInfo_3.txt")
    assert ["\tCore Id: None" in block for block in blocks] == [True, False]
    assert "\tCore Id: 2" in blocks[1]
    assert "\tDirection: DDR->DDR" in blocks[0]


def test_names_stay_on_their_line(tmp_path):
    names = ["one\n__TIU_REG_INFO__", "two\r\tCmd Id: 7", "three\u2028four", "five\x1b[2J", "six: seven", "\ud800"]
    texts = Texts()
    count = len(names)
    lane = make_lane("TIU", 0, starts=np.arange(count), ends=np.arange(count) + 1, kernel=texts.codes("kernel", names),
                     type=texts.codes("type", names), name=texts.codes("name", names),
                     cycles=np.ones(count, np.int64), command_id=np.arange(1, count + 1))  # fmt: skip
    write_registers_text(query_of(make_profile([lane], strings=texts.build())), tmp_path)
    _, blocks = blocks_of(tmp_path / "tiuRegInfo_0.txt")
    assert len(blocks) == count
    assert {len(block) for block in blocks} == {len(blocks[0])}
    kernels = [line for block in blocks for line in block if line.startswith("\tkernel_func: ")]
    assert kernels[0] == "\tkernel_func: one\\x0a__TIU_REG_INFO__"
    assert kernels[3] == "\tkernel_func: five\\x1b[2J"
    assert kernels[4] == "\tkernel_func: six: seven"


def test_progress_and_errors(tmp_path):
    seen = []
    write_registers_text(query_of(small_profile(1)), tmp_path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WriteError):
        write_registers_text(query_of(small_profile(1)), tmp_path / "file")


@pytest.mark.reference
@needs_converter
@pytest.mark.parametrize("name", ["aks_mode1", "aks_mode2", "aks_cdma", "aksv_rvt"])
def test_files_are_those_of_the_reference(name, tmp_path):
    capture, theirs, ours = unpacked(name, tmp_path), tmp_path / "theirs", tmp_path / "ours"
    converted(capture, theirs, "--enable_doc")
    write_registers_text(query_of(open_profile(capture)), ours)
    wanted = sorted(path.name for path in theirs.glob("*RegInfo_*.txt"))
    assert sorted(os.listdir(ours)) == wanted
    for file in wanted:
        assert (ours / file).read_bytes() == (theirs / file).read_bytes(), file


def test_kept_captures_have_all_their_instructions(tmp_path):
    profile = kept_profile("aks_zoo_mode2", tmp_path)
    out = tmp_path / "out"
    assert write_registers_text(query_of(profile), out) == profile.event_count
    assert sum(len(blocks_of(path)[1]) for path in out.iterdir()) == profile.event_count
