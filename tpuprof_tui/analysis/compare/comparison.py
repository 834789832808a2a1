"""Comparison of two profiles: sums of work by view with confidence intervals, and pairs of launches and events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tpuprof_tui.model import Profile
from tpuprof_tui.model.vocabulary import NAMES

from .alignment import Pairs, paired_events, paired_launches
from .noise import LEVEL, NOTHING_LOST, UNKNOWN, Amount, Lost, Noise, Strata, interval, status_of, within_share
from .work import JointWork, Work, hash_rows, joint_work

Ints = npt.NDArray[np.int64]

#: Minimum number of steps on each side to estimate the variation of steps.
FEWEST_STEPS: Final = 3
#: Views for profiles without names: by launch if launches are known, else by lane.
LAUNCHES: Final = "alignment"
LANES: Final = "lanes"


class Comparison:
    """Compares a base with another profile of the same source; only device work in sums counts.

    Attributes:
        pairs: Ids of paired groups (workers); None: both profiles as a whole.
        run_noise: Run-to-run variation, as a share.
        steps: Step lengths of each side, ns: from three a side on, they give the variance of the total.
        lost: Records known to be lost.
    """

    def __init__(
        self,
        base: Profile,
        other: Profile,
        *,
        pairs: Sequence[tuple[int, int]] | None = None,
        run_noise: float,
        steps: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.base, self.other = base, other
        self.pairs = pairs
        self._run_noise = run_noise
        self._steps = steps if steps is not None and min(map(len, steps)) >= FEWEST_STEPS else None
        lost = [sum(problem.lost for problem in side.problems) for side in (base, other)]
        self.lost = Lost(lost[0], lost[1], base.is_fragmentary or other.is_fragmentary)

    @cached_property
    def joint(self) -> JointWork:
        """The work of both sides in joint codes."""
        return joint_work(self.base, self.other, self.pairs)

    @cached_property
    def launches(self) -> Pairs:
        """Pairs of corresponding launches."""
        return paired_launches(self.joint)

    @cached_property
    def events(self) -> Pairs:
        """Pairs of corresponding events."""
        return paired_events(self.joint, self.launches)

    @cached_property
    def noise(self) -> Noise:
        """Variation of launches within a run, and between runs."""
        within = within_share(*(self._strata_of_launches(side) for side in self.works))
        if within is None and self._steps is not None:
            within = within_share(*map(_as_strata, self._steps))
        return Noise(within, self._run_noise)

    @cached_property
    def within_events(self) -> float | None:
        """Relative standard deviation of a single event, estimated from repeated events; None: nothing repeats."""
        return within_share(*(self._strata_of_events(side, side.label) for side in self.works))

    @property
    def works(self) -> tuple[Work, Work]:
        """The work of the base and of the other side."""
        return self.joint.base, self.joint.other

    @cached_property
    def work(self) -> Amount:
        """Total work over all units."""
        base, other = self.works
        return Amount("", int(base.length.sum()), int(other.length.sum()), len(base), len(other))

    @cached_property
    def breakdowns(self) -> dict[str, list[Amount]]:
        """All work by view, each view a different breakdown of the same total; rows by |difference| descending."""
        cuts = self.base.vocabulary.work_breakdowns if self.base.has(NAMES) and self.other.has(NAMES) else ()
        found: dict[str, list[Amount]] = {}
        for view, key in cuts:
            if key == "name":
                found[view] = self._by_name()
            elif self.joint.base.launches.known:
                found[view] = self.kernels
        if found:
            return found
        return {**({LAUNCHES: self.kernels} if self.joint.base.launches.known else {}), LANES: self._by_lane()}

    def _by_name(self) -> list[Amount]:
        size = len(self.joint.operations)
        labels = [_missing_last(work.label, size) for work in self.works]
        strata = [self._strata_of_events(work, label) for work, label in zip(self.works, labels, strict=True)]
        return self._amounts(self.joint.operations, labels, strata, self.within_events)

    @cached_property
    def kernels(self) -> list[Amount]:
        """Work by kernel; by |difference| descending."""
        size, each = len(self.joint.kernels), list(map(self._strata_of_launches, self.works))
        strata = [replace(side, label=_missing_last(side.label, size)) for side in each]
        labels = [_missing_last(work.kernel, size) for work in self.works]
        return self._amounts(self.joint.kernels, labels, strata, self.noise.within)

    def _by_lane(self) -> list[Amount]:
        titles: dict[str, int] = {}
        labels, strata = [], []
        for profile, work in zip((self.base, self.other), self.works, strict=True):
            own = [titles.setdefault(profile.title_of(lane), len(titles)) for lane in profile.lanes] or [0]
            label = np.array(own, np.int64)[work.lane]
            if len(work) and work.launches.known:  # strata are parts of launches
                first = np.flatnonzero(np.append(True, (np.diff(work.launch) != 0) | (np.diff(label) != 0)))
                part = hash_rows(label[first], work.launches.signature[work.launch[first]])
                strata.append(Strata.of(label[first], part, np.add.reduceat(work.length, first)))
            else:
                strata.append(self._strata_of_events(work, label))
            labels.append(label)
        return self._amounts(tuple(titles), labels, strata, self.noise.within)

    def _amounts(
        self, names: tuple[str, ...], labels: list[Ints], strata: list[Strata], within: float | None
    ) -> list[Amount]:
        """Sums by label; label ``len(names)`` is work without a name; what does not repeat varies by ``within``."""
        size = len(names) + 1
        sums = [np.bincount(label, weights=work.length, minlength=size).astype(np.int64)
                for label, work in zip(labels, self.works, strict=True)]  # fmt: skip
        counts = [np.bincount(label, minlength=size) for label in labels]
        variance, freedom = np.zeros(size), np.zeros(size)
        for each, count in zip(strata, counts, strict=True):
            own, free = each.spread(size, within)
            # a label without strata has no known repeats
            own[(count > 0) & (np.bincount(each.label, minlength=size) == 0)] = np.nan
            variance, freedom = variance + own, freedom + free
        found = []
        parts = np.flatnonzero(counts[0] + counts[1]).tolist()
        for index in parts:
            name = names[index] if index < len(names) else UNKNOWN
            amount = Amount(
                name, int(sums[0][index]), int(sums[1][index]), int(counts[0][index]), int(counts[1][index])
            )
            # Bonferroni: the chance that any of them is wrong equals that of a single test
            found.append(self._with_interval(amount, float(variance[index]), float(freedom[index]), LEVEL / len(parts)))
        return sorted(found, key=lambda each: (-abs(each.delta), -max(each.base, each.other), each.name))

    def _with_interval(self, amount: Amount, variance: float, freedom: float, level: float = LEVEL) -> Amount:
        floor = self.noise.between * max(abs(amount.base), abs(amount.other))
        low, high = interval(amount.delta, variance, freedom, floor, level) or (None, None)
        amount = replace(amount, low=low, high=high, variance=variance, freedom=freedom)
        status = status_of(amount, self.noise, self.lost)
        if status in ("added", "removed") and not self.joint.base.launches.named and self.lost != NOTHING_LOST:
            status = "unclear"  # kernels identified by their number of events may have lost some
        return replace(amount, status=status)

    def _strata_of_launches(self, work: Work) -> Strata:
        """Strata of launches: same kernel, commands and unit."""
        launches = work.launches
        if not launches.known:
            return self._strata_of_events(work, work.label)
        return Strata.of(launches.kernel, hash_rows(launches.unit, launches.signature), launches.work)

    def _strata_of_events(self, work: Work, label: Ints) -> Strata:
        """Strata of events: same operation, operands, kernel and unit."""
        if not work.launches.named:  # the n-th event of such launches is a stratum
            index = np.arange(len(work)) - work.launches.first[work.launch]
            strata = hash_rows(work.lane, work.launches.signature[work.launch], index)
            return Strata.of(np.zeros(len(work), np.int64), strata, work.length)
        unit = work.launches.unit[work.launch] if len(work) else np.zeros(0, np.int32)
        known = work.label >= 0  # events without a name cannot be known to repeat
        columns = (unit[known], work.kernel[known], work.command[known], label[known])
        return Strata.of(label[known], hash_rows(*columns), work.length[known])

    # total: first start to last end

    def total(self, base: int, other: int) -> Amount:
        """Judges the total lengths of both sides, ns; their variance is estimated from launches, else from steps."""
        variance, freedom = 0.0, 0.0
        if self._steps is not None and not self.joint.base.launches.known:
            spreads = [_as_strata(each).spread(1, None) for each in self._steps]
            variance, freedom = (sum(float(each[0]) for each in both) for both in zip(*spreads, strict=True))
            return self._with_interval(Amount("", base, other, 1, 1), variance, freedom)
        for work in self.works:
            launches = work.launches
            known = (launches.unit >= 0) & (launches.kernel >= 0)
            unit = launches.sequence[known].astype(np.int64)
            if not len(unit):
                variance = float("nan")
                continue
            length = (launches.end - launches.start)[known]
            strata = Strata.of(unit, hash_rows(unit, launches.signature[known]), length)
            busiest = int(np.bincount(unit, weights=length).argmax())
            own, free = strata.spread(int(unit.max()) + 1, self.noise.within)
            variance, freedom = variance + float(own[busiest]), freedom + float(free[busiest])
        return self._with_interval(Amount("", base, other, 1, 1), variance, freedom)

    def with_status(self, amount: Amount) -> Amount:
        """Judges a sum of which only the number of repeats is known: each is assumed to vary as a launch does."""
        within = self.noise.within
        parts = ((amount.base, amount.base_count), (amount.other, amount.other_count))
        variance = sum(((within or 0.0) * value) ** 2 / max(count, 1) for value, count in parts)
        return self._with_interval(amount, float("nan") if within is None else variance, 0.0)


def _missing_last(label: Ints, size: int) -> Ints:
    return np.where(label < 0, size, label)


def _as_strata(lengths: Ints) -> Strata:
    return Strata.of(np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.uint64), lengths)
