"""The examples for contributors: each does what it says, on a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from msgspec.structs import replace

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Profile
from tpuprof_tui.views.findings import findings_of
from tpuprof_tui.views.registry import answer, view_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ROWS = ["a,load,0,10", "a,mul,10,45.5", "b,load,5,12", "b,load,20,30", "b,load,30,130"]


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in set(sys.modules) - before:
        if name.startswith("new_"):
            del sys.modules[name]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "run.times.csv"
    path.write_text("\n".join(["lane,name,start_us,end_us", *ROWS]) + "\n")
    return path


@pytest.fixture
def profile(table: Path) -> Profile:
    return import_module("new_source").SOURCE.open(table, {}, None)  # type: ignore[no-any-return]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_it_is_short(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 80


def test_a_source_opens_its_files_as_any_other(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "installed").mkdir()
    info = tmp_path / "installed" / "offered-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tpuprof.sources]\ntimes = new_source:SOURCE\n")
    sys.path.insert(0, str(tmp_path / "installed"))
    try:
        assert main(["report", str(table), "operations", "lanes"]) == 0
        told = capsys.readouterr().out
        assert main(["instructions", str(table), "--filter", "name=load dur>8us"]) == 0
        rows = capsys.readouterr().out.splitlines()
    finally:
        sys.path.remove(str(tmp_path / "installed"))
    assert "mul" in told
    assert len(rows) == 3


def test_a_source_says_which_line_it_cannot_read(table: Path) -> None:
    table.write_text(table.read_text() + "a,load,x,1\n")
    with pytest.raises(UnreadableError, match="line 7"):
        import_module("new_source").SOURCE.open(table, {}, None)


def test_a_view_has_a_row_for_each_name(profile: Profile) -> None:
    profile = replace(profile, vocabulary=import_module("new_view").VOCABULARY)
    told = answer(view_of(profile.vocabulary, "quickest"), query_of(profile))
    assert list(told.table("by_name").rows()) == [("load", 4, 7_000, 127_000, 99_000), ("mul", 1, 35_500, 35_500, 0)]
    assert [fact.value for fact in told.facts] == [99_000]


def test_a_rule_speaks_where_lengths_differ_and_only_there(profile: Profile) -> None:
    profile = replace(profile, vocabulary=import_module("new_rule").VOCABULARY)
    found = [each for each in findings_of(query_of(profile)) if each.rule == "uneven"]
    assert [(each.text, each.gain) for each in found] == [
        ("1 of 4 load take more than 4 times the usual 10.00 us.", 90_000)
    ]
    assert not [each for each in findings_of(query_of(profile, filter="name=mul")) if each.rule == "uneven"]
