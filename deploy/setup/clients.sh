#!/bin/sh
# Builds clients of others, with which some tests connect to the gateway, into .venv/clients: a folder a toolchain.
# Never fails where a toolchain or the network is missing, or a toolchain is too old: those tests are skipped instead,
# and say why.
#
# usage: deploy/setup/clients.sh      after: deploy/setup/environment.sh test
#
# What is built stands, with checksums, in the lock files of tests/end_to_end/clients; from where, the toolchain's own
# configuration says. A toolchain is installed by nobody here: a compiler for a few tests is no small thing. What was
# built is stamped; a second call does nothing until a source, this script or a toolchain's place changes. So does one
# whose network failed: remove .venv/clients to try again.
set -eu
cd "$(dirname "$0")/../.."
. deploy/setup/turn.sh

download_limit_s=120
sources=tests/end_to_end/clients
oldest_rust=85    # of Rust 1: what Cargo.lock's newest package asks for
oldest_go=24      # of Go 1: what go.mod asks for
oldest_java=11
oldest_java_of_ibm=17
toolchains=${*:-rust go java ibm}

# -- what each toolchain is, where its sources are, how it fetches and builds ------------------------------------------

rust_sources=$sources/rumqttc
rust_commands="cargo rustc cc"
rust_needed="Rust 1.$oldest_rust or later and a C compiler"
rust_clients="rumqttc"

rust_suits() {
    release=$(rustc --version 2>/dev/null | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
    [ "${release:-0}" -ge "$oldest_rust" ]
}

# Cargo.lock is kept without the lines that say where each package comes from. Cargo itself tells what it writes there.
rust_fetch() {
    cp -R "$rust_sources/." "$built/"
    manifest=$built/Cargo.toml
    registry=$(cargo metadata --no-deps --offline --format-version 1 --manifest-path "$manifest" |
        sed -n 's/.*"source":"\([^"]*\)".*/\1/p')
    sed "s|^checksum|source = \"$registry\"\\
checksum|" "$rust_sources/Cargo.lock" >"$built/Cargo.lock"
    $limit cargo fetch --locked --manifest-path "$manifest"
}

rust_build() {
    cargo build --locked --offline --manifest-path "$built/Cargo.toml" --target-dir "$built/target"
}

go_sources=$sources/go
go_commands=go
go_needed="Go 1.$oldest_go or later"
go_clients="Eclipse Paho's clients in Go"
export GOTOOLCHAIN=local    # it would fetch another Go

go_suits() {
    release=$(go version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')
    [ "${release:-0}" -ge "$oldest_go" ]
}

go_fetch() {
    cd "$go_sources" && $limit go list -mod=readonly -deps ./...
}

go_build() {
    cd "$go_sources" && go build -mod=readonly -buildvcs=false -o "$built/" ./...
}

java_sources=$sources/java
java_commands="javac java mvn sha256sum"
java_needed="a JDK $oldest_java or later with Maven"
java_clients="HiveMQ's client and Eclipse Paho's clients in Java"

java_suits() {
    jdk_suits $oldest_java
}

java_fetch() {
    maven_fetch "$java_sources"
}

java_build() {
    java_compile "$java_sources" $oldest_java
}

# IBM's licence allows the use of its client. Nothing of it is kept or shipped.
ibm_sources=tests/end_to_end/mq_clients/java
ibm_commands=$java_commands
ibm_needed="a JDK $oldest_java_of_ibm or later with Maven"
ibm_clients="IBM MQ's client in Java"

ibm_suits() {
    jdk_suits $oldest_java_of_ibm
}

ibm_fetch() {
    maven_fetch "$ibm_sources"
}

ibm_build() {
    java_compile "$ibm_sources" $oldest_java_of_ibm
}

# jdk_suits RELEASE: succeeds for a JDK of that release or a later one.
jdk_suits() {
    for command in javac java; do
        release=$("$command" --version 2>/dev/null | sed -n '1s/^[a-z]* \([0-9]*\).*/\1/p')
        [ "${release:-0}" -ge "$1" ] || return 1
    done
}

maven_fetch() {
    $limit mvn --batch-mode --quiet --file "$1/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$built/jars" || return 1
    cp "$1/jars.sha256" "$built/jars/"
    cd "$built/jars" && sha256sum --check --quiet jars.sha256
}

# The manifest of IBM's client names files that nobody has, so that paths are not checked.
java_compile() {
    javac -Xlint:all,-path -Werror --release "$2" -cp "$built/jars/*" -d "$built/classes" "$1"/*.java
}

# -- the same for all ---------------------------------------------------------------------------------------------------

# value NAME: what this toolchain has under the name.
value() {
    eval "printf '%s\n' \"\$${toolchain}_$1\""
}

fingerprint() {
    # shellcheck disable=SC2046
    { find $(value sources) -type f | LC_ALL=C sort | xargs cat "$0"; command -v $(value commands) || true; } | cksum
}

is_done() {
    for stamp in "$built/stamp" "$built/unavailable.stamp"; do
        [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$(fingerprint)" ] || return 0
    done
    return 1
}

is_there() {
    for command in $(value commands); do
        command -v "$command" >/dev/null 2>&1 || return 1
    done
    "${toolchain}_suits"
}

skip() {
    echo "$1" >"$built/unavailable"
    fingerprint >"$built/unavailable.stamp"
    echo "set-up: $1: the tests with $(value clients) are skipped"
}

build() {
    echo "set-up: $(value clients)"
    rm -rf "$built"
    mkdir -p "$built"
    if ! is_there; then
        skip "$(value needed) is needed"
    elif ! ("${toolchain}_fetch") </dev/null >"$built/fetch.log" 2>&1; then
        skip "$(value clients) could not be fetched (${built#"$PWD"/}/fetch.log says why; it needs the network once)"
    elif ! ("${toolchain}_build") </dev/null >"$built/build.log" 2>&1; then
        cat "$built/build.log" >&2
        echo "set-up: $(value clients) could not be built; the lines above say why" >&2
        exit 1
    else
        fingerprint >"$built/stamp"
    fi
}

await_turn_beside_others
limit=
! command -v timeout >/dev/null 2>&1 || limit="timeout $download_limit_s"
for toolchain in $toolchains; do
    built=$PWD/.venv/clients/$toolchain
    is_done || build
done
