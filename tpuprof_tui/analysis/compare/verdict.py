"""Verdict of a comparison: the cause of the difference in one sentence, made from amounts, pairs and waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tpuprof_tui.formats.escape import line_text
from tpuprof_tui.formats.units import delta_text, percent_text, time_text
from tpuprof_tui.model.vocabulary import Word

from ..pivot import Frame, key, pivot, rows, total
from .amounts import LANES, Comparison, Names
from .match import launch_rows
from .noise import NOTHING_LOST, UNKNOWN, Amount

#: Statuses that are a change.
CHANGED: Final = ("more", "less", "added", "removed")
#: Status of a total in words.
_WORDS: Final = {"more": "slower", "less": "faster", "added": "slower", "removed": "faster"}
_LAUNCH: Final = Word("launch", "launches")
#: Maximum characters of a name in a sentence.
_NAME: Final = 40
#: A part explains a change if it is at least this share of all changes of its view, and of the largest of any view.
_MOST: Final = 0.5
#: Shares that differ by no more are equal: the first view counts.
_EQUAL: Final = 0.02
#: Parts listed beside the largest, each way, and their minimum share of it.
_LISTED: Final = 3
_SMALL: Final = 0.1
#: Waits are what is left between other times and vary more: between runs of one program by up to 4 % of the total,
#: where the runs lie 1 % apart.
_WAITS: Final = 2.5
#: Counts of launches of a kernel that a sentence names.
_COUNTS: Final = ("matched", "changed", "moved", "added", "removed")


class Cause(Struct, frozen=True):
    """A sentence, and how much of the difference it accounts for, ns."""

    weight: float
    sentence: str
    waits: bool = False


class Verdict(Struct, frozen=True, eq=False, dict=True):
    """What became of a profile."""

    comparison: Comparison  #: The comparison
    total: Amount  #: First start to last end
    more_steps: str = ""  #: A sentence that the sides have another number of steps; may be empty

    @cached_property
    def step(self) -> Amount | None:
        """A step of each side; None: there are none to compare."""
        return self.comparison.step(self.total)

    @cached_property
    def parts(self) -> Mapping[str, Sequence[Amount]]:
        """Work by view, or the host's where no device works: of a step if both sides have steps, else all."""
        return self.comparison.per_step or self.comparison.contributors

    @property
    def lead(self) -> Amount:
        """What the verdict is about: a step if both sides have steps, else the total."""
        return self.total if self.step is None else self.step

    @property
    def a_step(self) -> str:
        """Behind figures: of a step; empty if they are of the whole."""
        return "" if self.step is None else f" per {self.comparison.base.vocabulary.step.one}"

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return f"{status_word(self.lead)}{self.a_step}{change_text(self.lead)}"

    @cached_property
    def work(self) -> Amount:
        """All of the work that ``parts`` break down."""
        return self.comparison.sum_of(self.parts)

    @cached_property
    def why(self) -> str:
        """The main cause of the difference, and the longest new wait, in a sentence each."""
        lost = self.comparison.lost
        causes = sorted(self._causes(), key=lambda cause: -cause.weight)
        told = [cause.sentence for cause in causes[:1] if cause.weight]
        if lost.base or lost.other:
            sides = ("base", lost.base), ("other", lost.other)
            which = [f"{count:,} of the {side}" for side, count in sides if count]
            told.insert(0, f"Records are lost, {' and '.join(which)}: what they could explain is unclear.")
        told = told or [self._nothing]
        told += [cause.sentence for cause in causes if cause.waits and cause.sentence not in told][:1]
        told.insert(0 if self.step is None and not (lost.base or lost.other) else len(told), self.more_steps)
        return " ".join(filter(None, told))

    @property
    def _nothing(self) -> str:
        if self.lead.status == "same":
            return "No part changed by more than noise."
        if self.comparison.noise.within is None:
            return "Nothing repeats within them, so noise is unknown with one capture per side: use three (gate)."
        return "No single part changed by more than noise: the time lies between the parts listed here."

    def _causes(self) -> Iterator[Cause]:
        work = self.comparison.work
        if bool(work.base) != bool(work.other):
            yield Cause(abs(work.delta), f"No work of a device is recorded in the {'other' if work.base else 'base'}.")
            return
        yield from self._otherwise_recorded() if all(side.scope.everything for side in self.comparison.sides) else ()
        shapes = list(self._other_shapes())
        yield from (cause for cause, _ in shapes)
        yield from self._of_work({name for _, names in shapes for name in names})
        if self.comparison.joint.base.launches.known and self.comparison.alike:
            yield from self._moves()
        yield from self._late()

    def _otherwise_recorded(self) -> Iterator[Cause]:
        """Causes: sums are of all units, a total is of the host, too."""
        profiles = self.comparison.base, self.comparison.other
        units = [len(profile.units) for profile in profiles]
        if units[0] != units[1]:
            yield Cause(abs(self.work.delta), f"The other has {self.comparison.base.vocabulary.unit.more(*units)}.")
        hosts = [any(lane.on_host and len(lane) for lane in profile.lanes) for profile in profiles]
        if hosts[0] != hosts[1] and self.step is None:
            yield Cause(abs(self.total.delta), f"No host is recorded in the {'other' if hosts[0] else 'base'}.")

    # -- work

    def _of_work(self, known: set[str]) -> Iterator[Cause]:
        """Causes: the part that explains the change, else the largest of the first view; ``known``: told already."""
        changes = {view: [part for part in parts if part.status in CHANGED and part.name not in known]
                   for view, parts in self._candidates.items()}  # fmt: skip
        changed = [(view, part) for view, parts in changes.items() for part in parts]
        if not changed:
            return
        most = max(abs(part.delta) for _, part in changed)
        shares = [(abs(part.delta) / max(most, sum(abs(other.delta) for other in changes[view])), view, part)
                  for view, part in changed]  # fmt: skip
        largest, whole = max(share for share, _, _ in shares), self.work.delta
        if largest >= _MOST:
            view, part = next((view, part) for share, view, part in shares if share >= largest - _EQUAL)
            yield Cause(abs(part.delta), self._sentence(view, part, whole))
            return
        # nothing explains it alone: those that changed most, in the direction of the whole first
        view, parts = next((view, parts) for view, parts in changes.items() if parts)
        parts = sorted(parts, key=lambda part: ((part.delta > 0) != (whole > 0), -abs(part.delta)))
        beside = [part for part in parts[1:] if abs(part.delta) >= _SMALL * abs(parts[0].delta)]
        words = ("Longer", "shorter") if parts[0].delta > 0 else ("Shorter", "longer")
        ways = [self._listed(view, [part for part in beside if (part.delta > 0) == (sign > 0)])
                for sign in (parts[0].delta, -parts[0].delta)]  # fmt: skip
        told = [f" {words[0]} too: {ways[0]}." if ways[0] else "", f" But {words[1]}: {ways[1]}." if ways[1] else ""]
        yield Cause(most, f"{self._sentence(view, parts[0])}{''.join(told)}")

    def _listed(self, view: str, parts: Sequence[Amount]) -> str:
        shown = (
            f"{short_name(self.name_of(view, part))} {delta_text(round(part.delta))}{change_text(part)}"
            for part in parts[:_LISTED]
        )
        return ", ".join(shown)

    @property
    def _candidates(self) -> dict[str, Sequence[Amount]]:
        """Parts by view that may be the cause, what work came from first.

        Names that one side alone has are no cause where it is known what work came from, or if others may have taken
        their place.
        """
        origins = [view for view in self.comparison.origins if view in self.parts]
        origins.sort(key=lambda view: is_renamed(self.parts[view]))
        found = {view: self.parts[view] for view in origins[:1]}
        for view, parts in self.parts.items():
            shared = [part for part in parts if part.base_count and part.other_count]
            if view in origins or (view == LANES and found) or (origins and is_renamed(parts)):
                continue
            one_sided = {part.status for part in parts if part not in shared}
            found[view] = [self._replaced(parts), *shared] if origins or len(one_sided) > 1 else parts
        return found

    def _replaced(self, parts: Sequence[Amount]) -> Amount:
        """The names that one side alone has, as one part."""
        gone = [part for part in parts if not part.other_count]
        new = [part for part in parts if not part.base_count]
        return self.comparison.with_status(Amount(
            f"Other names ({len(gone):,} gone, {len(new):,} new)", sum(part.base for part in gone),
            sum(part.other for part in new), sum(part.base_count for part in gone),
            sum(part.other_count for part in new),
        ))  # fmt: skip

    @cached_property
    def _launched(self) -> dict[str, dict[str, int]]:
        """Counts of launches by the name of their kernel, as `launch_rows` has them."""
        figures = {"kernel": key("kernel"), **{column: total(column) for column in _COUNTS}}
        launches = launch_rows(self.comparison.joint, self.comparison.launches)
        names = (*self.comparison.joint.kernels, UNKNOWN)
        return {names[kernel]: dict(zip(_COUNTS, counts, strict=True))
                for kernel, *counts in pivot(launches, ("kernel",), figures, ())}  # fmt: skip

    def _sentence(self, view: str, part: Amount, whole: float = 0) -> str:
        """How a part changed; ``whole``: the change that it explains, ns, if it differs."""
        comparison = self.comparison
        launched = None if view in comparison.origins else self._launched.get(part.name)
        name = short_name(self.name_of(view, part))
        if launched is not None and not comparison.joint.base.launches.named:
            name = f"A launch of {name}"
        change = f"{delta_text(round(part.delta))} of work{self.a_step}{change_text(part)}"
        if whole and abs(whole - part.delta) > _EQUAL * abs(whole):
            change += f", all work {delta_text(round(whole))}"
        if part.status in ("added", "removed"):
            count = max(part.base_count, part.other_count)
            events = comparison.base.vocabulary.event.of(round(count))
            return f"{name} is {'new' if part.status == 'added' else 'gone'}: {change}, {events}."
        details = list(self._launch_details(part, launched)) if launched is not None else []
        details += self._of_it(view, part)
        verb = "took longer" if part.delta > 0 else "took less"
        return f"{name} {verb}: {change}{'; ' if details else ''}{', '.join(details)}."

    def name_of(self, view: str, part: Amount) -> str:
        """The name of a part of a view."""
        if part.name != UNKNOWN:
            return part.name
        origins = self.comparison.base.vocabulary.origins
        word = next((origin.word.with_article for origin in origins if origin.view == view), "a name")
        return f"Work without {word}"

    def _of_it(self, view: str, part: Amount) -> Iterator[str]:
        """The name within a part that most of its change is of, if both sides have it."""
        for each in (inside := self.comparison.within(view, part.name))[:1]:
            both = each.base_count and each.other_count and len(inside) > 1
            if both and _MOST * abs(part.delta) <= abs(each.delta) and (each.delta > 0) == (part.delta > 0):
                yield f"of it {short_name(each.name)} {delta_text(round(each.delta))}"

    def _launch_details(self, part: Amount, launched: Mapping[str, int]) -> Iterator[str]:
        told = [f"{_LAUNCH.of(launched[word])} {word}" for word in ("added", "removed") if launched[word]]
        if told and self.more_steps:  # launches of steps that one side alone has
            counts = f"{part.base_count:,.4g} -> {part.other_count:,.4g}"
            events = f"{counts} {self.comparison.base.vocabulary.event.plural}{self.a_step}"
            yield from [events] if round(part.base_count - part.other_count, 2) else []
        else:
            yield from told
        if launched["changed"] > launched["moved"]:
            yield f"{_LAUNCH.of(launched['changed'] - launched['moved'])} with other commands or operands"
        elif not told and launched["matched"]:
            each = [time_text(round(ns * self._per_step(side) / launched["matched"]))
                    for side, ns in enumerate((part.base, part.other))]  # fmt: skip
            yield f"{_LAUNCH.of(launched['matched'])}, the same commands, each {' -> '.join(each)}"

    def _per_step(self, side: int) -> float:
        """Number of steps that an amount of a side stands for."""
        steps = self.comparison.steps
        return 1 if self.step is None or steps is None else steps[side].count

    # -- launches

    def _paired(self, differ: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        """Paired launches that differ in ``differ``, by ``keys``: these, work of base and other (ns), and number."""
        pairs, sides = self.comparison.launches, zip(("base", "other"), self.comparison.works, strict=True)
        launches = Frame({f"{side}_{column}": getattr(work.launches, column)[getattr(pairs, side)]
                          for side, work in sides for column in ("kernel", "unit", "work")}, {})  # fmt: skip
        launches = launches.take(launches[f"base_{differ}"] != launches[f"other_{differ}"])
        figures = {**{column: key(column) for column in keys}, "base": total("base_work"),
                   "other": total("other_work"), "count": rows}  # fmt: skip
        return pivot(launches, keys, figures, ())

    def _moves(self) -> Iterator[Cause]:
        """Causes: launches that moved to another unit."""
        both = self.comparison.joint
        for kernel, source, target, work, _, count in self._paired("unit", ("base_kernel", "base_unit", "other_unit")):
            name = short_name(both.kernels[kernel] if kernel is not None and kernel >= 0 else UNKNOWN)
            yield Cause(work, f"{_LAUNCH.of(count)} of {name} ({time_text(work)} of work) moved from "
                              f"{both.units[source]} to {both.units[target]}.")  # fmt: skip

    def _other_shapes(self) -> Iterator[tuple[Cause, tuple[str, str]]]:
        """Causes: unnamed launches whose number of events differs from that of the paired launch."""
        both = self.comparison.joint
        if both.base.launches.named or self.comparison.lost != NOTHING_LOST:
            return
        for one, two, base, other, count in self._paired("kernel", ("base_kernel", "other_kernel")):
            names = both.kernels[one], both.kernels[two]
            amount = self.comparison.with_status(Amount("", base, other, count, count))
            if amount.status in CHANGED:
                change = f"{delta_text(round(amount.delta))} of work{change_text(amount)}"
                yield Cause(abs(amount.delta), f"{_LAUNCH.of(count)} of {names[0]} became {names[1]}: {change}."), names

    # -- waits

    def _late(self) -> Iterator[Cause]:
        """Causes: a unit that arrives later, so that the others wait longer for it; else the longest new wait.

        A unit is late only if the change in work of a unit explains less than half of the change in total.
        """
        by_scope: dict[str, dict[str, float]] = {}
        waits = self.comparison.waits(per_step=self.step is not None)
        for (unit, scope, _), amount in waits.items():
            # engines of a unit wait together, each by its own name
            units = by_scope.setdefault(scope, {})
            units[unit] = max(units.get(unit, 0), amount.delta, key=abs)
        count = max(len(self.comparison.joint.units), 1)
        if self.lead.status in CHANGED and 2 * abs(self.work.delta) <= abs(self.lead.delta) * count:
            late: dict[str, list[tuple[float, str]]] = {}
            for scope, units in by_scope.items():
                last = min(units, key=lambda unit: units[unit])
                longer = [ns for unit, ns in units.items() if unit != last]
                mean = sum(longer) / len(longer) if longer else 0
                if mean > 0 and units[last] < mean / 2:
                    late.setdefault(last, []).append((mean, scope))
            for unit, scopes in late.items():
                whole, (most, scope) = sum(mean for mean, _ in scopes), max(scopes)
                part = f", {time_text(round(most))} of it{_in(scope)}" if len(scopes) > 1 else _in(scope)
                yield Cause(whole, f"Waits, not work: {unit} comes later to where the others wait, each "
                                   f"{time_text(round(whole))} longer{self.a_step}{part}.", waits=True)  # fmt: skip
            if late:
                return
        floor = _WAITS * self.comparison.noise.between * max(self.lead.base, self.lead.other)
        longest = max(waits, key=lambda wait: waits[wait].delta, default=("", "", ""))
        if waits and waits[longest].delta > floor:
            took, (unit, scope, _) = time_text(round(waits[longest].delta)), longest
            yield Cause(0, f"{unit} waits {took} longer{self.a_step}{_in(scope)}{self._alone(longest)}.",
                        waits=True)  # fmt: skip

    def _alone(self, which: Names) -> str:
        """The one of these waits that grew by more than half of what all of them did; empty if there is none."""
        ours, theirs = (
            waits.take(np.logical_and.reduce([waits.has(column, name.__eq__) for column, name in
                                              zip(("unit", "kernel", "name"), which, strict=True)]))
            for waits in self.comparison.waits_of_sides
        )  # fmt: skip
        if len(ours) != len(theirs) or len(ours) < 2:
            return ""
        one, two = (waits.take(np.argsort(waits["start"], kind="stable")) for waits in (ours, theirs))
        longer = two["ns"] - one["ns"]
        most = int(longer.argmax())
        if longer[most] <= _MOST * self.comparison.waits()[which].delta:
            return ""
        return f"; one of them {time_text(int(longer[most]))} longer, at {time_text(int(two['start'][most]))}"


def _in(scope: str) -> str:
    return "" if scope == UNKNOWN else f" in {short_name(scope)}"


def status_word(amount: Amount) -> str:
    """Status of a total in words."""
    return _WORDS.get(amount.status, amount.status)


def change_text(amount: Amount) -> str:
    """The change as a share of the base, in parentheses; empty without a base."""
    share = amount.delta / amount.base if amount.base else 0
    return f" ({'+' if amount.delta > 0 else ''}{percent_text(share)})" if amount.base else ""


def is_renamed(parts: Sequence[Amount]) -> bool:
    """Whether most changes are of names that one side alone has."""
    alone = sum(abs(part.delta) for part in parts if not part.base_count or not part.other_count)
    return alone > _MOST * sum(abs(part.delta) for part in parts)


def short_name(name: str) -> str:
    """A name from a profile as a line of text, cut."""
    cut = line_text(name)
    return cut if len(cut) <= _NAME else f"{cut[: _NAME - 3]}..."
