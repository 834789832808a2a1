"""A step as a selection: a condition of the filter, put into its text and found there."""

from __future__ import annotations

from .filters import FilterError, tokens_of

#: The condition's key.
KEY = "step"


def chosen_step(text: str) -> int | None:
    """The number of the step that a filter asks for beside other things; None where it asks for none."""
    return split_step(text)[0]


def with_step(text: str, number: int | None) -> str:
    """A filter that asks for a step, in place of another one; None: for no step any more."""
    _, rest = split_step(text)
    if number is None:
        return rest
    if not rest:
        return f"{KEY}={number}"
    return f"{KEY}={number} ({rest})" if _has_or(rest) else f"{KEY}={number} {rest}"


def split_step(text: str) -> tuple[int | None, str]:
    """The step, and the filter without it."""
    text = text.strip()
    try:
        tokens = tokens_of(text)
    except FilterError:
        return None, text
    if _has_or(text):
        return None, text
    depth = 0
    for place, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        negated = place > 0 and tokens[place - 1].kind == "!"
        if depth or negated or token.kind != "condition" or token.key.lower() != KEY:
            continue
        if token.op == "=" and token.text.isdecimal():
            rest = f"{text[: token.place].rstrip()} {text[token.end :].lstrip()}".strip()
            return int(token.text), rest
    return None, text


def _has_or(text: str) -> bool:
    """Whether a filter asks for one of several things, outside of parentheses."""
    depth = 0
    for token in tokens_of(text):
        depth += {"(": 1, ")": -1}.get(token.kind, 0)
        if token.kind == "|" and not depth:
            return True
    return False
