#!/bin/sh
# Builds the load generator of the benchmarks (benchmarks/load/*.c).
# Never fails where a compiler is missing, or the system is not Linux: what needs the generator then says why.
#
# usage: deploy/setup/load-generator.sh      after: deploy/setup/environment.sh test
#
# It goes to .venv/load-generator, where only benchmarks and their tests look for it. What was built is stamped; a
# second call does nothing until a source or this script changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

built=.venv/load-generator
sources=benchmarks/load

fingerprint() {
    cat "$sources"/*.c "$sources"/*.h "$0" | cksum
}

skip() {
    echo "$1" >"$built/unavailable"
    echo "set-up: $1: nothing that needs the load generator is measured"
    exit 0
}

await_turn_beside_others
if [ -e "$built/stamp" ] && [ "$(cat "$built/stamp")" = "$(fingerprint)" ]; then
    exit 0
fi
echo "set-up: the load generator"
rm -rf "$built"
mkdir -p "$built"
[ "$(uname -s)" = Linux ] || skip "the load generator is for Linux"
require_c_compiler || skip "a C compiler is needed (apt-get install gcc libc6-dev)"
gcc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wshadow -Werror "$sources"/*.c -o "$built/generator" || {
    echo "set-up: gcc could not build the load generator; the lines above say why" >&2
    exit 1
}
fingerprint >"$built/stamp"
