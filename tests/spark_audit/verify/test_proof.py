"""Inclusion proofs: one message's records for somebody who has a public key and nothing else."""

import json
from pathlib import Path

import pytest

from benchmarks.trail.made import make_trail
from spark_audit import life
from spark_audit.verify import Verdict
from spark_audit.verify.proof import BrokenSegment, ProofError, prove, verify_proof
from spark_audit.verify.source import TrailFolder
from tests.trail_lines import in_batch, trail_records

MESSAGE = "52464842" + "a" * 40
OTHER = "52464842" + "b" * 40
COPY = "52464842" + "c" * 40
IN = {"direction": "in", "client": "pump", "session_epoch": 1, "exchange": 7}
OUT = {"direction": "out", "client": "panel", "session_epoch": 2, "exchange": 9}
#: A proof that version 1 made, of a copy: with its put, its delivery and its acknowledgement.
OLD = Path(__file__).with_name("proof_version_1.json")
OLD_KEY = "96e4cf544d55b98e70cf6b7fdaa9984c8c4b20e39710ced7c9833162a5b09586"


@pytest.fixture
def told(signed):
    """Seven records in two segments, three of them on MESSAGE: as put, as source of a copy, as forwarded."""
    signed.records(2)
    signed.trail.add("put", message_id=MESSAGE, topic="plant/boiler")
    signed.trail.add("put", message_id=OTHER, source_message_id=MESSAGE)
    signed.close()
    signed.records(2)
    signed.trail.add("forwarded", message_id=OTHER, target_message_id=MESSAGE)
    signed.close()
    return signed


def _prove(told, message: str = MESSAGE) -> dict:
    made, _not_signed = prove(lambda: TrailFolder(told.folder), message)
    return json.loads(made.to_bytes())


def _check(values: dict, public_key: str = ""):
    return verify_proof(json.dumps(values).encode(), public_key)


def test_a_proof_holds_the_records_of_a_message_and_nothing_else(told) -> None:
    values = _prove(told)
    assert [(record["digest"], record["leaf"]) for record in values["records"]] == [(1, 2), (1, 3), (2, 2)]
    assert all(MESSAGE in record["line"] for record in values["records"])
    assert values["digests"] == [path.read_text() for path in sorted(told.digests.iterdir())]


def test_a_proof_stands_on_the_public_key_alone(told) -> None:
    result = _check(_prove(told), told.public_key)
    assert (result.verdict, result.verdict.exit_code, result.message_id) == (Verdict.ANCHORED, 0, MESSAGE)
    assert [json.loads(line)["kind"] for line in result.records] == ["put", "put", "forwarded"]


def test_without_a_key_a_proof_is_consistent_and_not_anchored(told) -> None:
    assert _check(_prove(told)).verdict is Verdict.INTACT


def test_a_proof_is_made_of_compressed_segments_too(told) -> None:
    told.compress(1)
    assert _check(_prove(told), told.public_key).verdict is Verdict.ANCHORED


def test_a_proof_across_a_rotation_stands_on_the_old_key(told, other_key) -> None:
    old = told.public_key
    told.rotate(other_key)
    told.trail.add("dead_lettered", message_id=OTHER, dead_letter_id=MESSAGE)
    told.close()
    values = _prove(told)
    assert len(values["records"]) == 4
    assert _check(values, old).verdict is Verdict.ANCHORED
    by_new = _check(values, told.public_key)
    assert by_new.verdict is Verdict.VIOLATED
    assert "is not the public key that was given" in by_new.reason


def _edited(values: dict) -> None:
    record = values["records"][0]
    record["line"] = record["line"].replace("plant/boiler", "plant/cooler")


def _moved(values: dict) -> None:
    values["records"][0]["leaf"] = 1


def _of_another_segment(values: dict) -> None:
    values["records"][0]["digest"] = 2


def _of_another_path(values: dict) -> None:
    values["records"][0]["path"] = values["records"][1]["path"]


def _shortened(values: dict) -> None:
    values["records"][0]["path"] = values["records"][0]["path"][:-1]


def _of_short_hashes(values: dict) -> None:
    values["records"][0]["path"] = [each[:-2] for each in values["records"][0]["path"]]


def _without_hex(values: dict) -> None:
    values["records"][0]["path"][0] = "no hex"


def _of_another_message(values: dict) -> None:
    values["message_id"] = "c" * 48


def _without_its_digest(values: dict) -> None:
    values["digests"] = values["digests"][1:]


def _with_another_root(values: dict) -> None:
    digest = json.loads(values["digests"][0])
    values["digests"][0] = values["digests"][0].replace(digest["merkle_root"], "0" * 64)


TOUCHES = {
    _edited: "it was changed",
    _moved: "does not lead to the Merkle root",
    _of_another_segment: "does not lead to the Merkle root",
    _of_another_path: "does not lead to the Merkle root",
    _shortened: "does not lead to the Merkle root",
    _of_short_hashes: "does not lead to the Merkle root",
    _without_hex: "its path is not hex",
    _of_another_message: "does not speak of message",
    _without_its_digest: "there is no digest 1",
    _with_another_root: "its signature is not that of its key",
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_a_touched_proof_is_a_violation(told, touch) -> None:
    values = _prove(told)
    touch(values)
    result = _check(values, told.public_key)
    assert (result.verdict, result.verdict.exit_code, result.records) == (Verdict.VIOLATED, 1, ())
    assert TOUCHES[touch] in result.reason


def test_a_proof_by_another_key_is_a_violation(told, other_key) -> None:
    other = other_key.public_key().public_bytes_raw().hex()
    assert _check(_prove(told), other).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"version": 0},
        {"version": True},
        {"records": []},
        {"records": [{}]},
        {"records": 5},
        {"records": [{"digest": "1", "leaf": 0, "line": "", "path": []}]},
        {"records": [{"digest": 1, "leaf": 0, "line": "{}\n{}", "path": []}]},
        {"digests": ["no digest"]},
        {"digests": [5]},
        {"digests": None},
        {"message_id": 5},
    ],
    ids=str,
)
def test_what_is_no_proof_is_not_evaluable(told, change: dict) -> None:
    result = _check(_prove(told) | change)
    assert (result.verdict, result.verdict.exit_code) == (Verdict.NOT_EVALUABLE, 2)


def test_a_proof_cut_anywhere_is_not_evaluable(told) -> None:
    data = prove(lambda: TrailFolder(told.folder), MESSAGE)[0].to_bytes()
    for length in range(0, len(data) - 1, 97):
        assert verify_proof(data[:length]).verdict is Verdict.NOT_EVALUABLE


def test_no_proof_is_made_of_what_was_removed_meanwhile(told) -> None:
    sources = []

    def source() -> TrailFolder:
        if sources:
            told.remove(1)
        sources.append(TrailFolder(told.folder))
        return sources[-1]

    with pytest.raises(ProofError, match="segment 1 was removed meanwhile"):
        prove(source, MESSAGE)


def test_a_message_that_is_not_there_has_no_proof(told) -> None:
    with pytest.raises(ProofError, match=f"there is no record on message {'d' * 48}"):
        _prove(told, "d" * 48)


def test_a_name_in_another_field_is_not_the_message(told) -> None:
    told.trail.add("accepted", client="e" * 48)
    told.close()
    with pytest.raises(ProofError, match="there is no record"):
        _prove(told, "e" * 48)


def test_records_of_an_open_segment_are_not_signed_yet(told) -> None:
    told.trail.add("put", message_id="f" * 48)
    told.trail.add("put", message_id=MESSAGE)
    told.write(".open")
    with pytest.raises(ProofError, match="no digest covers the records"):
        _prove(told, "f" * 48)
    made, not_signed = prove(lambda: TrailFolder(told.folder), MESSAGE)
    assert (len(made.records), not_signed) == (3, 1)


def test_a_proof_is_refused_where_the_trail_was_touched(told) -> None:
    path = told.folder / "000000000001-20261120T07.jsonl"
    data = path.read_bytes()
    for touched in (data.replace(b"boiler", b"cooler", 1), b"".join(data.splitlines(keepends=True)[1:])):
        path.write_bytes(touched)
        with pytest.raises(BrokenSegment, match="is not what digest 1 says"):
            _prove(told)


def test_more_records_than_a_proof_holds_are_refused(told, monkeypatch) -> None:
    monkeypatch.setattr(life, "MOST_RECORDS", 2)
    with pytest.raises(ProofError, match="there are more than 2 records"):
        _prove(told)


@pytest.fixture
def lived(signed):
    """A publication, its copy, delivery and both answers, over three segments; between them others of the clients."""
    for exchange in (6, 7):
        signed.trail.add("accepted", packet_type=3, qos=1, topic="plant/heat", **(IN | {"exchange": exchange}))
    signed.trail.add("put", packet_type=3, command="Publish", message_id=MESSAGE, **IN)
    signed.trail.add("put", conversion="header_to_header", message_id=COPY, source_message_id=MESSAGE, queue="Q")
    signed.trail.add("put", conversion="header_to_header", message_id=OTHER, source_message_id=MESSAGE, queue="Q")
    signed.close()
    signed.trail.add("delivered", packet_type=3, qos=1, message_id=COPY, **OUT)
    signed.trail.add("confirmed", exchanges=[[1, 6]], packet_type=4, **{**IN, "exchange": None})
    signed.close()
    signed.trail.add("acknowledged", packet_type=4, **OUT)
    signed.trail.add("acknowledged", packet_type=4, **(OUT | {"exchange": 10}))
    signed.trail.add("confirmed", exchanges=[[7, 8]], packet_type=4, **{**IN, "exchange": None})
    signed.close()
    return signed


def _proven(values: dict) -> list[tuple[str, int]]:
    lines = [json.loads(record["line"]) for record in values["records"]]
    return [(line["kind"], line["sequence"]) for line in lines]


def test_a_proof_of_a_publication_has_its_acceptance_copies_deliveries_and_answers(lived) -> None:
    values = _prove(lived)
    assert _proven(values) == [
        *(("accepted", 2), ("put", 3), ("put", 4), ("put", 5)),
        *(("delivered", 6), ("acknowledged", 8), ("confirmed", 10)),
    ]
    assert _check(values, lived.public_key).verdict is Verdict.ANCHORED


def test_a_proof_of_a_copy_has_its_publication_and_not_the_other_copies(lived) -> None:
    values = _prove(lived, COPY)
    assert [sequence for _kind, sequence in _proven(values)] == [2, 3, 4, 6, 8, 10]
    assert _check(values, lived.public_key).verdict is Verdict.ANCHORED


def test_records_of_other_messages_do_not_belong_in_a_proof(lived) -> None:
    values, other = _prove(lived, COPY), _prove(lived, OTHER)
    stray = next(record for record in other["records"] if OTHER in record["line"] and COPY not in record["line"])
    values["records"].append(stray)
    result = _check(values, lived.public_key)
    assert (result.verdict, "does not speak of message" in result.reason) == (Verdict.VIOLATED, True)


def test_records_whose_link_to_the_message_has_no_digest_yet_are_not_in_the_proof(signed) -> None:
    signed.trail.add("put", message_id=COPY, destination="PLANT")
    signed.trail.add("put", message_id=OTHER, source_message_id=MESSAGE)
    signed.close()
    signed.trail.add("dead_lettered", message_id=COPY, dead_letter_id=MESSAGE)
    signed.write(".open")
    made, not_signed = prove(lambda: TrailFolder(signed.folder), MESSAGE)
    assert (_proven(json.loads(made.to_bytes())), not_signed) == ([("put", 2)], 2)
    assert verify_proof(made.to_bytes(), signed.public_key).verdict is Verdict.ANCHORED


def test_a_proof_of_version_1_is_read_as_it_was() -> None:
    result = verify_proof(OLD.read_bytes(), OLD_KEY)
    assert (result.verdict, len(result.records)) == (Verdict.ANCHORED, 3)
    values = json.loads(OLD.read_text())
    assert values["version"] == 1
    assert _check(values | {"message_id": "c" * 48}, OLD_KEY).verdict is Verdict.VIOLATED


# -- a key for each digest ---------------------------------------------------------------------------------------------


@pytest.fixture
def told_by_chain(chained):
    """Five segments of version 2; MESSAGE is in the second and the fifth. Digests 1 and 4 are countersigned."""
    for number in range(1, 6):
        chained.records(1)
        if number in (2, 5):
            chained.trail.add("put", message_id=MESSAGE)
        chained.countersign = number in (1, 4)
        chained.close()
    return chained


def test_a_proof_holds_the_digests_from_the_last_countersignature_on(told_by_chain) -> None:
    values = _prove(told_by_chain)
    assert [json.loads(text)["number"] for text in values["digests"]] == [1, 2, 4, 5]
    for key in (told_by_chain.public_key, told_by_chain.public_key_of(1)):
        assert _check(values, key).verdict is Verdict.ANCHORED
    assert _check(values).public_keys == (told_by_chain.public_key,)
    by_another = _check(values, told_by_chain.public_key_of(5))
    assert by_another.verdict is Verdict.VIOLATED
    assert by_another.reason.startswith("digest 2: it is signed by")


@pytest.mark.parametrize("without", [1, 4])
def test_a_proof_that_lacks_a_link_of_the_chain_proves_nothing(told_by_chain, without: int) -> None:
    values = _prove(told_by_chain)
    values["digests"] = [text for text in values["digests"] if json.loads(text)["number"] != without]
    assert _check(values, told_by_chain.public_key).verdict is Verdict.VIOLATED


def test_a_proof_with_a_forged_countersignature_is_found(told_by_chain, other_key) -> None:
    values = _prove(told_by_chain)
    named, told_by_chain.key = told_by_chain.public_key, other_key
    forged = told_by_chain.digest("interval", number=4, countersigner=named, countersign=True)
    values["digests"][2] = forged.read_text()
    result = _check(values, named)
    assert result.verdict is Verdict.VIOLATED
    assert "digest 4: its countersignature is not that of" in result.reason


@pytest.fixture
def told_by_token(chained):
    """A trail of a token: a segment, an interval, and only then the countersignature; another segment behind it."""
    chained.version, chained.key_place, chained.countersign = 3, "pkcs11", False
    chained.trail.add("put", message_id=MESSAGE, topic="plant/boiler")
    chained.close()
    chained.digest("interval")
    chained.digest("interval")
    chained.digest("countersignature", countersigned_number=2, countersign=True)
    chained.records(1)
    chained.close()
    return chained


def test_a_proof_holds_the_first_countersignature_that_came_later(told_by_token) -> None:
    values = _prove(told_by_token)
    assert [json.loads(text)["number"] for text in values["digests"]] == [1, 2, 3, 4]
    for key in (told_by_token.public_key, told_by_token.public_key_of(1)):
        assert _check(values, key).verdict is Verdict.ANCHORED


@pytest.mark.parametrize("without", [2, 4])
def test_a_proof_without_the_countersignature_that_came_later_is_no_proof(told_by_token, without: int) -> None:
    values = _prove(told_by_token)
    del values["digests"][without - 1]
    assert _check(values, told_by_token.public_key).verdict is Verdict.VIOLATED


def test_a_late_countersignature_pins_nothing_that_is_not_linked_to_it(told_by_token) -> None:
    """The digest of the segment is another one than that which digest 2 follows."""
    values = _prove(told_by_token)
    first = json.loads(values["digests"][0]) | {"table_version": "2"}
    del first["signature"]
    text = json.dumps(dict(sorted(first.items())), separators=(",", ":"))
    signature = told_by_token.key_of(1).sign(text.encode()).hex()
    values["digests"][0] = (
        json.dumps(dict(sorted((first | {"signature": signature}).items())), separators=(",", ":")) + "\n"
    )
    result = _check(values, told_by_token.public_key)
    assert result.verdict is Verdict.VIOLATED
    assert any(problem.startswith("digest 1: it is signed by") for problem in result.problems), result.problems


# -- lines of batches --------------------------------------------------------------------------------------------------


@pytest.fixture
def of_batches(tmp_path: Path) -> Path:
    """A trail whose lines have whole commits, as a gateway writes it."""
    make_trail(tmp_path / "trail", 1_500)
    return tmp_path / "trail"


def test_a_proof_with_lines_of_batches_tells_the_records_of_the_message_alone(of_batches: Path) -> None:
    copy = next(
        record["message_id"]
        for record in trail_records(of_batches)
        if record["kind"] == "delivered" and record["qos"] == 1
    )
    proof, not_signed = prove(lambda: TrailFolder(of_batches), copy)
    result = verify_proof(proof.to_bytes())
    assert (result.verdict, not_signed) == (Verdict.INTACT, 0)
    told = [json.loads(text) for text in result.records]
    assert {record["kind"] for record in told} == {"accepted", "put", "confirmed", "delivered", "acknowledged"}
    assert {record["client"] for record in told if record["kind"] == "delivered"} == {"dashboard"}
    assert len([record for record in told if record["kind"] == "delivered"]) == 1
    assert len(proof.records) < len(told), "records of one commit stand in one line"
    assert len({record.leaf for record in proof.records}) == len(proof.records)


def test_a_batch_that_was_changed_in_a_proof_is_a_violation(of_batches: Path) -> None:
    copy = next(record["message_id"] for record in trail_records(of_batches) if record["kind"] == "delivered")
    values = json.loads(prove(lambda: TrailFolder(of_batches), copy)[0].to_bytes())
    line = values["records"][0]["line"].encode()
    values["records"][0]["line"] = in_batch(line, b"plant", b"plane").decode()
    assert verify_proof(json.dumps(values).encode()).verdict is Verdict.VIOLATED


def test_a_field_that_nobody_knows_does_not_stop_a_check(told) -> None:
    """A later version may have it, and anybody may write one into a proof."""
    values = _prove(told)
    line = values["records"][0]["line"]
    values["records"][0]["line"] = line.replace('"topic"', '"unknown"')
    assert _check(values).verdict is Verdict.VIOLATED
