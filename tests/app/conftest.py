"""The tests' own helpers can be imported by name; no variable of the developer's terminal decides a test."""

from __future__ import annotations

import pytest
from profiles import session_of, small_profile

from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.app.shell import process
from tpuprof_tui.model import Profile


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_CTYPE", raising=False)


@pytest.fixture(autouse=True)
def collected_by_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explorer that opens does not look through all that a process of tests has ever made."""
    monkeypatch.setattr(process, "collect_and_freeze", lambda: None)
    monkeypatch.setattr(process, "unfreeze", lambda: None)


@pytest.fixture(scope="module")
def profile() -> Profile:
    return small_profile(1, event_count=600)


@pytest.fixture(scope="module")
def session(profile: Profile) -> Session:
    return session_of(profile)
