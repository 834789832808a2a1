"""The language of filters: what passes, what does not, and where a fault is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import make_lane, make_profile, session_of
from tpuprof_tui.analysis.selecting.filter_masks import emptying_condition
from tpuprof_tui.analysis.selecting.filters import FilterError, compile_filter, conditions_of, filter_keys
from tpuprof_tui.model import INT_MISSING, Strings
from tpuprof_tui.sources.sophgo.schema import COLUMNS
from tpuprof_tui.sources.sophgo.vocabulary import VOCABULARY

NAMES = Strings(["MM2_NN", "add", "wait_msg", "tensorLd"])
KERNELS = Strings(["rmsnorm_core", "two words"])
TYPES = Strings(["mm/mm2", "sys"])


@pytest.fixture(scope="module")
def profile():
    lane = make_lane(
        "GDMA",
        3,
        starts=[0, 1_000, 5_000, 20_000],
        ends=[500, 4_000, 19_000, 20_100],
        name=np.array([0, 1, 2, -1], np.int32),
        type=np.array([0, 0, 1, -1], np.int32),
        kernel=np.array([0, 1, 0, -1], np.int32),
        duration=np.array([500, 3_000, 14_000, 100]),
        bytes=np.array([1 << 20, 2048, 0, INT_MISSING]),
        ddr_bandwidth=np.array([30.0, 0.0, np.nan, 5.0]),
        l2_bandwidth=np.array([0.0, 12.0, np.nan, 90.0]),
    )
    return make_profile([lane], strings={"name": NAMES, "kernel": KERNELS, "type": TYPES, "engine": Strings(["GDMA"])})


def passing(profile, text: str) -> list[int]:
    return np.flatnonzero(compile_filter(text, profile)(profile.lanes[0])).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3]), ("dur>1us", [1, 2]), ("dur>=0.5us", [0, 1, 2]), ("dur<=500ns dur>100", [0]),
        ("name=mm2*", [0]), ("name=MM2*", [0]), ("name=Mm2*", []), ("name=dd", []), ("name=*dd", [1]),
        ("kernel=words", []), ("mm2", [0, 1]), ("MM2", [0]), ("Add", []), ("/^(add|wait)/", [1, 2]),
        ("name~msg$", [2]), ("name!=add & !name=mm2 & dur>0", [0, 2]), ("name!=add", [0, 2]),
        ("!name=add", [0, 2, 3]), ('kernel="two words"', [1]), ("kernel='two words' | dur>10us", [1, 2]),
        ("(kernel=rms* | add) dur<1us", [0]), ("!(add | mm2)", [2, 3]), ("bytes>=1MiB", [0]), ("bytes<1e6", [1, 2]),
        ("size=2,048", [1]), ("dur > 1 us", [1, 2]), ("dur>1 us and bytes<1 MiB", [1, 2]),
        ("name=mm2* or name=wait*", [0, 2]), ("name=mm2* OR dur > 10us", [0, 2]),
        ("not name=mm2* and dur>0", [1, 2, 3]), ("not (add or wait)", [0, 3]), ("name in mm2*, wait_msg", [0, 2]),
        ("not kernel in 'two words'", [0, 2, 3]), ("bytes in 2048, 0", [1, 2]), ("bytes=2048,0", [1, 2]),
        ("bytes!=2048,0", [0]), ("bytes=1,048,576", [0]), ("words", [1]), ('"or"', [0, 1, 2]), ('"and"', []),
        ("bw>20", [0]), ("bw<20", [1, 3]), ("type!=sys", [0, 1]), ("Data_unknown", []),
    ],
)  # fmt: skip
def test_rows_that_pass(profile, text: str, rows: list[int]) -> None:
    assert passing(profile, text) == rows


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("nokey=1", 0), ("dur>1us dur>5parsec", 8), ("add (dur>1us", 4), ("add )", 4), ("add | | add", 6), ("!", 0),
        ("add dur>", 8), ("name<3", 0), ("dur~x", 0), ("name~[", 0), ("(" * 80 + "add" + ")" * 80, 64),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_column(profile, text: str, column: int) -> None:
    with pytest.raises(FilterError) as error:
        compile_filter(text, profile)
    assert error.value.column == column


def test_a_missing_blank_is_told(profile) -> None:
    with pytest.raises(FilterError, match="blank is missing") as caught:
        compile_filter("dur>1name=add", profile)
    assert caught.value.column == 0


@pytest.mark.parametrize(("text", "parts", "empties"), [
    ("name=add dur>1us", ["name=add", "dur>1us"], "dur>1us"),
    ("name=nothing and dur>1us", ["name=nothing", "dur>1us"], "name=nothing"),
    ("name=mm2* dur>10us", ["name=mm2*", "dur>10us"], "dur>10us"),
    ("!(add | mm2) not dur>0", ["!(add | mm2)", "not dur>0"], "not dur>0"),
    ("nothing or nowhere", ["nothing or nowhere"], "nothing or nowhere"),
])  # fmt: skip
def test_what_leaves_nothing_is_named(profile, text, parts, empties) -> None:
    assert conditions_of(text) == parts
    assert emptying_condition(session_of(profile), text) == empties


def test_every_column_can_be_asked_for(profile) -> None:
    keys = filter_keys(VOCABULARY)
    for column in COLUMNS:
        assert keys[column.key] is column
        value = "x" if column.kind == "text" else "1"
        compile_filter(f"{column.key}={value}", profile)(profile.lanes[0])


def test_aliases_mean_one_column() -> None:
    seen: dict[str, str] = {}
    for column in COLUMNS:
        for name in (column.key, *column.aliases):
            assert seen.setdefault(name, column.key) == column.key


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_a_fault_inside_it(text: str) -> None:
    lane = make_lane("TIU", 0, starts=[0], ends=[1])
    profile = make_profile([lane])
    outcome = _mask_or_fault(text, profile, lane)
    if isinstance(outcome, int):
        assert 0 <= outcome <= len(text)
    else:
        assert outcome.shape == (1,)


def _mask_or_fault(text: str, profile, lane) -> np.ndarray | int:
    try:
        return compile_filter(text, profile)(lane)
    except FilterError as error:
        return error.column
