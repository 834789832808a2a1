"""Names of the files of a capture."""

from __future__ import annotations

import re
from typing import Final

from tpuprof_tui.lazy_names import lazy_pattern

SETTINGS_FILE: Final = "global.profile"
CORE_FILE: Final = lazy_pattern(r"cdmlib.*\.profile", re.DOTALL)
#: A port's file; group 1 is the port number.
PORT_FILE: Final = lazy_pattern(r"cdma\d*_(\d+)\.profile")
PORT_LIKE: Final = lazy_pattern(r"cdma.*\.profile", re.DOTALL)
#: A capture's directory, as named by the runtime: device and call.
DIRECTORY: Final = lazy_pattern(r"cdm_profile_data_dev(\d+)(?:-(\d+))?")


def of_capture(name: str) -> bool:
    """Whether a file of this name belongs to a capture."""
    return name == SETTINGS_FILE or bool(CORE_FILE.fullmatch(name) or PORT_LIKE.fullmatch(name))
