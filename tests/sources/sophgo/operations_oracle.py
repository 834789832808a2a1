"""The model of operations in plain integers, to compare with."""

from __future__ import annotations

import re
from collections.abc import Callable

LANES = {"aks": 64, "aksv": 64, "bm1684x": 64, "cv184x": 8, "bm1688": 32, "cv84x6": 16}
VECTOR = {"aks": 64, "aksv": 64, "bm1684x": 64, "cv184x": 16, "bm1688": 16, "cv84x6": 32}
CUBE = {"aks": 64, "aksv": 64, "bm1684x": 64, "cv184x": 16, "bm1688": 32, "cv84x6": 32}
BYTES = {0: 1, 1: 2, 2: 4, 3: 2, 4: 4, 5: 2, 6: 1, 7: 1}


def up(value: int, grain: int) -> int:
    return -(-value // grain) * grain


class Oracle:
    """The operation model in plain integers, one command at a time, straight from its description."""

    def __init__(self, chip: str, name: str, function: int, values: dict[str, int]) -> None:
        self.chip, self.name, self.function, self.r = chip, name.replace("s", ""), function, values
        self.lanes = LANES[chip]
        self.shape = [values.get(f"res0_{axis}", 0) for axis in "nchw"]
        self.p0, self.p1, self.p2, self.pr = (
            values.get(f"opt_{operand}_prec", 0) for operand in ("opd0", "opd1", "opd2", "res0")
        )

    def vector(self, precision: int) -> int:
        if precision == 7 and self.chip in ("bm1688", "cv184x"):
            raise ZeroDivisionError
        base = VECTOR[self.chip]
        return base * 2 if precision == 6 else base // BYTES[precision]

    def cube(self, precision: int) -> int:
        if precision == 7 and self.chip in ("bm1688", "cv184x"):
            raise ZeroDivisionError
        base = CUBE[self.chip]
        return 1 if precision in (2, 4) else base * 2 if precision == 6 else base // BYTES[precision]

    def plane(self, lanes: int) -> int:
        n, c, h, w = self.shape
        return n * up(c, self.lanes) * up(h * w, lanes)

    def rows(self, lanes: int) -> int:
        n, c, h, w = self.shape
        return n * up(c, self.lanes) * h * up(w, lanes)

    @property
    def all(self) -> int:
        n, c, h, w = self.shape
        return n * c * h * w

    def figures(self) -> tuple[int, int, int]:
        rule: Callable[[], tuple[int, int, int]] = getattr(self, "_" + re.sub(r"\W", "", self.name).lower())
        return rule()

    def _conv(self) -> tuple[int, int, int]:
        n, c, h, w = self.shape
        kernel = self.r["opd1_h"] * self.r["opd1_w"]
        bias = 1 if self.r["opt_opd2_const"] else 0
        alg = self.all * (2 * self.r["opd0_c"] * kernel - 1 + bias)
        if self.p0 == 2:
            uarch = self.plane(self.vector(2)) * (2 * self.r["opd0_c"] * kernel - 1 + bias)
            return alg, uarch, -(-alg // (self.lanes * self.vector(2) * 2))
        depth = up(self.r["opd0_c"], self.cube(self.p0))
        uarch = n * up(c, self.lanes) * up(h * w, 4) * (2 * depth * kernel - 1 + bias)
        return alg, uarch, -(-alg // (self.lanes * self.cube(self.p0) * 8))

    def _zero(self) -> tuple[int, int, int]:
        return 0, 0, 0

    _conv_bw = _conv_dw = _prng = _reduce = _lar = _rand = _zero

    def _sys(self) -> tuple[int, int, int]:
        return 1, 1, 0

    _sys_tr_acc = _sys_tr_wr = _sys

    def _mm(self) -> tuple[int, int, int]:
        m, k = self.r["opd0_n"], self.r["opd0_w"] * self.r["opd0_c"]
        _, c, _, w = self.shape
        alg = 2 * m * k * w * c
        uarch = 2 * m * k * up(c, self.lanes) * up(w, self.vector(self.p0))
        return alg, uarch, -(-alg // (self.vector(self.p0) * self.lanes * 2))

    def _mm2(self) -> tuple[int, int, int]:
        c, w = self.r["opd1_c"], self.r["opd1_w"]
        transposed_both = {6, 9, 12} if self.chip == "cv84x6" else {6}
        plain = {4, 7}
        if self.function in plain:
            m, k, q = self.shape[1], w, c
        elif self.function in transposed_both:
            m, k, q = self.shape[1], w, self.shape[3]
        else:
            m, k, q = self.shape[1], c, w
        lanes = self.cube(self.pr) if self.chip in ("bm1688", "cv184x") else self.vector(self.pr)
        alg = 2 * m * k * q
        uarch = 2 * up(m, self.lanes) * up(q, lanes) * up(k, 4)
        return alg, uarch, -(-alg // (self.cube(self.p0) * 4 * self.lanes * 2))

    def _cmp(self) -> tuple[int, int, int]:
        precision = self.p2 if self.function in (23, 24, 26) and self.chip != "cv84x6" else self.p0
        alg = 2 * self.all
        return alg, 2 * self.plane(self.vector(self.p0)), -(-alg // (16 // BYTES[precision] * self.lanes * 2))

    def _sfu(self) -> tuple[int, int, int]:
        taylor = {12} if self.chip == "cv84x6" else {12, 13}
        factor, gain = 1, 1
        if self.function in taylor:
            newer = self.chip in ("bm1688", "cv184x", "cv84x6")
            factor, gain = (2 * self.r["opd1_n"] - 1, 2) if newer else (self.r["opd1_n"], 1)
        elif self.function == 17:
            factor = 30
        lanes = self.vector(self.p0)
        alg = self.all * factor
        return alg, self.plane(lanes) * factor, -(-alg // (lanes * self.lanes * gain))

    def _lin(self) -> tuple[int, int, int]:
        alg = 2 * self.all
        lanes = self.vector(self.p0 if self.chip == "cv84x6" else self.pr)
        return alg, 2 * self.rows(lanes), -(-alg // (16 // BYTES[self.pr] * self.lanes * 2))

    def _vc(self) -> tuple[int, int, int]:
        _, c, _, w = self.shape
        count = 1
        if self.chip != "cv84x6":
            count = (self.r["opd0_c"] - 1) * self.r["opd0_w"] + self.r["opd1_w"]
        lanes = 16 // max(BYTES[self.p0], BYTES[self.p1], BYTES[self.pr])
        alg = count * c * w
        return alg, count * up(c, self.lanes) * up(w, lanes), -(-alg // (lanes * self.lanes))

    def _ar(self) -> tuple[int, int, int]:
        factor = 5 if self.function == 12 else 1
        lanes = self.vector(self.p0)
        alg = factor * self.all
        return alg, factor * self.plane(lanes), -(-alg // (lanes * factor * self.lanes))

    def _pord(self) -> tuple[int, int, int]:
        factor, gain = 6, 7
        if self.function in (0, 1, 2, 4):
            factor, gain = 2 * self.r["opd1_h"] * self.r["opd1_w"] - 1, {0: 2, 1: 1, 2: 2, 4: 1}[self.function]
        lanes = self.vector(self.p0)
        alg = self.all * factor
        return alg, self.plane(lanes) * factor, -(-alg // (gain * lanes * self.lanes))

    def _rqdq(self) -> tuple[int, int, int]:
        lanes = self.vector(self.p0)
        return 3 * self.all, 3 * self.plane(lanes), -(-3 * self.all // (lanes * self.lanes * 3))

    def _sg(self) -> tuple[int, int, int]:
        return self.all, self.rows(self.vector(self.p0)), -(-self.all // self.lanes)

    def _sgl(self) -> tuple[int, int, int]:
        return self.all, self.rows(self.vector(self.pr)), -(-self.all // self.lanes**2)

    def _cwbc(self) -> tuple[int, int, int]:
        if self.chip != "cv84x6" and self.function == 4:
            self.shape = [1, self.shape[1], 1, self.shape[3]]
        if self.chip != "cv84x6" and self.function == 5:
            self.shape = [1, self.shape[1], 1, 1]
        lanes, width = self.vector(self.pr), 16 // BYTES[self.pr]
        uarch = self.rows(lanes) if self.function in (0, 1) else self.plane(lanes)
        spread = self.lanes if self.function in (3, 4) else 1
        return self.all, uarch, -(-self.all // (width * spread))
