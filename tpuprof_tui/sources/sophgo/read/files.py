"""Lists the files of a capture directory, reads their bytes, their blocks and the settings of the recording.

Files are read into buffers of the size found at open, not memory-mapped: a file that is truncated under a map kills the
process that reads it.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import BZIP2, GZIP, XZ, ZIP, ZSTD, natural_order

from ..file_names import CORE_FILE, PORT_FILE, PORT_LIKE, SETTINGS_FILE
from .arrays import Bytes
from .problems import Problems

if TYPE_CHECKING:
    from ..chips.chip import Chip

#: Larger numbers in names are not core or port numbers.
_LARGEST_NUMBER = 1023
#: Names of core files as the runtime writes them.
_PLAIN = lazy_pattern(r"cdmlib[\d_]*\.profile")
#: More files with the same fault than this are reported as one problem.
_MOST_NAMED = 8


#: Number and file of each core or port, ascending.
Numbered = list[tuple[int, Path]]


def settings_file(directory: Path) -> Path | None:
    """``global.profile`` of a capture; None without one."""
    path = directory / SETTINGS_FILE
    return path if os.path.lexists(path) else None


def list_files(directory: Path, report: Problems, chip: Chip) -> tuple[Numbered, Numbered]:
    """Files of the cores and of the ports of a capture, as far as the chip has these; odd names are reported."""
    names = sorted(os.listdir(directory), key=natural_order)
    core_files = [directory / name for name in names if CORE_FILE.fullmatch(name)]
    port_files = [directory / name for name in names if PORT_LIKE.fullmatch(name) and not CORE_FILE.fullmatch(name)]
    limit = f"{chip.name} has {count_text(chip.core_count, 'core')}."
    core_files = _without_links(core_files, "core", limit, report)
    port_files = _without_links(port_files, "port", f"{chip.name} has {chip.cdma_ports} CDMA ports.", report)
    return _numbered(core_files, chip, report), _numbered_ports(port_files, chip, report)


def _without_links(files: list[Path], kind: str, limit: str, report: Problems) -> list[Path]:
    """Files without duplicates: each file once, under the first of its names (symbolic or hard links)."""
    first: dict[tuple[int, int], Path] = {}
    more: dict[Path, int] = {}
    kept: list[Path] = []
    for path in files:
        try:
            status = path.stat()
        except OSError:
            kept.append(path)  # the reader reports why it cannot be read
            continue
        known = first.setdefault((status.st_dev, status.st_ino), path)
        if known is path or not status.st_size:  # idle cores may share an empty file
            kept.append(path)
        else:
            more[known] = more.get(known, 0) + 1
    for path, links in more.items():
        text = f"{count_text(links + 1, 'name')} of {kind} files are links to one file; {limit}"
        report.error(text, f"It was read once, as {path.name}.", file=path.name)
    return kept


def _numbered_ports(files: list[Path], chip: Chip, report: Problems) -> Numbered:
    """Port number and file; files without a port number of their own, or with one that the chip lacks, are reported."""
    ports: dict[int, Path] = {}
    rejected: dict[str, list[Path]] = {}
    for path in files:
        match = PORT_FILE.fullmatch(path.name)
        number = int(match[1][:9]) if match else -1
        if not match:
            rejected.setdefault("The name gives no port number (cdma*_N.profile).", []).append(path)
        elif number > _LARGEST_NUMBER or number in ports:
            rejected.setdefault("The name gives no port of its own.", []).append(path)
        elif number >= chip.cdma_ports:
            has = f"{chip.name} has {chip.cdma_ports} CDMA ports, numbered from 0."
            rejected.setdefault(has if chip.cdma_ports else f"{chip.name} has no CDMA ports.", []).append(path)
        else:
            ports[number] = path
    for what, paths in rejected.items():
        _report_files(report.error, what, "The file was not read.", paths)
    return sorted(ports.items())


def _report_files(add: Callable[..., None], what: str, done: str, paths: list[Path]) -> None:
    if len(paths) > _MOST_NAMED:
        add(what, f"{done} First of {len(paths)} such files.", file=paths[0].name, count=len(paths))
        return
    for path in paths:
        add(what, done, file=path.name)


def _numbered(files: list[Path], chip: Chip, report: Problems) -> Numbered:
    """Core number of each file: the last number in its name, else the lowest free number.

    If there are more files than the chip has cores, those with the lowest numbers come first, then those without a
    number.
    """
    by_number: dict[int, Path] = {}
    unnumbered: list[Path] = []
    # copies under other names, as "cdmlib0_0 (1).profile", take no number of another file
    for path in sorted(files, key=lambda path: not _PLAIN.fullmatch(path.name)):
        numbers = re.findall(r"\d+", path.name.removesuffix(".profile"))
        number = int(numbers[-1][:9]) if numbers else -1
        if 0 <= number <= _LARGEST_NUMBER and number not in by_number:
            by_number[number] = path
        else:
            unnumbered.append(path)
    limit = chip.core_count
    surplus = [by_number.pop(number) for number in sorted(by_number)[limit:]]
    numbered = len(by_number)
    free = (number for number in itertools.count() if number not in by_number)
    surplus += unnumbered[limit - numbered :]
    for path, number in zip(unnumbered[: limit - numbered], free, strict=False):
        by_number[number] = path
        report.error("The name gives no core number of its own.", f"Taken as core {number}.", file=path.name)
    what = f"{len(files)} core files; {chip.name} has {count_text(limit, 'core')}."
    _report_files(report.error, what, "The file was not read.", surplus)
    beyond_limit = [path for number, path in by_number.items() if number >= limit]
    what = f"The name gives a core that {chip.name} does not have; it has {limit}, numbered from 0."
    _report_files(report.warning, what, "Shown under the number of its name.", beyond_limit)
    return sorted(by_number.items())


def count_text(count: int, word: str) -> str:
    """A count with its noun, in the plural unless it is 1."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def read_bytes(path: Path, report: Problems, room: Bytes | None = None) -> Bytes:
    """Contents of a regular file, of the size found at open; a failure is reported and returns an empty array.

    ``room``: where to put them; without it, an array of their own.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        what = f"Cannot be opened: {(error.strerror or str(error)).lower()}."
        report.error(what, "Its core or port is missing.", file=path.name)
        return np.zeros(0, np.uint8)
    try:
        return _read_open(descriptor, path.name, report, room)
    except (OSError, MemoryError) as error:
        report.error(f"Cannot be read: {error or 'out of memory'}.", "Its core or port is missing.", file=path.name)
        return np.zeros(0, np.uint8)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, name: str, report: Problems, room: Bytes | None) -> Bytes:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        report.error("Not a regular file.", "It was not read.", file=name)
        return np.zeros(0, np.uint8)
    buffer = np.empty(before.st_size, np.uint8) if room is None else room[: before.st_size]
    view = memoryview(buffer)  # type: ignore[arg-type]
    done = 0
    while done < len(view):
        count = os.readv(descriptor, [view[done : done + (1 << 28)]])
        if count == 0:
            break
        done += count
    after = os.fstat(descriptor)
    if done < len(view) or after.st_size != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        what = "The file changed while it was read."
        report.warning(what, "Shown as it was read; reload when it is complete.", file=name)
    if bytes(view[:6]).startswith((GZIP, BZIP2, XZ, ZSTD, ZIP)):
        report.error("It is packed.", "It was not read: unpack it.", file=name, offset=0)
        return buffer[:0]
    return buffer[:done]


_NUMBERS = ("tpu_freq", "core_num", "max_record_num", "tail_offset_ns")
_LARGEST_FILE = 1 << 24
_LARGEST_CLOCK_MHZ = 1_000_000
_COUNT_KEY = lazy_pattern(r"(?:core)?(?P<core>\d{1,4})_(?P<engine>tiu|gdma|sdma)_record|cdma(?P<port>\d{1,4})_record")


class Settings(Struct):
    """Values of ``global.profile``; None where missing or unusable."""

    arch: str | None = None  #: Value of the last ``arch`` line
    bmodel: bool = False  #: Whether any line contains "bmodel"
    tpu_freq: int | None = None  #: TIU clock, MHz
    core_num: int | None = None  #: Lower bound for the number of cores
    tail_offset_ns: int | None = None  #: Host time from the last record to the end of ``disable_profile``, ns
    #: Record counts by (engine or "CDMA", core or port), for keys that name an engine or port.
    claimed: dict[tuple[str, int], int] = field(default_factory=dict)


def read_settings(path: Path | None, report: Problems) -> Settings:
    """Parse ``global.profile``; anomalies are reported."""
    settings = Settings()
    if path is None:
        report.warning("global.profile is missing.", "Chip and clock are those asked for or the defaults.")
        return settings
    data = read_bytes(path, report)
    if len(data) > _LARGEST_FILE:
        report.warning("global.profile is too long.", "Only its first 16 MiB were read.", file=path.name)
        data = data[:_LARGEST_FILE]
    content, most_records, offset = data.tobytes(), 0, 0
    if content.startswith(BOM_UTF8):  # an editor put it there
        offset, content = len(BOM_UTF8), content[len(BOM_UTF8) :]
    for raw in content.split(b"\n"):  # in order, as max_record_num affects only the lines after it
        text = raw.decode("utf-8", "replace")
        found = [("A line that is not UTF-8 text.", "The readable part was used.")] if "\ufffd" in text else []
        key, equals, value = (part.strip() for part in text.partition("="))
        if "bmodel" in text:
            settings.bmodel = True
        elif equals and key == "arch":
            settings.arch = value
        elif equals and key == "max_record_num" and (number := _whole_number(value)) is not None:
            most_records = number
        elif equals and (key in _NUMBERS or key.endswith("_record")):
            found += _take_number(settings, key, _whole_number(value), most_records)
        for what, done in found:
            (report.error if done else report.note)(what, done, file=SETTINGS_FILE, offset=offset)
        offset += len(raw) + 1
    return settings


def _whole_number(text: str) -> int | None:
    try:
        return int(text) if len(text) < 40 else None
    except ValueError:
        return None


def _take_number(settings: Settings, key: str, value: int | None, most_records: int) -> Iterator[tuple[str, str]]:
    """Take the number of a line; yields what is wrong with it, and the consequence (empty: nothing is lost)."""
    if value is None:
        yield f"{key[:60]} is not a whole number.", "The line was ignored."
    elif key == "tpu_freq" and not 0 < value <= _LARGEST_CLOCK_MHZ:
        yield f"tpu_freq={value} is not a clock.", "The chip's default is used; --tiu_freq sets another."
    elif key == "tail_offset_ns" and abs(value) >= 1 << 62:
        yield f"tail_offset_ns={value} is not a time.", "The line was ignored."
    elif key in _NUMBERS:
        setattr(settings, key, value)
    else:
        key = key[:60]
        match = _COUNT_KEY.fullmatch(key)
        if match and value >= 0:
            owner = ("CDMA", int(match["port"])) if match["port"] else (match["engine"].upper(), int(match["core"]))
            settings.claimed[owner] = value
        if most_records and value >= most_records:
            what = f"{key}={value} reached max_record_num={most_records}: the buffer was full, records are lost."
            yield what, "Capture again with a larger max_record_num."
        elif value == 1:
            what = f"{key}=1: the hardware writes in larger units, so records are probably missing."
            yield what, "What was recorded is shown."
        elif value == 0:
            yield f"{key}=0: the engine was idle, or its records are missing.", ""


# Block framing of core and CDMA files: a sequence of type, length and payload up to the end of the file.


class BlockType(IntEnum):
    """Types of blocks; those that the reader does not use are skipped."""

    SUMMARY = 1
    COMPILER_LOG = 2
    MONITOR_BD = 3
    MONITOR_GDMA = 4
    DYN_DATA = 5
    DYN_EXTRA = 6
    FIRMWARE_LOG = 7
    COMMAND = 8
    BMLIB = 9
    BMLIB_EXTRA = 10
    MONITOR_SDMA = 11
    MONITOR_CDMA = 12
    DES_BDC = 13
    DES_GDMA = 14
    DES_SDMA = 15
    DES_CDMA = 16
    DES_KV = 17
    SUBNET_ANCHOR = 100


_KNOWN = frozenset(int(kind) for kind in BlockType)
_HEADER = 8
#: Searches for the next intact block in one file; after that the rest of the file is given up.
_MOST_RESYNCS = 64
#: Limit of block headers read, so that a file of empty blocks cannot stall the reader; no runtime writes as many.
_MOST_BLOCKS = 2_000_000


class Block(Struct, frozen=True):
    """One block: ``length`` bytes of payload at ``offset``, inside the file."""

    kind: int
    offset: int
    length: int


def walk_blocks(data: Bytes, report: Problems) -> list[Block]:
    """Blocks of a file in file order; damage is reported and does not lose intact blocks behind it."""
    blocks: list[Block] = []
    size = len(data)
    at = 0
    headers = resyncs = 0
    while at < size:
        left = size - at
        headers += 1
        if headers > _MOST_BLOCKS:
            report.error("More blocks than a capture can have.", "The rest of the file was not read.", offset=at)
            break
        if left < _HEADER:
            report.error(f"{left} bytes of a block header at the end of the file.", "They were ignored.", offset=at)
            break
        kind, length = (int(value) for value in data[at : at + _HEADER].view("<u4"))
        if length <= left - _HEADER:
            if kind in _KNOWN:
                blocks.append(Block(kind, at + _HEADER, length))
                at += _HEADER + length
                continue
            # zeros parse as empty blocks of type 0; a full disk leaves the rest of a file zero
            times = 1 if kind or length else _zeros_from(data, at) // _HEADER
            what = f"Block of unknown type {kind}."
            report.error(what, "It was skipped.", offset=at, count=times)
            at += times * _HEADER + length
            continue
        following = _next_block_chain(data, at + 1) if resyncs < _MOST_RESYNCS else size
        resyncs += 1
        available = following - at - _HEADER
        done = "It was skipped."
        if kind in _KNOWN:
            blocks.append(Block(kind, at + _HEADER, available))
            done = f"Its first {available} bytes were used."
        what = f"Block of type {kind} claims {length} bytes, {left - _HEADER} are left in the file."
        report.error(what, done, offset=at)
        at = following
    return blocks


def payloads_of(data: Bytes, blocks: Iterable[Block], kind: BlockType) -> tuple[list[Bytes], list[int]]:
    """Payloads and offsets of the blocks of one type."""
    found = [block for block in blocks if block.kind == kind]
    return [data[each.offset : each.offset + each.length] for each in found], [each.offset for each in found]


def _zeros_from(data: Bytes, start: int) -> int:
    """Number of zero bytes from ``start`` to the next other byte or the end; linear in that number."""
    at, step = start, 256
    while at < len(data):
        used = np.flatnonzero(data[at : at + step])
        if len(used):
            return at + int(used[0]) - start
        at, step = at + step, min(2 * step, 1 << 20)
    return len(data) - start


def _next_block_chain(data: Bytes, start: int) -> int:
    """Offset of the next header from which known blocks follow one another to the exact end of the file.

    Returns the file's size when there is none. Linear: lengths only point forward, so one pass from the end settles
    each offset.
    """
    size = len(data)
    # all offsets whose four bytes are a known type
    low = data[start : size - _HEADER + 1]
    zero = (data[start + 1 : size - 6] == 0) & (data[start + 2 : size - 5] == 0) & (data[start + 3 : size - 4] == 0)
    known = np.zeros(256, np.bool_)
    known[list(_KNOWN)] = True
    candidates = np.flatnonzero(known[low[: len(zero)]] & zero) + start
    chain_starts = {size}
    best = size
    for offset in candidates[::-1].tolist():
        length = int(data[offset + 4 : offset + 8].view("<u4")[0])
        # chance matches of empty blocks are too likely
        if length and offset + _HEADER + length in chain_starts:
            chain_starts.add(offset)
            best = offset
    return best
