"""Evaluates the conditions of rules: tests on written options and on the context of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

#: Conditions on the context: key in the table, attribute of `Context`.
_CIRCUMSTANCES: Final = {"modes": "mode", "frameworks": "framework"}


class Context(Struct, frozen=True):
    """Context of a run; None or empty values are unknown."""

    mode: str | None = None  #: "training" or "inference"
    product: str | None = None  #: Key of a product in the tables
    framework: str | None = None  #: Framework of training or inference
    dynamic: bool = False  #: Whether shapes are dynamic
    here: bool = False  #: Whether paths refer to this machine
    records: int = 0  #: Largest number of records of an engine in an earlier capture; 0: unknown


def subjects(test: Mapping[str, Any], kind: str, values: Mapping[str, Any], context: Context) -> list[dict[str, Any]]:
    """Evaluates the condition of a rule; returns an empty list if it does not hold.

    If it holds, returns the tests of ``each`` that hold, or one empty entry if the rule has no ``each``.

    Keys of ``test``: ``kinds``, ``modes`` (null: not given), ``frameworks``, ``dynamic``; ``all``, ``any``, ``no`` and
    ``each``, lists of tests; ``differ``, two options that are both written, with different values.
    """
    if kind not in test.get("kinds", (kind,)) or (test.get("dynamic") and not context.dynamic):
        return []
    if any(getattr(context, name) not in test[key] for key, name in _CIRCUMSTANCES.items() if key in test):
        return []
    if not all(passes(each, values, context) for each in test.get("all", ())):
        return []
    if "any" in test and not any(passes(each, values, context) for each in test["any"]):
        return []
    if any(passes(each, values, context) for each in test.get("no", ())):
        return []
    if "differ" in test and not _differ(test["differ"], values):
        return []
    if "each" not in test:
        return [{}]
    return [each for each in test["each"] if passes(each, values, context)]


def passes(test: Mapping[str, Any], values: Mapping[str, Any], context: Context) -> bool:
    """Whether an option passes a test.

    Keys of ``test``: ``option``; ``is``, allowed values (null: not written); ``not``, excluded values; ``without``,
    an option that must not be written; ``products``; ``below``, an attribute of the context that the number must not
    exceed. Without ``is`` an option passes with any value if it is written.
    """
    name = test["option"]
    if name not in values:
        return "is" in test and None in test["is"]
    value = values[name]
    if "is" in test and not any(_same(value, other) for other in test["is"] if other is not None):
        return False
    if any(_same(value, other) for other in test.get("not", ())):
        return False
    if test.get("without") in values or ("products" in test and context.product not in test["products"]):
        return False
    return "below" not in test or _number(value) <= getattr(context, test["below"])


def _differ(pair: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    first, second = (values.get(name, pair) for name in pair["options"])
    if first is pair or second is pair:
        return False
    meant = [pair["same"].get(value, value) if isinstance(value, str) else value for value in (first, second)]
    return not _same(*meant)


def _same(one: object, other: object) -> bool:
    """Equality including type: distinguishes True from 1, and an unquoted number from a text."""
    return type(one) is type(other) and one == other


def _number(value: object) -> float:
    """Converts a decimal value of any type to a number; infinity for anything else."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else float("inf")


def value_text(value: object, most: int = 60) -> str:
    """Formats a value for a sentence: texts in quotes, truncated to ``most`` characters."""
    text = json.dumps(value, ensure_ascii=False) if type(value) is str else str(value)
    return text if len(text) <= most else f"{text[: most - 2]}…{text[-1]}"
