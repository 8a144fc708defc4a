#!/bin/sh
# Finds a Java runtime for Spark, or installs one, and writes its folder to .venv/java-home.
#
# usage: deploy/setup/java.sh      after: deploy/setup/environment.sh audit
#
# Order: JAVA_HOME, java on PATH, what the system keeps under /usr/lib/jvm, what we installed before; then, as root,
# Debian's packages; then the Python package install-jdk, into .venv/java. Spark 4.1 runs on Java 17 and 21; from 24 on
# Java has no security manager, which Spark 4.1 and its Hadoop still call.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/debian.sh
. deploy/setup/turn.sh

oldest=17
first_too_new=24
download_limit_s=300
answer=.venv/java-home

# java_home JAVA: prints the home of this java when its version suits; fails otherwise.
java_home() {
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    major=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p')
    [ "${major:-0}" -ge "$oldest" ] && [ "$major" -lt "$first_too_new" ] || return 1
    printf '%s\n' "$settings" | sed -n 's/^ *java\.home = //p'
}

find_java() {
    for candidate in "${JAVA_HOME:-/nowhere}/bin/java" "$(command -v java || true)" \
        /usr/lib/jvm/*/bin/java .venv/java/*/bin/java .venv/java/*/Contents/Home/bin/java; do
        if [ -x "$candidate" ] && java_home "$candidate"; then
            return 0
        fi
    done
    return 1
}

download_java() {
    limit=
    ! command -v timeout >/dev/null 2>&1 || limit="timeout $download_limit_s"
    rm -rf .venv/java .venv/java.unfinished
    $limit .venv/bin/python -c "import jdk; jdk.install('$oldest', jre=True, path='.venv/java.unfinished')" \
        >/dev/null 2>&1 && mv .venv/java.unfinished .venv/java
}

await_turn

# The answer of an earlier call stands while it runs and nobody asked for another.
if [ -s "$answer" ] && [ -x "$(cat "$answer")/bin/java" ] && [ "${JAVA_HOME:-}" = "$(cat "$answer.asked" 2>/dev/null)" ]; then
    exit 0
fi

if ! home=$(find_java); then
    echo "set-up: no Java $oldest to $((first_too_new - 1)) found for Spark, installing one"
    install_debian_package openjdk-17-jre-headless openjdk-21-jre-headless || download_java || download_java || true
    home=$(find_java) || {
        echo "set-up: Spark needs Java 17 or 21; install it (apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2
        exit 1
    }
fi
printf '%s\n' "${JAVA_HOME:-}" >"$answer.asked"
printf '%s\n' "$home" >"$answer.new"
mv "$answer.new" "$answer"    # at once: another make may be about to read it
