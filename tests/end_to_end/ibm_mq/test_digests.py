"""Each signed digest of the trail stands on a queue of the data centre's queue manager, beyond the gateway's reach."""

import hashlib
from pathlib import Path

from spark_audit.verify import Anchor, Verdict, verify
from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.conftest import NewClient, NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import wait_until

DIGEST_QUEUE = "AUDIT.DIGESTS"


def test_digests_arrive_at_the_target_and_anchor_the_trail(
    way: Way, central: Central, new_target_gateway: NewGateway, new_client: NewClient, tmp_path: Path
) -> None:
    central.set_up(f"DEFINE QLOCAL({DIGEST_QUEUE})")
    audit = {"segment_bytes": 1, "digest_target": "CENTRAL", "digest_queue": DIGEST_QUEUE}
    gateway = new_target_gateway(way, settings={"audit": audit})
    gateway.start()
    gateway.wait_for_running()
    sensor = new_client("sensor")
    sensor.connect(gateway.port)
    for number in range(5):
        sensor.publish("plant/boiler", b"|%d" % number, 1)
    wait_until(lambda: central.depth(DIGEST_QUEUE) >= 5, "five digests have arrived")
    assert gateway.stop() == 0
    messages = central.messages(DIGEST_QUEUE)
    files = sorted((gateway.data / "trail" / "digests").iterdir())[: len(messages)]
    assert [message.body + b"\n" for message in messages] == [path.read_bytes() for path in files]
    for message in messages:
        assert message.descriptor.format == b"MQSTR   "
        assert message.is_persistent
        assert message.msg_id == b"RFHB" + hashlib.sha256(message.body + b"\n").digest()[:20]
    kept = tmp_path / "kept"
    kept.mkdir()
    for path, message in zip(files, messages, strict=True):
        (kept / path.name).write_bytes(message.body + b"\n")
    assert verify(gateway.data / "trail", Anchor.read(digests=kept)).verdict is Verdict.ANCHORED
