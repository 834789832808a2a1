"""Damaged captures: one thing broken, the rest as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import plain_capture as plain
import pytest
from capture_writer.capture import write_capture
from capture_writer.damage import DAMAGES, damage_capture


@pytest.mark.parametrize("name", sorted(DAMAGES))
def test_exactly_one_file_differs_from_the_sound_capture(tmp_path: Path, name: str) -> None:
    sound = write_capture(replace(DAMAGES[name].base, name="sound"), tmp_path).path
    damaged = damage_capture(name, tmp_path)
    before, after = _contents(sound), _contents(damaged)
    changed = [file for file in before if after.get(file) != before[file]]
    assert len(set(after) - set(before)) == (1 if name in _RENAMED else 0)
    assert len(changed) == (len(before) if name == "bad_empty_dir" else 1)
    meta, tracks, _ = plain.load_truth(tmp_path / f"{name}.truth.json")
    assert meta["damage"] == DAMAGES[name].about
    assert tracks


_RENAMED = ("bad_no_number", "bad_same_number", "bad_huge_number", "bad_port_no_number", "bad_port_huge_number")


def _contents(path: Path) -> dict[str, bytes | None]:
    """Bytes of each file; None for what is none."""
    return {file.name: file.read_bytes() if file.is_file() else None for file in path.iterdir()}


def test_cut_and_stray_blocks_break_the_framing(tmp_path: Path) -> None:
    for name in ("bad_truncated_block", "bad_giant_claim"):
        path = damage_capture(name, tmp_path)
        with pytest.raises(AssertionError, match="claims"):
            plain.file_blocks(path / "cdmlib0_1.profile")
    kinds = [kind for kind, _ in plain.file_blocks(damage_capture("bad_unknown_block", tmp_path) / "cdmlib0_0.profile")]
    assert 77 in kinds


def test_node_damage_is_in_the_nodes(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="node of type 55"):
        plain.node_commands(damage_capture("bad_node_kind", tmp_path) / "cdmlib0_0.profile")
    with pytest.raises(IndexError):
        plain.node_commands(damage_capture("bad_des_cut", tmp_path) / "cdmlib0_0.profile")
    with pytest.raises(UnicodeDecodeError):
        plain.node_commands(damage_capture("bad_utf8_name", tmp_path) / "cdmlib0_0.profile")
    path = damage_capture("bad_extra_short", tmp_path) / "cdmlib0_0.profile"
    assert len(plain.extra_contents(path)) == len(plain.node_commands(path)) - 100
