"""The state of an audit, with which the next one goes on: a file of JSON, compressed, that the auditor's key signs.

    signature    128 hex digits and a line feed; over the words of _SIGNED_AS and all bytes behind it
    the rest     Zstandard; one JSON object with the fields of State; tables as lists of rows, without what is null

Nothing of it is unpacked before the signature was checked against the key of this audit. A file of another version,
program, policy or set of rules is refused: then one audit of the whole trail makes the next state. Of a state by other
rules it is still known where its trails ended, and what was told.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Self

import orjson
import pyarrow as pa
import zstandard

from spark_audit.controls.control import Control
from spark_audit.custody.memory import MEMORY_VERSION, Memory
from spark_audit.facts import derived
from spark_audit.facts.tables import FLAG, NUMBER, TEXT, schema_of
from spark_audit.record import ZERO_HASH
from spark_audit.seal import SealedTrail
from spark_audit.trail.signature import Signer, is_signature_of

STATE_FILE: Final = "state.zst"
STATE_VERSION: Final = 3
#: Bytes of the file, and of the JSON in it. A state is as large as what is open.
LARGEST_FILE_BYTES: Final = 256 * 1024 * 1024
LARGEST_TEXT_BYTES: Final = 2 * 1024 * 1024 * 1024
_SIGNATURE_BYTES: Final = 129
#: Stands in front of what is signed, because the key signs results too.
_SIGNED_AS: Final = b"state of an audit\n"
_LEVEL: Final = 3
_BLOCK_BYTES: Final = 1024 * 1024

_OF_EXCHANGE: Final = {"gateway": TEXT, "client": TEXT, "session_epoch": NUMBER}
#: The tables of a state. The first three are rows of facts as they are (facts/tables.py).
#:
#: heads: the last record of each gateway; messages: those that are known whole, `is_recent` with all copies of them;
#: numbers: the highest MsgId by its first 32 digits; received: messages from targets by their MsgIds there; told: the
#: findings so far.
TABLES: Final[Mapping[str, pa.Schema]] = {
    **{name: schema_of(name) for name in ("records", "confirmations", "runs")},
    "heads": pa.schema(
        {"gateway": TEXT, "sequence": NUMBER, "is_late": FLAG, "first_message": TEXT, "last_epoch": NUMBER}
    ),
    "sessions": pa.schema(_OF_EXCHANGE | {"side": TEXT, "first_exchange": NUMBER, "last_exchange": NUMBER}),
    "exchanges": pa.schema(_OF_EXCHANGE | {"exchange": NUMBER, "side": TEXT}),
    "messages": pa.schema({"gateway": TEXT, "message_id": TEXT, "is_recent": FLAG}),
    "numbers": pa.schema({"gateway": TEXT, "prefix": TEXT, "highest": TEXT}),
    "received": pa.schema(
        {"gateway": TEXT, "queue_manager": TEXT, "queue": TEXT, "target_message_id": TEXT, "sequence": NUMBER}
    ),
    "told": pa.schema({"control": TEXT, "gateway": TEXT, "sequence": NUMBER, "subject": TEXT}),
}


class UnusableState(ValueError):
    """A file is no state with which this audit can go on. The text says why."""


class OtherKey(UnusableState):
    """The key of this audit has not signed a state, or its bytes were changed."""

    def __init__(self) -> None:
        super().__init__("this audit's key has not signed it")


class OtherRules(UnusableState):
    """A state was made by other rules. `remains` has what still holds: its batch, the heads, and what was told."""

    def __init__(self, why: str, remains: "State") -> None:
        super().__init__(why)
        self.remains = remains


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailHead:
    """Where a trail ended: its last segment (stem), the hash in its last line, its last digest and that one's hash.

    `line` is the hash of the last line's bytes: another one than `head` if the line was changed, or is no record.
    `is_cut`: the first audit did not read the beginning of the trail.
    """

    name: str
    segment: str
    head: str
    line: str
    digests: int
    digest_head: str
    is_cut: bool

    def sealed(self) -> SealedTrail:
        """The trail as a seal names it."""
        return SealedTrail(digests=self.digests, digest_head=self.digest_head or ZERO_HASH, head=self.head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By what an audit judges. What was judged by others cannot be gone on with."""

    program: str
    policy_sha256: str
    rules_sha256: str

    @classmethod
    def of(cls, controls: tuple[Control, ...], policy_sha256: str) -> Self:
        """The rules of controls, the tables that they ask, and the program."""
        asked = [(each.identifier, each.severity.value, each.query(), each.rule.doubts) for each in controls]
        tables = [STATE_VERSION, MEMORY_VERSION, derived.EXCHANGES, derived.MESSAGES, derived.COPIES]
        told = hashlib.sha256(orjson.dumps([asked, tables])).hexdigest()
        return cls(program=_program(), policy_sha256=policy_sha256, rules_sha256=told)

    def why_others(self, others: "Rules") -> str:
        """Why a state by other rules does not fit; "" where they are the same."""
        if others.program != self.program:
            return f"it was made by rfhbridge {others.program}, and this is {self.program}"
        if others.policy_sha256 != self.policy_sha256:
            return "it was made with another policy"
        return "" if others == self else "it was made with other rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an audit knows behind its last record. `memories` are those of the replay of custody, by gateway.

    `batch` is the number of the batch of a stream that it is behind, 0 for an audit of another kind.
    """

    rules: Rules
    batch: int = 0
    trails: tuple[TrailHead, ...] = ()
    memories: Mapping[str, Memory] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def table(self, name: str) -> pa.Table:
        """One of its tables."""
        return self.tables.get(name, TABLES[name].empty_table())

    def forgotten(self) -> Self:
        """A state of nothing but what was told: everything is to be read once more."""
        return replace(self, trails=(), memories={}, tables={"told": self.table("told")})

    def to_bytes(self, signer: Signer) -> bytes:
        """The bytes of the file. Raises UnusableState where it is too large."""
        rules, memories = self.rules, self.memories
        told = {
            "version": STATE_VERSION,
            "batch": self.batch,
            "rules": [rules.program, rules.policy_sha256, rules.rules_sha256],
            "trails": [[getattr(each, name) for name in TrailHead.__slots__] for each in self.trails],
            "memories": {name: [each.sequence, each.retained, each.parts] for name, each in memories.items()},
            "tables": {name: [_without_nulls(row) for row in self.table(name).to_pylist()] for name in TABLES},
        }
        text = orjson.dumps(told)
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(text)
        if len(packed) + _SIGNATURE_BYTES > LARGEST_FILE_BYTES or len(text) > LARGEST_TEXT_BYTES:
            raise UnusableState(f"the state would be larger than {LARGEST_FILE_BYTES} bytes: too much is open")
        return signer.sign(_SIGNED_AS + packed).encode() + b"\n" + packed

    @classmethod
    def parse(cls, data: bytes, signer: Signer, rules: Rules) -> Self:
        """The state in the bytes of a file. Raises UnusableState."""
        packed = data[_SIGNATURE_BYTES:]
        signature = data[: _SIGNATURE_BYTES - 1].decode(errors="replace")
        if len(data) > LARGEST_FILE_BYTES:
            raise UnusableState(f"it is longer than {LARGEST_FILE_BYTES} bytes, so it is no state")
        if not packed or not is_signature_of(signer.public_key, signature, _SIGNED_AS + packed):
            raise OtherKey
        try:
            told = orjson.loads(_unpacked(packed))
            if told["version"] != STATE_VERSION:
                raise UnusableState(f"it has version {told['version']}, and this program {STATE_VERSION}")
            remains = cls(
                rules=Rules(**dict(zip(Rules.__slots__, told["rules"], strict=True))),
                batch=int(told["batch"]),
                trails=tuple(TrailHead(**dict(zip(TrailHead.__slots__, each, strict=True))) for each in told["trails"]),
                tables={"told": _table_of(told, "told")},
            )
            if why := rules.why_others(remains.rules):
                raise OtherRules(why, remains)
            return replace(
                remains,
                memories={
                    name: Memory(sequence=sequence, retained=tuple(retained), parts=parts)
                    for name, (sequence, retained, parts) in told["memories"].items()
                },
                tables={name: _table_of(told, name) for name in TABLES},
            )
        except UnusableState:
            raise
        except (zstandard.ZstdError, ValueError, TypeError, LookupError, AttributeError, pa.ArrowException) as error:
            raise UnusableState(f"it cannot be read: {error}") from None

    @classmethod
    def read(cls, path: Path, signer: Signer, rules: Rules) -> Self:
        """The state in a file. Raises UnusableState, OSError."""
        with path.open("rb") as file:
            return cls.parse(file.read(LARGEST_FILE_BYTES + 1), signer, rules)


def _unpacked(packed: bytes) -> bytearray:
    """Raises UnusableState, ZstdError."""
    text = bytearray()
    with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
        while block := reader.read(_BLOCK_BYTES):
            text += block
            if len(text) > LARGEST_TEXT_BYTES:
                raise UnusableState(f"it holds more than {LARGEST_TEXT_BYTES} bytes, so it is no state")
    return text


def _table_of(told: Mapping[str, Any], name: str) -> pa.Table:
    return pa.Table.from_pylist(told["tables"][name], schema=TABLES[name])


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _program() -> str:
    try:
        return version("rfhbridge")
    except PackageNotFoundError:
        return "not installed"
