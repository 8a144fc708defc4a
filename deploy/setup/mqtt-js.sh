#!/bin/sh
# Installs MQTT.js, with which some tests connect to the gateway, into .venv/mqtt-js.
# Never fails where Node.js or the network is missing: those tests are skipped instead, and say why.
#
# usage: deploy/setup/mqtt-js.sh      after: deploy/setup/environment.sh test
#
# What is installed stands, with hashes, in tests/end_to_end/clients/mqtt_js/package-lock.json; from where, npm's own
# configuration says. No package's own script is run. What was installed is stamped; a second call does nothing until
# the lock file or this script changes. So does one that could not be installed: remove .venv/mqtt-js to try again.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

oldest_node=18
download_limit_s=120
installed=.venv/mqtt-js
sources=tests/end_to_end/clients/mqtt_js

fingerprint() {
    cat "$sources/package.json" "$sources/package-lock.json" "$0" | cksum
}

is_done() {
    for stamp in "$installed/stamp" "$installed/unavailable.stamp"; do
        [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$(fingerprint)" ] || return 0
    done
    return 1
}

node_suits() {
    node -e "process.exit(parseInt(process.versions.node) < $oldest_node ? 1 : 0)" >/dev/null 2>&1
}

require_node() {
    node_suits && command -v npm >/dev/null 2>&1 && return
    install_debian_package nodejs >/dev/null || true
    command -v npm >/dev/null 2>&1 || install_debian_package npm >/dev/null || true
    node_suits && command -v npm >/dev/null 2>&1
}

skip() {
    echo "$1" >"$installed/unavailable"
    fingerprint >"$installed/unavailable.stamp"
    echo "set-up: $1: the tests with MQTT.js are skipped"
    exit 0
}

install_packages() {
    cp "$sources/package.json" "$sources/package-lock.json" "$installed/"
    limit=
    ! command -v timeout >/dev/null 2>&1 || limit="timeout $download_limit_s"
    $limit npm ci --prefix "$installed" --ignore-scripts --no-audit --no-fund --fetch-retries 1 --loglevel error \
        </dev/null >"$installed/npm.log" 2>&1
}

await_turn_beside_others
! is_done || exit 0
echo "set-up: MQTT.js"
rm -rf "$installed"
mkdir -p "$installed"
require_node || skip "Node.js $oldest_node or later with npm is needed (apt-get install nodejs npm)"
install_packages || skip "npm could not install MQTT.js ($installed/npm.log says why; it needs the network once)"
fingerprint >"$installed/stamp"
