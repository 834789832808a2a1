"""What the profile is compared with: from one difference to the next, the other way round, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tpuprof_tui.analysis.compare.differences import Differences
from tpuprof_tui.analysis.selecting.navigation import selected
from tpuprof_tui.views.differences import difference_text, differences_of, known_differences

from ..settings.actions import ActionTable
from ..shell.background import Background
from .position import Position
from .store import Store


class Comparing:
    """Answers the keys of a comparison.

    Args:
        store: The state.
        background: Looks for the differences.
        position: Where one is.
        swap: Opens the base, compared with what is open now.
        leave: Opens what is open now, compared with nothing.
        say: Tells something in the bottom line.
    """

    def __init__(
        self,
        store: Store,
        background: Background,
        position: Position,
        swap: Callable[[], object],
        leave: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        self.store = store
        self.background = background
        self.position = position
        self.say = say
        self.actions: ActionTable = {
            "next-difference": partial(self._compared, partial(self._step, 1)),
            "previous-difference": partial(self._compared, partial(self._step, -1)),
            "swap-sides": partial(self._compared, swap),
            "leave-comparison": partial(self._compared, leave),
        }

    def _compared(self, act: Callable[[], object]) -> None:
        """Does something where there is a comparison."""
        if self.store.session.baseline is None:
            self.say("Nothing to compare with: tpuprof OTHER --against BASE opens a comparison.")
        else:
            act()

    def _step(self, steps: int) -> None:
        """To the next event that was added, has other operands or took another time beyond noise."""
        session = self.store.session
        known = known_differences(session) is not None
        self.background.compute(
            "differences", partial(differences_of, session), partial(self._go, steps), at_once=known
        )

    def _go(self, steps: int, differences: Differences) -> None:
        session, state = self.store.session, self.store.state
        hits = self.position.marked()(differences.differs)
        if not len(hits):
            self.say("No difference beyond noise in what is shown.")
            return
        place, wrapped = hits.stepped(*self.position.here(), steps)
        number = int(hits.numbers[place])
        self.store.change(selected(session, state, *session.place(number)))
        again = f"  From the {'start' if steps > 0 else 'end'} again." if wrapped else ""
        self.say(f"{place + 1:,}/{len(hits):,}  {difference_text(session, differences, number)}{again}")
