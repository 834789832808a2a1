"""Captures whose truth is known, instruction by instruction; and the reference's fields where it is right."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_captures import DATA, INDEX, SOUND, kept_reference, kept_truth, unpacked
from truth_tables import Leave, differences, unpack

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Profile, Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.files.instructions import write_instructions

#: Fields in which being right may mean being different: condensed transfers have no memory of their own.
_FREE = {"type", "engine", "extra_info"}
#: What a PMU-only capture does not tell: the reference guesses send and wait, and fills in the rest.
_GUESSED = {"Function Type", "Function Name", "cmd_type", "cmd_special_function", "Direction", "Data Type"}


@pytest.mark.parametrize("name", SOUND)
def test_every_instruction_is_what_really_happened(tmp_path: Path, name: str) -> None:
    truth = kept_truth(name)
    profile = open_profile(unpacked(name, tmp_path))
    assert differences(profile, truth) == []
    assert profile.event_count == truth.event_count
    assert not [problem for problem in profile.problems if problem.severity is Severity.ERROR]


@pytest.mark.parametrize("name", [name for name in SOUND if (DATA / "reference" / f"{name}.json.xz").exists()])
def test_every_field_is_the_reference_s(tmp_path: Path, name: str) -> None:
    lanes = kept_reference(name)
    assert lanes
    profile = open_profile(unpacked(name, tmp_path))
    ours = _written(profile)
    cores = kept_truth(name).meta["written_cores"]
    guessed = profile.source_data == {"mode": 0, "bmodel": False}
    compared = 0
    for lane in lanes:
        rows = ours[lane["engine"], lane["index"] if lane["engine"] == "CDMA" else cores[lane["index"]]]
        for field, packed in lane["fields"].items():
            if field in _FREE or (guessed and (field in _GUESSED or field.startswith("des_"))):
                continue
            theirs = unpack(packed)
            seen = [row.get(field) for row in rows]
            wrong = [place for place, pair in enumerate(zip(seen, theirs, strict=True)) if not _same(*pair)]
            assert not wrong, (lane["engine"], lane["index"], field, seen[wrong[0]], theirs[wrong[0]], len(wrong))
            compared += len(rows)
    assert compared > 8 * profile.event_count


def _written(profile: Profile) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Instructions as they are written, by lane."""
    sink = io.BytesIO()
    write_instructions(query_of(profile), sink)
    result: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in sink.getvalue().splitlines():
        row = json.loads(line)
        key = (row["engine"], row["Port"] if row["engine"] == "CDMA" else row["Core Id"])
        result.setdefault(key, []).append(row)
    return result


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float):
        return isinstance(ours, (int, float)) and abs(ours - theirs) <= 1e-4
    return bool(ours == theirs)


# -- damaged ---------------------------------------------------------------

#: Size of the core files of the capture that all but one of the damaged ones were made from.
_WHOLE = 28_896
_TRUNCATED = 777
#: What names the damage: severity, file, offset, and words of the sentence.
_NAMED: dict[str, tuple[Severity, str, int, str]] = {
    "bad_truncated_header": (Severity.ERROR, "cdmlib0_1.profile", _WHOLE, "5 bytes of a block header"),
    "bad_truncated_block": (Severity.ERROR, "cdmlib0_1.profile", 25_272, "claims 3616 bytes"),
    "bad_unknown_block": (Severity.ERROR, "cdmlib0_0.profile", _WHOLE, "unknown type 77"),
    "bad_giant_claim": (Severity.ERROR, "cdmlib0_1.profile", _WHOLE, "claims 4294967295 bytes"),
    "bad_partial_record": (Severity.ERROR, "cdmlib0_0.profile", 7_912, "7 bytes of a partial record"),
    "bad_des_cut": (Severity.ERROR, "cdmlib0_0.profile", _WHOLE, "lacks its second word"),
    "bad_func_overrun": (Severity.ERROR, "cdmlib0_0.profile", _WHOLE, "past the end of the node stream"),
    "bad_node_kind": (Severity.ERROR, "cdmlib0_0.profile", 25_520, "unknown type 55"),
    "bad_extra_short": (Severity.ERROR, "cdmlib0_0.profile", 78_632, "100 commands have no detail record"),
    "bad_utf8_name": (Severity.ERROR, "cdmlib0_0.profile", 25_400, "not UTF-8"),
    "bad_record_one": (Severity.ERROR, "global.profile", 164, "core1_gdma_record=1"),
    "bad_freq_zero": (Severity.ERROR, "global.profile", 7, "tpu_freq=0"),
    "bad_no_global": (Severity.WARNING, "", -1, "global.profile is missing"),
}
_LEAVE = {"bad_node_kind": Leave(unbound=1), "bad_extra_short": Leave(condensed=100)}
_CHIP_ASKED = ("bad_no_global", "bad_unknown_arch")
_WITHOUT_LOSS = [
    name for name in INDEX
    if not INDEX[name]["sound"] and name not in ("bad_empty_dir", "bad_truncated_block", "bad_utf8_name")
]  # fmt: skip


def _open(name: str, parent: Path) -> Profile:
    return open_profile(unpacked(name, parent), chip="AKS" if name in _CHIP_ASKED else None)


@pytest.mark.parametrize("name", _WITHOUT_LOSS)
def test_what_is_sound_in_a_damaged_capture_is_shown_whole(tmp_path: Path, name: str) -> None:
    assert differences(_open(name, tmp_path), kept_truth(name), _LEAVE.get(name, Leave())) == []


@pytest.mark.parametrize("name", list(_NAMED))
def test_the_damage_is_named_with_file_and_offset(tmp_path: Path, name: str) -> None:
    severity, file, offset, words = _NAMED[name]
    problems = _open(name, tmp_path).problems
    assert [p for p in problems if (p.severity, p.file, p.offset) == (severity, file, offset) and words in p.what]
    assert max(problem.severity for problem in problems) is severity


def test_a_cut_node_stream_costs_the_commands_behind_the_cut(tmp_path: Path) -> None:
    """Core 0 is whole; on core 1 every record is there, and those of the nodes that are left have their command."""
    truth, profile = kept_truth("bad_truncated_block"), _open("bad_truncated_block", tmp_path)
    whole = (unpacked("bad_freq_zero", tmp_path) / "cdmlib0_1.profile").read_bytes()
    cut = struct.unpack(f"<{_TRUNCATED // 4 + 1}I", whole[-(_TRUNCATED // 4 + 1) * 4 :])
    lost = sum(word & 127 == 1 for word in cut)  # words of a name cannot pass for NODE_SET here: they are letters
    assert 60 < lost < 200
    assert differences(profile, truth, Leave(unbound=lost)) == []
    sound = [lane for lane in profile.lanes if profile.unit_number(lane) == 0]
    assert all((lane["mode"] >= 0).all() for lane in sound)


def test_a_name_that_is_not_utf8_keeps_its_scope(tmp_path: Path) -> None:
    truth, profile = kept_truth("bad_utf8_name"), _open("bad_utf8_name", tmp_path)
    broken = [code for code, name in enumerate(profile.strings["kernel"]) if "\ufffd" in name]
    assert len(broken) == 1
    scopes = np.flatnonzero(profile.scopes.kernel == broken[0])
    assert len(scopes) == 1
    truth.funcs.append(profile.strings["kernel"][broken[0]])
    for columns in truth.lanes.values():
        columns["func"][columns["scope"] == scopes[0]] = len(truth.funcs) - 1
    assert differences(profile, truth) == []
    # only the bytes that are no UTF-8 were replaced
    assert truth.funcs[-1].endswith("orm_multi_core")


@pytest.mark.parametrize("name", ["bad_no_global", "bad_unknown_arch"])
def test_without_a_chip_nothing_can_be_read_until_it_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableError, match="--chip"):
        open_profile(unpacked(name, tmp_path))


def test_an_empty_directory_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="holds no known kind of capture"):
        open_profile(unpacked("bad_empty_dir", tmp_path))


#: Columns of the truth and by how much to change them.
_CHANGES = {"start_ns": 3, "end_ns": 3, "cycles": 1, "cmd_id": 1, "bytes": 4, "scope": 1, "batch": 1, "core": 1,
            "func": -1, "op": -1, "mode": 1, "src": -1, "dst": -1, "dtype": -1, "d1": 1, "alg_ops": 1}  # fmt: skip


@pytest.mark.parametrize("column", list(_CHANGES))
def test_the_comparison_notices_a_single_wrong_value(tmp_path: Path, column: str) -> None:
    """A comparison that cannot fail proves nothing."""
    profile, truth = open_profile(unpacked("aks_zoo_mode2", tmp_path)), kept_truth("aks_zoo_mode2")
    tensor = next(number for number, op in enumerate(truth.ops) if op["key"] == "tensor")
    add = next(number for number, op in enumerate(truth.ops) if op["key"] == "ar_add")
    engine, op = ("TIU", add) if column == "alg_ops" else ("GDMA", tensor)
    columns = truth.lanes[engine, 0]
    place = int(np.flatnonzero((columns["op"] == op) & (columns["src"] > 0) | (columns["op"] == add))[0])
    columns[column][place] += _CHANGES[column] if column not in ("src", "dtype") or columns[column][place] else 1
    assert differences(profile, truth)
