"""Statistics of the regression gate: tests rules about figures of repeated runs, at a controlled false discovery rate.

Medians of the runs are compared. The variation between runs is measured if there are three or more a side: of each
figure from its own runs, and pooled over all figures, as a share (it is similar for all that runs on one machine, while
so few runs are a poor estimate for a single figure). With fewer runs it is a stated floor, which a difference must
exceed by more than what launches vary within each run.

The rules of the user are one family of tests, the step and the parts checked by default others; in each the false
discovery rate is controlled (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995): the
intervals are as wide as the number of rejected tests requires.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.lazy_names import lazy_pattern

from ..operation_names import NamesByCode, operation_synonyms
from .noise import LEVEL, NOTHING_LOST, POOLED, RUN_NOISE, UNKNOWN, Amount, Lost, Noise, interval, status_of, upper_tail

Result = Literal["PASS", "FAIL", "INCONCLUSIVE"]
#: Minimum runs a side to measure the variation between runs.
FEWEST: Final = 3
#: Variance of the median of n normal values, relative to that of their mean.
_OF_MEDIAN: Final = {1: 1.0, 2: 1.0, 3: 1.35, 4: 1.2, 5: 1.44, 6: 1.29}
_OF_LARGE_MEDIAN: Final = 1.5
#: A figure whose own variance exceeds this multiple of the pooled one has the degrees of freedom of its own runs.
_OWN: Final = 3.0
#: The default rule.
DEFAULT_RULE: Final = "total>5%"
#: Checked too by default, if all runs have marked steps; reported if it fails.
STEP_RULE: Final = "step>5%"
#: Kinds of figures that are checked by default.
PARTS: Final = ("kernel:", "operation:")
_SIDES: Final = ("base", "other", "base_count", "other_count")
_RULE: Final = lazy_pattern(r"(?P<figure>.+)>\s*(?P<number>\d+(?:\.\d*)?|\.\d+)(?P<unit>%|us)\s*", re.DOTALL)


class Figure(Struct, frozen=True):
    """A figure of a run."""

    value: float  #: ns, or the figure's own unit
    count: int = 1  #: Number of summands
    variance: float = math.nan  #: Variance of the value, estimated from repeats within the run; NaN: unknown
    degrees_of_freedom: float = 0.0  #: Degrees of freedom of the variance


class Run(Struct, frozen=True):
    """Figures of one run."""

    path: str  #: Path of the capture
    figures: Mapping[str, Figure]  #: By name: ``total``, ``step``, ``kernel:NAME``, ``operation:NAME``, ``VIEW.figure``
    lost: int = 0  #: Number of records known to be lost
    #: By kernel: number of launches, and a hash of their commands.
    signatures: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    operands: tuple[str, ...] = ()  #: Operands included in the commands; hashes over other operands are not comparable
    codes: NamesByCode = field(default_factory=dict)  #: Names of operations by their codes
    incomplete: bool = False  #: Whether records are lost or unreadable, how many is not always known
    fragmentary: bool = False  #: Whether so many are lost that nothing is concluded from the others
    stepped: bool = False  #: Whether it has marked steps
    units: int = 0  #: Number of its units; 0: unknown
    steps: int = 0  #: Number of its marked steps
    host_lanes: int = -1  #: Number of lanes of its host; -1: unknown

    def renamed(self, names: Mapping[str, str]) -> Run:
        """The run with joint names of figures (`joint_names`); those that get one name are added up."""
        figures: dict[str, Figure] = {}
        for name, figure in self.figures.items():
            name = names.get(name, name)
            known = figures.get(name)
            figures[name] = figure if known is None else Figure(
                known.value + figure.value, known.count + figure.count, known.variance + figure.variance,
                known.degrees_of_freedom + figure.degrees_of_freedom,
            )  # fmt: skip
        return replace(self, figures=figures)


class Rule(Struct, frozen=True):
    """A limit on the growth of a figure, by a share or a time."""

    text: str  #: The rule as typed
    figure: str  #: Name of the figure
    share: float | None = None  #: Limit as a share of the base; None: ``ns`` applies
    ns: float = 0.0  #: Limit in ns

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Parses ``FIGURE>NUMBER%`` or ``FIGURE>NUMBERus``; UsageError if malformed."""
        found = _RULE.fullmatch(text)
        if found is None or found["figure"].count('"') % 2:  # the last > is inside quotes
            forms = "FIGURE>NUMBER% or FIGURE>NUMBERus, such as 'total>3%' or 'kernel:rmsnorm>20us'"
            raise UsageError(f"{text!r} is not a rule.", f"Write {forms}.")
        kind, colon, name = found["figure"].strip().partition(":")
        quoted = re.fullmatch(r'\s*"(.*)"\s*', name, re.DOTALL)
        figure = f"{kind}{colon}{quoted[1] if quoted else name}"
        number = float(found["number"])
        return cls(text, figure, number / 100) if found["unit"] == "%" else cls(text, figure, None, number * 1000)

    def limit(self, base: float) -> float:
        """Maximum increase allowed over ``base``, ns."""
        return self.ns if self.share is None else self.share * base


class RuleOutcome(Struct, frozen=True):
    """Outcome of a rule: medians of both sides, and the interval of their difference.

    ``recorded`` is False if some of the runs do not record the figure, so that it cannot be judged.
    """

    rule: Rule
    result: Result
    amount: Amount
    recorded: bool = True


class Gate(Struct, frozen=True):
    """Outcome of the gate."""

    result: Result  #: FAIL if any rule fails, else INCONCLUSIVE if any is
    rules: tuple[RuleOutcome, ...]  #: The user's rules, then parts that grew by more than noise
    noise: Noise  #: The noise that differences were compared with
    #: Total and parts by figure, ascending; medians, with intervals at the level of a single test.
    amounts: Mapping[str, Amount]
    lost: Lost  #: Records that the runs of each side lost
    incomplete: Lost  #: The same, and 1 more for a side with runs of which it is not known how many


def figures_of(base: Sequence[Run], other: Sequence[Run]) -> dict[str, None]:
    """Names of the figures of all runs, in order, as keys."""
    return dict.fromkeys(name for run in (*base, *other) for name in run.figures)


def joint_names(base: Sequence[Run], other: Sequence[Run]) -> dict[str, str]:
    """Joint names of the figures of operations that the sides name differently, by their own names."""
    known = operation_synonyms([run.codes for run in (*base, *other)])
    ours = {name for run in base for names in run.codes.values() for name in names}
    # names with generated suffixes are merged under their operation
    classes = {name: code[0] for run in (*base, *other) for code, names in run.codes.items() if len(code) == 1
               for name in names}  # fmt: skip
    found = {}
    for name, names in known.items():
        here, there = (", ".join(each for each in names if (each in ours) == in_base) for in_base in (True, False))
        joint = classes.get(name) or (f"{here} ({there})" if here and there else here or there)
        found[f"{PARTS[1]}{name}"] = f"{PARTS[1]}{joint}"
    return found


def gate(
    base: Sequence[Run],
    other: Sequence[Run],
    rules: Sequence[Rule] = (),
    *,
    run_noise: float = RUN_NOISE,
    level: float = LEVEL,
) -> Gate:
    """Tests rules; without any, the total and every part, of which those that grew by more than noise are reported.

    Args:
        base, other: Runs of each side; if their figures are equal, noise is 0.
        rules: The rules; empty: defaults.
        run_noise: Variation between runs as a share, where fewer than three a side measure it.
        level: Probability of a false alarm.
    """
    names = figures_of(base, other)
    judged = {"step", *(rule.figure for rule in rules)}
    values = [[{name: each.value for name, each in run.figures.items() if is_sum(name) or name in judged}
               for run in side] for side in (base, other)]  # fmt: skip
    if values[0] == values[1]:  # identical captures do not differ, whatever the noise
        run_noise = 0.0
        base, other = (
            [replace(run, figures={name: replace(each, variance=0.0) for name, each in run.figures.items()})
             for run in side] for side in (base, other)
        )  # fmt: skip
    noise = _noise(base, other, run_noise)
    lost = Lost(sum(run.lost for run in base), sum(run.lost for run in other))
    unknown = [any(run.incomplete for run in side) for side in (base, other)]
    incomplete = Lost(lost.base + unknown[0], lost.other + unknown[1])
    found = []
    for each in _test_family(rules or [Rule.parse(DEFAULT_RULE)], base, other, noise, level):
        recorded = _is_recorded(each, base, other)
        unclear = not recorded or _may_be_lost(each, incomplete)
        found.append(replace(each, result="INCONCLUSIVE" if unclear else each.result, recorded=recorded))
    if not rules:
        # if one side's recordings lack names, the sides share no parts: do not report all of them as new
        shared = {name.partition(":")[0] for name in figures_of(base, ()).keys() & figures_of((), other)}
        parts = [Rule(f"{name}>0%", name, 0.0) for name in sorted(names)
                 if name.startswith(PARTS) and name.partition(":")[0] in shared]  # fmt: skip
        steps = [Rule.parse(STEP_RULE)] if all(run.stepped for run in (*base, *other)) else []
        for each in (outcome for family in (steps, parts)
                     for outcome in _test_family(family, base, other, noise, level)):  # fmt: skip
            if _may_be_lost(each, incomplete):
                found.append(replace(each, result="INCONCLUSIVE"))
            elif each.result == "FAIL":
                found.append(each)
    if any(run.fragmentary for run in (*base, *other)):
        found = [replace(each, result="INCONCLUSIVE") for each in found]
    results = {each.result for each in found}
    result: Result = "FAIL" if "FAIL" in results else "INCONCLUSIVE" if "INCONCLUSIVE" in results else "PASS"
    amounts = {}
    for name in sorted(filter(is_sum, names)):
        amount = _amount(name, base, other, noise)
        amount = replace(amount, **{key: round(getattr(amount, key)) for key in _SIDES})
        low, high = interval(amount.delta, amount.variance, amount.degrees_of_freedom, level=level) or (None, None)
        amount = replace(amount, low=low, high=high)
        amounts[name] = replace(amount, status=status_of(amount, noise, lost))
    return Gate(result, tuple(found), noise, amounts, lost, incomplete)


def _test_family(
    rules: Sequence[Rule], base: Sequence[Run], other: Sequence[Run], noise: Noise, level: float
) -> list[RuleOutcome]:
    """Tests one family of rules, by Benjamini and Hochberg."""
    amounts = [_amount(rule.figure, base, other, noise) for rule in rules]
    limits = [rule.limit(amount.base) for rule, amount in zip(rules, amounts, strict=True)]
    p_values = sorted(map(_p_value, amounts, limits, [noise] * len(rules)))
    rejected = max(
        (rank for rank, p_value in enumerate(p_values, 1) if p_value <= level * rank / len(rules)), default=1
    )
    level = level * rejected / max(len(rules), 1)
    found = []
    for rule, amount, limit in zip(rules, amounts, limits, strict=True):
        floor = noise.floor(amount)
        result: Result = "INCONCLUSIVE"
        if not amount.base or not amount.other:
            # a new part has no base for a share, a removed part cannot grow
            result = "FAIL" if amount.other > (limit if rule.share is None else 0) else "PASS"
        elif math.isnan(amount.variance):  # a stated floor alone can prove the absence of growth, but not growth
            result = "PASS" if amount.delta + floor <= limit else "INCONCLUSIVE"
        else:
            known = interval(amount.delta, amount.variance, amount.degrees_of_freedom, floor, 2 * level)
            low, high = known or (0.0, 0.0)
            result = "FAIL" if low > limit else "PASS" if high <= limit else "INCONCLUSIVE"
            amount = replace(amount, low=low, high=high)
        found.append(RuleOutcome(rule, result, amount))
    return found


def _p_value(amount: Amount, limit: float, noise: Noise) -> float:
    """Chance of this difference, or a larger one, if the true one is at most ``limit`` plus the floor."""
    beyond = amount.delta - limit - noise.floor(amount)
    if math.isnan(amount.variance):
        return 1.0
    if not amount.variance:
        return 0.0 if beyond > 0 else 1.0
    return upper_tail(beyond / math.sqrt(amount.variance), amount.degrees_of_freedom)


def _is_recorded(outcome: RuleOutcome, base: Sequence[Run], other: Sequence[Run]) -> bool:
    """Whether the runs record a rule's figure: a part that is absent is new or gone only if they record such parts."""
    runs, figure = (*base, *other), outcome.rule.figure
    kind = f"{figure.partition(':')[0]}:"
    totals = [run.figures["total"].value for run in runs if "total" in run.figures]
    if any(totals) and not all(totals):  # some runs have no events, or no times
        return False
    if kind not in PARTS:
        return all(figure in run.figures for run in runs)
    if outcome.amount.base and outcome.amount.other:
        return True
    # runs without operations have no names: their kernels are lanes
    known = [{each for each in PARTS[PARTS.index(kind) :] if any(name.startswith(each) for name in run.figures)}
             for run in runs]  # fmt: skip
    return all(each == known[0] for each in known) or not any(known[: len(base)])


def _may_be_lost(outcome: RuleOutcome, lost: Lost) -> bool:
    """Whether lost records could explain why a rule about a part fails, or why a rule passes."""
    amount, (kind, _, name) = outcome.amount, outcome.rule.figure.partition(":")
    if not amount.delta or lost == NOTHING_LOST:
        return False
    if f"{kind}:" not in PARTS:
        if outcome.result == "FAIL":
            return bool(lost.base)
        return bool(lost.other) and amount.delta < 0 and (amount.high is None or amount.high < 0)
    more = amount.other_count - amount.base_count
    return name == UNKNOWN or bool(lost.base and more > 0 if outcome.result == "FAIL" else lost.other and more < 0)


def _values_of(name: str, runs: Sequence[Run]) -> list[Figure]:
    """A figure of each run; 0 for runs that lack it."""
    return [run.figures.get(name, Figure(0.0, 0, 0.0)) for run in runs]


def _amount(name: str, base: Sequence[Run], other: Sequence[Run], noise: Noise) -> Amount:
    """Medians of a figure, with the variance of their difference.

    It is unknown if nothing repeats within the runs and there are too few of them to measure it.
    """
    sides = [_values_of(name, runs) for runs in (base, other)]
    values, counts = ([median(getattr(each, key) for each in side) for side in sides] for key in ("value", "count"))
    scales = [_OF_MEDIAN.get(len(side), _OF_LARGE_MEDIAN) / len(side) for side in sides]
    variance = sum(
        _mean_known(each.variance for each in side) * scale for side, scale in zip(sides, scales, strict=True)
    )
    degrees_of_freedom = sum(each.degrees_of_freedom for side in sides for each in side) or POOLED
    if noise.stated and is_sum(name) and any(all(math.isnan(each.variance) for each in side) for side in sides):
        variance = math.nan
    elif not noise.stated:
        own = sum(_variance([each.value for each in side]) * scale for side, scale in zip(sides, scales, strict=True))
        pooled = (
            noise.between**2 * sum(scale * value**2 for scale, value in zip(scales, values, strict=True)) + variance
        )
        degrees_of_freedom = POOLED if own <= _OWN * pooled else float(len(base) + len(other) - 2)
        variance = max(own, pooled)
    return Amount(
        name, values[0], values[1], counts[0], counts[1], variance=variance, degrees_of_freedom=degrees_of_freedom
    )


def is_sum(name: str) -> bool:
    """Whether a figure is a sum of times, so that repeats within a run give its variance."""
    return name == "total" or name.startswith(PARTS)


def _mean_known(values: Iterable[float]) -> float:
    known = [each for each in values if not math.isnan(each)]
    return sum(known) / len(known) if known else 0.0


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((each - mean) ** 2 for each in values) / (len(values) - 1)


def _noise(base: Sequence[Run], other: Sequence[Run], run_noise: float) -> Noise:
    parts = [
        each.variance * each.count / each.value**2
        for run in (*base, *other)
        for name, each in run.figures.items()
        if name.startswith(PARTS[0]) and each.value > 0 and not math.isnan(each.variance)
    ]
    # of a launch, over all kernels
    within = math.sqrt(sum(parts) / len(parts)) if parts else None
    stated = min(len(base), len(other)) < FEWEST
    # sorted: float sums depend on the order
    names = sorted(name for name in figures_of(base, other) if name.startswith(PARTS[0])) or ["total"]
    weight = total = 0.0
    for figures in [] if stated else [_values_of(name, runs) for name in names for runs in (base, other)]:
        mean = sum(each.value for each in figures) / len(figures)
        if mean > 0:
            own = _variance([each.value for each in figures]) / mean**2
            total += mean * max(own - _mean_known(each.variance for each in figures) / mean**2, 0.0)
            weight += mean
    return Noise(within, math.sqrt(total / weight) if weight else run_noise, len(base), len(other), stated)
