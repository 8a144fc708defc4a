"""TLS to a queue manager: CipherSpecs by IBM's names, certificates in PEM files.

The key repository NAME is two files. NAME.pem has the certificates that are trusted; without a name these are the
system's. NAME.own.pem has the client's own certificate with its key, if the queue manager asks for one.
Source: IBM MQ, "Enabling CipherSpecs".
"""

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from mq_adapters.native.refusal import Refusal
from mq_adapters.peer_name import PeerName, Subject
from mq_adapters.reasons import ReasonCode

_12, _13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class _CipherSpec(NamedTuple):
    lowest: ssl.TLSVersion
    highest: ssl.TLSVersion
    #: The cipher suite by OpenSSL's name; "" for any.
    suite: str = ""


_CIPHER_SPECS: Final[Mapping[str, _CipherSpec]] = {
    "ANY_TLS12": _CipherSpec(_12, _12),
    "ANY_TLS12_OR_HIGHER": _CipherSpec(_12, _13),
    "ANY_TLS13": _CipherSpec(_13, _13),
    "ANY_TLS13_OR_HIGHER": _CipherSpec(_13, _13),
    "ECDHE_ECDSA_AES_128_GCM_SHA256": _CipherSpec(_12, _12, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "ECDHE_ECDSA_AES_256_GCM_SHA384": _CipherSpec(_12, _12, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    "ECDHE_RSA_AES_128_GCM_SHA256": _CipherSpec(_12, _12, "ECDHE-RSA-AES128-GCM-SHA256"),
    "ECDHE_RSA_AES_256_GCM_SHA384": _CipherSpec(_12, _12, "ECDHE-RSA-AES256-GCM-SHA384"),
    # The ssl of Python cannot ask for another suite of TLS 1.3: both sides agree on OpenSSL's first one.
    "TLS_AES_256_GCM_SHA384": _CipherSpec(_13, _13, "TLS_AES_256_GCM_SHA384"),
}
#: OpenSSL's names of attributes, as SSLPEER has them.
_ATTRIBUTES: Final[Mapping[str, str]] = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}


class Tls:
    """What a connection must have of TLS."""

    def __init__(self, cipher: str, key_repository: str, peer_name: str) -> None:
        """Raises Refusal: 2400 for a CipherSpec that is not known, 2381 for files that cannot be used."""
        spec = _CIPHER_SPECS.get(cipher)
        if spec is None:
            raise Refusal(ReasonCode.MQRC_UNSUPPORTED_CIPHER_SUITE, f"{cipher!r}: one of {', '.join(_CIPHER_SPECS)}")
        self._suite = spec.suite
        try:
            self._peer_name = PeerName.parse(peer_name)
            self._context = _context(spec, key_repository)
        except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
            raise Refusal(ReasonCode.MQRC_KEY_REPOSITORY_ERROR, f"{key_repository}.pem: {error}") from error
        self._context.check_hostname = not peer_name

    def wrap(self, connected: socket.socket, host: str) -> ssl.SSLSocket:
        """Shakes hands. Raises Refusal 2393, or 2398 for a certificate with another name. OSError for the network."""
        try:
            wrapped = self._context.wrap_socket(connected, server_hostname=host)
        except (ssl.SSLError, ValueError) as error:
            raise Refusal(ReasonCode.MQRC_SSL_INITIALIZATION_ERROR, str(error)) from error
        try:
            self._check(wrapped)
        except BaseException:
            wrapped.close()
            raise
        return wrapped

    def _check(self, wrapped: ssl.SSLSocket) -> None:
        found = wrapped.cipher()
        if self._suite and (found is None or found[0] != self._suite):
            raise Refusal(ReasonCode.MQRC_SSL_INITIALIZATION_ERROR, f"the cipher suite is {found}, not {self._suite}")
        subject = _subject(wrapped)
        if not self._peer_name.matches(subject):
            raise Refusal(ReasonCode.MQRC_SSL_PEER_NAME_MISMATCH, f"the certificate is that of {subject}")


def _context(spec: _CipherSpec, key_repository: str) -> ssl.SSLContext:
    trusted = f"{key_repository}.pem" if key_repository else None
    context = ssl.create_default_context(cafile=trusted)
    context.minimum_version, context.maximum_version = spec.lowest, spec.highest
    if spec.suite and spec.highest is _12:
        context.set_ciphers(spec.suite)
    own = Path(f"{key_repository}.own.pem")
    if key_repository and own.exists():
        context.load_cert_chain(own, password=_no_password)
    return context


def _no_password() -> str:
    raise ValueError("the private key must have no password")


def _subject(wrapped: ssl.SSLSocket) -> Subject:
    certificate: dict[str, Any] = wrapped.getpeercert() or {}
    pairs = [pair for part in certificate.get("subject", ()) for pair in part]
    return tuple((_ATTRIBUTES.get(name, name), value) for name, value in pairs)
