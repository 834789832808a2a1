"""What works, and what is said, where a package is not installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import on_a_terminal

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "aksv_cdma"
#: All that is not needed for reading a capture and for most exports.
OPTIONAL = ("textual", "rich", "pandas", "openpyxl", "perfetto", "google", "plotext", "pyarrow")


def without(packages, code, **settings):
    """A process for which ``packages`` are not installed."""
    blocked = f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n"
    command = [sys.executable, "-c", blocked + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **settings)


def tool(packages, *words, **settings):
    code = f"from tpuprof_tui.__main__ import main\nsys.exit(main({[str(word) for word in words]!r}))"
    return without(packages, code, **settings)


def test_the_probe_hides_packages():
    hidden = without(("rich",), "import rich")
    assert hidden.returncode == 1
    assert "ModuleNotFoundError" in hidden.stderr
    assert without((), "import rich").returncode == 0


def test_all_exports_but_trace_and_workbook_need_numpy_alone(tmp_path):
    done = tool(OPTIONAL, "export", SAMPLE, tmp_path / "out", "--only", "web,summary,regs")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").rglob("*")}
    assert {"result.html", "summary.txt", "tiuRegInfo_0.txt"} <= names


def test_the_workbook_says_what_it_needs_and_leaves_nothing(tmp_path):
    done = tool(("openpyxl",), "export", SAMPLE, tmp_path / "out", "--only", "xlsx")
    assert done.returncode == 2
    assert "The workbook needs the package openpyxl, which is not installed." in done.stderr
    assert not list((tmp_path / "out").rglob("*.xlsx"))


@pytest.mark.parametrize(("hidden", "package"), [("perfetto", "perfetto"), ("google", "protobuf")])
def test_the_trace_says_what_it_needs_and_leaves_nothing(tmp_path, hidden, package):
    done = tool((hidden,), "export", SAMPLE, tmp_path / "out", "--only", "pftrace")
    assert done.returncode == 2
    said = f"tpuprof: The Perfetto trace needs the package {package}, which is not installed. "
    assert done.stderr.splitlines()[-1] == f"{said}Install it: pip install {package}."
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "out").rglob("*trace*"))


def test_a_data_frame_says_what_it_needs():
    code = f"import tpuprof_tui\ntpuprof_tui.open_profile({str(SAMPLE)!r}).to_pandas()"
    done = without(("pandas",), code)
    last = done.stderr.splitlines()[-1]
    assert "A data frame needs the package pandas, which is not installed. Install it: pip install pandas." in last


def test_the_error_is_an_import_error_too():
    code = "from tpuprof_tui.errors import *\nassert issubclass(MissingPackageError, (ImportError, TpuprofError))"
    assert without((), code).returncode == 0


def test_without_numpy_every_command_is_one_sentence():
    done = tool(("numpy",), "info", SAMPLE)
    assert done.returncode == 2
    assert done.stderr == (
        "tpuprof: tpuprof needs the package numpy, which is not installed. Install it: pip install numpy.\n"
    )


def test_without_any_package_there_is_help_and_a_version():
    for words in (["--help"], ["--version"], ["export", "--help"]):
        done = tool((*OPTIONAL, "numpy"), *words)
        assert (done.returncode, done.stderr) == (0, "")


def without_on_a_terminal(packages, *words):
    """Exit status and what a process wrote to the terminal it was given."""
    code = f"import sys\nsys.modules.update(dict.fromkeys({packages!r}))\n" \
        f"from tpuprof_tui.__main__ import main\nsys.exit(main({[str(word) for word in words]!r}))"  # fmt: skip
    status, told = on_a_terminal([sys.executable, "-c", code], os.environ | {"TERM": "xterm-256color"})
    return status, told.decode(errors="replace")


def test_without_textual_the_explorer_says_so():
    status, told = without_on_a_terminal(("textual",), SAMPLE)
    assert status == 2
    assert "The explorer needs the package textual, which is not installed. Install it: pip install textual." in told
    assert "`tpuprof summary` prints where the time went." in told
    assert "Traceback" not in told


def test_without_rich_a_terminal_gets_plain_text():
    status, told = without_on_a_terminal(("rich",), "summary", SAMPLE)
    assert status == 0
    assert told.replace("\r\n", "\n") == tool((), "summary", SAMPLE).stdout


def test_without_plotext_the_summary_has_a_hint_in_place_of_charts():
    code = f"""
import asyncio
sys.path.insert(0, {str(Path(__file__).resolve().parents[1] / "app")!r})
from screen import frame, opened, press
from tpuprof_tui import open_profile
from tpuprof_tui.app.drawing import charts

async def look():
    async with opened(open_profile({str(SAMPLE)!r}), (120, 260)) as pilot:
        await press(pilot, "3 Z")
        print(frame(pilot.app))

import numpy as np
print("curve:", charts.curve(np.ones(9), 0, 10, 80, 8, ascii_only=True))
asyncio.run(look())
"""
    done = without(("plotext",), code)
    assert done.returncode == 0, done.stderr
    assert "Charts need the package plotext. Install it: pip install plotext." in done.stdout
    assert done.stdout.startswith("curve: []\n")
    drawn = re.compile("[\u2801-\u28ff]")
    assert not drawn.search(done.stdout)


def test_our_own_mistakes_are_not_taken_for_missing_packages():
    code = """
from tpuprof_tui.errors import requires_package
try:
    with requires_package("It"):
        import tpuprof_tui.nonsense
except ModuleNotFoundError as error:
    print(type(error).__name__)
"""
    assert without((), code).stdout == "ModuleNotFoundError\n"
