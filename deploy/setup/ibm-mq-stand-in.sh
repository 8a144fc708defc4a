#!/bin/sh
# Builds the stand-in for IBM's MQ client library, and pymqi and ibmmq over it, for the tests of mq_adapters/ibm_mq.
# Never fails where a compiler or Python's headers are missing: those tests are skipped instead, and say why.
#
# usage: deploy/setup/ibm-mq-stand-in.sh      after: deploy/setup/environment.sh test
#
# All of it goes to .venv/ibm-mq-stand-in, where no program finds it by default: inc and lib64 are what pymqi's build
# takes for an IBM MQ client, python-pymqi has the unmodified pymqi, built here, python-ibmmq IBM's unmodified ibmmq. So
# the environment itself stays without IBM's bindings, as a plain install is. What was built is stamped; a second call
# does nothing until a source, the lock file or the folder changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

project_folder=$(pwd -P)
built=.venv/ibm-mq-stand-in
sources=tests/ibm_mq_stand_in/library
python=.venv/bin/python

fingerprint() {
    { echo "$project_folder"; cat "$sources"/*.[ch] "$sources"/inc/*.h requirements/ibm.txt "$0"; } | cksum
}

python_headers() {
    "$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])'
}

can_build() {
    command -v gcc >/dev/null 2>&1 && [ -e "$(python_headers)/Python.h" ]
}

require_compiler() {
    can_build && return
    install_debian_package gcc >/dev/null || true
    install_debian_package libc6-dev >/dev/null || true
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_debian_package "python$version-dev" python3-dev || true
    can_build
}

skip() {
    echo "$1" >"$built/unavailable"
    echo "set-up: $1: the tests of IBM MQ over the stand-in are skipped"
    exit 0
}

build_library() {
    cp "$sources"/inc/*.h "$built/inc/"
    for name in libmqic_r.so libmqm_r.so; do
        gcc -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror -I"$sources/inc" "$sources"/*.c -lpthread \
            -Wl,-soname,"$name" -Wl,-z,defs -o "$built/lib64/$name" || return 1
    done
}

# install_binding NAME: a package of requirements/ibm.txt into a folder of its own; pymqi from its sources.
install_binding() {
    sed -n "/^$1==/,/[^\\\\]\$/p" requirements/ibm.txt >"$built/$1.txt"
    MQ_FILE_PATH="$project_folder/$built" "$python" -m pip install --quiet --disable-pip-version-check --no-input \
        --no-deps --no-build-isolation --no-binary pymqi --only-binary ibmmq --no-cache-dir --require-hashes \
        --target "$built/python-$1" -r "$built/$1.txt"
}

await_turn_beside_others
if [ -e "$built/stamp" ] && [ "$(cat "$built/stamp")" = "$(fingerprint)" ]; then
    exit 0
fi
echo "set-up: the stand-in for IBM's MQ client library"
rm -rf "$built"
mkdir -p "$built/inc" "$built/lib64"
require_compiler || skip "a C compiler and Python's headers are needed (apt-get install gcc libc6-dev python3-dev)"
build_library || { echo "set-up: gcc could not build the stand-in; the lines above say why" >&2; exit 1; }
for name in pymqi ibmmq; do
    install_binding "$name" || skip "pip could not install $name over the stand-in"
done
fingerprint >"$built/stamp"
