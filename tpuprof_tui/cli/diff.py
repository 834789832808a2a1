"""``tpuprof diff``: two profiles compared, for people, as JSON or as Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import FINE, LOST

from .steps import check_step

if TYPE_CHECKING:
    from tpuprof_tui.model import Profile
    from tpuprof_tui.views.comparing import Compared


def share(text: str) -> float:
    """A share as it is typed: ``2%`` or ``0.02``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write 2% or 0.02")
    return value


def compared(base: Profile, other: Profile, step: int | None, run_noise: float) -> Compared:
    """Two profiles side by side.

    Raises:
        UsageError: They cannot be compared, or one has no such step.
    """
    from tpuprof_tui.analysis.selecting.session import Session
    from tpuprof_tui.views.comparing import Compared
    from tpuprof_tui.views.query import Query

    queries = []
    for profile in (base, other):
        session = Session.of(profile)
        try:
            check_step(step, session.profile)
        except UsageError as error:
            raise UsageError(f"{profile.path}: {error.message}", error.hint) from None
        queries.append(Query(session, step=step))
    return Compared(queries[0], queries[1], run_noise)


def print_diff(
    options: argparse.Namespace, opened: Callable[[str, str], Sequence[Profile]], show: Callable[..., None]
) -> int:  # fmt: skip
    """Prints what the options ask for; gives the exit status.

    Args:
        options: As they were given.
        opened: Opens profiles.
        show: Prints pages (`Pages.show`).
    """
    from tpuprof_tui.formats.answers import answer_text
    from tpuprof_tui.views.as_text import ROWS
    from tpuprof_tui.views.diff import diff_record, diff_reports, lossy, markdown_report, views_asked

    if options.json and options.markdown:
        raise UsageError("--json and --markdown do not go together.")
    base, other = opened(options.base, options.other)
    both = compared(base, other, options.step, options.run_noise)
    views = views_asked(both, options.views)
    if options.json:
        print(answer_text(diff_record(both, views, options.limit, options.offset), indent=None))
    else:
        limit = ROWS if options.limit is None else options.limit
        # people are told views that they ask for
        told = views if options.views else []
        if options.markdown:
            print("\n".join(markdown_report(both, told, limit, options.offset)))
        else:
            show(diff_reports(both, told, limit, options.offset), "--limit N tells all.")
    return LOST if lossy(both) else FINE
