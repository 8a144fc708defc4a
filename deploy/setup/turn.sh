# shellcheck shell=sh
# Sourced by the scripts that write to .venv: one of them at a time in a folder, so that two `make` at once do no harm.

# await_turn: returns when no other set-up is under way in this folder. The turn ends with the process.
await_turn() {
    command -v flock >/dev/null 2>&1 || return 0    # not Linux: we trust the user
    exec 9<pyproject.toml
    flock -n 9 && return
    echo "set-up: waiting for another one in this folder"
    flock 9
}
