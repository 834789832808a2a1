"""The same questions, asked of a data set by DuckDB, polars and Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tpuprof_tui.dataset import query
from tpuprof_tui.dataset.build import compact

#: Kernel, events, sum and maximum of their durations.
SQL = """
select kernel, count(*) n, sum(duration) total, max(duration) longest from events
where role = 'work' and kernel is not null group by kernel order by kernel
"""


def duckdb_says(out: Path) -> list[tuple[Any, ...]]:
    with query.opened(out) as data:
        return [tuple(row) for row in query.asked(data, SQL).rows]


def polars_says(out: Path) -> list[tuple[Any, ...]]:
    import polars

    events = polars.scan_parquet(out / "events" / "**" / "*.parquet", hive_partitioning=True, missing_columns="insert",
                                 extra_columns="ignore")  # fmt: skip
    found = (
        events.filter((polars.col("role") == "work") & polars.col("kernel").is_not_null())
        .group_by(polars.col("kernel").cast(polars.String))
        .agg(polars.len(), polars.col("duration").sum(), polars.col("duration").max().alias("longest"))
        .sort("kernel").collect()
    )  # fmt: skip
    return [tuple(row) for row in found.rows()]


def spark_says(out: Path, work: Path) -> list[tuple[Any, ...]]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]").appName("tpuprof").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(work)).config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g").getOrCreate()
    )  # fmt: skip
    try:
        spark.sparkContext.setLogLevel("ERROR")
        spark.read.option("mergeSchema", "true").parquet(str(out / "events")).createOrReplaceTempView("events")
        return [tuple(row) for row in spark.sql(SQL).collect()]
    finally:
        spark.stop()


def partitions_in_spark(paths: list[str], work: Path) -> int:
    """Rows of events that the function of the package makes in Spark's own processes, as the documentation shows."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(work)).getOrCreate()
    )  # fmt: skip

    def figures(frames: Any) -> Any:
        from tpuprof_tui.dataset.tables import partitions

        for frame in frames:
            for path in frame["path"]:
                tables = partitions(path).tables
                if "figures" in tables:
                    yield tables["figures"].select(["capture", "figure", "value"]).to_pandas().astype(
                        {"capture": str, "figure": str})  # fmt: skip

    try:
        spark.sparkContext.setLogLevel("ERROR")
        rows = spark.createDataFrame([(path,) for path in paths], "path string")
        return int(rows.mapInPandas(figures, "capture string, figure string, value double").count())
    finally:
        spark.stop()


def engines_agree(out: Path, place: Path) -> dict[str, Any]:
    """What three engines say, before and after compaction."""
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
    files = compact(out)
    assert duckdb_says(out) == told
    assert polars_says(out) == told
    assert spark_says(out, place / "spark") == told
    return {"kernels": len(told), "events": sum(row[1] for row in told), "compacted": files}
