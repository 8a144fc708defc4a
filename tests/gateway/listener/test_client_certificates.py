"""Certificates after the handshake: their end, their user, and who still trusts them."""

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gateway.listener.certificate_files import read_certificates, today
from gateway.listener.client_certificates import Authorities, close_untrusted, read_shown
from gateway.mqtt.reason_codes import ReasonCode
from tests.certificate_authority import Authority


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "root")


def _der(pair: tuple[Path, Path]) -> bytes:
    (certificate,) = read_certificates(pair[0])
    return certificate.public_bytes(Encoding.DER)


def _of(*authorities: Authority) -> tuple[x509.Certificate, ...]:
    return tuple(certificate for each in authorities for certificate in read_certificates(each.certificate))


def _is_trusted(certificate: bytes, *authorities: Authority) -> bool:
    return Authorities(_of(*authorities)).trust(certificate, today())


@pytest.mark.parametrize(("kind", "user"), [("common_name", "pump"), ("subject", "CN=pump,O=Plant"), ("", "")])
def test_a_certificate_has_an_end_and_a_user(root: Authority, kind: str, user: str) -> None:
    pair = root.issue("pump")
    (certificate,) = read_certificates(pair[0])
    shown = read_shown(_der(pair), kind)
    assert datetime.fromtimestamp(shown.ends_s, UTC) == certificate.not_valid_after_utc
    assert shown.user == user


@pytest.mark.parametrize("certificate", [b"", b"\x30\x03\x02\x01\x00"], ids=["empty", "garbage"])
def test_what_is_no_certificate_names_no_user_and_is_not_trusted(root: Authority, certificate: bytes) -> None:
    shown = read_shown(certificate, "common_name")
    assert (shown.user, shown.ends_s) == ("", math.inf)
    assert not _is_trusted(certificate, root)


def test_an_authority_vouches_for_what_it_has_signed_and_no_other(root: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    pump = _der(root.issue("pump"))
    assert _is_trusted(pump, root)
    assert _is_trusted(pump, other, root)
    assert not _is_trusted(pump, other)
    assert not _is_trusted(pump)


def test_a_name_alone_vouches_for_nothing(root: Authority, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    assert not _is_trusted(_der(root.issue("pump")), Authority(tmp_path / "elsewhere", "root"))


def test_the_way_leads_over_others_of_the_file_to_one_that_signed_itself(root: Authority, tmp_path: Path) -> None:
    """As OpenSSL has it: one in between that stands alone is not trusted."""
    between = Authority(tmp_path, "between", signed_by=root)
    pump = _der(between.issue("pump"))
    assert _is_trusted(pump, root, between)
    assert _is_trusted(pump, between, root)
    assert not _is_trusted(pump, between)
    assert not _is_trusted(pump, root), "what the client had sent to bridge the gap is not known any more"


def test_authorities_that_sign_each_other_lead_nowhere(tmp_path: Path, root: Authority) -> None:
    first = Authority(tmp_path, "first", signed_by=root)
    second = Authority(tmp_path, "second", signed_by=first)
    second.certify(first)
    assert not _is_trusted(_der(first.issue("pump")), first, second)


def test_an_authority_that_has_expired_vouches_for_nothing(root: Authority) -> None:
    pump = _der(root.issue("pump"))
    root.certify(root, days=-1)
    assert not _is_trusted(pump, root)


def _nothing(_root: Authority) -> None:
    """Another is added, that is all."""


def _renew(root: Authority) -> None:
    root.certify(root, days=300)


@pytest.mark.parametrize(("change", "lacks"), [(_nothing, False), (_renew, True)], ids=["added", "renewed"])
def test_an_authority_that_is_renewed_vouches_as_before(
    root: Authority, tmp_path: Path, change: Callable[[Authority], None], lacks: bool
) -> None:
    pump = _der(root.issue("pump"))
    before = Authorities(_of(root))
    change(root)
    now = Authorities(_of(Authority(tmp_path, "another"), root))
    assert now.lacks_one_of(before) is lacks
    assert now.trust(pump, today())
    assert before.lacks_one_of(now)


class Link:
    """A connection whose client has shown a certificate, or none."""

    def __init__(self, shown: bytes | None) -> None:
        self.is_open = True
        self.shown_certificate = shown
        self.told: list[ReasonCode] = []

    def close(self, reason: str, reason_code: ReasonCode = ReasonCode.UNSPECIFIED_ERROR) -> None:
        assert "authority" in reason
        self.is_open = False
        self.told.append(reason_code)


def test_links_are_closed_for_whom_nobody_vouches_and_those_that_come_late_too(root: Authority, tmp_path: Path) -> None:
    """A handshake that began before goes on with what was trusted then."""
    other = Authority(tmp_path, "other")
    trusted, anonymous = Link(_der(root.issue("pump-1"))), Link(None)
    lost, late = Link(_der(other.issue("pump-2"))), Link(_der(other.issue("pump-3")))
    looks = [(trusted, anonymous, lost), (trusted, anonymous, lost, late)]
    asyncio.run(close_untrusted(lambda: looks.pop(0), Authorities(_of(root)), 0.0))
    assert looks == []
    assert trusted.is_open
    assert anonymous.is_open
    assert lost.told == late.told == [ReasonCode.NOT_AUTHORIZED]
