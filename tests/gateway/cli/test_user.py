"""`rfhbridge user`: the password file on the disk; where passwords come from, and that they are shown nowhere."""

import json
import os
import pty
import stat
import subprocess

import pytest

from gateway.access.application_tokens import TokenHash, read_application_tokens
from gateway.access.users import Users
from tests.processes.forked import Forked

# The reference implementation of Argon2 gives this hash for "password" with the salt "somesalt".
ANNA = "anna:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n"
SENSOR = ("--sensors", "1", "--rate", "1", "--qos", "0", "--seconds", "1")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "users"


def is_password(file, name, password):
    return Users.read(file).hashes[name].is_of(password)


def test_added_user_has_the_password_of_standard_input_and_the_file_is_its_owners_alone(rfhbridge, file):
    ended = rfhbridge("user", "add", "pump-7", "--file", file, stdin=b"open sesame\nmore\n")
    assert (ended.exit_code, ended.text, ended.stderr) == (0, "added pump-7\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert is_password(file, "pump-7", b"open sesame")
    assert not is_password(file, "pump-7", b"open sesame\n")
    assert b"sesame" not in file.read_bytes()


def test_second_add_changes_the_password_and_nothing_else(rfhbridge, file):
    file.write_text(f"# pumps\n\n{ANNA}bob:{ANNA.partition(':')[2]}", encoding="utf-8")
    file.chmod(0o644)
    ended = rfhbridge("user", "add", "anna", "--file", file, stdin=b"new")
    assert (ended.exit_code, ended.text) == (0, "changed the password of anna\n")
    first, empty, anna, bob = file.read_text(encoding="utf-8").splitlines()
    assert (first, empty, bob) == ("# pumps", "", "bob:" + ANNA.partition(":")[2].rstrip())
    assert anna.startswith("anna:$argon2id$v=19$m=19456,t=2,p=1$")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert is_password(file, "anna", b"new")
    assert not is_password(file, "anna", b"password")


def test_a_group_that_may_read_the_file_still_may_after_a_change(rfhbridge, file):
    """root keeps the file, and the gateway runs as a member of its group: it must be able to read it again."""
    file.write_text(ANNA, encoding="utf-8")
    file.chmod(0o640)
    assert rfhbridge("user", "add", "bob", "--file", file, stdin=b"new").exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert rfhbridge("user", "remove", "bob", "--file", file).exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_password_comes_from_the_first_line_of_a_file(rfhbridge, file, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"  two words \r\nmore\n")
    ended = rfhbridge("user", "add", "anna", "--file", file, "--password-file", secret, stdin=b"not this\n")
    assert ended.exit_code == 0
    assert is_password(file, "anna", b"  two words ")


@pytest.mark.parametrize(
    ("typed", "printed"),
    [(b"sesame\nsesame\n", "added anna"), (b"sesame\nsesam\n", "the two passwords differ; nothing was changed")],
)
def test_password_is_asked_for_twice_on_a_terminal_and_not_shown(file, typed, printed):
    ours, theirs = pty.openpty()
    command = ("gateway.cli", "user", "add", "anna", "--file", str(file))
    process = Forked(*command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown = b""
    for line in typed.splitlines(keepends=True):
        while not shown.endswith(b": "):
            shown += os.read(ours, 1000)
        os.write(ours, line)
        shown += b"\n"
    while process.poll() is None or printed not in shown.decode():
        try:
            shown += os.read(ours, 1000)
        except OSError:  # the other side of the terminal is closed
            break
    os.close(ours)
    process.wait(60)
    assert printed in shown.decode()
    assert b"sesam" not in shown
    assert file.exists() is (process.returncode == 0)


def test_listed_are_names_and_costs_and_no_hash(rfhbridge, file):
    file.write_text(ANNA, encoding="utf-8")
    assert rfhbridge("user", "list", "--file", file).text.split() == [
        *("user", "hash", "cost"),
        *("anna", "argon2id", "m=256,t=2,p=1"),
    ]
    told = json.loads(rfhbridge("user", "list", "--json", "--file", file).stdout)
    assert told == [{"name": "anna", "hash": "argon2id", "cost": "m=256,t=2,p=1"}]


def test_removed_user_is_gone_and_the_others_stay(rfhbridge, file):
    file.write_text(f"{ANNA}ann:{ANNA.partition(':')[2]}# end", encoding="utf-8")
    ended = rfhbridge("user", "remove", "ann", "--file", file)
    assert (ended.exit_code, ended.text) == (0, "removed ann\n")
    assert file.read_text(encoding="utf-8") == f"{ANNA}# end"
    again = rfhbridge("user", "remove", "ann", "--file", file)
    assert (again.exit_code, again.stdout) == (1, b"")
    assert "there is no user 'ann'" in again.stderr


def test_file_is_the_configured_one_where_none_is_named(rfhbridge, file, tmp_path):
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'[access]\npassword_file = "{file}"\n', encoding="utf-8")
    assert rfhbridge("user", "add", "anna", "--config", config, stdin=b"x").exit_code == 0
    assert set(Users.read(file).hashes) == {"anna"}
    ended = rfhbridge("user", "list")
    assert (ended.exit_code, "no password file is named" in ended.stderr) == (1, True)


def test_password_on_the_command_line_is_refused_and_not_repeated(rfhbridge, file):
    ended = rfhbridge("user", "add", "anna", "sesame", "--file", file, stdin=b"x")
    assert ended.exit_code == 2
    assert "never give a password on the command line" in ended.stderr
    assert "sesame" not in ended.stderr
    assert not file.exists()


@pytest.mark.parametrize("name", ["", "a:b", "#a", " a", "a ", "a\nb", "a\tb", "x" * 257])
def test_name_that_the_file_cannot_hold_is_a_usage_error(rfhbridge, file, name):
    ended = rfhbridge("user", "add", name, "--file", file, stdin=b"x")
    assert (ended.exit_code, ended.stdout) == (2, b"")
    assert "user name" in ended.stderr
    assert not file.exists()


@pytest.mark.parametrize(
    ("password", "complaint"),
    [(b"", "is empty"), (b"\n", "is empty"), (b"\xff\n", "is not UTF-8"), (b"x" * 65_536, "more than 65535 bytes")],
)
def test_password_that_no_client_can_send_is_refused(rfhbridge, file, password, complaint):
    ended = rfhbridge("user", "add", "anna", "--file", file, stdin=password)
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert complaint in ended.stderr
    assert not file.exists()


@pytest.mark.parametrize("command", ["add", "remove"])
def test_wrong_file_is_left_as_it_is_and_nothing_of_it_is_shown(rfhbridge, file, command):
    file.write_text("anna:sesame\nsesame\n", encoding="utf-8")
    ended = rfhbridge("user", command, "anna", "--file", file, stdin=b"x")
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "line 1: is no hash" in ended.stderr
    assert "line 2: has no ':'" in ended.stderr
    assert "sesame" not in ended.stderr
    assert file.read_text(encoding="utf-8") == "anna:sesame\nsesame\n"


def test_file_that_is_no_file_is_one_line(rfhbridge, tmp_path):
    for path in (tmp_path, tmp_path / "none" / "users", "/dev/null"):
        ended = rfhbridge("user", "add", "anna", "--file", path, stdin=b"x")
        assert (ended.exit_code, ended.stdout, ended.stderr.count("\n")) == (1, b"", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["user", "list", "--file", "FILE"],
        ["user", "remove", "anna", "--file", "FILE"],
        ["user", "add", "anna", "--file", "/nowhere/other", "--password-file", "FILE"],
        ["simulate", *SENSOR, "--user", "anna", "--password-file", "FILE"],
    ],
    ids=" ".join,
)
def test_file_that_may_not_be_read_has_failed_like_one_that_is_not_there(rfhbridge, file, monkeypatch, arguments):
    file.write_text(ANNA)

    def deny(*_arguments, **_options):
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("gateway.access.text_file.os.open", deny)
    ended = rfhbridge(*(str(file) if each == "FILE" else each for each in arguments))
    assert (ended.exit_code, ended.stdout) == (1, b"")
    assert "Permission denied" in ended.stderr


def test_commands_at_one_time_lose_nobody(file):
    names = [f"user-{number}" for number in range(6)]
    processes = [
        Forked("gateway.cli", "user", "add", name, "--file", str(file), stdin=subprocess.PIPE) for name in names
    ]
    for process in processes:
        with process:
            process.stdin.write("x\n")
    assert set(Users.read(file).hashes) == set(names)


def test_a_token_is_shown_once_and_its_file_is_its_owners_alone(rfhbridge, file):
    made = rfhbridge("user", "token", "add", "billing", "--file", file)
    token = made.text.strip()
    assert (made.exit_code, token.startswith("rfhbridge_"), len(token) > 50) == (0, True, True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token not in file.read_text()
    assert read_application_tokens(file)["billing"] == TokenHash.of(token)
    again = rfhbridge("user", "token", "add", "billing", "--file", file).text.strip()
    assert read_application_tokens(file) == {"billing": TokenHash.of(again)}
    listed = rfhbridge("user", "token", "list", "--file", file, "--json")
    assert json.loads(listed.text) == [{"name": "billing", "hash": "sha256"}]
    assert rfhbridge("user", "token", "remove", "billing", "--file", file).text == "removed billing\n"
    assert read_application_tokens(file) == {}
    missing = rfhbridge("user", "token", "remove", "billing", "--file", file)
    assert (missing.exit_code, "there is no token of 'billing'" in missing.stderr) == (1, True)
