"""The audit: reads the trail, re-performs every conversion with a reading of its own, proves delivery, reports.

record/ defines a line of the trail, digest.py what is signed of it, verify/ checks both without Spark; everything
else runs on Spark: python -m spark_audit run. Importing this package imports nothing.
"""
