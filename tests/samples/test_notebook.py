"""The notebook among the samples runs from its first cell to its last, and says what it shall."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"


def test_the_notebook_runs(monkeypatch, tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(SAMPLES)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = json.loads((SAMPLES / "dataset.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "notebook"}
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "no output is kept"
                exec(compile("".join(cell["source"]), "dataset.ipynb", "exec"), names)
    assert told.getvalue() == "2 written; 0 when it is built again\n"
    assert [row[2] for row in names["longest"]] == sorted((row[2] for row in names["longest"]), reverse=True)
    ((_, name, *_), *_) = names["top"]
    assert name in {row[0] for row in names["longest"]}
    assert any("aks_damaged" in path for path, _, _ in names["problems"])
    assert set(names["tables"]) >= {"captures", "events", "figures"}
