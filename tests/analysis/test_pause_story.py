"""What explains a pause: work around it, what the host did, what was waited for; on small profiles made for it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from profiles import Texts, make_lane, make_profile

from tpuprof_tui.analysis.evidence.pause_story import pause_story
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import Activity, Lane, Links, Profile, Role

WORK, WAIT = int(Role.WORK), int(Role.WAIT)


def host(texts: Texts, *events: tuple[str, str, int, int, int]) -> Lane:
    """A thread with events: name, type, start, end, row of the enclosing one."""
    names, types, starts, ends, parents = zip(*events, strict=True)
    lane = make_lane("runtime", 0, starts=starts, ends=ends, name=texts.codes("name", names),
                     type=texts.codes("type", types), parent=np.array(parents, np.int64))  # fmt: skip
    return replace(lane, group=1, activity=Activity.HOST)


def device(texts: Texts, *called: int) -> Lane:
    """A lane that works from 0 to 100 and, launched at ``called``, from 200 to 300."""
    more = {"call_start": np.array([0, *called], np.int64)} if called else {}
    return make_lane("TIU", 0, starts=[0, 200], ends=[100, 300], name=texts.codes("name", ["mm", "add"]), **more)


def session_of(profile: Profile) -> Session:
    return query_of(profile).session


@pytest.mark.parametrize(("called", "cause"), [(150, "host"), (90, "device")])
def test_a_pause_before_launched_work(called, cause):
    texts = Texts()
    thread = host(texts, ("train", "frame", 0, 400, -1), ("load", "frame", 100, 150, 0),
                  ("aten::to", "op", 120, 140, 1), ("launch", "call", called, called + 10, 0))  # fmt: skip
    session = session_of(make_profile([device(texts, called), thread], strings=texts.build()))
    story = pause_story(session, Scope(0), 100, 200)
    assert (story.before, story.after, story.cause) == ((0, 0), (0, 1), cause)
    # frames without the frames that they call, operators whether or not a frame calls them
    spent = {(each.type, each.name): each.ns for each in story.host}
    assert spent == {("frame", "train"): 50, ("frame", "load"): 50, ("op", "aten::to"): 20} | (
        {("call", "launch"): 10} if cause == "host" else {}
    )
    assert all(each.share == each.ns / 100 for each in story.host)
    text, brief = story.texts(session)
    assert text.endswith("; after mm, before add")
    assert "50.0%, aten::to 20.0%" in text
    assert brief.endswith("50.0%")


def test_without_launches_the_busiest_thread_is_told_and_no_cause():
    texts = Texts()
    idle, busy = (host(texts, (name, "op", 0, end, -1)) for name, end in (("a", 110), ("b", 190)))
    session = session_of(make_profile([device(texts), idle, busy], strings=texts.build()))
    story = pause_story(session, Scope(lane=0), 100, 200)
    assert (story.cause, [each.name for each in story.host]) == ("", ["b"])


def test_a_wait_is_for_the_event_that_ends_it():
    texts = Texts()
    waiting = make_lane("TIU", 0, starts=[0, 100, 200], ends=[100, 200, 300], roles=[WORK, WAIT, WORK],
                        name=texts.codes("name", ["mm", "wait", "add"]))  # fmt: skip
    other = make_lane("GDMA", 1, starts=[0], ends=[190], name=texts.codes("name", ["load"]))
    links = Links(("message",), np.zeros(1, np.int8), np.array([3]), np.array([1]), ending=frozenset((0,)))
    session = session_of(replace(make_profile([waiting, other], strings=texts.build()), links=lambda: links))
    story = pause_story(session, Scope(0), 100, 200)
    assert story.waited_for is not None
    assert (story.waited_for.kind, story.waited_for.releaser) == ("message", (1, 0))
    waited = "waited for load of core 1 GDMA (message)"
    assert story.texts(session) == (f"{waited}; after mm, before add", waited)


def test_a_pause_at_an_end_has_work_on_one_side():
    session = session_of(make_profile([make_lane("TIU", 0, starts=[100], ends=[200])]))
    story = pause_story(session, Scope(0), 0, 100)
    assert (story.before, story.after, story.waited_for, story.host) == (None, (0, 0), None, ())
