"""The same questions, asked of a data set by DuckDB, polars and Spark."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from captures import Fleet

from tpuprof_tui.dataset import query
from tpuprof_tui.dataset.build import build, compact, local
from tpuprof_tui.dataset.tables import GROUP

#: Figures of each kernel's events, from columns of every encoding: differences without nulls and with, dictionaries of
#: integers, fractions and texts.
SQL = """
select kernel, count(*) n, sum(duration) total, sum(`end`) ends, sum(`order`) places, count(scope) scoped,
max(scope) scope, count(sophgo_exposed) exposed, max(sophgo_exposed) most_exposed, sum(bytes) bytes,
max(sophgo_at_peak) at_peak, max(sophgo_ddr_bandwidth) bandwidth, count(distinct name) names
from events where role = 'work' and kernel is not null group by kernel order by kernel
"""


def duckdb_says(out: Path) -> list[tuple[Any, ...]]:
    with query.opened(out) as data:
        return [tuple(row) for row in query.asked(data, SQL.replace("`", '"')).rows]


def polars_says(out: Path) -> list[tuple[Any, ...]]:
    import polars

    events = polars.scan_parquet(out / "events" / "**" / "*.parquet", hive_partitioning=True, missing_columns="insert",
                                 extra_columns="ignore")  # fmt: skip
    found = (
        events.filter((polars.col("role") == "work") & polars.col("kernel").is_not_null())
        .group_by(polars.col("kernel").cast(polars.String))
        .agg(polars.len(), polars.col("duration").sum(), polars.col("end").sum(), polars.col("order").sum(),
             polars.col("scope").count().alias("scoped"), polars.col("scope").max(),
             polars.col("sophgo_exposed").count().alias("exposed"), polars.col("sophgo_exposed").max(),
             polars.col("bytes").sum(), polars.col("sophgo_at_peak").max(), polars.col("sophgo_ddr_bandwidth").max(),
             polars.col("name").n_unique())
        .sort("kernel").collect()
    )  # fmt: skip
    return [tuple(row) for row in found.rows()]


def spark_session(work: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]").appName("tpuprof").config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(work)).config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g").getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def spark_says(out: Path, work: Path) -> list[tuple[Any, ...]]:
    spark = spark_session(work)
    try:
        spark.read.option("mergeSchema", "true").parquet(str(out / "events")).createOrReplaceTempView("events")
        return [tuple(row) for row in spark.sql(SQL).collect()]
    finally:
        spark.stop()


def partitions_in_spark(paths: list[str], work: Path) -> int:
    """Rows of events that the function of the package makes in Spark's own processes, as the documentation shows."""

    def figures(frames: Any) -> Any:
        from tpuprof_tui.dataset.tables import partitions

        for frame in frames:
            for path in frame["path"]:
                tables = partitions(path).tables
                if "figures" in tables:
                    yield tables["figures"].select(["capture", "figure", "value"]).to_pandas().astype(
                        {"capture": str, "figure": str})  # fmt: skip

    spark = spark_session(work)
    try:
        rows = spark.createDataFrame([(path,) for path in paths], "path string")
        return int(rows.mapInPandas(figures, "capture string, figure string, value double").count())
    finally:
        spark.stop()


def engines_agree(fleet: Fleet, out: Path, place: Path) -> dict[str, Any]:
    """What three engines say of a copy with several captures in some folders, before and after compaction."""
    shutil.rmtree(place / "engines", ignore_errors=True)
    out = shutil.copytree(out, place / "engines")
    # more captures of the first days, one of them with several row groups
    more = replace(fleet, days=3, unreadable=frozenset(), cut=frozenset(), first_run=1 + fleet.days * fleet.devices)
    more.write(place / "more")
    more.write_one(place / "more" / "long", 0, 0, records=3 * GROUP)
    build(out, [str(place / "more")], local(2))
    told = duckdb_says(out)
    assert told
    assert polars_says(out) == told
    assert spark_says(out, place / "spark") == told
    with query.opened(out) as data:
        paths = [path for (path,) in query.asked(data, "select path from captures order by path limit 20").rows]
        listed = ", ".join(f"'{path}'" for path in paths)
        sql = f"select count(*) from figures join captures using (capture) where path in ({listed})"
        ((figures,),) = list(query.asked(data, sql).rows)
    assert partitions_in_spark(paths, place / "spark") == figures
    before, after = compact(out)
    # three files of each capture are joined to those of the first of its day and device
    assert before - after >= 3 * (more.days * more.devices - len(fleet.unreadable)), (before, after)
    assert duckdb_says(out) == told
    assert polars_says(out) == told
    assert spark_says(out, place / "spark") == told
    return {"kernels": len(told), "events": sum(row[1] for row in told), "compacted": (before, after)}
