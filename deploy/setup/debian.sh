# shellcheck shell=sh
# Sourced by the other set-up scripts: Debian's and Ubuntu's packages, when we may install them.

# Succeeds where packages can be installed: as root, with apt-get.
can_install_debian_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# install_debian_package NAME...: installs the first of the named packages that is to be had; fails when none is.
install_debian_package() {
    can_install_debian_packages || return 1
    apt-get update -qq >/dev/null 2>&1 || true    # an old list may still do
    for package in "$@"; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package" \
            </dev/null >/dev/null 2>&1; then
            echo "set-up: installed $package"
            return 0
        fi
    done
    return 1
}
