"""A key behind an SSH agent: two messages over its Unix socket. paramiko would bring 10 MB of code for them.

    request     length (4, big-endian), type (1): 11 asks for the keys, 13 for a signature: key, data, flags (4)
    answer      12 the number of keys (4), then for each key and comment; 14 the signature; 5 a refusal

A key is "ssh-ed25519" and 32 bytes, a signature "ssh-ed25519" and 64 bytes, each with its length (4) in front, as every
text has. Source: draft-ietf-sshm-ssh-agent, sections 3.5 and 3.6; RFC 8709. The agent signs the data as they are, so
the key should sign nothing else, for example no logins.
"""

import socket
import struct
import time
from collections.abc import Iterator
from typing import Final

from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace

_ASK_KEYS, _KEYS, _ASK_SIGNATURE, _SIGNATURE = 11, 12, 13, 14
_ED25519: Final = b"ssh-ed25519"
_NUMBER: Final = struct.Struct(">I")
#: OpenSSH's own limit of a message.
_LARGEST_MESSAGE_BYTES: Final = 256 * 1024


class AgentKey:
    """A key of Ed25519 at an agent. Raises KeyAway."""

    def __init__(self, place: KeyPlace) -> None:
        self._place = place

    def public_keys(self) -> tuple[str, ...]:
        """The keys of Ed25519; the agent may have others."""
        answer = self._ask(bytes((_ASK_KEYS,)), _KEYS)
        return tuple(parts[1].hex() for parts in map(_parts, _texts(answer[4:])[::2]) if _is_ed25519(parts, 32))

    def sign(self, data: bytes) -> str:
        """64 bytes, hex."""
        blob = _text(_ED25519) + _text(bytes.fromhex(self._place.public_key))
        request = bytes((_ASK_SIGNATURE,)) + _text(blob) + _text(data) + _NUMBER.pack(0)
        texts = _texts(self._ask(request, _SIGNATURE))
        parts = _parts(texts[0]) if texts else []
        if not _is_ed25519(parts, 64):
            raise KeyAway("the agent's answer is no signature of Ed25519")
        return parts[1].hex()

    def _ask(self, request: bytes, due: int) -> bytes:
        """The answer without its type."""
        deadline_s = time.monotonic() + self._place.timeout_s
        try:
            with socket.socket(socket.AF_UNIX) as agent:
                agent.settimeout(self._place.timeout_s)
                agent.connect(self._place.socket)
                agent.sendall(_text(request))
                (length,) = _NUMBER.unpack(_read(agent, _NUMBER.size, deadline_s))
                if not 0 < length <= _LARGEST_MESSAGE_BYTES:
                    raise KeyAway(f"the agent's answer has {length} bytes")
                answer = _read(agent, length, deadline_s)
        except OSError as error:
            raise KeyAway(f"the agent at {self._place.socket} does not answer: {error}") from None
        if answer[0] != due:
            raise KeyAway("the agent refuses: it does not have the key, or is locked")
        return answer[1:]


def _read(agent: socket.socket, count: int, deadline_s: float) -> bytes:
    data = b""
    while len(data) < count:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("it takes too long")
        agent.settimeout(left_s)
        piece = agent.recv(count - len(data))
        if not piece:
            raise ConnectionError("it hangs up")
        data += piece
    return data


def _text(data: bytes) -> bytes:
    return _NUMBER.pack(len(data)) + data


def _cut(data: bytes) -> Iterator[bytes]:
    while data:
        if len(data) < _NUMBER.size:
            raise KeyAway("the agent's answer is cut")
        (length,) = _NUMBER.unpack_from(data)
        if length > len(data) - _NUMBER.size:
            raise KeyAway("the agent's answer is cut")
        yield data[_NUMBER.size : _NUMBER.size + length]
        data = data[_NUMBER.size + length :]


def _texts(data: bytes) -> list[bytes]:
    return list(_cut(data))


def _parts(blob: bytes) -> list[bytes]:
    """The parts of a key or a signature; none for one of another kind, whose parts are no texts."""
    try:
        return _texts(blob)
    except KeyAway:
        return []


def _is_ed25519(parts: list[bytes], length: int) -> bool:
    return len(parts) == 2 and parts[0] == _ED25519 and len(parts[1]) == length
