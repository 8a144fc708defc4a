"""A note of a witness tells how fresh its digests are; what is no note tells nothing."""

import math
from pathlib import Path

import orjson
import pytest

from spark_audit.trail.witness_note import WitnessNote, ages_s, note_path, notes_beside, read_note

SECOND_US = 1_000_000
NOTE = WitnessNote(name="office", kind="git", number=7, digest_at_us=100 * SECOND_US, checked_at_us=90 * SECOND_US)


def _keep(trail: Path, data: bytes, name: str = "office") -> Path:
    path = note_path(trail, name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = _keep(tmp_path / "trail", NOTE.to_bytes())
    assert read_note(path) == NOTE
    assert notes_beside(tmp_path / "trail") == (NOTE,)


def test_the_age_rises_while_a_witness_gets_nothing_and_is_endless_where_it_has_none(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    _keep(trail, NOTE.to_bytes())
    _keep(trail, WitnessNote(name="bank", kind="git").to_bytes(), "bank")
    names = ("office", "bank", "nobody")
    assert ages_s(trail, names, 160 * SECOND_US) == {"office": 60.0, "bank": math.inf, "nobody": math.inf}
    assert ages_s(trail, names, 220 * SECOND_US)["office"] == 120.0
    assert ages_s(trail, names, 0)["office"] == 0.0


def test_the_words_of_a_note_name_the_last_digest_and_what_is_wrong() -> None:
    assert "up to 7, of 1970-01-01T00:01:40Z" in str(NOTE)
    assert "no digest" in str(WitnessNote(name="office", kind="git", failure="it is away"))
    assert "(it is away)" in str(WitnessNote(name="office", kind="git", failure="it is away"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        NOTE.to_bytes()[:-5],
        NOTE.to_bytes().replace(b'"version":1', b'"version":2'),
        NOTE.to_bytes().replace(b'"number":7', b'"number":"7"'),
        orjson.dumps({**orjson.loads(NOTE.to_bytes()), "more": 1}),
    ],
    ids=["empty", "no object", "cut", "version", "type", "field"],
)
def test_what_is_no_note_is_none(tmp_path: Path, data: bytes) -> None:
    assert read_note(_keep(tmp_path / "trail", data)) is None
    assert notes_beside(tmp_path / "trail") == ()
