"""Damaged captures: what is broken; that the rest is as it was, tests of reading them tell."""

from __future__ import annotations

from pathlib import Path

import plain_capture as plain
import pytest
from capture_writer.damage import damage_capture


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
