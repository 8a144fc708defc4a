#!/bin/sh
# Compiles what takes most of a message's time (gateway/compiled.toml), for the sources as they are now.
# Never fails where a compiler is missing: the gateway then runs its sources, as it does without a build.
#
# usage: deploy/setup/compiled.sh      after: deploy/setup/environment.sh test
#
# The build goes to .venv/compiled. A second call does nothing until a source changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

python=.venv/bin/python
missing=.venv/compiled/unavailable

can_build() {
    command -v gcc >/dev/null 2>&1 || return 1
    includes=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    echo '#include <Python.h>' | gcc -I "$includes" -E - >/dev/null 2>&1
}

require_compiler() {
    can_build && return
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_debian_package gcc >/dev/null || true
    install_debian_package libc6-dev >/dev/null || true
    install_debian_package "libpython$version-dev" >/dev/null || true
    can_build
}

await_turn_beside_others
mkdir -p .venv/compiled
require_compiler || {
    echo "a C compiler and the headers of Python are needed (apt-get install gcc libc6-dev python3-dev)" >"$missing"
    echo "set-up: $(cat "$missing"): the gateway runs its sources, which are slower"
    exit 0
}
rm -f "$missing"
exec "$python" deploy/setup/compiled.py
