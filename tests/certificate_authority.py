"""Certificates for tests, made with cryptography and signed by an authority of their own."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

ADDRESSES = ("127.0.0.1", "::1")


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Plant"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


class Authority:
    """A certification authority whose files stand in a folder."""

    def __init__(self, folder: Path, name: str = "authority", *, signed_by: "Authority | None" = None) -> None:
        """`signed_by` None: it signs itself. Its file is `name`.pem."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        self.certificate = folder / f"{name}.pem"
        (signed_by or self).certify(self)

    def certify(self, other: "Authority", *, days: int = 30) -> None:
        """Signs another authority, or itself anew."""
        certificate = (
            self._builder(other._subject, other._key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, SHA256())
        )
        other.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        """Valid from 40 days ago; negative `days`: until so many days ago."""
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=40))
            .not_valid_after(now + timedelta(days=days))
        )

    def issue(
        self, name: str, *, hosts: tuple[str, ...] = ("localhost",), days: int = 30, password: bytes | None = None
    ) -> tuple[Path, Path]:
        """A certificate with the common name, for these hosts and the loopback; the files of it and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(host) for host in hosts]
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES]
        certificate = (
            self._builder(_name(name), key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
            .sign(self._key, SHA256())
        )
        encryption = BestAvailableEncryption(password) if password else NoEncryption()
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return files
