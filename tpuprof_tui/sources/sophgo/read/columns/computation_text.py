"""Text of one TIU command: result and operands in one line, in the terms of the instruction set.

    mm2.nn R[64,1,128] f16 b1+0x0 <- L[64,4096] f16 b0+0x0 x R[4096,128] f16 b2+0x0 +acc relu

Local memory addresses are written as bank and offset, after the first lane if it is not lane 0 (``n4.b1+0x0``).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tpuprof_tui.sources.sophgo.chips.chip import Chip

from ..commands.operation_counts import base_name
from ..commands.registers import Command

Values = Mapping[str, int]
Dims = tuple[str, ...]

_TYPES = ("i8", "f16", "f32", "i16", "i32", "bf16", "i4", "f8", "f20", "tf32")
_FLOATS = frozenset(("f16", "f32", "bf16", "f8", "f20", "tf32"))


def type_text(code: int, sign: int | None = None) -> str:
    """Short name of a data type; unsigned integers begin with ``u``."""
    if not 0 <= code < len(_TYPES):
        return f"type{code}"
    text = _TYPES[code]
    return "u" + text[1:] if sign == 0 and text not in _FLOATS else text


def local_address(chip: Chip, address: int) -> str:
    """A local memory address as bank and offset, after the lane if that is not 0."""
    lane_bytes = 1 << int(chip.parameter("Tpu Lmem Addr Width(bits)"))
    lane, inside = divmod(address, lane_bytes)
    bank, offset = divmod(inside, 1 << int(chip.parameter("Tpu Bank Addr Width(bits)")))
    return f"{f'n{lane}.' if lane else ''}b{bank}+{offset:#x}"


class Operand(Struct, frozen=True):
    """An operand: prefix of its registers, registers of its shape (``a|b``: b if a is missing), mark before it."""

    prefix: str
    dims: Dims = ("res0_n", "res0_c", "res0_h", "res0_w")
    mark: str = ""


_LIKE_RESULT = (Operand("opd0"), Operand("opd1"), Operand("opd2"))
_OWN = ("opd0_n|res0_n", "opd0_c|res0_c", "opd0_h", "opd0_w")
_KERNEL = Operand("opd1", ("opd1_n", "opd1_c", "opd1_h", "opd1_w"), "k")
_WINDOW = Operand("opd1", ("opd1_h", "opd1_w"), "k")
_TWO = Operand("opd1", ("opd1_n", "opd1_c", "opd1_h", "opd1_w"))
_LEFT, _RIGHT = ("res0_c", "opd1_c"), ("opd1_c", "opd1_w")

#: Operands by operation; other operations have up to three of the result's shape.
_OPERANDS: dict[str, tuple[Operand, ...]] = {
    "CONV": (Operand("opd0", _OWN), _KERNEL, Operand("opd2", ())),
    "CONV_BW": (Operand("opd0", _OWN), _KERNEL),
    "CONV_DW": (Operand("opd0", _OWN), _KERNEL, Operand("opd2", ())),
    "PorD": (Operand("opd0", _OWN), _KERNEL, Operand("opd2", ())),
    "MM": (Operand("opd0", ("opd0_n", "opd0_c", "opd0_w"), "L"), Operand("opd1", ("opd1_w",), "R"),
           Operand("opd2", ())),
    "SFU": (Operand("opd0"), Operand("opd1", ("opd1_n",), "table")),
    "VC": (Operand("opd0", ("opd0_c", "opd0_w")), Operand("opd1", ("opd1_w",))),
    "SG": (Operand("opd0", _OWN), _TWO),
    "SGL": (Operand("opd0", _OWN), _TWO),
    "CW&BC": (Operand("opd0", _OWN),),
    "RQ&DQ": (Operand("opd0"), Operand("opd1", ())),
    "REDUCE": (Operand("opd0", _OWN),),
    "LAR": (Operand("opd0", ("res0_c", "res0_w")), Operand("opd1", ("res0_c", "res0_w"))),
    "RAND": (),
    "PRNG": (),
}  # fmt: skip

#: Matrix products by form: left and right operand.
_PRODUCTS: dict[str, tuple[Operand, Operand]] = {
    "nn": (Operand("opd0", _LEFT, "L"), Operand("opd1", _RIGHT, "R")),
    "nt": (Operand("opd0", ("res0_c", "opd1_w"), "L"), Operand("opd1", _RIGHT, "R^T")),
    "tt": (Operand("opd0", ("opd1_w", "res0_c"), "L^T"), Operand("opd1", _RIGHT, "R^T")),
}
_PRODUCT_FORMS = {4: "nn", 7: "nn", 5: "nt", 8: "nt", 11: "nt", 13: "nt", 6: "tt", 9: "tt", 12: "tt"}

#: Functions of PorD that have a window instead of weights.
_POOLING = frozenset((1, 3, 4))

#: Boolean options.
_FLAGS = (("opt_res_add", "+acc"), ("opt_relu", "relu"), ("opt_rq", "requantise"), ("opt_left_tran", "left transposed"),
          ("opt_kernel_rotate", "kernel rotated"), ("sym_range", "symmetric"))  # fmt: skip


def _options(values: Values) -> list[str]:
    """Texts of padding, steps and inserted zeros; empty without any."""
    pads = [values.get(f"opd0_{side}_pad", 0) for side in ("up", "dn", "lf", "rt")]
    x, y = values.get("res_op_x_str", 1), values.get("res_op_y_str", 1)
    inserted = [values.get(f"opd{number}_{axis}_ins0", 0) for number in (0, 1) for axis in "yx"]
    return [
        *([f"pad {','.join(map(str, pads))}"] if any(pads) else []),
        *([f"step {y},{x}"] if max(x, y) > 1 else []),
        *([f"insert {','.join(map(str, inserted))}"] if any(inserted) else []),
    ]


def tiu_text(chip: Chip, command: Command) -> str:
    """Text of a decoded TIU command other than a system command, without times."""
    values = command.values
    base = base_name(command.operation.name)
    parts = [command.function_text]
    result = _result(chip, base, values)
    sources = [text for operand in _operands(base, command) if (text := _operand(chip, operand, values))]
    joined = (" x " if base in ("MM", "MM2") else ", ").join(sources[:2])
    parts += [result] if result else []
    parts += ["<- " + ", ".join([joined, *sources[2:]])] if joined else []
    parts += [text for name, text in _FLAGS if values.get(name)]
    return " ".join([*parts, *_options(values)])


def _operands(base: str, command: Command) -> tuple[Operand, ...]:
    if base == "MM2":
        extra = () if command.values.get("opt_opd2_const") else (Operand("opd2", ()),)
        return (*_PRODUCTS[_PRODUCT_FORMS.get(command.function, "nn")], *extra)
    if base == "PorD" and command.function in _POOLING:
        return Operand("opd0", _OWN), _WINDOW
    operands = _OPERANDS.get(base, _LIKE_RESULT)
    count = command.values.get("tsk_opd_num", 0)
    return operands[:count] if count and operands is _LIKE_RESULT else operands


def _shape(values: Values, dims: Dims) -> str:
    names = (next((name for name in dim.split("|") if name in values), "") for dim in dims)
    known = [values[name] for name in names if name]
    return f"[{','.join(map(str, known))}]" if known else ""


def _result(chip: Chip, base: str, values: Values) -> str:
    if "res0_addr" not in values:
        return ""
    dims: Dims = ("res0_c", "res0_n", "res0_w") if base == "MM2" else ("res0_n", "res0_c", "res0_h", "res0_w")
    shape = _shape(values, dims)
    if base == "MM2" and "res0_n" not in values:
        shape = f"[{values.get('res0_c', 0)},1,{values.get('res0_w', 0)}]"
    sign = next((values[name] for name in ("opt_res0_sign", "res0_sign", "res_sign") if name in values), None)
    code = values.get("opt_res0_prec", values.get("opt_opd2_prec", values.get("opt_opd0_prec", -1)))
    kind = type_text(code, sign) if code >= 0 else ""
    return " ".join(part for part in (f"R{shape}", kind, local_address(chip, values["res0_addr"])) if part)


def _operand(chip: Chip, operand: Operand, values: Values) -> str:
    address = values.get(f"{operand.prefix}_addr")
    if address is None:
        return ""
    code = values.get(f"opt_{operand.prefix}_prec", values.get("opt_opd0_prec", values.get("opt_res0_prec", -1)))
    kind = type_text(code, values.get(f"opt_{operand.prefix}_sign", values.get(f"{operand.prefix}_sign")))
    if values.get(f"opt_{operand.prefix}_const"):
        return f"{kind if code >= 0 else ''} {address:#x}".strip()
    shape = operand.mark + _shape(values, operand.dims)
    if operand is _WINDOW:
        return shape
    return " ".join(part for part in (shape, kind if code >= 0 else "", local_address(chip, address)) if part)
