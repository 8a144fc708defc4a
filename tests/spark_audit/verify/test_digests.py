"""The chain of digests: rotation of the key, and what stands for nothing although each signature holds."""

import subprocess
import sys

import pytest

from spark_audit.verify import Anchor, Finding, UnusableAnchor, Verdict, verify


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
    signed.digest("interval", version=2)
    result = verify(signed.folder)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.NOT_EVALUABLE, 2)
    assert "digests have a version" in result.reason


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
