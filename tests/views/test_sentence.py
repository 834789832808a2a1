"""The answer in one sentence: on every face the same, its number that of a finding, and when nothing stands out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from profiles import make_lane, make_profile, small_profile

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.cli.main import main
from tpuprof_tui.export.web.page import write_web
from tpuprof_tui.formats.text import cell_len
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.model import Problem, Severity
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.views.comparing import Compared
from tpuprof_tui.views.findings import findings_of
from tpuprof_tui.views.sentence import first_finding, sentence

SAMPLES = Path(__file__).parents[2] / "samples"
EVERY = sorted(
    path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name not in ("capture_writer", "__pycache__")
)


def said(query, *more):
    return str(sentence(query, *more))


@pytest.mark.parametrize("name", EVERY)
def test_its_number_is_that_of_a_row_of_the_findings(name, capsys):
    """All faces say one sentence, and the time and share in it are those of the row that it is made of."""
    path = str(SAMPLES / name)
    assert main(["report", path, "findings", "--json"]) in (0, 1)
    record = json.loads(capsys.readouterr().out)
    told = record["sentence"]
    found = record["views"]["findings"]
    workers = found["workers"].values() if "workers" in found else [found]
    tables = [worker["tables"]["findings"] for worker in workers if "findings" in worker["tables"]]
    rows = [dict(zip([column["key"] for column in table["columns"]], row, strict=True))
            for table in tables for row in table["rows"]]  # fmt: skip
    gains = {time_text(round(row["gain_us"] * 1000)) for row in rows if row["gain_us"] is not None}
    assert any(gain in told for gain in gains) or told.startswith("Nothing stands out")
    assert main(["report", path, "findings"]) in (0, 1)
    assert capsys.readouterr().out.splitlines()[0] == told
    assert main(["summary", path]) in (0, 1)
    summary = capsys.readouterr().out.splitlines()[0]
    first = first_finding(query := query_of(open_profile(path)))
    assert summary == said(query)
    assert first is None or time_text(round(first.gain)) in summary or percent_text(first.gain / query.span) in summary


def test_other_views_do_not_wait_for_it(capsys):
    path = str(SAMPLES / "aks_decode_mode1")
    assert main(["report", path, "units", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentence"] is None
    assert main(["report", path, "units"]) == 0
    assert capsys.readouterr().out.startswith("Cores\n")


def test_it_is_on_the_page(tmp_path):
    profile = open_profile(SAMPLES / "aks_decode_mode1")
    write_web(query_of(profile), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    record = page.partition('<script type="application/json" id="profile">')[2].partition("</script>")[0]
    assert json.loads(record)["sentence"] == said(query_of(profile))


def test_it_follows_the_selection():
    whole = query_of(open_profile(SAMPLES / "aks_decode_mode1"))
    start = whole.profile.start_ns
    part = query_of(whole.profile, range=(start, start + whole.span // 4))
    assert said(part) != said(whole)
    assert time_text(part.span) in said(part)


def test_a_single_event_is_told_only_without_anything_else():
    first = first_finding(query_of(open_profile(SAMPLES / "torch_cuda_synthetic")))
    assert first.rule == "late_rank"


BUSY = make_profile([make_lane("TIU", 0, starts=[0], ends=[100])])


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (BUSY, "Nothing stands out: none of 16 rules finds 1% of 100 ns to win."),
        (
            replace(BUSY, problems=(Problem(Severity.ERROR, "lost", "left out", fragmentary=True),)),
            "Nothing stands out: none of 10 rules finds 1% of 100 ns to win; "
            "too many records are lost to judge idle time and sums.",
        ),
        (make_profile([]), "There are no instructions to look at."),
        (replace(small_profile(2), timed=False), "No times are recorded: where time goes is not known."),
    ],
)
def test_that_nothing_stands_out_says_how_sure_that_is(profile, told):
    assert said(query_of(profile)) == told


def test_in_a_comparison_it_says_why_they_differ():
    base, other = (query_of(open_profile(SAMPLES / f"aks_decode_mode{number}")) for number in (1, 2))
    assert said(replace(other, baseline=base)) == Compared(base, other).verdict.why


def test_a_filter_hides_sums_and_the_sentence_says_so():
    assert "sums are not judged" in said(query_of(BUSY, filter="dur>1"))


@pytest.mark.parametrize("name", EVERY)
def test_a_narrow_line_keeps_cause_and_number(name):
    told = sentence(query_of(open_profile(SAMPLES / name)))
    for width in (40, 60, 78, 118, 250):
        line = told.within(width)
        assert cell_len(line) == width
        assert line.startswith(told.cause[: width // 2 - 1])
        assert line.rstrip() == str(told) or width < cell_len(str(told))
        if 78 <= width < cell_len(str(told)) and told.number:
            assert told.share in line
        if width >= cell_len(told.cause) + 30 and told.number:
            assert told.advice[:10] in line


def test_what_recorded_times_show_goes_before_what_only_follows_from_names():
    """The loads that cores share are likely to be 552.2 us; exposed transfers are measured."""
    query = query_of(open_profile(SAMPLES / "aks_decode_mode2"))
    likely = max(findings_of(query), key=lambda found: found.gain or 0)
    assert likely.confidence == "likely"
    first = first_finding(query)
    assert first is not None
    assert first.confidence == "measured"
    assert first.gain > likely.gain / 2
