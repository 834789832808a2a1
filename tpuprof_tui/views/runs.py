"""Three and more runs side by side: each compared with a reference, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tpuprof_tui.analysis.compare.noise import Amount
from tpuprof_tui.analysis.compare.verdict import change_text, short_name
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report, Table
from tpuprof_tui.formats.units import TimeUnit, column_unit
from tpuprof_tui.model.view import View

from .comparing import Compared
from .diff import breakdown_title, diff_record, tells_something

#: Parts shown to people per view.
MOST_LISTED: Final = 10


def runs_record(runs: Sequence[Compared], views: Sequence[View], limit: int | None, offset: int) -> dict[str, Any]:
    """Record of the reference (``base``), and of each other run what a comparison with it says."""
    records = [diff_record(compared, views, limit, offset) for compared in runs]
    others = [{**record["other"], **{key: record[key] for key in ("verdict", "views")},
               "problems": [each for each in record["problems"] if each["side"] == "other"]}
              for record in records]  # fmt: skip
    problems = [each for each in records[0]["problems"] if each["side"] == "base"]
    return {"source": records[0]["source"], "base": records[0]["base"], "problems": problems, "others": others}


def runs_reports(runs: Sequence[Compared], limit: int | None) -> Iterator[Report]:
    """The verdicts, and a table for each breakdown that all comparisons have: a column for each run, and its change."""
    names = _names(runs)
    titles = [f"{name}: {compared.verdict.headline}" for name, compared in zip(names[1:], runs, strict=True)]
    why = [f"Why {name}: {compared.verdict.why}" for name, compared in zip(names[1:], runs, strict=True)]
    paths = [runs[0].base.profile.path, *(compared.other.profile.path for compared in runs)]
    where = [f"{name}  {line_text(path)}" for name, path in zip(names, paths, strict=True)]
    stepped = all(compared.verdict.step is not None for compared in runs)
    by_run = [(compared, _parts(compared, stepped=stepped)) for compared in runs]
    views = [view for view in by_run[0][1]
             if all(tells_something(compared, view, parts.get(view, ())) for compared, parts in by_run)]  # fmt: skip
    tables = (_totals(runs, names), *(_part_table(runs, names, view, limit, stepped=stepped) for view in views))
    yield Report("; ".join(titles), (*why, "", *where), tables)


def _names(runs: Sequence[Compared]) -> list[str]:
    """The reference and the other runs by name; by number where names are equal."""
    names = [short_name(profile.name) for profile in (runs[0].base.profile, *(each.other.profile for each in runs))]
    names[0] += " (reference)"
    return [name if names.count(name) == 1 else f"{name} #{number}" for number, name in enumerate(names, 1)]


def _parts(compared: Compared, *, stepped: bool) -> dict[str, Any]:
    """Work by view: of a step only if all runs have steps."""
    return compared.step_parts if stepped else compared.contributors


def _totals(runs: Sequence[Compared], names: Sequence[str]) -> Table:
    rows = []
    unit = column_unit(max(max(each.total.base, each.total.other) for each in runs))
    for title, amounts in (
        ("Step", [compared.verdict.step for compared in runs]),
        ("Total", [compared.total for compared in runs]),
        ("Work per step", [None if each.verdict.step is None else each.step_work for each in runs]),
        ("Work", [compared.work for compared in runs]),
    ):
        known = [amount for amount in amounts if amount is not None]
        if len(known) == len(runs):
            rows.append((title, *_cells(known, unit)))
    return Table("Runs", (f"Time ({unit.name})", *_header(names)), tuple(rows), left=frozenset((0,)))


def _part_table(
    runs: Sequence[Compared], names: Sequence[str], view: str, limit: int | None, *, stepped: bool
) -> Table:
    by_run = [{part.name: part for part in _parts(compared, stepped=stepped)[view]} for compared in runs]
    bases = {name: part.base for parts in by_run for name, part in parts.items()}
    rows = [[parts.get(name, Amount(name, base, 0, 1, 0)) for parts in by_run] for name, base in bases.items()]
    rows = [row for row in rows if any(part.delta for part in row)]
    rows.sort(key=lambda row: -max(abs(part.delta) for part in row))
    shown = rows[: MOST_LISTED if limit is None else limit]
    a_step = runs[0].verdict.a_step if stepped else ""
    unit = column_unit(max((max(part.base, part.other) for row in shown for part in row), default=0))
    return Table(
        f"{breakdown_title(runs[0], view)} ({unit.name} of work{a_step})", ("Name", *_header(names)),
        tuple((short_name(row[0].name), *_cells(row, unit)) for row in shown), left=frozenset((0,)),
        more=len(rows) - len(shown), notes=(f"{len(rows) - len(shown):,} more; --limit shows them.",)
        if len(rows) > len(shown) else (), view=view,
    )  # fmt: skip


def _header(names: Sequence[str]) -> tuple[str, ...]:
    return (names[0], *(text for name in names[1:] for text in (name, "Change")))


def _cells(amounts: Sequence[Amount], unit: TimeUnit) -> Iterator[str]:
    """The reference, then each other run and its change."""
    yield unit.number(amounts[0].base)
    for amount in amounts:
        yield unit.number(amount.other)
        yield change_text(amount).strip(" ()") or ("new" if amount.other else "")
