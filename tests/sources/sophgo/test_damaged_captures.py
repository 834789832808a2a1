"""Every kind of damage: what is sound is shown as it was, the damage is named, and the exit status tells."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from capture_writer.damage import DAMAGES, Damage, damage_capture
from msgspec.structs import replace
from truth_tables import Leave, Truth, differences, read_truth

from tpuprof_tui.cli.main import main
from tpuprof_tui.errors import UnreadableError
from tpuprof_tui.model import Lane, Profile, Severity
from tpuprof_tui.sources.catalog import open_profile

_PLACE = TemporaryDirectory(prefix="damaged")
_SHOWN = [name for name, damage in DAMAGES.items() if not damage.allow]
_REFUSED = [name for name, damage in DAMAGES.items() if damage.allow]


@cache
def _capture(name: str) -> Path:
    return damage_capture(name, Path(_PLACE.name))


@cache
def _opened(name: str) -> Profile:
    return open_profile(_capture(name))


def _titles(engine: str, number: int) -> set[str]:
    """What a lane is called where damage is described."""
    return {f"port {number}"} if engine == "CDMA" else {f"core {number}", f"{engine} {number}"}


def _lane_titles(profile: Profile, lane: Lane) -> set[str]:
    return _titles(lane.kind, profile.number_of(lane))


def _sound_part(profile: Profile, truth: Truth, damage: Damage) -> tuple[Profile, Truth, Leave]:
    """Profile and truth without the lanes that were hit."""
    hit = {*damage.lost, *damage.partial}
    lanes = tuple(lane for lane in profile.lanes if not _lane_titles(profile, lane) & hit)
    wanted = {key: columns for key, columns in truth.lanes.items() if not _titles(*key) & hit}
    for title in hit:
        if title.startswith("core "):  # launches are counted over all cores, so those of later cores move up
            broken = int(title.removeprefix("core "))
            missing = truth.meta["kernels"] - int((profile.scopes.group == broken).sum())
            for (_, core), columns in wanted.items():
                columns["scope"][(columns["scope"] >= 0) & (core > broken)] -= missing
    # zero is the first instruction: where that was hit, all others may lie elsewhere, but still beside one another
    first = min(float(columns["start_ns"].min()) for columns in wanted.values())
    shift = ("core",) if hit and first > 0 else ()
    leave = Leave(shift=shift, unbound=damage.unbound, condensed=damage.condensed)
    return replace(profile, lanes=lanes), dataclasses.replace(truth, lanes=wanted), leave


def test_there_are_fifty_kinds_and_more() -> None:
    assert len(DAMAGES) >= 90
    assert len({damage.about for damage in DAMAGES.values()}) == len(DAMAGES)


@pytest.mark.parametrize("name", _SHOWN)
def test_what_is_sound_is_shown_as_it_was(name: str) -> None:
    damage = DAMAGES[name]
    profile = _opened(name)
    truth = read_truth(_capture(name).parent / f"{name}.truth.json")
    assert truth.meta["damage"] == damage.about
    parts = _sound_part(profile, truth, damage)
    assert len(parts[0].lanes) >= 2
    assert differences(*parts) == []
    gone = [profile.title_of(lane) for lane in profile.lanes if _lane_titles(profile, lane) & set(damage.lost)]
    assert gone == []


@pytest.mark.parametrize("name", [name for name in _SHOWN if DAMAGES[name].partial])
def test_what_was_hit_does_not_stretch_the_time_line(name: str) -> None:
    """A broken record can claim any time; none is shown seconds away from the others."""
    profile = _opened(name)
    truth = read_truth(_capture(name).parent / f"{name}.truth.json")
    last = max(float(columns["end_ns"].max()) for columns in truth.lanes.values())
    assert profile.end_ns < last + 50e6


@pytest.mark.parametrize("name", _SHOWN)
def test_the_damage_is_named_and_the_status_is_1(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(_capture(name)), "--json"]) == 1
    printed = capsys.readouterr()
    assert printed.err == ""
    errors = [problem for problem in json.loads(printed.out)["problems"] if problem["severity"] == "error"]
    # every error names its file; where damage lies at an offset, one names that, too
    assert errors
    assert all(problem["file"] and problem["what"] and problem["done"] for problem in errors)
    assert DAMAGES[name].placeless or any(problem["offset"] is not None for problem in errors)


@pytest.mark.parametrize("name", _REFUSED)
def test_where_nothing_is_sound_one_sentence_says_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnreadableError) as refusal:
        open_profile(_capture(name))
    assert "\n" not in str(refusal.value)
    assert main(["info", str(_capture(name))]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("tpuprof: ")
    assert printed.err.count("\n") == 1


def test_named_chips_open_what_lacks_only_the_chip() -> None:
    for name in ("bad_no_global", "bad_unknown_arch", "bad_settings_wide", "bad_settings_empty"):
        truth = read_truth(_capture(name).parent / f"{name}.truth.json")
        assert differences(open_profile(_capture(name), chip="aks"), truth) == []


def test_every_damage_is_an_error_and_no_more() -> None:
    """The errors of a damaged capture are few: damage is told once, not for each of its consequences."""
    for name in _SHOWN:
        errors = [problem for problem in _opened(name).problems if problem.severity is Severity.ERROR]
        assert len(errors) <= 24, name
