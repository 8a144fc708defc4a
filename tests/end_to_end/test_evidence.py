"""What an auditor holds of a gateway that compressed, removed, copied and was killed, and whose key was changed."""

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.operations.rollback import known_head
from spark_audit.record.batch_line import packed_batch
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import PATIENCE_S, Gateway
from tests.end_to_end.wire import WireClient
from tests.gateway.audit_trail.test_trail_head import hashed_anew
from tests.processes.forked import rfhbridge
from tests.trail_lines import in_batch, trail_records

ACCEPTED = "20 02 00 00"
EACH_TIME = 30
#: Segments are compressed and removed as soon as they are closed, digested and copied; removing is looked at hourly,
#: and at each start.
AT_ONCE = "keep_days = 0.000001\nsegment_bytes = 1\n"


def _publish(connect: Connect, gateway: Gateway, name: str) -> None:
    client: WireClient = connect(gateway, name)
    client.send("connects", f"10 10 0004 'MQTT' 04 02 0000 0004 '{name}'")
    client.expect("is accepted", ACCEPTED)
    for number in range(1, EACH_TIME + 1):
        client.send("publishes", f"32 08 0003 'a/b' {number:04X} 'A'")
        client.expect("gets PUBACK", f"40 02 {number:04X}")


def _until(is_so: Callable[[], bool], gateway: Gateway, what: str) -> None:
    waiting = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if is_so():
            return
        waiting.wait(0.05)
    pytest.fail(f"{what}:\n{gateway.log}")


@pytest.fixture
def lived(new_gateway: StartGateway, connect: Connect, tmp_path: Path) -> Gateway:
    """A gateway after two kills, a new key and its end. FIRST.pub and OLD.pub are older; SECOND has the copies."""
    second = tmp_path / "SECOND"
    second.mkdir()
    config = tmp_path / "rfhbridge.toml"
    config.write_text(f'[audit]\ncopy_folder = "{second}"\n{AT_ONCE}')
    gateway = new_gateway("--config", str(config)).start()
    trail = gateway.data / "trail"
    _publish(connect, gateway, "once")
    _until(lambda: any(second.glob("digests/*.digest")), gateway, "no digest was copied")
    shutil.copyfile(gateway.data / "trail-key.pub", tmp_path / "OLD.pub")
    first = rfhbridge("audit", "key", "show", "--data", gateway.data).stdout
    (tmp_path / "FIRST.pub").write_text(first)
    gateway.kill_and_restart()
    _publish(connect, gateway, "more")
    _until(lambda: any(trail.glob("*.jsonl.zst")), gateway, "no segment was compressed")
    rotated = rfhbridge("audit", "key", "rotate", "--data", gateway.data)
    assert rotated.returncode == 0, rotated.stderr
    gateway.kill_and_restart()
    _publish(connect, gateway, "last")
    assert gateway.stop() == 0
    gateway.start()  # what was removed at the stop has its inventory at the next start
    _until(lambda: _tells("inventory", trail, second), gateway, "no inventory was told")
    assert gateway.stop() == 0
    assert rfhbridge("audit", "key", "show", "--data", gateway.data).stdout == first != rotated.stdout
    return gateway


def _tells(kind: str, *folders: Path) -> bool:
    """Whether there is a record of a kind, in what the gateway writes, closes, compresses and removes meanwhile."""
    return any(record["kind"] == kind for folder in folders for record in trail_records(folder))


def _verified(*arguments: str | Path) -> tuple[int, dict[str, object]]:
    ended = rfhbridge("audit", "verify", *arguments, "--json")
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.timeout(600)
def test_a_trail_that_was_tended_and_killed_is_anchored_by_the_first_key_and_the_copies(
    lived: Gateway, tmp_path: Path
) -> None:
    anchors = ("--public-key", tmp_path / "FIRST.pub", "--digests", tmp_path / "SECOND")
    code, said = _verified("--data", lived.data, *anchors)
    assert (code, said["verdict"], said["problem_count"]) == (0, "anchored", 0), said
    assert said["segments_removed"] > 0
    assert len(said["public_keys"]) == 2
    code, copied = _verified(tmp_path / "SECOND", "--public-key", tmp_path / "OLD.pub")
    assert (code, copied["verdict"], copied["segments_removed"]) == (0, "anchored", 0), copied
    assert copied["head"] == said["head"]
    records = trail_records(tmp_path / "SECOND")
    told = [(record["client"], record["exchange"]) for record in records if record.get("command") == "Publish"]
    assert len(told) == len(set(told)) == 3 * EACH_TIME
    orders = {record["command"]: record["reason"] for record in records if record["kind"] == "operated"}
    assert set(orders) == {"audit key rotate", "trail retention"}
    assert orders["trail retention"].startswith("keep_days is 1e-06: segment ")
    assert orders["audit key rotate"] == " hands over to ".join(said["public_keys"])  # type: ignore[arg-type]
    assert "begun" in {record["event"] for record in records if record["kind"] == "inventory"}
    keys = {record["file_hash"] for record in records if record.get("setting") == "audit.signing_key"}
    assert len(keys) == 2


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_an_audit_finds_the_same_trail_whole_and_every_exchange_in_order(
    lived: Gateway, tmp_path: Path, proof_scale: str
) -> None:
    """In full on Spark. Both engines find the same, which has tests of its own; DuckDB starts sooner."""
    engine = "spark" if proof_scale == "full" else "duckdb"
    pytest.importorskip("pyspark" if engine == "spark" else engine, reason=f"the audit on {engine} is not installed")
    anchors = ("--public-key", tmp_path / "FIRST.pub", "--digests", tmp_path / "SECOND")
    out = tmp_path / "report"
    told = ("--engine", engine, "--out", out, "--sign", lived.data / "trail-key.pem", "--json")
    ended = rfhbridge("audit", "run", "--data", lived.data, *anchors, *told, timeout=None)
    result = json.loads(ended.stdout)
    found = {each["identifier"]: each["sample"] for each in result["controls"] if each["violations"]}
    assert (ended.returncode, result["verdict"]) == (0, "clean"), (found, ended.stderr)
    statuses = {each["identifier"]: each["status"] for each in result["controls"]}
    assert (statuses["integrity.digests"], statuses["integrity.agreement"]) == ("held", "held")
    assert result["integrity"]["verdict"] == "anchored"
    pack = ("audit", "pack", "--data", lived.data, "--out", tmp_path / "pack.zip")
    packed = rfhbridge(*pack, "--results", out)
    assert (packed.returncode, packed.stderr) == (0, ""), "the results are of this trail, and signed"
    (out / "result.json").write_text(ended.stdout.replace('"clean"', '"violations"'))
    assert "result.json was changed" in rfhbridge(*pack, "--results", out).stderr


def test_lines_that_are_changed_and_hashed_anew_before_a_digest_are_never_signed_unseen(
    new_gateway: StartGateway, connect: Connect
) -> None:
    gateway = new_gateway().start()
    trail = gateway.data / "trail"
    _publish(connect, gateway, "once")
    _until(
        lambda: (known := known_head(gateway.data)) is not None and known.lines > EACH_TIME, gateway, "no line is kept"
    )
    gateway.kill()
    _until(lambda: _is_let_go(trail), gateway, "the exporter stays")
    (path,) = trail.glob("*.open")
    rows = path.read_bytes().splitlines(keepends=True)
    three = [at for at, row in enumerate(rows) if b"once" in packed_batch(row)][:3]
    changed = [in_batch(row, b"once", b"nice") if at in three else row for at, row in enumerate(rows)]
    assert changed != rows
    path.write_bytes(hashed_anew(b"".join(changed)))
    assert rfhbridge("audit", "verify", "--data", gateway.data).returncode == 0, "for the hashes of each line hold"
    verified = rfhbridge("queue", "verify", "--data", gateway.data)
    assert (verified.returncode, "hashed anew" in verified.stdout) == (1, True), verified.stdout
    gateway.launch()
    assert gateway.wait() == 1
    assert "the trail is not as the store knows it" in gateway.log
    assert not list(trail.glob("digests/*"))
    assert rfhbridge("queue", "accept-rollback", "--yes", "--data", gateway.data).returncode == 0
    gateway.start()
    assert gateway.stop() == 0
    exit_code, said = _verified("--data", gateway.data)
    (told,) = said["restorations"]
    assert (exit_code, said["verdict"], told["event"]) == (1, "restored", "trail_changed")


def _is_let_go(trail: Path) -> bool:
    """Whether the exporter of a gateway that was killed has ended."""
    folder = os.open(trail, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(folder)
    return True
