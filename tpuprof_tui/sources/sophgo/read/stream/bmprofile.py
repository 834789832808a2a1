"""Recognises folders of another profiler of the same chips, ``bmprofile_data-N``, which this reader does not read.

libbmrt writes them for BM1684X, BM1688, CV186X and CV184X. Their ``global.profile`` has the same name as a capture's.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern

from ...file_names import SETTINGS_FILE

#: Files of one run, of the driver's library, commands, and the compiler's forecast.
_FILES: Final = lazy_pattern(r"iter\d+\.profile|bmlib_\d+\.profile|cmd_[0-9a-f]+(_\d+)?_\d+\.dat|net_stat\.sim")
_LINE: Final = lazy_pattern(rb"^(?:\[bmprofile\] *)?arch *= *(\w{1,16})", re.MULTILINE)
_MARK: Final = b"[bmprofile]"
_HEAD: Final = 1 << 16
#: Chip by the code in an ``arch`` line.
_CHIPS: Final = {"1": "BM1684", "3": "BM1684X", "4": "BM1688 or CV186X", "7": "CV184X", "8": "CV184X"}


def bmprofile_text(directory: Path) -> str | None:
    """What such a folder is, with its chip if that is known; None for any other folder."""
    try:
        with (directory / SETTINGS_FILE).open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        head = b""
    if _MARK not in head and not any(_FILES.fullmatch(name) for name in os.listdir(directory)):
        return None
    arch = _LINE.search(head)
    code = arch[1].decode("ascii", "replace") if arch else ""
    chip = _CHIPS.get(code, code.upper() if code and not code.isdigit() else "")
    return f"a bmprofile_data folder of libbmrt{f' ({chip})' if chip else ''}"
