"""More that can be broken in a capture: its files, their framing, ``global.profile``."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

from .capture import MONITOR
from .damage_edits import (
    HEADER,
    PORTS,
    THREE,
    Damage,
    blocks,
    core_file,
    edit,
    edit_text,
    header_of,
    insert,
    joined,
    noise,
    overwrite,
)

_TIU, _GDMA = MONITOR[0], MONITOR[1]

# -- framing ------------------------------------------------------------------


def _header_lost(path: Path) -> None:
    edit(path / core_file(1), lambda data: data[8:])


def _claim(path: Path, kind: int, more: int) -> None:
    """The length in the header of a block is changed, its payload is not."""
    file = path / core_file(1)
    offset = header_of(file, kind)
    size = HEADER.unpack_from(file.read_bytes(), offset)[1]
    overwrite(file, offset, HEADER.pack(kind, size + more))


def _claim_long(path: Path) -> None:
    _claim(path, _GDMA, 64)


def _claim_short(path: Path) -> None:
    _claim(path, _GDMA, -128)


def _claim_nothing(path: Path) -> None:
    file = path / core_file(1)
    overwrite(file, 4, bytes(4))


def _kind_flipped(path: Path) -> None:
    file = path / core_file(1)
    overwrite(file, header_of(file, _GDMA), struct.pack("<I", _GDMA | 1 << 17))


def _kind_other(path: Path) -> None:
    file = path / core_file(1)
    overwrite(file, header_of(file, _GDMA), struct.pack("<I", 8))


def _hole(path: Path) -> None:
    file = path / core_file(1)
    insert(file, header_of(file, _GDMA), bytes(4096))


def _odd_hole(path: Path) -> None:
    file = path / core_file(1)
    insert(file, header_of(file, _GDMA), bytes(1001))


def _noise_before(path: Path) -> None:
    insert(path / core_file(1), 0, noise(333))


def _noise_between(path: Path) -> None:
    file = path / core_file(1)
    insert(file, header_of(file, _GDMA), noise(100))


def _noise_behind(path: Path) -> None:
    edit(path / core_file(1), lambda data: data + noise(500))


def _half(path: Path) -> None:
    edit(path / core_file(1), lambda data: data[: len(data) // 2])


def _header_only(path: Path) -> None:
    edit(path / core_file(1), lambda data: data[:8])


def _block_lost(path: Path) -> None:
    edit(path / core_file(1), lambda data: joined([part for part in blocks(data) if part.kind != _TIU]))


def _many_claims(path: Path) -> None:
    edit(path / core_file(1), lambda data: data + HEADER.pack(3, 0xFFFFFFF0) * 200)


# -- files --------------------------------------------------------------------


def _directory(path: Path) -> None:
    (path / core_file(1)).unlink()
    (path / core_file(1)).mkdir()


def _dangling(path: Path) -> None:
    (path / core_file(1)).unlink()
    (path / core_file(1)).symlink_to("gone.profile")


def _circle(path: Path) -> None:
    (path / core_file(1)).unlink()
    (path / core_file(1)).symlink_to(core_file(1))


def _pipe(path: Path) -> None:
    (path / core_file(1)).unlink()
    os.mkfifo(path / core_file(1))


def _no_number(path: Path) -> None:
    (path / core_file(1)).rename(path / "cdmlib_x.profile")


def _same_number(path: Path) -> None:
    (path / core_file(2)).rename(path / "cdmlib1_1.profile")


def _huge_number(path: Path) -> None:
    (path / core_file(1)).rename(path / "cdmlib0_4294967295.profile")


def _compressed(path: Path) -> None:
    edit(path / core_file(1), lambda data: gzip.compress(data, mtime=0))


def _line_ends(path: Path) -> None:
    edit(path / core_file(1), lambda data: data.replace(b"\n", b"\r\n"))


def _error_page(path: Path) -> None:
    page = b"<html><head><title>404 Not Found</title></head><body>" + b"<p>Not Found</p>" * 40 + b"</body></html>\n"
    edit(path / core_file(1), lambda _: page)


def _port_no_number(path: Path) -> None:
    (path / "cdma0_0.profile").rename(path / "cdma0_x.profile")


def _port_huge_number(path: Path) -> None:
    (path / "cdma0_0.profile").rename(path / "cdma0_40.profile")


def _port_pipe(path: Path) -> None:
    (path / "cdma0_0.profile").unlink()
    os.mkfifo(path / "cdma0_0.profile")


# -- global.profile --------------------------------------------------------------


def _settings(line: str) -> Callable[[Path], None]:
    """Changes that add a line."""

    def change(path: Path) -> None:
        edit_text(path / "global.profile", lambda text: f"{text}{line}\n")

    return change


def _settings_noise(path: Path) -> None:
    edit(path / "global.profile", lambda data: noise(300) + b"\n" + data)


def _settings_wide(path: Path) -> None:
    edit(path / "global.profile", lambda data: data.decode().encode("utf-16"))


def _settings_empty(path: Path) -> None:
    edit(path / "global.profile", lambda data: b"")


def _settings_cut(path: Path) -> None:
    edit(path / "global.profile", lambda data: data[: data.index(b"core0_gdma_record=") + 18])


def _settings_full(path: Path) -> None:
    edit_text(path / "global.profile", lambda text: text.replace("max_record_num=4096", "max_record_num=64"))


def _settings_more(path: Path) -> None:
    edit_text(path / "global.profile", lambda text: text.replace("core1_gdma_record=", "core1_gdma_record=1"))


FILE_DAMAGES: dict[str, Damage] = {
    "bad_header_lost": Damage("the first block of core 1 lost its header", _header_lost, lost=("TIU 1",)),
    "bad_claim_long": Damage("a block header that claims 64 bytes too many", _claim_long),
    "bad_claim_short": Damage("a block header that claims 128 bytes too few", _claim_short),
    "bad_claim_nothing": Damage("a block header that claims no bytes", _claim_nothing, lost=("TIU 1",)),
    "bad_kind_flipped": Damage("a bit flipped in the type of a block", _kind_flipped, lost=("GDMA 1",)),
    "bad_kind_other": Damage("the type of a block is another's", _kind_other, lost=("GDMA 1",), placeless=True),
    "bad_hole": Damage("4096 zeros between two blocks", _hole),
    "bad_odd_hole": Damage("1001 zeros between two blocks", _odd_hole),
    "bad_noise_before": Damage("noise before the first block", _noise_before),
    "bad_noise_between": Damage("noise between two blocks", _noise_between),
    "bad_noise_behind": Damage("noise behind the last block", _noise_behind),
    "bad_half": Damage("the second half of core 1 is missing", _half, THREE, partial=("core 1",)),
    "bad_header_only": Damage("core 1 ends behind its first header", _header_only, THREE, lost=("core 1",)),
    "bad_block_lost": Damage("the TIU records of core 1 are missing", _block_lost, lost=("TIU 1",), placeless=True),
    "bad_many_claims": Damage("200 block headers that claim 4 GiB each", _many_claims),
    "bad_directory": Damage("a directory in place of core 1", _directory, THREE, lost=("core 1",), placeless=True),
    "bad_dangling": Damage("core 1 is a link to nothing", _dangling, THREE, lost=("core 1",), placeless=True),
    "bad_circle": Damage("core 1 is a link to itself", _circle, THREE, lost=("core 1",), placeless=True),
    "bad_pipe": Damage("a pipe in place of core 1", _pipe, THREE, lost=("core 1",), placeless=True),
    "bad_no_number": Damage("the name of core 1 has no number", _no_number, placeless=True),
    "bad_same_number": Damage("two files have the number of core 1", _same_number, THREE, placeless=True),
    "bad_huge_number": Damage("the name of core 1 has a number of ten digits", _huge_number, placeless=True),
    "bad_compressed": Damage("core 1 was compressed", _compressed, THREE, lost=("core 1",)),
    "bad_line_ends": Damage("core 1 was copied as text: bytes 10 became 13 10", _line_ends, THREE,
                            partial=("core 1",)),
    "bad_error_page": Damage("core 1 is a web server's error page", _error_page, THREE, lost=("core 1",)),
    "bad_port_no_number": Damage("the name of a CDMA file has no number", _port_no_number, PORTS, lost=("port 0",),
                                 placeless=True),
    "bad_port_huge_number": Damage("a CDMA port that the chip does not have", _port_huge_number, PORTS,
                                   lost=("port 0",), placeless=True),
    "bad_port_pipe": Damage("a pipe in place of a CDMA port", _port_pipe, PORTS, lost=("port 0",), placeless=True),
    "bad_settings_noise": Damage("noise before the lines of global.profile", _settings_noise),
    "bad_settings_wide": Damage("global.profile in UTF-16", _settings_wide, allow=("refuse",)),
    "bad_settings_empty": Damage("global.profile is empty", _settings_empty, allow=("refuse",)),
    "bad_settings_cut": Damage("global.profile is cut within a number", _settings_cut),
    "bad_settings_full": Damage("record counts above max_record_num", _settings_full),
    "bad_settings_more": Damage("global.profile counts 1269 records of 269", _settings_more, placeless=True),
    "bad_freq_word": Damage("tpu_freq=fast", _settings("tpu_freq=fast")),
    "bad_freq_huge": Damage("tpu_freq of 400 digits", _settings("tpu_freq=" + "9" * 400)),
    "bad_core_num_huge": Damage("core_num=4294967295", _settings("core_num=4294967295"), placeless=True),
    "bad_tail_huge": Damage("tail_offset_ns beyond 64 bits", _settings("tail_offset_ns=" + "9" * 30)),
}  # fmt: skip
