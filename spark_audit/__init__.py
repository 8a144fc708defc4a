"""The audit: reads the trail, re-performs every conversion with a reading of its own, proves delivery, reports.

record.py defines a line of the trail, verify.py checks its integrity with the standard library and orjson alone;
everything else runs on Spark: python -m spark_audit run. Importing this package imports nothing.
"""
