"""Amounts of two profiles: all work by what it came from and by what it is, with confidence intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.model import Profile, Role, is_missing
from tpuprof_tui.model.uniques import uniques
from tpuprof_tui.model.vocabulary import NAMES, WorkOrigin

from ..pivot import Frame, key, pivot, rows, total
from ..query import Query
from ..selecting.filter_masks import apply_filter
from ..steps.step_detection import KEY as STEP
from ..totals.call_stacks import calling_names
from .match import Pairs, paired_events, paired_launches
from .noise import LEVEL, NOTHING_LOST, UNKNOWN, Amount, Lost, Noise, Strata, interval, status_of, within_share
from .work import JointWork, Work, hash_rows, rows_by_lane

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Minimum number of steps on each side to estimate the variation of steps.
FEWEST_STEPS: Final = 3
#: Views for profiles without names: by launch if launches are known, else by lane.
LAUNCHES: Final = "alignment"
LANES: Final = "lanes"
#: Share of the work of each side whose origin must be known.
_MOST: Final = 0.5


class CountedSteps(Struct, frozen=True, eq=False):
    """The steps of a side that count in figures."""

    numbers: Ints  #: int64, their distinct numbers
    count: float  #: Number of steps; of several workers the mean
    typical: float  #: What a step takes, ns, of the worker with the longest; NaN: unknown
    lengths: Ints  #: int64 ns, the lengths that ``typical`` is the mean or median of
    all_lengths: Ints  #: int64 ns, lengths of the counted steps of all workers
    guessed: bool  #: Whether they were detected by repetition


#: Texts that identify a sum, such as the unit, the scope and the name of a wait.
Names = tuple[str, ...]


class _Cut(Struct, frozen=True, eq=False):
    """All work of both sides by label."""

    names: Sequence[str]  #: Text of each label
    labels: Sequence[Ints]  #: Label of each work event of the base and of the other side; -1: none
    strata: Sequence[Strata]  #: Repeats of each side, by the same labels
    within: float | None  #: Relative standard deviation of what nothing repeats; None: unknown


class Comparison:
    """Compares a base with another profile; only device work in sums counts.

    ``pairs``: ids of paired groups (workers); -1: the profile as a whole.

    Attributes:
        sides: The queries of base and other, whose filter and step select the events.
        base, other: Profiles of the selected events.
        steps: Steps of both sides; None: events of one step, or of a filter, are compared.
        lost: Records known to be lost.
        alike: Whether both are of one source, so that their names and commands can be compared.
    """

    def __init__(
        self,
        base: Query,
        other: Query,
        *,
        pairs: Sequence[tuple[int, int]],
        run_noise: float,
        steps: tuple[CountedSteps, CountedSteps] | None = None,
    ) -> None:
        self.sides = base, other
        self.base, self.other = (query.filtered_session.profile for query in self.sides)
        self._pairs = pairs
        self.steps = steps
        self._run_noise = run_noise
        lost = [sum(problem.lost for problem in side.problems) for side in (self.base, self.other)]
        self.lost = Lost(lost[0], lost[1], self.base.is_fragmentary or self.other.is_fragmentary)
        self.alike = self.base.vocabulary.source == self.other.vocabulary.source

    # -- match

    @cached_property
    def joint(self) -> JointWork:
        """The work of both sides in joint codes."""
        return JointWork(self.base, self.other, self._pairs)

    @cached_property
    def launches(self) -> Pairs:
        """Pairs of corresponding launches."""
        return paired_launches(self.joint, lost=self.lost != NOTHING_LOST)

    @cached_property
    def events(self) -> Pairs:
        """Pairs of corresponding events."""
        return paired_events(self.joint, self.launches)

    @property
    def works(self) -> tuple[Work, Work]:
        """The work of the base and of the other side."""
        return self.joint.base, self.joint.other

    # -- noise

    @cached_property
    def noise(self) -> Noise:
        """Variation of launches within a run, and between runs."""
        within = within_share(*self._launch_strata)
        if within is None and self._steps_vary:
            within = within_share(*(_one_stratum(side.all_lengths) for side in self.steps or ()))
        return Noise(within, self._run_noise)

    @cached_property
    def within_events(self) -> float | None:
        """Relative standard deviation of a single event, estimated from repeated events; None: nothing repeats."""
        return within_share(*self._event_strata)

    @property
    def _steps_vary(self) -> bool:
        return self.steps is not None and min(len(side.all_lengths) for side in self.steps) >= FEWEST_STEPS

    @cached_property
    def _launch_strata(self) -> list[Strata]:
        """Strata of the launches of each side: same kernel, commands and unit."""
        launches = [work.launches for work in self._distinct_works]
        if not launches[0].known:
            return self._event_strata
        strata = [Strata.of(each.kernel, hash_rows(each.unit, each.signature), each.work) for each in launches]
        return [strata[0], strata[-1]]

    @cached_property
    def _event_strata(self) -> list[Strata]:
        """Strata of the events of each side by operation."""
        strata = [self._strata_of_events(work, work.label) for work in self._distinct_works]
        return [strata[0], strata[-1]]

    @property
    def _distinct_works(self) -> list[Work]:
        """The work of both sides, or of a profile compared with itself once."""
        return [self.joint.base] if self.joint.base is self.joint.other else [*self.works]

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

    # -- amounts

    @cached_property
    def work(self) -> Amount:
        """Total work of devices."""
        base, other = self.works
        return Amount("", int(base.length.sum()), int(other.length.sum()), len(base), len(other))

    @cached_property
    def is_of_host(self) -> bool:
        """Whether times of the host are compared, since no device works."""
        idle = not (self.work.base or self.work.other)
        return idle and any(len(frame) for frames in self._host_times.values() for frame in frames)

    @cached_property
    def origins(self) -> dict[str, list[Amount]]:
        """All work by what it came from (`WorkOrigin`), where this is known of most work of both sides."""
        return {view: self._amounts(cut) for view, cut in self._origin_cuts.items()}

    @cached_property
    def breakdowns(self) -> dict[str, list[Amount]]:
        """All work by view, each view a different breakdown of the same total; rows by |difference| descending.

        Where no device works, times of the host by name.
        """
        if self.is_of_host:
            return self._host_amounts(None)
        return {view: self._amounts(cut) for view, cut in self._cuts.items()}

    @property
    def contributors(self) -> dict[str, list[Amount]]:
        """All parts of the sum of work, by view: what it came from, then what it is."""
        return self.breakdowns if self.is_of_host else {**self.origins, **self.breakdowns}

    @cached_property
    def per_step(self) -> dict[str, list[Amount]]:
        """As `contributors`, of the counted steps: of a step; empty if not both sides have steps."""
        if not self.stepped:
            return {}
        if self.is_of_host:
            return self._host_amounts(self.steps)
        return {view: self._amounts(cut, per_step=True) for view, cut in (self._origin_cuts | self._cuts).items()}

    def sum_of(self, by_view: Mapping[str, Sequence[Amount]]) -> Amount:
        """All work, of which views hold breakdowns."""
        parts = next(iter(by_view.values()), ())
        sums = [sum(getattr(each, key) for each in parts) for key in ("base", "other", "base_count", "other_count")]
        return self.with_status(Amount("", *sums))

    @cached_property
    def kernels(self) -> list[Amount]:
        """Work by kernel; by |difference| descending."""
        return self._amounts(self._kernel_cut)

    @cached_property
    def _cuts(self) -> dict[str, _Cut]:
        if not self.alike:  # names of different sources have nothing in common
            return {}
        found = {}
        named = self.base.has(NAMES) and self.other.has(NAMES)
        for view, column in self.base.vocabulary.work_breakdowns if named else ():
            if column == "name":
                labels = [work.label for work in self.works]
                found[view] = _Cut(self.joint.operations, labels, self._event_strata, self.within_events)
            elif self.joint.base.launches.known:
                found[view] = self._kernel_cut
        if found:
            return found
        return {**({LAUNCHES: self._kernel_cut} if self.joint.base.launches.known else {}), LANES: self._lane_cut()}

    @cached_property
    def _kernel_cut(self) -> _Cut:
        labels = [work.kernel for work in self.works]
        return _Cut(self.joint.kernels, labels, self._launch_strata, self.noise.within)

    def _cut_of_events(self, names: Sequence[str], labels: Sequence[Ints]) -> _Cut:
        return _Cut(names, labels, [*map(self._strata_of_events, self.works, labels)], self.within_events)

    def _lane_cut(self) -> _Cut:
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
        return _Cut(tuple(titles), labels, strata, self.noise.within)

    @cached_property
    def _origin_cuts(self) -> dict[str, _Cut]:
        ours, theirs = ({each.view: each for each in side.vocabulary.origins} for side in (self.base, self.other))
        found = {}
        for view in (view for view in ours if view in theirs):
            codes: dict[str, int] = {}
            both = ours[view], theirs[view]
            # by frames, if one side has no column
            by_frames = next((origin for origin in both if not origin.column), None)
            labels = [_origins(query, work, by_frames or origin, codes)
                      for query, work, origin in zip(self.sides, self.works, both, strict=True)]  # fmt: skip
            chosen = self._in_steps if self.stepped else [np.ones(len(work), np.bool_) for work in self.works]
            if all(work.length[mask & (label >= 0)].sum() > _MOST * work.length[mask].sum()
                   for work, label, mask in zip(self.works, labels, chosen, strict=True)):  # fmt: skip
                found[view] = self._cut_of_events(list(codes), labels)
        return found

    def within(self, view: str, name: str) -> list[Amount]:
        """The work of a part of a view by name, of a step if both sides have steps; empty if nothing names it."""
        cut = (self._origin_cuts | self._cuts).get(view)
        if cut is None or cut.names is self.joint.operations or not self.joint.operations:
            return []
        code = list(cut.names).index(name) if name in cut.names else -1
        labels = [np.where(label == code, work.label, -1) for label, work in zip(cut.labels, self.works, strict=True)]
        amounts = self._amounts(self._cut_of_events(self.joint.operations, labels), per_step=self.stepped)
        return [amount for amount in amounts if amount.name != UNKNOWN]

    def _amounts(self, cut: _Cut, *, per_step: bool = False) -> list[Amount]:
        """Sums by label, of which -1 is work without a name; ``per_step``: of the counted steps, a step."""
        size = len(cut.names) + 1
        sums: list[Ints] = []
        counts: list[npt.NDArray[Any]] = []
        variance, degrees_of_freedom = np.zeros(size), np.zeros(size)
        for side, (work, strata) in enumerate(zip(self.works, cut.strata, strict=True)):
            label, repeated = (np.where(codes < 0, size - 1, codes) for codes in (cut.labels[side], strata.label))
            count = np.bincount(label, minlength=size)
            own, free = replace(strata, label=repeated).spread(size, cut.within)
            # a label without strata has no known repeats
            own[(count > 0) & (np.bincount(repeated, minlength=size) == 0)] = np.nan
            if per_step:
                inside, steps = self._in_steps[side], (self.steps or ())[side].count
                part = np.bincount(label[inside], minlength=size)
                sums.append(np.rint(np.bincount(label[inside], work.length[inside], size) / steps).astype(np.int64))
                # what is in steps varies as all of it does
                own *= part / np.maximum(count, 1) / steps**2
                counts.append(part / steps)
            else:
                sums.append(np.bincount(label, work.length, size).astype(np.int64))
                counts.append(count)
            variance, degrees_of_freedom = variance + own, degrees_of_freedom + free
        parts, names = np.flatnonzero(counts[0] + counts[1]).tolist(), (*cut.names, UNKNOWN)
        # Bonferroni: the chance that any of them is wrong equals that of a single test
        level = LEVEL / max(len(parts), 1)
        found = [
            self._with_interval(
                Amount(names[index], *(side[index].item() for side in (*sums, *counts))),
                float(variance[index]), float(degrees_of_freedom[index]), level,
            )
            for index in parts
        ]  # fmt: skip
        return sorted(found, key=_by_difference)

    def _with_interval(
        self, amount: Amount, variance: float, degrees_of_freedom: float, level: float = LEVEL
    ) -> Amount:
        found = interval(amount.delta, variance, degrees_of_freedom, self.noise.floor(amount), level)
        low, high = found or (None, None)
        amount = replace(amount, low=low, high=high, variance=variance, degrees_of_freedom=degrees_of_freedom)
        status = status_of(amount, self.noise, self.lost)
        if status in ("added", "removed") and not self.joint.base.launches.named and self.lost != NOTHING_LOST:
            status = "unclear"  # kernels identified by their number of events may have lost some
        return replace(amount, status=status)

    def with_status(self, amount: Amount) -> Amount:
        """Judges a sum of which only the number of repeats is known: each is assumed to vary as a launch does."""
        within = self.noise.within
        parts = ((amount.base, amount.base_count), (amount.other, amount.other_count))
        variance = sum(((within or 0.0) * value) ** 2 / max(count, 1) for value, count in parts)
        return self._with_interval(amount, float("nan") if within is None else variance, 0.0)

    # -- total: first start to last end

    def total(self, base: int, other: int) -> Amount:
        """Judges the total lengths of both sides, ns; their variance is estimated from launches, else from steps."""
        variance, degrees_of_freedom = 0.0, 0.0
        if self.steps is not None and self._steps_vary and not self.joint.base.launches.known:
            spreads = [_one_stratum(side.all_lengths).spread(1, None) for side in self.steps]
            variance, degrees_of_freedom = (sum(float(each[0]) for each in both) for both in zip(*spreads, strict=True))
            return self._with_interval(Amount("", base, other, 1, 1), variance, degrees_of_freedom)
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
            variance, degrees_of_freedom = variance + float(own[busiest]), degrees_of_freedom + float(free[busiest])
        return self._with_interval(Amount("", base, other, 1, 1), variance, degrees_of_freedom)

    # -- per step

    @cached_property
    def stepped(self) -> bool:
        """Whether both sides have marked steps, with like shares of the device's work, if any."""
        shares = [float(inside.mean()) for inside in self._in_steps if len(inside)] if self.steps else [0.0]
        return 5 * min(shares, default=1) > 3 * max(shares, default=1) and all(
            side.count and side.typical == side.typical and not side.guessed for side in self.steps or ()
        )

    @cached_property
    def _in_steps(self) -> list[Mask]:
        """Mask of the work of each side that belongs to counted steps."""
        return [
            np.isin(_column(profile, work, STEP), steps.numbers)
            for profile, work, steps in zip((self.base, self.other), self.works, self.steps or (), strict=True)
        ]

    def step(self, total: Amount) -> Amount | None:
        """What a step takes on both sides; None if they have none. Single steps vary as the total does."""
        if self.steps is None or not self.stepped:
            return None
        base, other = self.steps
        amount = Amount("", round(base.typical), round(other.typical), len(base.lengths), len(other.lengths))
        if min(amount.base_count, amount.other_count) < 2:
            return self._with_interval(amount, total.variance * max(amount.base, amount.other)
                                       / max(total.base, total.other, 1), total.degrees_of_freedom)  # fmt: skip
        variance = sum(float(side.lengths.var(ddof=1)) / len(side.lengths) for side in self.steps)
        return self._with_interval(amount, variance, float(amount.base_count + amount.other_count - 2))

    # -- sums of events that are no work of devices

    @cached_property
    def waits_of_sides(self) -> list[Frame]:
        """Waits of devices, with texts of ``unit``, ``kernel`` (scope) and ``name``; ``ns``: length."""
        return [_waits_of(query, self.joint.renamed) for query in self.sides]

    def waits(self, *, per_step: bool = False) -> dict[Names, Amount]:
        """Waits of both sides by unit, scope and name."""
        return self._pivot(self.waits_of_sides, ("unit", "kernel", "name"), self.steps if per_step else None)

    @cached_property
    def _host_times(self) -> dict[str, list[Frame]]:
        """Times of host events of both sides, by view."""
        return {view: [_host_times(query, column) for query in self.sides]
                for view, column in self.base.vocabulary.host_breakdowns}  # fmt: skip

    def _host_amounts(self, steps: tuple[CountedSteps, CountedSteps] | None) -> dict[str, list[Amount]]:
        amounts = {view: self._pivot(frames, ("name",), steps) for view, frames in self._host_times.items()}
        return {view: sorted(parts.values(), key=_by_difference) for view, parts in amounts.items() if parts}

    def _pivot(
        self, events: Sequence[Frame], keys: Sequence[str], steps: tuple[CountedSteps, CountedSteps] | None
    ) -> dict[Names, Amount]:
        """Sums of the column ``ns`` of both sides by ``keys``; ``steps``: of a step of those that count."""
        figures = {**{column: key(column, UNKNOWN) for column in keys}, "ns": total("ns"), "count": rows}
        sums: list[dict[Names, tuple[int, float]]] = []
        for side, frame in enumerate(events):
            if steps is not None:
                frame = frame.take(np.isin(frame[STEP], steps[side].numbers))
            found = {tuple(names): (ns, count) for *names, ns, count in pivot(frame, keys, figures, ("-ns",))}
            if steps is not None:
                per = steps[side].count
                found = {names: (round(ns / per), count / per) for names, (ns, count) in found.items()}
            sums.append(found)
        amounts = {}
        for names in dict.fromkeys((*sums[0], *sums[1])):
            (base, base_count), (other, other_count) = (side.get(names, (0, 0)) for side in sums)
            amounts[names] = self.with_status(Amount(names[-1], base, other, base_count, other_count))
        return amounts


def _by_difference(amount: Amount) -> tuple[float, float, str]:
    return -abs(amount.delta), -max(amount.base, amount.other), amount.name


def _waits_of(query: Query, renamed: Mapping[str, str]) -> Frame:
    profile = query.profile
    waits = _events(query, ("lane", "start", "end", "kernel", "name"),
                    [number for number, lane in enumerate(profile.lanes) if not lane.on_host], Role.WAIT)  # fmt: skip
    units = [profile.groups.title(profile.unit_of(lane)) or profile.title_of(lane) for lane in profile.lanes]
    waits = waits.with_columns({"unit": units}, unit=waits["lane"], ns=waits["end"] - waits["start"])
    waits = waits.with_texts("unit").with_texts("kernel", missing=UNKNOWN)
    return waits.with_texts("name", lambda name: renamed.get(name, name), missing=UNKNOWN)


def _host_times(query: Query, column: str) -> Frame:
    lanes = [number for number, lane in enumerate(query.profile.lanes) if lane.on_host and column in lane]
    events = _events(query, ("name", column), lanes)
    events = events.take(~is_missing(events[column]))
    return events.with_columns(ns=events[column])


def _events(query: Query, keys: Sequence[str], lanes: Sequence[int], role: Role | None = None) -> Frame:
    """Columns of events and their steps; columns that the source does not have are missing."""
    absent = {"kernel", "name", STEP}.difference(query.vocabulary.schema)
    events = query.events({*keys, STEP} - absent, lanes, role=role)
    return events.with_columns(None, **{column: np.full(len(events), -1) for column in absent})


def _column(profile: Profile, work: Work, key: str) -> Ints:
    """A column of events; -1 where the lane lacks it."""
    found = np.full(len(work), -1, np.int64)
    for number, events in rows_by_lane(work.lane):
        if key in profile.lanes[number]:
            found[events] = profile.lanes[number].take(key, work.row[events])
    return found


def _origins(query: Query, work: Work, origin: WorkOrigin, codes: dict[str, int]) -> Ints:
    """Joint code of what each work event came from; -1: unknown. New texts are added to ``codes``."""
    profile = query.filtered_session.profile
    if origin.column:
        texts, own = profile.strings.get(origin.column, ()), _column(profile, work, origin.column)
    else:
        texts, of_event = profile.strings["name"], calling_names(query.session, origin.pattern)
        if query.full_filter:
            of_event = of_event[apply_filter(query.session, query.full_filter).mask]
        own = of_event[query.filtered_session.offsets[work.lane] + work.row]
    joint = np.full(len(texts) + 1, -1, np.int64)
    for code in uniques(own[own >= 0]).tolist():
        joint[code] = codes.setdefault(compared_label(origin, texts[code]), len(codes))
    return joint[own]


def compared_label(origin: WorkOrigin, text: str) -> str:
    """The part of a text that is compared."""
    found = re.match(origin.pattern, text)
    return found[1] if found is not None and found.re.groups else text


def _one_stratum(lengths: Ints) -> Strata:
    return Strata.of(np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.uint64), lengths)
