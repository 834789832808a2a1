"""When Python looks for cycles of garbage: never through what lasts as long as the capture is open.

A full collection visits every object. With the screens' modules and a capture's tables that is 70 ms and more, felt as
a key that hangs now and then.
"""

from __future__ import annotations

import gc
from typing import Final

#: Objects made since the last look before the youngest are looked at; a frame makes some thousand and keeps few.
YOUNG: Final = 10_000


def be_patient() -> None:
    """Looks seldom from now on: modules that are imported are no garbage."""
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


def settle() -> None:
    """Collects once, then leaves all there is out of later collections."""
    unsettle()
    gc.collect()
    gc.freeze()
    be_patient()


def unsettle() -> None:
    """What was left out may be garbage soon: another capture is to be opened."""
    gc.unfreeze()
