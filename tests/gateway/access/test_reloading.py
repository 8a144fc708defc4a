"""Files that change while the gateway runs: taken up when they stand still, refused without harm when wrong."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gateway.access.external_users import TokenRefused
from gateway.access.operator_files import OperatorFiles
from gateway.access.reloading import Reloading, WatchedFile
from gateway.access.tokens import Tokens
from gateway.access.users import Users
from gateway.config import ConfigurationError, Settings
from tests.gateway.access.jwt_vectors import HS256_KEY, ec_key, ed_key, jwk_set, pem, rsa_key, token

ANNA = "anna:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n"


class Watched:
    """A file, and what of it was taken up; a file that says `wrong` is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.taken_up: list[str] = []
        self.reads = 0
        path.write_text("first", encoding="utf-8")
        self.file = WatchedFile(path, self._read)

    def _read(self) -> Callable[[], None]:
        self.reads += 1
        try:
            text = self.path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(str(self.path), (str(error.strerror),), "") from None
        if text == "wrong":
            raise ConfigurationError(str(self.path), ("is wrong",), "")
        return lambda: self.taken_up.append(text)

    def look(self, *, at_once: bool = False) -> None:
        asyncio.run(self.file.look(at_once=at_once))


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "file")


def test_a_file_that_has_not_changed_is_not_read(watched: Watched) -> None:
    for _ in range(3):
        watched.look()
    assert watched.reads == 0


def test_a_changed_file_is_taken_up_once_it_stands_still(watched: Watched) -> None:
    watched.path.write_text("half of the sec", encoding="utf-8")
    watched.look()
    watched.path.write_text("second, whole", encoding="utf-8")
    watched.look()
    assert watched.taken_up == []
    watched.look()
    watched.look()
    assert watched.taken_up == ["second, whole"]


def test_a_file_that_was_replaced_by_one_of_the_same_size_and_time_is_taken_up(watched: Watched) -> None:
    before = watched.path.stat()
    other = watched.path.with_name("other")
    other.write_text("other", encoding="utf-8")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(watched.path)
    watched.look()
    watched.look()
    assert watched.taken_up == ["other"]


def test_a_wrong_file_is_said_once_and_changes_nothing(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.path.write_text("wrong", encoding="utf-8")
    for _ in range(4):
        watched.look()
    assert watched.taken_up == []
    assert caplog.text.count("file refused") == 1
    watched.path.unlink()
    for _ in range(4):
        watched.look()
    assert caplog.text.count("file refused") == 2
    watched.path.write_text("right", encoding="utf-8")
    for _ in range(2):
        watched.look()
    assert watched.taken_up == ["right"]


def test_a_file_that_may_not_be_read_yet_is_taken_up_when_it_may_though_it_has_not_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """root puts a file there, and gives it to the gateway's user seconds later: that changes no byte and no time."""
    users, taken_up = tmp_path / "users", list[Users]()
    users.write_text(ANNA, encoding="utf-8")
    file = WatchedFile(users, lambda: partial(taken_up.append, Users.read(users)))
    users.write_text("", encoding="utf-8")

    def deny(*_arguments: object) -> int:
        raise PermissionError(13, "Permission denied", str(users))

    with monkeypatch.context() as denied:
        denied.setattr("gateway.access.text_file.os.open", deny)
        for _ in range(4):
            asyncio.run(file.look())
    assert taken_up == []
    for _ in range(2):
        asyncio.run(file.look())
    assert [each.hashes for each in taken_up] == [{}]
    assert caplog.text.count("file refused") == 1


def test_sighup_reads_at_once(watched: Watched) -> None:
    watched.look(at_once=True)
    watched.path.write_text("second", encoding="utf-8")
    watched.look(at_once=True)
    assert watched.taken_up == ["first", "second"]


def test_a_fault_of_this_program_at_one_file_leaves_the_others_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    taken_up = asyncio.Event()

    def fail() -> Callable[[], None]:
        raise RuntimeError("a fault")

    async def scenario() -> None:
        files = [WatchedFile(tmp_path / "one", fail), WatchedFile(tmp_path / "two", lambda: taken_up.set)]
        reloading = Reloading(files)
        running = asyncio.create_task(reloading.run())
        for _ in range(2):
            taken_up.clear()
            reloading.ask()
            await asyncio.wait_for(taken_up.wait(), 30)
        running.cancel()

    asyncio.run(scenario())
    assert caplog.text.count("file not taken up") >= 1


def test_every_file_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        files = [Watched(tmp_path / name) for name in ("one", "two")]
        reloading = Reloading(each.file for each in files)
        task = asyncio.create_task(reloading.run())
        reloading.ask()
        while not all(each.taken_up for each in files):
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 30))


class Inside:
    """The bridge, as far as the files needs it."""

    def __init__(self) -> None:
        self.changed: list[frozenset[str] | None] = []

    def users_changed(self, users: frozenset[str]) -> None:
        self.changed.append(users)

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        self.changed.append(fingerprints)

    def access_changed(self) -> None:
        self.changed.append(None)


def test_the_door_tells_the_bridge_which_users_have_changed_and_that_rules_have(tmp_path: Path) -> None:
    users, rules = tmp_path / "users", tmp_path / "access.toml"
    users.write_text(ANNA + ANNA.replace("anna", "bob"), encoding="utf-8")
    rules.write_text("[[rule]]\npublish = 'a'\n", encoding="utf-8")

    async def scenario() -> None:
        settings = Settings.model_validate({"access": {"password_file": str(users), "access_file": str(rules)}})
        files, inside = OperatorFiles(settings.access), Inside()
        rights = files.access.rights_of("anna", "c")
        assert rights.may_publish("a")
        task = asyncio.create_task(files.watch(inside))
        users.write_text(ANNA, encoding="utf-8")
        rules.write_text("[[rule]]\npublish = 'b'\n", encoding="utf-8")
        files.ask()
        while len(inside.changed) < 2:
            await asyncio.sleep(0.01)
        assert inside.changed == [frozenset({"bob"}), None]
        rights.forget()
        assert (rights.may_publish("a"), rights.may_publish("b")) == (False, True)
        task.cancel()
        files.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("key_text", [pem(ec_key()), jwk_set(HS256_KEY)], ids=["public keys", "secrets"])
def test_users_who_go_are_noticed_beside_keys_of_tokens(tmp_path: Path, key_text: str) -> None:
    """Beside a file of secrets it was that one that was read as the password file, and whoever had gone stayed."""
    users, keys = tmp_path / "users", tmp_path / "keys"
    users.write_text(ANNA + ANNA.replace("anna", "bob"), encoding="utf-8")
    keys.write_text(key_text, encoding="utf-8")

    async def scenario() -> None:
        table = {"password_file": str(users), "token": {"key_files": [str(keys)]}}
        files, inside = OperatorFiles(Settings.model_validate({"access": table}).access), Inside()
        task = asyncio.create_task(files.watch(inside))
        users.write_text(ANNA, encoding="utf-8")
        files.ask()
        while len(inside.changed) < 2:
            await asyncio.sleep(0.01)
        assert inside.changed == [frozenset({"bob"}), frozenset()]
        task.cancel()
        files.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_the_door_takes_up_other_keys_of_tokens_and_tells_the_bridge_which_are_gone(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(pem(ec_key()) + pem(ed_key()), encoding="utf-8")

    async def scenario() -> None:
        settings = Settings.model_validate({"access": {"token": {"key_files": [str(keys)]}}})
        files, inside = OperatorFiles(settings.access), Inside()
        tokens = files.login.tokens
        assert isinstance(tokens, Tokens)
        task = asyncio.create_task(files.watch(inside))
        keys.write_text("no key at all", encoding="utf-8")
        files.ask()
        keys.write_text(pem(ed_key()) + pem(rsa_key()), encoding="utf-8")
        files.ask()
        while not inside.changed:
            files.ask()
            await asyncio.sleep(0.01)
        assert inside.changed[0] == {tokens.keys[0].fingerprint}
        assert files.login.tokens is not None
        assert files.login.tokens.check(token(rsa_key(), "RS256")).user == "ann"
        with pytest.raises(TokenRefused):
            files.login.tokens.check(token(ec_key(), "ES256"))
        task.cancel()
        files.close()

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize(
    ("table", "allows"),
    [
        ({}, True),
        ({"token": {"key_files": ["keys"]}}, False),
        ({"token": {"key_files": ["keys"]}, "anonymous": True}, True),
        ({"token": {"key_files": ["keys"]}, "anonymous": False}, False),
    ],
)
def test_keys_of_tokens_close_the_door_to_anonymous_clients_like_a_password_file(
    table: dict[str, object], allows: bool
) -> None:
    assert Settings.model_validate({"access": table}).access.allows_anonymous is allows


def test_a_file_of_secrets_that_others_may_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = tmp_path / "keys"
    settings = Settings.model_validate({"access": {"token": {"key_files": [str(keys)]}}})
    for text, mode, warnings in (
        (pem(ec_key()), 0o644, 0),
        (jwk_set(HS256_KEY), 0o600, 0),
        (jwk_set(HS256_KEY), 0o644, 1),
    ):
        keys.write_text(text, encoding="utf-8")
        keys.chmod(mode)
        OperatorFiles(settings.access).close()
        assert caplog.text.count("key file open to others") == warnings
    public = tmp_path / "public.pem"
    public.write_text(pem(ec_key()), encoding="utf-8")
    both = Settings.model_validate({"access": {"token": {"key_files": [str(public), str(keys)]}}})
    caplog.clear()
    OperatorFiles(both.access).close()
    assert [record.args for record in caplog.records] == [("key file", str(keys))]


@pytest.mark.parametrize("key", ["password_file", "access_file"])
def test_a_gateway_does_not_start_with_a_wrong_file(tmp_path: Path, key: str) -> None:
    wrong = tmp_path / "wrong"
    for text in ("sesame", None):
        if text is None:
            wrong.unlink()
        else:
            wrong.write_text(text, encoding="utf-8")
        settings = Settings.model_validate({"access": {key: str(wrong)}})
        with pytest.raises(ConfigurationError, match=str(wrong)) as refused:
            OperatorFiles(settings.access)
        assert "sesame" not in str(refused.value)


def test_a_password_file_that_others_may_read_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    users = tmp_path / "users"
    users.write_text(ANNA, encoding="utf-8")
    for mode, warnings in ((0o600, 0), (0o640, 0), (0o644, 1)):
        users.chmod(mode)
        OperatorFiles(Settings.model_validate({"access": {"password_file": str(users)}}).access).close()
        assert caplog.text.count("password file open to others") == warnings


def test_a_file_that_changes_while_it_is_read_is_taken_up_as_it_stands_later(tmp_path: Path) -> None:
    """Somebody who is told of the contents is told of those that are in force."""
    path, taken_up, told = tmp_path / "one", list[str](), list[str]()
    path.write_text("first", encoding="utf-8")

    def read() -> Callable[[], None]:
        text = path.read_text(encoding="utf-8")
        return lambda: taken_up.append(text)

    def on_read(paths: tuple[Path, ...]) -> Callable[[], None]:
        if not told and not taken_up and path.read_text(encoding="utf-8") == "second":
            path.write_text("the third", encoding="utf-8")
        text = paths[0].read_text(encoding="utf-8")
        return lambda: told.append(text)

    async def scenario() -> None:
        file = WatchedFile(path, read)
        path.write_text("second", encoding="utf-8")
        await file.look(at_once=True, on_read=on_read)
        assert (taken_up, told) == ([], [])
        for _ in range(2):
            await file.look(on_read=on_read)

    asyncio.run(scenario())
    assert taken_up == told == ["the third"]
