"""REFERENCE.md: what it promises is tested, and the tests it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from capture_writer.kinds import KINDS

import tpuprof_tui.sources.sophgo.read

PAGE = (Path(tpuprof_tui.sources.sophgo.__file__).parent / "REFERENCE.md").read_text(encoding="utf-8")
TESTS = Path(__file__).resolve().parents[2]
#: Entries of the format's description that each section answers: pipeline 13, metrics 8, outputs 9.
ENTRIES = {"Reading": 24, "Figures": 12, "Files": 14}
SECTIONS = {part.split()[0]: [[cell.strip() for cell in line.split(" | ")] for line in part.splitlines()
                              if re.match(r"\| \d+ \|", line)] for part in PAGE.split("\n## ")[1:]}  # fmt: skip


@pytest.mark.parametrize("section", ENTRIES)
def test_every_entry_has_a_row_and_every_row_its_reason_and_its_test(section):
    rows = SECTIONS[section]
    assert [int(row[0].strip("| ")) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= ENTRIES[section]
    for row in rows:
        assert len(row) == 5, row[0]
        assert all(cell.strip("| ") for cell in row), row[0]
        assert "`" in row[4] or re.search(r"kept|written|nodes|hostile|register_problems|other_chips", row[4]), row[0]


def test_every_test_it_names_exists():
    defined = {path.stem for path in TESTS.rglob("test_*.py")}
    for path in TESTS.rglob("test_*.py"):
        defined |= set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    assert sorted(set(re.findall(r"\btest_\w+", PAGE)) - defined) == []


def test_every_path_and_every_kind_of_capture_it_names_exists():
    named = re.findall(r"`((?:export|analysis|sources|benchmarks|samples)/[\w./]*?)(?:::|`)", PAGE)
    assert named
    assert [path for path in named if not (TESTS / path).exists()] == []
    for cell in (row[4] for rows in SECTIONS.values() for row in rows):
        for part in re.findall(r"written ((?:`[a-z0-9_*]+`(?:, )?)+)", cell):
            for kind in re.findall(r"`([a-z0-9_]+)(\*?)`", part):
                known = [name for name in KINDS if name == kind[0] or (kind[1] and name.startswith(kind[0]))]
                assert known or kind[0].startswith("test_"), kind
