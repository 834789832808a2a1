"""``tpuprof diff``: compares two profiles, as text, JSON or Markdown."""

from __future__ import annotations

import argparse

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import DATA_LOSS, OK
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.model import Profile
from tpuprof_tui.views.as_text import ROWS
from tpuprof_tui.views.comparing import Compared
from tpuprof_tui.views.diff import diff_record, diff_reports, has_lost_records, selected_views

from .opening import check_step, open_captures
from .pages import pages_of


def compared(base: Profile, other: Profile, step: int | None, run_noise: float) -> Compared:
    """Comparison of two profiles.

    Raises:
        UsageError: The profiles cannot be compared, or one of them has no step ``step``.
    """
    queries = []
    for profile in (base, other):
        queries.append(query_of(profile, step=step))
        try:
            check_step(queries[-1])
        except UsageError as error:
            raise UsageError(f"{profile.path}: {error.message}", error.hint) from None
    return Compared(queries[0], queries[1], run_noise)


def print_diff(options: argparse.Namespace) -> int:
    """Prints the comparison that the options request; returns the exit status."""
    if options.json and options.markdown:
        raise UsageError("--json and --markdown do not go together.")
    base, other = open_captures((options.base, options.other), options)
    both = compared(base, other, options.step, options.run_noise)
    views = selected_views(both, options.views)
    if options.json:
        print(answer_text(diff_record(both, views, options.limit, options.offset), indent=None))
    else:
        limit = ROWS if options.limit is None else options.limit
        # text and Markdown contain only views that are named
        selected = views if options.views else []
        reports = diff_reports(both, selected, limit, options.offset, notes=options.markdown)
        pages_of(options).show(reports, "--limit N shows all.")
    return DATA_LOSS if has_lost_records(both) else OK
