"""Frames and structures between the stand-in library and the queue manager's process (library/transport.h).

Integers are 32 bits, little-endian. The fields of a request, by its verb:

    MQCONNX   queue manager name 48, options, MaxMsgLength, process, channel 20, CONNAME 264, cipher 32, application 28,
              key repository 256, the lengths of user, password, peer name and CCDT's URL, and these four
    MQOPEN    options, MQOD                          answer: Hobj, MQOD
    MQCLOSE   Hobj, options
    MQPUT     Hobj, MQMD, MQPMO, message             answer: MQMD, MQPMO
    MQPUT1    MQOD, MQMD, MQPMO, message             answer: MQOD, MQMD, MQPMO
    MQGET     Hobj, MQMD, MQGMO, buffer's length     answer: MQMD, MQGMO, DataLength, what of the message fits
    MQINQ     Hobj, counts of selectors and numbers, length of characters, selectors
                                                     answer: count of numbers, length of characters, numbers, characters
    MQSET     Hobj, the same counts, selectors, numbers, characters
    MQDISC, MQBEGIN, MQCMIT, MQBACK                  nothing

Structures come complete, in their newest version: MQMD 364 bytes, MQOD 424, MQPMO 184, MQGMO 112.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

MQMD_BYTES: Final = 364
MQOD_BYTES: Final = 424
MQPMO_BYTES: Final = 184
MQGMO_BYTES: Final = 112
LONGEST_FRAME_BYTES: Final = 100 * 1024 * 1024 + 64 * 1024

MQCC_OK: Final = 0
MQCC_WARNING: Final = 1
MQCC_FAILED: Final = 2

_CONNECT: Final = struct.Struct("<48siii20s264s32s28s256s4i")
_HEADER: Final = struct.Struct("<ii")
_ANSWER: Final = struct.Struct("<iii")


class Verb(IntEnum):
    """Requests. The names are the calls', as faults and the trace name them."""

    MQCONNX = 1
    MQDISC = 2
    MQOPEN = 3
    MQCLOSE = 4
    MQPUT = 5
    MQPUT1 = 6
    MQGET = 7
    MQBEGIN = 8
    MQCMIT = 9
    MQBACK = 10
    MQINQ = 11
    MQSET = 12


class MalformedRequest(Exception):
    """What came is no request of the stand-in library: the connection is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call ends with. `fields` are for completion codes other than MQCC_FAILED."""

    fields: bytes = b""
    comp_code: int = MQCC_OK
    reason: int = 0

    def frame(self) -> bytes:
        return _ANSWER.pack(len(self.fields) + 8, self.comp_code, self.reason) + self.fields


def next_frame(buffer: bytearray) -> tuple[Verb, bytes] | None:
    """Takes the first request off what has come, when it is whole."""
    if len(buffer) < _HEADER.size:
        return None
    length, verb = _HEADER.unpack_from(buffer)
    if not 4 <= length <= LONGEST_FRAME_BYTES:
        raise MalformedRequest(f"a frame of {length} bytes")
    if len(buffer) < length + 4:
        return None
    fields = bytes(memoryview(buffer)[_HEADER.size : length + 4])
    del buffer[: length + 4]
    try:
        return Verb(verb), fields
    except ValueError as error:
        raise MalformedRequest(f"verb {verb}") from error


def text_of(value: bytes | bytearray) -> str:
    """A name or other text that blanks or a NUL end."""
    return value.partition(b"\0")[0].decode("utf-8", "replace").rstrip(" ")


def name_field(name: str) -> bytes:
    return name.encode().ljust(48)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest:
    """What a program connects with; the password is for comparing alone."""

    queue_manager_name: str
    options: int
    max_msg_length: int
    process: int
    channel: str
    connection_name: str
    cipher_spec: str
    application: str
    key_repository: str
    user: str
    password: str = field(repr=False)
    peer_name: str
    ccdt_url: str


def read_connect(fields: bytes) -> ConnectRequest:
    """The request of MQCONN and MQCONNX."""
    if len(fields) < _CONNECT.size:
        raise MalformedRequest("a connect request that is too short")
    name, options, max_msg_length, process, channel, connection_name, cipher, application, repository, *lengths = (
        _CONNECT.unpack_from(fields)
    )
    texts, at = [], _CONNECT.size
    for length in lengths:
        if length < 0 or at + length > len(fields):
            raise MalformedRequest("a connect request with a text of a wrong length")
        texts.append(text_of(fields[at : at + length]))
        at += length
    user, password, peer_name, ccdt_url = texts
    return ConnectRequest(
        queue_manager_name=text_of(name),
        options=options,
        max_msg_length=max_msg_length,
        process=process,
        channel=text_of(channel),
        connection_name=text_of(connection_name),
        cipher_spec=text_of(cipher),
        application=text_of(application),
        key_repository=text_of(repository),
        user=user,
        password=password,
        peer_name=peer_name,
        ccdt_url=ccdt_url,
    )


class Reader:
    """Takes the fields of a request one after another."""

    def __init__(self, fields: bytes) -> None:
        self._fields = fields
        self._at = 0

    def take(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._fields):
            raise MalformedRequest(f"a request that ends before its {length} bytes at {self._at}")
        taken = self._fields[self._at : self._at + length]
        self._at += length
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)

    def numbers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}i", self.take(4 * count)) if count >= 0 else ()

    def rest(self) -> bytes:
        return self.take(len(self._fields) - self._at)


def number_field(value: int) -> bytes:
    return value.to_bytes(4, "little", signed=True)


class _Structure:
    """A structure as it came, with some fields read and changed in place."""

    _LENGTH: int

    def __init__(self, given: bytes) -> None:
        self.bytes = bytearray(given)

    @classmethod
    def read(cls, reader: Reader) -> "_Structure":
        return cls(reader.take(cls._LENGTH))

    def _number(self, offset: int) -> int:
        return int.from_bytes(self.bytes[offset : offset + 4], "little", signed=True)

    def _set(self, offset: int, value: bytes) -> None:
        self.bytes[offset : offset + len(value)] = value


class ObjectDescriptor(_Structure):
    """MQOD (IBM MQ, "MQOD - Object descriptor")."""

    _LENGTH = MQOD_BYTES

    @property
    def version(self) -> int:
        return self._number(4)

    @property
    def object_type(self) -> int:
        return self._number(8)

    @property
    def object_name(self) -> str:
        return text_of(self.bytes[12:60])

    @property
    def object_q_mgr_name(self) -> str:
        return text_of(self.bytes[60:108])

    @property
    def dynamic_q_name(self) -> str:
        return text_of(self.bytes[108:156])

    def resolve(self, object_name: str, queue_name: str, queue_manager_name: str) -> None:
        """What MQOPEN gives back: the object's name (that of a dynamic queue is new), and what it led to."""
        self._set(12, name_field(object_name))
        self._set(248, name_field(queue_name))
        self._set(296, name_field(queue_manager_name))


class PutOptions(_Structure):
    """MQPMO (IBM MQ, "MQPMO - Put-message options")."""

    _LENGTH = MQPMO_BYTES

    @property
    def options(self) -> int:
        return self._number(8)

    @property
    def context(self) -> int:
        return self._number(16)

    def resolve(self, queue_name: str, queue_manager_name: str) -> None:
        self._set(32, name_field(queue_name))
        self._set(80, name_field(queue_manager_name))


class GetOptions(_Structure):
    """MQGMO (IBM MQ, "MQGMO - Get-message options")."""

    _LENGTH = MQGMO_BYTES

    @property
    def options(self) -> int:
        return self._number(8)

    @property
    def wait_interval_ms(self) -> int:
        return self._number(12)

    @property
    def match_options(self) -> int:
        return self._number(72)

    def resolve(self, queue_name: str, returned_length: int) -> None:
        self._set(24, name_field(queue_name))
        self._set(76, b"   ")  # GroupStatus, SegmentStatus, Segmentation: neither group nor segment
        self._set(96, number_field(returned_length))
