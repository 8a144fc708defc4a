"""Reads and checks certificates and keys in PEM files. Each error is a sentence for the operator."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from gateway.access.text_file import read_text_file
from gateway.config.error import ConfigurationError

_DAY: Final = "%Y-%m-%d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate with the certificates that signed it, and its key: two files that fit each other."""

    certificate: Path
    key: Path
    chain: tuple[x509.Certificate, ...]

    @property
    def expires(self) -> datetime:
        """The end of its validity."""
        return self.chain[0].not_valid_after_utc

    @property
    def names(self) -> tuple[str, ...]:
        """Its hosts and addresses; its subject if it names neither."""
        try:
            found = self.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (x509.ExtensionNotFound, ValueError):
            return (self.chain[0].subject.rfc4514_string(),)
        hosts = found.get_values_for_type(x509.DNSName)
        return (*hosts, *(str(address) for address in found.get_values_for_type(x509.IPAddress)))

    def check_time(self, now: datetime) -> None:
        """Raises ConfigurationError if it is not valid yet, or has expired."""
        problem = validity_problem(self.chain[0], now)
        if problem:
            raise ConfigurationError(str(self.certificate), (problem,), "put a certificate that is valid in its place")


def read_pair(certificate: Path, key: Path) -> Pair:
    """Reads both files. ConfigurationError if one cannot be read, is not PEM, or does not fit the other."""
    chain = read_certificates(certificate)
    try:
        certified = _public_bytes(chain[0].public_key())
    except (ValueError, UnsupportedAlgorithm):
        problem = "is for a key of a kind that is not known"
        raise ConfigurationError(str(certificate), (problem,), "use one for a key of RSA, P-256 or Ed25519") from None
    if _public_key(key) != certified:
        hint = "name the key that it was made for; of several certificates the gateway's own comes first"
        raise ConfigurationError(str(key), (f"is not the key of the certificate in {certificate}",), hint)
    return Pair(certificate=certificate, key=key, chain=chain)


def read_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM file, at least one."""
    text = read_text_file(path)
    try:
        return tuple(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        raise ConfigurationError(
            str(path),
            ("holds no certificate in PEM",),
            "it has lines from '-----BEGIN CERTIFICATE-----' to '-----END CERTIFICATE-----'",
        ) from None


def validity_problem(certificate: x509.Certificate, now: datetime) -> str:
    """Why a certificate is not valid at a time; "": it is valid."""
    if now > certificate.not_valid_after_utc:
        return f"expired on {certificate.not_valid_after_utc:{_DAY}}"
    if now < certificate.not_valid_before_utc:
        return f"is not valid before {certificate.not_valid_before_utc:{_DAY}}"
    return ""


def today() -> datetime:
    """Now, as certificates write it."""
    return datetime.now(UTC)


def _public_key(path: Path) -> bytes:
    text = read_text_file(path)
    try:
        return _public_bytes(load_pem_private_key(text.encode(), None).public_key())
    except TypeError:
        problem, hint = "is encrypted", "the gateway starts without anybody to ask: decrypt it, and protect the file"
    except (ValueError, UnsupportedAlgorithm):
        problem, hint = "holds no private key in PEM", "it has a line '-----BEGIN PRIVATE KEY-----' or one like it"
    raise ConfigurationError(str(path), (problem,), hint)


def _public_bytes(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
