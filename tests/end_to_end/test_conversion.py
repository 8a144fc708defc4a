"""The running gateway converts: from queue to queue, through a kill, and over HTTP beside MQTT."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from mq_adapters import connect
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.end_to_end.gateway_process import Gateway
from tests.headers import mqrfh, mqrfh2
from tests.trail_lines import trail_records

BODY = b"\x00\xff 21.5"
MESSAGES = 2_000
PATIENCE_S = 30.0

CONFIGURATION = """
[[conversion]]
from = "ORDERS.MQRFH"
to = "ORDERS.MQRFH2"
header = "mqrfh2"
description = "the old application's orders"

[http]
enabled = true
listen = "127.0.0.1:0"
maximum_request_bytes = 1000
"""


PUBLISH = mqrfh("MQPSCommand Publish MQPSTopic a/b")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
DESCRIPTOR = MessageDescriptor(format=b"MQHRF   ", persistence=MQPER_PERSISTENT)


@pytest.fixture
def converting(new_gateway: Callable[..., Gateway], tmp_path: Path) -> Gateway:
    """A gateway with a conversion and HTTP, running."""
    path = tmp_path / "rfhbridge.toml"
    path.write_text(CONFIGURATION)
    return new_gateway("--config", str(path)).start()


def _url(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.wait_for_log('http started')['port']}"


def test_message_put_by_an_application_comes_out_converted(converting: Gateway) -> None:
    with connect(converting.data) as queue_manager:
        queue_manager.put("ORDERS.MQRFH", Message(DESCRIPTOR, PUBLISH + BODY))
        message = queue_manager.get("ORDERS.MQRFH2", wait_s=PATIENCE_S)
    assert message is not None
    assert (message.body, message.descriptor.format) == (PUBLISH_2 + BODY, b"MQHRF2  ")


def test_kill_in_the_middle_loses_and_doubles_nothing(converting: Gateway) -> None:
    with connect(converting.data) as queue_manager:
        queue_manager.begin()
        for number in range(MESSAGES):
            queue_manager.put("ORDERS.MQRFH", Message(DESCRIPTOR, PUBLISH + b"%d" % number))
        queue_manager.commit()
    converting.kill_and_restart()
    with connect(converting.data) as queue_manager:
        got = [queue_manager.get("ORDERS.MQRFH2", wait_s=PATIENCE_S) for _ in range(MESSAGES)]
        assert queue_manager.depth("ORDERS.MQRFH") == 0
        assert queue_manager.depth("ORDERS.MQRFH2") == 0
    bodies = [message.body for message in got if message is not None]
    assert bodies == [PUBLISH_2 + b"%d" % number for number in range(MESSAGES)]
    assert converting.stop() == 0
    served = [record for record in trail_records(converting.data / "trail") if record.get("conversion") == "service"]
    assert len({record["source_message_id"] for record in served}) == len(served) == MESSAGES


def test_conversion_over_http_stands_beside_mqtt(converting: Gateway) -> None:
    url = _url(converting)
    with urllib.request.urlopen(f"{url}/convert?to=mqrfh2", data=PUBLISH + BODY, timeout=PATIENCE_S) as response:
        assert response.read() == PUBLISH_2 + BODY
    with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE_S) as response:
        assert json.load(response) == {"live": True, "ready": True}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/convert?to=mqrfh2", data=bytes(1001), timeout=PATIENCE_S)
    with refused.value as answer:
        assert (answer.code, json.load(answer)["reason_name"]) == (413, "request_too_large")
    assert converting.stop() == 0


def test_gateway_without_a_configuration_has_no_http(gateway: Gateway) -> None:
    assert gateway.stop() == 0
    assert gateway.logged("http started") == []
