"""Data sets: many captures as Parquet files for query engines such as DuckDB and Spark."""

from __future__ import annotations

import os
from typing import Final

#: The log of a data set. Query engines ignore files whose names begin with an underscore.
LOG: Final = "_tpuprof.jsonl"


def is_data_set(path: str | os.PathLike[str]) -> bool:
    """Whether a folder or an address (``s3://...``) is a data set; imports nothing for a folder.

    Raises:
        UnreadableError: The file system of the address cannot be accessed.
        MissingPackageError: fsspec, or its package for this address, is not installed.
    """
    if "://" in os.fspath(path):
        from .store import store_at

        return store_at(path).has(LOG)
    return os.path.isfile(os.path.join(path, LOG))
