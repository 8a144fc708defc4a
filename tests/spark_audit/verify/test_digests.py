"""The chain of digests: rotation of the key, and what stands for nothing although each signature holds."""

import hashlib
import subprocess
import sys

import pytest

from spark_audit.verify import Anchor, Finding, UnusableAnchor, Verdict, verify
from tests.spark_audit.conftest import ChainedTrail, TrailBuilder, signing_key


def _findings(folder, anchor: Anchor | None = None) -> list[Finding]:
    return [problem.finding for problem in verify(folder, anchor or Anchor()).problems]


@pytest.fixture
def rotated(signed, other_key):
    """A segment signed by the first key, a rotation, a segment signed by the second."""
    signed.first_key = signed.public_key
    signed.records(2)
    signed.close()
    signed.rotate(other_key)
    signed.records(2)
    signed.close()
    return signed


def test_a_rotation_that_the_old_key_signed_hands_over(rotated) -> None:
    result = verify(rotated.folder)
    assert result.verdict is Verdict.INTACT
    assert result.public_keys == (rotated.first_key, rotated.public_key)


def test_the_old_key_and_the_new_one_are_both_anchors(rotated) -> None:
    for key in (rotated.first_key, rotated.public_key):
        assert verify(rotated.folder, Anchor(public_key=key)).verdict is Verdict.ANCHORED


def test_a_new_key_that_has_signed_nothing_yet_is_no_anchor(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    signed.rotate(other_key)
    assert _findings(signed.folder, Anchor(public_key=signed.public_key)) == [Finding.WRONG_KEY]


def test_a_key_that_comes_without_a_rotation_is_found(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    signed.key = other_key
    signed.digest("interval")
    assert _findings(signed.folder) == [Finding.WRONG_KEY]


def test_a_rotation_that_the_new_key_signed_itself_is_found(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    signed.key = other_key
    signed.digest("rotation", new_public_key=signed.public_key)
    assert _findings(signed.folder) == [Finding.WRONG_KEY]


def test_the_old_key_signs_nothing_after_its_rotation(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    old = signed.key
    signed.rotate(other_key)
    signed.key = old
    signed.digest("interval")
    assert _findings(signed.folder) == [Finding.WRONG_KEY]


def test_a_digest_with_the_signature_of_another_key_is_found(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    name = signed.public_key
    signed.key = other_key
    signed.digest("interval", public_key=name)
    assert _findings(signed.folder) == [Finding.WRONG_SIGNATURE]


def test_an_interval_that_claims_another_head_is_found(signed) -> None:
    signed.records(2)
    signed.close()
    signed.digest("interval", head="f" * 64)
    assert _findings(signed.folder) == [Finding.BROKEN_DIGEST_LINK]


def test_quiet_times_alone_are_consistent(signed) -> None:
    signed.folder.mkdir(parents=True)
    for _ in range(3):
        signed.digest("interval")
    result = verify(signed.folder)
    assert (result.verdict, result.digests) == (Verdict.INTACT, 3)


def test_digests_that_begin_late_have_lost_the_first(signed) -> None:
    signed.records(2)
    signed.close()
    signed.digest("interval")
    (signed.digests / "000000000001.digest").unlink()
    assert Finding.MISSING_DIGEST in _findings(signed.folder)


def test_retention_of_a_segment_that_never_had_a_digest_is_found(signed) -> None:
    signed.records(2)
    signed.close()
    signed.digest("retention", segment="000000000007-20261120T13")
    assert _findings(signed.folder) == [Finding.MISSING_DIGEST]


def test_a_digest_of_a_later_version_is_not_evaluable(signed) -> None:
    signed.records(2)
    signed.close()
    signed.digest("interval", version=4)
    result = verify(signed.folder)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.NOT_EVALUABLE, 2)
    assert "digests have an unknown version" in result.reason


def test_a_key_without_any_digest_to_hold_it_against_is_not_evaluable(signed) -> None:
    signed.records(2)
    signed.write(".open")
    result = verify(signed.folder, Anchor(public_key=signed.public_key))
    assert result.verdict is Verdict.NOT_EVALUABLE
    assert "no digest yet" in result.reason


def test_a_key_file_is_one_line_of_hex(signed, tmp_path) -> None:
    path = tmp_path / "gateway.pub"
    path.write_text(f"{signed.public_key}\n")
    assert Anchor.read(public_key_file=path).public_key == signed.public_key
    path.write_text("-----BEGIN PUBLIC KEY-----\n")
    with pytest.raises(UnusableAnchor, match=r"gateway\.pub: a public key is one line of 64 hex digits"):
        Anchor.read(public_key_file=path)


def test_a_folder_without_digests_is_no_anchor(tmp_path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UnusableAnchor, match="there is no digest in"):
            Anchor.read(digests=folder)


def test_copies_beside_copied_segments_are_found_in_their_folder(signed) -> None:
    signed.records(2)
    signed.close()
    assert Anchor.read(digests=signed.folder).numbers == (1,)
    assert verify(signed.folder, Anchor.read(digests=signed.folder)).verdict is Verdict.ANCHORED


def test_digests_are_checked_without_spark() -> None:
    code = "import sys, spark_audit.verify; print([m for m in ('pyspark', 'pandas', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# -- a key for each digest ---------------------------------------------------------------------------------------------

HOUR_US = 3_600_000_000
FIRST_US = 1_795_158_900_000_000


@pytest.fixture
def chain(chained):
    """Two segments, a quiet time an hour later, and a rotation: digests 1 to 4 of version 2."""
    for _ in range(2):
        chained.records(2)
        chained.close()
    chained.digest("interval", until_us=FIRST_US + HOUR_US, countersign=True)
    chained.first_key = chained.public_key
    chained.rotate(signing_key(2))
    return chained


def test_a_chain_of_keys_is_consistent_and_its_first_key_is_told(chain) -> None:
    result = verify(chain.folder)
    assert (result.verdict, result.digests) == (Verdict.INTACT, 4), result
    assert result.chains == (chain.public_key_of(1),)
    assert result.public_keys == (chain.first_key,)


def test_each_key_that_has_signed_is_an_anchor_and_the_configured_one_too(chain) -> None:
    for number in (1, 2, 3, 4):
        result = verify(chain.folder, Anchor(public_key=chain.public_key_of(number)))
        assert result.verdict is Verdict.ANCHORED
        assert f" (it signed digest {number}, and nothing else)" in result.reason
    by_configured = verify(chain.folder, Anchor(public_key=chain.first_key))
    assert by_configured.verdict is Verdict.ANCHORED
    assert "a holder of its private half could write all of this anew" in by_configured.notes[0]


def test_a_key_that_is_named_and_has_signed_nothing_is_no_anchor(chain) -> None:
    assert _findings(chain.folder, Anchor(public_key=chain.public_key_of(5))) == [Finding.WRONG_KEY]


def test_what_breaks_a_chain_of_keys_is_found(tmp_path) -> None:
    other = signing_key(9)
    cases = {
        "another key": ({"signer": other}, [Finding.WRONG_KEY]),
        "another configured key": ({"countersigner": "f" * 64}, [Finding.WRONG_KEY]),
        "no countersignature after an hour": (
            {"until_us": FIRST_US + 2 * HOUR_US, "countersign": False},
            [Finding.MISSING_COUNTERSIGNATURE],
        ),
        "no countersignature where the clock goes back": (
            {"until_us": FIRST_US - 1, "countersign": False},
            [Finding.MISSING_COUNTERSIGNATURE],
        ),
        "a renewal": ({"kind": "renewal", "signer": other}, [Finding.RENEWED_CHAIN]),
        "a renewal of the same key": ({"kind": "renewal"}, [Finding.RENEWED_CHAIN]),
        "a renewal that the configured key did not sign": (
            {"kind": "renewal", "signer": other, "countersign": False},
            [Finding.RENEWED_CHAIN, Finding.MISSING_COUNTERSIGNATURE],
        ),
    }
    for number, (case, (fields, found)) in enumerate(cases.items()):
        chained = ChainedTrail(TrailBuilder(tmp_path / str(number) / "trail"), signing_key(1))
        chained.records(2)
        chained.close()
        chained.digest(fields.pop("kind", "interval"), **fields)
        assert _findings(chained.folder) == found, case


def test_a_new_configured_key_countersigns_the_first_digest_behind_its_rotation(chain) -> None:
    chain.digest("interval", countersign=False)
    assert _findings(chain.folder) == [Finding.MISSING_COUNTERSIGNATURE]
    chain.number, chain.previous = 4, hashlib.sha256((chain.digests / f"{4:012d}.digest").read_bytes()).hexdigest()
    chain.digest("interval", countersign=True)
    assert verify(chain.folder).public_keys == (chain.first_key, chain.public_key)


def test_a_countersignature_of_another_key_is_found(chained) -> None:
    chained.records(2)
    chained.close()
    name, chained.key = chained.public_key, signing_key(9)
    chained.digest("interval", countersign=True, countersigner=name)
    assert _findings(chained.folder) == [Finding.WRONG_SIGNATURE]


def test_a_renewal_that_the_policy_names_is_no_finding(chained) -> None:
    chained.records(2)
    chained.close()
    renewal = chained.digest("renewal", signer=signing_key(9))
    named = hashlib.sha256(renewal.read_bytes()).hexdigest()
    assert f'record = "{named}"' in verify(chained.folder).reason
    result = verify(chained.folder, accepted=frozenset({named}))
    assert result.verdict is Verdict.INTACT
    assert result.chains == (chained.public_key_of(1), signing_key(9).public_key().public_bytes_raw().hex())


def _second_part(signed) -> ChainedTrail:
    """The same trail, whose writer was replaced by one of version 2."""
    chained = ChainedTrail(signed.trail, signed.key)
    for name in ("number", "previous", "head", "segments"):
        setattr(chained, name, getattr(signed, name))
    return chained


def test_a_trail_changes_from_version_1_to_2_and_not_back(signed) -> None:
    signed.records(2)
    signed.close()
    chained = _second_part(signed)
    chained.records(2)
    chained.digest("interval", countersign=True)
    result = verify(signed.folder)
    assert (result.verdict, result.digests) == (Verdict.INTACT, 2), result
    for key in (signed.public_key, chained.public_key_of(2)):
        assert verify(signed.folder, Anchor(public_key=key)).verdict is Verdict.ANCHORED
    signed.number, signed.previous = chained.number, chained.previous
    signed.digest("interval")
    assert _findings(signed.folder) == [Finding.WRONG_KEY]


def test_a_chain_that_begins_behind_version_1_needs_the_key_that_was_to_sign(signed, other_key) -> None:
    signed.records(2)
    signed.close()
    chained = _second_part(signed)
    chained.digest("interval", countersign=False)
    assert _findings(signed.folder) == [Finding.MISSING_COUNTERSIGNATURE]
    chained.number, chained.previous, chained.key = 1, signed.previous, other_key
    chained.digest("interval", countersign=True)
    assert _findings(signed.folder) == [Finding.WRONG_KEY]
