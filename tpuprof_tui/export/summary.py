"""Where the time went, as tables for people: the headline first, then cores, engines, kernel functions, problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tpuprof_tui.analysis import (
    CoreFigures,
    Headline,
    HeadroomRow,
    LaneFigures,
    TopRow,
    build_indexes,
    headline,
    headroom,
    lane_figures,
    top,
)
from tpuprof_tui.formats.tables import MISSING, Report, Table, TimeUnit, clean, count_of, percent, size_text
from tpuprof_tui.model import Problem, Profile
from tpuprof_tui.model.vocabulary import NAMES

#: Rows of the lists of what took the time, and of problems.
TOP_ROWS: Final = 10
PROBLEM_ROWS: Final = 20
#: Said of a capture without hardware records.
NO_TIMES: Final = "No times: the capture holds commands and no hardware records (`tpuprof instructions` lists them)."
#: Stands before figures that rest on guesswork.
GUESSED: Final = "~"


def summary_report(profile: Profile) -> Report:
    """Everything worth knowing about where the time of a profile went."""
    profile = profile.device_part
    if not profile.timed:
        lines = (NO_TIMES, f"{count_of(len(profile.problems), 'problem')}; listed at the end.")
        return Report(title_line(profile), lines, (commands_table(profile), problems_table(profile)))
    indexes = build_indexes(profile)
    found = headline(profile, indexes)
    start, end = profile.start_ns, profile.end_ns
    unit = TimeUnit.for_span(found.total_ns)
    lanes = [lane_figures(index, start, end) for index in indexes]
    tables = [cores_table(found, unit), engines_table(profile, lanes, unit)]
    published = profile.vocabulary.entry("published_table")
    if published is not None:
        tables.append(published(profile))
    if profile.has(NAMES):
        tables.append(top_table("Kernel functions", top(profile, indexes, start, end, by="kernel", limit=None), unit))
        tables.append(top_table("Operations", top(profile, indexes, start, end, by="name", limit=None), unit))
        tables.append(lost_table("kernel function", headroom(profile, indexes, start, end, limit=None), unit))
        tables.append(lost_table("operation", headroom(profile, indexes, start, end, by="name", limit=None), unit))
    tables.append(problems_table(profile))
    return Report(title_line(profile), headline_lines(profile, found, unit), tuple(t for t in tables if t.rows))


def commands_table(profile: Profile) -> Table:
    """How many commands each lane holds, where nothing tells when they ran."""
    rows = tuple((clean(lane.title), f"{len(lane):,}") for lane in profile.lanes if len(lane))
    return Table("Commands without times", ("Lane", "Count"), rows, left=frozenset((0,)))


def title_line(profile: Profile) -> str:
    """Name, chip and kind of a capture."""
    parts = [clean(profile.device.chip), count_of(len(profile.cores), "core")]
    if profile.ports:
        parts.append(profile.vocabulary.word_of("ports").of(len(profile.ports)))
    lost = lost_text(profile)
    if lost:
        parts[-1] += f" ({lost} lost)"
    parts += [f"{profile.recording.name} ({profile.recording.meaning})"]
    parts.append(count_of(profile.instructions, "instruction" if profile.timed else "command"))
    return f"{clean(profile.name)}: {', '.join(parts)}"


def lost_text(profile: Profile) -> str:
    """Cores and ports that ran and of which nothing is there; empty without any."""
    words = profile.vocabulary
    found = ((words.unit, profile.lost_cores), (words.word_of("ports"), profile.lost_ports))
    texts = (
        f"{word.plural if len(some) > 1 else word.one} {', '.join(map(str, some))}" for word, some in found if some
    )
    return " and ".join(texts)


def headline_lines(profile: Profile, found: Headline, unit: TimeUnit) -> tuple[str, ...]:
    """Total time, busiest and idlest core, exposed transfer; and what to know before reading on."""
    if not found.instructions:
        return ("No instructions.",)
    mark = GUESSED if found.guessed else ""
    lines = [f"Total time        {unit.named(found.total_ns)}"]
    for label, core in (("Busiest core", found.busiest), ("Idlest core", found.idlest)):
        if core is not None:
            busy = f"busy {mark}{unit.named(core.busy)}, {mark}{percent(core.utilisation)}"
            lines.append(f"{label:17} core {core.core}: {busy}")
    if found.most_exposed is not None:
        most = found.most_exposed
        share = percent(most.exposed / found.total_ns if found.total_ns else 0.0)
        lines.append(f"Exposed transfer  core {most.core}: {mark}{unit.named(most.exposed)}, {mark}{share}")
    if found.guessed:
        lines.append(f"{GUESSED} This capture holds no commands: work and waits are told apart by guesswork.")
    if not profile.has(NAMES):
        lines.append(f"Names of kernel functions and operations need a capture of {profile.vocabulary.needs(NAMES)}.")
    if profile.problems:
        lines.append(f"{count_of(len(profile.problems), 'problem')}; they are listed at the end.")
    return tuple(lines)


def cores_table(found: Headline, unit: TimeUnit) -> Table:
    """One row per core: busy, compute, transfer, overlap, exposed, idle."""
    titles = ("Busy", "Compute", "Transfer", "Overlap", "Exposed", "Idle")
    return Table(
        title=f"Cores ({unit.name})",
        header=("Core", "Util", *titles),
        rows=tuple(_core_row(core, unit) for core in found.cores),
        notes=(
            "Busy: compute or transfer. Exposed: transfer without compute. Idle: no instruction at all.",
            "Util: busy over total time.",
        ),
    )


def _core_row(core: CoreFigures, unit: TimeUnit) -> tuple[str, ...]:
    mark = GUESSED if core.guessed else ""
    times = (core.busy, core.compute, core.transfer, core.overlap, core.exposed, core.idle)
    return (str(core.core), mark + percent(core.utilisation), *(mark + unit.text(time) for time in times))


def engines_table(profile: Profile, figures: Sequence[LaneFigures], unit: TimeUnit) -> Table:
    """One row per lane that has instructions."""
    rows = []
    for lane, each in zip(profile.lanes, figures, strict=True):
        if not len(lane):
            continue
        mark = GUESSED if each.guessed else ""
        times = (each.busy, each.wait, each.sync, each.idle)
        size = MISSING if each.bytes is None else size_text(each.bytes)
        speed = f"{each.bytes / each.busy:,.2f}" if each.bytes is not None and each.busy else MISSING
        texts = (mark + unit.text(time) for time in times)
        rows.append((clean(lane.title), f"{each.count:,}", mark + percent(each.utilisation), *texts, size, speed))
    return Table(
        title=f"Engines ({unit.name})",
        header=("Lane", "Count", "Util", "Busy", "Wait", "Sync", "Idle", "Moved", "GB/s"),
        rows=tuple(rows),
        left=frozenset((0,)),
        notes=("Count: instructions. GB/s: bytes moved over busy time.",),
        spare=("Sync", "Idle", "Moved", "Wait"),
    )


def top_table(title: str, rows: Sequence[TopRow], unit: TimeUnit) -> Table:
    """What took the time, most first; the rest as one row."""
    shown = [
        _top_row(clean(row.label), row.share, row.count, row.total_ns, row.max_ns, unit) for row in rows[:TOP_ROWS]
    ]
    rest = rows[TOP_ROWS:]
    if rest:
        label = f"({count_of(len(rest), 'other')})"
        counts, totals = sum(row.count for row in rest), sum(row.total_ns for row in rest)
        longest = max(row.max_ns for row in rest)
        shown.append(_top_row(label, sum(row.share for row in rest), counts, totals, longest, unit))
    header = ("Share", "Work", "Count", "Mean (ns)", "Max (ns)", "Name")
    return Table(f"{title} ({unit.name} of work, all engines)", header, tuple(shown), left=frozenset((5,)))


def _top_row(label: str, share: float, count: int, total: int, longest: int, unit: TimeUnit) -> tuple[str, ...]:
    return (percent(share), unit.text(total), f"{count:,}", f"{total / count:,.0f}", f"{longest:,}", label)


def lost_table(what: str, rows: Sequence[HeadroomRow], unit: TimeUnit) -> Table:
    """Where most time was lost against the chip's peak; no rows where nothing is known."""
    known = [row for row in rows if row.count]
    shown = [
        (unit.text(row.lost_ns), unit.text(row.ideal_ns), percent(row.ratio), f"{row.count:,}",
         f"{row.unknown:,}" if row.unknown else "", clean(row.label))
        for row in known[:TOP_ROWS]
    ]  # fmt: skip
    notes = [
        "Lost: time taken beyond what the chip's peak (cycles of the algorithm, bandwidth of the memory) asks for."
    ]
    if any(row.unknown for row in rows):
        notes.append("No peak: work whose time at the peak is not known; it counts nowhere else.")
    if len(known) > TOP_ROWS:
        notes.append(
            f"{count_of(len(known) - TOP_ROWS, 'other')} lost {unit.named(sum(r.lost_ns for r in known[TOP_ROWS:]))}."
        )
    header = ("Lost", "At peak", "Of peak", "Count", "No peak", "Name")
    title = f"Lost against the peak by {what} ({unit.name} of work, all engines)"
    return Table(title, header, tuple(shown), left=frozenset((5,)), notes=tuple(notes))


def problems_table(profile: Profile) -> Table:
    """What was odd in the capture, worst first."""
    ranked = sorted(profile.problems, key=lambda problem: -problem.severity)
    shown = ranked[:PROBLEM_ROWS]
    rest = len(ranked) - len(shown)
    return Table(
        title="Problems",
        header=("Severity", "Where", "What"),
        rows=tuple((problem.severity.word, _place(problem), _said(problem)) for problem in shown),
        left=frozenset((0, 1, 2)),
        notes=(f"{rest} more; `tpuprof info CAPTURE --json` lists all.",) if rest else (),
    )


def _place(problem: Problem) -> str:
    parts = [clean(problem.file)] if problem.file else []
    if problem.offset >= 0:
        parts.append(f"byte {problem.offset:,}")
    if problem.core >= 0 and not problem.file:
        parts.append(f"core {problem.core}")
    if problem.lane:
        parts.append(clean(problem.lane))
    return ", ".join(parts) or MISSING


def _said(problem: Problem) -> str:
    times = f" ({problem.count:,} times)" if problem.count > 1 else ""
    return clean(f"{problem.what}{times} {problem.done}".strip(), 300)
