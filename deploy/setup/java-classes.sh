#!/bin/sh
# Keeps Spark's Java classes in one archive, so that each start of Spark takes half the CPU time. Optional: without it
# everything works as well.
#
# usage: deploy/setup/java-classes.sh      after: deploy/setup/java.sh
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/turn.sh

archive=.venv/java-classes/spark.jsa
made_by=.venv/java-classes/made-by

await_turn_beside_others

# Another Java or another PySpark wants another archive, and so does another choice of classes.
versions="$(cat .venv/java-home) $(ls .venv/lib/python3*/site-packages | grep -i '^pyspark-.*info$' || true)"
versions="$versions $(cksum <spark_audit/java_classes.py)"
if [ "$(cat "$made_by" 2>/dev/null)" = "$versions" ]; then
    exit 0
fi
rm -rf .venv/java-classes
mkdir .venv/java-classes
if JAVA_HOME="$(cat .venv/java-home)" .venv/bin/python -m spark_audit.java_classes >.venv/java-classes/log 2>&1; then
    echo "set-up: an archive of Spark's Java classes"
else
    rm -f "$archive"
    echo "set-up: no archive of Spark's Java classes, so Spark starts more slowly; why stands in .venv/java-classes/log"
fi
printf '%s\n' "$versions" >"$made_by"
