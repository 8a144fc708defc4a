"""Packets whose end has not come, of all clients together."""

from gateway.config.limits import Limit, MqttLimits
from gateway.limits.refusals import Refusals
from gateway.limits.unfinished import UnfinishedPackets
from gateway.mqtt.reason_codes import ReasonCode


class Sender:
    """A connection in the middle of a packet."""

    def __init__(self, unfinished_bytes: int) -> None:
        self.is_open = True
        self.unfinished_bytes = unfinished_bytes
        self.reason_code: ReasonCode | None = None

    def close(self, reason: str, reason_code: ReasonCode, told: str) -> None:
        assert reason
        assert told
        self.is_open = False
        self.reason_code = reason_code


def test_the_largest_are_dropped_until_the_rest_has_room() -> None:
    refusals = Refusals()
    senders = [Sender(size) for size in (10, 400, 0, 300, 90)]
    packets = UnfinishedPackets(MqttLimits(maximum_unfinished_bytes_in_all=100), refusals)
    list(packets.look(senders))
    assert [sender.is_open for sender in senders] == [True, False, True, False, True]
    assert {sender.reason_code for sender in senders if not sender.is_open} == {ReasonCode.QUOTA_EXCEEDED}
    assert refusals.totals == {(Limit.UNFINISHED_BYTES_IN_ALL, ReasonCode.QUOTA_EXCEEDED): 2}
    list(packets.look(senders))
    assert sum(refusals.totals.values()) == 2


def test_what_fits_is_waited_for() -> None:
    refusals = Refusals()
    senders = [Sender(50), Sender(50)]
    list(UnfinishedPackets(MqttLimits(maximum_unfinished_bytes_in_all=100), refusals).look(senders))
    assert all(sender.is_open for sender in senders)
    assert not refusals.totals
