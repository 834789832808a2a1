"""``tpuprof report``: prints views of a profile as text, Markdown or JSON."""

from __future__ import annotations

import argparse

from msgspec.structs import replace

from tpuprof_tui.analysis.selecting.moves import scope_named
from tpuprof_tui.errors import UsageError
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.model.group import Worker
from tpuprof_tui.views.as_text import ROWS
from tpuprof_tui.views.registry import view_of, views_of
from tpuprof_tui.views.report import report_record, report_text, workers_of
from tpuprof_tui.views.sentence import sentence

from .opening import asked_query, open_capture, status_of, tell_if_none_passes
from .printing import pages_of


def print_report(options: argparse.Namespace) -> int:
    """Prints the requested views; returns the exit status.

    Raises:
        UsageError: A view, group, worker, step, range or filter is unknown.
    """
    profile = open_capture(options.capture, options)
    status = status_of(profile)
    if options.json and options.markdown:
        raise UsageError("--json and --markdown do not go together.")
    if options.json and options.list_views:
        raise UsageError("--list and --json do not go together.", "tpuprof describe PATH --json lists the views.")
    vocabulary = profile.vocabulary
    if options.list_views:
        listed = views_of(vocabulary)
        width = max(len(view.id) for view in listed)
        print(*(f"{view.id:{width}}  {vocabulary.say(view.help)}" for view in listed), sep="\n")
        return status
    views = [view_of(vocabulary, name) for name in options.views] or list(views_of(vocabulary))
    query = asked_query(options, profile)
    profile = query.profile
    query = replace(query, scope=scope_named(profile, options.core, options.group))
    tell_if_none_passes(query)
    top = query.top_group
    workers = tuple(each for each in _chosen(workers_of(profile), options.rank)
                    if top < 0 or each.group < 0 or each.group == top)  # fmt: skip
    if options.rank is not None and not workers:
        raise UsageError(f"There is no {options.group} of rank {options.rank}.", "Ask without --rank.")
    # the sentence is made of the findings: other views alone do not wait for these
    told = str(sentence(query, workers)) if any(view.id == "findings" for view in views) else None
    if options.json:
        record = report_record(query, views, workers, limit=options.limit, offset=options.offset, sentence=told)
        print(answer_text(record, indent=None))
        return status
    if not workers and not options.views:
        # without workers, views per worker have no content
        views = [view for view in views if view.all_workers or view.untimed]
    limit = ROWS if options.limit is None else options.limit
    first, *others = report_text(query, views, workers, limit, options.offset)
    pages = (replace(first, lead=told or ""), *others)
    pages_of(options).show(pages, "Name one of them, or --limit N shows all.")
    return status


def _chosen(workers: tuple[Worker, ...], rank: int | None) -> tuple[Worker, ...]:
    if rank is None:
        return workers
    found = tuple(worker for worker in workers if worker.rank == rank)
    if not found:
        ranks = ", ".join(str(worker.rank) for worker in workers if worker.rank is not None)
        raise UsageError(f"There is no rank {rank}.", f"Ranks: {ranks or 'none are recorded'}.")
    return found
