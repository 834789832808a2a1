"""``--limit`` and ``--offset``: the same rows as without, in all forms, and how many there are."""

from __future__ import annotations

import json
import sys
from itertools import product

import pytest
from command_line import DAMAGED, SAMPLES, SOUND

from tpuprof_tui.cli.main import main
from tpuprof_tui.export.selection import RowPage

#: A capture of as many rows as the damaged one, which takes five times as long to read.
SMALL = SAMPLES / "aks_decode_mode2"


def asked(capfd, *words: object) -> tuple[str, str]:
    """What a command says on stdout and on stderr."""
    assert main([str(word) for word in words]) in (0, 1)
    told = capfd.readouterr()
    return told.out, told.err


@pytest.mark.parametrize("more", [(), ("--format", "csv"), ("--columns", "name,dur"), ("--sort", "dur:desc"),
                                  ("--filter", "engine=GDMA"), ("--columns", "share", "--sort", "dur")])  # fmt: skip
def test_instructions(more, capfd):
    whole, told = asked(capfd, "instructions", SMALL, *more)
    assert told == ""
    head = 1 if "csv" in more else 0
    lines = whole.splitlines()
    for limit, offset in ((7, 900),) if more else ((7, 0), (7, 900), (10**6, 1), (0, 0), (5, 10**6)):
        some, told = asked(capfd, "instructions", SMALL, *more, "--limit", limit, "--offset", offset)
        wanted = lines[head:][offset : offset + limit]
        assert some.splitlines() == lines[:head] + wanted
        count = len(lines) - head
        assert told == (f"tpuprof: {len(wanted):,} of {count:,} instructions (--limit, --offset).\n"
                        if len(wanted) < count else "")  # fmt: skip


@pytest.mark.parametrize("more", [(), ("--columns", "name,dur")])
def test_a_terminal_gets_the_first_rows_and_is_told_how_to_get_all(more, capfd, monkeypatch):
    whole, _ = asked(capfd, "instructions", SMALL, *more)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    some, told = asked(capfd, "instructions", SMALL, *more)
    lines = some.splitlines()
    assert lines == whole.splitlines()[: len(lines)]
    assert len(some) <= 8000
    assert len(lines) == 20 or not more
    assert f"{len(lines)} of {len(whole.splitlines()):,} instructions (--limit N shows more" in told


def test_parquet_and_files(capfd, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "some.parquet"
    said = asked(capfd, "instructions", SOUND, "--format", "parquet", "--output", path, "--limit", 3, "--offset", 2)
    assert said == ("", "tpuprof: 3 of 14,556 instructions (--limit, --offset).\n")
    assert parquet.read_table(path)["order"].to_pylist() == [2, 3, 4]


def test_info(capfd):
    whole = json.loads(asked(capfd, "info", DAMAGED, "--json")[0])
    assert whole["total_rows"] == {"lanes": len(whole["lanes"]), "problems": len(whole["problems"])}
    assert whole["truncated"] is False
    some = json.loads(asked(capfd, "info", DAMAGED, "--json", "--limit", 2, "--offset", 1)[0])
    assert some["lanes"] == whole["lanes"][1:3]
    assert some["problems"] == whole["problems"][1:3]
    assert some["truncated"] is True
    assert {**some, "lanes": 0, "problems": 0, "truncated": 0} == {**whole, "lanes": 0, "problems": 0, "truncated": 0}
    text = asked(capfd, "info", DAMAGED, "--limit", 2, "--offset", 1)[0]
    assert [line[:11] for line in text.splitlines() if line.startswith("Core ")] == ["Core 0 GDMA", "Core 1 TIU "]
    assert "Rows 2 to 3 of 6; --limit shows them." in text


def test_people_see_twenty_rows_of_a_table(capfd, monkeypatch):
    from profiles import make_profile

    from tpuprof_tui.model import Problem, Severity
    from tpuprof_tui.sources import catalog

    problems = [Problem(Severity.NOTE, f"Note {number}.") for number in range(25)]
    monkeypatch.setattr(catalog, "open_profile", lambda path, **_: make_profile([], problems=problems))
    assert asked(capfd, "info", "x")[0].count("Note ") == 20
    assert asked(capfd, "info", "x", "--limit", 30)[0].count("Note ") == 25
    assert len(json.loads(asked(capfd, "info", "x", "--json")[0])["problems"]) == 25
    assert asked(capfd, "report", "x", "problems")[0].count("Note ") == 20


def test_report(capfd):
    lines = asked(capfd, "report", DAMAGED, "lanes", "--limit", 2, "--offset", 2)[0].splitlines()
    assert [line[:6] for line in lines if line.startswith("Core")] == ["Core 1", "Core 1"]


def test_a_page_of_rows_that_come_in_parts():
    for sizes, limit, offset in product(
        ((), (0,), (4,), (3, 0, 5, 1), (1,) * 9), (None, 0, 1, 3, 20), (0, 1, 3, 8, 20)
    ):
        page, found, first = RowPage(limit, offset), [], 0
        for size in sizes:
            found += list(range(first, first + size))[page.take(size)]
            first += size
        assert found == list(range(first))[offset : None if limit is None else offset + limit]
        assert (page.total, page.taken) == (sum(sizes), len(found))


@pytest.mark.parametrize("command", [("instructions",), ("report", "operations")])
@pytest.mark.parametrize(("filter_text", "condition"), [
    ("engine=GDMA and core=99", "core=99"), ("name=nothing", "name=nothing"), ("engine=GDMA", None),
])  # fmt: skip
def test_a_filter_that_leaves_nothing_is_told_by_its_condition(command, filter_text, condition, capfd):
    _, told = asked(capfd, command[0], SOUND, *command[1:], "--filter", filter_text)
    assert told == ("" if condition is None else f"tpuprof: No instruction passes: {condition} leaves none.\n")
