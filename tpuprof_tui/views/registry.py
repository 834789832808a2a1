"""Registry of views: generic ones in the order of the summary, and those that a source adds or overrides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tpuprof_tui.errors import UsageError
from tpuprof_tui.model.view import View
from tpuprof_tui.model.vocabulary import NAMES, Vocabulary, import_entry

from .answer import Answer, Fact, Missing, plain_value
from .workers import FIGURES

if TYPE_CHECKING:
    from tpuprof_tui.analysis.query import Query
    from tpuprof_tui.model import Profile

_HERE: Final = "tpuprof_tui.views"

GENERIC: Final = (
    View("overview", "Overview", "Length, the busiest and the idlest {unit}, the most exposed transfer.",
         f"{_HERE}.overview:overview", place="second", quick=True),
    View("units", "{Units}", "How each {unit} spent its time: computing, moving data, both, neither.",
         f"{_HERE}.units:units", place="second", quick=True),
    View("unit", "One {unit} among the others", "How one {unit} compares with the others, and its longest pauses.",
         f"{_HERE}.units:one_unit", in_summary=False, place="first", quick=True, compared=False),
    View("lanes", "{Lanes}", "Busy, wait, sync and idle time, bytes and bandwidth of each {lane}.",
         f"{_HERE}.units:lanes", place="second", quick=True, facts=False),
    View("steps", "Steps", "Length of each {step}, the gap before it, what {units} did in it; what repeats within.",
         f"{_HERE}.steps:steps", facts_alone=f"{_HERE}.steps:step_facts"),
    View("kernels", "{Scopes}", "Which {scopes} the work belongs to.", f"{_HERE}.work:kernels", (NAMES,),
         place="first", quick=True, facts=False),
    View("operations", "{Operations}", "Which {operations} took the time.", f"{_HERE}.work:operations", (NAMES,),
         place="first", quick=True, facts=False),
    View("calltree", "Call paths", "Time by call path: what of the host or which {scope} called which {operations}.",
         f"{_HERE}.call_tree:call_tree_view", (NAMES,), in_summary=False, place="", compared=False),
    View("lost", "Lost against the peak", "Time beyond that at the hardware's peak, by {scope} and {operation}.",
         f"{_HERE}.work:lost", (NAMES,), place="second", quick=True, facts=False),
    View("findings", "Findings", "What is worth a look, by the time that could be saved.",
         f"{_HERE}.findings:findings_view", place="first", compared=False),
    View("critical_path", "Critical path", "The longest chain of {events} and gaps, and the gain from speeding it up.",
         f"{_HERE}.critical_path:critical", in_summary=False, place="", compared=False),
    View("bandwidth", "Bandwidth", "Bytes moved over time, by kind of {lane}.", f"{_HERE}.curves:bandwidth",
         in_summary=False, compared=False),
    View("durations", "Durations", "How long {events} of work took.", f"{_HERE}.curves:durations",
         in_summary=False, compared=False),
    View("counters", "Counters", "Counters measured in addition to the {events}.", f"{_HERE}.curves:counters",
         in_summary=False, compared=False),
    View("problems", "Problems", "What could not be used, was repaired or had to be guessed.",
         f"{_HERE}.problems:problems", untimed=True, place="", compared=False),
)  # fmt: skip


#: The view of a profile with a baseline.
COMPARISON: Final = View(
    "comparison", "Against the base", "What changed from the base, why, and what contributes.",
    f"{_HERE}.diff_report:verdict_view", in_summary=False, place="first", compared=False,
)  # fmt: skip


def views_of(vocabulary: Vocabulary, *, compared: bool = False, screen: bool = False) -> tuple[View, ...]:
    """The views of a source in the order of the summary; ``compared``: of a profile with a baseline.

    Views of the source override generic ones with the same id; new ones are inserted before the findings. ``screen``:
    include those for the screen only.
    """
    own = {view.id: view for view in vocabulary.views}
    found: list[View] = [COMPARISON] if compared else []
    for view in GENERIC:
        if view.id == "findings":
            known = {each.id for each in GENERIC}
            found += [each for each in vocabulary.views if each.id not in known]
        found.append(own.get(view.id, view))
    return tuple(view for view in found if screen or not view.screen_only)


def view_of(vocabulary: Vocabulary, name: str, *, screen: bool = False) -> View:
    """The view with an id (see ``views_of``); UsageError if there is none."""
    return COMPARISON if name == COMPARISON.id else view_named(vocabulary, views_of(vocabulary, screen=screen), name)


def view_named(vocabulary: Vocabulary, views: Sequence[View], name: str) -> View:
    """The view with an id, among some views; UsageError if there is none."""
    for view in views:
        if view.id == name:
            return view
    known = ", ".join(view.id for view in views)
    raise UsageError(f"There is no view {name!r} of this source ({vocabulary.title}).", f"There are: {known}.")


def answer(view: View, query: Query) -> Answer:
    """Computes a view; if capabilities are missing, the answer says what to record."""
    lacking = missing_for(view, query.profile)
    if lacking is not None:
        return Answer(missing=(lacking,))
    entry = f"{_HERE}.comparing:with_differences" if query.baseline is not None and view.compared else view.compute
    arguments = (view, query) if entry != view.compute else (query,)
    result: Answer = import_entry(entry)(*arguments)
    # each of several views has a table of its figures by worker
    title = f"{query.vocabulary.say(view.title)}, by worker"
    result = replace(result, tables=tuple(
        replace(table, title=title) if table.title == FIGURES else table for table in result.tables))  # fmt: skip
    if view.id == "overview" and query.baseline is None:
        result = import_entry(f"{_HERE}.overview:with_notes")(result, query)
    redactor = query.profile.redactor
    if redactor is not None:
        result = import_entry(f"{_HERE}.redacting:redacted_answer")(result, redactor)
    return result


def facts_of(view: View, query: Query) -> tuple[Fact, ...]:
    """The facts of a view, without computing expensive tables; empty if the profile lacks what it needs."""
    if not view.facts or missing_for(view, query.profile) is not None:
        return ()
    if not view.facts_alone:
        return answer(view, query).facts
    found: tuple[Fact, ...] = import_entry(view.facts_alone)(query)
    return found


def figures_of(facts: Iterable[Fact]) -> dict[str, float]:
    """The facts that are amounts, by key, in their own units; of several workers the largest."""
    found: dict[str, float] = {}
    for fact in facts:
        value = plain_value(fact.value)
        # moments since 1970 are no amounts
        if isinstance(value, (int, float)) and not isinstance(value, bool) and fact.epoch_ns is None:
            found[fact.key] = max(found.get(fact.key, value), value)
    return found


def missing_for(view: View, profile: Profile) -> Missing | None:
    """What a profile lacks for a view; None: nothing."""
    vocabulary = profile.vocabulary
    if not profile.timed and not view.untimed:
        return Missing(f"There are no times of {vocabulary.event.plural}.", "hardware records")
    found = [vocabulary.capability(key) for key in view.needs if not profile.has(key)]
    needs = " and ".join(f"a profile of {each.needs}" for each in found if each is not None)
    return Missing(f"{vocabulary.say(view.title)} are not known here.", needs) if needs else None


def ask(profile: Profile, name: str, **selection: Any) -> Answer:
    """Computes a view of a profile; ``selection``: ``Query`` fields. UsageError for an unknown view or a bad filter."""
    from tpuprof_tui.analysis.query import query_of

    return answer(view_of(profile.vocabulary, name), query_of(profile, **selection))
