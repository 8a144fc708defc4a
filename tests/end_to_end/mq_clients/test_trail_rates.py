"""The rates of trail bytes hold for MQ programs, however often they connect anew."""

from mq_adapters.reasons import ReasonCode
from tests.end_to_end.mq_clients.house import House
from tests.end_to_end.mq_clients.raw_client import RawClient

#: With so few bytes a second the records of some ten connections are allowed at once.
MORE = """
[mqtt]
trail_byte_rate = 1000
trail_byte_rate_per_user = 1000
trail_byte_rate_per_address = 1000
trail_byte_rate_per_prefix = 1000
"""
#: More than may connect at once, and a wait that shows that one must wait.
MANY, WAIT_S = 40, 0.25


def connected_at_once(port: str, channel: str) -> int:
    """How many programs of a channel get the answer to MQCONN without a wait; each one ends before the next comes."""
    for number in range(MANY):
        with RawClient(port) as client:
            client.negotiate(channel)
            client.socket.settimeout(WAIT_S)
            try:
                assert client.log_in() == ReasonCode.MQRC_NONE
            except TimeoutError:
                return number
    return MANY


def test_strangers_who_connect_again_and_again_wait_for_their_rate_and_nobody_else_does(house: House) -> None:
    assert 3 < connected_at_once(house.port, "QUEUED") < MANY
    with RawClient(house.port) as billing:
        billing.socket.settimeout(WAIT_S * 20)
        billing.connect()
    with RawClient(house.port) as patient:
        patient.negotiate("QUEUED")
        assert patient.log_in() == ReasonCode.MQRC_NONE
