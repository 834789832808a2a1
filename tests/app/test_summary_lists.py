"""The summary's lists: what they tell, and where Enter on a line leads."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from profiles import KERNELS, session_of, small_profile
from screen import explorer, frame, opened, press, settled
from work_rows import headroom

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.evidence.unit_pauses import longest_pauses, work_differences
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.state import Scope, SelectedItem
from tpuprof_tui.app.panes.summary.page import PageBuilder, SummaryPage
from tpuprof_tui.app.settings.actions import columns_named
from tpuprof_tui.app.shell.messages import ChangeState
from tpuprof_tui.formats.units import percent_text
from tpuprof_tui.model import Lane, Role
from tpuprof_tui.sources.sophgo.schema import COLUMNS
from tpuprof_tui.views.answer import Table
from tpuprof_tui.views.generic_rules import top_events
from tpuprof_tui.views.units import one_unit

SAMPLES = Path(__file__).parents[2] / "samples"


def told(screen, view: str, key: str = "by_name") -> Table:
    """A table of a view, as the summary has it."""
    return screen.summary.answers.by_view[view].table(key)


def texts(screen) -> list[str]:
    return [strip.text.rstrip() for strip in screen.summary.lines]


async def test_enter_on_a_kernel_function_goes_to_its_longest_instruction_and_o_narrows_all_panes(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3")
        table = told(screen, "kernels")
        first = table.column("name")[0]
        assert first in KERNELS
        before, state = texts(screen), screen.state
        await press(pilot, "enter")
        chosen = screen.state.selection
        start, end = screen.session.span_of(chosen.lane, chosen.row)
        assert end - start == table.column("max_us")[0]
        assert screen.state.cursor == start
        # the list is as it was, and walked on
        assert texts(screen) == before
        assert (screen.state.filter, screen.state.scope) == (state.filter, state.scope)
        assert screen.summary.answers.answered_query.scope.everything
        await press(pilot, "j enter")
        assert screen.state.selection != chosen
        assert (texts(screen), screen.summary.cursor) == (before, 1)
        await press(pilot, "k o")
        assert screen.state.filter == f"kernel={first}"
        assert told(screen, "kernels").column("name") == [first]
        assert told(screen, "kernels").column("total_us") == table.column("total_us")[:1]
        await press(pilot, "j o")
        operation = told(screen, "operations").column("name")[0]
        assert screen.state.filter == f"kernel={first} name={operation}"
        await press(pilot, "escape escape")
        assert screen.state.filter == ""


@pytest.mark.parametrize(("view", "key"), [("kernels", "by_name"), ("distributed", "collectives")])
async def test_a_row_of_one_rank_among_several_leads_to_its_own_events(view, key):
    async with opened(open_profile(SAMPLES / "torch_cuda_synthetic")) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3")
        screen.summary.choose(view)
        await settled(pilot)
        table = told(screen, view, key)
        groups = screen.session.profile.groups
        for row, (worker, name) in enumerate(zip(table.column("worker"), table.column("name"), strict=True)):
            target = table.target_of(row)
            assert groups.title(target.scope.group) == worker
            screen.summary.cursor = screen.summary.page.targets[0].index(target)
            await press(pilot, "enter")
            selection = screen.state.selection
            lane = screen.session.profile.lanes[selection.lane]
            assert screen.session.profile.text("name", lane["name"][selection.row]) == name
            assert selection.lane in screen.session.lanes_in(target.scope)
        await press(pilot, "o")
        assert screen.state.scope == target.scope
        assert screen.state.filter == target.condition
        await press(pilot, "escape escape escape escape")
        assert (screen.state.scope.everything, screen.state.filter) == (True, "")


async def test_the_cursor_goes_through_lines_that_stand_for_something_then_scrolls(profile):
    async with opened(profile, (80, 24)) as pilot:
        pane = explorer(pilot).summary
        await press(pilot, "3 G")
        assert pane.scroll_offset.y + pane.size.height >= len(pane.lines)
        await press(pilot, "g")
        assert (pane.scroll_offset.y, pane.cursor) == (0, 0)
        for _ in range(len(pane.lines)):
            await pilot.press("j")
        await settled(pilot)
        assert pane.cursor == len(pane.page.targets[0]) - 1
        assert pane.scroll_offset.y > 0
        await press(pilot, "k")
        await press(pilot, "g pagedown")
        assert pane.scroll_offset.y > 0


async def test_sections_can_be_stepped_through(profile):
    async with opened(profile, (80, 24)) as pilot:
        pane = explorer(pilot).summary
        await press(pilot, "3 J")
        assert texts(explorer(pilot))[pane.scroll_offset.y].startswith(" Operations")
        await press(pilot, "J")
        assert texts(explorer(pilot))[pane.scroll_offset.y].startswith(" Findings")
        await press(pilot, "K K")
        assert pane.scroll_offset.y == 0


async def test_enter_on_instructions_selects_them(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3 V V V")
        assert "Findings of all cores" in frame(pilot.app)
        table = told(screen, "findings", "findings")
        row = table.merged().column("rule").index("exposed_transfer")
        screen.summary.go_to(row)
        found = top_events(Query(screen.session), 3)[0][0]
        target = table.merged().target_of(row)
        assert target.event == (found.lane, found.row)
        assert target.others
        # a line about several leads to each of them in turn
        for event in (target.event, *target.others, target.event):
            await press(pilot, "enter")
            assert (screen.state.selection.lane, screen.state.selection.row) == event


async def test_enter_on_a_pause_goes_there(profile):
    async with opened(profile, (80, 25)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j j o 3")
        place, target = next(each for each in enumerate(screen.summary.page.targets[0]) if each[1].time)
        screen.summary.go_to(place)
        await press(pilot, "enter")
        assert screen.state.cursor == target.time[0]
        assert target.time[0] == told(screen, "unit", "pauses").column("start_us")[0]
        assert screen.state.selection == SelectedItem(target.scope.group, pause=target.time)
        await press(pilot, "i")
        assert "no work for" in screen.panes.detail.text_of_all()


@pytest.mark.parametrize("key", ["o", "enter"])
async def test_o_or_enter_again_on_a_core_narrows_all_panes_to_it(profile, key):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3 v v j j enter")
        assert screen.state.scope.everything
        assert screen.state.selection.group == told(screen, "units", "units").target_of(2).scope.group
        assert screen.summary.answers.answered_query.scope.everything
        await press(pilot, key)
        assert screen.summary.answers.chosen == "units"
        core = told(screen, "units", "units").target_of(0).scope
        assert screen.state.scope == core
        assert screen.summary.answers.answered_query.scope == core


async def test_on_wide_screens_h_and_l_go_from_column_to_column(profile):
    async with opened(profile, (250, 48)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3")
        pane = screen.summary

        def highlighted() -> str:
            number = pane.items.index(pane.cursor) - pane.scroll_offset.y
            row = pane.palette.row.bgcolor
            return "".join(each.text for each in pane.render_line(number) if each.style and each.style.bgcolor == row)

        kernel = told(screen, "kernels").column("name")[0]
        assert highlighted().strip().startswith(kernel[:12])
        await press(pilot, "l")
        unit = told(screen, "units", "units").column("unit")[0]
        assert highlighted().strip().startswith(unit)
        await press(pilot, "j y")
        assert pilot.app.clipboard.startswith(told(screen, "units", "units").column("unit")[1])
        await press(pilot, "escape h")
        names = {name for view in ("kernels", "operations") for name in told(screen, view).column("name")}
        assert pane.text_of_item().split()[0] in names
        await press(pilot, "l o")
        assert not screen.state.scope.everything


def cells_shown(page: SummaryPage) -> dict[str, int]:
    """Cells of the first row below each heading of a page, by what the heading begins with; bars are none."""
    found: dict[str, int] = {}
    for column in (0, 1):
        heading = ""
        for number, line in enumerate(page.lines):
            start, end = page.span(number, column)
            part = "".join(segment.text for segment in line)[start:end].strip()
            if re.search(" ─+( |$)", part):
                heading = re.split(r" (?:\(|─|\d)", part)[0]
            elif heading and page.items[column][number] >= 0:
                found[heading] = len(re.split(r"  +", re.sub("[▏▎▍▌▋▊▉█░▒▓╌┊]+", " ", part)))
                heading = ""
    return found


@pytest.mark.parametrize("sample", ["aks_decode_mode2", "torch_cuda_synthetic"])
async def test_a_wider_summary_shows_every_column_that_a_narrower_one_does(sample):
    async with opened(open_profile(SAMPLES / sample), (120, 40)) as pilot:
        pane = explorer(pilot).summary
        before: dict[str, int] = {}
        for width in range(60, 260, 9):
            builder = PageBuilder(pane.answers, pane.palette, pane.glyphs, width, 60)
            page = builder.page(explorer(pilot).state, paused=False)
            shown = cells_shown(page)
            # a heading that fills its line has no rule, and is not found
            both = before.keys() & shown.keys()
            assert len(both) >= 3 or not before
            assert {each for each in both if shown[each] < before[each]} == set(), width
            before |= shown
        assert 0 < page.left < page.width


async def test_the_first_screen_of_a_small_terminal_tells_a_finding():
    async with opened(open_profile(SAMPLES / "aks_decode_mode1"), (80, 24)) as pilot:
        lines = frame(pilot.app).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith(" Findings"))
    assert lines[place + 1].startswith(" lm_head_matmul_multi_core moves data")


async def test_one_view_fills_the_pane(profile):
    """v and V go through those that say something, Esc shows all again, :view names one."""
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3")
        names = [view.id for view in screen.summary.answers.non_empty_views()]
        assert names[:2] == ["overview", "units"]
        assert "problems" not in names
        assert "unit" not in names
        seen = []
        for _ in names:
            await press(pilot, "v")
            seen.append(screen.summary.answers.chosen)
        assert seen == names
        await press(pilot, "V")
        assert screen.summary.answers.chosen == names[-2]
        await press(pilot, "escape")
        assert screen.summary.answers.chosen == ""
        assert "Kernel functions" in texts(screen)[0]
        await press(pilot, "colon v i e w space o p e r a t i o n s enter")
        assert len(screen.summary.page.targets[0]) == len(told(screen, "operations")) > 5
        assert "Operations of all cores, whole capture" in frame(pilot.app)
        await press(pilot, "colon v i e w space p r o b l e m s enter")
        assert screen.summary.answers.chosen == "problems"
        assert "problems" in screen.summary.answers.by_view
        await press(pilot, "colon v i e w space x enter")
        assert "views are overview, units" in frame(pilot.app)
        await press(pilot, "escape colon v i e w enter")
        assert screen.summary.answers.chosen == ""


async def test_where_nothing_starts_is_told_what_runs_through(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        session = screen.session
        lane, row = next((number, row) for number, each in enumerate(session.profile.lanes)
                         for row in np.flatnonzero(each["end"] - each["start"] > 20).tolist())  # fmt: skip
        start, end = session.span_of(lane, row)
        starts = np.sort(np.concatenate([each["start"] for each in session.profile.lanes]))
        inside = starts[(starts > start) & (starts < end)].tolist()
        edges = [start, *inside, end]
        low, high = max(pairwise(edges), key=lambda each: each[1] - each[0])
        screen.change(ChangeState(lambda state: state.windowed(low + 1, high - low - 2)))
        await settled(pilot)
        table = told(screen, "operations", "running_through")
        rows = [number for number in range(len(table)) if table.target_of(number).event == (lane, row)]
        assert rows
        assert table.column("duration_us")[rows[0]] == end - start
        assert "No instruction starts here: 0 in the timeline shows the whole capture." in "\n".join(texts(screen))
        assert "No work starts here; instructions run through" in "\n".join(texts(screen))


def lost_profile():
    """The same with times at the peak: half of what each instruction took."""
    from msgspec.structs import replace

    profile = small_profile(2, event_count=600)

    def with_peak(lane: Lane) -> Lane:
        return lane.with_column("ideal", (lane["end"] - lane["start"]) * 0.5)

    return replace(profile, lanes=tuple(with_peak(lane) for lane in profile.lanes))


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_lost_time_is_told_by_kernel_function_and_operation(size):
    profile = lost_profile()
    async with opened(profile, size) as pilot:
        screen = explorer(pilot)
        session = screen.session
        rows = headroom(session.profile, session.indexes, screen.state.start, screen.state.end)
        table = told(screen, "lost", "scopes")
        assert (table.column("name")[0], table.column("lost_us")[0]) == (rows[0].label, rows[0].lost_ns)
        text = "\n".join(texts(screen))
        assert "Lost by kernel function" in text
        assert "50.0%" in text


def test_findings_are_the_extremes_of_the_scope_and_the_filter(profile):
    session = session_of(profile)
    for scope in (Scope(), Scope(1), Scope(0, 1), Scope(-1, len(profile.lanes) - 1)):
        found = top_events(Query(session, scope), 3)
        waits = []
        for number in session.lanes_in(scope):
            lane = session.profile.lanes[number]
            own = lane["role"] == Role.WAIT
            if profile.unit_of(lane) < 0 and scope.lane < 0 and scope.group >= 0:
                own &= lane["core"] == scope.group
            waits += [
                (-int(lane["end"][row] - lane["start"][row]), number, row) for row in np.flatnonzero(own).tolist()
            ]
        assert [(-each.value, each.lane, each.row) for each in found[2]] == sorted(waits)[:3]
    only = top_events(Query(session, filter="engine=SDMA core=1"), 3)
    lanes = {profile.title_of(session.profile.lanes[each.lane]) for each in (*only[0], *only[2])}
    assert lanes == {"Core 1 SDMA"}
    number = next(n for n, lane in enumerate(profile.lanes) if profile.title_of(lane) in lanes)
    every = top_events(Query(session, Scope(1, number)), 3)
    assert only[2] == every[2]


def test_a_reason_adds_up(profile):
    session = session_of(profile)
    for core in profile.groups.numbers:
        place = one_unit(Query(session, Scope(core))).figure("place")
        assert 1 <= place <= len(profile.groups.numbers)
        pauses = longest_pauses(session, core, profile.start_ns, profile.end_ns)
        lengths = [pause.end - pause.start for pause in pauses]
        assert lengths == sorted(lengths, reverse=True)
        busy = session.indexes.by_unit[core].busy
        assert all(busy.between(pause.start, pause.end) == 0 for pause in pauses)
        if core == 2:
            assert pauses[0].text == "nothing runs"
            assert all(ns < 0 for _, ns in work_differences(session, core, profile.start_ns, profile.end_ns, True))


def test_time_of_filtered_out_work_is_no_pause(profile):
    """Under a filter the time without events that pass is told with the part in which others run."""
    session = session_of(profile)
    whole, none = (one_unit(Query(session, Scope(1), filter=condition)) for condition in ("", "dur<0"))
    assert none.figure("idle_us") - none.figure("filtered_out_us") == whole.figure("idle_us")
    assert none.figure("filtered_out_us") > 0
    titles = [next(fact.title for fact in answer.facts if fact.key == "idle_us") for answer in (whole, none)]
    assert titles == ["Nothing runs", "Idle or filtered out"]


@pytest.mark.parametrize(("sample", "by"), [("aks_bmodel", "name"), ("aks_decode_mode0", ""), ("aksv_cdma", "kernel")])
def test_differences_are_told_by_what_is_known(sample, by):
    profile = open_profile(SAMPLES / sample)
    session = session_of(profile)
    for core in profile.groups.numbers:
        parts = [work_differences(session, core, profile.start_ns, profile.end_ns, less) for less in (False, True)]
        assert any(parts) == bool(by)
        texts_of = profile.strings[by].texts(np.arange(len(profile.strings[by]))) if by else ()
        assert all(label in texts_of for part in parts for label, _ in part)


@pytest.mark.parametrize(
    ("text", "key"),
    [("dur", "duration"), ("exp", "exposed"), ("BW", "ddr_bandwidth"), ("kernel f", "kernel"), ("Idx", "order"),
     ("bytes", "bytes"), ("k", "kernel")],
)  # fmt: skip
def test_columns_are_found_by_what_people_type(text, key):
    assert columns_named(COLUMNS, text)[0].key == key


def test_nothing_is_found_by_nothing():
    assert columns_named(COLUMNS, " ") == columns_named(COLUMNS, "zzz") == []


async def test_the_table_is_sorted_by_a_column_that_is_named(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 S e x p")
        assert "Exposed" in frame(pilot.app).splitlines()[-1]
        await press(pilot, "enter")
        assert (screen.state.sort.key, screen.state.sort.down) == ("exposed", True)
        assert screen.table.columns.chosen.key == "exposed"
        await press(pilot, "s")
        assert not screen.state.sort.down
        await press(pilot, "S z z z enter")
        assert "no such column here" in frame(pilot.app)
        await press(pilot, "escape")
        assert screen.state.sort.key == "exposed"


async def test_a_column_is_copied_of_all_rows_or_of_those_picked(profile):
    async with opened(profile) as pilot:
        screen = explorer(pilot)
        await press(pilot, "2 S d u r enter ctrl+y")
        durations = [int(text) for text in pilot.app.clipboard.split("\n")]
        assert len(durations) == profile.event_count
        assert durations == sorted(durations, reverse=True)
        await press(pilot, "escape space space ctrl+y")
        assert pilot.app.clipboard == "\n".join(map(str, durations[:2]))
        assert len(screen.state.picked) == 2


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_a_line_is_copied_without_its_bar_and_without_what_stands_beside_it(profile, size):
    async with opened(profile, size) as pilot:
        screen = explorer(pilot)
        await press(pilot, "3 y")
        first = {key: told(screen, "kernels").column(key)[0] for key in ("name", "share", "count")}
        assert pilot.app.clipboard.split()[:2] == [first["name"], percent_text(first["share"])]
        assert f" {first['count']:,}" in pilot.app.clipboard
        assert not any("▀" <= letter <= "▟" for letter in pilot.app.clipboard)
        await press(pilot, "Y")
        assert pilot.app.clipboard.split("\n")[: len(texts(screen))] == texts(screen)


async def test_a_chosen_step_is_told_as_a_whole_step_since_its_figures_are(tmp_path):
    """Work of a step on the device may run beyond the end of the step on the host: it counts."""

    def event(category, name, start, length, thread, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": thread, "ts": start, "dur": length,
                "args": args}  # fmt: skip

    path = tmp_path / "one.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": [
        event("user_annotation", "ProfilerStep#1", 0, 500, 1), event("user_annotation", "ProfilerStep#2", 500, 500, 1),
        *(event("cuda_runtime", "cudaLaunchKernel", start, 5, 1, correlation=start) for start in (10, 600)),
        event("kernel", "gemm", 100, 440, 7, correlation=10, stream=7),
        event("kernel", "gemm", 700, 440, 7, correlation=600, stream=7),
    ]}))  # fmt: skip
    async with opened(open_profile(path)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "colon s t e p space 1 enter")
        assert screen.state.end - screen.state.start == 500_000
        query = screen.summary.answers.answered_query
        assert (query.step, query.range, query.window[1]) == (1, None, 540_000)
        assert "whole step" in frame(pilot.app)
        assert "window of" not in frame(pilot.app)
        # a part of it is a window
        await press(pilot, "w")
        assert "window of" in frame(pilot.app)
