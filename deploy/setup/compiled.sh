#!/bin/sh
# Compiles what takes most of a message's time (gateway/compiled.toml), for the sources as they are now.
# Where nothing can be built the gateway runs its sources. Then .venv/compiled/unavailable says why, and so does the
# exit code of `compiled.sh must`.
#
# usage: deploy/setup/compiled.sh [must]              after: deploy/setup/environment.sh run
#        deploy/setup/compiled.sh beside COMMAND...
#
# The build goes to .venv/compiled. A second call does nothing until a source changes. With `beside`, COMMAND runs at
# once. The build for its next start is made in the time that it leaves, and ends with it. Nothing is installed in the
# system then. A call without `beside` ends such a build, and makes it at once.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

python=.venv/bin/python
builds=.venv/compiled
unavailable=$builds/unavailable
# The name of the build that mypyc has refused, and the process group that builds beside a gateway.
refused=$builds/refused
background=$builds/background
needs_compiler="a C compiler and the headers of Python are needed (apt-get install gcc libc6-dev python3-dev)"
# Beside a gateway two compilers of C run at a time. Together with mypyc they take 950 MiB at most.
jobs_beside=2
needed_kib=1500000
exit_refused=3

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
        mv "$mypyc.unfinished" "$mypyc" || return
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

build_name() {
    "$python" -c 'from gateway import compiled; print(compiled.build().name)'
}

# build [JOBS]
build() {
    require_compiler || give_up "$needs_compiler"
    require_mypyc || give_up "pip could not install mypyc; the lines above say why (the first time it needs the network)"
    status=0
    "$python" deploy/setup/compiled.py "$@" || status=$?
    case $status in
    0) rm -f "$unavailable" ;;
    "$exit_refused")
        build_name >$refused
        give_up "mypyc could not compile the sources for this Python; the lines above say why"
        ;;
    *) give_up "the build broke off with exit code $status; the lines above say why" ;;
    esac
}

# Succeeds where a build is missing that can be made beside a gateway. Says why it cannot, if somebody can do something.
may_build_beside() {
    case ${RFHBRIDGE_COMPILED:-} in 0 | 1) return 1 ;; esac
    mkdir -p $builds 2>/dev/null && [ -w $builds ] || return
    name=$(build_name) || return
    [ ! -d "$builds/$name" ] || return
    flock -n "$0" true || return    # another gateway of this folder builds already
    if [ "$(cat $refused 2>/dev/null)" = "$name" ]; then
        echo "set-up: mypyc could not compile these sources; make compile says why: the gateway runs its sources"
        return 1
    fi
    if ! can_build; then
        [ "$(cat $unavailable 2>/dev/null)" = "$needs_compiler" ] || (give_up "$needs_compiler")
        return 1
    fi
    [ "$(free_kib)" -gt "$needed_kib" ]
}

# What this machine has left, or this container; 0 where nobody tells.
free_kib() {
    free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)
    most=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
    if [ "$most" != max ]; then
        left=$(((most - $(cat /sys/fs/cgroup/memory.current)) / 1024))
        [ "$left" -ge "${free:-0}" ] || free=$left
    fi
    echo "${free:-0}"
}

# A build that waits for idle time must not let somebody wait who wants it now.
end_build_beside() {
    group=$(cat $background 2>/dev/null) || return 0
    if grep -q compiled.sh "/proc/$group/cmdline" 2>/dev/null; then
        kill -s KILL -- "-$group" 2>/dev/null || true
    fi
    rm -f $background
}

usage() {
    echo "usage: compiled.sh [must], or compiled.sh beside COMMAND..." >&2
    exit 2
}

mode=${1:-}
case $mode in
beside)
    shift
    [ $# -gt 0 ] || usage
    if may_build_beside; then
        echo "set-up: compiling for the gateway's next start, in the time that it leaves ($builds/log says how it goes)"
        ("$python" deploy/setup/beside.py $$ deploy/setup/compiled.sh in-background </dev/null >$builds/log 2>&1 &)
    fi
    exec "$@"
    ;;
in-background)
    mkdir -p $builds
    exec 8<"$0"
    flock -n 8 || exit 0
    echo $$ >$background
    build $jobs_beside
    rm -f $background
    ;;
"" | must)
    mkdir -p $builds
    end_build_beside
    await_turn_beside_others
    build
    ;;
*) usage ;;
esac
