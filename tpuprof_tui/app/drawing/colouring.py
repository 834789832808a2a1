"""What the colours of the timeline mean: operation, kernel function, other names, or a share of a peak of the hardware.

Every colour has a letter: it stands in the cells where colours cannot be told apart, and in the legend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.analysis.index.lane_index import Cells, LaneIndex
from tpuprof_tui.analysis.index.running_sums import PiecewiseRate
from tpuprof_tui.analysis.selecting.filter_masks import FilterResult
from tpuprof_tui.analysis.selecting.session import Session
from tpuprof_tui.analysis.selecting.state import Colouring
from tpuprof_tui.formats.escape import clean
from tpuprof_tui.model import Lane, Profile, Role, Vocabulary
from tpuprof_tui.model.lane import ALL, Rows
from tpuprof_tui.model.vocabulary import Category, Shades, imported

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: What is of no category.
OTHER: Final = Category("other", "O", Shades("#9aa7b8", "#5d6878", "#b3b9c4"))
#: Colours of kinds of lanes that have none of their own.
_MORE_COLOURS: Final = ("#22c3c3", "#f59e57", "#f472b6", "#94a3f8")


@lru_cache(1024)
def category_of(vocabulary: Vocabulary, type_name: str) -> Category:
    """The category of events by their type."""
    lowered = type_name.casefold()
    for category in vocabulary.categories:
        if any(word in lowered for word in category.words):
            return category
    return OTHER


def lane_shades(vocabulary: Vocabulary, kind: str) -> Shades:
    """Colours of work on a kind of lane; kinds without any get one of their own, always the same."""
    known = vocabulary.lane_kind(kind)
    if known is not None and known.shades is not None:
        return known.shades
    return Shades(_MORE_COLOURS[sum(map(ord, kind)) % len(_MORE_COLOURS)])


#: More events than this in a cell are drawn in the engine's colour: few changes of style, no flicker.
TELLABLE: Final = 2
#: Ways of colouring that need nothing of the source.
PLAIN: Final[tuple[Colouring, ...]] = ("operation", "kernel")
#: Shares from here on, in fifths; brighter is more (on paper darker), which no eye confuses.
FIFTHS: Final = tuple(
    Category(name, letter, Shades(colour, paper))
    for name, letter, colour, paper in (
        ("below 20%", "a", "#8f6fd0", "#7d8fc9"), ("20 to 40%", "b", "#4f8fd0", "#3f86b8"),
        ("40 to 60%", "c", "#2fb5a0", "#14776a"), ("60 to 80%", "d", "#8fd05a", "#2f5f1f"),
        ("80% and more", "e", "#f7e463", "#4a2500"),
    )
)  # fmt: skip
#: Tints: no operation has one of them, so that a colour means one or the other. On paper they are shades.
_KERNEL_COLOURS: Final = (
    ("#a5c8ff", "#1f4f99"), ("#ffc9a3", "#994d1f"), ("#b7e4c7", "#1f6b3a"), ("#fbb6ce", "#993366"),
    ("#efe08a", "#6b5a00"), ("#d9c2ff", "#5a2f99"), ("#9be7e7", "#0f6666"), ("#ffb3bd", "#99263d"),
    ("#cfe58f", "#4d660f"), ("#c3cbff", "#363f99"), ("#ffe0c2", "#80501f"), ("#a3dcc5", "#0f6650"),
)  # fmt: skip
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_share(vocabulary: Vocabulary, colouring: Colouring) -> bool:
    """Whether colours mean a share: all that is neither operation nor kernel function nor other names does."""
    return colouring not in PLAIN and vocabulary.names(colouring) is None


def colourings(vocabulary: Vocabulary) -> tuple[Colouring, ...]:
    """Ways of colouring in the order in which the key goes through them: those of any source, then its own."""
    return (*PLAIN, *(share.key for share in vocabulary.shares), *(named.key for named in vocabulary.named))


def title_of(vocabulary: Vocabulary, colouring: Colouring) -> str:
    """What a way of colouring is called."""
    own = vocabulary.share(colouring) or vocabulary.names(colouring)
    if own is not None:
        return own.title
    return vocabulary.scope.one if colouring == "kernel" else vocabulary.phrase("category", colouring)


# a function of code and name alone, asked for each cell of the timeline
@lru_cache(4096)
def kernel_category(code: int, name: str) -> Category:
    """Letter and colour of a kernel function, or of another name; the first 52 have letters of their own."""
    letter = _LETTERS[code] if code < len(_LETTERS) else "?"
    return Category(clean(name), letter, Shades(*_KERNEL_COLOURS[code % len(_KERNEL_COLOURS)]))


def share_category(share: float) -> Category:
    """The fifth a share lies in."""
    return FIFTHS[min(max(int(share * len(FIFTHS)), 0), len(FIFTHS) - 1)]


def event_categories(
    profile: Profile, index: LaneIndex, rows: Ints, colouring: Colouring, kernels: Ints | None = None
) -> list[Category | None]:
    """Colours of some events, one each; None where nothing is known.

    ``kernels``: by code of a kernel function, or of another name, the number whose letter and colour it has, and -1 at
    the end; None: its code.
    """
    lane = index.lane
    if is_share(profile.vocabulary, colouring):
        shares = shares_of(profile, lane, colouring, rows).tolist()
        return [None if share != share else share_category(share) for share in shares]
    if colouring != "operation":
        numbers = name_numbers(index, rows, colouring)
        numbers = numbers if kernels is None else kernels[numbers]
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
    """Which names some events have, where colours mean kernel functions or other names; -1 where none is known."""
    unknown = np.full(len(rows), -1)
    if colouring == "kernel":
        return index.lane.take("kernel", rows) if "kernel" in index.lane else unknown
    found: npt.NDArray[np.int32] | None = index.cache.peek("colours", colouring)
    return unknown if found is None else found[rows]


def known_names(session: Session, colouring: Colouring) -> Sequence[str] | None:
    """What names are called, by number, where colours mean such; None: that has not been computed."""
    if session.profile.vocabulary.names(colouring) is None:
        return session.profile.strings.get("kernel", ()) if colouring == "kernel" else ()
    found: tuple[Sequence[str], object] | None = session.cache.peek("names of colours", colouring)
    return None if found is None else found[0]


def shares_of(profile: Profile, lane: Lane, colouring: Colouring, rows: Rows) -> Floats:
    """Bandwidth over the peak of the memory involved, or uArch rate, of some events.

    Returns:
        float64, 0 to 1 (a capture may claim more); NaN where unknown or not work.
    """
    shares = np.full(len(lane.take("role", rows)), np.nan)
    share = profile.vocabulary.share(colouring)
    # the first that is known and set counts, so it is taken last
    for key, name in reversed(share.columns) if share is not None else ():
        if key not in lane:
            continue
        values = np.asarray(lane.take(key, rows), np.float64)
        if not name:
            shares = values / 100.0
        elif profile.device.peak(name) > 0:
            shares = np.where(values > 0, values / profile.device.peak(name), shares)
    return np.where((lane.take("role", rows) == Role.WORK) & np.isfinite(shares), shares, np.nan)


#: Where more events than this must be summed first, a thread does it.
AT_ONCE: Final = 20_000


def is_summed(index: LaneIndex, colouring: Colouring) -> bool:
    """Whether the sums, or names, that a lane's colours rest on have been made, or it needs none."""
    return colouring in PLAIN or index.cache.peek("colours", colouring) is not None


def summed(session: Session, passing: FilterResult | None, colouring: Colouring) -> Iterator[None]:
    """Makes these of all lanes, and of what passes a filter, one lane after the other; O(events)."""
    profile, named = session.profile, session.profile.vocabulary.names(colouring)
    numbers: Sequence[npt.NDArray[np.int32]] = ()
    if named is not None:
        _, numbers = session.cache.get("names of colours", partial(imported(named.entry), session), colouring)
    for lane, index in enumerate(session.indexes):
        shown: list[tuple[LaneIndex, Rows]] = [(index, ALL)]
        if passing is not None:
            shown.append((passing.session.indexes[lane], np.flatnonzero(passing.lane(lane))))
        for each, rows in shown:
            if named is None:
                share_flows(profile, each, colouring)
            else:
                each.cache.get("colours", partial(profile.arrays.kept, numbers[lane][rows]), colouring)
        yield


def share_flows(profile: Profile, index: LaneIndex, colouring: Colouring) -> tuple[PiecewiseRate, PiecewiseRate]:
    """Flow of the share, and of the time for which it is known; made once for a lane, in O(its events)."""

    def made() -> tuple[PiecewiseRate, PiecewiseRate]:
        shares = shares_of(profile, index.lane, colouring, ALL)
        known = np.isfinite(shares)
        events = slice(None) if known.any() else slice(0)
        # where nothing is known nothing flows: so the lane's own starts and ends serve, and no copy of them is kept
        starts, ends, shares, known = index.starts[events], index.lane["end"][events], shares[events], known[events]
        return PiecewiseRate.of(starts, ends, np.where(known, shares, 0.0)), PiecewiseRate.of(
            starts, ends, known.astype(np.float64)
        )

    return index.cache.get("colours", made, colouring)


def cell_shares(profile: Profile, index: LaneIndex, colouring: Colouring, edges: Ints) -> Floats:
    """Mean share, over the time for which it is known, of each cell; NaN where nothing is known."""
    amount, time = (flow.between(edges) for flow in share_flows(profile, index, colouring))
    shares: Floats = np.divide(amount, time, out=np.full(len(time), np.nan), where=time > 0.5e-6)
    return shares


def cell_categories(
    profile: Profile, index: LaneIndex, held: Cells, edges: Ints, colouring: Colouring, kernels: Ints | None = None
) -> dict[int, Category]:
    """Colours of the cells that hold work, by cell.

    An operation shows only where few share a cell, a kernel function or another name is that of the cell's first event,
    a share is the mean of the cell. ``kernels``: as in ``event_categories``.
    """
    if is_share(profile.vocabulary, colouring):
        shares = cell_shares(profile, index, colouring, edges)
        return {place: share_category(float(shares[place])) for place in np.flatnonzero(shares == shares).tolist()}
    chosen = (held.busy > 0) & (held.first >= 0)
    if colouring == "operation":
        chosen &= held.count <= TELLABLE
    places = np.flatnonzero(chosen)
    found = event_categories(profile, index, held.first[places], colouring, kernels)
    return {place: each for place, each in zip(places.tolist(), found, strict=True) if each is not None}


def legend(profile: Profile, colouring: Colouring, names: Sequence[str] = ()) -> list[Category]:
    """All colours of a way of colouring that the profile can show, in their order; ``names``: other names."""
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
    """The next way of colouring of which the capture knows something."""
    known = colourings(profile.vocabulary)
    place = known.index(colouring) if colouring in known else 0
    order = (*known[place + 1 :], *known[: place + 1])
    return next((each for each in order if is_known(profile, each)), colouring)


def is_known(profile: Profile, colouring: Colouring) -> bool:
    """Whether the capture knows what a way of colouring shows; it always knows operations."""
    if colouring == "kernel":
        # the column may be there and name nothing
        return len(profile.strings.get("kernel", ())) > 0
    if (named := profile.vocabulary.names(colouring)) is not None:
        return named.needs in profile.capabilities
    share = profile.vocabulary.share(colouring)
    keys = ("start",) if colouring == "operation" else [key for key, _ in share.columns] if share is not None else ()
    return any(key in lane for lane in profile.lanes for key in keys)
