"""Engines: what reads the facts of a trail and asks them in SQL. The rules are the same for each.

engine            what an audit asks of an engine
spark             Spark: on this machine, or on a cluster whose workers see the trail
duck              DuckDB in this process, with processes beside it that read; no Java
files_in_order    files of facts that need not be sorted, for Spark's workers
"""
