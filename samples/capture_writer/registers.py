"""Commands as register bytes: what DYN_EXTRA, DES blocks and bmodel streams hold."""

from __future__ import annotations

from collections.abc import Callable

from .chips import CDMA, DDR, FP32, GDMA, INT8, INT16, LMEM, MEMORY_TAG, TIU
from .layouts import Values, layouts, pack
from .program import Program, Row
from .synchronisation import DEPENDENCY_ENABLE

_BANK = 0x4000
_BANKS = 16
#: High part of an address of eight bits, by memory.
_NARROW_TAG = (0x80, 0x80, 0)
#: Where the weights and the activations of a kernel lie in DDR.
_WEIGHTS, _ACTIVATIONS = 0x2000_0000, 0x0080_0000


def command_bytes(program: Program, number: int) -> bytes:
    """Register bytes of command ``number`` of a program."""
    row = program.rows[number]
    if row.engine == TIU:
        values = _tiu_values(program, number)
    elif row.engine == CDMA:
        values = _cdma_values(program, number)
    else:
        values = _dma_values(program, number)
    layout = layouts(program.chip.layouts)[row.op.layout]
    return pack(layout, values | {"cmd_id_dep": _dependency(program, row)})


def _dependency(program: Program, row: Row) -> int:
    """Id of the other engine's command to wait for; a bit says so, of TIU on the chips with a handshake alone."""
    told = row.engine == GDMA or (row.engine == TIU and program.chip.framed)
    return row.dependency | (DEPENDENCY_ENABLE if row.dependency and told else 0)


# -- addresses ------------------------------------------------------------


def _local(number: int) -> int:
    """Local memory of a command's result: the banks in turn."""
    return number % _BANKS * _BANK


def _operands(program: Program, number: int) -> tuple[int, int]:
    """Local addresses of both operands: results of what the command waits for, else of what ran before."""
    row = program.rows[number]
    sources = [*row.after, max(number - 1, 0), max(number - 2, 0)]
    return _local(sources[0]), _local(sources[1])


def _global(program: Program, number: int) -> int:
    """DDR address of a transfer: tiles of a kernel's tensors one after the other."""
    row = program.rows[number]
    return (_WEIGHTS if row.dtype == INT8 else _ACTIVATIONS) + row.moved_before


def _address(program: Program, number: int, memory: int) -> tuple[int, int]:
    """High and low part of a 45-bit DMA address."""
    low = _local(number) if memory == LMEM else _global(program, number)
    tag = _NARROW_TAG[memory] if program.chip.address_high == "h8" else MEMORY_TAG[memory] << 8
    return tag | low >> 32, low & 0xFFFFFFFF


# -- TIU ------------------------------------------------------------------


def _tiu_values(program: Program, number: int) -> Values:
    row = program.rows[number]
    n, c, h, w = row.shape
    opd0, opd1 = _operands(program, number)
    signed = int(row.dtype != INT8)
    values: Values = {
        "cmd_short": int(row.op.layout.startswith("s")),
        "tsk_typ": row.op.type, "tsk_eu_typ": row.op.function, "pwr_step": 3,
        "res0_n": n, "res0_c": c, "res0_h": h, "res0_w": w,
        "res0_addr": _local(number), "opd0_addr": opd0, "opd1_addr": opd1,
        "opt_res0_prec": row.dtype, "opt_opd0_prec": row.dtype, "opt_opd1_prec": row.dtype, "opt_opd2_prec": row.dtype,
        "opt_opd0_sign": signed, "opt_opd1_sign": signed,
    }  # fmt: skip
    return values | _TIU_EXTRA.get(row.op.layout, _nothing)(row)


def _nothing(row: Row) -> Values:
    return {}


def _convolution(row: Row) -> Values:
    return {
        "opd0_c": row.k, "opd0_h": row.shape[2], "opd0_w": row.shape[3], "opd1_h": 1, "opd1_w": 1,
        "opt_opd2_const": 1, "opt_opd2_prec": FP32, "res_op_x_str": 1, "res_op_y_str": 1,
    }  # fmt: skip


def _pooling(row: Row) -> Values:
    height, width = row.shape[2], row.shape[3]
    return {
        "opd0_h": height, "opd0_w": width * row.k, "opd1_h": 1, "opd1_w": row.k, "res_op_x_str": row.k,
        "res_op_y_str": 1,
    }  # fmt: skip


def _product(row: Row) -> Values:
    inner, width = row.k, row.shape[3]
    transposed = row.op.key == "mm2_nt"
    return {
        "opd1_c": width if transposed else inner, "opd1_w": inner if transposed else width,
        "opt_opd2_prec": FP32, "opt_opd2_const": 1,
    }  # fmt: skip


def _old_product(row: Row) -> Values:
    return {"opd0_n": row.shape[1], "opd0_c": 1, "opd0_w": row.k, "opd1_w": row.shape[3]}


def _arithmetic(row: Row) -> Values:
    single = row.op.key in ("ar_cast", "ar_copy", "ar_abs")
    return {"tsk_opd_num": 1 if single else 2, "res0_w_str": 1, "opd0_w_str": 1, "opd1_w_str": 1}


def _requantised(row: Row) -> Values:
    return {"opt_opd0_prec": INT8, "opt_opd0_sign": 1, "opt_opd2_sign": 1}


def _moved(row: Row) -> Values:
    return {"opd0_c": row.shape[1], "opd0_w": row.shape[3]}


def _gathered(row: Row) -> Values:
    return {"opd0_h": 1, "opd0_w": row.shape[3], "opd1_c": row.shape[1], "opd1_w": row.shape[3],
            "opt_opd1_prec": INT16}  # fmt: skip


def _gathered_lines(row: Row) -> Values:
    return {"opd0_h": 1, "opt_opd1_prec": INT16, "short_opd0_str": 3}


def _table(row: Row) -> Values:
    return {"opd1_n": max(row.k, 1), "opd2_n_str": 2}


def _selected(row: Row) -> Values:
    return {"opt_opd1_const": 1, "opt_opd2_const": 1, "opt_opd3_const": 1}


def _correlated(row: Row) -> Values:
    return {"opd0_c": row.shape[1], "opd0_w": row.shape[3], "opd1_w": row.shape[3]}


def _linear(row: Row) -> Values:
    # sixteen-bit addresses and eight-bit sizes
    return {"tsk_opd_num": 2, "res0_c": min(row.shape[1], 255), "res0_w": min(row.shape[3], 255)}


def _message(row: Row) -> Values:
    """What a sync command names: the message, and how many sends it takes."""
    return {"imm": row.count << 16 | row.message}


def _immediate(row: Row) -> Values:
    return {"reg_idx0": 5, "reg_idx1": 32, "reg_idx2": 36, "imm0": row.count}


_TIU_EXTRA: dict[str, Callable[[Row], Values]] = {
    "sCONV": _convolution,
    "sPorD": _pooling,
    "sMM": _old_product,
    "sMM2": _product,
    "sAR": _arithmetic,
    "sRQ&sDQ": _requantised,
    "sCW&sBC": _moved,
    "sSG": _gathered,
    "sSGL": _gathered_lines,
    "sSFU": _table,
    "sCMP": _selected,
    "sVC": _correlated,
    "LAR": _linear,
    "SYS": _message,
    "SYS_TR_ACC": _immediate,
}


# -- DMA ------------------------------------------------------------------


def _strides(prefix: str, shape: tuple[int, int, int, int]) -> Values:
    _, c, h, w = shape
    return {f"{prefix}_nstride": c * h * w, f"{prefix}_cstride": h * w, f"{prefix}_hstride": w, f"{prefix}_wstride": 1}


def _sizes(prefix: str, shape: tuple[int, int, int, int]) -> Values:
    return {f"{prefix}_{axis}size": size for axis, size in zip("nchw", shape, strict=True)}


def _dma_values(program: Program, number: int) -> Values:
    row = program.rows[number]
    values: Values = {
        "cmd_short": int(row.op.system), "cmd_type": row.op.type, "cmd_special_function": row.op.function,
        "src_data_format": row.dtype,
    }  # fmt: skip
    if row.op.system:
        return values | {"constant_value": row.count << program.chip.message_count_bit | row.message}
    high = program.chip.address_high
    src_high, src_low = _address(program, number, row.src)
    dst_high, dst_low = _address(program, number, row.dst)
    values |= {
        "stride_enable": 1, "nchw_copy": 1, "localmem_mask_l32": 0xFFFFFFFF, "localmem_mask_h32": 0xFFFFFFFF,
        f"src_start_addr_{high}": src_high, "src_start_addr_l32": src_low,
        f"dst_start_addr_{high}": dst_high, "dst_start_addr_l32": dst_low,
    }  # fmt: skip
    values |= _strides("src", row.shape) | _strides("dst", row.shape)
    values |= _sizes("src", row.shape) | _sizes("dst", row.shape)
    return values | _DMA_EXTRA.get(row.op.layout, _nothing)(row)


def _copied(row: Row) -> Values:
    n, c, h, w = row.shape
    return {"cmd_length": n * c * h * w}


def _indexed(row: Row) -> Values:
    return {
        "index_cstride": 1, "index_csize": 1, "index_hsize": row.shape[2],
        "index_start_addr_h13": MEMORY_TAG[DDR] << 8, "index_start_addr_l32": _ACTIVATIONS,
    }  # fmt: skip


def _noise(row: Row) -> Values:
    """Registers nobody describes: bits that mean nothing."""
    return {"unknown": (1 << 640) // 3 * (row.op.type | 1) % (1 << 640)}


_DMA_EXTRA: dict[str, Callable[[Row], Values]] = {
    "DMA_unknown": _noise,
    "DMA_general": _copied,
    "DMA_gather": _indexed,
    "DMA_scatter": _indexed,
}


def _cdma_values(program: Program, number: int) -> Values:
    row = program.rows[number]
    values: Values = {
        "cmd_type": row.op.type, "cmd_special_function": row.op.function, "src_data_format": row.dtype,
    }  # fmt: skip
    if row.op.system:
        return values | {"constant_value_l32": row.count << 16 | row.message}
    address = _global(program, number)
    for side in ("src", "dst"):
        high = MEMORY_TAG[DDR] << 8
        values |= {f"{side}_start_addr_{part}": high for part in ("h13", "h8")}
        values |= {f"{side}_start_addr_l32": address & 0xFFFFFFFF}
        values |= _strides(side, row.shape) | _sizes(side, row.shape)
    return values | {"stride_enable": 1, "nchw_copy": 1}
