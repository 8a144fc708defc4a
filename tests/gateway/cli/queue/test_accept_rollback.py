"""A gateway whose store went back: it does not start, says what is missing, and goes on when that is accepted."""

import os
import shutil
import signal
from pathlib import Path

import orjson
import pytest

from gateway import daemon
from gateway.audit_trail.exporter import export_pending
from gateway.audit_trail.notes.notes import pack_batch
from gateway.config import ConfigurationError, Settings
from gateway.operations.rollback import accept, contradictions
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store.rollback_guard import MARKER_NAME, StoreWentBack
from mq_adapters.embedded.store.store import FILE_NAME
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.reasons import StoreError
from tests.gateway.audit_trail.conftest import NOTE_TAKER
from tests.trail_lines import trail_records

pytestmark = pytest.mark.usefixtures("interpreter_as_it_was")


def run(data: Path) -> int:
    """A gateway that starts and is told to stop."""
    settings = Settings.load(None, {"listen": "127.0.0.1:0", "data": str(data)})
    return daemon.run(settings, ready=lambda _: os.kill(os.getpid(), signal.SIGTERM))


def records(data: Path) -> list[dict[str, object]]:
    """The trail's, in their order."""
    return trail_records(data / "trail")


@pytest.fixture
def behind_its_trail(data_folder: Path) -> Path:
    """A data folder whose store and marker are those of before its last run, and whose trail is not."""
    assert run(data_folder) == 0
    kept = {name: (data_folder / name).read_bytes() for name in (FILE_NAME, MARKER_NAME)}
    assert run(data_folder) == 0
    for name, data in kept.items():
        (data_folder / name).write_bytes(data)
    return data_folder


def test_a_store_that_is_behind_its_trail_is_refused_with_what_is_missing(behind_its_trail):
    before = records(behind_its_trail)
    with pytest.raises(StoreWentBack, match=r"the trail has batches up to \d+, of 20.*Z, and the store knows \d+"):
        run(behind_its_trail)
    assert records(behind_its_trail) == before
    assert len(contradictions(behind_its_trail)) == 1


def test_it_goes_on_when_that_is_accepted_and_the_trail_says_so(behind_its_trail):
    before = records(behind_its_trail)
    done = accept(behind_its_trail, operator="anna", findings=contradictions(behind_its_trail), is_audited=True)
    assert not contradictions(behind_its_trail)
    assert run(behind_its_trail) == 0
    restored, *later = records(behind_its_trail)[len(before) :]
    assert (restored["kind"], restored["event"], restored["operator"]) == ("restored", "rolled_back", "anna")
    assert (restored["sequence"], restored["batch"]) == (1, 1)
    assert restored["gateway"] == done.incarnation.hex() != restored["gateway_before"] == before[-1]["gateway"]
    assert "the store knows" in restored["reason"]
    assert {record["gateway"] for record in later} == {done.incarnation.hex()}
    assert run(behind_its_trail) == 0


def test_nothing_to_accept_is_said(rfhbridge, data_folder):
    assert run(data_folder) == 0
    refused = rfhbridge("queue", "accept-rollback", "--yes", "--data", data_folder)
    assert refused.exit_code == 1
    assert "nothing in the data folder shows that the store went back" in refused.stderr
    forced = rfhbridge("queue", "accept-rollback", "--yes", "--force", "--json", "--data", data_folder)
    assert orjson.loads(forced.stdout)["accepted"] == ["the operator says that the whole data folder went back"]


def test_where_there_is_no_store_nothing_is_accepted_or_made(rfhbridge, data_folder):
    for more in ((), ("--force",), ("--force", "--yes")):
        refused = rfhbridge("queue", "accept-rollback", *more, "--data", data_folder)
        assert refused.exit_code == 1
        assert f"there is no store in {data_folder}" in refused.stderr
    assert not data_folder.exists()


def test_nothing_is_accepted_without_a_word(rfhbridge, data_folder):
    assert run(data_folder) == 0
    (data_folder / MARKER_NAME).unlink()
    asked = rfhbridge("queue", "accept-rollback", "--data", data_folder)
    assert asked.exit_code == 1
    assert "--yes" in asked.stderr
    assert not (data_folder / MARKER_NAME).exists()
    judged = rfhbridge("balance", "--data", data_folder)
    assert (judged.exit_code, judged.stdout) == (1, b"")
    assert "the store went back, and its counters with it: " in judged.stderr
    assert rfhbridge("queue", "accept-rollback", "--data", data_folder, "--yes").exit_code == 0
    assert rfhbridge("balance", "--data", data_folder).exit_code == 0
    assert run(data_folder) == 0
    assert rfhbridge("balance", "--data", data_folder).exit_code == 0


def test_notes_that_waited_go_to_the_trail_under_the_incarnation_of_before(data_folder):
    engine = Engine.open(data_folder)
    engine.seal_notes = pack_batch
    unit = engine.begin()
    unit.notes.append((12, 1_700_000_000_000_000, "1", "1", ""))
    unit.notes_are_due = True
    engine.submit(unit)
    before = engine.incarnation.hex()
    engine.close()
    (data_folder / MARKER_NAME).unlink()
    done = accept(data_folder, operator="anna", findings=("the marker is missing",), is_audited=True)
    with Direct(data_folder, rights=NOTE_TAKER) as queue_manager:
        queue_manager.define("ORDERS")
        queue_manager.put("ORDERS", Message(MessageDescriptor(), b"x"))
        assert export_pending(queue_manager, data_folder / "trail", close_segment=True) == 2
    told = [(record["kind"], record["gateway"], record["batch"]) for record in records(data_folder)]
    assert told == [("started", before, 1), ("restored", done.incarnation.hex(), 1)]


# -- what the audit says of it -----------------------------------------------------------------------------------------


def policy_naming(folder: Path, *hashes: object) -> Path:
    path = folder / "policy.toml"
    path.write_text("".join(f'[[restore]]\nrecord = "{name}"\nbecause = "ticket 4711"\n' for name in hashes))
    return path


def assert_restored_until_named(rfhbridge, data: Path, missing: str) -> None:
    told = rfhbridge("audit", "verify", "--json", "--data", data)
    said = orjson.loads(told.stdout)
    assert (told.exit_code, said["verdict"], said["problem_count"]) == (1, "restored", 0)
    assert missing in said["reason"]
    named = policy_naming(data, *(each["record"] for each in said["restorations"]))
    accepted = rfhbridge("audit", "verify", "--policy", named, "--data", data)
    assert (accepted.exit_code, accepted.text.partition(":")[0]) == (0, "consistent, not anchored")
    another = policy_naming(data, "0" * 64)
    assert rfhbridge("audit", "verify", "--policy", another, "--data", data).exit_code == 1


def test_the_documented_restore_ends_in_a_verdict_of_its_own(rfhbridge, data_folder, tmp_path):
    assert run(data_folder) == 0
    restored = tmp_path / "restored"
    restored.mkdir()
    assert rfhbridge("queue", "backup", restored / FILE_NAME, "--data", data_folder).exit_code == 0
    with pytest.raises(StoreWentBack, match="its marker"):
        run(restored)
    assert rfhbridge("queue", "accept-rollback", "--yes", "--data", restored).exit_code == 0
    assert run(restored) == 0
    assert [record["kind"] for record in records(restored)][:2] == ["restored", "started"]
    assert_restored_until_named(rfhbridge, restored, "batches 1 to 3 missing")


def test_the_documented_remedy_for_a_lost_key_ends_in_the_same_verdict(rfhbridge, data_folder):
    assert run(data_folder) == 0
    (data_folder / "trail-key.pem").unlink()
    with pytest.raises(ConfigurationError, match="move the trail folder away"):
        run(data_folder)
    (data_folder / "trail").rename(data_folder / "trail-before")
    assert run(data_folder) == 0
    first, *_ = records(data_folder)
    assert (first["kind"], first["event"], first["sequence"]) == ("restored", "trail_begun_late", 1)
    # Missing are the batches of the start and of the files that decide, and the stock-take at the stop.
    assert (first["batch"], first["first_missing_batch"], first["last_missing_batch"]) == (3, 1, 3)
    assert_restored_until_named(rfhbridge, data_folder, "batches 1 to 3 missing")


def test_a_store_that_went_back_and_was_accepted_is_told_by_verify(rfhbridge, behind_its_trail):
    assert rfhbridge("queue", "accept-rollback", "--yes", "--data", behind_its_trail).exit_code == 0
    assert run(behind_its_trail) == 0
    assert_restored_until_named(rfhbridge, behind_its_trail, "restored at 20")


def test_a_policy_that_names_no_hash_is_refused(rfhbridge, data_folder, tmp_path):
    assert run(data_folder) == 0
    for text in ("restore = 1", '[[restore]]\nrecord = "abc"', '[[restore]]\nhash = "a"', "[[restore"):
        (tmp_path / "policy.toml").write_text(text)
        refused = rfhbridge("audit", "verify", "--policy", tmp_path / "policy.toml", "--data", data_folder)
        assert refused.exit_code != 0
        assert "policy.toml" in refused.stderr


class Queue:
    """The audit queue of a store, with one batch on it again and again."""

    name = "SHOP"
    incarnation = bytes(12)

    def __init__(self, at_us: int) -> None:
        descriptor = MessageDescriptor(msg_id=b"RFHB" + self.incarnation + bytes(8))
        self.waiting = [Message(descriptor, pack_batch(1, [(12, at_us, "1", "1", "")]))]

    def begin(self) -> None:
        self.taken: list[Message] = []

    def take_batch(self, *_names: str, **_limits: int) -> list[Message]:
        self.taken, self.waiting = self.waiting, []
        return self.taken

    def put(self, _name: str, _message: Message) -> bytes:
        raise AssertionError

    def trail_head(self) -> str:
        return ""

    def keep_trail_head(self, head: str) -> None:
        assert head

    def commit(self) -> None:
        self.taken = []

    def back_out(self) -> None:
        self.waiting += self.taken


def test_another_batch_under_a_number_of_the_trail_stops_the_exporter(data_folder):
    """A store that went back unseen was used on, and its batches were dropped without a word."""
    trail, at_us = data_folder / "trail", 1_700_000_000_000_000
    assert export_pending(Queue(at_us), trail, close_segment=True) == 1
    other = Queue(at_us + 1)
    with pytest.raises(StoreError, match="the trail has another batch under this number"):
        export_pending(other, trail, close_segment=True)
    assert len(other.waiting) == 1
    assert export_pending(Queue(at_us), trail, close_segment=True) == 1
    assert len(records(data_folder)) == 1


def test_queue_verify_holds_the_store_against_the_trail(rfhbridge, behind_its_trail):
    found = rfhbridge("queue", "verify", "--data", behind_its_trail)
    assert found.exit_code == 1
    assert "is missing in the store" in found.text


def test_a_whole_folder_that_went_back_is_found_by_the_second_place(data_folder, tmp_path):
    second = tmp_path / "second"
    second.mkdir()

    def run_with_copies(data: Path) -> int:
        options = {"listen": "127.0.0.1:0", "data": str(data), "audit.copy_folder": str(second)}
        return daemon.run(Settings.load(None, options), ready=lambda _: os.kill(os.getpid(), signal.SIGTERM))

    assert run_with_copies(data_folder) == 0
    shutil.copytree(data_folder, tmp_path / "snapshot")
    assert run_with_copies(data_folder) == 0
    assert run_with_copies(data_folder) == 0
    snapshot = tmp_path / "snapshot"
    with pytest.raises(StoreWentBack, match=r"the copies in .* go up to digest \d+, of 20.*Z, and the trail here ends"):
        run_with_copies(snapshot)
    assert not contradictions(snapshot)
    second.rename(tmp_path / "evidence")
    second.mkdir()
    accept(snapshot, operator="anna", findings=("the second place has more",), is_audited=True)
    assert run_with_copies(snapshot) == 0
    assert "restored" in [record["kind"] for record in records(snapshot)]
