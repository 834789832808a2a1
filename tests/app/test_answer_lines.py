"""Answers as lines of a screen: they fit any width, and a wider one never tells less."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.app.drawing.theme import DARK
from tpuprof_tui.app.panes.summary.answer_lines import AnswerLines
from tpuprof_tui.model import INT_MISSING, Vocabulary
from tpuprof_tui.views.answer import Answer, Column, Fact, Missing, Series, Table, Target
from tpuprof_tui.views.registry import answer, views_of

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"
WIDTHS = (40, 57, 78, 95, 118, 160, 208)
BARS = re.compile("[▏▎▍▌▋▊▉█]+")


def text_lines(entries) -> list[str]:
    return ["".join(segment.text for segment in line) for line, _ in entries]


def lines_of(found: Answer, width: int, rows: int = 20, **more) -> list[str]:
    vocabulary = Vocabulary(source="x", title="X")
    return text_lines(AnswerLines(vocabulary, DARK, UNICODE, width, rows, **more).entries("View", found))


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    query = query_of(open_profile(SAMPLE))
    start, end = query.session.profile.window_of_group(-1)
    return [query, Query(query.session, Scope(1)), Query(query.session, range=(start + 1000, start + 1010)),
            Query(query.session, filter="engine=GDMA", range=(start, (start + end) // 2))]  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_all_views_fit_all_widths(queries, glyphs, whole):
    for query in queries:
        for view in views_of(query.vocabulary):
            found = answer(view, query)
            for width in WIDTHS:
                lines = AnswerLines(query.vocabulary, DARK, glyphs, width, 5, whole=whole)
                told = text_lines(lines.entries(query.vocabulary.say(view.title), found))
                assert all(cell_len(line) <= width for line in told), (view.id, width)


TABLE = Table.of_rows(
    "t", "Things",
    (Column("share", "Share", "share", bar=True), Column("total", "Total", "duration"),
     Column("mean", "Mean", "duration", drop_first=2), Column("where", "Where", drop_first=1), Column("name", "Name")),
    [(0.5, 5_000_000, 1_000, "over there", "a_kernel_function_with_a_rather_long_name_of_its_own"),
     (0.25, 2_000_000, 999, "here", "short"), (0.0, None, INT_MISSING, None, "x")],
    notes=("A note.",), target=lambda row: Target(condition=f"row={row}"),
)  # fmt: skip


def columns_in(lines: list[str]) -> set[str]:
    return {title for title in ("Share", "Total", "Mean", "Where") if any(title in line for line in lines)}


def name_length(lines: list[str]) -> int:
    """Cells of the first name that are shown."""
    return len(next(line for line in lines if line.startswith(" a_ker")).split()[0].rstrip("…"))


def test_wider_is_never_worse():
    seen, longest = set(), 0
    for width in range(50, 200):
        lines = lines_of(Answer(tables=(TABLE,)), width)
        assert columns_in(lines) >= seen, width
        assert name_length(lines) >= longest, width
        seen, longest = columns_in(lines), name_length(lines)
    assert seen == {"Share", "Total", "Mean", "Where"}
    assert longest == len(TABLE.column("name")[0])
    # the columns that may be left out go before a name is cut, the highest first
    assert columns_in(lines_of(Answer(tables=(TABLE,)), 82)) == {"Share", "Total"}
    assert columns_in(lines_of(Answer(tables=(TABLE,)), 90)) == {"Share", "Total", "Where"}


def test_a_bar_goes_before_a_figure():
    columns = (
        Column("name", "Name"),
        Column("total", "Total", "count", bar=True),
        Column("mean", "Mean", "count", drop_first=1),
    )
    table = Table.of_rows("t", "Things", columns, [("a_function_" * 3, 1_234_567, 7_654_321), ("b", 1, 2)])
    barred = {}
    for width in range(50, 90):
        text = "\n".join(lines_of(Answer(tables=(table,)), width))
        barred[width] = bool(BARS.search(text)), "7,654,321" in text
    assert barred[58] == (False, True)
    assert barred[80] == (True, True)
    shown = [figure for _, figure in barred.values()]
    assert shown == sorted(shown)


def test_rows_begin_with_what_they_are_called_and_bars_are_full_at_the_largest():
    lines = lines_of(Answer(tables=(TABLE,)), 120)
    assert lines[0].startswith(" Things (us) ─")
    assert "Share" in lines[0]
    rows = [line.split() for line in lines[1:]]
    assert [row[0][:5] for row in rows] == ["a_ker", "short", "x"]
    bars = [len("".join(BARS.findall(line))) for line in lines[1:]]
    assert bars[0] == pytest.approx(2 * bars[1], abs=1)
    assert bars[1] > 0 == bars[2]
    assert rows[2][1:] == ["0.0%", "-", "-", "-"]


def test_a_table_of_which_nothing_may_go_goes_on_below():
    columns = (Column("core", "Core"), *(Column(f"c{place}", f"Counter{place}", "count") for place in range(9)))
    table = Table.of_rows("t", "Counts", columns, [("0", *range(9)), ("all", *range(9))], total=True)
    lines = lines_of(Answer(tables=(table,)), 50)
    told = "\n".join(lines)
    assert all(f"Counter{place}" in told for place in range(9))
    assert sum(line.startswith(" all") for line in lines) == len(lines) // 3 == 3


def test_the_title_states_that_rows_are_missing():
    columns = Column("worker", "Worker"), *(Column(f"c{n}", f"Counter{n}", "count") for n in range(4))
    table = Table.of_rows("t", "Workers", columns, [(f"Rank {rank}", *range(4)) for rank in range(8)])
    for width in (40, 60, 120):
        lines = lines_of(Answer(tables=(table,)), width, 2)
        assert lines[0].startswith(" Workers 2 of 8 "), width
        assert {line[1:7] for line in lines if line.startswith(" Rank ")} == {"Rank 0", "Rank 1"}


def test_names_that_begin_alike_are_told_apart():
    names = ["matmul_ogs_bf16xbf16_16x128x256x1", "matmul_ogs_bf16xbf16_16x128x256x1_swiglu", "copy"]
    rows = [(name, 1) for name in names]
    table = Table.of_rows("t", "Things", (Column("name", "Name"), Column("count", "Count", "count")), rows)
    lines = lines_of(Answer(tables=(table,)), 40)[1:]
    assert lines[0].split()[0].endswith("256x1")
    assert lines[1].split()[0].endswith("_swiglu")
    assert {cell_len(line) for line in lines} == {39}


def test_below_each_part_of_a_table_its_rows_are_told_apart():
    counters = (Column(f"c{place}", f"Counter{place}", "count") for place in range(9))
    columns = (Column("rank", "Rank"), Column("step", "Step"), *counters)
    rows = [(f"Rank {rank}", f"step {step}", *range(9)) for rank in range(2) for step in range(2)]
    lines = lines_of(Answer(tables=(Table.of_rows("t", "Counts", columns, rows),)), 50)
    told = [line[:18].split() for line in lines if line.startswith(" Rank ") and "step" in line]
    assert told == [["Rank", rank, "step", step] for rank in "01" for step in "01"] * (len(told) // 4)
    assert len(told) == len(lines) - len(told) // 4 >= 12


def test_a_view_that_fills_the_pane_names_the_columns_without_room():
    told = "No room for Mean, Where: see a wider pane or tpuprof report."
    assert [line.strip() for line in lines_of(Answer(tables=(TABLE,)), 70, whole=True)].count(told) == 1
    assert "No room" not in "".join(lines_of(Answer(tables=(TABLE,)), 200, whole=True))
    assert "No room" not in "".join(lines_of(Answer(tables=(TABLE,)), 70))


def test_characters_whose_width_differs_between_terminals_are_not_shown():
    odd = "a\u200db\ufe0fc" + "\u0301" * 9
    table = Table.of_rows("t", "Things", (Column("name", "Name"), Column("count", "Count", "count")), [(odd, 1)])
    for line in lines_of(Answer(facts=(Fact("name", "Name", odd, "text"),), tables=(table,)), 60, whole=True):
        assert not set("\u200d\ufe0f") & set(line)
        assert line.count("\u0301") <= 2


def test_of_steps_without_room_the_longest_stay_in_their_order():
    columns = Column("step", "Step"), Column("us", "Length", "duration")
    rows = [(f"step {n}", us) for n, us in enumerate((7, 90, None, 8, 80, 70))]
    table = Table.of_rows("steps", "Steps", columns, rows, longest="us")
    answer = Answer(tables=(table,))
    assert lines_of(answer, 60, 3)[0].startswith(" Steps (ns) longest 3 of 6 ")
    assert [line.split()[1] for line in lines_of(answer, 60, 3)[1:]] == ["1", "4", "5"]
    # on a line of its own where headers leave it no room
    assert lines_of(answer, 30, 3)[0].startswith(" Steps (ns) longest 3 of 6 ")
    assert lines_of(answer, 30, 3)[1].split() == ["Step", "Length"]
    assert [line.split()[1] for line in lines_of(answer, 60, whole=True)[1:]] == list("012345")


def test_what_one_view_alone_tells_is_complete():
    long = Table.of_rows("t", "Long", (Column("gain", "Gain", "duration"), Column("text", "Text")),
                         [(1, "word " * 40 + "end")], brief=())  # fmt: skip
    found = Answer((Fact("f", "Figure", 7, about="core 1"), Fact("n", "Nothing", None)), (long, TABLE), notes=("So.",),
                   missing=(Missing("More is not known.", "mode 9"),))  # fmt: skip
    brief, whole = lines_of(found, 60), lines_of(found, 60, whole=True)
    assert "Long" not in "\n".join(brief)
    told = " ".join(" ".join(whole).split())
    assert told.count("word") == 40
    for words in ("Figure core 1: 7", "So.", "A note.", "More is not known. It needs mode 9."):
        assert words in told
    assert "Nothing" not in told
    assert "mode 9" not in " ".join(brief)


def test_rows_lead_where_their_table_says():
    vocabulary = Vocabulary(source="x", title="X")
    lines = AnswerLines(vocabulary, DARK, UNICODE, 80, 2)
    assert [target.condition for _, target in lines.entries("View", Answer(tables=(TABLE,))) if target] == [
        "row=0", "row=1"
    ]  # fmt: skip
    chosen = Table(TABLE.key, TABLE.title, TABLE.columns, TABLE.values, TABLE.target, brief=(2, 0, 1))
    assert [target.condition for _, target in lines.entries("View", Answer(tables=(chosen,))) if target] == [
        "row=2", "row=0"
    ]  # fmt: skip


def test_series_have_a_heading_with_mean_and_most():
    times = np.arange(4, dtype=np.int64)
    found = Answer(series=(Series("heat", "Heat", "K", times, np.array([1.0, np.nan, 3.0])),
                           Series("memory", "Memory", "B", times, np.array([1024.0, 2048.0, 3072.0]))))  # fmt: skip
    lines = lines_of(found, 80, curves={"heat": ["curve"]})
    assert lines[0].startswith(" Heat mean 2.00 K, most 3.00 K, curve: cell means ─")
    assert lines[1] == " curve"
    assert lines[2].startswith(" Memory mean 2.0 KiB, most 3.0 KiB ─")


TEXTS = st.text(max_size=60)


@given(st.lists(st.tuples(TEXTS, st.integers(-(10**18), 10**18), TEXTS), min_size=1, max_size=4), TEXTS,
       st.integers(1, 130), st.booleans())  # fmt: skip
def test_hostile_texts_fit_and_steer_nothing(rows, title, width, whole):
    columns = (Column("a", title, drop_first=1), Column("n", "N", "duration", bar=True), Column("b", "B"))
    found = Answer((Fact("f", title, title, "text"),), (Table.of_rows("t", title, columns, rows),), notes=(title,))
    for line in lines_of(found, width, whole=whole):
        assert "\x1b" not in line
        assert "\n" not in line
        if width >= 60:
            assert cell_len(line) <= width
