"""Whether parts of a sequence are equal, for many parts at once: hashes of all prefixes, taken once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
#: Where parts begin and end.
_Parts = tuple[Ints, Ints]

#: Two primes below 2**31: products of remainders fit int64, both remainders together tell 2**62 sequences apart.
_PRIMES: Final = (2_147_483_647, 2_147_483_629)
#: What hashes are made with, one for each prime; any other odd number would do.
_BASES: Final = (1_540_483_477, 1_812_433_253)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


class SequenceHash:
    """Polynomial hashes of the parts of a sequence: equal parts have equal ones, others with a chance of 2**-62.

    Args:
        codes: Whole numbers from 0 on, int64.
    """

    def __init__(self, codes: Ints) -> None:
        size = len(codes)
        # numpy's random numbers take longer to import than all hashes of a profile
        spread = np.arange(1, int(codes.max(initial=-1)) + 2, dtype=np.uint64) * _SPREAD
        spread = (spread ^ (spread >> np.uint64(29))) * _SPREAD
        self._size = size
        self._parts: list[tuple[int, Ints, Ints]] = []
        for prime, base in zip(_PRIMES, _BASES, strict=True):
            weights = ((spread ^ np.uint64(base)) % np.uint64(prime - 1)).astype(np.int64) + 1
            before = np.zeros(size + 1, np.int64)
            # below 2**31 each: sums of four thousand million of them fit
            np.cumsum(weights[codes] * _powers(base, size, prime) % prime, out=before[1:])
            self._parts.append((prime, before % prime, _powers(pow(base, -1, prime), size + 1, prime)))

    def of(self, start: Ints, stop: Ints) -> Ints:
        """int64 hashes of the parts [start, stop)."""
        found = np.zeros(len(start), np.int64)
        for prime, before, inverse in self._parts:
            part = (before[stop] - before[start]) % prime * inverse[start] % prime
            found = found << 31 | part
        return found

    def alike_from(self, one: Ints, other: Ints) -> Ints:
        """int64, how many numbers are the same from two places on; the second lies behind the first."""
        return self._alike(self._size - other, lambda count: (one, one + count), lambda count: (other, other + count))

    def alike_before(self, one: Ints, other: Ints) -> Ints:
        """int64, how many numbers are the same up to two places; the second lies behind the first."""
        return self._alike(one, lambda count: (one - count, one), lambda count: (other - count, other))

    def _alike(self, most: Ints, one: Callable[[Ints], _Parts], other: Callable[[Ints], _Parts]) -> Ints:
        """The longest equal parts, of at most so many numbers: found bit by bit, as shorter ones are equal then."""
        found = np.zeros(len(most), np.int64)
        for bit in reversed(range(int(most.max(initial=0)).bit_length())):
            longer = np.minimum(found + (1 << bit), most)
            found = np.where(self.of(*one(longer)) == self.of(*other(longer)), longer, found)
        return found


def commonest(hashes: Ints, weight: Ints | int = 1) -> npt.NDArray[np.bool_]:
    """Which parts are equal to the one that occurs most, each counting ``weight`` times; of several the first."""
    _, first, which, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    share = counts * np.broadcast_to(weight, len(hashes))[first]
    return np.asarray(which.reshape(-1) == np.lexsort((first, -share))[0])


def _powers(base: int, count: int, prime: int) -> Ints:
    """The first powers of a number modulo a prime: those there are, times the next, double their number."""
    found = np.ones(count, np.int64)
    known, factor = 1, base
    while known < count:
        more = min(known, count - known)
        found[known : known + more] = found[:more] * factor % prime
        factor = factor * factor % prime
        known += more
    return found
