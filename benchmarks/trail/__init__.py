"""The trail that the audit is measured on: made, and summed up by Spark and by DuckDB."""
