"""Facts of a conversion with everything left out that a test does not say."""

from collections.abc import Callable

import pytest

from spark_audit.reperform.facts import Facts


@pytest.fixture
def facts() -> Callable[..., Facts]:
    """Makes Facts; little-endian UTF-8 headers unless said otherwise."""

    def make(**said: object) -> Facts:
        standard = {
            "conversion": "packet_to_header",
            "command": "Publish",
            "topic": "",
            "queue": "SYSTEM.BROKER.DEFAULT.STREAM",
            "packet_type": 3,
            "granted_qos": -1,
            "published_qos": -1,
            "is_retained": False,
            "payload_bytes": 2,
            "dropped_fields": (),
            "input": b"",
            "input_format": "MQTT",
            "input_ccsid": -1,
            "input_encoding": -1,
            "output": b"",
            "output_format": "MQHRF2",
            "output_ccsid": 1208,
            "output_encoding": 546,
        }
        return Facts(**{**standard, **said})

    return make
