#!/bin/sh
# Makes .venv and installs locked requirements and the project itself into it.
#
# usage: deploy/setup/environment.sh run|audit|test|docs...
#
# Each name is a file of requirements/; audit, test and docs contain run. What was installed is stamped in .venv/installed, so
# that a second call does nothing until a lock file, pyproject.toml or the folder changes. While an installation is under
# way, .venv/unfinished stands: an environment whose set-up was killed is made anew. PYTHON=... names the interpreter
# of a new environment; else it is the first of the names in find_python that runs.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

project_folder=$(pwd -P)
environment_python=.venv/bin/python
# A download that breaks off ends pip; what it has is in its cache, and the next attempt goes on with the rest.
attempts=3

# suits PYTHON: succeeds when it is 3.11 or later and really runs (a shim of pyenv may stand for nothing).
suits() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if suits "$candidate"; then
            echo "$candidate"
            return 0
        fi
    done
    return 1
}

fail() {
    echo "set-up: $1" >&2
    exit 1
}

require_python() {
    find_python >/dev/null && return
    [ -z "${PYTHON:-}" ] || fail "PYTHON=$PYTHON does not run or is older than 3.11; name another interpreter"
    install_debian_package python3 && find_python >/dev/null && return
    fail "no Python 3.11 or later found; install one (apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3"
}

# Debian keeps ensurepip, which `python -m venv` needs, in a package of its own.
require_ensurepip() {
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    install_debian_package "python$version-venv" python3-venv || true
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    fail "$python cannot make virtual environments; install what it needs: apt-get install python$version-venv"
}

environment_works() {
    [ ! -e .venv/unfinished ] && suits "$environment_python" && "$environment_python" -c 'import pip' >/dev/null 2>&1
}

make_environment() {
    [ ! -L .venv ] || fail ".venv is a link to $(readlink .venv), whose environment would be removed; remove the link"
    require_python
    python=$(find_python)
    require_ensurepip
    rm -rf .venv/bin    # first, so that what a kill leaves of .venv is no environment
    rm -rf .venv
    mkdir .venv
    touch .venv/unfinished
    "$python" -m venv .venv || fail "$python -m venv failed; the lines above say why"
}

# The environment is stamped with its folder, since its scripts name it: a copied or moved one is made anew.
was_moved() {
    [ -e .venv/installed/folder ] && [ "$(cat .venv/installed/folder)" != "$project_folder" ]
}

fingerprint() {
    cat requirements/build.txt "requirements/$1.txt" pyproject.toml | cksum
}

is_stamped() {
    [ -e ".venv/installed/$1" ] && [ "$(cat ".venv/installed/$1")" = "$(fingerprint "$1")" ]
}

is_installed() {
    is_stamped "$1" || { [ "$1" = run ] && { is_stamped audit || is_stamped test || is_stamped docs; }; }
}

install_locked() {
    attempt=1
    while [ "$attempt" -le "$attempts" ]; do
        "$environment_python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
            --no-build-isolation "$@" && return
        echo "set-up: pip failed, attempt $attempt of $attempts" >&2
        attempt=$((attempt + 1))
    done
    rm -f .venv/unfinished    # pip has taken back what it had begun; only a killed one does not
    fail "pip could not install: $*; the lines above say why (the first time it needs the network)"
}

# Succeeds when one of the named sets is not installed as the lock files say.
something_is_missing() {
    for name in "$@"; do
        is_installed "$name" || return 0
    done
    return 1
}

install_all() {
    echo "set-up: .venv with $*"
    touch .venv/unfinished
    install_locked --require-hashes -r requirements/build.txt
    files=
    for name in "$@"; do
        files="$files -r requirements/$name.txt"
    done
    # shellcheck disable=SC2086
    install_locked --require-hashes --use-pep517 $files
    install_locked --editable .
    mkdir -p .venv/installed
    echo "$project_folder" >.venv/installed/folder
    for name in "$@"; do
        fingerprint "$name" >".venv/installed/$name"
    done
    rm -f .venv/unfinished
}

is_ready() {
    environment_works && ! was_moved && ! something_is_missing "$@"
}

# An environment that is ready needs no turn: a gateway starts again while something is compiled beside it.
is_ready "$@" && exit
await_turn
if was_moved || ! environment_works; then
    make_environment
fi
if something_is_missing "$@"; then
    install_all "$@"
fi
