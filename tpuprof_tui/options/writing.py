"""Options as a line to paste."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from .tables import Kind

#: What JSON leaves as it is, yet steers a terminal, ends a line or is no UTF-8.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def line_of(kind: Kind, values: Mapping[str, Any], most: int | None = None) -> str:
    """Options in the form of their kind, without anything that a terminal or a shell would take for more.

    Arguments of a call that needs more than ``most`` columns stand on lines of their own.
    """
    if kind.form == "json":
        return f"export {kind.variable}={shlex.quote(json_text(values, separators=(',', ':')))}"
    if kind.form == "variables" and not set(values) & set(kind.positional):
        return "\n".join(f"export {name}={shlex.quote(str(value))}" for name, value in values.items())
    ordered = sorted(values.items(), key=lambda each: _place(kind, each[0]))
    arguments = [literal(value) if name in kind.positional else f"{name}={literal(value)}" for name, value in ordered]
    line = f"{kind.call}({', '.join(arguments)})"
    if most is None or len(line) <= most:
        return line
    return "\n".join([f"{kind.call}(", *(f"    {argument}," for argument in arguments), ")"])


def _place(kind: Kind, name: str) -> int:
    return kind.positional.index(name) if name in kind.positional else len(kind.positional)


def literal(value: Any) -> str:
    """A value of an argument."""
    return str(value) if not isinstance(value, str) or type(value) is not str else json_text(value)


def json_text(value: Any, **form: Any) -> str:
    """JSON that is safe to print; raises nothing for lone surrogates."""
    text = json.dumps(value, ensure_ascii=False, **form)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
