#!/bin/sh
# Writes the software bill of materials of rfhbridge with the audit, in CycloneDX: build/sbom.json. Below it, the
# licences of all packages are listed: build/licences.txt.
#
# usage: deploy/setup/sbom.sh      after: deploy/setup/environment.sh audit
#
# The bill is taken from an environment that has the locked packages and nothing else, in build/sbom. The tool that
# writes it has an environment of its own, and validates what it wrote. The same lock files give the same bytes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/turn.sh

work=build/sbom
written=build/sbom.json
pip=".venv/bin/python -m pip"
quiet="--quiet --disable-pip-version-check --no-input --no-deps"

await_turn_beside_others
rm -rf "$work"
mkdir -p "$work"
echo "sbom: the tool"
.venv/bin/python -m venv "$work/tool"
"$work/tool/bin/python" -m pip install $quiet --require-hashes -r requirements/sbom.txt
echo "sbom: an environment with the locked packages"
$pip wheel $quiet --no-build-isolation --use-pep517 --require-hashes -w "$work/wheels" -r requirements/audit.txt
$pip wheel $quiet --no-build-isolation -w "$work/wheels" .
.venv/bin/python -m venv --without-pip "$work/product"
$pip --python "$work/product/bin/python" install $quiet --no-compile --no-index "$work"/wheels/*.whl
"$work/tool/bin/cyclonedx-py" environment "$work/product" --pyproject pyproject.toml --output-reproducible \
    --spec-version 1.6 --validate --output-file "$written.new"
mv "$written.new" "$written"
"$work/tool/bin/python" deploy/setup/licences.py "$written" >build/licences.txt
rm -rf "$work"
echo "sbom: $written, $(wc -l <build/licences.txt) packages and their licences in build/licences.txt"
