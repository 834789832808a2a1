"""What captures of this source show that is worth a look, beside what any profile does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.selecting.state import Scope
from tpuprof_tui.formats.units import percent_text, time_text
from tpuprof_tui.model import Activity, is_missing
from tpuprof_tui.views.answer import Target
from tpuprof_tui.views.finding_rules import (
    SMALL,
    Finding,
    Rows,
    Rule,
    by_text,
    found_by,
    lanes_doing,
    narrowed,
    of_window,
)
from tpuprof_tui.views.query import Query

Ints = npt.NDArray[np.int64]


def findings(query: Query) -> Iterator[Finding]:
    """What the rules find."""
    return found_by(RULES, query)


def _below_peak(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    profile = query.shown.profile
    sums: dict[tuple[str, int], list[float]] = {}
    for activity in (Activity.COMPUTE, Activity.TRANSFER):
        for each in lanes_doing(query, activity):
            if "ideal" not in each.lane or "name" not in each.lane:
                continue
            ideal = each.lane.take("ideal", each.rows)
            known = ~np.isnan(ideal)
            part = Rows(each.lane, each.rows[known], each.unit, each.length[known])
            lost = np.maximum(part.length - ideal[known], 0)
            columns = [lost, part.length]
            for key, limit in (("uarch_rate", 50.0), ("conflict_ratio", 10.0), ("bytes", float(SMALL))):
                values = part.lane.take(key, part.rows) if key in part.lane else np.full(len(part.rows), np.nan)
                low = (values > limit) if key == "conflict_ratio" else (values < limit)
                columns.append(lost * (low & ~is_missing(np.asarray(values))))
            for place, weights in enumerate(columns):
                for name, ns in by_text(profile, part, "name", weights):
                    one = sums.setdefault((name, each.unit), [0.0] * len(columns))
                    one[place] += ns
    worst: dict[str, tuple[float, int, list[float]]] = {}
    for (name, unit), one in sums.items():
        if one[0] > worst.get(name, (0.0, 0, []))[0]:
            worst[name] = one[0], unit, one
    for name, (gain, unit, one) in sorted(worst.items(), key=lambda item: -item[1][0])[:2]:
        share = 1 - one[0] / one[1] if one[1] else 1.0
        if gain >= least and share < 0.5:
            label = profile.groups.title(unit)
            why = [told for told, ns in zip(("padding", "bank conflicts", "small transfers"), one[2:], strict=True)
                   if ns > 0.3 * gain]  # fmt: skip
            because = f", mostly where there {'is' if why == ['padding'] else 'are'} {' and '.join(why)}" if why else ""
            text = f"{name} reaches {percent_text(share)} of the peak on {label}{because}."
            yield of_window(query, rule, label, gain, text, name, narrowed(query, "name", name))


def _loads(query: Query) -> Iterator[tuple[Rows, Ints, Ints]]:
    """Loads from the large memory, with their addresses and sizes."""
    profile = query.shown.profile
    for each in lanes_doing(query, Activity.TRANSFER):
        lane = each.lane
        if not all(key in lane for key in ("src_addr", "bytes", "from_memory", "to_memory")):
            continue
        texts = profile.strings["from_memory"]
        code = lane.take("from_memory", each.rows)
        ddr = np.array([str(text) == "DDR" for text in texts] or [False], np.bool_)
        address, size = lane.take("src_addr", each.rows), lane.take("bytes", each.rows)
        chosen = (code >= 0) & ddr[np.maximum(code, 0)] & ~is_missing(address) & ~is_missing(size) & (address != 0)
        part = Rows(lane, each.rows[chosen], each.unit, each.length[chosen])
        yield part, address[chosen], size[chosen]


def _repeated(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    worst: tuple[float, int, int] = 0.0, -1, 0
    for each, address, size in _loads(query):
        _, first = np.unique(np.stack((address, size), axis=1), axis=0, return_index=True)
        again = np.ones(len(address), np.bool_)
        again[first] = False
        worst = max(worst, (float(each.length[again].sum()), each.unit, int(again.sum())))
    gain, unit, count = worst
    if unit >= 0 and gain >= least:
        label = query.profile.groups.title(unit)
        text = f"{label} loads the same addresses again {count:,} times, {time_text(round(gain))} in all."
        yield of_window(query, rule, label, gain, text, "", Target(scope=Scope(unit)))


def _shared(query: Query, rule: Rule, least: float) -> Iterator[Finding]:
    loads = list(_loads(query))
    if len({each.unit for each, _, _ in loads}) < 2:
        return
    keys = np.concatenate([np.stack((address, size), axis=1) for _, address, size in loads])
    unit = np.concatenate([np.full(len(each.rows), each.unit) for each, _, _ in loads])
    length = np.concatenate([each.length for each, _, _ in loads])
    _, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    pairs = np.unique(np.stack((which, unit), axis=1), axis=0)
    several = np.bincount(pairs[:, 0], minlength=int(which.max(initial=-1)) + 1) > 1
    chosen = several[which]
    # one unit still has to load it: no unit wins more than its own loads of these
    by_unit = np.bincount(unit[chosen], weights=length[chosen]) if bool(chosen.any()) else np.zeros(1)
    gain = float(by_unit.max())
    if gain >= least:
        worst = int(by_unit.argmax())
        label = query.profile.groups.title(worst)
        text = (f"{int(several.sum()):,} addresses are loaded from DDR by several {query.vocabulary.unit.plural}: "
                f"{time_text(round(gain))} on {label}.")  # fmt: skip
        yield of_window(query, rule, label, gain, text, "", Target(scope=Scope(worst)))


RULES: Final = (
    Rule("below_peak", "Time of one operation on one unit beyond that at the peak, below half of the peak.", 0.05,
         "Choose shapes that fill the lanes, other banks, larger transfers.", _below_peak),
    Rule("repeated_loads", "Loads of an address and size that the unit has loaded before.", 0.02,
         "Keep it in local memory where it fits.", _repeated),
    Rule("shared_loads", "Loads from DDR of an address and size that several units load.", 0.02,
         "Load it once into L2M, and from there to each.", _shared),
)  # fmt: skip
