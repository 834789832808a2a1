"""What a prompt and a notebook are shown: short, harmless whatever names say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import make_profile, small_profile

from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Lane
from tpuprof_tui.views.answer import Column, Table

HOSTILE = "<script>alert('x')</script>&\"\x1b[2J\n\u202e\ud800" + "long" * 500


def hostile_lane(**more):
    return Lane(kind=HOSTILE, group=-1, label=HOSTILE,
                columns={"start": np.arange(3), "end": np.arange(1, 4), **more})  # fmt: skip


def hostile_table():
    columns = Column("name", HOSTILE), Column("time_us", HOSTILE, "duration")
    return Table(HOSTILE, HOSTILE, columns, ([HOSTILE] * 50, [1500] * 49 + [None]), notes=(HOSTILE,))


@pytest.mark.parametrize("thing", [
    replace(make_profile([hostile_lane()] * 30), name=HOSTILE), hostile_lane(), hostile_table(),
    make_profile([hostile_lane()]).lanes[0],
])  # fmt: skip
def test_hostile_names_do_no_harm(thing):
    line = repr(thing)
    assert len(line) < 300
    assert line.isprintable()
    html = thing._repr_html_()
    assert len(html) < 40_000
    assert html.isprintable()
    assert "script&gt;" in html
    assert "<script" not in html
    tags = set(re.findall(r"</?(\w+)", html))
    assert tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert "'" not in html.replace("&#x27;", "")
    assert '"' not in html.replace("&quot;", "")


def test_a_line_says_what_it_is():
    profile = small_profile(2)
    assert repr(profile) == (
        f"<Profile synthetic: Sophgo TPU, 3 cores, {len(profile.lanes)} engines, 600 instructions, "
        f"{time_text(profile.end_ns - profile.start_ns)}, 3 problems>"
    )
    assert repr(make_profile([])).endswith("0 engines, 0 instructions, 0 ns>")
    assert "no times" in repr(replace(profile, timed=False))
    assert repr(profile.lanes[1]) == "<Lane GDMA (GDMA) of group 0: 100 events>".replace(
        "100", str(len(profile.lanes[1]))
    )
    assert repr(hostile_table()).endswith("50 rows of name, time_us>")


def test_a_notebook_is_shown_twenty_rows():
    many = make_profile([replace(hostile_lane(), label=str(number)) for number in range(25)])
    html = many._repr_html_()
    assert html.count("<tr>") == 1 + 20
    assert "5 more engines" in html
    table = hostile_table()
    assert table._repr_html_().count("<tr>") == 1 + 20
    assert "30 more; to_pandas() holds all." in table._repr_html_()


def test_data_frames_of_tables_hold_what_json_does():
    frame = hostile_table().to_pandas()
    assert frame.columns.tolist() == ["name", "time_us"]
    assert frame["time_us"].tolist()[:2] == [1.5, 1.5]
    assert frame["time_us"].isna().tolist() == [False] * 49 + [True]
    assert frame["name"][0] == HOSTILE


def test_a_lane_of_no_profile_has_no_data_frame():
    with pytest.raises(ValueError, match="belongs to no profile"):
        hostile_lane().to_pandas()
    frame = make_profile([hostile_lane()]).lanes[0].to_pandas()
    assert frame["duration"].tolist() == [1, 1, 1]
