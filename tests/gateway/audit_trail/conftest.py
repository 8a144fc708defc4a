"""A store with batches on its audit queue, as a gateway leaves it, and what reads the trail back."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.audit_trail.notes.notes import pack_batch
from gateway.audit_trail.records import Chain
from mq_adapters.embedded.direct import Direct
from mq_adapters.embedded.rights import EVERYTHING
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from spark_audit.record.batch_line import records_of
from tests.gateway.audit_trail.keeper import Keeper

GATEWAY = "a" * 24
NOON = datetime(2026, 11, 20, 12, 50, tzinfo=UTC)
NOON_US = 1_795_179_000_000_000
AUDIT_QUEUE = "SYSTEM.RFHBRIDGE.AUDIT"

#: A program of tests may do everything, and take notes too.
NOTE_TAKER = replace(EVERYTHING, takes_notes=True)


class Store:
    """A queue manager without a gateway, and batches put on its audit queue by hand."""

    def __init__(self, queue_manager: Direct, trail: Path) -> None:
        self.queue_manager = queue_manager
        self.trail = trail
        self._batch = 0

    @property
    def gateway(self) -> str:
        return self.queue_manager.incarnation.hex()

    def commit(self, *notes: tuple[object, ...]) -> None:
        """One group commit: its notes become the next batch."""
        self._batch += 1
        self.put(pack_batch(self._batch, list(notes)))

    def put(self, body: bytes) -> None:
        """What the engine does at a group commit; applications may not put there."""
        engine = self.queue_manager._engine
        assert engine is not None
        unit = engine.begin()
        descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"RFHBAUD ")
        engine.put(unit, engine.queue(AUDIT_QUEUE), Message(descriptor, body))
        engine.submit(unit)

    def records(self) -> list[dict[str, object]]:
        """Every record of the trail in the order in which it stands."""
        paths = sorted(path for path in self.trail.iterdir() if path.suffix in (".jsonl", ".open"))
        lines = (line for path in paths for line in path.read_bytes().splitlines())
        return [record for line in lines for record in records_of(line)]

    def names(self) -> list[str]:
        """Names of the trail's segments and torn bytes."""
        return sorted(path.name for path in self.trail.iterdir() if path.is_file())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store with an empty trail beside it."""
    with Direct(tmp_path / "data", rights=NOTE_TAKER) as queue_manager:
        yield Store(queue_manager, tmp_path / "data" / "trail")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a trail; its signing key lies beside it."""
    folder = tmp_path / "trail"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def batches() -> Callable[[], tuple[bytes, str, str]]:
    """Batches of two records each: their lines, the hash of the last, and their gateway."""

    def numbers() -> Iterator[tuple[bytes, str, str]]:
        chain = Chain(sequence=0, head="0" * 64)
        batch = 0
        while True:
            batch += 1
            record = {"version": 1, "batch": batch, "gateway": GATEWAY, "kind": "session", "at_us": NOON_US}
            yield chain.seal([record, record]), chain.head, GATEWAY

    source = numbers()
    return lambda: next(source)


@pytest.fixture
def keeper(folder: Path, clock: Clock, batches: Callable[[], tuple[bytes, str, str]]) -> Iterator[Keeper]:
    """See Keeper."""
    keeper = Keeper(folder, clock, batches)
    yield keeper
    keeper.trail.close()
