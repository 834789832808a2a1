"""Columns of raw hardware counters: the fields of monitor records other than times and id.

They are hidden by default and not written to files by default. A counter's key is its name in the record layout,
spelling included.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tpuprof_tui.model.columns import COUNTERS as GROUP
from tpuprof_tui.model.columns import Column


class PublishedColumn(Column, frozen=True):
    """A column whose name in files is exactly that of the published converter."""

    #: Value written to files where it is missing and the converter writes something.
    placeholder: str | int | float | None = None


_SOURCE = "capture 5"
_DMA: Final = ("GDMA", "SDMA")

#: Key, title, unit, help.
_Entry = tuple[str, str, str, str]

_TIU: Final[tuple[_Entry, ...]] = (
    ("thread_id_and_bank_conflict", "Word 3", "", "Last word of the record as it is; 2 marks a system command."),
    ("computation_load", "Comp load", "", "Computation load."),
    ("num_read", "Reads", "", "Reads of local memory."),
    ("num_read_stall", "Read stalls", "cycles", "Stalls of reads of local memory."),
    ("num_write", "Writes", "", "Writes of local memory."),
)

_TRANSFER: Final[tuple[_Entry, ...]] = (
    ("ar_latency_cnt", "AR latency", "cycles", "Latency of read addresses."),
    ("rip_valid_latency", "RIP latency", "cycles", "Latency until read data is valid."),
    ("gif_wr_rd_stall_cntr", "LMEM stall", "cycles", "Stalls on the local memory side."),
    ("axi_d0_w_cntr", "Bus written", "B", "Bytes written on the DDR/L2 side."),
    ("axi_d0_ar_cntr", "Bus AR", "", "Read addresses on the DDR/L2 side."),
    ("axi_d0_aw_cntr", "Bus AW", "", "Write addresses on the DDR/L2 side."),
    ("axi_d0_wr_stall_cntr", "Bus wr stall", "cycles", "Stalls of writes on the DDR/L2 side."),
    ("axi_d0_rd_stall_cntr", "Bus rd stall", "cycles", "Stalls of reads on the DDR/L2 side."),
    ("gif_mem_w_cntr", "LMEM written", "B", "Bytes written to local memory."),
    ("gif_mem_ar_cntr", "LMEM read", "B", "Bytes read from local memory."),
    ("axi_d0_wr_vaild_cntr", "Bus wr shakes", "", "Handshakes of writes on the DDR/L2 side."),
    ("axi_d0_rd_vaild_cntr", "Bus rd shakes", "", "Handshakes of reads on the DDR/L2 side."),
    ("gif_wr_valid_cntr", "LMEM wr shakes", "", "Handshakes of writes to local memory."),
    ("gif_rd_valid_cntr", "LMEM rd shakes", "", "Handshakes of reads from local memory."),
)

_PORT: Final[tuple[_Entry, ...]] = (
    ("m0_data_aw_cntr", "Moved", "B", "Bytes moved, by write addresses."),
    ("m0_data_wr_cntr", "Written", "B", "Bytes written."),
    ("m0_data_ar_cntr", "Read", "B", "Bytes read, by read addresses."),
    ("m0_data_wr_valid_cntr", "Wr shakes", "", "Handshakes of writes."),
    ("m0_data_wr_stall_cntr", "Wr stall", "cycles", "Stalls of writes."),
    ("m0_data_rd_valid_cntr", "Rd shakes", "", "Handshakes of reads."),
    ("m0_data_rd_stall_cntr", "Rd stall", "cycles", "Stalls of reads."),
    ("ati_data_valid_cntr", "Link tx shakes", "", "Handshakes of data sent over the link."),
    ("ati_data_stall_cntr", "Link tx stall", "cycles", "Stalls of data sent over the link."),
    ("ari_data_valid_cntr", "Link rx shakes", "", "Handshakes of data received over the link."),
    ("ari_data_stall_cntr", "Link rx stall", "cycles", "Stalls of data received over the link."),
    ("ati_txfifo_stall_cntr", "Tx FIFO stall", "cycles", "Stalls on a full transmit FIFO."),
    ("replay_number", "Replays", "", "Retransmissions on the link."),
)

#: Phases of a CDMA command: name in the layout, title, what it is.
_PORT_PHASES: Final = (
    ("m0_data_b", "B", "write responses"),
    ("m0_data_ar", "AR", "read addresses"),
    ("m0_data_aw", "AW", "write addresses"),
    ("m0_data_rd", "Rd", "read data"),
    ("m0_data_wr", "Wr", "write data"),
    ("ati_data", "Link tx", "sending over the link"),
    ("ari_data", "Link rx", "receiving over the link"),
)

#: Interfaces of the wide DMA record, in the same form: two bus ports, local memory and L2 memory.
_WIDE_INTERFACES: Final = (
    ("axi_d0", "Bus 0", "bus port 0"),
    ("axi_d1", "Bus 1", "bus port 1"),
    ("gif_fmem", "LMEM", "local memory"),
    ("gif_l2sram", "L2", "L2 memory"),
)
_WIDE_BYTES: Final = (("aw", "AW", "write addresses"), ("wr", "wr", "writes"), ("ar", "AR", "read addresses"))
_WIDE_DIRECTIONS: Final = (("wr", "writes"), ("rd", "reads"))


def _columns(entries: Iterable[_Entry], engines: tuple[str, ...]) -> list[PublishedColumn]:
    return [
        PublishedColumn(key, title, unit=unit, width=max(10, len(title)), engines=engines, group=GROUP, help=text,
               source=_SOURCE)
        for key, title, unit, text in entries
    ]  # fmt: skip


def _phases(phases: Iterable[tuple[str, str, str]]) -> list[_Entry]:
    return [
        (f"{name}_{end}", f"{title} {word}", "cycles", f"Clock count when {noun} {verb}; 32 bits, wraps.")
        for name, title, noun in phases
        for end, word, verb in (("st", "start", "began"), ("end", "end", "ended"))
    ]


def _wide() -> list[_Entry]:
    entries: list[_Entry] = [
        (f"{interface}_{part}_bytes", f"{title} {word}", "B", f"Bytes of {noun} at {where}.")
        for interface, title, where in _WIDE_INTERFACES
        for part, word, noun in _WIDE_BYTES
    ]
    for kind, word, noun in (("valid", "shakes", "Handshakes"), ("stall", "stall", "Stalls")):
        entries += [
            (f"{interface}_{way}_{kind}_bytes", f"{title} {way} {word}", "", f"{noun} of {nouns} at {where}.")
            for interface, title, where in _WIDE_INTERFACES
            for way, nouns in _WIDE_DIRECTIONS
        ]
    parts = {"axi": ("aw", "ar", "wr", "rd"), "gif": ("ar", "wr", "rd")}
    entries += _phases(
        (f"{interface}_{part}", f"{title} {part}", f"{part.upper()} at {where}")
        for interface, title, where in _WIDE_INTERFACES
        for part in parts[interface[:3]]
    )
    return entries


COUNTERS: Final[tuple[PublishedColumn, ...]] = (
    *_columns(_TIU, ("TIU",)),
    *_columns([("thread_id", "Thread", "", "Issuing thread.")], ("TIU", *_DMA, "CDMA")),
    *_columns([("bank_conflict", "Bank conflict", "cycles", "Cycles lost to bank conflicts.")], ("TIU",)),
    *_columns(_TRANSFER, _DMA),
    *_columns(_wide(), _DMA),
    *_columns(_PORT, ("CDMA",)),
    *_columns(_phases(_PORT_PHASES), ("CDMA",)),
)
"""Columns of all counters of all record layouts, in the order of the records."""
