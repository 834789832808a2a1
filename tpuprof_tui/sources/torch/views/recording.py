"""Recording view: metadata of a trace, secrets masked; on screen only, as it may hold environment variables."""

from __future__ import annotations

import re
from typing import Any, Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.views.answer import Answer, Column, Table

from .worker_events import WorkerEvents, per_worker

_WORDS: Final = (
    r"(?:token|secret|key|passw|passphrase|pgpass|_pwd|credential|auth|cookie|signature"
    r"|(?<![a-z])(?:pass|creds?|sig)(?![a-z]))"
)
_SECRET: Final = lazy_pattern(_WORDS, re.IGNORECASE)
#: Secrets within texts: NAME=value, "name": "value", --name value, Authorization: Bearer value.
_GIVEN: Final = lazy_pattern(
    rf"({_WORDS}[\w.-]{{0,40}}\\*[\"']?(?:\s*[=:]\s*|\s+)(?:(?:bearer|basic|digest)\s+)?)"
    r"(?:\\*\"[^\"]*\"|\\*'[^']*'|[^\s,;&]+)",
    re.IGNORECASE,
)
#: User and password of an address, and values that are secrets by their form.
_USER: Final = lazy_pattern(r"(?<=://)[^\s/@]+(?=@)")
_FORMS: Final = lazy_pattern(r"\b(?:gh[a-z]_|github_pat_|glpat-|hf_|sk-|xox[a-z]-|AKIA|ASIA)[\w-]{16,}")
_MASK: Final = "********"


@per_worker()
def recording(events: WorkerEvents) -> Answer:
    """The recording view of one worker."""
    rows: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", events.recorded.metadata)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, (dict, list)) and value:
            inner = value.items() if isinstance(value, dict) else enumerate(_without_values_of_secrets(value))
            waiting += reversed([(f"{name}.{key}".lstrip("."), each) for key, each in inner])
        else:
            text = "true" if value is True else "false" if value is False else "null" if value is None else str(value)
            rows.append((name, _MASK if _SECRET.search(name) else _masked(text)))
    columns = (Column("name", "Name"), Column("value", "Value"))
    return Answer(tables=(Table.of_rows("recording", "Recording", columns, rows, ordered=True),))


def _masked(text: str) -> str:
    for pattern, mask in ((_USER, _MASK), (_GIVEN, rf"\1{_MASK}"), (_FORMS, _MASK)):
        text = pattern.sub(mask, text)
    return text


def _without_values_of_secrets(values: list[Any]) -> list[Any]:
    """A list with arguments masked that follow an option such as ``--token``."""
    options = [isinstance(each, str) and each.startswith("-") and bool(_SECRET.search(each)) and "=" not in each
               for each in ("", *values)]  # fmt: skip
    return [_MASK if masked else each for masked, each in zip(options, values, strict=False)]
