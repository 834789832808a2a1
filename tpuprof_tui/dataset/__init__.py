"""Many captures as one data set of Parquet files that existing engines query."""

from __future__ import annotations

import os
from typing import Final

#: The log of a data set. Engines pass over files whose names begin like this.
LOG: Final = "_tpuprof.jsonl"


def is_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a folder or an address is a data set; imports nothing for a folder.

    Raises:
        UnreadableError: The file system of the address cannot be asked.
        MissingPackageError: fsspec, or its package for this address, is not installed.
    """
    if "://" in os.fspath(path):
        from .store import store_at

        return store_at(path).has(LOG)
    return os.path.isfile(os.path.join(path, LOG))
