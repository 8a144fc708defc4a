"""The audit: reads the trail, re-performs every conversion with a reading of its own, proves delivery, reports.

record/ defines a line of the trail, and trail/ defines the files of a trail. verify/ checks both without Spark.
Everything else runs on Spark: python -m spark_audit run. An import of this package imports nothing else.
"""
