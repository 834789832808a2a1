"""``global.profile``: key=value lines about the whole capture."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct, field

from tpuprof_tui.sources.sophgo.file_names import SETTINGS_FILE

from ..problems import Report
from .files import read_bytes

_LARGEST_FILE = 1 << 24
_LARGEST_CLOCK_MHZ = 1_000_000
_COUNT_KEY = re.compile(r"(?:core)?(?P<core>\d{1,4})_(?P<engine>tiu|gdma|sdma)_record|cdma(?P<port>\d{1,4})_record")


class Settings(Struct):
    """What ``global.profile`` says; None where it says nothing usable.

    Attributes:
        arch: Value of the last ``arch`` line.
        bmodel: Whether any line speaks of a bmodel.
        tpu_freq: TIU clock, MHz.
        core_num: Lower bound for the number of cores.
        tail_offset_ns: Host time from the last record to the end of ``disable_profile``, ns.
        claimed: Record counts by (engine or "CDMA", core or port), as far as the keys tell.
    """

    arch: str | None = None
    bmodel: bool = False
    tpu_freq: int | None = None
    core_num: int | None = None
    tail_offset_ns: int | None = None
    claimed: dict[tuple[str, int], int] = field(default_factory=dict)


def read_settings(path: Path | None, report: Report) -> Settings:
    """Parse ``global.profile``; what is odd in it becomes Problems."""
    settings = Settings()
    if path is None:
        report.warning("global.profile is missing.", "Chip and clock are those asked for or the defaults.")
        return settings
    data = read_bytes(path, report)
    if len(data) > _LARGEST_FILE:
        report.warning("global.profile is too long to be one.", "Only its first 16 MiB were read.", file=path.name)
        data = data[:_LARGEST_FILE]
    reader = _LineReader(settings, report)
    offset = 0
    for raw in data.tobytes().split(b"\n"):
        text = raw.decode("utf-8", "replace")
        if "\ufffd" in text:
            report.error(
                "A line that is no UTF-8 text.", "What of it is text was used.", file=SETTINGS_FILE, offset=offset
            )
        reader.line(text.strip(), offset)
        offset += len(raw) + 1
    return settings


class _LineReader:
    """Applies lines in their order; ``max_record_num`` concerns only what follows it."""

    def __init__(self, settings: Settings, report: Report) -> None:
        self.settings = settings
        self.report = report
        self.most_records = 0

    def line(self, text: str, offset: int) -> None:
        if "bmodel" in text:
            self.settings.bmodel = True
            return
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            return
        if key == "arch":
            self.settings.arch = value
        elif key in ("tpu_freq", "core_num", "max_record_num", "tail_offset_ns") or key.endswith("_record"):
            self._number(key, value, offset)

    def _number(self, key: str, text: str, offset: int) -> None:
        try:
            value = int(text) if len(text) < 40 else None
        except ValueError:
            value = None
        if value is None:
            self.report.error(
                f"{key[:60]} is no whole number.", "The line was ignored.", file=SETTINGS_FILE, offset=offset
            )
        elif key == "tpu_freq":
            self._clock(value, offset)
        elif key == "core_num":
            self.settings.core_num = value
        elif key == "tail_offset_ns":
            self._tail(value, offset)
        elif key == "max_record_num":
            self.most_records = value
        else:
            self._record_count(key, value, offset)

    def _clock(self, value: int, offset: int) -> None:
        if 0 < value <= _LARGEST_CLOCK_MHZ:
            self.settings.tpu_freq = value
            return
        self.report.error(
            f"tpu_freq={value} is no clock.",
            "The chip's default clock is used; --tiu_freq sets another.",
            file=SETTINGS_FILE,
            offset=offset,
        )

    def _tail(self, value: int, offset: int) -> None:
        if abs(value) < 1 << 62:
            self.settings.tail_offset_ns = value
            return
        self.report.error(
            f"tail_offset_ns={value} is no time.", "The line was ignored.", file=SETTINGS_FILE, offset=offset
        )

    def _record_count(self, key: str, value: int, offset: int) -> None:
        key = key[:60]
        match = _COUNT_KEY.fullmatch(key)
        if match and value >= 0:
            owner = ("CDMA", int(match["port"])) if match["port"] else (match["engine"].upper(), int(match["core"]))
            self.settings.claimed[owner] = value
        if self.most_records and value >= self.most_records:
            self.report.error(
                f"{key}={value} reached max_record_num={self.most_records}: the buffer was full, records are lost.",
                "Capture again with a larger max_record_num.",
                file=SETTINGS_FILE,
                offset=offset,
            )
        elif value == 1:
            self.report.error(
                f"{key}=1: the hardware writes in larger units, so records are probably missing.",
                "What was recorded is shown.",
                file=SETTINGS_FILE,
                offset=offset,
            )
        elif value == 0:
            self.report.note(
                f"{key}=0: the engine was idle, or its records are missing.", "", file=SETTINGS_FILE, offset=offset
            )
