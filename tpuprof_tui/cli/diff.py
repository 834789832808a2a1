"""``tpuprof diff``: compares two profiles, or several with a reference, as text, JSON or Markdown."""

from __future__ import annotations

import argparse
from pathlib import Path

from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UsageError
from tpuprof_tui.exit_status import DATA_LOSS, OK
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.model import Profile
from tpuprof_tui.sources.catalog import vocabularies
from tpuprof_tui.views.as_text import ROWS
from tpuprof_tui.views.comparing import OWN, Compared
from tpuprof_tui.views.diff_report import (
    diff_record,
    diff_reports,
    has_lost_records,
    runs_record,
    runs_reports,
    selected_views,
)
from tpuprof_tui.views.registry import views_of

from .opening import check_step, open_captures
from .printing import pages_of


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
    captures, names = _captures(options)
    base, *others = open_captures(captures, options)
    runs = [compared(base, other, options.step, options.run_noise) for other in others]
    views = selected_views(runs[0], names)
    if options.json:
        record = (diff_record(runs[0], views, options.limit, options.offset) if len(runs) == 1 else
                  runs_record(runs, views, options.limit, options.offset))  # fmt: skip
        print(answer_text(record, indent=None))
    else:
        limit = ROWS if options.limit is None else options.limit
        # text and Markdown contain only views that are named, unless the verdict is not about them
        selected = views if names or not base.vocabulary.work_breakdowns else []
        if len(runs) > 1 and selected:
            raise UsageError("Views are of two captures, but more are named.", "--json has them for each.")
        reports = (diff_reports(runs[0], selected, limit, options.offset, notes=options.markdown) if len(runs) == 1 else
                   runs_reports(runs, options.limit))  # fmt: skip
        pages_of(options).show(reports, "--limit N shows all.")
    return DATA_LOSS if any(map(has_lost_records, runs)) else OK


def _captures(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The captures, the reference first, and the names of views: words that are no file, or are known as a view.

    Raises:
        UsageError: The reference is none of the captures.
    """
    known = {view.id for words in vocabularies() for view in (*views_of(words), *OWN)}
    captures = [options.base, options.other]
    captures += (word for word in options.more if word not in known and Path(word).exists())
    reference = captures[0] if options.reference is None else options.reference
    if reference not in captures:
        raise UsageError(f"{reference} is none of the captures that are compared.", f"They are {', '.join(captures)}.")
    place = captures.index(reference)
    views = [word for word in options.more if word not in captures[2:]]
    return [reference, *captures[:place], *captures[place + 1 :]], views
