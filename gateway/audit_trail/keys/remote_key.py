"""A configured key that lies elsewhere: in a token, or behind an agent. It may be away, and may take its time.

late_signing.py asks it in a thread, so nothing of the trail waits for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from spark_audit.trail.signature import is_signature_of


class KeyAway(Exception):
    """The token or agent does not answer, refuses, or has another key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlace:
    """A key's place as the configuration has it (gateway/config/signing_token.py); files are absolute paths or ""."""

    type: str
    public_key: str
    module: str = ""
    token: str = ""
    key: str = ""
    pin_file: str = ""
    socket: str = ""
    timeout_s: float = 10.0


class RemoteKey(Protocol):
    """The key. Every method raises KeyAway, and ends within a bounded time."""

    def public_keys(self) -> tuple[str, ...]:
        """The public keys (hex) that are there."""
        ...

    def sign(self, data: bytes) -> str:
        """The signature (hex) by the key of the place."""
        ...


class RemoteSigner:
    """A key that is asked in the place, and waited for: a token that hands over to another one. Raises KeyAway."""

    def __init__(self, key: RemoteKey, public_key: str) -> None:
        self.public_key = public_key
        self._key = key

    def sign(self, data: bytes) -> str:
        """Hex."""
        signature = self._key.sign(data)
        if not is_signature_of(self.public_key, signature, data):
            raise KeyAway(f"its signature is not that of the key {self.public_key}")
        return signature


def remote_key(place: KeyPlace) -> RemoteKey:
    """The key at a place."""
    return _TYPES[place.type](place)


def _token(place: KeyPlace) -> RemoteKey:
    from gateway.audit_trail.keys.token_key import TokenKey  # few trails have one

    return TokenKey(place)


def _agent(place: KeyPlace) -> RemoteKey:
    from gateway.audit_trail.keys.agent_key import AgentKey

    return AgentKey(place)


_TYPES: Final[dict[str, Callable[[KeyPlace], RemoteKey]]] = {"pkcs11": _token, "ssh-agent": _agent}
