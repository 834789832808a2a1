"""The files of a table as one data set of pyarrow, which reads of them what is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from .manifest import Manifest
from .schema import FOLDERS, arrow_schema

#: Files that are looked into at a time.
AT_A_TIME: Final = 16


def as_arrow(manifest: Manifest, table: str) -> Any:
    """A table of a data set: its columns, those of sources that some file has, and those that are folders.

    Args:
        manifest: What the data set holds.
        table: The table.
    """
    import pyarrow
    from pyarrow import dataset

    files = manifest.names_of(table)
    folders = pyarrow.schema([(name, pyarrow.date32() if name == "day" else pyarrow.string()) for name in FOLDERS])
    schema = arrow_schema(table)
    if table == "events":
        # files of different sources have different further columns
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            schema = pyarrow.unify_schemas([schema, *pool.map(lambda file: _schema_of(manifest, file), files)])
    schema = pyarrow.unify_schemas([schema, folders])
    if not files:
        return dataset.dataset(schema.empty_table())
    return dataset.dataset(files, schema=schema, format="parquet", filesystem=manifest.store.for_arrow(),
                           partitioning=dataset.partitioning(folders, flavor="hive"))  # fmt: skip


def _schema_of(manifest: Manifest, file: str) -> Any:
    from pyarrow import parquet

    with manifest.store.open(file) as stream:
        return parquet.read_schema(stream)
