"""Report of a profile: views by worker, as one JSON envelope or as text pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.tables import Report
from tpuprof_tui.formats.units import clock_text
from tpuprof_tui.model import Lane, Problem, Profile
from tpuprof_tui.model.group import Worker
from tpuprof_tui.model.profile import time_of_day
from tpuprof_tui.model.view import View

from .answer import Answer, Column, Table, Target
from .as_json import answer_record, exact_us, us
from .as_text import answer_report
from .registry import answer

#: Maximum number of workers for which text has a page each.
_FEW: Final = 8
_WHOLE: Final = "The list of recordings is not narrowed by range, step, filter and scope."
_OWN_WINDOW: Final = "Sessions have a clock and a window of their own; figures do not count the time between them."


def workers_of(profile: Profile) -> tuple[Worker, ...]:
    """The workers of a profile as its source defines them, else a single one."""
    found = (_one_worker(profile),) if profile.workers is None else profile.workers
    redactor = profile.redactor
    if redactor is None:
        return found
    return tuple(
        replace(each, key=redactor.text(each.key), name=redactor.text(each.name),
                files=tuple(map(redactor.text, each.files)))
        for each in found
    )  # fmt: skip


def _one_worker(profile: Profile) -> Worker:
    """A worker that comprises the whole profile."""
    path = Path(profile.path)
    files = sorted(file.name for file in path.iterdir() if file.is_file()) if path.is_dir() else [path.name]
    device = {"name": profile.device.chip, "clocks_mhz": dict(profile.device.clocks)}
    return Worker(profile.name, name=profile.name, files=tuple(files), devices=(device,),
                  hosts=not profile.vocabulary.hosts_apart)  # fmt: skip


def recordings(query: Query) -> Answer:
    """Table of the recordings, if there are several."""
    profile, groups = query.profile, query.profile.groups
    several = len(groups.sessions) > 1
    listed = [each for each in workers_of(profile) if each.group >= 0]
    listed = listed if len(listed) > 1 else []
    rows: list[tuple[Any, ...]] = []
    for worker in listed:
        top, record = groups[worker.group], worker_record(profile, worker)
        paths = [Path(profile.path, name) for name in worker.files]
        size = sum(path.stat().st_size for path in paths if path.is_file())
        begun = (
            time_of_day(int(record["start"].partition(".")[0]) * 1000) if worker.begun_ns is None else worker.begun_ns
        )
        rows.append((
            top.run + 1, top.session + 1, worker.key, worker.rank, worker.rank_guessed,
            next((str(each["name"]) for each in worker.devices if each.get("name")), None),
            clock_text(begun)[:19] if begun is not None else None, round(record["duration_us"] * 1000), size or None,
        ))  # fmt: skip
    columns = (
        Column("run", "Run", "count"), Column("session", "Session", "count"), Column("worker", "Recording"),
        Column("rank", "Rank", "number", guess="rank_guessed"),
        Column("rank_guessed", "Rank guessed", "flag", shown=False), Column("device", "Device"),
        Column("begun", "Start"), Column("length_us", "Length", "duration"), Column("size", "Size", "bytes"),
    )  # fmt: skip
    rows.sort(key=lambda row: row[:2])
    keys = {worker.key: Target(scope=Scope(worker.group)) for worker in listed}
    table = Table.of_rows("recordings", "Recordings", columns, rows, target=lambda row: keys[rows[row][2]],
                          word="recording", ordered=True,
                          notes=(_OWN_WINDOW,) if several else ())  # fmt: skip
    narrowed = query.range is not None or query.full_filter or not query.scope.everything
    return Answer(tables=(table,) if rows else (), notes=(_WHOLE,) if narrowed else ())


def report_record(
    query: Query, views: Sequence[View], workers: Sequence[Worker], *, limit: int | None = None, offset: int = 0,
    sentence: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The JSON envelope: the sentence, workers, problems, and the views, by worker unless ``together``.

    Args:
        query: The profile and its selection.
        views: The views.
        workers: The workers.
        limit: Maximum number of rows per table; None: all.
        offset: Number of rows to skip.
        sentence: The answer in one sentence; None: not asked for.
    """
    profile = query.profile
    records: dict[str, Any] = {}
    for view in views:
        if view.all_workers:
            records[view.id] = answer_record(answer(view, query), 0, limit, offset)
        else:
            records[view.id] = {
                "workers": {
                    worker.key: answer_record(answer(view, of_worker(query, worker)), worker.offset_ns, limit, offset)
                    for worker in workers
                }
            }
    return {
        "source": profile.vocabulary.source,
        "path": profile.path if profile.redactor is None else profile.name,
        "sentence": sentence,
        "workers": [worker_record(profile, worker) for worker in workers],
        "problems": [problem_record(profile, problem) for problem in profile.problems],
        "views": records,
    }


def of_worker(query: Query, worker: Worker) -> Query:
    """The query restricted to a worker, unless its scope is restricted already."""
    return query if worker.group < 0 or not query.scope.everything else replace(query, scope=Scope(worker.group))


def _counted(profile: Profile, worker: Worker) -> list[Lane]:
    """The lanes of a worker with events: of the device and (if ``hosts``) of the host."""
    lanes = profile.lanes if worker.group < 0 else profile.lanes_of(worker.group)
    return [lane for lane in lanes if len(lane) and (worker.hosts or not lane.on_host)]


def _extent(profile: Profile, worker: Worker) -> tuple[int, int] | None:
    """First start and last end of a worker, ns; None: no events, or none with times."""
    if worker.window is not None:
        return worker.window
    lanes = [lane for lane in _counted(profile, worker) if profile.timed and not lane.is_aside]
    if not lanes:
        return None
    return min(int(lane["start"][0]) for lane in lanes), max(int(lane["end"].max()) for lane in lanes)


def extent_of(profile: Profile, workers: Sequence[Worker]) -> tuple[int, int]:
    """First start and last end of some workers, ns; (0, 0) without events."""
    extents = [extent for worker in workers if (extent := _extent(profile, worker)) is not None]
    return min((start for start, _ in extents), default=0), max((end for _, end in extents), default=0)


def total_ns(session: Session) -> int:
    """Total time of a profile: from the first start to the last end of its workers; of several sessions the sum."""
    return session.cache.get("total time", lambda: _total_ns(session.profile))


def _total_ns(profile: Profile) -> int:
    by_session: dict[int, list[Worker]] = {}
    for worker in workers_of(profile):
        by_session.setdefault(profile.groups.session(worker.group), []).append(worker)
    extents = (extent_of(profile, workers) for workers in by_session.values())
    return sum(end - start for start, end in extents)


def worker_record(profile: Profile, worker: Worker) -> dict[str, Any]:
    """Record of a worker; it counts events of the device and (if ``hosts``) the host, and lanes that have any."""
    counted = _counted(profile, worker)
    start, end = _extent(profile, worker) or (0, 0)
    return {
        "key": worker.key,
        "rank": worker.rank,
        "rank_guessed": worker.rank_guessed,
        "stage": worker.stage or None,
        "name": worker.name or worker.key,
        "span": worker.span,
        "files": list(worker.files),
        "devices": list(worker.devices),
        "events": sum(map(len, counted)),
        "lanes": len(counted),
        "start": exact_us(start + (profile.epoch_ns if worker.epoch_ns is None else worker.epoch_ns)),
        "offset_us": us(worker.offset_ns),
        "duration_us": (end - start) / 1000 if profile.timed else None,
    }


def problem_record(profile: Profile, problem: Problem) -> dict[str, Any]:
    """Record of a problem."""
    where = profile.groups.title(problem.group)
    return {
        "severity": problem.severity.word,
        "file": problem.file or None,
        "offset": problem.offset if problem.offset >= 0 else None,
        "group": where or None,
        "lane": problem.lane or None,
        "count": problem.count,
        "what": problem.what,
        "done": problem.done,
    }


def report_text(
    query: Query, views: Sequence[View], workers: Sequence[Worker], limit: int | None, offset: int = 0
) -> Iterator[Report]:
    """Text pages: one per view and worker; with no or many workers one per view."""
    together = not workers or (query.scope.everything and _FEW < len(workers) == len(workers_of(query.profile)))
    for view in views:
        title = f"{query.vocabulary.say(view.title)}{query.step_text()}"
        pages = [(title, query)] if together or view.all_workers else [
            (f"{title}: {worker.key}" if len(workers) > 1 else title, of_worker(query, worker)) for worker in workers
        ]  # fmt: skip
        for heading, asked in pages:
            page = answer_report(heading, answer(view, asked), limit, offset)
            yield replace(page, tables=tuple(replace(table, view=view.id) for table in page.tables))
