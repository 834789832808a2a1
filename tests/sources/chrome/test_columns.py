"""Columns of declared arguments, and codes of values."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tpuprof_tui.model import INT_MISSING
from tpuprof_tui.sources.chrome.columns import FLOAT, INTEGER, JSON, TEXT, ArgumentColumns, Codes

COLUMNS = ArgumentColumns(
    {"other": (INTEGER, "other")},
    number=(INTEGER, "new", "old"), share=(FLOAT, "share"), text=(TEXT, "text"), shape=(JSON, "shape"),
)  # fmt: skip
MEANT = (INT_MISSING, None, None, None)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ('{"new": 5, "old": 6, "share": 0.5, "text": "a", "shape": [1,  2]}', (5, 0.5, "a", b"[1,  2]")),
        ('{"old": "6", "share": 2, "text": "", "other": {}}', (6, 2.0, None, None)),
        ('{"new": 18446744073709551615, "share": "x", "text": 3, "shape": null}', (-1, None, None, b"null")),
        ("{}", MEANT),
        ("[1]", MEANT),
        ("{", MEANT),
        ('{"share": 1e13}', MEANT),
    ],
)
def test_arguments_become_columns_as_declared(arguments, meant):
    texts = Codes()
    given = [b'{"new": 1, "text": "a"}', arguments.encode(), b"null"]
    found = COLUMNS.of(COLUMNS.decoded([msgspec.Raw(each) for each in given]), texts)
    assert list(found) == ["number", "share", "text", "shape"]
    assert found["number"].tolist() == [1, meant[0], INT_MISSING]
    shares = [None if np.isnan(share) else share for share in found["share"]]
    assert shares == [None, meant[1], None]
    words = list(texts)
    for key, first, second in (("text", "a", meant[2]), ("shape", None, meant[3])):
        assert [words[code] if code >= 0 else None for code in found[key].tolist()] == [first, second, None]


def test_integers_beyond_int64_are_told():
    beyond = []
    COLUMNS.of([COLUMNS.struct(number=each) for each in (1, 1 << 63, 1 << 70)], Codes(), beyond)
    assert beyond == [1, 2]


def test_codes_are_in_order_of_first_use_whatever_the_values():
    codes = Codes()
    assert codes.of([("b", 1), ("a", 1), ("b", 1)]).tolist() == [0, 1, 0]
    assert codes.of([("b", 1), ([1], None), ("[1]", None)]).tolist() == [0, 2, 2]
