#!/bin/sh
# Compiles what takes most of a message's time (gateway/compiled.toml), for the sources as they are now.
# Where nothing can be built the gateway runs its sources. Then .venv/compiled/unavailable says why, and so does the
# exit code of `compiled.sh must`.
#
# usage: deploy/setup/compiled.sh [must]      after: deploy/setup/environment.sh test
#
# The build goes to .venv/compiled. A second call does nothing until a source changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

python=.venv/bin/python
unavailable=.venv/compiled/unavailable

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

# give_up REASON
give_up() {
    echo "$1" >"$unavailable"
    echo "set-up: $1: the gateway runs its sources, which are slower"
    [ "$must" != must ]
    exit
}

must=${1:-}
await_turn_beside_others
mkdir -p .venv/compiled
require_compiler || give_up "a C compiler and the headers of Python are needed (apt-get install gcc libc6-dev python3-dev)"
"$python" deploy/setup/compiled.py || give_up "mypyc could not compile the sources for this Python; the lines above say why"
rm -f "$unavailable"
