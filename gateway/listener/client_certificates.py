"""Client certificates after the handshake: a connection ends when its certificate does, or when it loses its authority.

OpenSSL checks a certificate once, in the handshake, and connections of MQTT stay open for months. An operator may take
an authority out of `client_authority`. Then a connection ends, unless another authority there signed its certificate.
"""

import asyncio
import math
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from gateway.listener.certificate_files import today, validity_problem
from gateway.mqtt.reason_codes import ReasonCode

#: Of a longer subject the audit trail has the beginning.
_LONGEST_SUBJECT_CHARACTERS: Final = 1_000


def certificate_of(transport: asyncio.BaseTransport) -> bytes | None:
    """The client's certificate from its TLS handshake, in DER; None if the client has sent no certificate."""
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return tls.getpeercert(True) if tls is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCertificate:
    """A client's certificate, as a listener keeps it: its end (seconds since 1970), its subject, and its user.

    `attributes` are those of the subject, by their names in RFC 4514.
    """

    ends_s: float
    subject: str
    user: str
    attributes: tuple[tuple[str, str], ...] = ()


def read_shown(certificate: bytes, kind: str) -> ShownCertificate:
    """Reads a certificate (DER) that OpenSSL has accepted. `user_from_certificate` chooses the user; "": it names none.

    The subject is written as RFC 4514 says. A subject with several common names has no single user. OpenSSL accepts
    some certificates that cannot be read here. Such a certificate names nobody, and has no end.
    """
    try:
        read = x509.load_der_x509_certificate(certificate)
        return ShownCertificate(
            ends_s=read.not_valid_after_utc.timestamp(),
            subject=read.subject.rfc4514_string()[:_LONGEST_SUBJECT_CHARACTERS],
            user=_user(read.subject, kind),
            attributes=tuple((each.rfc4514_attribute_name, str(each.value)) for each in read.subject),
        )
    except ValueError:
        return ShownCertificate(ends_s=math.inf, subject="", user="")


def _user(subject: x509.Name, kind: str) -> str:
    if kind == "subject":
        return subject.rfc4514_string()
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return names[0] if kind == "common_name" and len(names) == 1 else ""


class Authorities:
    """The certificates of `client_authority`."""

    def __init__(self, certificates: tuple[x509.Certificate, ...]) -> None:
        self._certificates = certificates

    def lacks_one_of(self, before: "Authorities") -> bool:
        """Whether one of `before` was removed or renewed."""
        return not set(before._certificates) <= set(self._certificates)

    def trust(self, certificate: bytes, now: datetime) -> bool:
        """Whether signatures lead from a certificate (DER) to a self-signed one here, only through certificates here.

        The gateway no longer knows the certificates in between that the client sent in its handshake. A client that
        needs them is not trusted here. It sends them again when it comes back.
        """
        try:
            return self._lead_up_from(x509.load_der_x509_certificate(certificate), self._certificates, now)
        except ValueError:
            return False

    def _lead_up_from(self, signed: x509.Certificate, among: tuple[x509.Certificate, ...], now: datetime) -> bool:
        for authority in among:
            if validity_problem(authority, now) or not _has_signed(authority, signed):
                continue
            others = tuple(each for each in among if each is not authority)
            if authority.subject == authority.issuer or self._lead_up_from(authority, others, now):
                return True
        return False


def _has_signed(authority: x509.Certificate, signed: x509.Certificate) -> bool:
    try:
        signed.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


class CertifiedLink(Protocol):
    """A connection whose client may have shown a certificate."""

    @property
    def is_open(self) -> bool: ...

    @property
    def shown_certificate(self) -> bytes | None:
        """The client's certificate, in DER."""
        ...

    def close(self, reason: str, reason_code: ReasonCode, /) -> None: ...


async def close_untrusted(
    links: Callable[[], Iterable[CertifiedLink]], authorities: Authorities, wait_s: float
) -> None:
    """Closes connections whose certificates the authorities no longer sign.

    Checks again after `wait_s`, when connections that were being opened are complete. Signatures are checked in a
    thread.
    """
    for pause_s in (0.0, wait_s):
        await asyncio.sleep(pause_s)
        shown = {link: found for link in links() if (found := link.shown_certificate) is not None}
        untrusted = await asyncio.to_thread(_untrusted, set(shown.values()), authorities)
        for link, certificate in shown.items():
            if link.is_open and certificate in untrusted:
                link.close("the authority of its certificate is no longer trusted", ReasonCode.NOT_AUTHORIZED)


def _untrusted(certificates: set[bytes], authorities: Authorities) -> set[bytes]:
    now = today()
    return {each for each in certificates if not authorities.trust(each, now)}
