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

SAMPLES = Path(__file__).parents[2] / "samples"
#: Figures of the events of each kernel, or of what is of none by its source: columns of every encoding (differences
#: without nulls and with, dictionaries of integers, fractions and texts), and such as only some files have.
SQL = """
select coalesce(kernel, source) ran, count(*) n, sum(duration) total, sum(`end`) ends, sum(`order`) places,
count(scope) scoped, max(scope) scope, max(bytes) bytes, count(distinct name) names,
count(sophgo_exposed) exposed, max(sophgo_exposed) most_exposed, max(sophgo_at_peak) at_peak,
max(sophgo_src_addr) address, count(torch_correlation) correlated, max(ascend_waited) waited
from events where role = 'work' group by all order by ran
"""


def duckdb_says(out: Path) -> list[tuple[Any, ...]]:
    with query.opened(out) as data:
        return [tuple(row) for row in query.run_sql(data, SQL.replace("`", '"')).rows]


def polars_says(out: Path) -> list[tuple[Any, ...]]:
    import polars

    col = polars.col
    files = [polars.scan_parquet(file, hive_partitioning=True) for file in (out / "events").rglob("*.parquet")]
    found = (
        polars.concat(files, how="diagonal_relaxed")
        .filter(col("role") == "work")
        .group_by(col("kernel").cast(polars.String).fill_null(col("source")).alias("ran"))
        .agg(polars.len(), col("duration").sum(), col("end").sum(), col("order").sum(),
             col("scope").count().alias("scoped"), col("scope").max(), col("bytes").max(),
             col("name").drop_nulls().n_unique(),
             col("sophgo_exposed").count().alias("exposed"), col("sophgo_exposed").max(), col("sophgo_at_peak").max(),
             col("sophgo_src_addr").max(), col("torch_correlation").count(), col("ascend_waited").max())
        .sort("ran").collect()
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
    """What three engines say, before and after compaction, of a copy with all sources and folders of several files."""
    shutil.rmtree(place / "engines", ignore_errors=True)
    out = shutil.copytree(out, place / "engines")
    # more captures of the first days, one of them with several row groups
    more = replace(fleet, days=3, unreadable=frozenset(), cut=frozenset(), first_run=1 + fleet.days * fleet.devices)
    more.write(place / "more")
    more.write_one(place / "more" / "long", 0, 0, records=3 * GROUP)
    build(out, [str(place / "more"), str(SAMPLES)], local(2))
    told = duckdb_says(out)
    assert told
    assert polars_says(out) == told
    assert spark_says(out, place / "spark") == told
    with query.opened(out) as data:
        paths = [path for (path,) in query.run_sql(data, "select path from captures order by path limit 20").rows]
        listed = ", ".join(f"'{path}'" for path in paths)
        sql = f"select count(*) from figures join captures using (capture) where path in ({listed})"
        ((figures,),) = list(query.run_sql(data, sql).rows)
    assert partitions_in_spark(paths, place / "spark") == figures
    before, after = compact(out)
    # three files of each capture are joined to those of the first of its day and device
    assert before - after >= 3 * (more.days * more.devices - len(fleet.unreadable)), (before, after)
    assert duckdb_says(out) == told
    assert polars_says(out) == told
    assert spark_says(out, place / "spark") == told
    return {"groups": len(told), "events": sum(row[1] for row in told), "compacted": (before, after)}
