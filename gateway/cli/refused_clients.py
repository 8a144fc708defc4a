"""Clients of the store that the configuration no longer admits, because of their client identifiers."""

import time
from pathlib import Path
from typing import Final

from gateway.access.client_identifiers import why_refused
from gateway.config import Settings
from mq_adapters.reasons import StoreError

_DAY_S: Final = 86_400
#: The most clients that are named one by one.
_NAMED: Final = 20


def refused_clients(settings: Settings) -> list[str]:
    """A sentence for each client whose session is in the store and whose next CONNECT will be refused."""
    from gateway.operations.sweep import sessions_of
    from mq_adapters.embedded.store.store import FILE_NAME

    access = settings.access
    has_users = access.tells_users or settings.has_certificate_users
    if not has_users or access.bind_client_identifier is False or not (settings.data / FILE_NAME).is_file():
        return []
    try:
        _, sessions = sessions_of(settings.data)
    except StoreError as error:
        return [f"the store could not be searched for client identifiers: {error}"]
    known = _Known(settings, {session.user for session in sessions})
    found = [
        f"session {session.client!r} of {_named(session.user)}: CONNECT will be refused: {reason}; 'rfhbridge sessions"
        f" expire {session.client}' frees the identifier"
        for session in sessions
        if (reason := why_refused(access.bind_client_identifier, session.user, session.client, known.has))
    ]
    return [*found[:_NAMED], *([f"and {len(found) - _NAMED} more clients will be refused"] if found[_NAMED:] else [])]


class _Known:
    """The users that the gateway will know when it starts, as access.login knows them."""

    def __init__(self, settings: Settings, owners: set[str | None]) -> None:
        from gateway.access.recent_logins import LoginsFile
        from gateway.access.users import Users

        file = settings.access.password_file
        self._users = owners | set(Users.read(Path(file)).hashes if file else ())
        self._recent = LoginsFile(settings.data).logins
        self._today = int(time.time() // _DAY_S)

    def has(self, user: str) -> bool:
        return user in self._users or self._recent.knows_external(user, self._today)


def _named(user: str | None) -> str:
    return "no user" if user is None else f"user {user!r}"
