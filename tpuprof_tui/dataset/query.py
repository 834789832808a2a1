"""Queries a data set with DuckDB: SQL over its tables, and predefined queries (top, trend, outliers)."""

from __future__ import annotations

import glob
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from threading import Timer
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from tpuprof_tui.analysis.compare.noise import Amount, Noise, interval, status_of
from tpuprof_tui.errors import UnreadableError, UsageError, requires_package
from tpuprof_tui.formats.escape import utf8_text
from tpuprof_tui.formats.files import whole_file

from .captures import is_address
from .manifest import Manifest
from .schema import FIELDS, FOLDERS, UNKNOWN, arrow_schema
from .store import AT_A_TIME

#: Number of rows that are fetched at a time.
_ROWS: Final = 10_000
_TYPES: Final = {"text": "VARCHAR", "int": "BIGINT", "float": "DOUBLE"}

#: Kernels or operations by total time over all captures; parameter: kind of figure.
TOP: Final = """
select source, name, count(*) as captures, sum(count)::bigint as calls, sum(value) / 1e6 as total_ms,
       sum(value) / nullif(sum(count), 0) / 1e3 as mean_us, max(longest) / 1e3 as longest_us,
       sum(value) / nullif(sum(sum(value)) over (partition by source), 0) as share
from figures where kind = ? group by source, name order by total_ms desc, source, name
"""
#: A figure by day, for each source and chip; parameter: figure.
TREND: Final = """
select captures.source, chip, captures.day, count(*) as captures, median(value) as median, min(value) as least,
       max(value) as most
from figures join captures using (capture)
where figure = ? group by all order by all
"""
#: Figures with names similar to an unknown one; parameters: its name, twice.
ALIKE: Final = """
select figure from (select distinct figure from figures)
order by contains(figure, ?) desc, jaro_winkler_similarity(figure, ?) desc, figure limit 5
"""
#: Captures whose figures are far from the median of their neighbours: captures of the same source and chip or, if
#: requested, of the same device as well. z is 0.6745 (value - median) / MAD (Iglewicz and Hoaglin, How to Detect and
#: Handle Outliers, 1993: outliers are beyond 3.5); MAD is at least 0.5 % of the median.
OUTLIERS: Final = """
with known as (
    select capture, path, captures.source, chip, captures.device, captures.day, figure, value, {among} as among
    from figures join captures using (capture)
), middle as (
    select source, among, figure, median(value) as middle, count(*) as neighbours
    from known group by all having count(*) >= 5
), away as (
    select known.*, middle, neighbours, abs(value - middle) as distance
    from known join middle using (source, among, figure)
), spread as (
    select source, among, figure, greatest(median(distance), 0.005 * abs(max(middle))) as mad from away group by all
), scored as (
    select *, 0.6745 * (value - middle) / nullif(mad, 0) as z from away join spread using (source, among, figure)
)
select capture, path, source, chip, device, day, count(*) as figures,
       first(figure order by abs(z) desc, figure) as figure,
       first(value order by abs(z) desc, figure) as value, first(middle order by abs(z) desc, figure) as median,
       first(z order by abs(z) desc, figure) as z, max(neighbours) as neighbours
from scored where abs(z) > 3.5 group by all order by figures desc, max(abs(z)) desc, path
"""
#: SQL expression by which neighbours are grouped, by name of the grouping.
GROUP_BY: Final = {"chip": "coalesce(chip, '')", "device": "coalesce(chip, '') || '/' || coalesce(captures.device, '')"}


class Rows(Struct):
    """Result of a query."""

    columns: list[tuple[str, str]]  #: (name, DuckDB type) of each column
    rows: Iterator[tuple[Any, ...]]  #: Iterator over the rows, which streams them


class Queried(ABC):
    """A DuckDB connection and the tables that a query may name, which are made on first use.

    Attributes:
        connection: The connection.
        hint: What names tables and columns, a sentence.
        expired: Whether the time of the last query is over.
    """

    names: tuple[str, ...] = tuple(FIELDS)  #: Names of the tables
    hint = "tpuprof dataset schema names tables and columns."

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.expired = False

    @abstractmethod
    def make_views(self, sql: str = "") -> bool:
        """Makes the tables that a query names, or all if it names none; returns whether any were made."""

    @abstractmethod
    def schema(self) -> dict[str, list[tuple[str, str]]]:
        """Names and DuckDB types of the columns of each table."""

    def check_files(self) -> None:  # noqa: B027
        """Checks that the files of the tables can be read; does nothing where there are none."""

    @contextmanager
    def ending_after(self, seconds: float | None) -> Iterator[None]:
        """Ends a query that takes longer; None: no limit."""

        def end() -> None:
            self.expired = True
            self.connection.interrupt()

        timer = Timer(seconds or 0, end)
        self.expired = False
        if seconds is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            timer.cancel()


class DataSet(Queried):
    """The tables of a data set as views.

    Args:
        connection: DuckDB connection that can read only the data set's files.
        manifest: Manifest of the data set.
    """

    def __init__(self, connection: Any, manifest: Manifest) -> None:
        super().__init__(connection)
        self._manifest = manifest
        self._tables: set[str] = set()

    def make_views(self, sql: str = "") -> bool:
        """Creates the views that a query names, or all if it names none; returns whether any were created.

        Creating a view is slow: DuckDB opens each of its files.
        """
        named = set(re.findall(r"\w+", sql.lower())) & set(FIELDS)
        due = (named or set(FIELDS)) - self._tables
        for table in sorted(due):
            self._tables.add(table)
            if is_address(self._manifest.store.out):
                self._manifest.check_files([table])
                self.connection.register(table, _as_arrow(self._manifest, table))
            else:
                self.connection.execute(f"create view {table} as {_view(table, self._manifest.of_table(table))}")
        return bool(due)

    def schema(self) -> dict[str, list[tuple[str, str]]]:
        """Names and DuckDB types of the columns of each table."""
        return {name: run_sql(self, f"from {name} limit 0").columns for name in self.names}

    def check_files(self) -> None:
        """Checks that the files of the tables with views exist and could be read; see `Manifest.check_files`."""
        if self._manifest.store.read_errors:
            raise self._manifest.store.read_errors.pop()
        self._manifest.check_files(self._tables)


@contextmanager
def opened(out: str | os.PathLike[str], memory: int | None = None) -> Iterator[DataSet]:
    """Opens a data set in DuckDB, which is restricted to reading the data set's files.

    Args:
        out: Path or address of the data set; files at an address are read through Arrow.
        memory: Most bytes that DuckDB takes; None: no limit.

    Raises:
        UnreadableError: There is no data set.
        MissingPackageError: DuckDB is not installed.
    """
    manifest = Manifest.read(out)
    folder = manifest.store.out
    if utf8_text(folder) != folder:
        raise UnreadableError(f"{out}: DuckDB reads no folder whose name is not UTF-8.", "Rename it.")
    # DuckDB takes paths with [ or * as patterns: allow the folder both plain and escaped
    folders = () if is_address(folder) else tuple(dict.fromkeys((folder, glob.escape(folder))))
    hint = "Other tools can read its Parquet files."
    with connected("Querying a data set", hint, folders, memory) as connection:
        yield DataSet(connection, manifest)


@contextmanager
def connected(what: str, hint: str = "", folders: Sequence[str] = (), memory: int | None = None) -> Iterator[Any]:
    """A DuckDB connection that reads files of some folders alone, and cannot be configured.

    Args:
        what: What needs DuckDB, the beginning of a sentence.
        hint: What to do without it.
        folders: The folders.
        memory: Most bytes that it takes; without folders nothing is written to disk beyond them. None: no limit.

    Raises:
        MissingPackageError: DuckDB is not installed.
    """
    with requires_package(what, hint):
        import duckdb

    connection = duckdb.connect(":memory:")
    try:
        if folders:
            own = ", ".join(_literal(f"{each}/") for each in folders)
            connection.execute(f"set allowed_directories = [{own}]")
        else:
            connection.execute("set temp_directory = ''")
        if memory is not None:
            connection.execute(f"set memory_limit = '{memory}B'")
        connection.execute("set autoinstall_known_extensions = false")
        connection.execute("set autoload_known_extensions = false")
        # names are no variables of this program
        connection.execute("set python_enable_replacements = false")
        connection.execute("set enable_external_access = false")
        # it would be printed between the rows
        connection.execute("set enable_progress_bar = false")
        connection.execute("set lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _as_arrow(manifest: Manifest, table: str) -> Any:
    """A table of a data set as a pyarrow dataset: common columns, columns of sources, and partition columns."""
    import pyarrow
    from pyarrow import dataset

    files = manifest.names_of(table)
    folders = pyarrow.schema([(name, pyarrow.date32() if name == "day" else pyarrow.string()) for name in FOLDERS])
    schema = arrow_schema(table)
    if table == "events":
        # files of different sources have different additional columns
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


def _view(table: str, files: Sequence[str]) -> str:
    if not files:
        names = [
            *((field.name, _TYPES[field.kind]) for field in FIELDS[table]),
            *((name, _folder(name)) for name in FOLDERS),
        ]
        return f"select {', '.join(f'null::{kind} as {quoted(name)}' for name, kind in names)} where false"
    listed = ", ".join(_literal(glob.escape(file)) for file in files)
    types = ", ".join(f"{quoted(name)}: {_folder(name)}" for name in FOLDERS)
    how = f"union_by_name = true, hive_partitioning = true, hive_types = {{{types}}}"
    # before 2.0 DuckDB reads what is not known as a text; a day always is
    known = ", ".join(f"nullif({name}, '{UNKNOWN}') as {name}" for name in ("source", "device"))
    return f"select * replace ({known}) from read_parquet([{listed}], {how})"


def _folder(name: str) -> str:
    return "DATE" if name == "day" else "VARCHAR"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def first_rows(data: Queried, sql: str, count: int, skipped: int = 0) -> Rows:
    """The first rows of a SELECT statement behind some that are skipped; no more are computed than that needs.

    Raises:
        UsageError: The SQL is invalid, or is not a SELECT.
    """
    _only_select(sql, data)
    return run_sql(data, f"from ({sql.strip().rstrip(';')}\n) limit {count} offset {skipped}", name=sql)


def run_sql(data: Queried, sql: str, parameters: Sequence[Any] = (), name: str = "") -> Rows:
    """Runs a SELECT statement; streams the result. ``name``: the text that names its tables; empty: ``sql``.

    Raises:
        UsageError: The SQL is invalid, or is not a SELECT.
    """
    _only_select(sql, data)
    with _query_errors(data):
        run = partial(data.connection.execute, sql, list(parameters))
        cursor = _run_with_views(data, name or sql, lambda: _interruptible(data.connection, run))
        columns = [(str(name), str(kind)) for name, kind, *_ in cursor.description]

    def rows() -> Iterator[tuple[Any, ...]]:
        while True:
            with _query_errors(data):
                part = cursor.fetchmany(_ROWS)
            if not part:
                return
            yield from part

    return Rows(columns, rows())


@contextmanager
def _query_errors(data: Queried | None = None) -> Iterator[None]:
    """Turns DuckDB's errors into usage errors, and its report of Ctrl+C back into KeyboardInterrupt.

    Raises:
        UsageError: The SQL is invalid.
        UnreadableError: A file of the data set does not exist or cannot be read.
    """
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        if data is not None and data.expired:
            raise UsageError("The query takes too long, and was ended.", "--seconds N gives it more time.") from None
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        raise UsageError("The query needs more memory than it may take.", "--memory N gives it more MiB.") from None
    except duckdb.Error as error:
        # errors of pyarrow, which reads files at addresses, are those of an invalid input
        if data is not None and isinstance(error, (duckdb.IOException, duckdb.InvalidInputException)):
            data.check_files()
        raise _sql_error(error, data) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise


def _interruptible(connection: Any, run: Callable[[], Any]) -> Any:
    """Runs a query in a thread: DuckDB seldom checks for Ctrl+C while it works in the main thread."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run)
        try:
            return waiting.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _run_with_views(data: Queried, sql: str, ask: Callable[[], Any]) -> Any:
    import duckdb

    data.make_views(sql)
    try:
        return ask()
    except duckdb.CatalogException:
        if not data.make_views():
            raise
        return ask()


def write_parquet(data: Queried, sql: str, file: Path) -> int:
    """Writes the result of a SELECT statement as Parquet, in batches; returns the number of rows.

    Raises:
        UsageError: The SQL is invalid, or is not a SELECT.
    """
    from pyarrow import parquet

    _only_select(sql, data)
    with _query_errors(data):
        relation = _run_with_views(data, sql, lambda: data.connection.sql(sql))
        if relation is None:
            raise _not_one_select(data)
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        count = 0
        with whole_file(file) as stream:
            batches = reader(_ROWS)
            with parquet.ParquetWriter(stream, batches.schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    count += batch.num_rows
    return count


def _only_select(sql: str, data: Queried) -> None:
    import duckdb

    with _query_errors(data):
        statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise _not_one_select(data)


def _not_one_select(data: Queried) -> UsageError:
    return UsageError("Only one SELECT is allowed.", f"Its tables: {', '.join(data.names)}.")


def _sql_error(error: Exception, data: Queried | None) -> UsageError:
    message = next((line.strip() for line in str(error).splitlines() if line.strip()), "it cannot be understood")
    return UsageError(f"{message.rstrip('.')}.", Queried.hint if data is None else data.hint)


# predefined queries


def top(data: DataSet) -> Rows:
    """Kernels by total time over all captures; operations if no capture has kernels."""
    kinds = {kind for (kind,) in run_sql(data, "select distinct kind from figures").rows}
    return run_sql(data, TOP, ["kernel" if "kernel" in kinds else "operation"])


def trend(data: DataSet, figure: str) -> Rows:
    """A figure by day, with the ``change`` of its level on that day (null: none) and its interval, ``low`` to ``high``.

    Raises:
        UnreadableError: No capture has the figure.
    """
    found = run_sql(data, TREND, [figure])
    days = list(found.rows)
    if not days:
        known = [name for (name,) in run_sql(data, ALIKE, [figure, figure]).rows]
        raise UnreadableError(f"No capture has the figure {figure}.", f"Similar: {', '.join(known)}." if known else "")
    rows: list[tuple[Any, ...]] = []
    for _, same in groupby(days, lambda day: day[:2]):
        values = list(same)
        changes = level_changes([day[4] for day in values])
        for number, day in enumerate(values):
            change = changes.get(number)
            rows.append((*day, *((None,) * 3 if change is None else (change.delta, change.low, change.high))))
    return Rows([*found.columns, *((name, "DOUBLE") for name in ("change", "low", "high"))], iter(rows))


def outliers(data: DataSet, among: str = "chip") -> Rows:
    """Captures with outliers among their figures, most outliers first, with the figure of the largest deviation."""
    return run_sql(data, OUTLIERS.replace("{among}", GROUP_BY[among]))


#: Minimum strength of a change, in standard errors.
_LIMIT: Final = 4.0
#: Minimum noise as a share of the median.
_FLOOR: Final = 0.005


def level_changes(values: Sequence[float]) -> dict[int, Amount]:
    """The changes of the level of a series, compared as everything is: amounts before and after, noise, status.

    Binary segmentation: splits at the index where the difference of the means, in units of its standard error, is
    largest and beyond ``_LIMIT``, then both halves likewise. Noise is 1.4826 times the median absolute difference of
    adjacent values, divided by the square root of 2; level changes hardly affect it.

    Args:
        values: Values in order of time.

    Returns:
        Means before and after each change, by index of the first value of the new level, ascending.
    """
    series = np.asarray(values, np.float64)
    if len(series) < 2:
        return {}
    noise = 1.4826 * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2)
    noise = max(noise, _FLOOR * abs(float(np.median(series))))
    places = sorted(_splits(series, 0, noise)) if noise > 0 else []
    found = {}
    for place, (before, after) in zip(places, pairwise(np.split(series, places)), strict=True):
        base, other, variance = before.mean(), after.mean(), noise**2 * (1 / len(before) + 1 / len(after))
        low, high = interval(other - base, variance, len(series) - len(places) - 1) or (None, None)
        amount = Amount("", base, other, len(before), len(after), low, high)
        if status_of(amount, Noise(None, 0.0)) in ("more", "less"):
            found[place] = amount
    return found


def _splits(series: npt.NDArray[np.float64], first: int, noise: float) -> list[int]:
    count = len(series)
    if count < 2:
        return []
    before = np.arange(1, count)
    sums = np.cumsum(series)[before - 1]
    means = (sums / before) - (series.sum() - sums) / (count - before)
    strength = np.abs(means) * np.sqrt(before * (count - before) / count) / noise
    best = int(np.argmax(strength))
    if strength[best] < _LIMIT:
        return []
    place = int(before[best])
    return [*_splits(series[:place], first, noise), first + place, *_splits(series[place:], first + place, noise)]
