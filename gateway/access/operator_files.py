"""The operator's files of users, rules and keys: login and rights are made from them, and follow their changes."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gateway.access.access_list import AccessList
from gateway.access.application_tokens import TokenHash, read_application_tokens
from gateway.access.dollar_topics import ALL_RESERVED, DollarTopics
from gateway.access.hashing import HashingThreads
from gateway.access.login import Login
from gateway.access.recent_logins import LoginsFile
from gateway.access.reloading import Reloading, WatchedFile
from gateway.access.rights import Access
from gateway.access.users import Users
from gateway.config.tables import AccessSettings
from gateway.limits.refusals import Refusals

if TYPE_CHECKING:
    from gateway.access.tokens import Tokens  # a gateway without tokens does not load PyJWT

_log = logging.getLogger(__name__)


class UsersFollower(Protocol):
    """Whoever has connections of users, and ends them."""

    def users_changed(self, users: frozenset[str]) -> None:
        """The lines of these users in the password file have changed or gone."""
        ...

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        """Tokens signed with these keys no longer let anybody in."""
        ...


class Follower(UsersFollower, Protocol):
    """The bridge, which follows a change of the files."""

    def access_changed(self) -> None:
        """The rules of the access list have changed."""
        ...


class OperatorFiles:
    """Reads the files of [access], and raises ConfigurationError where one is wrong. Made on the event loop."""

    def __init__(
        self,
        settings: AccessSettings,
        *,
        has_certificate_users: bool = False,
        dollar_topics: DollarTopics = ALL_RESERVED,
        refusals: Refusals | None = None,
        token_file: str = "",
    ) -> None:
        self._follower: Follower | None = None
        #: Listeners of MQ clients, which are told of changed users too.
        self.programs: UsersFollower | None = None
        self._recent: LoginsFile | None = None
        self._tokens: Tokens | None = None
        self._application_tokens: Mapping[str, TokenHash] = {}
        #: Told of the applications whose tokens have changed or gone.
        self.on_tokens_changed: Callable[[frozenset[str]], None] = lambda _names: None
        users = access_list = None
        files: list[WatchedFile] = []
        if settings.password_file:
            users_path = Path(settings.password_file)
            files.append(WatchedFile(users_path, partial(self._read_users, users_path)))
            users = Users.read(users_path)
            _tell_mode("password file", users_path)
        if settings.access_file:
            rules_path = Path(settings.access_file)
            files.append(WatchedFile(rules_path, partial(self._read_access_list, rules_path, settings)))
            access_list = AccessList.read_for(rules_path, settings.bind_client_identifier)
        if settings.token.key_files:
            read_keys = partial(self._read_keys, settings)
            files += [WatchedFile(Path(file), read_keys) for file in settings.token.key_files]
            self._tokens = _tokens(settings)
            for path in _secret_files(settings):
                _tell_mode("key file", path)
        if token_file:
            tokens_path = Path(token_file)
            files.append(WatchedFile(tokens_path, partial(self._read_application_tokens, tokens_path)))
            self._application_tokens = read_application_tokens(tokens_path)
            _tell_mode("token file", tokens_path)
        self.access = Access(
            publish=settings.publish,
            subscribe=settings.subscribe,
            access_list=access_list,
            dollar_topics=dollar_topics,
        )
        waiting = settings.maximum_waiting_logins
        self.login = Login(
            users,
            tokens=self._tokens,
            allows_anonymous=settings.allows_anonymous,
            binding=settings.bind_client_identifier,
            has_certificate_users=has_certificate_users,
            threads=HashingThreads(maximum_waiting=waiting, refusals=refusals) if users is not None else None,
        )
        self.reloading = Reloading(files)

    def ask(self) -> None:
        """The operator wants the files read again, now (SIGHUP)."""
        self.reloading.ask()

    async def watch(self, follower: Follower) -> None:
        """Takes up changes, and keeps who logged in lately, until it is cancelled."""
        self._follower = follower
        keeping = () if self._recent is None else (self._recent.keep(),)
        await asyncio.gather(self.reloading.run(), *keeping)

    def recall_logins(self, data: Path) -> None:
        """Takes up who logged in lately, from the data folder; call it before the ports open."""
        self._recent = LoginsFile(data)
        self.login.recent = self._recent.logins

    def close(self) -> None:
        """Gives up the checks of passwords that are under way, and writes who logged in lately."""
        self.login.close()
        if self._recent is not None:
            self._recent.write()

    @property
    def _followers(self) -> tuple[UsersFollower, ...]:
        return tuple(each for each in (self._follower, self.programs) if each is not None)

    def _read_users(self, path: Path) -> Callable[[], None]:
        users = Users.read(path)
        changed = users.changed_since(self.login.users) if self.login.users is not None else frozenset()

        def take_up() -> None:
            self.login.replace(users, changed)
            for each in self._followers:
                each.users_changed(changed)

        return take_up

    def _read_keys(self, settings: AccessSettings) -> Callable[[], None]:
        """Reads all files of keys: a key may have moved from one to another."""
        tokens = _tokens(settings)

        def take_up() -> None:
            gone = tokens.gone_since(self._tokens) if self._tokens is not None else frozenset()
            self._tokens = self.login.tokens = tokens
            for each in self._followers:
                each.keys_gone(gone)

        return take_up

    def token_digests(self) -> Mapping[str, bytes]:
        """The SHA-256 of the token of each application that has one."""
        return {name: entry.digest for name, entry in self._application_tokens.items()}

    def _read_application_tokens(self, path: Path) -> Callable[[], None]:
        tokens = read_application_tokens(path)
        changed = frozenset(name for name, entry in self._application_tokens.items() if tokens.get(name) != entry)

        def take_up() -> None:
            self._application_tokens = tokens
            self.on_tokens_changed(changed)

        return take_up

    def _read_access_list(self, path: Path, settings: AccessSettings) -> Callable[[], None]:
        access_list = AccessList.read_for(path, settings.bind_client_identifier)

        def take_up() -> None:
            self.access.access_list = access_list
            if self._follower is not None:
                self._follower.access_changed()

        return take_up


def _tokens(settings: AccessSettings) -> "Tokens":
    from gateway.access.tokens import Tokens

    return Tokens.read(settings.token)


def _secret_files(settings: AccessSettings) -> list[Path]:
    from gateway.access.token_keys import holds_secret

    return [path for path in map(Path, settings.token.key_files) if holds_secret(path)]


def _tell_mode(kind: str, path: Path) -> None:
    """Warns where everybody may read a file: from hashes they guess passwords, and with a secret they make tokens."""
    if path.stat().st_mode & 0o007:
        _log.warning("%s open to others file=%s", kind, str(path))
