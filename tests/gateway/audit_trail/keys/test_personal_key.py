"""A trail that begins gets a key of its personal data; one that is missing or unusable later is told."""

from pathlib import Path

import pytest

from gateway.audit_trail.digests import key_in_force
from gateway.audit_trail.keys.personal_key import ready_personal_key
from gateway.audit_trail.segment import Trail
from gateway.config import ConfigurationError


def test_a_new_trail_gets_a_key_and_one_that_has_begun_does_not(tmp_path: Path) -> None:
    path = tmp_path / "trail-personal.key"
    ready_personal_key(path, None)
    assert (path.stat().st_mode & 0o777, path.stat().st_size) == (0o600, 32)
    made = path.read_bytes()
    ready_personal_key(path, None)
    assert path.read_bytes() == made


@pytest.mark.parametrize(
    ("data", "mode", "match"),
    [(bytes(31), 0o600, "has 32 bytes"), (bytes(32), 0o644, "open to everybody")],
    ids=["short", "everybody"],
)
def test_a_key_that_cannot_be_used_is_told(tmp_path: Path, data: bytes, mode: int, match: str) -> None:
    path = tmp_path / "personal.key"
    path.write_bytes(data)
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match=match):
        ready_personal_key(path, None)


def test_a_key_that_was_destroyed_is_not_made_anew_in_silence(tmp_path: Path, folder, clock, batches) -> None:
    with Trail.open(folder, now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    with pytest.raises(ConfigurationError, match="is missing, and the trail has begun"):
        ready_personal_key(tmp_path / "destroyed.key", key_in_force(folder))
