"""The file of application tokens: made by the command, read by the gateway, which takes up its changes."""

import asyncio
import hashlib
import os
import pwd
from pathlib import Path

import pytest

from gateway.access.application_roles import application_socket, roles_of
from gateway.access.application_tokens import TokenHash, new_token, read_application_tokens
from gateway.access.operator_files import OperatorFiles
from gateway.config import ConfigurationError, Settings
from gateway.config.tables import AccessSettings
from mq_adapters.embedded.rights import Rights

# Of the token "rfhbridge_a", from sha256sum and base64.
ENTRY = "$sha256$" + "gACpXY4kbyWiCkEwn1zOpVnS/xOaKl4OcVOASNGDq3Q"


def test_a_token_is_long_and_its_entry_tells_nothing_of_it() -> None:
    token = new_token()
    entry = TokenHash.of(token)
    assert len(token) >= 50
    assert token != new_token()
    assert TokenHash.parse(entry.text) == entry
    assert entry.digest == hashlib.sha256(token.encode()).digest()
    assert token not in entry.text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("billing", "line 1: has no ':'"),
        ("billing:$sha256$short", "line 1: is no hash of the form"),
        ("billing:rfhbridge_secret", "line 1: is no hash of the form"),
        (f"billing:{ENTRY}\nbilling:{ENTRY}", "line 2: user 'billing' is there a second time"),
    ],
)
def test_a_wrong_line_is_named_and_not_repeated(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "tokens").write_text(line)
    with pytest.raises(ConfigurationError) as refused:
        read_application_tokens(tmp_path / "tokens")
    assert problem in str(refused.value)
    assert "rfhbridge_secret" not in str(refused.value)


def test_a_running_gateway_takes_up_a_changed_file_and_names_whose_tokens_have_gone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"billing:{TokenHash.of('a').text}\nshipping:{TokenHash.of('b').text}\n")
    path.chmod(0o600)
    told: list[frozenset[str]] = []

    async def run() -> None:
        files = OperatorFiles(AccessSettings(), token_file=str(path))
        files.on_tokens_changed = told.append
        path.write_text(f"shipping:{TokenHash.of('c').text}\n")
        watching = asyncio.create_task(files.watch(None))  # type: ignore[arg-type]  # nothing of MQTT changes
        files.ask()
        while not told:
            await asyncio.sleep(0.01)
        watching.cancel()
        assert files.token_digests() == {"shipping": hashlib.sha256(b"c").digest()}

    asyncio.run(asyncio.wait_for(run(), 60))
    assert told == [frozenset(("billing", "shipping"))]


def _settings(**application: object) -> Settings:
    return Settings.model_validate({"application": [{"name": "billing", **application}]})


def test_a_table_becomes_a_role_with_the_numbers_of_its_users() -> None:
    nobody = pwd.getpwnam("nobody")
    (role,) = roles_of(_settings(users=["nobody", "4711"], put=["ORDERS.*"], admin=["MINE"]))
    assert (role.name, role.user_ids) == ("billing", {nobody.pw_uid, 4711})
    assert role.rights == Rights(put=("ORDERS.*",), admin=("MINE",))
    assert application_socket(_settings(users=["4711"])) is None


@pytest.mark.parametrize("user", ["no-such-user-here", "root", str(os.geteuid())])
def test_a_user_that_there_is_not_or_that_may_do_everything_is_refused_at_the_start(user: str) -> None:
    with pytest.raises(ConfigurationError, match="application billing, users"):
        roles_of(_settings(users=[user]))


def test_the_entry_of_a_token_is_its_sha_256() -> None:
    assert TokenHash.of("rfhbridge_a") == TokenHash.parse(ENTRY)
