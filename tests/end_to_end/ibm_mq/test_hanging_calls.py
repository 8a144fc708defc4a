"""Calls of IBM's library that hang: sensors never notice, because no such call is made in the gateway's own process."""

import time

import pytest

from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.conftest import NewClient, NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import has_ibm_library, wait_until

#: How long a call hangs, seconds: longer than everything that the test does meanwhile.
HANG_S = 60.0
#: The longest that a PUBACK may take meanwhile, seconds: milliseconds, but on machines that have other work.
LONGEST_PUBACK_S = HANG_S / 3


@pytest.mark.parametrize("verb", ["MQGET", "MQPUT", "MQCMIT", "MQCONNX"])
def test_a_call_that_hangs_holds_up_no_sensor(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient, verb: str
) -> None:
    gateway = new_target_gateway(Way(binding="ibmmq", header="mqrfh2"))
    if verb == "MQCONNX":
        central.control.plant(verb, delay_s=HANG_S, times=0)
    gateway.start()
    if verb != "MQCONNX":
        gateway.wait_for_running()
        central.control.plant(verb, delay_s=HANG_S, times=0)
    sensor = new_client("hangs")
    sensor.connect(gateway.port)
    sensor.publish("hang/a", b"the first", 1)
    wait_until(lambda: central.control.calls_under_way() > 0, "a call hangs")
    longest_s = 0.0
    for number in range(100):
        began = time.monotonic()
        sensor.publish("hang/a", b"%d" % number, 1)
        longest_s = max(longest_s, time.monotonic() - began)
    assert longest_s < LONGEST_PUBACK_S
    assert central.control.calls_under_way() > 0
    began = time.monotonic()
    assert gateway.stop() == 0, gateway.log
    assert time.monotonic() - began < HANG_S / 2


def test_ibms_library_is_in_the_channel_process_and_never_in_the_gateway(
    new_target_gateway: NewGateway, way: Way, new_client: NewClient
) -> None:
    gateway = new_target_gateway(way).start()
    gateway.wait_for_running()
    sensor = new_client("maps")
    sensor.connect(gateway.port)
    sensor.subscribe("maps/a", 1)
    sensor.publish("maps/a", b"there and back", 1)
    sensor.next_message()
    assert has_ibm_library(gateway.channel_process())
    assert not has_ibm_library(gateway.process_identifier)
