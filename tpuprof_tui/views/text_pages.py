"""Text pages composed of views: ``summary`` (where the time went) and ``info`` (metadata of a profile)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query, query_of
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.tables import Report, Table
from tpuprof_tui.formats.units import MISSING, clock_text, plural, time_text
from tpuprof_tui.model import Profile
from tpuprof_tui.model.vocabulary import Word

from .as_text import ROWS as ROWS_OF_TABLES
from .as_text import fact_lines, text_tables
from .cells import NAME_WIDTH
from .info import memory_record
from .registry import answer, view_of, views_of
from .report import total_ns
from .sentence import sentence

#: Maximum rows of a table in the summary, and of problems.
ROWS: Final = 10
PROBLEM_ROWS: Final = 20
#: Message for a profile without times.
NO_TIMES: Final = "No times are known; `tpuprof instructions` lists the {events}."
#: The view whose facts are at the top of the page.
_HEAD: Final = "overview"


def summary_report(profile: Profile, step: int | None = None, limit: int = ROWS) -> Report:
    """Summary of a profile or of one step: overview, then the ``in_summary`` views with ``limit`` rows per table."""
    query = query_of(profile, step=step)
    title = f"{title_line(profile)}{query.step_text()}"
    count = len(profile.problems)
    problems = (f"{plural(count, 'problem')}; listed at the end.",) if count else ()
    if not profile.timed:
        return Report(
            title,
            (profile.vocabulary.phrase("no_times_text", NO_TIMES), *problems),
            (commands_table(profile), *_problems(query)),
        )
    found = answer(view_of(profile.vocabulary, _HEAD), query)
    tables: list[Table] = []
    # the recordings of one session differ by their rank alone
    elsewhere = (_HEAD, "problems", *(("recordings",) if len(profile.groups.sessions) < 2 else ()))
    for view in views_of(profile.vocabulary):
        if view.in_summary and view.id not in elsewhere:
            told = text_tables(answer(view, query), limit, hint="tpuprof report lists all")
            tables += [replace(table, view=view.id) for table in told]
    begun = tuple(f"{label}  {text}" for label, text in _begun(profile))
    lines = (*fact_lines(found), *begun, *found.notes, *problems)
    return Report(title, lines, (*tables, *_problems(query)), str(sentence(query)))


def _begun(profile: Profile) -> Iterator[tuple[str, str]]:
    """Wall-clock time of the start of the recording; empty if unknown."""
    if profile.wall_ns is not None and profile.timed:
        yield "Recorded from", clock_text(profile.wall_ns + profile.start_ns)


def info_report(
    profile: Profile, *, memory: bool = False, limit: int | None = ROWS_OF_TABLES, offset: int = 0
) -> Report:
    """Metadata of a profile, with ``limit`` rows of lanes and problems (None: all) from ``offset``, and its memory."""
    query = query_of(profile)
    device, words = profile.device, profile.vocabulary
    ports, count, total = words.group_kind("ports"), len(profile.scopes), total_ns(query.session)
    facts = [
        ("Path", line_text(profile.path, 4096)),
        ("Source", words.title),
        ("Chip", line_text(device.chip, NAME_WIDTH) or MISSING),
        ("Arch", MISSING if device.arch is None else line_text(device.arch, NAME_WIDTH)),
        ("Mode", f"{profile.recording.short or profile.recording.name} ({profile.recording.meaning})"),
        ("Clocks", ", ".join(f"{name} {mhz:g} MHz" for name, mhz in device.clocks) or MISSING),
        (words.say("{Units}"), numbered_text(words.unit, profile.groups.numbers)),
        *([(ports.title, numbered_text(words.word_of("ports"), profile.numbers_in("ports")))] if ports else []),
        *([("Lost", lost)] if (lost := lost_text(profile)) else []),
        (words.say("{Events}"), _by_side(profile, f"{profile.device_part.event_count:,}")),
        *([("Launches", f"{count:,}" if count else "none recorded")] if count or "scope" in words.schema else []),
        ("Total time", time_text(total) if profile.timed else MISSING),
        *([("Device time", time_text(profile.device_ns))] if profile.timed and profile.device_ns != total else []),
        *_begun(profile),
    ]
    width = max(len(label) for label, _ in facts)
    lines = tuple(f"{label:{width}}  {text}" for label, text in facts)
    tables: list[Table] = (
        [*text_tables(answer(view_of(words, "lanes"), query), limit, offset)][:1]
        if profile.timed
        else [commands_table(profile)]
    )
    for view in views_of(words):
        if view.id in ("recordings", "problems"):
            tables += text_tables(answer(view, query), limit, offset)
    if memory:
        tables.append(_memory_table(profile))
    return Report(line_text(profile.name, NAME_WIDTH), lines, tuple(table for table in tables if table.rows))


def numbered_text(word: Word, numbers: Sequence[int]) -> str:
    """Count and numbers of units as text, in which no number reads as a count: ``3 cores (cores 0, 1, 4)``."""
    if not numbers:
        return MISSING
    listed = list(dict.fromkeys(number for number in numbers if number >= 0))
    runs = np.split(np.array(listed), np.flatnonzero(np.diff(listed) != 1) + 1) if listed else []
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}{' to ' if len(run) > 2 else ', '}{run[-1]}" for run in runs]
    noun = word.one if len(listed) == 1 else word.plural
    return f"{word.of(len(numbers))} ({noun} {', '.join(texts)})" if texts else word.of(len(numbers))


def commands_table(profile: Profile) -> Table:
    """Number of events per lane, for profiles without times."""
    word = profile.vocabulary.event_word(timed=False).plural
    rows = tuple(
        (line_text(profile.title_of(lane), NAME_WIDTH), f"{len(lane):,}") for lane in profile.lanes if len(lane)
    )
    return Table(f"{word[:1].upper()}{word[1:]} without times", ("Lane", "Count"), rows, left=frozenset((0,)))


def title_line(profile: Profile) -> str:
    """Name, chip and kind of a profile, in one line."""
    words, device = profile.vocabulary, profile.device_part
    chip = line_text(profile.device.chip, NAME_WIDTH)
    parts = [*([chip] if chip else []), words.unit.of(profile.groups.device_count)]
    recorded = sum(group.parent < 0 and group.kind == "rank" for group in profile.groups)
    parts += [plural(recorded, "recording")] if len(profile.groups.sessions) > 1 else []
    ports = profile.numbers_in("ports")
    if ports:
        parts.append(words.word_of("ports").of(len(ports)))
    lost = lost_text(profile)
    if lost:
        parts[-1] += f" ({lost} lost)"
    parts.append(f"{profile.recording.name} ({profile.recording.meaning})")
    parts.append(_by_side(profile, words.event_word(timed=profile.timed).of(device.event_count)))
    return f"{line_text(profile.name, NAME_WIDTH)}: {', '.join(parts)}"


def _by_side(profile: Profile, count: str) -> str:
    host = sum(len(lane) for lane in profile.lanes if lane.on_host and not lane.is_aside)
    parts = [f"{count} on the device", f"{host:,} on the host"] if host else [count]
    return ", ".join((*parts, *_defects(profile)))


def _defects(profile: Profile) -> Iterator[str]:
    aside = sum(len(lane) for lane in profile.lanes if lane.is_aside)
    records = [each for each in profile.problems if not each.launches]
    for number, word in (
        (aside, "set aside"), (sum(each.lost for each in records) - aside, "lost"),
        (sum(each.repaired for each in records), "repaired"),
    ):  # fmt: skip
        if number > 0:
            yield f"{number:,} {word}"
    lost, launches = (sum(getattr(each, key) for each in profile.problems if each.launches)
                      for key in ("lost", "launches"))  # fmt: skip
    if lost:
        yield f"{lost:,} of {launches:,} launches not recorded"


def lost_text(profile: Profile) -> str:
    """Groups that ran but whose data is missing, as text; empty: none."""
    texts = []
    for kind in dict.fromkeys(group.kind for group in profile.groups if group.lost):
        numbers = profile.groups.lost_numbers(kind)
        word = profile.vocabulary.word_of(kind)
        texts.append(f"{word.plural if len(numbers) > 1 else word.one} {', '.join(map(str, numbers))}")
    return " and ".join(texts)


def _problems(query: Query) -> list[Table]:
    found = answer(view_of(query.vocabulary, "problems"), query)
    told = text_tables(found, PROBLEM_ROWS, hint="`tpuprof info CAPTURE --json` lists all")
    return [replace(table, view="problems") for table in told]


def _memory_table(profile: Profile) -> Table:
    memory = memory_record(profile)
    parts = {f"columns of {line_text(kind, NAME_WIDTH)}": size for kind, size in memory["columns"].items()}
    parts["the process at most"] = memory["process"]
    return Table(
        "Memory",
        ("Held by", "Bytes"),
        tuple((what, f"{size:,}") for what, size in parts.items()),
        frozenset((0,)),
        ("The process: with what the explorer's first screen needs.",),
    )
