"""The chosen instructions of a lane, with the values of every column of workbook and merged CSV."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from tpuprof_tui.analysis.query import Query
from tpuprof_tui.export.selection import ordered_lanes, rows_of
from tpuprof_tui.formats.xlsx.rows import CELL, COUNT, KEY_CELL, SheetColumn, Source
from tpuprof_tui.model import INT_MISSING, Lane, Profile, Role
from tpuprof_tui.model.columns import COUNTERS as COUNTER_GROUP
from tpuprof_tui.model.lane import Rows, row_count, row_numbers, row_parts
from tpuprof_tui.model.uniques import uniques

from ..read.layers import LayerMap
from ..schema import COUNTERS, SCHEMA
from ..schema import column as column_of
from .fields import PUBLISHED, LaneFields, data_type_source, in_stream_order, recent_cycle_source
from .summary_table import ENGINES, published_rows

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
                     "uArch Ops", "DMA data size(B)", "Stall Cycle", "gmem_xact_cnt", "gmem_xfer_bytes(B)",
                     "gmem_dma_data_size(B)", "lmem_xfer_bytes", "lmem_dma_data_size(B)", "Bank Conflict Cycle",
                     "AR Latency Cycle"), COUNT),
    **dict.fromkeys(("DDR Bandwidth(GB/s)", "L2M Bandwidth(GB/s)", "gmem_bandwidth", "lmem_bandwidth"), "0.0000"),
    **dict.fromkeys(("uArch Rate", "Initial Cycle Ratio", "Bank Conflict Ratio"), "0.0%"),
}  # fmt: skip


def _sheet_column(name: str, source: Source | None, key: bool) -> SheetColumn:
    kind: Literal["int", "hex", "float", "percent", "text"] = "int" if source is None else source.kind
    if kind == "int" and ("addr" in name or "mask" in name):
        kind = "hex"
    style = KEY_CELL if key else replace(CELL, align="right" if kind == "hex" else "")
    return SheetColumn(name, kind, replace(style, form=_FORMATS.get(name, "General")), key, source is None)


Array = npt.NDArray[Any]

#: Columns of dependencies and messages.
_LINKS: Final = ("depends_on", "message", "message_count")
#: Rows read and written at a time.
SLICE: Final = 16_384


def chosen_lanes(query: Query, layers: LayerMap | None) -> list[LaneRows]:
    """Lanes with chosen instructions: by core, then TIU, GDMA, SDMA; then the ports."""
    profile, lanes = query.profile, []
    for number, lane in ordered_lanes(profile):
        rows = rows_of(query, number) if lane.kind in ENGINES else slice(0, 0)
        if count := row_count(rows):
            stream = in_stream_order(lane, rows)
            lanes.append(LaneRows(profile, number, lane, stream, count, rows, LaneFields(profile, lane), layers))
    return lanes


class LaneRows(Struct, dict=True):
    """The chosen instructions of a lane, in the terms of workbook and merged CSV."""

    profile: Profile
    number: int  #: The lane's number
    lane: Lane
    rows: Rows  #: Chosen rows in stream order
    count: int  #: Number of these rows
    by_start: Rows  #: The same rows in the order of their start
    fields: LaneFields  #: Fields of the reference
    layers: LayerMap | None = None  #: Layer of each command; None where it is not known

    @property
    def title(self) -> str:
        """Name of its sheet."""
        return f"{self.lane.kind}_{self.profile.number_of(self.lane)}"

    @cached_property
    def counted_rows(self) -> Rows:
        """Those of the rows that the published converter counts, in stream order."""
        counted = published_rows(self.profile, self.lane)
        if isinstance(counted, slice) and counted == slice(0, len(self.lane)):
            return self.rows
        numbers = row_numbers(self.rows)
        return numbers[np.isin(numbers, row_numbers(counted))]

    @cached_property
    def operations(self) -> list[int]:
        """Operations among the rows, ascending; -1 for condensed commands and rows without a command."""
        registers, parts = self.lane.registers, (part for part, _ in row_parts(self.rows, SLICE))
        if registers is None:
            return [-1]
        return sorted({number for rows in parts for number in uniques(registers.operations(rows)).tolist()})

    @cached_property
    def occurring(self) -> list[str]:
        """Names of the fields of these rows in the register text, without fillers."""
        return [name for name, source in self._text_sources.items() if not source.filler]

    @cached_property
    def _text_sources(self) -> dict[str, Source]:
        found: dict[str, Source] = {}
        for operation in self.operations:
            fields = self.fields.of(operation)
            for name, source in {**fields.main, **fields.extra}.items():
                written = source.values is not None or source.absent is not None
                if written and not (source.filler and name in found):
                    found[name] = source
        return found

    @cached_property
    def extra_sources(self) -> dict[str, Source]:
        """Columns that the register text lacks: dependencies, messages, raw counters, others with a name in files."""
        keys = [*_LINKS, *(column.key for column in COUNTERS)]
        named = [
            key for key, spec in SCHEMA.items()
            if spec.file_name and spec.group != "codes" and key != "engine" and key not in PUBLISHED
        ]  # fmt: skip
        sources: dict[str, Source] = {}
        for key in dict.fromkeys([*keys, *named]):
            spec = column_of(key)
            name = spec.key if spec.group == COUNTER_GROUP else spec.file_name or spec.title
            if key in self.lane and spec.applies_to(self.lane.kind) and name not in self.occurring:
                source = Source("int", partial(self.lane.take, key)) if key in keys else self.fields.source_of(key)
                sources[name] = source
        return sources

    @cached_property
    def sources(self) -> dict[int, dict[str, Source]]:
        """Source of the values of each column, by operation."""
        recent = recent_cycle_source(self.lane) if self.lane.kind == "TIU" else None
        found = {}
        for operation in self.operations:
            fields = self.fields.of(operation)
            sources = {**self.extra_sources, **fields.all, **self._layer_sources}
            if recent is not None:
                sources |= {"Avg Cycle Last 200": recent, "Data Type": data_type_source(fields)}
            else:
                for name, text in (("Direction", "-"), ("Data Type", "None")):
                    sources[name] = self._with_system_text(sources[name], text)
            if self.lane.kind == "CDMA":
                sources["Port"] = Source("int", None, self.lane.number)
            found[operation] = sources
        return found

    @cached_property
    def _layer_sources(self) -> dict[str, Source]:
        layers, lane = self.layers, self.lane
        if layers is None or lane.kind not in ("TIU", "GDMA"):
            by_scope = self.profile.vocabulary.scope.one == "layer" and "kernel" in lane
            name = replace(self.fields.source_of("kernel"), absent="-") if by_scope else Source("text", None, "-")
            return {"Layer Id": Source("text", None, "-"), "Layer Name": name}

        def number(rows: Rows) -> npt.NDArray[Any]:
            layer_indices = layers.indices(lane, rows)
            return np.where(layer_indices < 0, INT_MISSING, layer_indices + 1)

        names = [layer.name for layer in layers.network.layers]
        return {
            "Layer Id": Source("int", number, "-"),
            "Layer Name": Source("text", lambda rows: layers.indices(lane, rows).astype(np.int32), "-", names),
        }

    def _with_system_text(self, source: Source, text: str) -> Source:
        """A text column with ``text`` for system commands, which move nothing."""
        texts = [*source.texts, text, "" if source.absent is None else str(source.absent)]
        system, missing = len(texts) - 2, len(texts) - 1

        def values(rows: Rows) -> Array:
            role = self.lane.take("role", rows)
            codes = np.full(len(role), missing) if source.values is None else source.values(rows)
            codes = np.where(codes < 0, missing, codes)
            return np.where(role == Role.WORK, codes, system).astype(np.int32)

        return Source("text", values, None, texts)

    @property
    def _listed(self) -> tuple[str, ...]:
        return TIU_COLUMNS if self.lane.kind == "TIU" else DMA_COLUMNS

    def reference_names(self, lanes: Sequence[LaneRows]) -> list[str]:
        """Names of the reference's columns for the fields that occur in the register text of a core (outputs 5.1).

        Those of ``lanes`` with the same register text file count as well.
        """
        occurring = set(self._text_sources)
        unit_of = self.profile.unit_of
        for other in lanes:
            if unit_of(other.lane) == unit_of(self.lane) >= 0 and {other.lane.kind, self.lane.kind} == {"GDMA", "SDMA"}:
                occurring.update(other._text_sources)
        known = occurring | (_ADDED if len(occurring) >= len(self._listed) else set(self._listed))
        return [name for name in self._listed if name in known]

    def columns(self, lanes: Sequence[LaneRows]) -> list[SheetColumn]:
        """Columns of the sheet, given those of other lanes.

        The reference's come first, then fields that occur and that it drops, without reserved registers.
        """
        extra = [*self.occurring, *(["Port"] if self.lane.kind == "CDMA" else []), *self.extra_sources]
        first = [name for name in _FIRST_EXTRA if name in extra]
        names = [*self.reference_names(lanes), *first]
        passed = {*self._listed, *first}
        names += [name for name in extra if name not in passed and not name.lower().startswith(_RESERVED)]
        known: dict[str, Source] = {}
        for sources in self.sources.values():
            for name, source in sources.items():
                if name not in known or known[name].values is None:
                    known[name] = source
        return [_sheet_column(name, known.get(name), index < _KEY_COLUMNS) for index, name in enumerate(names)]
