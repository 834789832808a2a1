"""Which instructions the published converter counts, against its rule told step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import raw_bytes as raw
from compiled_captures import RECORDED, compiled, compiled_truth
from hypothesis import given
from hypothesis import strategies as st
from profiles import make_lane, make_profile

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.model import Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.files.summary_table import published_part, published_rows
from tpuprof_tui.sources.sophgo.files.summary_text import summary_text
from tpuprof_tui.sources.sophgo.views.published_summary import published


def _by_the_rule(ids: list[int], system: list[bool], *, ports: bool) -> list[int]:
    """Rows that are left, as pipeline 10 says: pairs at the tail, else at the head, while something is removed."""
    rows = list(range(len(ids)))
    while len(rows) >= 3:
        a, b, c = rows[-3:]
        if ids[c] == ids[b] + 1 and ids[b] <= ids[a] and system[b]:
            rows = rows[:-2]
            continue
        a, b, c = rows[:3]
        if ids[b] == ids[a] + 1 and ids[c] <= ids[b] and system[a]:
            rows = rows[2:]
            continue
        break
    if len(rows) <= 2 and not ports:
        rows = [row for row in rows if not system[row]]
    return rows


@raw.FIXED
@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=12), st.integers(0, 90), st.booleans()
)
def test_rows_are_those_of_the_rule(commands: list[tuple[int, bool]], pairs: int, ports: bool) -> None:
    commands = [(1, True), (2, True)] * pairs + commands + [(1, True), (2, True)] * (pairs // 2)
    ids, system = (list(column) for column in zip(*commands, strict=True))
    start = np.arange(len(ids)) * 10
    roles = np.where(system, Role.SYNC, Role.WORK)
    lanes = [make_lane("TIU", starts=start, ends=start + 5, roles=roles, command_id=np.array(ids))]
    if ports:
        lanes.append(make_lane("CDMA", starts=[0], ends=[1]))
    profile = make_profile(lanes)
    found = np.arange(len(ids))[published_rows(profile, profile.lanes[0])].tolist()
    assert found == _by_the_rule(ids, system, ports=ports)


@pytest.mark.parametrize("name", RECORDED)
def test_the_first_launch_s_pair_counts_here_and_not_there(name: str, tmp_path: Path) -> None:
    profile, truth = open_profile(compiled(name, tmp_path)), compiled_truth(name)
    # an SDMA that does nothing has nothing but such pairs
    first = min(columns["start_ns"][2] for (engine, _), columns in truth.lanes.items() if engine != "SDMA")
    last = max(columns["end_ns"].max() for columns in truth.lanes.values())
    part = published_part(profile)
    assert part.end_ns - part.start_ns == last - first < profile.end_ns - profile.start_ns
    (table,) = published(Query(Session(profile))).tables
    assert set(table.column("total_us")) == {last - first}
    assert f"{(last - first) / 1000:.3f}" in summary_text(query_of(profile))
