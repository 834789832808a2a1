"""The table that benchmarks leave in a document."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def run():
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("benchmark_run", Path(__file__).parent / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_stands_between_its_marks(run, tmp_path):
    path = tmp_path / "README.md"
    path.write_text("before\n<!-- benchmarks -->\nold\n| old |\n<!-- /benchmarks -->\nafter\n")
    rows = [
        run.Row("export web", run.Figures(0.5, 0.4, 50.4), 1.2, 300.0, 20.0, run.Figures(5.0, 5.0, 500.0)),
        run.Row("page: first paint", value=90.4, unit="ms", target=1000.0),
    ]
    for _ in range(2):
        run.put(path, run.table(rows))
    text = path.read_text()
    assert text.startswith("before\n<!-- benchmarks -->\nMeasured on ")
    assert text.endswith(" |\n<!-- /benchmarks -->\nafter\n")
    assert "| export web | 0.50 s | 0.40 s | 1.2 s | 50 MiB | 320 MiB | 10.0 x time,  9.9 x memory |" in text
    assert "| page: first paint | 90 ms |  | 1000 ms |  |  |  |" in text
    assert "old" not in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_a_document_without_marks_is_left_alone(run, tmp_path):
    path = tmp_path / "README.md"
    path.write_text("nothing here\n")
    with pytest.raises(SystemExit, match="benchmarks"):
        run.put(path, "table")
    assert path.read_text() == "nothing here\n"


def test_every_case_names_a_capture_that_is_written(run):
    names = {capture.name for capture in run.CAPTURES}
    assert all(case.capture in names or not case.capture for case in run.CASES)
    assert len({case.title for case in run.CASES}) == len(run.CASES)
