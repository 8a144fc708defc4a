"""A real authority (openssl ts) stamps digests; whatever another one answers costs bounded time, and is not kept."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from gateway.audit_trail.housekeeper import Housekeeper
from gateway.audit_trail.plan import TrailPlan, WitnessPlan
from gateway.audit_trail.segment import Trail
from gateway.audit_trail.witnesses.time_stamp_authority import TimeStampAuthority
from gateway.audit_trail.witnesses.witness import WitnessError, Witnessing
from mq_adapters.plausible_clock import PlausibleClock
from spark_audit.trail.digest import DIGEST_FOLDER, STAMPS_FOLDER, digest_name, stamp_name, stamp_numbers
from spark_audit.trail.witness_note import note_path, read_note
from spark_audit.verify.time_stamp import LARGEST_STAMP_BYTES
from tests.gateway.audit_trail.conftest import batches, clock, folder  # noqa: F401
from tests.time_stamping import POLICY, REPLY_TYPE, StampingAuthority, StampingServer, needs_openssl_ts, openssl

pytestmark = needs_openssl_ts
MEGABYTE = b" " * 1024 * 1024


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StampingAuthority]:
    place = tmp_path_factory.mktemp("authorities")
    wrong = ExtendedKeyUsageOID.CODE_SIGNING
    return {"ours": StampingAuthority(place / "ours"), "theirs": StampingAuthority(place / "theirs"), "usage": wrong}


@pytest.fixture
def ours(authorities) -> StampingAuthority:
    return authorities["ours"]


@pytest.fixture
def server(ours) -> Iterator[StampingServer]:
    with StampingServer(ours.reply) as running:
        yield running


@pytest.fixture
def trail(folder, clock) -> Iterator[Trail]:  # noqa: F811
    with Trail.open(folder, now=clock) as opened:
        yield opened


def _authority(trail: Trail, ours: StampingAuthority, url: str, **more) -> TimeStampAuthority:
    return TimeStampAuthority("clock", trail.folder, url=url, authority_file=str(ours.root), **more)


def _close(trail: Trail, batches) -> None:  # noqa: F811
    trail.append(*batches())
    trail.close_segment()


def _stamps(trail: Trail) -> list[int]:
    return stamp_numbers(trail.folder / STAMPS_FOLDER / "clock")


def test_the_last_digest_gets_a_time_stamp_that_openssl_verifies_too(trail, batches, ours, server) -> None:  # noqa: F811
    for _ in range(3):
        _close(trail, batches)
    task = Witnessing(_authority(trail, ours, server.url, policy=POLICY), trail.folder, trail.digests)
    assert task.step()
    assert not task.step()
    assert _stamps(trail) == [3]
    note = read_note(note_path(trail.folder, "clock"))
    assert note is not None
    assert (note.number, note.failure) == (3, "")
    stamp, digest = trail.folder / STAMPS_FOLDER / "clock" / stamp_name(3), trail.digests.folder / digest_name(3)
    told = openssl(ours.folder, "ts", "-verify", "-data", digest, "-in", stamp, "-CAfile", ours.root)
    assert told.strip().endswith(b"OK")
    _close(trail, batches)
    assert task.step()
    assert _stamps(trail) == [3, 4]
    assert server.queries[0] != server.queries[1]


def test_a_new_task_goes_on_behind_the_last_time_stamp_and_sees_a_trail_that_went_back(
    trail,
    batches,  # noqa: F811
    ours,
    server,
) -> None:
    _close(trail, batches)
    _close(trail, batches)
    assert Witnessing(_authority(trail, ours, server.url), trail.folder, trail.digests).step()
    assert not Witnessing(_authority(trail, ours, server.url), trail.folder, trail.digests).step()
    stamps = trail.folder / STAMPS_FOLDER / "clock"
    (stamps / stamp_name(2)).rename(stamps / stamp_name(9))
    with pytest.raises(WitnessError, match="the trail went back"):
        Witnessing(_authority(trail, ours, server.url), trail.folder, trail.digests).step()


def _with_other_hash(query: bytes) -> bytes:
    """The same query over other bytes: its SHA-256 stands behind 04 20."""
    begin = query.index(b"\x04\x20") + 2
    return query[:begin] + bytes(32) + query[begin + 32 :]


def _without_certificate(query: bytes) -> bytes:
    """The same query without certReq, the last three bytes of a SEQUENCE shorter than 128."""
    assert query.endswith(b"\x01\x01\xff")
    return bytes((query[0], query[1] - 3)) + query[2:-3]


HOSTILE: dict[str, tuple[str, Callable[[dict[str, StampingAuthority], bytes], bytes]]] = {
    "another request": ("nonce", lambda all_, _query: all_["ours"].stamp(b"something else")),
    "another imprint": ("Mismatch", lambda all_, query: all_["ours"].reply(_with_other_hash(query))),
    "another authority": ("certificate", lambda all_, query: all_["theirs"].reply(query)),
    "another policy": ("policy", lambda all_, query: all_["ours"].reply(query, policy="1.2.3.4")),
    "no certificate": ("certificate", lambda all_, query: all_["ours"].reply(_without_certificate(query))),
    "a refusal": ("not granted", lambda all_, query: all_["ours"].reply(query, digests="sha512")),
    "one byte changed": ("does not hold", lambda all_, query: _changed(all_["ours"].reply(query))),
    "a byte too many": ("ExtraData", lambda all_, query: all_["ours"].reply(query) + b"\0"),
    "nothing": ("ASN.1", lambda _all, _query: b""),
    "a web page": ("ASN.1", lambda _all, _query: b"<html>log in</html>"),
    "too long": ("longer than", lambda _all, _query: bytes(LARGEST_STAMP_BYTES + 1)),
}


def _changed(reply: bytes) -> bytes:
    return reply[:-10] + bytes((reply[-10] ^ 1,)) + reply[-9:]


@pytest.mark.parametrize(("match", "answer"), HOSTILE.values(), ids=HOSTILE)
def test_a_reply_that_is_not_right_is_told_and_not_kept(
    trail,
    batches,  # noqa: F811
    authorities,
    server,
    match,
    answer,
) -> None:
    _close(trail, batches)
    server.answer = lambda query: answer(authorities, query)
    ours = authorities["ours"]
    task = Witnessing(_authority(trail, ours, server.url, policy=POLICY), trail.folder, trail.digests)
    with pytest.raises(WitnessError, match=match):
        task.step()
    assert _stamps(trail) == []
    assert task.note.number == 0
    assert task.note.failure


def test_a_certificate_for_another_use_stamps_nothing(trail, batches, server, tmp_path) -> None:  # noqa: F811
    """openssl refuses to stamp with one, so the check itself is asked in test_time_stamp.py of spark_audit."""
    _close(trail, batches)
    (tmp_path / "none.pem").write_text("no certificate")
    for file in ("none.pem", "missing.pem"):
        authority = TimeStampAuthority("clock", trail.folder, url=server.url, authority_file=str(tmp_path / file))
        with pytest.raises(WitnessError, match=file):
            Witnessing(authority, trail.folder, trail.digests).step()
    assert server.queries == []


@pytest.mark.parametrize(("status", "kind"), [(302, "text/html"), (500, REPLY_TYPE), (200, "text/html")])
def test_an_answer_that_is_no_time_stamp_by_its_header_is_not_read(
    trail,
    batches,  # noqa: F811
    ours,
    server,
    status,
    kind,
) -> None:
    _close(trail, batches)
    server.status, server.content_type = status, kind
    with pytest.raises(WitnessError, match=f"status {status}"):
        _authority(trail, ours, server.url).submit({1: b"digest"})


def _drip(server: StampingServer, text: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        while not server.is_over.wait(0.02):
            yield text

    return pieces


def _flood(head: bytes, server: StampingServer) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield head
        while not server.is_over.is_set():
            yield MEGABYTE

    return pieces


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/timestamp-reply\r\n"


@pytest.mark.parametrize(
    "how", ["says nothing", "slow head", "slow body", "slow chunks", "endless head", "endless body", "endless line"]
)
def test_an_authority_that_is_slow_or_endless_costs_bounded_time_and_memory(trail, ours, server, how) -> None:
    server.raw = {
        "says nothing": _drip(server, b""),
        "slow head": _drip(server, b"H"),
        "slow body": lambda: (piece for piece in (HEAD + b"\r\n", *_few(server))),
        "slow chunks": lambda: (piece for piece in (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *_few(server))),
        "endless head": _flood(HEAD + b"A: b\r\n" * 1000, server),
        "endless body": _flood(HEAD + b"\r\n", server),
        "endless line": _flood(b"HTTP/1.1 200 ", server),
    }[how]
    begun_s = time.monotonic()
    with pytest.raises(WitnessError):
        _authority(trail, ours, server.url, timeout_s=0.5).submit({1: b"digest"})
    assert time.monotonic() - begun_s < 20
    assert server.sent_bytes < 64 * len(MEGABYTE), "what the sockets hold, and no more"


def _few(server: StampingServer) -> Iterator[bytes]:
    yield from ()
    while not server.is_over.wait(0.02):
        yield b"1\r\n"
        if server.sent_bytes > 10_000:
            return


def test_a_plan_with_an_authority_stamps_and_copies_what_is_closed(
    trail,
    batches,  # noqa: F811
    ours,
    server,
    tmp_path,
) -> None:
    witness = WitnessPlan(name="clock", type="rfc3161", timeout_s=20.0, url=server.url, authority_file=str(ours.root))
    (tmp_path / "copy").mkdir()
    plan = TrailPlan(signing_key="", witnesses=(witness,), copy_folder=str(tmp_path / "copy"))
    _close(trail, batches)
    keeper = Housekeeper.of(plan, trail, lambda: pytest.fail("no target"), PlausibleClock(0))
    keeper._witnesses[0].turn()
    keeper.turn()
    copy = tmp_path / "copy"
    assert (copy / DIGEST_FOLDER / digest_name(1)).is_file()
    name = Path(STAMPS_FOLDER) / "clock" / stamp_name(1)
    assert (copy / name).read_bytes() == (trail.folder / name).read_bytes()
