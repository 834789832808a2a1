"""The detail pane: what it tells of an instruction, the links one follows in it, copies, scrolling."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Registers, make_lane, make_profile, session_of, small_profile
from rich.cells import cell_len
from screen import AS_RECORDED, SIZES, compared, explorer, frame, opened, press

from tpuprof_tui import open_profile
from tpuprof_tui.analysis.evidence.peers import peers_of
from tpuprof_tui.analysis.links.dependencies import dependencies_of, likely_release
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.analysis.selecting.moves import select_event
from tpuprof_tui.analysis.selecting.state import SelectedItem
from tpuprof_tui.app.panes.detail import HELP_BESIDE, MAX_LINKS, DetailPane, entries_of, register_group
from tpuprof_tui.model import Strings
from tpuprof_tui.sources.sophgo.schema import COLUMNS

SAMPLES = Path(__file__).parents[2] / "samples"

NAMES = {"name": Strings(["mm2", "load"])}


@pytest.fixture(scope="module")
def profile():
    return small_profile(2, event_count=600)


def linked(waiters: int = 2):
    """TIU commands that all waited for the GDMA command with id 2."""
    starts = [0, *range(100, 100 + waiters * 40, 40)]
    tiu = make_lane("TIU", 0, starts=starts, ends=[start + 10 + place for place, start in enumerate(starts)],
                    command_id=list(range(1, waiters + 2)), depends_on=[0, *[2] * waiters],
                    name=np.zeros(waiters + 1, np.int32))  # fmt: skip
    gdma = make_lane("GDMA", 0, starts=[5, 40], ends=[30, 95], command_id=[1, 2], depends_on=[0, 0],
                     bytes=[64, 64], name=np.array([1, 1], np.int32))  # fmt: skip
    return make_profile([tiu, gdma], mode=2, strings=NAMES)


def told(session, lane, row, links=None):
    return [(entry.kind, f"{entry.label} {entry.text}".strip()) for entry in entries_of(session, lane, row, links)]


def pane_of(pilot) -> DetailPane:
    return explorer(pilot).query_one("#detail", DetailPane)


# what is told


def test_links_come_first_and_lead_to_their_instructions():
    session = session_of(linked())
    links = dependencies_of(session)
    found = [entry for entry in entries_of(session, 0, 1, links) if entry.kind == "link"]
    assert [(entry.label, entry.text, entry.leads_to, entry.back) for entry in found] == [
        ("Waited for", "load 1 of Core 0 GDMA, 5 ns before", (1, 1), True),
        ("Longest", "mm2 2 of Core 0 TIU, 12 ns", (0, 2), False),
        ("Before", "mm2, 90 ns apart", (0, 0), True),
        ("After", "mm2, 29 ns apart", (0, 2), False),
    ]
    assert ("remark", "1.0x the median 11 ns of 3 peers") in told(session, 0, 1, links)
    assert ("remark", "the longest of them; the shortest took 10 ns") in told(session, 0, 2, links)
    released = [entry.leads_to for entry in entries_of(session, 1, 1, links) if entry.label == "Released"]
    assert released == [(0, 1), (0, 2)]


def test_of_many_links_the_closest_are_listed_and_the_rest_counted():
    session = session_of(linked(MAX_LINKS + 3))
    found = told(session, 1, 1, dependencies_of(session))
    assert sum(text.startswith("Released mm2") for _, text in found) == MAX_LINKS
    assert ("remark", "Released 3 more; ] follows the closest") in found


def test_every_column_has_its_unit_and_meaning(profile):
    session = session_of(profile)
    by_title = {column.title: column for column in COLUMNS}
    for lane_number in (0, 1):
        fields = [entry for entry in entries_of(session, lane_number, 3, None) if entry.kind == "field"]
        columns = [entry for entry in fields if entry.label in by_title]
        assert len(columns) > 15
        for entry in columns:
            column = by_title[entry.label]
            assert entry.help == column.help
            if column.unit and column.kind != "percent" and entry.text != "-":
                assert entry.text.endswith(f" {column.unit}")


def test_registers_are_grouped_and_all_there():
    names = (("res0_n", "opd0_addr", "tsk_typ", "rsvd1"),)
    lane = make_lane("TIU", 0, starts=[0, 20], ends=[10, 30], registers=Registers(np.zeros(2, np.int16), names))
    found = told(session_of(make_profile([lane], mode=2)), 0, 1)
    groups = [text for kind, text in found if text.startswith("registers")]
    assert groups == [f"registers: {group}" for group in ("shape", "addresses", "options", "reserved")]
    assert [text for _, text in found[-7:] if not text.startswith("registers")] == [
        "res0_n 10", "opd0_addr 11", "tsk_typ 12", "rsvd1 13",
    ]  # fmt: skip


def test_commands_that_cannot_be_decoded_are_shown_as_captured():
    lane = make_lane("TIU", 0, starts=[0], ends=[10], registers=Registers(np.full(1, -1, np.int16)))
    found = told(session_of(make_profile([lane], mode=2)), 0, 0)
    assert found[-2:] == [("warning", "registers: not decoded, as captured"), ("field", "0 00 00 00 00 00 00 00 00")]


@pytest.mark.parametrize(("name", "group"), [
    ("opd0_addr_hi", "addresses"), ("res0_w", "shape"), ("reserve", "reserved"), ("cmd_id_dep", "options"),
    ("src_nstride", "shape"),
])  # fmt: skip
def test_registers_go_by_their_names(name, group):
    assert register_group(name) == group


def test_peers_names_the_longest_over_all_lanes():
    lanes = [make_lane("TIU", core, starts=[0, 100], ends=[10, 100 + 7 * (core + 1)], name=np.array([0, 0], np.int32))
             for core in (0, 1, 2)]  # fmt: skip
    session = session_of(make_profile(lanes, strings=NAMES))
    found = peers_of(session, 0, 0)
    assert (found.count, found.median_ns, found.shortest_ns, found.longest_ns, found.longest) == (6, 10, 7, 21, (2, 1))
    assert found.by == ()


def test_peers_are_of_one_direction_and_size():
    lane = make_lane("GDMA", 0, starts=np.arange(6) * 100, ends=np.arange(6) * 100 + [10, 12, 20, 50, 11, 13],
                     name=np.zeros(6, np.int32), bytes=[1024, 1500, 2048, 2047, 1024, 1024],
                     direction=np.array([0, 0, 0, 0, 1, -1], np.int32))  # fmt: skip
    session = session_of(make_profile([lane], strings=NAMES | {"direction": Strings(["DDR->LMEM", "LMEM->DDR"])}))
    found = peers_of(session, 0, 0)
    # 1,024 to 2,047 bytes from DDR: three of the six
    assert (found.count, found.median_ns, found.longest) == (3, 12, (0, 3))
    assert found.by == ("Direction", "Bytes")
    assert peers_of(session, 0, 2).count == peers_of(session, 0, 4).count == peers_of(session, 0, 5).count == 1
    assert any("of 3 peers by direction, bytes" in text for _, text in told(session, 0, 0))


# keys


async def test_links_are_followed_by_keyboard_alone():
    async with opened(linked()) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j g 1 1 0 enter enter tab tab")
        assert screen.focused.id == "detail"
        assert "Enter goes there" in frame(pilot.app)
        await press(pilot, "enter")
        assert screen.state.selection == SelectedItem(0, 1, 1)
        assert screen.state.cursor == 40
        await press(pilot, "j enter")
        assert screen.state.selection == SelectedItem(0, 0, 2)
        await press(pilot, "comma")
        assert screen.state.selection == SelectedItem(0, 0, 1)
        await press(pilot, "full_stop")
        assert screen.state.selection == SelectedItem(0, 0, 2)
        await press(pilot, "j j j j enter")
        assert "has no target" in frame(pilot.app)
        assert screen.state.selection == SelectedItem(0, 0, 2)


async def test_on_a_small_screen_too(profile):
    async with opened(profile, (80, 24)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "e j full_stop i")
        assert screen.focused.id == "detail"
        label = "After"
        pane = pane_of(pilot)
        pane.go_to(next(place for place, entry in enumerate(pane.choices) if entry.label == label))
        row = screen.state.selection.row
        await press(pilot, "enter")
        assert screen.state.selection.row == row + 1


@pytest.mark.parametrize("size", SIZES)
async def test_everything_can_be_scrolled_to(profile, size):
    async with opened(profile, SIZES[size]) as pilot:
        await press(pilot, "j full_stop tab tab" if size == "200x60" else "e j full_stop i")
        pane = pane_of(pilot)
        assert explorer(pilot).focused is pane
        await press(pilot, "G")
        last = pane.choices[-1]
        assert pane.cursor == len(pane.choices) - 1
        assert last.label in frame(pilot.app)
        assert any(entry.text.startswith("registers") for entry in pane._entries if entry.kind == "group")
        seen = set()
        await press(pilot, "g")
        for _ in pane.choices:
            visible = frame(pilot.app)
            seen |= {entry.label for entry in pane.choices if entry.label[:15] in visible}
            await pilot.press("j")
            await pilot.pause()
        assert seen == {entry.label for entry in pane.choices}


async def test_the_cursor_stays_on_its_field_while_one_steps(profile):
    async with opened(profile) as pilot:
        await press(pilot, "j full_stop tab tab")
        pane = pane_of(pilot)
        pane.go_to(next(place for place, entry in enumerate(pane.choices) if entry.label == "Duration"))
        for key in ("full_stop", "full_stop", "comma", "full_stop"):
            await press(pilot, key)
            assert pane.choices[pane.cursor].label == "Duration"


async def test_lines_are_copied(profile):
    async with opened(profile) as pilot:
        await press(pilot, "j full_stop tab tab")
        pane = pane_of(pilot)
        pane.go_to(next(place for place, entry in enumerate(pane.choices) if entry.label == "Duration"))
        await press(pilot, "y")
        lane, row = explorer(pilot).state.selection.lane, explorer(pilot).state.selection.row
        start, end = explorer(pilot).session.span_of(lane, row)
        assert pilot.app.clipboard == f"Duration  {end - start:,} ns"
        await press(pilot, "Y")
        assert f"Duration  {end - start:,} ns" in pilot.app.clipboard.split("\n")
        assert "Copied details" in frame(pilot.app)


async def test_long_and_hostile_names_stay_inside_the_pane():
    long = "kernel_" + "x" * 300
    names = ((long, "a\x1b[31mb"),)
    lane = make_lane("TIU", 0, starts=[0], ends=[10], name=np.array([0], np.int32),
                     registers=Registers(np.zeros(1, np.int16), names))  # fmt: skip
    profile = make_profile([lane], mode=2, strings={"name": Strings([f"[bold]{long}\x07注意"])})
    for size in SIZES.values():
        async with opened(profile, size) as pilot:
            await press(pilot, "j full_stop tab tab G" if size[0] == 200 else "e j full_stop i G")
            text = frame(pilot.app)
            assert "\x1b" not in text
            assert "\x07" not in text
            assert {cell_len(line) for line in text.split("\n")} == {size[0]}
            pane = pane_of(pilot)
            assert pane.size.width > 20
            if pane.size.width < HELP_BESIDE:
                assert max(strip.cell_length for strip in pane.lines) <= pane.size.width


@AS_RECORDED
async def test_frames_of_the_detail_are_as_recorded(size, ascii_only):
    profile = small_profile(2, event_count=600)
    async with opened(profile, SIZES[size], ascii_only=ascii_only) as pilot:
        await press(pilot, "j full_stop full_stop" if size == "200x60" else "e j full_stop full_stop")
        await press(pilot, "i" if size != "200x60" else "tab tab Z")
        await press(pilot, "j")
        lines = frame(pilot.app).split("\n")
    compared("detail", size, ascii_only, lines, width=SIZES[size][0])


async def test_an_operator_leads_to_what_its_calls_started_and_that_back_to_the_call():
    profile = open_profile(Path(__file__).parents[2] / "samples" / "torch_cuda_synthetic")
    async with opened(profile, (120, 60)) as pilot:
        screen = explorer(pilot)

        def place() -> tuple[str, str]:
            lane, row = screen.state.selection.lane, screen.state.selection.row
            return profile.lanes[lane].kind, text_of(profile, profile.lanes[lane], "name", row)

        await press(pilot, " ".join(("slash", *"aten", "colon colon underscore", *"softmax", "enter")))
        operator = screen.state.selection
        assert place() == ("thread", "aten::_softmax")
        await press(pilot, "right_square_bracket")
        assert place()[0] == "stream"
        assert "softmax_warp_forward" in place()[1]
        await press(pilot, "left_square_bracket")
        assert place() == ("thread", "cudaLaunchKernel")
        links, lane = dependencies_of(screen.session), profile.lanes[operator.lane]
        # what holds several operators started as many kernels
        parent = int(lane["parent"][operator.row])
        for row, wanted in (
            (operator.row, r"softmax_warp_.* of GPU 0 stream 7$"),
            (parent, r"the first of \d+$"),
        ):
            (text,) = [text for _, text in told(screen.session, operator.lane, row, links) if text[:7] == "Started"]
            assert re.search(wanted, text)


async def test_of_events_that_overlap_no_negative_time_is_told():
    async with opened(open_profile(SAMPLES / "ascend_synthetic"), (200, 50)) as pilot:
        screen = explorer(pilot)
        links = dependencies_of(screen.session)
        overlapping = int(np.flatnonzero(links.slack_ns < 0)[0])
        place = int(links.waiter_lane[overlapping]), int(links.waiter_row[overlapping])
        assert " together" in str(told(screen.session, *place, links))
        screen.store.change(select_event(screen.session, screen.state, *place))
        await press(pilot, "i")
        assert " together with " in frame(pilot.app)
        assert not re.search(r" -[0-9.]+ [num]s", frame(pilot.app))
        await press(pilot, "left_square_bracket")
        assert " together" in frame(pilot.app).splitlines()[-1]


@pytest.mark.parametrize(
    ("sample", "launchers"), [("ascend_synthetic", r"aten::|AscendCL@"), ("torch_cuda_synthetic", r"cuda\w+")]
)
async def test_what_launched_an_event_is_told_as_what_launched_it(sample, launchers):
    """The event did not wait for it: it would not exist without it."""
    async with opened(open_profile(SAMPLES / sample), (200, 50)) as pilot:
        screen = explorer(pilot)
        session, links = screen.session, dependencies_of(screen.session)
        lane = next(number for number, lane in enumerate(session.profile.lanes) if lane.kind == "stream")
        launched = [entry for entry in entries_of(session, lane, 0, links) if entry.label == "Launched by"]
        assert launched
        assert all(re.match(launchers, entry.text) for entry in launched)
        assert "Waited for" not in str(told(session, lane, 0, links))
        caller, row = launched[0].leads_to
        assert ("link", (lane, 0)) in [
            (entry.kind, entry.leads_to)
            for entry in entries_of(session, caller, row, links)
            if entry.label == "Launched"
        ]
        screen.store.change(select_event(session, screen.state, lane, 0))
        await press(pilot, "left_square_bracket")
        assert " was launched by " in screen.prompt.message
        await press(pilot, "right_square_bracket")
        assert " was launched by " in screen.prompt.message


def test_a_lane_that_describes_others_is_not_what_worked_meanwhile():
    """Its work is that of the lanes that it describes, which are named."""
    lanes = [make_lane(engine, 0, starts=[0], ends=[100], name=np.array([code])) for code, engine in
             enumerate(("TIU", "GDMA"))]  # fmt: skip
    names = {"name": Strings(["mm2", "load"])}
    session = session_of(make_profile(lanes, strings=names))
    assert ("remark", "Meanwhile GDMA worked 100% of the time, 100% on load") in told(session, 0, 0)
    session = session_of(make_profile([lanes[0], replace(lanes[1], counted=False)], strings=names))
    assert ("remark", "Meanwhile no other engine of its core worked") in told(session, 0, 0)
    # of the kernels of a device the lanes of the exporter's analysis do not work
    session = session_of(open_profile(SAMPLES / "ascend_synthetic"))
    lane = next(number for number, lane in enumerate(session.profile.lanes) if lane.kind == "stream")
    assert "Meanwhile Computing" not in str(told(session, lane, 0))


def test_what_likely_released_work_is_what_ended_last_in_the_gap_before():
    lanes = [
        make_lane("TIU", 0, starts=[0, 50, 95], ends=[20, 80, 99], role=[0, 0, 1]),
        make_lane("GDMA", 0, starts=[5, 10], ends=[48, 60]),
        make_lane("SDMA", 0, starts=[30, 60], ends=[49, 79]),
        make_lane("GDMA", 1, starts=[0], ends=[50]),
    ]
    session = session_of(make_profile(lanes))
    found = likely_release(session, 0, 1)
    assert (found.releaser, found.slack_ns, found.guessed) == ((2, 0), 1, True)
    # nothing ended before the first work, and of a wait nothing is guessed
    assert likely_release(session, 0, 0) is None
    assert likely_release(session, 0, 2) is None
    # its own lane worked without a gap
    assert likely_release(session, 1, 1) is None


async def test_what_likely_released_work_is_followed_and_called_likely():
    lanes = [make_lane("TIU", 0, starts=[0, 50], ends=[20, 80]), make_lane("GDMA", 0, starts=[5], ends=[48])]
    async with opened(make_profile(lanes), (160, 40)) as pilot:
        screen = explorer(pilot)
        await press(pilot, "j enter full_stop full_stop")
        assert (screen.state.selection.lane, screen.state.selection.row) == (0, 1)
        assert "~" in screen.panes.detail.text_of_all()
        await press(pilot, "left_square_bracket")
        assert (screen.state.selection.lane, screen.state.selection.row) == (1, 0)
        assert "ended last before" in frame(pilot.app)


def test_what_a_port_ran_is_told_with_the_core_that_submitted_it():
    profile = open_profile(str(Path(__file__).parents[2] / "samples" / "aksv_cdma"))
    number = next(number for number, lane in enumerate(profile.lanes) if lane.kind == "CDMA")
    assert (int(profile.lanes[number]["core"][0]), profile.title_of(profile.lanes[number])) == (0, "CDMA port 0")
    assert told(session_of(profile), number, 0)[1] == (
        "text", "CDMA port 0 submitted by core 0, wait, 8.643 us at 281.754 us")  # fmt: skip
