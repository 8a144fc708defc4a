"""A trail written line by line from the definition in record/, and one Spark session for all tests of the audit."""

import gc
import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyspark.sql import SparkSession

from spark_audit import remote_location
from spark_audit.audit import audit
from spark_audit.audit_input import AuditInput, input_of_trails
from spark_audit.controls.catalogue import CONTROLS
from spark_audit.controls.control import Control
from spark_audit.engines.duck import DuckEngine
from spark_audit.engines.engine import Engine
from spark_audit.facts.reading import Reading
from spark_audit.judgement import keep_doubtful, make_tables
from spark_audit.policy import Policy
from spark_audit.read import trail_files
from spark_audit.result import AuditResult
from spark_audit.spark_session import SparkPlace, start_session
from tests.spark_audit.s3_server import ENVIRONMENT, Bucket, running_server

GATEWAY = "0102030405060708090a0b0c"
SEGMENT = "000000000001-20261120T07.jsonl"
#: One audit takes some 15 s on two idle cores; on busy ones ten times as much.
SPARK_TIMEOUT_S = 600


class TrailBuilder:
    """Writes records as the definition says, with the standard library alone: nothing here is the gateway's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[bytes] = []
        self.sequence = 0
        self.head = "0" * 64

    def add(self, kind: str, *, batch: int | None = None, gateway: str = GATEWAY, **fields: object) -> int:
        """Adds one record; returns its sequence. Each is a batch of its own unless `batch` says otherwise."""
        self.sequence += 1
        record = {
            "version": 1,
            "sequence": self.sequence,
            "batch": self.sequence if batch is None else batch,
            "gateway": gateway,
            "kind": kind,
            "at_us": 1_795_158_000_000_000 + self.sequence,
            **fields,
            "prev": self.head,
        }
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
        self.head = hashlib.sha256(text).hexdigest()
        self.lines.append(text[:-1] + b',"hash":"' + self.head.encode() + b'"}\n')
        return self.sequence

    def write(self, name: str = SEGMENT) -> Path:
        """Writes the lines so far into one segment; returns the trail's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(b"".join(self.lines))
        return self.folder


class SignedTrail:
    """A trail with digests of version 1 as digest.py defines them, by json, hashlib and Ed25519 alone."""

    def __init__(self, trail: TrailBuilder, key: Ed25519PrivateKey, gateway: str = GATEWAY) -> None:
        self.trail = trail
        self.key = key
        self.gateway = gateway
        self.number = 0
        self.previous = "0" * 64
        self.head = "0" * 64
        self.segments: list[str] = []
        self.hashes: dict[object, str] = {}

    @property
    def folder(self) -> Path:
        return self.trail.folder

    @property
    def digests(self) -> Path:
        return self.folder / "digests"

    @property
    def public_key(self) -> str:
        return self.key.public_key().public_bytes_raw().hex()

    def records(self, count: int, **fields: object) -> None:
        """Adds records to the segment that is being written."""
        for _ in range(count):
            self.trail.add("accepted", client="boiler", message_id=f"{self.trail.sequence + 1:048x}", **fields)

    def write(self, ending: str = ".jsonl") -> Path:
        """Writes what was added as the next segment, without a digest."""
        self.segments.append(f"{len(self.segments) + 1:012d}-20261120T{7 + len(self.segments):02d}")
        path = self.trail.write(self.segments[-1] + ending) / (self.segments[-1] + ending)
        self._lines, self.trail.lines = self.trail.lines, []
        return path

    def close(self, ending: str = ".jsonl") -> Path:
        """Writes what was added as the next segment, and its digest."""
        path = self.write(ending)
        data = b"".join(self._lines)
        sequences = [json.loads(line)["sequence"] for line in self._lines]
        self.head = self.trail.head
        self.digest(
            "segment",
            segment=self.segments[-1],
            first_sequence=sequences[0],
            last_sequence=sequences[-1],
            records=len(self._lines),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            merkle_root=merkle_root([line[:-1] for line in self._lines]).hex(),
        )
        return path

    def digest(self, kind: str, *, number: int = 0, **fields: object) -> Path:
        """Signs and writes the next digest."""
        self.number = number or self.number + 1
        values: dict[str, object] = {
            "version": 1,
            "number": self.number,
            "kind": kind,
            "gateway": self.gateway,
            "segment": "",
            "first_sequence": 0,
            "last_sequence": 0,
            "records": 0,
            "size_bytes": 0,
            "sha256": "",
            "merkle_root": "",
            "head": self.head,
            "previous": self.previous,
            "from_us": 1_795_158_000_000_000,
            "until_us": 1_795_158_900_000_000,
            "code_version": "0.1.0",
            "table_version": "1",
            "configuration_sha256": "",
            "new_public_key": "",
            **fields,
        }
        self.sign(values)
        data = _canonical(values) + b"\n"
        self.hashes[self.number] = self.previous = hashlib.sha256(data).hexdigest()
        self.digests.mkdir(parents=True, exist_ok=True)
        path = self.digests / f"{self.number:012d}.digest"
        path.write_bytes(data)
        return path

    def sign(self, values: dict[str, object]) -> None:
        """Adds the key and the signature of a digest."""
        values.setdefault("public_key", self.public_key)
        values["signature"] = self.key.sign(_canonical(values)).hex()

    def rotate(self, key: Ed25519PrivateKey) -> Path:
        """Hands over to another key."""
        path = self.digest("rotation", new_public_key=key.public_key().public_bytes_raw().hex())
        self.key = key
        return path

    def remove(self, segment: int) -> None:
        """Removes the segments up to a number, as retention does."""
        self.digest("retention", segment=self.segments[segment - 1])
        for stem in self.segments[:segment]:
            (self.folder / f"{stem}.jsonl").unlink(missing_ok=True)

    def compress(self, segment: int, *, ending: str = ".jsonl.zst") -> Path:
        """Compresses a closed segment; earlier versions of the gateway did it with `.jsonl.gz`."""
        import zstandard  # here, because few tests compress

        path = self.folder / f"{self.segments[segment - 1]}.jsonl"
        compressed = path.with_suffix(ending)
        data = path.read_bytes()
        compressed.write_bytes(
            gzip.compress(data, mtime=0) if ending == ".jsonl.gz" else zstandard.ZstdCompressor().compress(data)
        )
        path.unlink()
        return compressed


class ChainedTrail(SignedTrail):
    """The same with digests of version 2 or 3: each has a key of its own. `key` is the configured one.

    `countersign` says whether it countersigns; None: where it has to, but for the hour.
    """

    countersign: bool | None = None
    version = 2
    #: Of version 3.
    key_place = "file"
    _kind_before: object = "rotation"

    @staticmethod
    def key_of(number: int) -> Ed25519PrivateKey:
        """The key of a digest, which a gateway destroys and this one does not."""
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"chain %d" % number).digest())

    def public_key_of(self, number: int) -> str:
        return self.key_of(number).public_key().public_bytes_raw().hex()

    def sign(self, values: dict[str, object]) -> None:
        """Adds keys and signatures. The first digest has a countersignature, and others that say `countersign`."""
        number = int(str(values["number"]))
        values["version"] = self.version
        must = self._kind_before == "rotation" or values["kind"] in ("rotation", "renewal", "countersignature")
        self._kind_before = values["kind"]
        countersign = values.pop("countersign", must if self.countersign is None else self.countersign)
        key = values.pop("signer", self.key_of(number))
        values.setdefault("countersigner", self.public_key)
        values.setdefault("next_public_key", self.public_key_of(number + 1))
        values.setdefault("keep_us", 0)
        if self.version > 2:
            values.setdefault("countersigned_number", 0)
            values.setdefault("key_place", self.key_place)
        values.setdefault("clock_state", "ok")
        values.setdefault("clock_maximum_error_us", 21_000)
        values.setdefault("clock_estimated_error_us", 340)
        values.setdefault("allowed_by", "a test" if values["kind"] in ("rotation", "retention") else "")
        values["public_key"] = key.public_key().public_bytes_raw().hex()
        number = values.get("countersigned_number", 0)
        late = {"countersigned_number": number, "digest": self.hashes.get(number, "")}
        over = _canonical(late if values["kind"] == "countersignature" else values)
        values["countersignature"] = self.key.sign(over).hex() if countersign else ""
        values["signature"] = key.sign(_canonical(values)).hex()

    def remove(self, segment: int) -> None:
        """Removes the segments up to a number, as retention does."""
        self.digest("retention", segment=self.segments[segment - 1], keep_us=1, until_us=1_795_158_900_000_001)
        for stem in self.segments[:segment]:
            (self.folder / f"{stem}.jsonl").unlink(missing_ok=True)


def _canonical(values: dict[str, object]) -> bytes:
    return json.dumps(dict(sorted(values.items())), separators=(",", ":"), ensure_ascii=False).encode()


def merkle_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word by word."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\1" + merkle_root(leaves[:half]) + merkle_root(leaves[half:])).digest()


def signing_key(number: int) -> Ed25519PrivateKey:
    """The same key for the same number, 0 to 255."""
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def policy_text_of(*identifiers: str) -> str:
    """A policy with these controls alone: a test that is not about the others need not wait for them."""
    others = (control.identifier for control in CONTROLS if control.identifier not in identifiers)
    return "".join(f'[control."{identifier}"]\nseverity = "off"\n' for identifier in others)


def policy_of(*identifiers: str) -> Policy:
    """The same as it is read."""
    return Policy.parse(policy_text_of(*identifiers).encode())


@pytest.fixture
def signed(tmp_path: Path) -> SignedTrail:
    """An empty trail with digests, under the test's own data folder, and its key."""
    return SignedTrail(TrailBuilder(tmp_path / "data" / "trail"), signing_key(1))


@pytest.fixture
def chained(tmp_path: Path) -> ChainedTrail:
    """The same with digests of version 2."""
    return ChainedTrail(TrailBuilder(tmp_path / "data" / "trail"), signing_key(1))


@pytest.fixture
def other_key() -> Ed25519PrivateKey:
    """A key that signs nothing unless a test makes it."""
    return signing_key(2)


@pytest.fixture
def trail(tmp_path: Path) -> TrailBuilder:
    """An empty trail under the test's own data folder."""
    return TrailBuilder(tmp_path / "data" / "trail")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests: one shuffle partition, no web page. Skipped where there is no Java."""
    noted = Path(sys.prefix) / "java-home"  # by the project's set-up
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ and not noted.is_file():
        pytest.skip("Spark needs Java 17 or 21: neither java on PATH nor JAVA_HOME is there (make test installs it)")
    mask = os.umask(0o077)  # as a command starts it
    try:
        with pytest.MonkeyPatch.context() as environment:  # that of workers, who find keys in it
            for name, value in ENVIRONMENT.items():
                environment.setenv(name, value)
            session = start_session(tmp_path_factory.mktemp("spark"), trail_bytes=0, place=SparkPlace(memory="1g"))
    finally:
        os.umask(mask)
    gc.collect()
    gc.freeze()  # to collect after each test is then to look at what came since, and takes no tenth of a second
    yield session
    gc.unfreeze()
    with warnings.catch_warnings():  # whichever test is the last of this process, it is not about Spark's sockets
        warnings.simplefilter("ignore", ResourceWarning)
        session.stop()
        gc.collect()
    gc.freeze()  # pytest collects five times more when it ends


@pytest.fixture(autouse=True)
def sockets_of_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """PySpark leaves the sockets of its results to the collector: not to that of another test, which forgives none."""
    yield
    if "spark" in request.fixturenames:
        gc.collect()


class Facts:
    """What an engine has read of trails, for controls and figures to ask."""

    def __init__(self, engine: Engine, audit_input: AuditInput, controls: Sequence[Control] = CONTROLS) -> None:
        self.engine = engine
        self.audit_input = audit_input
        self.controls = controls
        engine.read(audit_input.pieces, Reading(backwards_us=5_000_000, cut=audit_input.cut), audit_input.text_bytes)
        make_tables(engine)

    def found(self, control: Control) -> list[dict[str, Any]]:
        """Every violation of one control."""
        keep_doubtful(self.engine, [control])
        if control.step is not None:
            control.step(self.engine, self.audit_input)
        return self.engine.rows(control.query())

    def sequences(self, control: Control) -> set[int]:
        """The records that show them."""
        return {row["sequence"] for row in self.found(control)}


def audited(audit_input: AuditInput, scratch: Path, **options: Any) -> AuditResult:
    """The result of an audit on DuckDB, which starts at once; the rules are the same for each engine."""
    with closing(DuckEngine(Path(tempfile.mkdtemp(dir=scratch)), "1g")) as engine:
        return audit(engine, audit_input, lambda _line: None, **options)


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Callable[..., Facts]]:
    """Reads the folders of trails as an audit without Spark does, until the end of the test."""
    with ExitStack() as engines:

        def facts(*folders: Path) -> Facts:
            scratch = Path(tempfile.mkdtemp(dir=tmp_path))
            engine = DuckEngine(scratch, "1g")
            engines.callback(engine.close)
            return Facts(engine, input_of_trails([trail_files(folder, scratch) for folder in folders]))

        yield facts


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Bucket]:
    """One S3 server for all tests."""
    with running_server() as bucket:
        yield bucket


@pytest.fixture
def bucket(s3_server: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Its bucket, which the environment names as that of a cloud would be named."""
    for name, value in (ENVIRONMENT | {"AWS_ENDPOINT_URL": s3_server.endpoint}).items():
        monkeypatch.setenv(name, value)
    remote_location.forget_file_systems()
    yield s3_server
    remote_location.forget_file_systems()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark have time: an audit is thirty plans and more, and the machine may be busy.

    What PySpark does is no failure of a test of ours: it leaves sockets open, and 4.3 warns of pandas 3.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
            )
