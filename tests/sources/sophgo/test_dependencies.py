"""Dependencies between commands: all that the registers tell, none that they do not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from capture_writer.capture import write_capture
from capture_writer.kinds import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import make_lane, make_profile

from tpuprof_tui.analysis.links.dependencies import find_dependencies
from tpuprof_tui.model import Role
from tpuprof_tui.sources.catalog import open_profile
from tpuprof_tui.sources.sophgo.read.dependencies import LinkKind, inferred_barriers

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
LINKED = ("dependencies", "dependencies_des", "dependencies_lost", "dependencies_bmodel", "dependencies_sdma",
          "aksv_dependencies")  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Profile and truth of a kind of capture, written once."""
    place = tmp_path_factory.mktemp("linked")

    @cache
    def both(kind):
        path = write_capture(KINDS[kind], place).path
        return open_profile(path), json.loads((place / f"{kind}.truth.json").read_text(encoding="utf-8"))

    return both


def truth_links(truth):
    """Pairs of (engine, core, start) that the writer knows."""
    zero, tracks = truth["meta"]["reference_zero_ns"], truth["tracks"]

    def event(track, record):
        columns = tracks[track]["columns"]
        return tracks[track]["engine"], columns["core"][record], round(columns["start_ns"][record] - zero)

    return {(event(*link[:2]), event(*link[2:])) for link in truth["links"]}


def event_of(profile, lane, row):
    return profile.lanes[lane].kind, profile.unit_number(profile.lanes[lane]), int(profile.lanes[lane]["start"][row])


def found_links(profile, links):
    """Pairs that the registers tell."""
    return {
        (event_of(profile, links.waiter_lane[n], links.waiter_row[n]),
         event_of(profile, links.releaser_lane[n], links.releaser_row[n]))
        for n in np.flatnonzero(links.links.kind != LinkKind.TOGETHER)
    }  # fmt: skip


@pytest.mark.parametrize("kind", LINKED)
def test_all_links_of_a_capture_are_found_and_none_is_wrong(written, kind):
    profile, truth = written(kind)
    links = find_dependencies(profile)
    expected = truth_links(truth)
    assert len(expected) > 500
    assert found_links(profile, links) == expected
    told = links.links.kind != LinkKind.TOGETHER
    assert told.sum() == len(expected)
    # where a send or wait was lost, the others of its barrier still end together
    assert told.all() or kind == "dependencies_lost"
    assert set(links.links.kind[told].tolist()) == {LinkKind.COMMAND, LinkKind.MESSAGE}
    assert links.slack_ns.min() >= 0


def test_sdma_waits_and_is_waited_for_by_message_alone(written):
    profile, _ = written("dependencies_sdma")
    links = find_dependencies(profile)
    engines = np.array([lane.kind for lane in profile.lanes])
    waiter, releaser = engines[links.waiter_lane], engines[links.releaser_lane]
    for pair in (("SDMA", "GDMA"), ("TIU", "SDMA"), ("SDMA", "TIU"), ("GDMA", "SDMA")):
        mine = (waiter == pair[0]) & (releaser == pair[1])
        assert mine.sum() > 20, pair
        assert set(links.links.kind[mine].tolist()) == {LinkKind.MESSAGE}


def test_links_are_found_from_both_ends(written):
    profile, _ = written("dependencies")
    links = find_dependencies(profile)
    for place in range(0, len(links), 97):
        waiter = int(links.waiter_lane[place]), int(links.waiter_row[place])
        releaser = int(links.releaser_lane[place]), int(links.releaser_row[place])
        mine = [link for link in links.waits_for(*waiter) if link.releaser == releaser]
        assert len(mine) == 1
        assert mine[0].slack_ns == links.slack_ns[place]
        assert mine[0] in links.releases(*releaser)
    waiting = set(zip(links.waiter_lane.tolist(), links.waiter_row.tolist(), strict=True))
    free = next(row for row in range(len(profile.lanes[0])) if (0, row) not in waiting)
    assert links.waits_for(0, free) == ()


def test_barriers_are_guessed_from_times_as_messages_tell_them():
    """What the times alone say is what the registers of the same capture say."""
    profile = open_profile(SAMPLES / "aks_decode_mode2")
    links = find_dependencies(profile)
    waiters, releasers = (
        list(zip(lane.tolist(), row.tolist(), strict=True))
        for lane, row in ((links.waiter_lane, links.waiter_row), (links.releaser_lane, links.releaser_row))
    )
    told = dict(zip(waiters, releasers, strict=True))
    waits = sum(int((lane["role"] == Role.WAIT).sum()) for lane in profile.lanes)
    assert len(told) == waits == 108
    assert set(links.links.kind.tolist()) == {LinkKind.MESSAGE}
    lane, row, by_lane, by_row = (each.tolist() for each in inferred_barriers(profile.lanes, profile.groups, []))
    # 12 more are of one core alone
    assert len(row) == 96
    for guessed in zip(lane, row, by_lane, by_row, strict=True):
        assert told[guessed[:2]] == guessed[2:]


@pytest.mark.parametrize(("kind", "least"), [("decode_mode0", 0.9), ("decode_mode1", 0.9)])
def test_without_registers_barriers_are_guessed(written, kind, least):
    profile = written(kind)[0]
    links = find_dependencies(profile)
    assert set(links.links.kind.tolist()) == set(links.links.guessed) == {LinkKind.TOGETHER}
    assert len(links) >= least * sum(int((lane["role"] == Role.WAIT).sum()) for lane in profile.lanes)


def test_waits_of_one_core_or_without_sends_are_no_barrier():
    def met(*lanes):
        return linked(*lanes)

    def core(number, came, *, end=100, engine="TIU", send=True):
        roles = np.array([SEND if send else 0, WAIT])
        return make_lane(engine, number, starts=np.array([came - 5, came]), ends=np.array([came, end]), roles=roles)

    # core 1 came last: both are let go by its send
    assert met(core(0, 20), core(1, 90)) == [(1, 0, 10), (1, 0, 10)]
    # GDMA is let go some cycles later; the last of all is its send
    both = met(core(0, 20), core(1, 90), core(0, 30, end=109, engine="GDMA"), core(1, 95, end=109, engine="GDMA"))
    assert sorted(both) == [(1, 0, 5), (1, 0, 5), (1, 0, 14), (1, 0, 14)]
    assert met(core(0, 20)) == []
    assert met(core(0, 20, end=90), core(1, 90)) == []
    assert met(core(0, 20, send=False), core(1, 90)) == []
    # far from any send
    assert met(core(0, 20, end=3000), core(1, 90, end=3000)) == []


# -- the rule, case by case ---------------------------------------------------


def lane(engine, rows, *, core=0, **columns):
    """Rows are (start, end, command id, depends on[, scope])."""
    table = np.array([(*row, 0)[:5] for row in rows], np.int64)
    return make_lane(engine, core, starts=table[:, 0], ends=table[:, 1], command_id=table[:, 2],
                     depends_on=table[:, 3], scope=table[:, 4], **columns)  # fmt: skip


def linked(*lanes):
    profile = make_profile(lanes)
    links = find_dependencies(profile)
    return [(int(links.waiter_row[n]), int(links.releaser_row[n]), int(links.slack_ns[n])) for n in range(len(links))]


GDMA = [(0, 10, 1, 0), (10, 20, 2, 0), (20, 30, 3, 0)]


def test_a_command_waits_for_the_id_it_names():
    assert linked(lane("TIU", [(25, 40, 1, 2)]), lane("GDMA", GDMA)) == [(0, 1, 5)]


def test_bits_that_select_an_engine_leave_no_link_where_sdma_could_be_meant():
    def links(select, sdma):
        tiu = lane("TIU", [(25, 40, 1, 2)], depends_engine=np.array([select]))
        return linked(tiu, lane("GDMA", GDMA), lane("SDMA", sdma))

    assert links(0, GDMA) == [(0, 1, 5)]
    assert links(1, GDMA) == []
    assert links(1, GDMA[:1]) == [(0, 1, 5)]  # SDMA has no command 2
    assert links(1, [(0, 10, 1, 0), (22, 30, 2, 0)]) == [(0, 1, 5)]  # nor one that had retired


@pytest.mark.parametrize(
    ("tiu", "why"),
    [
        ([(25, 40, 1, 3)], "the one it names has not retired"),
        ([(25, 40, 1, 9)], "no such id"),
        ([(25, 40, 1, 0)], "names none"),
        ([(25, 40, 1, 2, 7)], "another launch"),
    ],
)
def test_no_link_where_ids_or_times_do_not_agree(tiu, why):
    assert linked(lane("TIU", tiu), lane("GDMA", GDMA)) == [], why


def test_a_reset_ends_the_reach_of_an_id():
    gdma = [*GDMA, (50, 60, 1, 0)]
    tiu = [(12, 14, 1, 1), (62, 64, 1, 1)]
    assert linked(lane("TIU", tiu), lane("GDMA", gdma)) == [(0, 0, 2), (1, 3, 2)]
    # the second launch's command 2 was not recorded: the first launch's is not meant
    assert linked(lane("TIU", [(12, 14, 1, 1), (62, 64, 1, 2)]), lane("GDMA", gdma)) == [(0, 0, 2)]
    # GDMA ran nothing in the second launch that was recorded
    assert linked(lane("TIU", [(32, 44, 1, 0), (62, 64, 1, 2)]), lane("GDMA", GDMA)) == []


def messages(*events, engine="TIU", core=0, kernel=0):
    """Events are (start, end, role, message, count)."""
    table = np.array(events, np.int64)
    count = len(table)
    return make_lane(engine, core, starts=table[:, 0], ends=table[:, 1], roles=table[:, 2], message=table[:, 3],
                     message_count=table[:, 4], command_id=np.arange(1, count + 1),
                     depends_on=np.zeros(count, np.int64), kernel=np.full(count, kernel, np.int32))  # fmt: skip


SEND, WAIT = int(Role.SYNC), int(Role.WAIT)


def test_a_wait_is_released_by_the_last_of_its_sends():
    sends = messages((0, 10, SEND, 5, 1), (20, 30, SEND, 5, 1), engine="GDMA")
    assert linked(messages((0, 35, WAIT, 5, 2)), sends) == [(0, 1, 5)]


@pytest.mark.parametrize(
    ("wait", "why"),
    [
        ((0, 35, WAIT, 5, 3), "it asks for more sends"),
        ((0, 35, WAIT, 5, 1), "it asks for fewer sends"),
        ((0, 35, WAIT, 6, 2), "another message"),
        ((0, 25, WAIT, 5, 2), "it ends before they retired"),
    ],
)
def test_no_link_where_messages_do_not_agree(wait, why):
    sends = messages((0, 10, SEND, 5, 1), (20, 30, SEND, 5, 1), engine="GDMA")
    assert linked(messages(wait), sends) == [], why


def test_sends_that_serve_more_waits_than_there_are_release_none():
    assert linked(messages((0, 35, WAIT, 5, 1)), messages((0, 10, SEND, 5, 2), engine="GDMA")) == []


def test_a_message_may_be_used_again_and_by_several_cores():
    waits = [messages((0, 30 + core, WAIT, 5, 2), (40, 60 + core, WAIT, 5, 2), core=core) for core in (0, 1)]
    sends = [messages((0, 9 + core, SEND, 5, 2), (40, 45 - core, SEND, 5, 2), core=core, engine="GDMA")
             for core in (0, 1)]  # fmt: skip
    assert sorted(linked(*waits, *sends)) == [(0, 0, 20), (0, 0, 21), (1, 1, 15), (1, 1, 16)]


def test_commands_of_different_kernel_functions_do_not_meet():
    assert linked(messages((0, 35, WAIT, 5, 1)), messages((0, 10, SEND, 5, 1), engine="GDMA", kernel=1)) == []


def test_one_agreement_among_many_waits_is_chance():
    def waits(count):
        strangers = [(100 * n, 100 * n + 9, WAIT, 100 + n, 1) for n in range(1, count)]
        return linked(messages((0, 35, WAIT, 5, 1), *strangers), messages((0, 10, SEND, 5, 1), engine="GDMA"))

    assert waits(16) == [(0, 0, 25)]
    assert waits(17) == []


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(0, 4), st.integers(0, 5),
                          st.sampled_from((SEND, WAIT)), st.integers(0, 3), st.integers(0, 3), st.booleans()),
                max_size=40))  # fmt: skip
def test_whatever_the_registers_hold_releasers_retire_in_time(events):
    lanes = []
    for engine, mine in (("TIU", True), ("GDMA", False)):
        rows = sorted((e for e in events if e[7] is mine), key=lambda e: e[0])
        if rows:
            table = np.array([row[:7] for row in rows], np.int64)
            lanes.append(make_lane(engine, starts=table[:, 0], ends=table[:, 0] + table[:, 1], roles=table[:, 4],
                                   command_id=table[:, 2] + 1, depends_on=table[:, 3], message=table[:, 5],
                                   message_count=table[:, 6]))  # fmt: skip
    profile = make_profile(lanes)
    links = find_dependencies(profile)
    for n in range(len(links)):
        waiter, releaser = profile.lanes[links.waiter_lane[n]], profile.lanes[links.releaser_lane[n]]
        row, by = links.waiter_row[n], links.releaser_row[n]
        limit = waiter["start"][row] if links.links.kind[n] == LinkKind.COMMAND else waiter["end"][row]
        assert releaser["end"][by] <= limit
        assert links.slack_ns[n] == limit - releaser["end"][by]
        if links.links.kind[n] == LinkKind.COMMAND:
            assert releaser["command_id"][by] == waiter["depends_on"][row]
        else:
            assert releaser["message"][by] == waiter["message"][row]
            assert waiter["role"][row] == Role.WAIT
