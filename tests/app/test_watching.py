"""What changes on disk is told, and read again by a key or by itself; what is looked at stays."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from profiles import session_of, small_profile
from screen import explorer, frame, press, settled

from tpuprof_tui.analysis.selecting.state import DisplayState, Scope, SelectedItem
from tpuprof_tui.app.explorer.screen import ExplorerScreen
from tpuprof_tui.app.shell import on_disk
from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.on_disk import DiskState, capture_of, disk_change, read_disk_state
from tpuprof_tui.app.shell.opening import Opening, carried_state
from tpuprof_tui.model import Groups
from tpuprof_tui.sources.catalog import Catalog

SAMPLE = Path(__file__).parents[2] / "samples" / "aks_decode_mode2"


@pytest.fixture
def capture(tmp_path):
    return Path(shutil.copytree(SAMPLE, tmp_path / "captured"))


def touch(capture: Path) -> None:
    """The capture is written anew, to the same bytes."""
    file = next(capture.glob("cdmlib*"))
    os.utime(file, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns + 10**9))


def test_nothing_new_is_no_news(capture):
    seen = read_disk_state(str(capture))
    assert seen.fingerprint
    assert seen.folder_names == {"captured"}
    assert disk_change(str(capture), seen, read_disk_state(str(capture))) is None
    assert disk_change(str(capture), DiskState(), seen) is None


def test_a_link_that_leads_nowhere_is_seen_and_so_is_where_it_leads_then(capture):
    before = Catalog().fingerprint(capture)
    (capture / "cdmlib0_9.profile").symlink_to(capture / "later")
    dangling = Catalog().fingerprint(capture)
    (capture / "later").write_bytes(b"x")
    assert len({"", before, dangling, Catalog().fingerprint(capture)}) == 4
    assert Catalog().fingerprint(capture / "nowhere" / "at all") == ""


def test_a_changed_file_is_news_a_vanished_capture_is_not(capture):
    seen = read_disk_state(str(capture))
    touch(capture)
    news = disk_change(str(capture), seen, read_disk_state(str(capture)))
    assert news is not None
    assert news.path == str(capture)
    assert "R reloads" in news.text
    shutil.rmtree(capture)
    assert disk_change(str(capture), seen, read_disk_state(str(capture))) is None


def test_a_capture_beside_is_news_another_folder_is_not(capture):
    seen = read_disk_state(str(capture))
    (capture.parent / "notes").mkdir()
    assert disk_change(str(capture), seen, read_disk_state(str(capture))) is None
    shutil.copytree(capture, capture.parent / "captured-2\x1b")
    news = disk_change(str(capture), seen, read_disk_state(str(capture)))
    assert news is not None
    assert news.path == str(capture.parent / "captured-2\x1b")
    assert "captured-2\ufffd" in news.text


def test_a_file_of_a_capture_stands_for_it(capture):
    file = next(capture.glob("cdmlib*"))
    assert capture_of(str(file)) == capture
    assert read_disk_state(str(file)) == read_disk_state(str(capture))


def test_what_cannot_be_seen_is_empty():
    assert read_disk_state("/nowhere/at/all") == DiskState("", frozenset())


def test_a_view_is_kept_as_far_as_it_fits():
    old, new = small_profile(1, event_count=600), small_profile(1, event_count=300)
    state = replace(DisplayState.of(old.start_ns, old.end_ns), filter="dur>1", scope=Scope(1), marks=(("a", 500),))
    state = replace(
        state.windowed(1000, 2000), selection=SelectedItem(0, 1, 2), picked=(1, 2), pinned=((0, 0, -1), (-1, 1, -1))
    )
    same = carried_state(state, old, session_of(old))
    assert same == replace(state, picked=())
    kept = carried_state(state, old, session_of(new))
    assert (kept.start, kept.span) == (1000, 2000)
    assert (kept.full_start, kept.full_end) == (new.start_ns, new.end_ns)
    assert (kept.scope, kept.filter, kept.marks) == (state.scope, state.filter, state.marks)
    assert kept.selection.lane == 1


def test_marks_ranges_and_looks_are_kept_where_the_capture_still_reaches():
    old, new = small_profile(1, event_count=600), small_profile(1, event_count=300)
    inside, outside = new.end_ns - 5, new.end_ns + 5
    looks = {"colouring": "kernel", "legend": True, "strip": "utilisation", "scale": "cycles"}
    view = replace(
        DisplayState.of(old.start_ns, old.end_ns), marks=(("a", inside), ("b", outside)),
        spans=(("c", 100, inside), ("d", 100, outside)), range=(100, inside), **looks,
    )  # fmt: skip
    assert carried_state(view, old, session_of(old)) == view
    kept = carried_state(view, old, session_of(new))
    assert (kept.marks, kept.spans, kept.range) == ((("a", inside),), (("c", 100, inside),), (100, inside))
    assert {name: getattr(kept, name) for name in looks} == looks
    kept = carried_state(replace(view, range=(100, outside), anchor=outside), old, session_of(new))
    assert (kept.range, kept.anchor) == (None, None)


def test_all_of_a_profile_stays_all_and_lanes_that_are_gone_are_dropped():
    old = small_profile(1, event_count=600)
    new = replace(old, lanes=old.lanes[:3], groups=Groups(old.groups[:1]))
    last = len(old.lanes) - 1
    view = replace(
        DisplayState.of(old.start_ns, old.end_ns),
        scope=Scope(-1, last),
        selection=SelectedItem(1, 4, 2),
        pinned=((last, -1, -1),),
    )
    kept = carried_state(view, old, session_of(new))
    assert kept.fits_all
    assert kept.scope == Scope()
    assert kept.selection == SelectedItem()
    assert kept.pinned == ()


@asynccontextmanager
async def watched(capture: Path, monkeypatch, *, follow: bool = False):
    """The explorer with a capture that is looked at often."""
    monkeypatch.setattr(on_disk, "POLL_SECONDS", 0.05)
    app = TpuprofApp(str(capture), follow=follow)
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        await settled(pilot)
        yield pilot


async def until(pilot, condition) -> None:
    """Waits until something holds."""
    for _ in range(1000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it never came to that; the screen shows\n{frame(pilot.app)}")


async def test_nothing_is_looked_at_while_the_application_closes(capture, monkeypatch):
    async with watched(capture, monkeypatch) as pilot:
        app = pilot.app
        assert app.opening.may_poll()
    assert app.opening.watcher.disk_state.fingerprint
    assert not app.screen_stack
    # timers outlast the screens
    app.opening.poll()
    app.export_changed()
    assert not app.opening.may_poll()


async def test_a_change_is_told_and_r_keeps_the_view(capture, monkeypatch):
    async with watched(capture, monkeypatch) as pilot:
        await press(pilot, "j j w w w")
        before, session = explorer(pilot).state, explorer(pilot).session
        assert "R reloads" not in frame(pilot.app)
        touch(capture)
        await until(pilot, lambda: "changed on disk: R reloads" in frame(pilot.app).splitlines()[-1])
        await pilot.pause(0.2)
        assert explorer(pilot).session is session, "nothing is read without a key"
        await pilot.press("R")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session is not session
        )
        await settled(pilot)
        assert explorer(pilot).state == before
        await pilot.pause(0.2)
        assert "R reloads" not in frame(pilot.app)


async def test_all_that_was_set_is_there_after_a_reload(capture, monkeypatch):
    async with watched(capture, monkeypatch) as pilot:
        await press(pilot, "e j full_stop w w C L B u P m a r M b 2")
        screen = explorer(pilot)
        before, session = screen.state, screen.session
        assert before.marks
        assert before.spans
        assert before.pinned
        assert before.range is not None
        assert (before.legend, before.scale) == (True, "cycles")
        await pilot.press("R")
        await until(
            pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session is not session
        )
        await settled(pilot)
        assert explorer(pilot).state == before
        assert explorer(pilot).manager.layout.tab == "table"
        assert explorer(pilot).manager.layout.rows_chosen


async def test_a_new_capture_beside_is_told(capture, monkeypatch):
    async with watched(capture, monkeypatch) as pilot:
        shutil.copytree(capture, capture.parent / "later")
        await until(pilot, lambda: "new: later, O lists it" in frame(pilot.app).splitlines()[-1])


async def test_follow_reads_changes_by_itself(capture, monkeypatch):
    async with watched(capture, monkeypatch, follow=True) as pilot:
        await press(pilot, "w w")
        before, session = explorer(pilot).state, explorer(pilot).session
        touch(capture)
        await until(
            pilot, lambda: isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session is not session
        )
        await settled(pilot)
        assert explorer(pilot).state == before
        assert "Read again: it changed on disk." in frame(pilot.app)


async def test_another_capture_is_named_when_it_opens(capture, monkeypatch):
    shutil.copytree(capture, capture.parent / "later")
    async with watched(capture, monkeypatch) as pilot:
        await pilot.press("right_parenthesis")
        await until(
            pilot,
            lambda: isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session.profile.name == "later",
        )
        await settled(pilot)
        assert "Capture later, 2 of 2: ( and ) go on" in frame(pilot.app)


async def test_follow_opens_what_appears_beside(capture, monkeypatch):
    async with watched(capture, monkeypatch, follow=True) as pilot:
        shutil.copytree(capture, capture.parent / "later")
        await until(
            pilot,
            lambda: isinstance(pilot.app.screen, ExplorerScreen) and pilot.app.screen.session.profile.name == "later",
        )
        await settled(pilot)
        assert pilot.app.opening.capture.path == str(capture.parent / "later")
        assert "New capture: later." in frame(pilot.app)


async def test_a_capture_that_vanishes_leaves_the_screen_as_it_is(capture, monkeypatch):
    async with watched(capture, monkeypatch, follow=True) as pilot:
        session = explorer(pilot).session
        shutil.rmtree(capture)
        await pilot.pause(0.3)
        assert explorer(pilot).session is session


def shows(pilot, words: str):
    return lambda: isinstance(pilot.app.screen, ExplorerScreen) and words in frame(pilot.app)


async def test_a_reload_that_fails_keeps_the_capture_and_recovers(capture, monkeypatch):
    async with watched(capture, monkeypatch) as pilot:
        app = pilot.app
        await press(pilot, "2 j j")
        before, profile = explorer(pilot).state, explorer(pilot).session.profile
        read = app.opening.watcher.disk_state.fingerprint
        away = capture.parent / "below" / "away"
        away.parent.mkdir()
        capture.rename(away)
        await pilot.press("R")
        await until(pilot, shows(pilot, "no such file or directory: the earlier state stays open."))
        await settled(pilot)
        assert explorer(pilot).session.profile is profile
        seen = app.opening.watcher.disk_state.fingerprint
        assert (explorer(pilot).state, explorer(pilot).manager.layout.tab, seen) == (before, "table", read)
        assert (app.opening.failure, app.opening.status) == (None, 0)
        await until(pilot, shows(pilot, "could not be read: R tries again"))
        away.rename(capture)
        await until(pilot, shows(pilot, "The capture on disk has not changed."))
        touch(capture)
        await until(pilot, shows(pilot, "changed on disk: R reloads"))
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen) and app.screen.session.profile is not profile)


async def test_follow_goes_on_behind_what_could_not_be_read(capture, monkeypatch):
    readings = []
    begin = Opening.read
    monkeypatch.setattr(Opening, "read", lambda *what, **how: (readings.append(1), begin(*what, **how))[1])
    async with watched(capture, monkeypatch, follow=True) as pilot:
        profile = explorer(pilot).session.profile
        kept = (capture / "global.profile").read_bytes()
        (capture / "global.profile").unlink()
        await until(pilot, shows(pilot, "the earlier state stays"))
        await pilot.pause(0.5)
        assert len(readings) == 1, "what cannot be read is not read again before it changes"
        assert explorer(pilot).session.profile is profile
        (capture / "global.profile").write_bytes(kept)
        await until(pilot, shows(pilot, "Read again: it changed on disk."))
        assert explorer(pilot).session.profile is not profile
        assert pilot.app.opening.watcher.failed is None


async def test_follow_tries_a_capture_beside_again_when_it_is_whole(capture, monkeypatch):
    async with watched(capture, monkeypatch, follow=True) as pilot:
        later = capture.parent / "later"
        later.mkdir()
        shutil.copy(next(capture.glob("cdmlib*")), later)
        await until(pilot, shows(pilot, "the earlier state stays"))
        assert pilot.app.opening.capture.path == str(capture)
        await until(pilot, shows(pilot, "later: could not be read"))
        shutil.copytree(capture, later, dirs_exist_ok=True)
        await until(pilot, shows(pilot, "New capture: later."))
        assert pilot.app.opening.capture.path == str(later)


@pytest.mark.parametrize("follow", [True, False])
async def test_what_could_not_be_opened_is_watched_too(capture, monkeypatch, follow):
    monkeypatch.setattr(on_disk, "POLL_SECONDS", 0.05)
    kept = (capture / "global.profile").read_bytes()
    (capture / "global.profile").unlink()
    app = TpuprofApp(str(capture), follow=follow)
    async with app.run_test(size=(160, 48)) as pilot:
        await until(pilot, lambda: "R reads it again" in frame(app))
        await pilot.pause(0.3)
        assert "R reads it again" in frame(app)
        (capture / "global.profile").write_bytes(kept)
        if not follow:
            await until(pilot, lambda: "changed on disk: R reloads" in frame(app))
            await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, ExplorerScreen))
        await settled(pilot)
