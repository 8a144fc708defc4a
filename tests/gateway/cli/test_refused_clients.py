"""`rfhbridge check` names the clients of the store whose identifiers are another user's."""

import time
from pathlib import Path

import pytest

from gateway.access.recent_logins import LoginsFile
from gateway.bridge.sessions.session_store import SessionRow
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.unit_of_work import StateKind

HASH = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"


def make_store(folder: Path, sessions: dict[str, str | None]) -> None:
    """A store with a session of each client identifier, and its user."""
    engine = Engine.open(folder)
    unit = engine.begin()
    for client, user in sessions.items():
        row = SessionRow(1, 4, False, False, None, {}, user, {}, 0xFFFF_FFFF, 0, 0, {}, b"", 0)
        unit.set_state(StateKind.SESSION, client.encode(), row.pack())
    engine.submit(unit)
    engine.commit_now()
    engine.close()


@pytest.fixture
def warned(rfhbridge, tmp_path):
    """What `check` says about clients with a setting of [access], and a password file of ann and bob."""

    def check(*lines: str, has_users: bool = True) -> list[str]:
        users, config = tmp_path / "users", tmp_path / "rfhbridge.toml"
        users.write_text(f"ann:{HASH}\nbob:{HASH}\n")
        users.chmod(0o600)
        known = [f'password_file = "{users}"'] if has_users else []
        config.write_text("\n".join([f'data = "{tmp_path / "data"}"', "[access]", *known, *lines]))
        ended = rfhbridge("check", "--config", config)
        assert ended.exit_code == 0, ended.stderr
        found = [line.removeprefix("warning: ") for line in ended.text.splitlines() if "will be refused" in line]
        return [line.partition("; ")[0] for line in found]

    return check


SESSIONS = {"ann": "ann", "ann:1": "bob", "bob": None, "panel": "bob", "CN=door": "ann", "free": None}


def test_clients_that_took_anothers_identifier_are_named(warned, tmp_path):
    make_store(tmp_path / "data", SESSIONS)
    assert warned() == [
        "session 'ann:1' of user 'bob': CONNECT will be refused: client identifier 'ann:1' belongs to user 'ann'",
        "session 'bob' of no user: CONNECT will be refused: client identifier 'bob' belongs to user 'bob'",
    ]
    assert warned('bind_client_identifier = "reserved"') == warned()
    assert warned("bind_client_identifier = false") == []
    assert [line.split("'")[1] for line in warned("bind_client_identifier = true")] == [
        *("CN=door", "ann:1", "bob", "panel")
    ]
    assert warned(has_users=False) == [], "nobody is told from anybody"


def test_users_of_tokens_and_certificates_are_known_by_their_sessions_and_recent_logins(warned, tmp_path):
    make_store(tmp_path / "data", SESSIONS | {"CN=hall": "CN=hall", "CN=hall:2": "ann"})
    file = LoginsFile(tmp_path / "data")
    file.logins.add("CN=door", b"", int(time.time() // 86_400), is_external=True)
    file.write()
    assert [line.split("'")[1] for line in warned()] == ["CN=door", "CN=hall:2", "ann:1", "bob"]


def test_many_clients_are_counted(warned, tmp_path):
    make_store(tmp_path / "data", {f"ann:{number}": "bob" for number in range(30)})
    lines = warned()
    assert len(lines) == 21
    assert lines[-1] == "and 10 more clients will be refused"


def test_an_access_list_with_client_identifiers_needs_them_bound(rfhbridge, tmp_path):
    users, rules, config = tmp_path / "users", tmp_path / "access.toml", tmp_path / "rfhbridge.toml"
    users.write_text(f"ann:{HASH}\n")
    users.chmod(0o600)
    rule = '[[rule]]\nuser = "ann"\npublish = "a"\n[[rule]]\ndeny_subscribe = "b/%c"\n'
    for setting, text, is_right in (
        ('"reserved"', rule, False),
        ("false", rule, False),
        ("true", rule, True),
        ('"reserved"', "accept_unbound_client_identifiers = true\n" + rule, True),
        ('"reserved"', rule.replace("%c", "%u"), True),
        ('"reserved"', rule.replace("%c", "%%c"), True),
    ):
        rules.write_text(text)
        config.write_text(
            f'[access]\npassword_file = "{users}"\naccess_file = "{rules}"\nbind_client_identifier = {setting}\n'
        )
        ended = rfhbridge("check", "--config", config)
        assert ended.exit_code == (0 if is_right else 1), (setting, text)
        if not is_right:
            assert "rule#2 names %c, and users may take each other's client identifiers" in ended.stderr
            assert "accept_unbound_client_identifiers = true" in ended.stderr
