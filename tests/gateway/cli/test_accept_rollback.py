"""A gateway whose store went back: it does not start, says what is missing, and goes on when that is accepted."""

import os
import signal
from pathlib import Path

import orjson
import pytest

from gateway import daemon
from gateway.audit_trail.exporter import export_pending
from gateway.audit_trail.notes import pack_batch
from gateway.config import Settings
from gateway.rollback import accept, contradictions
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.store import FILE_NAME
from mq_adapters.embedded.witness import MARKER_NAME, StoreWentBack
from mq_adapters.message import Message, MessageDescriptor

pytestmark = pytest.mark.usefixtures("interpreter_as_it_was")


def run(data: Path) -> int:
    """A gateway that starts and is told to stop."""
    settings = Settings.load(None, {"listen": "127.0.0.1:0", "data": str(data)})
    return daemon.run(settings, ready=lambda _: os.kill(os.getpid(), signal.SIGTERM))


def records(data: Path) -> list[dict[str, object]]:
    """The trail's, in their order."""
    paths = sorted((data / "trail").glob("*.jsonl"))
    return [orjson.loads(line) for path in paths for line in path.read_bytes().splitlines()]


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
    assert "nothing in the data folder shows that it went back" in refused.stderr
    forced = rfhbridge("queue", "accept-rollback", "--yes", "--force", "--json", "--data", data_folder)
    assert orjson.loads(forced.stdout)["accepted"] == ["the operator says that the whole data folder went back"]


def test_nothing_is_accepted_without_a_word(rfhbridge, data_folder):
    assert run(data_folder) == 0
    (data_folder / MARKER_NAME).unlink()
    asked = rfhbridge("queue", "accept-rollback", "--data", data_folder)
    assert asked.exit_code == 1
    assert "say --yes" in asked.stderr
    assert not (data_folder / MARKER_NAME).exists()
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
    with Direct(data_folder) as queue_manager:
        queue_manager.define("ORDERS")
        queue_manager.put("ORDERS", Message(MessageDescriptor(), b"x"))
        assert export_pending(queue_manager, data_folder / "trail", close_segment=True) == 2
    told = [(record["kind"], record["gateway"], record["batch"]) for record in records(data_folder)]
    assert told == [("started", before, 1), ("restored", done.incarnation.hex(), 1)]
