"""Digests: their bytes typed from the definition, signatures of RFC 8032's key, and whatever else a file may hold."""

import hashlib
import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from spark_audit.trail.digest import (
    Digest,
    MalformedDigest,
    SegmentMeasure,
    UnknownDigestVersion,
    digest_hash,
    digest_name,
    digest_number,
    digest_numbers,
    is_countersignature_due,
    parse_digest,
)
from spark_audit.trail.signature import KeySigner
from tests.every_case import for_every

#: RFC 8032, section 7.1, TEST 1 and TEST 2.
KEY = Ed25519PrivateKey.from_private_bytes(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
)
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
NEW_PUBLIC_KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"

DIGEST = Digest(
    version=1,
    number=2,
    kind="segment",
    gateway="0102030405060708090a0b0c",
    segment="000000000002-20261120T08",
    first_sequence=5,
    last_sequence=6,
    records=2,
    size_bytes=734,
    sha256="1" * 64,
    merkle_root="2" * 64,
    head="3" * 64,
    previous="4" * 64,
    from_us=1_795_161_600_000_000,
    until_us=1_795_161_601_000_000,
    code_version="0.1.0",
    table_version="1",
    configuration_sha256="5" * 64,
    public_key=PUBLIC_KEY,
    signature="6" * 128,
)
#: The same, typed.
TEXT = (
    '{"code_version":"0.1.0","configuration_sha256":"' + "5" * 64 + '","first_sequence":5,'
    '"from_us":1795161600000000,"gateway":"0102030405060708090a0b0c","head":"' + "3" * 64 + '","kind":"segment",'
    '"last_sequence":6,"merkle_root":"' + "2" * 64 + '","new_public_key":"","number":2,"previous":"' + "4" * 64 + '",'
    '"public_key":"' + PUBLIC_KEY + '","records":2,"segment":"000000000002-20261120T08","sha256":"' + "1" * 64 + '",'
    '"signature":"' + "6" * 128 + '","size_bytes":734,"table_version":"1","until_us":1795161601000000,"version":1}\n'
)


def _with(**values: object) -> bytes:
    """The bytes of DIGEST with other values, in canonical form."""
    merged = {**json.loads(TEXT), **values}
    return json.dumps(dict(sorted(merged.items())), separators=(",", ":")).encode() + b"\n"


def test_a_digest_has_the_bytes_of_the_definition() -> None:
    assert DIGEST.to_bytes() == TEXT.encode()
    assert parse_digest(TEXT.encode()) == DIGEST


def test_the_signature_is_over_everything_but_itself() -> None:
    assert DIGEST.signing_input() == TEXT.replace('"signature":"' + "6" * 128 + '",', "").rstrip("\n").encode()


def test_a_digest_is_signed_by_its_key_alone() -> None:
    signed = replace(DIGEST, public_key="").signed(KEY)
    assert signed.public_key == PUBLIC_KEY
    assert signed.signature == KEY.sign(signed.signing_input()).hex()
    assert signed.is_signed_by(PUBLIC_KEY)
    assert not signed.is_signed_by(NEW_PUBLIC_KEY)
    assert not replace(signed, records=3).is_signed_by(PUBLIC_KEY)
    assert not replace(signed, signature="0" * 128).is_signed_by(PUBLIC_KEY)
    assert not signed.is_signed_by("no key")


def test_the_next_digest_names_the_hash_of_the_bytes_of_the_file() -> None:
    assert digest_hash(TEXT.encode()) == hashlib.sha256(TEXT.encode()).hexdigest()


BROKEN = {
    "empty": (b"", "not JSON"),
    "cut": (TEXT.encode()[:300], "not JSON"),
    "not UTF-8": (b'{"version":1,"kind":"\xff"}', "not JSON"),
    "a list": (b"[]", "not a JSON object"),
    "without the line feed": (TEXT.encode()[:-1], "one form"),
    "with blanks": (json.dumps(json.loads(TEXT)).encode() + b"\n", "one form"),
    "two lines": (TEXT.encode() * 2, "not JSON"),
    "a double key": (TEXT.replace('"number":2,', '"number":1,"number":2,').encode(), "one form"),
    "a field too many": (_with(colour="red"), "not those of version 1: colour"),
    "a field too few": (TEXT.replace('"records":2,', "").encode(), "not those of version 1: records"),
    "a text for a number": (_with(records="2"), "records is not what it should be"),
    "a truth for a number": (_with(records=True), "records is not what it should be"),
    "a fraction": (_with(records=2.0), "records is not what it should be"),
    "a negative number": (_with(size_bytes=-1), "size_bytes is not what it should be"),
    "a hash in capitals": (_with(head="A" * 64), "head is not what it should be"),
    "a path for a segment": (_with(segment="../../etc/passwd"), "segment is not what it should be"),
    "no head": (_with(head=""), "head is not what it should be"),
    "an unknown kind": (_with(kind="promise"), "kind 'promise' is not known"),
    "a segment without a root": (_with(merkle_root=""), "merkle_root does not go with kind segment"),
    "an interval with a segment": (_with(kind="interval"), "segment does not go with kind interval"),
    "a new key in a segment's": (_with(new_public_key=PUBLIC_KEY), "new_public_key does not go with kind segment"),
    "a long text": (_with(code_version="9" * 129), "code_version is not what it should be"),
    "a book": (b" " * 5000, "too many for a digest"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_digest_is_refused_and_says_why(case: str) -> None:
    data, words = BROKEN[case]
    with pytest.raises(MalformedDigest, match=words):
        parse_digest(data)


def test_a_digest_cut_anywhere_is_refused() -> None:
    data = TEXT.encode()
    for length in range(len(data)):
        with pytest.raises(MalformedDigest):
            parse_digest(data[:length])


def test_a_later_version_says_so() -> None:
    with pytest.raises(UnknownDigestVersion, match="has version 4"):
        parse_digest(_with(version=4))
    with pytest.raises(UnknownDigestVersion, match="has version"):
        parse_digest(_with(version=[3]))


# -- version 2 ---------------------------------------------------------------------------------------------------------

SECOND = replace(
    DIGEST,
    version=2,
    clock_state="ok",
    clock_maximum_error_us=21_000,
    clock_estimated_error_us=340,
    next_public_key=NEW_PUBLIC_KEY,
    countersigner=PUBLIC_KEY,
    countersignature="7" * 128,
)
#: The same, typed.
SECOND_TEXT = (
    '{"allowed_by":"","clock_estimated_error_us":340,"clock_maximum_error_us":21000,"clock_state":"ok",'
    '"code_version":"0.1.0","configuration_sha256":"' + "5" * 64 + '","countersignature":"'
    + "7" * 128 + '","countersigner":"' + PUBLIC_KEY + '","first_sequence":5,'
    '"from_us":1795161600000000,"gateway":"0102030405060708090a0b0c","head":"' + "3" * 64 + '","keep_us":0,'
    '"kind":"segment","last_sequence":6,"merkle_root":"' + "2" * 64 + '","new_public_key":"","next_public_key":"'
    + NEW_PUBLIC_KEY + '","number":2,"previous":"' + "4" * 64 + '",'
    '"public_key":"' + PUBLIC_KEY + '","records":2,"segment":"000000000002-20261120T08","sha256":"' + "1" * 64 + '",'
    '"signature":"' + "6" * 128 + '","size_bytes":734,"table_version":"1","until_us":1795161601000000,"version":2}\n'
)  # fmt: skip


def test_a_digest_of_version_2_has_the_bytes_of_the_definition() -> None:
    assert SECOND.to_bytes() == SECOND_TEXT.encode()
    assert parse_digest(SECOND_TEXT.encode()) == SECOND


def test_the_countersignature_is_over_all_but_both_signatures_and_the_signature_over_it_too() -> None:
    bare = replace(SECOND, countersignature="")
    without = SECOND_TEXT.rstrip("\n").replace(f'"signature":"{"6" * 128}",', "")
    assert SECOND.signing_input() == without.encode()
    assert SECOND.countersigning_input() == without.replace(f'"countersignature":"{"7" * 128}",', "").encode()
    signed = bare.countersigned(KeySigner(KEY)).signed(KEY)
    assert signed.countersignature == KEY.sign(SECOND.countersigning_input()).hex()
    assert signed.is_countersigned()
    assert signed.is_signed_by(PUBLIC_KEY)
    assert not replace(signed, countersignature="").is_signed_by(PUBLIC_KEY)
    assert not replace(signed, records=3).is_countersigned()


BROKEN_SECOND = {
    "without a next key": ({"next_public_key": ""}, "next_public_key is not what it should be"),
    "without the key that countersigns": ({"countersigner": ""}, "countersigner is not what it should be"),
    "a retention that says no time": (
        {"kind": "retention", "sha256": "", "merkle_root": "", "allowed_by": "audit.keep_days = 1"},
        "keep_us does not go with kind retention",
    ),
    "a clock in a state that the kernel does not know": (
        {"clock_state": "fine"},
        "clock_state is not what it should be",
    ),
    "a clock without a state": ({"clock_state": ""}, "clock_state is not what it should be"),
    "a clock with half an error": ({"clock_maximum_error_us": 0.5}, "clock_maximum_error_us is not what it should be"),
    "a time to keep in a segment's": ({"keep_us": 1}, "keep_us does not go with kind segment"),
    "a rotation that nobody ordered": (
        {"kind": "rotation", "segment": "", "sha256": "", "merkle_root": "", "new_public_key": PUBLIC_KEY},
        "allowed_by does not go with kind rotation",
    ),
}


@for_every(BROKEN_SECOND)
def test_what_is_no_digest_of_version_2_says_why(case: tuple[dict[str, object], str]) -> None:
    values, words = case
    merged = json.loads(SECOND_TEXT) | values
    data = json.dumps(dict(sorted(merged.items())), separators=(",", ":")).encode() + b"\n"
    with pytest.raises(MalformedDigest, match=words):
        parse_digest(data)


def test_a_clock_is_steered_in_every_state_but_error_and_unknown() -> None:
    states = ("ok", "ins", "del", "oop", "wait", "error", "unknown")
    steered = [state for state in states if replace(SECOND, clock_state=state).is_clock_steered]
    assert steered == ["ok", "ins", "del", "oop", "wait"]
    for state in states:
        assert parse_digest(replace(SECOND, clock_state=state).to_bytes()).clock_state == state
    assert DIGEST.clock_state == "unknown", "the first edition says nothing of the clock"


def test_version_1_knows_no_renewal_and_version_2_does() -> None:
    bare = {"segment": "", "sha256": "", "merkle_root": "", "kind": "renewal"}
    with pytest.raises(MalformedDigest, match="kind 'renewal' is not known"):
        parse_digest(_with(**bare))
    assert parse_digest(replace(SECOND, **bare).to_bytes()).kind == "renewal"


# -- version 3 ---------------------------------------------------------------------------------------------------------

THIRD = replace(SECOND, version=3, key_place="pkcs11", kind="countersignature", countersigned_number=1)
THIRD = replace(THIRD, segment="", sha256="", merkle_root="")
#: The same, typed.
THIRD_TEXT = (
    SECOND_TEXT.replace('"countersigner"', '"countersigned_number":1,"countersigner"')
    .replace('"kind":"segment"', '"key_place":"pkcs11","kind":"countersignature"')
    .replace('"segment":"000000000002-20261120T08","sha256":"' + "1" * 64 + '"', '"segment":"","sha256":""')
    .replace("2" * 64, "").replace('"version":2', '"version":3')
)  # fmt: skip


def test_a_digest_of_version_3_has_the_bytes_of_the_definition() -> None:
    assert THIRD.to_bytes() == THIRD_TEXT.encode()
    assert parse_digest(THIRD_TEXT.encode()) == THIRD


def test_a_countersignature_that_comes_later_is_over_number_and_hash_of_a_digest() -> None:
    sha256 = "a" * 64
    over = b'{"countersigned_number":1,"digest":"' + sha256.encode() + b'"}'
    late = replace(THIRD, countersignature=KEY.sign(over).hex())
    assert late.is_countersigned(sha256)
    assert not late.is_countersigned("b" * 64)
    assert not replace(late, countersigned_number=2).is_countersigned(sha256)


BROKEN_THIRD = {
    "a place that nobody knows": ({"key_place": "pocket"}, "key_place is not what it should be"),
    "no place": ({"key_place": ""}, "key_place is not what it should be"),
    "a late countersignature without one": ({"countersignature": ""}, "countersignature does not go with kind"),
    "a late countersignature of nothing": ({"countersigned_number": 0}, "countersigned_number does not go with kind"),
    "a late countersignature of a key in a file": ({"key_place": "file"}, "key_place does not go with kind"),
    "a number in another kind": ({"kind": "interval"}, "countersigned_number does not go with kind interval"),
}


@for_every(BROKEN_THIRD)
def test_what_is_no_digest_of_version_3_says_why(case: tuple[dict[str, object], str]) -> None:
    values, words = case
    merged = json.loads(THIRD_TEXT) | values
    data = json.dumps(dict(sorted(merged.items())), separators=(",", ":")).encode() + b"\n"
    with pytest.raises(MalformedDigest, match=words):
        parse_digest(data)


def test_version_2_knows_no_countersignature_that_comes_later() -> None:
    merged = {name: each for name, each in json.loads(THIRD_TEXT).items() if name in json.loads(SECOND_TEXT)}
    data = json.dumps(dict(sorted((merged | {"version": 2}).items())), separators=(",", ":")).encode() + b"\n"
    with pytest.raises(MalformedDigest, match="kind 'countersignature' is not known"):
        parse_digest(data)


def test_a_countersignature_is_due_at_the_beginning_at_turns_and_each_hour() -> None:
    hour = 3_600_000_000
    assert is_countersignature_due("segment", 5, None)
    assert is_countersignature_due("rotation", 5, 5)
    assert is_countersignature_due("renewal", 5, 5)
    assert not is_countersignature_due("interval", 5, 5)
    assert not is_countersignature_due("segment", 4 + hour, 5)
    assert is_countersignature_due("segment", 5 + hour, 5)
    assert is_countersignature_due("segment", 4, 5), "a clock that goes back puts nothing off"


def test_a_measure_takes_lines_one_by_one_or_many_at_once() -> None:
    one, many = SegmentMeasure(), SegmentMeasure()
    for line in (b"a\n", b"bc\n", b"\n"):
        one.add(line)
    many.add(b"a\nbc\n\n")
    a, bc, nothing = (hashlib.sha256(b"\0" + line).digest() for line in (b"a", b"bc", b""))
    root = hashlib.sha256(b"\1" + hashlib.sha256(b"\1" + a + bc).digest() + nothing).hexdigest()
    for measure in (one, many):
        assert (measure.records, measure.size_bytes) == (3, 6)
        assert measure.sha256() == hashlib.sha256(b"a\nbc\n\n").hexdigest()
        assert measure.merkle_root() == root


def test_file_names_are_numbers_of_twelve_digits(tmp_path) -> None:
    for name in ("000000000002.digest", "000000000010.digest", "2.digest", "000000000003.digest.part", "README"):
        (tmp_path / name).touch()
    assert digest_numbers(tmp_path) == [2, 10]
    assert digest_numbers(tmp_path / "nowhere") == []
    assert (digest_name(7), digest_number("000000000007.digest")) == ("000000000007.digest", 7)
