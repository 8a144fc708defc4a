#!/bin/sh
# Installs SoftHSM, a PKCS #11 token made of files, where that is easy. Never fails: tests of tokens are skipped instead.
#
# usage: deploy/setup/softhsm.sh
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

await_turn_beside_others
tried=.venv/installed/softhsm-tried
command -v softhsm2-util >/dev/null 2>&1 && exit 0
[ ! -e "$tried" ] || exit 0
install_debian_package softhsm2 ||
    echo "set-up: SoftHSM is not installed (apt-get install softhsm2): the tests of tokens are skipped"
touch "$tried"
