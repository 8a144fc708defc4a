#!/bin/sh
# Makes the lock files anew: the newest versions that pyproject.toml and requirements/*.in allow, with their hashes,
# for every platform and every Python from 3.11 on. One version of a package in all of them.
#
# usage: deploy/setup/lock.sh      after: deploy/setup/environment.sh test
set -eu
cd "$(dirname "$0")/../.."

# lock NAME ARGUMENT...: writes requirements/NAME.txt.
lock() {
    name=$1
    shift
    echo "lock: requirements/$name.txt"
    .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
        --no-header --no-annotate --output-file "requirements/$name.txt" "$@"
}

lock build requirements/build.in
lock run pyproject.toml --constraints requirements/build.txt
lock audit pyproject.toml requirements/audit.in --extra audit --constraints requirements/build.txt \
    --constraints requirements/run.txt
lock fuzz requirements/fuzz.in
lock ibm requirements/ibm.in
lock test pyproject.toml requirements/test.in --constraints requirements/build.txt --constraints requirements/audit.txt
lock compile requirements/compile.in --constraints requirements/build.txt --constraints requirements/test.txt
lock docs pyproject.toml requirements/docs.in --constraints requirements/build.txt --constraints requirements/test.txt
lock sbom requirements/sbom.in --constraints requirements/build.txt --constraints requirements/test.txt \
    --constraints requirements/docs.txt
