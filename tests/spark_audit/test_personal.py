"""Personal data under a key: hashes that tell nothing, bytes that the key alone opens."""

import base64
import hashlib
import hmac
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from spark_audit.personal import PersonalKey, UnusablePersonalKey, is_sealed, opened_record

RAW = bytes(range(32))
HEADER = b"\x32\x10\x00\x05plant\x00\x01"


def test_a_name_is_the_start_of_its_hmac_under_a_subkey() -> None:
    subkey = hmac.new(RAW, b"names", hashlib.sha256).digest()
    expected = hmac.new(subkey, "Zähler-7".encode(), hashlib.sha256).hexdigest()[:32]
    assert PersonalKey(RAW).name("Zähler-7") == "k:" + expected


def test_sealed_bytes_are_nonce_ciphertext_and_tag_of_aes_256_gcm() -> None:
    subkey = hmac.new(RAW, b"encryption", hashlib.sha256).digest()
    sealed = PersonalKey(RAW).sealed(HEADER)
    assert sealed.startswith("e:")
    data = base64.b64decode(sealed[2:])
    assert len(data) == 12 + len(HEADER) + 16
    assert AESGCM(subkey).decrypt(data[:12], data[12:], b"rfhbridge trail, version 1") == HEADER


def test_the_same_bytes_look_the_same_and_other_bytes_have_another_nonce() -> None:
    key = PersonalKey(RAW)
    assert key.sealed(HEADER) == key.sealed(HEADER)
    nonces = {base64.b64decode(key.sealed(bytes((number,)))[2:])[:12] for number in range(256)}
    assert len(nonces) == 256


def test_a_correlation_identifier_keeps_its_length_and_says_nothing_of_itself() -> None:
    key = PersonalKey(RAW)
    identifier = bytes(range(24))
    assert len(key.identifier(identifier)) == 24
    assert key.identifier(identifier) not in (identifier, PersonalKey(bytes(32)).identifier(identifier))


def test_the_record_is_opened_and_its_names_stay_hashes() -> None:
    key = PersonalKey(RAW)
    record = {
        "kind": "refused",
        "client": key.name("sensor"),
        "input": key.sealed(HEADER),
        "output": "cGxhaW4=",
        "reason": key.sealed(b"topic 'plant' is too long"),
    }
    assert opened_record(record, key) == {
        "kind": "refused",
        "client": key.name("sensor"),
        "input": base64.b64encode(HEADER).decode(),
        "output": "cGxhaW4=",
        "reason": "topic 'plant' is too long",
    }


@pytest.mark.parametrize("damage", ["other key", "one bit", "cut", "no base64", "empty"])
def test_what_the_key_does_not_open_is_said(damage: str) -> None:
    sealed = PersonalKey(RAW).sealed(HEADER)
    key = PersonalKey(bytes(32)) if damage == "other key" else PersonalKey(RAW)
    data = base64.b64decode(sealed[2:])
    flipped = base64.b64encode(data[:-1] + bytes((data[-1] ^ 1,))).decode()
    texts = {"other key": sealed, "one bit": "e:" + flipped, "cut": sealed[:14], "no base64": "e:!!!!", "empty": "e:"}
    assert is_sealed(texts[damage])
    with pytest.raises(UnusablePersonalKey, match="another key"):
        key.opened(texts[damage])


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_file_of_another_length_is_no_key(tmp_path: Path, length: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(length))
    with pytest.raises(UnusablePersonalKey, match="has 32 bytes"):
        PersonalKey.read(path)
