"""Many captures as one data set of Parquet files that existing engines query."""

from __future__ import annotations

import os
from typing import Final

#: The log of a data set. Engines pass over files whose names begin like this.
LOG: Final = "_tpuprof.jsonl"


def is_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a data set; imports nothing."""
    return os.path.isfile(os.path.join(path, LOG))
