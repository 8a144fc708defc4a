#!/bin/sh
# Installs mosquitto's clients, which some tests use, where that is easy. Never fails: those tests are skipped instead.
#
# usage: deploy/setup/mosquitto-clients.sh
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

await_turn_beside_others
tried=.venv/installed/mosquitto-clients-tried
command -v mosquitto_pub >/dev/null 2>&1 && exit 0
[ ! -e "$tried" ] || exit 0
install_debian_package mosquitto-clients ||
    echo "set-up: mosquitto's clients are not installed (apt-get install mosquitto-clients): their tests are skipped"
touch "$tried"
