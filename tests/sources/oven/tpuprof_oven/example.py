"""Recordings with a little of everything, of any size; functions of their arguments alone."""

from __future__ import annotations

from .recording import Event, RecordedLane, Recording

RECIPES = ("rye", "brioche", "pretzel")
#: Ticks of a round.
ROUND = 1_000


def bakery(number: int = 0, bakeries: int = 1, *, ovens: int = 2, rounds: int = 3) -> Recording:
    """One bakery of at most nine ovens: two trays and a meter for each oven, a baker, and a round after the other.

    A round of an oven on its first tray: 600 ticks of baking, 100 of carrying, 150 of passing on to the next bakery, 50
    of rest; on its second tray 300 of baking below the carrying and passing.
    """
    made = Recording(number, bakeries, 125, [{"number": 10 + oven, "watts": 2500.0} for oven in range(ovens)])
    baker = RecordedLane("baker", -1, 0, [])
    made.lanes.append(baker)
    trays = [[RecordedLane("tray", 10 + oven, tray, []) for tray in range(2)] for oven in range(ovens)]
    made.lanes += [tray for pair in trays for tray in pair]
    for turn in range(rounds):
        recipe = RECIPES[turn % len(RECIPES)]
        common = {"recipe": recipe, "round": turn, "put_by": 0}
        for oven, (upper, lower) in enumerate(trays):
            at, outer, begins = turn * ROUND + 100 * oven, len(baker.events), len(upper.events)
            baker.events += [Event(at, at + 60, "work", f"Set up {recipe}", recipe, 0, -1, turn),
                             Event(at + 10, at + 40, "work", "put.tray", recipe, 0, outer, turn)]  # fmt: skip
            upper.events += [
                Event(at + 50, at + 650, "bake", f"bake_{recipe}", **common),
                Event(at + 650, at + 750, "carry", "oven>rack", grams=800, **common),
                Event(at + 750, at + 900, "pass", "to_next_bakery", grams=800, **common),
                Event(at + 900, at + 950, "rest", "wait_for_dough", **common),
            ]
            lower.events.append(Event(at + 700, at + 1_000, "bake", f"crust_{recipe}", **common))
            first = 1 + 2 * oven
            made.calls += [[0, outer + 1, first, begins, "puts"], [first, begins, first + 1, turn, "hands on"]]
            made.rounds.append({"label": f"{recipe} {turn}", "oven": 10 + oven, "from": at, "until": at + ROUND})
    ticks = list(range(0, rounds * ROUND, 250))
    for oven in range(ovens):
        made.meters.append({"oven": 10 + oven, "name": "heat", "unit": "K", "ticks": ticks,
                            "values": [293.0 + tick % 700 for tick in ticks]})  # fmt: skip
    return made
