#!/bin/sh
# Builds the library that kills a gateway under test at a chosen change of its files (tests/crash_matrix/library).
# Never fails where a compiler is missing, or the system is not Linux: those tests are skipped instead, and say why.
#
# usage: deploy/setup/crash-points.sh      after: deploy/setup/environment.sh test
#
# It goes to .venv/crash-points, where nothing but those tests looks for it. What was built is stamped; a second call
# does nothing until the source or this script changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

built=.venv/crash-points
source=tests/crash_matrix/library/crash_points.c

fingerprint() {
    cat "$source" "$0" | cksum
}

skip() {
    echo "$1" >"$built/unavailable"
    echo "set-up: $1: the crash matrix is skipped"
    exit 0
}

await_turn_beside_others
if [ -e "$built/stamp" ] && [ "$(cat "$built/stamp")" = "$(fingerprint)" ]; then
    exit 0
fi
echo "set-up: the library of the crash matrix"
rm -rf "$built"
mkdir -p "$built"
[ "$(uname -s)" = Linux ] || skip "the library of the crash matrix is for Linux"
require_c_compiler || skip "a C compiler is needed (apt-get install gcc libc6-dev)"
gcc -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror -Wl,-z,defs "$source" -o "$built/crash_points.so" || {
    echo "set-up: gcc could not build the library of the crash matrix; the lines above say why" >&2
    exit 1
}
fingerprint >"$built/stamp"
