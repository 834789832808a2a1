"""A rule in fifty lines: names of which some events take far longer than usual, and what could be won.

A rule is a function from a query, itself and the least gain to findings: where, what could be won (never more than
the time there is), one sentence, evidence, and where Enter leads. A source gives its rules as the entry ``rules``; one
with the id of a generic rule replaces it. Every rule needs a case in which it speaks and one in which it does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from new_source import VOCABULARY as TIMES

from tpuprof_tui.analysis.pivot import GroupBy
from tpuprof_tui.analysis.query import Query
from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.units import time_text
from tpuprof_tui.model import Role
from tpuprof_tui.views.rules import Finding, Rule, SourceRules, filter_target, window_finding

#: An event is slow if it takes more than this many times the median of its name.
SLOW = 4


def _uneven(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    events = query.events(("name", "duration"), role=Role.WORK)
    groups = GroupBy(events, ("name",))
    for number in range(groups.count):
        took = events["duration"][groups.index == number]
        usual = float(np.median(took))
        slow = took[took > SLOW * usual]
        gain = float((slow - usual).sum())
        if len(slow) and gain >= least:
            code = int(groups.values("name")[number])
            name = events.texts["name"][code] if code >= 0 else ""
            text = f"{len(slow)} of {len(took)} {line_text(name, 40)} take more than {SLOW} times the usual " \
                   f"{time_text(round(usual))}."  # fmt: skip
            yield window_finding(query, rule, "", gain, text, name, filter_target("name", name))


UNEVEN = Rule(
    "uneven", "Uneven lengths", "Time of events beyond the median of their name, of those over four times as long.",
    0.01, "an example: choose it by measuring recordings that do and do not have the fault",
    "Look at what differs: sizes, placement, what else runs meanwhile.", _uneven, sees="events",
)  # fmt: skip
RULES = SourceRules(adds=(UNEVEN,))
VOCABULARY = replace(TIMES, entries={**TIMES.entries, "rules": f"{__name__}:RULES"})
