"""View of the critical path: time on it by operation, scope and lane, and the possible gain from each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.critical_path import CriticalPath, PathPart, SlackSearch, critical_path, longest_off_path
from tpuprof_tui.analysis.links.dependencies import dependencies_of, may_have_dependencies
from tpuprof_tui.analysis.pivot import Frame, key, pivot, rows, total
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.cell_texts import text_of
from tpuprof_tui.formats.units import MISSING
from tpuprof_tui.model.uniques import distinct, uniques

from .answer import Answer, Column, Fact, Table, Target

Ints = npt.NDArray[np.int64]
#: Maximum number of events off the path listed with their slack.
_BESIDE: Final = 10
_WAITS, _GAPS, _HOST_GAPS = "(ends of waits)", "(nothing ran)", "(host, between events)"


def critical(query: Query) -> Answer:
    """Facts and tables of the path, whose parts add up to the window."""
    profile, words = query.profile, query.vocabulary
    start, end = query.window
    if end <= start:
        return Answer()
    path = path_of(query)
    assumed = int(path.length[path.assumed].sum())
    host, event = _on_host(query, path), path.part == PathPart.EVENT
    kinds = (("device", "Device", event & ~host), ("host", "Host", event & host),
             ("wait", "Ends of waits", path.part == PathPart.WAIT),
             ("gap", "Gaps", path.part == PathPart.GAP))  # fmt: skip
    facts = (
        Fact("window_us", "Window", end - start, "duration"),
        *(Fact(f"{key}_us", title, int(path.length[chosen].sum()), "duration",
               share=int(path.length[chosen].sum()) / (end - start)) for key, title, chosen in kinds),
        Fact("assumed_us", "Assumed", assumed, "duration", share=assumed / (end - start)),
        Fact("parts", "Parts", len(path), shown=False),
    )  # fmt: skip
    tables = [_table(query, path, "name", words.say("{Operations} on the path"), "operations")]
    if "kernel" in profile.strings:
        tables.insert(0, _table(query, path, "kernel", words.say("{Scopes} on the path"), "scopes"))
    tables.append(_units(query, path))
    tables.append(_off_path(query, path))
    tables.append(_segments(query, path))
    notes = ["Twice as fast: the most that can be saved, as another path may then be the longest."]
    if assumed:
        told = "" if may_have_dependencies(query.session) else " Dependencies are not known here."
        notes.append(words.say(f"Assumed:{told} Without a link, an event starts after the last end on its {{lane}} or "
                               "{unit}, and a wait ends with the last end."))  # fmt: skip
    if query.condition:
        notes.append(words.say("The path is that of all {events}: it is not narrowed by the filter."))
    if query.step is not None:
        notes.append(words.say(f"The path is that of all {{events}} in the time of the {words.step.one}, others' too."))
    return Answer(facts, tuple(tables), notes=tuple(notes))


def path_of(query: Query) -> CriticalPath:
    """The path of a query's window and scope, cached."""
    session = query.session

    def compute() -> CriticalPath:
        known = dependencies_of(session) if may_have_dependencies(session) else None
        lanes = None if query.scope.everything else session.lanes_in(query.scope)
        return critical_path(session.profile, known, *query.window, lanes, query.owners)

    return session.cache.get("critical path", compute, query.window, query.scope, limit=2)


def _on_host(query: Query, path: CriticalPath) -> npt.NDArray[np.bool_]:
    hosts = np.array([*(lane.on_host for lane in query.profile.lanes), False], np.bool_)
    return np.asarray(hosts[path.lane])


def _labels(query: Query, path: CriticalPath, key: str) -> tuple[Ints, list[str]]:
    """For each part an index into the texts of events, and these texts."""
    profile = query.profile
    texts: dict[str, int] = {}
    found = np.zeros(len(path), np.int64)
    events = path.part == PathPart.EVENT
    for number in uniques(path.lane[events]).tolist():
        rows = np.flatnonzero(events & (path.lane == number))
        lane = profile.lanes[number]
        codes = lane.take(key, path.row[rows]) if key in lane else np.full(len(rows), -1, np.int32)
        known, which = distinct(codes)
        names = [profile.text(key, code) if code >= 0 else MISSING for code in known.tolist()]
        found[rows] = np.array([texts.setdefault(name, len(texts)) for name in names], np.int64)[which]
    host = _on_host(query, path)
    for name, chosen in ((_WAITS, path.part == PathPart.WAIT), (_GAPS, (path.part == PathPart.GAP) & ~host),
                         (_HOST_GAPS, (path.part == PathPart.GAP) & host)):  # fmt: skip
        if bool(chosen.any()):
            found[chosen] = texts.setdefault(name, len(texts))
    return found, list(texts)


def _table(query: Query, path: CriticalPath, by: str, title: str, table_key: str) -> Table:
    label, names = _labels(query, path, by)
    columns = (
        Column("share", "Share", "share", bar=True), Column("total_us", "On path", "duration"),
        Column("count", "Count", "count", drop_first=2), Column("twice_us", "Twice as fast", "duration"),
        Column("twice_share", "Of window", "share", drop_first=1),
        Column("assumed_us", "Assumed", "duration", drop_first=3),
        Column("name", "Name"),
    )  # fmt: skip
    window, pauses = query.span, (_WAITS, _GAPS, _HOST_GAPS)
    sums = _by_label(path, label, names)
    told = [
        (ns / window, ns, count, *((None, None) if name in pauses else (-ns / 2, -ns / 2 / window)), assumed, name)
        for name, ns, count, assumed, _ in sums
    ]
    return Table.of_rows(table_key, title, columns, told, word=query.vocabulary.operation.one,
                         target=lambda row: _target(path, sums[row][4]))  # fmt: skip


def _by_label(path: CriticalPath, label: Ints, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """For each label: name, total ns, number of parts, assumed ns, index of the longest part; by ns descending."""
    by_length = np.argsort(path.length, kind="stable")[::-1]
    parts = Frame(
        {"label": label, "length": path.length, "assumed": path.assumed, "part": np.arange(len(path))}, {"label": names}
    )
    figures = {
        "name": key("label"),
        "ns": total("length"),
        "count": rows,
        "assumed": total("length", "assumed"),
        "longest": key("part"),
    }
    return pivot(parts.take(by_length), ("label",), figures, ("-ns", "name"))


def _units(query: Query, path: CriticalPath) -> Table:
    titles = [*map(query.profile.title_of, query.profile.lanes), MISSING]
    columns = (Column("lane", query.vocabulary.say("{Lane}")), Column("share", "Share", "share", bar=True),
               Column("total_us", "On path", "duration"), Column("count", "Parts", "count"))  # fmt: skip
    label = np.where(path.lane < 0, len(titles) - 1, path.lane).astype(np.int64)
    sums = _by_label(path, label, titles)
    return Table.of_rows("lanes", query.vocabulary.say("{Lanes} of the path"), columns,
                         [(name, ns / query.span, ns, count) for name, ns, count, _, _ in sums],
                         target=lambda row: _target(path, sums[row][4]))  # fmt: skip


def _target(path: CriticalPath, part: int) -> Target:
    if path.lane[part] >= 0 and path.part[part] == PathPart.EVENT:
        return Target(event=(int(path.lane[part]), int(path.row[part])))
    return Target(time=(int(path.start[part]), int(path.start[part] + path.length[part])))


def _off_path(query: Query, path: CriticalPath) -> Table:
    profile, session = query.profile, query.session
    start, end = query.window
    lanes = np.arange(len(profile.lanes)) if query.scope.everything else np.array(list(session.lanes_in(query.scope)))
    found = longest_off_path(profile, path, start, end, lanes, _BESIDE, query.owners).tolist()
    search = SlackSearch(profile, dependencies_of(session) if may_have_dependencies(session) else None, path, end)
    slack = [search.of(lane, row) for lane, row in found]
    columns = (
        Column("slack_us", "Slack", "duration"), Column("duration_us", "Duration", "duration"),
        Column("start_us", "Start", "time", drop_first=2), Column("lane", query.vocabulary.say("{Lane}"), drop_first=1),
        Column("at_least", "At least", "flag", shown=False), Column("assumed", "Assumed", "flag", drop_first=3),
        Column("name", "Name"),
    )  # fmt: skip
    rows = []
    for (lane, row), one in zip(found, slack, strict=True):
        begin, stop = session.span_of(lane, row)
        name = text_of(profile, profile.lanes[lane], "name", row) or MISSING
        rows.append(
            (one.ns, stop - begin, begin, profile.title_of(profile.lanes[lane]), one.at_least, one.assumed, name)
        )
    return Table.of_rows(
        "beside", query.vocabulary.say("Longest {events} not on the path"), columns, rows,
        target=lambda row: Target(event=tuple(found[row])),
        notes=("Slack: how much later it may end before the path grows.",) if rows else (),
    )  # fmt: skip


def _segments(query: Query, path: CriticalPath) -> Table:
    label, names = _labels(query, path, "name")
    titles = [*map(query.profile.title_of, query.profile.lanes), MISSING]
    columns = (Column("start_us", "Start", "time"), Column("duration_us", "Duration", "duration"),
               Column("part", "Part"), Column("lane", "Lane"), Column("name", "Name"),
               Column("assumed", "Assumed", "flag"))  # fmt: skip
    parts, lanes, told = (
        np.array(texts, object)[codes].tolist()
        for texts, codes in (([part.name.lower() for part in PathPart], path.part), (titles, path.lane), (names, label))
    )
    values: tuple[Any, ...] = (path.start, path.length, parts, lanes, told, path.assumed)
    return Table("segments", "Parts of the path", columns, values, shown=False, target=partial(_target, path))
