"""What is computed of a profile is made once, listed with its size, and gone with the profile."""

from __future__ import annotations

import gc
from threading import Barrier, Event, Thread
from weakref import ref

import pytest
from profiles import small_profile

from tpuprof_tui.analysis.evidence.peers import peers_of
from tpuprof_tui.analysis.evidence.problem_rows import problem_rows
from tpuprof_tui.analysis.links.dependencies import cached_dependencies, dependencies_of
from tpuprof_tui.analysis.result_cache import ResultCache
from tpuprof_tui.analysis.selecting.filter_masks import CACHED_FILTERS, apply_filter, is_filter_cached
from tpuprof_tui.views.summary_views import first_screen


def test_a_thing_is_made_once():
    cache, made = ResultCache(), []
    for _ in range(3):
        assert cache.get("square", lambda: made.append(3) or 9, 3) == 9
    assert made == [3]
    assert cache.peek("square", 3) == 9
    assert cache.peek("square", 4) is cache.peek("square") is None


def test_nothing_is_a_thing_too():
    cache, made = ResultCache(), []
    for _ in range(2):
        assert cache.get("nothing", lambda: made.append(1)) is None
    assert made == [1]


def test_of_two_threads_one_makes_and_the_other_waits():
    cache, made, found = ResultCache(), [], []
    ready = Barrier(4)

    def make():
        made.append(1)
        Event().wait(0.05)
        return object()

    def ask():
        ready.wait()
        found.append(cache.get("thing", make))

    threads = [Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert made == [1]
    assert len(found) == 4
    assert len(set(map(id, found))) == 1


def test_who_asks_for_something_else_does_not_wait():
    cache, begun, go_on = ResultCache(), Event(), Event()

    def slow():
        begun.set()
        assert go_on.wait(10)
        return "slow"

    thread = Thread(target=lambda: cache.get("slow", slow))
    thread.start()
    assert begun.wait(10)
    assert cache.get("other", lambda: "at once") == "at once"
    assert cache.peek("slow") is None
    go_on.set()
    thread.join()
    assert cache.peek("slow") == "slow"


def test_making_may_ask_for_other_things_and_not_for_itself():
    cache = ResultCache()
    assert cache.get("outer", lambda: cache.get("inner", lambda: 2) + 1) == 3

    def itself():
        return cache.get("itself", itself)

    with pytest.raises(RecursionError):
        cache.get("itself", itself)


def test_what_failed_is_made_when_it_is_asked_for_again():
    cache = ResultCache()
    with pytest.raises(MemoryError):
        cache.get("thing", lambda: (_ for _ in ()).throw(MemoryError()))
    assert cache.get("thing", lambda: 1) == 1


def test_so_many_are_kept_the_last_made():
    cache = ResultCache()
    cache.get("other", lambda: 0)
    for number in range(5):
        cache.get("bounded", lambda number=number: number, number, limit=3)
    assert [cache.peek("bounded", number) for number in range(5)] == [None, None, 2, 3, 4]
    assert cache.peek("other") == 0


def used(profile):
    """A session of which everything has been asked that is kept."""
    session = first_screen(profile)
    dependencies_of(session)
    problem_rows(session)
    peers_of(session, 0, 0)
    for number in range(CACHED_FILTERS + 2):
        apply_filter(session, f"dur>{number}").session.indexes  # noqa: B018
    return session


def test_all_that_is_derived_goes_with_the_profile():
    session = used(small_profile(2))
    assert cached_dependencies(session) is not None
    assert is_filter_cached(session, f"dur>{CACHED_FILTERS + 1}")
    assert not is_filter_cached(session, "dur>0")
    gone = [ref(session.profile), ref(session), ref(session.indexes[0]), ref(apply_filter(session, "dur>5").session)]
    assert all(each() is not None for each in gone)
    del session
    gc.collect()
    assert [each() for each in gone] == [None] * 4


def test_of_a_profile_alone_nothing_is_kept_when_its_session_goes():
    profile = small_profile(1)
    session = used(profile)
    gone = ref(session.cache)
    del session
    gc.collect()
    assert gone() is None
