"""``tpuprof gate`` and ``tpuprof baseline``: regression checks against reference runs."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tpuprof_tui.analysis.compare.gate import Rule, figures_of, gate, joint_names
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.errors import UnreadableError, UsageError
from tpuprof_tui.exit_status import DATA_LOSS, GATE_FAILED, GATE_INCONCLUSIVE, OK
from tpuprof_tui.formats.answers import answer_text
from tpuprof_tui.formats.files import whole_file
from tpuprof_tui.views.gate_report import (
    Side,
    baseline_text,
    gate_junit,
    gate_markdown,
    gate_record,
    gate_report,
    is_baseline,
    is_time,
    read_baseline,
    refuse_unlike_sides,
    side_of,
)

from .opening import open_capture, tell
from .printing import Pages

_STATUS: Final = {"PASS": OK, "FAIL": GATE_FAILED, "INCONCLUSIVE": GATE_INCONCLUSIVE}
#: Suffixes of result files.
_FORMS: Final = (".json", ".md", ".xml")
_MOST_NAMED: Final = 6


def print_gate(options: argparse.Namespace) -> int:
    """Evaluates the rules and prints the result; returns the exit status."""
    if options.json and options.markdown:
        raise UsageError("--json and --markdown do not go together.")
    if not options.against:
        raise UsageError("The base of the comparison is missing.", "Name it: tpuprof gate OTHER ... --against BASE ...")
    output = None if options.output is None else Path(options.output)
    if output is not None and output.suffix not in _FORMS:
        raise UsageError(
            f"{output}: a result file must end in {', '.join(_FORMS)}.", "These are JSON, Markdown, JUnit."
        )
    if output is not None and is_baseline(output):
        raise UsageError(f"{output} is a baseline, which is not replaced.", "Name another result file.")
    rules = list(map(Rule.parse, options.fail_on or ()))
    views = {rule.figure.partition(".")[0] for rule in rules}
    other = _side(options.others, options, findings=True, views=views)
    base = _side(options.against, options, views=views)
    refuse_unlike_sides(base, other)
    names = joint_names(base.runs, other.runs)
    base, other = base.renamed(names), other.renamed(names)
    rules = [replace(rule, figure=names.get(rule.figure, rule.figure)) for rule in rules]
    _check_figures(rules, base, other)
    result = gate(base.runs, other.runs, rules, run_noise=options.run_noise, level=options.level)
    record = answer_text(gate_record(result, base, other), indent=None)
    if output is not None:
        made = {".json": lambda: f"{record}\n", ".md": lambda: gate_markdown(result, base, other),
                ".xml": lambda: gate_junit(result, base, other)}  # fmt: skip
        with whole_file(output) as stream:
            stream.write(made[output.suffix]().encode("utf-8", "backslashreplace"))
    # the status is the result's even if the reader of a pipe stops early
    with contextlib.suppress(BrokenPipeError):
        if options.json:
            print(record)
        elif options.markdown:
            print(gate_markdown(result, base, other), end="")
        else:
            Pages().show([gate_report(result, base, other)])
    return _STATUS[result.result] or _unread_status(base, other)


def save_baseline(options: argparse.Namespace) -> int:
    """Writes figures of runs to a baseline file; reports unreadable runs; returns the exit status."""
    path = Path(options.name)
    path = path if path.suffix else path.with_suffix(".json")
    side = _side(options.captures, options)
    with whole_file(path) as stream:
        stream.write(baseline_text(Path(options.name).stem, side).encode("utf-8", "backslashreplace"))
    runs = f"{len(side.runs)} run{'' if len(side.runs) == 1 else 's'}"
    print(f"{path}: {runs}, {path.stat().st_size:,} bytes. Use it: tpuprof gate OTHER --against {path}")
    for unread, why in side.unread:
        tell(f"tpuprof: {unread} is left out: {why}")
    return _unread_status(side)


def _unread_status(*sides: Side) -> int:
    return DATA_LOSS if any(side.unread for side in sides) else OK


def _side(
    paths: Sequence[str], options: argparse.Namespace, *, findings: bool = False, views: Collection[str] | None = None
) -> Side:  # fmt: skip
    """Figures of the runs of one side, optionally with the findings of the first; opens one run at a time.

    ``views``: those whose figures are needed; None: all.

    Raises:
        UnreadableError: No run can be read.
    """
    sides: list[Side] = []
    unread: list[tuple[str, UnreadableError]] = []
    for path in paths:
        known = Path(path)
        try:
            if known.is_file() and is_baseline(known):
                side = read_baseline(known)
            else:
                query = query_of(open_capture(path, options))
                side = side_of(query, path, findings=findings and not sides, views=views)
        except UnreadableError as error:
            unread.append((path, error))
            continue
        sides.append(side)
        refuse_unlike_sides(sides[0], side)
    if not sides:
        raise unread[-1][1]
    runs = tuple(run for side in sides for run in side.runs)
    return replace(sides[0], runs=runs, unread=tuple((path, str(error)) for path, error in unread))


def _check_figures(rules: Sequence[Rule], base: Side, other: Side) -> None:
    """Checks that the figures of all rules exist, and that limits in us are of times.

    Raises:
        UsageError: A figure does not exist, or is no time.
    """
    known = figures_of(base.runs, other.runs)
    for rule in rules:
        if rule.figure not in known:
            kind = re.match(r"[^:.]*[:.]?", rule.figure)[0]  # type: ignore[index]
            similar = [name for name in known if name.startswith(kind)] or [name for name in known if ":" not in name]
            named = ", ".join(similar[:_MOST_NAMED]) + (", ..." if len(similar) > _MOST_NAMED else "")
            raise UsageError(f"Neither side has a figure {rule.figure!r}.", f"There are: {named}.")
        if rule.share is None and not is_time(rule.figure):
            raise UsageError(
                f"{rule.figure} is not a time, but {rule.text!r} limits it in us.", "Write the limit in %."
            )
