"""Answers for programs: JSON objects that name the version of their form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

#: Version of the form of all answers, of whatever command: the second number grows when something is added, the first
#: when a key changes or goes. ``tpuprof help schema COMMAND`` prints the form.
SCHEMA: Final = "1.0"


def answer_text(answer: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """An answer as JSON text, ASCII alone, ``schema`` first.

    What is no number in JSON (infinity, NaN) is null, what is none of JSON's types a text.
    """
    record = {"schema": SCHEMA, **answer} | {"schema": SCHEMA}
    try:
        return json.dumps(record, indent=indent, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(record), indent=indent, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
