# shellcheck shell=sh
# Sourced by the other set-up scripts: Debian's and Ubuntu's packages, when we may install them.

# So long may another process of the machine, such as its own upgrades, keep apt to itself before we do without.
apt_limit_s=300
apt_poll_s=5
lists_were_asked_for=

# Succeeds where packages can be installed: as root, with apt-get.
can_install_debian_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# apt_get ARGUMENT...: without a word; waits while another process holds one of apt's locks.
apt_get() {
    apt_said=$(mktemp) || return 1
    waited_s=0
    apt_status=0
    until DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq -o Acquire::Retries=3 "$@" \
        </dev/null >"$apt_said" 2>&1 8>&- 9>&-; do
        if [ "$waited_s" -ge "$apt_limit_s" ] || ! grep -Eq "Could not get lock|by another process" "$apt_said"; then
            apt_status=1
            break
        fi
        [ "$waited_s" -gt 0 ] || echo "set-up: waiting for apt, which another process uses" >&2
        sleep "$apt_poll_s"
        waited_s=$((waited_s + apt_poll_s))
    done
    rm -f "$apt_said"
    return "$apt_status"
}

# install_debian_package NAME...: installs the first of the named packages that is to be had; fails when none is.
install_debian_package() {
    can_install_debian_packages || return 1
    if [ -z "$lists_were_asked_for" ]; then
        apt_get update || true    # an old list may still do
        lists_were_asked_for=yes
    fi
    for package in "$@"; do
        if apt_get install -y --no-install-recommends "$package"; then
            echo "set-up: installed $package"
            return 0
        fi
    done
    return 1
}

# Succeeds where gcc can compile a program for this system.
has_c_compiler() {
    command -v gcc >/dev/null 2>&1 && echo '#include <unistd.h>' | gcc -E - >/dev/null 2>&1
}

# require_c_compiler: the same, after installing one if we may.
require_c_compiler() {
    has_c_compiler && return
    install_debian_package gcc >/dev/null || true
    install_debian_package libc6-dev >/dev/null || true
    has_c_compiler
}
