"""Colourings of the timeline: by operation, kernel function, other names, or share of a hardware peak.

Every category has a letter besides its colour, for the legend and for cells of terminals without distinct colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.lane_index import LaneCells, LaneIndex, PiecewiseRate
from tpuprof_tui.analysis.selecting.filter_masks import FilterResult
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring
from tpuprof_tui.analysis.totals.work_sums import shares_of
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Profile, Vocabulary
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.vocabulary import Category, Shades, import_entry

from .theme import COLOURS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Category of events without another one.
OTHER: Final = Category("other", "E", Shades("#9aa7b8", "#5d6878", "#b3b9c4"))
#: Colours for kinds of lanes without one in the vocabulary.
_MORE_COLOURS: Final = ("#22c3c3", "#f59e57", "#f472b6", "#94a3f8")


@lru_cache(1024)
def category_of(vocabulary: Vocabulary, type_name: str) -> Category:
    """Category of events by type name: the first with a word that the name contains, else ``OTHER``."""
    lowered = type_name.casefold()
    for category in vocabulary.categories:
        if any(word in lowered for word in category.words):
            return category
    return OTHER


def lane_shades(vocabulary: Vocabulary, kind: str) -> Shades:
    """Colours of work on a kind of lane; for unknown kinds, one chosen by a stable hash of the kind."""
    known = vocabulary.lane_kind(kind)
    if known is not None and known.shades is not None:
        return known.shades
    return Shades(_MORE_COLOURS[sum(map(ord, kind)) % len(_MORE_COLOURS)])


#: Cells with more events than this use the lane's colour: fewer style changes, no flicker.
MAX_EVENTS_IN_OWN_COLOUR: Final = 2
#: Colourings that do not depend on the source's vocabulary.
PLAIN: Final[tuple[Colouring, ...]] = ("operation", "kernel")
#: Categories of shares, in fifths. Brighter is more (on a light background darker), which is also colour-blind safe.
FIFTHS: Final = tuple(Category(name, letter, Shades(*shades)) for name, letter, *shades in COLOURS.fifths)
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_share(vocabulary: Vocabulary, colouring: Colouring) -> bool:
    """Whether a colouring shows shares, rather than operations, kernel functions or other names."""
    return colouring not in PLAIN and vocabulary.names(colouring) is None


def colourings(vocabulary: Vocabulary) -> tuple[Colouring, ...]:
    """Colourings in the order in which the key switches them: the plain ones, then the source's own."""
    return (*PLAIN, *(share.key for share in vocabulary.shares), *(named.key for named in vocabulary.named))


def title_of(vocabulary: Vocabulary, colouring: Colouring) -> str:
    """Display name of a colouring."""
    own = vocabulary.share(colouring) or vocabulary.names(colouring)
    if own is not None:
        return own.title
    return vocabulary.scope.one if colouring == "kernel" else vocabulary.phrase("category", colouring)


# cached: called for each cell of the timeline
@lru_cache(4096)
def kernel_category(code: int, name: str) -> Category:
    """Category of a kernel function or other name, by code; the first 52 have distinct letters."""
    letter = _LETTERS[code] if code < len(_LETTERS) else "?"
    return Category(clean(name), letter, Shades(*COLOURS.names[code % len(COLOURS.names)]))


def share_category(share: float) -> Category:
    """Category of the fifth that a share (0 to 1) is in."""
    return FIFTHS[min(max(int(share * len(FIFTHS)), 0), len(FIFTHS) - 1)]


def event_categories(
    profile: Profile, index: LaneIndex, rows: Ints, colouring: Colouring, colour_numbers: Ints | None = None
) -> list[Category | None]:
    """Category of each of some events; None if unknown.

    ``colour_numbers``: maps the code of a kernel function or other name to the number that determines its letter and
    colour, with a trailing -1 for code -1; None: the code itself.
    """
    lane = index.lane
    if is_share(profile.vocabulary, colouring):
        shares = shares_of(profile, lane, colouring, rows).tolist()
        return [None if share != share else share_category(share) for share in shares]
    if colouring != "operation":
        numbers = name_numbers(index, rows, colouring)
        numbers = numbers if colour_numbers is None else colour_numbers[numbers]
        return [kernel_category(number, "") if number >= 0 else None for number in numbers.tolist()]
    if "type" not in lane:
        return [None] * len(rows)
    codes, texts = lane.take("type", rows).tolist(), profile.strings["type"]
    found = {code: category_of(profile.vocabulary, texts[code]) for code in set(codes) if code >= 0}
    by_activity = {each.activity: each for each in profile.vocabulary.categories if each.activity is not None}
    if not by_activity or "activity" not in lane:
        return [found.get(code) for code in codes]
    activities = lane.take("activity", rows).tolist()
    return [by_activity.get(each, found.get(code)) for each, code in zip(activities, codes, strict=True)]


def name_numbers(index: LaneIndex, rows: Ints, colouring: Colouring) -> npt.NDArray[np.integer]:
    """Name code of some events, for a colouring by kernel function or other names; -1 if unknown."""
    unknown = np.full(len(rows), -1)
    if colouring == "kernel":
        return index.lane.take("kernel", rows) if "kernel" in index.lane else unknown
    found: npt.NDArray[np.int32] | None = index.cache.peek("colours", colouring)
    return unknown if found is None else found[rows]


def known_names(session: Session, colouring: Colouring) -> Sequence[str] | None:
    """Names by code for a colouring by names, empty for other colourings; None: not computed yet."""
    if session.profile.vocabulary.names(colouring) is None:
        return session.profile.strings.get("kernel", ()) if colouring == "kernel" else ()
    found: tuple[Sequence[str], object] | None = session.cache.peek("names of colours", colouring)
    return None if found is None else found[0]


#: Most events that are summed synchronously; more in a worker thread.
AT_ONCE: Final = 20_000


def has_colour_sums(index: LaneIndex, colouring: Colouring) -> bool:
    """Whether the sums or names that determine a lane's colours are cached, or none are needed."""
    return colouring in PLAIN or index.cache.peek("colours", colouring) is not None


def compute_colour_sums(session: Session, passing: FilterResult | None, colouring: Colouring) -> Iterator[None]:
    """Computes the sums or names of all lanes and of what passes a filter, yielding after each lane; O(events)."""
    profile, named = session.profile, session.profile.vocabulary.names(colouring)
    numbers: Sequence[npt.NDArray[np.int32]] = ()
    if named is not None:
        _, numbers = session.cache.get("names of colours", partial(import_entry(named.entry), session), colouring)
    for lane, index in enumerate(session.indexes):
        indexes: list[tuple[LaneIndex, Rows]] = [(index, ALL)]
        if passing is not None:
            indexes.append((passing.session.indexes[lane], np.flatnonzero(passing.lane(lane))))
        for each, rows in indexes:
            if named is None:
                share_flows(profile, each, colouring)
            else:
                each.cache.get("colours", partial(profile.arrays.stored, numbers[lane][rows]), colouring)
        yield


def share_flows(profile: Profile, index: LaneIndex, colouring: Colouring) -> tuple[PiecewiseRate, PiecewiseRate]:
    """Rate of the share, and of the time for which it is known; cached per lane, computed in O(events)."""

    def compute_flows() -> tuple[PiecewiseRate, PiecewiseRate]:
        shares = shares_of(profile, index.lane, colouring, ALL)
        known = np.isfinite(shares)
        events = slice(None) if known.any() else slice(0)
        # unknown shares have weight 0, so all events can be kept and the lane's arrays are shared, not copied
        starts, ends, shares, known = index.starts[events], index.lane["end"][events], shares[events], known[events]
        rate = partial(PiecewiseRate.of, starts, ends)
        return rate(np.where(known, shares, 0.0)), rate(known.astype(np.float64))

    return index.cache.get("colours", compute_flows, colouring)


def cell_shares(profile: Profile, index: LaneIndex, colouring: Colouring, edges: Ints) -> Floats:
    """Mean share of each cell over the time for which it is known; float64, NaN if unknown."""
    amount, time = (flow.between(edges) for flow in share_flows(profile, index, colouring))
    shares: Floats = np.divide(amount, time, out=np.full(len(time), np.nan), where=time > 0.5e-6)
    return shares


def cell_categories(
    profile: Profile, index: LaneIndex, cells: LaneCells, edges: Ints, colouring: Colouring,
    colour_numbers: Ints | None = None,
) -> dict[int, Category]:  # fmt: skip
    """Categories of the cells that hold work, by cell index; unknown ones are left out.

    Operations colour only cells with at most ``MAX_EVENTS_IN_OWN_COLOUR`` events; kernel functions and other names are
    those of the cell's first event; a share is the mean of the cell. ``colour_numbers``: as in ``event_categories``.
    """
    if is_share(profile.vocabulary, colouring):
        shares = cell_shares(profile, index, colouring, edges)
        return {cell: share_category(float(shares[cell])) for cell in np.flatnonzero(shares == shares).tolist()}
    chosen = (cells.busy > 0) & (cells.first >= 0)
    if colouring == "operation":
        chosen &= cells.count <= MAX_EVENTS_IN_OWN_COLOUR
    numbers = np.flatnonzero(chosen)
    found = event_categories(profile, index, cells.first[numbers], colouring, colour_numbers)
    return {cell: each for cell, each in zip(numbers.tolist(), found, strict=True) if each is not None}


def legend(profile: Profile, colouring: Colouring, names: Sequence[str] = ()) -> list[Category]:
    """Categories of a colouring that can occur in the profile, in order; ``names``: as from ``known_names``."""
    if is_share(profile.vocabulary, colouring):
        return list(FIFTHS)
    if colouring != "operation":
        names = profile.strings.get("kernel", ()) if colouring == "kernel" else names
        return [kernel_category(code, text) for code, text in enumerate(names)]
    vocabulary = profile.vocabulary
    present = {category_of(vocabulary, text) for text in profile.strings.get("type", ())}
    for each in vocabulary.categories:
        if each.activity is not None and any(
            "activity" in lane and (lane["activity"] == each.activity).any() for lane in profile.lanes
        ):
            present.add(each)
    return [category for category in (*vocabulary.categories, OTHER) if category in present]


def next_colouring(profile: Profile, colouring: Colouring) -> Colouring:
    """The next colouring that the capture has data for, cyclic."""
    cycle = colourings(profile.vocabulary)
    index = cycle.index(colouring) if colouring in cycle else 0
    order = (*cycle[index + 1 :], *cycle[: index + 1])
    return next((each for each in order if is_known(profile, each)), colouring)


def is_known(profile: Profile, colouring: Colouring) -> bool:
    """Whether the capture has the data for a colouring; always true for operations."""
    if colouring == "kernel":
        # the column may exist without any name
        return len(profile.strings.get("kernel", ())) > 0
    if (named := profile.vocabulary.names(colouring)) is not None:
        return named.needs in profile.capabilities
    share = profile.vocabulary.share(colouring)
    keys = ("start",) if colouring == "operation" else [key for key, _ in share.columns] if share is not None else ()
    return any(key in lane for lane in profile.lanes for key in keys)
