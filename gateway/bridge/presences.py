"""Who is connected, since when, and until when: the end of a permission ends the connection, and not the session.

A token lets its client in until it expires (access.tokens). Then MQTT 5 is told reason code A0 hex: the connection time
that was authorized is over (MQTT 5.0 section 3.14.2.1); before level 5 the connection is closed.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from gateway.access.login import Admitted
from gateway.bridge.sessions import Link
from gateway.bridge.turn import MqttLink
from gateway.mqtt.reason_codes import ReasonCode

#: How often it is looked whose time is over, microseconds.
_LOOK_US: Final = 1_000_000


class Presence(NamedTuple):
    """Times in microseconds since 1970; `until_us` 0: for ever. `fingerprint`: the key of the token, "" without.

    `password_user`: the user whose password let the client in; None: something else did.
    """

    since_us: int
    until_us: int
    fingerprint: str
    listener: str
    peer: str
    password_user: str | None = None


class Presences:
    """The links that have been let in, from the decision to the loss of the connection."""

    def __init__(self) -> None:
        self._by_link: dict[Link, Presence] = {}
        self._looked_us = 0

    def __len__(self) -> int:
        """How many links have been let in."""
        return len(self._by_link)

    def begin(self, link: MqttLink, admitted: Admitted, now_us: int) -> None:
        """A link is let in."""
        by_password = not (admitted.fingerprint or link.certificate_user)
        self._by_link[link] = Presence(
            now_us,
            admitted.until_us,
            admitted.fingerprint,
            link.rules.name,
            link.peer,
            admitted.user if by_password else None,
        )

    def end(self, link: MqttLink) -> None:
        """A link is gone; also one that was never let in."""
        self._by_link.pop(link, None)

    def of(self, link: Link) -> Presence | None:
        """The presence of a link that is let in."""
        return self._by_link.get(link)

    def tick(self, now_us: int) -> None:
        """Once a second: connections whose time is over."""
        if self._looked_us <= now_us < self._looked_us + _LOOK_US:  # a clock may be set back
            return
        self._looked_us = now_us
        self._close(
            lambda presence: 0 < presence.until_us <= now_us,
            "the token has expired",
            ReasonCode.MAXIMUM_CONNECT_TIME,
        )

    def users_changed(self, users: frozenset[str]) -> None:
        """Closes the connections of users who must show their password again, or are no users any more."""
        self._close(
            lambda presence: presence.password_user in users,
            "the user's line in the password file has changed or gone",
            ReasonCode.NOT_AUTHORIZED,
        )

    def keys_gone(self, fingerprints: frozenset[str]) -> None:
        """Closes the connections that a token let in which is signed with one of these keys."""
        self._close(
            lambda presence: presence.fingerprint in fingerprints,
            "the key of its token is not in the file any more",
            ReasonCode.NOT_AUTHORIZED,
        )

    def _close(self, is_over: Callable[[Presence], bool], reason: str, reason_code: ReasonCode) -> None:
        over = [link for link, presence in self._by_link.items() if is_over(presence)]
        for link in over:
            self._by_link.pop(link, None)
            link.close(reason, reason_code)
