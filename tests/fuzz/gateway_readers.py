"""Readers of the gateway's rim, each with what must hold of any bytes: ClientHello, PROXY header, files, filters.

    .venv/bin/python -m tests.fuzz.gateway_readers 300        mutates the corpus for so many seconds, without atheris

`gateway.py` fuzzes them guided by libFuzzer. An input that runs a line for the first time is kept in `corpus`, in a
folder of the reader's name; a test reads the corpus again. A finding ends the run, and is written to var/fuzz/gateway.
"""

import hashlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gateway.access.application_tokens import parse_application_tokens
from gateway.access.recent_logins import DamagedLogins, RecentLogins
from gateway.config.error import ConfigurationError
from gateway.listener.client_hello import ClientHello
from gateway.listener.proxy_protocol import (
    FIXED_BYTES,
    ProxyProtocolError,
    check_beginning,
    read_fixed_part,
    read_source,
)
from mappings.topics.pattern_index import PatternIndex
from mappings.topics.topics import level_pattern
from mappings.topics.wildcards import Scheme, TopicError, matches

PROJECT: Final = Path(__file__).resolve().parents[2]
CORPUS: Final = Path(__file__).with_name("corpus")
_DIGEST_BYTES: Final = 16


def client_hello(data: bytes) -> None:
    """The same protocols are found however the bytes are cut."""
    whole = ClientHello().offered(data)
    cut = ClientHello()
    pieces = (cut.offered(data[place : place + 7]) for place in range(0, len(data), 7))
    assert next((found for found in pieces if found is not None), None) == whole


def proxy_header(data: bytes) -> None:
    """A header that is taken had a beginning that was taken, at each length."""
    try:
        for end in range(FIXED_BYTES):
            check_beginning(data[:end])
        if len(data) >= FIXED_BYTES:
            fixed = read_fixed_part(data[:FIXED_BYTES])
            read_source(fixed, data[FIXED_BYTES : FIXED_BYTES + fixed.rest_bytes])
    except ProxyProtocolError:
        return


def recent_logins(data: bytes) -> None:
    """A file, as it is and with a right checksum, is refused or answers every question, and is written again."""
    head = RecentLogins(bytes(16)).pack()
    for text in (data, _with_checksum(head, data)):
        try:
            found = RecentLogins.unpack(text)
        except DamagedLogins:
            continue
        found.knows("user", bytes(4), 20_000)
        found.knows_external("user", 20_000)
        assert len(RecentLogins.unpack(found.pack())) == len(found)
        found.add("user", bytes(4), 20_000)
        assert found.knows("user", bytes(4), 20_000)


def _with_checksum(empty: bytes, body: bytes) -> bytes:
    """A file with that body, whose head is that of an empty one; a digest of 16 bytes ends the head."""
    head = empty[:-_DIGEST_BYTES]
    return head + hashlib.blake2b(head + body, digest_size=_DIGEST_BYTES).digest() + body


def application_tokens(data: bytes) -> None:
    """A file is refused as a whole, or each of its hashes can be written and read again."""
    try:
        found = parse_application_tokens(data.decode(errors="replace"), "tokens")
    except ConfigurationError:
        return
    text = "".join(f"{name}:{each.text}\n" for name, each in found.items())
    assert parse_application_tokens(text, "tokens") == found


def shapes(data: bytes) -> None:
    """Patterns of a RegSub: what the index finds is what matches one by one, and nothing is left of what has gone.

    The first byte chooses the scheme; then topics and patterns follow, a line each.
    """
    scheme = (Scheme.TOPIC, Scheme.CHARACTER, Scheme.MQTT)[data[0] % 3] if data else Scheme.TOPIC
    *patterns, topic = data[1:2_000].decode(errors="replace").split("\n")
    index: PatternIndex[str] = PatternIndex()
    known = []
    for pattern in dict.fromkeys(patterns):
        try:
            new = index.new_shapes([(pattern, scheme, pattern)])
            levels = level_pattern(pattern) if scheme is Scheme.CHARACTER and pattern else None
        except TopicError:
            continue
        weight = index.shapes.weight
        index.add(pattern, scheme, pattern)
        known.append(pattern)
        assert index.shapes.weight - weight == sum(each.weight for each in new)
        if levels is not None and matches(levels, topic, Scheme.TOPIC):
            assert matches(pattern, topic, Scheme.CHARACTER)
    assert sorted(index.match(topic)) == sorted(each for each in known if matches(each, topic, scheme))
    for pattern in known:
        index.remove(pattern, scheme, pattern)
    assert not index.shapes.weight
    assert index.match(topic) == ()


READERS: Final[tuple[Callable[[bytes], None], ...]] = (
    client_hello,
    proxy_header,
    recent_logins,
    application_tokens,
    shapes,
)


def seeds(reader: Callable[[bytes], None]) -> dict[str, bytes]:
    """The corpus of a reader, by name of the file."""
    return {path.name: path.read_bytes() for path in sorted((CORPUS / reader.__name__).iterdir())}


def lines_of(reader: Callable[[bytes], None], data: bytes) -> set[tuple[str, int]]:
    """The lines of the product that a reader runs for an input."""
    ran: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((f"{PROJECT}/gateway", f"{PROJECT}/mappings")):
            return None
        ran.add((name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        reader(data)
    finally:
        sys.settrace(before)
    return ran


def mutated(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """Bytes changed, put in, taken out, repeated, or crossed with another input."""
    made = bytearray(data or b"\0")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(made)) if made else 0
        match chance.randrange(6):
            case 0:
                made[at : at + 1] = bytes((chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))),))
            case 1:
                made[at:at] = chance.choice((b"/", b"+", b"#", b"*", b"?", b"%", b"\n", b":", chance.randbytes(3)))
            case 2:
                del made[at : at + chance.randint(1, 8)]
            case 3:
                made[at:at] = made[at : at + chance.randint(1, 40)]
            case 4:
                begin = chance.randrange(len(other)) if other else 0
                made[at : at + 8] = other[begin : begin + chance.randint(1, 30)]
            case _:
                made[at : at + 2] = chance.randrange(300).to_bytes(2, "big")
    return bytes(made[:4_096])


def campaign(seconds: float) -> Iterator[str]:
    """Mutates the corpus of each reader in turns. Says which inputs it has kept."""
    chance = random.Random(time.time_ns())
    inputs = {reader: list(seeds(reader).values()) for reader in READERS}
    seen = {reader: set().union(*(lines_of(reader, each) for each in inputs[reader])) for reader in READERS}
    runs, deadline_s = 0, time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        for reader in READERS:
            data = mutated(chance.choice(inputs[reader]), chance.choice(inputs[reader]), chance)
            try:
                ran = lines_of(reader, data)
            except Exception:
                found = PROJECT / "var" / "fuzz" / "gateway"
                found.mkdir(parents=True, exist_ok=True)
                found.joinpath(f"crash-{reader.__name__}").write_bytes(data)
                raise
            runs += 1
            if not ran <= seen[reader]:
                seen[reader] |= ran
                inputs[reader].append(data)
                name = hashlib.sha256(data).hexdigest()[:16]
                (CORPUS / reader.__name__ / name).write_bytes(data)
                yield f"{reader.__name__}/{name}: {len(seen[reader])} lines"
    yield f"{runs} inputs"


if __name__ == "__main__":
    for said in campaign(float(sys.argv[1])):
        print(said, flush=True)
