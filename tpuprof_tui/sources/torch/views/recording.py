"""Recording view: metadata of a trace, secrets masked; on screen only, as it may hold environment variables."""

from __future__ import annotations

import re
from typing import Any, Final

from tpuprof_tui.views.answer import Answer, Column, Table

from .run import ViewSelection
from .tables import per_worker

_WORDS: Final = r"(?:token|secret|key|passw|passphrase|credential|auth|cookie)"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
#: Secrets within texts: NAME=value, "name": "value", --name value.
_GIVEN: Final = re.compile(rf"([\w.-]*{_WORDS}[\w.-]*[\"']?\s*[=:\s]\s*)[^\s,;]+", re.IGNORECASE)
_MASK: Final = "********"


@per_worker()
def recording(selection: ViewSelection) -> Answer:
    """The recording view of one worker."""
    rows: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", selection.run.trace.metadata)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, (dict, list)) and value:
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += reversed([(f"{name}.{key}".lstrip("."), each) for key, each in inner])
        else:
            text = "true" if value is True else "false" if value is False else "null" if value is None else str(value)
            rows.append((name, _MASK if _SECRET.search(name) else _GIVEN.sub(rf"\1{_MASK}", text)))
    columns = (Column("name", "Name"), Column("value", "Value"))
    return Answer(tables=(Table.of_rows("recording", "Recording", columns, rows, ordered=True),))
