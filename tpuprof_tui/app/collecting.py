"""When Python looks for cycles of garbage: never through what lasts as long as the capture is open.

A full collection visits every object. With the screens' modules and a capture's tables that is 70 ms and more, felt as
a key that hangs now and then.
"""

from __future__ import annotations

import gc
from typing import Final

#: Objects made since the last look before the youngest are looked at; a frame makes some thousand and keeps few.
YOUNG: Final = 10_000


def settle() -> None:
    """Collects once, then leaves all there is out of later collections; what was left out before counts again.

    Meant for the thread that reads, when a capture is ready to show: the garbage of the one before it goes.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
