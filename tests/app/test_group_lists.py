"""Groups, frequencies, columns, shares, picks and copies of the table."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from command_line import SAMPLES
from msgspec.structs import replace
from profiles import big_profile, make_lane, make_profile, session_of, small_profile
from screen import explorer, frame, opened, press, settled

from tpuprof_tui.analysis.events import numbers_shown
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter, with_condition
from tpuprof_tui.analysis.selecting.filters import text_condition
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import DisplayState, Scope
from tpuprof_tui.analysis.totals.grouping import group_table, groupings, has_named_work
from tpuprof_tui.export.table import SHARE
from tpuprof_tui.model import INT_MISSING, Role, Strings
from tpuprof_tui.sources.catalog import open_profile


@pytest.fixture(scope="module")
def profile():
    return small_profile(2, event_count=600)


def view_of(session: Session, **changes) -> DisplayState:
    return replace(DisplayState.of(session.profile.start_ns, session.profile.end_ns), **changes)


async def test_without_named_work_engines_are_grouped_though_waits_have_names():
    lanes = [
        make_lane(engine, 0, starts=[0, 10], ends=[5, 20], name=[-1, 0], role=[Role.WORK, Role.WAIT])
        for engine in ("TIU", "GDMA")
    ]
    profile = make_profile(lanes, strings={"name": Strings(["wait"])})
    assert not has_named_work(session_of(profile))
    async with opened(profile) as pilot:
        await press(pilot, "b")
        assert "Engine: 2 groups of 2 instructions (work)" in frame(pilot.app)


def test_work_with_a_name_is_known_to_have_one(session):
    assert has_named_work(session)


# the groups themselves


@pytest.mark.parametrize("column", [column.key for column in session_of(small_profile(2)).columns])
def test_each_group_is_what_its_filter_leaves(session, column):
    state = view_of(session, filter="!core=7")
    table = group_table(session, state, (column,), work_only=False)
    assert int(table.count.sum()) == len(numbers_shown(session, state)) == int(table.count.sum())
    for place, condition in enumerate(table.conditions):
        count = apply_filter(session, with_condition(state.filter, condition)).count
        assert count == int(table.count[place]), (table.labels[place], condition)


@pytest.mark.parametrize("keys", list(combinations(("name", "core", "engine", "duration", "bytes"), 2)))
def test_each_group_of_two_columns_is_what_its_filter_leaves(session, keys):
    state = view_of(session)
    table = group_table(session, state, keys, work_only=False)
    assert int(table.count.sum()) == session.profile.event_count
    for place, condition in enumerate(table.conditions):
        assert apply_filter(session, condition).count == int(table.count[place]), (table.labels[place], condition)


def test_bytes_bandwidth_and_share_of_the_peak_are_those_of_the_moves():
    session = session_of(open_profile(SAMPLES / "aks_decode_mode2"))
    table = group_table(session, view_of(session), ("engine", "core"), work_only=True)
    profile = session.profile
    for place, parts in enumerate(table.parts):
        (lane,) = [each for each in profile.lanes if (each.kind, str(profile.number_of(each))) == parts]
        work = lane["role"] == Role.WORK
        took = (lane["end"] - lane["start"])[work]
        moved = lane["bytes"][work] if "bytes" in lane else np.full(len(took), INT_MISSING)
        known = moved > 0
        if not known.any():
            assert (table.bytes[place], *np.isnan((table.rate[place], table.peak[place]))) == (INT_MISSING, True, True)
            continue
        assert int(table.bytes[place]) == int(moved[known].sum())
        assert table.rate[place] == pytest.approx(moved[known].sum() / took[known].sum())
        assert 0 < table.peak[place] < 1


def test_work_alone_leaves_waits_out(session):
    view = view_of(session)
    work = sum(int((lane["role"] == Role.WORK).sum()) for lane in session.profile.lanes)
    assert group_table(session, view, ("name",), work_only=True).count.sum() == work < session.profile.event_count


@pytest.mark.parametrize("work_only", [False, True])
@pytest.mark.parametrize("changes", [{"scope": Scope(1)}, {"filter": "dur>300"}, {"in_window": True}])
def test_groups_are_of_what_the_table_holds(session, changes, work_only):
    state = view_of(session, **changes)
    if state.in_window:
        state = state.windowed(state.full_end // 3, state.span // 5)
    table = group_table(session, state, ("kernel",), work_only=work_only)
    places = [session.locate(number) for number in numbers_shown(session, state).tolist()]
    lanes = session.profile.lanes
    spans = [
        session.span_of(lane, row) for lane, row in places if not work_only or lanes[lane]["role"][row] == Role.WORK
    ]
    durations = [end - start for start, end in spans]
    assert int(table.total.sum()) == sum(durations)
    assert int(table.longest.max()) == max(durations)


@pytest.mark.parametrize(
    "texts",
    [
        ["add", "ADD", "Add"],
        ["a*b", "axb", "a?b", "a[1]b"],
        ['say "so"', "say 'so'", "say so"],
        ["two words", "two", "words"],
        ["=x", "~x", "(y)", "a|b", "!z"],
        ["\x1b[31m", "plain", ""],
    ],
)
def test_any_name_can_be_asked_for_alone(texts):
    count = len(texts)
    lane = make_lane("TIU", 0, starts=np.arange(count) * 10, ends=np.arange(count) * 10 + 5, name=range(count))
    session = session_of(make_profile([lane], strings={"name": Strings(texts)}))
    table = group_table(session, view_of(session), ("name",), work_only=False)
    for place, condition in enumerate(table.conditions):
        found = apply_filter(session, condition)
        assert bool(found.mask[place])
        assert found.count == 1, condition
        assert "\x1b" not in condition


def test_plain_names_need_no_quotes():
    assert text_condition("name", "MM2_NN") == "name=MM2_NN"
    assert text_condition("name", "two words") == 'name="two words"'
    assert text_condition("name", "add", alone=False) == 'name~"(?-i:^add$)"'


# on the screen


async def test_groups_show_where_the_time_went_and_lead_into_one(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "b")
        groups = pilot.app.screen
        assert groups.has_class("groups")
        text = frame(pilot.app)
        table = groups.pane.table
        first = int(np.argmax(table.total))
        row = text.splitlines()[2]
        assert table.labels[first] in row
        assert f"{int(table.count[first]):,}" in row
        assert f"{100 * float(table.share[first]):.1f}%" in row
        await press(pilot, "enter")
        assert pilot.app.screen is screen
        assert screen.state.filter == table.conditions[first]
        assert screen.focused.id == "table"
        assert len(screen.table.rows.order) == apply_filter(screen.session, table.conditions[first]).count
        await press(pilot, "escape")
        assert screen.state.filter == ""


@pytest.mark.parametrize("width", [40, 60])
async def test_narrow_groups_show_total_and_share_and_tell_labels_apart(width):
    names = [f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize_{size}" for size in (64, 128, 256)]
    lane = make_lane("TIU", 0, starts=[0, 100, 300], ends=[10, 130, 360], name=[0, 1, 2])
    async with opened(make_profile([lane], strings={"name": Strings(names)}), (width, 24)) as pilot:
        await press(pilot, "b")
        header, *rows = (line.strip("│") for line in frame(pilot.app).splitlines()[1:5])
        assert "total ns" in header
        assert "share" in header
        for row, size, total, share in zip(
            rows, (256, 128, 64), (60, 30, 10), ("60.0%", "30.0%", "10.0%"), strict=True
        ):
            assert f"{size} " in row
            assert f" {total} " in row
            assert share in row
        for column in ("mean", "longest", "share", "value", "count"):
            await press(pilot, "greater_than_sign")
            if column != "value":
                assert re.search(rf"{column}( ns)? ▼", frame(pilot.app))
                assert "share" in frame(pilot.app)


async def test_groupings_take_turns_and_sort_by_any_column(profile):
    async with opened(profile) as pilot:
        await press(pilot, "b")
        groups = pilot.app.screen.pane
        seen = [groups.keys]
        cycle = groupings(groups.session)
        assert [*cycle[:3], *cycle[-3:]] == ["name", "kernel", "type", "core", "engine", "step"]
        for _ in cycle:
            await press(pilot, "b")
            seen.append(groups.keys)
        assert [key for (key,) in seen] == [*cycle, "name"]
        more = ["bytes", "rate", "peak"]
        for name in ("mean", "longest", *more, "share", "value", "count", "total"):
            if name in more and getattr(groups.table, name) is None:
                continue
            await press(pilot, "greater_than_sign")
            assert groups.sort == name
            if name != "value":
                values = getattr(groups.table, name)[groups.order].tolist()
                assert values == sorted(values, reverse=True)
            else:
                labels = [groups.table.labels[number].casefold() for number in groups.order]
                assert labels == sorted(labels)
        await press(pilot, "I")
        totals = groups.table.total[groups.order].tolist()
        assert totals == sorted(totals)
        rows = int(groups.table.count.sum())
        await press(pilot, "w")
        assert int(groups.table.count.sum()) > rows
        await press(pilot, "q")
        assert pilot.app.screen is explorer(pilot)


async def test_frequencies_are_of_the_chosen_column(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 greater_than_sign F")
        groups = pilot.app.screen.pane
        assert groups.keys == ("duration",)
        assert int(groups.table.count.sum()) == profile.event_count
        counts = groups.table.count[groups.order].tolist()
        assert counts == sorted(counts, reverse=True)
        assert " to " in groups.table.labels[0]
        await press(pilot, "j enter")
        assert screen.state.filter == groups.table.conditions[int(groups.order[1])]
        assert len(screen.table.rows.order) == counts[1]


async def test_groups_of_many_are_counted_in_a_thread():
    async with opened(big_profile(60_000, cores=2)) as pilot:
        await press(pilot, "b")
        await settled(pilot)
        assert pilot.app.screen.pane.table.count.sum() > 40_000


async def test_nothing_to_group_says_so(profile):
    async with opened(profile) as pilot:
        explorer(pilot).filtering.apply("dur>10s")
        await press(pilot, "b")
        assert "Nothing to group" in frame(pilot.app)
        await press(pilot, "enter j G s I y")
        assert pilot.app.is_running


async def test_the_list_of_groups_can_be_copied(profile):
    async with opened(profile) as pilot:
        await press(pilot, "b b y")
        lines = pilot.app.clipboard.split("\n")
        assert lines[0].split("\t")[1:3] == ["count", "total ns"]
        total = sum(int(line.split("\t")[2]) for line in lines[1:])
        work = sum(int((lane["end"] - lane["start"])[lane["role"] == Role.WORK].sum()) for lane in profile.lanes)
        assert total == work
        assert pilot.app.screen.has_class("copied")
        await press(pilot, "escape escape")
        assert pilot.app.screen is explorer(pilot)


async def test_columns_are_hidden_moved_and_restored(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        usual = [column.key for column in screen.table.columns.columns]
        await press(pilot, "2 c")
        assert pilot.app.screen.has_class("columns")
        await press(pilot, "g space")
        assert [column.key for column in screen.table.columns.columns] == usual[1:]
        await press(pilot, "g j J")
        assert [column.key for column in screen.table.columns.columns][:2] == [usual[2], usual[1]]
        await press(pilot, "K q")
        assert screen.state.columns == tuple(usual[1:])
        assert " [x]" not in frame(pilot.app)
        await press(pilot, "c r escape")
        assert screen.state.columns == ()
        assert [column.key for column in screen.table.columns.columns] == usual


async def test_one_column_always_stays(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 c g")
        for _ in range(len(screen.session.columns) + 3):
            await pilot.press("space")
        await settled(pilot)
        assert len(screen.table.columns.columns) == 1
        await press(pilot, "escape j s F")
        assert pilot.app.is_running


async def test_each_duration_tells_its_share(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 percent_sign")
        keys = [column.key for column in screen.table.columns.columns]
        assert keys[keys.index("duration") + 1] == "share"
        assert "% of all" in frame(pilot.app)
        shares = [float(screen.table.rows.as_tsv([number], (SHARE,), header=False)[:-1])
                  for number in screen.table.rows.order.tolist()]  # fmt: skip
        assert sum(shares) == pytest.approx(100, abs=0.5)
        screen.filtering.apply("core=1")
        await settled(pilot)
        shares = [float(screen.table.rows.as_tsv([number], (SHARE,), header=False)[:-1])
                  for number in screen.table.rows.order.tolist()]  # fmt: skip
        assert sum(shares) == pytest.approx(100, abs=0.5), "of what the table holds"
        await press(pilot, "greater_than_sign greater_than_sign s")
        assert screen.state.sort.key == "duration"
        await press(pilot, "percent_sign")
        assert [column.key for column in screen.table.columns.columns] == [key for key in keys if key != "share"]


async def test_rows_are_picked_and_copied(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 space space j space")
        picked = screen.table.rows.order[[0, 1, 3]].tolist()
        assert list(screen.state.picked) == picked
        assert screen.table.rows.position == 4
        assert "3 picked" in frame(pilot.app)
        await press(pilot, "y")
        lines = pilot.app.clipboard.split("\n")
        assert len(lines) == 4
        header = lines[0].split("\t")
        for line, number in zip(lines[1:], picked, strict=True):
            start, end = screen.session.span_of(*screen.session.locate(number))
            cells = dict(zip(header, line.split("\t"), strict=True))
            assert cells["Start ns"] == str(start)
            assert cells["Duration ns"] == str(end - start)
        assert "set-clipboard on" in frame(pilot.app)
        await press(pilot, "escape k space")
        assert list(screen.state.picked) == picked[:2], "picked again: let go"
        await press(pilot, "U")
        assert screen.state.picked == ()


async def test_a_row_and_a_cell_are_copied(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 greater_than_sign j Y")
        start, end = screen.session.span_of(*screen.session.locate(int(screen.table.rows.order[1])))
        assert pilot.app.clipboard == str(end - start)
        assert f"Copied Duration: {end - start}" in frame(pilot.app).splitlines()[-1]
        await press(pilot, "y")
        assert pilot.app.clipboard.count("\n") == 1
        assert pilot.app.screen.has_class("copied")


async def test_picked_rows_carry_a_mark_and_clicks_still_meet_their_column(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 space")
        mark = screen.table.glyphs.mark
        rows = frame(pilot.app).splitlines()
        assert any(f"│{mark}" in row or f"┃{mark}" in row for row in rows)
        left = screen.table.columns.edges[1]
        await pilot.click("#table", offset=(left + 2, 1))
        await settled(pilot)
        assert screen.table.columns.chosen_index == 1
