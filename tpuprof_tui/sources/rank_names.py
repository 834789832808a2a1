"""Ranks and stages in the names of files and folders: a guess, for recordings that do not state their rank.

Known are ``rank`` with its number behind it (``rank_0``, ``rank-0_``, ``_rank3``), the names of vLLM
(``dp0_pp0_tp1_dcp0_ep0_rank1``) and those of SGLang (``<id>-TP-1-DP-0-EXTEND``). A letter before ``rank`` makes another
word of it (``frank7``), and the host in the default names of PyTorch's and Ascend's profilers says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.lazy_names import lazy_pattern

#: Words for what a server computes, as SGLang appends them to the names of files by stage; some are common words.
_STAGES: Final = "TARGET_VERIFY|DRAFT_EXTEND|SPLIT_PREFILL|EXTEND|PREFILL|DECODE|MIXED|VERIFY|DRAFT"
_STAGE: Final = lazy_pattern(
    rf"(?<![a-z])(?:({_STAGES})(?=\.|$)|(?:SPLIT_)?PREFILL|(?:DRAFT_)?EXTEND|DECODE)(?![a-z])", re.IGNORECASE
)
_NUMBER: Final = r"[ _=-]?(\d{1,7})(?=of\d|[^\da-z]|$)"
_RANK: Final = lazy_pattern(rf"(?:(?<![a-z])([a-z]+)[ _-]?)?(?<![a-z])rank{_NUMBER}", re.IGNORECASE)
#: What stands before ``rank`` where its number is no rank of a process.
_NO_RANK: Final = frozenset(("lora", "dora", "node", "low", "page"))
_LOCAL: Final = "local"
#: Place of a rank in a grid of ranks, as SGLang writes it: -TP-0-DP-1-PP-0-EP-0.
_SGLANG: Final = lazy_pattern(
    rf"(?:^|[-_])TP-(\d{{1,7}})((?:-[A-Z]{{1,4}}-\d{{1,7}})*)(?:-(?:{_STAGES}))?(?=\.|$)", re.IGNORECASE
)
#: The same as a label of processes in merged files: TP00-DP01-PP00-EP00.
_LABEL: Final = lazy_pattern(r"[A-Z]{2,4}\d{1,7}(?:-[A-Z]{2,4}\d{1,7})*")
_VLLM: Final = lazy_pattern(r"(?<![a-z\d])dp(\d{1,7})_pp\d+_(?:[a-z]+\d+_)*rank(\d{1,7})(?!\d)", re.IGNORECASE)
_DIMENSION: Final = lazy_pattern(r"-([A-Z]+)-(\d+)", re.IGNORECASE)
#: Default names: host, process id, time.
_DEFAULT: Final = lazy_pattern(r"([^_]+)_\d+(?:\.\d{10,}\.pt\.trace\.json|_\d{14,}_ascend_)")
_DOMAIN: Final = lazy_pattern(r"\.[A-Za-z]")
#: Names without any of these, which are no labels either, say nothing.
_WORDS: Final = ("rank", "tp-", "extend", "prefill", "decode", "mixed", "verify", "draft")
#: Characters at the end of a longer name that are looked at.
_LONGEST: Final = 1024


class NamedRank(Struct, frozen=True):
    """What a name says of a rank."""

    rank: int | None = None  #: Its number; None if the name says none, or only one of several dimensions
    stage: str = ""  #: Word for the stage that was recorded, as in the name; empty if it says none
    place: tuple[int, ...] = ()  #: Its numbers along the dimensions that ranks are counted by, the last one fastest


def rank_in_name(name: str, host: str = "") -> NamedRank:
    """What the name of a file or folder says of its rank.

    Args:
        name: The name, without its folders.
        host: Name of the machine, if known: a rank in it is none.
    """
    name = name[-_LONGEST:]
    words = name.lower()
    if not any(word in words for word in _WORDS) and not name[:2].isupper():
        return NamedRank()
    if _LABEL.fullmatch(name):
        name = re.sub(r"([A-Z]+)", r"-\1-", name).replace("--", "-")
    if host:
        name = name.replace(host, " ")
    default = _DEFAULT.match(name)
    if default is not None and _DOMAIN.search(default[1]):
        name = name[default.end(1) :]
    place = _place(name)
    stages = [match[0] for match in _STAGE.finditer(name)]
    # along all dimensions but the last, 0 is the only number that adds nothing
    rank = place[-1] if place and not any(place[:-1]) else None
    return NamedRank(rank, stages[-1] if stages else "", place)


def ranks_in_names(names: Sequence[str], hosts: Sequence[str] = ()) -> list[NamedRank]:
    """`rank_in_name` of the names of one run; together they may tell the size of each dimension, and so every rank."""
    found = [rank_in_name(name, hosts[index] if hosts else "") for index, name in enumerate(names)]
    places = {each.place for each in found if each.place}
    lengths = {len(place) for place in places}
    if len(lengths) != 1 or not any(any(place[:-1]) for place in places):
        return found
    if len({place[-1] for place in places}) == len(places):  # the last number alone tells them apart
        return [replace(each, rank=each.place[-1]) if each.place else each for each in found]
    sizes = [max(place[axis] for place in places) + 1 for axis in range(lengths.pop())]
    full = 1
    for size in sizes:
        full *= size
    if full > len(places):
        return [replace(each, rank=None) if each.place else each for each in found]
    return [replace(each, rank=_number(each.place, sizes)) if each.place else each for each in found]


def _number(place: tuple[int, ...], sizes: Sequence[int]) -> int:
    number = 0
    for index, size in zip(place, sizes, strict=True):
        number = number * size + index
    return number


def _place(name: str) -> tuple[int, ...]:
    if (match := _VLLM.search(name)) is not None:
        return int(match[1]), int(match[2])
    if (match := _SGLANG.search(name)) is not None:
        others = {key.upper(): int(value) for key, value in _DIMENSION.findall(match[2])}
        # experts are spread over the ranks of the other dimensions
        return others.get("DP", 0), others.get("PP", 0), int(match[1])
    found = [((match[1] or "").lower(), int(match[2])) for match in _RANK.finditer(name)]
    found = [each for each in found if each[0] not in _NO_RANK]
    numbers = {number for word, number in found if word != _LOCAL} or {number for _, number in found}
    return (numbers.pop(),) if len(numbers) == 1 else ()
