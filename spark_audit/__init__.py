"""The audit: reads the trail, re-performs every conversion with a reading of its own, proves delivery, reports.

record/ defines a line of the trail, and trail/ defines the files of a trail. verify/ checks both without Spark.
Everything else runs on Spark: python -m spark_audit run. An import of this package imports nothing else, unless the
environment names a build: that has to be found before any module that is compiled.
"""

import os

if os.environ.get("RFHBRIDGE_BUILD"):
    from spark_audit.compiled_modules import use_named

    use_named()
