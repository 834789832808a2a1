"""Many captures as one data set of Parquet files that existing engines query."""
