"""The operations a capture may hold: ``ops.csv``, one line each.

The order is part of the truth format: truth columns name an operation by its
line number.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chips import ENGINES


@dataclass(frozen=True)
class Op:
    """One operation: its hardware codes and the names a reader should show."""

    number: int
    key: str
    engine: int
    type: int
    function: int
    layout: str
    system: bool
    node: tuple[str, str]
    registers: tuple[str, str]
    undecodable_on: frozenset[str]

    def as_truth(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "engine": ENGINES[self.engine],
            "typ": self.type,
            "eu": self.function,
            "system": self.system,
            "node": list(self.node),
            "registers": list(self.registers),
        }


def _read() -> dict[str, Op]:
    with (Path(__file__).parent / "ops.csv").open(newline="", encoding="utf-8") as lines:
        return {
            line["key"]: Op(
                number,
                line["key"],
                ENGINES.index(line["engine"]),
                int(line["type"]),
                int(line["function"]),
                line["layout"],
                line["system"] == "1",
                (line["node_type"], line["node_name"]),
                (line["register_type"], line["register_name"]),
                frozenset(line["undecodable_on"].split()),
            )
            for number, line in enumerate(csv.DictReader(lines))
        }


OPS: dict[str, Op] = _read()
