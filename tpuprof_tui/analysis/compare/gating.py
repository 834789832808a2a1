"""The statistics of the gate: rules about figures of repeated runs, with a stated false discovery rate.

Medians of the runs are compared. How far runs of the same lie apart is measured where there are three or more a side:
of each figure by its own runs, and of all together, as a share (what two runs of one machine differ by is much the same
for all that runs there; so few runs say little of one figure alone). With fewer runs it is a stated floor, beyond which
the launches within each run must tell a difference.

Rules that are asked are one family of tests, parts that are looked through unasked another; within each the share of
false alarms is held (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995): intervals are as
wide as the tests that are rejected ask for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from .noise import NOTHING_LOST, RUN_NOISE, UNKNOWN, Lost, Noise, quantile, upper_tail
from .operation_names import NamesByCode, one_operation

Result = Literal["PASS", "FAIL", "INCONCLUSIVE"]
#: Chance of a false alarm.
LEVEL: Final = 0.01
#: Runs of a side that measure how far runs lie apart.
FEWEST: Final = 3
#: Variance of a median of so many normal values, as a multiple of that of their mean.
_OF_MEDIAN: Final = {1: 1.0, 2: 1.0, 3: 1.35, 4: 1.2, 5: 1.44, 6: 1.29}
_OF_LARGE_MEDIAN: Final = 1.5
#: Degrees of freedom of what all figures say together of runs: they are not independent.
_POOLED: Final = 30.0
#: A figure whose own runs vary more than this multiple of that varies in its own way.
_OWN: Final = 3.0
#: The rule that holds where none is asked.
USUAL: Final = "total>5%"
#: Kinds of figures that are looked through unasked.
PARTS: Final = ("kernel:", "operation:")
_RULE: Final = re.compile(r"(?P<figure>.+)>\s*(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>%|us)\s*", re.DOTALL)


class Figure(Struct, frozen=True):
    """A figure of a run.

    Attributes:
        value: ns, or whatever else it is.
        count: Of how many it is a sum.
        variance: How far it may lie off by what repeats within the run, squared; NaN where nothing measures it.
        freedom: Degrees of freedom of that.
    """

    value: float
    count: int = 1
    variance: float = math.nan
    freedom: float = 0.0


class Run(Struct, frozen=True):
    """What is known of one run.

    Attributes:
        path: Where it was read from.
        figures: By name: ``total``, ``step``, ``kernel:NAME``, ``operation:NAME``, ``VIEW.figure``.
        lost: Records known to be lost.
        signatures: Launches of each kernel: how many, and a number for their commands.
        operands: Which operands the commands are told with: numbers of others are of something else.
        codes: Names of operations by their codes.
    """

    path: str
    figures: Mapping[str, Figure]
    lost: int = 0
    signatures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    operands: tuple[str, ...] = ()
    codes: NamesByCode = field(default_factory=dict)


class Rule(Struct, frozen=True):
    """What must not be: a figure that grows by more than a share or a time.

    Attributes:
        figure: Which figure.
        share: Of the base; None: ``ns`` counts.
        ns: So many ns.
    """

    text: str
    figure: str
    share: float | None = None
    ns: float = 0.0

    @classmethod
    def typed(cls, text: str) -> Rule:
        """A rule as it is typed, ``FIGURE>NUMBER%`` or ``FIGURE>NUMBERus``; ValueError of another text."""
        found = _RULE.fullmatch(text)
        if found is None or found["figure"].count('"') % 2:  # the last > stands in quotes
            raise ValueError(text)
        kind, colon, name = found["figure"].strip().partition(":")
        quoted = re.fullmatch(r'\s*"(.*)"\s*', name, re.DOTALL)
        figure = f"{kind}{colon}{quoted[1] if quoted else name}"
        number = float(found["number"])
        return cls(text, figure, number / 100) if found["unit"] == "%" else cls(text, figure, None, number * 1000)

    def limit(self, base: float) -> float:
        """How much more there may be."""
        return self.ns if self.share is None else self.share * base


class Judged(Struct, frozen=True):
    """A rule and what became of it: medians, and the interval of their difference; None where nothing measures it."""

    rule: Rule
    result: Result
    base: float
    other: float
    low: float | None
    high: float | None

    @property
    def delta(self) -> float:
        """Other minus base."""
        return self.other - self.base


class Gate(Struct, frozen=True):
    """All rules.

    Attributes:
        result: FAIL where any fails, else INCONCLUSIVE where any is.
        rules: Those that were asked, behind them parts that grew beyond noise.
        noise: What a difference has to be beyond.
        errors: How far the difference of each figure may lie off, at the level of one test alone.
    """

    result: Result
    rules: tuple[Judged, ...]
    noise: Noise
    errors: Mapping[str, float]


class _Difference(Struct, frozen=True):
    """A figure of both sides: medians, standard error of their difference, its degrees of freedom, the floor.

    The error is NaN where nothing within the runs repeats and so few runs do not tell it.
    """

    base: float
    other: float
    error: float
    freedom: float
    floor: float

    def chance(self, limit: float) -> float:
        """Chance of such a difference or a larger one where it is not beyond a limit."""
        beyond = self.other - self.base - limit - self.floor
        if math.isnan(self.error):
            return 1.0
        if not self.error:
            return 0.0 if beyond > 0 else 1.0
        return upper_tail(beyond / self.error, self.freedom)

    def interval(self, errors: float) -> tuple[float, float]:
        """Where the difference lies, within so many standard errors and the floor."""
        wide = errors * self.error + self.floor
        delta = self.other - self.base
        return delta - wide, delta + wide


def figures_of(base: Sequence[Run], other: Sequence[Run]) -> dict[str, None]:
    """Names of the figures that a run of either side has."""
    return dict.fromkeys(name for run in (*base, *other) for name in run.figures)


def with_one_name(base: Sequence[Run], other: Sequence[Run]) -> tuple[list[Run], list[Run], dict[str, str]]:
    """Runs whose operations have one name, that tells each side's, and what figures are called, by their old names."""
    known = one_operation([run.codes for run in (*base, *other)])
    ours = {name for run in base for names in run.codes.values() for name in names}
    called = {}
    for name, names in known.items():
        here, there = (", ".join(each for each in names if (each in ours) == mine) for mine in (True, False))
        called[f"{PARTS[1]}{name}"] = f"{PARTS[1]}{here} ({there})" if here and there else f"{PARTS[1]}{here or there}"
    sides = [[replace(run, figures=_together(run.figures, called)) for run in side] for side in (base, other)]
    return sides[0], sides[1], called


def _together(figures: Mapping[str, Figure], called: Mapping[str, str]) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for name, each in figures.items():
        name = called.get(name, name)
        known = found.get(name)
        found[name] = each if known is None else Figure(
            known.value + each.value, known.count + each.count, known.variance + each.variance,
            known.freedom + each.freedom,
        )  # fmt: skip
    return found


def gate(
    base: Sequence[Run],
    other: Sequence[Run],
    rules: Sequence[Rule] = (),
    *,
    run_noise: float = RUN_NOISE,
    level: float = LEVEL,
) -> Gate:
    """Judges rules; without any the total, and whatever part grew beyond noise. Runs that are the same have none.

    ``run_noise``: how far runs lie apart, a share, where fewer than three a side measure it; ``level``: chance of a
    false alarm.
    """
    known = figures_of(base, other)
    values = [[{name: each.value for name, each in run.figures.items()} for run in side] for side in (base, other)]
    if values[0] == values[1]:  # no noise can tell the same captures apart
        run_noise = 0.0
        base, other = (
            [replace(run, figures={name: replace(each, variance=0.0) for name, each in run.figures.items()})
             for run in side] for side in (base, other)
        )  # fmt: skip
    noise, between = _noise(base, other, run_noise)
    asked = list(rules) or [Rule.typed(USUAL)]
    lost = lost_of(base, other)
    found = [replace(each, result="INCONCLUSIVE") if _hidden(each, base, other, lost) else each
             for each in _judged(asked, base, other, noise, between, level)]  # fmt: skip
    if not rules:
        # recordings of which one names nothing have no part in common: none of them is new
        shared = {name.partition(":")[0] for name in figures_of(base, ()).keys() & figures_of((), other)}
        parts = [Rule(f"{name}>0%", name, 0.0) for name in sorted(known)
                 if name.startswith(PARTS) and name.partition(":")[0] in shared]  # fmt: skip
        for each in _judged(parts, base, other, noise, between, level):
            if _hidden(each, base, other, lost):
                found.append(replace(each, result="INCONCLUSIVE"))
            elif each.result == "FAIL":
                found.append(each)
    results = {each.result for each in found}
    result: Result = "FAIL" if "FAIL" in results else "INCONCLUSIVE" if "INCONCLUSIVE" in results else "PASS"
    sums = {name: _difference(name, base, other, noise, between) for name in known if is_sum(name)}
    wide = {freedom: quantile(level / 2, freedom) for freedom in {each.freedom for each in sums.values()}}
    errors = {name: wide[each.freedom] * each.error for name, each in sums.items() if not math.isnan(each.error)}
    return Gate(result, tuple(found), noise, errors)


def _judged(
    rules: Sequence[Rule], base: Sequence[Run], other: Sequence[Run], noise: Noise, between: float, level: float
) -> list[Judged]:
    """One family of rules."""
    differences = [_difference(rule.figure, base, other, noise, between) for rule in rules]
    limits = [rule.limit(each.base) for rule, each in zip(rules, differences, strict=True)]
    chances = [each.chance(limit) for each, limit in zip(differences, limits, strict=True)]
    rejected = 0
    for place, chance in enumerate(sorted(chances), 1):
        if chance <= level * place / len(chances):
            rejected = place
    level = level * max(rejected, 1) / max(len(chances), 1)
    errors = {freedom: quantile(level, freedom) for freedom in {each.freedom for each in differences}}
    found = []
    for rule, each, limit in zip(rules, differences, limits, strict=True):
        if not each.base or not each.other:
            # what is new has no share to grow by, what is gone cannot grow
            broken = each.other > (limit if rule.share is None else 0)
            found.append(Judged(rule, "FAIL" if broken else "PASS", each.base, each.other, None, None))
            continue
        if math.isnan(each.error):  # what is stated alone shows no growth, but it can show that there is none
            unproven: Result = "PASS" if each.other - each.base + each.floor <= limit else "INCONCLUSIVE"
            found.append(Judged(rule, unproven, each.base, each.other, None, None))
            continue
        low, high = each.interval(errors[each.freedom])
        result: Result = "FAIL" if low > limit else "PASS" if high <= limit else "INCONCLUSIVE"
        found.append(Judged(rule, result, each.base, each.other, low, high))
    return found


def lost_of(base: Sequence[Run], other: Sequence[Run]) -> Lost:
    """The most that a run of each side lost."""
    return Lost(*(max(run.lost for run in side) for side in (base, other)))


def _hidden(judged: Judged, base: Sequence[Run], other: Sequence[Run], lost: Lost) -> bool:
    """Whether records that are lost could be why a rule about a part fails, or why it passes."""
    kind, _, name = judged.rule.figure.partition(":")
    if f"{kind}:" not in PARTS or judged.base == judged.other or lost == NOTHING_LOST:
        return False
    ours, theirs = (median(each.count for each in values_of(judged.rule.figure, side)) for side in (base, other))
    return name == UNKNOWN or bool(
        lost.base and theirs > ours if judged.result == "FAIL" else lost.other and theirs < ours
    )


def values_of(name: str, runs: Sequence[Run]) -> list[Figure]:
    """A figure of each run; nothing where one has none."""
    return [run.figures.get(name, Figure(0.0, 0, 0.0)) for run in runs]


def _difference(name: str, base: Sequence[Run], other: Sequence[Run], noise: Noise, between: float) -> _Difference:
    """A figure of both sides with how far the difference of its medians may lie off."""
    sides = [values_of(name, runs) for runs in (base, other)]
    ours, theirs = (median(each.value for each in side) for side in sides)
    scales = [_OF_MEDIAN.get(len(side), _OF_LARGE_MEDIAN) for side in sides]
    within = sum(
        _mean_known(each.variance for each in side) * scale / len(side)
        for side, scale in zip(sides, scales, strict=True)
    )
    if noise.stated:
        if is_sum(name) and any(all(math.isnan(each.variance) for each in side) for side in sides):
            within = math.nan
        # what rests on other repeats alone has their freedom, which is large
        freedom = sum(each.freedom for side in sides for each in side) or 30.0
        return _Difference(ours, theirs, math.sqrt(within), freedom, noise.between * max(ours, theirs))
    own = sum(
        _variance([each.value for each in side]) * scale / len(side) for side, scale in zip(sides, scales, strict=True)
    )
    shares = sum(scale / len(side) * value**2 for side, scale, value in zip(sides, scales, (ours, theirs), strict=True))
    pooled = between**2 * shares + within
    freedom = _POOLED if own <= _OWN * pooled else float(len(base) + len(other) - 2)
    return _Difference(ours, theirs, math.sqrt(max(own, pooled)), freedom, 0.0)


def is_sum(name: str) -> bool:
    """Whether a figure is time added up: what repeats within a run tells how far it may lie off."""
    return name == "total" or name.startswith(PARTS)


def _mean_known(values: object) -> float:
    known = [each for each in values if not math.isnan(each)]  # type: ignore[attr-defined]
    return sum(known) / len(known) if known else 0.0


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((each - mean) ** 2 for each in values) / (len(values) - 1)


def _noise(base: Sequence[Run], other: Sequence[Run], run_noise: float) -> tuple[Noise, float]:
    """How far runs lie apart: of all parts together, each by its share of the time."""
    counts = len(base), len(other)
    if min(counts) < FEWEST:
        return Noise(_within(base, other), run_noise, *counts, stated=True), run_noise
    # in a fixed order: sums of floats differ by it
    names = sorted(name for name in figures_of(base, other) if name.startswith(PARTS[0])) or ["total"]
    weight = total = 0.0
    for name in names:
        for runs in (base, other):
            figures = values_of(name, runs)
            mean = sum(each.value for each in figures) / len(figures)
            if mean <= 0:
                continue
            own = _variance([each.value for each in figures]) / mean**2
            within = _mean_known(each.variance for each in figures) / mean**2
            total += mean * max(own - within, 0.0)
            weight += mean
    between = math.sqrt(total / weight) if weight else run_noise
    return Noise(_within(base, other), between, *counts, stated=False), between


def _within(base: Sequence[Run], other: Sequence[Run]) -> float | None:
    """Standard deviation of a launch as a share of it, over all parts."""
    parts = [
        each.variance * each.count / each.value**2
        for run in (*base, *other)
        for name, each in run.figures.items()
        if name.startswith(PARTS[0]) and each.value > 0 and not math.isnan(each.variance)
    ]
    return math.sqrt(sum(parts) / len(parts)) if parts else None
