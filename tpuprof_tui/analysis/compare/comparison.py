"""Two profiles compared: sums of work and what they are made of, with how sure that is, and what belongs together."""

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
from .work import Both, Work, both_works, mixed

Ints = npt.NDArray[np.int64]

#: Steps of each side that say how much steps differ.
FEWEST_STEPS: Final = 3
#: The cuts of profiles without names: by launches, where something tells them, and by lanes.
LAUNCHES: Final = "alignment"
LANES: Final = "lanes"


class Comparison:
    """A base and another profile of one source, of the events that count alone.

    Attributes:
        pairs: Groups of workers that belong together; None: everything with everything.
        run_noise: How far runs of the same lie apart, a share.
        steps: Lengths of the steps of each side, ns: from three a side on they say how far the total may lie off.
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
        self.lost = Lost(*(sum(problem.lost for problem in side.problems) for side in (base, other)))

    @cached_property
    def both(self) -> Both:
        """Their work in joint codes."""
        return both_works(self.base, self.other, self.pairs)

    @cached_property
    def launches(self) -> Pairs:
        """Launches that belong together."""
        return paired_launches(self.both)

    @cached_property
    def events(self) -> Pairs:
        """Events that belong together."""
        return paired_events(self.both, self.launches)

    @cached_property
    def noise(self) -> Noise:
        """How much launches differ from one another, and runs."""
        within = within_share(*(self._strata_of_launches(side) for side in self.works))
        if within is None and self._steps is not None:
            within = within_share(*map(_as_strata, self._steps))
        return Noise(within, self._run_noise)

    @cached_property
    def within_events(self) -> float | None:
        """Standard deviation of one event, as a share of it, by events that repeat; None where nothing does."""
        return within_share(*(self._strata_of_events(side, side.label) for side in self.works))

    @property
    def works(self) -> tuple[Work, Work]:
        """The work of each side."""
        return self.both.base, self.both.other

    @cached_property
    def work(self) -> Amount:
        """All work, over all units."""
        base, other = self.works
        return Amount("", int(base.length.sum()), int(other.length.sum()), len(base), len(other))

    @cached_property
    def cuts(self) -> dict[str, list[Amount]]:
        """Work by view, each time all of it, cut another way; by falling |difference|."""
        cuts = self.base.vocabulary.work_cuts if self.base.has(NAMES) and self.other.has(NAMES) else ()
        found: dict[str, list[Amount]] = {}
        for view, key in cuts:
            if key == "name":
                found[view] = self._by_name()
            elif self.both.base.launches.whole:
                found[view] = self.kernels
        if found:
            return found
        return {**({LAUNCHES: self.kernels} if self.both.base.launches.whole else {}), LANES: self._by_lane()}

    def _by_name(self) -> list[Amount]:
        size = len(self.both.operations)
        labels = [_numbered(work.label, size) for work in self.works]
        strata = [self._strata_of_events(work, label) for work, label in zip(self.works, labels, strict=True)]
        return self._amounts(self.both.operations, labels, strata, self.within_events)

    @cached_property
    def kernels(self) -> list[Amount]:
        """Work by kernel; by falling |difference|."""
        size, each = len(self.both.kernels), list(map(self._strata_of_launches, self.works))
        strata = [replace(side, label=_numbered(side.label, size)) for side in each]
        labels = [_numbered(work.kernel, size) for work in self.works]
        return self._amounts(self.both.kernels, labels, strata, self.noise.within)

    def _by_lane(self) -> list[Amount]:
        titles: dict[str, int] = {}
        labels, strata = [], []
        for profile, work in zip((self.base, self.other), self.works, strict=True):
            own = [titles.setdefault(profile.title_of(lane), len(titles)) for lane in profile.lanes] or [0]
            label = np.array(own, np.int64)[work.lane]
            if len(work) and work.launches.whole:  # parts of launches
                first = np.flatnonzero(np.append(True, (np.diff(work.launch) != 0) | (np.diff(label) != 0)))
                part = mixed(label[first], work.launches.signature[work.launch[first]])
                strata.append(Strata.of(label[first], part, np.add.reduceat(work.length, first)))
            else:
                strata.append(self._strata_of_events(work, label))
            labels.append(label)
        return self._amounts(tuple(titles), labels, strata, self.noise.within)

    def _amounts(
        self, names: tuple[str, ...], labels: list[Ints], strata: list[Strata], within: float | None
    ) -> list[Amount]:
        """Sums by label, those without a name at the end of the table; what does not repeat varies by ``within``."""
        size = len(names) + 1
        sums = [np.bincount(label, weights=work.length, minlength=size).astype(np.int64)
                for label, work in zip(labels, self.works, strict=True)]  # fmt: skip
        counts = [np.bincount(label, minlength=size) for label in labels]
        variance, freedom = np.zeros(size), np.zeros(size)
        for each, count in zip(strata, counts, strict=True):
            own, free = each.spread(size, within)
            # what is in no stratum is not known to repeat
            own[(count > 0) & (np.bincount(each.label, minlength=size) == 0)] = np.nan
            variance, freedom = variance + own, freedom + free
        found = []
        parts = np.flatnonzero(counts[0] + counts[1]).tolist()
        for place in parts:
            name = names[place] if place < len(names) else UNKNOWN
            amount = Amount(
                name, int(sums[0][place]), int(sums[1][place]), int(counts[0][place]), int(counts[1][place])
            )
            # many are looked through at once: all of them together are wrong by chance as seldom as one alone
            found.append(self._judged(amount, float(variance[place]), float(freedom[place]), LEVEL / len(parts)))
        return sorted(found, key=lambda each: (-abs(each.delta), -max(each.base, each.other), each.name))

    def _judged(self, amount: Amount, variance: float, freedom: float, level: float = LEVEL) -> Amount:
        floor = self.noise.between * max(abs(amount.base), abs(amount.other))
        low, high = interval(amount.delta, variance, freedom, floor, level) or (None, None)
        amount = replace(amount, low=low, high=high, variance=variance, freedom=freedom)
        status = status_of(amount, self.noise, self.lost)
        if status in ("added", "removed") and not self.both.base.launches.named and self.lost != NOTHING_LOST:
            status = "unclear"  # what is told apart by its number of events may have lost some
        return replace(amount, status=status)

    def _strata_of_launches(self, work: Work) -> Strata:
        """Launches of one kernel with the same commands on one unit."""
        launches = work.launches
        if not launches.whole:
            return self._strata_of_events(work, work.label)
        return Strata.of(launches.kernel, mixed(launches.unit, launches.signature), launches.work)

    def _strata_of_events(self, work: Work, label: Ints) -> Strata:
        """Events of one operation with the same operands in one kernel on one unit."""
        if not work.launches.named:  # the first of such launches, the second, and so on
            turn = np.arange(len(work)) - work.launches.first[work.launch]
            places = mixed(work.lane, work.launches.signature[work.launch], turn)
            return Strata.of(np.zeros(len(work), np.int64), places, work.length)
        unit = work.launches.unit[work.launch] if len(work) else np.zeros(0, np.int32)
        known = work.label >= 0  # of what has no name nobody knows whether it repeats
        columns = (unit[known], work.kernel[known], work.command[known], label[known])
        return Strata.of(label[known], mixed(*columns), work.length[known])

    # first start to last end

    def total(self, base: int, other: int) -> Amount:
        """The lengths of both, ns, and how far they may lie apart by chance: by launches, else by the steps."""
        variance, freedom = 0.0, 0.0
        if self._steps is not None and not self.both.base.launches.whole:
            spreads = [_as_strata(each).spread(1, None) for each in self._steps]
            variance, freedom = (sum(float(each[0]) for each in both) for both in zip(*spreads, strict=True))
            return self._judged(Amount("", base, other, 1, 1), variance, freedom)
        for work in self.works:
            launches = work.launches
            known = (launches.unit >= 0) & (launches.kernel >= 0)
            unit = launches.sequence[known].astype(np.int64)
            if not len(unit):
                variance = float("nan")
                continue
            length = (launches.end - launches.start)[known]
            strata = Strata.of(unit, mixed(unit, launches.signature[known]), length)
            busiest = int(np.bincount(unit, weights=length).argmax())
            own, free = strata.spread(int(unit.max()) + 1, self.noise.within)
            variance, freedom = variance + float(own[busiest]), freedom + float(free[busiest])
        return self._judged(Amount("", base, other, 1, 1), variance, freedom)

    def judged(self, amount: Amount) -> Amount:
        """A sum of repeats of which nothing but their number is known: each varies as a launch does."""
        within = self.noise.within
        parts = ((amount.base, amount.base_count), (amount.other, amount.other_count))
        variance = sum(((within or 0.0) * value) ** 2 / max(count, 1) for value, count in parts)
        return self._judged(amount, float("nan") if within is None else variance, 0.0)


def _numbered(label: Ints, size: int) -> Ints:
    """Labels, of what has none the one behind all."""
    return np.where(label < 0, size, label)


def _as_strata(lengths: Ints) -> Strata:
    """Steps as repeats of one thing."""
    return Strata.of(np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.uint64), lengths)
