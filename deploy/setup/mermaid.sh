#!/bin/sh
# Installs Mermaid, with which `make pictures` draws the pictures of docs/pictures, into .venv/mermaid, and finds a Chromium
# to run it in: CHROMIUM=... names one. Fails where Node.js, Chromium or the network is missing: the pictures are
# committed, and only who changes one needs this.
#
# usage: deploy/setup/mermaid.sh      after: deploy/setup/environment.sh run
#
# What is installed stands, with hashes, in docs/pictures/package-lock.json. No package's own script is run. What was
# installed is stamped; a second call does nothing until the lock file or this script changes.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

installed=.venv/mermaid
sources=docs/pictures

fingerprint() {
    cat "$sources/package.json" "$sources/package-lock.json" "$0" | cksum
}

is_done() {
    [ -e "$installed/stamp" ] && [ "$(cat "$installed/stamp")" = "$(fingerprint)" ]
}

fail() {
    echo "set-up: $1" >&2
    exit 1
}

find_chromium() {
    for candidate in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
        if command -v "$candidate" >"$installed/chromium"; then
            return 0
        fi
    done
    return 1
}

require_npm() {
    command -v npm >/dev/null 2>&1 && return
    install_debian_package nodejs && install_debian_package npm && return
    fail "npm is needed to install Mermaid (apt-get install nodejs npm)"
}

await_turn_beside_others
! is_done || exit 0
echo "set-up: Mermaid"
rm -rf "$installed"
mkdir -p "$installed"
require_npm
find_chromium || install_debian_package chromium && find_chromium || fail "Chromium is needed (apt-get install chromium)"
cp "$sources/package.json" "$sources/package-lock.json" "$installed/"
npm ci --prefix "$installed" --ignore-scripts --no-audit --no-fund --loglevel error </dev/null >"$installed/npm.log" 2>&1 ||
    fail "npm could not install Mermaid ($installed/npm.log says why; it needs the network once)"
fingerprint >"$installed/stamp"
