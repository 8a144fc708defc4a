"""Who logged in lately, and from which network: those are served first when the gateway starts again under siege.

The file `recent-logins` in the data folder holds hashes of user names and of networks, each with a day. Nothing in it
comes from a password, so it proves nobody's. A missing or damaged file means only that nobody is known. Layout of
version 1, numbers in big-endian order:

    offset  bytes  content
         0      4  `RFHL`
         4      1  version
         5     16  salt of the hashes
        21     16  BLAKE2b of all other bytes
        37         for each user, the one that was away for longest first:
                     8  hash of the user's name; its first bit: the name came from a token or a certificate
                     1  number of its networks, 1 to 16
                     8  for each network: 6 bytes of the hash of user and network, 2 of the day (since 1970)

To change it: raise the version, and keep the reader of version 1 with its test. A network is the /16 of an IPv4 address
and the /48 of an IPv6 one: devices get new addresses from their provider. Memory and file are bounded: users, and the
networks of each, so one user with many addresses makes nobody else forgotten.
"""

import asyncio
import hashlib
import logging
import os
import struct
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.audit_trail.durable_file import put_in_place
from gateway.config.limits import Limit
from gateway.limits.addresses import prefixes_of

_log = logging.getLogger(__name__)

FILE_NAME: Final = "recent-logins"
#: Days after which a login is no longer recent.
RECENT_DAYS: Final = 30
MAXIMUM_USERS: Final = int(Limit.RECENT_LOGINS.value.default)
MAXIMUM_NETWORKS: Final = 16
_WRITE_EVERY_S: Final = 60.0
_MAGIC: Final = b"RFHL"
_VERSION: Final = 1
_SALT_BYTES: Final = 16
_DIGEST_BYTES: Final = 16
_HEAD_BYTES: Final = len(_MAGIC) + 1 + _SALT_BYTES + _DIGEST_BYTES
_USER_BYTES: Final = 8
_PAIR_BYTES: Final = 6
_RECORD: Final = struct.Struct(f">{_PAIR_BYTES}sH")
_EXTERNAL: Final = 0x80
_MAXIMUM_BYTES: Final = _HEAD_BYTES + MAXIMUM_USERS * (_USER_BYTES + 1 + MAXIMUM_NETWORKS * _RECORD.size)


class DamagedLogins(Exception):
    """The file is not one that this program wrote, or a later program did; the text says which."""


class RecentLogins:
    """The users of the last 30 days. Days are numbers since 1970; whoever calls knows the day."""

    def __init__(self, salt: bytes | None = None) -> None:
        self._salt = salt or os.urandom(_SALT_BYTES)
        #: By the hash of the user, the records of its networks; the user that was away for longest stands first.
        self._users: OrderedDict[bytes, bytes] = OrderedDict()
        #: Whether it differs from what was written last.
        self.is_changed = False

    def __len__(self) -> int:
        return len(self._users)

    def add(self, user: str, network: bytes, day: int, *, is_external: bool = False) -> None:
        """A user has logged in. `is_external`: its name came from a token or a certificate."""
        key, pair = self._user_key(user, is_external), self._pair(user, network)
        found = self._users.get(key, b"")
        records = dict(_records(found))
        if records.get(pair) == day:
            return
        records.pop(pair, None)
        kept = [*records.items()][1 - MAXIMUM_NETWORKS :]
        self._users[key] = b"".join(_RECORD.pack(*each) for each in (*kept, (pair, day)))
        self._users.move_to_end(key)
        if len(self._users) > MAXIMUM_USERS:
            self._users.popitem(last=False)
        self.is_changed = True

    def knows(self, user: str, network: bytes, day: int) -> bool:
        """Whether a user of the password file logged in from a network lately."""
        found = self._users.get(self._user_key(user, is_external=False), b"")
        pair = self._pair(user, network)
        return any(known == pair and _is_recent(then, day) for known, then in _records(found))

    def knows_external(self, user: str, day: int) -> bool:
        """Whether a token or a certificate with this user was there lately."""
        found = self._users.get(self._user_key(user, is_external=True), b"")
        return any(_is_recent(then, day) for _, then in _records(found))

    def pack(self) -> bytes:
        """The file's bytes."""
        rows = (key + bytes((len(records) // _RECORD.size,)) + records for key, records in self._users.items())
        body = b"".join(rows)
        head = _MAGIC + bytes((_VERSION,)) + self._salt
        return head + _digest(head + body) + body

    @classmethod
    def unpack(cls, data: bytes) -> "RecentLogins":
        """Raises DamagedLogins."""
        digest_at = _HEAD_BYTES - _DIGEST_BYTES
        head, digest, body = data[:digest_at], data[digest_at:_HEAD_BYTES], data[_HEAD_BYTES:]
        if len(data) < _HEAD_BYTES or not head.startswith(_MAGIC):
            raise DamagedLogins("it is no file of recent logins")
        if head[len(_MAGIC)] != _VERSION:
            raise DamagedLogins(f"it has version {head[len(_MAGIC)]}, and this program reads version {_VERSION}")
        if _digest(head + body) != digest:
            raise DamagedLogins("its checksum is wrong")
        logins = cls(head[-_SALT_BYTES:])
        at = 0
        while at < len(body):
            records_at = at + _USER_BYTES + 1
            end = records_at + (body[records_at - 1] * _RECORD.size if records_at <= len(body) else 0)
            if end > len(body):
                raise DamagedLogins("it ends within a user")
            logins._users[body[at : at + _USER_BYTES]] = body[records_at:end]
            at = end
        return logins

    def _user_key(self, user: str, is_external: bool) -> bytes:
        key = self._hash(user.encode(errors="surrogatepass"), _USER_BYTES)
        return bytes((key[0] & ~_EXTERNAL & 0xFF | (_EXTERNAL if is_external else 0),)) + key[1:]

    def _pair(self, user: str, network: bytes) -> bytes:
        widest = prefixes_of(network)[0]
        return self._hash(widest + b"/" + user.encode(errors="surrogatepass"), _PAIR_BYTES)

    def _hash(self, data: bytes, size: int) -> bytes:
        return hashlib.blake2b(data, key=self._salt, digest_size=size).digest()


def read_logins(folder: Path) -> RecentLogins:
    """The logins of a data folder; none where there is no file. Raises DamagedLogins, or OSError."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            data = file.read(_MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        return RecentLogins()
    if len(data) > _MAXIMUM_BYTES:
        raise DamagedLogins("it is too long")
    return RecentLogins.unpack(data)


class LoginsFile:
    """The file of a data folder: read once, and written again each minute in which it changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._problem = ""
        try:
            self.logins = read_logins(folder)
        except (DamagedLogins, OSError) as error:
            _log.warning("recent logins forgotten file=%s reason=%s", str(self._path), str(error))
            self.logins = RecentLogins()

    async def keep(self) -> None:
        """Writes changes, until it is cancelled."""
        while True:
            await asyncio.sleep(_WRITE_EVERY_S)
            if self.logins.is_changed:
                self.logins.is_changed = False
                await asyncio.to_thread(self._write, self.logins.pack())

    def write(self) -> None:
        """Writes what has changed, before the gateway ends."""
        if self.logins.is_changed:
            self.logins.is_changed = False
            self._write(self.logins.pack())

    def _write(self, packed: bytes) -> None:
        """Whole or not at all. A login is worth no error: the log tells each new problem once."""
        try:
            put_in_place(self._path, (packed,))
            self._problem = ""
        except OSError as error:
            if str(error) != self._problem:
                _log.warning("recent logins not written file=%s reason=%s", str(self._path), str(error))
            self._problem = str(error)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _records(records: bytes) -> Iterator[tuple[bytes, int]]:
    return _RECORD.iter_unpack(records)


def _is_recent(then: int, day: int) -> bool:
    """Also where the clock was set back since."""
    return abs(day - then) <= RECENT_DAYS
