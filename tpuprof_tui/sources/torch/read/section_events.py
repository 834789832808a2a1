"""Result of a process that reads a section of a large trace."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.sources.chrome.chunks import Tally


class SectionEvents(Struct, frozen=True, eq=False):
    """Events of a section. Codes and event numbers start at 0, offsets are those of the file.

    Attributes:
        state: Size and modification time of the file.
        first, offset: Number of the first complete event of each chunk of text, and its offset.
        names, keys, texts, identities: Values by code.
        told: What identifies collectives: numbers of events, and codes in ``identities``.
        list_end, text_end: Offsets of the end of the list and of the text.
    """

    state: tuple[int, int]
    count: int
    first: list[int]
    offset: list[int]
    names: list[Any]
    keys: list[Any]
    texts: list[Any]
    identities: list[str]
    told: dict[str, npt.NDArray[Any]]
    events: dict[str, npt.NDArray[Any]]
    work: dict[str, npt.NDArray[Any]]
    memory: dict[str, npt.NDArray[Any]]
    series: dict[tuple[str, str], Any]
    further_series: set[tuple[str, str]]
    process_names: dict[str, str]
    thread_names: dict[tuple[str, str], str]
    flow_processes: set[str]
    defects: dict[str, Any]
    metadata: dict[str, Any]
    tallies: dict[str, Tally]
    truncated: bool
    list_end: int
    text_end: int
