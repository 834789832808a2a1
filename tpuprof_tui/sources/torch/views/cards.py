"""What cards can do at most, as their makers' data sheets say: dense, without sparsity."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Card(NamedTuple):
    """Peaks of a card.

    Attributes:
        name: Regular expression of what traces call it.
        half: TFLOP/s of 16-bit numbers with matrix units.
        single: TFLOP/s of 32-bit numbers; TF32 where matrix units have it.
        memory: GB/s.
    """

    name: str
    half: float
    single: float
    memory: float


#: The first whose name is found counts.
CARDS: Final = (
    Card(r"GB?200|B200", 2250, 1100, 8000),
    Card(r"H200", 989.4, 494.7, 4800),
    Card(r"H100.*(PCIe|NVL)", 756, 378, 2000),
    Card(r"H800|H100", 989.4, 494.7, 3350),
    Card(r"H20\b", 148, 74, 4000),
    Card(r"A[18]00.*80GB", 312, 156, 2039),
    Card(r"A[18]00", 312, 156, 1555),
    Card(r"V100", 125, 15.7, 900),
    Card(r"L40S", 362, 183, 864),
    Card(r"L4\b", 121, 60, 300),
    Card(r"A10\b", 125, 62.5, 600),
    Card(r"T4\b", 65, 8.1, 320),
    Card(r"RTX 4090", 165.2, 82.6, 1008),
    Card(r"RTX 3090", 71, 35.6, 936),
    Card(r"MI325X", 1307.4, 653.7, 6000),
    Card(r"MI300X", 1307.4, 653.7, 5300),
    Card(r"MI250X", 191.5, 47.9, 1638),
    Card(r"MI250", 181, 45.3, 1638),
    Card(r"MI210", 181, 45.3, 1638),
    Card(r"MI100", 184.6, 46.1, 1229),
)


def card_named(name: str) -> Card | None:
    """The card with a name; None where it is not known."""
    return next((card for card in CARDS if re.search(card.name, name)), None)
