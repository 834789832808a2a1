"""What importing, asking for help and opening a capture load, told by `sys.modules` of a process of their own.

Also who may import whom.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tpuprof_tui.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "samples" / "aks_decode_mode1"
HEAVY = {"numpy", "textual", "rich", "pandas", "openpyxl", "perfetto", "google", "plotext", "pyarrow"}


def loaded(code: str) -> set[str]:
    """Top-level modules that are loaded after ``code`` ran."""
    program = f"import sys\n{code}\nprint('loaded', *{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_probe_sees_what_is_loaded():
    assert "numpy" in loaded("import numpy")
    assert "numpy" not in loaded("pass")


def test_the_package_alone_is_light():
    assert not HEAVY & loaded("import tpuprof_tui")


#: Words of commands that open no profile, and how they end.
LIGHT = (
    ("--help", 0), ("--version", 0), ("info --help", 0), ("instructions --help", 0), ("skill --help", 0),
    ("info X --nonsense", 2), ("options explain sophgo", 0), ("options check {}", 0), ("options make network", 0),
    (f"options make sophgo --capture {SAMPLE}", 0),
)  # fmt: skip


def test_commands_that_open_no_profile_are_light():
    """One after another in one process, which takes half a second to start."""
    code = f"""
from tpuprof_tui.__main__ import main
for words, status in {LIGHT!r}:
    sys.argv = ["tpuprof", *words.split()]
    assert main() == status, words
    assert not {HEAVY!r} & sys.modules.keys(), words
"""
    assert not HEAVY & loaded(code)


def test_headless_commands_in_a_pipe_load_numpy_alone():
    code = f"""
import tpuprof_tui
from tpuprof_tui.cli.main import main
assert tpuprof_tui.open_profile({str(SAMPLE)!r}).event_count
for command in ("info", "summary", "instructions"):
    assert main([command, {str(SAMPLE)!r}]) == 0
    assert {HEAVY!r} & sys.modules.keys() == {{"numpy"}}, command
"""
    assert HEAVY & loaded(code) == {"numpy"}


@pytest.mark.parametrize("sample", ["torch_cuda_synthetic", "ascend_synthetic"])
def test_a_report_loads_nothing_that_only_rare_answers_need(sample):
    program = f"""
import sys
sys.argv = ["tpuprof", "report", {str(ROOT / "samples" / sample)!r}]
from tpuprof_tui.__main__ import main
main()
print("loaded", *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded_modules = set(done.stdout.splitlines()[-1].split()[1:])
    assert "numpy" in loaded_modules
    assert not loaded_modules & {"numpy.ma", "shutil", "subprocess", "concurrent.futures", "logging", "sqlite3"}


def test_the_program_ends_without_a_last_collection():
    program = f"""
import atexit, gc, sys
sys.argv = ["tpuprof", "info", {str(SAMPLE)!r}]
from tpuprof_tui.__main__ import main
assert gc.get_threshold()[0] == 50_000
assert gc.isenabled()
main()
assert gc.get_freeze_count() > 10_000
"""
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


@pytest.mark.parametrize(("columns", "most"), [("50", 48), ("150", 148), ("0", 78), ("many", 78)])
def test_help_is_as_wide_as_the_terminal(columns, most, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["report", "--help"]) == 0
    options = capfd.readouterr().out.partition("options:")[2].partition("\n\n")[0]
    assert most - 20 < max(map(len, options.splitlines())) <= most


def test_analysis_loads_numpy_alone():
    assert HEAVY & loaded("from tpuprof_tui.analysis import query_of, find_dependencies") == {"numpy"}


def test_the_contracts_of_the_rooms_hold():
    pytest.importorskip("importlinter")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout
