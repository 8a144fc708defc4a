"""IBM's client over TLS, with the stores of certificates that Java programs have."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from tests.end_to_end.mq_clients.house import House

Java = Callable[..., list[str]]
_PASSWORD: Final = "changeit"
WORKS: Final = [
    "transacted: after rollback true",
    "transacted: kept false true 2",
    "transacted: after commit true",
]


@pytest.fixture
def trusting(house: House, tmp_path: Path) -> list[str]:
    """The options of a program that trusts the tests' authority."""
    authority = load_pem_x509_certificate(house.certificates.authority.read_bytes())
    encryption = BestAvailableEncryption(_PASSWORD.encode())
    store = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(authority, b"authority")], encryption)
    return _options("trustStore", tmp_path / "trust.p12", store)


@pytest.fixture
def certified(house: House, tmp_path: Path) -> list[str]:
    """The options of a program that shows a certificate: the gateway's own, which the same authority signed."""
    key = load_pem_private_key(house.certificates.key.read_bytes(), password=None)
    certificate = load_pem_x509_certificate(house.certificates.certificate.read_bytes())
    encryption = BestAvailableEncryption(_PASSWORD.encode())
    assert isinstance(key, pkcs12.PKCS12PrivateKeyTypes)
    store = pkcs12.serialize_key_and_certificates(b"orders", key, certificate, None, encryption)
    return _options("keyStore", tmp_path / "key.p12", store)


def _options(kind: str, path: Path, store: bytes) -> list[str]:
    path.write_bytes(store)
    return [f"-Djavax.net.ssl.{kind}={path}", f"-Djavax.net.ssl.{kind}Password={_PASSWORD}"]


@pytest.mark.parametrize("suite", ["*TLS13ORHIGHER", "TLS_AES_256_GCM_SHA384"])
def test_a_password_is_read_over_tls(house: House, java: Java, trusting: list[str], suite: str) -> None:
    given = house.as_billing("transacted", channel="SECURE")
    assert java("Jms", house.secure_port, *given[1:], options=[*trusting, f"-Dsuite={suite}"]) == WORKS


def test_a_version_that_its_channel_does_not_want_is_refused(house: House, java: Java, trusting: list[str]) -> None:
    given = house.as_billing("transacted", channel="SECURE")
    options = [*trusting, "-Dsuite=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]
    (said,) = (line for line in java("Jms", house.secure_port, *given[1:], options=options) if "refused" in line)
    assert "2397" in said


def test_a_client_certificate_is_asked_for_where_its_channel_wants_one(
    house: House, java: Java, trusting: list[str], certified: list[str]
) -> None:
    given = (house.secure_port, "MUTUAL", "-", "-", "transacted")
    options = [*trusting, "-Dsuite=*TLS12ORHIGHER"]
    assert java("Jms", *given, options=[*options, *certified]) == WORKS
    (said,) = (line for line in java("Jms", *given, options=options) if "refused" in line)
    assert "2059" in said
