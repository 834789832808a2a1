"""``--step N``: a step as a selection, for every command that takes one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpuprof_tui.errors import UsageError

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile

#: Numbers that are named where one is not among them.
_NAMED = 8


def check_step(step: int | None, profile: Profile) -> None:
    """Whether there is a step of a number.

    Raises:
        UsageError: There is none; says which there are.
    """
    if step is None:
        return
    from tpuprof_tui.analysis.steps.step_detection import steps_of

    found = steps_of(profile)
    if not len(found):
        raise UsageError(f"The capture has no {found.word.plural}, and nothing that it launches repeats.", "")
    if not len(found.numbered(step)):
        raise UsageError(f"The capture has no {found.word.one} {step}.", f"There are: {found.numbers_text(_NAMED)}.")


def filter_asked(options: argparse.Namespace, profile: Profile) -> str:
    """The filter that ``--filter`` and ``--step`` ask for together; empty without both.

    Raises:
        UsageError: There is no such step, or the filter cannot be understood.
    """
    if options.step is None:
        return options.filter or ""
    from tpuprof_tui.analysis.selecting.filters import with_step

    check_step(options.step, profile)
    return with_step(options.filter or "", options.step)
