"""Columns of a sheet of instructions: exactly those of the reference, then those that the reference drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec.structs import replace

from tpuprof_tui.formats.xlsx.rows import SheetColumn, Source
from tpuprof_tui.formats.xlsx.styles import CELL, COUNT, KEY_CELL

#: outputs 5.1; the order is the sheet's.
TIU_COLUMNS: Final = tuple(
    """Engine Id,Core Id,Global Idx,Cmd Id,Layer Id,Layer Name,Function Type,Function Name,Alg Cycle,Asic Cycle,
    Start Time(ns),End Time(ns),Avg Cycle Last 200,Alg Ops,uArch Ops,uArch Rate,Data Type,des_cmd_id_dep,
    des_res0_n,des_res0_c,des_res0_h,des_res0_w,des_res0_n_str,des_res0_c_str,des_res0_h_str,des_res0_w_str,
    des_opd0_n,des_opd0_c,des_opd0_h,des_opd0_w,des_opd0_n_str,des_opd0_c_str,des_opd0_h_str,des_opd0_w_str,
    des_opd1_n,des_opd1_c,des_opd1_h,des_opd1_w,des_opd1_n_str,des_opd1_c_str,des_opd1_h_str,des_opd1_w_str,
    des_opd2_n_str,des_res0_addr,des_res1_addr,des_opd0_addr,des_opd1_addr,des_opd2_addr,des_opd3_addr,
    des_tsk_typ,des_tsk_eu_typ,des_cmd_short,des_opt_res0_prec,des_opt_opd0_prec,des_opt_opd1_prec,
    des_opt_opd2_prec,des_short_opd0_str,des_opt_opd0_const,des_opt_opd1_const,des_opt_opd2_const,
    des_opt_opd3_const,des_opt_opd4_const,des_opt_opd5_const,des_opt_res_add,des_opt_res0_sign,
    des_opt_opd0_sign,des_opt_opd1_sign,des_opt_opd2_sign,des_opd0_rt_pad,des_opd1_x_ins0,des_opd0_up_pad,
    des_opd0_lf_pad,des_opt_left_tran,des_pad_mode,des_opd0_y_ins0,des_opd1_y_ins0,des_short_res0_str,
    des_short_opd1_str,des_sym_range,des_opt_rq,des_op_code,des_opt_kernel_rotate,des_res_op_x_str,
    des_res_op_y_str,des_opd0_x_ins0,des_tsk_opd_num,des_opd0_dn_pad,des_intr_en,des_opt_relu,
    des_pwr_step""".replace("\n    ", "").split(",")
)
DMA_COLUMNS: Final = tuple(
    """Engine Id,Core Id,Global Idx,Cmd Id,Layer Id,Layer Name,Function Type,Function Name,DMA data size(B),
    Start Time(ns),End Time(ns),Asic Cycle,Stall Cycle,DDR Bandwidth(GB/s),L2M Bandwidth(GB/s),Direction,
    Data Type,cmd_id_dep,cmd_special_function,src_start_addr,dst_start_addr,src_nsize,src_csize,src_hsize,
    src_wsize,dst_nsize,dst_csize,dst_hsize,dst_wsize,src_nstride,src_cstride,src_hstride,src_wstride,
    dst_nstride,dst_cstride,dst_hstride,dst_wstride,nchw_copy,stride_enable,src_data_format,cmd_type,
    index_csize,index_hsize,index_cstride,index_hstride,mask_start_addr_h8,mask_start_addr_l32,
    mask_data_format,localmem_mask_h32,localmem_mask_l32,fill_constant_en,constant_value,index,cmd_short,
    intr_en""".replace("\n    ", "").split(",")
)
#: Columns that are not in the register text and are never left out.
_ADDED: Final = frozenset(("Layer Id", "Layer Name", "Avg Cycle Last 200", "Data Type"))
#: The first of the further columns; the others follow in the order of the register text.
_FIRST_EXTRA: Final = ("kernel_func", "func_scope_id", "batch_launch", "mode", "Port")
_RESERVED: Final = ("reserve", "rsvd", "des_reserve", "des_rsvd")
_KEY_COLUMNS: Final = 20

_FORMATS: Final = {
    **dict.fromkeys(("Alg Cycle", "Asic Cycle", "Start Time(ns)", "End Time(ns)", "Avg Cycle Last 200", "Alg Ops",
                     "uArch Ops", "DMA data size(B)", "Stall Cycle", "gmem_xact_cnt"), COUNT),
    **dict.fromkeys(("gmem_xfer_bytes(B)", "gmem_dma_data_size(B)", "lmem_xfer_bytes", "lmem_dma_data_size(B)",
                     "Bank Conflict Cycle", "AR Latency Cycle"), COUNT),
    **dict.fromkeys(("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)", "gmem_bandwidth", "lmem_bandwidth"), "0.0000"),
    **dict.fromkeys(("uArch Rate", "Initial Cycle Ratio", "Bank Conflict Ratio"), "0.0%"),
}  # fmt: skip


def reference_names(engine: str, occurring: Sequence[str]) -> list[str]:
    """Names of the reference's columns for the fields that occur in the register text of a core (outputs 5.1)."""
    listed = TIU_COLUMNS if engine == "TIU" else DMA_COLUMNS
    if len(occurring) < len(listed):
        return list(listed)
    known = _ADDED.union(occurring)
    return [name for name in listed if name in known]


def extra_names(engine: str, occurring: Sequence[str]) -> list[str]:
    """Names of the occurring fields that the reference drops, without reserved registers."""
    listed = frozenset(TIU_COLUMNS if engine == "TIU" else DMA_COLUMNS)
    first = [name for name in _FIRST_EXTRA if name in occurring]
    return first + [
        name
        for name in occurring
        if name not in listed and name not in first and not name.lower().startswith(_RESERVED)
    ]


def sheet_columns(names: Sequence[str], sources: dict[str, Source]) -> list[SheetColumn]:
    """Columns with their formats; ``sources`` contains any one source of each name that has one."""
    return [_sheet_column(name, sources.get(name), index < _KEY_COLUMNS) for index, name in enumerate(names)]


def _sheet_column(name: str, source: Source | None, key: bool) -> SheetColumn:
    kind: Literal["int", "hex", "float", "percent", "text"] = "int" if source is None else source.kind
    if kind == "int" and ("addr" in name or "mask" in name):
        kind = "hex"
    style = KEY_CELL if key else replace(CELL, align="right" if kind == "hex" else "")
    return SheetColumn(name, kind, replace(style, form=_FORMATS.get(name, "General")), key, source is None)
