"""Steps of a profile: listed, numbered by a column, or found; the step of each event; figures of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from profiles import Texts, big_profile, make_lane, make_profile, session_of, small_profile

from tpuprof_tui.analysis.index.unit_index import build_indexes
from tpuprof_tui.analysis.selecting.filter_masks import apply_filter
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.steps.step_detection import repeated_sequences, steps_of, with_steps
from tpuprof_tui.analysis.steps.step_figures import step_table
from tpuprof_tui.analysis.totals.figures import unit_figures
from tpuprof_tui.model import INT_MISSING, Group, Groups, Lane, Profile, Role, Scopes, Steps, Strings
from tpuprof_tui.sources.catalog import open_profile

SAMPLES = Path(__file__).parents[2] / "samples"
NONE = INT_MISSING


def lane_of(kind: str, core: int, rows: list[tuple[int, int]], **columns) -> Lane:
    starts, ends = zip(*rows, strict=True)
    return make_lane(kind, core, starts=starts, ends=ends, **columns)


def scoped(launches: str, *, cores: int = 1, batch: list[int] | None = None, gap: int = 5) -> Profile:
    """Launches by letters, each of two TIU events of 10 ns and a transfer, on every core a little later."""
    texts = Texts()
    kernel = texts.codes("kernel", list(launches) * cores)
    lanes = []
    for core in range(cores):
        scope = np.arange(len(launches)) + core * len(launches)
        start = np.arange(len(launches)) * (20 + gap) + core
        numbers = {} if batch is None else {"batch": np.array(batch)}
        tiu = {key: np.repeat(values, 2) for key, values in {"scope": scope, **numbers}.items()}
        lanes.append(make_lane("TIU", core, starts=np.stack((start, start + 10), 1).ravel(),
                               ends=np.stack((start + 10, start + 20), 1).ravel(), **tiu))  # fmt: skip
        lanes.append(make_lane("GDMA", core, starts=start + 5, ends=start + 22, scope=scope, **numbers))
    scopes = Scopes(kernel, np.repeat(np.arange(cores, dtype=np.int32), len(launches)))
    return make_profile(lanes, strings=texts.build(), cores=range(cores), scopes=scopes)


# steps that a column numbers


def test_batches_are_steps():
    found = steps_of(Session(scoped("abcabcabc", batch=[3, 3, 3, 4, 4, 4, 7, 7, 7])))
    assert not found.guessed
    assert found.word.many == "batches"
    assert found.steps.number.tolist() == [3, 4, 7]
    assert [found.label(place) for place in range(3)] == ["batch 3", "batch 4", "batch 7"]
    assert found.steps.start.tolist() == [0, 75, 150]
    assert found.steps.end.tolist() == [72, 147, 222]
    assert found.steps.group.tolist() == [-1, -1, -1]
    assert found.usual.all()


def test_an_event_without_a_batch_belongs_to_that_of_its_launch_else_to_what_runs():
    lanes = [
        lane_of("TIU", 0, [(0, 10), (10, 20), (100, 120)], scope=[0, 0, 1], batch=[0, NONE, 1]),
        # the second of the first launch ran late; no launch is known of the last three
        lane_of("GDMA", 0, [(2, 8), (110, 118), (5, 9), (60, 70), (119, 130)], scope=[0, 0, NONE, NONE, NONE],
                batch=[NONE] * 5),
    ]  # fmt: skip
    profile = make_profile(lanes, scopes=Scopes(np.zeros(2, np.int32), np.zeros(2, np.int32)))
    found = steps_of(Session(profile))
    tiu, gdma = profile.lanes
    assert found.numbers(tiu).tolist() == [0, 0, 1]
    assert dict(zip(gdma["start"].tolist(), found.numbers(gdma).tolist(), strict=True)) == {
        2: 0, 110: 0, 5: 0, 60: NONE, 119: 1,
    }  # fmt: skip


def test_batches_that_differ_and_one_with_other_launches():
    told = steps_of(Session(scoped("abcabdabc", batch=[0, 0, 0, 1, 1, 1, 2, 2, 2])))
    assert told.usual.tolist() == [True, False, True]
    alone = steps_of(Session(scoped("abcdef", batch=[0, 0, 0, 1, 1, 1])))
    assert alone.usual.all(), "no two are equal: none is unusual"


def test_layers_within_batches():
    profile = scoped("exyxyxyhexyxyxyh", batch=[0] * 8 + [1] * 8)
    steps, layers = repeated_sequences(profile, steps_of(Session(profile)))
    assert (steps.depth, len(steps), steps.launches, steps.first, steps.last) == (0, 2, 8, "e", "h")
    assert (layers.depth, len(layers), layers.launches, layers.first, layers.last) == (1, 6, 2, "x", "y")
    assert (layers.start.tolist()[:2], layers.end.tolist()[:2]) == ([25, 75], [72, 122])


# steps that repeat


def test_where_no_batch_is_known_repetitions_are_steps():
    found = steps_of(Session(scoped("wexyxyhexyxyhexyxyh", cores=2)))
    assert found.guessed
    assert found.word.one == "step"
    assert found.steps.number.tolist() == [0, 1, 2]
    # both cores: the second begins 1 ns later
    assert found.steps.start.tolist() == [25, 175, 325]
    assert found.steps.end.tolist() == [25 * 7 - 2, 25 * 13 - 2, 25 * 19 - 2]


def test_events_belong_to_the_repetition_of_their_launch():
    profile = scoped("wexyxyhexyxyhexyxyh", cores=2)
    found = steps_of(Session(profile))
    for lane in profile.lanes:
        wanted = [NONE if scope % 19 == 0 else (scope % 19 - 1) // 6 for scope in lane["scope"].tolist()]
        assert found.numbers(lane).tolist() == wanted


def test_a_core_that_launches_something_else_follows_by_time():
    profile, other = scoped("exyhexyhexyh"), scoped("pqrstu", gap=30)
    shifted = replace(other.lanes[0], group=1).with_column("scope", np.full(12, NONE))
    profile = make_profile([*profile.lanes, shifted], strings=profile.strings, scopes=profile.scopes, cores=[0, 1])
    found = steps_of(Session(profile))
    assert found.steps.start.tolist() == [0, 100, 200]
    assert found.numbers(profile.lanes[2]).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_without_launches_the_names_of_work_repeat():
    texts = Texts()
    names = texts.codes("name", list("mabcabcabc"))
    start = np.arange(10) * 10
    roles = np.zeros(10, np.int8)
    lanes = [make_lane("TIU", 0, starts=start, ends=start + 8, roles=roles, name=names),
             make_lane("GDMA", 0, starts=[35, 69], ends=[36, 70], roles=[Role.WAIT, Role.WORK])]  # fmt: skip
    profile = make_profile(lanes, strings=texts.build())
    found = steps_of(Session(profile))
    assert found.guessed
    assert (found.steps.start.tolist(), found.steps.end.tolist()) == ([10, 40, 70], [38, 68, 98])
    assert found.numbers(profile.lanes[0]).tolist() == [NONE, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert found.numbers(profile.lanes[1]).tolist() == [0, NONE]


@pytest.mark.parametrize("sample", ["aks_decode_mode1", "aksv_cdma"])
def test_repetition_finds_the_batches_of_a_capture(sample):
    profile = open_profile(str(SAMPLES / sample))
    told = steps_of(Session(profile))
    silent = replace(profile, vocabulary=replace(profile.vocabulary, step_column=""))
    found = steps_of(Session(silent))
    assert (told.guessed, found.guessed) == (False, True)
    assert len(told) == len(found) == 2
    for lane in profile.lanes:
        known = lane["scope"] >= 0
        assert found.numbers(lane)[known].tolist() == told.numbers(lane)[known].tolist()


# steps that the source lists


def listed(profile: Profile, rows: list[tuple[int, int, int, int]]) -> Profile:
    group, number, start, end = (np.array(each, np.int64) for each in zip(*rows, strict=True))
    labels = Strings([f"Step#{each}" for each in number.tolist()])
    codes = np.arange(len(rows), dtype=np.int32)
    return replace(profile, steps=Steps(labels, codes, group.astype(np.int32), start, end, number))


def test_listed_steps_go_by_their_numbers_and_groups():
    groups = Groups((Group("Rank 0", "rank"), Group("GPU 0", "core", 0, 0, True), Group("Host", "host", 0),
                     Group("Rank 1", "rank"), Group("GPU 0", "core", 3, 1, True)))  # fmt: skip
    first = replace(lane_of("TIU", 0, [(0, 10), (10, 20), (30, 40)], step=[7, 8, NONE]), group=1)
    second = replace(lane_of("TIU", 0, [(0, 10), (12, 20)], step=[8, 7]), group=4)
    untold = replace(lane_of("GDMA", 0, [(5, 6), (15, 16), (50, 51)]), group=4)
    profile = replace(make_profile([]), groups=groups, lanes=(first, second, untold))
    # those of rank 0 are its host's
    profile = listed(profile, [(2, 7, 0, 10), (2, 8, 10, 45), (3, 7, 11, 20), (3, 8, 0, 10)])
    found = steps_of(Session(profile))
    assert found.indexes(first).tolist() == [0, 1, -1]
    assert found.indexes(second).tolist() == [3, 2]
    assert found.numbers(untold).tolist() == [8, 7, NONE]
    assert found.numbered(7).tolist() == [0, 2]


def test_steps_count_from_zero_in_each_group_where_no_number_is_given():
    group, times = np.array([5, 1, 5, 1], np.int32), np.zeros(4, np.int64)
    steps = Steps(Strings(["a"]), np.zeros(4, np.int32), group, times, times)
    assert steps.number.tolist() == [0, 0, 1, 1]


def test_of_steps_that_overlap_the_last_to_start_counts_and_then_the_longest():
    profile = make_profile([lane_of("TIU", 0, [(5, 6), (25, 26), (35, 36), (60, 61), (120, 121)])])
    found = steps_of(Session(listed(profile, [(-1, 0, 0, 100), (-1, 1, 20, 30), (-1, 2, 33, 40)])))
    assert found.numbers(profile.lanes[0]).tolist() == [0, 1, 2, 0, NONE]


# no steps


@pytest.mark.parametrize("profile", [
    make_profile([]), small_profile(0), scoped("abcdefgh"), replace(scoped("ababab"), timed=False)
])  # fmt: skip
def test_no_steps(profile):
    found = steps_of(Session(with_steps(profile)))
    assert len(found) == 0
    assert not found.guessed
    for lane in profile.lanes:
        assert (found.indexes(lane) == -1).all()
        assert (found.numbers(lane) == NONE).all()
    assert len(step_table(profile, found)) == 0


# columns and sessions


def test_the_column_is_computed_when_it_is_asked_for():
    profile = with_steps(scoped("exyhexyhexyh"))
    assert with_steps(profile) is profile
    found = steps_of(Session(profile))
    assert steps_of(Session(profile)) is found, "once for all lanes"
    for lane in profile.lanes:
        assert lane["step"].tolist() == found.numbers(lane).tolist()
        assert found.indexes(lane).tolist() == lane["step"].tolist(), "numbers are places here"
        assert lane.take("step", np.array([3, 1])).tolist() == lane["step"][[3, 1]].tolist()


def test_a_source_s_own_column_stays():
    lane = lane_of("TIU", 0, [(0, 10)], step=[5])
    profile = with_steps(listed(make_profile([lane]), [(-1, 5, 0, 10)]))
    assert profile.lanes[0]["step"].tolist() == [5]


def test_what_passes_a_filter_keeps_its_steps():
    session = session_of(scoped("exyhexyhexyh"))
    some = apply_filter(session, "dur>12").session
    assert some.profile.lanes[0]["step"].tolist() == []
    assert some.profile.lanes[1]["step"].tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert apply_filter(session, "step=1").count == 12
    assert apply_filter(session, "step>=1 step<2").count == 12


# figures


def judged(profile: Profile, found, place: int) -> dict[str, int]:
    """The events of one step alone, as a profile of their own."""
    lanes = [lane.select_rows(np.flatnonzero(found.indexes(lane) == place)) for lane in profile.lanes]
    part = replace(profile, lanes=tuple(lanes))
    device = [lane for lane in lanes if not lane.on_host and len(lane)]
    start = min((int(lane["start"].min()) for lane in device), default=0)
    end = max((int(lane["end"].max()) for lane in device), default=0)
    units = [unit_figures(Session(part), unit, start, end) for unit in part.units]
    keys = ("busy", "compute", "transfer", "communication", "exposed")
    return {"events": sum(map(len, device)), **{key: sum(getattr(unit, key) for unit in units) for key in keys}}


def check_table(profile: Profile) -> None:
    found = steps_of(Session(profile))
    table, indexed = step_table(profile, found), step_table(profile, found, indexes=build_indexes(profile))
    for key in ("events", "busy", "compute", "transfer", "communication", "exposed"):
        assert getattr(indexed, key).tolist() == getattr(table, key).tolist(), key
    assert sorted(table.index.tolist()) == list(range(len(found)))
    for row, place in enumerate(table.index.tolist()):
        told = {key: int(getattr(table, key)[row]) for key in judged(profile, found, place)}
        assert told == judged(profile, found, place)


@pytest.mark.parametrize("profile", [
    scoped("wexyxyhexyxyhexyxyh", cores=3), big_profile(4000, cores=2, ports=2), big_profile(3000, cores=1),
    open_profile(str(SAMPLES / "aksv_cdma")), open_profile(str(SAMPLES / "aks_host_trace")),
])  # fmt: skip
def test_figures_are_those_of_the_events_of_each_step(profile):
    assert len(steps_of(Session(profile)))
    check_table(profile)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_figures_of_any_steps(data):
    times = st.tuples(st.integers(0, 60), st.integers(0, 20))
    lanes = []
    for kind, core in (("TIU", 0), ("GDMA", 0), ("SDMA", 1), ("TIU", 1)):
        rows = sorted(data.draw(st.lists(times, max_size=12)))
        columns = {"batch": [data.draw(st.sampled_from([0, 1, 2, NONE])) for _ in rows],
                   "roles": [data.draw(st.integers(0, 2)) for _ in rows]}  # fmt: skip
        starts = np.array([start for start, _ in rows], np.int64)
        lengths = np.array([length for _, length in rows], np.int64)
        columns = {key: np.array(values, np.int64) for key, values in columns.items()}
        lanes.append(make_lane(kind, core, starts=starts, ends=starts + lengths, **columns))
    check_table(make_profile(lanes, cores=[0, 1]))


def test_lengths_gaps_and_what_is_out_of_the_ordinary():
    rows = [(0, 900), (910, 1010), (1010, 1110), (1100, 1200), (1210, 1310), (1320, 1420), (1500, 1750), (1760, 1860)]
    lane = lane_of("TIU", 0, rows, batch=list(range(8)))
    table = step_table(make_profile([lane]), steps_of(Session(make_profile([lane]))))
    assert table.length.tolist() == [900, 100, 100, 100, 100, 100, 250, 100]
    assert table.gap.tolist() == [NONE, 10, 0, -10, 10, 10, 80, 10]
    assert int(table.length.sum() + table.gap[1:].sum()) == 1860, "they add up to the whole"
    assert table.difference.tolist() == [800, 0, 0, 0, 0, 0, 150, 0]
    assert np.flatnonzero(table.warm_up).tolist() == [0]
    assert np.flatnonzero(table.outlier).tolist() == [6]
    assert table.steadiness[-1].median == 100


def test_figures_of_a_filter():
    session = session_of(scoped("exyhexyhexyh"))
    table = step_table(apply_filter(session, "step!=1 dur>12").session.profile, steps_of(session))
    assert table.events.tolist() == [4, 0, 4]
    assert table.compute.tolist() == [0, 0, 0]
    assert table.transfer.tolist() == [68, 0, 68]
    assert table.length.tolist() == [97, 97, 97], "steps are as long as ever"
