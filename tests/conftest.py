"""Settings of all tests; lets every test directory import the shared builders beside this file."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No test is timed: a busy machine must not fail one. CI tries the same examples each time, people try new ones.
settings.register_profile(
    "tests",
    deadline=None,
    max_examples=25,  # make check fuzzes for a minute besides
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("tests"), max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))

# Sizes of a terminal that there is not: readline sets them in the process that starts the others, and they would go
# before the sizes of the terminals that tests make.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

# What tests read is read anew each time, and nothing is left in a user's folder.
os.environ["TPUPROF_CACHE"] = "off"

# Programs that tests start can be ended, also where nohup or a shell's background has the tests themselves go on.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Files that wait longest, for pip, for a terminal, for what is killed: begun last, they would be waited for alone.
LONGEST = (
    "test_invariants.py", "test_faults_terminal.py", "test_terminal.py", "test_wheel.py", "test_every_action.py",
    "test_selection.py", "test_dataset.py", "test_faults_export.py", "test_export_menu.py", "test_written_captures.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))


def pytest_collection_finish() -> None:
    """Modules and tests are no garbage, and garbage is looked for seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def environment_is_left_as_it_was() -> Iterator[None]:
    """Programs that later tests start get the variables of this process."""
    before = dict(os.environ)
    yield
    changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
    changed.discard("PYTEST_CURRENT_TEST")
    assert not changed, f"the test leaves {sorted(changed)} changed"
