"""The live views for readers outside Spark: Trino, Athena, Glue, DuckDB in this process."""
