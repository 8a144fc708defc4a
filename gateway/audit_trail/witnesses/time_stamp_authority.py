"""A witness that is a time-stamping authority (RFC 3161) over HTTP: it says that a digest existed, and when.

The authority keeps nothing. Its replies lie in the trail, where the second place copies them (spark_audit/verify/
time_stamp.py). Of digests that were submitted together only the last gets a time-stamp, which speaks for those before.
"""

import http.client
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography.x509 import Certificate
from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

from gateway.audit_trail.digests import read_digest
from gateway.audit_trail.durable_file import put_in_place
from gateway.audit_trail.witnesses.witness import Witnessed, WitnessError, operation_of
from mq_adapters.embedded.store.files import make_folder
from spark_audit.trail.digest import DIGEST_FOLDER, STAMPS_FOLDER, digest_name, stamp_name, stamp_numbers
from spark_audit.verify.time_stamp import (
    LARGEST_STAMP_BYTES,
    UnusableAuthority,
    WrongTimeStamp,
    check_stamp,
    read_authority,
    read_stamp,
)

_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"
_AWAY_HINT: Final = "the next attempt comes by itself"
_WRONG_HINT: Final = "compare url, authority_file and policy with what the authority publishes"


class TimeStampAuthority:
    """The authority at an address. Raises WitnessError."""

    kind: Final = "rfc3161"

    def __init__(
        self, name: str, trail: Path, *, url: str, authority_file: str, policy: str = "", timeout_s: float = 60.0
    ) -> None:
        self.name = name
        self._digests = trail / DIGEST_FOLDER
        self._folder = trail / STAMPS_FOLDER / name
        self._url = url
        self._authority_file = Path(authority_file)
        self._policy = policy
        self._timeout_s = timeout_s

    def check(self) -> None:
        """Its certificates must be there. Each time-stamp shows whether they are the right ones."""
        self._authority()

    def last(self) -> Witnessed:
        """The last digest that has a time-stamp, which is checked again."""
        number = max(stamp_numbers(self._folder), default=0)
        if not number or not (self._digests / digest_name(number)).is_file():
            return Witnessed(number=number)
        _, data = read_digest(self._digests, number)
        self._check(read_stamp(self._folder / stamp_name(number)), data, None)
        return Witnessed(number=number, data=data)

    def submit(self, digests: Mapping[int, bytes]) -> None:
        """One time-stamp, of the last digest."""
        number = max(digests)
        request = TimestampRequestBuilder().data(digests[number]).hash_algorithm(HashAlgorithm.SHA256).build()
        reply = self._ask(request.as_bytes())
        self._check(reply, digests[number], request.nonce)
        make_folder(self._folder.parent)
        make_folder(self._folder)
        put_in_place(self._folder / stamp_name(number), (reply,))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _check(self, reply: bytes, data: bytes, nonce: int | None) -> None:
        try:
            check_stamp(reply, data, self._authority(), policy=self._policy, nonce=nonce)
        except WrongTimeStamp as error:
            raise WitnessError(operation_of(self.name), f"its time-stamp does not hold: {error}", _WRONG_HINT) from None

    def _authority(self) -> tuple[Certificate, ...]:
        try:
            return read_authority(self._authority_file)
        except (UnusableAuthority, OSError) as error:
            raise WitnessError(operation_of(self.name), str(error), "name the PEM file with authority_file") from None

    def _ask(self, query: bytes) -> bytes:
        """What the authority answers. A watch breaks the connection off in time, however slowly the bytes come."""
        address = urlsplit(self._url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        connection = kinds[address.scheme](address.hostname or "", address.port, timeout=self._timeout_s)
        watch = threading.Timer(self._timeout_s, _break_off, (connection,))
        watch.daemon = True
        watch.start()
        try:
            path = (address.path or "/") + (f"?{address.query}" if address.query else "")
            connection.request("POST", path, query, {"Content-Type": _QUERY, "Accept": _REPLY})
            return self._read(connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError) as error:
            late = f", or it took more than {self._timeout_s:g} s" if not watch.is_alive() else ""
            cause = f"it does not answer: {str(error)[:300] or type(error).__name__}{late}"
            raise WitnessError(operation_of(self.name), cause, _AWAY_HINT) from None
        finally:
            watch.cancel()
            connection.close()

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        kind = response.headers.get_content_type()
        if response.status != http.client.OK or kind != _REPLY:
            cause = f"its answer is no time-stamp: status {response.status}, type {kind[:100]!r}"
            raise WitnessError(operation_of(self.name), cause, _WRONG_HINT)
        reply = response.read(LARGEST_STAMP_BYTES + 1)
        if len(reply) > LARGEST_STAMP_BYTES:
            raise WitnessError(
                operation_of(self.name), f"its answer is longer than {LARGEST_STAMP_BYTES} bytes", _WRONG_HINT
            )
        return reply


def _break_off(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):  # it has no socket yet, or none any more
        connection.sock.shutdown(socket.SHUT_RDWR)
