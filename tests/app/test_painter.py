from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import big_profile, make_lane, make_profile, session_of, small_profile
from rich.cells import cell_len

from tpuprof_tui.analysis.index.lane_index import build_index
from tpuprof_tui.analysis.selecting.time_scale import edges_of
from tpuprof_tui.app.drawing.colouring import OTHER, category_of
from tpuprof_tui.app.drawing.glyphs import ASCII, UNICODE
from tpuprof_tui.app.drawing.painter import levels_of, merged, paint_lane, paint_unit
from tpuprof_tui.app.drawing.theme import DARK, PLAIN
from tpuprof_tui.model import Lane, Role, Strings
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

PALETTES = [DARK, PLAIN]


def drawn(lane, start, end, cells, glyphs=UNICODE, palette=None, strings=None):
    profile = make_profile([lane], strings=strings)
    return paint_lane(profile, build_index(lane), edges_of(start, end, cells), palette or DARK, glyphs)


def test_occupancy_is_the_height_of_a_cell():
    lane = make_lane("TIU", 0, starts=[0, 10, 20, 35], ends=[10, 15, 21, 35])
    assert "".join(drawn(lane, 0, 40, 4).chars) == "█▄▁▁"
    assert "".join(drawn(lane, 0, 40, 4, ASCII).chars) == "8411"


def test_instructions_of_no_length_show_as_what_they_are():
    lane = make_lane("TIU", 0, starts=[0, 10, 20], ends=[0, 10, 20], roles=[Role.WORK, Role.WAIT, Role.SYNC])
    assert "".join(drawn(lane, 0, 30, 3).chars) == "▁╌┊"


def test_lone_instructions_are_letters_of_their_family_in_ascii():
    lane = make_lane("TIU", 0, starts=[0, 20], ends=[10, 30], type=np.array([0, 1], np.int32))
    strings = {"type": Strings(["mm/mm2", "arith/SEG"])}
    assert "".join(drawn(lane, 0, 40, 4, ASCII, strings=strings).chars) == "M A "


def test_waits_and_syncs_have_glyphs_of_their_own():
    lane = make_lane("TIU", 0, starts=[0, 10, 20], ends=[10, 20, 30], roles=[Role.WORK, Role.WAIT, Role.SYNC])
    assert "".join(drawn(lane, 0, 40, 4).chars) == "█╌┊ "
    assert "".join(drawn(lane, 0, 40, 4, ASCII).chars) == "8~: "


def test_work_is_never_hidden_by_waiting():
    lane = make_lane("TIU", 0, starts=[0, 1], ends=[1, 1000], roles=[Role.WORK, Role.WAIT])
    assert drawn(lane, 0, 1000, 1).chars == ["▁"]


def test_wide_instructions_carry_their_names():
    lane = make_lane("TIU", 0, starts=[0, 100], ends=[100, 200], name=np.array([0, 1], np.int32),
                     roles=[Role.WORK, Role.WAIT])  # fmt: skip
    strings = {"name": Strings(["MM2_NN", "wait_msg"])}
    text = "".join(drawn(lane, 0, 200, 40, strings=strings).chars)
    assert text[:20] == "▏MM2_NN".ljust(20)
    assert text[20:] == "╌╌ wait_msg ".ljust(20, "╌")


def test_names_of_waits_are_cut_where_there_is_some_room():
    lane = make_lane("TIU", 0, starts=[0], ends=[100], name=np.array([0], np.int32), roles=[Role.WAIT])
    strings = {"name": Strings(["wait_for_a_message"])}
    assert "".join(drawn(lane, 0, 100, 20, strings=strings).chars) == "╌╌ wait_for_a_me… ╌╌"
    assert "".join(drawn(lane, 0, 100, 9, strings=strings).chars) == "╌" * 9


def test_of_instructions_that_run_together_the_first_is_named_and_the_others_are_counted():
    lane = make_lane("SDMA", 0, starts=[0, 0, 100], ends=[200, 100, 300], name=np.array([0, 1, 1], np.int32))
    strings = {"name": Strings(["load", "store"])}
    text = "".join(drawn(lane, 0, 300, 30, strings=strings).chars)
    assert text == "▏load +1  ▏load +1  ▏store    " or text == "▏load +1            ▏store    "


@pytest.mark.parametrize("width", range(4, 30))
def test_wide_characters_keep_the_lane_as_wide_as_its_cells(width):
    lane = make_lane("TIU", 0, starts=[0], ends=[100 * width], name=np.array([0], np.int32))
    painted = drawn(lane, 0, 100 * width, width, strings={"name": Strings(["注意力🎉kernel"])})
    assert len(painted.chars) == len(painted.styles) == width
    assert cell_len("".join(painted.chars)) == width
    assert sum(cell_len(segment.text) for segment in merged(painted.chars, painted.styles)) == width


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_levels_show_anything_and_are_full_only_when_nearly_full(part, extra):
    span = part + extra
    level = int(levels_of(np.array([part]), np.array([span]))[0])
    assert (level == 0) == (part == 0)
    assert abs(level - part * 8 / span) <= 1
    assert level < 8 or part / span >= 15 / 16


@pytest.mark.parametrize("palette", PALETTES, ids=["colour", "plain"])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@given(st.integers(1, 200), st.integers(0, 5), st.floats(0, 1), st.floats(0.0001, 1))
@settings(max_examples=25)
def test_every_lane_fills_its_cells_at_any_zoom(palette, glyphs, cells, lane, where, part):
    profile = PROFILE
    span = max(int((profile.end_ns - profile.start_ns) * part), cells)
    start = profile.start_ns + int((profile.end_ns - profile.start_ns) * where)
    index = INDEXES[lane % len(INDEXES)]
    painted = paint_lane(profile, index, edges_of(start, start + span, cells), palette, glyphs)
    assert sum(cell_len(segment.text) for segment in merged(painted.chars, painted.styles)) == cells
    assert all(segment.style is not None for segment in merged(painted.chars, painted.styles))
    busy = index.work.between(start, start + span)
    assert painted.utilisation == pytest.approx(busy / span)
    if glyphs is ASCII:
        assert "".join(painted.chars).replace("…", "").isascii(), "the filter replaces what cuts a name"


PROFILE = small_profile(1, event_count=400)
INDEXES = [build_index(lane) for lane in PROFILE.lanes]


def test_a_core_tells_compute_from_exposed_transfer_without_colour():
    lanes = [make_lane("TIU", 0, starts=[0], ends=[10]), make_lane("GDMA", 0, starts=[5], ends=[20])]
    session = session_of(make_profile(lanes))
    index = session.indexes.by_unit[0]
    assert "".join(paint_unit(index, edges_of(0, 30, 3), DARK, UNICODE).chars) == "█▓ "
    assert "".join(paint_unit(index, edges_of(0, 30, 3), DARK, ASCII).chars) == "8T "


def test_an_empty_lane_is_empty():
    assert set(drawn(make_lane("SDMA", 0, starts=[], ends=[]), 0, 100, 10).chars) == {" "}


def test_types_of_real_captures_have_families():
    names = {
        "mm/mm2": "matmul", "sCONV": "matmul", "arith/SEG": "arithmetic", "dw/pool": "pool", "sSFU": "special",
        "RQ/DQ": "quantise", "DMA_tensor": "tensor move", "receive": "receive", "DMA_gather": "gather",
    }  # fmt: skip
    assert {name: category_of(VOCABULARY, name).name for name in names} == names


def test_a_frame_does_not_cost_by_the_number_of_instructions(monkeypatch):
    """Cells ask only for edges: the number of searches does not depend on the number of instructions."""
    calls = []
    for count in (1_000, 100_000):
        profile = big_profile(count, cores=1, engines=("TIU",))
        index, end = build_index(profile.lanes[0]), profile.end_ns
        taken = []

        def take(self, key, rows, lane_take=Lane.take, taken=taken):
            taken.append(len(lane_take(self, key, rows)))
            return lane_take(self, key, rows)

        with monkeypatch.context() as patched:
            patched.setattr(Lane, "take", take)
            paint_lane(profile, index, edges_of(0, end, 100), DARK, UNICODE)
        calls.append(sum(taken))
    assert max(calls) <= 200


def test_no_two_categories_of_a_source_have_one_letter():
    for vocabulary in vocabularies():
        letters = [each.letter for each in (*vocabulary.categories, OTHER)]
        assert len(set(letters)) == len(letters), vocabulary.source
