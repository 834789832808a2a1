"""Names of the files of a capture."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern
from tpuprof_tui.sources.source import first_bytes

SETTINGS_FILE: Final = "global.profile"
CORE_FILE: Final = lazy_pattern(r"cdmlib.*\.profile", re.DOTALL)
#: A port's file; group 1 is the port number.
PORT_FILE: Final = lazy_pattern(r"cdma\d*_(\d+)\.profile")
PORT_LIKE: Final = lazy_pattern(r"cdma.*\.profile", re.DOTALL)
#: A capture's directory, as named by the runtime: device and call.
DIRECTORY: Final = lazy_pattern(r"cdm_profile_data_dev(\d+)(?:-(\d+))?")
#: Files of a ``bmprofile_data`` folder of libbmrt: one run, the driver library's, and commands.
RUN_FILE: Final = lazy_pattern(r"iter(\d{1,9})\.profile")
DRIVER_FILE: Final = lazy_pattern(r"bmlib_(\d{1,9})\.profile")
#: Groups: device address, core (none in older folders), engine (0 TIU, 1 GDMA).
COMMAND_FILE: Final = lazy_pattern(r"cmd_([0-9a-f]{1,16})(?:_(\d{1,4}))?_([01])\.dat")
FORECAST_FILE: Final = "net_stat.sim"
#: The compiler's files that people put beside a capture: commands of each layer, and the network.
LOCATIONS: Final = "tensor_location.json"
NETWORK: Final = "final.mlir"
_PACKED: Final = lazy_pattern(r"\.(?:gz|bz2|xz|zst|zip)$")
_MARK: Final = b"[bmprofile]"
_HEAD: Final = 1 << 16


def of_capture(name: str) -> bool:
    """Whether a file of this name belongs to a capture."""
    return name == SETTINGS_FILE or _of_profiler(name) or of_bmprofile(name)


def plain_name(name: str) -> str:
    """The name of a file when it is unpacked, without capitals."""
    return _PACKED.sub("", name.lower())


def nearly_of_capture(name: str) -> bool:
    """Whether a file belongs to a capture by its plain name alone: packed, or named in capitals."""
    return not of_capture(name) and of_capture(plain_name(name))


def _of_profiler(name: str) -> bool:
    return bool(CORE_FILE.fullmatch(name) or PORT_LIKE.fullmatch(name))


def of_bmprofile(name: str) -> bool:
    """Whether only folders of libbmrt have a file of this name."""
    return name == FORECAST_FILE or any(form.fullmatch(name) for form in (RUN_FILE, DRIVER_FILE, COMMAND_FILE))


def is_bmprofile(folder: Path) -> bool:
    """Whether a folder is a profile of libbmrt: by its files, else by the marks in ``global.profile``."""
    names = os.listdir(folder)
    if any(map(_of_profiler, names)):
        return False
    if any(map(of_bmprofile, names)):
        return True
    return _MARK in first_bytes(folder / SETTINGS_FILE, _HEAD)
