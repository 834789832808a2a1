"""One vocabulary of column names: the keys of the source's schema, wherever columns are named, with the same values."""

from __future__ import annotations

import io
import json
import math
import re

import numpy as np
import pytest
from every_source import NAMES, every_source

import tpuprof_tui
from tpuprof_tui.analysis.query import query_of
from tpuprof_tui.analysis.selecting.filters import compile_filter, filter_keys
from tpuprof_tui.export.table import known_columns, parse_columns, parse_sort, table_rows, write_parquet, write_table


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    with every_source(tmp_path_factory.mktemp("sources")) as found:
        yield found


@pytest.fixture(scope="module", params=NAMES)
def profile(request, paths):
    path, *options = paths[request.param]
    return tpuprof_tui.open_profile(path, **({"trace_file": options[1]} if options else {}))


@pytest.fixture(scope="module")
def frame(profile):
    return profile.to_pandas(counters=True)


def plain(value):
    """A value of a data frame; None where nothing is known."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str) else None


def test_data_frame_parquet_and_json_lines_hold_the_same(profile, frame):
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = known_columns(profile)
    rows = table_rows(query_of(profile))
    packed, lines = io.BytesIO(), io.BytesIO()
    write_parquet(rows, columns, packed)
    write_table(rows, columns, lines, "jsonl")
    table = parquet.read_table(packed)
    objects = [json.loads(line) for line in lines.getvalue().splitlines()]
    keys = [column.key for column in columns]
    assert list(objects[0]) == table.column_names == keys
    assert set(frame.columns) == {"lane", *keys}
    assert len(frame) == len(objects) == table.num_rows
    for column in columns:
        framed = [plain(value) for value in frame[column.key].astype(object).tolist()]
        assert table[column.key].to_pylist() == framed, column.key
        rounded = [round(value, column.decimals) if isinstance(value, float) else value for value in framed]
        assert [each[column.key] for each in objects] == rounded, column.key


def test_a_filter_finds_what_the_data_frame_holds(profile, frame):
    every, tried = np.arange(len(frame)), 0
    for column in known_columns(profile):
        held = [plain(value) for value in frame[column.key].astype(object).tolist()]
        value = next((each for each in held if each is not None and '"' not in str(each)), None)
        if value is None:
            continue
        if column.kind == "text":
            # capitals count where there are some
            same = str if value != value.lower() else str.lower
            goal, wanted = f'~"^{re.escape(value)}$"', [each is not None and same(each) == value for each in held]
        else:
            goal, wanted = f">={value!r}", [each is not None and each >= value for each in held]
        tried += 1
        for name in dict.fromkeys((column.key, column.key.upper(), *column.aliases)):
            if name.lower() in profile.vocabulary.either:
                continue
            predicate = compile_filter(f"{name}{goal}", profile)
            found = np.concatenate([predicate(lane) for lane in profile.lanes])
            assert every[found].tolist() == every[wanted].tolist(), (name, goal)
    assert tried > 5


def test_every_name_means_one_column_everywhere(profile):
    vocabulary = profile.vocabulary
    names = filter_keys(vocabulary)
    for column in vocabulary.columns:
        assert names[column.key.lower()] is column
        for name in (column.key, *column.aliases, *filter(None, [column.file_name])):
            meant = names[name.lower()]
            assert meant.key in (column.key, name.lower()), f"{name} is {meant.key}"
            assert parse_columns(name, vocabulary) == (meant,)
            assert parse_sort(name, vocabulary).key == meant.key
    owners = [(alias.lower(), column.key) for column in vocabulary.columns for alias in column.aliases]
    assert len({alias for alias, _ in owners}) == len(owners)
    keys = {column.key for column in vocabulary.columns}
    assert not [owner for alias, owner in owners if alias in keys and alias != owner]


def test_each_lane_gives_its_own_events(profile, frame):
    for number, lane in enumerate(profile.lanes):
        own = lane.to_pandas(counters=True)
        whole = frame[frame["lane"] == number].reset_index(drop=True)
        assert len(own) == len(whole) == len(lane)
        for key in own.columns:
            ours, all_of_them = own[key].astype(object).tolist(), whole[key].astype(object).tolist()
            assert list(map(plain, ours)) == list(map(plain, all_of_them)), key
        assert whole.drop(columns=["lane", *own.columns]).isna().all(axis=None)
