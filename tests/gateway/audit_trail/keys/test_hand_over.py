"""A token hands over to another one: both countersign what they must, and no other key takes over."""

import logging
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audit_trail.digests import key_in_force
from gateway.audit_trail.keys import late_signing
from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace, remote_key
from gateway.audit_trail.keys.signing_key import check_token
from gateway.audit_trail.segment import Trail
from gateway.config import ConfigurationError
from spark_audit.trail.digest import KEY_IN_A_FILE, Digest, DigestKind, digest_name, parse_digest
from spark_audit.trail.signature import KeySigner
from spark_audit.verify import Anchor, Finding, Verdict, verify
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401
from tests.gateway.audit_trail.keys.test_token_key import configured, place  # noqa: F401

_WAIT_S = 30


class _Token:
    """A token in this process, which may be away or sign with another key."""

    def __init__(self, kind: str, signer: KeySigner) -> None:
        self.place = KeyPlace(type=kind, public_key=signer.public_key, socket="x")
        self.signer = signer
        self.is_there = True

    def public_keys(self) -> tuple[str, ...]:
        return (self.place.public_key,)

    def sign(self, data: bytes) -> str:
        if not self.is_there:
            raise KeyAway("it is not plugged in")
        return self.signer.sign(data)


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[_Token]:
    """Three: P-256, and Ed25519 in a token and behind an agent."""
    made = [
        _Token("pkcs11", KeySigner(generate_private_key(SECP256R1()))),
        _Token("ssh-agent", KeySigner(Ed25519PrivateKey.generate())),
        _Token("pkcs11", KeySigner(Ed25519PrivateKey.generate())),
    ]
    by_key = {each.place.public_key: each for each in made}
    monkeypatch.setattr("gateway.audit_trail.digests.remote_key", lambda there: by_key[there.public_key])
    monkeypatch.setattr(late_signing, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(late_signing, "LONGEST_PAUSE_S", 0.05)
    return made


def _digests(folder: Path) -> list[Digest]:  # noqa: F811
    return [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").glob("*.digest"))]


def _countersigned(trail: Trail) -> None:
    """Waits until the last digest that is due has its countersignature."""
    number = trail.digests.last_number + 1
    for _ in range(_WAIT_S * 100):
        trail.tend()
        if trail.digests.last_number >= number:
            return
        threading.Event().wait(0.01)
    pytest.fail("the countersignature has not come")


def _run(folder, clock, batches, token, former=None, *, is_countersigned: bool = True) -> None:  # noqa: F811
    """A run of a gateway with these tokens; two segments."""
    options = {"signing_token": token, "former_token": former}
    with Trail.open(folder, now=clock, **options) as trail:
        for _ in range(2):
            trail.append(*batches())
            trail.close_segment()
            clock.now += timedelta(minutes=1)
        if is_countersigned:
            _countersigned(trail)


def _judged(folder: Path) -> tuple[Verdict, tuple[str, ...]]:  # noqa: F811
    found = verify(folder, Anchor(public_key=_digests(folder)[0].public_key))
    return found.verdict, found.public_keys


def test_tokens_hand_over_one_after_the_other(folder, clock, batches, tokens) -> None:  # noqa: F811
    first, second, third = (each.place for each in tokens)
    _run(folder, clock, batches, first)
    _run(folder, clock, batches, second, first)
    assert key_in_force(folder) == second.public_key
    _run(folder, clock, batches, second, first, is_countersigned=False)  # it is still in the configuration
    _run(folder, clock, batches, third, second)
    digests = _digests(folder)
    rotations = [each for each in digests if each.kind == DigestKind.ROTATION]
    assert [(each.countersigner, each.key_place, each.new_public_key) for each in rotations] == [
        (first.public_key, "pkcs11", second.public_key),
        (second.public_key, "ssh-agent", third.public_key),
    ]
    assert {each.allowed_by for each in rotations} == {"audit.former_signing_token"}
    assert all(each.is_countersigned("") for each in rotations)
    assert next(each.key_place for each in digests if each.countersigner == third.public_key) == "pkcs11"
    assert _judged(folder) == (Verdict.ANCHORED, tuple(each.place.public_key for each in tokens))


def test_a_token_that_is_away_stays_in_force_until_a_start_meets_it(
    folder,  # noqa: F811
    clock,  # noqa: F811
    batches,  # noqa: F811
    tokens,
    caplog,
) -> None:
    caplog.set_level(logging.WARNING)
    old, new = tokens[:2]
    _run(folder, clock, batches, old.place)
    old.is_there = False
    _run(folder, clock, batches, new.place, old.place, is_countersigned=False)
    assert "hand-over put off" in caplog.text
    assert key_in_force(folder) == old.place.public_key
    assert {each.key_place for each in _digests(folder)} == {"pkcs11"}
    old.is_there = True
    _run(folder, clock, batches, new.place, old.place)
    assert _judged(folder) == (Verdict.ANCHORED, (old.place.public_key, new.place.public_key))


def test_a_token_that_signs_with_another_key_does_not_hand_over(folder, clock, batches, tokens) -> None:  # noqa: F811
    old, new = tokens[:2]
    _run(folder, clock, batches, old.place)
    old.signer = tokens[2].signer
    _run(folder, clock, batches, new.place, old.place, is_countersigned=False)
    assert key_in_force(folder) == old.place.public_key
    assert [each.kind for each in _digests(folder)].count(DigestKind.ROTATION) == 0


def test_a_key_that_never_was_in_force_does_not_hand_over(folder, clock, batches, tokens) -> None:  # noqa: F811
    old, new, stranger = (each.place for each in tokens)
    _run(folder, clock, batches, old)
    for former in (stranger, None):
        with pytest.raises(ConfigurationError, match="countersigned"):
            _run(folder, clock, batches, new, former)
    with pytest.raises(ConfigurationError):
        check_token(folder / "no-file", new.public_key, old.public_key, stranger.public_key)
    assert check_token(folder / "no-file", new.public_key, old.public_key, old.public_key) is None


def test_the_former_token_does_not_move_to_another_place(folder, clock, batches, tokens) -> None:  # noqa: F811
    old, new = (each.place for each in tokens[:2])
    _run(folder, clock, batches, old)
    tokens[0].is_there = False
    with pytest.raises(ConfigurationError, match="the place of key"):
        _run(folder, clock, batches, new, replace(old, type="ssh-agent"))


def _forged(folder, clock, batches, tokens, **changed: str) -> Verdict:  # noqa: F811
    """The hand-over as somebody writes it who has the chain's key of that moment, and not the token's."""
    old, new = (each.place for each in tokens[:2])
    _run(folder, clock, batches, old)
    with Trail.open(folder, now=clock, signing_token=old) as trail:
        digests = trail.digests
        digests._countersigner, digests._key_place = old.public_key, changed.get("key_place", old.type)
        digests._add_of_moment(
            DigestKind.ROTATION, int(clock.now.timestamp() * 1e6), {"new_public_key": new.public_key, "allowed_by": "x"}
        )
    found = verify(folder, Anchor(public_key=_digests(folder)[0].public_key))
    kinds = {each.finding for each in found.problems}
    assert Finding.MISSING_COUNTERSIGNATURE in kinds
    return found.verdict


@pytest.mark.parametrize("key_place", ["pkcs11", KEY_IN_A_FILE])
def test_a_hand_over_that_the_old_token_has_not_countersigned_is_found(
    folder,  # noqa: F811
    clock,  # noqa: F811
    batches,  # noqa: F811
    tokens,
    key_place: str,
) -> None:
    assert _forged(folder, clock, batches, tokens, key_place=key_place) is Verdict.VIOLATED


def test_a_hand_over_whose_countersignature_is_another_key_s_is_found(folder, clock, batches, tokens) -> None:  # noqa: F811
    old, new, stranger = tokens
    _run(folder, clock, batches, old.place)
    _run(folder, clock, batches, new.place, old.place)
    (rotation,) = (each for each in _digests(folder) if each.kind == DigestKind.ROTATION)
    wrong = replace(rotation, countersignature=stranger.signer.sign(rotation.countersigning_input()))
    (folder / "digests" / digest_name(rotation.number)).write_bytes(wrong.to_bytes())
    assert _judged(folder)[0] is Verdict.VIOLATED


@pytest.mark.usefixtures("configured")
def test_keys_of_a_real_token_hand_over(folder, clock, batches, place) -> None:  # noqa: F811
    """SoftHSM: from P-256 to Ed25519 and back is no hand-over to itself, but to another key."""
    keys = [replace(place, key=label) for label in ("p256", "edwards")]
    named = [replace(each, public_key=remote_key(each).public_keys()[0]) for each in keys]
    _run(folder, clock, batches, named[0])
    _run(folder, clock, batches, named[1], named[0])
    assert _judged(folder) == (Verdict.ANCHORED, tuple(each.public_key for each in named))
