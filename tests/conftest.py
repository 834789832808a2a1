"""Settings of all tests; lets every test directory import the shared builders beside this file."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No test is timed: a busy machine must not fail one. CI tries the same examples each time, people try new ones.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("tests"), max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))
