"""String tables of text columns; events hold codes into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from tpuprof_tui.formats.kernel_names import readable_names

#: Most strings that are shortened together.
_MOST_READABLE: Final = 20_000


class Strings(Sequence[str]):
    """The distinct strings of a text column by code, in order of first use; code -1 (missing) gives ``""``."""

    def __init__(self, values: Iterable[str] | Callable[[], Iterable[str]] = ()) -> None:
        """Takes the strings, or a function that returns them, which is called on first access."""
        self._given = values if callable(values) else tuple(values)

    @cached_property
    def _values(self) -> tuple[str, ...]:
        return tuple(self._given()) if callable(self._given) else self._given

    def __getitem__(self, code: int) -> str:  # type: ignore[override]
        return self._values[code] if 0 <= code < len(self._values) else ""

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def readable(self, code: int) -> str:
        """The string for people: names of kernels in C++ without namespaces, parameters and plumbing."""
        text = self[code]
        return self._readable.get(text) or readable_names((text,))[text]

    @cached_property
    def _readable(self) -> dict[str, str]:
        # of very many each by itself: distinct ones may then look alike
        return readable_names(self._values) if len(self._values) <= _MOST_READABLE else {}

    @cached_property
    def ranks(self) -> npt.NDArray[np.int32]:
        """Alphabetical rank of each code (case-folded, then exact), plus a last entry so that ``ranks[-1]`` is -1."""
        order = sorted(range(len(self._values)), key=lambda code: (self._values[code].casefold(), self._values[code]))
        ranks = np.full(len(self._values) + 1, -1, dtype=np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks

    def texts(self, codes: npt.NDArray[np.integer]) -> list[str]:
        """Texts of an array of codes; empty for missing ones."""
        values = (*self._values, "")
        return [values[code] for code in codes.tolist()]


class StringsOnDemand(Strings):
    """Strings of a column that is read in parts: a code is valid as soon as it was read. Thread-safe.

    Looking at all strings reads the whole column first, by the functions in ``read_all``.
    """

    _values: list[str]  # type: ignore[assignment]

    def __init__(self) -> None:
        self._values = []
        self._codes: dict[str, int] = {}
        self._lock = Lock()
        self.read_all: list[Callable[[], object]] = []

    def code(self, text: str) -> int:
        """Code of ``text``, assigned on first use."""
        with self._lock:
            code: int = self._codes.setdefault(text, len(self._values))
            if code == len(self._values):
                self._values.append(text)
            return code

    def __len__(self) -> int:
        self._read_all()
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        self._read_all()
        return iter(list(self._values))

    def _read_all(self) -> None:
        while self.read_all:
            self.read_all[-1]()
            self.read_all.pop()

    @property
    def ranks(self) -> npt.NDArray[np.int32]:
        """As in `Strings`, of the codes so far."""
        return Strings(list(self._values)).ranks


class StringsBuilder:
    """Collects strings while a profile is built and assigns their codes."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str) -> int:
        """Code of ``text``, assigned on first use."""
        code = self._codes.setdefault(text, len(self._texts))
        if code == len(self._texts):
            self._texts.append(text)
        return code

    def text(self, code: int) -> str:
        """Text of an assigned code; empty for -1."""
        return self._texts[code] if 0 <= code < len(self._texts) else ""

    def build(self) -> Strings:
        """Returns the table of the strings collected so far."""
        return Strings(self._codes)
