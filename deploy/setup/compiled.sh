#!/bin/sh
# Compiles what takes most of a message's time (gateway/compiled.toml), for the sources as they are now.
# Where nothing can be built the gateway runs its sources. Then .venv/compiled/unavailable says why, and so does the
# exit code of `compiled.sh must`.
#
# usage: deploy/setup/compiled.sh [must]              after: deploy/setup/environment.sh run
#        deploy/setup/compiled.sh beside COMMAND...
#
# The build goes to .venv/compiled. A second call does nothing until a source changes. With `beside`, COMMAND runs at
# once. The build for its next start is made while the machine has time, and ends with COMMAND. It installs nothing in
# the system.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

python=.venv/bin/python
builds=.venv/compiled
unavailable=$builds/unavailable
# What mypyc and one compiler of C for each of two cores take at most is 950 MiB.
needed_kib=1500000

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

# mypyc is in the environment of the tests. Elsewhere it gets a folder of its own, so that the gateway's environment stays
# as it is.
require_mypyc() {
    "$python" -c 'import mypyc, setuptools' 2>/dev/null && return
    mypyc=.venv/mypyc/$(cat requirements/build.txt requirements/compile.txt | cksum | tr ' ' -)
    if [ ! -d "$mypyc" ]; then
        rm -rf .venv/mypyc
        "$python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
            --target "$mypyc.unfinished" -r requirements/build.txt -r requirements/compile.txt || return
        mv "$mypyc.unfinished" "$mypyc"
    fi
    PYTHONPATH=$PWD/$mypyc
    export PYTHONPATH
}

# give_up REASON
give_up() {
    echo "$1" >"$unavailable"
    echo "set-up: $1: the gateway runs its sources, which are slower"
    [ "$mode" != must ]
    exit
}

build() {
    await_turn_beside_others
    require_compiler || give_up "$needs_compiler"
    require_mypyc || give_up "pip could not install mypyc; the lines above say why (the first time it needs the network)"
    "$python" deploy/setup/compiled.py || {
        build_name >$builds/failed
        give_up "mypyc could not compile the sources for this Python; the lines above say why"
    }
    rm -f "$unavailable"
}

needs_compiler="a C compiler and the headers of Python are needed (apt-get install gcc libc6-dev python3-dev)"

build_name() {
    "$python" -c 'from gateway import compiled; print(compiled.build().name)'
}

# Succeeds where a build is missing that can be made beside a gateway. Says once why it cannot.
may_build_beside() {
    case ${RFHBRIDGE_COMPILED:-} in 0 | 1) return 1 ;; esac
    name=$(build_name) || return
    [ ! -d "$builds/$name" ] || return
    [ "$(cat $builds/failed 2>/dev/null)" != "$name" ] || return
    if ! can_build; then
        [ "$(cat $unavailable 2>/dev/null)" = "$needs_compiler" ] || (give_up "$needs_compiler")
        return 1
    fi
    # Not Linux: nothing ends the build with the gateway.
    [ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || echo 0)" -gt "$needed_kib" ]
}

mode=${1:-}
mkdir -p $builds
if [ "$mode" = beside ]; then
    shift
    if may_build_beside; then
        echo "set-up: compiling for the gateway's next start, while the machine has time ($builds/log says how it goes)"
        ("$python" deploy/setup/beside.py $$ deploy/setup/compiled.sh </dev/null >$builds/log 2>&1 &)
    fi
    exec "$@"
fi
build
