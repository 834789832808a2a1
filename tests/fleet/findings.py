"""Whether a data set of a fleet tells what was put into it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from captures import DRIFTED, NAMES, STEADY, Fleet

from tpuprof_tui.dataset import query


def check(fleet: Fleet, folder: Path, out: Path) -> dict[str, Any]:
    """Asks the data set for drift, outliers and damage; gives what it found, for people.

    Raises:
        AssertionError: It tells less, or more.
    """
    told: dict[str, Any] = {}
    every = {(day, device) for day in range(fleet.days) for device in range(fleet.devices)}
    with query.opened(out) as data:

        def ask(sql: str, *words: object) -> list[tuple[Any, ...]]:
            return list(query.run_sql(data, sql, words).rows)

        ((captures, distinct, claimed),) = ask("select count(*), count(distinct capture), sum(events) from captures")
        assert captures == distinct == len(every) - len(fleet.unreadable), (captures, distinct)
        ((events, tables),) = ask("select count(*), count(distinct capture) from events")
        assert (events, tables) == (claimed, captures), (events, claimed)
        told |= {"captures": captures, "events": events}
        # damage: what nothing could be read of, and what is cut off, no more and no less
        fatal = {path for (path,) in ask("select path from problems where severity = 'fatal'")}
        assert fatal == {str(fleet.path(folder, *each)) for each in fleet.unreadable}
        wrong = {path for (path,) in ask("select distinct path from problems where severity in ('error', 'warning')")}
        assert wrong == {str(fleet.path(folder, *each)) for each in fleet.cut}, wrong
        # the drift, on its day alone; what does not drift does not
        drift = query.trend(data, NAMES[DRIFTED])
        day, change = ([name for name, _ in drift.columns].index(each) for each in ("day", "change"))
        moved = {str(row[day]): row[change] for row in drift.rows if row[change] is not None}
        assert list(moved) == [fleet.day(fleet.drift)], moved
        steady = query.trend(data, NAMES[STEADY])
        assert not [row for row in steady.rows if row[change] is not None]
        told["drift"] = moved
        # the bad device and the odd capture before all that is sound
        found = query.outliers(data)
        path = [name for name, _ in found.columns].index("path")
        paths = [row[path] for row in found.rows]
        wanted = {str(fleet.path(folder, day, fleet.bad)) for day in range(fleet.days)}
        wanted |= {str(fleet.path(folder, *each)) for each in (fleet.odd, *fleet.cut)}
        missed, more = wanted - set(paths), [each for each in paths if each not in wanted]
        told["outliers"] = {"of": len(wanted), "missed": len(missed), "more": len(more)}
        assert not missed - {str(fleet.path(folder, *each)) for each in fleet.cut}, sorted(missed)[:5]
        # figures of sound captures vary too: a few of a hundred may lie beyond 3.5 deviations
        assert len(more) <= max(1, captures // 20), more[:5]
        # what takes most time, by a sum of its own
        ((name, total),) = [row[1::3][:2] for row in list(query.top(data).rows)[:1]]
        ((summed,),) = ask("select sum(duration) / 1e6 from events where kernel = ? and role = 'work'", name)
        assert abs(total - summed) < 1e-6 * summed, (name, total, summed)
        told["top"] = name
    return told
