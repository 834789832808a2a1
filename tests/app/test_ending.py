"""How the explorer ends: with the status, and the sentence, that the command line has for what was opened last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from screen import explored, frame, settled
from test_terminal import Session
from textual.pilot import Pilot

from tpuprof_tui.app.shell.application import TpuprofApp
from tpuprof_tui.app.shell.capture_list import ChooseScreen
from tpuprof_tui.cli import main as cli
from tpuprof_tui.sources import catalog as readers

SAMPLES = Path(__file__).parents[2] / "samples"
SOUND, DAMAGED = SAMPLES / "aks_decode_mode1", SAMPLES / "aks_damaged"

Steps = Callable[[Pilot[int]], Awaitable[None]]


@pytest.fixture
def left(monkeypatch, tmp_path, capsys):
    """Runs ``tpuprof`` as in a terminal, does some steps, presses q; gives the status and what is said behind it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cli, "_is_terminal", lambda: True)

    run = TpuprofApp.run

    def left(words: list[object], steps: Steps) -> tuple[int, str]:
        async def pilot(pilot: Pilot[int]) -> None:
            await steps(pilot)
            await pilot.press("q")

        monkeypatch.setattr(
            TpuprofApp, "run", lambda app, **_: run(app, headless=True, size=(100, 30), auto_pilot=pilot)
        )
        status = cli.main([os.fspath(word) for word in words])
        return status, capsys.readouterr().err

    return left


def shows(word: str) -> Steps:
    async def until_shown(pilot: Pilot[int]) -> None:
        for _ in range(1000):
            if word in frame(pilot.app):
                break
            await pilot.pause(0.01)
        assert word in frame(pilot.app)
        await settled(pilot)

    return until_shown


def listed(then: str = "") -> Steps:
    """Steps from a failure to the list of captures, and to keys pressed there."""

    async def until_listed(pilot: Pilot[int]) -> None:
        await shows("Esc lists")(pilot)
        await pilot.press("escape")
        for _ in range(1000):
            if isinstance(pilot.app.screen, ChooseScreen) and "aks_decode_mode1" in frame(pilot.app):
                break
            await pilot.pause(0.01)
        await settled(pilot)
        if then:
            await pilot.press(*then.split())
            await explored(pilot)

    return until_listed


def test_what_was_sound_ends_with_0_and_what_was_damaged_with_1(left):
    assert left([SOUND], explored) == (0, "")
    assert left([DAMAGED], explored) == (1, "")


def no_list(folder: Path) -> list[object]:
    (folder / "trace.json").write_text('{"other": 1}')
    return [SOUND, "--trace_file", folder / "trace.json"]


def no_capture(folder: Path) -> list[object]:
    (folder / "empty").mkdir()
    return [folder / "empty"]


def no_chip(folder: Path) -> list[object]:
    return [SOUND, "--chip", "NONE"]


@pytest.mark.parametrize("ask", [no_list, no_capture, no_chip])
def test_what_cannot_be_opened_ends_as_the_command_line_does(ask, left, tmp_path, capsys):
    words = ask(tmp_path)
    assert cli.main(["info", *map(os.fspath, words)]) == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("tpuprof: ")
    assert left(words, shows("Esc lists")) == (2, sentence)


@pytest.mark.parametrize(
    ("error", "said"),
    [(ZeroDivisionError("surprise"), "Unexpected error"), (MemoryError(), "There is not enough memory")],
)
def test_so_do_errors_that_nobody_expected(left, monkeypatch, error, said):
    def breaks(path, **_):
        raise error

    monkeypatch.setattr(readers, "open_profile", breaks)
    status, sentence = left([SOUND], shows(said))
    assert status == 2
    assert sentence.startswith(f"tpuprof: {said}")
    assert sentence.count("\n") == 1


def test_what_is_opened_after_a_failure_decides(left, tmp_path):
    shutil.copytree(SOUND, tmp_path / "aks_decode_mode1")
    words = [tmp_path / "aks_decode_mode1", "--chip", "NONE"]

    async def chosen_again(pilot: Pilot[int]) -> None:
        await shows("Esc lists")(pilot)
        pilot.app.opening.options.clear()
        await listed("enter")(pilot)

    assert left(words, chosen_again) == (0, "")
    status, sentence = left(words, listed())
    assert status == 2
    assert "NONE" in sentence


def test_a_host_trace_that_is_not_there_takes_no_screen(left, tmp_path):
    async def nothing(pilot: Pilot[int]) -> None:
        raise AssertionError("a screen was taken")

    words = [SOUND, "--trace_file", tmp_path / "none.json"]
    said = "no such file or directory. Give the JSON file that the host's profiler wrote."
    assert left(words, nothing) == (2, f"tpuprof: {tmp_path}/none.json: {said}\n")


def test_in_a_terminal_the_sentence_stands_when_the_screen_is_gone(tmp_path):
    session = Session(*map(os.fspath, no_list(tmp_path)), XDG_CONFIG_HOME=str(tmp_path))
    session.until(b"Esc lists")
    assert session.end() == 2
    behind = session.sent[session.sent.rfind(b"\x1b[?1049l") :]
    assert b"holds no traceEvents. A host trace is Chrome-trace JSON" in behind
