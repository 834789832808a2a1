"""JSON output for programs: objects with the version of their schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

#: Schema version of the JSON output of all commands: minor version for additions, major version for changed or removed
#: keys. ``tpuprof help schema COMMAND`` prints the schema.
SCHEMA: Final = "3.0"


def answer_text(answer: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Serializes an answer as ASCII JSON, with ``schema`` first.

    Infinity and NaN become null; decimals become numbers, values of other types unknown to JSON strings.
    """
    record = {"schema": SCHEMA, **answer} | {"schema": SCHEMA}
    try:
        return json.dumps(record, indent=indent, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(record), indent=indent, allow_nan=False, default=_plain)


def _plain(value: Any) -> float | str | None:
    from decimal import Decimal

    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
