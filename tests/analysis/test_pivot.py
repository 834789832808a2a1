"""Frames and pivot tables against sums computed row by row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tpuprof_tui.analysis.pivot import (
    Frame,
    any_true,
    count_true,
    key,
    least,
    mean,
    mean_known,
    most,
    per,
    pivot,
    quotient,
    rows,
    share,
    total,
    total_known,
    weighted_mean,
)
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.catalog import open_profile

SAMPLES = Path(__file__).parents[2] / "samples"
NAMES = ("add", "mul", "copy")


def frame_of(count: int, seed: int) -> tuple[Frame, list[dict[str, Any]]]:
    """A frame of random rows, and the rows as records."""
    choose = random.Random(seed)
    records = [{"name": choose.randrange(-1, 3), "core": choose.randrange(3), "length": choose.randrange(100),
                "bytes": choose.choice((INT_MISSING, 8, 64)), "ratio": choose.choice((float("nan"), -1.0, 0.25, 0.75)),
                "late": choose.random() < 0.3} for _ in range(count)]  # fmt: skip
    types = {"name": np.int32, "ratio": np.float64, "late": np.bool_}
    columns = {name: np.array([record[name] for record in records], types.get(name, np.int64))
               for name in ("name", "core", "length", "bytes", "ratio", "late")}  # fmt: skip
    return Frame(columns, {"name": NAMES}), records


@pytest.mark.parametrize("seed", range(20))
def test_figures_equal_those_of_each_group_of_rows(seed: int) -> None:
    frame, records = frame_of(seed * 7, seed)
    figures = {
        "name": key("name", None), "core": key("core"), "rows": rows, "total": total("length"),
        "late": total("length", "late"), "known": total_known("bytes"), "most": most("bytes"), "least": least("bytes"),
        "mean": mean("length"), "mean_known": mean_known("bytes"),
        "any": any_true("late"), "count": count_true("late"), "per": per(total("length"), 4),
        "share": share("length"), "ratio": quotient(total("bytes"), total("length")),
        "weighted": weighted_mean("ratio", "length"),
    }  # fmt: skip
    found = pivot(frame, ["name", "core"], figures, ["-total", "name", "core"])
    groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["name"], record["core"]), []).append(record)
    every = sum(record["length"] for record in records)
    wanted = []
    for (name, core), members in groups.items():
        lengths = [record["length"] for record in members]
        sizes = [record["bytes"] for record in members if record["bytes"] != INT_MISSING]
        known = [record for record in members if record["ratio"] >= 0]
        product = sum(record["ratio"] * record["length"] for record in known)
        wanted.append((
            NAMES[name] if name >= 0 else None, core, len(members), sum(lengths),
            sum(record["length"] for record in members if record["late"]), sum(sizes) if sizes else None,
            max(sizes, default=None), min(sizes, default=None), sum(lengths) / len(lengths),
            sum(sizes) / len(sizes) if sizes else None,
            any(record["late"] for record in members), sum(record["late"] for record in members), sum(lengths) / 4,
            sum(lengths) / every if every else None, sum(sizes) / sum(lengths) if sum(lengths) else 0,
            product / sum(lengths) if known and sum(lengths) else None,
        ))  # fmt: skip
    wanted.sort(key=lambda row: (-row[3], row[0] is not None, row[0], row[1]))
    assert len(found) == len(wanted)
    for row, expected in zip(found, wanted, strict=True):
        assert row == pytest.approx(expected, nan_ok=True)


def test_changed_texts_share_a_code_where_they_are_equal() -> None:
    frame = Frame({"name": np.array([0, 1, -1, 2, 0], np.int32)}, {"name": ("a(1)", "a(2)", "b")})
    short = frame.with_texts("short", lambda text: text[0], "name")
    table = pivot(short, ["short"], {"name": key("short", None), "calls": rows}, ["-calls", "name"])
    assert table == [("a", 3), (None, 1), ("b", 1)]
    assert pivot(short.take(short["short"] >= 0), ["short"], {"calls": rows}, ["-calls"]) == [(3,), (1,)]


def test_missing_figures_are_sorted_as_0_where_they_fall() -> None:
    frame = Frame({"core": np.array([0, 1, 2]), "bytes": np.array([INT_MISSING, 8, INT_MISSING])}, {})
    found = pivot(frame, ["core"], {"core": key("core"), "bytes": total_known("bytes")}, ["-bytes", "core"])
    assert found == [(1, 8), (0, None), (2, None)]


def test_without_steps_there_is_no_mean_per_step() -> None:
    frame, _ = frame_of(5, 1)
    assert {row[0] for row in pivot(frame, ["core"], {"per": per(rows, 0)}, [])} == {None}


def test_events_follow_scope_range_filter_and_step() -> None:
    profile = open_profile(SAMPLES / "aks_decode_mode1")
    query = query_of(profile)
    every = query.events(("name", "engine", "core", "start", "end", "duration", "lane", "row"))
    assert len(every) == profile.event_count
    assert int(every["duration"].sum()) == sum(int((lane["end"] - lane["start"]).sum()) for lane in profile.lanes)
    middle = (profile.start_ns + profile.end_ns) // 2
    halves = [query_of(profile, range=part).events(("name",))
              for part in ((profile.start_ns, middle), (middle, profile.end_ns))]  # fmt: skip
    before = int((every["start"] < profile.start_ns).sum())
    assert sum(map(len, halves)) == len(every) - before
    late = query_of(profile, range=(middle, profile.end_ns)).events(("name", "lane", "row"), reaching=True)
    inside = every.take((every["start"] >= middle) | (every["end"] > middle))
    assert late["lane"].tolist() == inside["lane"].tolist()
    assert late["row"].tolist() == inside["row"].tolist()
    unit = profile.groups.units[0]
    of_unit = query_of(profile, scope=Scope(unit), filter="engine=GDMA").events(("engine", "core"))
    assert len(of_unit)
    assert {of_unit.texts["engine"][code] for code in of_unit["engine"].tolist()} == {"GDMA"}
    assert set(of_unit["core"].tolist()) == {profile.groups[unit].number}
    with pytest.raises(KeyError):
        query.events(("no_such_column",))
