# shellcheck shell=sh
# Sourced by the scripts that write to .venv, so that two `make` at once do no harm.

# take_turn DESCRIPTOR OPTION...: waits for the lock of the file that stands open there.
take_turn() {
    flock -n "$@" && return
    echo "set-up: waiting for another one in this folder"
    flock "$@"
}

# await_turn: returns when no other set-up is under way in this folder. The turn ends with the process.
await_turn() {
    command -v flock >/dev/null 2>&1 || return 0    # not Linux: we trust the user
    exec 9<pyproject.toml
    take_turn 9
}

# await_turn_beside_others: the same for a script that writes to a folder of its own in .venv. Others of its kind may be
# under way, but neither itself nor a script that changes all of .venv.
await_turn_beside_others() {
    command -v flock >/dev/null 2>&1 || return 0
    exec 9<pyproject.toml 8<"$0"
    take_turn -s 9
    take_turn 8
}
