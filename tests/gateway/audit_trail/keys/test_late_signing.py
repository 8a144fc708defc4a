"""A key that lies elsewhere countersigns later: the trail goes on without it, and makes up for it."""

import logging
import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.audit_trail.keys import late_signing
from gateway.audit_trail.keys.late_signing import LateSigning
from gateway.audit_trail.keys.remote_key import KeyAway, KeyPlace
from gateway.audit_trail.keys.signing_key import read_key
from gateway.audit_trail.segment import Trail
from gateway.config import ConfigurationError
from spark_audit.trail.digest import Digest, parse_digest
from spark_audit.trail.signature import KeySigner, public_key_of
from spark_audit.trail.witness_note import countersignature_age_s, countersignature_note_path, read_note
from spark_audit.verify import Anchor, Verdict, verify
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401

WAIT_S = 30


class Token:
    """A token that is away until it is put in, and that says when it was asked."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()
        self.is_there = threading.Event()
        self.asked = threading.Event()
        #: Cleared while it hangs.
        self.answers = threading.Event()
        self.answers.set()

    @property
    def place(self) -> KeyPlace:
        return KeyPlace(type="pkcs11", public_key=public_key_of(self.key))

    def public_keys(self) -> tuple[str, ...]:
        return (public_key_of(self.key),)

    def sign(self, data: bytes) -> str:
        self.asked.set()
        self.answers.wait(WAIT_S)
        if not self.is_there.is_set():
            raise KeyAway("it is not plugged in")
        return KeySigner(self.key).sign(data)


@pytest.fixture
def token(monkeypatch) -> Token:
    made = Token()
    monkeypatch.setattr("gateway.audit_trail.digests.remote_key", lambda _place: made)
    monkeypatch.setattr(late_signing, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(late_signing, "LONGEST_PAUSE_S", 0.05)
    return made


def _digests(folder: Path) -> list[Digest]:  # noqa: F811
    return [parse_digest(path.read_bytes()) for path in sorted((folder / "digests").glob("*.digest"))]


def _await_countersignature(trail: Trail, number: int) -> None:
    for _ in range(WAIT_S * 100):
        trail.tend()
        if trail.digests.last_number >= number:
            return
        threading.Event().wait(0.01)
    pytest.fail("the countersignature has not come")


def test_a_token_that_is_away_delays_nothing_and_is_made_up_for(folder, clock, batches, token, caplog) -> None:  # noqa: F811
    caplog.set_level(logging.INFO)
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        for _ in range(3):
            trail.append(*batches())
            trail.close_segment()
            trail.tend()
        assert token.asked.wait(WAIT_S)
        assert [(digest.kind, digest.countersignature) for digest in _digests(folder)] == [("segment", "")] * 3
        assert verify(folder).verdict is Verdict.INTACT
        clock.now += timedelta(minutes=30)
        trail.note_quiet("a" * 24)
        first_key = Anchor(public_key=_digests(folder)[0].public_key)
        assert verify(folder, first_key).verdict is Verdict.INTACT, "nothing binds it to a key"
        token.is_there.set()
        _await_countersignature(trail, 5)
        clock.now += timedelta(minutes=1)
        trail.tend()
    *_, late = _digests(folder)
    assert (late.kind, late.countersigned_number) == ("countersignature", 4)
    assert (late.countersigner, late.key_place) == (token.place.public_key, "pkcs11")
    assert verify(folder, first_key).verdict is Verdict.ANCHORED
    assert verify(folder, Anchor(public_key=token.place.public_key)).verdict is Verdict.ANCHORED
    note = read_note(countersignature_note_path(folder))
    assert note is not None
    assert (note.number, note.failure) == (4, "")
    assert countersignature_age_s(folder, late.until_us + 7_000_000) == 7
    told = [record.getMessage() for record in caplog.records if "countersignature" in record.getMessage()]
    assert told == [
        "countersignature put off digest=1 reason=it is not plugged in",
        "countersignature made up digest=4",
    ]


def test_a_token_that_is_there_countersigns_the_first_digest_and_one_an_hour(folder, clock, batches, token) -> None:  # noqa: F811
    token.is_there.set()
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        trail.append(*batches())
        trail.close_segment()
        _await_countersignature(trail, 2)
        for _ in range(8):
            clock.now += timedelta(minutes=15)
            trail.note_quiet("a" * 24)
            trail.tend()
        _await_countersignature(trail, 11)
    kinds = [digest.kind for digest in _digests(folder)]
    assert kinds.count("countersignature") >= 2
    assert verify(folder).verdict is Verdict.INTACT


def test_a_token_that_was_away_for_the_first_hour_is_told_for_ever(folder, clock, batches, token) -> None:  # noqa: F811
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        trail.append(*batches())
        trail.close_segment()
        clock.now += timedelta(hours=2)
        trail.note_quiet("a" * 24)
        token.is_there.set()
        _await_countersignature(trail, 3)
    told = verify(folder)
    assert (told.verdict, told.problem_count) == (Verdict.VIOLATED, 1)
    assert "came 120 minutes after digest 1" in told.reason


def test_whoever_takes_the_first_countersignature_out_and_goes_on_is_told(folder, clock, batches, token) -> None:  # noqa: F811
    """He could write since before it, so he has the key that signs the next digest, and not the token."""
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        trail.append(*batches())
        trail.close_segment()
        kept = Path(shutil.copytree(folder.parent, folder.parent.with_name("kept")))
        token.is_there.set()
        _await_countersignature(trail, 2)
    token.is_there.clear()
    first_key = Anchor(public_key=_digests(folder)[0].public_key)
    assert verify(folder, first_key).verdict is Verdict.ANCHORED
    forged = kept / folder.name
    with Trail.open(forged, now=clock, signing_token=token.place) as trail:
        clock.now += timedelta(minutes=59)
        trail.note_quiet("a" * 24)
        told = verify(forged, first_key)
        assert told.verdict is Verdict.INTACT
        assert "anchored by nothing: not countersigned since" in told.reason
        clock.now += timedelta(minutes=15)
        trail.note_quiet("a" * 24)
    told = verify(forged, first_key)
    assert told.verdict is Verdict.VIOLATED
    assert "not countersigned since" in told.reason


def test_a_gateway_that_ends_soon_waits_for_the_first_countersignature_alone(folder, clock, batches, token) -> None:  # noqa: F811
    token.is_there.set()
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        trail.append(*batches())
        trail.finish("a" * 24)
        assert [each.kind for each in _digests(folder)] == ["segment", "countersignature"]
        clock.now += timedelta(hours=2)
        trail.finish("a" * 24)
    assert [each.kind for each in _digests(folder)] == ["segment", "countersignature", "interval"]


def test_a_token_that_hangs_delays_no_line_and_no_digest(folder, clock, batches, token) -> None:  # noqa: F811
    token.is_there.set()
    token.answers.clear()
    threads = threading.active_count()
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        for _ in range(3):
            trail.append(*batches())
            trail.close_segment()
            trail.tend()
        assert token.asked.wait(WAIT_S)
        assert [each.kind for each in _digests(folder)] == ["segment"] * 3
        assert threading.active_count() == threads + 1, "one thread waits for it"
        token.answers.set()
        _await_countersignature(trail, 4)


def test_a_start_goes_on_where_a_countersignature_was_still_due(folder, clock, batches, token) -> None:  # noqa: F811
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        trail.append(*batches())
        trail.close_segment()
    token.is_there.set()
    with Trail.open(folder, now=clock, signing_token=token.place) as trail:
        _await_countersignature(trail, 2)
    assert verify(folder).verdict is Verdict.INTACT


def test_the_key_in_a_file_hands_over_to_a_token_once(folder, clock, batches, token) -> None:  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    before = read_key(folder.parent / "trail-key.pem").public_key
    token.is_there.set()
    for _ in range(2):
        with Trail.open(folder, now=clock, signing_token=token.place) as trail:
            trail.append(*batches())
            trail.close_segment()
            _await_countersignature(trail, 4)
    rotation = _digests(folder)[1]
    assert (rotation.kind, rotation.countersigner, rotation.new_public_key) == (
        "rotation",
        before,
        token.place.public_key,
    )
    assert rotation.is_countersigned()
    assert [digest.kind for digest in _digests(folder)].count("rotation") == 1
    assert verify(folder).public_keys == (before, token.place.public_key)
    assert verify(folder).verdict is Verdict.INTACT


def test_a_token_of_another_trail_and_one_with_the_files_key_are_refused(folder, clock, batches, token) -> None:  # noqa: F811
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    path = folder.parent / "trail-key.pem"
    in_file = KeyPlace(type="pkcs11", public_key=read_key(path).public_key)
    with pytest.raises(ConfigurationError, match="but file in the trail"):
        Trail.open(folder, now=clock, signing_token=in_file)
    path.unlink()
    with pytest.raises(ConfigurationError, match="is missing"):
        Trail.open(folder, now=clock, signing_token=token.place)


def test_a_signature_of_another_key_is_not_taken(tmp_path, token, caplog) -> None:
    token.is_there.set()
    signing = LateSigning(token, "f" * 64, tmp_path / "trail")
    signing.ask(1, "1" * 64)
    signing.wait(WAIT_S)
    assert "its signature is not that of the key ffff" in caplog.text
    assert signing.take() is None


@pytest.mark.parametrize("answer", ["", "00", "ff" * 64, "é" * 128, "7" * 1_000_000])
def test_an_answer_that_is_no_signature_is_asked_for_again_after_a_pause(tmp_path, token, monkeypatch, answer) -> None:
    now_s = [100.0]
    monkeypatch.setattr(late_signing, "FIRST_PAUSE_S", 5.0)
    right, token.sign = token.sign, lambda _data: answer
    signing = LateSigning(token, token.place.public_key, tmp_path / "trail", monotonic=lambda: now_s[0])
    for number in (1, 2):
        signing.ask(number, "1" * 64)
        signing.wait(WAIT_S)
    assert signing.take() is None
    note = read_note(countersignature_note_path(tmp_path / "trail"))
    assert note is not None
    assert "is not that of the key" in note.failure
    token.sign = right
    token.is_there.set()
    signing.ask(3, "1" * 64)
    signing.wait(WAIT_S)
    assert signing.take() is None, "it is too early"
    now_s[0] += 5
    signing.ask(4, "1" * 64)
    signing.wait(WAIT_S)
    made = signing.take()
    assert made is not None
    assert made.number == 4
