"""What is wrong with certificates and keys, in sentences."""

import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from gateway.config import ConfigurationError
from gateway.listener.certificate_files import read_certificates, read_pair, today, validity_problem
from tests.certificate_authority import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_pair_says_for_whom_and_until_when_it_is(authority: Authority) -> None:
    certificate, key = authority.issue("gateway", hosts=("mqtt.example.com", "*.example.org"))
    pair = read_pair(certificate, key)
    assert pair.names == ("mqtt.example.com", "*.example.org", "127.0.0.1", "::1")
    assert timedelta(days=29) < pair.expires - today() < timedelta(days=31)
    pair.check_time(today())


def test_the_certificates_of_those_who_signed_may_follow_in_the_file(authority: Authority) -> None:
    certificate, key = authority.issue("gateway")
    with certificate.open("ab") as file:
        file.write(authority.certificate.read_bytes())
    assert len(read_pair(certificate, key).chain) == 2


@pytest.mark.parametrize(("days", "problem"), [(-1, "expired on 20"), (30, "is not valid before 20")])
def test_a_certificate_outside_its_time_is_refused(authority: Authority, days: int, problem: str) -> None:
    pair = read_pair(*authority.issue("gateway", days=days))
    moment = today() if days < 0 else today() - timedelta(days=60)
    with pytest.raises(ConfigurationError, match=problem):
        pair.check_time(moment)


def test_a_key_of_another_certificate_is_named_with_both_files(authority: Authority) -> None:
    certificate, _ = authority.issue("gateway")
    _, other = authority.issue("other")
    with pytest.raises(ConfigurationError, match=r"other\.key: is not the key of .*gateway\.pem \(.*own comes first\)"):
        read_pair(certificate, other)


def test_a_certificate_for_a_key_of_an_unknown_curve_is_refused(authority: Authority) -> None:
    """The curve sm2 of GB/T 32918.5 (1.2.156.10197.1.301) instead of P-256 (1.2.840.10045.3.1.7)."""
    certificate, key = authority.issue("gateway")
    data = read_certificates(certificate)[0].public_bytes(Encoding.DER)
    other = data.replace(bytes.fromhex("06082A8648CE3D030107"), bytes.fromhex("06082A811CCF5501822D"))
    assert other != data
    certificate.write_text(ssl.DER_cert_to_PEM_cert(other))
    with pytest.raises(ConfigurationError, match=r"gateway\.pem: is for a key of a kind that is not known"):
        read_pair(certificate, key)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(authority: Authority) -> None:
    with pytest.raises(ConfigurationError, match=r"locked\.key: is encrypted"):
        read_pair(*authority.issue("locked", password=b"secret"))


def test_files_that_are_swapped_are_each_said_to_be_no_such_thing(authority: Authority) -> None:
    certificate, key = authority.issue("gateway")
    with pytest.raises(ConfigurationError, match=r"gateway\.key: holds no certificate in PEM"):
        read_pair(key, certificate)
    with pytest.raises(ConfigurationError, match=r"gateway\.pem: holds no private key in PEM"):
        read_pair(certificate, certificate)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "holds no certificate in PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate in PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n", "holds no certificate in PEM"),
        (b"\x30\x82\x01\xff", "is not UTF-8"),
    ],
    ids=["empty", "garbage", "cut off", "DER"],
)
def test_what_is_no_pem_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "some.pem"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_certificates(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.pem: cannot be read: No such file or directory"):
        read_certificates(tmp_path / "none.pem")


def test_the_time_of_a_certificate_is_judged_to_the_second(authority: Authority) -> None:
    (certificate,) = read_certificates(authority.issue("gateway")[0])
    ends = certificate.not_valid_after_utc
    assert validity_problem(certificate, ends) == ""
    assert validity_problem(certificate, ends + timedelta(seconds=1)) == f"expired on {ends:%Y-%m-%d}"
