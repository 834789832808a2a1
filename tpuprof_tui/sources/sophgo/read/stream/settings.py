"""Parses ``global.profile``: key=value lines about the whole capture."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

from msgspec import Struct, field

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.sophgo.file_names import SETTINGS_FILE

from ..problems import Report
from .files import read_bytes

_NUMBERS = ("tpu_freq", "core_num", "max_record_num", "tail_offset_ns")
_LARGEST_FILE = 1 << 24
_LARGEST_CLOCK_MHZ = 1_000_000
_COUNT_KEY = lazy_pattern(r"(?:core)?(?P<core>\d{1,4})_(?P<engine>tiu|gdma|sdma)_record|cdma(?P<port>\d{1,4})_record")


class Settings(Struct):
    """Values of ``global.profile``; None where missing or unusable.

    Attributes:
        arch: Value of the last ``arch`` line.
        bmodel: Whether any line contains "bmodel".
        tpu_freq: TIU clock, MHz.
        core_num: Lower bound for the number of cores.
        tail_offset_ns: Host time from the last record to the end of ``disable_profile``, ns.
        claimed: Record counts by (engine or "CDMA", core or port), for keys that name an engine or port.
    """

    arch: str | None = None
    bmodel: bool = False
    tpu_freq: int | None = None
    core_num: int | None = None
    tail_offset_ns: int | None = None
    claimed: dict[tuple[str, int], int] = field(default_factory=dict)


def read_settings(path: Path | None, report: Report) -> Settings:
    """Parse ``global.profile``; anomalies are reported."""
    settings = Settings()
    if path is None:
        report.warning("global.profile is missing.", "Chip and clock are those asked for or the defaults.")
        return settings
    data = read_bytes(path, report)
    if len(data) > _LARGEST_FILE:
        report.warning("global.profile is too long.", "Only its first 16 MiB were read.", file=path.name)
        data = data[:_LARGEST_FILE]
    reader = _LineReader(settings, report)
    content = data.tobytes()
    if content.startswith(BOM_UTF8):  # an editor put it there
        reader.offset, content = len(BOM_UTF8), content[len(BOM_UTF8) :]
    for raw in content.split(b"\n"):
        reader.line(raw)
    return settings


class _LineReader(Struct):
    """Applies lines in order, as ``max_record_num`` affects only the lines after it."""

    settings: Settings
    report: Report
    most_records: int = 0
    offset: int = 0

    def line(self, raw: bytes) -> None:
        text = raw.decode("utf-8", "replace")
        if "\ufffd" in text:
            self._error("A line that is not UTF-8 text.", "The readable part was used.")
        key, equals, value = (part.strip() for part in text.partition("="))
        if "bmodel" in text:
            self.settings.bmodel = True
        elif equals and key == "arch":
            self.settings.arch = value
        elif equals and (key in _NUMBERS or key.endswith("_record")):
            self._number(key, value)
        self.offset += len(raw) + 1

    def _error(self, what: str, done: str) -> None:
        self.report.error(what, done, file=SETTINGS_FILE, offset=self.offset)

    def _number(self, key: str, text: str) -> None:
        try:
            value = int(text) if len(text) < 40 else None
        except ValueError:
            value = None
        if value is None:
            self._error(f"{key[:60]} is not a whole number.", "The line was ignored.")
        elif key == "tpu_freq" and not 0 < value <= _LARGEST_CLOCK_MHZ:
            self._error(f"tpu_freq={value} is not a clock.", "The chip's default is used; --tiu_freq sets another.")
        elif key == "tail_offset_ns" and abs(value) >= 1 << 62:
            self._error(f"tail_offset_ns={value} is not a time.", "The line was ignored.")
        elif key == "max_record_num":
            self.most_records = value
        elif key in _NUMBERS:
            setattr(self.settings, key, value)
        else:
            self._record_count(key[:60], value)

    def _record_count(self, key: str, value: int) -> None:
        match = _COUNT_KEY.fullmatch(key)
        if match and value >= 0:
            owner = ("CDMA", int(match["port"])) if match["port"] else (match["engine"].upper(), int(match["core"]))
            self.settings.claimed[owner] = value
        if self.most_records and value >= self.most_records:
            what = f"{key}={value} reached max_record_num={self.most_records}: the buffer was full, records are lost."
            self._error(what, "Capture again with a larger max_record_num.")
        elif value == 1:
            what = f"{key}=1: the hardware writes in larger units, so records are probably missing."
            self._error(what, "What was recorded is shown.")
        elif value == 0:
            what = f"{key}=0: the engine was idle, or its records are missing."
            self.report.note(what, file=SETTINGS_FILE, offset=self.offset)
